//! Numbers and durations as people read them.

use std::time::Duration;

/// `4:12`, `1:52:07`.
pub fn clock(time: Duration) -> String {
    let total = time.as_secs();
    let hours = total / 3600;
    let minutes = total / 60 % 60;
    let secs = total % 60;
    if hours > 0 { format!("{hours}:{minutes:02}:{secs:02}") } else { format!("{minutes}:{secs:02}") }
}

/// `950`, `12.3k`, `4.56M`, rounded down.
pub fn tokens(count: u64) -> String {
    match count {
        0..=9_999 => count.to_string(),
        10_000..=999_999 => {
            format!("{}k", trim_fraction(&format!("{}.{}", count / 1_000, count / 100 % 10)))
        }
        _ => format!("{}M", trim_fraction(&format!("{}.{:02}", count / 1_000_000, count / 10_000 % 100))),
    }
}

/// Drops the zeros at the end of a decimal fraction.
fn trim_fraction(number: &str) -> &str {
    number.trim_end_matches('0').trim_end_matches('.')
}

/// `$1.25`; an amount below a cent keeps all its digits.
pub fn dollars(microdollars: u64) -> String {
    let whole = microdollars / 1_000_000;
    let fraction = microdollars % 1_000_000;
    if microdollars > 0 && microdollars < 10_000 {
        return format!("${whole}.{}", format!("{fraction:06}").trim_end_matches('0'));
    }
    format!("${whole}.{:02}", fraction / 10_000)
}

/// `45 s`, `10 min`, `1 h 30 min`: rounded up to the minute once it is longer than one.
pub fn duration(secs: u64) -> String {
    let minutes = secs.div_ceil(60);
    match (secs, minutes / 60, minutes % 60) {
        (0..=59, _, _) => format!("{secs} s"),
        (_, 0, minutes) => format!("{minutes} min"),
        (_, hours, 0) => format!("{hours} h"),
        (_, hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

/// `1 task`, `2 tasks`.
pub fn counted(count: impl TryInto<u64>, one: &str, many: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_like_a_clock() {
        let texts = [5, 252, 6727].map(|secs| clock(Duration::from_secs(secs)));
        assert_eq!(texts, ["0:05", "4:12", "1:52:07"]);
    }

    #[test]
    fn long_durations_are_rounded_up_to_the_minute() {
        let texts = [45, 60, 600, 601, 3_600, 5_400, 72_000].map(duration);
        assert_eq!(texts, ["45 s", "1 min", "10 min", "11 min", "1 h", "1 h 30 min", "20 h"]);
    }

    #[test]
    fn tokens_and_dollars_are_shortened_by_size() {
        let texts = [0, 9_999, 12_345, 999_999, 1_000_000, 4_567_890].map(tokens);
        assert_eq!(texts, ["0", "9999", "12.3k", "999.9k", "1M", "4.56M"]);
        let texts = [0, 1, 5_000, 10_000, 1_250_000, 25_000_000].map(dollars);
        assert_eq!(texts, ["$0.00", "$0.000001", "$0.005", "$0.01", "$1.25", "$25.00"]);
    }
}
