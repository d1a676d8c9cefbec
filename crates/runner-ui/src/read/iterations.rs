//! The iterations of a run: from their log folders where these exist, and from git where they do not.

use std::collections::BTreeSet;
use std::io;

use runner_core::commit_message::Trailer;
use runner_core::labels::annotation_text;
use runner_core::model::checks::CheckRecord;
use runner_core::model::id::IterationNumber;
use runner_core::step::{Annotation, AttemptCharge, Event, GuardExit, RecordedEvent, RecordedIteration};
use runner_core::text::one_line;
use runner_host::iteration::log_retention::REMOVED_LOGS;
use runner_host::repo::readonly_repo::IterationCommit;
use serde_json::Value;

use crate::api::{AttemptOrdinal, CheckResultView, FileSize, IterationDetail, IterationRow};
use crate::error::RequestError;
use crate::read::confined_fs::{ConfinedDir, RegularFile};
use crate::read::repo_reader::{RepoReader, RunSource};
use crate::read::row_cache::IterationRows;

/// The files of an iteration's log folder that the server sends.
pub(crate) const FILES: [&str; 16] = [
    "prompt.md",
    "output.json",
    "meta.json",
    "executor.log",
    "executor.err.log",
    "stream.jsonl",
    "events.jsonl",
    "guard.log",
    "tree.before.json",
    "tree.after.json",
    "diff.patch",
    "error.log",
    "review.prompt.md",
    "review.json",
    "review.log",
    "review.err.log",
];

/// The copies of the plan, which only the newest iterations have.
const TREES: [&str; 2] = ["tree.before.json", "tree.after.json"];

/// The logs that the transcript shows. A session writes them from its beginning on.
const TRANSCRIPT_LOGS: [&str; 2] = ["events.jsonl", "stream.jsonl"];

/// The largest JSON document of a folder that is read.
const DOCUMENT_BYTES_MAX: u64 = 4 << 20;
/// How much of events.jsonl is read, from its beginning or its end. An agent may cause many events; the runner's own, which
/// decide the status, are few.
const EVENTS_BYTES_MAX: usize = 256 << 10;

/// What is on record about an iteration, apart from its commit.
#[derive(Clone, Debug)]
pub(crate) enum IterationRecord {
    Finished {
        meta: Box<RecordedIteration>,
        summary: String,
    },
    /// The folder exists, but meta.json does not, or a newer runner wrote it.
    Unfinished {
        planned: Option<Box<RecordedEvent>>,
    },
    /// There is no log folder.
    CommitOnly,
}

impl IterationRecord {
    pub(crate) fn read(project: &RepoReader, run: &RunSource, iter: IterationNumber) -> Self {
        let Ok(folder) = folder(project, run, iter) else { return Self::CommitOnly };
        let version = folder.stamp("meta.json");
        let finished = version.and_then(|version| {
            project.cached_record(run, iter, version, || {
                let meta = folder.read("meta.json", DOCUMENT_BYTES_MAX).ok()?;
                let meta = Box::new(RecordedIteration::from_json(&meta)?);
                Some(Self::Finished { meta, summary: output_summary(&folder) })
            })
        });
        finished.unwrap_or_else(|| Self::read_unfinished(&folder))
    }

    fn read_unfinished(folder: &ConfinedDir) -> Self {
        let planned = first_events(folder).into_iter().find(|recorded| is_planned(&recorded.event));
        match planned {
            Some(planned) => Self::Unfinished { planned: Some(Box::new(planned)) },
            None if folder.stamp("prompt.md").is_some() => Self::Unfinished { planned: None },
            None => Self::CommitOnly,
        }
    }

    /// The row that lists show: the record, completed from the commit.
    pub(crate) fn into_row(self, iter: IterationNumber, commit: Option<&IterationCommit>) -> IterationRow {
        let committed = commit.map(commit_row).unwrap_or_default();
        let row = match self {
            Self::Finished { meta, summary } => finished_row(*meta, summary, committed),
            Self::Unfinished { planned } => unfinished_row(planned.map(|planned| *planned), committed),
            Self::CommitOnly => committed,
        };
        IterationRow { iter: iter.get(), ..row }
    }
}

fn is_planned(event: &Event) -> bool {
    matches!(event, Event::Planned { .. })
}

