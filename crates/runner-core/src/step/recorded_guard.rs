//! Guard runs and checks outside of an iteration: on the files of a commit, before the first session with this guard, after a
//! task with parts passed, and after the last session. Each is recorded in run_state.json, by a commit of its own.

use super::attempt::{GuardExit, GuardRun};
use super::next_state::guard_output;
use super::plan::SessionLimits;
use super::recheck::{PassedChecks, passed_checks, passed_heldout};
use super::regression::{RegressionTask, regression};
use super::snapshot::Snapshot;
use crate::commit_message::{CommitKind, CommitMessage, Trailer};
use crate::config::{GuardConfig, IgnoredFiles, RoomMode};
use crate::model::digest::Sha256;
use crate::model::heldout::HeldoutTask;
use crate::model::id::{IterationNumber, RunId};
use crate::model::object_id::TreeId;
use crate::model::protection::Protection;
use crate::model::ratchet::{Ratchet, RecheckRecord};
use crate::model::run_state::{GuardResult, RecordedGuardRun, RunState, SEMANTICS};
use crate::step::RoomLevel;

/// When a recorded guard run happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardOccasion {
    /// Before the first session, on the untouched repository, and before the first session with another guard.
    Baseline,
    /// After a task with parts passed: checks alone.
    Milestone,
    /// After all tasks passed, in a fresh checkout: the guard, and then checks.
    Final,
}

impl GuardOccasion {
    /// Which ignored files the guard finds in its room. A final check has none, unless the configuration says that the guard
    /// needs those of the work tree: then no pass of the run is without them.
    pub fn ignored_files(self, guard: &GuardConfig) -> IgnoredFiles {
        match (self, guard.ignored) {
            (Self::Baseline | Self::Milestone, ignored) => ignored,
            (Self::Final, IgnoredFiles::Worktree) => IgnoredFiles::Worktree,
            (Self::Final, IgnoredFiles::Room | IgnoredFiles::None) => IgnoredFiles::None,
        }
    }
}

/// A guard run on the files of the last commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardJob {
    pub occasion: GuardOccasion,
    pub run_id: RunId,
    pub guard: GuardConfig,
    /// What the guard may not change.
    pub protection: Protection,
    pub limits: SessionLimits,
    /// The checks of passed tasks that run again.
    pub checks: Vec<PassedChecks>,
    /// The held-out checks of passed tasks, which run again too.
    pub heldout: Vec<HeldoutTask>,
}

impl GuardJob {
    pub(super) fn new(occasion: GuardOccasion, snapshot: &Snapshot) -> Self {
        Self {
            occasion,
            run_id: snapshot.run_id.clone(),
            guard: snapshot.config.guard.clone(),
            protection: snapshot.protection(),
            limits: SessionLimits::of(&snapshot.config),
            checks: match occasion {
                GuardOccasion::Baseline => Vec::new(),
                GuardOccasion::Milestone | GuardOccasion::Final => passed_checks(snapshot),
            },
            heldout: match occasion {
                GuardOccasion::Baseline => Vec::new(),
                GuardOccasion::Milestone | GuardOccasion::Final => passed_heldout(snapshot),
            },
        }
    }
}

/// The commit that records a guard run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardRecord {
    pub run_id: RunId,
    /// The run's state with the result in it.
    pub state: RunState,
    /// The task that it adds.
    pub regression: Option<RegressionTask>,
    pub message: String,
}

/// What ran outside of an iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordResults {
    /// The guard's result; none at a milestone.
    pub(crate) guard: Option<RecordedGuardRun>,
    /// Where guard or checks ran.
    pub(crate) room: Option<RoomLevel>,
    /// The tree that the guard saw.
    pub(crate) candidate: TreeId,
    /// How checks of passed tasks ended.
    pub(crate) rechecks: Vec<RecheckRecord>,
}

impl RecordResults {
    /// The results of a guard run alone.
    pub(super) fn of_guard(guard: &GuardRun, next_iter: IterationNumber) -> Self {
        Self {
            guard: Some(to_record(guard, next_iter)),
            room: guard.place().map(|place| place.room),
            candidate: guard.place().map_or_else(TreeId::none, |place| place.candidate.clone()),
            rechecks: Vec::new(),
        }
    }

    /// Whether all checks that ran again succeeded.
    fn checks(&self) -> GuardResult {
        let is_green = self.rechecks.iter().all(|record| record.exit.is_green());
        if is_green { GuardResult::Pass } else { GuardResult::Fail }
    }
}

