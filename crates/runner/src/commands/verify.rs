//! `runner verify`

use std::path::Path;

use runner_core::commit_message::{CommitKind, IterationTarget};
use runner_core::model::id::IterationNumber;
use runner_core::step::GuardExit;
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

/// A guard that was run again.
struct GuardRerunOutput {
    pass: PassingCommit,
    how: GuardRerunOutcome,
    output: Vec<String>,
}

const WHAT: &str = "could not verify the run";

pub(crate) fn run(dir: &Path, args: &VerifyArgs, out: &Ui) -> Result<VerifyOutput, CommandError> {
    let told = |error| CommandError::from_host(WHAT, error);
    let mut checked = Vec::new();
    let audit = verify(dir, args.target.as_deref(), &mut |commit| {
        out.print_unless_json(&CommitAuditOutput(commit));
        checked.push(commit.clone());
    })
    .map_err(told)?;
    let reruns = match args.rerun_guard {
        Some(which) => rerun(dir, which, &audit, out)?,
        None => Vec::new(),
    };
    Ok(VerifyOutput { audit, checked, reruns })
}

fn rerun(
    dir: &Path,
    which: PassSelection,
    audit: &AuditResult,
    out: &Ui,
) -> Result<Vec<GuardRerunOutput>, CommandError> {
    let wanted = |pass: &&PassingCommit| match which {
        PassSelection::All => true,
        PassSelection::One(iter) => pass.iter == iter,
    };
    let passes: Vec<&PassingCommit> = audit.passes.iter().filter(wanted).collect();
    if let (PassSelection::One(iter), true) = (which, passes.is_empty()) {
        let known: Vec<String> = audit.passes.iter().map(|pass| pass.iter.to_string()).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(CommandError::new("not_a_pass", CommandExit::REFUSED, "could not run the guard again")
            .cause(format!("iteration {iter} passed no node"))
            .hint(format!("iterations that did: {known}")));
    }
    let failed = |error| CommandError::from_host("could not run the guard again", error);
    let reruns = GuardRerunner::begin(dir).map_err(failed)?;
    let mut all = Vec::new();
    for pass in passes {
        let under_way = out.status_line(&format!("the guard on #{}", pass.iter));
        let (how, output) = reruns.run(pass).map_err(failed)?;
        drop(under_way);
        let is_stopped = matches!(how, GuardRerunOutcome::Stopped(_));
        let rerunned = GuardRerunOutput { pass: pass.clone(), how, output };
        out.print_unless_json(&rerunned);
        all.push(rerunned);
        if is_stopped {
            break;
        }
    }
    Ok(all)
}

/// One commit, as it is checked.
struct CommitAuditOutput<'c>(&'c CommitAudit);

impl CommitAuditOutput<'_> {
    /// What it is, in a word or two.
    fn what(&self) -> (String, String) {
        match &self.0.kind {
            CommitKind::Start { .. } => ("start".to_owned(), String::new()),
            CommitKind::Iteration { iter, target, .. } => {
                let target = match target {
                    IterationTarget::Node(node) => node.to_string(),
                    IterationTarget::Repair => "repair".to_owned(),
                };
                (format!("#{iter}"), target)
            }
            CommitKind::Baseline { guard, .. } => {
                ("baseline".to_owned(), format!("guard {}", guard.as_str()))
            }
            CommitKind::Edit { edit, .. } => ("edit".to_owned(), edit.to_string()),
            CommitKind::Malformed { subject } => ("malformed".to_owned(), short(subject)),
            CommitKind::User { subject } => ("yours".to_owned(), short(subject)),
        }
    }
}

impl CommandOutput for CommitAuditOutput<'_> {
    fn json(&self) -> Value {
        json!(self.0)
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let (what, about) = self.what();
        let outcome = self.0.outcome.map_or("none", runner_core::step::Outcome::as_str);
        let mut lines = vec![
            KeyValueLine::new()
                .with("commit", &self.0.commit)
                .with("what", what)
                .with("about", about)
                .with("outcome", outcome)
                .with("ok", self.0.findings.is_empty()),
        ];
        lines.extend(self.0.findings.iter().map(finding_line));
        lines
    }

    fn human(&self, pen: &Styler) -> String {
        let (what, about) = self.what();
        let is_good = self.0.findings.is_empty();
        let glyph = if is_good { Glyph::Passed } else { Glyph::Failed };
        let glyph = pen.paint(if is_good { TextRole::Good } else { TextRole::Bad }, pen.glyph(glyph));
        let outcome = self.0.outcome.map_or("", runner_core::step::Outcome::as_str);
        let commit: String = self.0.commit.chars().take(8).collect();
        let marks: Vec<&str> = self.0.annotations.iter().map(String::as_str).collect();
        let marks = if marks.is_empty() { String::new() } else { format!("  ({})", marks.join("; ")) };
        let line = format!("{commit} {what:<8} {outcome:<15} {about}{marks}");
        let mut text = format!("{glyph} {}\n", pen.fit(line.trim_end(), pen.width.saturating_sub(2)));
        for finding in &self.0.findings {
            text.push_str(&drawn_finding(finding, pen));
        }
        text
    }
}