fn commit_row(commit: &IterationCommit) -> IterationRow {
    let exit = commit.trailer(Trailer::GuardExit).map(one_line).filter(|exit| exit != "none");
    IterationRow {
        node: commit.node.as_ref().map(ToString::to_string),
        outcome: commit.trailer(Trailer::Outcome).map(one_line),
        status: Some(commit.status.as_str().to_owned()),
        guard: Some(commit.guard.as_str().to_owned()),
        guard_exit: exit.map(|exit| if exit.starts_with("signal") { exit } else { format!("exit {exit}") }),
        room: commit.trailer(Trailer::Room).map(one_line),
        checks: commit.trailers(Trailer::Check).filter_map(check_result).collect(),
        is_charged: commit.trailer(Trailer::Attempt) == Some(AttemptCharge::Charged.as_str()),
        summary: commit.summary.clone(),
        annotations: commit.trailers(Trailer::Annotation).map(trailer_text).collect(),
        ended_ms: Some(commit.unix_secs.saturating_mul(1000)),
        commit: Some(commit.commit.to_string()),
        commit_before: commit.before.as_ref().map(ToString::to_string),
        ..IterationRow::default()
    }
}

fn check_result(trailer: &str) -> Option<CheckResultView> {
    CheckRecord::parse(trailer).as_ref().map(CheckResultView::from)
}

/// An annotation's trailer as a sentence; one of a newer runner as it is.
fn trailer_text(trailer: &str) -> String {
    let annotation = Annotation::parse(trailer);
    if annotation == Annotation::Unknown { one_line(trailer) } else { annotation_text(&annotation) }
}

fn unfinished_row(planned: Option<RecordedEvent>, committed: IterationRow) -> IterationRow {
    let has_logs = IterationRow { has_logs: true, ..committed };
    let Some(RecordedEvent { t_ms, event: Event::Planned { node, path, mode, attempt, .. } }) = planned
    else {
        return has_logs;
    };
    IterationRow {
        node: node.map(|node| node.to_string()),
        path,
        session: Some(mode.as_str().to_owned()),
        attempt: Some(AttemptOrdinal { nth: attempt.nth, of: attempt.of }),
        started_ms: Some(t_ms),
        ..has_logs
    }
}

fn finished_row(record: RecordedIteration, summary: String, committed: IterationRow) -> IterationRow {
    let meta = record.meta;
    IterationRow {
        node: meta.node.map(|node| node.to_string()),
        path: meta.path,
        session: Some(meta.session.as_str().to_owned()),
        attempt: Some(AttemptOrdinal { nth: meta.attempt.nth, of: meta.attempt.of }),
        outcome: Some(meta.outcome.as_str().to_owned()),
        status: Some(meta.status.as_str().to_owned()),
        guard: Some(meta.guard.as_str().to_owned()),
        guard_exit: meta.guard_exit.map(exit_text),
        review: meta.review.map(|review| review.text()),
        room: meta.room.map(|room| room.to_string()),
        checks: meta.checks.iter().map(CheckResultView::from).collect(),
        is_charged: meta.charge == AttemptCharge::Charged,
        summary: if summary.is_empty() { committed.summary } else { summary },
        findings: meta.findings,
        annotations: meta.annotations.iter().map(annotation_text).collect(),
        started_ms: Some(record.started_ms),
        ended_ms: Some(record.ended_ms),
        agent_ms: record.agent_ms,
        guard_ms: record.guard_ms,
        input_tokens: meta.usage.input_tokens,
        cached_tokens: meta.usage.cached_input_tokens,
        output_tokens: meta.usage.output_tokens,
        cost_microdollars: meta.cost.microdollars,
        cost_source: meta.cost.basis,
        executor: Some(record.executor),
        model: record.identity.model,
        commit: Some(record.commit_after),
        commit_before: Some(record.commit_before),
        has_logs: true,
        ..IterationRow::default()
    }
}

fn exit_text(exit: GuardExit) -> String {
    match exit {
        GuardExit::Code(code) => format!("exit {code}"),
        GuardExit::Signal(signal) => format!("signal {signal}"),
    }
}

/// The summary in output.json, which is the agent's and may be anything.
fn output_summary(folder: &ConfinedDir) -> String {
    let output = document(folder, "output.json");
    let summary = output.as_ref().and_then(|output| output.get("summary")).and_then(Value::as_str);
    summary.unwrap_or_default().to_owned()
}

/// The iterations of a run that have a folder or a commit.
pub(crate) fn numbers(
    project: &RepoReader,
    run: &RunSource,
) -> Result<BTreeSet<IterationNumber>, RequestError> {
    let mut numbers = BTreeSet::clone(&project.iteration_folders(&run.id));
    numbers.extend(project.commits(run)?.iter().map(|commit| commit.iter));
    Ok(numbers)
}

