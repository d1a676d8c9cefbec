//! `runner status`: the run's status, progress and cost.

mod rows;

use std::path::Path;

use runner_core::checks::coverage::Coverage;
use runner_core::config::{Config, OnStuck};
use runner_core::layout::Doc;
use runner_core::model::cost::unenforceable_limits;
use runner_core::model::goal::Goal;
use runner_core::model::id::{IterationNumber, RunId};
use runner_core::model::run_state::RunState;
use runner_core::model::tree::{SelectedLeaf, Selection, Tree, next_selection, path_text, stuck_leaves};
use runner_core::run_status::{
    CheckoutFacts, DocumentFacts, LockHolder, PendingWait, RunFacts, RunRef, RunStatus, RunTotals,
    StartBlocker, run_status,
};
use runner_core::runs::identity::IdentityError;
use runner_core::step::{AgentChoice, RecordedEvent, next_agent, pending_wait};
use runner_host::ops::edit::questions;
use runner_host::ops::edit_queue::queued_edits;
use runner_host::repo::readonly_repo::{ReadonlyRepo, RunBranch, WorkTreeRun};
use runner_host::repo::recovery::RecoveryNote;
use runner_host::view::checks::checks_view;
use runner_host::view::inspect::{Inspection, inspect_with_runs};
use runner_host::view::newest_events::newest_events;
use runner_host::view::run_folder::other_worktree;
use runner_term::{CommandError, CommandOutput, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use self::rows::{recovery_text, value_width};
use crate::render::clean;
use crate::render::cost::blind_text;
use crate::render::summary::command_lines;
use crate::render::wait::{countdown, in_utc, left_ms};

/// Everything that was read about the run.
pub(crate) struct StatusOutput {
    inspection: Inspection,
    lock: LockHolder,
    events: Vec<RecordedEvent>,
    identity: Vec<IdentityError>,
    invalid: Vec<Doc>,
    branch: String,
    /// How many notes and answers wait for the runner.
    queued: usize,
    /// How much of the acceptance is proven.
    coverage: Option<Coverage>,
    /// How many questions of agents have no answer.
    open_questions: usize,
    /// The run to show if none is checked out.
    elsewhere: Option<RunElsewhere>,
}

/// A run whose branch is not checked out, as its last commit has it.
struct RunElsewhere {
    branch: RunBranch,
    documents: BranchDocuments,
    status: RunStatus,
}

/// What is shown of a goal.
struct GoalTitle<'a> {
    title: &'a str,
    is_written: bool,
}

/// The documents in the last commit of a branch, if they are valid.
struct BranchDocuments {
    goal: Option<String>,
    tree: Option<Tree>,
    state: Option<RunState>,
    config: Option<Config>,
}

impl BranchDocuments {
    fn read(repo: &ReadonlyRepo, branch: &RunBranch) -> Self {
        let doc = |doc| repo.doc(&branch.commit, doc).ok().flatten().unwrap_or_default();
        Self {
            goal: Goal::parse(&doc(Doc::Goal)).ok().map(|goal| goal.summary().title),
            tree: Tree::decode(&doc(Doc::Tree)).ok(),
            state: RunState::decode(&doc(Doc::RunState)).ok(),
            config: Config::decode(&doc(Doc::Config)).ok(),
        }
    }

    fn status(&self, repo: &ReadonlyRepo, branch: &RunBranch) -> RunStatus {
        let worktree = other_worktree(repo.root(), &branch.run);
        let there = worktree.as_deref().and_then(|worktree| ReadonlyRepo::open(worktree).ok());
        let events = newest_events(there.as_ref().unwrap_or(repo).root(), &branch.run);
        let worktree = worktree.map(|worktree| worktree.display().to_string());
        run_status(&RunFacts {
            run: Some(RunRef { id: &branch.run, branch: &branch.name }),
            documents: DocumentFacts {
                tree: self.tree.as_ref(),
                config: self.config.as_ref(),
                state: self.state.as_ref(),
                invalid: if self.tree.is_none() { &[Doc::Tree] } else { &[] },
            },
            checkout: CheckoutFacts {
                is_elsewhere: true,
                worktree: worktree.as_deref(),
                ..CheckoutFacts::default()
            },
            lock: there.as_ref().map_or(LockHolder::Free, |there| {
                lock_of(there, there.pending_iteration().is_some() || there.has_pending_publish())
            }),
            is_paused: there.as_ref().is_some_and(ReadonlyRepo::is_paused),
            is_stopping: there.as_ref().is_some_and(ReadonlyRepo::is_stopping),
            events: &events,
            totals: RunTotals {
                iterations: self.state.as_ref().map_or(0, |state| state.next_iter.get() - 1),
                ended_ms: Some(branch.unix_secs.saturating_mul(1000)),
                ..RunTotals::default()
            },
            ..RunFacts::default()
        })
    }
}

