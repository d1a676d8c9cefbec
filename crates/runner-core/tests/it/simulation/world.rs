//! The simulated world: a repository with commits, a work tree, a journal, an agent, a guard, and faults.
//!
//! A crash loses a journal entry that was written but not yet flushed; everything else is durable.

mod heldout;
mod loop_world;
mod sessions;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use runner_core::commit_message::{CommitKind, MessageParts, Trailer};
use runner_core::config::{Budget, Config, ProtectPolicy};
use runner_core::layout::checks_path;
use runner_core::model::checks::{Check, CheckExit, RedKind, TaskChecks};
use runner_core::model::id::{NodeId, RunId};
use runner_core::model::object_id::CommitId;
use runner_core::model::object_id::TreeId;
use runner_core::model::repo_path::RepoPath;
use runner_core::model::run_state::RunState;
use runner_core::model::tree::{Node, Selection, Tree, next_selection};
use runner_core::model::user_notes::UserNotes;
use runner_core::prompt::PromptError;
use runner_core::step::{
    Attempt, ChangeScope, CheckRun, Event, FileChanges, GuardExit, GuardJob, GuardOccasion, GuardRecord,
    GuardRun, HeldoutId, HeldoutRun, Interruption, IterationWorld, Job, LeftFile, LoadedRun, Memory,
    NextStep, NodeFiles, PassedChecks, PastIteration, ProtectedPath, ProviderError, RecordContent,
    RedResults, ReviewJob, ReviewRun, SessionExit, SessionResult, Snapshot, Transition, Usage, World, plan,
    resume,
};
use runner_core::step::{GuardPlace, PlanningChanges, SessionRequest};
use runner_core::strict::BoundedInt;

use heldout::{heldout, heldout_run};
use sessions::usage;

use super::agent::{self, Temper};
use super::oracle::Oracle;
use super::random::Random;

/// Why a step was aborted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Broken {
    Crash,
    DiskFull,
    Prompt(PromptError),
}

impl From<PromptError> for Broken {
    fn from(fault: PromptError) -> Self {
        Self::Prompt(fault)
    }
}

/// How likely faults are, in percent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    pub(super) crash: usize,
    pub(super) disk_full: usize,
    pub(super) guard: usize,
    pub(super) review: usize,
}

