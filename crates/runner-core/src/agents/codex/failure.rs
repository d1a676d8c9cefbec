//! The failures of Codex, recognized by message.

use crate::agents::parse_reset::parse_reset;
use crate::agents::provider_error::{from_final_http_status, reason};
use crate::agents::transcript::FailureInfo;
use crate::step::ProviderError;

const USAGE_LIMIT: &[&str] =
    &["You've hit your usage limit", "You've reached your usage limit", "Your workspace is out of credits"];
const CONTEXT_FULL: &[&str] = &["Codex ran out of room in the model's context window"];
const OVERLOADED: &[&str] = &["We're currently experiencing high demand", "Selected model is at capacity"];
const DISCONNECTED: &[&str] = &[
    "Connection failed",
    "stream disconnected before completion",
    "error sending request",
    "request timed out",
    "Error while reading the server response",
];
const RATE_LIMITED: &[&str] = &["rate limit exceeded"];
const NOT_LOGGED_IN: &[&str] = &["Missing environment variable", "Your access token could not be refreshed"];
const HTTP_STATUS: &[&str] = &["unexpected status ", "exceeded retry limit, last status: "];

/// Codex has one message for each kind of failure. Only the start of the message counts, so that text which a provider
/// put into the rest of it has no effect.
pub(super) fn classify(failure: &FailureInfo, now_unix_secs: u64) -> Option<ProviderError> {
    let message = failure.message.replace('\u{2019}', "'");
    let starts_with = |prefixes: &[&str]| prefixes.iter().any(|prefix| message.starts_with(prefix));
    let why = || reason(&failure.message);
    Some(if starts_with(USAGE_LIMIT) {
        ProviderError::UsageLimit { resets_unix_secs: parse_reset(&message, now_unix_secs) }
    } else if starts_with(CONTEXT_FULL) {
        ProviderError::ContextFull
    } else if starts_with(OVERLOADED) {
        ProviderError::Overloaded
    } else if starts_with(DISCONNECTED) {
        ProviderError::Disconnected
    } else if starts_with(RATE_LIMITED) {
        let wait_secs = parse_reset(&message, now_unix_secs).map(|end| end.saturating_sub(now_unix_secs));
        ProviderError::RateLimited { retry_after_secs: wait_secs.and_then(|secs| u32::try_from(secs).ok()) }
    } else if starts_with(NOT_LOGGED_IN) {
        ProviderError::NotLoggedIn { why: why() }
    } else {
        match http_status(&message) {
            Some(status) => from_final_http_status(status, why()),
            None => ProviderError::Refused { why: why() },
        }
    })
}

fn http_status(message: &str) -> Option<u64> {
    let rest = HTTP_STATUS.iter().find_map(|prefix| message.strip_prefix(prefix))?;
    rest.split_whitespace().next()?.parse().ok()
}