pub(crate) fn run(dir: &Path) -> Result<StatusOutput, CommandError> {
    read(dir).map_err(|error| CommandError::from_host("could not read the run's status", error))
}

/// Reads everything that the status of a run depends on. Takes no lock and writes nothing.
pub(crate) fn read(dir: &Path) -> Result<StatusOutput, runner_host::Error> {
    let repo = ReadonlyRepo::open(dir)?;
    let inspection = inspect_with_runs(&repo)?;
    let run = inspection.run();
    let events = run.map(|run| newest_events(&inspection.root, run)).unwrap_or_default();
    let branch = run.map(|run| run.branch().to_string()).unwrap_or_default();
    let lock = lock_of(&repo, inspection.interrupted);
    let invalid = invalid_documents(&inspection);
    // Invalid documents are reported by name.
    let coverage = checks_view(&repo).ok().map(|view| view.coverage).filter(|coverage| coverage.points > 0);
    let identity = inspection.identity_faults();
    let queued = queued_edits(&repo)?.len();
    let asked = questions(&repo).unwrap_or_default();
    let open_questions = asked.iter().filter(|question| question.answers.is_empty()).count();
    let elsewhere =
        if run.is_none() && lock == LockHolder::Free { elsewhere(&repo, &inspection)? } else { None };
    Ok(StatusOutput {
        lock,
        events,
        identity,
        invalid,
        branch,
        queued,
        coverage,
        open_questions,
        elsewhere,
        inspection,
    })
}

/// Who holds the lock of a work tree. An interrupted operation without a holder is a crash.
fn lock_of(repo: &ReadonlyRepo, is_interrupted: bool) -> LockHolder {
    match repo.lock_holder() {
        Some(pid) => LockHolder::Runner { pid },
        None if is_interrupted => {
            let iteration: Option<IterationNumber> =
                repo.pending_iteration().and_then(|iteration| iteration.parse().ok());
            LockHolder::DeadRunner { iteration }
        }
        None => LockHolder::Free,
    }
}

/// The run to show while another branch is checked out, the same one as on the page.
fn elsewhere(
    repo: &ReadonlyRepo,
    inspection: &Inspection,
) -> Result<Option<RunElsewhere>, runner_host::Error> {
    let named = inspection.docs.state.valid().and_then(|state| state.run_id.clone());
    if named.as_ref().is_some_and(|run| repo.is_checked_out(run)) {
        return Ok(None);
    }
    let work_tree = WorkTreeRun { named, has_goal: !inspection.docs.missing.contains(&Doc::Goal) };
    Ok(work_tree.elsewhere(&repo.runs()?).map(|branch| {
        let documents = BranchDocuments::read(repo, branch);
        RunElsewhere { status: documents.status(repo, branch), branch: branch.clone(), documents }
    }))
}

/// The status of any run here: as `runner status` shows it if it is checked out somewhere, else from its last commit.
pub(crate) fn status_of_run(repo: &ReadonlyRepo, branch: &RunBranch, worktree: Option<&Path>) -> RunStatus {
    if let Some(current) = worktree.and_then(|worktree| read(worktree).ok()) {
        return run_status(&current.facts());
    }
    BranchDocuments::read(repo, branch).status(repo, branch)
}

/// The documents that are missing or invalid. Without goal, state and plan there is no run: git leaves the ignored logs of a run
/// behind when another branch is checked out, and a base branch may have a configuration for later runs.
fn invalid_documents(inspection: &Inspection) -> Vec<Doc> {
    if is_without_documents(inspection) {
        return Vec::new();
    }
    let documents = [
        (Doc::Goal, inspection.docs.goal.valid().is_some()),
        (Doc::Config, inspection.docs.config.valid().is_some()),
        (Doc::RunState, inspection.docs.state.valid().is_some()),
        (Doc::Tree, inspection.docs.tree.valid().is_some() && inspection.docs.refused.is_empty()),
    ];
    documents.into_iter().filter(|(_, is_valid)| !is_valid).map(|(doc, _)| doc).collect()
}

pub(super) fn is_without_documents(inspection: &Inspection) -> bool {
    let run = [Doc::Goal, Doc::RunState, Doc::Tree];
    run.iter().all(|doc| inspection.docs.missing.contains(doc)) && inspection.docs.refused.is_empty()
}

