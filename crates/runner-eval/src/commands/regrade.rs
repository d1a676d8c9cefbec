//! `runner eval regrade`

use std::path::Path;

use runner_core::layout::Doc;
use runner_core::model::digest::Sha256;
use runner_term::{CommandError, CommandExit, CommandOutput, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};
use supervise::StopRequest;
use supervise::signals::SignalListener;

use super::choice;
use super::run::{find_runner, newest};
use crate::args::{EvalGlobalArgs, RegradeArgs};
use crate::case::suite::{LoadedCase, choose, read_all};
use crate::execution::grade::Grader;
use crate::execution::process::CommandRunner;
use crate::execution::verdict::{LoopEnd, RunnerReport, judge};
use crate::execution::workspace::Workspace;
use crate::files;
use crate::result::run_folder::RunFolder;
use crate::result::stored_trial::StoredTrial;
use crate::result::{CheckResult, TrialOutcome};

/// What the checks of today say about trials of then.
pub(crate) struct RegradeOutput {
    run: String,
    graded: usize,
    flips: Vec<ChangedResult>,
    /// Trials that could not be graded again, and why.
    left_out: Vec<(String, String)>,
}

/// A trial that is judged differently.
struct ChangedResult {
    eval_run_id: String,
    case: String,
    outcome: (TrialOutcome, TrialOutcome),
    /// Name, before, after; none where there is no such check.
    checks: Vec<(String, Option<bool>, Option<bool>)>,
}

pub(crate) fn run(global: &EvalGlobalArgs, args: &RegradeArgs) -> Result<RegradeOutput, CommandError> {
    let kits = choose(read_all(&global.cases())?, &choice(&args.cases))?;
    let folder = match &args.run {
        Some(run) => RunFolder::open(&global.results(), run)?,
        None => newest(global)?,
    };
    let runner = find_runner(global, args.runner.as_deref())?;
    let scratch = global.workspaces().join(format!(".regrade-{}", std::process::id()));
    let told = |error| CommandError::from_host("could not begin", error);
    let launcher = CommandRunner::new(scratch.join("output")).map_err(told)?;
    let _listener = SignalListener::install(&launcher.control).map_err(told)?;
    let mut regraded =
        RegradeOutput { run: folder.name().to_owned(), graded: 0, flips: Vec::new(), left_out: Vec::new() };
    for unit in &folder.plan.scope.units {
        let Some(kit) = kits.iter().find(|kit| kit.case.id == unit.case) else { continue };
        let Some(trial) = folder.attempts(unit).0.pop() else { continue };
        if launcher.control.request() != StopRequest::None {
            break;
        }
        let place = Workspace::of(&global.workspaces(), &unit.case, &trial.meta.eval_run_id);
        match grade(kit, &trial, &place, (&launcher, &runner.path, &scratch.join("checked"))) {
            Err(why) => regraded.left_out.push((trial.meta.eval_run_id.clone(), why)),
            Ok(flip) => {
                regraded.graded += 1;
                regraded.flips.extend(flip);
            }
        }
    }
    let _ = files::clear(&scratch);
    Ok(regraded)
}

/// Grades one trial again; a flip if something is different.
fn grade(
    kit: &LoadedCase,
    trial: &StoredTrial,
    place: &Workspace,
    (launcher, runner, copy): (&CommandRunner, &Path, &Path),
) -> Result<Option<ChangedResult>, String> {
    let Some(exit) = trial.meta.runner_exit else { return Err("its loop had no end of its own".to_owned()) };
    if !place.repository.is_dir() {
        return Err("its workspace is gone".to_owned());
    }
    let tree = std::fs::read(place.document(Doc::Tree)).unwrap_or_default();
    if trial.lock.files.get("tree.json") != Some(&Sha256::of(&tree).to_string()) {
        return Err("its workspace was changed since".to_owned());
    }
    let fail = |error: std::io::Error| error.to_string();
    files::clear(copy).and_then(|()| files::copy(&place.repository, copy)).map_err(fail)?;
    let checks = Grader { kit, launcher, runner, folder: copy, completed: exit == 0 }.grade();
    let outcome = judge(&LoopEnd::Exited(exit), &RunnerReport::default(), &checks.checks).outcome;
    let changed = differences(&trial.checks.checks, &checks.checks);
    let is_same = outcome == trial.meta.outcome && changed.is_empty();
    Ok((!is_same).then(|| ChangedResult {
        eval_run_id: trial.meta.eval_run_id.clone(),
        case: kit.case.id.clone(),
        outcome: (trial.meta.outcome, outcome),
        checks: changed,
    }))
}

