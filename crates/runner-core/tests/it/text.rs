//! Untrusted text is safe to print.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use runner_core::text::{head, one_line};

use crate::holds;

/// Text with terminal control sequences.
fn control_text() -> impl Strategy<Value = String> {
    let parts = [
        "\u{1b}[31m",
        "\u{1b}]0;t\u{7}",
        "\u{1b}]8;;x\u{1b}\\",
        "\u{9b}2J",
        "\u{9d}0;t\u{9c}",
        "\u{90}q",
        "\u{1b}",
        "\u{1b}(B",
        "\u{202e}",
        "\u{2066}",
        "\u{200f}",
        "\u{61c}",
        "\u{feff}",
        "\u{ad}",
        "\u{e0041}",
        "\r\n",
        "\t",
        "\0",
        "\u{7f}",
        "\u{85}",
        "\u{2028}",
        " ",
        "word",
        "é",
        "日本",
        "[",
        "]",
        "\\",
        "m",
    ];
    vec(
        prop_oneof![select(parts.to_vec()).prop_map(str::to_owned), any::<char>().prop_map(String::from)],
        0..12,
    )
    .prop_map(|parts| parts.concat())
}

fn changes_direction(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[test]
fn one_line_removes_control_characters_and_is_idempotent() {
    holds(control_text(), |text| {
        let line = one_line(&text);
        let bad = line
            .chars()
            .find(|c| matches!(c, '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}') || changes_direction(*c));
        prop_assert_eq!(bad, None, "{:?}", line);
        prop_assert!(!line.contains("  ") && line.trim() == line, "{:?}", line);
        prop_assert_eq!(one_line(&line), line.clone());
        Ok(())
    });
}

#[test]
fn head_is_the_longest_prefix_that_fits() {
    holds((control_text(), 0..40_usize), |(text, max)| {
        let head = head(&text, max);
        prop_assert!(text.starts_with(head) && head.len() <= max);
        let next = text.chars().nth(head.chars().count());
        prop_assert!(next.is_none_or(|next| head.len() + next.len_utf8() > max));
        Ok(())
    });
}
