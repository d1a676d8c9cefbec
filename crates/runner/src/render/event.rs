//! The events of a loop as JSON, `key=value` lines and terminal text.

use std::time::Duration;

use runner_core::config::CommandArgv;
use runner_core::labels::annotation_text;
use runner_core::layout::Doc;
use runner_core::model::checks::{CheckExit, CheckName, RedKind};
use runner_core::model::heldout::HeldoutResult;
use runner_core::model::id::IterationNumber;
use runner_core::model::review::ReviewResult;
use runner_core::model::run_state::GuardResult;
use runner_core::step::{Annotation, CheckPhase, Event, FileNotice, Outcome, ReviewReport};
use runner_term::format::clock;
use runner_term::{CommandOutput, Glyph, KeyValueLine, Styler, TextRole, agent_event_line};
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use super::clean;
use super::cost::blind_text;
use super::wait::{countdown, in_utc, left_ms, on_the_wall, reason};

pub(crate) struct EventOutput<'e>(pub(crate) &'e Event);

impl CommandOutput for EventOutput<'_> {
    fn json(&self) -> Value {
        serde_json::to_value(self.0).unwrap_or_default()
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each event")]
    fn key_values(&self) -> Vec<KeyValueLine> {
        let line = KeyValueLine::new().with("event", self.0.name());
        vec![match self.0 {
            Event::Planned { iter, mode, path, attempt, agent: name, rung, .. } => {
                let line = line.with("iter", iter).with("mode", mode.as_str()).with("node", path);
                let line = line.with("attempt", format!("{}/{}", attempt.nth, attempt.of));
                let has_ladder = rung.of > 1;
                if has_ladder {
                    line.with("rung", format!("{}/{}", rung.nth, rung.of)).with("agent", name)
                } else {
                    line
                }
            }
            Event::Agent { iter, activity, .. } => {
                let Some(text) = agent_event_line::line(&activity.kind) else { return Vec::new() };
                line.with("iter", iter).with("kind", activity.kind.name()).with("text", text)
            }
            Event::BaselineStarted { command } | Event::FinalCheckStarted { command } => {
                line.with("command", command_text(command))
            }
            Event::BaselineEnded { guard, exit, .. } | Event::FinalCheckEnded { guard, exit, .. } => {
                line.with("guard", guard.as_str()).with("exit", exit)
            }
            Event::RecheckStarted { node, check, command } => {
                line.with("node", node).with("check", check).with("command", command_text(command))
            }
            Event::RecheckEnded { node, check, exit, broken_by } => {
                let line = line.with("node", node).with("check", check).with("exit", exit);
                broken_by.iter().fold(line, |line, iter| line.with("broken_by", iter))
            }
            Event::RegressionAdded { task, node, check, broken_by } => {
                let line = line.with("task", task).with("node", node).with("check", check);
                broken_by.iter().fold(line, |line, iter| line.with("broken_by", iter))
            }
            Event::Recovered { iter, .. }
            | Event::AgentEnded { iter, .. }
            | Event::GuardStarted { iter, .. } => line.with("iter", iter),
            Event::HeldoutEnded { node, check, red, result } => line
                .with("heldout", check)
                .with("task", node)
                .with("red", red.map_or("none", RedKind::as_str))
                .with("result", result.map_or("none", HeldoutResult::as_str)),
            Event::CheckStarted { iter, check, phase, command } => line
                .with("iter", iter)
                .with("check", check)
                .with("phase", phase_word(*phase))
                .with("command", command_text(command)),
            Event::CheckEnded { iter, check, phase, exit, red } => {
                let line = line.with("iter", iter).with("check", check).with("phase", phase_word(*phase));
                red.iter().fold(line.with("exit", exit), |line, red| line.with("red", red))
            }
            Event::ReviewStarted { iter, agent, round } => line
                .with("iter", iter)
                .with("agent", clean(agent))
                .with("round", format!("{}/{}", round.nth, round.of)),
            Event::ReviewEnded { iter, report } => {
                let line = line.with("iter", iter).with("result", report.result.as_str());
                report.reasons.iter().fold(line, |line, reason| line.with("reason", clean(reason)))
            }
            Event::Checked { iter, findings, .. } => {
                let line = line.with("iter", iter);
                findings.iter().fold(line, |line, finding| line.with("finding", clean(finding)))
            }
            Event::FileNoticed { iter, notice } => {
                let line = line.with("iter", iter).with("notice", notice.text());
                notice.restore.iter().fold(line, |line, command| line.with("restore", clean(command)))
            }
            Event::GuardEnded { iter, exit, .. } => {
                let exit = exit.map(|exit| exit.to_string()).unwrap_or_default();
                line.with("iter", iter).with("exit", exit)
            }
            Event::Decided { iter, outcome, leaves, .. } => line
                .with("iter", iter)
                .with("outcome", outcome)
                .with("leaves", format!("{}/{}", leaves.passed, leaves.total)),
            Event::Committed { iter, commit, .. } => line.with("iter", iter).with("commit", commit),
            Event::OutageContinues { iter, outcome } => line.with("iter", iter).with("outcome", outcome),
            Event::Waiting { wait, ends_unix_ms } => line
                .with("reason", wait.outcome)
                .with("agent", clean(&wait.agent))
                .with("until", in_utc(*ends_unix_ms))
                .with("remaining", countdown(left_ms(*ends_unix_ms))),
            Event::Paused => line.with("next", "runner resume"),
            Event::HookRan { hook, fault } => {
                let line = line.with("hook", hook).with("ok", fault.is_none());
                fault.iter().fold(line, |line, fault| line.with("error", clean(fault)))
            }
            Event::Asked { iter, number, text } => {
                line.with("iter", iter).with("question", number).with("text", clean(text))
            }
            Event::QueuedEdit { edit, fault } => {
                let line = line.with("edit", clean(edit)).with("ok", fault.is_none());
                fault.iter().fold(line, |line, fault| line.with("error", clean(fault)))
            }
            Event::Notified { to, fault } => {
                let line = line.with("to", clean(to)).with("ok", fault.is_none());
                fault.iter().fold(line, |line, fault| line.with("error", clean(fault)))
            }
            Event::Resumed | Event::Unknown => line,
            Event::BudgetUnenforceable { limits, agent } => {
                line.with("warning", blind_text(limits, &clean(agent)))
            }
            Event::SandboxChosen { sandbox, why, gap } => {
                let line = line.with("sandbox", sandbox);
                let line = gap.iter().fold(line, |line, gap| line.with("gap", clean(gap)));
                why.iter().fold(line, |line, why| line.with("warning", no_sandbox_text(why)))
            }
            Event::GuardInPlace { why } => line.with("warning", in_place_text(why)),
            Event::RoomProposal { keys, .. } => line.with("keys", clean(&keys.join("; "))),
            Event::Stopped { stop, exit_code } => line.with("reason", stop.as_str()).with("exit", exit_code),
        }]
    }

    #[expect(clippy::too_many_lines, reason = "a flat table: one arm per event")]
    fn human(&self, styler: &Styler) -> String {
        match self.0 {
            Event::Checked { findings, .. } => {
                indented_notes(findings.iter().map(|finding| clean(finding)), styler)
            }
            Event::FileNoticed { notice, .. } => notice_lines(notice, styler),
            Event::CheckEnded { check, exit, red, .. } => {
                indented_notes(check_text(check, *exit, *red), styler)
            }
            Event::HeldoutEnded { node, check, red, result } => {
                let fails = (*result == Some(HeldoutResult::Fail))
                    .then(|| format!("held-out check {check} of {node} failed"));
                let before =
                    red.map(|red| format!("held-out check {check} of {node} before the work: {red}"));
                indented_notes(fails.into_iter().chain(before), styler)
            }
            Event::Waiting { wait, ends_unix_ms } => {
                let until = on_the_wall(*ends_unix_ms);
                indented_notes([format!("waiting until {until} ({})", clean(&reason(wait)))], styler)
            }
            Event::BaselineStarted { command } => faint_line(
                &format!("Running the guard once before starting: {}", command_text(command)),
                styler,
            ),
            Event::BaselineEnded { guard, exit, command, next_iter } => {
                baseline_text(&BaselineResult { guard: *guard, exit, command, next_iter: *next_iter }, styler)
            }
            Event::FinalCheckStarted { command } => faint_line(
                &format!("Running the guard in a clean checkout: {}", command_text(command)),
                styler,
            ),
            Event::FinalCheckEnded { guard, exit, command } => final_text(*guard, exit, command, styler),
            Event::RecheckEnded { node, check, exit, broken_by } => {
                let by = broken_by.map(|iter| format!("; iteration {} broke it", iter.get()));
                let text = format!("check {check} of {node} fails again ({exit}){}", by.unwrap_or_default());
                indented_notes((!exit.is_green()).then_some(text), styler)
            }
            Event::RegressionAdded { task, node, check, .. } => {
                let text = format!("added task {task}: make check {check} of {node} succeed again");
                indented_notes([text], styler)
            }
            Event::ReviewEnded { report, .. } => review_text(report, styler),
            Event::Paused => indented_notes(["paused ('runner resume' continues)".to_owned()], styler),
            Event::BudgetUnenforceable { limits, agent } => {
                warning_line(&blind_text(limits, &clean(agent)), styler)
            }
            Event::SandboxChosen { why: Some(why), .. } => warning_line(&no_sandbox_text(why), styler),
            Event::SandboxChosen { sandbox, why: None, gap } => {
                let gap = gap.iter().map(|gap| format!(" ({})", clean(gap))).collect::<String>();
                faint_line(&format!("Agent sandbox: {}{gap}", sandbox_text(sandbox)), styler)
            }
            Event::GuardInPlace { why } => warning_line(&in_place_text(why), styler),
            Event::RoomProposal { command, keys } => proposal_text(command, keys, styler),
            Event::HookRan { hook, fault } => {
                indented_notes(fault.iter().map(|fault| format!("hook {hook}: {}", clean(fault))), styler)
            }
            Event::Asked { number, text, .. } => {
                indented_notes([format!("question {number}: {}", clean(text))], styler)
            }
            Event::QueuedEdit { edit, fault } => {
                indented_notes([queued_edit_text(edit, fault.as_deref())], styler)
            }
            Event::Notified { to, fault } => {
                let text = |fault: &String| format!("notification by {}: {}", clean(to), clean(fault));
                indented_notes(fault.iter().map(text), styler)
            }
            Event::Planned { .. }
            | Event::Recovered { .. }
            | Event::Agent { .. }
            | Event::AgentEnded { .. }
            | Event::GuardStarted { .. }
            | Event::CheckStarted { .. }
            | Event::RecheckStarted { .. }
            | Event::ReviewStarted { .. }
            | Event::GuardEnded { .. }
            | Event::Decided { .. }
            | Event::Committed { .. }
            | Event::OutageContinues { .. }
            | Event::Resumed
            | Event::Stopped { .. }
            | Event::Unknown => String::new(),
        }
    }
}

