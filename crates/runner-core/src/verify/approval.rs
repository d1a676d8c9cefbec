//! The state after a start: how long a baseline, a final check and the approval of a plan last.

use super::auditor::Auditor;
use super::documents::DecodedDocuments;
use super::snapshot::{self, Files};
use crate::model::digest::Sha256;
use crate::model::heldout::after_start;
use crate::model::run_state::RunState;
use crate::model::tree::Tree;
use crate::runs::plan_digest::plan_digest;

impl DecodedDocuments {
    /// The digest of the plan, if it is approved.
    pub(super) fn approved_plan(&self, files: &Files) -> Option<Sha256> {
        let tree = self.tree.as_ref()?;
        let is_approved = self.state.as_ref().is_some_and(|state| state.plan_approval.is_some());
        is_approved.then(|| plan_digest(tree, &snapshot::all_checks(files, tree)))
    }
}

impl Auditor {
    /// The state after a start, which names what it found in the work tree.
    pub(super) fn state_after_start(
        &self,
        before: &RunState,
        is: &RunState,
        tree: Option<&Tree>,
    ) -> RunState {
        let has_same_guard = is.protection.as_ref().is_some_and(|protection| before.has_guard_of(protection));
        RunState {
            protection: is.protection.clone(),
            baseline: before.baseline.clone().filter(|_| has_same_guard),
            final_check: before.final_check_after(self.user_commit_count()).filter(|_| has_same_guard),
            instructions: is.instructions.clone(),
            heldout: after_start(&before.heldout, &is.heldout),
            environment: is.environment.clone(),
            plan_approval: self.approval_after_start(before, tree),
            ..before.clone()
        }
    }

    /// The approval after a start: it outlives one that leaves the plan as the runner's last commit had it.
    fn approval_after_start(&self, before: &RunState, tree: Option<&Tree>) -> Option<Sha256> {
        let approval = before.plan_approval?;
        let tree = tree?;
        let plan = plan_digest(tree, &snapshot::all_checks(&self.files, tree));
        (self.last.approved_plan == Some(plan)).then_some(approval)
    }
}
