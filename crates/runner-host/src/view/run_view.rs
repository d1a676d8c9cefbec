//! A run to look at: its iterations as git has them, and as their folders tell more where they are.

use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;
use runner_core::layout::Doc;
use runner_core::model::id::{IterationNumber, NodeId, RunId};
use runner_core::model::run_state::RunState;
use runner_core::model::tree::Tree;
use runner_core::step::Outcome;
use runner_core::verify::{CommitKind, IterationTarget as About, kind};
use serde_json::Value;

use crate::error::{Error, UserError};
use crate::fs::atomic;
use crate::git::Git;
use crate::repo::paths::is_runner_path;
use crate::repo::run_history::{RunCommit, RunSelector, line, resolve};

/// The most bytes of a log that are read.
const LOG_BYTES_MAX: u64 = 256 << 20;

/// A run that is looked at.
pub struct RunView {
    git: Git,
    /// Which run, and where it ends.
    pub target: RunSelector,
    /// Its iterations, oldest first.
    pub iterations: Vec<IterationView>,
    /// Its tree now.
    pub tree: Option<Tree>,
    /// Its state now.
    pub state: Option<RunState>,
}

/// One iteration.
#[derive(Clone, Debug)]
pub struct IterationView {
    /// Its number.
    pub iter: IterationNumber,
    /// Its commit.
    pub commit: String,
    /// The commit before it.
    pub parent: Option<String>,
    /// Seconds since 1970 at which it was committed.
    pub committed: i64,
    /// What its subject says.
    pub kind: CommitKind,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// What was said, as its message has it.
    pub body: String,
    /// Marks on guard, plan and work.
    pub annotations: Vec<String>,
    /// How many files outside `.runner/` it changed.
    pub files: usize,
    /// meta.json, where the iteration's folder is here.
    pub meta: Option<Value>,
}

impl IterationView {
    /// The node that it worked on; none in a repair.
    pub fn node(&self) -> Option<&NodeId> {
        match &self.kind {
            CommitKind::Iteration { target: About::Node(node), .. } => Some(node),
            CommitKind::Iteration { .. }
            | CommitKind::Start { .. }
            | CommitKind::Baseline { .. }
            | CommitKind::Edit { .. }
            | CommitKind::Malformed { .. }
            | CommitKind::User { .. } => None,
        }
    }

    /// The run that made it: in a fork, its older iterations are those of the run that it goes on from.
    pub fn run(&self) -> Option<&RunId> {
        match &self.kind {
            CommitKind::Iteration { run_id, .. } => Some(run_id),
            CommitKind::Start { .. }
            | CommitKind::Baseline { .. }
            | CommitKind::Edit { .. }
            | CommitKind::Malformed { .. }
            | CommitKind::User { .. } => None,
        }
    }

    /// A number of meta.json.
    pub fn number(&self, key: &str) -> Option<u64> {
        self.meta.as_ref()?.get(key)?.as_u64()
    }

    /// What it cost, in millionths of a dollar.
    pub fn cost(&self) -> Option<u64> {
        self.meta.as_ref()?.get("usage")?.get("cost_microdollars")?.as_u64()
    }
}

impl RunView {
    /// Looks at a run: the one that is named, or the one here.
    pub fn at(dir: &Path, wanted: Option<&str>) -> Result<Self, Error> {
        let git = Git::open(dir)?;
        let target = resolve(&git, wanted)?;
        let mut batch = git.batch()?;
        let run = line(&git, &mut batch, &target)?;
        let mut iterations: Vec<IterationView> = run.entries.into_iter().filter_map(iteration_view).collect();
        for seen in &mut iterations {
            seen.meta = read_meta(&git, &target, seen);
        }
        let mut doc = |doc: Doc| batch.object(&format!("{}:{}", target.tip, doc.path()));
        let (tree, state) = (doc(Doc::Tree)?, doc(Doc::RunState)?);
        Ok(Self {
            tree: tree.and_then(|bytes| Tree::decode(&bytes).ok()),
            state: state.and_then(|bytes| RunState::decode(&bytes).ok()),
            git,
            target,
            iterations,
        })
    }

