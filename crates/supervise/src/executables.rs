//! Finding and asking programs.

use std::env;
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The PATH without entries that depend on where one stands.
pub fn search_path() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).filter(|folder| folder.is_absolute()).collect()
}

/// The same, for a child's environment.
pub fn search_path_variable() -> OsString {
    env::join_paths(search_path()).unwrap_or_default()
}

/// Where a program is. One that lies inside the repository is passed over: an agent could have put it there.
pub fn find(program: &str, repository: Option<&Path>) -> Option<PathBuf> {
    if program.contains('/') {
        let path = repository.unwrap_or(Path::new(".")).join(program);
        return is_program(&path).then_some(path);
    }
    search_path()
        .into_iter()
        .filter(|folder| repository.is_none_or(|repository| !folder.starts_with(repository)))
        .map(|folder| folder.join(program))
        .find(|path| is_program(path))
}

/// A program that ships with this one: beside it, or else on the PATH.
pub fn sibling_binary(program: &str) -> Option<PathBuf> {
    let beside = env::current_exe().ok().and_then(|own| own.canonicalize().ok());
    let beside = beside.map(|own| own.with_file_name(program)).filter(|path| is_program(path));
    beside.or_else(|| find(program, None))
}

/// Becomes a program that ships with this one; comes back only if that cannot be.
pub fn exec_sibling(program: &str, args: &[OsString]) -> io::Error {
    let Some(path) = sibling_binary(program) else { return io::ErrorKind::NotFound.into() };
    Command::new(path).args(args).exec()
}

/// What a program said.
#[derive(Debug)]
pub struct CapturedOutput {
    /// On its standard output.
    pub stdout: Vec<u8>,
    /// Where programs complain.
    pub stderr: Vec<u8>,
}

/// What a program that ships with this one prints, up to a number of bytes and if it ends in time.
pub fn capture_sibling(
    program: &str,
    args: &[OsString],
    bytes_max: u64,
    wait: Duration,
) -> Option<CapturedOutput> {
    let mut command = Command::new(sibling_binary(program)?);
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().ok()?;
    let (answer, complaint) = (child.stdout.take()?, child.stderr.take()?);
    let (answer, complaint) = (whole(answer, bytes_max), whole(complaint, COMPLAINT_BYTES_MAX));
    let until = Instant::now() + wait;
    while child.try_wait().ok()?.is_none() {
        if Instant::now() > until {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Some(CapturedOutput { stdout: answer.join().ok()?.ok()?, stderr: complaint.join().ok()?.ok()? })
}

/// How much of a complaint is read.
const COMPLAINT_BYTES_MAX: u64 = 64 << 10;

/// Reads aside, so that a program that says much on both ways never waits.
fn whole(from: impl Read + Send + 'static, bytes_max: u64) -> JoinHandle<io::Result<Vec<u8>>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        from.take(bytes_max).read_to_end(&mut bytes).map(|_| bytes)
    })
}

/// Asks the desktop to show an address in the user's browser. Nobody waits for it.
pub fn show_in_browser(url: &str) -> io::Result<()> {
    let mut command = Command::new(if cfg!(target_os = "macos") { "open" } else { "xdg-open" });
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    std::thread::spawn(move || child.wait());
    Ok(())
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// How long a program may take to tell its version.
const VERSION_WAIT: Duration = Duration::from_secs(10);

/// The first line of what a program says of its version; none if it fails, or takes too long.
pub fn version_of(program: &Path) -> Option<String> {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::piped()).stderr(Stdio::piped());
    let (mut child, status) = ended(&mut command)?;
    // Some say it where others complain.
    let told = first_line(child.stdout.take()?).or_else(|| first_line(child.stderr.take()?));
    told.filter(|_| status.success())
}

/// Whether a program succeeds with these arguments; if not, the first line of what it says about that.
pub fn probe(program: &Path, args: &[OsString]) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(args).stdout(Stdio::null()).stderr(Stdio::piped());
    let (mut child, status) = ended(&mut command).ok_or("it does not start, or does not end")?;
    if status.success() {
        return Ok(());
    }
    Err(child.stderr.take().and_then(first_line).unwrap_or_else(|| status.to_string()))
}

/// Runs a program that takes no input, to its end.
fn ended(command: &mut Command) -> Option<(Child, ExitStatus)> {
    let mut child = command.stdin(Stdio::null()).spawn().ok()?;
    let deadline = Instant::now() + VERSION_WAIT;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some((child, status)),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(5)),
            Ok(None) | Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}

/// The first line that is not blank, as the program wrote it: sanitize it before you show it. Reads only what is
/// there now, because a process left behind by the program may hold the pipe open for ever.
fn first_line(pipe: impl Read + AsFd) -> Option<String> {
    let mut answer = Vec::new();
    rustix::io::ioctl_fionbio(&pipe, true).ok()?;
    let _ = pipe.take(4_096).read_to_end(&mut answer);
    let text = String::from_utf8_lossy(&answer);
    text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_found_on_the_path_and_not_in_the_repository() {
        let shell = find("sh", None).unwrap();
        assert!(shell.is_absolute());
        let own = shell.parent().unwrap();
        assert_ne!(find("sh", Some(own)), Some(shell.clone()));
        assert_eq!(find("no-such-program-here", None), None);
        assert_eq!(find("./no-such-program", Some(Path::new("/"))), None);
        assert_eq!(find(shell.to_str().unwrap(), Some(Path::new("/x"))), Some(shell));
    }

    #[test]
    fn a_program_without_a_version_has_none() {
        assert_eq!(version_of(&find("false", None).unwrap()), None);
        assert!(version_of(&find("git", None).unwrap()).unwrap().starts_with("git version"));
    }

    #[test]
    fn a_program_that_fails_says_why() {
        let shell = find("sh", None).unwrap();
        let tried = |script: &str| probe(&shell, &["-c".into(), script.into()]);
        assert_eq!(tried("exit 0"), Ok(()));
        assert_eq!(tried("echo; echo no room >&2; exit 1"), Err("no room".to_owned()));
        assert_eq!(tried("exit 3"), Err("exit status: 3".to_owned()));
        assert!(probe(Path::new("/nowhere/sh"), &[]).is_err());
    }
}