fn faint_line(text: &str, styler: &Styler) -> String {
    format!("{}\n", styler.paint(TextRole::Faint, &styler.fit(text, styler.width)))
}

/// How a check ended before the work, or that it failed after it.
fn check_text(check: &CheckName, exit: CheckExit, red: Option<RedKind>) -> Option<String> {
    match red {
        Some(red) => Some(format!("check {check} before the work: {red}")),
        None => (!exit.is_green()).then(|| format!("check {check} failed ({exit})")),
    }
}

fn queued_edit_text(edit: &str, fault: Option<&str>) -> String {
    let result = fault.map_or("recorded".to_owned(), |why| format!("refused: {}", clean(why)));
    format!("your {} is {result}", clean(edit))
}

/// What a reviewer refused, or why it gave no verdict. An acceptance needs no line.
fn review_text(report: &ReviewReport, styler: &Styler) -> String {
    let what = match report.result {
        ReviewResult::Accepted => return String::new(),
        ReviewResult::Refused => "review refused",
        ReviewResult::Failed => "review failed",
    };
    indented_notes(report.reasons.iter().map(|reason| format!("{what}: {}", clean(reason))), styler)
}

fn phase_word(phase: CheckPhase) -> &'static str {
    match phase {
        CheckPhase::Red => "red",
        CheckPhase::Green => "green",
    }
}

