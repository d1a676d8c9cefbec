//! Programs that misbehave, run through the `launch` example of `supervise`, and checks for the processes that they leave.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};
use tempfile::TempDir;

/// How long [`wait_for`] waits before the test fails: far longer than anything takes on a slow machine, and shorter than the
/// time after which nextest ends a test without a message.
const WAIT_TIMEOUT: Duration = Duration::from_secs(300);
/// The environment variable that marks the processes of a fixture.
const TOKEN_VARIABLE: &str = "TESTKIT_TOKEN";
static COUNT: AtomicU32 = AtomicU32::new(0);

/// What `launch` runs, as a JSON file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LaunchSpec {
    pub argv: Vec<String>,
    pub working_dir: PathBuf,
    pub env: Vec<(String, String)>,
    pub stdin: Option<PathBuf>,
    /// The logs are `stdout` and `stderr`, or `combined`, and always `jsonl`.
    pub log_dir: PathBuf,
    pub is_combined: bool,
    /// The size limit of each log.
    pub bytes_max: u64,
    pub wall_ms: u64,
    pub idle_ms: u64,
    pub grace_ms: u64,
    /// Whether the stop signal is SIGINT and goes to the program alone.
    pub is_agent: bool,
    /// How often the check for changed files returns true.
    pub file_changes: u32,
}

/// What `launch` prints, as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LaunchReport {
    pub exit: String,
    /// Leftover processes that were killed.
    pub killed: usize,
    /// Leftover processes that could not be killed.
    pub alive: usize,
    pub elapsed_ms: u64,
    pub stdout: StreamCounts,
    pub stderr: StreamCounts,
    pub log_error: Option<String>,
    /// By how much the memory of `launch` grew.
    pub growth_kb: u64,
}

/// The size of one output stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamCounts {
    pub total: u64,
    pub dropped: u64,
}

/// A temporary folder and a program to run in it. Its processes carry a token on their command line or in their
/// environment.
#[derive(Debug)]
pub struct ProcessFixture {
    dir: TempDir,
    launch: PathBuf,
    pub spec: LaunchSpec,
    pub token: String,
}

impl ProcessFixture {
    /// `TOKEN` in an argument is replaced by the token.
    pub fn new(launch: PathBuf, argv: &[&str]) -> Self {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let number = COUNT.fetch_add(1, Ordering::SeqCst);
        let token =
            format!("token-{}-{number}-{}", std::process::id(), dir.path().display()).replace('/', "-");
        let spec = LaunchSpec {
            argv: argv.iter().map(|arg| arg.replace("TOKEN", &token)).collect(),
            working_dir: dir.path().to_owned(),
            env: vec![
                ("PATH".to_owned(), std::env::var("PATH").unwrap_or_default()),
                (TOKEN_VARIABLE.to_owned(), token.clone()),
            ],
            stdin: None,
            log_dir: dir.path().to_owned(),
            is_combined: false,
            bytes_max: 1 << 20,
            wall_ms: 120_000,
            idle_ms: 0,
            grace_ms: 5_000,
            is_agent: false,
            file_changes: 0,
        };
        Self { dir, launch, spec, token }
    }

    pub fn shell(launch: PathBuf, script: &str) -> Self {
        Self::new(launch, &["/bin/sh", "-c", script, "TOKEN"])
    }

    /// The seven processes of [`crate::detached_processes`]; `after` is `stay` or `leave`.
    pub fn seven(launch: PathBuf, after: &str) -> Self {
        let program = launch.display().to_string();
        Self::new(launch, &[&program, "seven", "TOKEN", after])
    }

    pub fn start(&self) -> LaunchProcess {
        self.start_with(&mut Command::new(&self.launch))
    }

    /// Starts it with a command that ends with the path of `launch`.
    pub fn start_with(&self, command: &mut Command) -> LaunchProcess {
        let spec_file = self.path("spec.json");
        fs::write(&spec_file, serde_json::to_vec(&self.spec).expect("json")).expect("write the spec");
        command.arg("run").arg(spec_file);
        let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        LaunchProcess { child: Some(child.unwrap_or_else(|error| panic!("{command:?}: {error}"))) }
    }

