//! Writes a recording commit by commit, in the same form as a whole one.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::{RecordedCommit, Recording, SCHEMA};
use crate::model::id::RunId;
use crate::strict::canonical_json;

/// A recording that is being written.
#[derive(Debug)]
pub struct RecordingWriter<W> {
    output: W,
    has_commits: bool,
}

/// The end of a recording without commits.
const EMPTY_END: &[u8] = b"]\n}\n";

impl<W: Write> RecordingWriter<W> {
    /// Writes what precedes the commits.
    pub fn begin(mut output: W, run_id: &RunId, base: &BTreeMap<String, String>) -> io::Result<Self> {
        let (schema, run_id, base) = (SCHEMA.to_owned(), run_id.clone(), base.clone());
        let empty = Recording { schema, run_id, base, commits: Vec::new() }.to_bytes();
        output.write_all(empty.strip_suffix(EMPTY_END).unwrap_or(&empty))?;
        Ok(Self { output, has_commits: false })
    }

    pub fn push(&mut self, commit: &RecordedCommit) -> io::Result<()> {
        let separator: &[u8] = if self.has_commits { b"," } else { b"" };
        self.output.write_all(separator)?;
        let bytes = canonical_json(commit);
        // A line break inside a text is escaped, so every one here separates two lines of JSON.
        for line in bytes.trim_ascii_end().split(|byte| *byte == b'\n') {
            self.output.write_all(b"\n    ")?;
            self.output.write_all(line)?;
        }
        self.has_commits = true;
        Ok(())
    }

    pub fn finish(mut self) -> io::Result<()> {
        if self.has_commits {
            self.output.write_all(b"\n  ")?;
        }
        self.output.write_all(EMPTY_END)?;
        self.output.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_written_commit_by_commit_is_the_same_as_a_whole_one() {
        let run_id = RunId::new("r1").unwrap();
        let base = BTreeMap::from([("a".to_owned(), "two\nlines".to_owned())]);
        let commit = |message: &str| RecordedCommit {
            message: message.to_owned(),
            files: BTreeMap::from([("x".to_owned(), Some("1\n2\n".to_owned())), ("y".to_owned(), None)]),
            session: None,
        };
        for commits in [vec![], vec![commit("one")], vec![commit("one"), commit("two\n")]] {
            let mut bytes = Vec::new();
            let mut writer = RecordingWriter::begin(&mut bytes, &run_id, &base).unwrap();
            commits.iter().for_each(|commit| writer.push(commit).unwrap());
            writer.finish().unwrap();
            let (schema, run_id, base) = (SCHEMA.to_owned(), run_id.clone(), base.clone());
            let whole = Recording { schema, run_id, base, commits }.to_bytes();
            assert_eq!(String::from_utf8(bytes).unwrap(), String::from_utf8(whole).unwrap());
        }
    }
}
