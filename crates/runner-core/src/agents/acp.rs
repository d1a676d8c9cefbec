//! Agents that speak the Agent Client Protocol (`kind = "acp"`). The runner's own client process talks to the agent and prints
//! what happens as [`AcpLine`]s; the parser here turns those into events.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::event::{AgentEvent, AgentEventKind, PlanItem, PlanItemState};
use super::parse_cost::microdollars;
use super::preset::insert;
use super::preset_session::{CallEnd, PresetSession, fail, finish, message, reasoning, single};
use super::provider_error::reason;
use super::spec::OutputFormat;
use super::transcript::{FailureInfo, LineParser, ParsedSession};
use super::truncate::{self, MESSAGE_BYTES_MAX, number, text};
use crate::step::{CostSource, ProviderError, Usage};

/// One line of the client process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AcpLine {
    /// The agent has opened a session.
    Started { session_id: String, agent: Option<String>, version: Option<String> },
    /// A `session/update` of the agent.
    Update { update: Value },
    /// The client answered a request for permission.
    Permission(AcpPermission),
    /// Output of the agent that is no message of the protocol.
    NotAMessage { text: String },
    /// The agent ended its turn.
    Ended { stop_reason: String, usage: Option<Value> },
    /// The agent failed, or does not keep to the protocol.
    Failed { message: String, needs_login: bool },
}

/// A request for permission, and the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AcpPermission {
    /// What the agent asked for.
    pub title: String,
    /// Why it was refused; none if it was allowed.
    pub refused: Option<String>,
}

/// How to read the lines of the client process.
pub static ACP_OUTPUT: OutputFormat =
    OutputFormat { parser: || Box::new(AcpParser::default()), classify, ends_with_event: true };

fn classify(failure: &FailureInfo, _now_unix_secs: u64) -> Option<ProviderError> {
    let why = reason(&failure.message);
    match failure.error.as_deref() {
        Some(NEEDS_LOGIN) => Some(ProviderError::NotLoggedIn { why }),
        Some(MAX_TOKENS) => Some(ProviderError::ContextFull),
        Some(_) | None => Some(ProviderError::Crashed { why }),
    }
}

const NEEDS_LOGIN: &str = "needs_login";
/// The stop reason of an agent that has no tokens left in its context.
const MAX_TOKENS: &str = "max_tokens";

#[derive(Debug, Default)]
struct AcpParser {
    session: PresetSession,
    /// The calls that have not ended, as far as the agent has described them.
    calls: BTreeMap<String, Value>,
    /// The message that arrives in pieces.
    piece: Option<TextPiece>,
    last_message: String,
}

/// Text that is still arriving.
#[derive(Debug)]
struct TextPiece {
    is_reasoning: bool,
    text: String,
}

impl LineParser for AcpParser {
    fn parse_line(&mut self, line: &Value, session: &mut ParsedSession) -> Vec<AgentEvent> {
        let Ok(parsed) = AcpLine::deserialize(line) else { return vec![AgentEvent::unknown(line)] };
        if let AcpLine::Update { update } = &parsed {
            return self.update(update, session);
        }
        let mut events = self.flush();
        events.extend(match parsed {
            AcpLine::Started { session_id, agent, version } => {
                session.identity.version =
                    agent.zip(version).map(|(agent, version)| format!("{agent} {version}"));
                self.session.announce(Some(session_id), None, session)
            }
            AcpLine::Permission(AcpPermission { refused: None, .. }) | AcpLine::Update { .. } => Vec::new(),
            AcpLine::Permission(AcpPermission { title, refused: Some(why) }) => {
                warning(&format!("refused permission for `{title}`: {why}"))
            }
            AcpLine::NotAMessage { text } => {
                warning(&format!("the agent printed no message of the protocol: {text}"))
            }
            AcpLine::Ended { stop_reason, usage } => self.ended(&stop_reason, usage.as_ref(), session),
            AcpLine::Failed { message, needs_login } => {
                let error = needs_login.then(|| NEEDS_LOGIN.to_owned());
                fail(FailureInfo { message, error, ..FailureInfo::default() }, session)
            }
        });
        events
    }
}

