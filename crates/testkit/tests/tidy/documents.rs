//! The documents match the repository: links and paths lead to files, the main documents stay short, and every Rust source has
//! a module comment.

use std::collections::BTreeSet;

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use crate::repository::{TrackedFile, assert_none, files, root};

/// Documents with their maximum number of lines.
const LINES_MAX: &[(&str, usize)] = &[("README.md", 100), ("VISION.md", 60), ("ARCHITECTURE.md", 250)];

const ARCHITECTURE: &str = "ARCHITECTURE.md";

const SUMMARY: &str = "docs/SUMMARY.md";

/// A word with one of these prefixes is a path in this repository.
const FOLDERS: &[&str] =
    &[".ci/", "adapters/", "crates/", "docs/", "eval/cases/", "schemas/", "scripts/", "ui/"];

fn is_document(file: &TrackedFile) -> bool {
    file.path.ends_with(".md") && (file.path.starts_with("docs/") || !file.path.contains('/'))
}

/// The links and images of a document that lead to files, with their offsets.
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
    let mut violations = Vec::new();
    for file in files().iter().filter(|file| is_document(file)) {
        let folder = file.path.strip_suffix(file.name()).unwrap_or_default();
        for (link, offset) in links_to_files(&file.text) {
            if link.starts_with('/') || !root().join(folder).join(&link).exists() {
                violations.push(format!("{}:{}: `{link}` does not exist", file.path, file.line_at(offset)));
            }
        }
    }
    assert_none(&violations);
}

/// The anchors of a document's headings, as GitHub and mdbook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    let mut heading: Option<String> = None;
    for event in Parser::new(text) {
        match (event, &mut heading) {
            (Event::Start(Tag::Heading { .. }), heading) => *heading = Some(String::new()),
            (Event::End(TagEnd::Heading(_)), heading) => {
                let base = anchor(&heading.take().unwrap_or_default());
                let repeated = (1..).map(|number| format!("{base}-{number}"));
                let mut names = std::iter::once(base.clone()).chain(repeated);
                anchors.extend(names.find(|name| !anchors.contains(name)));
            }
            (Event::Text(text) | Event::Code(text), Some(heading)) => heading.push_str(&text),
            _ => {}
        }
    }
    anchors
}

fn anchor(heading: &str) -> String {
    let kept = heading.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ' '));
    kept.map(|c| if c == ' ' { '-' } else { c.to_ascii_lowercase() }).collect()
}

#[test]
fn every_link_to_a_heading_leads_to_one() {
    let files = files();
    let mut violations = Vec::new();
    for file in files.iter().filter(|file| is_document(file)) {
        let folder = file.path.strip_suffix(file.name()).unwrap_or_default();
        for (event, range) in Parser::new(&file.text).into_offset_iter() {
            let Event::Start(Tag::Link { dest_url, .. }) = event else { continue };
            let Some((path, fragment)) = dest_url.split_once('#') else { continue };
            if path.contains("://") {
                continue;
            }
            let target =
                if path.is_empty() { file.path.clone() } else { normalized(&format!("{folder}{path}")) };
            let document = files.iter().find(|other| other.path == target && other.path.ends_with(".md"));
            if document.is_some_and(|document| !anchors(&document.text).contains(fragment)) {
                violations.push(format!(
                    "{}:{}: `{target}` has no heading `#{fragment}`",
                    file.path,
                    file.line_at(range.start)
                ));
            }
        }
    }
    assert_none(&violations);
}

/// A path without `..`.
fn normalized(path: &str) -> String {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

#[test]
fn the_book_has_every_document() {
    let files = files();
    let summary = files.iter().find(|file| file.path == SUMMARY).expect("the book's table of contents");
    let listed: BTreeSet<String> = links_to_files(&summary.text)
        .into_iter()
        .map(|(link, _)| normalized(&format!("docs/{link}")))
        .collect();
    let documents = files.iter().filter(|file| is_document(file) && file.path.starts_with("docs/"));
    let missing = documents.filter(|file| file.path != SUMMARY && !listed.contains(&file.path));
    let violations: Vec<String> =
        missing.map(|file| format!("{}: add it to {SUMMARY}, so that the book has it", file.path)).collect();
    assert_none(&violations);
}

#[test]
fn headings_become_anchors() {
    let text = "# A `runner run`\n\n## What, is detected?\n\n## A `runner run`\n";
    let expected = ["a-runner-run", "a-runner-run-1", "what-is-detected"].map(str::to_owned);
    assert_eq!(anchors(text), BTreeSet::from(expected));
    assert_eq!(normalized("docs/guide/../index.md"), "docs/index.md");
}

#[test]
fn the_main_documents_are_short() {
    let mut violations = Vec::new();
    for file in &files() {
        let lines = file.text.lines().count();
        if let Some((_, max)) = LINES_MAX.iter().find(|(path, max)| *path == file.path && lines > *max) {
            violations
                .push(format!("{}: {lines} lines, at most {max}: move the details to docs/", file.path));
        }
    }
    assert_none(&violations);
}

/// The paths in a text, with their line numbers. Words with `*`, `<`, `{` or `…` are patterns and not paths.
fn paths_in(text: &str) -> Vec<(String, usize)> {
    let mut paths = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let words = line.split(|char: char| char.is_whitespace() || "`|()[],;:\"'".contains(char));
        let words = words.map(|word| word.split('#').next().unwrap_or_default().trim_end_matches('.'));
        let is_path = |word: &&str| FOLDERS.iter().any(|folder| word.starts_with(folder));
        let is_pattern = |word: &str| word.contains(['*', '<', '{', '…']);
        let paths_of_line = words.filter(is_path).filter(|word| !is_pattern(word));
        paths.extend(paths_of_line.map(|word| (word.to_owned(), index + 1)));
    }
    paths
}

#[test]
fn every_path_in_the_architecture_exists() {
    let files = files();
    let document = files.iter().find(|file| file.path == ARCHITECTURE).expect("ARCHITECTURE.md");
    let missing = paths_in(&document.text).into_iter().filter(|(path, _)| !root().join(path).exists());
    let violations: Vec<String> =
        missing.map(|(path, line)| format!("{ARCHITECTURE}:{line}: `{path}` does not exist")).collect();
    assert_none(&violations);
}

#[test]
fn every_source_file_begins_with_a_module_comment() {
    let violations: Vec<String> = files()
        .iter()
        .filter(|file| file.is_rust() && !file.text.starts_with("//! "))
        .map(|file| format!("{}: start with a `//!` comment that names the component and its job", file.path))
        .collect();
    assert_none(&violations);
}

#[test]
fn patterns_and_other_words_are_not_paths() {
    let text = "`main.rs` and `.runner/state` are not ours.\n| `crates/runner`, schemas/*.json | (docs/index.md#design).\n";
    assert_eq!(paths_in(text), [("crates/runner".to_owned(), 2), ("docs/index.md".to_owned(), 2)]);
}

#[test]
fn only_links_to_files_are_checked() {
    let text = "[a](docs/a.md#part) ![b](b.png) [c](#here) [d](https://example.org/d) `[e](e.md)`\n\n[f]\n\n[f]: f.md\n";
    let links: Vec<String> = links_to_files(text).into_iter().map(|(link, _)| link).collect();
    assert_eq!(links, ["docs/a.md", "b.png", "f.md"]);
}
