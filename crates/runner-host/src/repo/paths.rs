//! Every path that the runner uses, in the repository and in its git folder.

use std::path::{Path, PathBuf};

use runner_core::layout::{Doc, RUNNER_DIR};

/// Folders that must be real folders before anything is written into them.
pub(crate) const RUNNER_FOLDERS: [&str; 2] = [RUNNER_DIR, ".runner/state"];

/// What git is told to leave alone under `.runner/`, wherever its own ignore file may be.
pub(crate) const RUNNER_LOCAL: [&str; 5] =
    [".runner/context", ".runner/iterations", ".runner/lock", ".runner/**/*.tmp", ".runner/**/*.bak"];

/// Whether a path from the root, as git writes it, is one of those.
pub(crate) fn is_runner_local(path: &[u8]) -> bool {
    let within = |folder: &str| {
        path.strip_prefix(folder.as_bytes()).filter(|rest| rest.is_empty() || rest.starts_with(b"/"))
    };
    RUNNER_LOCAL.iter().any(|pattern| match pattern.split_once("/**/*") {
        Some((folder, ending)) => within(folder).is_some_and(|rest| {
            rest.split(|byte| *byte == b'/').any(|name| name.ends_with(ending.as_bytes()))
        }),
        None => within(pattern).is_some(),
    })
}

/// Whether a path from the root, as git writes it, lies in the runner's folder.
pub(crate) fn is_runner_path(path: &[u8]) -> bool {
    path.strip_prefix(RUNNER_DIR.as_bytes()).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// The places of one work tree.
#[derive(Clone, Debug)]
pub(crate) struct RepoPaths {
    root: PathBuf,
    git_dir: PathBuf,
}

impl RepoPaths {
    pub(crate) fn new(root: &Path, git_dir: &Path) -> Self {
        Self { root: root.to_owned(), git_dir: git_dir.to_owned() }
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn doc(&self, doc: Doc) -> PathBuf {
        self.root.join(doc.path())
    }

    /// Where the runner keeps what must survive whatever happens to the work tree.
    pub(crate) fn private(&self) -> PathBuf {
        self.git_dir.join("runner")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.private().join("lock")
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.private().join("journal.json")
    }

    /// There while the run is paused.
    pub(crate) fn pause(&self) -> PathBuf {
        self.private().join("paused")
    }

    /// What a hook is told.
    pub(crate) fn hook_input(&self) -> PathBuf {
        self.private().join("hook.json")
    }

    /// What the last hook printed.
    pub(crate) fn hook_log(&self) -> PathBuf {
        self.private().join("hook.log")
    }

    /// What was last finished after a crash.
    pub(crate) fn recovery(&self) -> PathBuf {
        self.private().join("recovered.json")
    }

    /// An index of the runner's own, beside the user's.
    pub(crate) fn private_index(&self, name: &str) -> PathBuf {
        self.private().join(format!("{name}.index"))
    }

    /// Where a commit lies for a moment before it is stored.
    pub(crate) fn new_commit(&self) -> PathBuf {
        self.private().join("commit")
    }

    /// Where the agents of a run put their answers.
    pub(crate) fn answers(&self) -> PathBuf {
        self.private().join("answers")
    }

    pub(crate) fn answer(&self, iter: &str) -> PathBuf {
        self.answers().join(format!("{iter}.json"))
    }

    /// What an agent says of itself beside its answer.
    pub(crate) fn report(&self, iter: &str) -> PathBuf {
        self.answers().join(format!("{iter}.report.json"))
    }

    /// What lies ready for one session, and goes with it.
    pub(crate) fn session(&self) -> PathBuf {
        self.private().join("session")
    }

    /// What an agent can read about its task.
    pub(crate) fn context(&self) -> PathBuf {
        self.root.join(".runner/context")
    }

    /// The logs of all iterations.
    pub(crate) fn iterations(&self) -> PathBuf {
        self.root.join(".runner/iterations")
    }

    /// What the guard printed before a run's first session.
    pub(crate) fn baseline_log(&self, run: &str) -> PathBuf {
        self.iterations().join(run).join("baseline.log")
    }

    /// The log of one iteration.
    pub(crate) fn iteration(&self, run: &str, iter: &str) -> PathBuf {
        self.iterations().join(run).join(iter)
    }

    /// The temporary files of a session in a sandbox.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.private().join("tmp")
    }

    /// Where things go that a session left and that nobody asked for.
    pub(crate) fn set_aside(&self, iter: &str) -> PathBuf {
        self.asides().join(iter)
    }

    pub(crate) fn asides(&self) -> PathBuf {
        self.private().join("aside")
    }

    pub(crate) fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    pub(crate) fn index(&self) -> PathBuf {
        self.git_dir.join("index")
    }

    pub(crate) fn index_lock(&self) -> PathBuf {
        self.git_dir.join("index.lock")
    }

    pub(crate) fn in_git_dir(&self, name: &str) -> PathBuf {
        self.git_dir.join(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_never_committed_is_known_by_its_path() {
        let local =
            [".runner/lock", ".runner/context/x", ".runner/.a.tmp", ".runner/n/x.tmp/y", ".runner/a/b.bak"];
        for path in local {
            assert!(is_runner_local(path.as_bytes()), "{path}");
        }
        for path in [".runner/locks", "context/x", "a.tmp", ".runner/a.tmpx", ".runner", "x/.runner/lock"] {
            assert!(!is_runner_local(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn only_the_runners_own_folder_is_its_own() {
        for own in [".runner", ".runner/", ".runner/x", ".runner/state/tree.json"] {
            assert!(is_runner_path(own.as_bytes()), "{own}");
        }
        for other in [".runnerx", "a/.runner/x", ".runner2/x", "runner"] {
            assert!(!is_runner_path(other.as_bytes()), "{other}");
        }
    }
}
