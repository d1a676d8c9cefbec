//! `runner verify`

use std::path::Path;

use runner_core::commit_message::{CommitKind, IterationTarget};
use runner_core::step::{GuardExit, Outcome};
use runner_core::verify::{AuditFinding, CommitAudit};
use runner_host::ops::guard_rerun::{GuardRerunOutcome, GuardRerunner};
use runner_host::ops::verify::{AuditResult, PassingCommit, verify};
use runner_term::format::counted;
use runner_term::{CommandError, CommandExit, CommandOutput, Glyph, KeyValueLine, Styler, TextRole, Ui};
use serde_json::{Value, json};

use crate::args::{PassSelection, VerifyArgs};
use crate::render::short;

pub(crate) struct VerifyOutput {
    audit: AuditResult,
    checked: Vec<CommitAudit>,
    reruns: Vec<GuardRerunOutput>,
}

/// A run of the guard on a commit that passed.
struct GuardRerunOutput {
    pass: PassingCommit,
    outcome: GuardRerunOutcome,
    output: Vec<String>,
}

const WHAT: &str = "could not verify the run";
const RERUN: &str = "could not run the guard again";

pub(crate) fn run(dir: &Path, args: &VerifyArgs, ui: &Ui) -> Result<VerifyOutput, CommandError> {
    let failed = |error| CommandError::from_host(WHAT, error);
    let mut checked = Vec::new();
    let target = args.target.as_deref().or(args.run.as_deref());
    let audit = verify(dir, target, &mut |commit| {
        ui.print_unless_json(&CommitAuditOutput(commit));
        checked.push(commit.clone());
    })
    .map_err(failed)?;
    let reruns = match args.rerun_guard {
        Some(selection) => rerun_guard(dir, selection, &audit, ui)?,
        None => Vec::new(),
    };
    Ok(VerifyOutput { audit, checked, reruns })
}

fn rerun_guard(
    dir: &Path,
    selection: PassSelection,
    audit: &AuditResult,
    ui: &Ui,
) -> Result<Vec<GuardRerunOutput>, CommandError> {
    let failed = |error| CommandError::from_host(RERUN, error);
    let passes = selected_passes(selection, audit)?;
    let rerunner = GuardRerunner::begin(dir).map_err(failed)?;
    let mut reruns = Vec::new();
    for pass in passes {
        let status_line = ui.status_line(&format!("running the guard on #{}", pass.iter));
        let (outcome, output) = rerunner.run(pass).map_err(failed)?;
        drop(status_line);
        let is_stopped = matches!(outcome, GuardRerunOutcome::Stopped(_));
        let rerun = GuardRerunOutput { pass: pass.clone(), outcome, output };
        ui.print_unless_json(&rerun);
        reruns.push(rerun);
        if is_stopped {
            break;
        }
    }
    Ok(reruns)
}

fn selected_passes(
    selection: PassSelection,
    audit: &AuditResult,
) -> Result<Vec<&PassingCommit>, CommandError> {
    let PassSelection::One(iter) = selection else { return Ok(audit.passes.iter().collect()) };
    if let Some(pass) = audit.passes.iter().find(|pass| pass.iter == iter) {
        return Ok(vec![pass]);
    }
    let passes: Vec<String> = audit.passes.iter().map(|pass| pass.iter.to_string()).collect();
    let passes = if passes.is_empty() { "none".to_owned() } else { passes.join(", ") };
    Err(CommandError::refused("not_a_pass", RERUN)
        .cause(format!("no task passed in iteration {iter}"))
        .hint(format!("iterations in which a task passed: {passes}")))
}

/// The audit of one commit, printed as soon as it is done.
struct CommitAuditOutput<'c>(&'c CommitAudit);

