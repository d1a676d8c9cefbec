//! `runner eval run`

use std::collections::BTreeMap;
use std::time::Duration;

use runner_host::clock::{now_ms, utc};
use runner_term::{CommandError, CommandExit, CommandOutput, KeyValueLine, Styler, TextRole, Ui};
use serde_json::{Value, json};
use supervise::CancelHandle;
use supervise::signals::{ShutdownSignal, SignalListener};

use super::{INTERRUPTED, choice};
use crate::args::{EvalGlobalArgs, ExecutionArgs, RunArgs, ScopeArgs};
use crate::case::suite::{LoadedCase, choose, read_all};
use crate::execution::pool::{self, PoolEnd, PoolEvent, PoolSettings};
use crate::execution::process::CommandRunner;
use crate::execution::progress::{EvalProgress, ProgressLine, mark};
use crate::execution::runner_under_test::RunnerUnderTest;
use crate::plan::agent::EvalAgent;
use crate::plan::{Partition, PlanScope, TrialUnit};
use crate::result::run_folder::RunFolder;
use crate::result::stored_trial::StoredTrial;
use crate::result::{TrialMeta, TrialOutcome};

/// How it ended.
pub(crate) struct EvalRunOutput {
    run: String,
    partition: Option<Partition>,
    ending: PoolEnd,
    caught: Option<ShutdownSignal>,
    /// The last attempt at each unit that has one.
    results: Vec<TrialMeta>,
    units: usize,
    had: usize,
    results_folder: String,
}

pub(crate) fn run(global: &EvalGlobalArgs, args: &RunArgs, out: &Ui) -> Result<EvalRunOutput, CommandError> {
    let told = |error| CommandError::from_host("could not begin", error);
    let control = CancelHandle::new().map_err(told)?;
    let (kits, runner, scope) =
        if args.continued { continued_scope(global, args)? } else { scope_of(global, &args.scope)? };
    let partition = match args.partition {
        Some(partition) => Some(partition),
        None => Partition::of_environment(|name| std::env::var(name).ok()).map_err(|why| {
            CommandError::refused("partition", "could not tell which share is meant").cause(why)
        })?,
    };
    let folder = run_folder(global, args, &scope, partition.is_some())?;
    let units = partition.map_or_else(|| scope.units.clone(), |partition| partition.share(&scope.units));
    let settings = settings(global, &args.way)?;
    let record = PartitionRecord::read(&folder, &units, settings.retries);
    let had = record.had.len();
    let listener = SignalListener::install(&control).map_err(told)?;
    let mut progress = EvalProgress::new(out, &units, &record.had);
    tell_begin(out, &folder, units.len(), had);
    let mut tell = |event: PoolEvent| progress.tell(&event);
    let ending =
        pool::work((&folder, &kits, &runner), record.open, &settings, (&control, record.spent), &mut tell)?;
    progress.end();
    let results = units.iter().filter_map(|unit| folder.attempts(unit).0.pop()).map(|trial| trial.meta);
    Ok(EvalRunOutput {
        run: folder.name().to_owned(),
        partition,
        ending,
        caught: listener.received(),
        results: results.collect(),
        units: units.len(),
        had,
        results_folder: global.results().display().to_string(),
    })
}

/// What is on record of a share of a run.
pub(crate) struct PartitionRecord {
    pub(crate) had: Vec<(TrialUnit, TrialOutcome)>,
    pub(crate) open: Vec<TrialUnit>,
    /// What all attempts have cost.
    pub(crate) spent: u64,
}

impl PartitionRecord {
    pub(crate) fn read(folder: &RunFolder, units: &[TrialUnit], retries: u32) -> Self {
        let mut record = Self { had: Vec::new(), open: Vec::new(), spent: 0 };
        for unit in units {
            let (attempts, _) = folder.attempts(unit);
            let cost = |trial: &StoredTrial| trial.meta.cost.microdollars.unwrap_or(0);
            record.spent += attempts.iter().map(cost).sum::<u64>();
            match attempts.last().filter(|_| RunFolder::is_done(&attempts, retries)) {
                Some(last) => record.had.push((unit.clone(), last.meta.outcome)),
                None => record.open.push(unit.clone()),
            }
        }
        record
    }
}

