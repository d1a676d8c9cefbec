//! Read-only view of a run: iterations from git, with details from their log directories where present.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use regex::Regex;
use runner_core::commit_message::{CommitKind, MessageParts, Trailer};
use runner_core::config::{Config, OnStuck};
use runner_core::layout::Doc;
use runner_core::model::id::{IterationNumber, NodeId, RunId};
use runner_core::model::object_id::CommitId;
use runner_core::model::review::RecordedReview;
use runner_core::model::run_state::RunState;
use runner_core::model::tree::Tree;
use runner_core::step::{Outcome, RecordedIteration};

use crate::error::Error;
use crate::fs::atomic;
pub use crate::git::DiffFormat;
use crate::git::Git;
use crate::iteration::log_retention::REMOVED_LOGS;
use crate::paths::is_runner_path;
use crate::repo::run_history::{RunCommit, RunSelector, resolve, run_history};

const LOG_BYTES_MAX: u64 = 256 << 20;

/// A run opened for reading.
pub struct RunView {
    git: Git,
    pub target: RunSelector,
    /// Oldest first.
    pub iterations: Vec<IterationView>,
    /// The tree of the last commit, if it is valid.
    pub tree: Option<Tree>,
    /// The state of the last commit, if it is valid.
    pub state: Option<RunState>,
    /// The policy for stuck tasks; the default without a valid configuration.
    pub on_stuck: OnStuck,
}

/// One iteration: its commit, and its meta.json if the log directory exists here.
#[derive(Clone, Debug)]
pub struct IterationView {
    pub iter: IterationNumber,
    pub commit: CommitId,
    /// The commit before it.
    pub parent: Option<CommitId>,
    /// Seconds since 1970 at which it was committed.
    pub committed: i64,
    pub kind: CommitKind,
    pub outcome: Option<Outcome>,
    /// The summary in the commit message.
    pub body: String,
    pub annotations: Vec<String>,
    /// How many files outside of `.runner/` it changed.
    pub files: usize,
    pub meta: Option<RecordedIteration>,
}

impl IterationView {
    /// The node it worked on; `None` for a repair.
    pub fn node(&self) -> Option<&NodeId> {
        self.kind.node()
    }

    /// The run it belongs to. The older iterations of a fork belong to the original run.
    pub fn run(&self) -> Option<&RunId> {
        self.kind.run_id()
    }

    pub fn agent_time(&self) -> Option<Duration> {
        self.meta.as_ref()?.agent_ms.map(Duration::from_millis)
    }

    pub fn guard_time(&self) -> Option<Duration> {
        self.meta.as_ref()?.guard_ms.map(Duration::from_millis)
    }

    /// What the agent reported or what its tokens cost, in millionths of a dollar.
    pub fn cost(&self) -> Option<u64> {
        self.meta.as_ref()?.meta.cost.microdollars
    }
}

impl RunView {
    /// Opens the selected run, or the one on the current branch.
    pub fn at(dir: &Path, wanted: Option<&str>) -> Result<Self, Error> {
        let git = Git::open(dir)?;
        let target = resolve(&git, wanted)?;
        let mut batch = git.batch()?;
        let run = run_history(&git, &mut batch, &target)?;
        let mut iterations: Vec<IterationView> = run.entries.into_iter().filter_map(iteration_view).collect();
        for iteration in &mut iterations {
            iteration.meta = read_meta(&git, &target, iteration);
        }
        let tree = batch.object(&format!("{}:{}", target.tip, Doc::Tree.path()))?;
        let state = batch.object(&format!("{}:{}", target.tip, Doc::RunState.path()))?;
        let config = batch.object(&format!("{}:{}", target.tip, Doc::Config.path()))?;
        let config = config.and_then(|bytes| Config::decode(&bytes).ok());
        Ok(Self {
            on_stuck: config.map_or(OnStuck::Stop, |config| config.on_stuck),
            tree: tree.and_then(|bytes| Tree::decode(&bytes).ok()),
            state: state.and_then(|bytes| RunState::decode(&bytes).ok()),
            git,
            target,
            iterations,
        })
    }

    /// The iteration in progress: its log directory exists, and it has no commit yet.
    pub fn running(&self) -> Option<IterationNumber> {
        let next = self.state.as_ref()?.next_iter;
        self.iteration_dir(next).join("prompt.md").exists().then_some(next)
    }

