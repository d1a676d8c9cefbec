//! `runner blame`: the first commit of a run that a check is red on.

use std::path::Path;

use runner_core::bisect::{Bisect, BisectNext};
use runner_core::commit_message::CommitKind;
use runner_core::config::Config;
use runner_core::layout::Doc;
use runner_core::model::id::IterationNumber;
use runner_core::step::GuardExit;

use crate::error::{Error, UserError};
use crate::git::Git;
use crate::ops::guard_rerun::{CommitCheck, GuardRerunOutcome, GuardRerunner, PinnedFiles};
use crate::repo::run_history::{line, resolve};
use crate::view::run_view::DiffFormat;

/// A commit that may have broken the check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlameCandidate {
    /// The commit.
    pub commit: String,
    /// What it is.
    pub kind: CommitKind,
    parent: Option<String>,
}

/// The commits of a run from an iteration on, oldest first, and the check.
pub struct BlameSearch {
    git: Git,
    reruns: GuardRerunner,
    check: CommitCheck,
    /// The commits.
    pub suspects: Vec<BlameCandidate>,
}

/// The check, run on one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BisectStep {
    /// The commit.
    pub suspect: BlameCandidate,
    /// How the check ended.
    pub how: GuardRerunOutcome,
    /// The last lines that it printed.
    pub output: Vec<String>,
    /// How many commits are left to choose from.
    pub left: usize,
}

impl BisectStep {
    /// Whether the check is happy.
    pub fn is_green(&self) -> bool {
        self.how == GuardRerunOutcome::Ended(GuardExit::Code(0))
    }
}

/// How a search goes on.
#[derive(Clone, Copy, Debug)]
pub enum BlameProgress<'p> {
    /// The check is run on this commit, one of so many that are left.
    Begins { suspect: &'p BlameCandidate, left: usize },
    /// The check is over.
    Ended(&'p BisectStep),
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BlameResult {
    /// Nothing is broken at the end.
    NeverRed,
    /// It was broken before.
    AlwaysRed,
    /// This commit broke it.
    Broke { suspect: BlameCandidate, is_flaky: bool },
    /// The user stopped the search; this is the exit code that tells of it.
    Stopped(u8),
}

impl BlameSearch {
    /// Gets ready to look in a run, the one that is named or the one here, from an iteration or from its start on. The
    /// check is a command, or the guard as it was pinned at the beginning.
    pub fn begin(
        dir: &Path,
        run: Option<&str>,
        from: Option<IterationNumber>,
        command: &[String],
    ) -> Result<Self, Error> {
        let git = Git::open(dir)?;
        let target = resolve(&git, run)?;
        let entries = line(&git, &mut git.batch()?, &target)?.entries;
        let suspects = entries.into_iter().map(|entry| BlameCandidate {
            kind: CommitKind::parse(&entry.message),
            commit: entry.logged.id,
            parent: entry.parents.into_iter().next(),
        });
        let is_before = |suspect: &BlameCandidate| from.is_some() && suspect.kind.iter() != from;
        let suspects: Vec<BlameCandidate> = suspects.skip_while(is_before).collect();
        let first = suspects.first().ok_or_else(|| UserError::NotARun(target.name.clone()))?;
        let config = git.file_at(&first.commit, Doc::Config.path())?;
        let config = Config::decode(&config).unwrap_or_default();
        let check = if command.is_empty() {
            let patterns = config.guard.protected.clone();
            CommitCheck {
                command: config.guard.command.words().to_vec(),
                pinned: Some(PinnedFiles { commit: first.commit.clone(), patterns }),
                config,
            }
        } else {
            CommitCheck { command: command.to_vec(), pinned: None, config }
        };
        Ok(Self { reruns: GuardRerunner::begin(dir)?, git, check, suspects })
    }

    /// What is run.
    pub fn command(&self) -> &[String] {
        &self.check.command
    }

    /// Searches; every run of the check is told, as it begins and as it is over.
    pub fn search(&self, tell: &mut dyn FnMut(BlameProgress<'_>)) -> Result<BlameResult, Error> {
        let mut bisect = Bisect::new(self.suspects.len());
        loop {
            let suspect = |at: usize| self.suspects.get(at).cloned().ok_or(UserError::NoRuns);
            match bisect.next() {
                BisectNext::NeverRed => return Ok(BlameResult::NeverRed),
                BisectNext::AlwaysRed => return Ok(BlameResult::AlwaysRed),
                BisectNext::Broke { at, is_flaky } => {
                    return Ok(BlameResult::Broke { suspect: suspect(at)?, is_flaky });
                }
                BisectNext::Probe(at) => {
                    let suspect = suspect(at)?;
                    tell(BlameProgress::Begins { suspect: &suspect, left: bisect.left() });
                    let (how, output) = self.reruns.check(&suspect.commit, &self.check)?;
                    if let GuardRerunOutcome::Stopped(code) = how {
                        return Ok(BlameResult::Stopped(code));
                    }
                    let mut probe = BisectStep { suspect, how, output, left: 0 };
                    bisect.tell(!probe.is_green());
                    probe.left = bisect.left();
                    tell(BlameProgress::Ended(&probe));
                }
            }
        }
    }

    /// Added and removed lines of a commit, by file.
    pub fn numbers(&self, suspect: &BlameCandidate) -> Result<Vec<u8>, Error> {
        let parent = suspect.parent.as_deref().ok_or(UserError::NoCommit)?;
        self.git.show_diff(parent, &suspect.commit, DiffFormat::Numbers, &[])
    }
}
