//! `runner log`

use std::path::Path;
use std::time::Duration;

use runner_core::model::id::IterationNumber;
use runner_core::step::Outcome;
use runner_core::text::lines;
use runner_host::view::run_view::{IterationView, RunView, TextPattern};
use runner_term::format::{clock, dollars};
use runner_term::{CommandError, CommandExit, CommandOutput, Glyph, KeyValueLine, Styler, TextRole, Ui};
use serde_json::{Value, json};

use crate::args::LogArgs;
use crate::target_arg::{TargetArg, which};

const WHAT: &str = "could not show the log";

pub(crate) fn run(dir: &Path, args: &LogArgs, out: &Ui) -> Result<Box<dyn CommandOutput>, CommandError> {
    let told = |error| CommandError::from_host(WHAT, error);
    let look = RunView::at(dir, args.run.as_deref()).map_err(told)?;
    let pattern = args.grep.as_deref().map(regex).transpose()?;
    let Some(text) = &args.which else {
        if args.follow {
            follow_run(dir, args, look, out).map_err(told)?;
            return Ok(Box::new(NoOutput));
        }
        let kept =
            |seen: &IterationView| pattern.as_ref().is_none_or(|pattern| pattern.is_match(&whole(seen)));
        let iterations = look.iterations.iter().filter(|seen| kept(seen)).cloned().collect();
        return Ok(Box::new(LogOutput { run: look.target.run.to_string(), iterations }));
    };
    let iter = match which(text, &look, WHAT)? {
        TargetArg::Iteration(iter) => iter,
        TargetArg::Node(node) => {
            let last = look.iterations.iter().rev().find(|seen| seen.node() == Some(&node));
            let none = || {
                CommandError::new("no_iteration", CommandExit::REFUSED, WHAT)
                    .cause(format!("no iteration has worked on `{node}` yet"))
                    .hint(format!("see it with 'runner show {node}'"))
            };
            last.map(|seen| seen.iter).ok_or_else(none)?
        }
    };
    if args.follow {
        follow_iteration(&look, iter, args, out).map_err(told)?;
        return Ok(Box::new(NoOutput));
    }
    let transcript = transcript(&look, iter, args, pattern.as_ref())?;
    Ok(Box::new(transcript))
}

fn regex(text: &str) -> Result<TextPattern, CommandError> {
    TextPattern::new(text).map_err(|cause| {
        CommandError::new("regex", CommandExit::REFUSED, WHAT)
            .cause(format!("`{}` is no regular expression: {cause}", crate::render::short(text)))
            .hint("put a backslash before characters that are meant as they are: \\( \\[ \\*")
    })
}

fn whole(seen: &IterationView) -> String {
    let node = seen.node().map(ToString::to_string).unwrap_or_default();
    format!("{} {node} {} {}", seen.iter, seen.outcome.map_or("", Outcome::as_str), seen.body)
}

/// The iterations of a run, one line each.
pub(crate) struct LogOutput {
    pub(crate) run: String,
    pub(crate) iterations: Vec<IterationView>,
}

/// The glyph and colour of an outcome; a dot where the commit names none.
pub(crate) fn look_of(outcome: Option<Outcome>) -> (Glyph, TextRole) {
    let label = outcome.map(Outcome::label);
    label.map_or((Glyph::Open, TextRole::Warn), |label| (label.symbol.into(), label.tone.into()))
}

fn time(seen: &IterationView, key: &str) -> Option<String> {
    seen.number(key).map(|ms| clock(Duration::from_millis(ms)))
}

pub(crate) fn seen_json(seen: &IterationView) -> Value {
    json!({
        "iter": seen.iter, "commit": seen.commit, "node": seen.node(), "outcome": seen.outcome,
        "committed": seen.committed, "agent_ms": seen.number("agent_ms"), "guard_ms": seen.number("guard_ms"),
        "files": seen.files, "cost_microdollars": seen.cost(), "annotations": seen.annotations, "said": lines(&seen.body),
    })
}

/// One iteration as a line of pairs; what is not on record is left out.
pub(crate) fn seen_line(seen: &IterationView) -> KeyValueLine {
    let mut line = KeyValueLine::new()
        .with("iter", seen.iter.get())
        .with("outcome", seen.outcome.map_or("unknown", Outcome::as_str))
        .with("node", seen.node().map_or_else(|| "repair".to_owned(), ToString::to_string))
        .with("files", seen.files)
        .with("commit", &seen.commit);
    for key in ["agent_ms", "guard_ms"] {
        if let Some(ms) = seen.number(key) {
            line = line.with(key, ms);
        }
    }
    if let Some(cost) = seen.cost() {
        line = line.with("cost_microdollars", cost);
    }
    line
}

