//! Which environment variables hold keys, and how their values are spelled in output.

use serde_json::Value;

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
const KEY_WORDS: [&str; 18] = [
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
    "PWD",
    "AUTH",
    "CREDENTIAL",
    "CREDENTIALS",
    "BEARER",
    "COOKIE",
];
/// Endings of a word in such a name: `APIKEY`, `GHTOKEN`, `DBPASSWORD`.
const KEY_ENDINGS: [&str; 7] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "PWD"];
/// The folders of a shell, whatever their names end with.
const FOLDERS: [&str; 2] = ["PWD", "OLDPWD"];
/// Last words of a name that is about a login, and not the login: SSH_AUTH_SOCK, AUTH_TYPE.
const OF_LOGINS: [&str; 14] = [
    "SOCK", "TYPE", "MODE", "METHOD", "URL", "URI", "HOST", "PORT", "FILE", "PATH", "DIR", "PROVIDER",
    "DOMAIN", "ENABLED",
];

/// Whether a variable is named like a key, a token, a secret or a password.
pub fn is_key_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    if FOLDERS.contains(&name.as_str()) {
        return false;
    }
    let words: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let is_about_login = words.last().is_some_and(|word| OF_LOGINS.contains(word));
    let is_key = |word: &&str| match *word {
        "AUTH" => !is_about_login,
        word => KEY_WORDS.contains(&word) || KEY_ENDINGS.iter().any(|ending| word.ends_with(ending)),
    };
    words.iter().any(is_key)
}

/// Whether a member of a login file is named like a key: `accessToken`, `refresh`, `OPENAI_API_KEY`.
fn is_login_member(name: &str) -> bool {
    let mut words = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && words.ends_with(|before: char| before.is_ascii_lowercase()) {
            words.push('_');
        }
        words.push(c);
    }
    matches!(name, "access" | "refresh") || is_key_name(&words)
}

/// The keys in a file with a login: strings of JSON whose member is named like a key, and variables.
pub fn keys_in_login_file(text: &str) -> Vec<String> {
    let mut keys = Vec::new();
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        add_members(&value, &mut keys);
        return keys;
    }
    for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
        let name = name.trim().trim_start_matches("export ").trim();
        if is_key_name(name) {
            keys.push(value.trim().trim_matches(['"', '\'']).to_owned());
        }
    }
    keys
}

fn add_members(value: &Value, keys: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member.as_str() {
                    Some(text) if is_login_member(name) => keys.push(text.to_owned()),
                    Some(_) | None => add_members(member, keys),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| add_members(item, keys)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The spellings of a value: as it is, and encoded in every common way. None for a value that is too short or too simple.
pub(super) fn spellings(name: &str, value: &[u8]) -> Vec<KeyValue> {
    let value = value.trim_ascii();
    let kinds = kinds_of(value);
    let bytes_min = if kinds > 1 { VALUE_BYTES_MIN } else { PLAIN_VALUE_BYTES_MIN };
    if value.len() < bytes_min || value.len() > VALUE_BYTES_MAX {
        return Vec::new();
    }
    let is_unmistakable = value.len() >= UNMISTAKABLE_BYTES_MIN && kinds >= 3;
    let mut spellings = vec![value.to_vec()];
    for spelling in super::encodings::of(value) {
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
