//! Forges commits of simulated runs and asserts that the audit detects each forgery and names the violated rule.

mod other_commits;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use runner_core::layout::Doc;
use runner_core::model::digest::Sha256;
use runner_core::model::id::RunId;
use runner_core::model::run_state::SEMANTICS;
use runner_core::verify::{AuditBase, AuditFinding, AuditedCommit, Auditor, CommitChange, FileAfter};
use serde_json::{Value, json};

use super::{audit, run};

type Files = BTreeMap<Vec<u8>, Vec<u8>>;

/// How many runs are searched for iterations with different outcomes.
const RUNS: u64 = 150;
/// Later iterations of a run take longer to audit and add nothing.
const COMMITS_MAX: usize = 14;

/// A commit to forge, and the auditor just before it.
struct Target {
    auditor: Auditor,
    commit: AuditedCommit,
    next: Option<AuditedCommit>,
    /// The files that an audit reads, after the commit.
    files: Files,
}

impl Target {
    fn findings(&self, commits: &[&AuditedCommit]) -> Vec<AuditFinding> {
        let mut auditor = self.auditor.clone();
        commits.iter().flat_map(|commit| auditor.check(commit).findings).collect()
    }

    fn message(&self) -> String {
        String::from_utf8(self.commit.message.clone()).unwrap()
    }

    fn doc(&self, doc: Doc) -> Option<Value> {
        serde_json::from_slice(self.files.get(doc.path().as_bytes())?).ok()
    }
}

/// The first iteration of each outcome, in a tree with and without a passed node.
fn targets() -> Vec<Target> {
    let mut seen = BTreeSet::new();
    let mut targets = Vec::new();
    for seed in 0..RUNS {
        let mut auditor = Auditor::new(RunId::new("sim").unwrap(), AuditBase::default());
        let commits = audit::commits(&run(seed).commits);
        let mut files = Files::new();
        for (at, commit) in commits.iter().enumerate().take(COMMITS_MAX) {
            let before = auditor.clone();
            apply(&mut files, commit);
            let Some(outcome) = auditor.check(commit).outcome else { continue };
            let has_passed = !before.clone().finish().passed.is_empty();
            if seen.insert((outcome.as_str(), has_passed)) {
                let next = commits.get(at + 1).cloned();
                targets.push(Target { auditor: before, commit: commit.clone(), next, files: files.clone() });
            }
        }
    }
    assert!(targets.len() >= 30, "{} {seen:?}", targets.len());
    targets
}

fn apply(files: &mut Files, commit: &AuditedCommit) {
    for change in &commit.changes {
        match &change.now {
            FileAfter::File(Some(bytes)) => files.insert(change.path.clone(), bytes.clone()),
            FileAfter::File(None) | FileAfter::Deleted | FileAfter::Other => files.remove(&change.path),
        };
    }
}

type Forgeries = Vec<(String, AuditedCommit)>;

fn with_message(target: &Target, text: &str) -> AuditedCommit {
    AuditedCommit { message: text.as_bytes().to_vec(), ..target.commit.clone() }
}

fn with_change(target: &Target, path: &str, now: FileAfter, is_protected: bool) -> AuditedCommit {
    let mut commit = target.commit.clone();
    commit.changes.retain(|change| change.path != path.as_bytes());
    commit.changes.push(CommitChange { path: path.as_bytes().to_vec(), now, is_protected });
    commit.changes.sort_by(|one, other| one.path.cmp(&other.path));
    commit
}

/// The commit with other bytes in a document, and with the matching digest in its message.
fn with_doc(target: &Target, doc: Doc, bytes: &[u8]) -> AuditedCommit {
    let key = if doc == Doc::Tree { "Runner-Tree: " } else { "Runner-State: " };
    let mut text = String::new();
    for line in target.message().split_inclusive('\n') {
        match line.starts_with(key) {
            true => writeln!(text, "{key}{}", Sha256::of(bytes)).unwrap(),
            false => text.push_str(line),
        }
    }
    let forged = with_change(target, doc.path(), FileAfter::File(Some(bytes.to_vec())), false);
    AuditedCommit { message: text.into_bytes(), ..forged }
}

fn written(document: &Value) -> Vec<u8> {
    (serde_json::to_string_pretty(document).unwrap() + "\n").into_bytes()
}

/// Another value of the same type.
fn other(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_i64().unwrap() + 1),
        Value::Bool(truth) => json!(!truth),
        Value::String(text) => json!(format!("{text}x")),
        Value::Array(items) => json!(items.split_last().map_or([].as_slice(), |(_, rest)| rest)),
        Value::Object(fields) => {
            let mut fields = fields.clone();
            if let Some(first) = fields.values_mut().next() {
                *first = other(first);
            }
            Value::Object(fields)
        }
        Value::Null => json!("x"),
    }
}

