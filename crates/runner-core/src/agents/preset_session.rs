//! State and steps that the parsers of presets share.
//!
//! A preset's answer is a file, so its output decides nothing, except that a failure may name its HTTP status.

use serde_json::Value;

use super::event::{ActivityState, AgentEvent, AgentEventKind};
use super::parse_cost::microdollars;
use super::tool_event::PendingCalls;
use super::transcript::{FailureInfo, ParsedSession, SessionEnd};
use super::truncate;
use crate::step::{CostSource, Usage};

/// What the later lines of a preset's output depend on.
#[derive(Debug, Default)]
pub(super) struct PresetSession {
    pub(super) calls: PendingCalls,
    is_announced: bool,
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallEnd {
    pub(super) is_failed: bool,
    pub(super) exit: Option<i64>,
}

/// The tokens of one or more requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct TokenCount {
    /// All input tokens, cached ones included.
    pub(super) input: u64,
    pub(super) cached_input: u64,
    /// The input tokens that were written to a cache; none if the program does not report them.
    pub(super) cache_write: Option<u64>,
    pub(super) output: u64,
}

impl PresetSession {
    /// The event of the session's start, once.
    pub(super) fn announce(
        &mut self,
        session_id: Option<String>,
        model: Option<String>,
        session: &mut ParsedSession,
    ) -> Vec<AgentEvent> {
        if std::mem::replace(&mut self.is_announced, true) {
            return Vec::new();
        }
        session.identity.session_id.clone_from(&session_id);
        session.identity.model.clone_from(&model);
        single(AgentEventKind::Session { session_id, model, version: None, tools: Vec::new() })
    }

    /// The event of a call's end, or the whole line as an unknown event if the call is not known.
    pub(super) fn end_call(
        &mut self,
        id: Option<&str>,
        end: CallEnd,
        result: &str,
        line: &Value,
    ) -> Vec<AgentEvent> {
        let event = self.calls.end(id, end.state(), end.exit, result);
        vec![event.unwrap_or_else(|| AgentEvent::unknown(line))]
    }
}

impl CallEnd {
    /// The end of a call whose exit code is only known if it succeeded.
    pub(super) fn of_success(is_success: bool) -> Self {
        Self { is_failed: !is_success, exit: is_success.then_some(0) }
    }

    pub(super) fn state(self) -> ActivityState {
        if self.is_failed { ActivityState::Failed } else { ActivityState::Done }
    }
}

pub(super) fn single(kind: AgentEventKind) -> Vec<AgentEvent> {
    vec![AgentEvent::new(kind)]
}

pub(super) fn message(text: &str) -> Vec<AgentEvent> {
    single(AgentEventKind::Message { text: truncate::message(text) })
}

pub(super) fn reasoning(text: &str) -> Vec<AgentEvent> {
    single(AgentEventKind::Reasoning { text: truncate::message(text) })
}

/// Adds the usage of a request. A cost of zero means that the program does not know the price.
pub(super) fn add_usage(session: &mut ParsedSession, tokens: TokenCount, cost: Option<&Value>) {
    let sum = session.usage;
    let plus = |sum: Option<u64>, more: u64| Some(sum.unwrap_or(0).saturating_add(more));
    let cost = cost.and_then(Value::as_number).and_then(microdollars).filter(|cost| *cost > 0);
    let total_cost = match cost {
        Some(cost) => plus(sum.cost_microdollars, cost),
        None => sum.cost_microdollars,
    };
    session.usage = Usage {
        input_tokens: plus(sum.input_tokens, tokens.input),
        cached_input_tokens: plus(sum.cached_input_tokens, tokens.cached_input),
        cache_write_input_tokens: match tokens.cache_write {
            Some(written) => plus(sum.cache_write_input_tokens, written),
            None => sum.cache_write_input_tokens,
        },
        output_tokens: plus(sum.output_tokens, tokens.output),
        reasoning_tokens: None,
        cost_microdollars: total_cost,
        cost_source: if total_cost.is_some() { CostSource::Reported } else { CostSource::Unknown },
    };
}

/// Ends the session without a failure.
pub(super) fn finish(session: &mut ParsedSession) -> Vec<AgentEvent> {
    session.end = SessionEnd::Finished;
    with_usage(session, AgentEventKind::Finished)
}

/// Ends the session with a failure.
pub(super) fn fail(failure: FailureInfo, session: &mut ParsedSession) -> Vec<AgentEvent> {
    let message = failure.message.clone();
    session.end = SessionEnd::Failed(failure);
    with_usage(session, AgentEventKind::Failed { message })
}

fn with_usage(session: &ParsedSession, last: AgentEventKind) -> Vec<AgentEvent> {
    let usage = session.usage;
    let mut events = Vec::new();
    if usage != Usage::default() {
        events.push(AgentEvent::new(AgentEventKind::Usage { usage }));
    }
    events.push(AgentEvent::new(last));
    events
}
