//! What a session said and did, as lines for people. Events come from this runner, an older or a newer one: nothing is
//! assumed to be of the type it should be, and nothing that acts on a terminal gets through.

use std::collections::BTreeMap;
use std::time::Duration;

use runner_core::agents::{ActivityState, AgentEvent, AgentEventKind};
use runner_core::text::{head, one_line, tail};
use runner_term::format::{clock, dollars, tokens};
use runner_term::{Glyph, TextRole, agent_event_line};
use serde_json::Value;

use super::theme::StyledLine;

/// How many lines of one message or thought are shown.
const LINES_MAX: usize = 60;
/// How many lines of a command's output are shown.
const OUTPUT_LINES_MAX: usize = 6;
/// How much of a text is looked at.
const BYTES_MAX: usize = 16 << 10;

/// The lines of an iteration from its events and, where the agent is not understood, from what it printed.
pub(super) fn session(events: &[Value], printed: &[String]) -> Vec<StyledLine> {
    let (mut rows, mut places): (Vec<Vec<StyledLine>>, BTreeMap<String, usize>) =
        (Vec::new(), BTreeMap::new());
    let mut ended = None;
    for event in events {
        let is_agents = word(event, "event") == "agent";
        if !is_agents && word(event, "event") == "agent_ended" && ended.is_none() {
            ended = Some(rows.len());
        }
        let told = if is_agents { of_agent(event) } else { of_runner(event) };
        let id = event.get("id").and_then(Value::as_str).filter(|_| is_agents);
        match id.and_then(|id| places.get(id)).and_then(|place| rows.get_mut(*place)) {
            Some(earlier) => *earlier = told,
            None => {
                places.extend(id.map(|id| (id.to_owned(), rows.len())));
                rows.push(told);
            }
        }
    }
    if events.iter().all(|event| word(event, "event") != "agent") {
        let lines = printed.iter().map(|line| StyledLine::under(None, plain(line))).collect();
        rows.insert(ended.unwrap_or(rows.len()), lines);
    }
    rows.into_iter().flatten().collect()
}

/// A line of a log without what acts on a terminal; its indent stays.
pub(super) fn plain(line: &str) -> String {
    let text = runner_core::text::lines(head(line, BYTES_MAX));
    text.trim_end().to_owned()
}

fn word<'v>(event: &'v Value, key: &str) -> &'v str {
    event.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn number(event: &Value, pointer: &str) -> Option<u64> {
    event.pointer(pointer).and_then(Value::as_u64)
}

/// A name as words.
fn words(name: &str) -> String {
    one_line(&name.replace('_', " "))
}

/// What an agent that the runner understands says and does.
fn of_agent(event: &Value) -> Vec<StyledLine> {
    let Ok(AgentEvent { kind, parent, .. }) = serde_json::from_value(event.clone()) else {
        return vec![StyledLine::new(Glyph::Open, Some(TextRole::Faint), words(word(event, "kind")))];
    };
    let mut told = of_said(&kind);
    if parent.is_some() {
        told.iter_mut().for_each(|line| line.text.insert_str(0, "  "));
    }
    told
}