pub(crate) fn seen_drawn(seen: &IterationView, pen: &Styler) -> String {
    let (glyph, ink) = look_of(seen.outcome);
    let glyph = pen.paint(ink, pen.glyph(glyph));
    let node = seen.node().map_or_else(|| "repair".to_owned(), ToString::to_string);
    let agent = time(seen, "agent_ms").unwrap_or_default();
    let guard = time(seen, "guard_ms").map(|time| format!("guard {time}")).unwrap_or_default();
    let files = match seen.files {
        0 => String::new(),
        1 => "1 file".to_owned(),
        n => format!("{n} files"),
    };
    let cost = seen.cost().map(dollars).unwrap_or_default();
    let outcome = seen.outcome.map_or("unknown", Outcome::as_str);
    let line = format!(
        "#{:<5} {:<24} {outcome:<16} {agent:>7} {guard:>13} {files:>9} {cost:>7}",
        seen.iter.get(),
        pen.fit(&node, 24)
    );
    let line = pen.fit(line.trim_end(), pen.width.saturating_sub(2));
    let marks = if seen.annotations.is_empty() || !pen.verbose {
        String::new()
    } else {
        format!(
            "         {}\n",
            pen.fit(&crate::render::clean(&seen.annotations.join("; ")), pen.width.saturating_sub(9))
        )
    };
    format!("{glyph} {line}\n{marks}")
}

impl CommandOutput for LogOutput {
    fn json(&self) -> Value {
        json!({
            "schema": "runner.log/1",
            "run_id": self.run,
            "iterations": self.iterations.iter().map(seen_json).collect::<Vec<_>>(),
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        self.iterations.iter().map(seen_line).collect()
    }

    fn human(&self, pen: &Styler) -> String {
        if self.iterations.is_empty() {
            return format!("run {} has no iteration yet: make one with 'runner step'\n", self.run);
        }
        self.iterations.iter().map(|seen| seen_drawn(seen, pen)).collect()
    }

    fn is_long(&self) -> bool {
        true
    }
}

/// One new iteration of a run that is followed.
struct FollowedIteration<'s>(&'s IterationView);

impl CommandOutput for FollowedIteration<'_> {
    fn json(&self) -> Value {
        seen_json(self.0)
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        vec![seen_line(self.0)]
    }

    fn human(&self, pen: &Styler) -> String {
        seen_drawn(self.0, pen)
    }
}

/// Everything was said already.
struct NoOutput;

impl CommandOutput for NoOutput {
    fn json(&self) -> Value {
        json!({ "event": "end" })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        Vec::new()
    }

    fn human(&self, _: &Styler) -> String {
        String::new()
    }

    fn ends_lines(&self) -> bool {
        true
    }
}

/// How often something that is followed is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Tells every iteration, and every new one, until nobody works on the run any more.
fn follow_run(dir: &Path, args: &LogArgs, first: RunView, out: &Ui) -> Result<(), runner_host::Error> {
    let mut told: Option<IterationNumber> = None;
    let mut look = first;
    loop {
        let known = told;
        for seen in look.iterations.iter().filter(|seen| known.is_none_or(|known| seen.iter > known)) {
            out.print_now(&FollowedIteration(seen));
            told = Some(seen.iter);
        }
        if !runner_host::view::run_view::is_locked(dir)? {
            return Ok(());
        }
        std::thread::sleep(LOOK_EVERY);
        look = RunView::at(dir, args.run.as_deref())?;
    }
}

