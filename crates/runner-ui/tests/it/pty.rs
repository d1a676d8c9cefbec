//! A terminal of its own for a program: what it shows, and keys to press.

use std::fs::File;
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use testkit::processes::wait_for;

/// How often the thread that reads asks whether to go on.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// A program on a terminal.
pub(crate) struct Pty {
    child: Child,
    /// The terminal's own end; without it, the line is cut.
    master: Option<File>,
    slave: OwnedFd,
    before: Termios,
    seen: Arc<Mutex<Seen>>,
}

struct Seen {
    screen: vt100::Parser,
    bytes: Vec<u8>,
    /// Whether nobody looks any more: the thread that reads holds the terminal open until then.
    is_over: bool,
}

impl Pty {
    /// Starts a program on a terminal of this size, which is its controlling one.
    pub(crate) fn start(command: &Command, (columns, rows): (u16, u16)) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = rustix::fs::open(&name, flags, Mode::empty()).unwrap();
        let before = tcgetattr(&slave).unwrap();
        let mut started = Command::new("setsid");
        started.arg("--ctty").arg(command.get_program()).args(command.get_args());
        for (key, value) in command.get_envs() {
            match value {
                Some(value) => started.env(key, value),
                None => started.env_remove(key),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            started.current_dir(folder);
        }
        started.env("TERM", "xterm-256color");
        let end = || Stdio::from(slave.try_clone().unwrap());
        let screen = vt100::Parser::new(cells(rows), cells(columns), 0);
        let seen = Arc::new(Mutex::new(Seen { screen, bytes: Vec::new(), is_over: false }));
        let master = File::from(master);
        tcsetwinsize(&master, size(columns, rows)).unwrap();
        let child = started.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        let (reader, noted) = (master.try_clone().unwrap(), Arc::clone(&seen));
        std::thread::spawn(move || take_in(reader, &noted));
        Self { child, master: Some(master), slave, before, seen }
    }

    /// What the terminal shows now.
    pub(crate) fn screen(&self) -> String {
        self.seen.lock().unwrap().screen.screen().contents()
    }

    /// Everything that was written to it.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.seen.lock().unwrap().bytes.clone()
    }

    /// Waits until it shows a text.
    pub(crate) fn wait_for(&self, text: &str) {
        wait_for(&format!("`{text}` on the terminal, which shows\n{}", self.screen()), || {
            self.screen().contains(text)
        });
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.master.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        self.seen.lock().unwrap().screen.screen_mut().set_size(cells(rows), cells(columns));
        tcsetwinsize(self.master.as_ref().unwrap(), size(columns, rows)).unwrap();
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        rustix::process::kill_process(self.pid(), signal).unwrap();
    }

    /// Takes the terminal away, as a lost connection does.
    pub(crate) fn hang_up(&mut self) {
        self.seen.lock().unwrap().is_over = true;
        drop(self.master.take());
    }

    /// Waits for the end; gives the exit code.
    pub(crate) fn ended(&mut self) -> i32 {
        wait_for("the end of the program", || self.child.try_wait().unwrap().is_some());
        let status = self.child.wait().unwrap();
        status.code().unwrap_or_else(|| panic!("ended by signal {:?}", status.signal()))
    }

    /// Asserts that the terminal is as it was before the program took it.
    pub(crate) fn assert_given_back(&self) {
        let now = tcgetattr(self.slave.as_fd()).unwrap();
        assert_eq!(now.local_modes, self.before.local_modes);
        assert_eq!(now.input_modes, self.before.input_modes);
        assert_eq!(now.output_modes, self.before.output_modes);
        wait_for("the usual screen", || {
            let seen = self.seen.lock().unwrap();
            let screen = seen.screen.screen();
            !screen.alternate_screen() && !screen.hide_cursor()
        });
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn size(columns: u16, rows: u16) -> Winsize {
    Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }
}

fn cells(count: u16) -> NonZeroU16 {
    NonZeroU16::new(count).unwrap()
}

fn take_in(mut reader: File, seen: &Mutex<Seen>) {
    let mut bytes = [0; 4096];
    loop {
        let mut polled = [PollFd::new(&reader, PollFlags::IN)];
        let ready = poll(&mut polled, Some(&LOOK_EVERY)).unwrap_or_default();
        let mut seen = seen.lock().unwrap();
        if seen.is_over {
            return;
        }
        if ready == 0 {
            continue;
        }
        let Ok(count) = reader.read(&mut bytes) else { return };
        let fresh = bytes.get(..count).unwrap_or_default();
        seen.screen.process(fresh);
        seen.bytes.extend(fresh);
    }
}
