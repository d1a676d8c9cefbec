//! Why a session failed, from what the agent's program itself says of it: its last event, or its own error output
//! when it printed nothing else. What the model wrote or a command printed is never looked at.

use super::parse_reset::moment;
use super::transcript::{FailureInfo, SessionEnd, SessionResult, Transcript, TranscriptFormat};
use super::truncate;
use crate::step::{ProviderError, SessionExit};
use crate::text::one_line;

/// How much of a message is told.
const WHY_BYTES_MAX: usize = 600;

/// What is known of a session besides its output.
#[derive(Clone, Debug)]
pub struct ProcessFacts<'a> {
    /// How the process ended.
    pub exit: SessionExit,
    /// What it wrote to standard error, from the end.
    pub stderr: &'a [u8],
    /// Whether the agent was stopped because its context was full.
    pub is_context_full: bool,
    /// When it ended, in seconds since 1970: some messages name a time of day only.
    pub now_unix_secs: u64,
}

impl Transcript {
    /// What the session came to.
    pub fn conclude(self, aftermath: ProcessFacts<'_>) -> SessionResult {
        let fault = fault(&self, &aftermath);
        let exit = match (aftermath.exit, fault) {
            // By itself or by a signal of someone else; how the runner ended a session, the runner knows best.
            (SessionExit::Finished { .. } | SessionExit::Killed { .. }, Some(fault)) => {
                SessionExit::Provider { fault }
            }
            (exit, _) => exit,
        };
        let findings = self.findings;
        let answer = findings.answer.map(|answer| answer.to_string().into_bytes());
        SessionResult { exit, usage: findings.usage, answer, identity: findings.identity }
    }
}

fn fault(transcript: &Transcript, aftermath: &ProcessFacts<'_>) -> Option<ProviderError> {
    let findings = &transcript.findings;
    match (&findings.end, &aftermath.exit) {
        (SessionEnd::Finished, _) => None,
        (SessionEnd::Failed(failure), _) => match transcript.dialect {
            TranscriptFormat::Codex => Some(codex(&failure.message, aftermath.now_unix_secs)),
            TranscriptFormat::Claude => claude(failure),
            TranscriptFormat::Opencode
            | TranscriptFormat::Gemini
            | TranscriptFormat::Qwen
            | TranscriptFormat::Copilot
            | TranscriptFormat::Pi => by_status(failure),
        },
        // A preset's answer is a file, and that alone tells how it went.
        (SessionEnd::Unsaid, _)
            if !matches!(transcript.dialect, TranscriptFormat::Codex | TranscriptFormat::Claude) =>
        {
            None
        }
        (SessionEnd::Unsaid, _) if aftermath.is_context_full => Some(ProviderError::ContextFull),
        (SessionEnd::Unsaid, SessionExit::Finished { code }) => {
            let own = String::from_utf8_lossy(aftermath.stderr);
            let said = findings.last_error.as_deref().filter(|_| findings.is_begun).unwrap_or(&own);
            Some(ProviderError::Crashed { why: crashed(said, *code) })
        }
        (SessionEnd::Unsaid, _) => None,
    }
}

/// The words of a program that gave up without an event.
fn crashed(said: &str, code: i32) -> String {
    let last: Vec<String> =
        said.lines().rev().map(one_line).filter(|line| !line.is_empty()).take(3).collect();
    let last: Vec<String> = last.into_iter().rev().collect();
    let why = shown(&last.join(" "));
    if why.is_empty() { format!("it exited with code {code} and said nothing") } else { why }
}

fn shown(message: &str) -> String {
    truncate::bounded(&one_line(message), WHY_BYTES_MAX)
}

/// What a provider's status means, for programs that say no more. Without one, nothing is known.
fn by_status(failure: &FailureInfo) -> Option<ProviderError> {
    let why = || shown(&failure.message);
    Some(match failure.status? {
        401 | 403 => ProviderError::NotLoggedIn { why: why() },
        429 => ProviderError::RateLimited { retry_after_secs: None },
        500..=599 => ProviderError::Overloaded,
        _ => ProviderError::Refused { why: why() },
    })
}

