//! `runner eval lint`

use std::time::Duration;

use runner_term::{CommandError, CommandExit, CommandOutput, KeyValueLine, Styler, TextRole, Ui};
use serde_json::{Value, json};
use supervise::CancelHandle;
use supervise::signals::SignalListener;

use super::INTERRUPTED;
use super::scope::find_runner;
use crate::args::{EvalGlobalArgs, IsolationMode, LintArgs};
use crate::case::suite::{LoadedCase, filter_cases, load_cases};
use crate::execution::pool::{PoolEnd, PoolEvent, PoolSettings, TrialPool};
use crate::execution::progress::EvalProgress;
use crate::files;
use crate::plan::agent::EvalAgent;
use crate::plan::arm::ExperimentArm;
use crate::plan::run_name::EvalRunName;
use crate::plan::{PlanScope, PlannedTrial};
use crate::result::run_folder::{RunBudget, RunFolder};
use crate::result::{TrialMeta, TrialOutcome};

/// How many cheats of a case are tested.
const CHEATS_MAX: usize = 9;

/// The agents that test cases.
fn agents() -> Vec<EvalAgent> {
    let mut agents = vec![EvalAgent::Oracle, EvalAgent::Nop, EvalAgent::ExitZero];
    agents.extend((1..=CHEATS_MAX).map(EvalAgent::Cheat));
    agents
}

pub(crate) struct LintOutput {
    cases: Vec<LintedCase>,
    end: PoolEnd,
}

struct LintedCase {
    id: String,
    findings: Vec<LintFinding>,
}

impl LintedCase {
    fn is_ok(&self) -> bool {
        self.findings.iter().all(|finding| finding.is_ok)
    }
}

/// The result of one agent's trial.
struct LintFinding {
    agent: EvalAgent,
    is_ok: bool,
    /// What a sound case makes of this agent.
    expected: &'static str,
    result: String,
}

pub(crate) fn run(global: &EvalGlobalArgs, args: &LintArgs, ui: &Ui) -> Result<LintOutput, CommandError> {
    let fail = |error| CommandError::from_host("could not test the cases", error);
    let cases = filter_cases(load_cases(&global.cases())?, &args.cases.to_filter())?;
    let runner = find_runner(global, args.runner.as_deref())?;
    let cancel = CancelHandle::new().map_err(fail)?;
    let _listener = SignalListener::install(&cancel).map_err(fail)?;
    let agents = agents();
    let arms = [ExperimentArm::base()];
    let scope = PlanScope::new(&cases, &agents, &arms, args.trials, runner.version.clone())?;
    // These trials are not results: their folder is removed at the end.
    let scratch = global.workspaces().join(format!(".lint-{}", std::process::id()));
    let settings = PoolSettings {
        jobs: args.jobs,
        retries: 0,
        retry_wait: Duration::ZERO,
        budget: RunBudget::default(),
        isolation: IsolationMode::Auto,
        provider_check: None,
        cases: global.cases(),
        results: scratch.join("results"),
        workspaces: scratch.join("workspaces"),
    };
    let folder = RunFolder::create_or_open(&settings.results, &lint_run_name()?, &scope)?;
    let pool =
        TrialPool { run: &folder, cases: &cases, runner: &runner, settings: &settings, stolen: Vec::new() };
    let mut progress = EvalProgress::new(ui, &scope.trials, &[]);
    let end = pool.run(scope.trials.clone(), &cancel, &mut |event: PoolEvent| progress.handle(&event));
    progress.finish();
    let mut linted = Vec::new();
    for loaded in &cases {
        let mut findings: Vec<LintFinding> =
            agents.iter().filter_map(|agent| finding(loaded, agent, &folder)).collect();
        findings.extend(unsprung_trap(loaded, &folder));
        linted.push(LintedCase { id: loaded.case.id.clone(), findings });
    }
    let _ = files::remove_any(&scratch);
    Ok(LintOutput { cases: linted, end: end? })
}

fn lint_run_name() -> Result<EvalRunName, CommandError> {
    "lint".parse().map_err(|error| {
        CommandError::new(
            "internal",
            CommandExit::FAILURE,
            format!("internal error: run name `lint` {error}"),
        )
        .hint("this is a bug, please report it")
    })
}

/// What an agent's trial shows about the case; none if there is no such trial.
fn finding(loaded: &LoadedCase, agent: &EvalAgent, folder: &RunFolder) -> Option<LintFinding> {
    let expected = expectation(agent, loaded.case.expect);
    let found = |is_ok, result| LintFinding { agent: agent.clone(), is_ok, expected, result };
    if !agent.can_run(&loaded.case) {
        let result = "no solution: nothing shows that the case can be solved".to_owned();
        let is_oracle = *agent == EvalAgent::Oracle;
        return is_oracle.then(|| found(false, result));
    }
    let is_trial = |trial: &&PlannedTrial| trial.case == loaded.case.id && trial.agent == agent.to_string();
    let trials: Vec<&PlannedTrial> = folder.plan.scope.trials.iter().filter(is_trial).collect();
    let mut result = None;
    for trial in trials {
        let Some(stored) = folder.last_attempt(trial) else {
            return Some(found(false, "no result".to_owned()));
        };
        let is_ok = is_right_result(agent, loaded.case.expect, &stored.meta);
        let finding = found(is_ok, describe(&stored.meta));
        // The first wrong result is the one to show: one of several trials is enough to call a case flaky.
        if !finding.is_ok {
            return Some(finding);
        }
        result = Some(finding);
    }
    result
}

