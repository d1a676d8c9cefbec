//! The output of `claude -p --output-format stream-json`, one event per line. qwen prints the same format.

use serde_json::Value;

use crate::agents::event::{ActivityState, AgentEvent, AgentEventKind};
use crate::agents::parse_cost::microdollars;
use crate::agents::tool_event::PendingCalls;
use crate::agents::transcript::{FailureInfo, LineParser, ParsedSession, SessionEnd};
use crate::agents::truncate::{self, number, some_text, text};
use crate::step::{CostSource, Usage};

/// Parser state: what later lines depend on.
#[derive(Debug)]
pub(in crate::agents) struct ClaudeParser {
    calls: PendingCalls,
    /// The last message whose usage was added, and that usage: one message comes in several lines.
    counted: Option<CountedMessage>,
    /// The error class of the last message that the program wrote in place of the model.
    error: Option<String>,
    /// The end of the usage limit, from the program's own event.
    resets_unix_secs: Option<u64>,
    cache_tokens: CacheTokens,
}

#[derive(Debug)]
struct CountedMessage {
    id: String,
    usage: Usage,
}

/// How a program counts tokens that were read from a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::agents) enum CacheTokens {
    /// In addition to the input tokens, as Anthropic does.
    Separate,
    /// As part of the input tokens.
    Included,
}

impl LineParser for ClaudeParser {
    fn parse_line(&mut self, line: &Value, session: &mut ParsedSession) -> Vec<AgentEvent> {
        let mut events = match text(line, "type") {
            "system" if text(line, "subtype") == "init" => {
                let entered = entered(line).into_iter().map(|text| AgentEventKind::Warning { text });
                std::iter::once(init(line, session)).chain(entered).map(AgentEvent::new).collect()
            }
            "system" => system(line).into_iter().map(AgentEvent::new).collect(),
            "assistant" => self.assistant(line, session),
            "user" => self.user(line),
            "result" => self.result(line, session),
            "rate_limit_event" => vec![AgentEvent::new(self.rate_limit(line))],
            _ => vec![AgentEvent::unknown(line)],
        };
        let parent = some_text(line, "parent_tool_use_id");
        for event in &mut events {
            event.parent.clone_from(&parent);
        }
        events
    }
}

impl ClaudeParser {
    pub(in crate::agents) fn new(cache_tokens: CacheTokens) -> Self {
        Self {
            calls: PendingCalls::default(),
            counted: None,
            error: None,
            resets_unix_secs: None,
            cache_tokens,
        }
    }

    fn assistant(&mut self, line: &Value, session: &mut ParsedSession) -> Vec<AgentEvent> {
        if let Some(error) = some_text(line, "error") {
            self.error = Some(error);
        }
        let Some(message) = line.get("message") else { return vec![AgentEvent::unknown(line)] };
        self.add_usage(message, session);
        // The program writes such a message in place of the model: why there is no answer.
        let is_synthetic = text(message, "model") == "<synthetic>";
        let mut events = Vec::new();
        for block in message.get("content").and_then(Value::as_array).into_iter().flatten() {
            let kind = match text(block, "type") {
                "text" if is_synthetic => {
                    AgentEventKind::Warning { text: truncate::message(text(block, "text")) }
                }
                "text" => AgentEventKind::Message { text: truncate::message(text(block, "text")) },
                "thinking" => AgentEventKind::Reasoning { text: truncate::message(text(block, "thinking")) },
                "redacted_thinking" => continue,
                "tool_use" => {
                    let input = block.get("input").unwrap_or(&Value::Null);
                    events.push(self.calls.start(some_text(block, "id"), text(block, "name"), input));
                    continue;
                }
                _ => AgentEventKind::Unknown { raw: truncate::raw(block) },
            };
            events.push(AgentEvent::new(kind));
        }
        events
    }

    /// Adds the usage of a message to the session's, so that it is known even if the session ends without a total.
    fn add_usage(&mut self, message: &Value, session: &mut ParsedSession) {
        let Some(usage) = message.get("usage").map(|usage| message_usage(usage, self.cache_tokens)) else {
            return;
        };
        let id = text(message, "id").to_owned();
        let counted = match &self.counted {
            Some(counted) if counted.id == id => counted.usage,
            Some(_) | None => Usage::default(),
        };
        let replaced = |sum: Option<u64>, counted: Option<u64>, now: Option<u64>| {
            Some(sum.unwrap_or(0).saturating_sub(counted.unwrap_or(0)).saturating_add(now?))
        };
        let sum = session.usage;
        session.usage = Usage {
            input_tokens: replaced(sum.input_tokens, counted.input_tokens, usage.input_tokens),
            cached_input_tokens: replaced(
                sum.cached_input_tokens,
                counted.cached_input_tokens,
                usage.cached_input_tokens,
            ),
            cache_write_input_tokens: replaced(
                sum.cache_write_input_tokens,
                counted.cache_write_input_tokens,
                usage.cache_write_input_tokens,
            ),
            output_tokens: replaced(sum.output_tokens, counted.output_tokens, usage.output_tokens),
            ..sum
        };
        self.counted = Some(CountedMessage { id, usage });
    }

