//! A temporary repository for each test, with an environment that contains nothing of the machine's but `PATH`.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// A temporary folder with a home and, usually, a repository in it.
#[derive(Debug)]
pub struct TestRepo {
    folder: PathBuf,
    /// Removes the folder at the end. None for a folder of someone else.
    _owned: Option<TempDir>,
    root: PathBuf,
    binary: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunOutput {
    /// None if a signal ended the program.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl RunOutput {
    /// The value in a line `key=value` of standard output.
    pub fn value(&self, key: &str) -> Option<&str> {
        self.stdout.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
    }

    pub fn ok(self) -> Self {
        assert_eq!(self.code, Some(0), "{}\n{}", self.stdout, self.stderr);
        self
    }

    /// Asserts this exit code and an empty standard output; returns standard error.
    pub fn refused(self, code: i32) -> String {
        assert_eq!((self.code, self.stdout.as_str()), (Some(code), ""), "{}", self.stderr);
        assert!(!self.stderr.contains("panicked"), "{}", self.stderr);
        self.stderr
    }
}

impl TestRepo {
    /// An empty work tree without a repository, and an empty home.
    pub fn empty(binary: &str) -> Self {
        Self::empty_in(binary, tempfile::tempdir_in(temporary_root()).expect("a temporary folder"))
    }

    /// Like [`TestRepo::empty`], in this folder.
    pub fn empty_in(binary: &str, folder: TempDir) -> Self {
        fs::create_dir(folder.path().join("home")).expect("a home");
        fs::create_dir(folder.path().join("work")).expect("a work tree");
        Self::open(binary, folder)
    }

    /// The repository in a folder that has the layout of [`TestRepo::empty`] already.
    pub fn open(binary: &str, folder: TempDir) -> Self {
        let borrowed = Self::borrow(binary, folder.path());
        Self { _owned: Some(folder), ..borrowed }
    }

    /// Like [`TestRepo::open`], in a folder that stays.
    pub fn borrow(binary: &str, folder: &Path) -> Self {
        Self { folder: folder.to_owned(), _owned: None, root: folder.join("work"), binary: binary.into() }
    }

    /// A repository on branch `main` with one commit.
    pub fn with_commit(binary: &str) -> Self {
        let repo = Self::empty(binary);
        repo.git(&["init", "-q", "-b", "main"]);
        repo.write("README.md", "hello\n");
        repo.commit_all("root");
        repo
    }

    /// Switches to another work tree.
    pub fn at(mut self, root: PathBuf) -> Self {
        self.root = root;
        self
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The binary under test.
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// The parent folder of the work tree.
    pub fn outside(&self) -> &Path {
        &self.folder
    }

    /// A path in the work tree.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Writes a file and creates its parent folders.
    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("folders");
        fs::write(path, bytes).expect("a file");
    }

    pub fn read(&self, name: &str) -> String {
        String::from_utf8(self.read_bytes(name)).expect("text")
    }

    pub fn read_bytes(&self, name: &str) -> Vec<u8> {
        let path = self.path(name);
        fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Runs git, asserts success and returns its standard output.
    pub fn git(&self, args: &[&str]) -> String {
        let output = self.try_git(args);
        assert_eq!(output.code, Some(0), "git {args:?}: {}", output.stderr);
        output.stdout.trim_end().to_owned()
    }

    /// Runs git, which may fail. Hooks and file system monitors are off, so that a test's own git commands do not run what an
    /// agent planted in the repository.
    pub fn try_git(&self, args: &[&str]) -> RunOutput {
        let settings = [
            "user.name=Test",
            "user.email=test@localhost",
            "core.hooksPath=/dev/null",
            "core.fsmonitor=false",
        ];
        run(self.command("git").args(settings.iter().flat_map(|setting| ["-c", setting])).args(args))
    }

    /// The contents of objects, by names that `git rev-parse` understands, read by one process. Empty for one that is missing.
    pub fn blobs(&self, names: &[String]) -> Vec<Vec<u8>> {
        let mut child = self
            .command("git")
            .args(["cat-file", "--batch", "--buffer"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("git");
        let mut input = child.stdin.take().expect("a pipe");
        let lines: String = names.iter().map(|name| format!("{name}\n")).collect();
        let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
        let output = child.wait_with_output().expect("git");
        // Git may have ended before it read everything, because the repository is broken.
        let _ = writer.join();
        let mut rest = output.stdout.as_slice();
        names.iter().map(|_| next_object(&mut rest).unwrap_or_default()).collect()
    }

    pub fn commit_all(&self, message: &str) {
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
    }

    /// Runs the binary under test in the work tree.
    pub fn runner(&self, args: &[&str]) -> RunOutput {
        run(&mut self.runner_command(args))
    }

    /// A command that runs the binary under test, for tests that add to it.
    pub fn runner_command(&self, args: &[&str]) -> Command {
        let mut command = self.command(&self.binary);
        command.args(args);
        command
    }

    /// A command that runs a program in the test's environment.
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

    /// The commit subjects from a revision back to the first commit, newest first.
    pub fn subjects(&self, revision: &str) -> Vec<String> {
        self.git(&["log", "--format=%s", revision]).lines().map(str::to_owned).collect()
    }

    /// All local branches with their commits.
    pub fn branches(&self) -> Vec<String> {
        let refs = self.git(&["for-each-ref", "--format=%(refname:short) %(objectname)", "refs/heads"]);
        refs.lines().map(str::to_owned).collect()
    }
}

/// Takes one object from the output of `git cat-file --batch`: a line that ends with its size, and its bytes.
fn next_object(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let end = rest.iter().position(|byte| *byte == b'\n')?;
    let line = String::from_utf8_lossy(rest.get(..end)?).into_owned();
    *rest = rest.get(end + 1..)?;
    let size: usize = line.rsplit(' ').next()?.parse().ok()?;
    let bytes = rest.get(..size)?.to_vec();
    *rest = rest.get(size + 1..)?;
    Some(bytes)
}

/// The folder for temporary folders: `/dev/shm` if it exists and `TMPDIR` is not set, because the runner calls fsync all the
/// time, and a test need not wait for a disk.
pub fn temporary_root() -> PathBuf {
    let shared_memory = PathBuf::from("/dev/shm");
    let is_usable = std::env::var_os("TMPDIR").is_none() && shared_memory.is_dir();
    if is_usable { shared_memory } else { std::env::temp_dir() }
}

/// Runs a command and waits for it.
pub fn run(command: &mut Command) -> RunOutput {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    RunOutput {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
