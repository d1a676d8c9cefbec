//! Every error code and stop reason has a page that `runner explain` prints, and every page belongs to a code.

use std::collections::BTreeSet;

use crate::repository::{assert_none, files};

const PAGES: &str = "crates/runner-term/src/explain/errors.md";

/// What stands before a code in the source: the functions that take one as their first argument, and the field.
const BEFORE_CODE: &[&str] = &[
    "ErrorAdvice::new(",
    "CommandError::new(",
    "CommandError::refused(",
    "Self::refused(",
    "advice(",
    "refused(",
    "code: ",
];

#[test]
fn every_error_code_has_a_page() {
    let files = files();
    let pages = files.iter().find(|file| file.path == PAGES).map_or("", |file| file.text.as_str());
    let pages: BTreeSet<&str> = pages.lines().filter_map(|line| line.strip_prefix("## ")).collect();
    let mut violations = Vec::new();
    for file in files.iter().filter(|file| file.is_product()) {
        for code in codes(&file.text).difference(&pages) {
            violations.push(format!("{}: the error code `{code}` has no page in {PAGES}", file.path));
        }
    }
    assert_none(&violations);
}

#[test]
fn every_page_belongs_to_a_code() {
    let files = files();
    let sources: Vec<&str> =
        files.iter().filter(|file| file.is_product()).map(|file| file.text.as_str()).collect();
    let is_used = |code: &str| sources.iter().any(|text| text.contains(&format!("\"{code}\"")));
    let pages = files.iter().find(|file| file.path == PAGES).map_or("", |file| file.text.as_str());
    let unused = pages.lines().filter_map(|line| line.strip_prefix("## ")).filter(|code| !is_used(code));
    let violations: Vec<String> =
        unused.map(|code| format!("{PAGES}: no error has the code `{code}`; delete the page")).collect();
    assert_none(&violations);
}

/// The error codes in a source: the literals behind the known prefixes.
fn codes(source: &str) -> BTreeSet<&str> {
    let behind = |prefix: &'static str| {
        source.match_indices(prefix).filter_map(move |(at, _)| literal(source, at + prefix.len()))
    };
    BEFORE_CODE.iter().flat_map(|prefix| behind(prefix)).collect()
}

/// The literal at this place, if it can be a code.
fn literal(source: &str, at: usize) -> Option<&str> {
    let (literal, _) = source.get(at..)?.trim_start().strip_prefix('"')?.split_once('"')?;
    let is_code =
        !literal.is_empty() && literal.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    is_code.then_some(literal)
}
