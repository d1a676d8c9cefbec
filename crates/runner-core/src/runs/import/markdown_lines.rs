//! The lines of a markdown file, each for what it is. Only what a checklist needs is told apart.

use super::EntryStatus;

/// A line, without what it is indented by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MarkdownLine<'t> {
    Blank,
    Heading {
        level: usize,
        title: &'t str,
    },
    /// A point of a list, with the box it may have.
    Bullet {
        boxed: Option<EntryStatus>,
        text: &'t str,
    },
    /// The beginning of a block of code.
    Fence {
        mark: char,
        length: usize,
        info: &'t str,
    },
    /// A line across the page.
    Rule,
    Text(&'t str),
}

/// How many columns a line is indented by, and what follows.
pub(super) fn indented(line: &str) -> (usize, &str) {
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

/// What a line is, given what follows its indent.
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

/// Whether a line ends a block that began with so many of these marks.
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
    let boxed = box_of(text);
    Some(match boxed {
        Some((standing, text)) => MarkdownLine::Bullet { boxed: Some(standing), text },
        None => MarkdownLine::Bullet { boxed: None, text },
    })
}

/// The box at the beginning of a point. Those that are neither empty nor ticked are as many editors have them.
fn box_of(text: &str) -> Option<(EntryStatus, &str)> {
    let (inside, rest) = text.strip_prefix('[')?.split_once(']')?;
    let standing = match inside {
        " " | "~" | "/" => EntryStatus::Open,
        "x" | "X" => EntryStatus::Done,
        "-" => EntryStatus::Dropped,
        ">" => EntryStatus::Deferred,
        _ => return None,
    };
    (rest.is_empty() || rest.starts_with([' ', '\t'])).then(|| (standing, rest.trim_start()))
}

/// Whether a text announces what one sees that it is done by; gives what follows on the same line.
pub(super) fn acceptance_label(text: &str) -> Option<&str> {
    let is_mark = |c: char| matches!(c, '*' | '_');
    let text = text.trim_start_matches(is_mark);
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
    let bare = rest.trim_start_matches(is_mark);
    match bare.strip_prefix(':') {
        Some(rest) => Some(rest.trim_start_matches(is_mark).trim()),
        // Without a colon it must stand alone, or be in bold.
        None => bare.trim().is_empty().then_some(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_told_by_how_it_begins() {
        assert_eq!(classify("## Two ##"), MarkdownLine::Heading { level: 2, title: "Two" });
        assert_eq!(classify("# C#"), MarkdownLine::Heading { level: 1, title: "C#" });
        assert_eq!(classify("#no"), MarkdownLine::Text("#no"));
        assert_eq!(classify("- [ ] a "), MarkdownLine::Bullet { boxed: Some(EntryStatus::Open), text: "a" });
        assert_eq!(classify("12) [X] a"), MarkdownLine::Bullet { boxed: Some(EntryStatus::Done), text: "a" });
        assert_eq!(
            classify("* [-] a"),
            MarkdownLine::Bullet { boxed: Some(EntryStatus::Dropped), text: "a" }
        );
        assert_eq!(classify("+ [a](b)"), MarkdownLine::Bullet { boxed: None, text: "[a](b)" });
        assert_eq!(classify("- [x](b)"), MarkdownLine::Bullet { boxed: None, text: "[x](b)" });
        assert_eq!(classify("-a"), MarkdownLine::Text("-a"));
        assert_eq!(classify("1.5 times"), MarkdownLine::Text("1.5 times"));
        assert_eq!(classify("* * *"), MarkdownLine::Rule);
        assert_eq!(classify("```rust x"), MarkdownLine::Fence { mark: '`', length: 3, info: "rust x" });
        assert_eq!(classify("```a` b"), MarkdownLine::Text("```a` b"));
        assert_eq!(classify("  "), MarkdownLine::Blank);
        assert!(ends_fence("```` ", '`', 3) && !ends_fence("``", '`', 3) && !ends_fence("```a", '`', 3));
    }

    #[test]
    fn a_tab_reaches_to_the_next_fourth_column() {
        assert_eq!(indented("\ta"), (4, "a"));
        assert_eq!(indented("  \ta"), (4, "a"));
        assert_eq!(indented("   "), (3, ""));
    }

    #[test]
    fn acceptance_is_announced_in_many_ways() {
        for label in ["Acceptance:", "acceptance criteria:", "**Acceptance Criteria**", "**Acceptance:**"] {
            assert_eq!(acceptance_label(label), Some(""), "{label}");
        }
        assert_eq!(acceptance_label("Acceptance: it runs"), Some("it runs"));
        for other in ["Acceptance tests run", "Acceptances:", "accept:"] {
            assert_eq!(acceptance_label(other), None, "{other}");
        }
    }
}
