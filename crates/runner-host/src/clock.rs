//! Formats timestamps: in local time for people, in UTC for programs and git.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// Milliseconds since 1970. Used for logs and waits, never in a commit.
pub fn now_ms() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}

/// Local time, without the date if it is today. `None` if it is out of range.
pub fn local(unix_ms: u64) -> Option<String> {
    let time = timestamp(unix_ms)?.to_zoned(TimeZone::system());
    let format = if time.date() == Zoned::now().date() { "%H:%M:%S" } else { "%Y-%m-%d %H:%M:%S" };
    Some(time.strftime(format).to_string())
}

/// RFC 3339 in UTC: `2026-11-16T05:00:03Z`.
pub fn utc(unix_ms: u64) -> Option<String> {
    timestamp(unix_ms / 1000 * 1000).map(|time| time.to_string())
}

/// The current time as git writes it: Unix seconds and UTC offset.
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
    fn utc_has_whole_seconds_and_rejects_what_is_out_of_range() {
        assert_eq!(utc(1_794_805_203_999).as_deref(), Some("2026-11-16T05:00:03Z"));
        assert_eq!((utc(u64::MAX), local(u64::MAX)), (None, None));
    }
}
