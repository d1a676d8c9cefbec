//! Searches everything about a run: tasks, iterations, files and, if wanted, the logs of the newest iterations.

use std::time::{Duration, Instant};

use runner_core::model::id::IterationNumber;

use crate::api::{LogLine, SearchResults};
use crate::error::RequestError;
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
/// The searched logs: their names in addresses, and their files.
const LOGS: [(&str, &str); 3] =
    [("guard", "guard.log"), ("stderr", "executor.err.log"), ("agent", "executor.log")];

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
    let mut found = rows;
    found.retain(|row| {
        contains(&row.summary) || contains(&row.path) || row.findings.iter().any(|text| contains(text))
    });
    let iterations = found.iter().take(RESULTS_MAX).map(|row| row.as_ref().clone()).collect();
    let mut files = files::run_files(project, run)?.files;
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
        for (log, name) in LOGS {
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
