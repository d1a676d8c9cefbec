//! Words of shell text whose values the text itself shows: the script's own folder, and variables that are set to plain text.

use std::collections::BTreeMap;

/// Stands for the root of the repository in a path.
pub(super) const ROOT: char = '\u{1}';
/// How many commands a loop over written-out words becomes at most.
const WORDS_MAX: usize = 50;

/// Ways to write the folder of the script that runs.
const OWN_FOLDER: [&str; 9] = [
    "$(dirname -- \"$0\")",
    "$(dirname \"$0\")",
    "$(dirname $0)",
    "$(dirname \"${BASH_SOURCE[0]}\")",
    "$(dirname -- \"${BASH_SOURCE[0]}\")",
    "$(dirname \"$BASH_SOURCE\")",
    "$(dirname ${BASH_SOURCE[0]})",
    "${0%/*}",
    "${BASH_SOURCE%/*}",
];
const TOP: [&str; 2] = ["$(git rev-parse --show-toplevel)", "`git rev-parse --show-toplevel`"];

/// The text of a script in a folder of the repository, with its own folder and the repository's written out.
pub(super) fn located(text: &str, folder: &str) -> String {
    let own = if folder.is_empty() { ROOT.to_string() } else { format!("{ROOT}/{folder}") };
    let mut text = text.to_owned();
    for idiom in OWN_FOLDER {
        text = text.replace(idiom, &own);
    }
    for idiom in TOP {
        text = text.replace(idiom, &ROOT.to_string());
    }
    // `$(cd FOLDER && pwd)` is the folder.
    while let Some((before, rest)) = text.split_once("$(cd ") {
        let Some((inner, after)) = rest.split_once(')').filter(|(inner, _)| inner.contains("pwd")) else {
            break;
        };
        let folder = inner.split(['&', ';', '>']).next().unwrap_or_default();
        let folder = folder.trim().trim_start_matches("-- ").trim_matches(['"', '\'']);
        text = format!("{before}{folder}{after}");
    }
    text
}

/// The variables of a shell text that are set to plain text.
#[derive(Default)]
pub(super) struct Variables(BTreeMap<String, Vec<String>>);

impl Variables {
    /// Notes what a command sets. Returns whether it does nothing else.
    pub(super) fn set(&mut self, words: &[String]) -> bool {
        if let [first, name, r#in, values @ ..] = words
            && first == "for"
            && r#in == "in"
        {
            let values = values.iter().filter(|value| !value.contains('$')).take(WORDS_MAX);
            self.0.insert(name.clone(), values.cloned().collect());
            return true;
        }
        let words = match words.split_first() {
            Some((first, rest)) if matches!(first.as_str(), "export" | "readonly" | "local") => rest,
            _ => words,
        };
        let [word] = words else { return false };
        let Some((name, value)) = word.split_once('=').filter(|(name, _)| is_name(name)) else {
            return false;
        };
        let mut values = self.expanded(value);
        values.retain(|value| !value.contains(['$', '`']) && !value.is_empty());
        self.0.insert(name.to_owned(), values);
        true
    }

    /// A command for each value of the variables in it.
    pub(super) fn commands(&self, words: &[String]) -> Vec<Vec<String>> {
        let mut commands: Vec<Vec<String>> = vec![Vec::new()];
        for word in words {
            let values = self.expanded(word);
            let longer = commands.iter().flat_map(|command| {
                values.iter().map(|value| command.iter().chain([value]).cloned().collect::<Vec<String>>())
            });
            commands = longer.take(WORDS_MAX).collect();
        }
        commands
    }

    /// A word with each value of the variables in it that are known.
    fn expanded(&self, word: &str) -> Vec<String> {
        let mut texts = vec![String::new()];
        let mut rest = word;
        while let Some((before, after)) = rest.split_once('$') {
            let variable = Reference::parse(after);
            let known = variable.as_ref().and_then(|variable| Some((variable, self.0.get(variable.name)?)));
            let (values, next) = match known.filter(|(_, values)| !values.is_empty()) {
                Some((variable, values)) => (values.clone(), variable.after),
                None => (vec!["$".to_owned()], after),
            };
            let longer = texts
                .iter()
                .flat_map(|text| values.iter().map(move |value| format!("{text}{before}{value}")));
            texts = longer.take(WORDS_MAX).collect();
            rest = next;
        }
        texts.into_iter().map(|text| text + rest).collect()
    }
}

/// A variable in a word, and the text after it.
struct Reference<'w> {
    name: &'w str,
    after: &'w str,
}

impl<'w> Reference<'w> {
    /// Reads what follows a `$`: a name, with or without braces.
    fn parse(text: &'w str) -> Option<Self> {
        if let Some(braced) = text.strip_prefix('{') {
            return braced.split_once('}').map(|(name, after)| Self { name, after });
        }
        let length = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
        text.split_at_checked(length).map(|(name, after)| Self { name, after })
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_a_script_is_written_out() {
        let text = "ROOT=\"$(cd \"$(dirname \"$0\")/..\" && pwd)\"\n. \"${0%/*}/lib.sh\"";
        assert_eq!(located(text, "ci"), "ROOT=\"\u{1}/ci/..\"\n. \"\u{1}/ci/lib.sh\"");
        assert_eq!(located("cd $(dirname $0)", ""), "cd \u{1}");
        assert_eq!(located("$(cd x; ls)", ""), "$(cd x; ls)");
    }

    #[test]
    fn variables_that_are_plain_text_are_replaced() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let mut variables = Variables::default();
        assert!(variables.set(&words("ROOT=lib")) && variables.set(&words("export X=$ROOT/x")));
        assert!(variables.set(&words("Y=$UNKNOWN")) && !variables.set(&words("A=b sh c")));
        assert!(variables.set(&words("for t in a b")));
        assert_eq!(variables.commands(&words(". $X.sh")), [words(". lib/x.sh")]);
        assert_eq!(variables.commands(&words("sh ${t}.sh")), [words("sh a.sh"), words("sh b.sh")]);
        assert_eq!(variables.commands(&words("sh $Y $ROOTS")), [words("sh $Y $ROOTS")]);
        assert_eq!(
            variables.commands(&words("sh ${ROOT}/$t-${t%x}$")),
            [words("sh lib/a-${t%x}$"), words("sh lib/b-${t%x}$")]
        );
    }
}
