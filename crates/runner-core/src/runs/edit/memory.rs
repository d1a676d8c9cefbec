//! What agents asked, what was answered, and notes: the memory files as people use them.
//!
//! A question is a paragraph or a point of a list in questions.md; lines that begin with `>` behind it are its answers. Files
//! of this kind only grow, so that the number of a question stays the same.

use serde::Serialize;

use super::EditError;

/// What begins the first line of an answer.
const ANSWER: &str = "> Answer from the user: ";
/// What begins a note.
const NOTE: &str = "Note from the user: ";

/// What an agent asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Question {
    /// From 1, in the order of the file.
    pub number: usize,
    /// What was asked.
    pub text: String,
    /// What was answered, the oldest first.
    pub answers: Vec<String>,
    /// The line of the file behind which the next answer goes.
    #[serde(skip)]
    end: usize,
}

/// Every question in questions.md.
pub fn questions(file: &str) -> Vec<Question> {
    let mut all: Vec<Question> = Vec::new();
    let (mut is_open, mut in_comment, mut in_fence) = (false, false, false);
    for (at, line) in file.lines().enumerate() {
        let trimmed = line.trim();
        if in_comment || (!in_fence && trimmed.starts_with("<!--")) {
            in_comment = !trimmed.contains("-->");
            continue;
        }
        let is_answer = !in_fence && trimmed.starts_with('>');
        if let Some(last) = all.last_mut().filter(|_| is_answer) {
            last.answer(trimmed);
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
        match all.last_mut().filter(|_| is_open && !is_point(line)) {
            Some(last) => {
                last.text.push('\n');
                last.text.push_str(line.trim_end());
                last.end = at + 1;
            }
            None => {
                let (number, text) = (all.len() + 1, without_mark(line).trim_end().to_owned());
                all.push(Question { number, text, answers: Vec::new(), end: at + 1 });
                is_open = true;
            }
        }
    }
    all
}

impl Question {
    fn answer(&mut self, line: &str) {
        let said = line.trim_start_matches('>').trim();
        let begins = line.strip_prefix(ANSWER.trim_end());
        match (begins, self.answers.last_mut()) {
            (None, Some(last)) => {
                last.push('\n');
                last.push_str(said);
            }
            (begins, _) => self.answers.push(begins.map_or(said, str::trim).to_owned()),
        }
    }
}

/// Whether a line begins a point of a list.
fn is_point(line: &str) -> bool {
    without_mark(line).len() < line.len()
}

fn without_mark(line: &str) -> &str {
    let number = line.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let numbered = if number.len() < line.len() { number.strip_prefix(". ") } else { None };
    line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")).or(numbered).unwrap_or(line)
}

/// questions.md with an answer behind its question.
pub(super) fn answered(file: &[u8], wanted: usize, text: &str) -> Result<Vec<u8>, EditError> {
    let file = String::from_utf8_lossy(file);
    let all = questions(&file);
    let question = all.iter().find(|question| question.number == wanted);
    let question = question.ok_or(EditError::NoSuchQuestion { wanted, count: all.len() })?;
    let said = text.trim().lines().collect::<Vec<_>>().join("\n> ");
    let mut lines: Vec<&str> = file.lines().collect();
    let answer = format!("{ANSWER}{said}");
    lines.insert(question.end.min(lines.len()), &answer);
    Ok((lines.join("\n") + "\n").into_bytes())
}

/// feedback.md with a note at its end.
pub(super) fn noted(file: &[u8], text: &str) -> Vec<u8> {
    let mut file = String::from_utf8_lossy(file).into_owned();
    if !file.is_empty() && !file.ends_with('\n') {
        file.push('\n');
    }
    file.push_str(&format!("\n{NOTE}{}\n", text.trim()));
    file.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Doc;

    const FILE: &str = "# Questions\n\n<!-- Appended to by agents:\nwhat they ask. -->\nWhich port?\nThe old one?\n\n\
        ## Iteration 2\n- Tabs?\n- Spaces?\n  Or both?\n1. Ends?\n\n```\na\n\nb\n```\n";

    fn told(file: &str) -> Vec<(usize, String, Vec<String>)> {
        questions(file).into_iter().map(|it| (it.number, it.text, it.answers)).collect()
    }

    #[test]
    fn a_question_is_a_paragraph_or_a_point() {
        let texts: Vec<String> = told(FILE).into_iter().map(|(_, text, _)| text).collect();
        let expected =
            ["Which port?\nThe old one?", "Tabs?", "Spaces?\n  Or both?", "Ends?", "```\na\n\nb\n```"];
        assert_eq!(texts, expected);
        assert_eq!(told(&String::from_utf8(Doc::Questions.scaffold()).unwrap()), []);
        assert_eq!(told(""), []);
    }

    #[test]
    fn an_answer_stands_behind_its_question_and_moves_no_number() {
        let mut file = FILE.as_bytes().to_vec();
        for (question, text) in [(2, "tabs"), (1, "8080\n\nno, 80"), (2, "spaces"), (5, "b"), (4, "1")] {
            file = answered(&file, question, text).unwrap();
        }
        let file = String::from_utf8(file).unwrap();
        let answers: Vec<Vec<String>> = told(&file).into_iter().map(|(_, _, answers)| answers).collect();
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
        assert_eq!(answered(file.as_bytes(), 6, "x"), Err(none));
        assert_eq!(answered(b"a", 0, "x"), Err(EditError::NoSuchQuestion { wanted: 0, count: 1 }));
    }

    #[test]
    fn a_note_is_a_paragraph_of_its_own() {
        assert_eq!(noted(b"a", " look \n"), b"a\n\nNote from the user: look\n");
        assert_eq!(noted(b"", "x"), b"\nNote from the user: x\n");
    }

    #[test]
    fn a_line_is_a_point_only_behind_a_dash_a_star_or_a_number() {
        for line in [". or a socket?", ".5 or 1?", "1.5 or 2?", "-1 or 0?", "*now*?"] {
            let text = format!("Which port?\n{line}");
            assert_eq!(told(&text), [(1, text.clone(), vec![])], "{line}");
        }
        for line in ["- a socket?", "* a socket?", "12. a socket?"] {
            let expected = [(1, "Which port?".to_owned(), vec![]), (2, "a socket?".to_owned(), vec![])];
            assert_eq!(told(&format!("Which port?\n{line}")), expected, "{line}");
        }
    }
}
