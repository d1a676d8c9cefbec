//! The baseline: the guard's result on the untouched repository, before a run's first session. It shows what already
//! failed before any agent ran.

use super::attempt::{GuardExit, GuardRun};
use super::event::Event;
use super::next_state::guard_output;
use super::outcome::StopReason;
use super::plan::{Job, NextStep, plan};
use super::snapshot::Snapshot;
use super::{LoadedRun, LoopWorld, WaitResult, World};
use crate::commit_message::{CommitKind, CommitMessage, Trailer};
use crate::model::digest::Sha256;
use crate::model::id::{IterationNumber, RunId};
use crate::model::object_id::CommitId;
use crate::model::run_state::{Baseline, GuardResult, RunState, SEMANTICS};

/// A world in which the guard can run before the first session.
pub trait BaselineWorld: World {
    /// Runs the guard on the work tree as it is.
    fn run_baseline_guard(&mut self, run: &LoadedRun, job: &Job) -> Result<GuardRun, Self::Error>;

    /// Commits the result, and restores what the guard changed.
    fn commit_baseline(
        &mut self,
        run: &LoadedRun,
        baseline: &BaselineCommit,
    ) -> Result<CommitId, Self::Error>;
}

/// The state that `runner step` and `runner loop` begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunStart {
    Ready(Box<LoadedRun>),
    /// The user interrupted the guard or wants to stop; nothing was written.
    Stopped(StopReason),
}

/// The commit that records a baseline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaselineCommit {
    pub run_id: RunId,
    /// The run's state with the baseline in it.
    pub state: RunState,
    pub message: String,
}

/// Loads the run for one step, and runs the baseline guard first if it is due.
pub fn begin_step<W: BaselineWorld>(world: &mut W) -> Result<RunStart, W::Error> {
    let run = world.load()?;
    if is_due(&run.snapshot) { run_baseline(world, run) } else { Ok(RunStart::Ready(Box::new(run))) }
}

/// Loads the run for a loop. Unlike a step, a loop that is paused does not run the guard before it is resumed.
pub fn begin_loop<W: BaselineWorld + LoopWorld>(world: &mut W) -> Result<RunStart, W::Error> {
    let run = world.load()?;
    if !is_due(&run.snapshot) {
        return Ok(RunStart::Ready(Box::new(run)));
    }
    match world.wait_for_next(None)? {
        WaitResult::Immediate => run_baseline(world, run),
        WaitResult::Waited => begin_step(world),
        WaitResult::Stop(stop) => Ok(RunStart::Stopped(stop)),
    }
}

/// Runs the guard on the untouched repository and commits its result. Meanwhile the repository may have changed, so
/// the state is loaded again.
fn run_baseline<W: BaselineWorld>(world: &mut W, run: LoadedRun) -> Result<RunStart, W::Error> {
    let NextStep::Work(job) = plan(&run.snapshot)? else { return Ok(RunStart::Ready(Box::new(run))) };
    world.announce(&Event::BaselineStarted { command: job.guard.command.clone() });
    let guard = world.run_baseline_guard(&run, &job)?;
    if let GuardRun::Interrupted { by } = guard {
        return Ok(RunStart::Stopped(StopReason::Interrupted { by }));
    }
    let baseline = to_baseline(&guard);
    world.commit_baseline(&run, &baseline_commit(&run.snapshot, baseline.clone()))?;
    let Baseline { guard, exit, .. } = baseline;
    world.announce(&Event::BaselineEnded { guard, exit, command: job.guard.command });
    Ok(RunStart::Ready(Box::new(world.load()?)))
}

/// Whether the guard must run before the next session: once per run, before its first iteration.
fn is_due(snapshot: &Snapshot) -> bool {
    let Snapshot { state, config, .. } = snapshot;
    config.guard.baseline && state.baseline.is_none() && state.next_iter == IterationNumber::FIRST
}

/// A guard run as run_state.json records it.
fn to_baseline(guard: &GuardRun) -> Baseline {
    let no_result = |why: String| Baseline {
        guard: GuardResult::Skipped,
        exit: "none".to_owned(),
        room: None,
        output: Some(why),
    };
    let room = guard.place().map(|place| place.room);
    match guard {
        GuardRun::Ended { exit: GuardExit::Code(0), .. } => {
            Baseline { guard: GuardResult::Pass, exit: "0".to_owned(), room, output: None }
        }
        GuardRun::Ended { exit, .. } => {
            let output = Some(guard_output(guard).unwrap_or_default());
            Baseline { guard: GuardResult::Fail, exit: exit.to_string(), room, output }
        }
        GuardRun::NotStarted { why } => no_result(why.clone()),
        GuardRun::TimedOut => no_result("the guard exceeded the time limit".to_owned()),
        GuardRun::Interrupted { .. } | GuardRun::Skipped => no_result("the guard did not run".to_owned()),
    }
}