fn differences(before: &[CheckResult], after: &[CheckResult]) -> Vec<(String, Option<bool>, Option<bool>)> {
    let passed = |checks: &[CheckResult], name: &str| {
        checks.iter().find(|check| check.name == name).map(|check| check.passed)
    };
    let mut names: Vec<&str> = before.iter().chain(after).map(|check| check.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let pairs = names.into_iter().map(|name| (name.to_owned(), passed(before, name), passed(after, name)));
    pairs.filter(|(_, before, after)| before != after).collect()
}

fn word(passed: Option<bool>) -> &'static str {
    match passed {
        Some(true) => "passes",
        Some(false) => "fails",
        None => "absent",
    }
}

impl CommandOutput for RegradeOutput {
    fn json(&self) -> Value {
        let flip = |flip: &ChangedResult| {
            let checks = flip.checks.iter().map(|(name, before, after)| {
                json!({ "name": name, "before": word(*before), "after": word(*after) })
            });
            json!({
                "eval_run_id": flip.eval_run_id,
                "case": flip.case,
                "before": flip.outcome.0,
                "after": flip.outcome.1,
                "checks": checks.collect::<Vec<_>>(),
            })
        };
        let left_out = |(id, why): &(String, String)| json!({ "eval_run_id": id, "why": why });
        json!({
            "schema": "runner.eval.regrade/1",
            "run": self.run,
            "graded": self.graded,
            "flips": self.flips.iter().map(flip).collect::<Vec<_>>(),
            "left_out": self.left_out.iter().map(left_out).collect::<Vec<_>>(),
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let head = KeyValueLine::new().with("run", &self.run).with("graded", self.graded);
        let head = head.with("flips", self.flips.len()).with("left_out", self.left_out.len());
        let flip = |flip: &ChangedResult| {
            let line = KeyValueLine::new().with("flip", &flip.eval_run_id).with("case", &flip.case);
            let line = line.with("before", flip.outcome.0).with("after", flip.outcome.1);
            flip.checks.iter().fold(line, |line, (name, before, after)| {
                line.with("check", format!("{name}: {} -> {}", word(*before), word(*after)))
            })
        };
        let left_out =
            |(id, why): &(String, String)| KeyValueLine::new().with("left_out", id).with("why", why);
        let lines = self.flips.iter().map(flip).chain(self.left_out.iter().map(left_out));
        std::iter::once(head).chain(lines).collect()
    }

    fn human(&self, pen: &Styler) -> String {
        let mut text =
            format!("run {}: {} trials graded again, {} differ\n", self.run, self.graded, self.flips.len());
        for flip in &self.flips {
            let (before, after) = flip.outcome;
            let ink = if after == TrialOutcome::Success { TextRole::Good } else { TextRole::Warn };
            text.push_str(&format!("{}: {before} -> {}\n", flip.eval_run_id, pen.paint(ink, after.as_str())));
            for (name, before, after) in &flip.checks {
                text.push_str(&format!("    {name}: {} -> {}\n", word(*before), word(*after)));
            }
        }
        for (id, why) in &self.left_out {
            text.push_str(&format!("{}\n", pen.paint(TextRole::Faint, &format!("{id} left out: {why}"))));
        }
        text
    }

    fn exit(&self) -> CommandExit {
        CommandExit::SUCCESS
    }
}
