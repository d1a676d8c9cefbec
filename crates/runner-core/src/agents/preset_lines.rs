//! The lines of opencode, gemini, copilot and pi. (Those of qwen are like those of Claude Code.)
//!
//! Their answer is a file, so what they say here decides nothing but a failure that names its status.

use std::collections::BTreeMap;

use serde_json::Value;

use super::event::{ActivityState, AgentEvent, AgentEventKind};
use super::parse_cost::microdollars;
use super::tool_event;
use super::transcript::{FailureInfo, ParsedSession, SessionEnd, TranscriptFormat};
use super::truncate::{self, number, some_text, text};
use crate::step::{CostSource, Usage};

/// What must be known of earlier lines.
#[derive(Clone, Debug, Default)]
pub(super) struct PresetParser {
    /// Calls without a result yet, by their id.
    calls: BTreeMap<String, AgentEventKind>,
    /// The last failure that the program told of.
    failure: Option<FailureInfo>,
    is_announced: bool,
}

impl PresetParser {
    /// What one line means.
    pub(super) fn read(
        &mut self,
        dialect: TranscriptFormat,
        line: &Value,
        findings: &mut ParsedSession,
    ) -> Vec<AgentEvent> {
        match dialect {
            TranscriptFormat::Opencode => self.opencode(line, findings),
            TranscriptFormat::Gemini => self.gemini(line, findings),
            TranscriptFormat::Copilot => self.copilot(line, findings),
            TranscriptFormat::Pi => self.pi(line, findings),
            // They have readers of their own.
            TranscriptFormat::Codex | TranscriptFormat::Claude | TranscriptFormat::Qwen => {
                vec![unknown(line)]
            }
        }
    }

    fn opencode(&mut self, line: &Value, findings: &mut ParsedSession) -> Vec<AgentEvent> {
        let part = line.get("part").unwrap_or(&Value::Null);
        match text(line, "type") {
            "step_start" => self.announced(some_text(line, "sessionID"), None, findings),
            "text" => said(AgentEventKind::Message { text: truncate::said(text(part, "text")) }),
            "reasoning" => said(AgentEventKind::Reasoning { text: truncate::said(text(part, "text")) }),
            "tool_use" => {
                let of = |path: &str| part.pointer(path);
                let input = of("/state/input").unwrap_or(&Value::Null);
                let is_failed = of("/state/status").and_then(Value::as_str) == Some("error");
                let exit = of("/state/metadata/exit").and_then(Value::as_i64);
                let output = of("/state/output").or_else(|| of("/state/error")).and_then(Value::as_str);
                let call = tool_event::begun(text(part, "tool"), input);
                let ended = tool_event::ended(call, state(is_failed), exit, output.unwrap_or_default());
                vec![AgentEvent { id: some_text(part, "callID"), parent: None, said: ended }]
            }
            "step_finish" => {
                let of = |path: &str| part.pointer(path).and_then(Value::as_u64).unwrap_or(0);
                let cached = of("/tokens/cache/read");
                let read = of("/tokens/input") + cached + of("/tokens/cache/write");
                let written = of("/tokens/output") + of("/tokens/reasoning");
                add(findings, read, cached, written, part.get("cost"));
                let over = text(part, "reason") == "stop";
                if over { finished(findings) } else { Vec::new() }
            }
            "error" => {
                let error = line.get("error").unwrap_or(line);
                let data = error.get("data").unwrap_or(error);
                let message =
                    some_text(data, "message").unwrap_or_else(|| truncate::name(text(error, "name")));
                failed(message, number(data, "statusCode"), findings)
            }
            _ => vec![unknown(line)],
        }
    }

    fn gemini(&mut self, line: &Value, findings: &mut ParsedSession) -> Vec<AgentEvent> {
        match text(line, "type") {
            "init" => self.announced(some_text(line, "session_id"), some_text(line, "model"), findings),
            "message" if text(line, "role") == "user" => Vec::new(),
            "message" => said(AgentEventKind::Message { text: truncate::said(text(line, "content")) }),
            "tool_use" => {
                let input = line.get("parameters").unwrap_or(&Value::Null);
                self.begins(some_text(line, "tool_id"), text(line, "tool_name"), input)
            }
            "tool_result" => {
                let is_failed = text(line, "status") != "success";
                let exit = (!is_failed).then_some(0);
                self.ends(some_text(line, "tool_id"), (is_failed, exit), text(line, "output"), line)
            }
            "error" => said(AgentEventKind::Warning { text: truncate::said(text(line, "message")) }),
            "result" => {
                let of =
                    |key: &str| line.pointer(&format!("/stats/{key}")).and_then(Value::as_u64).unwrap_or(0);
                add(findings, of("input_tokens"), of("cached"), of("output_tokens"), None);
                if text(line, "status") == "success" {
                    return finished(findings);
                }
                let message = line.pointer("/error/message").and_then(Value::as_str).unwrap_or_default();
                failed(truncate::name(message), embedded_status(message), findings)
            }
            _ => vec![unknown(line)],
        }
    }

