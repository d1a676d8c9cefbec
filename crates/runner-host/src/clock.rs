//! Moments, in the form of this machine's clock and in one that is the same everywhere.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// Milliseconds since 1970. Used for logs and waits, never in a commit.
pub fn now_ms() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}

/// A moment on the clock of this machine: the time alone if it is today. Nothing for one beyond all calendars.
pub fn local(unix_ms: u64) -> Option<String> {
    let (moment, now) = (timestamp(unix_ms)?.to_zoned(TimeZone::system()), Zoned::now());
    let form = if moment.date() == now.date() { "%H:%M:%S" } else { "%Y-%m-%d %H:%M:%S" };
    Some(moment.strftime(form).to_string())
}

/// A moment as programs read it: `2026-11-16T05:00:03Z`.
pub fn utc(unix_ms: u64) -> Option<String> {
    timestamp(unix_ms / 1000 * 1000).map(|moment| moment.to_string())
}

/// Now, as git writes it: seconds since 1970, and how far this machine's clock is from UTC.
pub(crate) fn stamp() -> String {
    Zoned::now().strftime("%s %z").to_string()
}

fn timestamp(unix_ms: u64) -> Option<Timestamp> {
    Timestamp::from_millisecond(i64::try_from(unix_ms).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_has_one_form_for_programs() {
        assert_eq!(utc(1_794_805_203_999).as_deref(), Some("2026-11-16T05:00:03Z"));
        assert_eq!((utc(u64::MAX), local(u64::MAX)), (None, None));
    }
}
