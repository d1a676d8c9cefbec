//! Questions, answers and notes in the memory files.
//!
//! A question is a paragraph or a list item in questions.md; the lines after it that start with `>` are its answers. The file
//! only grows, so the number of a question does not change.

use serde::Serialize;

use super::EditError;

/// The start of an answer's first line.
const ANSWER_PREFIX: &str = "> Answer from the user: ";
/// The start of a note.
const NOTE_PREFIX: &str = "Note from the user: ";

/// A question of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Question {
    /// Its number in the file, from 1.
    pub number: usize,
    pub text: String,
    /// The answers, oldest first.
    pub answers: Vec<String>,
    /// The line after which the next answer goes.
    #[serde(skip)]
    end: usize,
}

/// Every question in questions.md.
pub fn questions(file: &str) -> Vec<Question> {
    let mut all: Vec<Question> = Vec::new();
    let mut is_open = false;
    let mut in_comment = false;
    let mut in_fence = false;
    for (at, line) in file.lines().enumerate() {
        let trimmed = line.trim();
        if in_comment || (!in_fence && trimmed.starts_with("<!--")) {
            in_comment = !trimmed.contains("-->");
            continue;
        }
        let is_answer = !in_fence && trimmed.starts_with('>');
        if let Some(last) = all.last_mut().filter(|_| is_answer) {
            last.add_answer_line(trimmed);
            last.end = at + 1;
            is_open = false;
            continue;
        }
        let ends = !in_fence && (trimmed.is_empty() || line.starts_with('#'));
        in_fence ^= trimmed.starts_with("```");
        if ends || is_answer {
            is_open = false;
            continue;
        }
        match all.last_mut().filter(|_| is_open && !is_list_item(line)) {
            Some(last) => {
                last.text.push('\n');
                last.text.push_str(line.trim_end());
                last.end = at + 1;
            }
            None => {
                let number = all.len() + 1;
                let text = without_bullet(line).trim_end().to_owned();
                all.push(Question { number, text, answers: Vec::new(), end: at + 1 });
                is_open = true;
            }
        }
    }
    all
}

impl Question {
    fn add_answer_line(&mut self, line: &str) {
        let text = line.trim_start_matches('>').trim();
        let first_line = line.strip_prefix(ANSWER_PREFIX.trim_end());
        match (first_line, self.answers.last_mut()) {
            (None, Some(last)) => {
                last.push('\n');
                last.push_str(text);
            }
            (first_line, _) => self.answers.push(first_line.map_or(text, str::trim).to_owned()),
        }
    }
}

fn is_list_item(line: &str) -> bool {
    without_bullet(line).len() < line.len()
}

fn without_bullet(line: &str) -> &str {
    let number = line.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let numbered = if number.len() < line.len() { number.strip_prefix(". ") } else { None };
    line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).or(numbered).unwrap_or(line)
}

/// questions.md with an answer after its question.
pub(super) fn add_answer(file: &[u8], wanted: usize, text: &str) -> Result<Vec<u8>, EditError> {
    let file = String::from_utf8_lossy(file);
    let all = questions(&file);
    let question = all
        .iter()
        .find(|question| question.number == wanted)
        .ok_or(EditError::NoSuchQuestion { wanted, count: all.len() })?;
    let quoted = text.trim().lines().collect::<Vec<_>>().join("\n> ");
    let mut lines: Vec<&str> = file.lines().collect();
    let answer = format!("{ANSWER_PREFIX}{quoted}");
    lines.insert(question.end.min(lines.len()), &answer);
    Ok((lines.join("\n") + "\n").into_bytes())
}

/// feedback.md with a note at its end.
pub(super) fn add_note(file: &[u8], text: &str) -> Vec<u8> {
    let mut file = String::from_utf8_lossy(file).into_owned();
    if !file.is_empty() && !file.ends_with('\n') {
        file.push('\n');
    }
    file.push_str(&format!("\n{NOTE_PREFIX}{}\n", text.trim()));
    file.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Doc;

    const FILE: &str = "# Questions\n\n<!-- Agents append here:\nwhat they ask. -->\nWhich port?\nThe old one?\n\n\
        ## Iteration 2\n- Tabs?\n- Spaces?\n  Or both?\n1. Ends?\n\n```\na\n\nb\n```\n";

    fn parsed(file: &str) -> Vec<(usize, String, Vec<String>)> {
        questions(file).into_iter().map(|it| (it.number, it.text, it.answers)).collect()
    }

    #[test]
    fn a_question_is_a_paragraph_or_a_list_item() {
        let texts: Vec<String> = parsed(FILE).into_iter().map(|(_, text, _)| text).collect();
        let expected =
            ["Which port?\nThe old one?", "Tabs?", "Spaces?\n  Or both?", "Ends?", "```\na\n\nb\n```"];
        assert_eq!(texts, expected);
        assert_eq!(parsed(&String::from_utf8(Doc::Questions.scaffold()).unwrap()), []);
        assert_eq!(parsed(""), []);
    }

    #[test]
    fn answers_follow_their_question_and_change_no_number() {
        let mut file = FILE.as_bytes().to_vec();
        for (question, text) in [(2, "tabs"), (1, "8080\n\nno, 80"), (2, "spaces"), (5, "b"), (4, "1")] {
            file = add_answer(&file, question, text).unwrap();
        }
        let file = String::from_utf8(file).unwrap();
        let answers: Vec<Vec<String>> = parsed(&file).into_iter().map(|(_, _, answers)| answers).collect();
        assert_eq!(
            answers,
            [vec!["8080\n\nno, 80"], vec!["tabs", "spaces"], vec![], vec!["1"], vec!["b"]],
            "{file}"
        );
        assert!(
            file.contains("- Tabs?\n> Answer from the user: tabs\n> Answer from the user: spaces\n"),
            "{file}"
        );
        let none = EditError::NoSuchQuestion { wanted: 6, count: 5 };
        assert_eq!(add_answer(file.as_bytes(), 6, "x"), Err(none));
        assert_eq!(add_answer(b"a", 0, "x"), Err(EditError::NoSuchQuestion { wanted: 0, count: 1 }));
    }

    #[test]
    fn a_note_is_a_separate_paragraph() {
        assert_eq!(add_note(b"a", " look \n"), b"a\n\nNote from the user: look\n");
        assert_eq!(add_note(b"", "x"), b"\nNote from the user: x\n");
    }

    #[test]
    fn list_items_start_with_a_dash_a_star_or_a_number() {
        for line in [". or a socket?", ".5 or 1?", "1.5 or 2?", "-1 or 0?", "*now*?"] {
            let text = format!("Which port?\n{line}");
            assert_eq!(parsed(&text), [(1, text.clone(), vec![])], "{line}");
        }
        for line in ["- a socket?", "* a socket?", "12. a socket?"] {
            let expected = [(1, "Which port?".to_owned(), vec![]), (2, "a socket?".to_owned(), vec![])];
            assert_eq!(parsed(&format!("Which port?\n{line}")), expected, "{line}");
        }
    }
}
