//! Paths of files in the user's repository: any bytes that git allows, written as one safe line.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::strict::inline_schema;

/// A path from the repository's root. Held as it is written in messages and documents: a backslash stands
/// doubled, and a byte that is no printable text as `\x` and two digits, so that no name can break a line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RepoPath(Box<str>);

impl RepoPath {
    /// Takes a path as git gives it.
    pub fn of_bytes(bytes: &[u8]) -> Self {
        let mut written = String::with_capacity(bytes.len());
        for chunk in bytes.utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    '\\' => written.push_str("\\\\"),
                    c if c.is_control() => push_bytes(&mut written, c.encode_utf8(&mut [0; 4]).as_bytes()),
                    c => written.push(c),
                }
            }
            push_bytes(&mut written, chunk.invalid());
        }
        Self(written.into())
    }

    /// The path as git has it.
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

    /// The path as it is written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn push_bytes(written: &mut String, bytes: &[u8]) {
    for byte in bytes {
        written.push_str(&format!("\\x{byte:02x}"));
    }
}

/// What stands behind a backslash, and how many bytes it takes there.
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
    fn any_path_is_one_line_and_comes_back() {
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
