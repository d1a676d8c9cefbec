//! Programs that misbehave, run by a small runner of their own (the binary `launch`), and what is left of them.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tempfile::TempDir;

/// How long anything may take before a test fails: far more than it takes on a slow machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// The variable that tells what belongs to a scene.
const MARK: &str = "TESTKIT_TOKEN";
static COUNT: AtomicU32 = AtomicU32::new(0);

/// What `launch` is to run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LaunchSpec {
    /// Program and arguments.
    pub argv: Vec<String>,
    /// Where it runs.
    pub folder: PathBuf,
    /// Its environment.
    pub environment: Vec<(String, String)>,
    /// Its standard input.
    pub input: Option<PathBuf>,
    /// Where its logs go: `stdout`, `stderr` and `stream`, or `both` and `stream`.
    pub logs: PathBuf,
    /// Whether both streams go into one log.
    pub is_together: bool,
    /// The size of each log.
    pub bytes_max: u64,
    /// Its limits and its grace.
    pub wall_ms: u64,
    /// See above.
    pub idle_ms: u64,
    /// See above.
    pub grace_ms: u64,
    /// Whether only the program itself is asked to end, by SIGINT.
    pub is_agent: bool,
    /// How often files are said to have changed.
    pub changes: u32,
}

/// A scratch folder, and processes known by a word of their own on their command line or in their environment.
#[derive(Debug)]
pub struct ProcessFixture {
    folder: TempDir,
    launch: PathBuf,
    /// What to change of the order before it is run.
    pub spec: LaunchSpec,
    /// The word.
    pub token: String,
}

impl ProcessFixture {
    /// A scene for a program; `launch` is the binary, `TOKEN` among the arguments becomes the word.
    pub fn new(launch: &str, argv: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let number = COUNT.fetch_add(1, Ordering::SeqCst);
        let token =
            format!("token-{}-{number}-{}", std::process::id(), folder.path().display()).replace('/', "-");
        let spec = LaunchSpec {
            argv: argv.iter().map(|arg| arg.replace("TOKEN", &token)).collect(),
            folder: folder.path().to_owned(),
            environment: vec![
                ("PATH".to_owned(), std::env::var("PATH").unwrap_or_default()),
                (MARK.to_owned(), token.clone()),
            ],
            input: None,
            logs: folder.path().to_owned(),
            is_together: false,
            bytes_max: 1 << 20,
            wall_ms: 120_000,
            idle_ms: 0,
            grace_ms: 5_000,
            is_agent: false,
            changes: 0,
        };
        Self { folder, launch: launch.into(), spec, token }
    }

    /// A scene for a shell script.
    pub fn sh(launch: &str, script: &str) -> Self {
        Self::new(launch, &["/bin/sh", "-c", script, "TOKEN"])
    }

    /// A scene for the seven processes; `after` is `stay` or `leave`.
    pub fn seven(launch: &str, after: &str) -> Self {
        Self::new(launch, &[launch, "seven", "TOKEN", after])
    }

    /// Starts it.
    pub fn start(&self) -> RunnerProcess {
        self.start_with(&mut Command::new(&self.launch))
    }

    /// Starts it by a command that ends in the path of `launch`.
    pub fn start_with(&self, command: &mut Command) -> RunnerProcess {
        let order = self.path("order.json");
        fs::write(&order, serde_json::to_vec(&self.spec).expect("json")).expect("an order");
        command.arg("run").arg(order);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        RunnerProcess { child: Some(child.unwrap_or_else(|error| panic!("{command:?}: {error}"))) }
    }

    /// Runs it to its end.
    pub fn run(&self) -> Value {
        self.start().ended()
    }

    /// Opens the folder to every user, and puts a copy of `launch` there.
    pub fn share(&self) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(self.folder.path(), fs::Permissions::from_mode(0o777)).expect("permissions");
        let copy = self.path("launch");
        // Not by this process: while a child of another test inherits the copy open for writing, it cannot run.
        let status = Command::new("cp").arg(&self.launch).arg(&copy).status().expect("cp");
        assert!(status.success(), "cp: {status}");
        copy
    }

    /// A path in the scratch folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// What a log holds.
    pub fn log(&self, name: &str) -> String {
        String::from_utf8(fs::read(self.path(name)).expect("a log")).expect("text")
    }

    /// Whether a log ends like this so far.
    pub fn has_written(&self, name: &str, end: &str) -> bool {
        fs::read(self.path(name)).is_ok_and(|bytes| bytes.ends_with(end.as_bytes()))
    }

    /// How many processes of the scene live.
    pub fn alive(&self) -> usize {
        alive(&self.token).len()
    }
}

impl Drop for ProcessFixture {
    /// Also a test that fails leaves nothing behind.
    fn drop(&mut self) {
        for pid in alive(&self.token) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}

/// A runner at work.
#[derive(Debug)]
pub struct RunnerProcess {
    child: Option<Child>,
}

impl RunnerProcess {
    /// Asks it for something: `stop` or `kill`.
    pub fn ask(&mut self, word: &str) {
        let stdin = self.child.as_mut().and_then(|child| child.stdin.as_mut()).expect("a pipe");
        writeln!(stdin, "{word}").expect("a listener");
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(self.pid(), signal).expect("a process");
    }

    /// Its number.
    pub fn pid(&self) -> Pid {
        Pid::from_child(self.child.as_ref().expect("a process"))
    }

    /// What it says of the end, after asserting that it ended well.
    pub fn ended(self) -> Value {
        let output = self.output();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).expect("json")
    }

    /// Its exit code, and what it said.
    pub fn left(self) -> (Option<i32>, String) {
        let output = self.output();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn output(mut self) -> Output {
        let child = self.child.take().expect("a process");
        child.wait_with_output().expect("an end")
    }
}

impl Drop for RunnerProcess {
    /// Also a test that fails leaves nothing behind.
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Waits until something is so.
pub fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < until, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The living processes with a word on their command line or as their mark.
pub fn alive(token: &str) -> Vec<Pid> {
    let mark = format!("{MARK}={token}");
    let all = fs::read_dir("/proc").expect("/proc").flatten();
    let pids = all.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    // Both are empty when a process is dead.
    let has = |pid: &Pid, file: &str, word: &str| {
        let words = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        words.split(|byte| *byte == 0).any(|one| one == word.as_bytes())
    };
    pids.filter(|pid| has(pid, "cmdline", token) || has(pid, "environ", &mark)).collect()
}

/// The processes that a process started and that still live, or are not reaped yet.
pub fn children_of(pid: Pid) -> Vec<Pid> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_ascii_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}

/// A number of kilobytes that the system gives for a process, such as `VmHWM`.
pub fn kilobytes(process: &str, name: &str) -> u64 {
    let status = fs::read_to_string(Path::new("/proc").join(process).join("status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok()).unwrap_or(0)
}