    fn user(&mut self, line: &Value) -> Vec<AgentEvent> {
        let content = line.pointer("/message/content");
        if let Some(text) = content.and_then(Value::as_str) {
            return vec![AgentEvent::new(AgentEventKind::Warning { text: truncate::message(text) })];
        }
        let mut events = Vec::new();
        for block in content.and_then(Value::as_array).into_iter().flatten() {
            match text(block, "type") {
                "tool_result" => events.push(self.tool_result(block)),
                "text" => {
                    events.push(AgentEvent::new(AgentEventKind::Warning {
                        text: truncate::message(text(block, "text")),
                    }));
                }
                _ => events.push(AgentEvent::new(AgentEventKind::Unknown { raw: truncate::raw(block) })),
            }
        }
        events
    }

    fn tool_result(&mut self, block: &Value) -> AgentEvent {
        let id = some_text(block, "tool_use_id");
        let is_error = block.get("is_error").and_then(Value::as_bool).unwrap_or(false);
        let state = if is_error { ActivityState::Failed } else { ActivityState::Done };
        let result = result_text(block.get("content").unwrap_or(&Value::Null));
        let exit = if is_error { exit_code(&result) } else { Some(0) };
        self.calls
            .end(id.as_deref(), state, exit, &result)
            .unwrap_or_else(|| AgentEvent { id, ..AgentEvent::unknown(block) })
    }

    fn rate_limit(&mut self, line: &Value) -> AgentEventKind {
        let info = line.get("rate_limit_info").unwrap_or(line);
        let status = truncate::name(text(info, "status"));
        let resets_unix_secs = number(info, "resetsAt");
        if status == "rejected" {
            self.resets_unix_secs = resets_unix_secs;
        }
        AgentEventKind::RateLimit { status, limit: some_text(info, "rateLimitType"), resets_unix_secs }
    }

    fn result(&mut self, line: &Value, session: &mut ParsedSession) -> Vec<AgentEvent> {
        let usage = total_usage(line, self.cache_tokens).unwrap_or(session.usage);
        session.usage = usage;
        let is_error = line.get("is_error").and_then(Value::as_bool).unwrap_or(false);
        session.answer = line.get("structured_output").filter(|answer| answer.is_object()).cloned();
        let usage_event = AgentEvent::new(AgentEventKind::Usage { usage });
        if !is_error {
            session.end = SessionEnd::Finished;
            return vec![usage_event, AgentEvent::new(AgentEventKind::Finished)];
        }
        session.answer = None;
        let message = some_text(line, "result").unwrap_or_else(|| truncate::name(text(line, "subtype")));
        if text(line, "subtype") == "error_max_budget_usd" {
            session.end = SessionEnd::OverBudget;
            return vec![usage_event, AgentEvent::new(AgentEventKind::Failed { message })];
        }
        session.end = SessionEnd::Failed(FailureInfo {
            message: message.clone(),
            status: number(line, "api_error_status"),
            error: self.error.clone(),
            subtype: some_text(line, "subtype"),
            reason: some_text(line, "terminal_reason"),
            resets_unix_secs: self.resets_unix_secs,
        });
        vec![usage_event, AgentEvent::new(AgentEventKind::Failed { message })]
    }
}

fn system(line: &Value) -> Option<AgentEventKind> {
    Some(match text(line, "subtype") {
        "api_retry" => AgentEventKind::Retry {
            text: some_text(line, "error").unwrap_or_else(|| "the request failed".to_owned()),
            attempt: number(line, "attempt"),
            of: number(line, "max_retries"),
            wait_ms: line.get("retry_delay_ms").and_then(whole_part),
        },
        "compact_boundary" => {
            let metadata = line.get("compact_metadata").unwrap_or(&Value::Null);
            AgentEventKind::Compacted {
                tokens_before: number(metadata, "pre_tokens"),
                tokens_after: number(metadata, "post_tokens"),
            }
        }
        // Known, and redundant: the events of the call carry the same facts.
        "status" | "task_started" | "task_progress" | "task_notification" | "task_updated" => return None,
        _ => AgentEventKind::Unknown { raw: truncate::raw(line) },
    })
}

