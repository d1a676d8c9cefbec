//! `runner questions` and `runner answer`

use std::path::Path;

use runner_core::runs::edit::{Question, UserEdit, clean_text};
use runner_host::ops::edit::{CommittedEdit, EditSession, questions as read_questions};
use runner_term::{CommandError, CommandOutput, Glyph, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use crate::args::{AnswerArgs, QuestionsArgs};
use crate::render::clean;

pub(crate) struct QuestionsOutput {
    questions: Vec<Question>,
    is_open_only: bool,
}

pub(crate) fn questions(dir: &Path, args: &QuestionsArgs) -> Result<QuestionsOutput, CommandError> {
    let mut questions = read_questions(dir)
        .map_err(|error| CommandError::from_host("could not list the questions", error))?;
    questions.retain(|question| !args.open || question.answers.is_empty());
    Ok(QuestionsOutput { questions, is_open_only: args.open })
}

impl CommandOutput for QuestionsOutput {
    fn json(&self) -> Value {
        json!({ "schema": "runner.questions/1", "questions": self.questions })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut lines = Vec::new();
        for question in &self.questions {
            let mut line = KeyValueLine::new().with("question", question.number);
            line = line.with("text", clean(&question.text));
            for answer in &question.answers {
                line = line.with("answer", clean(answer));
            }
            lines.push(line);
        }
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        if self.questions.is_empty() {
            let text = if self.is_open_only { "no open questions" } else { "no questions yet" };
            return format!("{text}\n");
        }
        let width = styler.width.saturating_sub(6);
        let mut text = String::new();
        for question in &self.questions {
            let is_answered = !question.answers.is_empty();
            let (glyph, role) =
                if is_answered { (Glyph::Passed, TextRole::Good) } else { (Glyph::Open, TextRole::Warn) };
            let number = styler.paint(role, &format!("{} {:<3}", styler.glyph(glyph), question.number));
            text.push_str(&format!("{number} {}\n", styler.fit(&clean(&question.text), width)));
            for answer in &question.answers {
                let answer = styler.paint(TextRole::Faint, &styler.fit(&clean(answer), width));
                text.push_str(&format!("      {answer}\n"));
            }
        }
        let open = self.questions.iter().find(|question| question.answers.is_empty());
        if let Some(open) = open {
            text.push_str(&format!("\nNext: runner answer {} \"…\"\n", open.number));
        }
        text
    }

    fn is_long(&self) -> bool {
        true
    }
}

/// The output of `runner answer` and `runner note`.
pub(crate) struct MemoryEditOutput {
    edit: UserEdit,
    committed: CommittedEdit,
}

pub(crate) fn answer(dir: &Path, args: &AnswerArgs) -> Result<MemoryEditOutput, CommandError> {
    let edit = UserEdit::Answer { question: args.number, text: clean_text(&args.text) };
    commit_memory_edit(dir, "could not record the answer", edit)
}

pub(super) fn commit_memory_edit(
    dir: &Path,
    what: &str,
    edit: UserEdit,
) -> Result<MemoryEditOutput, CommandError> {
    let committed = EditSession::open(dir)
        .and_then(|run| run.commit(&edit))
        .map_err(|error| CommandError::from_host(what, error))?;
    Ok(MemoryEditOutput { edit, committed })
}

impl CommandOutput for MemoryEditOutput {
    fn json(&self) -> Value {
        json!({
            "schema": "runner.edit/1",
            "run_id": self.committed.run,
            "edit": self.edit,
            "commit": self.committed.commit,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        vec![KeyValueLine::new().with("file", self.edit.doc().path()).with("commit", &self.committed.commit)]
    }

    fn human(&self, styler: &Styler) -> String {
        let noun = if matches!(self.edit, UserEdit::Answer { .. }) { "answer" } else { "note" };
        let tick = styler.paint(TextRole::Good, styler.glyph(Glyph::Passed));
        let path = styler.paint(TextRole::Faint, self.edit.doc().path());
        format!("{tick} {noun} recorded: the next session sees it\n  {path}\n")
    }
}
