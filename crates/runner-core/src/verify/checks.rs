//! The rules for checks: frozen before the work, valid, red first, green at the pass, with their files as they are frozen.

use super::compare::{Difference, shown};
use super::snapshot::{self, Files};
use super::{AuditedCommit, CommitChange, FileAfter, Rule};
use crate::commit_message::{CommitKind, IterationTarget};
use crate::config::VacuousPolicy;
use crate::layout::{checks_path, node_folder};
use crate::model::checks::{
    Check, CheckFilePath, CheckRecord, CheckRed, RedRecord, RedRule, TaskProof, decode, frozen_node,
};
use crate::model::id::NodeId;
use crate::model::repo_path::RepoPath;
use crate::model::tree::Tree;
use crate::step::{CheckEvidence, GreenRun, Job, Outcome};

/// A check file: its destination in the repository, and the frozen file that goes there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrozenFile {
    pub destination: Vec<u8>,
    pub source: Vec<u8>,
}

/// What a commit has at the destination of a check file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckFileAfter {
    pub destination: Vec<u8>,
    /// Whether it is the frozen file, byte for byte.
    pub is_frozen: bool,
}

/// The check files of the task that an iteration works on, by the files before it.
pub(super) fn frozen_files(files: &Files, kind: &CommitKind) -> Vec<FrozenFile> {
    let CommitKind::Iteration { target: IterationTarget::Node(node), .. } = kind else { return Vec::new() };
    let Some(toml) = files.get(checks_path(node).as_bytes()) else { return Vec::new() };
    let mut frozen = Vec::new();
    for check in decode(toml).unwrap_or_default() {
        for (destination, file) in &check.files {
            frozen.push(FrozenFile {
                destination: destination.as_str().into(),
                source: format!("{}/{file}", node_folder(node)).into_bytes(),
            });
        }
    }
    frozen
}

/// The trees before and after a commit, as far as they can be decoded.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlanChange<'a> {
    pub(super) before: Option<&'a Tree>,
    pub(super) after: Option<&'a Tree>,
}

/// Whose checks an iteration may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CheckAuthor {
    /// Those of tasks that it creates.
    Session,
    /// An accepted plan: also those of open tasks that have none.
    Plan,
}

fn is_open(tree: Option<&Tree>, node: &NodeId) -> bool {
    let path = tree.and_then(|tree| tree.path_to(node)).unwrap_or_default();
    path.last().is_some_and(|node| !node.passes)
}

/// Checks that an iteration wrote although their task existed before it, or does not exist after it.
pub(super) fn frozen_differences(
    commit: &AuditedCommit,
    files_before: &Files,
    files_after: &Files,
    plan: PlanChange<'_>,
    author: CheckAuthor,
) -> Vec<Difference> {
    let has = |tree: Option<&Tree>, node: &NodeId| tree.is_some_and(|tree| tree.path_to(node).is_some());
    let toml = |files: &Files, node: &NodeId| files.get(checks_path(node).as_bytes()).cloned();
    let mut differences = Vec::new();
    for CommitChange { path, .. } in &commit.changes {
        let name = RepoPath::of_bytes(path);
        let is_frozen = |node: &NodeId| {
            let is_open_without = author == CheckAuthor::Plan && toml(files_before, node).is_none();
            has(plan.before, node) && !(is_open_without && is_open(plan.before, node))
        };
        if frozen_node(path, is_frozen, |node| toml(files_before, node)).is_some() {
            differences.push(Difference::new(
                Rule::ChecksFrozen,
                format!("{name} as before"),
                format!("{name} changed"),
            ));
        }
        let Some(file) = CheckFilePath::parse(path) else { continue };
        let is_stray = file.is_checks_toml() && plan.after.is_some() && !has(plan.after, &file.node);
        if is_stray && toml(files_after, &file.node).is_some() {
            let expected = format!("checks only for tasks of the plan, and `{}` is none", file.node);
            differences.push(Difference::new(Rule::ChecksFrozen, expected, format!("{name} written")));
        }
    }
    differences
}

