//! A checkout of a candidate for a program that only reads it: a reviewer. It has the files to commit, and nothing that the work
//! tree has besides them.

use std::path::{Path, PathBuf};

use super::checkout::Checkout;
use super::{Candidate, git_dir};
use crate::agent::sandbox_argv::ArgvBuilder;
use crate::error::Error;
use crate::fs::atomic;
use crate::git::Git;

#[derive(Clone, Debug)]
pub(crate) struct CandidateView {
    folder: PathBuf,
    tree: PathBuf,
    object_folders: Vec<PathBuf>,
}

impl CandidateView {
    pub(crate) fn check_out(git: &Git, candidate: &Candidate) -> Result<Self, Error> {
        let folder = git.paths().review_room();
        atomic::remove_any(&folder)?;
        atomic::create_folders(git.paths().git_dir(), &folder.join("tree"))?;
        let mut checkout = Checkout::new(&folder);
        checkout.update(git, &candidate.tree)?;
        git_dir::write(git, &folder.join("git"), &checkout.index, &candidate.commit)?;
        Ok(Self { folder, tree: checkout.tree.clone(), object_folders: git_dir::object_folders(git) })
    }

    /// Mounts the checkout in the place of the repository. What else is mounted inside comes next, then [`Self::seal`].
    pub(crate) fn mount(&self, argv: &mut ArgvBuilder, root: &Path) {
        let git_dir = root.join(".git");
        argv.mount("--bind", &self.tree, root);
        argv.mount("--bind", &self.folder.join("git"), &git_dir);
        for (nth, objects) in self.object_folders.iter().enumerate() {
            argv.mount("--ro-bind", objects, &git_dir.join(git_dir::objects_name(nth)));
        }
    }

    /// Makes the checkout read-only. Bubblewrap creates mount points, so it cannot be so before.
    pub(crate) fn seal(&self, argv: &mut ArgvBuilder, root: &Path) {
        argv.remount_read_only(&root.join(".git"));
        argv.remount_read_only(root);
    }

    pub(crate) fn remove(self) -> Result<(), Error> {
        atomic::remove_any(&self.folder)
    }
}
