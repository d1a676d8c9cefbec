//! `runner eval lint`

use std::time::Duration;

use runner_term::{CommandError, CommandExit, CommandOutput, KeyValueLine, Styler, TextRole, Ui};
use serde_json::{Value, json};
use supervise::CancelHandle;
use supervise::signals::SignalListener;

use super::run::find_runner;
use super::{INTERRUPTED, choice};
use crate::args::{EvalGlobalArgs, LintArgs};
use crate::case::suite::{LoadedCase, choose, read_all};
use crate::execution::pool::{self, PoolEnd, PoolEvent, PoolSettings};
use crate::execution::progress::EvalProgress;
use crate::files;
use crate::plan::PlanScope;
use crate::plan::agent::EvalAgent;
use crate::result::run_folder::RunFolder;
use crate::result::{TrialMeta, TrialOutcome};

/// What was found about each case.
pub(crate) struct LintOutput {
    cases: Vec<(String, Vec<LintFinding>)>,
    ending: PoolEnd,
}

/// One thing that was tried.
struct LintFinding {
    agent: EvalAgent,
    is_right: bool,
    says: String,
}

pub(crate) fn run(global: &EvalGlobalArgs, args: &LintArgs, out: &Ui) -> Result<LintOutput, CommandError> {
    let told = |error| CommandError::from_host("could not begin", error);
    let kits = choose(read_all(&global.cases())?, &choice(&args.cases))?;
    let runner = find_runner(global, args.runner.as_deref())?;
    let control = CancelHandle::new().map_err(told)?;
    let _listener = SignalListener::install(&control).map_err(told)?;
    let agents = [EvalAgent::Oracle, EvalAgent::Nop, EvalAgent::Cheat];
    let scope = PlanScope::new(&kits, &agents, 1, runner.id.clone());
    // What is tried here is no result: nothing of it stays.
    let place = global.workspaces().join(format!(".lint-{}", std::process::id()));
    let settings = PoolSettings {
        jobs: args.jobs,
        retries: 0,
        retry_wait: Duration::ZERO,
        budget_microdollars: None,
        results: place.join("results"),
        workspaces: place.join("workspaces"),
    };
    let folder = RunFolder::make(&settings.results, "lint", &scope)?;
    let mut progress = EvalProgress::new(out, &scope.units, &[]);
    let mut tell = |event: PoolEvent| progress.tell(&event);
    let ending =
        pool::work((&folder, &kits, &runner), scope.units.clone(), &settings, (&control, 0), &mut tell);
    progress.end();
    let findings = |kit: &LoadedCase| {
        let tried = agents.iter().filter_map(|agent| finding(kit, agent, &folder));
        (kit.case.id.clone(), tried.collect())
    };
    let cases = kits.iter().map(findings).collect();
    let _ = files::clear(&place);
    Ok(LintOutput { cases, ending: ending? })
}

/// What an agent's trial says about the case; nothing where there was none to be made.
fn finding(kit: &LoadedCase, agent: &EvalAgent, folder: &RunFolder) -> Option<LintFinding> {
    if !agent.fits(&kit.case) {
        let says = "there is no solution, so nobody knows whether the case can be solved".to_owned();
        return (*agent == EvalAgent::Oracle).then(|| LintFinding {
            agent: agent.clone(),
            is_right: false,
            says,
        });
    }
    let unit = folder
        .plan
        .scope
        .units
        .iter()
        .find(|unit| unit.case == kit.case.id && unit.agent == agent.to_string())?;
    let meta = folder.attempts(unit).0.pop()?.meta;
    let is_right = match (agent, meta.outcome) {
        (_, TrialOutcome::Skipped) | (EvalAgent::Oracle, TrialOutcome::Success) => true,
        (EvalAgent::Oracle, _) | (_, TrialOutcome::Success) => false,
        // A trial that the evaluation spoiled proves nothing about the case.
        (_, TrialOutcome::Error) => meta.is_scored(),
        (_, TrialOutcome::Fail | TrialOutcome::Stuck) => true,
    };
    Some(LintFinding { agent: agent.clone(), is_right, says: says(&meta) })
}

fn says(meta: &TrialMeta) -> String {
    match &meta.why {
        Some(why) => format!("{}: {why}", meta.outcome),
        None => meta.outcome.to_string(),
    }
}

impl LintOutput {
    fn wrong(&self) -> impl Iterator<Item = (&str, &LintFinding)> {
        self.cases.iter().flat_map(|(case, findings)| {
            findings.iter().filter(|finding| !finding.is_right).map(move |finding| (case.as_str(), finding))
        })
    }
}

impl CommandOutput for LintOutput {
    fn json(&self) -> Value {
        let finding = |finding: &LintFinding| json!({ "agent": finding.agent.to_string(), "right": finding.is_right, "says": finding.says });
        let case = |(id, findings): &(String, Vec<LintFinding>)| {
            json!({
                "id": id,
                "sound": findings.iter().all(|finding| finding.is_right),
                "findings": findings.iter().map(finding).collect::<Vec<_>>(),
            })
        };
        json!({
            "schema": "runner.eval.lint/1",
            "event": "end",
            "cases": self.cases.iter().map(case).collect::<Vec<_>>(),
            "exit": self.exit().0,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let line = |(id, findings): &(String, Vec<LintFinding>)| {
            let sound = findings.iter().all(|finding| finding.is_right);
            let line = KeyValueLine::new().with("case", id).with("sound", sound);
            findings.iter().fold(line, |line, finding| line.with(&finding.agent.to_string(), &finding.says))
        };
        self.cases.iter().map(line).collect()
    }

    fn human(&self, pen: &Styler) -> String {
        let mut text = String::new();
        for (case, finding) in self.wrong() {
            let line = format!(
                "{case}: {} must {} and ended with {}",
                finding.agent,
                must(&finding.agent),
                finding.says
            );
            text.push_str(&format!("{}\n", pen.paint(TextRole::Bad, &line)));
        }
        let wrong =
            self.cases.iter().filter(|(_, findings)| !findings.iter().all(|one| one.is_right)).count();
        let sound = self.cases.len() - wrong;
        text.push_str(&format!("{sound} of {} cases are sound\n", self.cases.len()));
        text
    }

    fn exit(&self) -> CommandExit {
        match self.ending {
            PoolEnd::Stopped => INTERRUPTED,
            PoolEnd::Done | PoolEnd::Budget if self.wrong().next().is_none() => CommandExit::SUCCESS,
            PoolEnd::Done | PoolEnd::Budget => CommandExit::FAILURE,
        }
    }

    fn ends_lines(&self) -> bool {
        true
    }
}

fn must(agent: &EvalAgent) -> &'static str {
    match agent {
        EvalAgent::Oracle => "succeed",
        EvalAgent::Case | EvalAgent::Nop | EvalAgent::Cheat | EvalAgent::Real { .. } => "not succeed",
    }
}
