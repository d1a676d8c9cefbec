//! `runner plan make`

use std::path::Path;

use runner_core::config::Budget;
use runner_core::model::tree::Tree;
use runner_core::runs::edit::{Question, UserEdit, clean_text};
use runner_core::step::{Outcome, StopReason};
use runner_host::ops::edit::{EditSession, questions};
use runner_host::ops::preflight::preflight;
use runner_host::repo::own_output::ignore_own_output;
use runner_host::repo::readonly_repo::ReadonlyRepo;
use runner_host::view::inspect::inspect;
use runner_term::format::counted;
use runner_term::{CommandError, CommandExit, CommandOutput, Glyph, KeyValueLine, Styler, TextRole, Ui};
use serde_json::{Value, json};

use super::run_loop::{LoopOutput, RunMode, run_iterations};
use crate::render::clean;

const WHAT: &str = "cannot make a plan";
/// How many sessions may be rejected before the command gives up.
const SESSIONS_MAX: u32 = 3;

/// The end of `runner plan make`.
pub(crate) struct PlanMakeOutput {
    outcome: Option<Outcome>,
    summary: String,
    tasks: usize,
    /// Those without an answer.
    questions: Vec<Question>,
    last: LoopOutput,
}

pub(crate) fn run(dir: &Path, ui: &Ui) -> Result<PlanMakeOutput, CommandError> {
    let failed = |error| CommandError::from_host(WHAT, error);
    ignore_own_output(dir).map_err(failed)?;
    preflight(dir, &Budget::default()).map_err(failed)?;
    let mut rejected = 0;
    loop {
        let last = run_iterations(dir, RunMode::Plan, None, ui)?;
        let output = read(dir, last)?;
        match output.outcome {
            Some(Outcome::PlanRejected) if output.last.stop().is_none() && rejected + 1 < SESSIONS_MAX => {
                rejected += 1;
            }
            Some(Outcome::PlanQuestions) if answer_at_terminal(dir, &output.questions, ui)? => {}
            _ => return Ok(output),
        }
    }
}

/// What the repository holds after a session.
fn read(dir: &Path, last: LoopOutput) -> Result<PlanMakeOutput, CommandError> {
    let failed = |error| CommandError::from_host(WHAT, error);
    let repo = ReadonlyRepo::open(dir).map_err(failed)?;
    let inspection = inspect(&repo).map_err(failed)?;
    let mut open = questions(&repo).map_err(failed)?;
    open.retain(|question| question.answers.is_empty());
    let state = inspection.docs.state.valid();
    Ok(PlanMakeOutput {
        outcome: state.and_then(|state| state.last_outcome),
        summary: state.and_then(|state| state.last_summary.clone()).unwrap_or_default(),
        tasks: inspection.docs.tree.valid().map_or(0, Tree::node_count),
        questions: open,
        last,
    })
}

/// Asks the open questions on a terminal and commits the answers. False if no answer was given.
fn answer_at_terminal(dir: &Path, open: &[Question], ui: &Ui) -> Result<bool, CommandError> {
    let mut has_answer = false;
    for question in open {
        let prompt = format!(
            "\n{}. {}\n   Your answer (empty: leave it open): ",
            question.number,
            clean(&question.text)
        );
        let Some(text) = ui.ask(&prompt) else { return Ok(has_answer) };
        if text.trim().is_empty() {
            continue;
        }
        let edit = UserEdit::Answer { question: question.number, text: clean_text(&text) };
        let failed = |error| CommandError::from_host("could not record the answer", error);
        EditSession::open(dir).and_then(|session| session.commit(&edit)).map_err(failed)?;
        has_answer = true;
    }
    Ok(has_answer)
}

impl PlanMakeOutput {
    fn outcome_word(&self) -> &'static str {
        self.outcome.map_or("none", Outcome::as_str)
    }
}

impl CommandOutput for PlanMakeOutput {
    fn json(&self) -> Value {
        json!({
            "schema": "runner.plan_make/1",
            "event": "end",
            "outcome": self.outcome,
            "summary": self.summary,
            "tasks": self.tasks,
            "questions": self.questions,
            "stop": self.last.stop(),
            "exit": self.exit().0,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let asked = |question: &Question| {
            KeyValueLine::new().with("question", question.number).with("text", clean(&question.text))
        };
        let mut lines: Vec<KeyValueLine> = self.questions.iter().map(asked).collect();
        let line = KeyValueLine::new().with("event", "end").with("outcome", self.outcome_word());
        let stop = self.last.stop().map_or("none", StopReason::as_str);
        lines.push(line.with("tasks", self.tasks).with("stop", stop).with("exit", self.exit().0));
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        if self.last.stop().is_some() {
            return self.last.human(styler);
        }
        let mark = |role, glyph| styler.paint(role, styler.glyph(glyph));
        let tasks = counted(self.tasks, "task", "tasks");
        if self.outcome == Some(Outcome::Planned) {
            let tick = mark(TextRole::Good, Glyph::Passed);
            return format!(
                "{tick} the plan has {tasks}\n\nNext: runner tree\n      runner plan lint\n      runner plan approve\n"
            );
        }
        if self.outcome == Some(Outcome::PlanQuestions) {
            let mut text = String::new();
            for question in &self.questions {
                text.push_str(&format!("{}. {}\n", question.number, clean(&question.text)));
            }
            let number = self.questions.first().map_or(1, |question| question.number);
            text.push_str(&format!("\nNext: runner answer {number} \"…\"\n      runner plan make\n"));
            return text;
        }
        let cross = mark(TextRole::Bad, Glyph::Failed);
        let why = clean(&self.summary);
        format!("{cross} no plan was written ({}): {why}\n\nNext: runner log --errors\n", self.outcome_word())
    }

    fn ends_json_lines(&self) -> bool {
        true
    }

    /// 3 if the user must answer questions first.
    fn exit(&self) -> CommandExit {
        match (self.last.stop(), self.outcome) {
            (Some(stop), _) => CommandExit(stop.exit_code()),
            (None, Some(Outcome::Planned)) => CommandExit::SUCCESS,
            (None, Some(Outcome::PlanQuestions)) => CommandExit(3),
            (None, _) => CommandExit::FAILURE,
        }
    }
}
