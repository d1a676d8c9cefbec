//! Which files git ignores, and by which rule.

use std::path::Path;

use super::{Git, lossy, nul_separated, nul_terminated, paths_in};
use crate::error::Error;
use crate::fs::atomic;

/// A path that a rule ignores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IgnoredPath {
    pub(crate) path: Vec<u8>,
    /// The file that holds the rule; relative to the root for an ignore file of the repository.
    pub(crate) source: Vec<u8>,
    pub(crate) pattern: Vec<u8>,
}

impl Git {
    /// Untracked paths that are ignored. A folder in which everything is ignored ends in `/` and is not entered.
    pub(crate) fn ignored_paths(&self) -> Result<Vec<Vec<u8>>, Error> {
        let args = ["ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"];
        Ok(paths_in(&self.call(&args).run()?))
    }

    /// Those of some paths that the ignore files in an index would ignore, together with the user's own rules. The work tree
    /// does not matter.
    pub(crate) fn ignored_by_index(
        &self,
        index: &Path,
        paths: &[Vec<u8>],
    ) -> Result<Vec<IgnoredPath>, Error> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let root = self.paths().ignore_rules();
        atomic::remove_any(&root)?;
        atomic::create_folders(self.paths().git_dir(), &root)?;
        self.write_ignore_files(index, &root)?;
        let folder = root.display().to_string();
        let args = ["-C", &folder, "check-ignore", "-z", "-v", "--no-index", "--stdin"];
        let call = self.call(&args).variable("GIT_DIR", self.git_dir()).variable("GIT_WORK_TREE", &root);
        let output = call.input(&nul_terminated(paths)).output()?;
        atomic::remove_any(&root)?;
        // It exits with 1 if no path is ignored.
        if !matches!(output.status.code(), Some(0 | 1)) {
            return Err(Error::Git { command: args.join(" "), stderr: lossy(&output.stderr) });
        }
        Ok(ignored_in(&output.stdout))
    }

    /// Writes the ignore files of an index below a folder.
    fn write_ignore_files(&self, index: &Path, root: &Path) -> Result<(), Error> {
        let args = ["ls-files", "-z", "-s", "--cached", "--", ":(top,glob)**/.gitignore"];
        let listed = self.call(&args).index(index).run()?;
        let entries: Vec<(&str, &[u8])> = nul_separated(&listed).filter_map(regular_entry).collect();
        let objects: Vec<&str> = entries.iter().map(|(object, _)| *object).collect();
        for ((_, path), bytes) in entries.iter().zip(self.blobs(&objects)?) {
            let file = root.join(super::path_of(path));
            file.parent().map_or(Ok(()), |folder| atomic::create_folders(root, folder))?;
            std::fs::write(&file, bytes).map_err(Error::io("write", &file))?;
        }
        Ok(())
    }
}

/// Object and path of a regular file in a line of `ls-files -s`. Git reads no rules through a link.
fn regular_entry(line: &[u8]) -> Option<(&str, &[u8])> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let (head, path) = line.split_at_checked(tab)?;
    let mut fields = std::str::from_utf8(head).ok()?.split(' ');
    fields.next().filter(|mode| mode.starts_with("100"))?;
    Some((fields.next()?, path.get(1..)?))
}

/// Parses source, line, pattern and path, each ended by NUL. A pattern that begins with `!` ignores nothing.
fn ignored_in(output: &[u8]) -> Vec<IgnoredPath> {
    let fields: Vec<&[u8]> = output.split(|byte| *byte == 0).collect();
    let ignored = fields.chunks_exact(4).filter_map(|entry| match entry {
        [_, _, [b'!', ..], _] => None,
        [source, _, pattern, path] => {
            Some(IgnoredPath { path: path.to_vec(), source: source.to_vec(), pattern: pattern.to_vec() })
        }
        _ => None,
    });
    ignored.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_include_again_ignore_nothing() {
        let output = b".gitignore\x001\x00*.db\x00a.db\x00.gitignore\x002\x00!b.db\x00b.db\x00";
        let ignored = ignored_in(output);
        assert_eq!(ignored.len(), 1);
        assert_eq!(ignored.first().unwrap().path, b"a.db");
        assert_eq!(regular_entry(b"100644 abc 0\ts/.gitignore"), Some(("abc", &b"s/.gitignore"[..])));
        assert_eq!(regular_entry(b"120000 abc 0\t.gitignore"), None);
    }
}