/// A journal entry.
#[derive(Clone, Debug)]
enum Journal {
    Begun,
    AgentDone(Box<Attempt>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Commit {
    pub(super) message: String,
    pub(super) tree: Vec<u8>,
    pub(super) state: Vec<u8>,
    pub(super) prompt: String,
    /// Whether a file besides the guard's was changed.
    pub(super) changed_files: bool,
    pub(super) guard_files: BTreeMap<&'static str, &'static str>,
    pub(super) memory: Memory,
    pub(super) config: Config,
    /// The files of tasks that the runner added.
    pub(super) added: BTreeMap<String, Vec<u8>>,
}

pub(super) struct Sim {
    pub(super) random: Random,
    pub(super) config: Config,
    pub(super) faults: Faults,
    pub(super) tempers: Vec<Temper>,
    pub(super) commits: Vec<Commit>,
    pub(super) oracle: Oracle,
    /// Nodes whose work is really done in the work tree.
    done: BTreeSet<NodeId>,
    guard_files_start: BTreeMap<&'static str, &'static str>,
    guard_files_committed: BTreeMap<&'static str, &'static str>,
    guard_files_work: BTreeMap<&'static str, &'static str>,
    durable: Option<Journal>,
    unflushed: Option<Journal>,
    memory: Memory,
    /// Whether the session changed files besides the guard's, and whether it added to its memory.
    changed_files: bool,
    added_memory: bool,
    /// What the session reported so far; it is in a file and survives a crash.
    reported: Usage,
    /// How checks ended before the session; it is in the journal.
    red: RedResults,
    /// Whether the command has not done anything yet.
    pub(super) is_fresh: bool,
    /// What the current step read.
    loaded: Option<(Tree, RunState)>,
    /// How many commits record a guard run outside of an iteration.
    pub(super) records: usize,
}

impl Sim {
    pub(super) fn new(random: Random, config: Config, tempers: Vec<Temper>, tree: &Tree) -> Self {
        let run = RunId::new("sim").unwrap();
        let guard_files = BTreeMap::from([("justfile", "test")]);
        let start = Commit {
            message: "chore(loop): start run sim\n".to_owned(),
            tree: tree.bytes().to_vec(),
            state: RunState { heldout: heldout(tree), ..RunState::new(Some(run)) }.to_bytes(),
            prompt: String::new(),
            changed_files: false,
            guard_files: guard_files.clone(),
            memory: Memory::default(),
            config: config.clone(),
            added: BTreeMap::new(),
        };
        Self {
            random,
            oracle: Oracle::new(&config),
            config,
            faults: Faults::default(),
            tempers,
            commits: vec![start],
            done: BTreeSet::new(),
            guard_files_start: guard_files.clone(),
            guard_files_committed: guard_files.clone(),
            guard_files_work: guard_files,
            durable: None,
            unflushed: None,
            memory: Memory::default(),
            changed_files: false,
            added_memory: false,
            reported: Usage::default(),
            red: RedResults::default(),
            is_fresh: false,
            loaded: None,
            records: 0,
        }
    }

    /// The user raises the limits and runs `runner start`.
    pub(super) fn raise_limit(&mut self) {
        self.config.max_iterations = BoundedInt::new(100_000).unwrap();
        self.config.budget = Budget::default();
        self.config.limits = Config::default().limits;
        self.guard_files_start.clone_from(&self.guard_files_committed);
    }

    pub(super) fn tip(&self) -> &Commit {
        self.commits.last().unwrap()
    }

    pub(super) fn tree(&self) -> Tree {
        Tree::decode(&self.tip().tree).unwrap()
    }

    pub(super) fn state(&self) -> RunState {
        RunState::decode(&self.tip().state).unwrap()
    }

    /// A point at which the process may crash.
    fn may_crash(&mut self) -> Result<(), Broken> {
        if self.random.percent(self.faults.crash) {
            self.oracle.seen.faults.insert("crash");
            if self.unflushed.take().is_some() {
                self.oracle.seen.faults.insert("lost");
            }
            return Err(Broken::Crash);
        }
        Ok(())
    }

    /// Writes a journal entry; a crash between writing and flushing loses it.
    fn journal(&mut self, entry: Journal) -> Result<(), Broken> {
        self.unflushed = Some(entry);
        self.may_crash()?;
        self.durable = self.unflushed.take();
        self.may_crash()
    }

    /// Finishes the iteration that a crash interrupted, as the next command does first.
    pub(super) fn recover(&mut self) -> Result<(), Broken> {
        let attempt = match self.durable.clone() {
            None => return Ok(()),
            Some(Journal::Begun) => self.interrupted(),
            Some(Journal::AgentDone(attempt)) => *attempt,
        };
        // The same commit gives the same job.
        let run = self.load()?;
        let NextStep::Work(job) = plan(&run.snapshot, run.request)? else {
            panic!("an iteration began without a job")
        };
        let session = SessionResult { attempt, red: self.red.clone() };
        resume(self, &run.snapshot, &job, (), session).map(drop)
    }

    fn interrupted(&mut self) -> Attempt {
        self.changed_files = true;
        Attempt {
            exit: SessionExit::Interrupted { by: Interruption::Crash },
            answer: LeftFile::Missing,
            tree: LeftFile::Missing,
            work: ChangeScope::Execute,
            changes: self.changes(),
            protected: self.protected(),
            memory: Vec::new(),
            planning: PlanningChanges::default(),
            keys: Default::default(),
            usage: self.reported,
            new_checks: BTreeMap::new(),
            processes_left: 0,
        }
    }

    fn work(&self) -> ChangeScope {
        if self.changes().work_files > 0 { ChangeScope::Execute } else { ChangeScope::Decompose }
    }

    fn changes(&self) -> FileChanges {
        let guard_files = self.protected().iter().filter(|path| path.changed).count();
        FileChanges {
            work_files: u32::from(self.changed_files) + u32::try_from(guard_files).unwrap(),
            runner_files: u32::from(self.added_memory),
        }
    }

    /// The guard's files as the host would report them.
    fn protected(&self) -> Vec<ProtectedPath> {
        let names: BTreeSet<&str> =
            self.guard_files_work.keys().chain(self.guard_files_committed.keys()).copied().collect();
        let reported = names.into_iter().map(|name| ProtectedPath {
            path: RepoPath::of_bytes(name.as_bytes()),
            existed_at_start: self.guard_files_start.contains_key(name),
            changed: self.guard_files_work.get(name) != self.guard_files_committed.get(name),
            exists: self.guard_files_work.contains_key(name),
        });
        reported.filter(|path| path.changed || !path.existed_at_start).collect()
    }

    /// Whether a guard file differs from its committed content once these are restored.
    fn is_guard_changed_after(&self, restored: &[RepoPath]) -> bool {
        let is_restored = |path: &RepoPath| restored.contains(path);
        self.protected().iter().any(|path| path.changed && !is_restored(&path.path))
    }

    fn restore(&mut self, paths: &[RepoPath]) {
        for (name, content) in &self.guard_files_committed {
            if paths.iter().any(|path| path.as_str() == *name) {
                self.guard_files_work.insert(name, content);
            }
        }
    }
}

impl Sim {
    /// Compares the records of the first iterations with each outcome with their schema.
    fn validate_record(transition: &Transition) {
        let mut validated = VALIDATED.lock().unwrap();
        let count = validated.entry(transition.outcome.as_str()).or_insert(0);
        if *count < VALIDATED_MAX {
            *count += 1;
            crate::schema::assert_record_as_described(&transition.meta);
        }
    }
}

impl IterationWorld for Sim {
    type Error = Broken;
    type Iteration = ();

    fn run_guard(&mut self, (): &mut (), job: &Job, restore: &[RepoPath]) -> Result<GuardRun, Broken> {
        self.may_crash()?;
        self.restore(restore);
        let ended = |code| GuardRun::Ended {
            exit: GuardExit::Code(code),
            output: b"failed \xff\x1b[31m".to_vec(),
            place: GuardPlace::in_place(TreeId::none()),
        };
        let guard_run = if self.random.percent(self.faults.guard) {
            let why = "just: not found".to_owned();
            let long = "é".repeat(20_000).into_bytes();
            let odd = [
                GuardRun::NotStarted { why },
                GuardRun::TimedOut,
                GuardRun::Interrupted { by: Interruption::Int },
                GuardRun::Ended {
                    exit: GuardExit::Signal(9),
                    output: long,
                    place: GuardPlace::in_place(TreeId::none()),
                },
            ];
            self.random.pick(&odd).unwrap().clone()
        } else {
            // A guard that was replaced by `true` succeeds whatever the work.
            let weakened = self.guard_files_work.get("justfile") == Some(&"true");
            assert!(
                !weakened || job.guard.protect == ProtectPolicy::Flag,
                "the guard is the one that existed at the start"
            );
            let done = job.target.node().is_some_and(|node| self.done.contains(node));
            ended(if done || weakened { 0 } else { 1 })
        };
        self.oracle.record_guard(job, &guard_run);
        self.may_crash()?;
        Ok(guard_run)
    }

    fn run_check(
        &mut self,
        (): &mut (),
        job: &Job,
        _: &Check,
        restore: &[RepoPath],
    ) -> Result<CheckRun, Broken> {
        self.may_crash()?;
        self.restore(restore);
        if self.random.percent(self.faults.guard) {
            let odd = [
                CheckRun::Interrupted { by: Interruption::Int },
                check_run(CheckExit::Signal(9)),
                check_run(CheckExit::NotStarted),
            ];
            return Ok(self.random.pick(&odd).unwrap().clone());
        }
        let done = job.target.node().is_some_and(|node| self.done.contains(node));
        Ok(check_run(CheckExit::Code(i32::from(!done))))
    }

    fn run_heldout(
        &mut self,
        (): &mut (),
        job: &Job,
        check: HeldoutId<'_>,
        restore: &[RepoPath],
    ) -> Result<HeldoutRun, Broken> {
        self.may_crash()?;
        assert_eq!(job.target.node(), Some(check.node), "only the task's own held-out checks decide");
        self.restore(restore);
        if self.random.percent(self.faults.guard) {
            return Ok(HeldoutRun::Interrupted { by: Interruption::Int });
        }
        let done = job.target.node().is_some_and(|node| self.done.contains(node));
        Ok(heldout_run(if done { RedKind::Green } else { RedKind::Failed }))
    }

    fn run_review(&mut self, (): &mut (), job: &Job, review: &ReviewJob) -> Result<ReviewRun, Broken> {
        self.may_crash()?;
        let prompt = review.brief.prompt(b"+work\n")?;
        assert!(prompt.contains("+work") && prompt.contains("# Your answer"), "{prompt}");
        self.oracle.record_review(job);
        let answer = |text: &str| LeftFile::Bytes(text.as_bytes().to_vec());
        let accept = answer(r#"{"verdict": "accept", "reasons": ["fine \u001b[31m"]}"#);
        let finished = SessionExit::Finished { code: 0 };
        let provider = |fault| SessionExit::Provider { fault };
        let (exit, answer, changed) = if self.random.percent(self.faults.review) {
            let refuse = answer(r#"{"verdict": "refuse", "reasons": ["no test", "é\n"]}"#);
            let odd = [
                (finished.clone(), refuse.clone(), Vec::new()),
                (finished.clone(), refuse, Vec::new()),
                (finished.clone(), answer("fine"), Vec::new()),
                (finished, accept, vec![RepoPath::of_bytes(b"src/work")]),
                (SessionExit::TimedOut, LeftFile::Missing, Vec::new()),
                (SessionExit::Interrupted { by: Interruption::Int }, LeftFile::Missing, Vec::new()),
                (provider(ProviderError::Overloaded), LeftFile::Missing, Vec::new()),
                (
                    provider(ProviderError::UsageLimit { resets_unix_secs: Some(9) }),
                    LeftFile::Missing,
                    Vec::new(),
                ),
                (
                    provider(ProviderError::NotLoggedIn { why: "no key".to_owned() }),
                    LeftFile::Missing,
                    Vec::new(),
                ),
            ];
            self.random.pick(&odd).unwrap().clone()
        } else {
            (finished, accept, Vec::new())
        };
        let usage = usage(&exit, &mut self.random);
        self.may_crash()?;
        Ok(ReviewRun { exit, answer, usage, changed })
    }

    fn commit(&mut self, (): (), job: &Job, transition: &Transition) -> Result<CommitId, Broken> {
        self.may_crash()?;
        if self.random.percent(self.faults.disk_full) {
            self.oracle.seen.faults.insert("disk full");
            return Err(Broken::DiskFull);
        }
        let (before, state) = self.loaded.take().unwrap();
        self.oracle.has_work = self.changed_files || self.is_guard_changed_after(&transition.restore);
        self.oracle.check(job, &before, &state, transition, &self.config, self.reported);
        Self::validate_record(transition);
        self.restore(&transition.restore);
        self.guard_files_committed = self.guard_files_work.clone();
        if self.added_memory {
            self.memory.assumptions.push_str("an agent assumed something and wrote it down\n");
        }
        self.commits.push(Commit {
            message: transition.message.clone(),
            tree: transition.tree.bytes().to_vec(),
            state: transition.state.to_bytes(),
            prompt: job.prompt.text.clone(),
            changed_files: self.changed_files,
            guard_files: self.guard_files_committed.clone(),
            memory: self.memory.clone(),
            config: self.config.clone(),
            added: self.tip().added.clone(),
        });
        // The commit is atomic: after it the iteration is done and the journal is stale.
        self.durable = None;
        self.unflushed = None;
        self.may_crash()?;
        Ok(commit_id(self.commits.len()))
    }

    fn discard(&mut self, (): (), job: &Job) -> Result<(), Broken> {
        self.may_crash()?;
        assert_eq!(self.changes(), FileChanges::default(), "nothing is lost");
        assert!(self.state().wait.is_some(), "the wait stays on record");
        self.oracle.record_discarded(job);
        self.durable = None;
        self.unflushed = None;
        self.loaded = None;
        self.may_crash()
    }

    fn announce(&mut self, event: &Event) {
        let is_first = self.oracle.seen.events.insert(event.name());
        // Validating every event would take most of the time.
        let mut validated = VALIDATED.lock().unwrap();
        let count = validated.entry(event.name()).or_insert(0);
        if is_first && *count < VALIDATED_MAX {
            *count += 1;
            crate::schema::assert_recorded_as_described(event);
        }
        self.oracle.record_event(event);
    }
}

/// The checks of every task that has some.
pub(super) const CHECKS: &str = "[[check]]\nname = \"first\"\ncommand = [\"./first\"]\n\
    [[check]]\nname = \"second\"\ncommand = [\"./second\"]\nred = \"any\"\n";

/// The tasks with checks: about one in three, by their ids.
pub(super) fn checked_nodes(node: &Node) -> Vec<NodeId> {
    let sum: u32 = node.id.as_str().bytes().map(u32::from).sum();
    let is_added = node.id.as_str().starts_with("regression-");
    let own = (sum.is_multiple_of(3) && !is_added).then(|| node.id.clone());
    own.into_iter().chain(node.children.iter().flat_map(checked_nodes)).collect()
}

fn check_run(exit: CheckExit) -> CheckRun {
    CheckRun::Ended {
        exit,
        output: b"checked \xff\x1b[31m".to_vec(),
        junit: None,
        redirects: Vec::new(),
        place: GuardPlace::in_place(TreeId::none()),
    }
}

fn commit_id(nth: usize) -> CommitId {
    CommitId::new(format!("{nth:040}")).unwrap()
}

/// How many events of each name were validated against the schema so far.
static VALIDATED: Mutex<BTreeMap<&str, u32>> = Mutex::new(BTreeMap::new());
const VALIDATED_MAX: u32 = 30;
