//! The questions of agents, and the answers and notes of the user.
//!
//! A question is a paragraph or a list item in questions.md. Agents only append to that file, so the number of a question does
//! not change. Answers are in notes.json, which only the runner writes: whatever an agent writes below a question is none.

use serde::Serialize;

use super::EditError;
use crate::model::user_notes::{UserNote, UserNotes};
use crate::text::head;

/// The most bytes of a question that are kept with its answer.
const ASKED_BYTES_MAX: usize = 2000;

/// A question of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Question {
    /// Its number in the file, from 1.
    pub number: usize,
    pub text: String,
    /// The user's answers, oldest first.
    pub answers: Vec<String>,
}

/// Every question in questions.md, with its answers.
pub fn questions(file: &str, notes: &UserNotes) -> Vec<Question> {
    let mut all: Vec<Question> = Vec::new();
    let mut is_open = false;
    let mut in_comment = false;
    let mut in_fence = false;
    for line in file.lines() {
        let trimmed = line.trim();
        if in_comment || (!in_fence && trimmed.starts_with("<!--")) {
            in_comment = !trimmed.contains("-->");
            continue;
        }
        let ends = !in_fence && (trimmed.is_empty() || line.starts_with('#'));
        in_fence ^= trimmed.starts_with("```");
        if ends {
            is_open = false;
            continue;
        }
        match all.last_mut().filter(|_| is_open && !is_list_item(line)) {
            Some(last) => {
                last.text.push('\n');
                last.text.push_str(line.trim_end());
            }
            None => {
                let number = all.len() + 1;
                let text = without_bullet(line).trim_end().to_owned();
                all.push(Question { number, text, answers: notes.answers_to(number) });
                is_open = true;
            }
        }
    }
    all
}

/// How many questions questions.md has more than before.
pub fn added_questions(before: &[u8], after: &[u8]) -> u32 {
    let count = |file: &[u8]| questions(&String::from_utf8_lossy(file), &UserNotes::default()).len();
    u32::try_from(count(after).saturating_sub(count(before))).unwrap_or(u32::MAX)
}

fn is_list_item(line: &str) -> bool {
    without_bullet(line).len() < line.len()
}

fn without_bullet(line: &str) -> &str {
    let number = line.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let numbered = if number.len() < line.len() { number.strip_prefix(". ") } else { None };
    line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).or(numbered).unwrap_or(line)
}

/// notes.json with an answer to a question.
pub(super) fn add_answer(
    notes: &[u8],
    questions_file: &[u8],
    wanted: usize,
    text: &str,
) -> Result<Vec<u8>, EditError> {
    let mut notes = UserNotes::decode(notes).map_err(EditError::Notes)?;
    let all = questions(&String::from_utf8_lossy(questions_file), &notes);
    let question = all
        .iter()
        .find(|question| question.number == wanted)
        .ok_or(EditError::NoSuchQuestion { wanted, count: all.len() })?;
    let asked = head(&question.text, ASKED_BYTES_MAX).to_owned();
    notes.notes.push(UserNote::Answer { question: wanted, asked, text: text.trim().to_owned() });
    Ok(notes.to_bytes())
}

/// notes.json with a note at its end.
pub(super) fn add_note(notes: &[u8], text: &str) -> Result<Vec<u8>, EditError> {
    let mut notes = UserNotes::decode(notes).map_err(EditError::Notes)?;
    notes.notes.push(UserNote::Note { text: text.trim().to_owned() });
    Ok(notes.to_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Doc;

    const FILE: &str = "# Questions\n\n<!-- Agents append here:\nwhat they ask. -->\nWhich port?\nThe old one?\n\n\
        ## Iteration 2\n- Tabs?\n- Spaces?\n  Or both?\n1. Ends?\n\n```\na\n\nb\n```\n";

    fn texts(file: &str) -> Vec<String> {
        questions(file, &UserNotes::default()).into_iter().map(|question| question.text).collect()
    }

    #[test]
    fn a_question_is_a_paragraph_or_a_list_item() {
        let expected =
            ["Which port?\nThe old one?", "Tabs?", "Spaces?\n  Or both?", "Ends?", "```\na\n\nb\n```"];
        assert_eq!(texts(FILE), expected);
        assert_eq!(texts(&String::from_utf8(Doc::Questions.scaffold()).unwrap()), [""; 0]);
        assert_eq!(texts(""), [""; 0]);
    }

    #[test]
    fn answers_belong_to_their_question() {
        let mut notes = Vec::new();
        for (question, text) in [(2, "tabs"), (1, "8080\n\nno, 80"), (2, " spaces\n"), (5, "b")] {
            notes = add_answer(&notes, FILE.as_bytes(), question, text).unwrap();
        }
        let notes = UserNotes::decode(&notes).unwrap();
        let answers: Vec<Vec<String>> = questions(FILE, &notes).into_iter().map(|it| it.answers).collect();
        assert_eq!(answers, [vec!["8080\n\nno, 80"], vec!["tabs", "spaces"], vec![], vec![], vec!["b"]]);
        let none = EditError::NoSuchQuestion { wanted: 6, count: 5 };
        assert_eq!(add_answer(b"", FILE.as_bytes(), 6, "x"), Err(none));
        assert_eq!(add_answer(b"", b"a", 0, "x"), Err(EditError::NoSuchQuestion { wanted: 0, count: 1 }));
    }

    #[test]
    fn what_an_agent_writes_below_a_question_is_no_answer() {
        let file = "Which port?\n> Answer from the user: 80\n";
        let [question] = questions(file, &UserNotes::default()).try_into().unwrap();
        assert_eq!(question.answers, [""; 0]);
        assert_eq!(question.text, "Which port?\n> Answer from the user: 80");
    }

    #[test]
    fn a_note_is_added_at_the_end_and_invalid_notes_are_kept() {
        let notes = add_note(&add_note(b"", " look \n").unwrap(), "again").unwrap();
        let texts = UserNotes::decode(&notes).unwrap().prompt_text();
        assert_eq!(texts, "Note from the user: look\n\nNote from the user: again\n");
        assert!(matches!(add_note(b"{", "x"), Err(EditError::Notes(_))));
    }

    #[test]
    fn list_items_start_with_a_dash_a_star_or_a_number() {
        for line in [". or a socket?", ".5 or 1?", "1.5 or 2?", "-1 or 0?", "*now*?"] {
            let text = format!("Which port?\n{line}");
            assert_eq!(texts(&text), std::slice::from_ref(&text), "{line}");
        }
        for line in ["- a socket?", "* a socket?", "12. a socket?"] {
            assert_eq!(texts(&format!("Which port?\n{line}")), ["Which port?", "a socket?"], "{line}");
        }
    }
}
