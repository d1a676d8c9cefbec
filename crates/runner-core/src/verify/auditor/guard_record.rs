//! Checks the commits that record a guard run or checks outside of an iteration.

use super::{Auditor, CommitContext};
use crate::commit_message::Trailer;
use crate::config::Config;
use crate::layout::Doc;
use crate::model::checks::CheckExit;
use crate::model::heldout::HeldoutResult;
use crate::model::id::IterationNumber;
use crate::model::object_id::TreeId;
use crate::model::ratchet::{CheckSource, RecheckRecord};
use crate::model::repo_path::RepoPath;
use crate::model::run_state::{GuardResult, RunState};
use crate::step::baseline;
use crate::step::recheck::{passed_checks, passed_heldout};
use crate::step::recorded_guard::{self, RecordResults};
use crate::step::{
    GuardOccasion, GuardRecord, NextStep, RecordContent, RegressionTask, RoomLevel, SessionRequest, Snapshot,
    plan,
};
use crate::verify::compare::{self, Difference, PromptCheck, shown};
use crate::verify::{Rule, snapshot};

/// When a record may be made.
struct RecordRule {
    rule: Rule,
    is_due: bool,
    when: &'static str,
}

impl Auditor {
    /// A recorded run changes nothing but the state, and the plan if a check of a passed task failed. A baseline is recorded
    /// once per guard, before the next iteration; a final check after all tasks passed; a milestone when it is due.
    pub(super) fn guard_record_differences(
        &self,
        context: &CommitContext<'_>,
        occasion: GuardOccasion,
    ) -> Vec<Difference> {
        let (Some(docs), Some(is)) = (self.docs.complete(), &context.after.state) else {
            return scope_differences(context, None);
        };
        let user_commits = self.user_commit_count();
        let Some(before) = snapshot(context.files_before, &self.run, docs, user_commits) else {
            return scope_differences(context, None);
        };
        let RecordRule { rule, is_due, when } = record_rule(&before, occasion);
        let record = recorded_guard::recorded(occasion, is);
        let guard = &docs.config.guard;
        let is_possible = match occasion {
            GuardOccasion::Milestone => true,
            GuardOccasion::Baseline | GuardOccasion::Final => record.is_some_and(|record| {
                let is_next = record.next_iter == before.state.next_iter;
                is_next && recorded_guard::is_possible(occasion, record, guard)
            }),
        };
        let mut differences = Vec::new();
        if !is_due || !is_possible {
            let exit = record.map_or("none", |record| record.exit.as_str());
            let expected = format!("a possible result, {when}");
            differences.push(Difference::new(rule, expected, format!("guard exit {}", shown(exit))));
        }
        let results = self.record_results(context, occasion, is, docs.config);
        differences.extend(self.recheck_differences(&before, occasion, &results));
        if !differences.is_empty() {
            differences.extend(scope_differences(context, None));
            return differences;
        }
        let expected = GuardRecord::new(occasion, &before, &results);
        differences.extend(scope_differences(context, expected.regression.as_ref()));
        differences.extend(self.plan_differences(context, &before, &expected));
        differences.extend(compare::states(&expected.state, is));
        if differences.is_empty() {
            differences.extend(compare::messages(&expected.message, context.text, PromptCheck::Derivable));
        }
        differences
    }

    /// The results that a commit records, as far as they cannot be derived.
    fn record_results(
        &self,
        context: &CommitContext<'_>,
        occasion: GuardOccasion,
        is: &RunState,
        config: &Config,
    ) -> RecordResults {
        let guard = recorded_guard::recorded(occasion, is).cloned();
        let room = match occasion {
            GuardOccasion::Baseline | GuardOccasion::Final => guard.as_ref().and_then(|guard| guard.room),
            GuardOccasion::Milestone => {
                let named = context.parts.value(Trailer::Room).and_then(RoomLevel::parse);
                let allowed =
                    |room: &RoomLevel| recorded_guard::is_place_allowed(occasion, *room, &config.guard);
                let ignored = config.guard.ignored;
                Some(named.filter(allowed).unwrap_or(RoomLevel::Bubblewrap { ignored }))
            }
        };
        RecordResults {
            guard,
            room,
            candidate: context.commit.candidate.clone().unwrap_or_else(TreeId::none),
            rechecks: context.parts.values(Trailer::Recheck).filter_map(RecheckRecord::parse).collect(),
        }
    }

