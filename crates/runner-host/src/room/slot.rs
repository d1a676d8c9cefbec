//! The place of a run's guard while one process works on the run: what is made ready there beside a session.

use runner_core::config::{GuardConfig, IgnoredFiles};
use runner_core::model::id::RunId;
use runner_core::model::object_id::TreeId;

use super::{Candidate, GuardRoom, KeptStore, Room};
use crate::error::Error;
use crate::git::Git;
use crate::repo::repo_guard::GitAccess;

/// The place that was chosen for a run, while this process works on it.
#[derive(Debug, Default)]
pub(crate) struct RoomSlot {
    chosen: Option<ChosenRoom>,
}

#[derive(Debug)]
struct ChosenRoom {
    run: RunId,
    guard: GuardConfig,
    room: GuardRoom,
}

impl RoomSlot {
    /// The place of a run's guard. It is chosen when a run or its configuration is new, and not again: no candidate can decide
    /// where its own guard runs.
    pub(crate) fn at(
        &mut self,
        git: &Git,
        run: &RunId,
        guard: &GuardConfig,
        base: &Candidate,
    ) -> Result<&mut GuardRoom, Error> {
        let is_same = |chosen: &ChosenRoom| chosen.run == *run && chosen.guard == *guard;
        let chosen = match self.chosen.take().filter(is_same) {
            Some(chosen) => chosen,
            None => ChosenRoom {
                run: run.clone(),
                guard: guard.clone(),
                room: GuardRoom::choose(git, run, guard, base)?,
            },
        };
        Ok(&mut self.chosen.insert(chosen).room)
    }

    /// Removes what the last run of the guard left, beside a session. One that can write to the git directory can write to the
    /// room: there it is for [`Self::end_session`] to do. From now on no file of the work tree is known to be the user's.
    pub(crate) fn begin_session(&mut self, git: &Git, access: GitAccess) -> Result<(), Error> {
        if let Some(chosen) = self.chosen.as_ref().filter(|chosen| !chosen.guard.keep.is_empty()) {
            KeptStore::of_run(git, &chosen.run).close(git)?;
        }
        if let (Some(room), GitAccess::ReadOnly) = (self.warm_room(), access) {
            room.checkout.begin_clean(git);
        }
        Ok(())
    }

    /// Removes what the last run of the guard and the session left, beside other work.
    pub(crate) fn end_session(&mut self, git: &Git, access: GitAccess) {
        let Some(room) = self.warm_room() else { return };
        if access == GitAccess::Writable {
            room.checkout.mark_used();
        }
        room.checkout.begin_clean(git);
    }

    /// Begins to check out the files that the guard will run on.
    pub(crate) fn begin_update(&mut self, git: &Git, candidate: &TreeId) {
        if let Some(room) = self.warm_room() {
            room.begin_update(git, candidate);
        }
    }

    /// The room, if it stays from one run of the guard to the next.
    fn warm_room(&mut self) -> Option<&mut Room> {
        let chosen = self.chosen.as_mut()?;
        match &mut chosen.room {
            GuardRoom::Room(room) if chosen.guard.ignored == IgnoredFiles::Room => Some(room),
            GuardRoom::Room(_) | GuardRoom::InPlace { .. } => None,
        }
    }

    /// Why the guard runs in place; only once for each choice.
    pub(crate) fn take_reason(&mut self) -> Option<String> {
        match &mut self.chosen.as_mut()?.room {
            GuardRoom::InPlace { why } => why.take(),
            GuardRoom::Room(_) => None,
        }
    }
}
