//! `runner eval regrade`

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use runner_core::layout::Doc;
use runner_core::model::digest::Sha256;
use runner_core::strict::canonical_json;
use runner_core::text::one_line;
use runner_term::{CommandError, CommandOutput, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};
use supervise::signals::SignalListener;

use super::scope::{find_runner, open_run};
use crate::args::{EvalGlobalArgs, RegradeArgs};
use crate::case::suite::{LoadedCase, filter_cases, load_cases};
use crate::execution::grade::Grader;
use crate::execution::process::CommandRunner;
use crate::execution::sandbox::{SandboxPrograms, hidden_paths};
use crate::execution::verdict::{LoopEnd, RunnerReport, TrialVerdict, classify};
use crate::execution::workspace::Workspace;
use crate::files;
use crate::plan::PlannedTrial;
use crate::result::run_folder::RunFolder;
use crate::result::signature::file_digests;
use crate::result::stored_trial::{CHECKS_FILE, INPUTS_FILE, META_FILE, StoredTrial};
use crate::result::{CheckResult, CheckResults, TrialInputs, TrialMeta, TrialOutcome};

pub(crate) struct RegradeOutput {
    run: String,
    graded: usize,
    changed: Vec<ChangedResult>,
    skipped: Vec<SkippedTrial>,
}

/// A trial whose outcome or checks differ from the recorded ones.
struct ChangedResult {
    eval_run_id: String,
    case: String,
    before: TrialOutcome,
    after: TrialOutcome,
    checks: Vec<ChangedCheck>,
}

/// Whether a check passed; none where there is no such check.
struct ChangedCheck {
    name: String,
    before: Option<bool>,
    after: Option<bool>,
}

/// A trial that cannot be graded again.
struct SkippedTrial {
    eval_run_id: String,
    why: String,
}

pub(crate) fn run(global: &EvalGlobalArgs, args: &RegradeArgs) -> Result<RegradeOutput, CommandError> {
    let cases = filter_cases(load_cases(&global.cases())?, &args.cases.to_filter())?;
    let folder = open_run(global, args.run.as_ref())?;
    let runner = find_runner(global, args.runner.as_deref())?;
    let scratch = global.workspaces().join(format!(".regrade-{}", std::process::id()));
    let fail = |error| CommandError::from_host("could not run the checks", error);
    let commands = CommandRunner::new(scratch.join("output")).map_err(fail)?;
    let _listener = SignalListener::install(&commands.cancel).map_err(fail)?;
    let mut output =
        RegradeOutput { run: folder.name().to_string(), graded: 0, changed: Vec::new(), skipped: Vec::new() };
    let folders = [global.cases(), global.results(), global.workspaces()].map(|path| files::absolute(&path));
    let regrader = Regrader {
        commands: &commands,
        runner: &runner.path,
        sandbox: SandboxPrograms::find().ok(),
        hidden: hidden_paths(&folders, std::env::var_os("HOME").as_deref()),
        scratch: files::absolute(&scratch).join("checks"),
    };
    fs::create_dir_all(&regrader.scratch)
        .map_err(|error| CommandError::io("could not run the checks", &regrader.scratch, &error))?;
    for trial in &folder.plan.scope.trials {
        let Some(loaded) = cases.iter().find(|loaded| loaded.case.id == trial.case) else { continue };
        let Some(stored) = folder.last_attempt(trial) else { continue };
        if commands.is_stopping() {
            break;
        }
        // A new judgement has no workspace of its own.
        let original = stored.meta.regrade_of.unwrap_or(stored.meta.attempt);
        let name = trial.eval_run_id(folder.name(), original);
        let workspace = Workspace::new(&global.workspaces(), &trial.case, &name);
        match regrader.regrade(loaded, &stored, &workspace) {
            Err(why) => {
                output.skipped.push(SkippedTrial { eval_run_id: stored.meta.eval_run_id.clone(), why });
            }
            Ok(judgement) => {
                output.graded += 1;
                if let Some(judgement) = judgement {
                    if args.record {
                        record(&folder, trial, loaded, &stored, &judgement)?;
                    }
                    output.changed.push(judgement.changed);
                }
            }
        }
    }
    let _ = files::remove_any(&scratch);
    Ok(output)
}

/// A judgement that differs from the recorded one.
struct NewJudgement {
    changed: ChangedResult,
    verdict: TrialVerdict,
    checks: CheckResults,
}

/// Publishes a judgement as a further attempt at its trial.
fn record(
    folder: &RunFolder,
    trial: &PlannedTrial,
    loaded: &LoadedCase,
    stored: &StoredTrial,
    judgement: &NewJudgement,
) -> Result<(), CommandError> {
    let digests = loaded.digests()?;
    let number = stored.meta.attempt + 1;
    let target = folder.result_folder(trial, number);
    let fail = |error: io::Error| CommandError::io("could not record the judgement", &target, &error);
    let _lock = folder.lock(trial, false).map_err(fail)?;
    let TrialVerdict { outcome, cause, why } = judgement.verdict.clone();
    let meta = TrialMeta {
        attempt: number,
        eval_run_id: trial.eval_run_id(folder.name(), number),
        outcome,
        cause,
        why: why.map(|why| one_line(&why)),
        cheated: judgement.checks.cheated(),
        regrade_of: Some(stored.meta.regrade_of.unwrap_or(stored.meta.attempt)),
        ..stored.meta.clone()
    };
    let staging = target.with_file_name(format!(".{}", meta.eval_run_id));
    files::remove_any(&staging).map_err(fail)?;
    files::copy_tree(&stored.folder, &staging).map_err(fail)?;
    fs::write(staging.join(CHECKS_FILE), canonical_json(&judgement.checks)).map_err(fail)?;
    fs::write(staging.join(META_FILE), canonical_json(&meta)).map_err(fail)?;
    let inputs = folder.key.sign(TrialInputs {
        case_sha256: digests.task.to_string(),
        checks_sha256: digests.checks.to_string(),
        evaluator: env!("CARGO_PKG_VERSION").to_owned(),
        files: file_digests(&staging),
        ..stored.inputs.clone()
    });
    fs::write(staging.join(INPUTS_FILE), canonical_json(&inputs)).map_err(fail)?;
    fs::rename(&staging, &target).map_err(fail)
}

