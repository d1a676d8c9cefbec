//! Reads what the view shows, on a thread of its own: a key never waits for a disk.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use runner_cli::{Glyph, Ink};
use runner_core::id::{Iteration, RunId};
use serde_json::Value;

use super::paint::Told;
use super::session::{plain, session};
use crate::api::{IterationRow, SlimTree, Snapshot, StateWord};
use crate::error::Fault;
use crate::failure::tells_of_failure;
use crate::log;
use crate::project::{Project, ReadTree, Run};
use crate::watch::Watch;
use crate::{history, snapshot, tree_view};

/// The most lines of a log that are held.
const LINES_MAX: u64 = log::LINES_MAX;

/// What the view wants to be shown beside the run itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Wish {
    /// The iteration; none for the newest.
    pub(super) iter: Option<u32>,
    /// The log; none for the one that is being written.
    pub(super) log: Option<Log>,
    /// The first line, so that what is read does not move away; none for the last lines.
    pub(super) from: Option<u64>,
}

/// Which log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Log {
    /// What the agent said and did.
    Session,
    /// What the guard printed.
    Guard,
}

/// Why something is read.
#[derive(Debug)]
pub(super) enum Ask {
    /// Something changed.
    Look,
    /// Something else is to be shown.
    Show(Wish),
}

/// Everything that is shown.
#[derive(Debug)]
pub(super) struct Shown {
    /// Which look it is; texts of another look may differ.
    pub(super) nth: u64,
    pub(super) snapshot: Snapshot,
    pub(super) tree: Arc<SlimTree>,
    pub(super) rows: Vec<IterationRow>,
    pub(super) text: Text,
}

/// A part of a log.
#[derive(Debug, Default)]
pub(super) struct Text {
    pub(super) iter: Option<u32>,
    pub(super) log: Option<Log>,
    /// The number of the first line, from 0.
    pub(super) from: u64,
    pub(super) lines: Vec<Told>,
}

/// Reads one run.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) project: Arc<Project>,
    pub(super) watch: Arc<Watch>,
    pub(super) run: Option<RunId>,
    pub(super) nth: u64,
    /// The tree as it was read last, and in columns.
    pub(super) tree: Option<(ReadTree, Arc<SlimTree>)>,
}

impl Reader {
    /// Reads whenever it is asked to, until nobody asks any more.
    pub(super) fn serve(mut self, asks: &Receiver<Ask>, told: impl Fn(Result<Shown, Fault>)) {
        let mut wish = Wish::default();
        while let Ok(first) = asks.recv() {
            for ask in std::iter::once(first).chain(asks.try_iter()) {
                if let Ask::Show(other) = ask {
                    wish = other;
                }
            }
            told(self.read(&wish));
        }
    }

    /// Reads everything once.
    pub(super) fn read(&mut self, wish: &Wish) -> Result<Shown, Fault> {
        self.nth += 1;
        let snapshot = snapshot::snapshot(&self.project, self.run.as_ref(), self.watch.watching())?;
        let mut shown =
            Shown { nth: self.nth, snapshot, tree: Arc::default(), rows: Vec::new(), text: Text::default() };
        let Some(run) = self.project.run(self.run.as_ref())? else { return Ok(shown) };
        shown.tree = self.tree(&run);
        shown.rows = history::rows(&self.project, &run)?;
        shown.text = self.text(&run, &shown, wish);
        Ok(shown)
    }

    /// The tree in columns, made anew only if it is another one. One that cannot be read is none; the snapshot says why.
    fn tree(&mut self, run: &Run) -> Arc<SlimTree> {
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

    fn text(&self, run: &Run, shown: &Shown, wish: &Wish) -> Text {
        let newest = shown.rows.last().map(|row| row.iter);
        let Some(iter) = wish.iter.or(newest) else { return Text::default() };
        let is_guarding = shown.snapshot.state == StateWord::Guarding && newest == Some(iter);
        let log = wish.log.unwrap_or(if is_guarding { Log::Guard } else { Log::Session });
        let (from, lines) = match log {
            Log::Session => self.session(run, iter, wish.from),
            Log::Guard => self.guard(run, iter, wish.from),
        };
        let mut text = Text { iter: Some(iter), log: Some(log), from, lines };
        if text.lines.is_empty() {
            let row = shown.rows.iter().find(|row| row.iter == iter);
            text.lines = absent(row, log);
        } else if from > 0 {
            let earlier = format!("{from} earlier lines: runner log {iter}");
            text.lines.insert(0, Told::new(Glyph::Cut, Some(Ink::Faint), earlier));
        }
        text
    }

    fn session(&self, run: &Run, iter: u32, from: Option<u64>) -> (u64, Vec<Told>) {
        let (from, events) = self.lines(run, iter, "events.jsonl", from);
        let events: Vec<Value> = events.iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let is_understood = events.iter().any(|event| event.get("kind").is_some());
        // What an agent that is not understood prints is all that there is to show.
        let printed = if is_understood { Vec::new() } else { self.lines(run, iter, "executor.log", None).1 };
        (from, session(&events, &printed))
    }

    fn guard(&self, run: &Run, iter: u32, from: Option<u64>) -> (u64, Vec<Told>) {
        let (from, lines) = self.lines(run, iter, "guard.log", from);
        let told = |line: &String| {
            let text = plain(line);
            let ink = tells_of_failure(&text).then_some(Ink::Bad);
            Told::under(ink, text)
        };
        (from, lines.iter().map(told).collect())
    }

    /// Lines of a file of an iteration, and the number of the first: from a line on, or else the last ones.
    fn lines(&self, run: &Run, iter: u32, name: &str, from: Option<u64>) -> (u64, Vec<String>) {
        let read = || {
            let iter = Iteration::new(iter)?;
            let file = history::folder(&self.project, run, iter).ok()?.file(name).ok()?;
            let index = self.project.indexes.of(&format!("{}/{iter}/{name}", run.id), &file).ok()?;
            let last = index.lines().saturating_sub(LINES_MAX);
            log::page(&file, &index, from.unwrap_or(last).min(index.lines()), LINES_MAX).ok()
        };
        read().map(|page| (page.from, page.lines)).unwrap_or_default()
    }
}

/// What is said of a log that is not there.
fn absent(row: Option<&IterationRow>, log: Log) -> Vec<Told> {
    let faint = |text: &str| Told::new(Glyph::Open, Some(Ink::Faint), text);
    let Some(row) = row else { return vec![faint("there is no such iteration")] };
    let mut told = vec![match log {
        Log::Session if row.has_logs => faint("nothing is said yet"),
        Log::Session => faint("the logs are not in this clone; git knows this much:"),
        Log::Guard => faint("the guard has printed nothing"),
    }];
    if log == Log::Session && !row.has_logs {
        told.extend(row.outcome.as_ref().map(|word| Told::under(None, word.replace('_', " "))));
        told.extend(plain_lines(&row.summary));
    }
    told
}

fn plain_lines(text: &str) -> Vec<Told> {
    text.lines().map(|line| Told::under(None, plain(line))).collect()
}
