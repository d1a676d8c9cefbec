//! The documents match the repository: links and paths lead to files, the documents read first stay short, and every
//! Rust source explains itself in a module comment.

use pulldown_cmark::{Event, Parser, Tag};

use crate::repository::{File, assert_none, files, root};

/// Document, and how many lines it may have.
const LINES_MAX: &[(&str, usize)] = &[("README.md", 100), ("VISION.md", 60), ("ARCHITECTURE.md", 250)];

const ARCHITECTURE: &str = "ARCHITECTURE.md";

/// A word that starts with one of these is a path in this repository.
const FOLDERS: &[&str] =
    &[".ci/", "adapters/", "crates/", "docs/", "eval/cases/", "schemas/", "scripts/", "ui/"];

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

/// The paths that a text names, from the root, with the line of each. Words with `*`, `<`, `{` or `…` in them are patterns.
fn paths_named(text: &str) -> Vec<(String, usize)> {
    let mut paths = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let words = line.split(|char: char| char.is_whitespace() || "`|()[],;:\"'".contains(char));
        let words = words.map(|word| word.split('#').next().unwrap_or_default().trim_end_matches('.'));
        let is_path = |word: &&str| FOLDERS.iter().any(|folder| word.starts_with(folder));
        let is_pattern = |word: &str| word.contains(['*', '<', '{', '…']);
        let named = words.filter(is_path).filter(|word| !is_pattern(word));
        paths.extend(named.map(|word| (word.to_owned(), index + 1)));
    }
    paths
}

#[test]
fn every_path_in_the_architecture_exists() {
    let files = files();
    let document = files.iter().find(|file| file.path == ARCHITECTURE).expect("it is tracked");
    let gone = paths_named(&document.text).into_iter().filter(|(path, _)| !root().join(path).exists());
    let broken: Vec<String> =
        gone.map(|(path, line)| format!("{ARCHITECTURE}:{line}: `{path}` does not exist")).collect();
    assert_none(&broken);
}

#[test]
fn every_source_file_begins_with_a_module_comment() {
    let broken: Vec<String> = files()
        .iter()
        .filter(|file| file.is_rust() && !file.text.starts_with("//! "))
        .map(|file| format!("{}: begin with `//!` and what the module is for", file.path))
        .collect();
    assert_none(&broken);
}

#[test]
fn paths_are_told_from_patterns_and_other_words() {
    let text = "`main.rs` and `.runner/state` are not ours.\n| `crates/runner`, schemas/*.json | (docs/index.md#design).\n";
    assert_eq!(paths_named(text), [("crates/runner".to_owned(), 2), ("docs/index.md".to_owned(), 2)]);
}

#[test]
fn only_links_to_files_are_followed() {
    let text = "[a](docs/a.md#part) ![b](b.png) [c](#here) [d](https://example.org/d) `[e](e.md)`\n\n[f]\n\n[f]: f.md\n";
    let found: Vec<String> = links_to_files(text).into_iter().map(|(link, _)| link).collect();
    assert_eq!(found, ["docs/a.md", "b.png", "f.md"]);
}
