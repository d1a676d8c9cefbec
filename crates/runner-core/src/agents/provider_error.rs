//! Why a session failed: classified from the agent's last event, or from its standard error if it printed nothing else.
//! Text from the model or from commands is never considered.

use super::transcript::{FailureInfo, SessionEnd, SessionResult, Transcript};
use super::truncate;
use crate::step::{ProviderError, SessionExit};
use crate::text::one_line;

/// The longest reason to report.
const REASON_BYTES_MAX: usize = 600;

/// Classifies a failure that an agent reported at this time (seconds since 1970). None if it is not the provider's.
pub(super) type FailureClassifier = fn(&FailureInfo, u64) -> Option<ProviderError>;

/// What the process of a session reveals besides its output.
#[derive(Clone, Debug)]
pub struct ProcessFacts<'a> {
    /// How the process ended.
    pub exit: SessionExit,
    /// The end of its standard error.
    pub stderr: &'a [u8],
    /// Whether the agent was stopped because its context was full.
    pub is_context_full: bool,
    /// When it ended, in seconds since 1970: some messages contain only a time of day.
    pub now_unix_secs: u64,
}

impl Transcript {
    /// The result of the session.
    pub fn conclude(self, process: ProcessFacts<'_>) -> SessionResult {
        let error = provider_error(&self, &process);
        let exit = match (process.exit, error) {
            (SessionExit::Finished { .. }, None) if self.session.end == SessionEnd::OverBudget => {
                SessionExit::OverBudget
            }
            // The process ended by itself or by a foreign signal. If the runner ended it, that reason counts.
            (SessionExit::Finished { .. } | SessionExit::Killed { .. }, Some(fault)) => {
                SessionExit::Provider { fault }
            }
            (exit, _) => exit,
        };
        let session = self.session;
        let answer = session.answer.map(|answer| answer.to_string().into_bytes());
        SessionResult { exit, usage: session.usage, answer, identity: session.identity }
    }
}

fn provider_error(transcript: &Transcript, process: &ProcessFacts<'_>) -> Option<ProviderError> {
    let session = &transcript.session;
    match (&session.end, &process.exit) {
        (SessionEnd::Finished | SessionEnd::OverBudget, _) => None,
        (SessionEnd::Failed(failure), _) => (transcript.format.classify)(failure, process.now_unix_secs),
        (SessionEnd::NotReported, _) if !transcript.format.ends_with_event => None,
        (SessionEnd::NotReported, _) if process.is_context_full => Some(ProviderError::ContextFull),
        (SessionEnd::NotReported, SessionExit::Finished { code }) => {
            let stderr = String::from_utf8_lossy(process.stderr);
            let text = session.last_error.as_deref().filter(|_| session.has_output).unwrap_or(&stderr);
            Some(ProviderError::Crashed { why: crash_reason(text, *code) })
        }
        (SessionEnd::NotReported, _) => None,
    }
}

/// The last lines of a program that ended without a final event.
fn crash_reason(text: &str, code: i32) -> String {
    let mut last: Vec<String> =
        text.lines().rev().map(one_line).filter(|line| !line.is_empty()).take(3).collect();
    last.reverse();
    let why = reason(&last.join(" "));
    if why.is_empty() { format!("it exited with code {code} and printed no error") } else { why }
}

/// A message on one line, shortened.
pub(super) fn reason(message: &str) -> String {
    truncate::bounded(&one_line(message), REASON_BYTES_MAX)
}

/// The classifier of agents that report nothing but the provider's HTTP status. Without a status it is not known what
/// happened.
pub(super) fn classify_by_status(failure: &FailureInfo, _now_unix_secs: u64) -> Option<ProviderError> {
    Some(from_http_status(failure.status?, reason(&failure.message)))
}

/// What an HTTP status of the provider means if nothing else is known.
fn from_http_status(status: u64, why: String) -> ProviderError {
    match status {
        401 | 403 => ProviderError::NotLoggedIn { why },
        429 => ProviderError::RateLimited { retry_after_secs: None },
        500..=599 => ProviderError::Overloaded,
        _ => ProviderError::Refused { why },
    }
}

