//! Reading the patches of many commits with one git process: starting one for each costs more than the patches.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use runner_core::model::object_id::CommitId;

use super::{Git, TruncatedBytes};
use crate::error::Error;

/// Ends every response: git repeats a line that is no object's id, and no line of a patch begins like this one.
const END_OF_PATCH: &[u8] = b"end of patch\n";

impl Git {
    /// Starts a process that compares many pairs of commits, with `context` unchanged lines around each change.
    pub(crate) fn patch_batch(&self, context: u32) -> Result<PatchBatch, Error> {
        let unified = format!("-U{context}");
        // With `--always`, a response begins with the commit's id, even if the patch is empty.
        let options = ["diff-tree", "--stdin", "--always", "-r", "-p", "-M"];
        let plain = ["--no-color", "--no-ext-diff", "--no-textconv", &unified];
        let mut call = self.call(&[options.as_slice(), plain.as_slice()].concat());
        call.command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = call.command.spawn().map_err(Error::io("run", self.program()))?;
        let stdin = child.stdin.take().ok_or_else(failed)?;
        let stdout = BufReader::new(child.stdout.take().ok_or_else(failed)?);
        Ok(PatchBatch { child, stdin, stdout })
    }
}

/// One git process that compares many pairs of commits. One request may be sent before the response to the last is read, so
/// that git works while the caller does.
#[derive(Debug)]
pub struct PatchBatch {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

fn failed() -> Error {
    Error::GitOutput { command: "diff-tree --stdin".to_owned() }
}

impl PatchBatch {
    /// Requests the patch between two commits.
    pub fn request(&mut self, from: &CommitId, to: &CommitId) -> Result<(), Error> {
        let request = [format!("{to} {from}\n").as_bytes(), END_OF_PATCH].concat();
        self.stdin.write_all(&request).and_then(|()| self.stdin.flush()).map_err(|_| failed())
    }

    /// The oldest patch that was requested and not read yet, up to `bytes_max` bytes. An error if the repository does not have
    /// its commits; the batch cannot be used after one.
    pub fn response(&mut self, bytes_max: usize) -> Result<TruncatedBytes, Error> {
        let first = self.line(END_OF_PATCH.len() + bytes_max).map_err(|_| failed())?;
        if first == END_OF_PATCH {
            return Err(failed());
        }
        let mut patch = TruncatedBytes { bytes: Vec::new(), is_truncated: false };
        loop {
            let room = bytes_max.saturating_sub(patch.bytes.len());
            let line = self.line(room.max(END_OF_PATCH.len())).map_err(|_| failed())?;
            if line == END_OF_PATCH {
                return Ok(patch);
            }
            patch.is_truncated |= !line.ends_with(b"\n") || line.len() > room;
            if !patch.is_truncated {
                patch.bytes.extend(line);
            }
        }
    }

    /// The next line, without its end if it has more than `bytes_max` bytes.
    fn line(&mut self, bytes_max: usize) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX);
        self.stdout.by_ref().take(limit).read_until(b'\n', &mut line)?;
        if !line.ends_with(b"\n") && self.stdout.skip_until(b'\n')? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line)
    }
}

impl Drop for PatchBatch {
    /// The process only reads, and may be writing a response that no one needs any more.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES_MAX: usize = 4_000;

    /// A repository with three commits; the last one is too large, and the one before changes nothing.
    fn repository() -> (tempfile::TempDir, Git, Vec<CommitId>) {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::create(folder.path()).unwrap();
        let mut commits = Vec::new();
        for content in ["a\n".to_owned(), "end of patch\n".to_owned(), "x".repeat(2 * BYTES_MAX)] {
            std::fs::write(folder.path().join("file"), content).unwrap();
            git.commit_everything("step").unwrap();
            commits.push(git.resolve("HEAD").unwrap().unwrap());
        }
        (folder, git, commits)
    }

    #[test]
    fn many_patches_are_those_of_single_calls() {
        let (_folder, git, commits) = repository();
        let mut batch = git.patch_batch(3).unwrap();
        let pairs = [(0, 1), (1, 0), (1, 1), (1, 2), (0, 1)].map(|(from, to)| (&commits[from], &commits[to]));
        let mut unread = None;
        for (from, to) in pairs {
            batch.request(from, to).unwrap();
            let single = ["diff-tree", "-r", "-p", "-M", "-U3", from.as_str(), to.as_str()];
            let expected = git.call(&single).run_truncated(BYTES_MAX).unwrap();
            // The first request stays one ahead of the responses.
            if let Some(expected) = unread.replace(expected) {
                assert_same(&batch.response(BYTES_MAX).unwrap(), &expected);
            }
        }
        assert_same(&batch.response(BYTES_MAX).unwrap(), &unread.unwrap());
    }

    fn assert_same(patch: &TruncatedBytes, expected: &TruncatedBytes) {
        assert_eq!(patch.is_truncated, expected.is_truncated);
        if !patch.is_truncated {
            assert_eq!(String::from_utf8_lossy(&patch.bytes), String::from_utf8_lossy(&expected.bytes));
        }
    }

    #[test]
    fn a_missing_commit_is_an_error_and_not_an_empty_patch() {
        let (_folder, git, commits) = repository();
        let missing = CommitId::new("1".repeat(40)).unwrap();
        let [first, ..] = commits.as_slice() else { panic!("no commits") };
        for (from, to) in [(&missing, first), (first, &missing)] {
            let mut batch = git.patch_batch(3).unwrap();
            batch.request(from, to).unwrap();
            assert!(batch.response(BYTES_MAX).is_err(), "{from} {to}");
        }
    }
}