/// What confines the agent, for people.
fn sandbox_text(sandbox: &str) -> String {
    match sandbox {
        "own" => "the agent's own, around its commands".to_owned(),
        other => clean(other),
    }
}

fn no_sandbox_text(why: &str) -> String {
    format!("the agent runs without a sandbox, with all rights of your user: {}", clean(why))
}

/// Why a pass of this run proves less than one in a room.
fn in_place_text(why: &str) -> String {
    format!("the guard runs in the work tree, without a sandbox: {}", clean(why))
}

/// How to make a guard succeed in the room that succeeds in the work tree. The keys are never cut off.
fn proposal_text(command: &CommandArgv, keys: &[String], styler: &Styler) -> String {
    let what = format!("`{}` fails in the room, but succeeds in the work tree.", command_text(command));
    let mut text = warning_line(&what, styler);
    text.push_str("  It needs something that is in no commit. It succeeds with this under [guard]\n");
    text.push_str(&format!("  in {}, after 'runner start':\n\n", Doc::Config.path()));
    for key in keys {
        text.push_str(&format!("      {}\n", styler.paint(TextRole::Strong, &clean(key))));
    }
    text.push('\n');
    text
}

/// A notice and, on a line of its own and never cut off, the command that gets the file back.
pub(crate) fn notice_lines(notice: &FileNotice, styler: &Styler) -> String {
    let mut text = indented_notes([notice.text()], styler);
    if let Some(command) = &notice.restore {
        text.push_str(&format!("        {}: {}\n", notice.command_label(), clean(command)));
    }
    text
}