fn of_said(said: &AgentEventKind) -> Vec<StyledLine> {
    let line = |glyph, ink| {
        agent_event_line::line(said).map(|text| StyledLine::new(glyph, ink, text)).into_iter().collect()
    };
    match said {
        AgentEventKind::Message { text } => body(text, None),
        AgentEventKind::Reasoning { text } => body(text, Some(TextRole::Faint)),
        AgentEventKind::Command { state, exit, output, .. } => {
            let ink = match (state, exit) {
                (ActivityState::Started, _) => Some(TextRole::Active),
                // A test that fails is work, not a fault of the session.
                (_, Some(0)) => None,
                (_, _) => Some(TextRole::Warn),
            };
            let mut told: Vec<StyledLine> = line(Glyph::Arrow, ink);
            told.extend(last_lines(output));
            told
        }
        AgentEventKind::Edit { state, .. }
        | AgentEventKind::Read { state, .. }
        | AgentEventKind::Search { state, .. }
        | AgentEventKind::Web { state, .. }
        | AgentEventKind::Tool { state, .. } => match state {
            ActivityState::Started => line(Glyph::Arrow, Some(TextRole::Active)),
            ActivityState::Failed => line(Glyph::Arrow, Some(TextRole::Warn)),
            ActivityState::Done => finished(said),
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

/// What went well, in the words for its beginning: some agents tell of it only then.
fn finished(said: &AgentEventKind) -> Vec<StyledLine> {
    let mut begun = said.clone();
    if let AgentEventKind::Edit { state, .. }
    | AgentEventKind::Read { state, .. }
    | AgentEventKind::Search { state, .. }
    | AgentEventKind::Web { state, .. }
    | AgentEventKind::Tool { state, .. } = &mut begun
    {
        *state = ActivityState::Started;
    }
    agent_event_line::line(&begun).map(|text| StyledLine::new(Glyph::Arrow, None, text)).into_iter().collect()
}

/// A text of several lines, cut where it is too long.
fn body(text: &str, ink: Option<TextRole>) -> Vec<StyledLine> {
    let text = runner_core::text::lines(head(text, BYTES_MAX));
    let all: Vec<&str> = text.trim().lines().collect();
    let mut told: Vec<StyledLine> =
        all.iter().take(LINES_MAX).map(|line| StyledLine::under(ink, *line)).collect();
    if let Some(first) = told.first_mut() {
        first.glyph = Some(Glyph::Open);
    }
    if all.len() > LINES_MAX {
        let more = format!("{} more lines", all.len() - LINES_MAX);
        told.push(StyledLine::new(Glyph::Cut, Some(TextRole::Faint), more));
    }
    told
}

fn last_lines(output: &str) -> Vec<StyledLine> {
    let text = runner_core::text::lines(tail(output, BYTES_MAX));
    let all: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let skipped = all.len().saturating_sub(OUTPUT_LINES_MAX);
    all.iter().skip(skipped).map(|line| StyledLine::under(Some(TextRole::Faint), *line)).collect()
}

/// What the runner itself announces.
fn of_runner(event: &Value) -> Vec<StyledLine> {
    let said = |key: &str| one_line(word(event, key));
    let one = |glyph, ink, text: String| vec![StyledLine::new(glyph, ink, text)];
    match word(event, "event") {
        "planned" => {
            let path = said("path");
            let path = if path.is_empty() { "the tree" } else { &path };
            let nth = number(event, "/attempt/nth").zip(number(event, "/attempt/of"));
            let nth = nth.map(|(nth, of)| format!(", attempt {nth} of {of}")).unwrap_or_default();
            one(Glyph::Next, Some(TextRole::Strong), format!("session on {path}{nth}"))
        }
        "recovered" => one(Glyph::Retried, Some(TextRole::Warn), "taken up again after a crash".to_owned()),
        "agent_ended" => agent_ended(event),
        "checked" => judged(event),
        "guard_started" => {
            let command: Vec<String> = texts(event, "command");
            one(Glyph::Arrow, Some(TextRole::Strong), format!("guard: {}", command.join(" ")))
        }
        "guard_ended" => match number(event, "/exit/code") {
            Some(0) => one(Glyph::Passed, Some(TextRole::Good), "the guard passes".to_owned()),
            Some(code) => one(Glyph::Failed, Some(TextRole::Bad), format!("the guard fails: exit {code}")),
            None => {
                one(Glyph::Failed, Some(TextRole::Bad), format!("the guard fails: {}", words(&said("end"))))
            }
        },
        "decided" => {
            let (glyph, ink) = match said("outcome").as_str() {
                "passed" | "repaired" => (Glyph::Passed, TextRole::Good),
                "decomposed" | "replanned" => (Glyph::Next, TextRole::Active),
                _ => (Glyph::Retried, TextRole::Warn),
            };
            let charge = if said("charge") == "charged" { ", costs an attempt" } else { "" };
            one(glyph, Some(ink), format!("outcome: {}{charge}", words(&said("outcome"))))
        }
        "committed" => {
            let commit = said("commit");
            one(Glyph::Open, Some(TextRole::Faint), format!("committed {}", head(&commit, 8)))
        }
        "waiting" => {
            let secs = Duration::from_secs(number(event, "/wait/secs").unwrap_or_default());
            one(Glyph::Retried, Some(TextRole::Warn), format!("waiting {}", clock(secs)))
        }
        "stopped" => {
            let reason = event.pointer("/stop/reason").and_then(Value::as_str).unwrap_or("unknown");
            one(Glyph::Halted, Some(TextRole::Strong), format!("the run stops: {}", words(reason)))
        }
        other => one(Glyph::Open, Some(TextRole::Faint), words(other)),
    }
}

fn texts(event: &Value, key: &str) -> Vec<String> {
    let list = event.get(key).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).map(one_line).collect()
}

fn agent_ended(event: &Value) -> Vec<StyledLine> {
    let kind = event.pointer("/exit/kind").and_then(Value::as_str).unwrap_or("ended");
    let code = number(event, "/exit/code");
    let used = number(event, "/usage/input_tokens").map(|count| format!("{} tokens read", tokens(count)));
    let cost = number(event, "/usage/cost_microdollars").map(dollars);
    let spent: String = [used, cost].into_iter().flatten().map(|part| format!(", {part}")).collect();
    if kind == "finished" && code == Some(0) {
        return vec![StyledLine::new(Glyph::Passed, None, format!("the agent is done{spent}"))];
    }
    let code = code.map(|code| format!(" {code}")).unwrap_or_default();
    let ended = format!("the agent ended: {}{code}{spent}", words(kind));
    let mut told = vec![StyledLine::new(Glyph::Failed, Some(TextRole::Bad), ended)];
    let why = event.pointer("/exit/why").and_then(Value::as_str).map(one_line);
    told.extend(why.filter(|why| !why.is_empty()).map(|why| StyledLine::under(None, why)));
    told
}

fn judged(event: &Value) -> Vec<StyledLine> {
    let (judgement, status) = (word(event, "result"), word(event, "status"));
    let said = if status.is_empty() {
        "no answer that counts".to_owned()
    } else {
        format!("the agent says {}", words(status))
    };
    let mut told = match judgement {
        "accepted" => vec![StyledLine::new(Glyph::Open, None, said)],
        other => {
            vec![StyledLine::new(Glyph::Failed, Some(TextRole::Bad), format!("{said}: {}", words(other)))]
        }
    };
    told.extend(
        texts(event, "findings").into_iter().map(|finding| StyledLine::under(Some(TextRole::Warn), finding)),
    );
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn texts_of(events: &[Value], printed: &[&str]) -> Vec<String> {
        let printed: Vec<String> = printed.iter().map(|line| (*line).to_owned()).collect();
        session(events, &printed).into_iter().map(|told| told.text).collect()
    }

    #[test]
    fn a_later_event_takes_the_place_of_the_earlier_one() {
        let command = |state: &str, exit: Value, output: &str| json!({ "event": "agent", "id": "c", "kind": "command", "command": "ls", "state": state, "exit": exit, "output": output });
        let events = [
            command("started", json!(null), ""),
            json!({ "event": "agent", "kind": "message", "text": "one\ntwo" }),
            command("done", json!(0), "a\n\nb\n"),
        ];
        assert_eq!(texts_of(&events, &[]), ["$ ls (exit 0)", "a", "b", "one", "two"]);
    }

    #[test]
    fn what_went_well_stays_as_it_was_told() {
        let read = |state: &str| json!({ "event": "agent", "id": "r", "kind": "read", "path": "a.rs", "state": state });
        let told = [StyledLine::new(Glyph::Arrow, None, "reads a.rs")];
        assert_eq!(session(&[read("started"), read("done")], &[]), told);
        assert_eq!(session(&[read("done")], &[]), told);
    }

    #[test]
    fn what_an_agent_prints_stands_before_its_end() {
        let events = [
            json!({ "event": "planned", "path": "root/a", "attempt": { "nth": 2, "of": 3 } }),
            json!({ "event": "agent_ended", "exit": { "kind": "finished", "code": 0 } }),
            json!({ "event": "guard_ended", "exit": { "code": 1 } }),
        ];
        let told = texts_of(&events, &["\u{1b}[31mred\u{1b}[0m", "  in\u{202e}dented"]);
        assert_eq!(
            told,
            [
                "session on root/a, attempt 2 of 3",
                "red",
                "  indented",
                "the agent is done",
                "the guard fails: exit 1"
            ]
        );
    }

    #[test]
    fn hostile_and_unknown_events_are_told_as_plain_text() {
        let hostile = "a\u{1b}]0;title\u{7}b\u{9b}2Jc\0\u{200b}d";
        let events = [
            json!({ "event": "agent", "kind": "message", "text": hostile }),
            json!({ "event": "agent", "kind": "sings", "loud": hostile }),
            json!({ "event": "agent", "kind": "command", "command": 7 }),
            json!({ "event": hostile }),
            json!([1]),
        ];
        let told = texts_of(&events, &[]);
        assert_eq!(told.len(), 5);
        assert_eq!(told.first().map(String::as_str), Some("abcd"));
        assert!(told.iter().all(|text| !text.chars().any(char::is_control)), "{told:?}");
    }
}
