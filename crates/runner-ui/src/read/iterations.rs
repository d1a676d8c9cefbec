//! The iterations of a run, from their folders where these are, and from git where they are not.

use std::collections::{BTreeMap, BTreeSet};

use runner_core::model::id::IterationNumber;
use runner_core::text::one_line;
use runner_host::repo::readonly_repo::IterationCommit;
use serde_json::Value;

use crate::api::{AttemptOrdinal, FileSize, IterationDetail, IterationRow};
use crate::error::RequestError;
use crate::read::confined_fs::ConfinedDir;
use crate::read::repo_reader::{RepoReader, RunSource};

/// The files of an iteration's folder that are shown.
pub(crate) const FILES: [&str; 11] = [
    "prompt.md",
    "output.json",
    "meta.json",
    "executor.log",
    "stream.jsonl",
    "events.jsonl",
    "guard.log",
    "tree.before.json",
    "tree.after.json",
    "diff.patch",
    "error.log",
];

/// A small document of a folder has no reason to be larger.
const DOCUMENT_BYTES_MAX: u64 = 4 << 20;
/// The events of an iteration without an answer are few; of one whose agent tells much, the beginning is enough.
const EVENTS_BYTES_MAX: usize = 256 << 10;

/// All iterations of a run, oldest first.
pub(crate) fn rows(project: &RepoReader, run: &RunSource) -> Result<Vec<IterationRow>, RequestError> {
    let commits = project.commits(run)?;
    let commits: BTreeMap<IterationNumber, &IterationCommit> =
        commits.iter().map(|commit| (commit.iter, commit)).collect();
    let folder = project.folder_of(&run.id).ok();
    let names = folder.as_ref().and_then(|folder| folder.names().ok()).unwrap_or_default();
    let mut iters: BTreeSet<IterationNumber> = names.iter().filter_map(|name| of_name(name)).collect();
    iters.extend(commits.keys());
    let row = |iter: IterationNumber| {
        let folder = folder.as_ref().and_then(|folder| folder.folder(&iter.to_string()).ok());
        row(project, run, iter, folder.as_ref(), commits.get(&iter).copied())
    };
    Ok(iters.into_iter().map(row).collect())
}

/// The iteration that a folder is named after.
pub(crate) fn of_name(name: &str) -> Option<IterationNumber> {
    let iter: IterationNumber = name.parse().ok()?;
    (iter.to_string() == name).then_some(iter)
}

fn row(
    project: &RepoReader,
    run: &RunSource,
    iter: IterationNumber,
    folder: Option<&ConfinedDir>,
    commit: Option<&IterationCommit>,
) -> IterationRow {
    let logged = folder.and_then(|folder| {
        let finished = folder.stamp("meta.json").and_then(|stamp| {
            project.row_of((&run.id, iter), stamp, || {
                let meta = document(folder, "meta.json")?;
                Some(of_meta(&meta, document(folder, "output.json").as_ref()))
            })
        });
        finished.or_else(|| of_events(folder))
    });
    let has_logs = logged.is_some();
    let mut row = logged.unwrap_or_default();
    row.iter = iter.get();
    row.has_logs = has_logs;
    if let Some(commit) = commit {
        add_commit(&mut row, commit);
    }
    row
}

/// What git knows of an iteration, where the folder does not say it.
fn add_commit(row: &mut IterationRow, commit: &IterationCommit) {
    let text = |value: Option<&str>| value.map(one_line);
    row.node = row.node.take().or_else(|| commit.node.as_ref().map(ToString::to_string));
    row.outcome = row.outcome.take().or_else(|| text(commit.trailer("Runner-Outcome")));
    row.status = row.status.take().or_else(|| text(commit.subject_value("status")));
    row.guard = row.guard.take().or_else(|| text(commit.subject_value("guard")));
    row.guard_exit = row.guard_exit.take().or_else(|| {
        commit.trailer("Runner-Guard-Exit").map(|exit| {
            let exit = one_line(exit);
            if exit.starts_with("signal") { exit } else { format!("code {exit}") }
        })
    });
    if row.summary.is_empty() {
        row.summary.clone_from(&commit.summary);
    }
    if !row.has_logs {
        row.is_charged = commit.trailer("Runner-Attempt") == Some("charged");
        row.ended_ms = Some(commit.unix_secs.saturating_mul(1000));
        let marks = commit.trailers.iter().filter(|(key, _)| key.ends_with("-Mark"));
        row.marks = marks.map(|(_, value)| one_line(value)).collect();
    }
    row.commit = Some(commit.commit.to_string());
    row.commit_before = row.commit_before.take().or_else(|| commit.before.as_ref().map(ToString::to_string));
}

