//! References: read from their files where these are enough, moved through git.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use runner_core::model::id::RunId;
use runner_core::model::object_id::{BranchName, CommitId};

use super::{Git, Head, REFLOG_MESSAGE, lossy};
use crate::clock::now_ms;
use crate::error::Error;
use crate::fs::atomic;

/// More bytes than any file of a single reference has.
const LOOSE_BYTES_MAX: u64 = 4 << 10;
const PACKED_BYTES_MAX: u64 = 256 << 20;

/// A local branch and the commit it points to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LocalBranch {
    pub(crate) name: BranchName,
    pub(crate) tip: CommitId,
}

impl Git {
    /// Every reference that is not symbolic, with the object it points to. Falls back to git where the files are not
    /// enough: another storage format, linked work trees, or broken files.
    pub(crate) fn all_refs(&self) -> Result<BTreeMap<String, String>, Error> {
        let is_main_worktree = self.common_dir() == self.git_dir();
        let refs = if is_main_worktree { read_ref_files(self.common_dir(), self.id_digits) } else { None };
        refs.map_or_else(|| self.listed_refs(), Ok)
    }

    /// Files in the place of references whose content is not one. A power cut leaves empty ones.
    pub(crate) fn unreadable_refs(&self) -> Vec<String> {
        let mut loose = BTreeMap::new();
        // Where a folder cannot be read, git reports it.
        let _ = collect_loose(self.common_dir(), "refs", &mut loose);
        let is_unreadable = |text: &str| {
            let text = text.trim_end();
            !text.starts_with("ref: ") && !is_object_id(text, self.id_digits)
        };
        loose.retain(|_, text| is_unreadable(text));
        loose.into_keys().collect()
    }

    /// Waits until references are on the disk, where git does not: it syncs a table of the reftable format before it writes the
    /// end of that table.
    fn sync_reftable(&self) -> Result<(), Error> {
        if self.uses_reftable() { atomic::sync_file_system(self.common_dir()) } else { Ok(()) }
    }

    fn uses_reftable(&self) -> bool {
        self.common_dir().join("reftable").symlink_metadata().is_ok()
    }

    /// Whether HEAD is on this branch at this commit, according to the files alone.
    pub(crate) fn is_at(&self, head: &Head) -> bool {
        let Head::Branch { name, commit } = head else { return false };
        let branch = self.common_dir().join(name.reference());
        self.is_attached(name) && has_content(&branch, &format!("{commit}\n"))
    }

    /// The run whose branch HEAD is on, according to the file alone.
    pub(crate) fn attached_run(&self) -> Option<RunId> {
        RunId::of_branch(self.head_in_file()?.strip_prefix("refs/heads/")?)
    }

    /// The content of HEAD without git: a reference, or a commit. None if HEAD is not stored as a file, or cannot be read.
    pub(crate) fn head_in_file(&self) -> Option<String> {
        if self.uses_reftable() {
            return None;
        }
        let bytes = atomic::read(&self.paths().in_git_dir("HEAD"), LOOSE_BYTES_MAX).ok()??;
        let text = String::from_utf8(bytes).ok()?;
        let text = text.trim_end();
        Some(text.strip_prefix("ref: ").unwrap_or(text).to_owned())
    }

    fn is_attached(&self, branch: &BranchName) -> bool {
        has_content(&self.paths().in_git_dir("HEAD"), &format!("ref: {}\n", branch.reference()))
    }

    fn listed_refs(&self) -> Result<BTreeMap<String, String>, Error> {
        let format = "--format=%(objectname) %(symref) %(refname)";
        let output = lossy(&self.call(&["for-each-ref", format]).run()?);
        let mut refs = BTreeMap::new();
        for line in output.lines() {
            // A symbolic reference has its target between the two blanks.
            if let Some((object, name)) = line.split_once("  ") {
                refs.insert(name.to_owned(), object.to_owned());
            }
        }
        Ok(refs)
    }

