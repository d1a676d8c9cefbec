//! Names and prose are plain technical English: the words that git, cargo and test runners use, and no personification.
//!
//! Each rule is a row of a table. A number in a row is how many violations are left: lower it, never raise it.

use crate::access::whole_word_offsets;
use crate::repository::{TrackedFile, assert_at_most, assert_none, files};
use crate::rust_source::definitions;

struct WordRule {
    words: &'static [&'static str],
    instead: &'static str,
    left_in_names: usize,
    left_in_prose: usize,
    left_in_documents: usize,
}

/// Words that may not be part of the name of a function, variable or type, nor occur in a comment or a string.
const WORD_RULES: &[WordRule] = &[
    WordRule {
        words: &["told", "tell", "tells", "telling"],
        instead: "print, report or show; name the value after what is reported: `report`, `output`, `message`",
        left_in_names: 9,
        left_in_prose: 23,
        left_in_documents: 0,
    },
    WordRule {
        words: &["said", "say", "says", "saying", "unsaid"],
        instead: "print, state or define; name the value after the text: `summary`, `message`, `output`",
        left_in_names: 20,
        left_in_prose: 51,
        left_in_documents: 0,
    },
    WordRule {
        words: &["hear", "hears", "heard", "ear"],
        instead: "receive, read or observe; name the value after what is read: `input`, `event`",
        left_in_names: 0,
        left_in_prose: 0,
        left_in_documents: 0,
    },
    WordRule {
        words: &["mend", "mends", "mended"],
        instead: "fix (a problem) or restore (a file)",
        left_in_names: 0,
        left_in_prose: 0,
        left_in_documents: 0,
    },
    WordRule { words: &["anew"], instead: "again", left_in_names: 0, left_in_prose: 0, left_in_documents: 0 },
    WordRule {
        words: &["nobody", "whoever"],
        instead: "the actor: the runner, the agent, the user, no process",
        left_in_names: 3,
        left_in_prose: 4,
        left_in_documents: 0,
    },
];

/// Phrases that may not occur in a comment or a string.
const PHRASE_RULES: &[(&str, &str, usize)] = &[
    ("put back", "restore", 0),
    ("puts back", "restores", 0),
    ("lay ready", "write or prepare", 0),
    ("lies ready", "exists", 0),
    ("take up", "recover or continue", 0),
    ("takes up", "recovers or continues", 0),
    ("takes in", "imports or commits", 2),
    ("stand still", "pause or suspend", 0),
    ("stands still", "is paused or suspended", 0),
    ("what there is", "the thing itself: the work so far, the existing files", 2),
];

/// Type names that any file could define, each with another meaning.
const BANNED_TYPES: &[&str] = &[
    "Answer", "Asked", "Done", "Found", "Heard", "Look", "Part", "Place", "Places", "Said", "Scene", "Seen",
    "Standing", "Told", "Wish",
];
const BANNED_TYPES_LEFT: usize = 6;

/// This file has every banned word in its tables.
fn is_exempt(file: &TrackedFile) -> bool {
    file.path == "crates/testkit/tests/tidy/wording.rs"
}

/// The comments and literals of Rust, and whole scripts and build files, in lower case and with their offsets.
fn prose(file: &TrackedFile) -> Option<String> {
    if file.is_rust() {
        let views = file.views();
        let comments = views.comments.to_ascii_lowercase();
        let literals = views.literals.to_ascii_lowercase();
        return Some(overlay(&comments, &literals));
    }
    let is_configuration = file.path.ends_with(".toml") && !file.path.contains("/cases/");
    let is_script = file.path == "justfile" || file.path.starts_with("scripts/");
    (is_configuration || is_script).then(|| file.text.to_ascii_lowercase())
}

/// What people read: the book and the documents at the root, in lower case. The reference is generated from the code.
fn document(file: &TrackedFile) -> Option<String> {
    let is_written = file.path.starts_with("docs/") && !file.path.starts_with("docs/reference/");
    let is_document = file.path.ends_with(".md") && (is_written || !file.path.contains('/'));
    is_document.then(|| file.text.to_ascii_lowercase())
}

/// Merges two views of the same source.
fn overlay(one: &str, other: &str) -> String {
    let bytes = one.bytes().zip(other.bytes()).map(|(one, other)| if one == b' ' { other } else { one });
    String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
}