/// A trap that no cheat of the case springs, in any trial, proves nothing.
fn unsprung_trap(loaded: &LoadedCase, folder: &RunFolder) -> Option<LintFinding> {
    let cheats: Vec<String> = (1..=CHEATS_MAX).map(|number| EvalAgent::Cheat(number).to_string()).collect();
    let mut trials = folder.plan.scope.trials.iter();
    let is_sprung = trials.any(|trial| {
        let is_cheat = trial.case == loaded.case.id && cheats.contains(&trial.agent);
        is_cheat && folder.last_attempt(trial).is_some_and(|stored| stored.meta.cheated == Some(true))
    });
    (loaded.case.has_trap() && !is_sprung).then(|| LintFinding {
        agent: EvalAgent::Cheat(1),
        is_ok: false,
        expected: "must spring the trap",
        result: "no cheat springs it".to_owned(),
    })
}

fn expectation(agent: &EvalAgent, expect: Option<TrialOutcome>) -> &'static str {
    match (agent, expect) {
        (_, Some(TrialOutcome::Skipped)) => "must be skipped",
        (EvalAgent::Oracle, _) => "must succeed",
        _ => "must not succeed",
    }
}

/// Whether a trial of this agent ended as it must in a sound case. A case that tests skipping must be skipped with every agent;
/// in every other case a skipped trial shows nothing.
fn is_right_result(agent: &EvalAgent, expect: Option<TrialOutcome>, meta: &TrialMeta) -> bool {
    if expect == Some(TrialOutcome::Skipped) {
        return meta.outcome == TrialOutcome::Skipped;
    }
    let is_scored_failure = meta.is_scored() && meta.outcome != TrialOutcome::Success;
    // A trap that work without a cheat springs would accuse honest agents.
    let is_accused = meta.cheated == Some(true) && !matches!(agent, EvalAgent::Cheat(_));
    match agent {
        EvalAgent::Oracle => meta.outcome == TrialOutcome::Success,
        EvalAgent::Case
        | EvalAgent::Nop
        | EvalAgent::ExitZero
        | EvalAgent::Cheat(_)
        | EvalAgent::Real { .. } => is_scored_failure && !is_accused,
    }
}

fn describe(meta: &TrialMeta) -> String {
    match &meta.why {
        Some(why) => format!("{}: {why}", meta.outcome),
        None => meta.outcome.to_string(),
    }
}

impl CommandOutput for LintOutput {
    fn json(&self) -> Value {
        let mut cases = Vec::new();
        for case in &self.cases {
            let mut findings = Vec::new();
            for LintFinding { agent, is_ok, result, .. } in &case.findings {
                findings.push(json!({ "agent": agent.to_string(), "ok": is_ok, "result": result }));
            }
            cases.push(json!({ "id": case.id, "ok": case.is_ok(), "findings": findings }));
        }
        json!({
            "schema": "runner.eval.lint/1",
            "event": "end",
            "cases": cases,
            "exit": self.exit().0,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut lines = Vec::new();
        for case in &self.cases {
            let mut line = KeyValueLine::new().with("case", &case.id).with("ok", case.is_ok());
            for finding in &case.findings {
                line = line.with(&finding.agent.to_string(), &finding.result);
            }
            lines.push(line);
        }
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        let mut text = String::new();
        for case in &self.cases {
            for LintFinding { agent, expected, result, .. } in
                case.findings.iter().filter(|finding| !finding.is_ok)
            {
                let line = format!("{}: {agent} {expected}, got {result}", case.id);
                text.push_str(&format!("{}\n", styler.paint(TextRole::Bad, &line)));
            }
        }
        let ok = self.cases.iter().filter(|case| case.is_ok()).count();
        text.push_str(&format!("{ok} of {} cases are ok\n", self.cases.len()));
        text
    }

    fn exit(&self) -> CommandExit {
        match self.end {
            PoolEnd::Stopped => INTERRUPTED,
            PoolEnd::Complete | PoolEnd::Budget | PoolEnd::UnknownSpending
                if self.cases.iter().all(LintedCase::is_ok) =>
            {
                CommandExit::SUCCESS
            }
            PoolEnd::Complete | PoolEnd::Budget | PoolEnd::UnknownSpending => CommandExit::FAILURE,
        }
    }

    fn ends_json_lines(&self) -> bool {
        true
    }
}
