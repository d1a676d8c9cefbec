//! Every path that the runner uses, in the work tree and in the git directory.

use std::path::{Path, PathBuf};

use runner_core::layout::{Doc, FINAL_LOG, RUNNER_DIR};

/// Folders that must be real folders before anything is written into them.
pub(crate) const RUNNER_FOLDERS: [&str; 2] = [RUNNER_DIR, ".runner/state"];

/// Files under `.runner/` that are never committed, even without an ignore file.
pub(crate) const RUNNER_LOCAL: [&str; 5] =
    [".runner/context", ".runner/iterations", ".runner/lock", ".runner/**/*.tmp", ".runner/**/*.bak"];

/// Whether a path relative to the root, as git prints it, matches [`RUNNER_LOCAL`].
pub(crate) fn is_runner_local(path: &[u8]) -> bool {
    let rest_below = |folder: &str| {
        path.strip_prefix(folder.as_bytes()).filter(|rest| rest.is_empty() || rest.starts_with(b"/"))
    };
    RUNNER_LOCAL.iter().any(|pattern| match pattern.split_once("/**/*") {
        Some((folder, ending)) => rest_below(folder).is_some_and(|rest| {
            rest.split(|byte| *byte == b'/').any(|name| name.ends_with(ending.as_bytes()))
        }),
        None => rest_below(pattern).is_some(),
    })
}

