//! `runner blame`: the first commit of a run that a check is red on.

use std::path::Path;

use runner_core::bisect::{Bisect, Next};
use runner_core::config::Config;
use runner_core::id::Iteration;
use runner_core::layout::Doc;
use runner_core::step::GuardExit;
use runner_core::verify::{Kind, kind};

use crate::error::{Error, Refusal};
use crate::git::Git;
use crate::history::{line, resolve};
use crate::looking::DiffForm;
use crate::rerun::{Check, Pinned, Rerun, Reruns};

/// A commit that may have broken the check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspect {
    /// The commit.
    pub commit: String,
    /// What it is.
    pub kind: Kind,
    parent: Option<String>,
}

/// The commits of a run from an iteration on, oldest first, and the check.
pub struct Blame {
    git: Git,
    reruns: Reruns,
    check: Check,
    /// The commits.
    pub suspects: Vec<Suspect>,
}

/// The check, run on one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The commit.
    pub suspect: Suspect,
    /// How the check ended.
    pub how: Rerun,
    /// The last lines that it printed.
    pub output: Vec<String>,
    /// How many commits are left to choose from.
    pub left: usize,
}

impl Probe {
    /// Whether the check is happy.
    pub fn is_green(&self) -> bool {
        self.how == Rerun::Ended(GuardExit::Code(0))
    }
}

/// How a search goes on.
#[derive(Clone, Copy, Debug)]
pub enum Going<'p> {
    /// The check is run on this commit, one of so many that are left.
    Begins { suspect: &'p Suspect, left: usize },
    /// The check is over.
    Ended(&'p Probe),
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Nothing is broken at the end.
    NeverRed,
    /// It was broken before.
    AlwaysRed,
    /// This commit broke it.
    Broke { suspect: Suspect, is_flaky: bool },
    /// The user stopped the search; this is the exit code that tells of it.
    Stopped(u8),
}

impl Blame {
    /// Gets ready to look in a run, the one that is named or the one here, from an iteration or from its start on. The
    /// check is a command, or the guard as it was pinned at the beginning.
    pub fn begin(
        dir: &Path,
        run: Option<&str>,
        from: Option<Iteration>,
        command: &[String],
    ) -> Result<Self, Error> {
        let git = Git::open(dir)?;
        let target = resolve(&git, run)?;
        let entries = line(&git, &mut git.batch()?, &target)?.entries;
        let suspects = entries.into_iter().map(|entry| Suspect {
            kind: kind(&entry.message),
            commit: entry.logged.id,
            parent: entry.parents.into_iter().next(),
        });
        let is_before = |suspect: &Suspect| from.is_some() && suspect.kind.iter() != from;
        let suspects: Vec<Suspect> = suspects.skip_while(is_before).collect();
        let first = suspects.first().ok_or_else(|| Refusal::NotARun(target.name.clone()))?;
        let config = git.file_at(&first.commit, Doc::Config.path())?;
        let config = Config::decode(&config).unwrap_or_default();
        let check = if command.is_empty() {
            let patterns = config.guard.protected.clone();
            Check {
                command: config.guard.command.words().to_vec(),
                pinned: Some(Pinned { commit: first.commit.clone(), patterns }),
                config,
            }
        } else {
            Check { command: command.to_vec(), pinned: None, config }
        };
        Ok(Self { reruns: Reruns::begin(dir)?, git, check, suspects })
    }

    /// What is run.
    pub fn command(&self) -> &[String] {
        &self.check.command
    }

    /// Searches; every run of the check is told, as it begins and as it is over.
    pub fn search(&self, tell: &mut dyn FnMut(Going<'_>)) -> Result<Found, Error> {
        let mut bisect = Bisect::new(self.suspects.len());
        loop {
            let suspect = |at: usize| self.suspects.get(at).cloned().ok_or(Refusal::NoRuns);
            match bisect.next() {
                Next::NeverRed => return Ok(Found::NeverRed),
                Next::AlwaysRed => return Ok(Found::AlwaysRed),
                Next::Broke { at, is_flaky } => return Ok(Found::Broke { suspect: suspect(at)?, is_flaky }),
                Next::Probe(at) => {
                    let suspect = suspect(at)?;
                    tell(Going::Begins { suspect: &suspect, left: bisect.left() });
                    let (how, output) = self.reruns.check(&suspect.commit, &self.check)?;
                    if let Rerun::Stopped(code) = how {
                        return Ok(Found::Stopped(code));
                    }
                    let mut probe = Probe { suspect, how, output, left: 0 };
                    bisect.tell(!probe.is_green());
                    probe.left = bisect.left();
                    tell(Going::Ended(&probe));
                }
            }
        }
    }

    /// Added and removed lines of a commit, by file.
    pub fn numbers(&self, suspect: &Suspect) -> Result<Vec<u8>, Error> {
        let parent = suspect.parent.as_deref().ok_or(Refusal::NoCommit)?;
        self.git.show_diff(parent, &suspect.commit, DiffForm::Numbers, &[])
    }
}
