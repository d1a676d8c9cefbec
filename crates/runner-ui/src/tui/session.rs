//! Turns the events of a session into lines for the terminal. Control characters in the texts of agents are removed.

use std::collections::BTreeMap;

use runner_core::agents::{ActivityState, AgentEvent, AgentEventKind};
use runner_core::format::{counted, dollars, duration, tokens};
use runner_core::step::{
    AttemptCharge, Event, GuardEnd, GuardExit, ProviderError, RecordedEvent, SessionCheck, SessionExit, Usage,
};
use runner_core::text::{head, one_line, tail};
use runner_term::{Glyph, TextRole, agent_event_line};

use super::theme::StyledLine;

/// How many lines of one message or thought are shown.
const LINES_MAX: usize = 60;
/// How many lines of a command's output are shown.
const OUTPUT_LINES_MAX: usize = 6;
/// How much of a text is processed.
const BYTES_MAX: usize = 16 << 10;

/// The lines of an iteration: from its events and, if the runner does not understand the agent's output, from what the
/// agent printed.
pub(super) fn session_lines(events: &[RecordedEvent], printed: &[String]) -> Vec<StyledLine> {
    let mut groups: Vec<Vec<StyledLine>> = Vec::new();
    let mut group_by_id: BTreeMap<&str, usize> = BTreeMap::new();
    let mut agent_end = None;
    for RecordedEvent { t_ms, event } in events {
        if matches!(event, Event::AgentEnded { .. }) && agent_end.is_none() {
            agent_end = Some(groups.len());
        }
        let (id, lines) = if let Event::Agent { activity, .. } = event {
            (activity.id.as_deref(), agent_lines(activity))
        } else {
            (None, runner_lines(event, *t_ms))
        };
        // A later event with the same id replaces the earlier one.
        match id.and_then(|id| group_by_id.get(id)).and_then(|index| groups.get_mut(*index)) {
            Some(earlier) => *earlier = lines,
            None => {
                group_by_id.extend(id.map(|id| (id, groups.len())));
                groups.push(lines);
            }
        }
    }
    if !has_agent_events(events) {
        let lines = printed.iter().map(|line| StyledLine::continued(None, plain(line))).collect();
        groups.insert(agent_end.unwrap_or(groups.len()), lines);
    }
    groups.into_iter().flatten().collect()
}

/// Whether the runner understood the agent's output.
pub(super) fn has_agent_events(events: &[RecordedEvent]) -> bool {
    events.iter().any(|recorded| matches!(recorded.event, Event::Agent { .. }))
}

/// A line of a log without control characters; its indentation stays.
pub(super) fn plain(line: &str) -> String {
    let text = runner_core::text::lines(head(line, BYTES_MAX));
    text.trim_end().to_owned()
}

fn agent_lines(event: &AgentEvent) -> Vec<StyledLine> {
    let mut lines = activity_lines(&event.kind);
    if event.parent.is_some() {
        lines.iter_mut().for_each(|line| line.text.insert_str(0, "  "));
    }
    lines
}

