//! The core's `World` in a real repository: it carries out each stage of a step and decides nothing.

use runner_core::config::RoomMode;
use runner_core::model::checks::Check;
use runner_core::model::object_id::CommitId;
use runner_core::model::repo_path::RepoPath;
use runner_core::model::run_state::RecordedGuardRun;
use runner_core::runs::edit::Question;
use runner_core::step::{
    Attempt, CheckRun, Event, FileNotice, GuardJob, GuardRecord, GuardRun, HeldoutId, HeldoutRun,
    IterationWorld, Job, LoadedRun, PassedChecks, PastIteration, RedBaselineAnswer, RedResults, ReviewJob,
    ReviewRun, SessionRequest, StopReason, Transition, World,
};

use super::agent_version::AgentVersion;
use super::commit::commit_iteration;
use super::earlier_records::EarlierRecords;
use super::event_log::{EventLog, EventSink, HookRun};
use super::guard;
use super::heldout;
use super::iteration_dir::EventsFile;
use super::known_state::KnownState;
use super::load::load_with_known;
use super::maintenance::Maintenance;
use super::open_iteration::OpenIteration;
use super::parallel::in_parallel;
use super::program_runner::ProgramRunner;
use super::recheck::{self, Recheck};
use super::recorded_guard;
use super::red_baseline::{self, RedBaselineChoice};
use super::red_check::{RedCheck, StubFile};
use super::review;
use super::sandboxing::SandboxProbe;
use super::session::{PreparedSession, SessionEnv};
use crate::error::Error;
use crate::failpoint;
use crate::fs::atomic;
use crate::fs::free_space::refuse_full_disk;
use crate::git::Git;
use crate::ops::edit_queue;
use crate::repo::documents::questions_in;
use crate::repo::exclude_file::ignore_local_files;
use crate::repo::locked_repo::{LockedRepo, UnrecoveredRepo};
use crate::repo::recovery::Recovered;
use crate::repo::repo_guard::GitAccess;
use crate::repo::worktree::UserFiles;
use crate::room::{Candidate, GuardRoom, KeptStore, RoomSlot};

/// Reports why a loop is to stop after the current iteration, if it is.
pub(crate) type RequestedStop<'a> = Box<dyn Fn() -> Option<StopReason> + 'a>;

/// What the user decides while a loop runs.
pub(super) struct UserChoices<'a> {
    /// Why to stop after the current iteration, if that is wanted.
    pub(super) requested_stop: RequestedStop<'a>,
    /// Whether a run may begin although its guard already fails.
    pub(super) red_baseline: Box<dyn Fn(&RecordedGuardRun) -> RedBaselineChoice + 'a>,
    /// What the user's command asks of a session.
    pub(super) request: SessionRequest,
}

/// What was found out about the agent's program, once per process.
#[derive(Default)]
struct KnownAgent {
    sandbox: SandboxProbe,
    version: AgentVersion,
}

/// A repository in which iterations run.
pub struct RepoWorld<'a> {
    pub(super) repo: LockedRepo,
    pub(super) programs: ProgramRunner,
    pub(super) events: EventLog<'a>,
    agent: KnownAgent,
    /// The ignored files that were kept before the last session.
    user_files: Option<UserFiles>,
    maintenance: Maintenance,
    /// Where the guard runs.
    pub(super) room: RoomSlot,
    /// The clean checkout of a final check, while it runs.
    pub(super) fresh_room: Option<GuardRoom>,
    /// The state after the last commit, while nothing else can have changed it.
    pub(super) known: Option<KnownState>,
    pub(super) choices: UserChoices<'a>,
}

impl<'a> RepoWorld<'a> {
    /// Recovers what a crash left, then is ready for iterations. From now on signals stop a session gracefully and end the
    /// loop.
    pub fn new(
        repo: UnrecoveredRepo,
        sink: EventSink<'a>,
        requested_stop: RequestedStop<'a>,
    ) -> Result<Self, Error> {
        Self::with_events(repo, EventLog::new(sink), requested_stop)
    }

    /// For a command that does not show events.
    pub(crate) fn without_sink(repo: UnrecoveredRepo) -> Result<Self, Error> {
        Self::with_events(repo, EventLog::without_sink(), Box::new(|| None))
    }

