//! `runner eval run`

use std::time::Duration;

use runner_term::{CommandError, CommandExit, CommandOutput, KeyValueLine, Styler, TextRole, Ui};
use serde_json::{Value, json};
use supervise::CancelHandle;
use supervise::signals::{ShutdownSignal, SignalListener};

use super::INTERRUPTED;
use super::scope::{continued_scope, create_run, resolve_scope};
use crate::args::{EvalGlobalArgs, ExecutionArgs, RunArgs};
use crate::execution::pool::{PoolEnd, PoolEvent, PoolSettings, TrialPool};
use crate::execution::progress::{
    CompletedTrial, EvalProgress, ProgressLine, outcome_counts, outcome_counts_json, outcome_counts_line,
};
use crate::execution::sandbox::SandboxPrograms;
use crate::plan::partition::Partition;
use crate::plan::{PlanScope, PlannedTrial};
use crate::result::run_folder::{RunBudget, RunFolder, is_final};
use crate::result::{FailureCause, TrialMeta, TrialOutcome};

pub(crate) struct EvalRunOutput {
    run: String,
    partition: Option<Partition>,
    end: PoolEnd,
    signal: Option<ShutdownSignal>,
    /// The last attempt at each trial that has one.
    results: Vec<TrialMeta>,
    trials: usize,
    already_done: usize,
    /// Trials that still need an attempt.
    open: usize,
    results_folder: String,
}

pub(crate) fn run(global: &EvalGlobalArgs, args: &RunArgs, ui: &Ui) -> Result<EvalRunOutput, CommandError> {
    let fail = |error| CommandError::from_host("could not start the evaluation", error);
    let cancel = CancelHandle::new().map_err(fail)?;
    let resolved =
        if args.is_continued { continued_scope(global, args)? } else { resolve_scope(global, &args.scope)? };
    let partition = match args.partition {
        Some(partition) => Some(partition),
        None => Partition::from_environment(|name| std::env::var(name).ok()).map_err(|why| {
            CommandError::refused("partition", "could not read the partition from the environment").cause(why)
        })?,
    };
    let folder = find_or_create_run(global, args, &resolved.scope, partition.is_some())?;
    let trials = match partition {
        Some(partition) => partition.select(&resolved.scope.trials),
        None => resolved.scope.trials.clone(),
    };
    let settings = pool_settings(global, &args.execution)?;
    let isolation = isolation_note(&settings)?;
    folder.record_budget(settings.budget).map_err(|error| {
        CommandError::io("could not record the budget", &folder.file("budget.json"), &error)
    })?;
    let recorded = RecordedTrials::read(&folder, &trials, settings.retries);
    let already_done = recorded.completed.len();
    let stolen = if args.steal { other_open_trials(&folder, &trials, settings.retries) } else { Vec::new() };
    let listener = SignalListener::install(&cancel).map_err(fail)?;
    let mut progress = EvalProgress::new(ui, &trials, &recorded.completed);
    print_start(ui, &folder, trials.len(), already_done);
    if let Some(note) = isolation {
        progress.warn(&note);
    }
    let pool = TrialPool {
        run: &folder,
        cases: &resolved.cases,
        runner: &resolved.runner,
        settings: &settings,
        stolen,
    };
    let end = pool.run(recorded.open, &cancel, &mut |event: PoolEvent| progress.handle(&event))?;
    progress.finish();
    let results = trials.iter().filter_map(|trial| folder.last_attempt(trial)).map(|stored| stored.meta);
    let still_open = RecordedTrials::read(&folder, &trials, settings.retries).open.len();
    Ok(EvalRunOutput {
        run: folder.name().to_string(),
        partition,
        end,
        signal: listener.received(),
        results: results.collect(),
        trials: trials.len(),
        already_done,
        open: still_open,
        results_folder: global.results().display().to_string(),
    })
}

/// The trials of a partition, by whether they still need an attempt.
struct RecordedTrials {
    completed: Vec<CompletedTrial>,
    open: Vec<PlannedTrial>,
}

/// Why trials run without a sandbox, if they do. An error if a sandbox is required and there is none.
fn isolation_note(settings: &PoolSettings) -> Result<Option<String>, CommandError> {
    let programs = SandboxPrograms::for_mode(settings.isolation).map_err(|why| {
        CommandError::refused("isolation", "cannot isolate trials")
            .cause(why)
            .hint("install bubblewrap and util-linux, or run without: --isolation off")
    })?;
    Ok(programs
        .is_none()
        .then(|| "trials run without a sandbox: agents can read cases and results".to_owned()))
}

