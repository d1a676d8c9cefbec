//! Reading many objects with one git process.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use runner_core::model::object_id::CommitId;

use super::Git;
use super::history::{CommitObject, commit_object};
use crate::error::Error;

impl Git {
    /// Starts a process that reads many objects.
    pub(crate) fn batch(&self) -> Result<CatFileBatch, Error> {
        self.start_batch(&["cat-file", "--batch"])
    }

    /// Starts a process that reads many files of commits, and follows links to other files of the same commit.
    pub(crate) fn batch_resolving_links(&self) -> Result<CatFileBatch, Error> {
        self.start_batch(&["cat-file", "--batch", "--follow-symlinks"])
    }

    fn start_batch(&self, args: &[&str]) -> Result<CatFileBatch, Error> {
        let mut call = self.call(args);
        call.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = call.command.spawn().map_err(Error::io("run", self.program()))?;
        let stdin = child.stdin.take().ok_or_else(batch_failed)?;
        let stdout = child.stdout.take().ok_or_else(batch_failed)?;
        Ok(CatFileBatch { child, stdin: Some(stdin), stdout: BufReader::new(stdout) })
    }
}

/// One git process that reads many objects.
pub(crate) struct CatFileBatch {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

/// An object with its type as git names it.
struct FoundObject {
    kind: String,
    bytes: Vec<u8>,
}

fn batch_failed() -> Error {
    Error::GitOutput { command: "cat-file --batch".to_owned() }
}

impl CatFileBatch {
    /// The bytes of an object; none if the repository does not have it.
    pub(crate) fn object(&mut self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.read(name)?.map(|found| found.bytes))
    }

    /// The bytes of a file that is named by commit and path; none if there is none.
    pub(crate) fn file(&mut self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.read(name)?.filter(|found| found.kind == "blob").map(|found| found.bytes))
    }

    /// The bytes of a folder that is named by commit and path; none if there is none.
    pub(crate) fn folder(&mut self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.read(name)?.filter(|found| found.kind == "tree").map(|found| found.bytes))
    }

    fn read(&mut self, name: &str) -> Result<Option<FoundObject>, Error> {
        let stdin = self.stdin.as_mut().ok_or_else(batch_failed)?;
        let request = format!("{name}\n");
        stdin.write_all(request.as_bytes()).and_then(|()| stdin.flush()).map_err(|_| batch_failed())?;
        let mut header = String::new();
        self.stdout.read_line(&mut header).map_err(|_| batch_failed())?;
        let (head, size) = header.trim_end().rsplit_once(' ').ok_or_else(batch_failed)?;
        if size == "missing" {
            return Ok(None);
        }
        // The object is followed by a line feed.
        let size: usize = size.parse().map_err(|_| batch_failed())?;
        let mut bytes = vec![0; size + 1];
        self.stdout.read_exact(&mut bytes).map_err(|_| batch_failed())?;
        bytes.pop();
        let kind = head.rsplit(' ').next().unwrap_or_default().to_owned();
        Ok(Some(FoundObject { kind, bytes }))
    }

    /// A commit; none if the repository does not have it.
    pub(crate) fn commit(&mut self, id: &CommitId) -> Result<Option<CommitObject>, Error> {
        Ok(self.object(id.as_str())?.as_deref().map(commit_object))
    }
}

impl Drop for CatFileBatch {
    fn drop(&mut self) {
        // The process exits when its input is closed.
        drop(self.stdin.take());
        let _ = self.child.wait();
    }
}
