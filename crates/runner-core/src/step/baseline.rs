//! The baseline: the guard's result on the untouched repository, before a run's first session. It shows what already
//! failed before any agent ran. If the user changes the guard later, the next session has a baseline too.

use super::attempt::GuardRun;
use super::event::Event;
use super::outcome::StopReason;
use super::plan::{NextStep, plan};
use super::recorded_guard::{GuardJob, GuardOccasion, GuardRecord, RecordResults, to_record};
use super::snapshot::Snapshot;
use super::{LoadedRun, LoopWorld, WaitResult, World};
use crate::model::id::IterationNumber;
use crate::model::run_state::{GuardResult, RecordedGuardRun};

/// The state that `runner step` and `runner loop` begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunStart {
    Ready(Box<LoadedRun>),
    /// The user interrupted the guard or wants to stop; nothing was written.
    Stopped(StopReason),
}

/// Whether a run begins although the guard already fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedBaselineAnswer {
    Begin,
    /// The user interrupted the question.
    Stop(StopReason),
}

/// Loads the run for one step, and runs the baseline guard first if it is due.
pub fn begin_step<W: World>(world: &mut W) -> Result<RunStart, W::Error> {
    let run = world.load()?;
    if is_due(&run.snapshot) { run_baseline(world, run) } else { Ok(RunStart::Ready(Box::new(run))) }
}

/// Loads the run for a loop. Unlike a step, a loop that is paused does not run the guard before it is resumed.
pub fn begin_loop<W: LoopWorld>(world: &mut W) -> Result<RunStart, W::Error> {
    let run = world.load()?;
    if !is_due(&run.snapshot) {
        return Ok(RunStart::Ready(Box::new(run)));
    }
    let start = match world.wait_for_next(None)? {
        WaitResult::Immediate => run_baseline(world, run),
        WaitResult::Waited => begin_step(world),
        WaitResult::Stop(stop) => Ok(RunStart::Stopped(stop)),
    }?;
    if let RunStart::Stopped(stop) = &start {
        world.announce(&Event::stopped(stop));
    }
    Ok(start)
}

/// Runs the guard on the untouched repository and commits its result. Meanwhile the repository may have changed, so
/// the state is loaded again.
fn run_baseline<W: World>(world: &mut W, run: LoadedRun) -> Result<RunStart, W::Error> {
    let NextStep::Work(_) = plan(&run.snapshot, run.request)? else {
        return Ok(RunStart::Ready(Box::new(run)));
    };
    let job = GuardJob::new(GuardOccasion::Baseline, &run.snapshot);
    world.announce(&Event::BaselineStarted { command: job.guard.command.clone() });
    let guard = world.run_recorded_guard(&run, &job)?;
    if let GuardRun::Interrupted { by } = guard {
        return Ok(RunStart::Stopped(StopReason::Interrupted { by }));
    }
    let next_iter = run.snapshot.state.next_iter;
    let baseline = to_record(&guard, next_iter);
    // Later, the files are those of a session, which may have failed: no reason to ask or to refuse.
    if baseline.guard == GuardResult::Fail
        && next_iter == IterationNumber::FIRST
        && let RedBaselineAnswer::Stop(stop) = world.accept_red_baseline(&run, &job, &baseline)?
    {
        return Ok(RunStart::Stopped(stop));
    }
    world.commit_guard_record(
        &run,
        &GuardRecord::new(job.occasion, &run.snapshot, &RecordResults::of_guard(&guard, next_iter)),
    )?;
    let RecordedGuardRun { guard, exit, .. } = baseline;
    world.announce(&Event::BaselineEnded { guard, exit, command: job.guard.command, next_iter });
    Ok(RunStart::Ready(Box::new(world.load()?)))
}

