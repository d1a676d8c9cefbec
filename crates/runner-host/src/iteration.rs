//! The world that steps are made in: a repository, its lock, an agent and a guard.
//!
//! Does what a job says and decides nothing. Every change of the repository stands in the journal before it is made,
//! so that a crash at any point is finished by the next command.

mod baseline;
mod commit;
mod hooks;
pub mod iteration_dir;
mod recovery;
mod sandboxing;
mod session;
mod step_inputs;
mod transcript_recorder;
mod wait;

use std::path::{Path, PathBuf};
use std::time::Instant;

use runner_core::agents::SessionIdentity;
use runner_core::config::{Config, HooksConfig};
use runner_core::layout::Doc;
use runner_core::model::goal::Goal;
use runner_core::model::id::{NodeId, RunId};
use runner_core::model::repo_path::RepoPath;
use runner_core::model::run_state::RunState;
use runner_core::model::tree::{Selection, Tree, select};
use runner_core::runs::identity::{IdentityError, IdentityInputs};
use runner_core::runs::start::{DocSet, StartError};
use runner_core::step::{
    Attempt, Event, GuardRun, HookTrigger, Interruption, IterationRecord, Job, Memory, Snapshot, Transition,
    World,
};

pub(crate) use hooks::program as hook_program;
pub use recovery::{Recovered, RecoveryNote, recover};

use self::step_inputs::StepInputs;
use crate::agent::sandbox::{Bubblewrap, SandboxKind};
use crate::error::{Error, UserError};
use crate::failpoint;
use crate::fs::atomic::{self, FileStamp};
use crate::fs::lock::Lock;
use crate::git::{Git, Head, PathSet, RepoStatus, path_of};
use crate::iteration::iteration_dir::IterationDir;
use crate::repo::journal::{IterationEntry, PublishEntry};
use crate::repo::worktree::{self, WorktreeState};
use crate::view::inspect::{read_docs, show_paths};
use supervise::signals::{ShutdownSignal, SignalListener};
use supervise::{CancelHandle, SupervisorSlot};

/// Who is told what happens.
pub type EventSink<'a> = &'a mut dyn FnMut(&Event);

/// A repository in which iterations are made.
pub struct RepoWorld<'a> {
    git: Git,
    /// Held, but while the run is paused.
    lock: Option<Lock>,
    control: CancelHandle,
    supervision: SupervisorSlot,
    signals: Option<SignalListener>,
    audience: EventSink<'a>,
    /// What the user pressed or asked for between iterations.
    wants_stop: Box<dyn Fn() -> bool + 'a>,
    bench: Option<OpenIteration>,
    /// What is known of the session under way. The agent can change the journal, but not this.
    session: Option<SessionCheckpoint>,
    /// The commit that HEAD was at when the repository was last looked at.
    head: Option<String>,
    /// The protected paths of the run's start, which does not change while iterations are made.
    at_start: Option<PathSet>,
    /// Those of the commit that HEAD is at.
    at_head: Option<PathSet>,
    /// What the last iteration left, while nobody had time to change it.
    left: Option<KnownCleanState>,
    /// What was announced before there was a folder to write it into.
    early: Vec<Event>,
    /// The folder of the iteration that was just committed.
    last: Option<IterationDir>,
    /// The last commit that was made here.
    made: Option<String>,
    /// The last tree that was read or made here.
    tree: Option<Tree>,
    /// The sandbox for agents, or why there is none; tried out once, when the first agent needs it.
    sandbox: Option<Result<Bubblewrap, String>>,
    /// The commit of an iteration that a crash left, while it is taken up again.
    resuming: Option<String>,
    /// What the agent's program said of its version, by the program's path.
    version: Option<(PathBuf, Option<String>)>,
    /// Programs that are told what happens, as the committed configuration has them.
    hooks: HooksConfig,
    telling: HookTrigger,
}

/// What an iteration left, where it is all as it should be.
struct KnownCleanState {
    head: Head,
    /// Of the user's index.
    index: Option<FileStamp>,
    /// The run's state as it was written.
    state: Vec<u8>,
}