/// The digits of a number before its decimal point.
fn whole_part(value: &Value) -> Option<u64> {
    value.to_string().split('.').next()?.parse().ok()
}

fn init(line: &Value, session: &mut ParsedSession) -> AgentEventKind {
    let identity = &mut session.identity;
    identity.session_id = some_text(line, "session_id");
    identity.model = some_text(line, "model");
    identity.version =
        some_text(line, "claude_code_version").or_else(|| some_text(line, "qwen_code_version"));
    let tools = line.get("tools").and_then(Value::as_array);
    AgentEventKind::Session {
        session_id: identity.session_id.clone(),
        model: identity.model.clone(),
        version: identity.version.clone(),
        tools: tools.into_iter().flatten().filter_map(Value::as_str).map(truncate::name).collect(),
    }
}

/// What takes part in the session besides the prompt, by the program's own account. The runner switches all of it off, so each
/// is worth a warning: another version of the program may ignore a switch. Its built-in plugins are part of the program, and it
/// names its socket for messages also if it refuses them.
fn entered(line: &Value) -> Vec<String> {
    let facts = [
        ("plugins", "plugins take part in this session"),
        ("skills", "skills take part in this session"),
        ("memory_paths", "memory of other sessions takes part in this session"),
        ("mcp_server_errors", "MCP servers failed"),
    ];
    let named = facts.into_iter().map(|(key, fact)| (fact, names(line.get(key).unwrap_or(&Value::Null))));
    let named = named.filter(|(_, names)| !names.is_empty());
    named.map(|(fact, names)| truncate::name(&format!("{fact}: {}", names.join(", ")))).collect()
}

/// The texts of a list or an object, or the names of the objects in it.
fn names(value: &Value) -> Vec<String> {
    let entries: Vec<&Value> = match value {
        Value::Array(entries) => entries.iter().collect(),
        Value::Object(entries) => entries.values().collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    };
    let entries = entries.into_iter().filter(|entry| text(entry, "path") != "builtin");
    let name = |entry: &Value| match entry {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            Some(some_text(entry, "name").unwrap_or_else(|| entry.to_string()))
        }
    };
    entries.filter_map(name).collect()
}

/// A tool's result: a text, or a list of blocks, some of which have text.
fn result_text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(blocks) => {
            let texts = blocks.iter().filter_map(|block| block.get("text").and_then(Value::as_str));
            texts.collect::<Vec<_>>().join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// The exit code of a failed command, from the first line of its result.
fn exit_code(result: &str) -> Option<i64> {
    result.strip_prefix("Exit code ")?.split_whitespace().next()?.parse().ok()
}

/// The usage of a message. The runner counts tokens from a cache as part of the input.
fn message_usage(usage: &Value, cache_tokens: CacheTokens) -> Usage {
    let tokens = |key: &str| number(usage, key).unwrap_or(0);
    let cached = tokens("cache_read_input_tokens");
    let cache_write = tokens("cache_creation_input_tokens");
    let input = tokens("input_tokens") + cache_write;
    Usage {
        input_tokens: Some(match cache_tokens {
            CacheTokens::Separate => input + cached,
            CacheTokens::Included => input,
        }),
        cached_input_tokens: Some(cached),
        cache_write_input_tokens: Some(cache_write),
        output_tokens: number(usage, "output_tokens"),
        reasoning_tokens: None,
        cost_microdollars: None,
        cost_source: CostSource::Unknown,
    }
}

/// The session's total: the sum over all models that took part, if they are listed.
fn total_usage(line: &Value, cache_tokens: CacheTokens) -> Option<Usage> {
    let models = line.get("modelUsage").and_then(Value::as_object).filter(|models| !models.is_empty());
    let total = match models {
        Some(models) => {
            let sum = |key: &str| models.values().filter_map(|model| number(model, key)).sum::<u64>();
            let cached = sum("cacheReadInputTokens");
            let cache_write = sum("cacheCreationInputTokens");
            Usage {
                input_tokens: Some(sum("inputTokens") + cache_write + cached),
                cached_input_tokens: Some(cached),
                cache_write_input_tokens: Some(cache_write),
                output_tokens: Some(sum("outputTokens")),
                ..Usage::default()
            }
        }
        None => message_usage(line.get("usage")?, cache_tokens),
    };
    let cost = line.get("total_cost_usd").and_then(Value::as_number).and_then(microdollars);
    // A program that does not know the price reports zero.
    let has_tokens = total.input_tokens.is_some_and(|tokens| tokens > 0);
    let cost = cost.filter(|cost| *cost > 0 || !has_tokens);
    let source = if cost.is_some() { CostSource::Reported } else { CostSource::Unknown };
    Some(Usage { cost_microdollars: cost, cost_source: source, ..total })
}
