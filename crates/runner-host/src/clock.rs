//! Timestamps, in local time for people and in UTC for programs and git; and whether the machine was restarted.

use std::time::{SystemTime, UNIX_EPOCH};

use jiff::civil::Time;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// Milliseconds since 1970. Used for logs and waits, never in a commit.
pub fn now_ms() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}

/// Identifies the time since the machine was started. None if the system has no such identifier.
pub(crate) fn boot_id() -> Option<String> {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(id.trim().to_owned())
}

/// Local time with its zone, without the date if it is today. `None` if it is out of range.
pub fn local(unix_ms: u64) -> Option<String> {
    let time = timestamp(unix_ms)?.to_zoned(TimeZone::system());
    let format = if time.date() == Zoned::now().date() { "%H:%M:%S %Z" } else { "%Y-%m-%d %H:%M:%S %Z" };
    Some(time.strftime(format).to_string())
}

/// The next time at which the clock on the wall shows this, in milliseconds since 1970. `None` if no day has such a time.
pub fn next_local(hour: i8, minute: i8) -> Option<u64> {
    next_local_after(&Zoned::now(), hour, minute)
}

fn next_local_after(now: &Zoned, hour: i8, minute: i8) -> Option<u64> {
    let time = Time::new(hour, minute, 0, 0).ok()?;
    let days = [now.date(), now.date().tomorrow().ok()?];
    let times =
        days.into_iter().filter_map(|day| day.to_datetime(time).to_zoned(now.time_zone().clone()).ok());
    let next = times.into_iter().find(|next| next > now)?;
    u64::try_from(next.timestamp().as_millisecond()).ok()
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
    fn a_time_on_the_wall_is_today_or_tomorrow() {
        // 2026-11-16T05:00:03Z
        let now = timestamp(1_794_805_203_000).unwrap().to_zoned(TimeZone::UTC);
        let next = |hour, minute| next_local_after(&now, hour, minute).and_then(utc);
        assert_eq!(next(7, 30).as_deref(), Some("2026-11-16T07:30:00Z"));
        assert_eq!(next(5, 0).as_deref(), Some("2026-11-17T05:00:00Z"));
        assert_eq!(next(24, 0), None);
    }

    #[test]
    fn utc_has_whole_seconds_and_rejects_what_is_out_of_range() {
        assert_eq!(utc(1_794_805_203_999).as_deref(), Some("2026-11-16T05:00:03Z"));
        assert_eq!((utc(u64::MAX), local(u64::MAX)), (None, None));
    }
}
