//! References read from their files: what git would say, without asking it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::{Git, Head, lossy};
use crate::error::Error;
use crate::fs::atomic;

/// More than any file of a single reference has.
const LOOSE_BYTES_MAX: u64 = 4 << 10;
const PACKED_BYTES_MAX: u64 = 256 << 20;

impl Git {
    /// Every reference that is no link to another, with the object it points to. Git is asked where the files alone
    /// do not tell: where they are kept in another format or in two places, or are broken.
    pub(crate) fn all_refs(&self) -> Result<BTreeMap<String, String>, Error> {
        let is_alone = self.common_dir() == self.git_dir();
        let read = if is_alone { read(self.common_dir(), self.name_digits) } else { None };
        read.map_or_else(|| self.listed_refs(), Ok)
    }

    /// Whether HEAD is on this branch at this commit, as far as their own files tell.
    pub(crate) fn is_at(&self, head: &Head) -> bool {
        let Head::Branch { name, commit } = head else { return false };
        let branch = self.common_dir().join(format!("refs/heads/{name}"));
        self.is_attached(name) && says(&branch, &format!("{commit}\n"))
    }

    /// Whether HEAD is on this branch.
    pub(super) fn is_attached(&self, branch: &str) -> bool {
        says(&self.paths().in_git_dir("HEAD"), &format!("ref: refs/heads/{branch}\n"))
    }

    fn listed_refs(&self) -> Result<BTreeMap<String, String>, Error> {
        let format = "--format=%(objectname) %(symref) %(refname)";
        let answer = lossy(&self.call(&["for-each-ref", format]).run()?);
        Ok(answer
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter_map(|(object, rest)| rest.strip_prefix(' ').map(|name| (object, name)))
            .map(|(object, name)| (name.to_owned(), object.to_owned()))
            .collect())
    }
}

fn says(path: &Path, text: &str) -> bool {
    atomic::read(path, LOOSE_BYTES_MAX).is_ok_and(|bytes| bytes.as_deref() == Some(text.as_bytes()))
}

fn read(folder: &Path, name_digits: usize) -> Option<BTreeMap<String, String>> {
    if folder.join("reftable").symlink_metadata().is_ok() {
        return None;
    }
    let is_object = |text: &str| {
        let is_hexadecimal = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        text.len() == name_digits && is_hexadecimal && text.bytes().any(|byte| byte != b'0')
    };
    let mut refs = BTreeMap::new();
    let packed = atomic::read(&folder.join("packed-refs"), PACKED_BYTES_MAX).ok()?.unwrap_or_default();
    let lines = std::str::from_utf8(&packed).ok()?.lines();
    for line in lines.filter(|line| !line.starts_with(['#', '^'])) {
        let (object, name) = line.split_once(' ').filter(|(object, _)| is_object(object))?;
        refs.insert(name.to_owned(), object.to_owned());
    }
    let mut loose = BTreeMap::new();
    collect(folder, "refs", &mut loose)?;
    for (name, text) in loose {
        match text.strip_suffix('\n').unwrap_or(&text) {
            object if is_object(object) => drop(refs.insert(name, object.to_owned())),
            link if link.starts_with("ref: ") => drop(refs.remove(&name)),
            _ => return None,
        }
    }
    Some(refs)
}

/// The texts of all files below a folder of references, by their names.
fn collect(folder: &Path, name: &str, found: &mut BTreeMap<String, String>) -> Option<()> {
    for entry in fs::read_dir(folder.join(name)).ok()? {
        let entry = entry.ok()?;
        let name = format!("{name}/{}", entry.file_name().to_str()?);
        if entry.file_type().ok()?.is_dir() {
            collect(folder, &name, found)?;
        } else {
            let bytes = atomic::read(&entry.path(), LOOSE_BYTES_MAX).ok()??;
            found.insert(name, String::from_utf8(bytes).ok()?);
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn repository() -> (tempfile::TempDir, Git) {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::create(folder.path()).unwrap();
        fs::write(folder.path().join("x"), "x").unwrap();
        git.commit_everything("one").unwrap();
        (folder, git)
    }

    fn sh(folder: &Path, script: &str) {
        let script = format!("set -e; export GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x; {script}");
        let status = Command::new("sh").arg("-c").arg(script).current_dir(folder).status().unwrap();
        assert!(status.success());
    }

    #[test]
    fn the_files_say_what_git_says() {
        let (folder, git) = repository();
        let make = "git branch a/b/c; git tag -a t -m t; git pack-refs --all; git branch packed-then-moved; \
            git pack-refs --all; git update-ref refs/heads/packed-then-moved $(git commit-tree -m y HEAD^{tree}); \
            git branch 'ü'; git symbolic-ref refs/remotes/o/HEAD refs/heads/main; git branch gone; \
            git pack-refs --all; git branch -D gone";
        sh(folder.path(), make);
        let by_files = read(git.common_dir(), 40).unwrap();
        assert_eq!(by_files, git.listed_refs().unwrap());
        assert!(by_files.len() >= 5, "{by_files:?}");
        assert_eq!(git.all_refs().unwrap(), by_files);
    }

    #[test]
    fn what_the_files_do_not_tell_is_asked() {
        for odd in [
            "echo nonsense > .git/refs/heads/odd",
            "ln -s main .git/refs/heads/odd",
            "echo nonsense >> .git/packed-refs",
            "mkdir .git/reftable",
            "printf '%040d\\n' 0 > .git/refs/heads/odd",
        ] {
            let (folder, git) = repository();
            sh(folder.path(), odd);
            assert_eq!(read(git.common_dir(), 40), None, "{odd}");
        }
        let (folder, git) = repository();
        sh(folder.path(), "git worktree add -q ../$(basename $PWD)-linked -b linked");
        let linked = folder
            .path()
            .with_file_name(format!("{}-linked", folder.path().file_name().unwrap().to_str().unwrap()));
        let there = Git::open(&linked).unwrap();
        assert_eq!(there.all_refs().unwrap(), git.all_refs().unwrap());
        fs::remove_dir_all(linked).unwrap();
    }
}
