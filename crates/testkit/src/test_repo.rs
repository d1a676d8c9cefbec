//! A repository of its own for each test, in an environment that holds nothing of the machine's.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A scratch folder with a home and, usually, a repository in it.
#[derive(Debug)]
pub struct TestRepo {
    folder: TempDir,
    root: PathBuf,
    binary: PathBuf,
}

/// What a program left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOutput {
    /// The exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it complained.
    pub stderr: String,
}

impl RunOutput {
    /// The value in a line `key=value` of standard output.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.stdout.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
    }

    /// The same, after asserting success.
    pub fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// The complaint, after asserting this exit code and an empty standard output.
    pub fn refused(self, code: i32) -> String {
        assert_eq!((self.code, self.stdout.as_str()), (Some(code), ""), "{}", self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self.stderr
    }
}

impl TestRepo {
    /// A folder with nothing in it but an empty home.
    pub fn empty(binary: &str) -> Self {
        Self::empty_in(binary, tempfile::tempdir_in(scratch()).expect("a temporary folder"))
    }

    /// The same in this folder.
    pub fn empty_in(binary: &str, folder: TempDir) -> Self {
        fs::create_dir(folder.path().join("home")).expect("a home");
        let root = folder.path().join("work");
        fs::create_dir(&root).expect("a work tree");
        Self { folder, root, binary: binary.into() }
    }

    /// A repository on branch `main` with one commit.
    pub fn with_commit(binary: &str) -> Self {
        let sandbox = Self::empty(binary);
        sandbox.git(&["init", "-q", "-b", "main"]);
        sandbox.write("README.md", "hello\n");
        sandbox.commit_all("root");
        sandbox
    }

    /// Goes on in another folder of the scratch folder.
    pub fn at(mut self, root: PathBuf) -> Self {
        self.root = root;
        self
    }

    /// The work tree.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder around the work tree.
    pub fn outside(&self) -> &Path {
        self.folder.path()
    }

    /// A path in the work tree.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Writes a file, with the folders on the way.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        fs::write(path, bytes).expect("a file");
    }

    /// Reads a text file.
    pub fn read(&self, name: &str) -> String {
        String::from_utf8(self.read_bytes(name)).expect("text")
    }

    /// Reads a file.
    pub fn read_bytes(&self, name: &str) -> Vec<u8> {
        let path = self.path(name);
        fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Runs git, which must succeed, and gives what it printed.
    pub fn git(&self, args: &[&str]) -> String {
        let ran = self.try_git(args);
        assert_eq!(ran.code, Some(0), "git {args:?}: {}", ran.stderr);
        ran.stdout.trim_end().to_owned()
    }

    /// Runs git, which may fail. Hooks and monitors are off: what a test looks at must not spring a trap.
    pub fn try_git(&self, args: &[&str]) -> RunOutput {
        let settings = [
            "user.name=Test",
            "user.email=test@localhost",
            "core.hooksPath=/dev/null",
            "core.fsmonitor=false",
        ];
        run(self.command("git").args(settings.iter().flat_map(|setting| ["-c", setting])).args(args))
    }

    /// Commits everything.
    pub fn commit_all(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
    }

    /// Runs the binary under test in the work tree.
    pub fn runner(&self, args: &[&str]) -> RunOutput {
        run(&mut self.runner_command(args))
    }

    /// The binary under test, to be run with more around it.
    pub fn runner_command(&self, args: &[&str]) -> Command {
        let mut command = self.command(&self.binary);
        command.args(args);
        command
    }

    /// A program in this environment.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.root)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.outside().join("home"))
            .env("LANG", "C.UTF-8")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .stdin(Stdio::null());
        command
    }

    /// Subjects of the commits from a revision back to the first, newest first.
    pub fn subjects(&self, revision: &str) -> Vec<String> {
        self.git(&["log", "--format=%s", revision]).lines().map(str::to_owned).collect()
    }

    /// All local branches and the commits they point to.
    pub fn branches(&self) -> Vec<String> {
        let refs = self.git(&["for-each-ref", "--format=%(refname:short) %(objectname)", "refs/heads"]);
        refs.lines().map(str::to_owned).collect()
    }
}

/// Where scratch folders are made: in memory where the machine offers that and nobody said otherwise, because the
/// runner waits for its disk all the time, and a test need not.
fn scratch() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    let is_free = std::env::var_os("TMPDIR").is_none() && memory.is_dir();
    if is_free { memory } else { std::env::temp_dir() }
}

/// Runs a command to its end.
pub fn run(command: &mut Command) -> RunOutput {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    RunOutput {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