fn tell_begin(out: &Ui, folder: &RunFolder, units: usize, had: usize) {
    let line = KeyValueLine::new()
        .with("event", "begin")
        .with("run", folder.name())
        .with("units", units)
        .with("had", had);
    let value = json!({ "event": "begin", "run": folder.name(), "units": units, "had": had });
    out.print_now(&ProgressLine { line, value });
    if out.is_terminal() {
        let goes_on = if had > 0 { format!(", {had} of them done before") } else { String::new() };
        out.raw(&format!("run {}: {units} trials{goes_on}\n", folder.name()));
    }
}

/// The cases, the runner, and the units that follow.
pub(crate) fn scope_of(
    global: &EvalGlobalArgs,
    args: &ScopeArgs,
) -> Result<(Vec<LoadedCase>, RunnerUnderTest, PlanScope), CommandError> {
    let kits = choose(read_all(&global.cases())?, &choice(&args.cases))?;
    let agents = if args.agent.is_empty() { vec![EvalAgent::Case] } else { args.agent.clone() };
    let unfit = kits.iter().filter(|kit| args.cases.ids.contains(&kit.case.id));
    let unfit = unfit
        .flat_map(|kit| agents.iter().filter(|agent| !agent.fits(&kit.case)).map(move |agent| (kit, agent)));
    if let Some((kit, agent)) = unfit.into_iter().next() {
        let what = format!("case `{}` cannot be given to agent `{agent}`", kit.case.id);
        return Err(CommandError::refused("unfit", what).hint(match agent {
            EvalAgent::Case => "it names no agent itself: choose one, as in --agent codex",
            EvalAgent::Oracle | EvalAgent::Cheat | EvalAgent::Nop | EvalAgent::Real { .. } => {
                "add the scenario to the case: `solution` or `cheat` under [case]"
            }
        }));
    }
    let runner = find_runner(global, args.runner.as_deref())?;
    let scope = PlanScope::new(&kits, &agents, args.trials, runner.id.clone());
    if scope.units.is_empty() {
        return Err(CommandError::refused("no_units", "none of these cases can be given to these agents")
            .hint("choose an agent, as in --agent codex"));
    }
    Ok((kits, runner, scope))
}

pub(crate) fn find_runner(
    global: &EvalGlobalArgs,
    named: Option<&std::path::Path>,
) -> Result<RunnerUnderTest, CommandError> {
    let scratch = global.workspaces().join(format!(".eval-{}", std::process::id()));
    let launcher = CommandRunner::new(scratch.clone())
        .map_err(|error| CommandError::from_host("could not begin", error))?;
    let runner = RunnerUnderTest::find(named, &launcher);
    let _ = crate::files::clear(&scratch);
    runner
}

/// The scope of the run that is named, or of the newest that is not finished.
fn continued_scope(
    global: &EvalGlobalArgs,
    args: &RunArgs,
) -> Result<(Vec<LoadedCase>, RunnerUnderTest, PlanScope), CommandError> {
    let what = "could not go on with a run";
    let folder = match &args.run {
        Some(run) => RunFolder::open(&global.results(), run)?,
        None => unfinished(global, args.way.retries).ok_or_else(|| {
            CommandError::refused("nothing_to_continue", what)
                .cause("every run is finished, or there is none")
                .hint("begin one: runner eval run")
        })?,
    };
    let scope = folder.plan.scope.clone();
    let runner = find_runner(global, args.scope.runner.as_deref())?;
    let kits = read_all(&global.cases())?;
    let is_same = |kit: &&LoadedCase| {
        let sha256 = kit.digests.whole.to_string();
        scope.cases.iter().any(|case| case.id == kit.case.id && case.sha256 == sha256)
    };
    if kits.iter().filter(is_same).count() != scope.cases.len() || runner.id != scope.runner {
        return Err(CommandError::refused("scope_changed", what)
            .cause(format!("cases or runner changed since run `{}` began", folder.name()))
            .hint("put them back, or begin a new run: runner eval run --new"));
    }
    Ok((kits, runner, scope))
}

