//! The classifier of markdown lines, with only the distinctions that a checklist needs.

use super::EntryStatus;

/// A line without its indentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MarkdownLine<'t> {
    Blank,
    Heading {
        level: usize,
        title: &'t str,
    },
    /// A list item, with the status of its box if it has one.
    Bullet {
        checkbox: Option<EntryStatus>,
        text: &'t str,
    },
    /// The start of a code block.
    Fence {
        mark: char,
        length: usize,
        info: &'t str,
    },
    Rule,
    Text(&'t str),
}

/// The indentation of a line in columns, and the rest of it.
pub(super) fn split_indent(line: &str) -> (usize, &str) {
    let mut columns = 0;
    for (at, c) in line.char_indices() {
        match c {
            ' ' => columns += 1,
            '\t' => columns += 4 - columns % 4,
            _ => return (columns, line.get(at..).unwrap_or_default()),
        }
    }
    (columns, "")
}

/// Classifies a line by the text after its indentation.
pub(super) fn classify(rest: &str) -> MarkdownLine<'_> {
    let rest = rest.trim_end();
    if rest.is_empty() {
        return MarkdownLine::Blank;
    }
    heading(rest)
        .or_else(|| fence(rest))
        .or_else(|| is_rule(rest).then_some(MarkdownLine::Rule))
        .or_else(|| bullet(rest))
        .unwrap_or(MarkdownLine::Text(rest))
}

fn heading(rest: &str) -> Option<MarkdownLine<'_>> {
    let title = rest.trim_start_matches('#');
    let level = rest.len() - title.len();
    if !(1..=6).contains(&level) || !(title.is_empty() || title.starts_with([' ', '\t'])) {
        return None;
    }
    let title = title.trim();
    let open = title.trim_end_matches('#');
    let is_closed = open.is_empty() || open.ends_with([' ', '\t']);
    Some(MarkdownLine::Heading { level, title: if is_closed { open.trim_end() } else { title } })
}

fn fence(rest: &str) -> Option<MarkdownLine<'_>> {
    let mark = rest.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let info = rest.trim_start_matches(mark);
    let length = rest.len() - info.len();
    let is_fence = length >= 3 && !(mark == '`' && info.contains('`'));
    is_fence.then(|| MarkdownLine::Fence { mark, length, info: info.trim() })
}

/// Whether a line ends a block that started with a fence of `length` marks.
pub(super) fn ends_fence(rest: &str, mark: char, length: usize) -> bool {
    let rest = rest.trim_end();
    rest.len() >= length && rest.chars().all(|c| c == mark)
}

fn is_rule(rest: &str) -> bool {
    let mut marks = rest.chars().filter(|c| !c.is_whitespace());
    let Some(first) = marks.next().filter(|mark| matches!(mark, '-' | '*' | '_')) else { return false };
    let mut count = 1;
    marks.all(|mark| {
        count += 1;
        mark == first
    }) && count >= 3
}

fn bullet(rest: &str) -> Option<MarkdownLine<'_>> {
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let after = if digits == 0 {
        rest.strip_prefix(['-', '*', '+'])?
    } else {
        rest.get(digits..).filter(|_| digits <= 9)?.strip_prefix(['.', ')'])?
    };
    if !(after.is_empty() || after.starts_with([' ', '\t'])) {
        return None;
    }
    let text = after.trim_start();
    Some(match split_checkbox(text) {
        Some((status, text)) => MarkdownLine::Bullet { checkbox: Some(status), text },
        None => MarkdownLine::Bullet { checkbox: None, text },
    })
}

/// The box at the start of a list item. `~`, `/`, `-` and `>` are conventions of common editors.
fn split_checkbox(text: &str) -> Option<(EntryStatus, &str)> {
    let (inside, rest) = text.strip_prefix('[')?.split_once(']')?;
    let status = match inside {
        " " | "~" | "/" => EntryStatus::Open,
        "x" | "X" => EntryStatus::Done,
        "-" => EntryStatus::Dropped,
        ">" => EntryStatus::Deferred,
        _ => return None,
    };
    (rest.is_empty() || rest.starts_with([' ', '\t'])).then(|| (status, rest.trim_start()))
}

/// The text after a label such as `Acceptance:`, if the text starts with one.
pub(super) fn acceptance_label(text: &str) -> Option<&str> {
    let is_emphasis = |c: char| matches!(c, '*' | '_');
    let text = text.trim_start_matches(is_emphasis);
    let head = text.get(.."acceptance".len())?;
    if !head.eq_ignore_ascii_case("acceptance") {
        return None;
    }
    let rest = text.get(head.len()..)?;
    let word = " criteria";
    let rest = match rest.get(..word.len()) {
        Some(next) if next.eq_ignore_ascii_case(word) => rest.get(word.len()..)?,
        Some(_) | None => rest,
    };
    let plain = rest.trim_start_matches(is_emphasis);
    match plain.strip_prefix(':') {
        Some(rest) => Some(rest.trim_start_matches(is_emphasis).trim()),
        // Without a colon, the label must be alone on its line.
        None => plain.trim().is_empty().then_some(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_classified_by_their_start() {
        assert_eq!(classify("## Two ##"), MarkdownLine::Heading { level: 2, title: "Two" });
        assert_eq!(classify("# C#"), MarkdownLine::Heading { level: 1, title: "C#" });
        assert_eq!(classify("#no"), MarkdownLine::Text("#no"));
        assert_eq!(
            classify("- [ ] a "),
            MarkdownLine::Bullet { checkbox: Some(EntryStatus::Open), text: "a" }
        );
        assert_eq!(
            classify("12) [X] a"),
            MarkdownLine::Bullet { checkbox: Some(EntryStatus::Done), text: "a" }
        );
        assert_eq!(
            classify("* [-] a"),
            MarkdownLine::Bullet { checkbox: Some(EntryStatus::Dropped), text: "a" }
        );
        assert_eq!(classify("+ [a](b)"), MarkdownLine::Bullet { checkbox: None, text: "[a](b)" });
        assert_eq!(classify("- [x](b)"), MarkdownLine::Bullet { checkbox: None, text: "[x](b)" });
        assert_eq!(classify("-a"), MarkdownLine::Text("-a"));
        assert_eq!(classify("1.5 times"), MarkdownLine::Text("1.5 times"));
        assert_eq!(classify("* * *"), MarkdownLine::Rule);
        assert_eq!(classify("```rust x"), MarkdownLine::Fence { mark: '`', length: 3, info: "rust x" });
        assert_eq!(classify("```a` b"), MarkdownLine::Text("```a` b"));
        assert_eq!(classify("  "), MarkdownLine::Blank);
        assert!(ends_fence("```` ", '`', 3) && !ends_fence("``", '`', 3) && !ends_fence("```a", '`', 3));
    }

    #[test]
    fn tabs_extend_to_the_next_multiple_of_four() {
        assert_eq!(split_indent("\ta"), (4, "a"));
        assert_eq!(split_indent("  \ta"), (4, "a"));
        assert_eq!(split_indent("   "), (3, ""));
    }

    #[test]
    fn acceptance_labels_have_many_forms() {
        for label in ["Acceptance:", "acceptance criteria:", "**Acceptance Criteria**", "**Acceptance:**"] {
            assert_eq!(acceptance_label(label), Some(""), "{label}");
        }
        assert_eq!(acceptance_label("Acceptance: it runs"), Some("it runs"));
        for other in ["Acceptance tests run", "Acceptances:", "accept:"] {
            assert_eq!(acceptance_label(other), None, "{other}");
        }
    }
}
