//! `runner start`

use std::path::{Path, PathBuf};

use runner_core::layout::Doc;
use runner_core::model::id::RunId;
use runner_core::model::instructions::PinnedInstructions;
use runner_core::model::protection::Protection;
use runner_core::runs::start::StartOptions;
use runner_host::ops::new_run::start_in_worktree;
use runner_host::ops::start::{SessionInputs, StartKind, StartResult, start};
use runner_host::repo::own_output::ignore_own_output;
use runner_term::{CommandError, CommandOutput, Glyph, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use crate::args::StartArgs;
use crate::render::clean;
use crate::render::recovery::{recovered_json, recovered_line, recovered_text};

pub(crate) struct StartOutput {
    started: StartResult,
    /// The linked work tree that was created for the run.
    worktree: Option<PathBuf>,
}

pub(crate) fn run(dir: &Path, args: &StartArgs) -> Result<StartOutput, CommandError> {
    let goal = match &args.goal_file {
        Some(path) => Some(read_goal(path)?),
        None => args.goal.clone(),
    };
    let options = StartOptions { goal, keep_plan: args.keep_plan, ..StartOptions::default() };
    ignore_own_output(dir).map_err(|error| CommandError::from_host("could not start the run", error))?;
    let failed = |error| CommandError::from_host("could not start the run", error);
    match &args.worktree {
        None => Ok(StartOutput { started: start(dir, &options).map_err(failed)?, worktree: None }),
        Some(path) => {
            let linked = start_in_worktree(dir, path.as_deref(), &options).map_err(failed)?;
            Ok(StartOutput { started: linked.started, worktree: Some(linked.root) })
        }
    }
}

const STALE_ROOT: &str = "the goal changed, but the plan still holds the old one";
const EDIT_ROOT: &str = "runner node edit root --title \"…\" --goal \"…\"";

fn read_goal(path: &Path) -> Result<String, CommandError> {
    std::fs::read_to_string(path).map_err(|error| {
        CommandError::refused("goal_file", format!("could not read the goal from `{}`", path.display()))
            .cause(error.to_string())
            .hint("pass a UTF-8 text file")
    })
}

fn word(kind: StartKind) -> &'static str {
    match kind {
        StartKind::New => "started",
        StartKind::Updated => "updated",
        StartKind::Resumed => "resumed",
    }
}