fn activity_lines(activity: &AgentEventKind) -> Vec<StyledLine> {
    let line = |glyph, role| {
        agent_event_line::line(activity).map(|text| StyledLine::new(glyph, role, text)).into_iter().collect()
    };
    match activity {
        AgentEventKind::Message { text } => text_lines(text, None),
        AgentEventKind::Reasoning { text } => text_lines(text, Some(TextRole::Faint)),
        AgentEventKind::Command { state, exit, output, .. } => {
            let role = match (state, exit) {
                (ActivityState::Started, _) => Some(TextRole::Active),
                (_, Some(0)) => None,
                // A test that fails is part of the work, not an error of the session.
                (_, _) => Some(TextRole::Warn),
            };
            let mut lines: Vec<StyledLine> = line(Glyph::Arrow, role);
            lines.extend(output_lines(output));
            lines
        }
        AgentEventKind::Edit { state, .. }
        | AgentEventKind::Read { state, .. }
        | AgentEventKind::Search { state, .. }
        | AgentEventKind::Web { state, .. }
        | AgentEventKind::Tool { state, .. } => match state {
            ActivityState::Started => line(Glyph::Arrow, Some(TextRole::Active)),
            ActivityState::Failed => line(Glyph::Arrow, Some(TextRole::Warn)),
            ActivityState::Done => finished_line(activity),
        },
        AgentEventKind::Retry { .. } | AgentEventKind::RateLimit { .. } => {
            line(Glyph::Retried, Some(TextRole::Warn))
        }
        AgentEventKind::Warning { .. } | AgentEventKind::Compacted { .. } => {
            line(Glyph::Open, Some(TextRole::Warn))
        }
        AgentEventKind::Failed { .. } => line(Glyph::Failed, Some(TextRole::Bad)),
        AgentEventKind::Session { .. }
        | AgentEventKind::Plan { .. }
        | AgentEventKind::Usage { .. }
        | AgentEventKind::Finished
        | AgentEventKind::Unknown { .. } => line(Glyph::Open, None),
    }
}

/// A successful activity, worded like its start: some agents only report the end.
fn finished_line(activity: &AgentEventKind) -> Vec<StyledLine> {
    let mut started = activity.clone();
    if let AgentEventKind::Edit { state, .. }
    | AgentEventKind::Read { state, .. }
    | AgentEventKind::Search { state, .. }
    | AgentEventKind::Web { state, .. }
    | AgentEventKind::Tool { state, .. } = &mut started
    {
        *state = ActivityState::Started;
    }
    let text = agent_event_line::line(&started);
    text.map(|text| StyledLine::new(Glyph::Arrow, None, text)).into_iter().collect()
}

/// A message of several lines, truncated if it is too long.
fn text_lines(text: &str, role: Option<TextRole>) -> Vec<StyledLine> {
    let text = runner_core::text::lines(head(text, BYTES_MAX));
    let all: Vec<&str> = text.trim().lines().collect();
    let mut lines: Vec<StyledLine> =
        all.iter().take(LINES_MAX).map(|line| StyledLine::continued(role, *line)).collect();
    if let Some(first) = lines.first_mut() {
        first.glyph = Some(Glyph::Open);
    }
    if all.len() > LINES_MAX {
        let more = counted(all.len() - LINES_MAX, "more line", "more lines");
        lines.push(StyledLine::new(Glyph::Cut, Some(TextRole::Faint), more));
    }
    lines
}

/// The last lines of a command's output.
fn output_lines(output: &str) -> Vec<StyledLine> {
    let text = runner_core::text::lines(tail(output, BYTES_MAX));
    let all: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let skipped = all.len().saturating_sub(OUTPUT_LINES_MAX);
    all.iter().skip(skipped).map(|line| StyledLine::continued(Some(TextRole::Faint), *line)).collect()
}