impl KnownCleanState {
    /// What a move to a commit leaves; nothing is known where it found something beside the commit.
    fn behind(git: &Git, moving: &PublishEntry, beside: WorktreeState, state: Vec<u8>) -> Option<Self> {
        let head = Head::Branch { name: moving.branch.clone(), commit: moving.new_tip.clone() };
        let index = atomic::stamp(&git.paths().index());
        (beside == WorktreeState::Nothing).then_some(Self { head, index, state })
    }

    /// Whether HEAD, its branch, the index and the runner's own documents are still as they were.
    fn is_there(&self, git: &Git, docs: &DocSet, tree: Option<&Tree>) -> bool {
        docs.get(&Doc::RunState) == Some(&self.state)
            && docs.get(&Doc::Tree).map(Vec::as_slice) == tree.map(Tree::bytes)
            && atomic::stamp(&git.paths().index()) == self.index
            && git.is_at(&self.head)
    }
}

/// The iteration on the bench.
struct OpenIteration {
    run: RunId,
    base: String,
    index: PathBuf,
    folder: IterationDir,
    deadline: Instant,
    sandbox: SandboxKind,
    set_aside: Vec<(String, &'static str)>,
    mended: crate::repo::repo_guard::RestoreReport,
    /// What came back, for the record.
    attempt: Option<Attempt>,
    verdict: GuardRun,
    /// Whether the session's files differ from the commit's before it.
    has_changes: bool,
    /// Which session of which agent it was, as far as known.
    identity: SessionIdentity,
}

/// A session that was begun.
struct SessionCheckpoint {
    iteration: Box<IterationEntry>,
    /// Of the private index.
    index: Option<FileStamp>,
    /// Of the journal.
    journal: Option<FileStamp>,
    /// Of the user's index.
    users: Option<FileStamp>,
}

impl<'a> RepoWorld<'a> {
    /// Opens the repository that `dir` lies in, for iterations.
    pub fn open(
        dir: &Path,
        audience: EventSink<'a>,
        wants_stop: Box<dyn Fn() -> bool + 'a>,
    ) -> Result<Self, Error> {
        let mut git = Git::open(dir)?;
        atomic::ensure_folder(&git.paths().private())?;
        let lock = Some(Lock::acquire(&git.paths().lock())?);
        let control = CancelHandle::new()?;
        allow_filters(&mut git)?;
        Ok(Self {
            git,
            lock,
            control,
            supervision: SupervisorSlot::default(),
            signals: None,
            audience,
            wants_stop,
            bench: None,
            session: None,
            head: None,
            at_start: None,
            at_head: None,
            left: None,
            early: Vec::new(),
            last: None,
            made: None,
            tree: None,
            sandbox: None,
            resuming: None,
            version: None,
            hooks: HooksConfig::default(),
            telling: HookTrigger::default(),
        })
    }

    /// The work tree's root.
    pub fn root(&self) -> &Path {
        self.git.root()
    }

    /// Ends the work: the repository, and the lock that is still held.
    pub(crate) fn into_parts(self) -> (Git, Option<Lock>) {
        (self.git, self.lock)
    }

    /// The commit that HEAD was at when the state was last read.
    pub(crate) fn head(&self) -> Option<String> {
        self.head.clone()
    }

    /// From now on, signals stop the session politely and end the loop.
    pub fn handle_signals(&mut self) -> Result<(), Error> {
        self.signals = Some(SignalListener::install(&self.control)?);
        Ok(())
    }

    /// How the user broke in, if they did.
    fn interruption(&self) -> Option<Interruption> {
        self.signals.as_ref().and_then(SignalListener::received).map(interruption_of)
    }

    /// How many commits of the user's own the next iteration takes in.
    fn own_commits(&self, run: &RunId) -> Result<u32, Error> {
        match self.resuming.as_ref().or(self.head.as_ref()) {
            Some(tip) if self.made.as_ref() != Some(tip) => self.git.own_commits(run.as_str(), tip),
            Some(_) | None => Ok(0),
        }
    }