/// Whether a path relative to the root, as git prints it, is in the runner's folder.
pub(crate) fn is_runner_path(path: &[u8]) -> bool {
    path.strip_prefix(RUNNER_DIR.as_bytes()).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// The paths of one work tree.
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

    /// The runner's folder in the git directory, for files that must survive any change to the work tree.
    pub(crate) fn private(&self) -> PathBuf {
        self.git_dir.join("runner")
    }

    pub(crate) fn lock(&self) -> PathBuf {
        self.private().join("lock")
    }

    /// Exists while a runner holds the lock.
    pub(crate) fn lock_marker(&self) -> PathBuf {
        self.private().join(crate::fs::lock::MARKER)
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.private().join("journal.json")
    }

    /// How the last session ended, while its changes are not stored yet.
    pub(crate) fn end_note(&self) -> PathBuf {
        self.private().join("ended.json")
    }

    /// The git directory relative to the work tree, if it is inside and UTF-8.
    pub(crate) fn git_dir_in_root(&self) -> Option<String> {
        self.git_dir.strip_prefix(&self.root).ok().and_then(Path::to_str).map(str::to_owned)
    }

    /// The request to stop after the current iteration.
    pub(crate) fn stop_request(&self) -> PathBuf {
        self.private().join("stop")
    }

    pub(crate) fn is_stop_requested(&self) -> bool {
        self.stop_request().symlink_metadata().is_ok()
    }

    /// Exists while the run is paused.
    pub(crate) fn pause(&self) -> PathBuf {
        self.private().join("paused")
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.pause().symlink_metadata().is_ok()
    }

    /// Notes and answers that wait for the runner that holds the lock.
    pub(crate) fn edit_queue(&self) -> PathBuf {
        self.private().join("queue")
    }

    /// Copies of the user's ignored files, one folder per run.
    pub(crate) fn ignored_copies(&self) -> PathBuf {
        self.private().join("ignored")
    }

    /// Copies of reflogs, for as long as a session could damage them.
    pub(crate) fn reflogs(&self) -> PathBuf {
        self.private().join("reflogs")
    }

    /// Bodies of requests on their way from a recorder to a provider.
    pub(crate) fn recorder(&self) -> PathBuf {
        self.private().join("recorder")
    }

    /// The output of the last loop in the background, and of the one before it.
    pub(crate) fn loop_log(&self) -> PathBuf {
        self.private().join("loop.log")
    }

    pub(crate) fn old_loop_log(&self) -> PathBuf {
        self.private().join("loop.old.log")
    }

    /// The address and the headers of a notification.
    pub(crate) fn notify_request(&self) -> PathBuf {
        self.private().join("notify.curl")
    }

    pub(crate) fn notify_body(&self) -> PathBuf {
        self.private().join("notify.body")
    }

    /// The output of the last notification's program.
    pub(crate) fn notify_log(&self) -> PathBuf {
        self.private().join("notify.log")
    }

    /// The standard input of a hook.
    pub(crate) fn hook_input(&self) -> PathBuf {
        self.private().join("hook.json")
    }

    /// The output of the last hook.
    pub(crate) fn hook_log(&self) -> PathBuf {
        self.private().join("hook.log")
    }

    /// The note about the last recovery.
    pub(crate) fn recovery(&self) -> PathBuf {
        self.private().join("recovered.json")
    }

    /// How far the logs of a run were removed by policy.
    pub(crate) fn log_retention(&self) -> PathBuf {
        self.private().join("log-retention.json")
    }

    /// An index file that git uses instead of the user's.
    pub(crate) fn private_index(&self, name: &str) -> PathBuf {
        self.private().join(format!("{name}.index"))
    }

    /// A git directory without a history of its own.
    pub(crate) fn unconverted(&self) -> PathBuf {
        self.private().join("unconverted")
    }

    /// The ignore files of a commit, while paths are matched with them.
    pub(crate) fn ignore_rules(&self) -> PathBuf {
        self.private().join("ignore-rules")
    }

    /// The text of a commit that is about to be stored.
    pub(crate) fn new_commit(&self) -> PathBuf {
        self.private().join("commit")
    }

    /// The answers of agents.
    pub(crate) fn answers(&self) -> PathBuf {
        self.private().join("answers")
    }

    pub(crate) fn answer(&self, iter: &str) -> PathBuf {
        self.answers().join(format!("{iter}.json"))
    }

    /// An agent's report of its usage and errors.
    pub(crate) fn report(&self, iter: &str) -> PathBuf {
        self.answers().join(format!("{iter}.report.json"))
    }

    /// Setup files for one session, removed with it.
    pub(crate) fn session(&self) -> PathBuf {
        self.private().join("session")
    }

    /// What an agent can read about its task besides the prompt.
    pub(crate) fn context(&self) -> PathBuf {
        self.root.join(".runner/context")
    }

    /// The logs of all iterations.
    pub(crate) fn iterations(&self) -> PathBuf {
        self.root.join(".runner/iterations")
    }

    /// The logs of a run.
    pub(crate) fn run_logs(&self, run: &str) -> PathBuf {
        self.iterations().join(run)
    }

    /// The guard's output before a run's first session.
    pub(crate) fn baseline_log(&self, run: &str) -> PathBuf {
        self.run_logs(run).join("baseline.log")
    }

    /// The guard's output in a clean checkout, after all tasks passed.
    pub(crate) fn final_log(&self, run: &str) -> PathBuf {
        self.iterations().join(run).join(FINAL_LOG)
    }

    /// The log of one iteration.
    pub(crate) fn iteration(&self, run: &str, iter: &str) -> PathBuf {
        self.run_logs(run).join(iter)
    }

    /// The temporary files of a session in a sandbox.
    pub(crate) fn temporary(&self) -> PathBuf {
        self.private().join("tmp")
    }

    /// The room in which the guard runs.
    pub(crate) fn room(&self) -> PathBuf {
        self.private().join("room")
    }

    /// Copies of the user's ignored files for the rooms, one folder per run.
    pub(crate) fn all_kept(&self) -> PathBuf {
        self.private().join("kept")
    }

    pub(crate) fn kept(&self, run: &str) -> PathBuf {
        self.all_kept().join(run)
    }

    /// A room for one held-out check.
    pub(crate) fn heldout_room(&self) -> PathBuf {
        self.private().join("heldout-room")
    }

    /// A room for one run of the guard.
    pub(crate) fn fresh_room(&self) -> PathBuf {
        self.private().join("fresh-room")
    }

    /// The files that a reviewer sees.
    pub(crate) fn review_room(&self) -> PathBuf {
        self.private().join("review-room")
    }

    /// Files that a session left and that cannot be committed.
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
    fn local_files_are_recognised_by_their_path() {
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
    fn only_the_runners_folder_is_a_runner_path() {
        for path in [".runner", ".runner/", ".runner/x", ".runner/state/tree.json"] {
            assert!(is_runner_path(path.as_bytes()), "{path}");
        }
        for path in [".runnerx", "a/.runner/x", ".runner2/x", "runner"] {
            assert!(!is_runner_path(path.as_bytes()), "{path}");
        }
    }
}