impl CommandOutput for StartOutput {
    fn json(&self) -> Value {
        let recovered = self.started.recovered.as_ref().map(recovered_json);
        let inputs = &self.started.inputs;
        let instructions = inputs.instructions.as_ref().map(
            |pinned| json!({ "file": pinned.file, "sha256": pinned.sha256, "bytes": pinned.text.len() }),
        );
        json!({
            "schema": "runner.start/1",
            "run_id": self.started.run,
            "branch": self.started.run.branch(),
            "commit": self.started.commit,
            "kind": word(self.started.kind),
            "goal_written": !self.started.goal_unwritten,
            "plan_holds_old_goal": self.started.has_stale_root,
            "other_runs": self.started.other_runs,
            "protected": self.started.protection.names(),
            "instructions": instructions,
            "network": inputs.network,
            "mcp": inputs.mcp,
            "writable": inputs.writable,
            "recovered": recovered,
            "worktree": self.worktree.as_ref().map(|path| path.display().to_string()),
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut lines: Vec<KeyValueLine> = Vec::new();
        if let Some(recovered) = &self.started.recovered {
            lines.push(recovered_line(recovered));
        }
        lines.push(KeyValueLine::new().with("run_id", &self.started.run));
        lines.push(KeyValueLine::new().with("branch", self.started.run.branch()));
        lines.push(KeyValueLine::new().with("commit", &self.started.commit));
        lines.push(KeyValueLine::new().with("kind", word(self.started.kind)));
        lines.push(KeyValueLine::new().with("protected", self.started.protection.names().join(",")));
        let inputs = &self.started.inputs;
        lines.push(KeyValueLine::new().with("instructions", instructions_label(inputs)));
        lines.push(KeyValueLine::new().with("network", inputs.network.as_str()));
        lines.push(KeyValueLine::new().with("mcp", inputs.mcp.join(",")));
        lines.push(KeyValueLine::new().with("writable", folders(inputs).join(",")));
        lines.push(KeyValueLine::new().with("goal_written", !self.started.goal_unwritten));
        if self.started.has_stale_root {
            lines.push(KeyValueLine::new().with("warning", STALE_ROOT).with("next", EDIT_ROOT));
        }
        let worktree = self.worktree.as_ref();
        lines.extend(worktree.map(|path| KeyValueLine::new().with("worktree", path.display())));
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        let run = styler.paint(TextRole::Strong, self.started.run.as_str());
        let tick = styler.paint(TextRole::Good, styler.glyph(Glyph::Passed));
        let mut text = String::new();
        if let Some(recovered) = &self.started.recovered {
            text.push_str(&format!("{tick} {}\n", recovered_text(recovered)));
        }
        text.push_str(&format!(
            "{tick} run {run} {} on branch {}\n",
            word(self.started.kind),
            self.started.run.branch()
        ));
        if let Some(path) = &self.worktree {
            let path = clean(&path.display().to_string());
            text.push_str(&format!("  {} {path}\n", styler.paint(TextRole::Faint, "work tree:")));
        }
        text.push_str(&protected_text(&self.started.protection, styler));
        text.push_str(&inputs_text(&self.started.inputs, styler));
        if self.started.has_stale_root {
            let warning = styler.paint(TextRole::Warn, "warning:");
            let body = format!("{STALE_ROOT}. To change it: {EDIT_ROOT}");
            text.push_str(&format!("{warning} {}\n", styler.wrap_commands(&body, "warning: ".len())));
        }
        if self.started.goal_unwritten {
            let fix = format!("Write your goal into {}, then run 'runner start' again.", Doc::Goal.path());
            let fix = styler.wrap_headed(TextRole::Warn, "GOAL.md still holds the template.", &fix, 0);
            text.push_str(&format!("\n{fix}\n"));
        } else {
            text.push_str("\nNext: runner loop\n");
        }
        if self.started.kind == StartKind::New
            && let Some(other) = self.started.other_runs.first()
        {
            let hint = earlier_run_hint(other, self.started.other_runs.len() - 1);
            text.push_str(&format!("{}\n", styler.wrap_commands(&hint, 0)));
        }
        text
    }
}

/// How many protected files are listed.
const PROTECTED_MAX: usize = 8;

/// A line with its name, wrapped below its value.
fn labelled(name: &str, value: &str, styler: &Styler) -> String {
    let value = styler.wrap(value, name.len() + 3);
    format!("  {} {value}\n", styler.paint(TextRole::Faint, name))
}

/// What agents may not change; files that may appear later only count if they exist or must stay missing.
fn protected_text(protection: &Protection, styler: &Styler) -> String {
    let names = protection.names();
    let mut shown: Vec<String> = names.iter().take(PROTECTED_MAX).map(|name| clean(name)).collect();
    let more = names.len().saturating_sub(PROTECTED_MAX);
    shown.extend((more > 0).then(|| format!("and {more} more")));
    let list = if shown.is_empty() { "nothing".to_owned() } else { shown.join(", ") };
    labelled("protected from agents:", &list, styler)
}

/// What sessions get besides the prompt, one line each; what is off is not listed.
fn inputs_text(inputs: &SessionInputs, styler: &Styler) -> String {
    let rows = [
        ("instructions:", instructions_label(inputs)),
        ("network for commands:", inputs.network_note.to_owned()),
        ("MCP servers:", inputs.mcp.join(", ")),
        ("writable folders:", folders(inputs).join(", ")),
    ];
    let rows = rows.into_iter().filter(|(_, value)| !value.is_empty());
    rows.map(|(name, value)| labelled(name, &clean(&value), styler)).collect()
}

fn instructions_label(inputs: &SessionInputs) -> String {
    inputs.instructions.as_ref().map_or_else(|| "none".to_owned(), PinnedInstructions::label)
}

fn folders(inputs: &SessionInputs) -> Vec<String> {
    inputs.writable.iter().map(|folder| folder.display().to_string()).collect()
}

fn earlier_run_hint(run: &RunId, more: usize) -> String {
    let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
    format!("To continue an earlier run instead: git switch {}{more}", run.branch())
}