    fn with_events(
        repo: UnrecoveredRepo,
        mut events: EventLog<'a>,
        requested_stop: RequestedStop<'a>,
    ) -> Result<Self, Error> {
        let programs = ProgramRunner::with_signals()?;
        let repo = repo.recover(&programs, &mut events)?;
        repo.refuse_crash_loop()?;
        // In a fresh clone, `start` did not do it.
        ignore_local_files(repo.git());
        let mut world = Self {
            repo,
            programs,
            events,
            agent: KnownAgent::default(),
            user_files: None,
            maintenance: Maintenance::default(),
            room: RoomSlot::default(),
            fresh_room: None,
            known: None,
            choices: UserChoices {
                requested_stop,
                red_baseline: Box::new(|_| RedBaselineChoice::Allow),
                request: SessionRequest::Next,
            },
        };
        world.commit_queued_edits();
        Ok(world)
    }

    /// Lets `choose` decide whether a run begins although its guard already fails. By default it begins.
    pub fn set_red_baseline_choice(&mut self, choose: impl Fn(&RecordedGuardRun) -> RedBaselineChoice + 'a) {
        self.choices.red_baseline = Box::new(choose);
    }

    /// Runs a check on the files of the last commit, the check files of its task, and these stubs.
    pub(crate) fn run_stub_check(
        &mut self,
        run: &LoadedRun,
        job: &Job,
        check: &Check,
        stubs: &[StubFile],
    ) -> Result<CheckRun, Error> {
        let git = self.repo.git();
        let base = Candidate { tree: git.tree_of(&run.commit)?, commit: run.commit.clone() };
        let room = self.room.at(git, &job.run_id, &job.guard, &base)?;
        let red = RedCheck { git, programs: &self.programs, run, job, stubs };
        let result = red.run(room, check)?;
        if matches!(room, GuardRoom::InPlace { .. }) {
            // The check ran in the work tree.
            self.known = None;
        }
        Ok(result)
    }

    /// Makes the next session one that only plans.
    pub fn request_plan(&mut self) {
        self.choices.request = SessionRequest::Plan;
    }

    /// Commits the notes and answers that came while the lock was held. What cannot be committed now stays.
    pub fn commit_queued_edits(&mut self) {
        if edit_queue::count(self.repo.git().paths()) == 0 {
            return;
        }
        if let Ok(events) = edit_queue::commit_queued(&self.repo) {
            self.known = None;
            events.iter().for_each(|event| self.announce(event));
        }
    }

    /// The iteration is committed: a file that cannot be read must not fail it.
    fn announce_questions(&mut self, job: &Job) {
        let questions = questions_in(self.repo.git()).unwrap_or_default();
        for question in self.events.asked(&questions).to_vec() {
            let Question { number, text, .. } = question;
            self.announce(&Event::Asked { iter: job.iteration, number, text });
        }
    }

    /// What a crash had left, for the report of the command that finished it.
    pub fn take_recovered(&mut self) -> Option<Recovered> {
        self.repo.take_recovered()
    }
}

impl Drop for RepoWorld<'_> {
    /// Before the fields, and with them the lock, are dropped: a second runner's maintenance must not meet this one's.
    fn drop(&mut self) {
        self.maintenance.finish(|| self.programs.interruption().is_some());
        self.maintenance = Maintenance::default();
    }
}

impl IterationWorld for RepoWorld<'_> {
    type Error = Error;
    type Iteration = OpenIteration;

    fn run_guard(
        &mut self,
        iteration: &mut OpenIteration,
        job: &Job,
        restore: &[RepoPath],
    ) -> Result<GuardRun, Error> {
        run_guard(self.repo.git(), &self.programs, &mut self.room, iteration, job, restore)
    }

    fn run_check(
        &mut self,
        iteration: &mut OpenIteration,
        job: &Job,
        check: &Check,
        restore: &[RepoPath],
    ) -> Result<CheckRun, Error> {
        run_check(self.repo.git(), &self.programs, &mut self.room, iteration, job, check, restore)
    }

    fn run_heldout(
        &mut self,
        iteration: &mut OpenIteration,
        job: &Job,
        check: HeldoutId<'_>,
        restore: &[RepoPath],
    ) -> Result<HeldoutRun, Error> {
        iteration.restore_files(self.repo.git(), restore, &job.permissions.protection)?;
        heldout::run_for_iteration(self.repo.git(), &self.programs, iteration, job, check)
    }

    fn run_review(
        &mut self,
        iteration: &mut OpenIteration,
        job: &Job,
        review: &ReviewJob,
    ) -> Result<ReviewRun, Error> {
        let sandbox = self.agent.sandbox.choose(self.repo.git(), &review::reviewer_job(job, review))?;
        review::run(self.repo.git(), &self.programs, sandbox, iteration, job, review)
    }

    fn commit(
        &mut self,
        iteration: OpenIteration,
        job: &Job,
        transition: &Transition,
    ) -> Result<CommitId, Error> {
        let committed = commit_iteration(self.repo.git(), iteration, job, transition)?;
        self.known = committed.known;
        self.announce_questions(job);
        Ok(committed.commit)
    }

    fn discard(&mut self, iteration: OpenIteration, job: &Job) -> Result<(), Error> {
        iteration.discard(self.repo.git(), job)
    }

    fn announce(&mut self, event: &Event) {
        let hook = self.events.announce(event, self.repo.git().paths(), &self.programs);
        if hook == HookRun::Yes {
            // A hook may change the work tree.
            self.known = None;
        }
    }
}

