//! Keeps the machine awake while a loop runs, where the system has a program for it.

use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use runner_core::text::one_line;
use supervise::executables;

/// Exists if systemd runs this machine.
const SYSTEMD: &str = "/run/systemd/system";
/// How long the program may take to end.
const END_MAX: Duration = Duration::from_secs(1);
const POLL: Duration = Duration::from_millis(5);

/// Keeps the machine awake until it is dropped, or until this process dies: the program waits for the end of its input.
#[derive(Debug)]
pub struct SleepInhibitor(Option<Child>);

impl SleepInhibitor {
    /// Does nothing if the system has no way, or if that fails: the loop works without.
    pub fn start(root: &Path) -> Self {
        let words = inhibit_words(root, Path::new(SYSTEMD).is_dir());
        Self(words.and_then(|words| spawn(&words).ok()))
    }
}

impl Drop for SleepInhibitor {
    fn drop(&mut self) {
        let Some(child) = &mut self.0 else { return };
        drop(child.stdin.take());
        let since = Instant::now();
        while since.elapsed() < END_MAX {
            if !matches!(child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(POLL);
        }
        let _ = child.kill().and_then(|()| child.wait());
    }
}

/// Tries what would keep the machine awake during a loop, and names it. `Err` has why nothing does.
pub(crate) fn probe(root: &Path) -> Result<String, String> {
    let words = inhibit_words(root, Path::new(SYSTEMD).is_dir());
    words.ok_or("no systemd or caffeinate here")?.probe()
}

/// The command that keeps the machine awake while `cat` reads.
fn inhibit_words(root: &Path, has_systemd: bool) -> Option<InhibitCommand> {
    let find = |program: &str| executables::find(program, Some(root));
    let cat = find("cat")?;
    if let Some(program) = find("systemd-inhibit").filter(|_| has_systemd) {
        let options = ["--what=idle:sleep", "--who=runner", "--why=a run is in progress", "--mode=block"];
        return Some(InhibitCommand::new(&program, &options, &cat));
    }
    let program = find("caffeinate")?;
    Some(InhibitCommand::new(&program, &["-i"], &cat))
}

struct InhibitCommand(Vec<std::ffi::OsString>);

impl InhibitCommand {
    fn new(program: &Path, options: &[&str], cat: &Path) -> Self {
        let mut words = vec![program.as_os_str().to_owned()];
        words.extend(options.iter().map(std::ffi::OsString::from));
        words.push(cat.as_os_str().to_owned());
        Self(words)
    }

    /// Runs it once. It ends at once, because the input of `cat` is empty.
    fn probe(&self) -> Result<String, String> {
        let name = self.program_name();
        let (program, arguments) = self.0.split_first().ok_or("there is no program for it")?;
        match executables::probe(Path::new(program), arguments) {
            Ok(()) => Ok(format!("{name} keeps the machine awake while a loop runs")),
            Err(why) => Err(format!("{name} does not work: {}", one_line(&why))),
        }
    }

    fn program_name(&self) -> String {
        let program = self.0.first().map(Path::new).and_then(Path::file_name).unwrap_or_default();
        program.to_string_lossy().into_owned()
    }
}

/// In a process group of its own: Ctrl-C on the terminal ends the loop, which then ends this.
fn spawn(words: &InhibitCommand) -> io::Result<Child> {
    let (program, arguments) = words.0.split_first().ok_or(io::ErrorKind::NotFound)?;
    Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_ends_with_the_inhibitor() {
        let folder = tempfile::tempdir().unwrap();
        let ended = folder.path().join("ended");
        let script = format!("cat; touch '{}'", ended.display());
        let words = InhibitCommand(["sh", "-c", &script].map(Into::into).to_vec());
        let inhibitor = SleepInhibitor(Some(spawn(&words).unwrap()));
        assert!(!ended.exists());
        drop(inhibitor);
        assert!(ended.exists());
    }

    #[test]
    fn a_program_that_does_not_end_is_killed() {
        let words = InhibitCommand(["sleep", "600"].map(Into::into).to_vec());
        let child = spawn(&words).unwrap();
        let process = format!("/proc/{}", child.id());
        drop(SleepInhibitor(Some(child)));
        assert!(!Path::new(&process).exists());
    }

    #[test]
    fn a_program_that_fails_keeps_nothing_awake() {
        let probe = |script: &str| InhibitCommand(["sh", "-c", script].map(Into::into).to_vec()).probe();
        assert_eq!(probe("cat").unwrap(), "sh keeps the machine awake while a loop runs");
        assert_eq!(probe("echo no logind >&2; exit 1").unwrap_err(), "sh does not work: no logind");
    }

    #[test]
    fn without_systemd_its_program_is_not_used() {
        let words = inhibit_words(Path::new("/"), false);
        assert!(words.is_none_or(|words| words.program_name() == "caffeinate"));
    }
}