struct Regrader<'a> {
    commands: &'a CommandRunner,
    runner: &'a Path,
    sandbox: Option<SandboxPrograms>,
    hidden: Vec<PathBuf>,
    /// For the copies that the checks run on.
    scratch: PathBuf,
}

impl Regrader<'_> {
    /// Runs the current checks on a trial's workspace; returns what changed.
    fn regrade(
        &self,
        loaded: &LoadedCase,
        stored: &StoredTrial,
        workspace: &Workspace,
    ) -> Result<Option<NewJudgement>, String> {
        let Some(exit) = stored.meta.runner_exit else {
            return Err("`runner loop` has no exit code".to_owned());
        };
        if !workspace.repository.is_dir() {
            return Err("the workspace was removed".to_owned());
        }
        let tree = fs::read(workspace.document(Doc::Tree)).unwrap_or_default();
        if stored.inputs.files.get("tree.json") != Some(&Sha256::of(&tree).to_string()) {
            return Err("the workspace has changed since".to_owned());
        }
        let grader = Grader {
            loaded,
            commands: self.commands,
            runner: self.runner,
            sandbox: self.sandbox.as_ref(),
            hidden: &self.hidden,
            scratch: &self.scratch,
            is_completed: exit == 0,
        };
        let graded = grader.grade(&workspace.repository).map_err(|error: io::Error| error.to_string())?;
        let checks = graded.results;
        let verdict = classify(&LoopEnd::Exited(exit), &RunnerReport::default(), &checks.checks);
        let after = verdict.outcome;
        let before = stored.meta.outcome;
        let changed = changed_checks(&stored.checks.checks, &checks.checks);
        if before == after && changed.is_empty() {
            return Ok(None);
        }
        let eval_run_id = stored.meta.eval_run_id.clone();
        let case = loaded.case.id.clone();
        let changed = ChangedResult { eval_run_id, case, before, after, checks: changed };
        Ok(Some(NewJudgement { changed, verdict, checks }))
    }
}

fn changed_checks(before: &[CheckResult], after: &[CheckResult]) -> Vec<ChangedCheck> {
    let passed = |checks: &[CheckResult], name: &str| {
        checks.iter().find(|check| check.name == name).map(|check| check.passed)
    };
    let mut names: Vec<&str> = before.iter().chain(after).map(|check| check.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mut changed = Vec::new();
    for name in names {
        let check =
            ChangedCheck { name: name.to_owned(), before: passed(before, name), after: passed(after, name) };
        if check.before != check.after {
            changed.push(check);
        }
    }
    changed
}

fn check_result(passed: Option<bool>) -> &'static str {
    match passed {
        Some(true) => "passed",
        Some(false) => "failed",
        None => "absent",
    }
}

impl ChangedCheck {
    fn describe(&self) -> String {
        format!("{}: {} -> {}", self.name, check_result(self.before), check_result(self.after))
    }
}

impl CommandOutput for RegradeOutput {
    fn json(&self) -> Value {
        let mut changed = Vec::new();
        for result in &self.changed {
            let mut checks = Vec::new();
            for ChangedCheck { name, before, after } in &result.checks {
                let (before, after) = (check_result(*before), check_result(*after));
                checks.push(json!({ "name": name, "before": before, "after": after }));
            }
            changed.push(json!({
                "eval_run_id": result.eval_run_id,
                "case": result.case,
                "before": result.before,
                "after": result.after,
                "checks": checks,
            }));
        }
        let mut skipped = Vec::new();
        for SkippedTrial { eval_run_id, why } in &self.skipped {
            skipped.push(json!({ "eval_run_id": eval_run_id, "why": why }));
        }
        json!({
            "schema": "runner.eval.regrade/1",
            "run": self.run,
            "graded": self.graded,
            "changed": changed,
            "skipped": skipped,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut lines = vec![
            KeyValueLine::new()
                .with("run", &self.run)
                .with("graded", self.graded)
                .with("changed", self.changed.len())
                .with("skipped", self.skipped.len()),
        ];
        for result in &self.changed {
            let mut line = KeyValueLine::new()
                .with("changed", &result.eval_run_id)
                .with("case", &result.case)
                .with("before", result.before)
                .with("after", result.after);
            for check in &result.checks {
                line = line.with("check", check.describe());
            }
            lines.push(line);
        }
        for SkippedTrial { eval_run_id, why } in &self.skipped {
            lines.push(KeyValueLine::new().with("skipped", eval_run_id).with("why", why));
        }
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        let Self { run, graded, changed, skipped } = self;
        let mut text = format!("run {run}: {graded} trials graded again, {} changed\n", changed.len());
        for result in changed {
            let is_success = result.after == TrialOutcome::Success;
            let role = if is_success { TextRole::Good } else { TextRole::Warn };
            let after = styler.paint(role, result.after.as_str());
            text.push_str(&format!("{}: {} -> {after}\n", result.eval_run_id, result.before));
            for check in &result.checks {
                text.push_str(&format!("    {}\n", check.describe()));
            }
        }
        for SkippedTrial { eval_run_id, why } in skipped {
            let line = format!("{eval_run_id} skipped: {why}");
            text.push_str(&format!("{}\n", styler.paint(TextRole::Faint, &line)));
        }
        text
    }
}