/// The same for an agent that has retried the request itself and reports the last status. After retries, 408 means that
/// the connection keeps timing out, so waiting helps. A preset may pass on its first 408, which is a refusal. Statuses
/// beyond 599 are errors of gateways in between.
pub(super) fn from_final_http_status(status: u64, why: String) -> ProviderError {
    match status {
        408 => ProviderError::Disconnected,
        600.. => ProviderError::Overloaded,
        _ => from_http_status(status, why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agents::{AGENTS, agent_named};

    const NOW: u64 = 1_794_789_000;

    const EXITED: SessionExit = SessionExit::Finished { code: 1 };

    fn process(exit: SessionExit) -> ProcessFacts<'static> {
        ProcessFacts { exit, stderr: b"", is_context_full: false, now_unix_secs: NOW }
    }

    fn conclude(agent: &str, lines: &str, process: ProcessFacts<'_>) -> SessionExit {
        let mut transcript = Transcript::new(&agent_named(agent).unwrap().output);
        transcript.push(lines.as_bytes());
        transcript.finish();
        transcript.conclude(process).exit
    }

    fn codex_error(message: &str) -> ProviderError {
        let line = serde_json::json!({ "type": "turn.failed", "error": { "message": message } }).to_string();
        let exit = conclude("codex", &line, process(EXITED));
        let SessionExit::Provider { fault } = exit else { panic!("{exit:?}") };
        fault
    }

    fn class_of(fault: &ProviderError) -> String {
        serde_json::to_value(fault).unwrap()["fault"].as_str().unwrap().to_owned()
    }

    #[test]
    fn codex_failures_are_classified_by_message() {
        for (message, expected) in [
            (
                "unexpected status 401 Unauthorized: no key, url: http://127.0.0.1:1/v1/responses",
                "not_logged_in",
            ),
            ("unexpected status 403 Forbidden: no", "not_logged_in"),
            ("unexpected status 404 Not Found: model", "refused"),
            ("unexpected status 408 Request Timeout: x", "disconnected"),
            ("unexpected status 600 Unknown: x", "overloaded"),
            ("unexpected status 503 Service Unavailable: x", "overloaded"),
            ("exceeded retry limit, last status: 429 Too Many Requests", "rate_limited"),
            ("exceeded retry limit, last status: 502 Bad Gateway", "overloaded"),
            ("We’re currently experiencing high demand, which may cause temporary errors.", "overloaded"),
            ("Selected model is at capacity. Please try a different model.", "overloaded"),
            ("Connection failed: error sending request", "disconnected"),
            ("stream disconnected before completion: idle timeout waiting for SSE", "disconnected"),
            ("Codex ran out of room in the model's context window. Start a new thread", "context_full"),
            ("Quota exceeded. Check your plan and billing details.", "refused"),
            ("Missing environment variable: `KEY`.", "not_logged_in"),
            ("rate limit exceeded: slow down, try again in 20s.", "rate_limited"),
            ("You've hit your usage limit. Try again later.", "usage_limit"),
            ("{\"error\":{\"message\":\"bad request\"}}", "refused"),
            ("", "refused"),
        ] {
            assert_eq!(class_of(&codex_error(message)), expected, "{message}");
        }
    }

    #[test]
    fn text_of_the_provider_inside_a_message_is_ignored() {
        let quoting = "unexpected status 400 Bad Request: You've hit your usage limit. Try again at 5:46 PM.";
        assert_eq!(class_of(&codex_error(quoting)), "refused");
    }

    #[test]
    fn codex_usage_limits_have_a_reset_time() {
        let message = "You’ve hit your usage limit. Visit us or try again at Mar 17th, 2030 5:46 PM.";
        assert_eq!(codex_error(message), ProviderError::UsageLimit { resets_unix_secs: Some(1_900_000_020) });
        assert_eq!(
            codex_error("rate limit exceeded: please try again in 20s."),
            ProviderError::RateLimited { retry_after_secs: Some(20) }
        );
    }

    #[test]
    fn a_native_session_without_a_final_event_is_classified_by_its_process() {
        let started = "{\"type\":\"thread.started\",\"thread_id\":\"x\"}\n";
        let full = ProcessFacts { is_context_full: true, ..process(EXITED) };
        assert_eq!(
            conclude("codex", started, full),
            SessionExit::Provider { fault: ProviderError::ContextFull }
        );
        let why = "Error: Model provider `x` not found".to_owned();
        let stderr = format!("\n{why}\n");
        let crashed = ProcessFacts { stderr: stderr.as_bytes(), ..process(EXITED) };
        assert_eq!(
            conclude("codex", "", crashed),
            SessionExit::Provider { fault: ProviderError::Crashed { why } }
        );
        let why = "it exited with code 3 and printed no error".to_owned();
        assert_eq!(
            conclude("claude", "", process(SessionExit::Finished { code: 3 })),
            SessionExit::Provider { fault: ProviderError::Crashed { why } }
        );
        let killed = SessionExit::Killed { signal: 9 };
        assert_eq!(conclude("claude", "", process(killed.clone())), killed);
    }

    #[test]
    fn an_exit_caused_by_the_runner_is_kept() {
        let line = "{\"type\":\"turn.failed\",\"error\":{\"message\":\"Connection failed: x\"}}";
        for exit in
            [SessionExit::TimedOut, SessionExit::Idle, SessionExit::NotStarted { why: "x".to_owned() }]
        {
            assert_eq!(conclude("codex", line, process(exit.clone())), exit);
        }
    }

    #[test]
    fn a_preset_without_a_final_event_is_judged_by_its_answer_alone() {
        for agent in AGENTS.into_iter().filter(|agent| agent.is_preset()) {
            let full = ProcessFacts { stderr: b"Error: x", is_context_full: true, ..process(EXITED) };
            assert_eq!(conclude(agent.name, "", full), EXITED, "{}", agent.name);
        }
    }

    #[test]
    fn preset_failures_are_classified_by_http_status() {
        for (status, expected) in [
            (401, "not_logged_in"),
            (403, "not_logged_in"),
            (404, "refused"),
            (408, "refused"),
            (429, "rate_limited"),
            (499, "refused"),
            (500, "overloaded"),
            (599, "overloaded"),
            (600, "refused"),
        ] {
            let error = serde_json::json!({ "data": { "message": "in words", "statusCode": status } });
            let line = serde_json::json!({ "type": "error", "error": error }).to_string();
            let exit = conclude("opencode", &line, process(EXITED));
            let SessionExit::Provider { fault } = exit else { panic!("{status}: {exit:?}") };
            assert_eq!(class_of(&fault), expected, "{status}");
        }
    }

    fn claude_error(more: &serde_json::Value) -> Option<ProviderError> {
        let mut result = serde_json::json!({ "type": "result", "subtype": "success", "is_error": true,
            "result": "in words", "terminal_reason": "completed" });
        let mut error = serde_json::json!({ "type": "assistant", "message": { "content": [] } });
        for (key, value) in more.as_object().unwrap() {
            let line = if key == "error" { &mut error } else { &mut result };
            line[key] = value.clone();
        }
        let lines = format!("{error}\n{result}\n");
        let exit = conclude("claude", &lines, process(EXITED));
        if let SessionExit::Provider { fault } = exit {
            return Some(fault);
        }
        assert_eq!(exit, EXITED);
        None
    }

    #[test]
    fn claude_failures_are_classified_by_their_fields() {
        use serde_json::json;
        for (more, expected) in [
            (json!({ "api_error_status": 401, "error": "authentication_failed" }), "not_logged_in"),
            (json!({ "error": "authentication_failed" }), "not_logged_in"),
            (json!({ "api_error_status": 403 }), "not_logged_in"),
            (json!({ "api_error_status": 404, "error": "model_not_found" }), "refused"),
            (json!({ "api_error_status": 400, "error": "billing_error" }), "refused"),
            (json!({ "api_error_status": 429, "error": "rate_limit" }), "rate_limited"),
            (json!({ "api_error_status": 500, "error": "server_error" }), "overloaded"),
            (json!({ "api_error_status": 529, "error": "server_error" }), "overloaded"),
            (json!({ "api_error_status": null, "error": "unknown" }), "disconnected"),
            (json!({ "api_error_status": null, "error": "server_error" }), "disconnected"),
            (json!({ "terminal_reason": "prompt_too_long", "error": "invalid_request" }), "context_full"),
            (json!({ "terminal_reason": "blocking_limit" }), "context_full"),
            (json!({ "subtype": "error_max_structured_output_retries" }), "schema_violated"),
            (json!({ "subtype": "error_during_execution" }), "crashed"),
        ] {
            assert_eq!(claude_error(&more).as_ref().map(class_of).as_deref(), Some(expected), "{more}");
        }
        assert_eq!(claude_error(&json!({ "subtype": "error_max_turns" })), None);
    }

    #[test]
    fn claude_usage_limits_have_a_reset_time() {
        let limit = "{\"type\":\"rate_limit_event\",\"rate_limit_info\":{\"status\":\"rejected\",\"resetsAt\":1900000000}}";
        let result = "{\"type\":\"result\",\"is_error\":true,\"api_error_status\":429}";
        let exit = conclude("claude", &format!("{limit}\n{result}\n"), process(EXITED));
        let fault = ProviderError::UsageLimit { resets_unix_secs: Some(1_900_000_000) };
        assert_eq!(exit, SessionExit::Provider { fault: fault.clone() });
        let in_message = serde_json::json!({ "api_error_status": 429, "result": "Claude AI usage limit reached|1900000000" });
        assert_eq!(claude_error(&in_message), Some(fault));
    }
}