fn command_text(command: &CommandArgv) -> String {
    clean(&command.words().join(" "))
}

fn warning_line(text: &str, styler: &Styler) -> String {
    let word = "warning:";
    let text = styler.wrap_commands(text, word.len() + 1);
    format!("{} {}\n", styler.paint(TextRole::Bad, word), styler.paint(TextRole::Warn, &text))
}

/// The result of the guard before the first session with it.
struct BaselineResult<'a> {
    guard: GuardResult,
    exit: &'a str,
    command: &'a CommandArgv,
    next_iter: IterationNumber,
}

fn baseline_text(baseline: &BaselineResult<'_>, styler: &Styler) -> String {
    let BaselineResult { guard, exit, command, next_iter } = baseline;
    let command = command_text(command);
    let when = match *next_iter {
        IterationNumber::FIRST => "before any agent ran".to_owned(),
        iter => format!("before iteration {}", iter.get()),
    };
    let warning = match guard {
        GuardResult::Pass => {
            let tick = styler.paint(TextRole::Good, styler.glyph(Glyph::Passed));
            return format!("{tick} `{command}` succeeds {when}\n");
        }
        GuardResult::Fail => format!("`{command}` already fails (exit {exit}), {when}."),
        GuardResult::Skipped => format!("Could not run `{command}`."),
    };
    let consequence = "No task can pass until it succeeds. Its output is in baseline.log.";
    let consequence = styler.paint(TextRole::Faint, &styler.wrap(consequence, 2));
    format!("{}  {consequence}\n", warning_line(&warning, styler))
}

/// The result of the guard after all tasks passed.
fn final_text(guard: GuardResult, exit: &str, command: &CommandArgv, styler: &Styler) -> String {
    let command = command_text(command);
    if guard == GuardResult::Pass {
        let tick = styler.paint(TextRole::Good, styler.glyph(Glyph::Passed));
        return format!("{tick} `{command}` succeeds in a clean checkout\n");
    }
    let warning = format!("`{command}` fails in a clean checkout (exit {exit}).");
    let consequence = "The last commit is not enough for it to succeed. Its output is in final.log.";
    let consequence = styler.paint(TextRole::Faint, &styler.wrap(consequence, 2));
    format!("{}  {consequence}\n", warning_line(&warning, styler))
}

/// Indented lines that belong to the iteration above or below them.
fn indented_notes(notes: impl IntoIterator<Item = String>, styler: &Styler) -> String {
    let width = styler.width.saturating_sub(6);
    let mut text = String::new();
    for note in notes {
        text.push_str(&format!("      {}\n", styler.paint(TextRole::Warn, &styler.fit(&note, width))));
    }
    text
}

/// A finished iteration: one line, and its annotations below.
pub(crate) struct FinishedIteration<'a> {
    pub(crate) iter: IterationNumber,
    pub(crate) path: &'a str,
    pub(crate) outcome: Outcome,
    pub(crate) annotations: &'a [Annotation],
    pub(crate) took: Duration,
}

impl FinishedIteration<'_> {
    pub(crate) fn render(&self, styler: &Styler) -> String {
        let label = self.outcome.label();
        let role = label.tone.into();
        let head = format!("{} #{:<4}", styler.glyph(label.symbol.into()), self.iter.get());
        let outcome = label.text;
        let time = clock(self.took);
        let free = styler.width.saturating_sub(head.chars().count() + 1 + 2 + 20 + 2 + time.len());
        let path = if self.path.is_empty() { "repair of the tree" } else { self.path };
        let path = styler.fit(path, free);
        let used = path.width();
        let gap = " ".repeat(free.saturating_sub(used).min(40_usize.saturating_sub(used)));
        let line = format!(
            "{} {path}{gap}  {}  {}\n",
            styler.paint(role, &head),
            styler.paint(role, &format!("{outcome:20}")),
            styler.paint(TextRole::Faint, &time)
        );
        let notes = self.annotations.iter().filter(|annotation| !annotation.is_about_place());
        line + &indented_notes(notes.map(annotation_text), styler)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finished_iteration_is_as_wide_as_the_terminal_at_most() {
        let finished = FinishedIteration {
            iter: IterationNumber::FIRST,
            path: "root/a-path/that-is-longer/than-any-terminal/of-these/is-wide/and-has-to-be-cut",
            outcome: Outcome::Passed,
            annotations: &[],
            took: Duration::from_secs(4_000),
        };
        for width in [50, 60, 70, 80, 100] {
            let line = finished.render(&Styler::plain(width));
            assert_eq!(line.trim_end().width(), width, "{line}");
            assert!(line.contains("passed") && line.trim_end().ends_with("1:06:40"), "{line}");
        }
    }
}
