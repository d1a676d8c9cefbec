//! Long-lived git processes that answer requests line by line: starting a process costs more than the request.
//!
//! An agent runs as the same user and can stop or kill them. A stopped process gets SIGCONT before every request; a dead one
//! is started again. They cache nothing: every answer reflects what is on the disk at that time.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::{Mutex, PoisonError};

use rustix::process::{Pid, Signal};

use super::command::GitCommand;
use super::{Git, lossy};
use crate::error::Error;

/// A git command that is started at the first request and then keeps running.
#[derive(Debug)]
pub(super) struct GitProcess {
    args: &'static [&'static str],
    running: Mutex<Option<RunningGit>>,
}

#[derive(Debug)]
struct RunningGit {
    child: Child,
    requests: ChildStdin,
    responses: BufReader<ChildStdout>,
}

impl GitProcess {
    pub(super) const fn new(args: &'static [&'static str]) -> Self {
        Self { args, running: Mutex::new(None) }
    }

    /// Sends a request and reads so many lines.
    pub(super) fn ask(&self, git: &Git, request: &[u8], lines: usize) -> Result<Vec<String>, Error> {
        self.with_process(git, |running| {
            running.send(request)?;
            (0..lines).map(|_| running.line()).collect()
        })
    }

    /// Requests an object from `cat-file --batch` and returns its bytes.
    pub(super) fn read(&self, git: &Git, name: &str) -> Result<Vec<u8>, Error> {
        self.with_process(git, |running| {
            let found = running.object(name)?.ok_or(io::ErrorKind::NotFound)?;
            Ok(found.bytes)
        })
    }

    /// Requests a file from `cat-file --batch`; none if nothing, or no file, has that name.
    pub(super) fn read_file(&self, git: &Git, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let found = self.with_process(git, |running| running.object(name))?;
        Ok(found.filter(|found| found.is_blob).map(|found| found.bytes))
    }

    /// Sends a request to the running process. If that one died, it is unknown whether it had carried the request out, so a
    /// new process gets the same request.
    fn with_process<T>(
        &self,
        git: &Git,
        request: impl Fn(&mut RunningGit) -> io::Result<T>,
    ) -> Result<T, Error> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut old) = running.take()
            && let Ok(response) = request(&mut old)
        {
            *running = Some(old);
            return Ok(response);
        }
        let mut new = RunningGit::start(git.call(self.args))?;
        match request(&mut new) {
            Ok(response) => {
                *running = Some(new);
                Ok(response)
            }
            Err(_) => Err(Error::Git { command: self.args.join(" "), stderr: new.kill_and_read_stderr() }),
        }
    }
}

/// An object as `cat-file --batch` answers.
struct FoundObject {
    is_blob: bool,
    bytes: Vec<u8>,
}

impl RunningGit {
    fn start(call: GitCommand<'_>) -> Result<Self, Error> {
        let GitCommand { mut command, .. } = call;
        let fail = Error::io("run", command.get_program().to_owned());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(fail)?;
        let missing = || Error::io("run", "git")(io::Error::from(io::ErrorKind::BrokenPipe));
        let requests = child.stdin.take().ok_or_else(missing)?;
        let responses = BufReader::new(child.stdout.take().ok_or_else(missing)?);
        Ok(Self { child, requests, responses })
    }

    fn send(&mut self, request: &[u8]) -> io::Result<()> {
        // Errors are ignored: a dead process is noticed by the write or read that follows.
        let _ = rustix::process::kill_process(Pid::from_child(&self.child), Signal::CONT);
        self.requests.write_all(request)?;
        self.requests.flush()
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        self.responses.read_until(b'\n', &mut line)?;
        if line.pop() != Some(b'\n') {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(lossy(&line))
    }

    /// Requests an object from `cat-file --batch`; none if it is missing.
    fn object(&mut self, name: &str) -> io::Result<Option<FoundObject>> {
        self.send(format!("{name}\n").as_bytes())?;
        let head = self.line()?;
        if head.ends_with(" missing") {
            return Ok(None);
        }
        let mut fields = head.rsplit(' ');
        let size = fields.next().and_then(|size| size.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
        let is_blob = fields.next() == Some("blob");
        Ok(Some(FoundObject { is_blob, bytes: self.bytes(size)? }))
    }

    /// Reads `size` bytes and the line feed after them.
    fn bytes(&mut self, size: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; size + 1];
        self.responses.read_exact(&mut bytes)?;
        bytes.pop();
        Ok(bytes)
    }

    /// The error message of a process that failed.
    fn kill_and_read_stderr(&mut self) -> String {
        // Reading to the end would block while the process lives.
        let _ = self.child.kill();
        let mut message = Vec::new();
        if let Some(stderr) = &mut self.child.stderr {
            let _ = stderr.read_to_end(&mut message);
        }
        lossy(&message)
    }
}

impl Drop for RunningGit {
    /// Every request was answered, so the process can be killed.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository() -> (tempfile::TempDir, Git) {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::create(folder.path()).unwrap();
        (folder, git)
    }

    fn id_of(process: &GitProcess) -> Pid {
        Pid::from_child(&process.running.lock().unwrap().as_ref().unwrap().child)
    }

    #[test]
    fn a_process_is_reused_continued_when_stopped_and_restarted_when_killed() {
        let (folder, git) = repository();
        let hash_object = GitProcess::new(&["hash-object", "--no-filters", "--stdin-paths"]);
        let path = folder.path().join("a");
        std::fs::write(&path, "").unwrap();
        let ask = || hash_object.ask(&git, format!("{}\n", path.display()).as_bytes(), 1);
        let first = ask().unwrap();
        assert_eq!(first, ["e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"]);
        let process = id_of(&hash_object);
        assert_eq!(ask().unwrap(), first);
        assert_eq!(id_of(&hash_object), process);
        rustix::process::kill_process(process, Signal::STOP).unwrap();
        assert_eq!(ask().unwrap(), first);
        rustix::process::kill_process(process, Signal::KILL).unwrap();
        assert_eq!(ask().unwrap(), first);
        assert_ne!(id_of(&hash_object), process);
    }

    #[test]
    fn a_failed_request_reports_gits_message() {
        let (_folder, git) = repository();
        let hash_object = GitProcess::new(&["hash-object", "--no-filters", "--stdin-paths"]);
        let error = hash_object.ask(&git, b"no/such/file\n", 1).unwrap_err();
        assert!(matches!(&error, Error::Git { stderr, .. } if stderr.contains("no/such/file")), "{error:?}");
    }
}
