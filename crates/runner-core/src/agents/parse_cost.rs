//! Dollars as integer millionths, without floating point.

use serde_json::Number;

/// Decimal places of a dollar that are kept.
const DECIMALS: usize = 6;

/// A number of dollars in millionths, rounded to the nearest. None if it is negative or too large.
pub(super) fn microdollars(dollars: &Number) -> Option<u64> {
    let text = dollars.to_string();
    let (digits, exponent) = match text.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits.to_owned(), exponent.parse::<i32>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let places = i32::try_from(DECIMALS).ok()?.checked_add(exponent)?;
    shifted(whole, fraction, places)
}

/// The number with its decimal point moved `places` to the right, rounded.
fn shifted(whole: &str, fraction: &str, places: i32) -> Option<u64> {
    let point = i32::try_from(whole.len()).ok()?.checked_add(places)?;
    let digits: String = [whole, fraction].concat();
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let Ok(point) = usize::try_from(point) else { return Some(0) };
    let integer_digits: String = digits.chars().chain(std::iter::repeat('0')).take(point.min(64)).collect();
    let rounds_up = digits.as_bytes().get(point).is_some_and(|digit| *digit >= b'5');
    let integer = if integer_digits.is_empty() { 0 } else { integer_digits.parse::<u64>().ok()? };
    integer.checked_add(u64::from(rounds_up))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_are_rounded_to_millionths() {
        for (dollars, micro) in [
            ("0", Some(0)),
            ("0.010700000000000001", Some(10_700)),
            ("0.98125", Some(981_250)),
            ("12", Some(12_000_000)),
            ("1.9999999", Some(2_000_000)),
            ("1e-7", Some(0)),
            ("6e-7", Some(1)),
            ("1.5e-3", Some(1_500)),
            ("2.5e2", Some(250_000_000)),
            ("1e-40", Some(0)),
            ("1e40", None),
            ("-1", None),
            ("-1e-8", None),
        ] {
            let number: Number = serde_json::from_str(dollars).unwrap();
            assert_eq!(microdollars(&number), micro, "{dollars}");
        }
    }
}