/// The newest run.
pub(crate) fn newest(global: &EvalGlobalArgs) -> Result<RunFolder, CommandError> {
    let results = global.results();
    match RunFolder::all(&results).first() {
        Some(run) => RunFolder::open(&results, run),
        None => Err(CommandError::refused("no_runs", format!("there is no run in `{}`", results.display()))
            .hint("begin one: runner eval run")),
    }
}

fn unfinished(global: &EvalGlobalArgs, retries: u32) -> Option<RunFolder> {
    let results = global.results();
    let open = |run: &String| RunFolder::open(&results, run).ok();
    RunFolder::all(&results).iter().filter_map(open).find(|folder| is_unfinished(folder, retries))
}

fn is_unfinished(folder: &RunFolder, retries: u32) -> bool {
    let is_open = |unit: &TrialUnit| !RunFolder::is_done(&folder.attempts(unit).0, retries);
    folder.plan.scope.units.iter().any(is_open)
}

/// The run that is meant: a named one, one with the same scope that is not finished, or a new one.
fn run_folder(
    global: &EvalGlobalArgs,
    args: &RunArgs,
    scope: &PlanScope,
    is_share: bool,
) -> Result<RunFolder, CommandError> {
    let results = global.results();
    if let Some(run) = &args.run {
        return RunFolder::make(&results, run, scope);
    }
    if !args.new {
        let open = |run: &String| RunFolder::open(&results, run).ok();
        // Another share of a run may have finished it already.
        let is_meant = |folder: &RunFolder| {
            folder.plan.scope == *scope && (is_share || is_unfinished(folder, args.way.retries))
        };
        if let Some(folder) = RunFolder::all(&results).iter().filter_map(open).find(is_meant) {
            return Ok(folder);
        }
    }
    new_run(global, scope)
}

/// A run named after this moment.
pub(crate) fn new_run(global: &EvalGlobalArgs, scope: &PlanScope) -> Result<RunFolder, CommandError> {
    let results = global.results();
    let now = utc(now_ms()).unwrap_or_default();
    let name: String = now.chars().filter(|c| !matches!(c, '-' | ':')).collect();
    let taken = RunFolder::all(&results);
    let names = (1..).map(|nth| if nth == 1 { name.clone() } else { format!("{name}-{nth}") });
    let free = names.into_iter().find(|name| !taken.contains(name)).unwrap_or_default();
    RunFolder::make(&results, &free, scope)
}

pub(crate) fn settings(global: &EvalGlobalArgs, way: &ExecutionArgs) -> Result<PoolSettings, CommandError> {
    let wrong =
        |what: &str| CommandError::refused("usage", format!("{what} must be a number that is not negative"));
    let retry_wait = Duration::try_from_secs_f64(way.retry_wait).map_err(|_| wrong("--retry-wait"))?;
    let budget =
        way.budget_usd.map(|usd| Duration::try_from_secs_f64(usd).map_err(|_| wrong("--budget-usd")));
    let budget = budget.transpose()?;
    Ok(PoolSettings {
        jobs: way.jobs,
        retries: way.retries,
        retry_wait,
        // A duration counts in whole millionths without rounding surprises.
        budget_microdollars: budget.map(|usd| u64::try_from(usd.as_micros()).unwrap_or(u64::MAX)),
        results: global.results(),
        workspaces: global.workspaces(),
    })
}

impl EvalRunOutput {
    fn unexpected(&self) -> Vec<&TrialMeta> {
        let is_other = |meta: &&TrialMeta| meta.expected.is_some_and(|expected| expected != meta.outcome);
        // A tool that is not here says nothing about the case.
        self.results.iter().filter(is_other).filter(|meta| meta.outcome != TrialOutcome::Skipped).collect()
    }

