//! `runner log`

use std::path::Path;
use std::time::Duration;

use runner_core::layout::Doc;
use runner_core::model::id::IterationNumber;
use runner_core::text::lines;
use runner_host::view::run_view::{IterationView, RunView, TextPattern, is_locked};
use runner_term::{CommandError, CommandOutput, KeyValueLine, Styler, TextRole, Ui};
use serde_json::{Value, json};

use crate::args::{LogArgs, LogPart};
use crate::render::iteration::{iteration_json, iteration_line, iteration_row, outcome_word, target_word};
use crate::render::short;
use crate::target_arg::{TargetArg, last_iteration_on, resolve};

const WHAT: &str = "could not show the log";

/// How often `--follow` reads the run or the log again.
const POLL: Duration = Duration::from_millis(250);
/// How many of the guard's last lines `--errors` shows.
const GUARD_LINES: usize = 60;

pub(crate) fn run(dir: &Path, args: &LogArgs, ui: &Ui) -> Result<Box<dyn CommandOutput>, CommandError> {
    let failed = |error| CommandError::from_host(WHAT, error);
    let view = RunView::at(dir, args.run.as_deref()).map_err(failed)?;
    let pattern = args.grep.as_deref().map(parse_pattern).transpose()?;
    let Some(target) = &args.target else {
        if args.follow {
            follow_run(dir, args, view, ui).map_err(failed)?;
            return Ok(Box::new(NoOutput));
        }
        return Ok(Box::new(LogOutput::new(&view, pattern.as_ref(), args.limit)));
    };
    let iter = match resolve(target, &view, WHAT)? {
        TargetArg::Iteration(iter) => iter,
        TargetArg::Node(node) => last_iteration_on(&node, &view).ok_or_else(|| {
            CommandError::refused("no_iteration", WHAT)
                .cause(format!("no iteration has worked on `{node}` yet"))
                .hint(format!("run 'runner show {node}' to see the task"))
        })?,
    };
    if args.follow {
        follow_iteration(&view, iter, args.part(), ui).map_err(failed)?;
        return Ok(Box::new(NoOutput));
    }
    Ok(Box::new(LogTextOutput::read(&view, iter, args.part(), pattern.as_ref())?))
}

fn parse_pattern(text: &str) -> Result<TextPattern, CommandError> {
    TextPattern::new(text).map_err(|cause| {
        CommandError::refused("regex", WHAT)
            .cause(format!("`{}` is not a regular expression: {cause}", short(text)))
            .hint("escape special characters with a backslash: \\( \\[ \\*")
    })
}

/// The iterations of a run, one row each.
struct LogOutput {
    run: String,
    iterations: Vec<IterationView>,
}

impl LogOutput {
    fn new(view: &RunView, pattern: Option<&TextPattern>, limit: Option<usize>) -> Self {
        let mut iterations: Vec<IterationView> = view
            .iterations
            .iter()
            .filter(|iteration| pattern.is_none_or(|pattern| pattern.is_match(&searched_text(iteration))))
            .cloned()
            .collect();
        let first = first_shown(iterations.len(), limit);
        Self { run: view.target.run.to_string(), iterations: iterations.split_off(first) }
    }
}

/// The index of the first of the last `limit` items.
fn first_shown(count: usize, limit: Option<usize>) -> usize {
    limit.map_or(0, |limit| count.saturating_sub(limit))
}

/// The text of an iteration that `--grep` searches.
fn searched_text(iteration: &IterationView) -> String {
    let node = iteration.node().map(|_| target_word(iteration)).unwrap_or_default();
    let outcome = iteration.outcome.map_or("", |outcome| outcome_word(Some(outcome)));
    format!("{} {node} {outcome} {}", iteration.iter, iteration.body)
}

impl CommandOutput for LogOutput {
    fn json(&self) -> Value {
        json!({
            "schema": "runner.log/1",
            "run_id": self.run,
            "iterations": self.iterations.iter().map(iteration_json).collect::<Vec<_>>(),
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        self.iterations.iter().map(iteration_line).collect()
    }

    fn human(&self, styler: &Styler) -> String {
        if self.iterations.is_empty() {
            return format!("run {} has no iteration yet\n\nNext: runner loop\n", self.run);
        }
        self.iterations.iter().map(|iteration| iteration_row(iteration, styler)).collect()
    }

    fn is_long(&self) -> bool {
        true
    }
}

/// A new iteration, printed by `--follow`.
struct FollowedIteration<'i>(&'i IterationView);

impl CommandOutput for FollowedIteration<'_> {
    fn json(&self) -> Value {
        iteration_json(self.0)
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        vec![iteration_line(self.0)]
    }

