//! Traces for OpenTelemetry: one per iteration, with spans for the agent's session, the checks, the guard and the review.
//!
//! Names and attributes follow the conventions for generative AI; attributes of our own begin with `runner.`. The result is a
//! request of OTLP in its JSON encoding. It has no content: no prompt, no output, no summary.

use serde_json::{Value, json};

use crate::model::digest::Sha256;
use crate::step::{Event, Outcome, OutcomeClass, SessionExit};

/// Collects the events of an iteration until it is committed.
#[derive(Clone, Debug, Default)]
pub struct TraceRecorder {
    iteration: Option<IterationTrace>,
}

/// The iteration that is being recorded.
#[derive(Clone, Debug)]
struct IterationTrace {
    id: Sha256,
    start_ms: u64,
    agent: String,
    attributes: Vec<Value>,
    error: Option<&'static str>,
    /// Spans that are over.
    spans: Vec<Value>,
    /// Spans that began, by name.
    open: Vec<(String, u64)>,
}

impl TraceRecorder {
    /// Takes an event with its time, in milliseconds since 1970. Returns the request when the iteration is over. `place` tells
    /// repositories apart.
    pub fn record(&mut self, at_ms: u64, event: &Event, place: &str) -> Option<Value> {
        if let Some(iteration) = IterationTrace::begin(at_ms, event, place) {
            self.iteration = Some(iteration);
            return None;
        }
        if let Event::Committed { commit, .. } = event {
            let mut iteration = self.iteration.take()?;
            iteration.attributes.push(text("runner.commit", commit));
            return Some(iteration.request(at_ms));
        }
        if let Some(iteration) = &mut self.iteration {
            iteration.record(at_ms, event);
        }
        None
    }
}

impl IterationTrace {
    fn begin(at_ms: u64, event: &Event, place: &str) -> Option<Self> {
        let Event::Planned { run_id, iter, mode, path, attempt, agent, rung, .. } = event else {
            return None;
        };
        let id = Sha256::of(format!("{place}\n{run_id}\n{iter}\n{at_ms}").as_bytes());
        let attributes = vec![
            text("runner.run.id", run_id.as_str()),
            number("runner.iteration", iter.get().into()),
            text("runner.session.mode", mode.as_str()),
            text("runner.task.path", path),
            number("runner.task.attempt", attempt.nth.into()),
            number("runner.agent.rung", rung.nth.into()),
        ];
        let agent = agent.clone();
        // The session begins with the iteration.
        let open = vec![(SESSION.to_owned(), at_ms)];
        Some(Self { id, start_ms: at_ms, agent, attributes, error: None, spans: Vec::new(), open })
    }

    fn record(&mut self, at_ms: u64, event: &Event) {
        if let Event::AgentEnded { exit, .. } = event {
            let attributes = self.session_attributes(event);
            let error = (!matches!(exit, SessionExit::Finished { .. })).then(|| exit_name(exit));
            let name = format!("invoke_agent {}", self.agent_name());
            self.end(SESSION, SpanEnd { name, at_ms, attributes, error });
        } else if let Event::CheckStarted { check, .. } = event {
            self.open.push((format!("check {check}"), at_ms));
        } else if let Event::CheckEnded { check, exit, .. } = event {
            let name = format!("check {check}");
            let attributes = vec![text("runner.check.exit", &exit.to_string())];
            let error = (!exit.is_green()).then(|| exit.to_string());
            self.end(&name, SpanEnd { name: name.clone(), at_ms, attributes, error });
        } else if let Event::GuardStarted { .. } = event {
            self.open.push(("guard".to_owned(), at_ms));
        } else if let Event::GuardEnded { exit, .. } = event {
            let exit = exit.map_or("none".to_owned(), |exit| exit.to_string());
            let error = (exit != "0").then(|| exit.clone());
            let attributes = vec![text("runner.guard.exit", &exit)];
            self.end("guard", SpanEnd { name: "guard".to_owned(), at_ms, attributes, error });
        } else if let Event::ReviewStarted { .. } = event {
            self.open.push(("review".to_owned(), at_ms));
        } else if let Event::ReviewEnded { report, .. } = event {
            let attributes = vec![
                text("gen_ai.operation.name", "invoke_agent"),
                text("runner.review.result", report.result.as_str()),
            ];
            self.end(
                "review",
                SpanEnd { name: "invoke_agent reviewer".to_owned(), at_ms, attributes, error: None },
            );
        } else if let Event::Decided { outcome, guard, cost, leaves, .. } = event {
            self.attributes.push(text("runner.outcome", outcome.as_str()));
            self.attributes.push(text("runner.guard", guard.as_str()));
            self.attributes.push(count("runner.tasks.passed", leaves.passed));
            self.attributes.push(count("runner.tasks.total", leaves.total));
            self.attributes.extend(cost.microdollars.map(|cost| number("runner.cost.microdollars", cost)));
            self.error = is_failure(*outcome).then_some(outcome.as_str());
        }
    }

    /// The agent's name, without its model: `codex` of `codex:gpt-6.1-sol`.
    fn agent_name(&self) -> &str {
        self.agent.split(':').next().unwrap_or_default()
    }

