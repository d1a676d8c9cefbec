//! The failures of Claude Code, recognized by the fields of its last event.

use crate::agents::provider_error::{from_final_http_status, reason};
use crate::agents::transcript::FailureInfo;
use crate::step::ProviderError;

/// None for a session that ended without an answer but without a failure.
pub(super) fn classify(failure: &FailureInfo, _now_unix_secs: u64) -> Option<ProviderError> {
    let why = reason(&failure.message);
    if let Some("prompt_too_long" | "blocking_limit") = failure.reason.as_deref() {
        return Some(ProviderError::ContextFull);
    }
    match failure.subtype.as_deref() {
        Some("error_max_structured_output_retries") => {
            return Some(ProviderError::SchemaViolated {
                why: "the agent's answers did not match the schema, and it gave up".to_owned(),
            });
        }
        Some("error_during_execution") => return Some(ProviderError::Crashed { why }),
        Some("error_max_turns") => return None,
        Some(_) | None => {}
    }
    Some(match (failure.error.as_deref(), failure.status) {
        (Some("rate_limit"), _) | (_, Some(429)) => rate_limit(failure),
        (Some("billing_error"), _) => ProviderError::Refused { why },
        (Some("authentication_failed"), _) => ProviderError::NotLoggedIn { why },
        (Some("overloaded"), _) => ProviderError::Overloaded,
        (_, Some(status)) => from_final_http_status(status, why),
        (Some("invalid_request" | "model_not_found"), None) => ProviderError::Refused { why },
        // Without a status, the request got no response.
        (Some(_) | None, None) => ProviderError::Disconnected,
    })
}

/// The usage limit of a plan has an end: in an event before the result, or after a `|` in the message. A rate limit
/// has none.
fn rate_limit(failure: &FailureInfo) -> ProviderError {
    let in_message = || failure.message.strip_prefix("Claude AI usage limit reached|")?.trim().parse().ok();
    match failure.resets_unix_secs.or_else(in_message) {
        Some(end) => ProviderError::UsageLimit { resets_unix_secs: Some(end) },
        None => ProviderError::RateLimited { retry_after_secs: None },
    }
}