#[expect(clippy::too_many_lines, reason = "a flat table with one arm per event")]
fn runner_lines(event: &Event, t_ms: u64) -> Vec<StyledLine> {
    let one = |glyph, role, text: String| vec![StyledLine::new(glyph, Some(role), text)];
    match event {
        Event::Planned { path, attempt, .. } => {
            let path = one_line(path);
            let task = if path.is_empty() { "repair of the tree" } else { &path };
            let text = format!("session on {task}, attempt {} of {}", attempt.nth, attempt.of);
            one(Glyph::Next, TextRole::Strong, text)
        }
        Event::Recovered { .. } => one(Glyph::Retried, TextRole::Warn, "recovered after a crash".to_owned()),
        Event::AgentEnded { exit, usage, .. } => agent_ended_lines(exit, *usage),
        Event::Checked { result, status, findings, .. } => {
            let status = status.map(runner_core::model::agent_output::AgentStatus::as_str);
            checked_lines(*result, status, findings)
        }
        Event::BaselineStarted { command }
        | Event::FinalCheckStarted { command }
        | Event::GuardStarted { command, .. } => {
            let command = one_line(&command.words().join(" "));
            one(Glyph::Arrow, TextRole::Strong, format!("guard: {command}"))
        }
        Event::CheckStarted { check, command, .. } => {
            let command = one_line(&command.words().join(" "));
            one(Glyph::Arrow, TextRole::Strong, format!("check {check}: {command}"))
        }
        Event::CheckEnded { check, exit, red, .. } => {
            let result = red.map_or_else(|| exit.to_string(), |red| format!("{red} before the work"));
            one(Glyph::Open, TextRole::Faint, format!("check {check}: {result}"))
        }
        Event::HeldoutEnded { node, check, red, result } => {
            let before = red.map(|red| format!("{red} before the work"));
            let end = before.or_else(|| Some(result.as_ref()?.as_str().to_owned())).unwrap_or_default();
            one(Glyph::Open, TextRole::Faint, format!("held-out check {check} of {node}: {end}"))
        }
        Event::RecheckStarted { node, check, command } => {
            let command = one_line(&command.words().join(" "));
            one(Glyph::Arrow, TextRole::Strong, format!("check {check} of {node}: {command}"))
        }
        Event::RecheckEnded { node, check, exit, .. } => {
            one(Glyph::Open, TextRole::Faint, format!("check {check} of {node}: {exit}"))
        }
        Event::RegressionAdded { task, node, check, .. } => {
            one(Glyph::Retried, TextRole::Warn, format!("check {check} of {node} fails again: added {task}"))
        }
        Event::ReviewStarted { agent, round, .. } => {
            let text = format!("review {} of {}: {}", round.nth, round.of, one_line(agent));
            one(Glyph::Arrow, TextRole::Strong, text)
        }
        Event::ReviewEnded { report, .. } => {
            let reasons = report.reasons.iter().map(|reason| format!(": {}", one_line(reason)));
            let text = format!("review {}{}", report.result.as_str(), reasons.collect::<String>());
            one(Glyph::Open, TextRole::Faint, text)
        }
        Event::GuardEnded { end, exit, .. } => guard_ended_lines(*end, *exit),
        Event::Decided { outcome, charge, .. } => {
            let label = outcome.label();
            let used = if *charge == AttemptCharge::Charged { ", used an attempt" } else { "" };
            one(label.symbol.into(), label.tone.into(), format!("outcome: {}{used}", label.text))
        }
        Event::Committed { commit, .. } => {
            let commit = one_line(commit);
            one(Glyph::Open, TextRole::Faint, format!("committed {}", head(&commit, 8)))
        }
        Event::OutageContinues { outcome, .. } => {
            one(Glyph::Retried, TextRole::Warn, format!("still failing: {}", outcome.label().text))
        }
        Event::Waiting { wait, ends_unix_ms } => {
            let secs = ends_unix_ms.saturating_sub(t_ms).div_ceil(1000);
            let reason = format!("{}, {}", wait.outcome.label().text, one_line(&wait.agent));
            one(Glyph::Retried, TextRole::Warn, format!("waiting {} ({reason})", duration(secs)))
        }
        Event::Stopped { stop, .. } => {
            let label = stop.label();
            one(label.symbol.into(), TextRole::Strong, format!("the run stopped: {}", label.text))
        }
        Event::Paused => one(Glyph::Halted, TextRole::Warn, "paused".to_owned()),
        Event::Resumed => one(Glyph::Next, TextRole::Faint, "resumed".to_owned()),
        Event::BaselineEnded { guard, .. } => {
            one(Glyph::Open, TextRole::Faint, format!("guard before the first session: {}", guard.as_str()))
        }
        Event::FinalCheckEnded { guard, .. } => {
            one(Glyph::Open, TextRole::Faint, format!("guard in a clean checkout: {}", guard.as_str()))
        }
        Event::BudgetUnenforceable { limits, agent } => {
            let limits: Vec<&str> = limits.iter().map(|limit| limit.as_str()).collect();
            let agent = one_line(agent);
            let text = format!("{} cannot be enforced: {agent} does not report it", limits.join(", "));
            one(Glyph::Open, TextRole::Warn, text)
        }
        Event::SandboxChosen { sandbox, why: None, .. } => {
            one(Glyph::Open, TextRole::Faint, format!("sandbox of the agent: {}", one_line(sandbox)))
        }
        Event::SandboxChosen { why: Some(why), .. } => {
            let text = format!("the agent runs without a sandbox: {}", one_line(why));
            one(Glyph::Open, TextRole::Warn, text)
        }
        Event::GuardInPlace { why } => {
            let text = format!("the guard runs in the work tree, without a sandbox: {}", one_line(why));
            one(Glyph::Open, TextRole::Warn, text)
        }
        Event::RoomProposal { keys, .. } => {
            let text = format!("the guard succeeds in the room with {}", one_line(&keys.join(", ")));
            one(Glyph::Open, TextRole::Warn, text)
        }
        Event::FileNoticed { notice, .. } => one(Glyph::Open, TextRole::Warn, one_line(&notice.text())),
        Event::HookRan { hook, fault } => {
            let fault = fault.as_deref().map(|fault| format!(" failed: {}", one_line(fault)));
            let text = format!("hook {}{}", one_line(hook), fault.unwrap_or_default());
            one(Glyph::Open, TextRole::Faint, text)
        }
        Event::Asked { number, text, .. } => {
            one(Glyph::Open, TextRole::Warn, format!("question {number}: {}", one_line(text)))
        }
        Event::QueuedEdit { edit, fault } => {
            let fault = fault.as_deref().map(|fault| format!(" refused: {}", one_line(fault)));
            let text =
                format!("your {}{}", one_line(edit), fault.unwrap_or_else(|| " is recorded".to_owned()));
            one(Glyph::Open, TextRole::Faint, text)
        }
        Event::Notified { to, fault } => {
            let fault = fault.as_deref().map(|fault| format!(" failed: {}", one_line(fault)));
            let text = format!("notification by {}{}", one_line(to), fault.unwrap_or_default());
            one(Glyph::Open, TextRole::Faint, text)
        }
        Event::Unknown => one(Glyph::Open, TextRole::Faint, "event of a newer runner".to_owned()),
        // Agent events have their own lines.
        Event::Agent { .. } => Vec::new(),
    }
}