impl GuardRecord {
    pub(crate) fn new(occasion: GuardOccasion, snapshot: &Snapshot, results: &RecordResults) -> Self {
        let before = snapshot.state.clone();
        let regression = regression(snapshot, &results.rechecks);
        let ratchet = || next_ratchet(&before.ratchet, results, regression.as_ref());
        let state = match occasion {
            GuardOccasion::Baseline => RunState { baseline: results.guard.clone(), ..before },
            GuardOccasion::Milestone => RunState { ratchet: ratchet(), ..before },
            GuardOccasion::Final => {
                RunState { final_check: results.guard.clone(), ratchet: ratchet(), ..before }
            }
        };
        let message = message(occasion, snapshot, results, &state, regression.as_ref());
        Self { run_id: snapshot.run_id.clone(), state, regression, message }
    }
}

/// What stays on record about checks that ran again: failures without a task. The final check runs all of them again.
fn next_ratchet(before: &Ratchet, results: &RecordResults, task: Option<&RegressionTask>) -> Ratchet {
    let reds = results.rechecks.iter().filter(|record| !record.exit.is_green());
    let regressed: Vec<RecheckRecord> = if task.is_some() { Vec::new() } else { reds.cloned().collect() };
    Ratchet { due: Vec::new(), tasks: before.tasks.saturating_add(u32::from(task.is_some())), regressed }
}

/// A guard run as run_state.json records it.
pub(super) fn to_record(guard: &GuardRun, next_iter: IterationNumber) -> RecordedGuardRun {
    let no_result = |why: String| RecordedGuardRun {
        guard: GuardResult::Skipped,
        exit: "none".to_owned(),
        room: None,
        output: Some(why),
        next_iter,
    };
    let room = guard.place().map(|place| place.room);
    match guard {
        GuardRun::Ended { exit: GuardExit::Code(0), .. } => {
            RecordedGuardRun { guard: GuardResult::Pass, exit: "0".to_owned(), room, output: None, next_iter }
        }
        GuardRun::Ended { exit, .. } => {
            let output = Some(guard_output(guard).unwrap_or_default());
            RecordedGuardRun { guard: GuardResult::Fail, exit: exit.to_string(), room, output, next_iter }
        }
        GuardRun::NotStarted { why } => no_result(why.clone()),
        GuardRun::TimedOut => no_result("the guard exceeded the time limit".to_owned()),
        GuardRun::Interrupted { .. } | GuardRun::Skipped => no_result("the guard did not run".to_owned()),
    }
}

/// The message of a commit that records a guard run or checks.
fn message(
    occasion: GuardOccasion,
    snapshot: &Snapshot,
    results: &RecordResults,
    state: &RunState,
    task: Option<&RegressionTask>,
) -> String {
    let run_id = snapshot.run_id.clone();
    let record = results.guard.as_ref();
    let (guard, exit) =
        record.map_or((GuardResult::Skipped, "none"), |record| (record.guard, record.exit.as_str()));
    let mut message = CommitMessage::new(match occasion {
        GuardOccasion::Baseline => CommitKind::Baseline { run_id, guard },
        GuardOccasion::Milestone => CommitKind::Milestone { run_id, checks: results.checks() },
        GuardOccasion::Final => CommitKind::Final { run_id, guard },
    });
    if occasion != GuardOccasion::Milestone {
        message = message.trailer(Trailer::GuardExit, exit);
    }
    if let Some(room) = results.room {
        message = message.trailer(Trailer::Room, room);
    }
    if occasion == GuardOccasion::Final {
        message = message.trailer(Trailer::Candidate, &results.candidate);
    }
    for record in &results.rechecks {
        message = message.trailer(Trailer::Recheck, record);
    }
    if let Some(task) = task {
        message = message.trailer(Trailer::Tree, task.tree.sha256());
    }
    message
        .trailer(Trailer::State, Sha256::of(&state.to_bytes()))
        .trailer(Trailer::Semantics, SEMANTICS)
        .user_commits(snapshot.user_commits)
        .to_string()
}

/// What a state records of this occasion.
pub(crate) fn recorded(occasion: GuardOccasion, state: &RunState) -> Option<&RecordedGuardRun> {
    match occasion {
        GuardOccasion::Baseline => state.baseline.as_ref(),
        GuardOccasion::Milestone => None,
        GuardOccasion::Final => state.final_check.as_ref(),
    }
}