fn text(value: &Value, key: &str) -> Option<String> {
    value.get(key)?.as_str().map(str::to_owned)
}

fn number(value: &Value, key: &str) -> Option<u64> {
    value.get(key)?.as_u64()
}

fn texts(value: &Value, key: &str) -> Vec<String> {
    let values = value.get(key).and_then(Value::as_array);
    values.into_iter().flatten().filter_map(|value| value.as_str().map(str::to_owned)).collect()
}

/// Which try, of how many.
pub(crate) fn attempt(value: &Value) -> Option<AttemptOrdinal> {
    let attempt = value.get("attempt")?;
    let part = |key: &str| number(attempt, key).and_then(|number| u32::try_from(number).ok());
    Some(AttemptOrdinal { nth: part("nth")?, of: part("of")? })
}

/// A row of a finished iteration.
fn of_meta(meta: &Value, output: Option<&Value>) -> IterationRow {
    let usage = meta.get("usage").unwrap_or(&Value::Null);
    IterationRow {
        node: text(meta, "node"),
        path: text(meta, "path").unwrap_or_default(),
        session: text(meta, "session"),
        attempt: attempt(meta),
        outcome: text(meta, "outcome"),
        status: text(meta, "status"),
        guard: text(meta, "guard"),
        guard_exit: meta.get("guard_exit").and_then(exit_text),
        is_charged: text(meta, "charge").as_deref() == Some("charged"),
        summary: output.and_then(|output| text(output, "summary")).unwrap_or_default(),
        findings: texts(meta, "findings"),
        marks: meta
            .get("annotations")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(mark_text)
            .collect(),
        started_ms: number(meta, "started_ms"),
        ended_ms: number(meta, "ended_ms"),
        agent_ms: number(meta, "agent_ms"),
        guard_ms: number(meta, "guard_ms"),
        input_tokens: number(usage, "input_tokens"),
        output_tokens: number(usage, "output_tokens"),
        cost_microdollars: number(usage, "cost_microdollars"),
        executor: text(meta, "executor"),
        model: text(meta, "model").or_else(|| text(usage, "model")),
        commit: text(meta, "commit_after"),
        commit_before: text(meta, "commit_before"),
        ..IterationRow::default()
    }
}

/// `{"code": 1}` as `code 1`.
fn exit_text(exit: &Value) -> Option<String> {
    let (kind, number) = exit.as_object()?.iter().next()?;
    Some(format!("{kind} {number}"))
}

/// A mark in words: its name, and what it names.
fn mark_text(mark: &Value) -> Option<String> {
    let mark = mark.as_object()?;
    let name = mark.get("annotation")?.as_str()?.replace('_', " ");
    let details: Vec<String> = mark
        .iter()
        .filter(|(key, value)| *key != "annotation" && value.as_u64() != Some(0))
        .map(|(key, value)| match value {
            Value::String(text) => one_line(text),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                format!("{value} {key}")
            }
        })
        .collect();
    Some(if details.is_empty() { name } else { format!("{name}: {}", details.join(", ")) })
}

/// A row of an iteration under way, from what was announced so far.
fn of_events(folder: &ConfinedDir) -> Option<IterationRow> {
    let events = events(folder);
    let planned = events.iter().find(|event| text(event, "event").as_deref() == Some("planned"));
    if planned.is_none() && folder.stamp("prompt.md").is_none() {
        return None;
    }
    let planned = planned.unwrap_or(&Value::Null);
    Some(IterationRow {
        node: text(planned, "node"),
        path: text(planned, "path").unwrap_or_default(),
        session: text(planned, "mode"),
        attempt: attempt(planned),
        started_ms: number(planned, "t_ms"),
        ..IterationRow::default()
    })
}