/// The violations of one rule, and how many of them are allowed.
#[derive(Clone)]
struct CountedViolations {
    left: usize,
    violations: Vec<String>,
}

impl CountedViolations {
    fn new(left: usize) -> Self {
        Self { left, violations: Vec::new() }
    }
}

fn assert_counts(rules: &[CountedViolations]) {
    let mut failures = Vec::new();
    for rule in rules.iter().filter(|rule| rule.violations.len() > rule.left) {
        failures.push(format!("{} of these, {} allowed:", rule.violations.len(), rule.left));
        failures.extend(rule.violations.iter().cloned());
    }
    assert_none(&failures);
}

fn violation(file: &TrackedFile, offset: usize, found: &str, instead: &str) -> String {
    format!("{}:{}: `{found}`: write {instead}", file.path, file.line_at(offset))
}

#[test]
fn no_name_contains_a_banned_word() {
    let files = files();
    let mut counted: Vec<CountedViolations> =
        WORD_RULES.iter().map(|rule| CountedViolations::new(rule.left_in_names)).collect();
    for file in files.iter().filter(|file| file.is_rust() && !is_exempt(file)) {
        for definition in definitions(&file.views().code) {
            for (rule, counted) in WORD_RULES.iter().zip(&mut counted) {
                if definition.name.split('_').any(|part| rule.words.contains(&part)) {
                    let message = violation(file, definition.offset, definition.name, rule.instead);
                    counted.violations.push(message);
                }
            }
        }
    }
    assert_counts(&counted);
}

#[test]
fn no_type_has_a_banned_name() {
    let mut violations = Vec::new();
    for file in files().iter().filter(|file| file.is_rust() && !is_exempt(file)) {
        for definition in definitions(&file.views().code) {
            if BANNED_TYPES.contains(&definition.name) {
                let instead = "two words that describe what it is";
                violations.push(violation(file, definition.offset, definition.name, instead));
            }
        }
    }
    assert_at_most(BANNED_TYPES_LEFT, "banned type names", &violations);
}

/// Counts the banned words and phrases in the texts of the files, each with what is left of it.
fn assert_words(
    text_of: fn(&TrackedFile) -> Option<String>,
    left_of: fn(&WordRule) -> usize,
    phrases_left: bool,
) {
    let files = files();
    let mut words: Vec<CountedViolations> =
        WORD_RULES.iter().map(|rule| CountedViolations::new(left_of(rule))).collect();
    let left = |left: usize| if phrases_left { left } else { 0 };
    let mut phrases: Vec<CountedViolations> =
        PHRASE_RULES.iter().map(|(_, _, count)| CountedViolations::new(left(*count))).collect();
    for file in files.iter().filter(|file| !is_exempt(file)) {
        let Some(text) = text_of(file) else { continue };
        for (rule, counted) in WORD_RULES.iter().zip(&mut words) {
            for word in rule.words {
                for offset in whole_word_offsets(&text, word) {
                    counted.violations.push(violation(file, offset, word, rule.instead));
                }
            }
        }
        for ((phrase, instead, _), counted) in PHRASE_RULES.iter().zip(&mut phrases) {
            for offset in whole_word_offsets(&text, phrase) {
                counted.violations.push(violation(file, offset, phrase, instead));
            }
        }
    }
    assert_counts(&[words, phrases].concat());
}

#[test]
fn no_prose_contains_a_banned_word() {
    assert_words(prose, |rule| rule.left_in_prose, true);
}

#[test]
fn no_document_contains_a_banned_word() {
    assert_words(document, |rule| rule.left_in_documents, false);
}

#[test]
fn names_and_prose_are_found() {
    let text = "fn what_is_told() { let mut heard = \"We say\"; } // so nobody\nstruct Told;\n";
    let file = TrackedFile::new("crates/x/src/a.rs", text);
    let names: Vec<&str> = definitions(&file.views().code).iter().map(|definition| definition.name).collect();
    assert_eq!(names, ["what_is_told", "heard", "Told"]);
    let prose = prose(&file).expect("Rust has prose");
    let words: Vec<&str> = prose.split_whitespace().collect();
    assert_eq!(words, ["\"we", "say\"", "//", "so", "nobody"]);
}