    /// Runs it to its end.
    pub fn run(&self) -> LaunchReport {
        self.start().report()
    }

    /// Runs it, and returns the error that `supervise::run` must return.
    pub fn run_error(&self) -> String {
        self.start().outcome().expect_err("an error")
    }

    /// Opens the folder to every user and copies `launch` into it; returns the path of the copy.
    pub fn share(&self) -> PathBuf {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(self.dir.path(), fs::Permissions::from_mode(0o777)).expect("permissions");
        let copy = self.path("launch");
        // `cp` and not this process: a child that another test forks meanwhile would inherit the copy open for writing, and
        // executing it would fail with ETXTBSY.
        let status = Command::new("cp").arg(&self.launch).arg(&copy).status().expect("cp");
        assert!(status.success(), "cp: {status}");
        copy
    }

    /// A path in the temporary folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn log(&self, name: &str) -> String {
        String::from_utf8(fs::read(self.path(name)).expect("a log")).expect("UTF-8")
    }

    pub fn log_ends_with(&self, name: &str, end: &str) -> bool {
        fs::read(self.path(name)).is_ok_and(|bytes| bytes.ends_with(end.as_bytes()))
    }

    /// How many processes of the fixture are alive.
    pub fn alive(&self) -> usize {
        alive(&self.token).len()
    }
}

impl Drop for ProcessFixture {
    /// A failed test must not leave processes behind either.
    fn drop(&mut self) {
        for pid in alive(&self.token) {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
    }
}

#[derive(Debug)]
pub struct LaunchProcess {
    child: Option<Child>,
}

impl LaunchProcess {
    /// Sends a command on standard input: `stop` or `kill`.
    pub fn send(&mut self, command: &str) {
        let stdin = self.child.as_mut().and_then(|child| child.stdin.as_mut()).expect("a pipe");
        writeln!(stdin, "{command}").expect("write to launch");
    }

    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(self.pid(), signal).expect("a process");
    }

    pub fn pid(&self) -> Pid {
        Pid::from_child(self.child.as_ref().expect("a process"))
    }

    /// Waits for it, asserts that it succeeded and returns its report.
    pub fn report(self) -> LaunchReport {
        self.outcome().expect("a report")
    }

    /// Waits for it; returns its exit code and standard output.
    pub fn exit_code_and_stdout(self) -> (Option<i32>, String) {
        let output = self.wait();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn outcome(self) -> Result<LaunchReport, String> {
        let output = self.wait();
        assert!(output.status.success(), "{output:?}");
        parse_launch_output(&String::from_utf8_lossy(&output.stdout))
    }

    fn wait(mut self) -> Output {
        let child = self.child.take().expect("a process");
        child.wait_with_output().expect("its output")
    }
}

/// Parses the standard output of `launch`.
pub fn parse_launch_output(stdout: &str) -> Result<LaunchReport, String> {
    serde_json::from_str(stdout).expect("json")
}

impl Drop for LaunchProcess {
    /// A failed test must not leave processes behind either.
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Waits until a condition holds; panics after [`WAIT_TIMEOUT`].
pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + WAIT_TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline, "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The living processes that have the token on their command line or in their environment.
pub fn alive(token: &str) -> Vec<Pid> {
    let variable = format!("{TOKEN_VARIABLE}={token}");
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    let pids = entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    // Both files are empty for a zombie.
    let has = |pid: &Pid, file: &str, value: &str| {
        let content = fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        content.split(|byte| *byte == 0).any(|one| one == value.as_bytes())
    };
    pids.filter(|pid| has(pid, "cmdline", token) || has(pid, "environ", &variable)).collect()
}

/// The child processes of a process, including those not reaped yet.
pub fn children_of(pid: Pid) -> Vec<Pid> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    list.split_ascii_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}

/// A field of `/proc/<process>/status` in kilobytes, such as `VmHWM`.
pub fn kilobytes(process: &str, field: &str) -> u64 {
    let status = fs::read_to_string(Path::new("/proc").join(process).join("status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok()).unwrap_or(0)
}
