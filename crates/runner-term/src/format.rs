//! Numbers and times, as people read them.

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

/// `$1.25`; below a cent as exactly as it is known.
pub fn dollars(microdollars: u64) -> String {
    let (whole, rest) = (microdollars / 1_000_000, microdollars % 1_000_000);
    if microdollars > 0 && microdollars < 10_000 {
        return format!("${whole}.{}", format!("{rest:06}").trim_end_matches('0'));
    }
    format!("${whole}.{:02}", rest / 10_000)
}

/// So many things, in words: `1 leaf`, `2 leaves`.
pub fn counted(count: impl TryInto<u64>, one: &str, many: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_like_a_clock() {
        let clock = |secs| clock(Duration::from_secs(secs));
        assert_eq!(
            (clock(5).as_str(), clock(252).as_str(), clock(6727).as_str()),
            ("0:05", "4:12", "1:52:07")
        );
    }

    #[test]
    fn amounts_read_like_amounts() {
        let read = [0, 9_999, 12_345, 999_999, 1_000_000, 4_567_890].map(tokens);
        assert_eq!(read, ["0", "9999", "12.3k", "999.9k", "1M", "4.56M"]);
        let read = [0, 1, 5_000, 10_000, 1_250_000, 25_000_000].map(dollars);
        assert_eq!(read, ["$0.00", "$0.000001", "$0.005", "$0.01", "$1.25", "$25.00"]);
    }
}
