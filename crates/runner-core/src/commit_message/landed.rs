//! The messages of `runner land`: commits that a person would write, with trailers that point back to the run.

use crate::model::id::{IterationNumber, RunId};
use crate::model::object_id::CommitId;
use crate::text::{head, one_line};

/// The longest subject; git and hosting sites cut longer ones.
const SUBJECT_CHARS_MAX: usize = 72;

/// The trailer that names the commit of the run.
pub(super) const LANDED_COMMIT: &str = "Runner-Commit";

/// Where the work of a landed commit can be checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LandedOrigin {
    pub run: RunId,
    /// The last iteration whose work it contains.
    pub iteration: IterationNumber,
    pub commit: CommitId,
}

/// The message of a landed commit.
pub fn landed_message(title: &str, body: &str, origin: &LandedOrigin) -> String {
    let title = one_line(title);
    let subject = subject(&title);
    let mut paragraphs = vec![subject.clone()];
    if subject != title {
        paragraphs.push(title);
    }
    let body = safe_body(body);
    if !body.is_empty() {
        paragraphs.push(body);
    }
    paragraphs.push(format!(
        "Runner-Run: {}\nRunner-Iteration: {}\n{LANDED_COMMIT}: {}",
        origin.run,
        origin.iteration.get(),
        origin.commit
    ));
    paragraphs.join("\n\n") + "\n"
}

/// The title, cut between two words if it is too long.
fn subject(title: &str) -> String {
    if title.chars().count() <= SUBJECT_CHARS_MAX {
        return title.to_owned();
    }
    let cut = title.char_indices().nth(SUBJECT_CHARS_MAX - 1).map_or(title.len(), |(at, _)| at);
    let kept = head(title, cut);
    let at_word = kept.rfind(' ').filter(|at| *at > SUBJECT_CHARS_MAX / 2).unwrap_or(kept.len());
    format!("{}…", head(kept, at_word).trim_end())
}

/// An agent's text, in which no line looks like a trailer of the runner's.
fn safe_body(text: &str) -> String {
    let line = |line: &str| {
        let line = one_line(line);
        if line.starts_with("Runner-") { format!("  {line}") } else { line }
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(title: &str, body: &str) -> String {
        let origin = LandedOrigin {
            run: RunId::new("x").unwrap(),
            iteration: IterationNumber::new(7).unwrap(),
            commit: CommitId::new("0123456789abcdef0123456789abcdef01234567").unwrap(),
        };
        landed_message(title, body, &origin)
    }

    const TRAILERS: &str =
        "Runner-Run: x\nRunner-Iteration: 7\nRunner-Commit: 0123456789abcdef0123456789abcdef01234567\n";

    #[test]
    fn title_summary_and_origin_are_in_the_message() {
        assert_eq!(message("Add login", "It works.\n"), format!("Add login\n\nIt works.\n\n{TRAILERS}"));
        assert_eq!(message("Add login", " "), format!("Add login\n\n{TRAILERS}"));
    }

    #[test]
    fn a_long_title_is_cut_and_repeated_in_the_body() {
        let title = "word ".repeat(30);
        let text = message(&title, "");
        let mut lines = text.lines();
        let subject = lines.next().unwrap();
        assert!(subject.chars().count() <= 72 && subject.ends_with("word…"), "{subject}");
        assert_eq!((lines.next(), lines.next()), (Some(""), Some(title.trim())));
    }

    #[test]
    fn a_summary_cannot_forge_a_trailer() {
        assert!(message("t", "a\nRunner-Run: other").contains("\n  Runner-Run: other\n"));
    }
}