/// Codex has one message for each kind of failure. Each is known by its beginning, so that what a provider's own
/// text says further on does not count.
fn codex(message: &str, now_unix_secs: u64) -> ProviderError {
    let why = || shown(message);
    let plain = message.replace('\u{2019}', "'");
    let begins = |beginning: &str| plain.starts_with(beginning);
    let limits = [
        "You've hit your usage limit",
        "You've reached your usage limit",
        "Your workspace is out of credits",
    ];
    let disconnects = [
        "Connection failed",
        "stream disconnected before completion",
        "error sending request",
        "request timed out",
        "Error while reading the server response",
    ];
    let overloads = ["We're currently experiencing high demand", "Selected model is at capacity"];
    if limits.iter().any(|limit| begins(limit)) {
        return ProviderError::UsageLimit { resets_unix_secs: moment(&plain, now_unix_secs) };
    }
    if begins("Codex ran out of room in the model's context window") {
        return ProviderError::ContextFull;
    }
    if overloads.iter().any(|overload| begins(overload)) {
        return ProviderError::Overloaded;
    }
    if disconnects.iter().any(|disconnect| begins(disconnect)) {
        return ProviderError::Disconnected;
    }
    if begins("rate limit exceeded") {
        let wait = moment(&plain, now_unix_secs).map(|moment| moment.saturating_sub(now_unix_secs));
        return ProviderError::RateLimited {
            retry_after_secs: wait.and_then(|secs| u32::try_from(secs).ok()),
        };
    }
    if begins("Missing environment variable") || begins("Your access token could not be refreshed") {
        return ProviderError::NotLoggedIn { why: why() };
    }
    let statuses = ["unexpected status ", "exceeded retry limit, last status: "];
    let status = statuses.iter().find_map(|beginning| plain.strip_prefix(beginning));
    let status = status.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    status.map_or_else(|| ProviderError::Refused { why: why() }, |status| of_status(status, why()))
}

/// What an HTTP status means when nothing else is known.
fn of_status(status: u64, why: String) -> ProviderError {
    match status {
        401 | 403 => ProviderError::NotLoggedIn { why },
        408 => ProviderError::Disconnected,
        429 => ProviderError::RateLimited { retry_after_secs: None },
        500.. => ProviderError::Overloaded,
        _ => ProviderError::Refused { why },
    }
}

/// Claude says what kind of failure it was in fields of its own. None for a session that merely gave no answer.
fn claude(failure: &FailureInfo) -> Option<ProviderError> {
    let why = shown(&failure.message);
    if let Some("prompt_too_long" | "blocking_limit") = failure.reason.as_deref() {
        return Some(ProviderError::ContextFull);
    }
    match failure.subtype.as_deref() {
        Some("error_max_structured_output_retries") => {
            return Some(ProviderError::SchemaViolated {
                why: "the agent's answers did not fit the schema, and it gave up".to_owned(),
            });
        }
        Some("error_during_execution") => return Some(ProviderError::Crashed { why }),
        Some("error_max_turns" | "error_max_budget_usd") => return None,
        Some(_) | None => {}
    }
    Some(match (failure.error.as_deref(), failure.status) {
        (Some("rate_limit"), _) | (_, Some(429)) => rate_limit(failure),
        (Some("billing_error"), _) => ProviderError::Refused { why },
        (Some("authentication_failed"), _) => ProviderError::NotLoggedIn { why },
        (Some("overloaded"), _) => ProviderError::Overloaded,
        (_, Some(status)) => of_status(status, why),
        (Some("invalid_request" | "model_not_found"), None) => ProviderError::Refused { why },
        // No status at all: the request never got an answer.
        (Some(_) | None, None) => ProviderError::Disconnected,
    })
}