    /// The tree that a document stands for. The one that was committed last need not be read again.
    fn tree_of(&self, bytes: &[u8]) -> Result<Tree, StartError> {
        match &self.tree {
            Some(tree) if tree.bytes() == bytes => Ok(tree.clone()),
            Some(_) | None => Tree::decode(bytes).map_err(StartError::Tree),
        }
    }

    fn bench(&mut self) -> Result<&mut OpenIteration, Error> {
        self.bench
            .as_mut()
            .ok_or_else(|| Error::GitOutput { command: "no iteration is under way".to_owned() })
    }

    /// Refuses, in the contract's order, a repository in which no iteration may begin.
    fn check(&mut self, docs: &DocSet) -> Result<(), Error> {
        let status = match &self.left {
            Some(left) if left.is_there(&self.git, docs, self.tree.as_ref()) => {
                RepoStatus::clean(left.head.clone())
            }
            _ => self.git.status()?,
        };
        self.head = status.head.commit().map(str::to_owned);
        let state = docs.get(&Doc::RunState).and_then(|bytes| RunState::decode(bytes).ok());
        let goal = docs.get(&Doc::Goal).and_then(|bytes| Goal::parse(bytes).ok());
        let standing = IdentityInputs {
            branch: status.head.branch(),
            has_gitignore: docs.contains_key(&Doc::Gitignore),
            state_id: state.as_ref().and_then(|state| state.run_id.as_ref()),
            goal_id: goal.as_ref().and_then(Goal::id),
        };
        let mut faults = standing.faults().into_iter().peekable();
        let on_protected = |fault: &IdentityError| matches!(fault, IdentityError::ProtectedBranch(_));
        if let Some(fault) = faults.next_if(on_protected) {
            return Err(UserError::Identity(fault).into());
        }
        if !status.outside.is_empty() {
            let (paths, more) = show_paths(&status.outside);
            return Err(UserError::Dirty { paths, more }.into());
        }
        if let Some(fault) = faults.next() {
            return Err(UserError::Identity(fault).into());
        }
        if !status.inside.is_empty() {
            let (paths, more) = show_paths(&status.inside);
            return Err(UserError::RunnerChanged { paths, more }.into());
        }
        self.git.operation().map_or(Ok(()), |operation| Err(UserError::Busy(operation).into()))
    }
}

/// Lets the filters run that the configuration names. One that cannot be read is told later, with its faults.
fn allow_filters(git: &mut Git) -> Result<(), Error> {
    let docs = read_docs(git).unwrap_or_default();
    let config = docs.get(&Doc::Config).and_then(|bytes| Config::decode(bytes).ok()).unwrap_or_default();
    git.allow_filters(&config.git.filters)
}

fn interruption_of(caught: ShutdownSignal) -> Interruption {
    match caught {
        ShutdownSignal::Interrupt => Interruption::Int,
        ShutdownSignal::Terminate => Interruption::Term,
        ShutdownSignal::HangUp => Interruption::Hup,
    }
}

fn decoded<T>(
    docs: &DocSet,
    doc: Doc,
    decode: impl FnOnce(&[u8]) -> Result<T, StartError>,
) -> Result<T, Error> {
    let bytes = docs.get(&doc).ok_or(UserError::MissingDoc(doc))?;
    Ok(decode(bytes)?)
}

fn text_of(docs: &DocSet, doc: Doc) -> String {
    docs.get(&doc).map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default()
}

impl World for RepoWorld<'_> {
    type Error = Error;

