//! Finds the lines of a log that show what failed: the assertion with its values, not only the name of the test.

use std::io;

use crate::api::FailureExcerpt;
use crate::read::confined_fs::RegularFile;
use crate::read::error_lines::is_error_line;
use crate::read::logs::{each_line, hit_text, is_protocol};

/// The most lines of an excerpt.
const LINES_MAX: usize = 8;

/// What a line contains that starts the message of a failed assertion.
const ASSERTION: &[&str] =
    &[" panicked at ", "AssertionError", "assertion failed", "Assertion failed", "assertion `", "Expected:"];
/// What such a line starts with, after white space.
const ASSERTION_START: &[&str] = &["E   ", "panic:", "expected ", "Error: ", "error["];
/// Where the message of a failure ends.
const END_START: &[&str] =
    &["note: ", "stack backtrace", "test ", "failures:", "FAILED ", "---- ", "=====", "-----"];

/// The excerpt of a log: from its first assertion on, or else from its first error line.
pub(crate) fn failure_excerpt(file: &RegularFile) -> io::Result<Option<FailureExcerpt>> {
    let mut search = ExcerptSearch::default();
    each_line(file, 0, file.stamp.bytes, |line, _| search.visit(hit_text(line)))?;
    Ok(search.assertion.or(search.error).map(PartialExcerpt::finish))
}

#[derive(Debug, Default)]
struct ExcerptSearch {
    number: u64,
    error: Option<PartialExcerpt>,
    assertion: Option<PartialExcerpt>,
}

/// An excerpt, to which lines are added until it ends.
#[derive(Debug)]
struct PartialExcerpt {
    line: u64,
    lines: Vec<String>,
    is_open: bool,
}

impl PartialExcerpt {
    fn begin(line: u64, text: String) -> Self {
        Self { line, lines: vec![text], is_open: true }
    }

    fn add(&mut self, text: &str) {
        let trimmed = text.trim_start();
        let is_end =
            trimmed.is_empty() || is_protocol(text) || END_START.iter().any(|word| trimmed.starts_with(word));
        if is_end || self.lines.len() >= LINES_MAX {
            self.is_open = false;
        }
        if self.is_open {
            self.lines.push(text.to_owned());
        }
    }

    fn finish(self) -> FailureExcerpt {
        let location = self.lines.iter().find_map(|line| location(line));
        FailureExcerpt { line: self.line, lines: self.lines, location }
    }
}

impl ExcerptSearch {
    /// Takes the next line. Returns whether more lines are needed.
    fn visit(&mut self, text: String) -> bool {
        if let Some(excerpt) = self.error.as_mut() {
            excerpt.add(&text);
        }
        if let Some(excerpt) = self.assertion.as_mut() {
            excerpt.add(&text);
            return excerpt.is_open;
        }
        if is_protocol(&text) {
            // Nothing of it is for people.
        } else if is_assertion(&text) {
            self.assertion = Some(PartialExcerpt::begin(self.number, text));
        } else if self.error.is_none() && is_error_line(&text) {
            self.error = Some(PartialExcerpt::begin(self.number, text));
        }
        self.number += 1;
        true
    }
}

fn is_assertion(line: &str) -> bool {
    let text = line.trim_start();
    ASSERTION.iter().any(|word| text.contains(word))
        || ASSERTION_START.iter().any(|word| text.starts_with(word))
}

/// The place in a file that a line names: `src/limit.rs:88:9`, or `File "a.py", line 3`.
fn location(line: &str) -> Option<String> {
    if let Some((path, rest)) = line.split_once("File \"").and_then(|(_, rest)| rest.split_once("\", line "))
    {
        let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
        return Some(format!("{path}:{number}"));
    }
    line.split_whitespace().find_map(|word| {
        let word = word.trim_matches(|letter: char| !letter.is_alphanumeric() && !"./_-".contains(letter));
        let (path, place) = word.split_once(':')?;
        let is_place =
            place.split(':').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
        let is_file = path.rsplit_once('.').is_some_and(|(name, kind)| !name.is_empty() && !kind.is_empty());
        (is_place && is_file && !path.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
            .then(|| word.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::confined_fs::ConfinedDir;

    fn excerpt(text: &str) -> Option<FailureExcerpt> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("log"), text).unwrap();
        failure_excerpt(&ConfinedDir::open(folder.path()).unwrap().file("log").unwrap()).unwrap()
    }

    #[test]
    fn the_assertion_is_found_behind_the_name_of_the_test() {
        let log = "test a ... ok\ntest paging::twice ... FAILED\n\n---- paging::twice stdout ----\n\
            thread 'paging::twice' (7) panicked at src/paging.rs:12:5:\n\
            assertion `left == right` failed: booked again\n  left: 2\n right: 1\nnote: run with\n";
        let found = excerpt(log).unwrap();
        assert_eq!((found.line, found.location.as_deref()), (4, Some("src/paging.rs:12:5")));
        assert_eq!(found.lines.len(), 4);
        assert_eq!(found.lines.last().map(String::as_str), Some("right: 1"));
    }

    #[test]
    fn places_of_other_languages_are_found() {
        let python = "  File \"tests/test_a.py\", line 3, in test_b\n    assert f(2) == 1\nAssertionError\n";
        assert_eq!(excerpt(python).unwrap().lines, ["AssertionError"]);
        assert_eq!(
            location("  File \"tests/test_a.py\", line 3, in test_b").as_deref(),
            Some("tests/test_a.py:3")
        );
        assert_eq!(
            location("    at Object.<anonymous> (src/a.test.ts:4:9)").as_deref(),
            Some("src/a.test.ts:4:9")
        );
        assert_eq!(location("--- FAIL: TestX (0.00s)"), None);
        assert_eq!(location("listening on 127.0.0.1:8080"), None);
    }

    #[test]
    fn without_an_assertion_the_first_error_is_shown() {
        let found = excerpt("building\nerror: no such file\n  --> src/a.rs:3:1\n\nmore\n").unwrap();
        assert_eq!((found.line, found.location.as_deref()), (1, Some("src/a.rs:3:1")));
        assert_eq!(found.lines.len(), 2);
        assert_eq!(excerpt("all is well\n"), None);
        let mixed =
            "{\"text\":\"AssertionError\"}\nthread 'main' panicked at a.rs:1:1: boom\n{\"type\":\"end\"}\n";
        let found = excerpt(mixed).unwrap();
        assert_eq!((found.line, found.lines.len()), (1, 1), "{:?}", found.lines);
    }
}
