//! `notes.json`: what the user told the sessions with `runner note` and `runner answer`. Only the runner writes it.
//!
//! It is apart from the memory files because agents write those: a prompt shows as the user's only what this document holds.

use serde::{Deserialize, Serialize};

use crate::strict::{DocumentProblem, FieldReader, canonical_json, decode_utf8};
use crate::text::lines;

/// Everything that the user told the sessions, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct UserNotes {
    pub notes: Vec<UserNote>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum UserNote {
    Note {
        text: String,
    },
    /// An answer to a question in questions.md.
    Answer {
        /// The question's number, from 1.
        question: usize,
        /// The question, as it was when the user answered.
        asked: String,
        text: String,
    },
}

impl UserNotes {
    /// Decodes the document strictly; an empty file has no notes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Vec<DocumentProblem>> {
        if bytes.is_empty() {
            return Ok(Self::default());
        }
        let text = decode_utf8(bytes).map_err(|problem| vec![problem])?;
        let mut fields = FieldReader::of_json(text).map_err(|problem| vec![problem])?;
        let notes = fields.required("notes").unwrap_or_default();
        let problems = fields.finish();
        if problems.is_empty() { Ok(Self { notes }) } else { Err(problems) }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        canonical_json(self)
    }

    /// The answers to a question, oldest first.
    pub fn answers_to(&self, wanted: usize) -> Vec<String> {
        let answer = |note: &UserNote| match note {
            UserNote::Answer { question, text, .. } if *question == wanted => Some(text.clone()),
            UserNote::Answer { .. } | UserNote::Note { .. } => None,
        };
        self.notes.iter().filter_map(answer).collect()
    }

    /// The notes as a prompt shows them; empty if there are none.
    pub fn prompt_text(&self) -> String {
        let paragraph = |note: &UserNote| match note {
            UserNote::Note { text } => format!("Note from the user: {}\n", lines(text.trim())),
            UserNote::Answer { question, asked, text } => format!(
                "Question {question}: {}\nAnswer from the user: {}\n",
                lines(asked.trim()),
                lines(text.trim())
            ),
        };
        self.notes.iter().map(paragraph).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> UserNotes {
        let answer =
            UserNote::Answer { question: 2, asked: "Which port?".to_owned(), text: "8080".to_owned() };
        UserNotes { notes: vec![UserNote::Note { text: "Never push.".to_owned() }, answer] }
    }

    #[test]
    fn the_document_is_decoded_as_it_was_written() {
        for notes in [UserNotes::default(), sample()] {
            assert_eq!(UserNotes::decode(&notes.to_bytes()), Ok(notes));
        }
        assert_eq!(UserNotes::decode(b""), Ok(UserNotes::default()));
        for invalid in [
            "{",
            "{}",
            r#"{"notes": [], "more": 1}"#,
            r#"{"notes": [{"kind": "note", "text": "a", "by": "user"}]}"#,
            r#"{"notes": [{"kind": "order", "text": "a"}]}"#,
        ] {
            assert!(UserNotes::decode(invalid.as_bytes()).is_err(), "{invalid}");
        }
    }

    #[test]
    fn a_prompt_shows_each_answer_with_its_question() {
        assert_eq!(
            sample().prompt_text(),
            "Note from the user: Never push.\n\nQuestion 2: Which port?\nAnswer from the user: 8080\n"
        );
        assert_eq!(sample().answers_to(2), ["8080"]);
        assert_eq!(sample().answers_to(1), [""; 0]);
        assert_eq!(UserNotes::default().prompt_text(), "");
    }
}
