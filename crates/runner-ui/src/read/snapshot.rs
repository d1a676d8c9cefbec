//! The first screen of the page as one document, and the list of runs.

use std::sync::Arc;

use runner_core::checks::coverage::{Coverage, coverage};
use runner_core::config::{Config, Usd};
use runner_core::layout::Doc;
use runner_core::model::cost::{Amount, RunSpending, number};
use runner_core::model::id::{IterationNumber, RunId};
use runner_core::model::run_state::RunState;
use runner_core::model::tree::{Selection, next_selection};
use runner_core::model::user_notes::UserNotes;
use runner_core::run_status::{
    CheckoutFacts, DocumentFacts, LockHolder, NextCommand, PendingWait, RunFacts, RunRef, RunStatus,
    RunTotals, StartBlocker, run_status, with_later_events,
};
use runner_core::step::{Event, RecordedEvent, next_agent, pending_wait};
pub(crate) use runner_host::clock::now_ms;

use crate::api::{
    CurrentIteration, PageSnapshot, QuestionView, RunHead, RunList, RunProgress, RunRow, ServerSubject,
    ServerView, VerifyResult, VerifyVerdict, WatchMethod,
};
use crate::error::RequestError;
use crate::read::evidence::stop_evidence;
use crate::read::iterations;
use crate::read::repo_reader::{ReadTree, RepoReader, RunSource};
use crate::read::row_cache::IterationRows;
use crate::server::assets;

/// How many questions are sent; the newest ones.
const QUESTIONS_MAX: usize = 200;

/// What was read of a run.
struct RunSnapshot {
    rows: IterationRows,
    tree: Option<ReadTree>,
    config: Option<Arc<Config>>,
    state: Option<Arc<RunState>>,
    events: Vec<RecordedEvent>,
    /// When a file of the newest iteration last changed.
    changed_ms: Option<u64>,
    problems: Vec<String>,
}

impl RunSnapshot {
    fn read(project: &RepoReader, run: &RunSource) -> Self {
        let (tree, mut problems) = match project.tree(run) {
            Ok(tree) => (Some(tree), Vec::new()),
            Err(error) => (None, vec![error.to_string()]),
        };
        if let Some(Err(faults)) = tree.as_deref() {
            problems.extend(faults.iter().map(|fault| format!("tree.json: {fault}")));
        }
        let rows = iterations::rows(project, run).unwrap_or_default();
        let newest = rows.last().and_then(|row| IterationNumber::new(row.iter));
        let folder = newest.and_then(|iter| iterations::folder(project, run, iter).ok());
        let events = folder.as_ref().map(iterations::last_events).unwrap_or_default();
        let of_run = project.run_folder(&run.id).ok().as_ref().map(iterations::last_events);
        let events = with_later_events(events, of_run.unwrap_or_default());
        let changed_ms = folder.as_ref().and_then(iterations::changed_ms);
        let (config, state) = (project.config(run), project.state(run));
        Self { rows, tree, config, state, events, changed_ms, problems }
    }

    fn valid_tree(&self) -> Option<&runner_core::model::tree::Tree> {
        self.tree.as_deref().and_then(|tree| tree.as_ref().ok())
    }

    fn status(&self, project: &RepoReader, run: &RunSource) -> RunStatus {
        let branch = branch_name(run);
        let invalid: &[Doc] = if self.valid_tree().is_some() { &[] } else { &[Doc::Tree] };
        run_status(&RunFacts {
            run: Some(RunRef { id: &run.id, branch: &branch }),
            documents: DocumentFacts {
                tree: self.valid_tree(),
                config: self.config.as_deref(),
                state: self.state.as_deref(),
                invalid,
            },
            checkout: CheckoutFacts { is_elsewhere: !run.is_here, ..CheckoutFacts::default() },
            lock: if run.is_here { lock_holder(project) } else { LockHolder::Free },
            is_paused: run.is_here && project.repo.is_paused(),
            is_stopping: run.is_here && project.repo.is_stopping(),
            wait: self.wait().filter(|_| run.is_here),
            events: &self.events,
            totals: RunTotals {
                iterations: count(self.rows.len()),
                failed_attempts: Some(self.failed_attempts()),
                ended_ms: self.rows.last().and_then(|row| row.ended_ms),
                leaves: None,
                stuck_attempts: None,
                annotations: &self.rows.totals().annotations,
            },
            stop: None,
        })
    }