    /// Checks of passed tasks that a record leaves out, adds or blames on an iteration that cannot be.
    fn recheck_differences(
        &self,
        before: &Snapshot,
        occasion: GuardOccasion,
        results: &RecordResults,
    ) -> Vec<Difference> {
        let has_run = match occasion {
            GuardOccasion::Baseline => false,
            GuardOccasion::Milestone => true,
            GuardOccasion::Final => {
                results.guard.as_ref().is_some_and(|guard| guard.guard == GuardResult::Pass)
            }
        };
        let mut expected = Vec::new();
        for task in passed_checks(before).iter().filter(|_| has_run) {
            for check in &task.task.checks {
                let found = results.rechecks.get(expected.len());
                expected.push(RecheckRecord {
                    node: task.node.clone(),
                    name: check.name.clone(),
                    exit: found.map_or(CheckExit::Code(0), |found| found.exit),
                    digest: task.task.digest,
                    broken_by: found.and_then(|found| found.broken_by),
                    source: CheckSource::Task,
                });
            }
        }
        for task in passed_heldout(before).iter().filter(|_| has_run) {
            for check in &task.checks {
                let found = results.rechecks.get(expected.len());
                let is_green = found.is_none_or(|found| found.exit.is_green());
                let result = if is_green { HeldoutResult::Pass } else { HeldoutResult::Fail };
                expected.push(RecheckRecord {
                    node: task.node.clone(),
                    name: check.name.clone(),
                    exit: result.to_exit(),
                    digest: task.digest,
                    broken_by: None,
                    source: CheckSource::Heldout,
                });
            }
        }
        let mut differences = Vec::new();
        let nth = (0..expected.len().max(results.rechecks.len()))
            .find(|nth| expected.get(*nth) != results.rechecks.get(*nth));
        if let Some(nth) = nth {
            let text = |record: Option<&RecheckRecord>| {
                record.map_or_else(|| "no further check".to_owned(), ToString::to_string)
            };
            let (wanted, found) = (text(expected.get(nth)), text(results.rechecks.get(nth)));
            differences.push(Difference::new(Rule::Recheck, wanted, shown(&found)));
        }
        let wrong = results.rechecks.iter().filter(|record| !self.can_be_broken_by(before, record));
        differences.extend(wrong.map(|record| {
            let expected = "an iteration of this run, since the task passed";
            Difference::new(Rule::Recheck, expected, shown(&record.to_string()))
        }));
        differences
    }

    /// Whether the iteration that a record blames comes after the pass of the task, as far as that is known.
    fn can_be_broken_by(&self, before: &Snapshot, record: &RecheckRecord) -> bool {
        let Some(iter) = record.broken_by else { return true };
        let passed = self.passes.get(&record.node).copied().unwrap_or(IterationNumber::FIRST);
        !record.exit.is_green() && passed <= iter && iter < before.state.next_iter
    }

    /// The task that a failure adds: its place in the plan, and its files.
    fn plan_differences(
        &self,
        context: &CommitContext<'_>,
        before: &Snapshot,
        expected: &GuardRecord,
    ) -> Vec<Difference> {
        let mut differences = Vec::new();
        let task = expected.regression.as_ref();
        let tree = task.map_or(&before.tree, |task| &task.tree);
        if let Some(found) = &context.after.tree
            && let Some(difference) = compare::trees(&before.tree, tree, found)
        {
            differences.push(Difference { rule: Rule::Regression, ..difference });
        }
        for file in task.into_iter().flat_map(|task| &task.files) {
            let found = self.files.get(file.path.as_bytes());
            let wanted = match &file.content {
                RecordContent::Bytes(bytes) => Some(bytes),
                RecordContent::CopyOf(source) => context.files_before.get(source.as_bytes()),
            };
            if wanted.is_none() || wanted != found {
                let expected = format!("{} with the checks that failed", file.path);
                differences.push(Difference::new(
                    Rule::Regression,
                    expected,
                    format!("{} differs", file.path),
                ));
            }
        }
        differences
    }
}

/// When a record may be made, and the rule about it.
fn record_rule(before: &Snapshot, occasion: GuardOccasion) -> RecordRule {
    let Snapshot { config, tree, .. } = before;
    match occasion {
        GuardOccasion::Baseline => {
            let is_due = baseline::is_due(before);
            RecordRule { rule: Rule::Baseline, is_due, when: "before the first iteration with this guard" }
        }
        GuardOccasion::Milestone => {
            let is_due = matches!(plan(before, SessionRequest::Next), Ok(NextStep::Milestone(_)));
            RecordRule { rule: Rule::Recheck, is_due, when: "after a task with parts passed" }
        }
        GuardOccasion::Final => {
            let is_due = config.guard.final_check && tree.root().passes;
            RecordRule { rule: Rule::FinalCheck, is_due, when: "after all tasks passed" }
        }
    }
}

/// Files that a commit changed besides the state, and besides the plan and the files of the task that it adds.
fn scope_differences(context: &CommitContext<'_>, task: Option<&RegressionTask>) -> Vec<Difference> {
    let is_expected = |path: &[u8]| {
        let is_of_task = |task: &RegressionTask| {
            path == Doc::Tree.path().as_bytes() || task.files.iter().any(|file| file.path.as_bytes() == path)
        };
        path == Doc::RunState.path().as_bytes() || task.is_some_and(is_of_task)
    };
    let others = context.commit.changes.iter().filter(|change| !is_expected(&change.path));
    others
        .map(|change| {
            let path = RepoPath::of_bytes(&change.path);
            let expected = format!("{} alone", Doc::RunState.path());
            Difference::new(Rule::EditScope, expected, format!("{path} changed"))
        })
        .collect()
}
