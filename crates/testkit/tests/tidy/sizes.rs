//! The length of source files, and names that files must not have.

use crate::repository::{assert_none, files};

const LINES_MAX: usize = 500;

/// Longer files, each with the reason. Remove the entry when the file is short enough.
const LONGER: &[(&str, &str)] = &[];

/// Names that do not describe the content.
const VAGUE_NAMES: &[&str] = &["common.rs", "helpers.rs", "manager.rs", "types.rs", "utils.rs"];

#[test]
fn source_files_are_short() {
    let mut violations = Vec::new();
    for file in files().iter().filter(|file| file.is_rust()) {
        let lines = file.text.lines().count();
        let is_exempt = LONGER.iter().any(|(path, _)| *path == file.path);
        if lines > LINES_MAX && !is_exempt {
            violations.push(format!("{}: {lines} lines, at most {LINES_MAX}: split it by topic", file.path));
        }
        if lines <= LINES_MAX && is_exempt {
            violations
                .push(format!("{}: {lines} lines, no exception needed: remove it from `LONGER`", file.path));
        }
    }
    assert_none(&violations);
}

#[test]
fn source_files_are_named_after_their_content() {
    let violations: Vec<String> = files()
        .iter()
        .filter(|file| VAGUE_NAMES.contains(&file.name()))
        .map(|file| format!("{}: name it after its content", file.path))
        .collect();
    assert_none(&violations);
}
