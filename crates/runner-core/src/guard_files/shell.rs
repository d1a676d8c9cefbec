//! Splits shell text into simple commands, as far as their words are written out. Text that only a shell can evaluate, such
//! as a variable, stays a word that names no file.

/// Words that stand before a command and are none.
const KEYWORDS: [&str; 17] = [
    "!", "{", "}", "[[", "]]", "case", "do", "done", "elif", "else", "esac", "fi", "if", "then", "time",
    "until", "while",
];

/// The commands of a text, each as its words without quotes.
pub(super) fn commands(text: &str) -> Vec<Vec<String>> {
    let mut splitter = Splitter::default();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match (splitter.quote, c) {
            (Some('\''), '\'') | (Some('"'), '"') => splitter.quote = None,
            (Some('\''), c) => splitter.push(c),
            (_, '\\') => match chars.next() {
                Some('\n') | None => {}
                Some(escaped) => splitter.push(escaped),
            },
            // A command in quotes or backticks runs as well.
            (_, '`') => splitter.toggle_backtick(),
            (_, '$') if chars.peek() == Some(&'(') => {
                chars.next();
                splitter.begin_group();
            }
            (Some(_), c) => splitter.push(c),
            (None, '\'' | '"') => {
                splitter.quote = Some(c);
                splitter.word.get_or_insert_default();
            }
            (None, '#') if splitter.word.is_none() => while chars.next_if(|c| *c != '\n').is_some() {},
            (None, '(') => splitter.begin_group(),
            (None, ')') => splitter.end_group(),
            (None, '\n' | ';' | '&' | '|') => splitter.end_command(),
            (None, c) if c.is_whitespace() => splitter.end_word(),
            (None, c) => splitter.push(c),
        }
    }
    splitter.end_command();
    splitter.commands
}

#[derive(Default)]
struct Splitter {
    quote: Option<char>,
    word: Option<String>,
    words: Vec<String>,
    commands: Vec<Vec<String>>,
    /// The quotes around each open parenthesis.
    groups: Vec<Option<char>>,
    /// The quote around an open backtick.
    backtick: Option<Option<char>>,
}

impl Splitter {
    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        if !self.words.is_empty() || !KEYWORDS.contains(&word.as_str()) {
            self.words.push(word);
        }
    }

    fn end_command(&mut self) {
        self.end_word();
        let words = std::mem::take(&mut self.words);
        if !words.is_empty() {
            self.commands.push(words);
        }
    }

    fn begin_group(&mut self) {
        self.end_command();
        self.groups.push(self.quote.take());
    }

    fn end_group(&mut self) {
        self.end_command();
        self.quote = self.groups.pop().flatten();
    }

    fn toggle_backtick(&mut self) {
        self.end_command();
        self.backtick = match self.backtick.take() {
            Some(quote) => {
                self.quote = quote;
                None
            }
            None => Some(self.quote.take()),
        };
    }
}

/// The programs that run the command after them, and how many of their own words come first.
const WRAPPERS: [(&[&str], usize); 24] = [
    (&["bundle", "exec"], 0),
    (&["bunx"], 0),
    (&["chronic"], 0),
    (&["command"], 0),
    (&["env"], 0),
    (&["exec"], 0),
    (&["hatch", "run"], 0),
    (&["nice"], 0),
    (&["nohup"], 0),
    (&["npm", "exec"], 0),
    (&["npx"], 0),
    (&["pdm", "run"], 0),
    (&["pipenv", "run"], 0),
    (&["pnpm", "dlx"], 0),
    (&["pnpm", "exec"], 0),
    (&["poetry", "run"], 0),
    (&["rye", "run"], 0),
    (&["stdbuf"], 0),
    (&["sudo"], 0),
    (&["timeout"], 1),
    (&["uv", "run"], 0),
    (&["xargs"], 0),
    (&["xvfb-run"], 0),
    (&["yarn", "exec"], 0),
];

/// A command without assignments and without programs that only run another one.
pub(super) fn unwrapped(words: &[String]) -> &[String] {
    let mut words = words;
    loop {
        let before = words.len();
        while let Some((_, rest)) = words.split_first().filter(|(word, _)| is_assignment(word)) {
            words = rest;
        }
        for (names, own) in WRAPPERS {
            let is_wrapper =
                words.len() > names.len() && names.iter().zip(words).all(|(name, word)| name == word);
            if is_wrapper {
                words = words.get(names.len()..).unwrap_or_default();
                while let Some((_, rest)) = words.split_first().filter(|(word, _)| word.starts_with('-')) {
                    words = rest;
                }
                words = words.get(own..).unwrap_or_default();
            }
        }
        if words.len() == before {
            return words;
        }
    }
}

fn is_assignment(word: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<String> {
        commands(text).iter().map(|words| words.join("|")).collect()
    }

    #[test]
    fn a_text_is_split_at_operators_and_quotes_are_removed() {
        assert_eq!(
            split("set -e\nA=1 ./ci.sh 'a b' \"c;d\" # not this\nif ! make -s x; then exit 1; fi"),
            ["set|-e", "A=1|./ci.sh|a b|c;d", "make|-s|x", "exit|1"]
        );
        assert_eq!(split("a \\\n  b && (c | d) || e"), ["a|b", "c", "d", "e"]);
        assert_eq!(split("x=\"$(sh run.sh)\"; `./y`"), ["x=", "sh|run.sh", "./y"]);
        assert_eq!(split("for f in a b; do sh $f; done"), ["for|f|in|a|b", "sh|$f"]);
        assert_eq!(split(""), [""; 0]);
    }

    #[test]
    fn programs_that_run_another_one_are_left_out() {
        let rest = |text: &str| unwrapped(commands(text).first().unwrap()).join(" ");
        assert_eq!(rest("CI=1 timeout 60 uv run pytest -q"), "pytest -q");
        assert_eq!(rest("env -i A=b nice npx jest"), "jest");
        assert_eq!(rest("bundle exec rake"), "rake");
        assert_eq!(rest("npm run x"), "npm run x");
        assert_eq!(rest("env"), "env");
    }
}