/// Whether the guard must run before the next session: its result is not known. A start forgets it if the guard changed.
pub(crate) fn is_due(snapshot: &Snapshot) -> bool {
    snapshot.config.guard.baseline && snapshot.state.baseline.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::layout::Doc;
    use crate::model::checks::Check;
    use crate::model::digest::Sha256;
    use crate::model::id::RunId;
    use crate::model::object_id::CommitId;
    use crate::model::object_id::TreeId;
    use crate::model::repo_path::RepoPath;
    use crate::model::run_state::RunState;
    use crate::model::tree::Tree;
    use crate::model::tree::sample::{leaf, passed, tree};
    use crate::prompt::PromptError;
    use crate::step::CheckRun;
    use crate::step::{Attempt, Interruption, IterationWorld, PassedChecks, PastIteration, Transition};
    use crate::step::{GuardExit, Job, ReviewJob, ReviewRun};
    use crate::step::{GuardPlace, RoomLevel, SessionRequest};
    use crate::step::{HeldoutId, HeldoutRun, RedResults};
    use crate::verify;

    /// A repository that no agent has touched.
    struct Untouched {
        snapshot: Snapshot,
        guard: GuardRun,
        red_answer: RedBaselineAnswer,
        events: Vec<Event>,
        commits: Vec<GuardRecord>,
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

        fn run_check(
            &mut self,
            (): &mut (),
            _: &Job,
            _: &Check,
            _: &[RepoPath],
        ) -> Result<CheckRun, PromptError> {
            panic!("a check ran")
        }

        fn run_heldout(
            &mut self,
            (): &mut (),
            _: &Job,
            _: HeldoutId<'_>,
            _: &[RepoPath],
        ) -> Result<HeldoutRun, PromptError> {
            panic!("a held-out check ran")
        }

        fn run_review(
            &mut self,
            _: &mut Self::Iteration,
            _: &Job,
            _: &ReviewJob,
        ) -> Result<ReviewRun, Self::Error> {
            panic!("no review is configured")
        }

        fn commit(&mut self, (): (), _: &Job, _: &Transition) -> Result<CommitId, PromptError> {
            panic!("an iteration was committed")
        }

        fn discard(&mut self, (): (), _: &Job) -> Result<(), PromptError> {
            panic!("an iteration was discarded")
        }

        fn announce(&mut self, event: &Event) {
            self.events.push(event.clone());
        }
    }

    impl World for Untouched {
        fn load(&mut self) -> Result<LoadedRun, PromptError> {
            Ok(LoadedRun {
                commit: commit_id(),
                snapshot: self.snapshot.clone(),
                request: SessionRequest::Next,
                loop_budget: Default::default(),
            })
        }

        fn run_red_check(&mut self, _: &LoadedRun, _: &Job, _: &Check) -> Result<CheckRun, PromptError> {
            panic!("a check ran")
        }

        fn run_heldout_at_tip(&mut self, _: &LoadedRun, _: HeldoutId<'_>) -> Result<HeldoutRun, PromptError> {
            panic!("a held-out check ran")
        }

        fn run_agent(
            &mut self,
            _: &LoadedRun,
            _: &Job,
            _: &RedResults,
        ) -> Result<((), Attempt), PromptError> {
            panic!("a session ran")
        }

        fn run_recorded_guard(&mut self, _: &LoadedRun, _: &GuardJob) -> Result<GuardRun, PromptError> {
            Ok(self.guard.clone())
        }

        fn accept_red_baseline(
            &mut self,
            _: &LoadedRun,
            _: &GuardJob,
            baseline: &RecordedGuardRun,
        ) -> Result<RedBaselineAnswer, PromptError> {
            assert_eq!(baseline.guard, GuardResult::Fail, "only a failure is a question");
            Ok(self.red_answer.clone())
        }

        fn run_recheck(
            &mut self,
            _: &LoadedRun,
            _: &GuardJob,
            _: &PassedChecks,
            _: &Check,
            _: &CommitId,
        ) -> Result<CheckRun, PromptError> {
            panic!("a check ran again")
        }

        fn past_iterations(&mut self, _: &LoadedRun) -> Result<Vec<PastIteration>, PromptError> {
            Ok(Vec::new())
        }

        fn discard_guard_record(&mut self, _: &LoadedRun, _: &GuardJob) -> Result<(), PromptError> {
            Ok(())
        }

        fn commit_guard_record(
            &mut self,
            run: &LoadedRun,
            record: &GuardRecord,
        ) -> Result<CommitId, PromptError> {
            assert_eq!(run.snapshot, self.snapshot);
            self.commits.push(record.clone());
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
        let red_answer = RedBaselineAnswer::Begin;
        Untouched { snapshot, guard: failed(), red_answer, events: Vec::new(), commits: Vec::new() }
    }

    fn ready(world: &Untouched) -> RunStart {
        RunStart::Ready(Box::new(LoadedRun {
            commit: commit_id(),
            snapshot: world.snapshot.clone(),
            request: SessionRequest::Next,
            loop_budget: Default::default(),
        }))
    }

    #[test]
    fn the_baseline_guard_runs_while_its_result_is_not_known() {
        let kept = RecordedGuardRun {
            guard: GuardResult::Pass,
            exit: "0".to_owned(),
            room: Some(RoomLevel::InPlace),
            output: None,
            next_iter: IterationNumber::FIRST,
        };
        for (case, mut world, runs) in [
            ("first", world(|_, _, _| {}), true),
            ("turned off", world(|_, _, config| config.guard.baseline = false), false),
            ("recorded", world(|_, state, _| state.baseline = Some(kept)), false),
            ("later", world(|_, state, _| state.next_iter = IterationNumber::new(2).unwrap()), true),
            ("nothing to do", world(|root, _, _| *root = tree(passed("root"))), false),
        ] {
            assert_eq!(begin_step(&mut world), Ok(ready(&world)), "{case}");
            let expected = if runs { (1, 2) } else { (0, 0) };
            assert_eq!((world.commits.len(), world.events.len()), expected, "{case}");
        }
    }

    #[test]
    fn a_red_baseline_that_is_not_accepted_is_not_committed() {
        let mut world = world(|_, _, _| {});
        let stop = StopReason::Interrupted { by: Interruption::Int };
        world.red_answer = RedBaselineAnswer::Stop(stop.clone());
        assert_eq!(begin_step(&mut world), Ok(RunStart::Stopped(stop)));
        assert_eq!((world.commits.len(), world.events.len()), (0, 1));
    }

    #[test]
    fn a_red_baseline_in_the_middle_of_a_run_is_recorded_without_a_question() {
        let mut world = world(|_, state, _| state.next_iter = IterationNumber::new(2).unwrap());
        world.red_answer = RedBaselineAnswer::Stop(StopReason::Interrupted { by: Interruption::Int });
        assert_eq!(begin_step(&mut world), Ok(ready(&world)));
        let [record] = world.commits.as_slice() else { panic!("{:?}", world.commits) };
        let baseline = record.state.baseline.as_ref().unwrap();
        assert_eq!((baseline.guard, baseline.next_iter.get()), (GuardResult::Fail, 2));
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
            state.baseline = Some(RecordedGuardRun {
                guard: GuardResult::Fail,
                exit: "3".to_owned(),
                room: Some(RoomLevel::InPlace),
                output: Some("2 tests failed\n".to_owned()),
                next_iter: IterationNumber::FIRST,
            });
            let sha256 = Sha256::of(&state.to_bytes());
            let message = format!(
                "chore(loop): run r1 baseline guard=fail\n\nRunner-Guard-Exit: 3\nRunner-Room: in-place\nRunner-State: {sha256}\n\
                 Runner-Semantics: 1\n{taken_in}"
            );
            assert_eq!(world.commits, [GuardRecord { run_id: run_id(), state, regression: None, message }]);
            let command = || world.snapshot.config.guard.command.clone();
            let started = Event::BaselineStarted { command: command() };
            let (guard, exit) = (GuardResult::Fail, "3".to_owned());
            let next_iter = IterationNumber::FIRST;
            let ended = Event::BaselineEnded { guard, exit, command: command(), next_iter };
            assert_eq!(world.events, [started, ended]);
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
