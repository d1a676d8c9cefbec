//! The lines of `claude -p --output-format stream-json`, and those of qwen, which are like them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::event::{ActivityState, AgentEvent, AgentEventKind};
use super::parse_cost::microdollars;
use super::tool_event;
use super::transcript::{FailureInfo, ParsedSession, SessionEnd};
use super::truncate::{self, number, some_text, text};
use crate::step::{CostSource, Usage};

/// What must be known of earlier lines.
#[derive(Clone, Debug, Default)]
pub(super) struct ClaudeParser {
    /// Calls without a result yet, by their id.
    calls: BTreeMap<String, AgentEventKind>,
    /// The message whose cost was counted last, and that cost: a message comes in several lines.
    counted: Option<(String, Usage)>,
    /// The error word of the last message that the program itself wrote in the model's place.
    error: Option<String>,
    /// When the limit ends that was reached, by the program's own event.
    resets_unix_secs: Option<u64>,
    cached: CacheTokens,
}

/// How tokens from a cache are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum CacheTokens {
    /// Beside the input, as Anthropic does.
    #[default]
    Apart,
    /// Among the input.
    Within,
}

impl ClaudeParser {
    pub(super) fn counting(cached: CacheTokens) -> Self {
        Self { cached, ..Self::default() }
    }

    /// What one line means.
    pub(super) fn read(&mut self, line: &Value, findings: &mut ParsedSession) -> Vec<AgentEvent> {
        let parent = some_text(line, "parent_tool_use_id");
        let told = match text(line, "type") {
            "system" => system(line, findings).into_iter().map(AgentEvent::of).collect(),
            "assistant" => self.assistant(line, findings),
            "user" => self.user(line),
            "result" => self.result(line, findings),
            "rate_limit_event" => vec![AgentEvent::of(self.rate_limit(line))],
            _ => vec![unknown(line)],
        };
        told.into_iter().map(|event| AgentEvent { parent: parent.clone(), ..event }).collect()
    }

    fn assistant(&mut self, line: &Value, findings: &mut ParsedSession) -> Vec<AgentEvent> {
        if let Some(error) = some_text(line, "error") {
            self.error = Some(error);
        }
        let Some(message) = line.get("message") else { return vec![unknown(line)] };
        self.count(message, findings);
        // What the program itself says in the model's place: why there is no answer.
        let is_synthetic = text(message, "model") == "<synthetic>";
        let mut events = Vec::new();
        for block in message.get("content").and_then(Value::as_array).into_iter().flatten() {
            let said = match text(block, "type") {
                "text" if is_synthetic => {
                    AgentEventKind::Warning { text: truncate::said(text(block, "text")) }
                }
                "text" => AgentEventKind::Message { text: truncate::said(text(block, "text")) },
                "thinking" => AgentEventKind::Reasoning { text: truncate::said(text(block, "thinking")) },
                "redacted_thinking" => continue,
                "tool_use" => {
                    let said =
                        tool_event::begun(text(block, "name"), block.get("input").unwrap_or(&Value::Null));
                    let id = some_text(block, "id");
                    id.iter().for_each(|id| drop(self.calls.insert(id.clone(), said.clone())));
                    events.push(AgentEvent { id, parent: None, said });
                    continue;
                }
                _ => AgentEventKind::Unknown { raw: truncate::raw(block) },
            };
            events.push(AgentEvent::of(said));
        }
        events
    }

    /// Adds what a message cost, so that something is known of a session that ends without a sum.
    fn count(&mut self, message: &Value, findings: &mut ParsedSession) {
        let Some(usage) = message.get("usage").map(|usage| usage_of(usage, self.cached)) else { return };
        let id = text(message, "id").to_owned();
        let before = match &self.counted {
            Some((counted, before)) if *counted == id => *before,
            Some(_) | None => Usage::default(),
        };
        let more = |sum: Option<u64>, now: Option<u64>, before: Option<u64>| {
            Some(sum.unwrap_or(0).saturating_sub(before.unwrap_or(0)).saturating_add(now?))
        };
        let sum = findings.usage;
        findings.usage = Usage {
            input_tokens: more(sum.input_tokens, usage.input_tokens, before.input_tokens),
            cached_input_tokens: more(
                sum.cached_input_tokens,
                usage.cached_input_tokens,
                before.cached_input_tokens,
            ),
            output_tokens: more(sum.output_tokens, usage.output_tokens, before.output_tokens),
            ..sum
        };
        self.counted = Some((id, usage));
    }