    fn load(&mut self) -> Result<Snapshot, Error> {
        let files = match &self.resuming {
            Some(base) => StepInputs::of_commit(&self.git, base)?,
            None => StepInputs::of_work_tree(&self.git)?,
        };
        let docs = &files.docs;
        if self.resuming.is_none() {
            self.check(docs)?;
        }
        let state =
            decoded(docs, Doc::RunState, |bytes| RunState::decode(bytes).map_err(StartError::RunState))?;
        let tree = decoded(docs, Doc::Tree, |bytes| self.tree_of(bytes))?;
        self.tree = Some(tree.clone());
        let path: Vec<NodeId> = match select(&tree) {
            Selection::Leaf(choice) | Selection::Stuck(choice) => {
                choice.path.iter().map(|node| node.id.clone()).collect()
            }
            Selection::Complete => Vec::new(),
        };
        let run_id = state.run_id.clone().ok_or(UserError::MissingDoc(Doc::RunState))?;
        let own_commits = self.own_commits(&run_id)?;
        let repaired = state.repair.as_ref().and_then(|repair| tree.path_to(&repair.node));
        let repaired = repaired.into_iter().flatten().map(|node| node.id.clone());
        let (node, git) = (path.last(), &self.git);
        let note = |id: &NodeId| files.note(git, id).map(|text| (id.clone(), text));
        let kept = |id: &NodeId| (id.clone(), files.artifacts(git, id));
        let config = decoded(docs, Doc::Config, |bytes| Config::decode(bytes).map_err(StartError::Config))?;
        self.hooks = config.hooks.clone();
        Ok(Snapshot {
            run_id,
            goal: decoded(docs, Doc::Goal, |bytes| Ok(Goal::parse(bytes)?.body().to_owned()))?,
            config,
            memory: Memory {
                assumptions: text_of(docs, Doc::Assumptions),
                questions: text_of(docs, Doc::Questions),
                feedback: text_of(docs, Doc::Feedback),
                improvements: text_of(docs, Doc::Improvements),
            },
            node_contexts: node.and_then(note).into_iter().collect(),
            tools: files.tools(git, path.iter().cloned().chain(repaired))?,
            artifacts: node.map(kept).into_iter().collect(),
            templates: files.templates(&self.git),
            user_commits: own_commits,
            state,
            tree,
        })
    }

    fn run_agent(&mut self, job: &Job) -> Result<Attempt, Error> {
        let level = self.sandbox_for(job)?;
        self.begin_session(job, level)?;
        let ended = self.run_session(job)?;
        self.end_session(job, ended)
    }

    fn run_guard(&mut self, job: &Job, restore: &[RepoPath]) -> Result<GuardRun, Error> {
        self.restore_files(restore)?;
        let verdict = self.guard(job)?;
        self.bench()?.verdict = verdict.clone();
        failpoint::reach("iter.guard");
        Ok(verdict)
    }

    fn commit(&mut self, job: &Job, transition: &Transition) -> Result<IterationRecord, Error> {
        self.commit_iteration(job, transition)
    }

    fn announce(&mut self, event: &Event) {
        match (event, &self.bench, &self.last) {
            (Event::Planned { .. } | Event::BaselineStarted { .. } | Event::BaselineEnded { .. }, _, _) => {
                self.early.push(event.clone());
            }
            // What comes between two iterations stands with the one before.
            (
                Event::Committed { .. }
                | Event::Waiting { .. }
                | Event::BudgetUnenforceable { .. }
                | Event::Paused
                | Event::Resumed
                | Event::Stopped { .. },
                None,
                Some(folder),
            ) => folder.tell(event),
            (_, Some(bench), _) => bench.folder.tell(event),
            (_, None, _) => {}
        }
        (self.audience)(event);
        self.tell_hooks(event);
    }
}

/// Paths as the host has them.
fn bytes_of(paths: &[RepoPath]) -> Vec<Vec<u8>> {
    paths.iter().map(RepoPath::to_bytes).collect()
}

impl RepoWorld<'_> {
    /// Puts protected files back, in the index and in the work tree.
    fn restore_files(&mut self, paths: &[RepoPath]) -> Result<(), Error> {
        if paths.is_empty() {
            return Ok(());
        }
        let paths = bytes_of(paths);
        let root = self.git.root().to_owned();
        let (base, index) = {
            let bench = self.bench()?;
            (bench.base.clone(), bench.index.clone())
        };
        worktree::restore_in_index(&self.git, &index, &base, &paths)?;
        for path in paths.iter().map(|path| root.join(path_of(path))) {
            // A link on the way leads elsewhere, and nothing there is the run's.
            path.parent().map_or(Ok(()), |folder| atomic::create_folders(&root, folder))?;
            atomic::remove_any(&path)?;
        }
        self.git.check_out(&index, &paths)
    }
}