    /// The iteration that is being made, if its folder is here and nothing of it is committed.
    pub fn running(&self) -> Option<IterationNumber> {
        let next = self.state.as_ref()?.next_iter;
        let iteration_dir = self.folder(next);
        iteration_dir.join("prompt.md").exists().then_some(next)
    }

    /// An iteration's folder, whether it is there or not.
    pub fn folder(&self, iter: IterationNumber) -> PathBuf {
        let run = self.iterations.iter().find(|seen| seen.iter == iter).and_then(IterationView::run);
        self.git.paths().iteration(run.unwrap_or(&self.target.run).as_str(), &iter.to_string())
    }

    /// A file of an iteration's folder; none if it is not here.
    pub fn log(&self, iter: IterationNumber, name: &str) -> Result<Option<Vec<u8>>, Error> {
        atomic::read(&self.folder(iter).join(name), LOG_BYTES_MAX)
    }

    /// The state that an iteration committed: what is on record where its folder is not.
    pub fn state_after(&self, seen: &IterationView) -> Result<Option<RunState>, Error> {
        let path = format!("{}:{}", seen.commit, Doc::RunState.path());
        let bytes = self.git.batch()?.object(&path)?;
        Ok(bytes.and_then(|bytes| RunState::decode(&bytes).ok()))
    }

    /// What an iteration changed, as git shows it; without paths, all but the runner's own files.
    pub fn diff(&self, seen: &IterationView, form: DiffFormat, paths: &[String]) -> Result<Vec<u8>, Error> {
        let parent = seen.parent.as_deref().ok_or(UserError::NoCommit)?;
        self.git.show_diff(parent, &seen.commit, form, paths)
    }
}

/// A regular expression.
pub struct TextPattern(Regex);

impl TextPattern {
    /// Reads one, or says what is wrong with it.
    pub fn new(text: &str) -> Result<Self, String> {
        let last = |told: &str| told.lines().last().unwrap_or_default().replace("error: ", "");
        Regex::new(text).map(Self).map_err(|error| last(&error.to_string()))
    }

    /// Whether it is found in a text.
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

/// How a difference is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffFormat {
    /// Line by line.
    Patch,
    /// Line by line, in colour.
    Coloured,
    /// Added and removed lines by file.
    Stat,
}

/// Whether a runner is at work in the repository that a folder lies in.
pub fn is_locked(folder: &Path) -> Result<bool, Error> {
    let inside = folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(folder);
    let lock = Git::open(inside)?.paths().lock();
    Ok(fs::File::open(lock).is_ok_and(|file| file.try_lock_shared().is_err()))
}

fn iteration_view(entry: RunCommit) -> Option<IterationView> {
    let kind = kind(&entry.message);
    let iter = kind.iter()?;
    let text = String::from_utf8_lossy(&entry.message);
    let trailer = |line: &str, key: &str| line.strip_prefix(key)?.strip_prefix(": ").map(str::to_owned);
    let outcome = text.lines().find_map(|line| trailer(line, "Runner-Outcome"));
    let is_mark = |line: &&str| line.starts_with("Runner-") && line.contains("-Mark: ");
    let marks = text.lines().filter(is_mark).filter_map(|line| line.split_once(": "));
    let said = text.lines().skip(1).filter_map(|line| line.strip_prefix("  ")).collect::<Vec<_>>().join("\n");
    Some(IterationView {
        iter,
        outcome: outcome.and_then(|word| Outcome::from_name(&word)),
        body: said,
        annotations: marks.map(|(_, mark)| mark.to_owned()).collect(),
        files: entry.logged.changes.iter().filter(|change| !is_runner_path(&change.path)).count(),
        commit: entry.logged.id,
        parent: entry.parents.into_iter().next(),
        committed: entry.time,
        kind,
        meta: None,
    })
}

/// The record of an iteration, if it is that of this commit and not of another one with the same number.
fn read_meta(git: &Git, target: &RunSelector, seen: &IterationView) -> Option<Value> {
    let run = seen.run().unwrap_or(&target.run);
    let folder = git.paths().iteration(run.as_str(), &seen.iter.to_string());
    let meta: Value = serde_json::from_slice(&fs::read(folder.join("meta.json")).ok()?).ok()?;
    (meta.get("commit_after")?.as_str()? == seen.commit).then_some(meta)
}