/// Another value of a field of `progress`: a claim that nobody made, a task that need not be split, a failure that never was.
fn other_progress(key: &str, value: &Value) -> Value {
    let digest = Sha256::of(b"forged").to_string();
    match (key, value) {
        ("unconfirmed", Value::Null) => json!({ "node": "root", "iter": 1, "task_sha256": digest }),
        ("must_split", Value::Null) => json!("root"),
        ("leaf_failures", Value::Array(failures)) if failures.is_empty() => {
            json!([{ "node": "root", "signature": digest, "rungs": 1 }])
        }
        ("unconfirmed" | "must_split", _) => Value::Null,
        (_, _) => other(value),
    }
}

/// Forged messages.
fn forged_messages(target: &Target) -> Forgeries {
    let text = target.message();
    let (subject, rest) = text.split_once('\n').unwrap();
    let mut forgeries = Vec::new();
    let mut add = |what: String, forged: String| {
        if forged != text {
            forgeries.push((what, with_message(target, &forged)));
        }
    };
    for (word, forged) in [
        ("run sim ", "run other "),
        (" iter 0", " iter 1"),
        (" node ", " node x-"),
        ("status=retry", "status=done"),
        ("status=done", "status=retry"),
        ("guard=pass", "guard=skipped"),
        ("guard=skipped", "guard=pass"),
        ("chore(loop)", "chore(tools)"),
    ] {
        add(format!("subject: {word:?}"), format!("{}\n{rest}", subject.replacen(word, forged, 1)));
    }
    add("body: more".to_owned(), text.replacen("\n\n", "\n\n  more\n\n", 1));
    let ghost = format!("Runner-Semantics: {SEMANTICS}\nRunner-Annotation: guard-file-restored ghost.just\n");
    let semantics = format!("Runner-Semantics: {SEMANTICS}\n");
    add("a restored file that does not exist".to_owned(), text.replacen(&semantics, &ghost, 1));
    for line in rest.lines().filter(|line| line.starts_with("Runner-")) {
        let (key, value) = line.split_once(": ").unwrap();
        let forged = match value {
            "charged" => "free".to_owned(),
            "free" => "charged".to_owned(),
            "none" => "0".to_owned(),
            "passed" => "retry".to_owned(),
            _ if key == "Runner-Outcome" => "passed".to_owned(),
            _ if key == "Runner-Edit" => value.replace(['a', 'e'], "o"),
            _ => value.parse::<u64>().map_or(format!("{value}0"), |number| (number + 1).to_string()),
        };
        add(format!("{key}: other"), text.replacen(line, &format!("{key}: {forged}"), 1));
        add(format!("{key}: missing"), text.replacen(&format!("{line}\n"), "", 1));
        add(format!("{key}: twice"), text.replacen(line, &format!("{line}\n{line}"), 1));
    }
    forgeries
}

/// The path of one node of each role in a tree.
fn nodes(root: &Value, path: &str, found: &mut BTreeMap<&'static str, String>) {
    let children = root["children"].as_array().unwrap();
    let role = match (root["passes"].as_bool().unwrap(), children.is_empty()) {
        (true, true) => "a passed leaf",
        (true, false) => "a passed node",
        (false, true) => "an open leaf",
        (false, false) => "an open node",
    };
    found.entry(role).or_insert_with(|| path.to_owned());
    for (nth, child) in children.iter().enumerate() {
        nodes(child, &format!("{path}/children/{nth}"), found);
    }
}

/// Forged documents.
fn forged_documents(target: &Target) -> Forgeries {
    let mut forgeries = Vec::new();
    if let Some(tree) = target.doc(Doc::Tree) {
        let mut paths = BTreeMap::new();
        nodes(&tree["root"], "/root", &mut paths);
        for (role, path) in paths {
            for field in
                ["id", "order", "title", "acceptance", "passes", "attempts", "max_attempts", "children"]
            {
                let mut forged = tree.clone();
                let value = &mut forged.pointer_mut(&path).unwrap()[field];
                *value = if field == "acceptance" { json!(["another"]) } else { other(value) };
                if forged != tree {
                    forgeries
                        .push((format!("{role}: {field}"), with_doc(target, Doc::Tree, &written(&forged))));
                }
            }
        }
        let compact = tree.to_string().into_bytes();
        forgeries.push(("tree: in one line".to_owned(), with_doc(target, Doc::Tree, &compact)));
    }
    if let Some(state) = target.doc(Doc::RunState) {
        for (key, value) in state.as_object().unwrap() {
            let mut forged = state.clone();
            forged[key] = other(value);
            if forged != state {
                forgeries.push((format!("state: {key}"), with_doc(target, Doc::RunState, &written(&forged))));
            }
        }
        for (key, value) in state["progress"].as_object().unwrap() {
            let mut forged = state.clone();
            forged["progress"][key] = other_progress(key, value);
            if forged != state {
                let what = format!("state: progress {key}");
                forgeries.push((what, with_doc(target, Doc::RunState, &written(&forged))));
            }
        }
        let compact = state.to_string().into_bytes();
        forgeries.push(("state: in one line".to_owned(), with_doc(target, Doc::RunState, &compact)));
    }
    for (name, doc) in [("tree", Doc::Tree), ("state", Doc::RunState)] {
        forgeries.push((format!("{name}: invalid"), with_doc(target, doc, b"{")));
        forgeries
            .push((format!("{name}: deleted"), with_change(target, doc.path(), FileAfter::Deleted, false)));
        forgeries.push((
            format!("{name}: a symbolic link"),
            with_change(target, doc.path(), FileAfter::Other, false),
        ));
    }
    forgeries
}