fn agent_ended_lines(exit: &SessionExit, usage: Usage) -> Vec<StyledLine> {
    let tokens = usage.input_tokens.map(|count| format!(", {} tokens read", tokens(count)));
    let cost = usage.cost_microdollars.map(|cost| format!(", {}", dollars(cost)));
    let usage = format!("{}{}", tokens.unwrap_or_default(), cost.unwrap_or_default());
    let (reason, detail) = match exit {
        SessionExit::Finished { code: 0 } => {
            return vec![StyledLine::new(Glyph::Passed, None, format!("the agent finished{usage}"))];
        }
        SessionExit::Finished { code } => (format!("exit {code}"), None),
        SessionExit::Killed { signal } => (format!("signal {signal}"), None),
        SessionExit::TimedOut => ("time limit".to_owned(), None),
        SessionExit::Idle => ("no output".to_owned(), None),
        SessionExit::OverBudget => ("budget".to_owned(), None),
        SessionExit::Interrupted { .. } => ("interrupted".to_owned(), None),
        SessionExit::NotStarted { why } => ("not started".to_owned(), Some(why)),
        SessionExit::Provider { fault } => provider_error_text(fault),
    };
    let text = format!("agent failed: {reason}{usage}");
    let mut lines = vec![StyledLine::new(Glyph::Failed, Some(TextRole::Bad), text)];
    let detail = detail.map(|detail| one_line(detail)).filter(|detail| !detail.is_empty());
    lines.extend(detail.map(|detail| StyledLine::continued(None, detail)));
    lines
}

