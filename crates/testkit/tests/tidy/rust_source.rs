//! Splits a Rust source into code, comments and literals, precisely enough to search each of them for words.
//!
//! Each view is as long as the source, with blanks for what it leaves out, so an offset into a view is an offset into the
//! source. Unit tests, that is every item directly after `#[cfg(test)]`, can be left out. An item ends with its first `;` or
//! with the brace that closes its first `{`. Macros with a syntax of their own are not supported.

use std::ops::Range;

const TEST_ITEM: &str = "#[cfg(test)]";

/// A name that a source defines.
pub(crate) struct Definition<'a> {
    /// `fn`, `let`, `struct` and so on.
    pub(crate) keyword: &'a str,
    pub(crate) name: &'a str,
    pub(crate) offset: usize,
}

const DEFINING_KEYWORDS: [&str; 10] =
    ["const", "enum", "fn", "let", "mod", "static", "struct", "trait", "type", "union"];

/// The names that code defines. A `let` with a pattern counts only if it binds one name.
pub(crate) fn definitions(code: &str) -> Vec<Definition<'_>> {
    let mut definitions = Vec::new();
    let mut keyword = None;
    let mut rest_at = 0;
    for word in code.split(|char: char| !is_name_char(char)) {
        let offset = rest_at;
        rest_at += word.len() + code.get(rest_at + word.len()..).map_or(0, first_char_len);
        if word.is_empty() {
            // Only white space may separate a keyword from its name.
            let separator = code.get(..offset).and_then(|before| before.chars().next_back());
            if separator.is_some_and(|char| !char.is_whitespace()) {
                keyword = None;
            }
            continue;
        }
        let separator = code.get(..offset).and_then(|before| before.chars().next_back());
        if separator.is_some_and(|char| !char.is_whitespace()) {
            keyword = None;
        }
        match keyword {
            Some("let" | "static") if word == "mut" => {}
            Some(keyword_found) => {
                definitions.push(Definition { keyword: keyword_found, name: word, offset });
                keyword = None;
            }
            None => keyword = DEFINING_KEYWORDS.into_iter().find(|keyword| *keyword == word),
        }
    }
    definitions
}

fn first_char_len(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}

pub(crate) struct SourceViews {
    pub(crate) code: String,
    pub(crate) comments: String,
    /// Literals with their quotes.
    pub(crate) literals: String,
}

#[derive(Clone, Copy, PartialEq)]
enum SourcePart {
    Code,
    Comment,
    Literal,
}

impl SourceViews {
    pub(crate) fn without_tests(source: &str) -> Self {
        let views = Self::with_tests(source);
        let tests = test_items(&views.code);
        let without_tests = |view: &str| blank(view, |at| tests.iter().any(|test| test.contains(&at)));
        Self {
            code: without_tests(&views.code),
            comments: without_tests(&views.comments),
            literals: without_tests(&views.literals),
        }
    }

    pub(crate) fn with_tests(source: &str) -> Self {
        let mut parts = Vec::with_capacity(source.len());
        let mut rest = source;
        while !rest.is_empty() {
            let (part, length) = first_part(rest);
            parts.resize(parts.len() + length, part);
            (_, rest) = rest.split_at(length);
        }
        let only = |kept: SourcePart| blank(source, |at| parts.get(at).is_none_or(|part| *part != kept));
        Self {
            code: only(SourcePart::Code),
            comments: only(SourcePart::Comment),
            literals: only(SourcePart::Literal),
        }
    }
}

/// Replaces the bytes for which the predicate holds by blanks, but keeps line breaks.
fn blank(text: &str, is_blanked: impl Fn(usize) -> bool) -> String {
    let mut kept = String::with_capacity(text.len());
    for (at, char) in text.char_indices() {
        if char == '\n' || !is_blanked(at) {
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

/// The kind and the length of the first part of the source.
fn first_part(source: &str) -> (SourcePart, usize) {
    let whole = source.len();
    if source.starts_with("//") {
        return (SourcePart::Comment, source.find('\n').unwrap_or(whole));
    }
    if source.starts_with("/*") {
        return (SourcePart::Comment, block_comment_length(source));
    }
    if source.starts_with('"') {
        return (SourcePart::Literal, quoted_length(source, '"'));
    }
    if let Some(length) = character_length(source) {
        return (SourcePart::Literal, length);
    }
    let name_length = source.find(|char: char| !is_name_char(char)).unwrap_or(whole);
    let (name, after) = source.split_at(name_length);
    if matches!(name, "r" | "br" | "cr")
        && let Some(length) = raw_length(after)
    {
        return (SourcePart::Literal, name_length + length);
    }
    (SourcePart::Code, name_length.max(source.chars().next().map_or(1, char::len_utf8)))
}

pub(crate) fn is_name_char(char: char) -> bool {
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

/// The length of the literal that starts with this quote.
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

/// The length of a character literal; `None` for a lifetime, which has no closing quote.
fn character_length(source: &str) -> Option<usize> {
    let mut chars = source.strip_prefix('\'')?.chars();
    let char = chars.next()?;
    if char == '\\' {
        return Some(quoted_length(source, '\''));
    }
    (chars.next() == Some('\'')).then(|| char.len_utf8() + 2)
}

/// The length of a raw string after its `r`; `None` for a raw identifier.
fn raw_length(source: &str) -> Option<usize> {
    let quoted = source.trim_start_matches('#');
    let marks = source.len() - quoted.len();
    let close = format!("\"{}", "#".repeat(marks));
    let inside = quoted.strip_prefix('"')?;
    Some(marks + 1 + inside.find(&close)? + close.len())
}

#[test]
fn definitions_are_found_with_their_keyword() {
    let code = "pub fn a() { let mut b = 1; let (c, d) = e; const F: u8 = 2; } struct G; impl fn(H) {}";
    let found: Vec<(&str, &str)> =
        definitions(code).iter().map(|definition| (definition.keyword, definition.name)).collect();
    assert_eq!(found, [("fn", "a"), ("let", "b"), ("const", "F"), ("struct", "G")]);
    assert!(
        definitions(code)
            .iter()
            .all(|found| code.get(found.offset..).is_some_and(|rest| rest.starts_with(found.name)))
    );
}

#[test]
fn code_comments_literals_and_unit_tests_are_separated() {
    let source = r##"
fn a<'x>(r#b: &'x str) { call("s1 \" // s2", '"', '\'', r#"s3 " s4"#); } // c1 "c2"
/* c3 /* c4 */ "c5" */ const É: u8 = b'"';
#[cfg(test)]
mod tests { fn t() { hidden("s5 }"); } }
fn after() {}
"##;
    let views = SourceViews::without_tests(source);
    for view in [&views.code, &views.comments, &views.literals] {
        assert_eq!(view.len(), source.len());
        assert_eq!(view.lines().count(), source.lines().count());
    }
    let words = |view: &str| view.split_whitespace().map(str::to_owned).collect::<Vec<_>>().join(" ");
    assert_eq!(
        words(&views.code),
        "fn a<'x>(r#b: &'x str) { call( , , , ); } const É: u8 = b ; fn after() {}"
    );
    assert_eq!(words(&views.literals), r##""s1 \" // s2" '"' '\'' r#"s3 " s4"# '"'"##);
    assert_eq!(words(&views.comments), r#"// c1 "c2" /* c3 /* c4 */ "c5" */"#);
    assert!(SourceViews::with_tests(source).code.contains("hidden"));
}