    fn session_attributes(&self, event: &Event) -> Vec<Value> {
        let name = self.agent_name();
        let mut attributes = vec![
            text("gen_ai.operation.name", "invoke_agent"),
            text("gen_ai.provider.name", provider(name)),
            text("gen_ai.agent.name", name),
        ];
        if let Some((_, model)) = self.agent.split_once(':') {
            attributes.push(text("gen_ai.request.model", model));
        }
        if let Event::AgentEnded { usage, .. } = event {
            let counts = [
                ("gen_ai.usage.input_tokens", usage.input_tokens),
                ("gen_ai.usage.cache_read.input_tokens", usage.cached_input_tokens),
                ("gen_ai.usage.cache_creation.input_tokens", usage.cache_write_input_tokens),
                ("gen_ai.usage.output_tokens", usage.output_tokens),
            ];
            attributes.extend(counts.into_iter().filter_map(|(key, count)| Some(number(key, count?))));
        }
        attributes
    }

    /// Ends the span that began under this name.
    fn end(&mut self, open: &str, end: SpanEnd) {
        let Some(index) = self.open.iter().rposition(|(name, _)| name == open) else { return };
        let (_, start_ms) = self.open.remove(index);
        let place = SpanPlace { trace: self.id, number: self.spans.len() + 1, start_ms };
        self.spans.push(place.span(end));
    }

    /// The whole trace. Spans that did not end, end with it.
    fn request(mut self, at_ms: u64) -> Value {
        while let Some((name, _)) = self.open.last().cloned() {
            self.end(&name, SpanEnd { name: name.clone(), at_ms, attributes: Vec::new(), error: None });
        }
        let root = SpanPlace { trace: self.id, number: 0, start_ms: self.start_ms };
        let error = self.error.map(str::to_owned);
        let end = SpanEnd { name: "iteration".to_owned(), at_ms, attributes: self.attributes, error };
        let mut spans = vec![root.span(end)];
        spans.append(&mut self.spans);
        let resource = [text("service.name", "runner"), text("service.version", env!("CARGO_PKG_VERSION"))];
        json!({ "resourceSpans": [{
            "resource": { "attributes": resource },
            "scopeSpans": [{ "scope": { "name": "runner", "version": env!("CARGO_PKG_VERSION") }, "spans": spans }],
        }] })
    }
}

const SESSION: &str = "session";

struct SpanPlace {
    trace: Sha256,
    /// 0 is the iteration itself.
    number: usize,
    start_ms: u64,
}

struct SpanEnd {
    name: String,
    at_ms: u64,
    attributes: Vec<Value>,
    error: Option<String>,
}

impl SpanPlace {
    fn span(&self, end: SpanEnd) -> Value {
        let mut attributes = end.attributes;
        let mut status = json!({});
        if let Some(error) = end.error {
            attributes.push(text("error.type", &error));
            status = json!({ "code": 2, "message": error });
        }
        // The root of a trace has an empty parent.
        let parent = if self.number == 0 { String::new() } else { self.span_id(0) };
        json!({
            "traceId": digits(&self.trace, 32),
            "spanId": self.span_id(self.number),
            "parentSpanId": parent,
            "name": end.name,
            "kind": 1,
            "startTimeUnixNano": nanoseconds(self.start_ms),
            "endTimeUnixNano": nanoseconds(end.at_ms),
            "attributes": attributes,
            "status": status,
        })
    }

    fn span_id(&self, number: usize) -> String {
        digits(&Sha256::of(format!("{}\n{number}", self.trace).as_bytes()), 16)
    }
}

/// The first digits of a digest.
fn digits(digest: &Sha256, count: usize) -> String {
    digest.to_string().chars().take(count).collect()
}

/// 64-bit integers are strings in the JSON encoding.
fn nanoseconds(ms: u64) -> String {
    format!("{ms}000000")
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn number(key: &str, value: u64) -> Value {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}

fn count(key: &str, value: usize) -> Value {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}

/// The provider behind an agent, in the words of the conventions.
fn provider(agent: &str) -> &str {
    match agent {
        "codex" => "openai",
        "claude" => "anthropic",
        "gemini" => "gcp.gemini",
        "grok" => "x_ai",
        other => other,
    }
}

fn exit_name(exit: &SessionExit) -> String {
    let value = serde_json::to_value(exit).unwrap_or_default();
    value.get("kind").and_then(Value::as_str).unwrap_or("unknown").to_owned()
}

/// Whether an iteration did not do what it was for.
fn is_failure(outcome: Outcome) -> bool {
    let is_refused = matches!(
        outcome,
        Outcome::ChecksFailed
            | Outcome::GuardFailed
            | Outcome::ReviewRefused
            | Outcome::RuleViolation
            | Outcome::InvalidTree
            | Outcome::RepairFailed
            | Outcome::RepairAbandoned
            | Outcome::ReplanRefused
            | Outcome::SplitRefused
            | Outcome::PlanRejected
    );
    is_refused || outcome.class() != OutcomeClass::Answered
}