/// The first events of an iteration, as far as they can be read.
pub(crate) fn events(folder: &ConfinedDir) -> Vec<Value> {
    let bytes = folder.file("events.jsonl").and_then(|file| file.piece(0, EVENTS_BYTES_MAX));
    lines_of_json(&bytes.unwrap_or_default())
}

/// The last events of an iteration.
pub(crate) fn last_events(folder: &ConfinedDir) -> Vec<Value> {
    let Ok(file) = folder.file("events.jsonl") else { return Vec::new() };
    let from = file.stamp.bytes.saturating_sub(EVENTS_BYTES_MAX as u64);
    lines_of_json(&file.piece(from, EVENTS_BYTES_MAX).unwrap_or_default())
}

fn lines_of_json(bytes: &[u8]) -> Vec<Value> {
    bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

/// A JSON document of a folder, if there is one that can be read.
pub(crate) fn document(folder: &ConfinedDir, name: &str) -> Option<Value> {
    serde_json::from_slice(&folder.read(name, DOCUMENT_BYTES_MAX).ok()?).ok()
}

/// The folder of an iteration.
pub(crate) fn folder(
    project: &RepoReader,
    run: &RunSource,
    iter: IterationNumber,
) -> Result<ConfinedDir, RequestError> {
    let folder = project.folder_of(&run.id).and_then(|folder| folder.folder(&iter.to_string()));
    folder.map_err(|_| RequestError::no_logs(&run.id, iter))
}

/// One iteration whole.
pub(crate) fn detail(
    project: &RepoReader,
    run: &RunSource,
    iter: IterationNumber,
) -> Result<IterationDetail, RequestError> {
    let rows = rows(project, run)?;
    let place = rows.iter().position(|row| row.iter == iter.get());
    let place = place.ok_or_else(|| RequestError::no_iteration(&run.id, iter))?;
    let number = |place: Option<usize>| place.and_then(|place| rows.get(place)).map(|row| row.iter);
    let folder = folder(project, run, iter).ok();
    Ok(IterationDetail {
        run: run.id.to_string(),
        meta: folder.as_ref().and_then(|folder| document(folder, "meta.json")),
        output: folder.as_ref().and_then(|folder| document(folder, "output.json")),
        files: folder.as_ref().map(sizes).unwrap_or_default(),
        previous: number(place.checked_sub(1)),
        next: number(place.checked_add(1)),
        row: rows.get(place).cloned().unwrap_or_default(),
    })
}

/// The files of a folder that are there.
pub(crate) fn sizes(folder: &ConfinedDir) -> Vec<FileSize> {
    let size = |name: &str| Some(FileSize { name: name.to_owned(), bytes: folder.stamp(name)?.bytes });
    FILES.into_iter().filter_map(size).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_record_of_a_newer_runner_is_read_as_far_as_it_is_known() {
        let meta = json!({ "node": "a", "outcome": "dissolved", "usage": { "input_tokens": 5, "by_model": {} },
            "guard_exit": { "signal": 9 }, "attempt": { "nth": 2, "of": 3 }, "brand_new": [1],
            "annotations": [{ "annotation": "guard_file_restored", "path": "check" }, { "annotation": "sung", "loud": 2, "low": 0 }, 7] });
        let row = of_meta(&meta, None);
        assert_eq!(
            (row.outcome.as_deref(), row.guard_exit.as_deref()),
            (Some("dissolved"), Some("signal 9"))
        );
        assert_eq!((row.input_tokens, row.attempt), (Some(5), Some(AttemptOrdinal { nth: 2, of: 3 })));
        assert_eq!(row.marks, ["guard file restored: check", "sung: 2 loud"]);
        assert_eq!(of_meta(&json!([]), None).outcome, None);
    }

    #[test]
    fn a_folder_is_an_iteration_by_its_written_form_alone() {
        assert_eq!(of_name("0012").map(IterationNumber::get), Some(12));
        for other in ["12", "00012", "0000", "x", "..", "0012.tmp"] {
            assert_eq!(of_name(other), None, "{other}");
        }
    }
}
