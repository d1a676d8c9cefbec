//! The shape of definitions: unique type names, no tuple parameters, small structs, doc comments that add something.

use std::collections::{BTreeMap, BTreeSet};

use crate::repository::{TrackedFile, assert_at_most, assert_none, files};
use crate::rust_source::definitions;

/// A name that more files define has another meaning in each of them.
const FILES_PER_TYPE_NAME_MAX: usize = 2;

const FIELDS_MAX: usize = 10;

/// Structs with more fields, each with the reason: a document on disk, a wire type or a set of arguments has the fields of its
/// format.
const LARGE_STRUCTS: &[(&str, &str)] = &[
    ("ApiTypes", "the list of all wire types, for the generated TypeScript"),
    ("Attempt", "session.json of an iteration"),
    ("Case", "case.toml"),
    ("Config", "config.toml"),
    ("EvalScore", "wire type of the page"),
    ("EvalTrial", "wire type of the page"),
    ("Executor", "[executor] in config.toml"),
    ("GuardConfig", "[guard] in config.toml"),
    ("IterationMeta", "meta.json"),
    ("IterationRow", "wire type of the page"),
    ("LoopMetrics", "meta.json of a trial"),
    ("LoopSummary", "the report of runner-eval, as JSON"),
    ("NodeDetail", "wire type of the page"),
    ("RecordedIteration", "meta.json"),
    ("RunProgress", "wire type of the page"),
    ("RunState", "run_state.json"),
    ("ScoreRow", "the report of runner-eval, as JSON"),
    ("TreeColumns", "wire type of the page"),
    ("TrialInputs", "inputs.json of a trial"),
    ("TrialMeta", "meta.json of a trial"),
    ("UiCli", "the arguments of runner-ui"),
    ("WorkerJob", "the request to a worker of runner-eval, as JSON"),
];

// How many violations of each rule are left: lower these numbers, never raise them.
const LARGE_STRUCTS_LEFT: usize = 0;
const SHORT_DOCS_LEFT: usize = 47;
const TUPLE_PARAMETERS_LEFT: usize = 0;

struct FunctionSignature<'a> {
    name: &'a str,
    offset: usize,
    parameters: &'a str,
}

fn sources() -> Vec<TrackedFile> {
    files().into_iter().filter(TrackedFile::is_rust).collect()
}

/// The text inside of the brackets with which it starts.
fn bracketed(text: &str, open: char, close: char) -> &str {
    let mut depth = 0_usize;
    for (at, char) in text.char_indices() {
        if char == open {
            depth += 1;
        } else if char == close {
            depth -= 1;
            if depth == 0 {
                return text.get(open.len_utf8()..at).unwrap_or_default();
            }
        }
    }
    ""
}

/// Splits at commas that are not inside of brackets.
fn split_at_commas(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut depth = 0_usize;
    let mut start = 0;
    let mut previous = ' ';
    for (at, char) in text.char_indices() {
        match char {
            '(' | '[' | '{' | '<' => depth += 1,
            '>' if previous == '-' || previous == '=' => {}
            ')' | ']' | '}' | '>' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(text.get(start..at).unwrap_or_default());
                start = at + 1;
            }
            _ => {}
        }
        previous = char;
    }
    parts.push(text.get(start..).unwrap_or_default());
    parts
}

/// The functions of a source with their parameter lists.
fn signatures(code: &str) -> Vec<FunctionSignature<'_>> {
    let mut signatures = Vec::new();
    for definition in definitions(code).into_iter().filter(|definition| definition.keyword == "fn") {
        let after_name = code.get(definition.offset + definition.name.len()..).unwrap_or_default();
        let generics = if after_name.starts_with('<') { generics_length(after_name) } else { 0 };
        let list = after_name.get(generics..).unwrap_or_default();
        if list.starts_with('(') {
            let parameters = bracketed(list, '(', ')');
            signatures.push(FunctionSignature {
                name: definition.name,
                offset: definition.offset,
                parameters,
            });
        }
    }
    signatures
}

