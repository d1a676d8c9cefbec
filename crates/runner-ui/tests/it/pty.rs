//! Runs a program on a pseudo-terminal: reads its screen, presses keys, resizes and closes it.

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

/// How often the reader thread checks whether the test is over.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

/// A program on a pseudo-terminal.
pub(crate) struct Pty {
    child: Child,
    /// The terminal's side; dropping it closes the terminal.
    master: Option<File>,
    slave: OwnedFd,
    before: Termios,
    output: Arc<Mutex<PtyOutput>>,
}

struct PtyOutput {
    screen: vt100::Parser,
    bytes: Vec<u8>,
    /// Whether the test is over: the reader thread keeps the terminal open until then.
    is_over: bool,
}

impl Pty {
    /// Starts a program with a controlling terminal of this size.
    pub(crate) fn start(command: &Command, columns: u16, rows: u16) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let slave = rustix::fs::open(&name, flags, Mode::empty()).unwrap();
        let before = tcgetattr(&slave).unwrap();
        let mut session = Command::new("setsid");
        session.arg("--ctty").arg(command.get_program()).args(command.get_args());
        for (key, value) in command.get_envs() {
            match value {
                Some(value) => session.env(key, value),
                None => session.env_remove(key),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            session.current_dir(folder);
        }
        session.env("TERM", "xterm-256color");
        let stdio = || Stdio::from(slave.try_clone().unwrap());
        let screen = vt100::Parser::new(cells(rows), cells(columns), 0);
        let output = Arc::new(Mutex::new(PtyOutput { screen, bytes: Vec::new(), is_over: false }));
        let master = File::from(master);
        tcsetwinsize(&master, size(columns, rows)).unwrap();
        let child = session.stdin(stdio()).stdout(stdio()).stderr(stdio()).spawn().unwrap();
        let reader = master.try_clone().unwrap();
        let read = Arc::clone(&output);
        std::thread::spawn(move || read_output(reader, &read));
        Self { child, master: Some(master), slave, before, output }
    }

    pub(crate) fn screen(&self) -> String {
        self.output.lock().unwrap().screen.screen().contents()
    }

    /// All bytes that the program wrote.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.output.lock().unwrap().bytes.clone()
    }

    /// Waits until the screen contains a text.
    pub(crate) fn wait_for(&self, text: &str) {
        wait_for(&format!("`{text}` on the terminal, which shows\n{}", self.screen()), || {
            self.screen().contains(text)
        });
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.master.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        self.output.lock().unwrap().screen.screen_mut().set_size(cells(rows), cells(columns));
        tcsetwinsize(self.master.as_ref().unwrap(), size(columns, rows)).unwrap();
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        rustix::process::kill_process(self.pid(), signal).unwrap();
    }

    /// Closes the terminal, like a lost connection.
    pub(crate) fn hang_up(&mut self) {
        self.output.lock().unwrap().is_over = true;
        drop(self.master.take());
    }

    /// Waits for the program's end.
    pub(crate) fn exit_code(&mut self) -> i32 {
        wait_for("the end of the program", || self.child.try_wait().unwrap().is_some());
        let status = self.child.wait().unwrap();
        status.code().unwrap_or_else(|| panic!("ended by signal {:?}", status.signal()))
    }

    /// Asserts that the terminal is in the state from before the program.
    pub(crate) fn assert_restored(&self) {
        let now = tcgetattr(self.slave.as_fd()).unwrap();
        assert_eq!(now.local_modes, self.before.local_modes);
        assert_eq!(now.input_modes, self.before.input_modes);
        assert_eq!(now.output_modes, self.before.output_modes);
        wait_for("the main screen", || {
            let output = self.output.lock().unwrap();
            let screen = output.screen.screen();
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

fn read_output(mut reader: File, output: &Mutex<PtyOutput>) {
    let mut bytes = [0; 4096];
    loop {
        let mut polled = [PollFd::new(&reader, PollFlags::IN)];
        let ready = poll(&mut polled, Some(&POLL_INTERVAL)).unwrap_or_default();
        let mut output = output.lock().unwrap();
        if output.is_over {
            return;
        }
        if ready == 0 {
            continue;
        }
        let Ok(count) = reader.read(&mut bytes) else { return };
        let new = bytes.get(..count).unwrap_or_default();
        output.screen.process(new);
        output.bytes.extend(new);
    }
}
