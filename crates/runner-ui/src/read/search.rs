//! Searches everything about a run: tasks, iterations, files and, if wanted, the logs of the newest iterations.

use std::sync::Arc;
use std::time::{Duration, Instant};

use runner_core::model::id::IterationNumber;
use serde_json::Value;

use crate::api::{IterationRow, LogLine, SearchResults};
use crate::error::RequestError;
use crate::read::confined_fs::RegularFile;
use crate::read::files;
use crate::read::iterations;
use crate::read::log_index::LogIndex;
use crate::read::logs::{self, LetterCase};
use crate::read::repo_reader::{RepoReader, RunSource};
use crate::read::row_cache::IterationRows;
use crate::read::tree_view;

/// How many results of each kind are listed.
const RESULTS_MAX: usize = 50;
/// How many lines of one log are listed.
const LINES_PER_LOG_MAX: usize = 5;
/// How long logs are searched.
const LOGS_TIME_MAX: Duration = Duration::from_secs(2);
/// The largest log that is searched.
const LOG_BYTES_MAX: u64 = 64 << 20;
/// The searched logs: their names in addresses, and their files. The output of an agent with a protocol is its transcript.
const LOGS: [(&str, &str); 3] =
    [("guard", "guard.log"), ("stderr", "executor.err.log"), ("agent", "executor.log")];
const TRANSCRIPT: (&str, &str) = ("transcript", "stream.jsonl");
/// How many characters of a text are shown before a match in it.
const CHARS_BEFORE_MATCH: usize = 40;

/// Whether a search includes the logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogScope {
    Without,
    With,
}

pub(crate) fn search(
    project: &RepoReader,
    run: &RunSource,
    text: &str,
    scope: LogScope,
) -> Result<SearchResults, RequestError> {
    if text.is_empty() {
        return Err(RequestError::bad_request("`q` is missing: it is the text to search for"));
    }
    let tree = project.tree(run)?;
    let nodes = tree.as_ref().as_ref().map(|tree| tree_view::search(tree, text, RESULTS_MAX));
    let (nodes_total, nodes) = nodes.unwrap_or_default();
    let wanted = text.to_lowercase();
    let contains = |text: &str| text.to_lowercase().contains(&wanted);
    let rows = iterations::rows(project, run)?;
    let (logs, logs_searched) = match scope {
        LogScope::Without => (Vec::new(), 0),
        LogScope::With => search_logs(project, run, &rows, text),
    };
    let is_found = |row: &&Arc<IterationRow>| {
        contains(&row.summary) || contains(&row.path) || row.findings.iter().any(|text| contains(text))
    };
    let found: Vec<&Arc<IterationRow>> = rows.iter().filter(is_found).collect();
    let iterations = found.iter().take(RESULTS_MAX).map(|row| row.as_ref().clone()).collect();
    let mut files = files::file_histories(project, run)?.files;
    files.retain(|file| contains(&file.path));
    let files_total = files.len();
    files.truncate(RESULTS_MAX);
    Ok(SearchResults {
        nodes_total,
        nodes,
        iterations_total: found.len(),
        iterations,
        files_total,
        files,
        logs,
        logs_searched,
    })
}

/// The lines that contain the text, of the newest iterations first, and how many iterations were searched.
fn search_logs(
    project: &RepoReader,
    run: &RunSource,
    rows: &IterationRows,
    text: &str,
) -> (Vec<LogLine>, usize) {
    let started = Instant::now();
    let mut lines = Vec::new();
    let mut searched = 0;
    for row in rows.iter().rev() {
        if lines.len() >= RESULTS_MAX || started.elapsed() > LOGS_TIME_MAX {
            break;
        }
        let Some(folder) =
            IterationNumber::new(row.iter).and_then(|iter| iterations::folder(project, run, iter).ok())
        else {
            continue;
        };
        searched += 1;
        let (log, name) = TRANSCRIPT;
        let transcript = folder.file(name).ok().filter(|file| file.stamp.bytes <= LOG_BYTES_MAX);
        for (line, text) in transcript.iter().flat_map(|file| search_transcript(file, text)) {
            lines.push(LogLine { iter: row.iter, log: log.to_owned(), line, text });
        }
        for (log, name) in LOGS {
            if log == "agent" && transcript.is_some() {
                continue;
            }
            let file = folder.file(name).ok().filter(|file| file.stamp.bytes <= LOG_BYTES_MAX);
            let Some(file) = file else { continue };
            let mut index = LogIndex::default();
            let hits =
                index.extend(&file).and_then(|()| logs::search(&file, &index, text, LetterCase::Ignored));
            for hit in hits.into_iter().flat_map(|hits| hits.hits).take(LINES_PER_LOG_MAX) {
                lines.push(LogLine { iter: row.iter, log: log.to_owned(), line: hit.line, text: hit.text });
            }
        }
    }
    lines.truncate(RESULTS_MAX);
    (lines, searched)
}

/// The entries of a transcript that contain the text: the number of each line, and the text around the match.
fn search_transcript(file: &RegularFile, text: &str) -> Vec<(u64, String)> {
    let wanted = text.to_lowercase();
    let mut found = Vec::new();
    let mut number = 0;
    let searched = logs::each_line(file, 0, file.stamp.bytes, |line, _| {
        let entry = serde_json::from_slice::<Value>(line).unwrap_or_default();
        found.extend(text_with(&entry, &wanted).map(|text| (number, text)));
        number += 1;
        found.len() < LINES_PER_LOG_MAX
    });
    searched.map(|()| found).unwrap_or_default()
}

/// The first text in a JSON value that contains the wanted one, in lower case; from shortly before the match on.
fn text_with(value: &Value, wanted: &str) -> Option<String> {
    match value {
        Value::String(text) => {
            let lower = text.to_lowercase();
            let at = lower.get(..lower.find(wanted)?)?.chars().count();
            let around: String = text.chars().skip(at.saturating_sub(CHARS_BEFORE_MATCH)).collect();
            Some(logs::hit_text(around.as_bytes()))
        }
        Value::Array(values) => values.iter().find_map(|value| text_with(value, wanted)),
        Value::Object(fields) => fields.values().find_map(|value| text_with(value, wanted)),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_text_around_a_match_is_shown() {
        let entry = json!({ "kind": "message", "n": 7, "parts": [{ "text": "x".repeat(100) + " The Needle is here" }] });
        let found = text_with(&entry, "needle").unwrap();
        assert!(
            found.starts_with("xxx") && found.ends_with("The Needle is here") && found.len() < 80,
            "{found}"
        );
        assert_eq!(text_with(&entry, "nothing"), None);
        assert_eq!(text_with(&json!("needle\nnext"), "needle").unwrap(), "needle next");
    }
}