/// Forged changes of other files, and forged parents.
fn forged_files_and_parents(target: &Target) -> Forgeries {
    let file = |text: &str| FileAfter::File(Some(text.as_bytes().to_vec()));
    let mut forgeries = vec![
        (
            "another id in the goal".to_owned(),
            with_change(target, Doc::Goal.path(), file("---\nid: x\n---\n# G\n"), false),
        ),
        (
            "another configuration".to_owned(),
            with_change(target, Doc::Config.path(), file("max_iterations = 1\n"), false),
        ),
        ("an invalid configuration".to_owned(), with_change(target, Doc::Config.path(), file("max"), false)),
        ("a prompt template".to_owned(), with_change(target, ".runner/prompts/leaf.md", file("x"), false)),
        (
            "a schema file".to_owned(),
            with_change(target, Doc::TreeSchema.path(), FileAfter::File(None), false),
        ),
        ("a changed protected file".to_owned(), with_change(target, "justfile", FileAfter::File(None), true)),
        ("a deleted protected file".to_owned(), with_change(target, "justfile", FileAfter::Deleted, true)),
        ("a new protected file".to_owned(), with_change(target, "other.just", FileAfter::File(None), true)),
    ];
    for (what, parents) in [("no parent", vec![]), ("another parent", vec!["f".repeat(40)])] {
        forgeries.push((what.to_owned(), AuditedCommit { parents, ..target.commit.clone() }));
    }
    let mut merge = target.commit.clone();
    merge.parents.push("f".repeat(40));
    forgeries.push(("two parents".to_owned(), merge));
    forgeries
}

/// A value of a finding in one short line, without digests, which depend on the prompt templates.
fn shown(text: &str) -> String {
    let is_digest = |word: &&str| word.len() >= 12 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let words = text.split([' ', '\n', '"', '`']);
    let text = words
        .filter(|word| is_digest(word))
        .fold(text.to_owned(), |text, word| text.replace(word, "<digest>"));
    text.replace('\n', "\\n").chars().take(70).collect()
}

/// Forgeries that cannot be detected, because the value cannot be derived: what an agent chose for a new node, what it used, how
/// the guard exited, and the templates of another version. A new guard file counts only once a task passed with it.
const UNDETECTABLE: [&str; 9] = [
    "Runner-Guard-Exit: other",
    "Runner-Prompt-Version: other",
    "a new protected file",
    "an open leaf: acceptance",
    "an open leaf: id",
    "an open leaf: max_attempts",
    "an open leaf: order",
    "an open leaf: title",
    "state: spent",
];

/// For each forgery, how often each rule was reported, and the first report.
#[derive(Default)]
struct ForgeryTable(BTreeMap<String, BTreeMap<String, (usize, String)>>);

impl ForgeryTable {
    fn record(&mut self, what: String, found: &[AuditFinding]) {
        let row = self.0.entry(what).or_default();
        let rules: BTreeMap<String, &AuditFinding> =
            found.iter().rev().map(|finding| (finding.rule.to_string(), finding)).collect();
        if rules.is_empty() {
            row.entry("-".to_owned()).or_default().0 += 1;
        }
        for (rule, finding) in rules {
            let text = format!("{} | {}", shown(&finding.expected), shown(&finding.found));
            row.entry(rule).or_insert((0, text)).0 += 1;
        }
    }

    fn record_all(&mut self, prefix: &str, target: &Target) {
        assert_eq!(target.findings(&[&target.commit]), [], "{prefix}");
        let forgeries = [forged_messages(target), forged_documents(target), forged_files_and_parents(target)];
        for (what, forged) in forgeries.concat() {
            self.record(format!("{prefix}{what}"), &target.findings(&[&forged]));
        }
    }

    fn undetected(&self) -> Vec<&str> {
        let undetected = self.0.iter().filter(|(_, rules)| rules.contains_key("-"));
        undetected.map(|(what, _)| what.as_str()).collect()
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (what, rules) in &self.0 {
            writeln!(text, "{what}").unwrap();
            for (rule, (times, shown)) in rules {
                writeln!(text, "    {rule} x{times}: {shown}").unwrap();
            }
        }
        text
    }
}

#[test]
fn every_forgery_of_an_iteration_is_detected() {
    let mut table = ForgeryTable::default();
    for target in targets() {
        table.record_all("", &target);
        let parents = vec![target.commit.id.clone()];
        let duplicate = AuditedCommit { id: "e".repeat(40), parents, ..target.commit.clone() };
        table.record("a duplicate iteration".to_owned(), &target.findings(&[&target.commit, &duplicate]));
        if let Some(next) = &target.next {
            table.record("a missing iteration".to_owned(), &target.findings(&[next]));
        }
    }
    assert_eq!(table.undetected(), UNDETECTABLE);
    insta::assert_snapshot!(table.text());
}