/// The iteration that a folder is named after.
pub(crate) fn folder_number(name: &str) -> Option<IterationNumber> {
    let iter: IterationNumber = name.parse().ok()?;
    (iter.to_string() == name).then_some(iter)
}

/// All iterations of a run, oldest first.
pub(crate) fn rows(project: &RepoReader, run: &RunSource) -> Result<IterationRows, RequestError> {
    project.row_cache().rows(project, run)
}

/// One iteration of a run.
pub(crate) fn row(
    project: &RepoReader,
    run: &RunSource,
    iter: IterationNumber,
) -> Result<IterationRow, RequestError> {
    let commits = project.commits(run)?;
    let commit = commits.iter().rev().find(|commit| commit.iter == iter);
    if commit.is_none() && folder(project, run, iter).is_err() {
        return Err(RequestError::no_iteration(&run.id, iter));
    }
    Ok(IterationRecord::read(project, run, iter).into_row(iter, commit))
}

/// The first events of an iteration.
fn first_events(folder: &ConfinedDir) -> Vec<RecordedEvent> {
    let bytes = folder.file("events.jsonl").and_then(|file| file.piece(0, EVENTS_BYTES_MAX));
    RecordedEvent::from_lines(&bytes.unwrap_or_default()).collect()
}

/// The last events of an iteration, or of a run.
pub(crate) fn last_events(folder: &ConfinedDir) -> Vec<RecordedEvent> {
    let Ok(file) = folder.file("events.jsonl") else { return Vec::new() };
    let from = file.stamp.bytes.saturating_sub(EVENTS_BYTES_MAX as u64);
    RecordedEvent::from_lines(&file.piece(from, EVENTS_BYTES_MAX).unwrap_or_default()).collect()
}

/// A JSON document of a folder, unchanged; `None` if it is missing or not JSON.
fn document(folder: &ConfinedDir, name: &str) -> Option<Value> {
    serde_json::from_slice(&folder.read(name, DOCUMENT_BYTES_MAX).ok()?).ok()
}

/// The log folder of an iteration.
pub(crate) fn folder(
    project: &RepoReader,
    run: &RunSource,
    iter: IterationNumber,
) -> Result<ConfinedDir, RequestError> {
    let folder = project.run_folder(&run.id).and_then(|folder| folder.folder(&iter.to_string()));
    folder.map_err(|_| RequestError::no_logs(&run.id, iter))
}

/// One iteration with its files.
pub(crate) fn detail(
    project: &RepoReader,
    run: &RunSource,
    iter: IterationNumber,
) -> Result<IterationDetail, RequestError> {
    let row = row(project, run, iter)?;
    let rows = rows(project, run)?;
    let place = rows.partition_point(|other| other.iter < row.iter);
    let at = |place: Option<usize>| place.and_then(|place| rows.get(place)).map(|row| row.iter);
    let folder = folder(project, run, iter).ok();
    Ok(IterationDetail {
        run: run.id.to_string(),
        row,
        meta: folder.as_ref().and_then(|folder| document(folder, "meta.json")),
        output: folder.as_ref().and_then(|folder| document(folder, "output.json")),
        files: folder.as_ref().map(file_sizes).unwrap_or_default(),
        logs_removed: folder.as_ref().is_some_and(has_removed_logs),
        previous: at(place.checked_sub(1)),
        next: at(Some(place + 1)),
    })
}

/// Whether the policy of `[logs]` removed logs from a folder.
fn has_removed_logs(folder: &ConfinedDir) -> bool {
    folder.stamp(REMOVED_LOGS).is_some()
}

/// A file of an iteration's log folder.
pub(crate) fn file(
    project: &RepoReader,
    run: &RunSource,
    iter: IterationNumber,
    name: &str,
) -> Result<RegularFile, RequestError> {
    let folder = folder(project, run, iter)?;
    folder.file(name).map_err(|error| {
        let is_missing = error.kind() == io::ErrorKind::NotFound;
        if is_missing && TREES.contains(&name) {
            RequestError::tree_in_git(name)
        } else if is_missing && has_removed_logs(&folder) {
            RequestError::logs_removed(name, iter)
        } else {
            RequestError::unreadable(name, &error)
        }
    })
}

