//! The guard's word on the untouched repository, before the first session: what was red before any agent came.

use super::attempt::{GuardExit, GuardRun};
use super::event::Event;
use super::next_state::guard_output;
use super::outcome::StopReason;
use super::plan::{Job, NextStep, plan};
use super::snapshot::Snapshot;
use super::{IterationRecord, World};
use crate::commit_message::{CommitKind, CommitMessage, Trailer};
use crate::model::digest::Sha256;
use crate::model::id::{IterationNumber, RunId};
use crate::model::run_state::{Baseline, GuardResult, RunState, SEMANTICS};

/// A world in which the guard can be asked before there is a session.
pub trait BaselineWorld: World {
    /// Runs the guard on the work tree as it is.
    fn survey(&mut self, job: &Job) -> Result<GuardRun, Self::Error>;

    /// Commits what it said, and puts back what it changed.
    fn record(&mut self, surveyed: &BaselineCommit) -> Result<IterationRecord, Self::Error>;
}

/// A baseline, to be committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaselineCommit {
    /// The run.
    pub run_id: RunId,
    /// The run's book-keeping with it.
    pub state: RunState,
    /// The commit's message.
    pub message: String,
}

/// Asks the guard, if that is due: once in a run, before its first session. Says whether the user broke in.
pub fn baseline<W: BaselineWorld>(world: &mut W) -> Result<Option<StopReason>, W::Error> {
    let snapshot = world.load()?;
    if !is_due(&snapshot) {
        return Ok(None);
    }
    let NextStep::Work(job) = plan(&snapshot)? else { return Ok(None) };
    world.announce(&Event::BaselineStarted { command: job.guard.clone() });
    let verdict = world.survey(&job)?;
    if let GuardRun::Interrupted { by } = verdict {
        return Ok(Some(StopReason::Interrupted { by }));
    }
    let found = found(&verdict);
    let surveyed = surveyed(&snapshot, found.clone());
    world.record(&surveyed)?;
    world.announce(&Event::BaselineEnded { guard: found.guard, exit: found.exit, command: job.guard });
    Ok(None)
}

fn is_due(snapshot: &Snapshot) -> bool {
    let Snapshot { state, config, .. } = snapshot;
    config.guard.baseline && state.baseline.is_none() && state.next_iter == IterationNumber::FIRST
}

/// What the guard said, as it is kept.
fn found(verdict: &GuardRun) -> Baseline {
    let no_result =
        |why: String| Baseline { guard: GuardResult::Skipped, exit: "none".to_owned(), output: Some(why) };
    match verdict {
        GuardRun::Ended { exit: GuardExit::Code(0), .. } => {
            Baseline { guard: GuardResult::Pass, exit: "0".to_owned(), output: None }
        }
        GuardRun::Ended { exit, .. } => {
            let output = Some(guard_output(verdict).unwrap_or_default());
            Baseline { guard: GuardResult::Fail, exit: exit.to_string(), output }
        }
        GuardRun::NotStarted { why } => no_result(why.clone()),
        GuardRun::TimedOut => no_result("the guard exceeded the time limit".to_owned()),
        GuardRun::Interrupted { .. } | GuardRun::Skipped => no_result("the guard did not run".to_owned()),
    }
}

fn surveyed(snapshot: &Snapshot, found: Baseline) -> BaselineCommit {
    let state = RunState { baseline: Some(found), ..snapshot.state.clone() };
    let message = message(&snapshot.run_id, &state, snapshot.user_commits);
    BaselineCommit { run_id: snapshot.run_id.clone(), state, message }
}

/// The message of a baseline's commit, which depends on the committed state alone.
pub(crate) fn message(run: &RunId, state: &RunState, user_commits: u32) -> String {
    let (guard, exit) = state
        .baseline
        .as_ref()
        .map_or((GuardResult::Skipped, "none"), |baseline| (baseline.guard, baseline.exit.as_str()));
    CommitMessage::new(CommitKind::Baseline { run_id: run.clone(), guard })
        .trailer(Trailer::GuardExit, exit)
        .trailer(Trailer::State, Sha256::of(&state.to_bytes()))
        .trailer(Trailer::Semantics, SEMANTICS)
        .user_commits(user_commits)
        .to_string()
}