/// Invalid checks of tasks that a commit wrote.
pub(super) fn invalid_differences(
    commit: &AuditedCommit,
    files: &Files,
    tree: Option<&Tree>,
) -> Vec<Difference> {
    let Some(tree) = tree else { return Vec::new() };
    let mut differences = Vec::new();
    for CommitChange { path, now, .. } in &commit.changes {
        let Some(file) = CheckFilePath::parse(path).filter(CheckFilePath::is_checks_toml) else { continue };
        let path_to = tree.path_to(&file.node).unwrap_or_default();
        let (Some(node), FileAfter::File(_) | FileAfter::Other) = (path_to.last(), now) else { continue };
        let faults = match snapshot::task_checks(files, &file.node) {
            Some(Ok(checks)) => checks.point_faults(node.acceptance.len()),
            Some(Err(faults)) => faults,
            None => Vec::new(),
        };
        differences.extend(faults.iter().map(|fault| {
            let found = format!("{}: {}", checks_path(&file.node), shown(&fault.to_string()));
            Difference::new(Rule::ChecksInvalid, "valid checks", found)
        }));
    }
    differences
}

/// Check files that a pass did not commit as they are frozen, or that another iteration changed.
pub(super) fn file_differences(commit: &AuditedCommit, job: &Job, outcome: Outcome) -> Vec<Difference> {
    let mut differences = Vec::new();
    for destination in job.destinations() {
        let bytes = destination.to_bytes();
        if outcome == Outcome::Passed {
            let after = commit.check_files.iter().find(|file| file.destination == bytes);
            if !after.is_some_and(|file| file.is_frozen) {
                let expected = format!("{destination} as it is frozen");
                differences.push(Difference::new(
                    Rule::CheckFile,
                    expected,
                    format!("{destination} differs"),
                ));
            }
        } else if commit.changes.iter().any(|change| change.path == bytes) {
            let expected = format!("{destination} as before");
            differences.push(Difference::new(Rule::CheckFile, expected, format!("{destination} changed")));
        }
    }
    differences
}

/// Whether the checks of the task ran before its first session, and whether the run could go on after that.
pub(super) fn red_differences(job: &Job, records: &[CheckRecord]) -> Vec<Difference> {
    let Some(checks) = &job.task.checks else { return Vec::new() };
    let mut differences = Vec::new();
    let is_recorded =
        checks.task.checks.iter().all(|check| records.iter().any(|record| record.name == check.name));
    if checks.red.is_none() && !is_recorded {
        let expected = format!("how the checks of `{}` ended before the work", checks.node);
        differences.push(Difference::new(Rule::ChecksRed, expected, "no record of it"));
    }
    if checks.vacuous == VacuousPolicy::Stop && is_recorded {
        let reds =
            records.iter().map(|record| CheckRed { name: record.name.clone(), red: record.red, facts: None });
        let proof =
            TaskProof { node: checks.node.clone(), digest: checks.task.digest, checks: reds.collect() };
        for red in checks.unproven(&proof) {
            let expected = "no session on a task with a check that does not fail first";
            let found = format!("check `{}` was {}", red.name, red.red);
            differences.push(Difference::new(Rule::ChecksRed, expected, found));
        }
    }
    differences
}

/// Whether the checks of tasks above ran before the first session below them.
pub(super) fn above_differences(job: &Job, records: &[RedRecord]) -> Vec<Difference> {
    let mut differences = Vec::new();
    for task in &job.task.above {
        let is_recorded = |check: &Check| {
            records.iter().any(|record| record.node == task.node && record.name == check.name)
        };
        if !task.task.checks.iter().all(is_recorded) {
            let expected =
                format!("how the checks of `{}` ended before the first session below it", task.node);
            differences.push(Difference::new(Rule::ChecksRed, expected, "no record of it"));
        }
        let is_vacuous = |record: &&RedRecord| {
            let check = task.task.checks.iter().find(|check| check.name == record.name);
            record.node == task.node
                && !record.red.is_proof()
                && check.is_some_and(|check| check.red == RedRule::Required)
        };
        for record in records.iter().filter(|_| task.vacuous == VacuousPolicy::Stop).filter(is_vacuous) {
            let expected = "no session below a task with a check that does not fail first";
            let found = format!("check `{}` was {}", record.name, record.red);
            differences.push(Difference::new(Rule::ChecksRed, expected, found));
        }
    }
    differences
}

/// The checks that did not succeed although the outcome requires it.
pub(super) fn green_differences(evidence: &CheckEvidence, outcome: Outcome) -> Vec<Difference> {
    let (GreenRun::Ended { results, .. }, Outcome::Passed | Outcome::Unconfirmed | Outcome::GuardFailed) =
        (&evidence.green, outcome)
    else {
        return Vec::new();
    };
    let red = results.iter().filter(|result| !result.exit.is_green());
    red.map(|result| {
        let found = format!("check `{}` ended with {}", result.name, result.exit);
        Difference::new(Rule::ChecksGreen, "all checks green", found)
    })
    .collect()
}