/// Whether an iteration has begun, but its session has not written this log of the transcript yet. The page asks for it at once.
pub(crate) fn is_unwritten(
    project: &RepoReader,
    run: &RunSource,
    iter: IterationNumber,
    name: &str,
) -> Result<bool, RequestError> {
    let folder = folder(project, run, iter)?;
    let is_missing = |name| folder.file(name).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    Ok(TRANSCRIPT_LOGS.contains(&name) && is_missing(name) && !has_removed_logs(&folder))
}

/// When a file of a log folder last changed.
pub(crate) fn changed_ms(folder: &ConfinedDir) -> Option<u64> {
    FILES
        .into_iter()
        .filter_map(|name| folder.stamp(name))
        .map(|version| version.modified_secs() * 1000)
        .max()
}

/// The files of a log folder that exist.
pub(crate) fn file_sizes(folder: &ConfinedDir) -> Vec<FileSize> {
    let size = |name: &str| Some(FileSize { name: name.to_owned(), bytes: folder.stamp(name)?.bytes });
    FILES.into_iter().filter_map(size).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_core::model::agent_output::AgentStatus;
    use runner_core::model::id::NodeId;
    use runner_core::model::object_id::CommitId;
    use runner_core::model::run_state::GuardResult;

    fn commit(iter: u32, outcome: &str) -> IterationCommit {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        IterationCommit {
            commit: CommitId::new("c".repeat(40)).unwrap(),
            before: CommitId::new("b".repeat(40)).ok(),
            unix_secs: 7,
            iter: IterationNumber::new(iter).unwrap(),
            node: Some(NodeId::root()),
            status: AgentStatus::Done,
            guard: GuardResult::Pass,
            summary: "all done".to_owned(),
            trailers: vec![
                pair("Runner-Outcome", outcome),
                pair("Runner-Attempt", "charged"),
                pair("Runner-Guard-Exit", "0"),
                pair("Runner-Annotation", "guard-file-restored check"),
            ],
        }
    }

    #[test]
    fn row_without_logs_is_read_from_the_commit_even_of_a_newer_runner() {
        let iter = IterationNumber::new(3).unwrap();
        let row = IterationRecord::CommitOnly.into_row(iter, Some(&commit(3, "dissolved")));
        assert_eq!((row.iter, row.outcome.as_deref(), row.has_logs), (3, Some("dissolved"), false));
        assert_eq!((row.guard_exit.as_deref(), row.is_charged), (Some("exit 0"), true));
        assert_eq!(
            (row.annotations, row.ended_ms),
            (vec!["the agent changed `check` (protected): restored".to_owned()], Some(7000))
        );
    }

    #[test]
    fn unfinished_row_takes_its_task_from_the_plan_and_its_end_from_the_commit() {
        let line = r#"{"t_ms": 5, "event": "planned", "run_id": "x", "iter": 3, "mode": "leaf", "node": "a",
            "path": "root/a", "title": "", "attempt": {"nth": 2, "of": 3}, "agent": "codex",
            "rung": {"nth": 1, "of": 1}, "budget": {"run_tokens": null, "run_usd": null, "leaf_tokens": null,
            "leaf_usd": null}, "spent": {"tokens": 0, "microdollars": 0, "estimated_microdollars": 0,
            "sessions_without_tokens": 0, "sessions_without_cost": 0}, "prompt_bytes": 1,
            "prompt_sha256": "0000000000000000000000000000000000000000000000000000000000000000"}"#;
        let planned = RecordedEvent::from_line(line.replace('\n', " ").as_bytes()).unwrap();
        assert!(is_planned(&planned.event), "{planned:?}");
        let record = IterationRecord::Unfinished { planned: Some(Box::new(planned)) };
        let iter = IterationNumber::new(3).unwrap();
        let row = record.clone().into_row(iter, None);
        assert_eq!((row.node.as_deref(), row.path.as_str(), row.outcome), (Some("a"), "root/a", None));
        assert_eq!((row.attempt, row.started_ms), (Some(AttemptOrdinal { nth: 2, of: 3 }), Some(5)));
        let row = record.into_row(iter, Some(&commit(3, "passed")));
        assert_eq!(
            (row.outcome.as_deref(), row.commit.as_deref()),
            (Some("passed"), Some("c".repeat(40).as_str()))
        );
    }

    #[test]
    fn folder_is_an_iteration_only_by_its_exact_name() {
        assert_eq!(folder_number("0012").map(IterationNumber::get), Some(12));
        for other in ["12", "00012", "0000", "x", "..", "0012.tmp"] {
            assert_eq!(folder_number(other), None, "{other}");
        }
    }
}