/// Whether a baseline can have come from a guard.
pub(crate) fn is_possible(baseline: &Baseline) -> bool {
    let has_output = baseline.output.is_some();
    match baseline.guard {
        GuardResult::Pass => baseline.exit == "0" && !has_output,
        GuardResult::Fail => !matches!(baseline.exit.as_str(), "0" | "none") && has_output,
        GuardResult::Skipped => baseline.exit == "none" && has_output,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::layout::Doc;
    use crate::model::repo_path::RepoPath;
    use crate::model::tree::Tree;
    use crate::model::tree::sample::{leaf, passed, tree};
    use crate::prompt::PromptError;
    use crate::step::{Attempt, Interruption, Transition};
    use crate::verify;

    /// A repository that no agent has touched.
    struct Untouched {
        snapshot: Snapshot,
        verdict: GuardRun,
        told: Vec<Event>,
        recorded: Vec<BaselineCommit>,
    }

    impl World for Untouched {
        type Error = PromptError;

        fn load(&mut self) -> Result<Snapshot, PromptError> {
            Ok(self.snapshot.clone())
        }

        fn run_agent(&mut self, _: &Job) -> Result<Attempt, PromptError> {
            panic!("a session")
        }

        fn run_guard(&mut self, _: &Job, _: &[RepoPath]) -> Result<GuardRun, PromptError> {
            panic!("a guard of an iteration")
        }

        fn commit(&mut self, _: &Job, _: &Transition) -> Result<IterationRecord, PromptError> {
            panic!("an iteration")
        }

        fn announce(&mut self, event: &Event) {
            self.told.push(event.clone());
        }
    }

    impl BaselineWorld for Untouched {
        fn survey(&mut self, _: &Job) -> Result<GuardRun, PromptError> {
            Ok(self.verdict.clone())
        }

        fn record(&mut self, surveyed: &BaselineCommit) -> Result<IterationRecord, PromptError> {
            self.recorded.push(surveyed.clone());
            Ok(IterationRecord { commit: "c0ffee".to_owned() })
        }
    }

    fn run_id() -> RunId {
        RunId::new("r1").unwrap()
    }

    fn red() -> GuardRun {
        GuardRun::Ended { exit: GuardExit::Code(3), output: b"2 tests failed\n".to_vec() }
    }

    /// A world before its first iteration, and what is different in it.
    fn world(change: impl FnOnce(&mut Tree, &mut RunState, &mut Config)) -> Untouched {
        let (mut tree, mut state) = (tree(leaf("root")), RunState::new(Some(run_id())));
        let mut config = Config::default();
        config.guard.baseline = true;
        change(&mut tree, &mut state, &mut config);
        let files = verify::Files::from([(Doc::Goal.path().into(), b"Do it.\n".to_vec())]);
        let docs = verify::StepDocuments { tree: &tree, state: &state, config: &config };
        let snapshot = verify::snapshot(&files, &run_id(), docs, 0).unwrap();
        Untouched { snapshot, verdict: red(), told: Vec::new(), recorded: Vec::new() }
    }

    #[test]
    fn what_a_guard_can_say_is_kept_and_possible() {
        let ended = |exit| GuardRun::Ended { exit, output: b"said\n".to_vec() };
        let cases = [
            (ended(GuardExit::Code(0)), GuardResult::Pass, "0"),
            (ended(GuardExit::Code(3)), GuardResult::Fail, "3"),
            (ended(GuardExit::Signal(9)), GuardResult::Fail, "signal 9"),
            (GuardRun::NotStarted { why: "gone".to_owned() }, GuardResult::Skipped, "none"),
            (GuardRun::TimedOut, GuardResult::Skipped, "none"),
            (GuardRun::Interrupted { by: Interruption::Int }, GuardResult::Skipped, "none"),
        ];
        for (verdict, guard, exit) in cases {
            let found = found(&verdict);
            assert_eq!((found.guard, found.exit.as_str()), (guard, exit), "{verdict:?}");
            assert!(is_possible(&found), "{verdict:?}");
            let forged = Baseline { exit: if exit == "0" { "1" } else { "0" }.to_owned(), ..found };
            assert!(!is_possible(&forged), "{verdict:?}");
        }
    }

    #[test]
    fn the_guard_is_asked_once_before_the_first_session_where_the_user_wants_it() {
        let kept = Baseline { guard: GuardResult::Pass, exit: "0".to_owned(), output: None };
        for (case, mut world, is_asked) in [
            ("first", world(|_, _, _| {}), true),
            ("unwanted", world(|_, _, config| config.guard.baseline = false), false),
            ("asked before", world(|_, state, _| state.baseline = Some(kept)), false),
            ("later", world(|_, state, _| state.next_iter = IterationNumber::new(2).unwrap()), false),
            ("nothing to do", world(|root, _, _| *root = tree(passed("root"))), false),
        ] {
            assert_eq!(baseline(&mut world), Ok(None), "{case}");
            let expected = if is_asked { (1, 2) } else { (0, 0) };
            assert_eq!((world.recorded.len(), world.told.len()), expected, "{case}");
        }
    }

    #[test]
    fn what_the_guard_said_is_committed_and_told() {
        for (own_commits, taken_in) in [(0, ""), (1, "Runner-Taken-In: 1\n"), (2, "Runner-Taken-In: 2\n")] {
            let mut world = world(|_, state, _| state.last_summary = Some("kept".to_owned()));
            world.snapshot.user_commits = own_commits;
            assert_eq!(baseline(&mut world), Ok(None));
            let mut state = world.snapshot.state.clone();
            state.baseline = Some(Baseline {
                guard: GuardResult::Fail,
                exit: "3".to_owned(),
                output: Some("2 tests failed\n".to_owned()),
            });
            let sha256 = Sha256::of(&state.to_bytes());
            let message = format!(
                "chore(loop): run r1 baseline guard=fail\n\nRunner-Guard-Exit: 3\nRunner-State: {sha256}\n\
                 Runner-Semantics: 1\n{taken_in}"
            );
            assert_eq!(world.recorded, [BaselineCommit { run_id: run_id(), state, message }]);
            let command = || world.snapshot.config.guard.command.clone();
            let started = Event::BaselineStarted { command: command() };
            let (guard, exit) = (GuardResult::Fail, "3".to_owned());
            assert_eq!(world.told, [started, Event::BaselineEnded { guard, exit, command: command() }]);
        }
    }

    #[test]
    fn a_guard_that_the_user_breaks_off_leaves_nothing_behind() {
        let mut world = world(|_, _, _| {});
        let by = Interruption::Term;
        world.verdict = GuardRun::Interrupted { by };
        assert_eq!(baseline(&mut world), Ok(Some(StopReason::Interrupted { by })));
        assert_eq!(world.recorded, []);
    }
}
