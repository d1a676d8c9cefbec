//! `runner verify`

use std::path::Path;

use runner_core::commit_message::{CommitKind, IterationTarget};
use runner_core::step::{GuardExit, Outcome, RoomLevel};
use runner_core::verify::{AuditFinding, CommitAudit, Verdict};
use runner_host::ops::guard_rerun::GuardRerunOutcome;
use runner_host::ops::pass_rerun::{PassRerun, rerun_passes};
use runner_host::ops::rerun_step::{RerunExpectation, RerunPlace, RerunStep};
use runner_host::ops::signed_tip::{TipSignature, tip_signature};
use runner_host::ops::verify::{AuditResult, PassingCommit, RoomPasses, verify};
use runner_term::format::counted;
use runner_term::{CommandError, CommandExit, CommandOutput, Glyph, KeyValueLine, Styler, TextRole, Ui};
use serde_json::{Value, json};

use super::attest::verdict_exit;
use crate::args::{PassSelection, VerifyArgs};
use crate::render::short;

pub(crate) struct VerifyOutput {
    audit: AuditResult,
    checked: Vec<CommitAudit>,
    reruns: Vec<PassRerun>,
    signature: Option<TipSignature>,
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
    let reruns = match args.rerun {
        Some(selection) => rerun(dir, selection, usize::from(args.jobs), &audit, ui)?,
        None => Vec::new(),
    };
    let signature = tip_signature(dir, &audit.target).map_err(failed)?;
    Ok(VerifyOutput { audit, checked, reruns, signature })
}

fn rerun(
    dir: &Path,
    selection: PassSelection,
    jobs: usize,
    audit: &AuditResult,
    ui: &Ui,
) -> Result<Vec<PassRerun>, CommandError> {
    let passes = selected_passes(selection, audit)?;
    let text = format!("re-running {}", counted(passes.len(), "pass", "passes"));
    let mut status_line = Some(ui.status_line(&text));
    let reruns = rerun_passes(dir, &passes, jobs, &mut |rerun| {
        // Removes the line before the output that would continue it.
        drop(status_line.take());
        ui.print_unless_json(&PassRerunOutput(rerun));
        status_line = Some(ui.status_line(&text));
    });
    drop(status_line);
    reruns.map_err(|error| CommandError::from_host(RERUN, error))
}

