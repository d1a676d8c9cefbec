//! A guard typed as one line, as the words of a command.

/// Characters with a meaning to a shell beyond words and quotes.
const OPERATORS: [char; 13] = ['&', '|', ';', '<', '>', '$', '`', '(', ')', '*', '?', '\n', '#'];

/// The words of a command line. A line with operators, variables or open quotes is left to a shell.
pub fn guard_words(line: &str) -> Vec<String> {
    let through_shell = || vec!["sh".to_owned(), "-c".to_owned(), line.trim().to_owned()];
    if line.contains(OPERATORS) || line.contains(['\\', '~']) {
        return through_shell();
    }
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    // A shell sets variables that stand before the command.
    let sets_variable = words.first().is_some_and(|first| first.contains('='));
    if quote.is_some() || sets_variable { through_shell() } else { words }
}

/// Words as one line that a shell would read as the same words.
pub fn command_line(words: &[String]) -> String {
    match words {
        // The user's own line.
        [shell, flag, line] if shell == "sh" && flag == "-c" => line.clone(),
        words => words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" "),
    }
}

/// A word for a shell.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |c: char| {
        c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | '=' | ':' | '@' | '%' | '+' | ',')
    };
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_and_shell_syntax_is_left_to_a_shell() {
        assert_eq!(guard_words(" npm  test "), ["npm", "test"]);
        assert_eq!(guard_words("pytest -k 'a b' \"\""), ["pytest", "-k", "a b", ""]);
        for line in ["npm test && npm run lint", "CI=1 npm test", "echo 'open", "make $X"] {
            assert_eq!(guard_words(line), ["sh", "-c", line]);
        }
        assert_eq!(guard_words(" "), [""; 0]);
    }

    #[test]
    fn words_are_quoted_for_a_shell_only_where_needed() {
        assert_eq!(quoted("./a-b/c.sh"), "./a-b/c.sh");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
        let words = |line: &str| guard_words(line);
        for line in ["npm test", "pytest -k 'a b'", "make a && make b"] {
            assert_eq!(command_line(&words(line)), line);
        }
    }
}
