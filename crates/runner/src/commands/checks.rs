//! `runner checks`: the checks of all tasks, and how much of the acceptance they prove.

use std::path::Path;

use runner_core::model::checks::{PointNumber, RedKind, RedRule};
use runner_host::repo::readonly_repo::ReadonlyRepo;
use runner_host::view::checks::{CheckState, CheckView, ChecksView, HeldoutView, checks_view};
use runner_term::{CommandError, CommandOutput, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use crate::render::clean;

pub(crate) struct ChecksOutput(ChecksView);

pub(crate) fn run(dir: &Path) -> Result<ChecksOutput, CommandError> {
    ReadonlyRepo::open(dir)
        .and_then(|repo| checks_view(&repo))
        .map(ChecksOutput)
        .map_err(|error| CommandError::from_host("could not read the checks", error))
}

fn command(view: &CheckView) -> String {
    clean(&view.check.command.words().join(" "))
}

fn covers(view: &CheckView) -> String {
    points(&view.check.covers)
}

fn points(covers: &[PointNumber]) -> String {
    let points: Vec<String> = covers.iter().map(|point| point.get().to_string()).collect();
    if points.is_empty() { "all".to_owned() } else { points.join(",") }
}

fn red_word(red: Option<RedKind>) -> &'static str {
    red.map_or("not run", RedKind::as_str)
}

impl CommandOutput for ChecksOutput {
    fn json(&self) -> Value {
        let check = |view: &CheckView| {
            json!({
                "task": view.task,
                "name": view.check.name,
                "command": view.check.command.words(),
                "covers": view.check.covers.iter().map(|point| point.get()).collect::<Vec<_>>(),
                "files": view.check.files.keys().map(ToString::to_string).collect::<Vec<_>>(),
                "red_required": view.check.red == RedRule::Required,
                "red": view.red,
                "state": view.state.as_str(),
                "digest": view.digest,
            })
        };
        let heldout = |view: &HeldoutView| {
            json!({
                "task": view.task,
                "name": view.check.name,
                "covers": view.check.covers.iter().map(|point| point.get()).collect::<Vec<_>>(),
                "red_required": view.check.required == RedRule::Required,
                "red": view.check.red,
                "state": view.state.as_str(),
                "digest": view.digest,
            })
        };
        json!({
            "schema": "runner.checks/1",
            "checks": self.0.checks.iter().map(check).collect::<Vec<_>>(),
            "heldout": self.0.heldout.iter().map(heldout).collect::<Vec<_>>(),
            "acceptance": self.0.coverage,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let line = |view: &CheckView| {
            KeyValueLine::new()
                .with("check", &view.check.name)
                .with("task", &view.task)
                .with("state", view.state.as_str())
                .with("red", red_word(view.red))
                .with("covers", covers(view))
                .with("command", command(view))
        };
        let mut lines: Vec<KeyValueLine> = self.0.checks.iter().map(line).collect();
        lines.extend(self.0.heldout.iter().map(|view| {
            KeyValueLine::new()
                .with("heldout", &view.check.name)
                .with("task", &view.task)
                .with("state", view.state.as_str())
                .with("red", red_word(view.check.red))
                .with("covers", points(&view.check.covers))
        }));
        lines.push(KeyValueLine::new().with("acceptance", self.0.coverage));
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        let mut text = String::new();
        for view in &self.0.checks {
            let state = state_text(view.state, styler);
            let line = format!(
                "{} {}: {} (covers {}, before the work: {})",
                clean(&view.task),
                view.check.name,
                command(view),
                covers(view),
                red_word(view.red)
            );
            text.push_str(&format!("{state} {}\n", styler.fit(&line, styler.width.saturating_sub(10))));
        }
        for view in &self.0.heldout {
            let state = state_text(view.state, styler);
            let line = format!(
                "{} {}: held out (covers {}, before the work: {})",
                view.task,
                view.check.name,
                points(&view.check.covers),
                red_word(view.check.red)
            );
            text.push_str(&format!("{state} {}\n", styler.fit(&line, styler.width.saturating_sub(10))));
        }
        if self.0.checks.is_empty() && self.0.heldout.is_empty() {
            let nothing = "No task has a check: only agents decide whether the work is done.";
            text.push_str(&format!("{}\n\n", styler.wrap(nothing, 0)));
            text.push_str("Next: runner node check add TASK --name NAME --command COMMAND\n");
            return text;
        }
        text + &format!("acceptance: {}\n", styler.wrap(&self.0.coverage.to_string(), "acceptance: ".len()))
    }
}

fn state_text(state: CheckState, styler: &Styler) -> String {
    let role = match state {
        CheckState::Green => TextRole::Good,
        CheckState::Vacuous => TextRole::Warn,
        CheckState::Red | CheckState::HeldBack => TextRole::Faint,
    };
    styler.paint(role, &format!("{:9}", state.as_str()))
}