/// Tells what an iteration's agent and guard print while they do.
fn follow_iteration(
    look: &RunView,
    iter: IterationNumber,
    args: &LogArgs,
    out: &Ui,
) -> Result<(), runner_host::Error> {
    let names: &[&str] = match (args.guard, args.agent || args.raw) {
        (true, _) => &["guard.log"],
        (false, true) => &["executor.log"],
        (false, false) => &["executor.log", "guard.log"],
    };
    let mut read = vec![0_usize; names.len()];
    loop {
        let is_over = look.folder(iter).join("meta.json").exists();
        for (name, read) in names.iter().zip(&mut read) {
            let bytes = look.log(iter, name)?.unwrap_or_default();
            let fresh = bytes.get(*read..).unwrap_or_default();
            // Whole lines only, so that no character and no escape sequence is cut in two.
            let end = fresh.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let end = if is_over { fresh.len() } else { end };
            let part = fresh.get(..end).unwrap_or_default();
            *read += part.len();
            if !part.is_empty() {
                out.print_now(&LogChunkOutput { name, text: lines(&String::from_utf8_lossy(part)) });
            }
        }
        if is_over || !runner_host::view::run_view::is_locked(&look.folder(iter))? {
            return Ok(());
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// A part of a log that is followed.
struct LogChunkOutput<'n> {
    name: &'n str,
    text: String,
}

impl CommandOutput for LogChunkOutput<'_> {
    fn json(&self) -> Value {
        json!({ "log": self.name, "text": self.text })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        self.text.lines().map(KeyValueLine::verbatim).collect()
    }

    fn human(&self, _: &Styler) -> String {
        self.text.clone()
    }
}

/// What an iteration's logs say.
struct LogTextOutput {
    iter: IterationNumber,
    /// What each part is called, and what it says.
    parts: Vec<(&'static str, String)>,
    raw: bool,
}

fn transcript(
    look: &RunView,
    iter: IterationNumber,
    args: &LogArgs,
    grep: Option<&TextPattern>,
) -> Result<LogTextOutput, CommandError> {
    let told = |error| CommandError::from_host(WHAT, error);
    let wanted: &[(&str, &str)] = match (args.guard, args.agent, args.raw, args.errors, args.prompt) {
        (true, ..) => &[("guard", "guard.log")],
        (_, true, ..) => &[("agent", "executor.log")],
        (_, _, true, ..) => &[("raw", "stream.jsonl")],
        (_, _, _, true, _) => &[("errors", "error.log"), ("guard", "guard.log")],
        (_, _, _, _, true) => &[("prompt", "prompt.md")],
        (false, false, false, false, false) => {
            &[("agent", "executor.log"), ("errors", "error.log"), ("guard", "guard.log")]
        }
    };
    let mut parts = Vec::new();
    for (name, file) in wanted {
        if let Some(bytes) = look.log(iter, file).map_err(told)? {
            let text = String::from_utf8_lossy(&bytes);
            parts.push((*name, if args.raw { text.into_owned() } else { lines(&text) }));
        }
    }
    if parts.is_empty() {
        parts = on_record(look, iter, args)?;
    }
    if args.errors {
        parts.iter_mut().filter(|(name, _)| *name == "guard").for_each(|(_, text)| *text = last_lines(text));
    }
    if let Some(grep) = grep {
        for (_, text) in &mut parts {
            let kept: String =
                text.lines().filter(|line| grep.is_match(line)).map(|line| format!("{line}\n")).collect();
            *text = kept;
        }
    }
    parts.retain(|(_, text)| !text.is_empty());
    Ok(LogTextOutput { iter, parts, raw: args.raw })
}

/// How many lines of a guard are shown among the errors.
const GUARD_LINES: usize = 60;

fn last_lines(text: &str) -> String {
    let all: Vec<&str> = text.lines().collect();
    all.iter().skip(all.len().saturating_sub(GUARD_LINES)).map(|line| format!("{line}\n")).collect()
}

/// What git alone knows, where the iteration's folder is not here.
fn on_record(
    look: &RunView,
    iter: IterationNumber,
    args: &LogArgs,
) -> Result<Vec<(&'static str, String)>, CommandError> {
    let none = || {
        CommandError::new("not_here", CommandExit::REFUSED, WHAT)
            .cause(format!("the logs of iteration {} are not in this clone", iter.get()))
            .hint("they lie in the work tree that the run was made in; git holds what 'runner show' tells")
    };
    let seen = look.iterations.iter().find(|seen| seen.iter == iter).ok_or_else(none)?;
    let state = look.state_after(seen).map_err(|error| CommandError::from_host(WHAT, error))?;
    let lesson = state.as_ref().zip(seen.node()).and_then(|(state, node)| state.history_of(node));
    let guard = lesson.and_then(|lesson| lesson.guard_output.clone());
    let mut parts = Vec::new();
    if !(args.guard || args.prompt || args.raw || seen.body.is_empty()) {
        parts.push(("said", lines(&seen.body) + "\n"));
    }
    if !(args.agent || args.prompt || args.raw) {
        parts.extend(guard.map(|text| ("guard", lines(&text))));
    }
    if parts.is_empty() { Err(none()) } else { Ok(parts) }
}

impl CommandOutput for LogTextOutput {
    fn json(&self) -> Value {
        let parts: serde_json::Map<String, Value> =
            self.parts.iter().map(|(name, text)| ((*name).to_owned(), json!(text))).collect();
        json!({ "schema": "runner.log/1", "iter": self.iter, "parts": parts })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        self.parts.iter().flat_map(|(_, text)| text.lines()).map(KeyValueLine::verbatim).collect()
    }

    fn human(&self, pen: &Styler) -> String {
        let heading = |name: &str| match (self.raw, self.parts.len()) {
            (true, _) | (_, 1) => String::new(),
            _ => format!("{}\n", pen.paint(TextRole::Strong, &format!("#{} {name}", self.iter.get()))),
        };
        let ended = |text: &str| if text.ends_with('\n') { "" } else { "\n" };
        self.parts
            .iter()
            .map(|(name, text)| format!("{}{}{}", heading(name), lines(text), ended(text)))
            .collect()
    }

    fn is_long(&self) -> bool {
        true
    }
}