impl AcpParser {
    fn update(&mut self, update: &Value, session: &mut ParsedSession) -> Vec<AgentEvent> {
        let kind = text(update, "sessionUpdate");
        let is_reasoning = kind == "agent_thought_chunk";
        if is_reasoning || kind == "agent_message_chunk" {
            return self.push_text(is_reasoning, update.pointer("/content/text").and_then(Value::as_str));
        }
        let mut events = self.flush();
        events.extend(match kind {
            "tool_call" | "tool_call_update" => self.tool_call(update),
            "plan" => single(AgentEventKind::Plan { items: plan_items(update) }),
            "usage_update" => {
                add_cost(update, session);
                Vec::new()
            }
            "user_message_chunk"
            | "available_commands_update"
            | "current_mode_update"
            | "config_option_update"
            | "session_info_update" => Vec::new(),
            _ => vec![AgentEvent::unknown(update)],
        });
        events
    }

    /// Adds a piece of text, and returns what was complete before it.
    fn push_text(&mut self, is_reasoning: bool, text: Option<&str>) -> Vec<AgentEvent> {
        let text = text.unwrap_or_default();
        let events = match &self.piece {
            Some(piece) if piece.is_reasoning == is_reasoning => Vec::new(),
            Some(_) | None => self.flush(),
        };
        let piece = self.piece.get_or_insert_with(|| TextPiece { is_reasoning, text: String::new() });
        if piece.text.len() < MESSAGE_BYTES_MAX {
            piece.text.push_str(text);
        }
        events
    }

    /// The text that has arrived.
    fn flush(&mut self) -> Vec<AgentEvent> {
        match self.piece.take() {
            Some(TextPiece { is_reasoning: true, text }) => reasoning(&text),
            Some(TextPiece { is_reasoning: false, text }) => {
                let events = message(&text);
                self.last_message = text;
                events
            }
            None => Vec::new(),
        }
    }

    /// A call arrives in parts: each has some of its fields. An event is due when what is known of it has changed, and when it
    /// has ended.
    fn tool_call(&mut self, part: &Value) -> Vec<AgentEvent> {
        let id = text(part, "toolCallId").to_owned();
        let call = self.calls.entry(id.clone()).or_insert_with(|| json!({}));
        let before = call.clone();
        for (key, value) in part.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
            insert(call, key, value.clone());
        }
        let mut events = Vec::new();
        let (tool, input) = tool_and_input(call);
        let is_new = before.get("toolCallId").is_none();
        if is_new || (tool, input.clone()) != tool_and_input(&before) {
            events.push(self.session.calls.start(Some(id.clone()), tool, &input));
        }
        let end = match text(call, "status") {
            "completed" => CallEnd::of_success(true),
            "failed" => CallEnd::of_success(false),
            _ => return events,
        };
        events.extend(self.session.calls.end(Some(&id), end.state(), end.exit, &output_text(call)));
        self.calls.remove(&id);
        events
    }

    fn ended(
        &mut self,
        stop_reason: &str,
        usage: Option<&Value>,
        session: &mut ParsedSession,
    ) -> Vec<AgentEvent> {
        if let Some(usage) = usage {
            add_tokens(usage, session);
        }
        session.answer = json_object(&self.last_message);
        match stop_reason {
            MAX_TOKENS => {
                let error = Some(MAX_TOKENS.to_owned());
                let message = "the agent has no tokens left in its context".to_owned();
                fail(FailureInfo { message, error, ..FailureInfo::default() }, session)
            }
            _ => finish(session),
        }
    }
}

fn warning(text: &str) -> Vec<AgentEvent> {
    single(AgentEventKind::Warning { text: truncate::message(text) })
}

/// The name of a tool that the other agents have too, and its input: the protocol has kinds of tools instead of names.
fn tool_and_input(call: &Value) -> (&str, Value) {
    let title = text(call, "title");
    let path = call.pointer("/locations/0/path").and_then(Value::as_str).unwrap_or(title);
    let command = call.pointer("/rawInput/command").and_then(Value::as_str).unwrap_or(title);
    match text(call, "kind") {
        "execute" => ("Bash", json!({ "command": command })),
        "edit" => ("Edit", json!({ "path": path })),
        "read" => ("Read", json!({ "path": path })),
        "search" => ("Grep", json!({ "query": title })),
        "fetch" => ("WebFetch", json!({ "query": title })),
        _ => (title, call.get("rawInput").cloned().unwrap_or_default()),
    }
}

