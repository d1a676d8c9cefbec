//! The documents say what is true today: their links lead somewhere, the map of the code is complete, and those that
//! are read first stay short.

use std::collections::BTreeSet;

use pulldown_cmark::{Event, Parser, Tag};

use crate::repository::{File, assert_none, files, root};

/// Document, and how many lines it may have.
const LINES_MAX: &[(&str, usize)] = &[("README.md", 100), ("ARCHITECTURE.md", 190)];

const MAP: &str = "ARCHITECTURE.md";

/// Where a path in the map is one of this repository, and not, say, of the user's.
const FOLDERS: &[&str] = &[".ci/", "crates/", "docs/", "eval/", "schemas/", "scripts/", "ui/"];

fn is_document(file: &File) -> bool {
    file.path.ends_with(".md") && (file.path.starts_with("docs/") || !file.path.contains('/'))
}

/// Every link and image of the document that leads to a file, with its offset.
fn links_to_files(text: &str) -> Vec<(String, usize)> {
    let mut links = Vec::new();
    for (event, range) in Parser::new(text).into_offset_iter() {
        let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event else { continue };
        let path = dest_url.split('#').next().unwrap_or_default();
        if !path.is_empty() && !path.contains("://") && !path.starts_with("mailto:") {
            links.push((path.to_owned(), range.start));
        }
    }
    links
}

#[test]
fn every_link_between_documents_leads_to_a_file() {
    let mut broken = Vec::new();
    for file in files().iter().filter(|file| is_document(file)) {
        let folder = file.path.strip_suffix(file.name()).unwrap_or_default();
        for (link, offset) in links_to_files(&file.text) {
            if link.starts_with('/') || !root().join(folder).join(&link).exists() {
                broken.push(format!("{}:{}: `{link}` is not there", file.path, file.line_at(offset)));
            }
        }
    }
    assert_none(&broken);
}

#[test]
fn the_documents_read_first_are_short() {
    let mut broken = Vec::new();
    for file in &files() {
        let lines = file.text.lines().count();
        if let Some((_, most)) = LINES_MAX.iter().find(|(path, most)| *path == file.path && lines > *most) {
            broken.push(format!("{}: {lines} lines, at most {most}: move the details to docs/", file.path));
        }
    }
    assert_none(&broken);
}

/// The paths that the map names, from the root, with the line of each.
///
/// A path is a word that starts with one of `FOLDERS`, or ends in `.rs`. Under a heading that names a crate
/// (`crates/runner-core`, or `runner-core` alone) a source needs no more than its path under that crate's `src/`
/// (`tree/edit.rs`). Words with `*`, `<`, `{` or `…` in them are patterns, and name no file.
fn paths_in_map(text: &str, crates: &BTreeSet<&str>) -> Vec<(String, usize)> {
    let mut paths = Vec::new();
    let mut sources = String::new();
    for (index, line) in text.lines().enumerate() {
        let words = line.split(|char: char| char.is_whitespace() || "`|()[],;:\"'".contains(char));
        let words = words.map(|word| word.trim_end_matches('.')).filter(|word| !word.is_empty());
        if line.starts_with('#') {
            let named = words
                .clone()
                .find_map(|word| crates.get(word.trim_start_matches("crates/").trim_end_matches('/')));
            sources = named.map(|name| format!("crates/{name}/src/")).unwrap_or_default();
        }
        for word in words.filter(|word| !word.contains(['*', '<', '{', '…'])) {
            if FOLDERS.iter().any(|folder| word.starts_with(folder)) {
                paths.push((word.to_owned(), index + 1));
            } else if word.ends_with(".rs") {
                paths.push((format!("{sources}{word}"), index + 1));
            }
        }
    }
    paths
}

fn crate_of(file: &File) -> Option<&str> {
    file.path.strip_prefix("crates/")?.split('/').next()
}

#[test]
fn the_map_names_every_source_file_and_no_other() {
    let files = files();
    // A repository without a map breaks no promise.
    let Some(map) = files.iter().find(|file| file.path == MAP) else { return };
    let crates: BTreeSet<&str> = files.iter().filter_map(crate_of).collect();
    let paths = paths_in_map(&map.text, &crates);

    let is_source = |file: &&File| file.is_rust() && file.path.split('/').nth(2) == Some("src");
    let missing = |file: &&File| !paths.iter().any(|(path, _)| *path == file.path);
    let mut broken: Vec<String> = files
        .iter()
        .filter(|file| crate_of(file).is_some())
        .filter(is_source)
        .filter(missing)
        .map(|file| format!("{MAP}: `{}` has no line", file.path))
        .collect();
    let gone = paths.iter().filter(|(path, _)| !root().join(path).exists());
    broken.extend(gone.map(|(path, line)| format!("{MAP}:{line}: `{path}` is not there")));
    assert_none(&broken);
}

#[test]
fn the_map_is_read_by_its_headings() {
    let text = "\
`main.rs` of no crate, `.runner/state` of the user, `schemas/*.json` a pattern.
## `crates/runner-core`: the rules
| `tree/edit.rs` | uses tree.rs. |
## runner
```
main.rs   starts, like crates/runner-host/src/lib.rs
```
";
    let paths = paths_in_map(text, &BTreeSet::from(["runner", "runner-core"]));
    let expected = [
        ("main.rs", 1),
        ("crates/runner-core", 2),
        ("crates/runner-core/src/tree/edit.rs", 3),
        ("crates/runner-core/src/tree.rs", 3),
        ("crates/runner/src/main.rs", 6),
        ("crates/runner-host/src/lib.rs", 6),
    ];
    assert_eq!(paths, expected.map(|(path, line)| (path.to_owned(), line)));
}

#[test]
fn only_links_to_files_are_followed() {
    let text = "[a](docs/a.md#part) ![b](b.png) [c](#here) [d](https://example.org/d) `[e](e.md)`\n\n[f]\n\n[f]: f.md\n";
    let found: Vec<String> = links_to_files(text).into_iter().map(|(link, _)| link).collect();
    assert_eq!(found, ["docs/a.md", "b.png", "f.md"]);
}
