//! Waits between sessions: the remaining time, the end and the reason.

use runner_core::step::Wait;
use runner_host::clock;

/// `0:00:03`, `4:12:07`: remaining hours, minutes and seconds.
pub(crate) fn countdown(left_ms: u64) -> String {
    let secs = left_ms.div_ceil(1000);
    format!("{}:{:02}:{:02}", secs / 3600, secs / 60 % 60, secs % 60)
}

/// The milliseconds from now until a time.
pub(crate) fn left_ms(ends_unix_ms: u64) -> u64 {
    ends_unix_ms.saturating_sub(clock::now_ms())
}

/// `usage limit, codex`.
pub(crate) fn reason(wait: &Wait) -> String {
    format!("{}, {}", wait.outcome.as_str().replace('_', " "), wait.agent)
}

/// A time in this machine's time zone.
pub(crate) fn on_the_wall(unix_ms: u64) -> String {
    clock::local(unix_ms).unwrap_or_else(|| "later".to_owned())
}

/// A time in UTC, for scripts.
pub(crate) fn in_utc(unix_ms: u64) -> String {
    clock::utc(unix_ms).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn countdown_rounds_up_to_whole_seconds() {
        let texts = [0, 1, 3_000, 59_001, 15_127_000].map(countdown);
        assert_eq!(texts, ["0:00:00", "0:00:01", "0:00:03", "0:01:00", "4:12:07"]);
    }
}
