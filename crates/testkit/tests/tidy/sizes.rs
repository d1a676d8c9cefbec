//! How long a file may be, and what it may not be called.

use crate::repository::{assert_none, files};

const LINES_MAX: usize = 500;

/// Longer all the same, and why. Whoever cuts one down takes it off the list.
const LONGER: &[(&str, &str)] = &[];

/// Names that say nothing about what a file holds.
const EMPTY_NAMES: &[&str] = &["common.rs", "helpers.rs", "manager.rs", "types.rs", "utils.rs"];

#[test]
fn no_source_file_is_longer_than_one_can_keep_in_mind() {
    let mut broken = Vec::new();
    for file in files().iter().filter(|file| file.is_rust()) {
        let lines = file.text.lines().count();
        let excepted = LONGER.iter().any(|(path, _)| *path == file.path);
        if lines > LINES_MAX && !excepted {
            broken.push(format!(
                "{}: {lines} lines, at most {LINES_MAX}: split it by what it holds",
                file.path
            ));
        }
        if lines <= LINES_MAX && excepted {
            broken.push(format!("{}: {lines} lines, no exception needed: take it off `LONGER`", file.path));
        }
    }
    assert_none(&broken);
}

#[test]
fn every_source_file_is_named_after_what_it_holds() {
    let named_empty = |name: &str| EMPTY_NAMES.contains(&name);
    let broken: Vec<String> = files()
        .iter()
        .filter(|file| named_empty(file.name()))
        .map(|file| format!("{}: name it after what it holds", file.path))
        .collect();
    assert_none(&broken);
}