/// A limit of the plan names the moment it ends: in an event before the result, or after a bar in the message.
fn rate_limit(failure: &FailureInfo) -> ProviderError {
    let named = || failure.message.strip_prefix("Claude AI usage limit reached|")?.trim().parse().ok();
    match failure.resets_unix_secs.or_else(named) {
        Some(moment) => ProviderError::UsageLimit { resets_unix_secs: Some(moment) },
        None => ProviderError::RateLimited { retry_after_secs: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_794_789_000;

    fn concluded(
        dialect: TranscriptFormat,
        lines: &str,
        exit: SessionExit,
        stderr: &str,
        is_context_full: bool,
    ) -> SessionExit {
        let mut transcript = Transcript::new(dialect);
        transcript.push(lines.as_bytes());
        transcript.finish();
        let stderr = stderr.as_bytes();
        transcript.conclude(ProcessFacts { exit, stderr, is_context_full, now_unix_secs: NOW }).exit
    }

    fn codex_says(message: &str) -> ProviderError {
        let line = serde_json::json!({ "type": "turn.failed", "error": { "message": message } }).to_string();
        let exit = concluded(TranscriptFormat::Codex, &line, SessionExit::Finished { code: 1 }, "", false);
        let SessionExit::Provider { fault } = exit else { panic!("{exit:?}") };
        fault
    }

    fn class(fault: &ProviderError) -> String {
        serde_json::to_value(fault).unwrap()["fault"].as_str().unwrap().to_owned()
    }

    #[test]
    fn each_failure_of_codex_has_its_class() {
        for (message, expected) in [
            (
                "unexpected status 401 Unauthorized: no key, url: http://127.0.0.1:1/v1/responses",
                "not_logged_in",
            ),
            ("unexpected status 403 Forbidden: no", "not_logged_in"),
            ("unexpected status 404 Not Found: model", "refused"),
            ("unexpected status 408 Request Timeout: x", "disconnected"),
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
            assert_eq!(class(&codex_says(message)), expected, "{message}");
        }
    }

    #[test]
    fn a_providers_own_text_further_on_decides_nothing() {
        let quoting = "unexpected status 400 Bad Request: You've hit your usage limit. Try again at 5:46 PM.";
        assert_eq!(class(&codex_says(quoting)), "refused");
    }

    #[test]
    fn a_usage_limit_of_codex_names_its_end() {
        let message = "You’ve hit your usage limit. Visit us or try again at Mar 17th, 2030 5:46 PM.";
        assert_eq!(codex_says(message), ProviderError::UsageLimit { resets_unix_secs: Some(1_900_000_020) });
        assert_eq!(
            codex_says("rate limit exceeded: please try again in 20s."),
            ProviderError::RateLimited { retry_after_secs: Some(20) }
        );
    }

    #[test]
    fn a_session_that_says_nothing_of_its_end_is_known_by_what_is_left() {
        let finished = || SessionExit::Finished { code: 1 };
        let begun = "{\"type\":\"thread.started\",\"thread_id\":\"x\"}\n";
        let full = concluded(TranscriptFormat::Codex, begun, finished(), "", true);
        assert_eq!(full, SessionExit::Provider { fault: ProviderError::ContextFull });
        let why = "Error: Model provider `x` not found".to_owned();
        let crashed = concluded(TranscriptFormat::Codex, "", finished(), &format!("\n{why}\n"), false);
        assert_eq!(crashed, SessionExit::Provider { fault: ProviderError::Crashed { why } });
        let silent = concluded(TranscriptFormat::Claude, "", SessionExit::Finished { code: 3 }, "", false);
        assert_eq!(
            silent,
            SessionExit::Provider {
                fault: ProviderError::Crashed { why: "it exited with code 3 and said nothing".to_owned() }
            }
        );
        let killed = SessionExit::Killed { signal: 9 };
        assert_eq!(concluded(TranscriptFormat::Claude, "", killed.clone(), "", false), killed);
    }

    #[test]
    fn how_the_runner_ended_a_session_stays_as_it_is() {
        let line = "{\"type\":\"turn.failed\",\"error\":{\"message\":\"Connection failed: x\"}}";
        for exit in
            [SessionExit::TimedOut, SessionExit::Idle, SessionExit::NotStarted { why: "x".to_owned() }]
        {
            assert_eq!(concluded(TranscriptFormat::Codex, line, exit.clone(), "", false), exit);
        }
    }

    #[test]
    fn a_preset_that_says_nothing_of_its_end_is_judged_by_its_answer_alone() {
        for dialect in [
            TranscriptFormat::Opencode,
            TranscriptFormat::Gemini,
            TranscriptFormat::Qwen,
            TranscriptFormat::Copilot,
            TranscriptFormat::Pi,
        ] {
            let exit = SessionExit::Finished { code: 1 };
            assert_eq!(concluded(dialect, "", exit.clone(), "Error: x", true), exit, "{dialect:?}");
        }
    }

    #[test]
    fn a_preset_has_the_class_of_the_status_that_it_names() {
        for (status, expected) in [
            (401, "not_logged_in"),
            (403, "not_logged_in"),
            (404, "refused"),
            (429, "rate_limited"),
            (499, "refused"),
            (500, "overloaded"),
            (599, "overloaded"),
            (600, "refused"),
        ] {
            let error = serde_json::json!({ "data": { "message": "in words", "statusCode": status } });
            let line = serde_json::json!({ "type": "error", "error": error }).to_string();
            let exit =
                concluded(TranscriptFormat::Opencode, &line, SessionExit::Finished { code: 1 }, "", false);
            let SessionExit::Provider { fault } = exit else { panic!("{status}: {exit:?}") };
            assert_eq!(class(&fault), expected, "{status}");
        }
    }

    fn claude_says(more: &serde_json::Value) -> Option<ProviderError> {
        let mut result = serde_json::json!({ "type": "result", "subtype": "success", "is_error": true,
            "result": "in words", "terminal_reason": "completed" });
        let mut error = serde_json::json!({ "type": "assistant", "message": { "content": [] } });
        for (key, value) in more.as_object().unwrap() {
            let line = if key == "error" { &mut error } else { &mut result };
            line[key] = value.clone();
        }
        let lines = format!("{error}\n{result}\n");
        let exit = concluded(TranscriptFormat::Claude, &lines, SessionExit::Finished { code: 1 }, "", false);
        if let SessionExit::Provider { fault } = exit {
            return Some(fault);
        }
        assert_eq!(exit, SessionExit::Finished { code: 1 });
        None
    }

    #[test]
    fn each_failure_of_claude_has_its_class() {
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
            assert_eq!(claude_says(&more).as_ref().map(class).as_deref(), Some(expected), "{more}");
        }
        assert_eq!(claude_says(&json!({ "subtype": "error_max_turns" })), None);
    }

    #[test]
    fn a_usage_limit_of_claude_names_its_end() {
        let limit = "{\"type\":\"rate_limit_event\",\"rate_limit_info\":{\"status\":\"rejected\",\"resetsAt\":1900000000}}";
        let result = "{\"type\":\"result\",\"is_error\":true,\"api_error_status\":429}";
        let exit = concluded(
            TranscriptFormat::Claude,
            &format!("{limit}\n{result}\n"),
            SessionExit::Finished { code: 1 },
            "",
            false,
        );
        let fault = ProviderError::UsageLimit { resets_unix_secs: Some(1_900_000_000) };
        assert_eq!(exit, SessionExit::Provider { fault: fault.clone() });
        let told = serde_json::json!({ "api_error_status": 429, "result": "Claude AI usage limit reached|1900000000" });
        assert_eq!(claude_says(&told), Some(fault));
    }
}
