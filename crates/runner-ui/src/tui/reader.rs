//! Reads what the view shows, on a thread of its own: a key never waits for a disk.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use runner_core::model::id::{IterationNumber, RunId};
use runner_term::{Glyph, TextRole};
use serde_json::Value;

use super::session::{plain, session};
use super::theme::StyledLine;
use crate::api::{IterationRow, PageSnapshot, StateWord, TreeColumns};
use crate::error::RequestError;
use crate::read::error_lines::tells_of_failure;
use crate::read::iterations;
use crate::read::logs;
use crate::read::repo_reader::{ReadTree, RepoReader, RunSource};
use crate::read::snapshot;
use crate::read::tree_view;
use crate::watch::WatchState;

/// The most lines of a log that are held.
const LINES_MAX: u64 = logs::LINES_MAX;

/// What the view wants to be shown beside the run itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LogRequest {
    /// The iteration; none for the newest.
    pub(super) iter: Option<u32>,
    /// The log; none for the one that is being written.
    pub(super) log: Option<LogKind>,
    /// The first line, so that what is read does not move away; none for the last lines.
    pub(super) from: Option<u64>,
}

/// Which log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LogKind {
    /// What the agent said and did.
    Session,
    /// What the guard printed.
    Guard,
}

/// Why something is read.
#[derive(Debug)]
pub(super) enum ReadReason {
    /// Something changed.
    Look,
    /// Something else is to be shown.
    Show(LogRequest),
}

/// Everything that is shown.
#[derive(Debug)]
pub(super) struct WatchData {
    /// Which look it is; texts of another look may differ.
    pub(super) nth: u64,
    pub(super) snapshot: PageSnapshot,
    pub(super) tree: Arc<TreeColumns>,
    pub(super) rows: Vec<IterationRow>,
    pub(super) text: LogExcerpt,
}

/// A part of a log.
#[derive(Debug, Default)]
pub(super) struct LogExcerpt {
    pub(super) iter: Option<u32>,
    pub(super) log: Option<LogKind>,
    /// The number of the first line, from 0.
    pub(super) from: u64,
    pub(super) lines: Vec<StyledLine>,
}

/// Reads one run.
#[derive(Debug)]
pub(super) struct RunReader {
    pub(super) project: Arc<RepoReader>,
    pub(super) watch: Arc<WatchState>,
    pub(super) run: Option<RunId>,
    pub(super) nth: u64,
    /// The tree as it was read last, and in columns.
    pub(super) tree: Option<(ReadTree, Arc<TreeColumns>)>,
}

impl RunReader {
    /// Reads whenever it is asked to, until nobody asks any more.
    pub(super) fn serve(
        mut self,
        asks: &Receiver<ReadReason>,
        told: impl Fn(Result<WatchData, RequestError>),
    ) {
        let mut wish = LogRequest::default();
        while let Ok(first) = asks.recv() {
            for ask in std::iter::once(first).chain(asks.try_iter()) {
                if let ReadReason::Show(other) = ask {
                    wish = other;
                }
            }
            told(self.read(&wish));
        }
    }

    /// Reads everything once.
    pub(super) fn read(&mut self, wish: &LogRequest) -> Result<WatchData, RequestError> {
        self.nth += 1;
        let snapshot = snapshot::snapshot(&self.project, self.run.as_ref(), self.watch.watching())?;
        let mut shown = WatchData {
            nth: self.nth,
            snapshot,
            tree: Arc::default(),
            rows: Vec::new(),
            text: LogExcerpt::default(),
        };
        let Some(run) = self.project.run(self.run.as_ref())? else { return Ok(shown) };
        shown.tree = self.tree(&run);
        shown.rows = iterations::rows(&self.project, &run)?;
        shown.text = self.text(&run, &shown, wish);
        Ok(shown)
    }