fn drawn_finding(finding: &AuditFinding, pen: &Styler) -> String {
    let rule = pen.paint(TextRole::Bad, finding.rule.as_str());
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
    fn is_green(&self) -> bool {
        self.how == GuardRerunOutcome::Ended(GuardExit::Code(0))
    }

    fn word(&self) -> String {
        match &self.how {
            GuardRerunOutcome::Ended(GuardExit::Code(0)) => "green".to_owned(),
            GuardRerunOutcome::Ended(exit) => format!("red (exit {exit})"),
            GuardRerunOutcome::TimedOut => "ran out of time".to_owned(),
            GuardRerunOutcome::NotStarted(why) => format!("could not be started: {}", short(why)),
            GuardRerunOutcome::Stopped(_) => "stopped".to_owned(),
        }
    }
}

impl CommandOutput for GuardRerunOutput {
    fn json(&self) -> Value {
        json!({
            "iter": self.pass.iter, "commit": self.pass.commit,
            "green": self.is_green(), "result": self.word(), "output": self.output,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let line = KeyValueLine::new().with("rerun", self.pass.iter.get()).with("commit", &self.pass.commit);
        vec![line.with("green", self.is_green()).with("result", self.word())]
    }

    fn human(&self, pen: &Styler) -> String {
        let (glyph, ink) =
            if self.is_green() { (Glyph::Passed, TextRole::Good) } else { (Glyph::Failed, TextRole::Bad) };
        let glyph = pen.paint(ink, pen.glyph(glyph));
        let mut text = format!("{glyph} #{} guard again: {}\n", self.pass.iter, self.word());
        for line in self.output.iter().filter(|_| !self.is_green()) {
            text.push_str(&format!("    {}\n", pen.fit(line, pen.width.saturating_sub(4))));
        }
        text
    }
}

impl VerifyOutput {
    fn is_good(&self) -> bool {
        self.audit.findings.is_empty() && self.reruns.iter().all(GuardRerunOutput::is_green)
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

    fn human(&self, pen: &Styler) -> String {
        let audit = &self.audit;
        let mut text: String =
            audit.ending.findings.iter().map(|finding| drawn_finding(finding, pen)).collect();
        text.push('\n');
        let marked = self.checked.iter().filter(|commit| !commit.annotations.is_empty()).count();
        let counts = format!(
            "run {}: {}, {}, {} passed{}",
            audit.run(),
            counted(audit.commits, "commit", "commits"),
            counted(audit.ending.iterations, "iteration", "iterations"),
            counted(audit.ending.passed.len(), "leaf", "leaves"),
            if audit.ending.is_complete { ", complete" } else { "" }
        );
        if self.is_good() {
            let tick = pen.paint(TextRole::Good, pen.glyph(Glyph::Passed));
            text.push_str(&format!("{tick} {} {counts}\n", pen.paint(TextRole::Good, "verified")));
        } else {
            let cross = pen.paint(TextRole::Bad, pen.glyph(Glyph::Failed));
            text.push_str(&format!("{cross} {} {counts}\n", pen.paint(TextRole::Bad, "not verified")));
        }
        if let Some(first) = self.first() {
            let commit: String = first.commit.chars().take(12).collect();
            let iter = first.iter.map(|iter| format!(" (#{iter})")).unwrap_or_default();
            let (all, rule) = (audit.findings.len(), first.rule);
            text.push_str(&format!(
                "  first of {all}: {rule} in {commit}{iter}\n  look: git show {commit}\n"
            ));
        }
        if marked > 0 {
            text.push_str(&pen.paint(
                TextRole::Warn,
                &format!("  {marked} iterations carry marks, shown above in brackets"),
            ));
            text.push('\n');
        }
        for note in &audit.unchecked {
            text.push_str(&format!("  {} {note}\n", pen.paint(TextRole::Warn, "not checked:")));
        }
        text
    }

    fn exit(&self) -> CommandExit {
        let stopped = self.reruns.iter().find_map(|rerun| match rerun.how {
            GuardRerunOutcome::Stopped(code) => Some(CommandExit(code)),
            GuardRerunOutcome::Ended(_) | GuardRerunOutcome::TimedOut | GuardRerunOutcome::NotStarted(_) => {
                None
            }
        });
        stopped.unwrap_or(if self.is_good() { CommandExit::SUCCESS } else { CommandExit::FAILURE })
    }
}

/// Which passes the guard is run on again, as people write it.
pub(crate) fn which_passes(text: &str) -> Result<PassSelection, String> {
    if text == "all" {
        return Ok(PassSelection::All);
    }
    let digits = text.strip_prefix('#').unwrap_or(text);
    let iter: Result<IterationNumber, _> = digits.parse();
    iter.map(PassSelection::One).map_err(|fault| format!("`{text}` {fault}; or say `all`"))
}