/// The error in a few words, and the provider's message if there is one.
fn provider_error_text(error: &ProviderError) -> (String, Option<&String>) {
    let (text, why) = match error {
        ProviderError::RateLimited { .. } => ("rate limited by the provider", None),
        ProviderError::Overloaded => ("the provider is overloaded", None),
        ProviderError::Disconnected => ("could not connect to the provider", None),
        ProviderError::UsageLimit { .. } => ("usage limit reached", None),
        ProviderError::Refused { why } => ("refused by the provider", Some(why)),
        ProviderError::NotLoggedIn { why } => ("not logged in", Some(why)),
        ProviderError::ContextFull => ("the model's context is full", None),
        ProviderError::SchemaViolated { why } => ("the answer does not match the schema", Some(why)),
        ProviderError::Crashed { why } => ("the agent crashed", Some(why)),
    };
    (text.to_owned(), why)
}

fn checked_lines(result: SessionCheck, status: Option<&str>, findings: &[String]) -> Vec<StyledLine> {
    let answer = status.map_or_else(|| "no answer".to_owned(), |status| format!("answer: {status}"));
    let problem = match result {
        SessionCheck::NoAnswer | SessionCheck::Accepted => None,
        SessionCheck::InvalidTree => Some("invalid tree"),
        SessionCheck::RuleViolations => Some("rules violated"),
    };
    let text = problem.map_or_else(|| answer.clone(), |problem| format!("{answer}, {problem}"));
    let mut lines = vec![if result == SessionCheck::Accepted {
        StyledLine::new(Glyph::Open, None, text)
    } else {
        StyledLine::new(Glyph::Failed, Some(TextRole::Bad), text)
    }];
    let warn = Some(TextRole::Warn);
    lines.extend(findings.iter().map(|finding| StyledLine::continued(warn, one_line(finding))));
    lines
}