    /// The wait before the next session. It counts from the end of the last iteration.
    fn wait(&self) -> Option<PendingWait<'_>> {
        let (config, state) = (self.config.as_deref()?, self.state.as_deref()?);
        let selection = next_selection(self.valid_tree()?, config.on_stuck);
        let (Selection::Leaf(selected) | Selection::Stuck(selected)) = selection else { return None };
        let wait = pending_wait(state, config, &next_agent(config, state, Some(selected.leaf)).executor)?;
        let since_ms = self.rows.last()?.ended_ms?;
        (wait.left_ms(since_ms, now_ms()) > 0).then(|| PendingWait { wait, ends_ms: wait.end_ms(since_ms) })
    }

    /// How much of the acceptance is proven; none where there is nothing to prove.
    fn coverage(&self, project: &RepoReader, run: &RunSource) -> Option<Coverage> {
        let (tree, state) = (self.valid_tree()?, self.state.as_deref()?);
        let coverage = coverage(tree, &project.checks(run, tree), state);
        (coverage.points > 0).then_some(coverage)
    }

    fn failed_attempts(&self) -> u32 {
        count(self.rows.totals().failed_attempts)
    }

    fn progress(&self) -> RunProgress {
        let leaves = self.valid_tree().map(|tree| tree.root().leaves());
        let config = self.config.as_deref();
        let budget = config.map(|config| config.budget);
        let tokens_max = budget.and_then(|budget| budget.run_tokens);
        let spent = self.state.as_deref().map(|state| state.spent);
        // A sum without any known part is not known.
        let known = |amount: fn(&RunSpending) -> Amount, unknown: fn(&RunSpending) -> Amount| {
            let spent = spent.as_ref()?;
            let amount = number(amount(spent));
            (amount > 0 || number(unknown(spent)) == 0).then_some(amount)
        };
        RunProgress {
            leaves_total: leaves.map_or(0, |leaves| leaves.total),
            leaves_passed: leaves.map_or(0, |leaves| leaves.passed),
            iterations: count(self.rows.len()),
            iterations_max: config.and_then(|config| u32::try_from(config.max_iterations.get()).ok()),
            started_ms: self.rows.totals().started_ms,
            ended_ms: self.rows.last().and_then(|row| row.ended_ms).or_else(|| self.last_seen_ms()),
            busy_ms: self.rows.totals().busy_ms,
            failed_attempts: self.failed_attempts(),
            tokens: known(|spent| spent.tokens, |spent| spent.sessions_without_tokens),
            tokens_max: tokens_max.and_then(|max| u64::try_from(max.get()).ok()),
            cost_microdollars: known(|spent| spent.microdollars, |spent| spent.sessions_without_cost),
            cost_microdollars_max: budget.and_then(|budget| budget.run_usd).map(Usd::microdollars),
            cost_source: spent.map(|spent| spent.basis()).unwrap_or_default(),
            sessions_without_cost: spent.map_or(0, |spent| number(spent.sessions_without_cost)),
        }
    }

    /// When the work on an iteration without an end was last seen: the time of its newest event or file. Unknown if that is
    /// the start of the run.
    fn last_seen_ms(&self) -> Option<u64> {
        let started_ms = self.rows.totals().started_ms?;
        let seen_ms = self.events.last().map(|recorded| recorded.t_ms).max(self.changed_ms)?;
        (seen_ms >= started_ms + 1000).then_some(seen_ms)
    }

    /// The iteration in progress, if there is one.
    fn current(&self, status: &RunStatus) -> Option<CurrentIteration> {
        let row = self.rows.last().filter(|_| status.is_live())?;
        let title = self.events.iter().find_map(|recorded| {
            if let Event::Planned { title, .. } = &recorded.event { Some(title.as_str()) } else { None }
        });
        let timeout = self.config.as_ref().map(|config| config.iteration_timeout_secs.get());
        Some(CurrentIteration {
            iter: row.iter,
            node: row.node.clone(),
            path: row.path.clone(),
            title: title.unwrap_or_default().to_owned(),
            attempt: row.attempt,
            started_ms: row.started_ms,
            timeout_ms: timeout
                .and_then(|secs| u64::try_from(secs).ok())
                .map(|secs| secs.saturating_mul(1000)),
        })
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn lock_holder(project: &RepoReader) -> LockHolder {
    match (project.repo.lock_holder(), project.repo.pending_iteration()) {
        (Some(pid), _) => LockHolder::Runner { pid },
        (None, Some(iteration)) => LockHolder::DeadRunner { iteration: iteration.parse().ok() },
        (None, None) if project.repo.has_pending_publish() => LockHolder::DeadRunner { iteration: None },
        (None, None) => LockHolder::Free,
    }
}

fn branch_name(run: &RunSource) -> String {
    run.branch.as_ref().map_or_else(|| run.id.branch().to_string(), |branch| branch.name.clone())
}

fn head(project: &RepoReader, run: &RunSource) -> RunHead {
    RunHead {
        id: run.id.to_string(),
        branch: branch_name(run),
        commit: run.branch.as_ref().map(|branch| branch.commit.to_string()),
        goal: project.goal(run),
        is_here: run.is_here,
    }
}

/// What agents asked, as `runner questions` lists it.
fn questions(project: &RepoReader, run: &RunSource) -> Vec<QuestionView> {
    let read = |doc| project.doc(run, doc).ok().flatten().unwrap_or_default();
    let notes = UserNotes::decode(&read(Doc::Notes)).unwrap_or_default();
    let all = runner_core::runs::edit::questions(&String::from_utf8_lossy(&read(Doc::Questions)), &notes);
    let skipped = all.len().saturating_sub(QUESTIONS_MAX);
    let view = |question: runner_core::runs::edit::Question| QuestionView {
        number: question.number,
        text: question.text,
        answers: question.answers,
    };
    all.into_iter().skip(skipped).map(view).collect()
}

/// A run whose history violates a rule is not to be merged, whatever its documents say.
fn distrust(status: &mut RunStatus, trust: Option<&VerifyResult>) {
    let Some(trust) = trust.filter(|trust| trust.verdict == VerifyVerdict::Violated) else { return };
    status.next = trust
        .command
        .iter()
        .map(|command| NextCommand { command: command.clone(), what: "list every violation".to_owned() })
        .collect();
}

/// What the snapshot states about the server.
#[derive(Clone, Debug)]
pub(crate) struct ServerFacts {
    pub(crate) watching: WatchMethod,
    /// The id of the newest event before anything was read; empty without a stream.
    pub(crate) event_id: String,
}

impl ServerFacts {
    /// For a reader that has no stream of events.
    pub(crate) fn without_events(watching: WatchMethod) -> Self {
        Self { watching, event_id: String::new() }
    }
}

/// The first screen for a run: the one with this id, or the current one.
pub(crate) fn snapshot(
    project: &RepoReader,
    wanted: Option<&RunId>,
    facts: ServerFacts,
) -> Result<PageSnapshot, RequestError> {
    let shows = if project.repo.has_repository() { ServerSubject::Repository } else { ServerSubject::Record };
    let server = server_view(project.name(), facts, shows);
    let Some(run) = project.run(wanted)? else {
        return Ok(without_run(server, start_blocker(project)));
    };
    let read = RunSnapshot::read(project, &run);
    let mut status = read.status(project, &run);
    let trust = project.known_verify_result(&run).filter(|_| !status.is_live());
    distrust(&mut status, trust.as_ref());
    Ok(PageSnapshot {
        server,
        run: Some(head(project, &run)),
        evidence: stop_evidence(project, &run, &read.rows, &status),
        trust,
        questions: questions(project, &run),
        progress: read.progress(),
        coverage: read.coverage(project, &run),
        current: read.current(&status),
        problems: read.problems,
        status,
    })
}

/// What the user must do before the first start.
fn start_blocker(project: &RepoReader) -> Option<StartBlocker> {
    match project.is_goal_written() {
        None => Some(StartBlocker::NotInitialized),
        Some(false) => Some(StartBlocker::GoalNotWritten),
        Some(true) => None,
    }
}

fn server_view(project: String, facts: ServerFacts, shows: ServerSubject) -> ServerView {
    ServerView {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        build: assets::build().to_owned(),
        now_ms: now_ms(),
        watching: facts.watching,
        event_id: facts.event_id,
        project,
        shows,
    }
}

/// The first screen of an evaluation, which only names the folder of its results.
pub(crate) fn evaluation_snapshot(folder: &str, facts: ServerFacts) -> PageSnapshot {
    let mut snapshot = without_run(server_view(folder.to_owned(), facts, ServerSubject::Evaluation), None);
    "results of an evaluation".clone_into(&mut snapshot.status.headline);
    snapshot.status.next.clear();
    snapshot
}

fn without_run(server: ServerView, blocker: Option<StartBlocker>) -> PageSnapshot {
    let checkout = CheckoutFacts { blocker, ..CheckoutFacts::default() };
    PageSnapshot {
        server,
        run: None,
        status: run_status(&RunFacts { checkout, ..RunFacts::default() }),
        evidence: None,
        trust: None,
        questions: Vec::new(),
        progress: RunProgress::default(),
        coverage: None,
        current: None,
        problems: Vec::new(),
    }
}

/// The runs of the repository, newest first.
pub(crate) fn runs(project: &RepoReader) -> Result<RunList, RequestError> {
    let branches = project.branches()?;
    let mut ids: Vec<RunId> = project.here().into_iter().collect();
    ids.extend(branches.iter().map(|branch| branch.run.clone()));
    let mut rows: Vec<RunRow> = Vec::new();
    for id in &ids {
        if rows.iter().any(|row| row.head.id == id.as_str()) {
            continue;
        }
        let Some(run) = project.run(Some(id))? else { continue };
        let read = RunSnapshot::read(project, &run);
        let status = read.status(project, &run);
        let trust = project.known_verify_result(&run).filter(|_| !status.is_live());
        let violated = trust.as_ref().filter(|trust| trust.verdict == VerifyVerdict::Violated);
        let violated = violated.map(|trust| trust.summary.clone());
        let RunStatus { state, stop, headline, .. } = status;
        rows.push(RunRow {
            head: head(project, &run),
            state,
            stop,
            headline: violated.unwrap_or(headline),
            trust: trust.map(|trust| trust.verdict),
            progress: read.progress(),
            moved_ms: run.branch.map(|branch| branch.unix_secs.saturating_mul(1000)),
        });
    }
    Ok(RunList { runs: rows })
}
