//! `runner eval lint`

use std::time::Duration;

use runner_cli::{Exit, Ink, Line, Out, Pen, Reply, Report};
use runner_host::process::Control;
use runner_host::signals::Listener;
use serde_json::{Value, json};

use super::run::find_runner;
use super::{INTERRUPTED, choice};
use crate::agent::Agent;
use crate::cli::{Global, LintArgs};
use crate::files;
use crate::plan::Scope;
use crate::pool::{self, Ending, Event, Settings};
use crate::progress::Progress;
use crate::result::{Meta, Outcome};
use crate::run_folder::RunFolder;
use crate::suite::{Kit, choose, read_all};

/// What was found about each case.
pub(crate) struct Linted {
    cases: Vec<(String, Vec<Finding>)>,
    ending: Ending,
}

/// One thing that was tried.
struct Finding {
    agent: Agent,
    is_right: bool,
    says: String,
}

pub(crate) fn run(global: &Global, args: &LintArgs, out: &Out) -> Result<Linted, Report> {
    let told = |error| Report::of("could not begin", &error);
    let kits = choose(read_all(&global.cases())?, &choice(&args.cases))?;
    let runner = find_runner(global, args.runner.as_deref())?;
    let control = Control::new().map_err(told)?;
    let _listener = Listener::begin(&control).map_err(told)?;
    let agents = [Agent::Oracle, Agent::Nop, Agent::Cheat];
    let scope = Scope::new(&kits, &agents, 1, runner.id.clone());
    // What is tried here is no result: nothing of it stays.
    let place = global.workspaces().join(format!(".lint-{}", std::process::id()));
    let settings = Settings {
        jobs: args.jobs,
        retries: 0,
        retry_wait: Duration::ZERO,
        budget_microdollars: None,
        results: place.join("results"),
        workspaces: place.join("workspaces"),
    };
    let folder = RunFolder::make(&settings.results, "lint", &scope)?;
    let mut progress = Progress::new(out, &scope.units, &[]);
    let mut tell = |event: Event| progress.tell(&event);
    let ending =
        pool::work((&folder, &kits, &runner), scope.units.clone(), &settings, (&control, 0), &mut tell);
    progress.end();
    let findings = |kit: &Kit| {
        let tried = agents.iter().filter_map(|agent| finding(kit, agent, &folder));
        (kit.case.id.clone(), tried.collect())
    };
    let cases = kits.iter().map(findings).collect();
    let _ = files::clear(&place);
    Ok(Linted { cases, ending: ending? })
}

/// What an agent's trial says about the case; nothing where there was none to be made.
fn finding(kit: &Kit, agent: &Agent, folder: &RunFolder) -> Option<Finding> {
    if !agent.fits(&kit.case) {
        let says = "there is no solution, so nobody knows whether the case can be solved".to_owned();
        return (*agent == Agent::Oracle).then(|| Finding { agent: agent.clone(), is_right: false, says });
    }
    let unit = folder
        .plan
        .scope
        .units
        .iter()
        .find(|unit| unit.case == kit.case.id && unit.agent == agent.to_string())?;
    let meta = folder.attempts(unit).0.pop()?.meta;
    let is_right = match (agent, meta.outcome) {
        (_, Outcome::Skipped) | (Agent::Oracle, Outcome::Success) => true,
        (Agent::Oracle, _) | (_, Outcome::Success) => false,
        // A trial that the evaluation spoiled proves nothing about the case.
        (_, Outcome::Error) => meta.is_scored(),
        (_, Outcome::Fail | Outcome::Stuck) => true,
    };
    Some(Finding { agent: agent.clone(), is_right, says: says(&meta) })
}

fn says(meta: &Meta) -> String {
    match &meta.why {
        Some(why) => format!("{}: {why}", meta.outcome),
        None => meta.outcome.to_string(),
    }
}

impl Linted {
    fn wrong(&self) -> impl Iterator<Item = (&str, &Finding)> {
        self.cases.iter().flat_map(|(case, findings)| {
            findings.iter().filter(|finding| !finding.is_right).map(move |finding| (case.as_str(), finding))
        })
    }
}

impl Reply for Linted {
    fn json(&self) -> Value {
        let finding = |finding: &Finding| json!({ "agent": finding.agent.to_string(), "right": finding.is_right, "says": finding.says });
        let case = |(id, findings): &(String, Vec<Finding>)| {
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

    fn plain(&self) -> Vec<Line> {
        let line = |(id, findings): &(String, Vec<Finding>)| {
            let sound = findings.iter().all(|finding| finding.is_right);
            let line = Line::new().with("case", id).with("sound", sound);
            findings.iter().fold(line, |line, finding| line.with(&finding.agent.to_string(), &finding.says))
        };
        self.cases.iter().map(line).collect()
    }

    fn drawn(&self, pen: &Pen) -> String {
        let mut text = String::new();
        for (case, finding) in self.wrong() {
            let line = format!(
                "{case}: {} must {} and ended with {}",
                finding.agent,
                must(&finding.agent),
                finding.says
            );
            text.push_str(&format!("{}\n", pen.ink(Ink::Bad, &line)));
        }
        let wrong =
            self.cases.iter().filter(|(_, findings)| !findings.iter().all(|one| one.is_right)).count();
        let sound = self.cases.len() - wrong;
        text.push_str(&format!("{sound} of {} cases are sound\n", self.cases.len()));
        text
    }

    fn exit(&self) -> Exit {
        match self.ending {
            Ending::Stopped => INTERRUPTED,
            Ending::Done | Ending::Budget if self.wrong().next().is_none() => Exit::SUCCESS,
            Ending::Done | Ending::Budget => Exit::FAILURE,
        }
    }

    fn ends_lines(&self) -> bool {
        true
    }
}

fn must(agent: &Agent) -> &'static str {
    match agent {
        Agent::Oracle => "succeed",
        Agent::Case | Agent::Nop | Agent::Cheat | Agent::Real { .. } => "not succeed",
    }
}