impl StatusOutput {
    pub(crate) fn facts(&self) -> RunFacts<'_> {
        let inspection = &self.inspection;
        let state = inspection.docs.state.valid();
        RunFacts {
            run: inspection.run().map(|id| RunRef { id, branch: &self.branch }),
            documents: DocumentFacts {
                tree: self.tree(),
                config: inspection.docs.config.valid(),
                state,
                invalid: &self.invalid,
            },
            checkout: CheckoutFacts {
                identity: &self.identity,
                blocker: self.blocker(),
                is_elsewhere: false,
                worktree: None,
            },
            lock: self.lock,
            is_paused: inspection.is_paused,
            is_stopping: inspection.is_stopping,
            wait: self.wait(),
            events: &self.events,
            totals: RunTotals {
                iterations: state.map_or(0, |state| state.next_iter.get() - 1),
                ..RunTotals::default()
            },
            stop: None,
        }
    }

    fn status(&self) -> RunStatus {
        match &self.elsewhere {
            Some(run) => run.status.clone(),
            None => run_status(&self.facts()),
        }
    }

    fn run_id(&self) -> Option<&RunId> {
        self.inspection.run().or(self.elsewhere.as_ref().map(|run| &run.branch.run))
    }

    fn tree(&self) -> Option<&Tree> {
        match &self.elsewhere {
            Some(run) => run.documents.tree.as_ref(),
            None => self.inspection.docs.tree.valid(),
        }
    }

    fn state(&self) -> Option<&RunState> {
        match &self.elsewhere {
            Some(run) => run.documents.state.as_ref(),
            None => self.inspection.docs.state.valid(),
        }
    }

    fn config(&self) -> Option<&Config> {
        match &self.elsewhere {
            Some(run) => run.documents.config.as_ref(),
            None => self.inspection.docs.config.valid(),
        }
    }

    /// The goal's title, and whether it is written.
    fn goal(&self) -> Option<GoalTitle<'_>> {
        match &self.elsewhere {
            Some(run) => run.documents.goal.as_deref().map(|title| GoalTitle { title, is_written: true }),
            None => {
                let goal = self.inspection.docs.goal.valid()?;
                Some(GoalTitle { title: &goal.title, is_written: goal.is_written })
            }
        }
    }

    /// The last recovery after a crash, if it was in this run.
    fn recovery(&self) -> Option<&RecoveryNote> {
        let run = self.inspection.run()?;
        self.inspection.recovery.as_ref().filter(|recovery| recovery.run == run.as_str())
    }

    fn selected(&self) -> Option<SelectedLeaf<'_>> {
        let on_stuck = self.config().map_or(OnStuck::Stop, |config| config.on_stuck);
        match self.tree().map(|tree| next_selection(tree, on_stuck)) {
            Some(Selection::Leaf(selected) | Selection::Stuck(selected)) => Some(selected),
            Some(Selection::Complete) | None => None,
        }
    }

    fn blocker(&self) -> Option<StartBlocker> {
        let inspection = &self.inspection;
        if is_without_documents(inspection) {
            return Some(StartBlocker::NotInitialized);
        }
        if inspection.docs.goal.valid().is_some_and(|goal| !goal.is_written) {
            return Some(StartBlocker::GoalNotWritten);
        }
        if inspection.runner_changed {
            return Some(StartBlocker::UncommittedRunnerFiles);
        }
        (!inspection.dirty.0.is_empty()).then_some(StartBlocker::DirtyWorktree)
    }

    /// The agent of the next session.
    fn agent(&self) -> Option<AgentChoice> {
        let (config, state) = (self.config()?, self.state()?);
        Some(next_agent(config, state, Some(self.selected()?.leaf)))
    }

    fn wait(&self) -> Option<PendingWait<'_>> {
        let (ends_ms, _) = self.inspection.waiting?;
        let wait = pending_wait(self.state()?, self.config()?, &self.agent()?.executor)?;
        Some(PendingWait { wait, ends_ms })
    }

    /// The limits that cannot be enforced, because the agent reports no usage.
    fn warning(&self) -> Option<String> {
        let (config, state) = (self.config()?, self.state()?);
        let agent = self.agent()?;
        let limits = unenforceable_limits(config, &state.spent, &agent.executor);
        (!limits.is_empty()).then(|| blind_text(&limits, &clean(&agent.executor.label())))
    }
}

