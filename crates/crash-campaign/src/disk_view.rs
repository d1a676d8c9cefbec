//! A private view of a folder: a program sees the files as they are at this moment and may change them, and the folder itself
//! stays as it is. What a crash leaves can then be judged while the processes that it would have killed are only stopped.
//!
//! An overlay file system above the folder, at the same path, receives every change. Names, contents, times and inode numbers
//! are those of the folder. The program has process numbers of its own, so it finds no process of the folder alive, and locks
//! belong to the files of the overlay, so it finds none held. Mounts need root.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::mount::{MsFlags, mount};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::Pid;
use testkit::test_repo::RunOutput;

use crate::pool::wait_for_end;

/// The first argument of the first process of a view.
pub(crate) const VIEW_INIT: &str = "view-init";

const CHECK_TIMEOUT: Duration = Duration::from_secs(60);

/// A folder and where the changes of its view go, on the same file system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiskView<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) scratch: &'a Path,
}

impl DiskView<'_> {
    /// Runs this program with these arguments in the view, and discards the changes. None if it does not end in time.
    pub(crate) fn run<S: AsRef<OsStr>>(&self, args: &[S], timeout: Duration) -> Option<RunOutput> {
        for name in ["upper", "work"] {
            fs::create_dir_all(self.scratch.join(name)).expect("a folder of the view");
        }
        let mut child = self.spawn(args);
        let is_timely = wait_for_end(&mut child, timeout);
        if !is_timely {
            // Its namespace dies with it.
            let _ = child.kill();
        }
        let output = child.wait_with_output().expect("the output of the view");
        fs::remove_dir_all(self.scratch).expect("the folder of the view");
        is_timely.then(|| RunOutput {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// Starts this program as the first process of new namespaces. It reads from its standard input what it has to do: a process
    /// with the folder on its command line would count as one that a crash left.
    fn spawn<S: AsRef<OsStr>>(&self, args: &[S]) -> Child {
        let exe = std::env::current_exe().expect("the path of this program");
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--mount-proc", "--kill-child"]).arg(exe).arg(VIEW_INIT);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("a process of the view");
        let words = [self.folder.as_os_str(), self.scratch.as_os_str()].into_iter();
        let words: Vec<&[u8]> = words.chain(args.iter().map(AsRef::as_ref)).map(OsStr::as_bytes).collect();
        let mut stdin = child.stdin.take().expect("a pipe");
        // A view that could not start says why on its standard error.
        let _ = stdin.write_all(&words.join(&0));
        child
    }
}

/// Why this machine has no views, tried below a folder.
pub(crate) fn unavailable_in(folder: &Path) -> Option<String> {
    let folder = tempfile::tempdir_in(folder).expect("a temporary folder");
    let [below, scratch] = ["below", "scratch"].map(|name| folder.path().join(name));
    fs::create_dir(&below).expect("a folder");
    let view = DiskView { folder: &below, scratch: &scratch };
    let output = view.run(&["--help"], CHECK_TIMEOUT);
    match output {
        Some(output) if output.code == Some(0) => None,
        Some(output) => Some(output.stderr.trim_end().to_owned()),
        None => Some(format!("a view does not end within {} s", CHECK_TIMEOUT.as_secs())),
    }
}

/// Runs in the first process of the view: mounts the overlay, starts this program again, and adopts the orphans of the view
/// until that one ends. Returns its exit code.
pub(crate) fn run_init() -> Result<u8, String> {
    let mut input = Vec::new();
    std::io::stdin().read_to_end(&mut input).map_err(|error| format!("standard input: {error}"))?;
    let mut args = input.split(|byte| *byte == 0).map(|word| OsString::from_vec(word.to_owned()));
    let (Some(folder), Some(scratch)) = (args.next(), args.next()) else {
        return Err("a view needs a folder and a place for its changes".to_owned());
    };
    let mut options = OsString::from("redirect_dir=on,xino=auto");
    for (name, path) in [
        ("lowerdir", Path::new(&folder).to_owned()),
        ("upperdir", Path::new(&scratch).join("upper")),
        ("workdir", Path::new(&scratch).join("work")),
    ] {
        options.push(format!(",{name}="));
        options.push(path);
    }
    mount(Some("overlay"), Path::new(&folder), Some("overlay"), MsFlags::empty(), Some(options.as_os_str()))
        .map_err(|error| format!("overlay: {error}"))?;
    reap_until_end(Command::new("/proc/self/exe").args(args).stdin(Stdio::null()))
}

/// Runs a command and waits for every process that ends meanwhile.
fn reap_until_end(command: &mut Command) -> Result<u8, String> {
    let child = command.spawn().map_err(|error| format!("exec: {error}"))?;
    let child = Pid::from_raw(child.id().cast_signed());
    loop {
        let status = waitpid(Pid::from_raw(-1), None).map_err(|error| format!("wait: {error}"))?;
        if status.pid() != Some(child) {
            continue;
        }
        if let WaitStatus::Exited(_, code) = status {
            return Ok(u8::try_from(code).unwrap_or(u8::MAX));
        }
        return Err(format!("the program in the view ended: {status:?}"));
    }
}
