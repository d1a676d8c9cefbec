//! Reads what the terminal UI shows, on its own thread, so that keys never wait for a disk.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use runner_core::model::id::{IterationNumber, RunId};
use runner_core::run_status::RunPhase;
use runner_core::step::{Outcome, RecordedEvent};
use runner_term::{Glyph, TextRole};

use super::session::{has_agent_events, plain, session_lines};
use super::theme::StyledLine;
use super::trust::TrustRequests;
use crate::api::{DiffKind, DiffLine, IterationRow, PageSnapshot, TreeColumns};
use crate::error::RequestError;
use crate::read::diff;
use crate::read::error_lines::is_error_line;
use crate::read::iterations;
use crate::read::logs;
use crate::read::repo_reader::{ReadTree, RepoReader, RunSource};
use crate::read::row_cache::IterationRows;
use crate::read::snapshot::{self, ServerFacts};
use crate::read::tree_view;
use crate::watch::WatchState;

/// The most lines of a log that are loaded.
const LINES_MAX: u64 = logs::LINES_MAX;
/// The most files of a diff that are shown.
const DIFF_FILES_MAX: usize = 50;

/// The log that the view shows beside the tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LogRequest {
    /// `None` for the newest.
    pub(super) iter: Option<u32>,
    /// `None` for the one that is being written.
    pub(super) log: Option<LogKind>,
    /// The first line, so that the text does not move while it is read; `None` for the last lines.
    pub(super) from: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogKind {
    /// The transcript of the agent.
    Session,
    Diff,
    Guard,
    Prompt,
}

/// Why the reader reads.
#[derive(Debug)]
pub(super) enum ReadReason {
    Changed,
    /// The view shows another log.
    Show(LogRequest),
}

/// Everything that the screen shows.
#[derive(Debug)]
pub(super) struct WatchData {
    /// Counts the reads: lines that were wrapped for an earlier one may be stale.
    pub(super) revision: u64,
    pub(super) snapshot: PageSnapshot,
    /// Whether the history of the run is being verified.
    pub(super) is_verifying: bool,
    pub(super) tree: Arc<TreeColumns>,
    pub(super) rows: IterationRows,
    pub(super) log: LogExcerpt,
}

/// A part of a log.
#[derive(Debug, Default)]
pub(super) struct LogExcerpt {
    pub(super) iter: Option<u32>,
    pub(super) kind: Option<LogKind>,
    /// The number of the first line, from 0.
    pub(super) from: u64,
    pub(super) lines: Vec<StyledLine>,
}

#[derive(Debug)]
pub(super) struct RunReader {
    project: Arc<RepoReader>,
    watch: Arc<WatchState>,
    run: Option<RunId>,
    revision: u64,
    /// The last tree, and its columns.
    tree: Option<(ReadTree, Arc<TreeColumns>)>,
    trust: TrustRequests,
}

impl RunReader {
    pub(super) fn new(
        project: Arc<RepoReader>,
        watch: Arc<WatchState>,
        run: Option<RunId>,
        trust: TrustRequests,
    ) -> Self {
        Self { project, watch, run, revision: 0, tree: None, trust }
    }

    /// Reads for every request, until the channel closes.
    pub(super) fn serve(
        mut self,
        requests: &Receiver<ReadReason>,
        publish: impl Fn(Result<WatchData, RequestError>),
    ) {
        let mut request = LogRequest::default();
        while let Ok(first) = requests.recv() {
            for reason in std::iter::once(first).chain(requests.try_iter()) {
                if let ReadReason::Show(other) = reason {
                    request = other;
                }
            }
            publish(self.read(&request));
        }
    }

    fn read(&mut self, request: &LogRequest) -> Result<WatchData, RequestError> {
        self.revision += 1;
        let facts = ServerFacts::without_events(self.watch.watching());
        let snapshot = snapshot::snapshot(&self.project, self.run.as_ref(), facts)?;
        let mut data = WatchData {
            revision: self.revision,
            snapshot,
            is_verifying: false,
            tree: Arc::default(),
            rows: IterationRows::default(),
            log: LogExcerpt::default(),
        };
        let Some(run) = self.project.run(self.run.as_ref())? else { return Ok(data) };
        data.is_verifying = self.trust.request(&run, &data.snapshot);
        data.tree = self.tree_columns(&run);
        data.rows = iterations::rows(&self.project, &run)?;
        data.log = self.log_excerpt(&run, &data, request);
        Ok(data)
    }

    /// The tree in columns, rebuilt only if it changed. Empty for an invalid tree; the snapshot has its problems.
    fn tree_columns(&mut self, run: &RunSource) -> Arc<TreeColumns> {
        let Ok(read) = self.project.tree(run) else { return Arc::default() };
        if let Some((known, columns)) = &self.tree
            && Arc::ptr_eq(known, &read)
        {
            return Arc::clone(columns);
        }
        let tree = read.as_ref().as_ref();
        let on_stuck = tree_view::on_stuck(self.project.config(run).as_deref());
        let columns = tree.map(|tree| tree_view::tree_columns(tree, on_stuck, Some(run.id.to_string())));
        let columns = Arc::new(columns.unwrap_or_default());
        self.tree = Some((read, Arc::clone(&columns)));
        columns
    }