fn selected_passes(
    selection: PassSelection,
    audit: &AuditResult,
) -> Result<Vec<PassingCommit>, CommandError> {
    let PassSelection::One(iter) = selection else { return Ok(audit.passes.clone()) };
    if let Some(pass) = audit.passes.iter().find(|pass| pass.iter == iter) {
        return Ok(vec![pass.clone()]);
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
            CommitKind::Milestone { .. } => "milestone",
            CommitKind::Final { .. } => "final",
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
            CommitKind::Iteration { target: IterationTarget::Plan, .. } => "plan".to_owned(),
            CommitKind::Baseline { guard, .. } | CommitKind::Final { guard, .. } => {
                format!("guard {}", guard.as_str())
            }
            CommitKind::Milestone { checks, .. } => format!("checks {}", checks.as_str()),
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

/// One pass that was repeated.
struct PassRerunOutput<'r>(&'r PassRerun);

pub(super) fn step_word(step: &RerunStep) -> String {
    if let RerunExpectation::Red { recorded, now } = step.expected
        && !matches!(step.outcome, GuardRerunOutcome::Stopped(_))
    {
        return if recorded == now { format!("{now}") } else { format!("{now}, recorded {recorded}") };
    }
    match &step.outcome {
        GuardRerunOutcome::Ended(GuardExit::Code(0)) => "passed".to_owned(),
        GuardRerunOutcome::Ended(exit) => format!("failed (exit {exit})"),
        GuardRerunOutcome::TimedOut => "timed out".to_owned(),
        GuardRerunOutcome::NotStarted(why) => format!("could not start: {}", short(why)),
        GuardRerunOutcome::Rejected(why) => format!("no success: {}", short(why)),
        GuardRerunOutcome::Stopped(_) => "stopped".to_owned(),
    }
}

impl CommandOutput for PassRerunOutput<'_> {
    fn json(&self) -> Value {
        let step = |step: &RerunStep| {
            let result = step_word(step);
            json!({ "name": step.name, "place": step.place.as_str(), "result": result,
                "repeated": step.is_repeated(), "output": step.output })
        };
        json!({
            "iter": self.0.pass.iter, "commit": self.0.pass.commit, "passed": self.0.has_passed(),
            "steps": self.0.steps.iter().map(step).collect::<Vec<_>>(),
            "unrepeated": self.0.unrepeated,
            "environment": self.0.environment,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let line = |step: &RerunStep| {
            KeyValueLine::new()
                .with("rerun", self.0.pass.iter.get())
                .with("commit", &self.0.pass.commit)
                .with("passed", step.is_repeated())
                .with("step", &step.name)
                .with("place", step.place.as_str())
                .with("result", step_word(step))
        };
        let mut lines: Vec<KeyValueLine> = self.0.steps.iter().map(line).collect();
        for (key, texts) in [("unrepeated", &self.0.unrepeated), ("environment", &self.0.environment)] {
            lines.extend(
                texts
                    .iter()
                    .map(|text| KeyValueLine::new().with("rerun", self.0.pass.iter.get()).with(key, text)),
            );
        }
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        let mut text = String::new();
        for step in &self.0.steps {
            let has_passed = step.is_repeated();
            let glyph = verdict_glyph(has_passed, styler);
            let place = match step.place {
                RerunPlace::Room => "",
                RerunPlace::Clone => " (in a temporary clone, without a sandbox)",
            };
            let word = step_word(step);
            text.push_str(&format!("{glyph} #{} {} re-run: {word}{place}\n", self.0.pass.iter, step.name));
            for line in step.output.iter().filter(|_| !has_passed) {
                text.push_str(&format!("    {}\n", styler.fit(line, styler.width.saturating_sub(4))));
            }
        }
        for (what, texts) in
            [("not repeated", &self.0.unrepeated), ("another environment", &self.0.environment)]
        {
            for line in texts {
                let what = styler.paint(TextRole::Warn, &format!("{what}:"));
                text.push_str(&format!("  #{} {what} {line}\n", self.0.pass.iter));
            }
        }
        text
    }
}

/// Where the guards of some passes ran.
fn rooms_text(RoomPasses { room, passes }: RoomPasses) -> String {
    let passes = counted(passes, "pass", "passes");
    match room {
        Some(RoomLevel::Bubblewrap { ignored }) => {
            format!("{passes} in a room (bubblewrap, ignored = \"{ignored}\")")
        }
        Some(RoomLevel::InPlace) => format!("{passes} in the work tree, without a sandbox"),
        None => format!("{passes} without a record of the place"),
    }
}

impl VerifyOutput {
    /// What the audit comes to. A pass that cannot be repeated is a violation of what its commit records.
    fn verdict(&self) -> Verdict {
        match self.audit.verdict() {
            Verdict::Verified | Verdict::Partial if self.unrepeated().next().is_some() => Verdict::Violated,
            Verdict::Verified if self.reruns.iter().any(|rerun| !rerun.unrepeated.is_empty()) => {
                Verdict::Partial
            }
            verdict @ (Verdict::Verified | Verdict::Violated | Verdict::Partial) => verdict,
        }
    }

    /// The passes that came to something else when they were repeated.
    fn unrepeated(&self) -> impl Iterator<Item = &PassRerun> {
        self.reruns.iter().filter(|rerun| !rerun.has_passed())
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
            "verdict": self.verdict(),
            "first_divergence": self.first(),
            "findings": audit.findings,
            "unchecked": audit.unchecked,
            "commits": self.checked,
            "iterations": audit.ending.iterations,
            "passed": audit.ending.passed,
            "complete": audit.ending.is_complete,
            "acceptance": audit.ending.coverage,
            "rooms": audit.rooms(),
            "signature": self.signature,
            "reruns": self.reruns.iter().map(|rerun| PassRerunOutput(rerun).json()).collect::<Vec<_>>(),
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let audit = &self.audit;
        let mut lines: Vec<KeyValueLine> = audit.ending.findings.iter().map(finding_line).collect();
        lines.extend(audit.unchecked.iter().map(|note| KeyValueLine::new().with("unchecked", note)));
        lines.extend(audit.rooms().iter().map(|RoomPasses { room, passes }| {
            let room = room.map_or_else(|| "none".to_owned(), |room| room.to_string());
            KeyValueLine::new().with("room", room).with("passes", passes)
        }));
        lines.push(
            KeyValueLine::new()
                .with("verdict", self.verdict().as_str())
                .with("run_id", audit.run())
                .with("commits", audit.commits)
                .with("iterations", audit.ending.iterations)
                .with("passed", audit.ending.passed.len())
                .with("complete", audit.ending.is_complete)
                .with("violations", audit.findings.len().saturating_add(self.unrepeated().count())),
        );
        if audit.ending.coverage.points > 0 {
            lines.push(KeyValueLine::new().with("acceptance", audit.ending.coverage));
        }
        lines.extend(self.signature.iter().map(|found| KeyValueLine::new().with("signature", found.text())));
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
        let (word, role, glyph) = match self.verdict() {
            Verdict::Verified => ("verified", TextRole::Good, Glyph::Passed),
            Verdict::Violated => ("violated", TextRole::Bad, Glyph::Failed),
            Verdict::Partial => ("partial: what could be checked holds;", TextRole::Warn, Glyph::Retried),
        };
        let glyph = styler.paint(role, styler.glyph(glyph));
        text.push_str(&format!("{glyph} {}\n", styler.wrap_headed(role, word, &counts, 2)));
        if let Some(first) = self.first() {
            let commit: String = first.commit.chars().take(12).collect();
            let iter = first.iter.map(|iter| format!(" (#{iter})")).unwrap_or_default();
            let count = counted(audit.findings.len(), "violation", "violations");
            text.push_str(&format!(
                "  {count}, the first: {} in {commit}{iter}\n\nNext: git show {commit}\n",
                first.rule
            ));
        }
        let unrepeated: Vec<String> =
            self.unrepeated().map(|rerun| format!("#{}", rerun.pass.iter)).collect();
        if !unrepeated.is_empty() {
            let count = counted(unrepeated.len(), "pass", "passes");
            text.push_str(&format!("  {count} could not be repeated: {}\n", unrepeated.join(", ")));
        }
        if audit.ending.coverage.points > 0 {
            let coverage = styler.wrap(&audit.ending.coverage.to_string(), 14);
            text.push_str(&format!("  acceptance: {coverage}\n"));
        }
        for rooms in audit.rooms() {
            text.push_str(&format!("  guard: {}\n", styler.wrap(&rooms_text(rooms), 9)));
        }
        if let Some(found) = &self.signature {
            text.push_str(&format!("  signature: {}\n", styler.wrap(&found.text(), 13)));
        }
        let annotated = self.checked.iter().filter(|commit| !commit.annotations.is_empty()).count();
        if annotated > 0 {
            let count = counted(annotated, "iteration has", "iterations have");
            let note = format!("  {count} annotations, shown above in parentheses");
            text.push_str(&format!("{}\n", styler.paint(TextRole::Warn, &note)));
        }
        for note in &audit.unchecked {
            text.push_str(&format!("  {}\n", styler.wrap_headed(TextRole::Warn, "not checked:", note, 2)));
        }
        text
    }

    fn exit(&self) -> CommandExit {
        let stopped = self.reruns.iter().find_map(PassRerun::stopped).map(CommandExit);
        stopped.unwrap_or_else(|| verdict_exit(self.verdict()))
    }
}