    /// Local branches below `runner/`, and the branch `runner` itself.
    pub(crate) fn runner_branches(&self) -> Result<Vec<LocalBranch>, Error> {
        let format = "--format=%(objectname) %(refname:lstrip=2)";
        let output = lossy(&self.call(&["for-each-ref", format, "refs/heads/runner"]).run()?);
        let branch = |line: &str| {
            let (commit, name) = line.split_once(' ')?;
            Some(LocalBranch { name: BranchName::new(name), tip: CommitId::new(commit).ok()? })
        };
        Ok(output.lines().filter_map(branch).collect())
    }

    /// The work tree in which a branch is checked out, as git prints its path.
    pub(crate) fn worktree_holding(&self, branch: &BranchName) -> Result<Option<String>, Error> {
        let output = self.call(&["worktree", "list", "--porcelain", "-z"]).run()?;
        let wanted = format!("branch {}", branch.reference());
        let mut worktree = None;
        for line in output.split(|byte| *byte == 0) {
            if let Some(path) = line.strip_prefix(b"worktree ") {
                worktree = Some(path);
            } else if line == wanted.as_bytes() {
                return Ok(worktree.map(lossy));
            }
        }
        Ok(None)
    }

    /// Whether a work tree is a linked one, which `git worktree remove` removes.
    pub(crate) fn is_linked_worktree(&self, worktree: &Path) -> bool {
        let link = fs::read_to_string(worktree.join(".git")).unwrap_or_default();
        let folder = link.strip_prefix("gitdir: ").map(|folder| worktree.join(folder.trim_end()));
        folder.is_some_and(|folder| folder.join("commondir").is_file())
    }

    /// The commit that a branch points to.
    pub(crate) fn branch_tip(&self, branch: &BranchName) -> Result<Option<CommitId>, Error> {
        let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", &branch.reference()];
        let unexpected = || Error::GitOutput { command: args.join(" ") };
        let Some(output) = self.call(&args).query()? else { return Ok(None) };
        CommitId::new(lossy(&output)).map(Some).map_err(|_| unexpected())
    }

    /// Points a reference of the runner's to an object, wherever it points now. The value that it has now is part of the
    /// request: a git process that outlives this runner and runs later changes nothing.
    pub(crate) fn set_ref(&self, name: &str, object: &str) -> Result<(), Error> {
        let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", name];
        let now = self.call(&args).query()?.map_or_else(|| self.null_id(), |id| lossy(&id));
        if now == object {
            return Ok(());
        }
        self.call(&["update-ref", "--no-deref", "-m", REFLOG_MESSAGE, name, object, &now]).run()?;
        self.sync_reftable()
    }

    /// Whether one commit is in the history of another. Objects that are not commits have no history.
    pub(crate) fn is_ancestor(&self, one: &str, other: &str) -> Result<bool, Error> {
        let output = self.call(&["merge-base", "--is-ancestor", one, other]).output()?;
        match output.status.code() {
            Some(0) => Ok(true),
            Some(1 | 128) => Ok(false),
            _ => Err(Error::Git { command: "merge-base".to_owned(), stderr: lossy(&output.stderr) }),
        }
    }

    /// Removes a reference that points to this object.
    pub(crate) fn remove_ref(&self, name: &str, object: &str) -> Result<(), Error> {
        self.call(&["update-ref", "--no-deref", "-d", name, object]).run().map(drop)
    }

    /// Whether the references can be listed at all.
    pub(crate) fn lists_refs(&self) -> Result<bool, Error> {
        if self.common_dir() == self.git_dir() && read_ref_files(self.common_dir(), self.id_digits).is_some()
        {
            return Ok(true);
        }
        Ok(self.call(&["for-each-ref", "--format=%(refname)"]).output()?.status.success())
    }