/// The text that a call returned.
fn output_text(call: &Value) -> String {
    let content = call.get("content").and_then(Value::as_array).into_iter().flatten();
    let texts = content.filter_map(|part| part.pointer("/content/text").and_then(Value::as_str));
    texts.collect::<Vec<_>>().join("\n")
}

fn plan_items(plan: &Value) -> Vec<PlanItem> {
    let entries = plan.get("entries").and_then(Value::as_array).into_iter().flatten();
    let item = |entry: &Value| PlanItem {
        text: truncate::name(text(entry, "content")),
        state: match text(entry, "status") {
            "completed" => PlanItemState::Done,
            "in_progress" => PlanItemState::Active,
            _ => PlanItemState::Open,
        },
    };
    entries.map(item).collect()
}

/// The cost so far, if the agent reports it in dollars.
fn add_cost(update: &Value, session: &mut ParsedSession) {
    let Some(cost) = update.get("cost").filter(|cost| text(cost, "currency") == "USD") else { return };
    if let Some(cost) = cost.get("amount").and_then(Value::as_number).and_then(microdollars) {
        session.usage.cost_microdollars = Some(cost);
        session.usage.cost_source = CostSource::Reported;
    }
}

/// The tokens of the session. The protocol counts reasoning, and what was read from and written to a cache, separately.
fn add_tokens(usage: &Value, session: &mut ParsedSession) {
    let thoughts = number(usage, "thoughtTokens");
    let cached = number(usage, "cachedReadTokens");
    let cache_write = number(usage, "cachedWriteTokens");
    let input = number(usage, "inputTokens").map(|input| {
        let caches = cached.unwrap_or(0).saturating_add(cache_write.unwrap_or(0));
        input.saturating_add(caches)
    });
    session.usage = Usage {
        input_tokens: input,
        cached_input_tokens: cached,
        cache_write_input_tokens: cache_write,
        output_tokens: number(usage, "outputTokens")
            .map(|output| output.saturating_add(thoughts.unwrap_or(0))),
        reasoning_tokens: thoughts,
        ..session.usage
    };
}

