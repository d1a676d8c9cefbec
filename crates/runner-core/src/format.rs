//! Formats amounts, durations and counts for people.

use std::time::Duration;

/// `4:12`, `1:52:07`.
pub fn clock(time: Duration) -> String {
    let secs = time.as_secs();
    let (hours, minutes, secs) = (secs / 3600, secs / 60 % 60, secs % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{secs:02}") } else { format!("{minutes}:{secs:02}") }
}

/// `950`, `12.3k`, `4.56M`.
pub fn tokens(count: u64) -> String {
    let scaled = |unit: u64, digits: usize, name: &str| {
        let tenth = unit / 10_u64.pow(u32::try_from(digits).unwrap_or(0));
        let parts = count / tenth.max(1);
        let scale = 10_u64.pow(u32::try_from(digits).unwrap_or(0));
        let fraction = format!("{:0digits$}", parts % scale);
        let fraction = fraction.trim_end_matches('0');
        let point = if fraction.is_empty() { "" } else { "." };
        format!("{}{point}{fraction}{name}", parts / scale)
    };
    match count {
        0..=9_999 => count.to_string(),
        10_000..=999_999 => scaled(1_000, 1, "k"),
        _ => scaled(1_000_000, 2, "M"),
    }
}

/// `$1.25`; amounts below a cent are exact.
pub fn dollars(microdollars: u64) -> String {
    let (whole, rest) = (microdollars / 1_000_000, microdollars % 1_000_000);
    if microdollars > 0 && microdollars < 10_000 {
        return format!("${whole}.{}", format!("{rest:06}").trim_end_matches('0'));
    }
    format!("${whole}.{:02}", rest / 10_000)
}

/// `45 s`, `10 min`, `1 h 30 min`: a duration that was configured or is left, to the minute once it is longer than one.
pub fn duration(secs: u64) -> String {
    let minutes = secs.div_ceil(60);
    match (secs, minutes / 60, minutes % 60) {
        (0..=59, _, _) => format!("{secs} s"),
        (_, 0, minutes) => format!("{minutes} min"),
        (_, hours, 0) => format!("{hours} h"),
        (_, hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

/// A count with its noun: `1 task`, `2 tasks`.
pub fn counted(count: impl TryInto<u64>, one: &str, many: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_shows_hours_only_where_there_are_any() {
        let clock = |secs| clock(Duration::from_secs(secs));
        assert_eq!(
            (clock(5).as_str(), clock(252).as_str(), clock(6727).as_str()),
            ("0:05", "4:12", "1:52:07")
        );
    }

    #[test]
    fn durations_are_rounded_up_to_the_minute() {
        let read = [45, 60, 600, 601, 3_600, 5_400, 72_000].map(duration);
        assert_eq!(read, ["45 s", "1 min", "10 min", "11 min", "1 h", "1 h 30 min", "20 h"]);
    }

    #[test]
    fn tokens_and_dollars_are_rounded_down_to_a_few_digits() {
        let read = [0, 9_999, 12_345, 999_999, 1_000_000, 4_567_890].map(tokens);
        assert_eq!(read, ["0", "9999", "12.3k", "999.9k", "1M", "4.56M"]);
        let read = [0, 1, 5_000, 10_000, 1_250_000, 25_000_000].map(dollars);
        assert_eq!(read, ["$0.00", "$0.000001", "$0.005", "$0.01", "$1.25", "$25.00"]);
    }
}