    /// Moves a reference from one commit to another. Without `from` the reference must not exist yet. A reference that
    /// points to the new commit already is fine.
    pub(crate) fn move_ref(
        &self,
        reference: &str,
        from: Option<&CommitId>,
        to: &CommitId,
    ) -> Result<(), Error> {
        let from = from.map_or_else(|| self.null_id(), ToString::to_string);
        let request = format!("start\nupdate {reference} {to} {from}\ncommit\n");
        let moved = self.processes.update_ref.ask(self, request.as_bytes(), 2);
        moved.map(drop).or_else(|error| if self.points_to(reference, to) { Ok(()) } else { Err(error) })?;
        self.sync_reftable()
    }

    /// Points a reference of the runner's to a commit, wherever it points now.
    pub(crate) fn point_ref(&self, reference: &str, to: &CommitId) -> Result<(), Error> {
        let request = format!("start\nupdate {reference} {to}\ncommit\n");
        self.processes.update_ref.ask(self, request.as_bytes(), 2)?;
        self.sync_reftable()
    }

    fn points_to(&self, reference: &str, commit: &CommitId) -> bool {
        let args = ["rev-parse", "--verify", "--quiet", "--end-of-options", reference];
        self.call(&args).run().is_ok_and(|output| lossy(&output) == commit.as_str())
    }

    /// Puts HEAD on a branch and changes nothing else.
    pub(crate) fn attach_head(&self, branch: &BranchName) -> Result<(), Error> {
        if self.is_attached(branch) {
            return Ok(());
        }
        if self.uses_reftable() {
            let args = ["symbolic-ref", "-m", REFLOG_MESSAGE, "HEAD", &branch.reference()];
            self.call(&args).run()?;
            return self.sync_reftable();
        }
        let before = self.resolve("HEAD")?;
        let after = self.branch_tip(branch)?;
        write_head(&self.paths().in_git_dir("HEAD"), branch)?;
        let entry = ReflogEntry { before: before.as_ref(), after: after.as_ref() };
        self.append_to_head_log(&entry);
        Ok(())
    }

    /// Appends to HEAD's reflog, from which git knows the branch before. A log that cannot be written is not an error.
    fn append_to_head_log(&self, entry: &ReflogEntry<'_>) {
        let path = self.paths().in_git_dir("logs/HEAD");
        let [_, committer] = self.settings().author_and_committer();
        let id = |commit: Option<&CommitId>| commit.map_or_else(|| self.null_id(), ToString::to_string);
        let seconds = now_ms() / 1000;
        let (before, after) = (id(entry.before), id(entry.after));
        let line = format!("{before} {after} {committer} {seconds} +0000\t{REFLOG_MESSAGE}\n");
        if let Ok(mut file) = fs::File::options().append(true).open(path) {
            let _ = file.write_all(line.as_bytes());
        }
    }
}

/// A move of HEAD.
struct ReflogEntry<'a> {
    before: Option<&'a CommitId>,
    after: Option<&'a CommitId>,
}

/// Replaces HEAD by one rename, under git's own lock. Git's command does not wait until the new content is on the disk, so
/// that a power cut could leave an empty HEAD.
fn write_head(head: &Path, branch: &BranchName) -> Result<(), Error> {
    let lock = head.with_extension("lock");
    let text = format!("ref: {}\n", branch.reference());
    let file = fs::File::options().write(true).create_new(true).open(&lock);
    let mut file = file.map_err(Error::io("lock", &lock))?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
    if let Err(error) = written.and_then(|()| fs::rename(&lock, head)) {
        let _ = fs::remove_file(&lock);
        return Err(Error::io("write", head)(error));
    }
    atomic::sync_parent(head)
}

fn has_content(path: &Path, text: &str) -> bool {
    atomic::read(path, LOOSE_BYTES_MAX).is_ok_and(|bytes| bytes.as_deref() == Some(text.as_bytes()))
}

pub(super) fn is_object_id(text: &str, id_digits: usize) -> bool {
    let is_hexadecimal = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    text.len() == id_digits && is_hexadecimal && text.bytes().any(|byte| byte != b'0')
}