    fn user(&mut self, line: &Value) -> Vec<AgentEvent> {
        let content = line.pointer("/message/content");
        if let Some(text) = content.and_then(Value::as_str) {
            return vec![AgentEvent::of(AgentEventKind::Warning { text: truncate::said(text) })];
        }
        let mut events = Vec::new();
        for block in content.and_then(Value::as_array).into_iter().flatten() {
            match text(block, "type") {
                "tool_result" => events.push(self.tool_result(block)),
                "text" => {
                    events.push(AgentEvent::of(AgentEventKind::Warning {
                        text: truncate::said(text(block, "text")),
                    }));
                }
                _ => events.push(AgentEvent::of(AgentEventKind::Unknown { raw: truncate::raw(block) })),
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
        let call = id.as_ref().and_then(|id| self.calls.remove(id));
        let said = match call {
            Some(call) => tool_event::ended(call, state, exit, &result),
            None => AgentEventKind::Unknown { raw: truncate::raw(block) },
        };
        AgentEvent { id, parent: None, said }
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

    fn result(&mut self, line: &Value, findings: &mut ParsedSession) -> Vec<AgentEvent> {
        let usage = total(line, self.cached).unwrap_or(findings.usage);
        findings.usage = usage;
        let is_error = line.get("is_error").and_then(Value::as_bool).unwrap_or(false);
        findings.answer = line.get("structured_output").filter(|answer| answer.is_object()).cloned();
        let told = AgentEvent::of(AgentEventKind::Usage { usage });
        if !is_error {
            findings.end = SessionEnd::Finished;
            return vec![told, AgentEvent::of(AgentEventKind::Finished)];
        }
        findings.answer = None;
        let message = some_text(line, "result").unwrap_or_else(|| truncate::name(text(line, "subtype")));
        findings.end = SessionEnd::Failed(FailureInfo {
            message: message.clone(),
            status: number(line, "api_error_status"),
            error: self.error.clone(),
            subtype: some_text(line, "subtype"),
            reason: some_text(line, "terminal_reason"),
            resets_unix_secs: self.resets_unix_secs,
        });
        vec![told, AgentEvent::of(AgentEventKind::Failed { message })]
    }
}

fn unknown(line: &Value) -> AgentEvent {
    AgentEvent::of(AgentEventKind::Unknown { raw: truncate::raw(line) })
}

fn system(line: &Value, findings: &mut ParsedSession) -> Option<AgentEventKind> {
    Some(match text(line, "subtype") {
        "init" => init(line, findings),
        "api_retry" => AgentEventKind::Retry {
            text: some_text(line, "error").unwrap_or_else(|| "the request failed".to_owned()),
            attempt: number(line, "attempt"),
            of: number(line, "max_retries"),
            wait_ms: line
                .get("retry_delay_ms")
                .map(ToString::to_string)
                .and_then(|delay| delay.split('.').next().and_then(|whole| whole.parse().ok())),
        },
        "compact_boundary" => {
            let of = |key: &str| line.pointer(&format!("/compact_metadata/{key}")).and_then(Value::as_u64);
            AgentEventKind::Compacted { tokens_before: of("pre_tokens"), tokens_after: of("post_tokens") }
        }
        // Known, and nothing that the call's own events do not say.
        "status" | "task_started" | "task_progress" | "task_notification" | "task_updated" => return None,
        _ => AgentEventKind::Unknown { raw: truncate::raw(line) },
    })
}

fn init(line: &Value, findings: &mut ParsedSession) -> AgentEventKind {
    let identity = &mut findings.identity;
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

/// What a tool gave back: a text, or blocks of which some are.
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

/// The code that a failed command exited with, which stands in front of its output.
fn exit_code(result: &str) -> Option<i64> {
    result.strip_prefix("Exit code ")?.split_whitespace().next()?.parse().ok()
}

/// The cost of one message or of all. Here tokens from a cache are part of the input.
fn usage_of(usage: &Value, how: CacheTokens) -> Usage {
    let of = |key: &str| number(usage, key).unwrap_or(0);
    let cached = of("cache_read_input_tokens");
    let beside = if how == CacheTokens::Apart { cached } else { 0 };
    Usage {
        input_tokens: Some(of("input_tokens") + of("cache_creation_input_tokens") + beside),
        cached_input_tokens: Some(cached),
        output_tokens: number(usage, "output_tokens"),
        reasoning_tokens: None,
        cost_microdollars: None,
        cost_source: CostSource::Unknown,
    }
}

/// The sum at the end: over all models that took part, if they are listed.
fn total(line: &Value, cached: CacheTokens) -> Option<Usage> {
    let models = line.get("modelUsage").and_then(Value::as_object).filter(|models| !models.is_empty());
    let sum = match models {
        Some(models) => {
            let of = |key: &str| models.values().filter_map(|model| number(model, key)).sum::<u64>();
            let cached = of("cacheReadInputTokens");
            Usage {
                input_tokens: Some(of("inputTokens") + of("cacheCreationInputTokens") + cached),
                cached_input_tokens: Some(cached),
                output_tokens: Some(of("outputTokens")),
                ..Usage::default()
            }
        }
        None => usage_of(line.get("usage")?, cached),
    };
    let cost = line.get("total_cost_usd").and_then(Value::as_number).and_then(microdollars);
    let source = if cost.is_some() { CostSource::Reported } else { CostSource::Unknown };
    Some(Usage { cost_microdollars: cost, cost_source: source, ..sum })
}
