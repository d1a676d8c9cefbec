//! The end of a usage limit, parsed from an agent's message.
//!
//! Codex gives a time in its local time zone, which the runner sets to UTC, and omits the date if it is today. Older
//! versions gave a duration, which is parsed too.

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// The time (seconds since 1970) after "try again at" or "try again in" in a message printed at `now`.
pub(super) fn parse_reset(message: &str, now_unix_secs: u64) -> Option<u64> {
    let lower = message.to_ascii_lowercase();
    if let Some((_, text)) = lower.split_once("try again at ") {
        return parse_time(text, now_unix_secs);
    }
    let (_, text) = lower.split_once("try again in ")?;
    now_unix_secs.checked_add(parse_duration(text)?)
}

/// `mar 17th, 2030 5:46 pm`, or `5:46 pm` of the same day.
fn parse_time(text: &str, now_unix_secs: u64) -> Option<u64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (days, secs) = match words.as_slice() {
        [month, day, year, time, half, ..] if month_number(month).is_some() => {
            let day: u64 = day.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().ok()?;
            (days_since_1970(year.parse().ok()?, month_number(month)?, day)?, seconds_of_day(time, half)?)
        }
        [time, half, ..] => (now_unix_secs / DAY, seconds_of_day(time, half)?),
        _ => return None,
    };
    // The message has no seconds: the limit has certainly ended when the minute has.
    Some(days * DAY + secs + MINUTE)
}

/// The seconds since midnight at `5:46`, `pm`.
fn seconds_of_day(time: &str, half: &str) -> Option<u64> {
    let (hour, minute) = time.split_once(':')?;
    let hour: u64 = hour.parse().ok()?;
    let minute: u64 = minute.parse().ok()?;
    let is_valid = (1..=12).contains(&hour) && minute < 60;
    let afternoon = match half.trim_end_matches('.') {
        "am" => 0,
        "pm" => 12,
        _ => return None,
    };
    is_valid.then_some((hour % 12 + afternoon) * HOUR + minute * MINUTE)
}

fn month_number(word: &str) -> Option<u64> {
    let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    months.iter().zip(1..).find(|(month, _)| **month == word).map(|(_, number)| number)
}

/// Days from 1970 to a date of the Gregorian calendar.
fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1970..=9999).contains(&year) || !(1..=31).contains(&day) {
        return None;
    }
    // Count years from March, so that the leap day is the last day of the year.
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let before = 365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1;
    before.checked_sub(719_468)
}

/// `3 days 4 hours 5 minutes`, `1.898s`, `20s`.
fn parse_duration(text: &str) -> Option<u64> {
    let mut total = None;
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let digits = word.trim_end_matches(|c: char| !c.is_ascii_digit());
        let Some(amount) = round_up(digits) else { break };
        let unit = match word.get(digits.len()..) {
            None | Some("" | ".") => words.next().unwrap_or_default(),
            Some(unit) => unit,
        };
        total = Some(total.unwrap_or(0_u64).checked_add(amount.checked_mul(unit_secs(unit)?)?)?);
        words.next_if(|word| *word == "and");
    }
    total
}

/// A number without its decimals, plus one if it has any.
fn round_up(digits: &str) -> Option<u64> {
    match digits.split_once('.') {
        Some((number, rest)) if rest.bytes().all(|digit| digit.is_ascii_digit()) => {
            number.parse::<u64>().ok()?.checked_add(1)
        }
        Some(_) => None,
        None => digits.parse().ok(),
    }
}

fn unit_secs(unit: &str) -> Option<u64> {
    match unit.trim_matches(|c: char| !c.is_ascii_alphabetic()) {
        "d" | "day" | "days" => Some(DAY),
        "h" | "hr" | "hour" | "hours" => Some(HOUR),
        "m" | "min" | "minute" | "minutes" => Some(MINUTE),
        "s" | "sec" | "second" | "seconds" => Some(1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-16 00:30:00 UTC.
    const NOW: u64 = 1_794_789_000;

    #[test]
    fn times_are_in_utc() {
        let at = |text: &str| parse_reset(&format!("You’ve hit your usage limit. Try again at {text}."), NOW);
        assert_eq!(at("Mar 17th, 2030 5:46 PM"), Some(1_900_000_020));
        assert_eq!(at("Jan 1st, 1970 12:00 AM"), Some(60));
        assert_eq!(at("Feb 29th, 2028 12:01 PM"), Some(1_835_438_520));
        assert_eq!(at("4:29 AM"), Some(NOW / DAY * DAY + 4 * HOUR + 30 * MINUTE));
        assert_eq!(at("12:30 AM"), Some(NOW + MINUTE));
        assert_eq!(at("12:30 AM. Visit us for more"), Some(NOW + MINUTE));
    }

    #[test]
    fn durations_start_now() {
        let after = |text: &str| parse_reset(text, NOW).map(|end| end - NOW);
        assert_eq!(after("… try again in 3 hours 5 minutes."), Some(3 * HOUR + 5 * MINUTE));
        assert_eq!(after("Try again in 4 days 3 hours."), Some(4 * DAY + 3 * HOUR));
        assert_eq!(after("Please try again in 1.898s. Visit us"), Some(2));
        assert_eq!(after("please try again in 20s."), Some(20));
    }

    #[test]
    fn messages_without_a_valid_time_give_none() {
        for text in [
            "",
            "try again later.",
            "try again at",
            "try again at noon",
            "try again at 25:00 PM",
            "try again at 5:60 PM",
            "try again in a while",
            "try again in 1.2.3s",
            "try again at Mar 40th, 2030 5:46 PM",
            "try again at Mar 1st, 99999 5:46 PM",
            "try again in 99999999999999999999 days",
        ] {
            assert_eq!(parse_reset(text, NOW), None, "{text}");
        }
    }
}