    /// The tree in columns, made anew only if it is another one. One that cannot be read is none; the snapshot says why.
    fn tree(&mut self, run: &RunSource) -> Arc<TreeColumns> {
        let Ok(read) = self.project.tree(run) else { return Arc::default() };
        if let Some((known, slim)) = &self.tree
            && Arc::ptr_eq(known, &read)
        {
            return Arc::clone(slim);
        }
        let slim = read.as_ref().as_ref().map(|tree| tree_view::slim(tree, Some(run.id.to_string())));
        let slim = Arc::new(slim.unwrap_or_default());
        self.tree = Some((read, Arc::clone(&slim)));
        slim
    }

    fn text(&self, run: &RunSource, shown: &WatchData, wish: &LogRequest) -> LogExcerpt {
        let newest = shown.rows.last().map(|row| row.iter);
        let Some(iter) = wish.iter.or(newest) else { return LogExcerpt::default() };
        let is_guarding = shown.snapshot.state == StateWord::Guarding && newest == Some(iter);
        let log = wish.log.unwrap_or(if is_guarding { LogKind::Guard } else { LogKind::Session });
        let (from, lines) = match log {
            LogKind::Session => self.session(run, iter, wish.from),
            LogKind::Guard => self.guard(run, iter, wish.from),
        };
        let mut text = LogExcerpt { iter: Some(iter), log: Some(log), from, lines };
        if text.lines.is_empty() {
            let row = shown.rows.iter().find(|row| row.iter == iter);
            text.lines = absent(row, log);
        } else if from > 0 {
            let earlier = format!("{from} earlier lines: runner log {iter}");
            text.lines.insert(0, StyledLine::new(Glyph::Cut, Some(TextRole::Faint), earlier));
        }
        text
    }

    fn session(&self, run: &RunSource, iter: u32, from: Option<u64>) -> (u64, Vec<StyledLine>) {
        let (from, events) = self.lines(run, iter, "events.jsonl", from);
        let events: Vec<Value> = events.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let is_understood = events.iter().any(|event| event.get("kind").is_some());
        // What an agent that is not understood prints is all that there is to show.
        let printed = if is_understood { Vec::new() } else { self.lines(run, iter, "executor.log", None).1 };
        (from, session(&events, &printed))
    }

    fn guard(&self, run: &RunSource, iter: u32, from: Option<u64>) -> (u64, Vec<StyledLine>) {
        let (from, lines) = self.lines(run, iter, "guard.log", from);
        let told = |line: &String| {
            let text = plain(line);
            let ink = tells_of_failure(&text).then_some(TextRole::Bad);
            StyledLine::under(ink, text)
        };
        (from, lines.iter().map(told).collect())
    }

    /// Lines of a file of an iteration, and the number of the first: from a line on, or else the last ones.
    fn lines(&self, run: &RunSource, iter: u32, name: &str, from: Option<u64>) -> (u64, Vec<String>) {
        let read = || {
            let iter = IterationNumber::new(iter)?;
            let file = iterations::folder(&self.project, run, iter).ok()?.file(name).ok()?;
            let index = self.project.indexes.of(&format!("{}/{iter}/{name}", run.id), &file).ok()?;
            let last = index.lines().saturating_sub(LINES_MAX);
            logs::page(&file, &index, from.unwrap_or(last).min(index.lines()), LINES_MAX).ok()
        };
        read().map(|page| (page.from, page.lines)).unwrap_or_default()
    }
}

/// What is said of a log that is not there.
fn absent(row: Option<&IterationRow>, log: LogKind) -> Vec<StyledLine> {
    let faint = |text: &str| StyledLine::new(Glyph::Open, Some(TextRole::Faint), text);
    let Some(row) = row else { return vec![faint("there is no such iteration")] };
    let mut told = vec![match log {
        LogKind::Session if row.has_logs => faint("nothing is said yet"),
        LogKind::Session => faint("the logs are not in this clone; git knows this much:"),
        LogKind::Guard => faint("the guard has printed nothing"),
    }];
    if log == LogKind::Session && !row.has_logs {
        told.extend(row.outcome.as_ref().map(|word| StyledLine::under(None, word.replace('_', " "))));
        told.extend(plain_lines(&row.summary));
    }
    told
}

fn plain_lines(text: &str) -> Vec<StyledLine> {
    text.lines().map(|line| StyledLine::under(None, plain(line))).collect()
}
