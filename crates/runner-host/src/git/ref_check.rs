//! Whether git could create or move a branch, found out without changing it.

use runner_core::model::object_id::{BranchName, CommitId};

use super::{Git, lossy};
use crate::error::{Error, UserError};

impl Git {
    /// Refuses if git could not move a branch from one commit to another; without `from`, if it could not create it. Git
    /// prepares the update and aborts it, so every cause that it would fail for is found.
    pub(crate) fn refuse_blocked_branch(
        &self,
        branch: &BranchName,
        from: Option<&CommitId>,
        to: &CommitId,
    ) -> Result<(), Error> {
        let reference = branch.reference();
        let from = from.map_or_else(|| self.null_id(), ToString::to_string);
        let request = format!("start\nupdate {reference} {to} {from}\nprepare\nabort\n");
        let output =
            self.call(&["update-ref", "--no-deref", "--stdin"]).input(request.as_bytes()).output()?;
        if output.status.success() {
            return Ok(());
        }
        Err(UserError::BranchBlocked { branch: branch.to_string(), stderr: lossy(&output.stderr) }.into())
    }
}