/// Reads packed and loose references; none if only git can know them all.
fn read_ref_files(folder: &Path, id_digits: usize) -> Option<BTreeMap<String, String>> {
    if folder.join("reftable").symlink_metadata().is_ok() {
        return None;
    }
    let is_object = |text: &str| is_object_id(text, id_digits);
    let mut refs = BTreeMap::new();
    let packed = atomic::read(&folder.join("packed-refs"), PACKED_BYTES_MAX).ok()?.unwrap_or_default();
    let lines = std::str::from_utf8(&packed).ok()?.lines();
    for line in lines.filter(|line| !line.starts_with(['#', '^'])) {
        let (object, name) = line.split_once(' ').filter(|(object, _)| is_object(object))?;
        refs.insert(name.to_owned(), object.to_owned());
    }
    let mut loose = BTreeMap::new();
    collect_loose(folder, "refs", &mut loose)?;
    for (name, text) in loose {
        match text.strip_suffix('\n').unwrap_or(&text) {
            object if is_object(object) => drop(refs.insert(name, object.to_owned())),
            link if link.starts_with("ref: ") => drop(refs.remove(&name)),
            _ => return None,
        }
    }
    Some(refs)
}

/// Collects the contents of all files below a folder of references, by reference name.
fn collect_loose(folder: &Path, name: &str, refs: &mut BTreeMap<String, String>) -> Option<()> {
    for entry in fs::read_dir(folder.join(name)).ok()? {
        let entry = entry.ok()?;
        let name = format!("{name}/{}", entry.file_name().to_str()?);
        // No reference has such a name: a git command writes one at this moment, or died.
        if name.ends_with(".lock") {
            continue;
        }
        if entry.file_type().ok()?.is_dir() {
            collect_loose(folder, &name, refs)?;
        } else {
            let bytes = atomic::read(&entry.path(), LOOSE_BYTES_MAX).ok()??;
            refs.insert(name, String::from_utf8_lossy(&bytes).into_owned());
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
    fn reference_files_agree_with_git() {
        let (folder, git) = repository();
        let make = "git branch a/b/c; git tag -a t -m t; git pack-refs --all; git branch packed-then-moved; \
            git pack-refs --all; git update-ref refs/heads/packed-then-moved $(git commit-tree -m y HEAD^{tree}); \
            git branch 'ü'; git symbolic-ref refs/remotes/o/HEAD refs/heads/main; git branch gone; \
            git pack-refs --all; git branch -D gone";
        sh(folder.path(), make);
        let by_files = read_ref_files(git.common_dir(), 40).unwrap();
        assert_eq!(by_files, git.listed_refs().unwrap());
        assert!(by_files.len() >= 5, "{by_files:?}");
        assert_eq!(git.all_refs().unwrap(), by_files);
        // What a killed git and a power cut leave is not a reference.
        sh(folder.path(), "git rev-parse main > .git/refs/heads/x.lock; : > .git/refs/heads/empty");
        assert_eq!(git.all_refs().unwrap(), by_files);
        assert_eq!(git.unreadable_refs(), ["refs/heads/empty"]);
        sh(folder.path(), "rm .git/refs/heads/empty");
        assert_eq!(read_ref_files(git.common_dir(), 40).unwrap(), by_files);
        sh(folder.path(), "rm .git/refs/heads/x.lock");
    }

    #[test]
    fn git_lists_references_where_the_files_are_not_enough() {
        for odd in [
            "echo nonsense > .git/refs/heads/odd",
            "ln -s main .git/refs/heads/odd",
            "echo nonsense >> .git/packed-refs",
            "mkdir .git/reftable",
            "printf '%040d\\n' 0 > .git/refs/heads/odd",
        ] {
            let (folder, git) = repository();
            sh(folder.path(), odd);
            assert_eq!(read_ref_files(git.common_dir(), 40), None, "{odd}");
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