    fn human(&self, styler: &Styler) -> String {
        iteration_row(self.0, styler)
    }
}

/// The end of `--follow`, which printed everything already.
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

    fn ends_json_lines(&self) -> bool {
        true
    }
}

/// Prints the iterations, and every new one until no runner works on the run.
fn follow_run(dir: &Path, args: &LogArgs, first: RunView, ui: &Ui) -> Result<(), runner_host::Error> {
    let mut view = first;
    let mut last_printed: Option<IterationNumber> = None;
    let mut skip = first_shown(view.iterations.len(), args.limit);
    loop {
        let printed_before = last_printed;
        let is_new =
            |iteration: &&IterationView| printed_before.is_none_or(|printed| iteration.iter > printed);
        for iteration in view.iterations.iter().filter(is_new).skip(skip) {
            ui.print_now(&FollowedIteration(iteration));
            last_printed = Some(iteration.iter);
        }
        if !is_locked(dir)? {
            return Ok(());
        }
        std::thread::sleep(POLL);
        view = RunView::at(dir, args.run.as_deref())?;
        skip = if last_printed.is_some() { 0 } else { skip };
    }
}

/// Prints the output of an iteration's agent and guard while they run.
fn follow_iteration(
    view: &RunView,
    iter: IterationNumber,
    part: LogPart,
    ui: &Ui,
) -> Result<(), runner_host::Error> {
    let names: &[&str] = match part {
        LogPart::Guard => &["guard.log"],
        LogPart::Agent | LogPart::Raw => &["executor.log"],
        LogPart::Requests => &["requests.jsonl"],
        LogPart::All | LogPart::Errors | LogPart::Prompt => &["executor.log", "guard.log"],
    };
    let mut printed = vec![0_usize; names.len()];
    loop {
        let is_over = view.iteration_dir(iter).join("meta.json").exists();
        for (name, printed) in names.iter().zip(&mut printed) {
            let bytes = view.log(iter, name)?.unwrap_or_default();
            let new = bytes.get(*printed..).unwrap_or_default();
            // Only whole lines, so that no character and no escape sequence is cut in two.
            let line_end = new.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let end = if is_over { new.len() } else { line_end };
            let chunk = new.get(..end).unwrap_or_default();
            *printed += chunk.len();
            if !chunk.is_empty() {
                ui.print_now(&LogChunkOutput { name, text: lines(&String::from_utf8_lossy(chunk)) });
            }
        }
        if is_over || !is_locked(&view.iteration_dir(iter))? {
            return Ok(());
        }
        std::thread::sleep(POLL);
    }
}

/// New lines of a log, printed by `--follow`.
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

/// The logs of one iteration.
struct LogTextOutput {
    iter: IterationNumber,
    sections: Vec<LogSection>,
    part: LogPart,
    /// Whether the policy of `[logs]` removed logs of the iteration.
    is_removed: bool,
    /// Whether only lines that match a pattern are printed.
    is_filtered: bool,
}

/// What `runner log` prints about logs that were removed.
fn removed_note(iter: IterationNumber) -> String {
    format!(
        "logs of iteration {} were removed by `keep_iterations` under [logs] in {}",
        iter.get(),
        Doc::Config.path()
    )
}

struct LogSection {
    name: &'static str,
    text: String,
}

/// The sections of a part, with the file of each.
fn section_files(part: LogPart) -> &'static [(&'static str, &'static str)] {
    match part {
        LogPart::All => &[("agent", "executor.log"), ("errors", "error.log"), ("guard", "guard.log")],
        LogPart::Guard => &[("guard", "guard.log")],
        LogPart::Agent => &[("agent", "executor.log")],
        LogPart::Raw => &[("raw", "stream.jsonl")],
        LogPart::Requests => &[("requests", "requests.jsonl")],
        LogPart::Errors => &[("errors", "error.log"), ("guard", "guard.log")],
        LogPart::Prompt => &[("prompt", "prompt.md")],
    }
}