impl CommandOutput for StatusOutput {
    fn json(&self) -> Value {
        let inspection = &self.inspection;
        let (state, config) = (self.state(), self.config());
        let mut document = json!({
            "schema": "runner.status/1",
            "run_id": self.run_id(),
            "root": inspection.root.display().to_string(),
            "branch": inspection.head.branch(),
            "commit": inspection.head.commit(),
            "goal": self.goal().map(|goal| json!({ "title": goal.title, "written": goal.is_written })),
            "leaves": self.tree().map(|tree| tree.root().leaves()),
            "node": self.selected().map(|selected| json!({
                "id": selected.leaf.id,
                "path": path_text(&selected.path),
                "title": selected.leaf.title,
                "attempts": selected.leaf.attempts,
                "max_attempts": selected.leaf.max_attempts,
            })),
            "run_state": state.map(|state| serde_json::to_value(state).unwrap_or_default()),
            "agent": self.agent().map(|agent| json!({ "name": agent.executor.label(), "rung": agent.rung })),
            "wait": self.wait().map(|PendingWait { wait, ends_ms }| json!({
                "outcome": wait.outcome,
                "agent": wait.agent,
                "ends_unix_ms": ends_ms,
                "left_ms": left_ms(ends_ms),
            })),
            "paused": inspection.is_paused,
            "budget": config.map(|config| config.budget),
            "cost": state.map(|state| state.spent.basis()),
            "warning": self.warning(),
            "max_iterations": config.map(|config| config.max_iterations.get()),
            "recovered": self.recovery(),
            "identity": self.identity.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "changed": inspection.dirty.0,
            "acceptance": self.coverage,
            "queued_edits": self.queued,
            "open_questions": self.open_questions,
            "stuck": self.tree().map(|tree| stuck_leaves(tree).iter().map(|leaf| &leaf.id).collect::<Vec<_>>()),
        });
        insert_status(&mut document, &self.status());
        document
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let inspection = &self.inspection;
        let status = self.status();
        let line = |key: &str, value: String| KeyValueLine::new().with(key, value);
        let mut lines = vec![line("state", status.state.as_str().to_owned())];
        lines.extend(status.phase.map(|phase| line("phase", phase.as_str().to_owned())));
        lines.extend(status.stop.as_ref().map(|stop| line("stop", stop.as_str().to_owned())));
        lines.push(line("headline", status.headline.clone()));
        lines.extend(self.run_id().map(|run| line("run_id", run.to_string())));
        lines.push(line(
            "branch",
            inspection.head.branch().map(|branch| clean(branch.as_str())).unwrap_or_default(),
        ));
        if let Some(tree) = self.tree() {
            let leaves = tree.root().leaves();
            lines.push(KeyValueLine::new().with("leaves", leaves.total));
            lines.push(KeyValueLine::new().with("leaves_passed", leaves.passed));
        }
        if let Some(selected) = self.selected() {
            lines.push(line("node", path_text(&selected.path)));
            lines.push(KeyValueLine::new().with("attempts", selected.leaf.attempts));
            lines.push(KeyValueLine::new().with("max_attempts", selected.leaf.max_attempts));
        }
        if let Some(state) = self.state() {
            lines.push(KeyValueLine::new().with("next_iter", state.next_iter.get()));
        }
        if let Some(PendingWait { wait, ends_ms }) = self.wait() {
            lines.push(KeyValueLine::new().with("wait_reason", wait.outcome));
            lines.push(line("wait_until", in_utc(ends_ms)));
            lines.push(line("wait_left", countdown(left_ms(ends_ms))));
        }
        let rows = self.session_rows().into_iter().filter(|(name, _)| *name != "wait");
        lines.extend(rows.map(|(name, value)| line(name, value)));
        lines.extend(self.recovery().map(|recovery| line("recovered", recovery_text(recovery))));
        lines.extend(self.identity.iter().map(|error| line("identity", error.to_string())));
        lines.push(KeyValueLine::new().with("changed", inspection.dirty.0.len() + inspection.dirty.1));
        lines.extend(status.next.iter().map(|next| line("next", next.command.clone())));
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        let status = self.status();
        let label = status.label();
        let mut text = format!(
            "{} {}: {}\n",
            styler.label_glyph(label),
            styler.paint(label.tone.into(), label.text),
            styler.paint(TextRole::Strong, &status.headline)
        );
        for detail in &status.details {
            text.push_str(&format!("  {}\n", styler.fit(detail, styler.width.saturating_sub(2))));
        }
        text.push('\n');
        for (name, value) in self.rows(&status, styler) {
            // The bar has its own colours and already fits.
            let value = if name == "progress" { value } else { styler.fit(&value, value_width(styler)) };
            text.push_str(&format!("  {} {value}\n", styler.paint(TextRole::Faint, &format!("{name:10}"))));
        }
        let commands = command_lines(&status.next, value_width(styler));
        if !commands.is_empty() {
            text.push('\n');
        }
        for (name, command) in std::iter::once("next").chain(std::iter::repeat("")).zip(commands) {
            let command = styler.paint(TextRole::Strong, &command);
            text.push_str(&format!("  {} {command}\n", styler.paint(TextRole::Faint, &format!("{name:10}"))));
        }
        text
    }
}

/// Adds the fields of a run's status to a JSON document.
pub(crate) fn insert_status(document: &mut Value, status: &RunStatus) {
    if let (Some(document), Ok(Value::Object(status))) =
        (document.as_object_mut(), serde_json::to_value(status))
    {
        document.extend(status);
    }
}