fn baseline_commit(snapshot: &Snapshot, baseline: Baseline) -> BaselineCommit {
    let state = RunState { baseline: Some(baseline), ..snapshot.state.clone() };
    let message = message(&snapshot.run_id, &state, snapshot.user_commits);
    BaselineCommit { run_id: snapshot.run_id.clone(), state, message }
}

/// The message of a baseline commit. A function of the state that it holds, so that `verify` can rebuild it.
pub(crate) fn message(run: &RunId, state: &RunState, user_commits: u32) -> String {
    let (guard, exit) = state
        .baseline
        .as_ref()
        .map_or((GuardResult::Skipped, "none"), |baseline| (baseline.guard, baseline.exit.as_str()));
    let mut message = CommitMessage::new(CommitKind::Baseline { run_id: run.clone(), guard })
        .trailer(Trailer::GuardExit, exit);
    if let Some(room) = state.baseline.as_ref().and_then(|baseline| baseline.room) {
        message = message.trailer(Trailer::Room, room);
    }
    message
        .trailer(Trailer::State, Sha256::of(&state.to_bytes()))
        .trailer(Trailer::Semantics, SEMANTICS)
        .user_commits(user_commits)
        .to_string()
}

/// Whether a guard run can have produced this baseline.
pub(crate) fn is_possible(baseline: &Baseline) -> bool {
    let has_output = baseline.output.is_some();
    let has_room = baseline.room.is_some();
    match baseline.guard {
        GuardResult::Pass => baseline.exit == "0" && has_room && !has_output,
        GuardResult::Fail => !matches!(baseline.exit.as_str(), "0" | "none") && has_room && has_output,
        GuardResult::Skipped => baseline.exit == "none" && !has_room && has_output,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::layout::Doc;
    use crate::model::object_id::TreeId;
    use crate::model::repo_path::RepoPath;
    use crate::model::tree::Tree;
    use crate::model::tree::sample::{leaf, passed, tree};
    use crate::prompt::PromptError;
    use crate::step::{Attempt, Interruption, IterationWorld, Transition};
    use crate::step::{GuardPlace, RoomLevel};
    use crate::verify;

    /// A repository that no agent has touched.
    struct Untouched {
        snapshot: Snapshot,
        guard: GuardRun,
        events: Vec<Event>,
        commits: Vec<BaselineCommit>,
    }

    fn commit_id() -> CommitId {
        CommitId::new("c0ffee".repeat(10).get(..40).unwrap()).unwrap()
    }

    impl IterationWorld for Untouched {
        type Error = PromptError;
        type Iteration = ();

        fn run_guard(&mut self, (): &mut (), _: &Job, _: &[RepoPath]) -> Result<GuardRun, PromptError> {
            panic!("the guard of an iteration ran")
        }

        fn commit(&mut self, (): (), _: &Job, _: &Transition) -> Result<CommitId, PromptError> {
            panic!("an iteration was committed")
        }

        fn announce(&mut self, event: &Event) {
            self.events.push(event.clone());
        }
    }

    impl World for Untouched {
        fn load(&mut self) -> Result<LoadedRun, PromptError> {
            Ok(LoadedRun { commit: commit_id(), snapshot: self.snapshot.clone() })
        }

        fn run_agent(&mut self, _: &LoadedRun, _: &Job) -> Result<((), Attempt), PromptError> {
            panic!("a session ran")
        }
    }

    impl BaselineWorld for Untouched {
        fn run_baseline_guard(&mut self, _: &LoadedRun, _: &Job) -> Result<GuardRun, PromptError> {
            Ok(self.guard.clone())
        }

        fn commit_baseline(
            &mut self,
            run: &LoadedRun,
            baseline: &BaselineCommit,
        ) -> Result<CommitId, PromptError> {
            assert_eq!(run.snapshot, self.snapshot);
            self.commits.push(baseline.clone());
            Ok(commit_id())
        }
    }

    fn run_id() -> RunId {
        RunId::new("r1").unwrap()
    }

    fn failed() -> GuardRun {
        GuardRun::Ended {
            exit: GuardExit::Code(3),
            output: b"2 tests failed\n".to_vec(),
            place: GuardPlace::in_place(TreeId::none()),
        }
    }

    /// A world before its first iteration, with one change.
    fn world(change: impl FnOnce(&mut Tree, &mut RunState, &mut Config)) -> Untouched {
        let mut tree = tree(leaf("root"));
        let mut state = RunState::new(Some(run_id()));
        let mut config = Config::default();
        config.guard.baseline = true;
        change(&mut tree, &mut state, &mut config);
        let files = verify::Files::from([(Doc::Goal.path().into(), b"Do it.\n".to_vec())]);
        let docs = verify::StepDocuments { tree: &tree, state: &state, config: &config };
        let snapshot = verify::snapshot(&files, &run_id(), docs, 0).unwrap();
        Untouched { snapshot, guard: failed(), events: Vec::new(), commits: Vec::new() }
    }

    fn ready(world: &Untouched) -> RunStart {
        RunStart::Ready(Box::new(LoadedRun { commit: commit_id(), snapshot: world.snapshot.clone() }))
    }

    #[test]
    fn every_guard_run_becomes_a_possible_baseline() {
        let ended = |exit| GuardRun::Ended {
            exit,
            output: b"printed\n".to_vec(),
            place: GuardPlace::in_place(TreeId::none()),
        };
        let cases = [
            (ended(GuardExit::Code(0)), GuardResult::Pass, "0"),
            (ended(GuardExit::Code(3)), GuardResult::Fail, "3"),
            (ended(GuardExit::Signal(9)), GuardResult::Fail, "signal 9"),
            (GuardRun::NotStarted { why: "gone".to_owned() }, GuardResult::Skipped, "none"),
            (GuardRun::TimedOut, GuardResult::Skipped, "none"),
            (GuardRun::Interrupted { by: Interruption::Int }, GuardResult::Skipped, "none"),
        ];
        for (run, guard, exit) in cases {
            let baseline = to_baseline(&run);
            assert_eq!((baseline.guard, baseline.exit.as_str()), (guard, exit), "{run:?}");
            assert!(is_possible(&baseline), "{run:?}");
            let forged = Baseline { exit: if exit == "0" { "1" } else { "0" }.to_owned(), ..baseline };
            assert!(!is_possible(&forged), "{run:?}");
        }
    }

    #[test]
    fn the_baseline_guard_runs_once_before_the_first_session_if_configured() {
        let kept = Baseline {
            guard: GuardResult::Pass,
            exit: "0".to_owned(),
            room: Some(RoomLevel::InPlace),
            output: None,
        };
        for (case, mut world, runs) in [
            ("first", world(|_, _, _| {}), true),
            ("turned off", world(|_, _, config| config.guard.baseline = false), false),
            ("recorded", world(|_, state, _| state.baseline = Some(kept)), false),
            ("later", world(|_, state, _| state.next_iter = IterationNumber::new(2).unwrap()), false),
            ("nothing to do", world(|root, _, _| *root = tree(passed("root"))), false),
        ] {
            assert_eq!(begin_step(&mut world), Ok(ready(&world)), "{case}");
            let expected = if runs { (1, 2) } else { (0, 0) };
            assert_eq!((world.commits.len(), world.events.len()), expected, "{case}");
        }
    }

    #[test]
    fn the_result_is_committed_and_announced() {
        for (own_commits, taken_in) in
            [(0, ""), (1, "Runner-User-Commits: 1\n"), (2, "Runner-User-Commits: 2\n")]
        {
            let mut world = world(|_, state, _| state.last_summary = Some("kept".to_owned()));
            world.snapshot.user_commits = own_commits;
            assert_eq!(begin_step(&mut world), Ok(ready(&world)));
            let mut state = world.snapshot.state.clone();
            state.baseline = Some(Baseline {
                guard: GuardResult::Fail,
                exit: "3".to_owned(),
                room: Some(RoomLevel::InPlace),
                output: Some("2 tests failed\n".to_owned()),
            });
            let sha256 = Sha256::of(&state.to_bytes());
            let message = format!(
                "chore(loop): run r1 baseline guard=fail\n\nRunner-Guard-Exit: 3\nRunner-Room: in-place\nRunner-State: {sha256}\n\
                 Runner-Semantics: 1\n{taken_in}"
            );
            assert_eq!(world.commits, [BaselineCommit { run_id: run_id(), state, message }]);
            let command = || world.snapshot.config.guard.command.clone();
            let started = Event::BaselineStarted { command: command() };
            let (guard, exit) = (GuardResult::Fail, "3".to_owned());
            assert_eq!(world.events, [started, Event::BaselineEnded { guard, exit, command: command() }]);
        }
    }

    #[test]
    fn an_interrupted_guard_commits_nothing() {
        let mut world = world(|_, _, _| {});
        let by = Interruption::Term;
        world.guard = GuardRun::Interrupted { by };
        assert_eq!(begin_step(&mut world), Ok(RunStart::Stopped(StopReason::Interrupted { by })));
        assert_eq!(world.commits, []);
    }
}
