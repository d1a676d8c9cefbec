//! Which environment variables hold keys, and how their values are spelled in output.

use super::KeyValue;

/// A shorter value is not redacted: `1` or `true` would make every log unreadable.
const VALUE_BYTES_MIN: usize = 8;
/// A value of only letters of one case, or only digits, must be as long as this: `postgres` is a password, and a word.
const PLAIN_VALUE_BYTES_MIN: usize = 16;
/// A longer value is not looked for.
const VALUE_BYTES_MAX: usize = 16 << 10;
/// From here on, with three kinds of characters, no other text has a value by chance.
const UNMISTAKABLE_BYTES_MIN: usize = 20;

/// Words in the name of a variable that holds a key.
const KEY_WORDS: [&str; 16] = [
    "KEY",
    "KEYS",
    "TOKEN",
    "TOKENS",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWORDS",
    "PASSWD",
    "PASSPHRASE",
    "PASS",
    "PAT",
    "CREDENTIAL",
    "CREDENTIALS",
    "BEARER",
    "COOKIE",
];
/// Endings of a word in such a name: `APIKEY`, `GHTOKEN`, `DBPASSWORD`.
const KEY_ENDINGS: [&str; 6] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE"];

/// Whether a variable is named like a key, a token, a secret or a password.
pub fn is_key_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    words.any(|word| KEY_WORDS.contains(&word) || KEY_ENDINGS.iter().any(|ending| word.ends_with(ending)))
}

/// The spellings of a value: as it is, in a JSON string, and in a URL. None for a value that is too short or too simple.
pub(super) fn spellings(name: &str, value: &[u8]) -> Vec<KeyValue> {
    let value = value.trim_ascii();
    let kinds = kinds_of(value);
    let bytes_min = if kinds > 1 { VALUE_BYTES_MIN } else { PLAIN_VALUE_BYTES_MIN };
    if value.len() < bytes_min || value.len() > VALUE_BYTES_MAX {
        return Vec::new();
    }
    let is_unmistakable = value.len() >= UNMISTAKABLE_BYTES_MIN && kinds >= 3;
    let mut spellings = vec![value.to_vec()];
    for spelling in [in_json(value), in_url(value)].into_iter().flatten() {
        if !spellings.contains(&spelling) {
            spellings.push(spelling);
        }
    }
    let key = |bytes| KeyValue { name: name.to_owned(), bytes, is_unmistakable };
    spellings.into_iter().map(key).collect()
}

/// How many of these a value has: small letters, capital letters, digits, others.
fn kinds_of(value: &[u8]) -> usize {
    let has = |is_kind: fn(&u8) -> bool| usize::from(value.iter().any(is_kind));
    has(u8::is_ascii_lowercase)
        + has(u8::is_ascii_uppercase)
        + has(u8::is_ascii_digit)
        + has(|byte| !byte.is_ascii_alphanumeric())
}

fn in_json(value: &[u8]) -> Option<Vec<u8>> {
    let quoted = serde_json::to_vec(std::str::from_utf8(value).ok()?).ok()?;
    Some(quoted.strip_prefix(b"\"")?.strip_suffix(b"\"")?.to_vec())
}

fn in_url(value: &[u8]) -> Option<Vec<u8>> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let text: String = value
        .iter()
        .map(|byte| if is_plain(*byte) { char::from(*byte).to_string() } else { format!("%{byte:02X}") })
        .collect();
    Some(text.into_bytes())
}