impl World for RepoWorld<'_> {
    fn load(&mut self) -> Result<LoadedRun, Error> {
        let run = load_with_known(self.repo.git(), &mut self.known)?;
        let git = self.repo.git();
        let guard = &run.snapshot.config.guard;
        if guard.room != RoomMode::InPlace {
            KeptStore::of_run(git, &run.snapshot.run_id).require(&guard.keep)?;
        }
        let run_file = EventsFile::of_run(git.paths(), &run.snapshot.run_id);
        self.events.begin(run_file, &run.snapshot.config, &questions_in(git)?);
        Ok(LoadedRun { request: self.choices.request, ..run })
    }

    fn run_red_check(&mut self, run: &LoadedRun, job: &Job, check: &Check) -> Result<CheckRun, Error> {
        self.run_stub_check(run, job, check, &[])
    }

    fn run_heldout_at_tip(&mut self, run: &LoadedRun, check: HeldoutId<'_>) -> Result<HeldoutRun, Error> {
        heldout::run_at_tip(self.repo.git(), &self.programs, run, check)
    }

    fn run_agent(
        &mut self,
        run: &LoadedRun,
        job: &Job,
        red: &RedResults,
    ) -> Result<(OpenIteration, Attempt), Error> {
        let git = self.repo.git();
        // What a killed runner may have left of a held-out check.
        atomic::remove_any(&git.paths().heldout_room())?;
        refuse_full_disk(&[git.root(), git.common_dir()])?;
        let sandbox = self.agent.sandbox.choose(git, job)?;
        if let Some(event) = self.agent.sandbox.news(job, &sandbox) {
            self.announce(&event);
        }
        let git = self.repo.git();
        let base = Candidate { tree: git.tree_of(&run.commit)?, commit: run.commit.clone() };
        self.room.at(git, &job.run_id, &job.guard, &base)?;
        if let Some(why) = self.room.take_reason() {
            self.announce(&Event::GuardInPlace { why });
        }
        let git = self.repo.git();
        let user_files = UserFiles::keep(git, &job.run_id, self.user_files.take())?;
        let kind = sandbox.kind();
        let mut env = SessionEnv {
            git,
            programs: &self.programs,
            events: &mut self.events,
            version: &mut self.agent.version,
        };
        // There are many records. They are looked at beside work that waits for the disk.
        let (records, prepared) = in_parallel(
            || Ok(EarlierRecords::before(git, &job.run_id, job.iteration, kind)),
            || PreparedSession::prepare(&mut env, run, job, sandbox, self.known.take(), red),
        )?;
        self.maintenance.begin(git, run, job);
        let access = GitAccess::of(kind);
        self.room.begin_session(git, access)?;
        let ended = prepared.run(&mut env, job)?;
        self.room.end_session(git, access);
        // Before the work tree is staged: the rule for a restored file may be missing.
        let mut notices = user_files.restore(git);
        self.user_files = Some(user_files);
        let (changed, (mut iteration, attempt)) = in_parallel(
            || Ok(records.changes(git)),
            || ended.store(git, job, |candidate| self.room.begin_update(git, candidate)),
        )?;
        notices.extend(changed);
        iteration.report_files(notices, job, &mut self.events);
        Ok((iteration, attempt))
    }

    fn run_recorded_guard(&mut self, run: &LoadedRun, job: &GuardJob) -> Result<GuardRun, Error> {
        recorded_guard::run(self, run, job)
    }

    fn run_recheck(
        &mut self,
        run: &LoadedRun,
        job: &GuardJob,
        task: &PassedChecks,
        check: &Check,
        at: &CommitId,
    ) -> Result<CheckRun, Error> {
        Recheck { run, job, task, check, at }.run(self)
    }

    fn past_iterations(&mut self, run: &LoadedRun) -> Result<Vec<PastIteration>, Error> {
        recheck::past_iterations(self, run)
    }

    fn discard_guard_record(&mut self, run: &LoadedRun, job: &GuardJob) -> Result<(), Error> {
        recorded_guard::discard(self, run, job)
    }

    fn accept_red_baseline(
        &mut self,
        run: &LoadedRun,
        job: &GuardJob,
        baseline: &RecordedGuardRun,
    ) -> Result<RedBaselineAnswer, Error> {
        red_baseline::accept(self, run, job, baseline)
    }

    fn commit_guard_record(&mut self, run: &LoadedRun, record: &GuardRecord) -> Result<CommitId, Error> {
        recorded_guard::commit(self, run, record)
    }
}

