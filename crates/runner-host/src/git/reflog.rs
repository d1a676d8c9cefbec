//! Lines of reflogs that name objects which do not exist: git rejects a repository that has any.

use std::collections::BTreeSet;

use super::refs::is_object_id;
use super::{Git, lossy};
use crate::error::Error;
use crate::fs::atomic;

/// How many of the newest entries of a reflog can name objects that a power cut lost.
const LOST_ENTRIES_MAX: usize = 50;
const BYTES_MAX: u64 = 256 << 20;

impl Git {
    /// Removes the newest entries of a reflog that name objects which do not exist.
    pub(crate) fn forget_lost_objects(&self, name: &str) -> Result<(), Error> {
        let folder = if name == "HEAD" { self.git_dir() } else { self.common_dir().to_owned() };
        let path = folder.join("logs").join(name);
        let Some(bytes) = atomic::read(&path, BYTES_MAX)? else { return Ok(()) };
        let mut kept: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        let first = kept.len().saturating_sub(LOST_ENTRIES_MAX);
        let ids = kept.iter().skip(first).flat_map(|line| self.ids_of(line)).collect();
        let lost = self.missing_objects(&ids)?;
        let before = kept.len();
        kept.retain(|line| self.ids_of(line).iter().all(|id| !lost.contains(id)));
        if kept.len() == before { Ok(()) } else { atomic::write(&path, &kept.concat()) }
    }

    /// Those of the lines that are complete and name only objects that exist.
    pub(crate) fn sound_reflog_lines<'l>(
        &self,
        lines: BTreeSet<&'l [u8]>,
    ) -> Result<BTreeSet<&'l [u8]>, Error> {
        let ids = lines.iter().flat_map(|line| self.ids_of(line)).collect();
        let lost = self.missing_objects(&ids)?;
        let is_sound =
            |line: &&[u8]| self.is_complete(line) && self.ids_of(line).iter().all(|id| !lost.contains(id));
        Ok(lines.into_iter().filter(is_sound).collect())
    }

    /// Whether a line has the form of an entry: two ids, the author and the time, a tab, the message.
    fn is_complete(&self, line: &[u8]) -> bool {
        let is_id = |word: &[u8]| word.len() == self.id_digits && word.iter().all(u8::is_ascii_hexdigit);
        let mut words = line.splitn(3, |byte| *byte == b' ');
        let are_ids = words.next().is_some_and(is_id) && words.next().is_some_and(is_id);
        let rest = words.next().unwrap_or_default();
        are_ids && rest.contains(&b'>') && rest.ends_with(b"\n") && !rest.contains(&0)
    }

    /// The objects that an entry names: before and after.
    fn ids_of(&self, line: &[u8]) -> Vec<String> {
        let words = line.splitn(3, |byte| *byte == b' ').take(2).map(lossy);
        words.filter(|word| is_object_id(word, self.id_digits)).collect()
    }

    fn missing_objects(&self, ids: &BTreeSet<String>) -> Result<BTreeSet<String>, Error> {
        if ids.is_empty() {
            return Ok(BTreeSet::new());
        }
        let request: String = ids.iter().map(|id| format!("{id}\n")).collect();
        let output = self
            .call(&["cat-file", "--batch-check=%(objecttype)", "--buffer"])
            .input(request.as_bytes())
            .run()?;
        let output = lossy(&output);
        Ok(output.lines().filter_map(|line| line.strip_suffix(" missing")).map(str::to_owned).collect())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn lines_that_git_would_reject_are_not_sound() {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::create(folder.path()).unwrap();
        fs::write(folder.path().join("x"), "x").unwrap();
        git.commit_everything("one").unwrap();
        let commit = git.head().unwrap().commit().unwrap().to_string();
        let (null, lost) = ("0".repeat(40), "1234567890".repeat(4));
        let line = |before: &str, after: &str| format!("{before} {after} u <u@h> 0 +0000\tmessage\n");
        let sound = [line(&null, &commit), line(&commit, &commit)];
        let cut_off = sound[0].trim_end().to_owned();
        let rejected =
            [line(&commit, &lost), line(&lost, &commit), cut_off, line("x", &commit), "\0\0\0\n".to_owned()];
        let lines = sound.iter().chain(&rejected).map(String::as_bytes).collect();
        let expected: BTreeSet<&[u8]> = sound.iter().map(String::as_bytes).collect();
        assert_eq!(git.sound_reflog_lines(lines).unwrap(), expected);
    }
}