impl CommitAuditOutput<'_> {
    fn kind(&self) -> &'static str {
        match &self.0.kind {
            CommitKind::Start { .. } => "start",
            CommitKind::Iteration { .. } => "iteration",
            CommitKind::Baseline { .. } => "baseline",
            CommitKind::Edit { .. } => "edit",
            CommitKind::Malformed { .. } => "malformed",
            CommitKind::User { .. } => "user",
        }
    }

    /// The iteration's target, the edit, the guard's result, or the subject of the user's commit.
    fn detail(&self) -> String {
        match &self.0.kind {
            CommitKind::Start { .. } => String::new(),
            CommitKind::Iteration { target: IterationTarget::Node(node), .. } => node.to_string(),
            CommitKind::Iteration { target: IterationTarget::Repair, .. } => "repair".to_owned(),
            CommitKind::Baseline { guard, .. } => format!("guard {}", guard.as_str()),
            CommitKind::Edit { edit, .. } => edit.to_string(),
            CommitKind::Malformed { subject } | CommitKind::User { subject } => short(subject),
        }
    }
}

impl CommandOutput for CommitAuditOutput<'_> {
    fn json(&self) -> Value {
        json!(self.0)
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut line = KeyValueLine::new().with("commit", &self.0.commit).with("kind", self.kind());
        if let Some(iter) = self.0.kind.iter() {
            line = line.with("iter", iter.get());
        }
        let outcome = self.0.outcome.map_or("none", Outcome::as_str);
        let line = line.with("detail", self.detail()).with("outcome", outcome);
        let mut lines = vec![line.with("ok", self.0.findings.is_empty())];
        lines.extend(self.0.findings.iter().map(finding_line));
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        let glyph = verdict_glyph(self.0.findings.is_empty(), styler);
        let label = match self.0.kind.iter() {
            Some(iter) if self.kind() == "iteration" => format!("#{iter}"),
            Some(_) | None => self.kind().to_owned(),
        };
        let outcome = self.0.outcome.map_or("", Outcome::as_str);
        let commit: String = self.0.commit.chars().take(8).collect();
        let annotations = match self.0.annotations.as_slice() {
            [] => String::new(),
            annotations => format!("  ({})", annotations.join("; ")),
        };
        let line = format!("{commit} {label:<8} {outcome:<15} {}{annotations}", self.detail());
        let mut text = format!("{glyph} {}\n", styler.fit(line.trim_end(), styler.width.saturating_sub(2)));
        for finding in &self.0.findings {
            text.push_str(&render_finding(finding, styler));
        }
        text
    }
}

fn verdict_glyph(is_good: bool, styler: &Styler) -> String {
    let (glyph, role) =
        if is_good { (Glyph::Passed, TextRole::Good) } else { (Glyph::Failed, TextRole::Bad) };
    styler.paint(role, styler.glyph(glyph))
}

fn render_finding(finding: &AuditFinding, styler: &Styler) -> String {
    let rule = styler.paint(TextRole::Bad, finding.rule.as_str());
    let commit: String = finding.commit.chars().take(8).collect();
    format!(
        "    {rule} in {commit}: {}\n      expected  {}\n      found     {}\n",
        finding.rule.description(),
        finding.expected,
        finding.found
    )
}

fn finding_line(finding: &AuditFinding) -> KeyValueLine {
    KeyValueLine::new()
        .with("violation", finding.rule.as_str())
        .with("commit", &finding.commit)
        .with("iter", finding.iter.map_or_else(|| "none".to_owned(), |iter| iter.get().to_string()))
        .with("expected", &finding.expected)
        .with("found", &finding.found)
}

impl GuardRerunOutput {
    fn has_passed(&self) -> bool {
        self.outcome == GuardRerunOutcome::Ended(GuardExit::Code(0))
    }

    fn word(&self) -> String {
        match &self.outcome {
            GuardRerunOutcome::Ended(GuardExit::Code(0)) => "passed".to_owned(),
            GuardRerunOutcome::Ended(exit) => format!("failed (exit {exit})"),
            GuardRerunOutcome::TimedOut => "timed out".to_owned(),
            GuardRerunOutcome::NotStarted(why) => format!("could not start: {}", short(why)),
            GuardRerunOutcome::Stopped(_) => "stopped".to_owned(),
        }
    }
}