impl OpenIteration {
    /// Reports every file that is not committed as the session left it, and further ones.
    pub(crate) fn report_files(&mut self, more: Vec<FileNotice>, job: &Job, events: &mut EventLog<'_>) {
        self.notices.extend(more);
        self.notices.extend(self.restored_notices());
        for notice in &self.notices {
            events.record(&Event::FileNoticed { iter: job.iteration, notice: notice.clone() });
        }
    }
}

fn run_guard(
    git: &Git,
    programs: &ProgramRunner,
    room: &mut RoomSlot,
    iteration: &mut OpenIteration,
    job: &Job,
    restore: &[RepoPath],
) -> Result<GuardRun, Error> {
    iteration.restore_files(git, restore, &job.permissions.protection)?;
    let base = &iteration.setup.base;
    let base = Candidate { tree: git.tree_of(base)?, commit: base.clone() };
    let room = room.at(git, &job.run_id, &job.guard, &base)?;
    iteration.guard = guard::run_for_iteration(git, programs, room, iteration, job)?;
    failpoint::reach("iter.guard");
    Ok(iteration.guard.clone())
}

fn run_check(
    git: &Git,
    programs: &ProgramRunner,
    room: &mut RoomSlot,
    iteration: &mut OpenIteration,
    job: &Job,
    check: &Check,
    restore: &[RepoPath],
) -> Result<CheckRun, Error> {
    iteration.restore_files(git, restore, &job.permissions.protection)?;
    let base = &iteration.setup.base;
    let base = Candidate { tree: git.tree_of(base)?, commit: base.clone() };
    let room = room.at(git, &job.run_id, &job.guard, &base)?;
    let result = guard::run_check_for_iteration(git, programs, room, iteration, job, check)?;
    failpoint::reach("iter.check");
    Ok(result)
}

/// The part of the world that recovery needs to finish an iteration.
pub(crate) struct RecoveryWorld<'w, 'a> {
    pub(crate) git: &'w Git,
    pub(crate) programs: &'w ProgramRunner,
    pub(crate) events: &'w mut EventLog<'a>,
}

impl IterationWorld for RecoveryWorld<'_, '_> {
    type Error = Error;
    type Iteration = OpenIteration;

    fn run_guard(
        &mut self,
        iteration: &mut OpenIteration,
        job: &Job,
        restore: &[RepoPath],
    ) -> Result<GuardRun, Error> {
        run_guard(self.git, self.programs, &mut RoomSlot::default(), iteration, job, restore)
    }

    fn run_check(
        &mut self,
        iteration: &mut OpenIteration,
        job: &Job,
        check: &Check,
        restore: &[RepoPath],
    ) -> Result<CheckRun, Error> {
        let mut room = RoomSlot::default();
        run_check(self.git, self.programs, &mut room, iteration, job, check, restore)
    }

    fn run_heldout(
        &mut self,
        iteration: &mut OpenIteration,
        job: &Job,
        check: HeldoutId<'_>,
        restore: &[RepoPath],
    ) -> Result<HeldoutRun, Error> {
        iteration.restore_files(self.git, restore, &job.permissions.protection)?;
        heldout::run_for_iteration(self.git, self.programs, iteration, job, check)
    }

    fn run_review(
        &mut self,
        iteration: &mut OpenIteration,
        job: &Job,
        review: &ReviewJob,
    ) -> Result<ReviewRun, Error> {
        let sandbox = SandboxProbe::default().choose(self.git, &review::reviewer_job(job, review))?;
        review::run(self.git, self.programs, sandbox, iteration, job, review)
    }

    fn commit(
        &mut self,
        iteration: OpenIteration,
        job: &Job,
        transition: &Transition,
    ) -> Result<CommitId, Error> {
        Ok(commit_iteration(self.git, iteration, job, transition)?.commit)
    }

    fn discard(&mut self, iteration: OpenIteration, job: &Job) -> Result<(), Error> {
        iteration.discard(self.git, job)
    }

    fn announce(&mut self, event: &Event) {
        // After recovery the state is loaded from scratch, so a hook's changes need no special care.
        let _ = self.events.announce(event, self.git.paths(), self.programs);
    }
}