    /// Whether this iteration has no commit yet.
    pub fn is_in_progress(&self, iter: IterationNumber) -> bool {
        self.running() == Some(iter) && self.iterations.iter().all(|iteration| iteration.iter != iter)
    }

    /// The path of an iteration's log directory, which may not exist.
    pub fn iteration_dir(&self, iter: IterationNumber) -> PathBuf {
        let iteration = self.iterations.iter().find(|iteration| iteration.iter == iter);
        let run = iteration.and_then(IterationView::run);
        self.git.paths().iteration(run.unwrap_or(&self.target.run).as_str(), &iter.to_string())
    }

    /// A file in an iteration's log directory.
    pub fn log(&self, iter: IterationNumber, name: &str) -> Result<Option<Vec<u8>>, Error> {
        atomic::read(&self.iteration_dir(iter).join(name), LOG_BYTES_MAX)
    }

    /// Whether the policy of `[logs]` removed logs of an iteration.
    pub fn has_removed_logs(&self, iter: IterationNumber) -> bool {
        self.iteration_dir(iter).join(REMOVED_LOGS).is_file()
    }

    /// The state that an iteration committed, for details when its log directory does not exist.
    pub fn state_after(&self, iteration: &IterationView) -> Result<Option<RunState>, Error> {
        let path = format!("{}:{}", iteration.commit, Doc::RunState.path());
        let bytes = self.git.batch()?.object(&path)?;
        Ok(bytes.and_then(|bytes| RunState::decode(&bytes).ok()))
    }

    /// The review of an iteration, if there was one.
    pub fn review_of(&self, iteration: &IterationView) -> Option<RecordedReview> {
        if let Some(meta) = &iteration.meta {
            return meta.meta.review.clone();
        }
        let can_be_reviewed = matches!(
            iteration.outcome,
            Some(Outcome::Passed | Outcome::ReviewRefused | Outcome::ReviewFailed)
        );
        if can_be_reviewed { self.state_after(iteration).ok()??.review.last } else { None }
    }

    /// What an iteration changed, as `git diff` prints it. Without paths, all files but the runner's own.
    pub fn diff(
        &self,
        iteration: &IterationView,
        format: DiffFormat,
        paths: &[String],
    ) -> Result<Vec<u8>, Error> {
        let parent = iteration.parent.as_ref().ok_or(Error::Internal("an iteration has no parent commit"))?;
        self.git.show_diff(parent, &iteration.commit, format, paths)
    }
}

/// A regular expression for `runner log --grep`.
pub struct TextPattern(Regex);

impl TextPattern {
    /// `Err` has the reason, as one line.
    pub fn new(text: &str) -> Result<Self, String> {
        Regex::new(text).map(Self).map_err(|error| {
            let message = error.to_string();
            message.lines().last().unwrap_or_default().replace("error: ", "")
        })
    }

    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

/// Whether a runner holds the lock of the repository that contains `folder`, which may not exist itself.
pub fn is_locked(folder: &Path) -> Result<bool, Error> {
    let existing = folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(folder);
    let lock = Git::open(existing)?.paths().lock();
    Ok(fs::File::open(lock).is_ok_and(|file| file.try_lock_shared().is_err()))
}

fn iteration_view(entry: RunCommit) -> Option<IterationView> {
    let kind = CommitKind::parse(&entry.message);
    let iter = kind.iter()?;
    let text = String::from_utf8_lossy(&entry.message);
    let message = MessageParts::parse(&text);
    Some(IterationView {
        iter,
        outcome: message.value(Trailer::Outcome).and_then(Outcome::from_name),
        body: message.text(),
        annotations: message.values(Trailer::Annotation).map(str::to_owned).collect(),
        files: entry.logged.changes.iter().filter(|change| !is_runner_path(&change.path)).count(),
        commit: entry.logged.id,
        parent: entry.parents.into_iter().next(),
        committed: entry.time,
        kind,
        meta: None,
    })
}

/// The meta.json of an iteration, unless it belongs to another commit with the same iteration number.
fn read_meta(git: &Git, target: &RunSelector, iteration: &IterationView) -> Option<RecordedIteration> {
    let run = iteration.run().unwrap_or(&target.run);
    let folder = git.paths().iteration(run.as_str(), &iteration.iter.to_string());
    let meta = RecordedIteration::from_json(&fs::read(folder.join("meta.json")).ok()?)?;
    (meta.commit_after == iteration.commit.as_str()).then_some(meta)
}