    fn counts(&self) -> BTreeMap<TrialOutcome, usize> {
        let mut counts = BTreeMap::new();
        for meta in &self.results {
            *counts.entry(meta.outcome).or_default() += 1;
        }
        counts
    }

    fn ending(&self) -> &'static str {
        match self.ending {
            PoolEnd::Done => "done",
            PoolEnd::Stopped => "stopped",
            PoolEnd::Budget => "budget",
        }
    }

    fn next(&self) -> Option<String> {
        match self.ending {
            PoolEnd::Done => None,
            PoolEnd::Stopped => Some("runner eval run --continue".to_owned()),
            PoolEnd::Budget => Some("raise --budget-usd and run the same command again".to_owned()),
        }
    }
}

impl CommandOutput for EvalRunOutput {
    fn json(&self) -> Value {
        let counts: BTreeMap<&str, usize> =
            self.counts().into_iter().map(|(outcome, count)| (outcome.as_str(), count)).collect();
        let unexpected: Vec<&str> = self.unexpected().iter().map(|meta| meta.eval_run_id.as_str()).collect();
        json!({
            "schema": "runner.eval.run/1",
            "event": "end",
            "run": self.run,
            "partition": self.partition.map(|partition| partition.to_string()),
            "ending": self.ending(),
            "units": self.units,
            "had": self.had,
            "results": self.results.len(),
            "outcomes": counts,
            "unexpected": unexpected,
            "next": self.next(),
            "exit": self.exit().0,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut line =
            KeyValueLine::new().with("event", "end").with("run", &self.run).with("ending", self.ending());
        if let Some(partition) = self.partition {
            line = line.with("partition", partition);
        }
        line = line.with("units", self.units).with("had", self.had).with("results", self.results.len());
        for (outcome, count) in self.counts() {
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

    fn human(&self, pen: &Styler) -> String {
        let counts = self.counts().into_iter();
        let counts: Vec<String> =
            counts.map(|(outcome, count)| format!("{} {count} {outcome}", mark(pen, outcome))).collect();
        let mut text = format!("\n{}\n", counts.join("   "));
        for meta in self.results.iter().filter(|meta| meta.cause.is_some()) {
            let as_stated = meta.expected == Some(meta.outcome);
            let cause = meta.cause.map_or("", crate::result::FailureCause::as_str);
            let why = meta.why.as_deref().unwrap_or_default();
            let line = pen.fit(&format!("{} {} ({cause}): {why}", meta.case_id, meta.outcome), pen.width);
            text.push_str(&if as_stated { pen.paint(TextRole::Faint, &line) } else { line });
            text.push('\n');
        }
        for meta in self.unexpected() {
            let expected = meta.expected.map_or("", TrialOutcome::as_str);
            let line = format!("{} ended with {}, and its file says {expected}", meta.case_id, meta.outcome);
            text.push_str(&format!("{}\n", pen.paint(TextRole::Bad, &line)));
        }
        if let Some(next) = self.next() {
            let open = self.units.saturating_sub(self.results.len());
            text.push_str(&format!(
                "{} {open} trials are open: {next}\n",
                pen.paint(TextRole::Warn, self.ending())
            ));
        }
        text.push_str(
            &pen.paint(TextRole::Faint, &format!("results: {} (run {})\n", self.results_folder, self.run)),
        );
        text
    }

    fn exit(&self) -> CommandExit {
        match self.ending {
            PoolEnd::Stopped => self.caught.map_or(INTERRUPTED, |caught| CommandExit(caught.exit_code())),
            PoolEnd::Budget => CommandExit::LIMIT,
            PoolEnd::Done if self.unexpected().is_empty() => CommandExit::SUCCESS,
            PoolEnd::Done => CommandExit::FAILURE,
        }
    }

    fn ends_lines(&self) -> bool {
        true
    }
}
