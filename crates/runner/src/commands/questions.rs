//! `runner questions`, `runner answer` and `runner note`

use std::path::Path;

use runner_core::layout::Doc;
use runner_core::runs::edit::{Question, UserEdit, text_of};
use runner_host::ops::edit::{CommittedEdit, EditSession, questions as read_questions};
use runner_term::{CommandError, CommandOutput, Glyph, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use crate::args::{AnswerArgs, NoteArgs, QuestionsArgs};
use crate::render::clean;

/// What agents asked.
pub(crate) struct QuestionsOutput {
    questions: Vec<Question>,
    is_open_only: bool,
}

pub(crate) fn questions(dir: &Path, args: &QuestionsArgs) -> Result<QuestionsOutput, CommandError> {
    let told = |error| CommandError::from_host("could not list the questions", error);
    let mut questions = read_questions(dir).map_err(told)?;
    questions.retain(|question| !args.open || question.answers.is_empty());
    Ok(QuestionsOutput { questions, is_open_only: args.open })
}

impl CommandOutput for QuestionsOutput {
    fn json(&self) -> Value {
        json!({ "schema": "runner.questions/1", "questions": self.questions })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let line = |question: &Question| {
            let line =
                KeyValueLine::new().with("question", question.number).with("text", clean(&question.text));
            question.answers.iter().fold(line, |line, answer| line.with("answer", clean(answer)))
        };
        self.questions.iter().map(line).collect()
    }

    fn human(&self, pen: &Styler) -> String {
        if self.questions.is_empty() {
            let what =
                if self.is_open_only { "every question is answered" } else { "no agent has asked anything" };
            return format!("{what}\n");
        }
        let room = pen.width.saturating_sub(6);
        let mut text = String::new();
        for question in &self.questions {
            let is_answered = !question.answers.is_empty();
            let (glyph, ink) =
                if is_answered { (Glyph::Passed, TextRole::Good) } else { (Glyph::Open, TextRole::Warn) };
            let number = format!("{} {:<3}", pen.glyph(glyph), question.number);
            text.push_str(&format!(
                "{} {}\n",
                pen.paint(ink, &number),
                pen.fit(&clean(&question.text), room)
            ));
            for answer in &question.answers {
                text.push_str(&format!(
                    "      {}\n",
                    pen.paint(TextRole::Faint, &pen.fit(&clean(answer), room))
                ));
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

/// Something that was said.
pub(crate) struct MemoryEditOutput {
    edit: UserEdit,
    edited: CommittedEdit,
}

pub(crate) fn answer(dir: &Path, args: &AnswerArgs) -> Result<MemoryEditOutput, CommandError> {
    let edit = UserEdit::Answer { question: args.number, text: text_of(&args.text) };
    say(dir, "could not record the answer", edit)
}

pub(crate) fn note(dir: &Path, args: &NoteArgs) -> Result<MemoryEditOutput, CommandError> {
    say(dir, "could not record the note", UserEdit::Note { text: text_of(&args.text) })
}

fn say(dir: &Path, what: &str, edit: UserEdit) -> Result<MemoryEditOutput, CommandError> {
    let told = |error| CommandError::from_host(what, error);
    let edited = EditSession::open(dir).and_then(|run| run.commit(&edit)).map_err(told)?;
    Ok(MemoryEditOutput { edit, edited })
}

impl CommandOutput for MemoryEditOutput {
    fn json(&self) -> Value {
        json!({
            "schema": "runner.edit/1",
            "run_id": self.edited.run,
            "edit": self.edit,
            "commit": self.edited.commit,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        vec![KeyValueLine::new().with("file", self.edit.doc().path()).with("commit", &self.edited.commit)]
    }

    fn human(&self, pen: &Styler) -> String {
        let what = if self.edit.doc() == Doc::Questions { "answered" } else { "noted" };
        let tick = pen.paint(TextRole::Good, pen.glyph(Glyph::Passed));
        let place = pen.paint(TextRole::Faint, self.edit.doc().path());
        format!("{tick} {what}: the next session reads it\n  {place}\n")
    }
}