impl LogTextOutput {
    fn read(
        view: &RunView,
        iter: IterationNumber,
        part: LogPart,
        pattern: Option<&TextPattern>,
    ) -> Result<Self, CommandError> {
        let mut sections = Vec::new();
        for (name, file) in section_files(part) {
            let bytes = view.log(iter, file).map_err(|error| CommandError::from_host(WHAT, error))?;
            if let Some(bytes) = bytes {
                let text = String::from_utf8_lossy(&bytes);
                let text = if part.is_raw() { text.into_owned() } else { lines(&text) };
                sections.push(LogSection { name, text });
            }
        }
        if sections.is_empty() {
            sections = sections_from_git(view, iter, part)?;
        }
        for section in &mut sections {
            if part == LogPart::Errors && section.name == "guard" {
                section.text = last_lines(&section.text);
            }
            if let Some(pattern) = pattern {
                section.text = matching_lines(&section.text, pattern);
            }
        }
        sections.retain(|section| !section.text.is_empty());
        Ok(Self {
            iter,
            sections,
            part,
            is_removed: view.has_removed_logs(iter),
            is_filtered: pattern.is_some(),
        })
    }
}

fn last_lines(text: &str) -> String {
    let all: Vec<&str> = text.lines().collect();
    all.iter().skip(all.len().saturating_sub(GUARD_LINES)).map(|line| format!("{line}\n")).collect()
}

fn matching_lines(text: &str, pattern: &TextPattern) -> String {
    text.lines().filter(|line| pattern.is_match(line)).map(|line| format!("{line}\n")).collect()
}

/// What git has of an iteration whose log directory is not in this clone.
fn sections_from_git(
    view: &RunView,
    iter: IterationNumber,
    part: LogPart,
) -> Result<Vec<LogSection>, CommandError> {
    let missing = || {
        if view.has_removed_logs(iter) {
            return CommandError::refused("logs_removed", WHAT)
                .cause(format!("the {}", removed_note(iter)))
                .hint("'runner show' prints what git has");
        }
        CommandError::refused("not_here", WHAT)
            .cause(format!("the logs of iteration {} are not in this clone", iter.get()))
            .hint("they are in the work tree where the run was made; 'runner show' prints what git has")
    };
    let iteration = view.iterations.iter().find(|iteration| iteration.iter == iter).ok_or_else(missing)?;
    let state = view.state_after(iteration).map_err(|error| CommandError::from_host(WHAT, error))?;
    let history = state.as_ref().zip(iteration.node()).and_then(|(state, node)| state.history_of(node));
    let guard_output = history.and_then(|history| history.guard_output.clone());
    let mut sections = Vec::new();
    if matches!(part, LogPart::All | LogPart::Agent | LogPart::Errors) && !iteration.body.is_empty() {
        sections.push(LogSection { name: "summary", text: lines(&iteration.body) + "\n" });
    }
    if matches!(part, LogPart::All | LogPart::Guard | LogPart::Errors)
        && let Some(output) = guard_output
    {
        sections.push(LogSection { name: "guard", text: lines(&output) });
    }
    if sections.is_empty() { Err(missing()) } else { Ok(sections) }
}

impl CommandOutput for LogTextOutput {
    fn json(&self) -> Value {
        let parts: serde_json::Map<String, Value> =
            self.sections.iter().map(|section| (section.name.to_owned(), json!(section.text))).collect();
        json!({ "schema": "runner.log/1", "iter": self.iter, "parts": parts, "logs_removed": self.is_removed })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let note = self.is_removed.then(|| removed_note(self.iter));
        let text = self.sections.iter().flat_map(|section| section.text.lines());
        text.map(KeyValueLine::verbatim)
            .chain(note.map(|note| KeyValueLine::new().with("note", note)))
            .collect()
    }

    fn human(&self, styler: &Styler) -> String {
        let has_headings = !self.part.is_raw() && self.sections.len() > 1;
        let mut text = String::new();
        for section in &self.sections {
            if has_headings {
                let heading = format!("#{} {}", self.iter.get(), section.name);
                text.push_str(&format!("{}\n", styler.paint(TextRole::Strong, &heading)));
            }
            text.push_str(&lines(&section.text));
            if !section.text.ends_with('\n') {
                text.push('\n');
            }
        }
        let note = if self.is_removed {
            Some(removed_note(self.iter))
        } else if !self.sections.is_empty() || self.part.is_raw() {
            None
        } else if self.is_filtered {
            Some("no line matches".to_owned())
        } else {
            Some(format!("nothing was printed; 'runner show {}' shows what happened", self.iter.get()))
        };
        if let Some(note) = note {
            text.push_str(&format!("{}\n", styler.paint(TextRole::Faint, &format!("({note})"))));
        }
        text
    }

    fn is_long(&self) -> bool {
        true
    }
}
