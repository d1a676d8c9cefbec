//! Finds programs on PATH and beside this one, and runs trusted ones that end quickly: version queries, probes, sibling
//! binaries. Untrusted programs go through [`crate::run`].

use std::env;
use std::ffi::OsString;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The entries of PATH, without those relative to the working directory.
pub fn search_path() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).filter(|dir| dir.is_absolute()).collect()
}

/// The same as one value, for a child's environment.
pub fn search_path_variable() -> OsString {
    env::join_paths(search_path()).unwrap_or_default()
}

/// Finds a program. A PATH entry inside the repository is skipped, because an agent could have put the program there.
pub fn find(program: &str, repository: Option<&Path>) -> Option<PathBuf> {
    if program.contains('/') {
        let path = repository.unwrap_or(Path::new(".")).join(program);
        return is_program(&path).then_some(path);
    }
    search_path()
        .into_iter()
        .filter(|dir| repository.is_none_or(|repository| !dir.starts_with(repository)))
        .map(|dir| dir.join(program))
        .find(|path| is_program(path))
}

/// The programs that this executable contains besides the one that it is named after.
static INCLUDED_PROGRAMS: OnceLock<&[&str]> = OnceLock::new();

/// Declares which programs this executable contains. Such a program is started as this executable under the program's name,
/// which its `main` finds in the first argument. Only the first call counts.
pub fn include_programs(names: &'static [&'static str]) {
    let _ = INCLUDED_PROGRAMS.set(names);
}

/// Whether this executable contains the program.
pub fn is_included(program: &str) -> bool {
    INCLUDED_PROGRAMS.get().is_some_and(|names| names.contains(&program))
}

/// The command of a program that ships with this one: this executable itself, or another file.
fn sibling_command(program: &str) -> Option<Command> {
    if !is_included(program) {
        return sibling_binary(program).map(Command::new);
    }
    let mut command = Command::new(env::current_exe().ok()?);
    command.arg0(program);
    Some(command)
}

/// Finds the file of a program that ships with this one: in the same directory, or else on PATH.
pub fn sibling_binary(program: &str) -> Option<PathBuf> {
    let own_path = env::current_exe().ok().and_then(|own| own.canonicalize().ok());
    let sibling = own_path.map(|own| own.with_file_name(program)).filter(|path| is_program(path));
    sibling.or_else(|| find(program, None))
}

/// Replaces this process by a program that ships with it. Returns only if that fails.
pub fn exec_sibling(program: &str, args: &[OsString]) -> io::Error {
    let Some(mut command) = sibling_command(program) else { return io::ErrorKind::NotFound.into() };
    command.args(args).exec()
}

/// The captured output of [`capture_sibling`].
#[derive(Debug)]
pub struct CapturedOutput {
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Runs a program that ships with this one and captures up to `bytes_max` of its output. `None` if it does not end in time.
pub fn capture_sibling(
    program: &str,
    args: &[OsString],
    bytes_max: u64,
    timeout: Duration,
) -> Option<CapturedOutput> {
    let mut command = sibling_command(program)?;
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().ok()?;
    let stdout = read_on_thread(child.stdout.take()?, bytes_max).ok()?;
    let stderr = read_on_thread(child.stderr.take()?, STDERR_BYTES_MAX).ok()?;
    let deadline = Instant::now() + timeout;
    while child.try_wait().ok()?.is_none() {
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Some(CapturedOutput { stdout: stdout.join().ok()?.ok()?, stderr: stderr.join().ok()?.ok()? })
}

const STDERR_BYTES_MAX: u64 = 64 << 10;

/// Reads on a thread, so that a program that writes much to both streams does not block on either.
fn read_on_thread(
    from: impl Read + Send + 'static,
    bytes_max: u64,
) -> io::Result<JoinHandle<io::Result<Vec<u8>>>> {
    std::thread::Builder::new().spawn(move || {
        let mut bytes = Vec::new();
        from.take(bytes_max).read_to_end(&mut bytes).map(|_| bytes)
    })
}

/// Opens a URL in the user's browser, without waiting for it.
pub fn show_in_browser(url: &str) -> io::Result<()> {
    let mut command = Command::new(if cfg!(target_os = "macos") { "open" } else { "xdg-open" });
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    std::thread::Builder::new().spawn(move || child.wait()).map(drop)
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// How long a version query or a probe may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// The first line that `program --version` prints. `None` if it fails or takes too long.
pub fn version_of(program: &Path) -> Option<String> {
    first_line_of(program, &["--version".into()])
}

/// The first line that a program prints. `None` if it fails or takes too long.
pub fn first_line_of(program: &Path, args: &[OsString]) -> Option<String> {
    let mut command = Command::new(program);
    command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    let (mut child, status) = run_to_end(&mut command)?;
    if !status.success() {
        return None;
    }
    // Some programs print their version to standard error.
    first_line(child.stdout.take()?).or_else(|| first_line(child.stderr.take()?))
}

/// Runs a program to see whether it works. `Err` has the first line of its standard error.
pub fn probe(program: &Path, args: &[OsString]) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(args).stdout(Stdio::null()).stderr(Stdio::piped());
    let (mut child, status) = run_to_end(&mut command).ok_or("it does not start, or does not end")?;
    if status.success() {
        return Ok(());
    }
    Err(child.stderr.take().and_then(first_line).unwrap_or_else(|| status.to_string()))
}

/// Runs a program with empty input. `None` if it cannot start or does not end within [`PROBE_TIMEOUT`].
fn run_to_end(command: &mut Command) -> Option<(Child, ExitStatus)> {
    let mut child = command.stdin(Stdio::null()).spawn().ok()?;
    let deadline = Instant::now() + PROBE_TIMEOUT;
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

/// The first line that is not blank, unchanged: sanitize it before you print it. Reads only what is available now, because a
/// process that the program left behind may hold the pipe open.
fn first_line(pipe: impl Read + AsFd) -> Option<String> {
    let mut bytes = Vec::new();
    rustix::io::ioctl_fionbio(&pipe, true).ok()?;
    let _ = pipe.take(4_096).read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_on_path_but_not_in_the_repository() {
        let shell = find("sh", None).unwrap();
        assert!(shell.is_absolute());
        let shell_dir = shell.parent().unwrap();
        assert_ne!(find("sh", Some(shell_dir)), Some(shell.clone()));
        assert_eq!(find("no-such-program-here", None), None);
        assert_eq!(find("./no-such-program", Some(Path::new("/"))), None);
        assert_eq!(find(shell.to_str().unwrap(), Some(Path::new("/x"))), Some(shell));
    }

    #[test]
    fn version_of_a_failing_program_is_none() {
        assert_eq!(version_of(&find("false", None).unwrap()), None);
        assert!(version_of(&find("git", None).unwrap()).unwrap().starts_with("git version"));
    }

    #[test]
    fn a_failed_probe_returns_the_first_line_of_stderr() {
        let shell = find("sh", None).unwrap();
        let probe_script = |script: &str| probe(&shell, &["-c".into(), script.into()]);
        assert_eq!(probe_script("exit 0"), Ok(()));
        assert_eq!(probe_script("echo; echo no room >&2; exit 1"), Err("no room".to_owned()));
        assert_eq!(probe_script("exit 3"), Err("exit status: 3".to_owned()));
        assert!(probe(Path::new("/nowhere/sh"), &[]).is_err());
    }
}
