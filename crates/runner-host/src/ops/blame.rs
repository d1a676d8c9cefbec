//! `runner blame`: bisects the commits of a run for the first one on which a command fails.

use std::path::Path;

use runner_core::bisect::{Bisect, BisectNext};
use runner_core::commit_message::CommitKind;
use runner_core::config::Config;
use runner_core::layout::Doc;
use runner_core::model::id::IterationNumber;
use runner_core::model::object_id::CommitId;
use runner_core::step::GuardExit;

use crate::error::{Error, UserError};
use crate::git::{DiffFormat, Git};
use crate::ops::guard_rerun::{CommitCheck, GuardRerunOutcome, GuardRerunner, PinnedFiles};
use crate::repo::commit_files::protection_at;
use crate::repo::run_history::{resolve, run_history};

/// A commit that may have broken the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlameCandidate {
    pub commit: CommitId,
    pub kind: CommitKind,
    parent: Option<CommitId>,
}

/// A command, and the commits to bisect with it.
pub struct BlameSearch {
    git: Git,
    rerunner: GuardRerunner,
    check: CommitCheck,
    /// Oldest first.
    pub candidates: Vec<BlameCandidate>,
}

/// One run of the command on a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BisectStep {
    pub candidate: BlameCandidate,
    pub outcome: GuardRerunOutcome,
    /// The last lines of its output.
    pub output: Vec<String>,
    /// How many candidates are left after it.
    pub left: usize,
}

impl BisectStep {
    pub fn is_success(&self) -> bool {
        self.outcome == GuardRerunOutcome::Ended(GuardExit::Code(0))
    }
}

/// A progress event of [`BlameSearch::search`].
#[derive(Clone, Copy, Debug)]
pub enum BlameProgress<'p> {
    Started { candidate: &'p BlameCandidate, left: usize },
    Ended(&'p BisectStep),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlameResult {
    /// The command succeeds on the last commit.
    NeverFailed,
    /// The command already fails on the first commit.
    AlwaysFailed,
    Broke {
        candidate: BlameCandidate,
        /// Whether the command both succeeded and failed on the same commit.
        is_flaky: bool,
    },
    /// The user stopped the search; the runner exits with this code.
    Stopped(u8),
}

impl BlameSearch {
    /// Prepares a search of `run` (or the current run), from an iteration or from the start of the run. Without a command it
    /// runs the guard, with the protected files of the first candidate.
    pub fn begin(
        dir: &Path,
        run: Option<&str>,
        from: Option<IterationNumber>,
        command: &[String],
    ) -> Result<Self, Error> {
        let git = Git::open(dir)?;
        let target = resolve(&git, run)?;
        let mut candidates = Vec::new();
        for entry in run_history(&git, &mut git.batch()?, &target)?.entries {
            let kind = CommitKind::parse(&entry.message);
            let is_before = candidates.is_empty() && from.is_some() && kind.iter() != from;
            if !is_before {
                let parent = entry.parents.into_iter().next();
                candidates.push(BlameCandidate { commit: entry.logged.id, kind, parent });
            }
        }
        let first = candidates.first().ok_or_else(|| UserError::NotARun(target.name.clone()))?;
        let config_bytes = git.file_at(&first.commit, Doc::Config.path())?;
        let config = Config::decode(&config_bytes).unwrap_or_default();
        let check = if command.is_empty() {
            let patterns = protection_at(&git, &first.commit, &config.guard)?.files;
            CommitCheck {
                command: config.guard.command.words().to_vec(),
                pinned: Some(PinnedFiles { commit: first.commit.clone(), patterns }),
                config,
            }
        } else {
            CommitCheck { command: command.to_vec(), pinned: None, config }
        };
        Ok(Self { rerunner: GuardRerunner::begin(dir)?, git, check, candidates })
    }

    pub fn command(&self) -> &[String] {
        &self.check.command
    }

    /// Bisects, and reports each run of the command as it starts and ends.
    pub fn search(&self, on_progress: &mut dyn FnMut(BlameProgress<'_>)) -> Result<BlameResult, Error> {
        let mut bisect = Bisect::new(self.candidates.len());
        loop {
            match bisect.next() {
                BisectNext::NeverFailed => return Ok(BlameResult::NeverFailed),
                BisectNext::AlwaysFailed => return Ok(BlameResult::AlwaysFailed),
                BisectNext::FirstFailure { at, is_flaky } => {
                    return Ok(BlameResult::Broke { candidate: self.candidate(at)?, is_flaky });
                }
                BisectNext::Probe(at) => {
                    let candidate = self.candidate(at)?;
                    on_progress(BlameProgress::Started { candidate: &candidate, left: bisect.left() });
                    let (outcome, output) = self.rerunner.check(&candidate.commit, &self.check)?;
                    if let GuardRerunOutcome::Stopped(code) = outcome {
                        return Ok(BlameResult::Stopped(code));
                    }
                    let mut step = BisectStep { candidate, outcome, output, left: 0 };
                    bisect.record(!step.is_success());
                    step.left = bisect.left();
                    on_progress(BlameProgress::Ended(&step));
                }
            }
        }
    }

    fn candidate(&self, index: usize) -> Result<BlameCandidate, Error> {
        self.candidates.get(index).cloned().ok_or(Error::Internal("the bisection left its candidates"))
    }

    /// The lines that a commit added and removed, per file, as `git diff --numstat` prints them.
    pub fn diff_stat(&self, candidate: &BlameCandidate) -> Result<Vec<u8>, Error> {
        let parent = candidate.parent.as_ref().ok_or(Error::Internal("a commit of a run has no parent"))?;
        self.git.show_diff(parent, &candidate.commit, DiffFormat::Stat, &[])
    }
}
