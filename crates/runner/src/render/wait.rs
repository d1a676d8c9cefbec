//! Waits, for people and for scripts.

use runner_core::step::Wait;
use runner_host::clock;

/// `0:00:03`, `4:12:07`: hours, minutes and seconds that are left.
pub(crate) fn countdown(left_ms: u64) -> String {
    let secs = left_ms.div_ceil(1000);
    format!("{}:{:02}:{:02}", secs / 3600, secs / 60 % 60, secs % 60)
}

/// How many milliseconds are left until a moment.
pub(crate) fn left_ms(ends_unix_ms: u64) -> u64 {
    ends_unix_ms.saturating_sub(clock::now_ms())
}

/// Why is waited.
pub(crate) fn reason(wait: &Wait) -> String {
    format!("{} of {}", wait.outcome.as_str().replace('_', " "), wait.agent)
}

/// A moment on the clock of this machine.
pub(crate) fn on_the_wall(unix_ms: u64) -> String {
    clock::local(unix_ms).unwrap_or_else(|| "later".to_owned())
}

/// A moment as programs read it.
pub(crate) fn in_utc(unix_ms: u64) -> String {
    clock::utc(unix_ms).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_counts_down_to_nothing() {
        let read = [0, 1, 3_000, 59_001, 15_127_000].map(countdown);
        assert_eq!(read, ["0:00:00", "0:00:01", "0:00:03", "0:01:00", "4:12:07"]);
    }
}
