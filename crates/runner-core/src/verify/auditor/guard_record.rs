//! Checks the commits that record a guard run outside of an iteration.

use super::{Auditor, CommitContext};
use crate::layout::Doc;
use crate::model::id::IterationNumber;
use crate::model::object_id::TreeId;
use crate::model::run_state::RunState;
use crate::step::GuardOccasion;
use crate::step::recorded_guard::{self, RecordFacts};
use crate::verify::Rule;
use crate::verify::compare::{self, Difference, PromptCheck, shown};
use crate::verify::edit;

impl Auditor {
    /// A recorded guard run changes nothing but the state. A baseline is recorded once, before the first iteration; a final check
    /// after all tasks passed.
    pub(super) fn guard_record_differences(
        &self,
        context: &CommitContext<'_>,
        occasion: GuardOccasion,
    ) -> Vec<Difference> {
        let mut differences = edit::scope_differences(context.commit, Doc::RunState);
        let (Some(was), Some(is), Some(config)) = (&self.docs.state, &context.after.state, &self.docs.config)
        else {
            return differences;
        };
        let has_passed = self.docs.tree.as_ref().is_some_and(|tree| tree.root().passes);
        let is_first = was.baseline.is_none() && was.next_iter == IterationNumber::FIRST;
        let guard = &config.guard;
        let (rule, is_due, when, expected) = match occasion {
            GuardOccasion::Baseline => {
                let expected = RunState { baseline: is.baseline.clone(), ..was.clone() };
                (Rule::Baseline, guard.baseline && is_first, "before the first iteration", expected)
            }
            GuardOccasion::Final => {
                let expected = RunState { final_check: is.final_check.clone(), ..was.clone() };
                (Rule::FinalCheck, guard.final_check && has_passed, "after all tasks passed", expected)
            }
        };
        differences.extend(compare::states(&expected, is));
        let record = recorded_guard::recorded(occasion, is);
        if !is_due || !record.is_some_and(|record| recorded_guard::is_possible(occasion, record, guard)) {
            let exit = record.map_or("none", |record| record.exit.as_str());
            let expected = format!("a possible guard result, {when}");
            differences.push(Difference::new(rule, expected, format!("guard exit {}", shown(exit))));
        }
        if differences.is_empty() {
            let facts = RecordFacts {
                run: &self.run,
                state: is,
                candidate: context.commit.candidate.clone().unwrap_or_else(TreeId::none),
                user_commits: self.user_commit_count(),
            };
            let message = recorded_guard::message(occasion, &facts);
            differences.extend(compare::messages(&message, context.text, PromptCheck::Derivable));
        }
        differences
    }
}