    fn log_excerpt(&self, run: &RunSource, data: &WatchData, request: &LogRequest) -> LogExcerpt {
        let newest = data.rows.last().map(|row| row.iter);
        let Some(iter) = request.iter.or(newest) else { return LogExcerpt::default() };
        let runs_guard = data.snapshot.status.phase == Some(RunPhase::Guard) && newest == Some(iter);
        let kind = request.log.unwrap_or(if runs_guard { LogKind::Guard } else { LogKind::Session });
        let (from, mut lines) = match kind {
            LogKind::Session => self.session(run, iter, request.from),
            LogKind::Diff => (0, self.diff(run, iter)),
            LogKind::Guard => self.guard(run, iter, request.from),
            LogKind::Prompt => {
                let (from, lines) = self.lines(run, iter, "prompt.md", request.from);
                (from, lines.iter().map(|line| StyledLine::continued(None, plain(line))).collect())
            }
        };
        if lines.is_empty() {
            let row = data.rows.iter().find(|row| row.iter == iter);
            lines = missing_log_lines(row.map(AsRef::as_ref), kind);
        } else if from > 0 {
            let earlier = format!("{from} earlier lines: runner log {iter}");
            lines.insert(0, StyledLine::new(Glyph::Cut, Some(TextRole::Faint), earlier));
        }
        LogExcerpt { iter: Some(iter), kind: Some(kind), from, lines }
    }

    fn session(&self, run: &RunSource, iter: u32, from: Option<u64>) -> (u64, Vec<StyledLine>) {
        let (from, lines) = self.lines(run, iter, "events.jsonl", from);
        let events: Vec<RecordedEvent> =
            lines.iter().filter_map(|line| RecordedEvent::from_line(line.as_bytes())).collect();
        // Without agent events, what the agent printed is all there is to show.
        let printed = if has_agent_events(&events) {
            Vec::new()
        } else {
            self.lines(run, iter, "executor.log", None).1
        };
        (from, session_lines(&events, &printed))
    }

    fn guard(&self, run: &RunSource, iter: u32, from: Option<u64>) -> (u64, Vec<StyledLine>) {
        let (from, lines) = self.lines(run, iter, "guard.log", from);
        let styled = |line: &String| {
            let text = plain(line);
            let role = is_error_line(&text).then_some(TextRole::Bad);
            StyledLine::continued(role, text)
        };
        (from, lines.iter().map(styled).collect())
    }

    /// The patches of the files that the iteration changed; of the work tree while it runs.
    fn diff(&self, run: &RunSource, iter: u32) -> Vec<StyledLine> {
        let Some(iter) = IterationNumber::new(iter) else { return Vec::new() };
        let Ok(view) = diff::diff_view(&self.project, run, iter.into()) else { return Vec::new() };
        let mut lines = Vec::new();
        if view.to.is_none() {
            let text = "work tree, not committed yet";
            lines.push(StyledLine::new(Glyph::Next, Some(TextRole::Active), text));
        }
        for file in view.files.iter().filter(|file| !file.is_runner_file).take(DIFF_FILES_MAX) {
            let count = file.added.zip(file.removed);
            let count =
                count.map_or_else(|| "binary".to_owned(), |(added, removed)| format!("+{added} -{removed}"));
            let head = format!("{}  {count}", plain(&file.path));
            lines.push(StyledLine::new(Glyph::Arrow, Some(TextRole::Strong), head));
            let patch = diff::file_patch(&self.project, run, iter.into(), &file.path, diff::CONTEXT_LINES);
            lines.extend(patch.into_iter().flat_map(|patch| patch.lines).filter_map(|line| diff_line(&line)));
        }
        lines
    }

    /// Lines of a log and the number of the first one: from a line on, or else the last ones.
    fn lines(&self, run: &RunSource, iter: u32, name: &str, from: Option<u64>) -> (u64, Vec<String>) {
        let read = || {
            let iter = IterationNumber::new(iter)?;
            let file = iterations::folder(&self.project, run, iter).ok()?.file(name).ok()?;
            let index = self.project.indexes.index(&format!("{}/{iter}/{name}", run.id), &file).ok()?;
            let last = index.lines().saturating_sub(LINES_MAX);
            logs::page(&file, &index, from.unwrap_or(last).min(index.lines()), LINES_MAX).ok()
        };
        read().map(|page| (page.from, page.lines)).unwrap_or_default()
    }
}

/// A line of a patch; none for the header of a file.
fn diff_line(line: &DiffLine) -> Option<StyledLine> {
    let text = plain(&line.text);
    Some(match line.kind {
        DiffKind::Head => return None,
        DiffKind::Hunk | DiffKind::Note => StyledLine::continued(Some(TextRole::Faint), text),
        DiffKind::Same => StyledLine::continued(None, format!(" {text}")),
        DiffKind::Added => StyledLine::continued(Some(TextRole::Good), format!("+{text}")),
        DiffKind::Removed => StyledLine::continued(Some(TextRole::Warn), format!("-{text}")),
    })
}

/// What is shown in place of an empty or missing log.
fn missing_log_lines(row: Option<&IterationRow>, kind: LogKind) -> Vec<StyledLine> {
    let faint = |text: &str| StyledLine::new(Glyph::Open, Some(TextRole::Faint), text);
    let Some(row) = row else { return vec![faint("no such iteration")] };
    match kind {
        LogKind::Session if row.has_logs => vec![faint("no output yet")],
        LogKind::Diff => vec![faint("the iteration changed no files")],
        LogKind::Guard => vec![faint("the guard printed nothing")],
        LogKind::Prompt => vec![faint("the prompt is missing in this clone")],
        LogKind::Session => {
            let mut lines = vec![faint("the logs are missing in this clone; from the commit:")];
            lines.extend(row.outcome.as_deref().map(outcome_line));
            lines.extend(row.summary.lines().map(|line| StyledLine::continued(None, plain(line))));
            lines
        }
    }
}

fn outcome_line(name: &str) -> StyledLine {
    let text = Outcome::from_name(name).map(|outcome| outcome.label().text.to_owned());
    StyledLine::continued(None, text.unwrap_or_else(|| name.replace('_', " ")))
}
