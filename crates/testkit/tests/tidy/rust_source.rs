//! A Rust source taken apart into code, comments and literals, as far as searching it for words needs that.
//!
//! The views have the length of the source, with blanks for what they leave out, so an offset into one is an offset
//! into the source. Unit tests, that is every item right after `#[cfg(test)]`, are blank in both. The item ends with
//! its first `;` or with the brace that closes its first `{`; macros that bring their own syntax are not understood.

use std::ops::Range;

const TEST_ITEM: &str = "#[cfg(test)]";

pub(crate) struct Views {
    /// Without comments, literals and unit tests.
    pub(crate) code: String,
    /// Nothing but the literals outside the unit tests, with their quotes.
    pub(crate) literals: String,
}

#[derive(Clone, Copy, PartialEq)]
enum Part {
    Code,
    Comment,
    Literal,
}

impl Views {
    pub(crate) fn of(source: &str) -> Self {
        let whole = Self::with_tests(source);
        let tests = test_items(&whole.code);
        let without_tests = |view: &str| blank(view, |at| tests.iter().any(|test| test.contains(&at)));
        Self { code: without_tests(&whole.code), literals: without_tests(&whole.literals) }
    }

    /// The same with the unit tests in them, for rules that hold there too.
    pub(crate) fn with_tests(source: &str) -> Self {
        let mut parts = Vec::with_capacity(source.len());
        let mut rest = source;
        while !rest.is_empty() {
            let (part, length) = first_part(rest);
            parts.resize(parts.len() + length, part);
            (_, rest) = rest.split_at(length);
        }
        let only = |kept: Part| blank(source, |at| parts.get(at).is_none_or(|part| *part != kept));
        Self { code: only(Part::Code), literals: only(Part::Literal) }
    }
}

/// The text with a blank for every byte that goes; lines stay lines.
fn blank(text: &str, goes: impl Fn(usize) -> bool) -> String {
    let mut kept = String::with_capacity(text.len());
    for (at, char) in text.char_indices() {
        if char == '\n' || !goes(at) {
            kept.push(char);
        } else {
            kept.extend(std::iter::repeat_n(' ', char.len_utf8()));
        }
    }
    kept
}

fn test_items(code: &str) -> Vec<Range<usize>> {
    code.match_indices(TEST_ITEM)
        .map(|(start, _)| start..start + item_length(code.split_at(start).1))
        .collect()
}

fn item_length(code: &str) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' if depth <= 1 => return at + 1,
            b'}' => depth -= 1,
            b';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

/// What the source starts with, and how many bytes of it.
fn first_part(source: &str) -> (Part, usize) {
    let to_the_end = source.len();
    if source.starts_with("//") {
        return (Part::Comment, source.find('\n').unwrap_or(to_the_end));
    }
    if source.starts_with("/*") {
        return (Part::Comment, block_comment_length(source));
    }
    if source.starts_with('"') {
        return (Part::Literal, quoted_length(source, '"'));
    }
    if let Some(length) = character_length(source) {
        return (Part::Literal, length);
    }
    let name_length = source.find(|char: char| !is_of_name(char)).unwrap_or(to_the_end);
    let (name, after) = source.split_at(name_length);
    if matches!(name, "r" | "br" | "cr")
        && let Some(length) = raw_length(after)
    {
        return (Part::Literal, name_length + length);
    }
    (Part::Code, name_length.max(source.chars().next().map_or(1, char::len_utf8)))
}

pub(crate) fn is_of_name(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

fn block_comment_length(source: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(step) = source.get(at..at + 2) {
        depth = match step {
            "/*" => depth + 1,
            "*/" => depth - 1,
            _ => depth,
        };
        at += if matches!(step, "/*" | "*/") { 2 } else { 1 };
        if depth == 0 {
            return at;
        }
    }
    source.len()
}

/// From the quote the source starts with to the one that ends the literal.
fn quoted_length(source: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, char) in source.char_indices().skip(1) {
        match char {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if char == quote => return at + char.len_utf8(),
            _ => {}
        }
    }
    source.len()
}

/// A character in quotes; nothing for a lifetime, which has only the first quote.
fn character_length(source: &str) -> Option<usize> {
    let mut chars = source.strip_prefix('\'')?.chars();
    let char = chars.next()?;
    if char == '\\' {
        return Some(quoted_length(source, '\''));
    }
    (chars.next() == Some('\'')).then(|| char.len_utf8() + 2)
}

/// From the first `#` or quote after the `r` of a raw string to its end; nothing for a raw identifier.
fn raw_length(source: &str) -> Option<usize> {
    let quoted = source.trim_start_matches('#');
    let marks = source.len() - quoted.len();
    let close = format!("\"{}", "#".repeat(marks));
    let inside = quoted.strip_prefix('"')?;
    Some(marks + 1 + inside.find(&close)? + close.len())
}

#[test]
fn code_comments_literals_and_unit_tests_are_told_apart() {
    let source = r##"
fn a<'x>(r#b: &'x str) { call("s1 \" // s2", '"', '\'', r#"s3 " s4"#); } // c1 "c2"
/* c3 /* c4 */ "c5" */ const É: u8 = b'"';
#[cfg(test)]
mod tests { fn t() { hidden("s5 }"); } }
fn after() {}
"##;
    let views = Views::of(source);
    for view in [&views.code, &views.literals] {
        assert_eq!(view.len(), source.len());
        assert_eq!(view.lines().count(), source.lines().count());
    }
    let words = |view: &str| view.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
    assert_eq!(
        words(&views.code),
        "fn a<'x>(r#b: &'x str) { call( , , , ); } const É: u8 = b ; fn after() {}"
    );
    assert_eq!(words(&views.literals), r##""s1 \" // s2" '"' '\'' r#"s3 " s4"# '"'"##);
    assert!(Views::with_tests(source).code.contains("hidden"));
}