/// Whether a guard run can have produced this record.
pub(crate) fn is_possible(occasion: GuardOccasion, record: &RecordedGuardRun, guard: &GuardConfig) -> bool {
    let has_output = record.output.is_some();
    let has_room = record.room.is_some();
    let is_possible = match (record.guard, occasion) {
        (GuardResult::Pass, _) => record.exit == "0" && has_room && !has_output,
        (GuardResult::Fail, _) => !matches!(record.exit.as_str(), "0" | "none") && has_room && has_output,
        (GuardResult::Skipped, GuardOccasion::Baseline) => record.exit == "none" && !has_room && has_output,
        // Without a result there is nothing to record: the next loop runs it again.
        (GuardResult::Skipped, GuardOccasion::Milestone | GuardOccasion::Final) => false,
    };
    is_possible && record.room.is_none_or(|room| is_place_allowed(occasion, room, guard))
}

/// Whether a guard can have run at this level on this occasion.
pub(crate) fn is_place_allowed(occasion: GuardOccasion, room: RoomLevel, guard: &GuardConfig) -> bool {
    match (occasion, room) {
        (GuardOccasion::Baseline | GuardOccasion::Milestone, _)
        | (GuardOccasion::Final, RoomLevel::InPlace) => room.is_allowed(guard),
        (GuardOccasion::Final, RoomLevel::Bubblewrap { ignored }) => {
            guard.room != RoomMode::InPlace && ignored == occasion.ignored_files(guard)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::{GuardPlace, Interruption};

    #[test]
    fn every_guard_run_becomes_a_possible_record() {
        let ended = |exit| GuardRun::Ended {
            exit,
            output: b"printed\n".to_vec(),
            place: GuardPlace::in_place(TreeId::none()),
        };
        let config = GuardConfig::default();
        let cases = [
            (ended(GuardExit::Code(0)), GuardResult::Pass, "0"),
            (ended(GuardExit::Code(3)), GuardResult::Fail, "3"),
            (ended(GuardExit::Signal(9)), GuardResult::Fail, "signal 9"),
            (GuardRun::NotStarted { why: "gone".to_owned() }, GuardResult::Skipped, "none"),
            (GuardRun::TimedOut, GuardResult::Skipped, "none"),
            (GuardRun::Interrupted { by: Interruption::Int }, GuardResult::Skipped, "none"),
        ];
        for (run, guard, exit) in cases {
            let record = to_record(&run, IterationNumber::FIRST);
            assert_eq!((record.guard, record.exit.as_str()), (guard, exit), "{run:?}");
            assert!(is_possible(GuardOccasion::Baseline, &record, &config), "{run:?}");
            let is_final = is_possible(GuardOccasion::Final, &record, &config);
            assert_eq!(is_final, guard != GuardResult::Skipped, "{run:?}");
            let exit = if exit == "0" { "1" } else { "0" }.to_owned();
            let forged = RecordedGuardRun { exit, ..record };
            for occasion in [GuardOccasion::Baseline, GuardOccasion::Final] {
                assert!(!is_possible(occasion, &forged, &config), "{run:?}");
            }
        }
    }

    #[test]
    fn a_final_check_in_a_room_has_a_fresh_checkout_and_ignored_files_only_if_the_guard_needs_them() {
        let record = |ignored| RecordedGuardRun {
            guard: GuardResult::Pass,
            exit: "0".to_owned(),
            room: Some(RoomLevel::Bubblewrap { ignored }),
            output: None,
            next_iter: IterationNumber::FIRST,
        };
        let needs = GuardConfig { ignored: IgnoredFiles::Worktree, ..GuardConfig::default() };
        for (ignored, allowed) in [(IgnoredFiles::Worktree, true), (IgnoredFiles::None, false)] {
            assert_eq!(is_possible(GuardOccasion::Final, &record(ignored), &needs), allowed, "{ignored}");
        }
        let config = |room| GuardConfig { room, ..GuardConfig::default() };
        for (ignored, mode, allowed) in [
            (IgnoredFiles::None, RoomMode::Auto, true),
            (IgnoredFiles::None, RoomMode::Require, true),
            (IgnoredFiles::None, RoomMode::InPlace, false),
            (IgnoredFiles::Room, RoomMode::Auto, false),
            (IgnoredFiles::Worktree, RoomMode::Auto, false),
        ] {
            let found = is_possible(GuardOccasion::Final, &record(ignored), &config(mode));
            assert_eq!(found, allowed, "{ignored} {mode:?}");
        }
    }
}