impl CommandOutput for GuardRerunOutput {
    fn json(&self) -> Value {
        json!({
            "iter": self.pass.iter, "commit": self.pass.commit,
            "passed": self.has_passed(), "result": self.word(), "output": self.output,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let line = KeyValueLine::new().with("rerun", self.pass.iter.get()).with("commit", &self.pass.commit);
        vec![line.with("passed", self.has_passed()).with("result", self.word())]
    }

    fn human(&self, styler: &Styler) -> String {
        let glyph = verdict_glyph(self.has_passed(), styler);
        let mut text = format!("{glyph} #{} guard re-run: {}\n", self.pass.iter, self.word());
        if !self.has_passed() {
            for line in &self.output {
                text.push_str(&format!("    {}\n", styler.fit(line, styler.width.saturating_sub(4))));
            }
        }
        text
    }
}

impl VerifyOutput {
    fn is_good(&self) -> bool {
        self.audit.findings.is_empty() && self.reruns.iter().all(GuardRerunOutput::has_passed)
    }

    fn first(&self) -> Option<&AuditFinding> {
        self.audit.findings.first()
    }
}

impl CommandOutput for VerifyOutput {
    fn json(&self) -> Value {
        let audit = &self.audit;
        json!({
            "schema": "runner.verify/1",
            "run_id": audit.run(),
            "ref": audit.target.name,
            "tip": audit.target.tip,
            "verified": self.is_good(),
            "first_divergence": self.first(),
            "findings": audit.findings,
            "unchecked": audit.unchecked,
            "commits": self.checked,
            "iterations": audit.ending.iterations,
            "passed": audit.ending.passed,
            "complete": audit.ending.is_complete,
            "reruns": self.reruns.iter().map(CommandOutput::json).collect::<Vec<_>>(),
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let audit = &self.audit;
        let mut lines: Vec<KeyValueLine> = audit.ending.findings.iter().map(finding_line).collect();
        lines.extend(audit.unchecked.iter().map(|note| KeyValueLine::new().with("unchecked", note)));
        lines.push(
            KeyValueLine::new()
                .with("verified", self.is_good())
                .with("run_id", audit.run())
                .with("commits", audit.commits)
                .with("iterations", audit.ending.iterations)
                .with("passed", audit.ending.passed.len())
                .with("complete", audit.ending.is_complete)
                .with("violations", audit.findings.len()),
        );
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        let audit = &self.audit;
        let mut text: String =
            audit.ending.findings.iter().map(|finding| render_finding(finding, styler)).collect();
        text.push('\n');
        let counts = format!(
            "run {}: {}, {}, {} passed{}",
            audit.run(),
            counted(audit.commits, "commit", "commits"),
            counted(audit.ending.iterations, "iteration", "iterations"),
            counted(audit.ending.passed.len(), "task", "tasks"),
            if audit.ending.is_complete { ", complete" } else { "" }
        );
        let (word, role) =
            if self.is_good() { ("verified", TextRole::Good) } else { ("not verified", TextRole::Bad) };
        let glyph = verdict_glyph(self.is_good(), styler);
        text.push_str(&format!("{glyph} {} {counts}\n", styler.paint(role, word)));
        if let Some(first) = self.first() {
            let commit: String = first.commit.chars().take(12).collect();
            let iter = first.iter.map(|iter| format!(" (#{iter})")).unwrap_or_default();
            let count = counted(audit.findings.len(), "violation", "violations");
            text.push_str(&format!(
                "  {count}, the first: {} in {commit}{iter}\n\nNext: git show {commit}\n",
                first.rule
            ));
        }
        let annotated = self.checked.iter().filter(|commit| !commit.annotations.is_empty()).count();
        if annotated > 0 {
            let count = counted(annotated, "iteration has", "iterations have");
            let note = format!("  {count} annotations, shown above in parentheses");
            text.push_str(&format!("{}\n", styler.paint(TextRole::Warn, &note)));
        }
        for note in &audit.unchecked {
            text.push_str(&format!("  {} {note}\n", styler.paint(TextRole::Warn, "not checked:")));
        }
        text
    }

    fn exit(&self) -> CommandExit {
        let stopped = self.reruns.iter().find_map(|rerun| match rerun.outcome {
            GuardRerunOutcome::Stopped(code) => Some(CommandExit(code)),
            GuardRerunOutcome::Ended(_) | GuardRerunOutcome::TimedOut | GuardRerunOutcome::NotStarted(_) => {
                None
            }
        });
        stopped.unwrap_or(if self.is_good() { CommandExit::SUCCESS } else { CommandExit::FAILURE })
    }
}