/// The length of `<…>`, in which `->` closes nothing.
fn generics_length(text: &str) -> usize {
    let mut depth = 0_usize;
    let mut previous = ' ';
    for (at, char) in text.char_indices() {
        match char {
            '<' => depth += 1,
            '>' if previous != '-' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
        previous = char;
    }
    text.len()
}

fn has_tuple_parameter(signature: &FunctionSignature<'_>) -> bool {
    split_at_commas(signature.parameters).into_iter().any(|parameter| {
        let Some((_, kind)) = parameter.split_once(':') else { return false };
        let referenced = kind.trim_start().trim_start_matches('&').trim_start();
        let bare = referenced.strip_prefix("mut ").unwrap_or(referenced);
        bare.starts_with('(') && !bare.starts_with("()")
    })
}

/// The structs of a source with named fields: name, offset, number of fields.
fn structs(code: &str) -> Vec<(&str, usize, usize)> {
    let mut structs = Vec::new();
    for definition in definitions(code).into_iter().filter(|definition| definition.keyword == "struct") {
        let after_name = code.get(definition.offset + definition.name.len()..).unwrap_or_default();
        let body_at = after_name.find(['{', ';', '(']).unwrap_or(after_name.len());
        let body = after_name.get(body_at..).unwrap_or_default();
        if body.starts_with('{') {
            let fields = split_at_commas(bracketed(body, '{', '}'));
            let count = fields.into_iter().filter(|field| field.contains(':')).count();
            structs.push((definition.name, definition.offset, count));
        }
    }
    structs
}

#[test]
fn no_type_name_is_defined_in_many_files() {
    let files = sources();
    let mut paths_by_name: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for file in &files {
        for definition in definitions(&file.views_without_tests().code) {
            if matches!(definition.keyword, "struct" | "enum" | "trait" | "union") {
                paths_by_name.entry(definition.name).or_default().insert(&file.path);
            }
        }
    }
    let mut violations = Vec::new();
    for (name, paths) in paths_by_name {
        if paths.len() > FILES_PER_TYPE_NAME_MAX {
            let paths: Vec<&str> = paths.into_iter().collect();
            violations.push(format!("`{name}`: add the word that distinguishes each: {}", paths.join(", ")));
        }
    }
    assert_none(&violations);
}

#[test]
fn no_parameter_is_a_tuple() {
    let mut violations = Vec::new();
    for file in sources() {
        for signature in signatures(&file.views().code) {
            if has_tuple_parameter(&signature) {
                let line = file.line_at(signature.offset);
                let instead = "pass up to seven plain arguments, or a struct with named fields";
                violations.push(format!("{}:{line}: `{}`: {instead}", file.path, signature.name));
            }
        }
    }
    assert_at_most(TUPLE_PARAMETERS_LEFT, "tuple parameters", &violations);
}

#[test]
fn structs_are_small() {
    let mut violations = Vec::new();
    let mut unused: Vec<&str> = LARGE_STRUCTS.iter().map(|(name, _)| *name).collect();
    for file in sources().iter().filter(|file| file.is_product()) {
        for (name, offset, fields) in structs(&file.views_without_tests().code) {
            let is_listed = LARGE_STRUCTS.iter().any(|(listed, _)| *listed == name);
            if fields <= FIELDS_MAX {
                continue;
            }
            if is_listed {
                unused.retain(|listed| *listed != name);
                continue;
            }
            let instead =
                "group the fields by lifetime or topic; list a document or wire type in `LARGE_STRUCTS`";
            violations.push(format!(
                "{}:{}: `{name}` has {fields} fields: {instead}",
                file.path,
                file.line_at(offset)
            ));
        }
    }
    assert_at_most(LARGE_STRUCTS_LEFT, "structs with more than ten fields", &violations);
    assert!(unused.is_empty(), "{unused:?}: small or gone, remove from `LARGE_STRUCTS`");
}

#[test]
fn doc_comments_add_something_to_the_name() {
    let mut violations = Vec::new();
    for file in sources().iter().filter(|file| file.is_product()) {
        let lines: Vec<&str> = file.text.lines().map(str::trim).collect();
        for (index, line) in lines.iter().enumerate() {
            let Some(text) = line.strip_prefix("/// ") else { continue };
            let is_doc = |index: usize| lines.get(index).is_some_and(|line| line.starts_with("///"));
            let is_alone = !is_doc(index + 1) && !index.checked_sub(1).is_some_and(is_doc);
            if is_alone && text.split_whitespace().count() <= 3 {
                violations.push(format!("{}:{}: `{text}`: delete it, or write why", file.path, index + 1));
            }
        }
    }
    assert_at_most(SHORT_DOCS_LEFT, "doc comments of at most three words", &violations);
}

#[test]
fn signatures_and_structs_are_parsed() {
    let code = "fn a(x: u8, (p, q): (u8, u8)) {}\nfn b<F: Fn((u8, u8))>(f: F, g: &dyn Fn(u8) -> (u8, u8)) {}\n\
                fn c(&mut self, unit: (), pair: &mut (u8, u8)) {}\nstruct S<T> { a: Vec<(u8, T)>, b: [u8; 2], }";
    let found: Vec<(&str, bool)> =
        signatures(code).iter().map(|signature| (signature.name, has_tuple_parameter(signature))).collect();
    assert_eq!(found, [("a", true), ("b", false), ("c", true)]);
    assert_eq!(structs(code).into_iter().map(|(_, _, fields)| fields).collect::<Vec<_>>(), [2]);
}
