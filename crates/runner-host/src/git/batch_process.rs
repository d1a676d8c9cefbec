//! Git processes that stay while iterations are made and answer line by line: to start one costs more than to ask it.
//!
//! An agent of the same user can stop or end them. One that stands still is told to go on before it is asked; one that
//! is gone is started again. Nothing is ever kept in them: every answer is about what is on the disk by then.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::{Mutex, PoisonError};

use rustix::process::{Pid, Signal};

use super::{Git, GitCommand, lossy};
use crate::error::Error;

/// A git command that stays, once it was asked for the first time.
#[derive(Debug)]
pub(super) struct GitProcess {
    args: &'static [&'static str],
    running: Mutex<Option<RunningGit>>,
}

#[derive(Debug)]
struct RunningGit {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl GitProcess {
    pub(super) const fn new(args: &'static [&'static str]) -> Self {
        Self { args, running: Mutex::new(None) }
    }

    /// Asks, and waits for so many lines.
    pub(super) fn ask(&self, git: &Git, request: &[u8], lines: usize) -> Result<Vec<String>, Error> {
        self.answer(git, |running| {
            running.send(request)?;
            (0..lines).map(|_| running.line()).collect()
        })
    }

    /// Asks a `cat-file --batch` for an object, and gives its bytes.
    pub(super) fn read(&self, git: &Git, name: &str) -> Result<Vec<u8>, Error> {
        self.answer(git, |running| {
            running.send(format!("{name}\n").as_bytes())?;
            let head = running.line()?;
            let size = head.rsplit(' ').next().and_then(|size| size.parse().ok());
            running.bytes(size.ok_or(io::ErrorKind::NotFound)?)
        })
    }

    /// Gets an answer from the process that runs. Where it cannot be told whether one that died had done what it was
    /// asked, another one is asked again.
    fn answer<T>(&self, git: &Git, get: impl Fn(&mut RunningGit) -> io::Result<T>) -> Result<T, Error> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut old) = running.take()
            && let Ok(answer) = get(&mut old)
        {
            *running = Some(old);
            return Ok(answer);
        }
        let mut new = RunningGit::start(git.call(self.args))?;
        match get(&mut new) {
            Ok(answer) => {
                *running = Some(new);
                Ok(answer)
            }
            Err(_) => Err(Error::Git { command: self.args.join(" "), stderr: new.last_words() }),
        }
    }
}

impl RunningGit {
    fn start(call: GitCommand<'_>) -> Result<Self, Error> {
        let GitCommand { mut command, .. } = call;
        let fail = Error::io("run", command.get_program().to_owned());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(fail)?;
        let missing = || Error::io("run", "git")(io::Error::from(io::ErrorKind::BrokenPipe));
        let requests = child.stdin.take().ok_or_else(missing)?;
        let answers = BufReader::new(child.stdout.take().ok_or_else(missing)?);
        Ok(Self { child, requests, answers })
    }

    fn send(&mut self, request: &[u8]) -> io::Result<()> {
        // One that is gone needs no signal, and is found to be gone by what follows.
        let _ = rustix::process::kill_process(Pid::from_child(&self.child), Signal::CONT);
        self.requests.write_all(request)?;
        self.requests.flush()
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        self.answers.read_until(b'\n', &mut line)?;
        if line.pop() != Some(b'\n') {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(lossy(&line))
    }

    /// So many bytes, and the end of line behind them.
    fn bytes(&mut self, size: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; size + 1];
        self.answers.read_exact(&mut bytes)?;
        bytes.pop();
        Ok(bytes)
    }

    /// What it said when it gave up.
    fn last_words(&mut self) -> String {
        // One that lives has nothing to say, and would be waited for.
        let _ = self.child.kill();
        let mut words = Vec::new();
        if let Some(errors) = &mut self.child.stderr {
            let _ = errors.read_to_end(&mut words);
        }
        lossy(&words)
    }
}

impl Drop for RunningGit {
    /// It was answered for everything it was asked, so it ends at once.
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

    fn id_of(standing: &GitProcess) -> Pid {
        Pid::from_child(&standing.running.lock().unwrap().as_ref().unwrap().child)
    }

    #[test]
    fn one_process_answers_again_and_again_and_another_one_when_it_is_gone() {
        let (folder, git) = repository();
        let standing = GitProcess::new(&["hash-object", "--no-filters", "--stdin-paths"]);
        let path = folder.path().join("a");
        std::fs::write(&path, "").unwrap();
        let ask = || standing.ask(&git, format!("{}\n", path.display()).as_bytes(), 1);
        let first = ask().unwrap();
        assert_eq!(first, ["e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"]);
        let process = id_of(&standing);
        assert_eq!(ask().unwrap(), first);
        assert_eq!(id_of(&standing), process);
        rustix::process::kill_process(process, Signal::STOP).unwrap();
        assert_eq!(ask().unwrap(), first);
        rustix::process::kill_process(process, Signal::KILL).unwrap();
        assert_eq!(ask().unwrap(), first);
        assert_ne!(id_of(&standing), process);
    }

    #[test]
    fn what_cannot_be_done_is_told_in_its_own_words() {
        let (_folder, git) = repository();
        let standing = GitProcess::new(&["hash-object", "--no-filters", "--stdin-paths"]);
        let error = standing.ask(&git, b"no/such/file\n", 1).unwrap_err();
        assert!(matches!(&error, Error::Git { stderr, .. } if stderr.contains("no/such/file")), "{error:?}");
    }
}
