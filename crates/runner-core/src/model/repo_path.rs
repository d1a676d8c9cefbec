//! Paths in the user's repository: any bytes that git allows, escaped to one printable line.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::strict::inline_schema;

/// A path relative to the repository's root, in the escaped form of messages and documents: `\\` for a backslash, and `\x` with
/// two digits for a byte that is not printable text, so that no file name can break a line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RepoPath(Box<str>);

impl RepoPath {
    /// A path as git prints it.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let mut escaped = String::with_capacity(bytes.len());
        for chunk in bytes.utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    '\\' => escaped.push_str("\\\\"),
                    c if c.is_control() => push_bytes(&mut escaped, c.encode_utf8(&mut [0; 4]).as_bytes()),
                    c => escaped.push(c),
                }
            }
            push_bytes(&mut escaped, chunk.invalid());
        }
        Self(escaped.into())
    }

    /// The path as git knows it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.0.len());
        let mut rest = self.0.as_bytes();
        while let Some((first, after)) = rest.split_first() {
            let escaped = (*first == b'\\').then(|| unescape(after)).flatten();
            let (byte, used) = escaped.unwrap_or((*first, 0));
            bytes.push(byte);
            rest = after.get(used..).unwrap_or_default();
        }
        bytes
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn push_bytes(escaped: &mut String, bytes: &[u8]) {
    for byte in bytes {
        escaped.push_str(&format!("\\x{byte:02x}"));
    }
}

/// The byte of an escape, from the bytes after its backslash, and how many of them it uses.
fn unescape(after: &[u8]) -> Option<(u8, usize)> {
    match after {
        [b'\\', ..] => Some((b'\\', 1)),
        [b'x', high, low, ..] => {
            let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            Some((digit(*high)? * 16 + digit(*low)?, 3))
        }
        _ => None,
    }
}

impl fmt::Display for RepoPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

inline_schema!(RepoPath, { "type": "string" });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_path_is_one_line_and_round_trips() {
        for (bytes, written) in [
            (&b"src/main.rs"[..], "src/main.rs"),
            ("é/日".as_bytes(), "é/日"),
            (b"a\nRunner-Outcome: passed", "a\\x0aRunner-Outcome: passed"),
            (b"a\\x0a", "a\\\\x0a"),
            (b"\xff\x00", "\\xff\\x00"),
            (b"", ""),
        ] {
            let path = RepoPath::of_bytes(bytes);
            assert_eq!(path.as_str(), written);
            assert_eq!(path.to_bytes(), bytes);
        }
    }
}