    fn copilot(&mut self, line: &Value, findings: &mut ParsedSession) -> Vec<AgentEvent> {
        let data = line.get("data").unwrap_or(&Value::Null);
        let call = || some_text(data, "toolCallId");
        match text(line, "type") {
            "session.tools_updated" => self.announced(None, some_text(data, "model"), findings),
            "assistant.message" if text(data, "content").is_empty() => Vec::new(),
            "assistant.message" => {
                said(AgentEventKind::Message { text: truncate::said(text(data, "content")) })
            }
            "assistant.reasoning" => {
                said(AgentEventKind::Reasoning { text: truncate::said(text(data, "content")) })
            }
            "tool.execution_start" => {
                let input = data.get("arguments").unwrap_or(&Value::Null);
                self.begins(call(), text(data, "toolName"), input)
            }
            "tool.execution_complete" => {
                let is_failed = data.get("success").and_then(Value::as_bool) == Some(false);
                let exit = data.pointer("/shellExecution/exitCode").and_then(Value::as_i64);
                let result = data.pointer("/result/content").and_then(Value::as_str).unwrap_or_default();
                self.ends(call(), (is_failed, exit), result, line)
            }
            "session.error" => {
                let message = truncate::name(text(data, "message"));
                let status = number(data, "statusCode");
                self.failure =
                    Some(FailureInfo { message: message.clone(), status, ..FailureInfo::default() });
                said(AgentEventKind::Warning { text: message })
            }
            "result" => {
                findings.identity.session_id = some_text(line, "sessionId");
                if number(line, "exitCode") == Some(0) {
                    return finished(findings);
                }
                let failure = self.failure.take().unwrap_or_default();
                failed(failure.message, failure.status, findings)
            }
            // Pieces of what comes whole later, and news of the program's own.
            kind if ["session.", "assistant.", "model.", "tool.", "user."]
                .iter()
                .any(|own| kind.starts_with(own)) =>
            {
                Vec::new()
            }
            _ => vec![unknown(line)],
        }
    }

    fn pi(&mut self, line: &Value, findings: &mut ParsedSession) -> Vec<AgentEvent> {
        let id = || some_text(line, "toolCallId");
        match text(line, "type") {
            "session" => self.announced(some_text(line, "id"), None, findings),
            "message_end" => self.pi_message(line.get("message").unwrap_or(&Value::Null), findings),
            "tool_execution_start" => {
                self.begins(id(), text(line, "toolName"), line.get("args").unwrap_or(&Value::Null))
            }
            "tool_execution_end" => {
                let is_failed = line.get("isError").and_then(Value::as_bool) == Some(true);
                let blocks = line.pointer("/result/content").and_then(Value::as_array);
                let texts = blocks.into_iter().flatten().map(|block| text(block, "text"));
                let result = texts.collect::<Vec<_>>().join("\n");
                self.ends(id(), (is_failed, (!is_failed).then_some(0)), &result, line)
            }
            "auto_retry_start" => said(AgentEventKind::Retry {
                text: truncate::name(text(line, "errorMessage")),
                attempt: number(line, "attempt"),
                of: number(line, "maxAttempts"),
                wait_ms: number(line, "delayMs"),
            }),
            "agent_end" => match self.failure.take() {
                Some(failure) => failed(failure.message, failure.status, findings),
                None => finished(findings),
            },
            // Pieces of what comes whole later.
            "agent_start"
            | "turn_start"
            | "turn_end"
            | "message_start"
            | "message_update"
            | "tool_execution_update"
            | "auto_retry_end" => Vec::new(),
            _ => vec![unknown(line)],
        }
    }