/// The open trials of other partitions. Each machine starts at another place, so that they rarely meet.
fn other_open_trials(folder: &RunFolder, own: &[PlannedTrial], retries: u32) -> Vec<PlannedTrial> {
    let mut others: Vec<PlannedTrial> =
        folder.plan.scope.trials.iter().filter(|trial| !own.contains(trial)).cloned().collect();
    others.retain(|trial| !is_final(&folder.attempts(trial).valid, retries));
    let start = std::process::id() as usize % others.len().max(1);
    others.rotate_left(start);
    others
}

impl RecordedTrials {
    fn read(folder: &RunFolder, trials: &[PlannedTrial], retries: u32) -> Self {
        let mut recorded = Self { completed: Vec::new(), open: Vec::new() };
        for trial in trials {
            let attempts = folder.attempts(trial).valid;
            match attempts.last() {
                Some(last) if is_final(&attempts, retries) => {
                    let outcome = last.meta.outcome;
                    recorded.completed.push(CompletedTrial { trial: trial.clone(), outcome });
                }
                _ => recorded.open.push(trial.clone()),
            }
        }
        recorded
    }
}

fn print_start(ui: &Ui, folder: &RunFolder, trials: usize, already_done: usize) {
    let run = folder.name();
    let line = KeyValueLine::new()
        .with("event", "start")
        .with("run", run)
        .with("trials", trials)
        .with("already_done", already_done);
    let value = json!({ "event": "start", "run": run, "trials": trials, "already_done": already_done });
    ui.print_now(&ProgressLine { line, value });
    if ui.is_terminal() {
        let continued =
            if already_done > 0 { format!(", {already_done} already done") } else { String::new() };
        ui.raw(&format!("run {run}: {trials} trials{continued}\n"));
    }
}

/// The run to work on: the named one, an unfinished one with the same scope, or a new one.
fn find_or_create_run(
    global: &EvalGlobalArgs,
    args: &RunArgs,
    scope: &PlanScope,
    is_partition: bool,
) -> Result<RunFolder, CommandError> {
    if args.run.is_none() && !args.new {
        let results = global.results();
        for folder in RunFolder::all(&results).filter(|folder| folder.plan.scope == *scope) {
            // Another partition may have finished the run already; this one still belongs to it.
            if is_partition || folder.is_unfinished(args.execution.retries) {
                return Ok(folder);
            }
        }
    }
    create_run(global, args.run.as_ref(), scope)
}

fn pool_settings(global: &EvalGlobalArgs, args: &ExecutionArgs) -> Result<PoolSettings, CommandError> {
    // A duration counts whole millionths, here also of dollars, and rejects negative numbers.
    let duration = |option: &str, value: f64| {
        Duration::try_from_secs_f64(value).map_err(|_| {
            CommandError::refused("usage", format!("{option} must not be negative, but is {value}"))
        })
    };
    let budget_microdollars = match args.budget_usd {
        None => None,
        Some(usd) => {
            let micro = duration("--budget-usd", usd)?.as_micros();
            Some(u64::try_from(micro).unwrap_or(u64::MAX))
        }
    };
    Ok(PoolSettings {
        jobs: args.jobs,
        retries: args.retries,
        retry_wait: duration("--retry-wait", args.retry_wait)?,
        budget: RunBudget { microdollars: budget_microdollars, tokens: args.budget_tokens },
        isolation: args.isolation,
        provider_check: args.provider_check.clone(),
        cases: global.cases(),
        results: global.results(),
        workspaces: global.workspaces(),
    })
}

impl EvalRunOutput {
    /// Results that differ from what the case file expects. A skipped trial does not count: a missing tool is not a
    /// problem of the case.
    fn unexpected(&self) -> Vec<&TrialMeta> {
        let mut unexpected = Vec::new();
        for meta in &self.results {
            let is_other = meta.expected.is_some_and(|expected| expected != meta.outcome);
            if is_other && meta.outcome != TrialOutcome::Skipped {
                unexpected.push(meta);
            }
        }
        unexpected
    }