fn guard_ended_lines(end: GuardEnd, exit: Option<GuardExit>) -> Vec<StyledLine> {
    let failure = match (end, exit) {
        (_, Some(GuardExit::Code(0))) => {
            return vec![StyledLine::new(Glyph::Passed, Some(TextRole::Good), "guard passed")];
        }
        (_, Some(GuardExit::Code(code))) => format!("exit {code}"),
        (_, Some(GuardExit::Signal(signal))) => format!("signal {signal}"),
        (GuardEnd::NotStarted, None) => "not started".to_owned(),
        (GuardEnd::TimedOut, None) => "time limit".to_owned(),
        (GuardEnd::Interrupted, None) => "interrupted".to_owned(),
        (GuardEnd::Ended | GuardEnd::Skipped, None) => "not run".to_owned(),
    };
    vec![StyledLine::new(Glyph::Failed, Some(TextRole::Bad), format!("guard failed: {failure}"))]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// Events as a file has them.
    fn events(values: &[Value]) -> Vec<RecordedEvent> {
        let line = |value: &Value| {
            let mut value = value.clone();
            value["t_ms"] = 1.into();
            RecordedEvent::from_line(value.to_string().as_bytes()).unwrap()
        };
        values.iter().map(line).collect()
    }

    fn agent(mut value: Value) -> Value {
        value["event"] = "agent".into();
        value["iter"] = 1.into();
        value["seq"] = 1.into();
        value
    }

    fn texts(values: &[Value], printed: &[&str]) -> Vec<String> {
        let printed: Vec<String> = printed.iter().map(|line| (*line).to_owned()).collect();
        session_lines(&events(values), &printed).into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn later_event_replaces_the_earlier_one_with_its_id() {
        let command = |state: &str, exit: Value, output: &str| {
            agent(json!({ "id": "c", "kind": "command", "command": "ls", "state": state, "exit": exit,
                "output": output }))
        };
        let values = [
            command("started", json!(null), ""),
            agent(json!({ "kind": "message", "text": "one\ntwo" })),
            command("done", json!(0), "a\n\nb\n"),
        ];
        assert_eq!(texts(&values, &[]), ["$ ls (exit 0)", "a", "b", "one", "two"]);
    }

    #[test]
    fn successful_activity_keeps_the_words_of_its_start() {
        let read = |state: &str| agent(json!({ "id": "r", "kind": "read", "path": "a.rs", "state": state }));
        let started = session_lines(&events(&[read("started")]), &[]);
        let done = session_lines(&events(&[read("started"), read("done")]), &[]);
        assert_eq!(done, session_lines(&events(&[read("done")]), &[]));
        assert_eq!(started[0].text, done[0].text);
        assert_eq!((started[0].role, done[0].role), (Some(TextRole::Active), None));
    }

    #[test]
    fn printed_lines_come_before_the_end_of_the_agent() {
        let values = [
            json!({ "event": "recovered", "iter": 1, "exit": { "kind": "timed_out" } }),
            json!({ "event": "agent_ended", "iter": 1, "exit": { "kind": "finished", "code": 0 },
                "usage": Usage::default(), "processes_left": 0 }),
            json!({ "event": "guard_ended", "iter": 1, "end": "ended", "exit": { "code": 1 } }),
        ];
        let lines = texts(&values, &["\u{1b}[31mred\u{1b}[0m", "  in\u{202e}dented"]);
        assert_eq!(
            lines,
            ["recovered after a crash", "red", "  indented", "the agent finished", "guard failed: exit 1"]
        );
    }

    #[test]
    fn failed_sessions_name_the_failure() {
        let ended = |exit: Value| {
            json!({ "event": "agent_ended", "iter": 1, "exit": exit, "usage": Usage::default(),
                "processes_left": 0 })
        };
        let checked = |result: &str, status: Value| json!({ "event": "checked", "iter": 1, "result": result, "status": status, "findings": ["why"] });
        let disconnected = json!({ "kind": "provider", "fault": { "fault": "disconnected" } });
        for (value, expected) in [
            (ended(disconnected), vec!["agent failed: could not connect to the provider"]),
            (ended(json!({ "kind": "not_started", "why": "x" })), vec!["agent failed: not started", "x"]),
            (checked("no_answer", json!(null)), vec!["no answer", "why"]),
            (checked("invalid_tree", json!("done")), vec!["answer: done, invalid tree", "why"]),
            (checked("accepted", json!("retry")), vec!["answer: retry", "why"]),
        ] {
            assert_eq!(texts(&[value], &[]), expected);
        }
    }

    /// A usage limit ends at a moment; the shortest wait is then zero.
    #[test]
    fn wait_is_as_long_as_its_end_is_away() {
        let wait = json!({ "agent": "codex", "outcome": "usage_limit", "secs": 0, "until_unix_secs": 72_000,
            "secs_max": 86_400 });
        let waiting = json!({ "event": "waiting", "wait": wait, "ends_unix_ms": 72_000_000 });
        assert_eq!(texts(&[waiting], &[]), ["waiting 20 h (usage limit, codex)"]);
    }

    #[test]
    fn hostile_and_unknown_events_are_plain_text() {
        let hostile = "a\u{1b}]0;title\u{7}b\u{9b}2Jc\0\u{200b}d";
        let values = [
            agent(json!({ "kind": "message", "text": hostile })),
            agent(json!({ "kind": "sings", "loud": hostile })),
            agent(json!({ "kind": "command", "command": 7 })),
            json!({ "event": hostile }),
        ];
        let lines = texts(&values, &[]);
        assert_eq!(lines.len(), 4);
        assert_eq!(lines.first().map(String::as_str), Some("abcd"));
        assert!(lines.iter().all(|text| !text.chars().any(char::is_control)), "{lines:?}");
    }
}
