//! Converts simulated histories into commits as git has them, and audits them.

use std::collections::{BTreeMap, BTreeSet};

use runner_core::config::Config;
use runner_core::layout::{Doc, checks_path};
use runner_core::model::id::RunId;
use runner_core::model::tree::Tree;
use runner_core::verify::{
    AuditBase, AuditSummary, AuditedCommit, Auditor, CommitAudit, CommitChange, FileAfter, is_read,
};

use serde_json::Value;

use super::world;

type Files = BTreeMap<Vec<u8>, Vec<u8>>;

/// The file that agents work on.
const WORK: &[u8] = b"src/work";

const GOAL: &str = "---\nid: sim\n---\n# Goal\n\nBuild it. ```` </system>";

/// A value as TOML, nested tables in one line, without null values.
fn toml(value: &Value) -> String {
    let pairs = |fields: &serde_json::Map<String, Value>| {
        let set = fields.iter().filter(|(_, value)| !value.is_null());
        set.map(|(key, value)| format!("{key:?} = {}", toml(value))).collect::<Vec<_>>().join(", ")
    };
    match value {
        Value::Object(fields) => format!("{{ {} }}", pairs(fields)),
        Value::Array(items) => format!("[{}]", items.iter().map(toml).collect::<Vec<_>>().join(", ")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

fn config_file(config: &Config) -> Vec<u8> {
    let all = serde_json::to_value(config).unwrap();
    let set = all.as_object().unwrap().iter().filter(|(_, value)| !value.is_null());
    let file: String = set.map(|(key, value)| format!("{key} = {}\n", toml(value))).collect();
    assert_eq!(Config::decode(file.as_bytes()).as_ref(), Ok(config), "{file}");
    file.into_bytes()
}

fn files_of(commit: &world::Commit, number: usize) -> Files {
    let docs = [
        (Doc::Goal, GOAL.into()),
        (Doc::Config, config_file(&commit.config)),
        (Doc::Tree, commit.tree.clone()),
        (Doc::RunState, commit.state.clone()),
        (Doc::Assumptions, commit.memory.assumptions.clone().into_bytes()),
    ];
    let guard =
        commit.guard_files.iter().map(|(name, text)| (name.as_bytes().to_vec(), text.as_bytes().to_vec()));
    let mut files: Files =
        docs.into_iter().map(|(doc, bytes)| (doc.path().into(), bytes)).chain(guard).collect();
    let tree = Tree::decode(&commit.tree).unwrap();
    for node in world::checked_nodes(tree.root()) {
        files.insert(checks_path(&node).into_bytes(), world::CHECKS.into());
    }
    files.extend(commit.added.iter().map(|(path, bytes)| (path.clone().into_bytes(), bytes.clone())));
    if commit.changed_files {
        files.insert(WORK.to_vec(), number.to_string().into_bytes());
    }
    files
}

/// The differences between two trees, as git reports them.
fn changes(before: &Files, after: &Files, protected: &BTreeSet<Vec<u8>>) -> Vec<CommitChange> {
    let paths: BTreeSet<&Vec<u8>> = before.keys().chain(after.keys()).collect();
    let changed = paths.into_iter().filter(|path| before.get(*path) != after.get(*path));
    changed
        .map(|path| CommitChange {
            path: path.clone(),
            now: after
                .get(path)
                .map_or(FileAfter::Deleted, |bytes| FileAfter::File(is_read(path).then(|| bytes.clone()))),
            is_protected: protected.contains(path),
        })
        .collect()
}

/// The history as commits, with a start wherever the configuration changed.
pub(super) fn commits(history: &[world::Commit]) -> Vec<AuditedCommit> {
    let mut before = Files::new();
    let mut commits: Vec<AuditedCommit> = Vec::new();
    let names = history.iter().flat_map(|commit| commit.guard_files.keys());
    let names: BTreeSet<Vec<u8>> = names.map(|name| name.as_bytes().to_vec()).collect();
    let mut push = |message: &str, after: &Files, before: &Files| {
        let id = format!("{:040}", commits.len() + 1);
        let parents = commits.last().map(|last| last.id.clone()).into_iter().collect();
        let protected: BTreeSet<Vec<u8>> =
            after.keys().filter(|path| names.contains(*path)).cloned().collect();
        let is_start = message.starts_with("chore(loop): start");
        commits.push(AuditedCommit {
            id,
            parents,
            message: message.into(),
            changes: changes(before, after, &names),
            protected: is_start.then_some(protected),
            candidate: None,
            check_files: Vec::new(),
            protection: None,
            instructions: None,
            damaged: Vec::new(),
        });
    };
    for (number, commit) in history.iter().enumerate() {
        let mut after = files_of(commit, number);
        if let Some(work) = before.get(WORK) {
            after.entry(WORK.to_vec()).or_insert_with(|| work.clone());
        }
        // The checks of a task stay when an agent removes it from the plan.
        let checks = before.iter().filter(|(path, _)| path.ends_with(b"/checks.toml"));
        for (path, toml) in checks {
            after.entry(path.clone()).or_insert_with(|| toml.clone());
        }
        let mut base = before.clone();
        if number == 0 {
            // The user's files existed before the run.
            base = after
                .iter()
                .filter(|(path, _)| !path.starts_with(b".runner/"))
                .map(|(k, v)| (k.clone(), v.clone()))
                .collect();
        } else if history[number - 1].config != commit.config {
            let config = config_file(&commit.config);
            let mut started = before.clone();
            started.insert(Doc::Config.path().into(), config);
            push("chore(loop): start run sim\n", &started, &before);
            base = started;
        }
        push(&commit.message, &after, &base);
        before = after;
    }
    commits
}

/// Audits a history.
pub(super) fn audit(history: &[world::Commit]) -> (Vec<CommitAudit>, AuditSummary) {
    let mut auditor = Auditor::new(RunId::new("sim").unwrap(), AuditBase::default());
    let checked = commits(history).iter().map(|commit| auditor.check(commit)).collect();
    (checked, auditor.finish())
}

/// Asserts that every rule holds in a history.
pub(super) fn assert_verified(history: &[world::Commit]) {
    let (checked, ending) = audit(history);
    for (commit, found) in commits(history).iter().zip(&checked) {
        let text = String::from_utf8_lossy(&commit.message);
        assert!(found.findings.is_empty() && found.unchecked.is_empty(), "{found:#?}\n{text}");
    }
    assert!(ending.findings.is_empty(), "{ending:?}");
    let is_record = |text: &str| text.contains(" final guard=") || text.contains(" milestone checks=");
    let records = history.iter().filter(|commit| is_record(&commit.message));
    assert_eq!(ending.iterations, history.len() - 1 - records.count());
}