    fn stop_reason(&self) -> &'static str {
        match self.end {
            PoolEnd::Complete => "complete",
            PoolEnd::Stopped => "interrupted",
            PoolEnd::Budget => "budget",
            PoolEnd::UnknownSpending => "unknown_spending",
        }
    }

    /// What to type to continue.
    fn next(&self) -> Option<String> {
        match self.end {
            PoolEnd::Complete => None,
            PoolEnd::Stopped => Some("runner eval run --continue".to_owned()),
            PoolEnd::Budget => Some("raise --budget-usd or --budget-tokens and run the same command again".to_owned()),
            PoolEnd::UnknownSpending => Some(
                "the agent reports no cost, so --budget-usd cannot hold: add [prices] to the configuration, or use \
                 --budget-tokens"
                    .to_owned(),
            ),
        }
    }

    /// Whether the results show nothing about any agent, although their cases do not expect that.
    fn is_nothing_scored(&self) -> bool {
        let is_unexpected = |meta: &TrialMeta| meta.expected != Some(meta.outcome);
        !self.results.is_empty()
            && !self.results.iter().any(TrialMeta::is_scored)
            && self.results.iter().any(is_unexpected)
    }
}

impl CommandOutput for EvalRunOutput {
    fn json(&self) -> Value {
        let unexpected: Vec<&str> = self.unexpected().iter().map(|meta| meta.eval_run_id.as_str()).collect();
        json!({
            "schema": "runner.eval.run/1",
            "event": "end",
            "run": self.run,
            "partition": self.partition.map(|partition| partition.to_string()),
            "stop_reason": self.stop_reason(),
            "trials": self.trials,
            "already_done": self.already_done,
            "results": self.results.len(),
            "open": self.open,
            "scored": self.results.iter().filter(|meta| meta.is_scored()).count(),
            "outcomes": outcome_counts_json(&outcome_counts(&self.results)),
            "unexpected": unexpected,
            "next": self.next(),
            "exit": self.exit().0,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut line = KeyValueLine::new()
            .with("event", "end")
            .with("run", &self.run)
            .with("stop_reason", self.stop_reason());
        if let Some(partition) = self.partition {
            line = line.with("partition", partition);
        }
        line = line
            .with("trials", self.trials)
            .with("already_done", self.already_done)
            .with("results", self.results.len())
            .with("open", self.open);
        for (outcome, count) in outcome_counts(&self.results) {
            line = line.with(outcome.as_str(), count);
        }
        for meta in self.unexpected() {
            line = line.with("unexpected", format!("{}:{}", meta.case_id, meta.outcome));
        }
        if let Some(next) = self.next() {
            line = line.with("next", next);
        }
        vec![line.with("exit", self.exit().0)]
    }

    fn human(&self, styler: &Styler) -> String {
        let mut text = format!("\n{}\n", outcome_counts_line(styler, &outcome_counts(&self.results)));
        for meta in self.results.iter().filter(|meta| meta.cause.is_some()) {
            let cause = meta.cause.map_or("", FailureCause::as_str);
            let why = meta.why.as_deref().unwrap_or_default();
            let line = format!("{} {} ({cause}): {why}", meta.case_id, meta.outcome);
            let line = styler.fit(&line, styler.width);
            let is_expected = meta.expected == Some(meta.outcome);
            text.push_str(&if is_expected { styler.paint(TextRole::Faint, &line) } else { line });
            text.push('\n');
        }
        for meta in self.unexpected() {
            let expected = meta.expected.map_or("", TrialOutcome::as_str);
            let line = format!("{}: expected {expected}, got {}", meta.case_id, meta.outcome);
            text.push_str(&format!("{}\n", styler.paint(TextRole::Bad, &line)));
        }
        if self.is_nothing_scored() {
            text.push_str(&format!("{}\n", styler.paint(TextRole::Bad, "no trial is scored")));
        }
        if let Some(next) = self.next() {
            let left = self.open;
            let reason = styler.paint(TextRole::Warn, self.stop_reason());
            text.push_str(&format!("{reason}: {left} trials are open. Next: {next}\n"));
        }
        let footer = format!("results: {} (run {})\n", self.results_folder, self.run);
        text + &styler.paint(TextRole::Faint, &footer)
    }

    fn exit(&self) -> CommandExit {
        match self.end {
            PoolEnd::Stopped => self.signal.map_or(INTERRUPTED, |signal| CommandExit(signal.exit_code())),
            PoolEnd::Budget | PoolEnd::UnknownSpending => CommandExit::LIMIT,
            PoolEnd::Complete if self.unexpected().is_empty() && !self.is_nothing_scored() => {
                CommandExit::SUCCESS
            }
            PoolEnd::Complete => CommandExit::FAILURE,
        }
    }

    fn ends_json_lines(&self) -> bool {
        true
    }
}
