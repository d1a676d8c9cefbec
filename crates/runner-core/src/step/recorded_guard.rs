//! Guard runs outside of an iteration: on the files of a commit, before a run's first session and after its last one. Each is
//! recorded in run_state.json, by a commit of its own.

use super::attempt::{GuardExit, GuardRun};
use super::next_state::guard_output;
use super::plan::SessionLimits;
use super::snapshot::Snapshot;
use crate::commit_message::{CommitKind, CommitMessage, Trailer};
use crate::config::{GuardConfig, IgnoredFiles, RoomMode};
use crate::model::digest::Sha256;
use crate::model::id::RunId;
use crate::model::object_id::TreeId;
use crate::model::protection::Protection;
use crate::model::run_state::{GuardResult, RecordedGuardRun, RunState, SEMANTICS};
use crate::step::RoomLevel;

/// When a recorded guard run happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardOccasion {
    /// Before the first session, on the untouched repository.
    Baseline,
    /// After all tasks passed, in a fresh checkout.
    Final,
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
}

impl GuardJob {
    pub(super) fn new(occasion: GuardOccasion, snapshot: &Snapshot) -> Self {
        Self {
            occasion,
            run_id: snapshot.run_id.clone(),
            guard: snapshot.config.guard.clone(),
            protection: snapshot.protection(),
            limits: SessionLimits::of(&snapshot.config),
        }
    }
}

/// The commit that records a guard run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardRecord {
    pub run_id: RunId,
    /// The run's state with the result in it.
    pub state: RunState,
    pub message: String,
}

impl GuardRecord {
    pub(super) fn new(occasion: GuardOccasion, snapshot: &Snapshot, guard: &GuardRun) -> Self {
        let recorded = Some(to_record(guard));
        let state = match occasion {
            GuardOccasion::Baseline => RunState { baseline: recorded, ..snapshot.state.clone() },
            GuardOccasion::Final => RunState { final_check: recorded, ..snapshot.state.clone() },
        };
        let candidate = guard.place().map_or_else(TreeId::none, |place| place.candidate.clone());
        let facts = RecordFacts {
            run: &snapshot.run_id,
            state: &state,
            candidate,
            user_commits: snapshot.user_commits,
        };
        let message = message(occasion, &facts);
        Self { run_id: snapshot.run_id.clone(), state, message }
    }
}

/// What the message of a recorded guard run is made of.
pub(crate) struct RecordFacts<'a> {
    pub(crate) run: &'a RunId,
    pub(crate) state: &'a RunState,
    /// The tree that the guard saw.
    pub(crate) candidate: TreeId,
    pub(crate) user_commits: u32,
}

/// A guard run as run_state.json records it.
pub(super) fn to_record(guard: &GuardRun) -> RecordedGuardRun {
    let no_result = |why: String| RecordedGuardRun {
        guard: GuardResult::Skipped,
        exit: "none".to_owned(),
        room: None,
        output: Some(why),
    };
    let room = guard.place().map(|place| place.room);
    match guard {
        GuardRun::Ended { exit: GuardExit::Code(0), .. } => {
            RecordedGuardRun { guard: GuardResult::Pass, exit: "0".to_owned(), room, output: None }
        }
        GuardRun::Ended { exit, .. } => {
            let output = Some(guard_output(guard).unwrap_or_default());
            RecordedGuardRun { guard: GuardResult::Fail, exit: exit.to_string(), room, output }
        }
        GuardRun::NotStarted { why } => no_result(why.clone()),
        GuardRun::TimedOut => no_result("the guard exceeded the time limit".to_owned()),
        GuardRun::Interrupted { .. } | GuardRun::Skipped => no_result("the guard did not run".to_owned()),
    }
}

/// The message of a commit that records a guard run. A function of the state that it holds, so that `verify` can rebuild it.
pub(crate) fn message(occasion: GuardOccasion, facts: &RecordFacts<'_>) -> String {
    let run_id = facts.run.clone();
    let recorded = recorded(occasion, facts.state);
    let (guard, exit) =
        recorded.map_or((GuardResult::Skipped, "none"), |record| (record.guard, record.exit.as_str()));
    let kind = match occasion {
        GuardOccasion::Baseline => CommitKind::Baseline { run_id, guard },
        GuardOccasion::Final => CommitKind::Final { run_id, guard },
    };
    let mut message = CommitMessage::new(kind).trailer(Trailer::GuardExit, exit);
    if let Some(room) = recorded.and_then(|record| record.room) {
        message = message.trailer(Trailer::Room, room);
    }
    if occasion == GuardOccasion::Final {
        message = message.trailer(Trailer::Candidate, &facts.candidate);
    }
    message
        .trailer(Trailer::State, Sha256::of(&facts.state.to_bytes()))
        .trailer(Trailer::Semantics, SEMANTICS)
        .user_commits(facts.user_commits)
        .to_string()
}

/// What a state records of this occasion.
pub(crate) fn recorded(occasion: GuardOccasion, state: &RunState) -> Option<&RecordedGuardRun> {
    match occasion {
        GuardOccasion::Baseline => state.baseline.as_ref(),
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
        (GuardResult::Skipped, GuardOccasion::Final) => false,
    };
    is_possible && record.room.is_none_or(|room| is_place_allowed(occasion, room, guard))
}

/// A final check in a room has a fresh checkout, whatever the configuration says about ignored files.
fn is_place_allowed(occasion: GuardOccasion, room: RoomLevel, guard: &GuardConfig) -> bool {
    match (occasion, room) {
        (GuardOccasion::Baseline, _) | (GuardOccasion::Final, RoomLevel::InPlace) => room.is_allowed(guard),
        (GuardOccasion::Final, RoomLevel::Bubblewrap { ignored }) => {
            guard.room != RoomMode::InPlace && ignored == IgnoredFiles::None
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
            let record = to_record(&run);
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
    fn a_final_check_in_a_room_has_a_fresh_checkout() {
        let record = |ignored| RecordedGuardRun {
            guard: GuardResult::Pass,
            exit: "0".to_owned(),
            room: Some(RoomLevel::Bubblewrap { ignored }),
            output: None,
        };
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
