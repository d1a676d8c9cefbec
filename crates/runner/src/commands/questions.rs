//! `runner questions` and `runner answer`

use std::path::Path;

use runner_core::runs::edit::{Question, UserEdit, clean_text};
use runner_host::ops::edit::{RecordedNote, questions as read_questions, record_note};
use runner_host::ops::edit_queue::{QueuedEdit, queued_edits};
use runner_host::repo::readonly_repo::ReadonlyRepo;
use runner_term::{CommandError, CommandOutput, Glyph, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use crate::args::{AnswerArgs, QuestionsArgs};
use crate::render::clean;

pub(crate) struct QuestionsOutput {
    questions: Vec<Question>,
    /// Answers that the runner records before its next session.
    queued: Vec<QueuedEdit>,
    is_open_only: bool,
}

pub(crate) fn questions(dir: &Path, args: &QuestionsArgs) -> Result<QuestionsOutput, CommandError> {
    let failed = |error| CommandError::from_host("could not list the questions", error);
    let repo = ReadonlyRepo::open(dir).map_err(failed)?;
    let mut questions = read_questions(&repo).map_err(failed)?;
    let queued = queued_edits(&repo).unwrap_or_default();
    let is_answered = |question: &Question| {
        !question.answers.is_empty() || queued_answers(&queued, question.number).next().is_some()
    };
    questions.retain(|question| !args.open || !is_answered(question));
    Ok(QuestionsOutput { questions, queued, is_open_only: args.open })
}

fn queued_answers(queued: &[QueuedEdit], wanted: usize) -> impl Iterator<Item = &str> {
    queued.iter().filter_map(move |edit| match edit {
        QueuedEdit::Answer { question, text } if *question == wanted => Some(text.as_str()),
        QueuedEdit::Answer { .. } | QueuedEdit::Note { .. } => None,
    })
}

impl CommandOutput for QuestionsOutput {
    fn json(&self) -> Value {
        json!({ "schema": "runner.questions/1", "questions": self.questions, "queued": self.queued })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut lines = Vec::new();
        for question in &self.questions {
            let mut line = KeyValueLine::new().with("question", question.number);
            line = line.with("text", clean(&question.text));
            for answer in &question.answers {
                line = line.with("answer", clean(answer));
            }
            for answer in queued_answers(&self.queued, question.number) {
                line = line.with("queued_answer", clean(answer));
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
            let mut waiting = queued_answers(&self.queued, question.number).peekable();
            let is_answered = !question.answers.is_empty() || waiting.peek().is_some();
            let (glyph, role) =
                if is_answered { (Glyph::Passed, TextRole::Good) } else { (Glyph::Open, TextRole::Warn) };
            let number = styler.paint(role, &format!("{} {:<3}", styler.glyph(glyph), question.number));
            text.push_str(&format!("{number} {}\n", styler.fit(&clean(&question.text), width)));
            for answer in &question.answers {
                let answer = styler.paint(TextRole::Faint, &styler.fit(&clean(answer), width));
                text.push_str(&format!("      {answer}\n"));
            }
            for answer in waiting {
                let answer = styler.fit(&format!("{} (queued)", clean(answer)), width);
                text.push_str(&format!("      {}\n", styler.paint(TextRole::Faint, &answer)));
            }
        }
        let is_open = |question: &&Question| {
            question.answers.is_empty() && queued_answers(&self.queued, question.number).next().is_none()
        };
        let open = self.questions.iter().find(is_open);
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
    recorded: RecordedNote,
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
    let recorded = record_note(dir, &edit).map_err(|error| CommandError::from_host(what, error))?;
    Ok(MemoryEditOutput { edit, recorded })
}

impl CommandOutput for MemoryEditOutput {
    fn json(&self) -> Value {
        let committed = match &self.recorded {
            RecordedNote::Committed(committed) => Some(committed),
            RecordedNote::Queued => None,
        };
        json!({
            "schema": "runner.edit/1",
            "run_id": committed.map(|committed| &committed.run),
            "edit": self.edit,
            "commit": committed.map(|committed| &committed.commit),
            "queued": committed.is_none(),
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let line = KeyValueLine::new().with("file", self.edit.doc().path());
        vec![match &self.recorded {
            RecordedNote::Committed(committed) => line.with("commit", &committed.commit),
            RecordedNote::Queued => line.with("queued", true),
        }]
    }

    fn human(&self, styler: &Styler) -> String {
        let noun = if matches!(self.edit, UserEdit::Answer { .. }) { "answer" } else { "note" };
        let tick = styler.paint(TextRole::Good, styler.glyph(Glyph::Passed));
        let path = styler.paint(TextRole::Faint, self.edit.doc().path());
        match &self.recorded {
            RecordedNote::Committed(_) => {
                format!("{tick} {noun} recorded: the next session sees it\n  {path}\n")
            }
            RecordedNote::Queued => {
                format!(
                    "{tick} {noun} queued: the runner records it before the next session, which sees it\n"
                )
            }
        }
    }
}