    fn pi_message(&mut self, message: &Value, findings: &mut ParsedSession) -> Vec<AgentEvent> {
        if text(message, "role") != "assistant" {
            return Vec::new();
        }
        findings.identity.model = some_text(message, "model");
        let of = |key: &str| message.pointer(&format!("/usage/{key}")).and_then(Value::as_u64).unwrap_or(0);
        let read = of("input") + of("cacheRead") + of("cacheWrite");
        add(findings, read, of("cacheRead"), of("output"), message.pointer("/usage/cost/total"));
        self.failure = (text(message, "stopReason") == "error").then(|| {
            let told = text(message, "errorMessage");
            let status = told.split_whitespace().next().and_then(|word| word.parse().ok());
            FailureInfo { message: truncate::name(told), status, ..FailureInfo::default() }
        });
        let blocks = message.get("content").and_then(Value::as_array).into_iter().flatten();
        let block = |block: &Value| match text(block, "type") {
            "text" => {
                Some(AgentEvent::of(AgentEventKind::Message { text: truncate::said(text(block, "text")) }))
            }
            "thinking" => Some(AgentEvent::of(AgentEventKind::Reasoning {
                text: truncate::said(text(block, "thinking")),
            })),
            _ => None,
        };
        blocks.filter_map(block).collect()
    }

    /// The session's beginning, told once.
    fn announced(
        &mut self,
        session_id: Option<String>,
        model: Option<String>,
        findings: &mut ParsedSession,
    ) -> Vec<AgentEvent> {
        if std::mem::replace(&mut self.is_announced, true) {
            return Vec::new();
        }
        findings.identity.session_id.clone_from(&session_id);
        findings.identity.model.clone_from(&model);
        said(AgentEventKind::Session { session_id, model, version: None, tools: Vec::new() })
    }

    fn begins(&mut self, id: Option<String>, name: &str, input: &Value) -> Vec<AgentEvent> {
        let said = tool_event::begun(name, input);
        id.iter().for_each(|id| drop(self.calls.insert(id.clone(), said.clone())));
        vec![AgentEvent { id, parent: None, said }]
    }

    fn ends(
        &mut self,
        id: Option<String>,
        (is_failed, exit): (bool, Option<i64>),
        result: &str,
        line: &Value,
    ) -> Vec<AgentEvent> {
        let Some(call) = id.as_ref().and_then(|id| self.calls.remove(id)) else { return vec![unknown(line)] };
        vec![AgentEvent { id, parent: None, said: tool_event::ended(call, state(is_failed), exit, result) }]
    }
}

fn state(is_failed: bool) -> ActivityState {
    if is_failed { ActivityState::Failed } else { ActivityState::Done }
}

fn said(said: AgentEventKind) -> Vec<AgentEvent> {
    vec![AgentEvent::of(said)]
}

fn unknown(line: &Value) -> AgentEvent {
    AgentEvent::of(AgentEventKind::Unknown { raw: truncate::raw(line) })
}

/// Adds what one request cost. No cost at all means that the program knows no price.
fn add(findings: &mut ParsedSession, read: u64, cached: u64, written: u64, cost: Option<&Value>) {
    let sum = findings.usage;
    let plus = |sum: Option<u64>, more: u64| Some(sum.unwrap_or(0).saturating_add(more));
    let cost = cost.and_then(Value::as_number).and_then(microdollars).filter(|cost| *cost > 0);
    let cost =
        cost.map(|cost| sum.cost_microdollars.unwrap_or(0).saturating_add(cost)).or(sum.cost_microdollars);
    findings.usage = Usage {
        input_tokens: plus(sum.input_tokens, read),
        cached_input_tokens: plus(sum.cached_input_tokens, cached),
        output_tokens: plus(sum.output_tokens, written),
        reasoning_tokens: None,
        cost_microdollars: cost,
        cost_source: if cost.is_some() { CostSource::Reported } else { CostSource::Unknown },
    };
}

fn finished(findings: &mut ParsedSession) -> Vec<AgentEvent> {
    findings.end = SessionEnd::Finished;
    with_usage(findings, AgentEventKind::Finished)
}

fn failed(message: String, status: Option<u64>, findings: &mut ParsedSession) -> Vec<AgentEvent> {
    findings.end =
        SessionEnd::Failed(FailureInfo { message: message.clone(), status, ..FailureInfo::default() });
    with_usage(findings, AgentEventKind::Failed { message })
}

fn with_usage(findings: &ParsedSession, last: AgentEventKind) -> Vec<AgentEvent> {
    let usage = findings.usage;
    let told = (usage != Usage::default()).then(|| AgentEvent::of(AgentEventKind::Usage { usage }));
    told.into_iter().chain([AgentEvent::of(last)]).collect()
}

/// The status in a message that is JSON in brackets, which is how gemini hands on what its provider said.
fn embedded_status(message: &str) -> Option<u64> {
    let inner = message.strip_prefix("[API Error: ")?.strip_suffix(']')?;
    let inner: Value = serde_json::from_str(inner).ok()?;
    inner.pointer("/error/code")?.as_u64()
}