/// The JSON object that a message consists of, perhaps as a block of code.
fn json_object(message: &str) -> Option<Value> {
    let message = message.trim();
    let block = message.strip_prefix("```json").or_else(|| message.strip_prefix("```"));
    let object = block.and_then(|block| block.strip_suffix("```")).unwrap_or(message);
    serde_json::from_str::<Value>(object.trim()).ok().filter(Value::is_object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::{ActivityState, ProcessFacts, SessionResult, Transcript};
    use crate::step::SessionExit;

    fn parsed(lines: &[Value]) -> (Vec<AgentEventKind>, SessionResult) {
        let mut transcript = Transcript::new(&ACP_OUTPUT);
        let events = lines.iter().flat_map(|line| transcript.push(format!("{line}\n").as_bytes()));
        let events = events.map(|event| event.kind).collect();
        let exit = SessionExit::Finished { code: 0 };
        let facts = ProcessFacts { exit, stderr: b"", is_context_full: false, now_unix_secs: 0 };
        (events, transcript.conclude(facts))
    }

    fn update(update: &Value) -> Value {
        json!({ "type": "update", "update": update })
    }

    fn ended(stop_reason: &str) -> Value {
        json!({ "type": "ended", "stop_reason": stop_reason, "usage": null })
    }

    #[test]
    fn a_call_that_arrives_in_parts_is_shown_when_it_changes_and_ends() {
        let call = |part: Value| {
            let mut part = part;
            insert(&mut part, "toolCallId", json!("c"));
            update(&part)
        };
        let lines = [
            call(
                json!({ "sessionUpdate": "tool_call", "title": "bash", "kind": "execute", "status": "pending" }),
            ),
            call(json!({ "sessionUpdate": "tool_call_update", "status": "in_progress", "title": "ls" })),
            call(json!({ "sessionUpdate": "tool_call_update", "status": "in_progress", "title": "ls" })),
            call(json!({ "sessionUpdate": "tool_call_update", "status": "failed" })),
        ];
        let (events, _) = parsed(&lines);
        let commands: Vec<(String, ActivityState)> = events
            .into_iter()
            .filter_map(|event| {
                let AgentEventKind::Command { command, state, .. } = event else { return None };
                Some((command, state))
            })
            .collect();
        let expected =
            [("bash", ActivityState::Started), ("ls", ActivityState::Started), ("ls", ActivityState::Failed)];
        assert_eq!(commands, expected.map(|(command, state)| (command.to_owned(), state)));
    }

    #[test]
    fn a_call_that_only_ends_is_shown_too() {
        let end = json!({
            "sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "a.txt", "kind": "edit",
            "status": "completed", "locations": [{ "path": "/r/a.txt" }],
        });
        let (events, _) = parsed(&[update(&end)]);
        assert_eq!(events.len(), 2, "{events:?}");
        assert!(matches!(&events[1], AgentEventKind::Edit { state: ActivityState::Done, .. }), "{events:?}");
    }

    #[test]
    fn the_answer_is_the_last_message_if_it_is_an_object() {
        let chunk = |text: &str| {
            update(
                &json!({ "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": text } }),
            )
        };
        let tool = update(&json!({ "sessionUpdate": "plan", "entries": [] }));
        let answer =
            |lines: &[Value]| parsed(lines).1.answer.map(|answer| String::from_utf8(answer).unwrap());
        let object = Some(r#"{"a":1}"#.to_owned());
        assert_eq!(
            answer(&[chunk("first"), tool.clone(), chunk("{\"a\""), chunk(": 1}"), ended("end_turn")]),
            object
        );
        assert_eq!(answer(&[chunk("```json\n{\"a\": 1}\n```\n"), ended("end_turn")]), object);
        assert_eq!(answer(&[chunk("{\"a\": 1}"), tool, chunk("Done."), ended("end_turn")]), None);
        assert_eq!(answer(&[ended("end_turn")]), None);
    }

    #[test]
    fn failures_are_classified() {
        let failed = |message: &str, needs_login: bool| json!({ "type": "failed", "message": message, "needs_login": needs_login });
        let fault = |line: Value| {
            let exit = parsed(&[line]).1.exit;
            let SessionExit::Provider { fault } = exit else { panic!("{exit:?}") };
            fault
        };
        let why = "x".to_owned();
        assert_eq!(fault(failed("x", true)), ProviderError::NotLoggedIn { why: why.clone() });
        assert_eq!(fault(failed("x", false)), ProviderError::Crashed { why });
        assert_eq!(fault(ended("max_tokens")), ProviderError::ContextFull);
        assert_eq!(parsed(&[ended("cancelled")]).1.exit, SessionExit::Finished { code: 0 });
        let silent = parsed(&[]).1.exit;
        assert!(
            matches!(silent, SessionExit::Provider { fault: ProviderError::Crashed { .. } }),
            "{silent:?}"
        );
    }

    #[test]
    fn tokens_and_cost_mean_what_they_mean_for_every_agent() {
        let lines = [
            update(
                &json!({ "sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": { "amount": 0.5, "currency": "EUR" } }),
            ),
            update(
                &json!({ "sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": { "amount": 0.25, "currency": "USD" } }),
            ),
            json!({ "type": "ended", "stop_reason": "end_turn", "usage": {
                "totalTokens": 1050, "inputTokens": 800, "cachedReadTokens": 200, "outputTokens": 40, "thoughtTokens": 10,
            } }),
        ];
        let usage = parsed(&lines).1.usage;
        assert_eq!((usage.input_tokens, usage.cached_input_tokens), (Some(1000), Some(200)));
        assert_eq!((usage.output_tokens, usage.reasoning_tokens), (Some(50), Some(10)));
        assert_eq!((usage.cost_microdollars, usage.cost_source), (Some(250_000), CostSource::Reported));
    }
}
