//! Untrusted text made safe to show: agents and files may contain anything.

/// The text on one line, without anything that could affect a terminal or hide the meaning: control characters, escape
/// sequences, and marks that change the direction of text. White space and control characters become one space.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    let mut gap = false;
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if c == '\u{1b}' || c == '\u{9b}' {
            skip_escape(c, &mut rest);
        } else if c.is_whitespace() || c.is_control() {
            gap = true;
        } else if !is_hidden(c) {
            if gap && !line.is_empty() {
                line.push(' ');
            }
            gap = false;
            line.push(c);
        }
    }
    line
}

/// The same as [`one_line`], but lines, indentation and tabs are kept.
pub fn lines(text: &str) -> String {
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\t')) {
        return text.to_owned();
    }
    let mut clean = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        if c == '\u{1b}' || c == '\u{9b}' {
            skip_escape(c, &mut rest);
        } else if c == '\n' || c == '\t' || !(c.is_control() || is_hidden(c)) {
            clean.push(c);
        }
    }
    clean
}

/// Skips the rest of an escape sequence: a control sequence up to its final letter, an operating system command up to its
/// end, or a single character.
fn skip_escape(start: char, rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    let kind = if start == '\u{9b}' { Some('[') } else { rest.next() };
    match kind {
        Some('[') => {
            while let Some(c) = rest.next_if(|c| !c.is_control()) {
                if ('\u{40}'..='\u{7e}').contains(&c) {
                    break;
                }
            }
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            while let Some(c) = rest.next() {
                if c == '\u{7}' || c == '\u{9c}' {
                    break;
                }
                if c == '\u{1b}' {
                    rest.next_if_eq(&'\\');
                    break;
                }
            }
        }
        _ => {}
    }
}

/// Invisible characters, which change how others are shown. Not U+200C and U+200D: Persian and joined emoji need them, and
/// they reorder nothing.
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}'
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// At most `bytes_max` bytes of the text, cut between characters.
pub fn head(text: &str, bytes_max: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes_max)).unwrap_or(text)
}

/// The offset of a slice of a text, such as one that a decoder borrowed from it.
pub(crate) fn offset_in(text: &str, slice: &str) -> usize {
    (slice.as_ptr() as usize).saturating_sub(text.as_ptr() as usize)
}

/// The text in at most `bytes_max` bytes; one that is cut ends with an ellipsis.
pub fn shortened(text: &str, bytes_max: usize) -> String {
    const ELLIPSIS: &str = "…";
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    format!("{}{ELLIPSIS}", head(text, bytes_max.saturating_sub(ELLIPSIS.len())).trim_end())
}

/// At most `bytes_max` bytes from the end of the text, cut between characters.
pub fn tail(text: &str, bytes_max: usize) -> &str {
    text.get(text.ceil_char_boundary(text.len().saturating_sub(bytes_max))..).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_their_layout_and_lose_escape_sequences() {
        assert_eq!(lines("a\r\n\t\u{1b}[31mb\u{1b}[0m\u{202e}\0\n  c"), "a\n\tb\n  c");
    }

    #[test]
    fn shortened_text_shows_that_it_was_cut() {
        assert_eq!(shortened("aé日", 6), "aé日");
        assert_eq!(shortened("one two", 7), "one two");
        assert_eq!(shortened("one two three", 7), "one…");
        assert_eq!(shortened("ééé", 5), "é…");
    }

    #[test]
    fn tail_never_splits_a_character() {
        assert_eq!(tail("aé日", 0), "");
        assert_eq!(tail("aé日", 2), "");
        assert_eq!(tail("aé日", 3), "日");
        assert_eq!(tail("aé日", 4), "日");
        assert_eq!(tail("aé日", 5), "é日");
        assert_eq!(tail("aé日", 99), "aé日");
    }

    #[test]
    fn one_line_removes_escape_sequences_and_keeps_the_words() {
        for (text, shown) in [
            ("plain text", "plain text"),
            ("  two\n\n lines\t", "two lines"),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}after", "after"),
            ("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{9b}2Jcleared", "cleared"),
            ("\u{1b}Pq#0\u{9c}x", "x"),
            ("\u{1b}cy", "y"),
            ("\u{1b}[3\u{1b}[31mz", "z"),
            ("a\u{202e}b\u{2066}c\u{200b}d", "abcd"),
            ("nul\0bell\u{7}", "nul bell"),
            ("\u{1b}", ""),
            ("日本 語", "日本 語"),
            ("\u{1f468}\u{200d}\u{1f469} می\u{200c}خواهم", "\u{1f468}\u{200d}\u{1f469} می\u{200c}خواهم"),
        ] {
            assert_eq!(one_line(text), shown, "{text:?}");
            assert_eq!(one_line(shown), shown);
        }
    }

    #[test]
    fn head_never_splits_a_character() {
        assert_eq!(head("aé日", 0), "");
        assert_eq!(head("aé日", 2), "a");
        assert_eq!(head("aé日", 3), "aé");
        assert_eq!(head("aé日", 5), "aé");
        assert_eq!(head("aé日", 6), "aé日");
        assert_eq!(head("aé日", 99), "aé日");
    }
}
