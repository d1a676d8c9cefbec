//! What the commands of tasks' checks depend on: protected from the commit in which the checks appear.
//!
//! A check differs from the guard in two ways. Its script may be the work of the task, so what does not exist yet when the
//! checks appear is for the session to write; it is protected from the pass on. And its command may run the work itself, so a
//! script counts as a part of the check only by the words of its path.

use std::collections::BTreeMap;

use super::{Origin, RepoFiles, Search};
use crate::config::GuardConfig;
use crate::layout::checks_path;
use crate::model::checks::{Check, decode};
use crate::model::id::NodeId;
use crate::model::protection::{CheckProtection, CheckStage, Protection};
use crate::model::repo_path::RepoPath;
use crate::model::run_state::RunState;
use crate::model::tree::Tree;

/// Words in the path of a script that is a part of a check.
const SCRIPT_WORDS: [&str; 24] = [
    "accept",
    "acceptance",
    "assert",
    "check",
    "checker",
    "checks",
    "ci",
    "e2e",
    "integration",
    "lint",
    "qa",
    "runtest",
    "runtests",
    "selftest",
    "smoke",
    "spec",
    "specs",
    "test",
    "testing",
    "tests",
    "validate",
    "validation",
    "verification",
    "verify",
];

/// What a commit must record as protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DerivedProtection {
    pub protection: Protection,
    /// Files of checks that were there before any work on their tasks, or with their pass.
    pub pinned: Vec<RepoPath>,
}

/// The checks of a run at a commit.
#[derive(Clone, Copy, Debug)]
pub struct RunChecks<'a> {
    pub guard: &'a GuardConfig,
    pub state: &'a RunState,
    pub tree: &'a Tree,
    /// The nodes that have a checks.toml.
    pub nodes: &'a [NodeId],
}

impl RunChecks<'_> {
    /// The tasks whose checks the run's protection does not follow yet.
    fn unfollowed(&self) -> BTreeMap<NodeId, CheckStage> {
        let protection = self.state.protection.as_ref().filter(|_| self.guard.protected.is_none());
        let Some(protection) = protection else { return BTreeMap::new() };
        let stage = |node: &NodeId| {
            let passes = self.tree.path_to(node).and_then(|path| Some(path.last()?.passes));
            if passes == Some(true) { CheckStage::Passed } else { CheckStage::Open }
        };
        let stages = self.nodes.iter().map(|node| (node.clone(), stage(node)));
        stages.filter(|(node, stage)| protection.checks.tasks.get(node) != Some(stage)).collect()
    }

    /// Whether there are checks that the run's protection does not follow yet.
    pub fn has_unfollowed(&self) -> bool {
        !self.unfollowed().is_empty()
    }

    /// Follows them, with the files of the commit; none if there are none.
    pub fn follow(&self, repo: &dyn RepoFiles) -> Option<DerivedProtection> {
        let mut stages = BTreeMap::new();
        let mut checks: Vec<Check> = Vec::new();
        for (node, stage) in self.unfollowed() {
            let Ok(found) = decode(&repo.read(&checks_path(&node)).unwrap_or_default()) else { continue };
            checks.extend(found);
            stages.insert(node, stage);
        }
        let before = self.state.protection.clone().filter(|_| !stages.is_empty())?;
        let mut search = Search::new(repo, Origin::Check);
        for check in &checks {
            search.start(check.command.words());
        }
        let mut found = search.found;
        // Check files are put at their destinations whatever a session does.
        for path in checks.iter().flat_map(|check| check.files.keys()) {
            found.files.remove(path.as_str());
            found.missing.remove(path.as_str());
        }
        let is_there = |path: &&String| repo.read(path).is_some() || repo.link(path).is_some();
        let existing = found.files.iter().filter(is_there);
        let pinned = existing.map(|path| RepoPath::of_bytes(path.as_bytes())).collect();
        let added = found.into_protection();
        let CheckProtection { mut tasks, files, missing, entries } = before.checks;
        tasks.extend(stages);
        let known = Protection { files, missing, entries, ..Protection::default() };
        let Protection { files, missing, entries, .. } = known.with(added);
        let checks = CheckProtection { tasks, files, missing, entries };
        Some(DerivedProtection { protection: Protection { checks, ..before }, pinned })
    }
}

/// Whether a script belongs to a check, by its path; any other may be the work.
pub(super) fn is_check_script(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    lower.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| SCRIPT_WORDS.contains(&word))
}

/// Whether the tests that arguments select by name are all in this text. Others are for the session to write.
pub(super) fn has_selected_tests(args: &[String], selected: &[&str], text: &str) -> bool {
    let by_option = args.windows(2).filter_map(|pair| match pair {
        [option, value] if matches!(option.as_str(), "-k" | "-t" | "--test-name-pattern") => {
            Some(value.as_str())
        }
        _ => None,
    });
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let words = by_option.chain(selected.iter().copied()).flat_map(|name| name.split(|c| !is_word(c)));
    let mut names = words.filter(|word| !word.is_empty() && !matches!(*word, "and" | "or" | "not"));
    names.all(|name| text.contains(name))
}
