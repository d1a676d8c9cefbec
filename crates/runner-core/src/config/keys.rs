//! The keys of `config.toml` one by one, for `runner config`: what each means, and how to set it in an existing file.

use serde_json::Value;
use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Config;
use super::reference::{KeyForm, ReferenceEntry, allowed, entries, toml_text};
use crate::strict::{DocumentProblem, nearest};
use crate::text::one_line;

/// A key that can be set.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigKey {
    /// The key with its table: `guard.command`.
    pub name: String,
    /// None if the key is absent by default.
    pub default: Option<Value>,
    /// The values that are allowed, in a few words.
    pub allowed: String,
    pub meaning: String,
    form: ValueForm,
}

/// Words that people type for a key whose name is not like them.
const OTHER_WORDS: &[(&str, &str)] = &[
    ("agent", "executor.kind"),
    ("attempts", "max_attempts_default"),
    ("budget", "budget.run_usd"),
    ("cost", "budget.run_usd"),
    ("executor", "executor.kind"),
    ("guard", "guard.command"),
    ("hooks", "hooks.on_stop"),
    ("max_attempts", "max_attempts_default"),
    ("max_cost", "budget.run_usd"),
    ("notify", "notify.desktop"),
    ("provider", "executor.kind"),
    ("reasoning", "executor.effort"),
    ("review", "review.kind"),
    ("reviewer", "review.kind"),
    ("test", "guard.command"),
    ("test_command", "guard.command"),
    ("tests", "guard.command"),
    ("thinking", "executor.effort"),
    ("time_limit", "iteration_timeout_secs"),
    ("timeout", "iteration_timeout_secs"),
    ("tokens", "budget.run_tokens"),
];

/// How a value is written on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueForm {
    /// One word, without quotes.
    Text,
    /// Any number of words.
    List,
    /// A number or a boolean.
    Literal,
}

/// Why a key cannot be set.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum SetKeyError {
    #[error("there is no key `{key}`")]
    UnknownKey { key: String, nearest: Option<String> },
    /// Lists of tables and tables with names of the user's.
    #[error("`{0}` holds tables, which cannot be set as one value")]
    Table(String),
    #[error("`{key}` takes {expected}")]
    WordCount { key: String, expected: &'static str },
    /// The file with the new value is invalid, or was invalid before.
    #[error("config.toml would not be valid")]
    Invalid(Vec<DocumentProblem>),
    /// The file is written in a form that cannot be edited in place.
    #[error("`{0}` cannot be set in place in this file")]
    Layout(String),
}

impl Config {
    /// Every key that can be set, in the order of the file.
    pub fn all_keys() -> Vec<ConfigKey> {
        let mut keys = Vec::new();
        for entry in entries() {
            if entry.keys.is_empty() && entry.form == KeyForm::Table {
                keys.push(ConfigKey::new(entry.name.clone(), &entry));
            }
            for key in entry.keys.iter().filter(|_| entry.form.is_table()) {
                keys.push(ConfigKey::new(format!("{}.{}", entry.name, key.name), key));
            }
        }
        keys
    }

    /// The key with this name.
    pub fn find_key(name: &str) -> Result<ConfigKey, SetKeyError> {
        let keys = Self::all_keys();
        if let Some(key) = keys.iter().find(|key| key.name == name) {
            return Ok(key.clone());
        }
        let table = name.split('.').next().unwrap_or_default();
        if entries().iter().any(|entry| entry.name == table && !entry.form.is_table()) {
            return Err(SetKeyError::Table(table.to_owned()));
        }
        let names: Vec<&str> = keys.iter().map(|key| key.name.as_str()).collect();
        // `model` for `executor.model`.
        let by_end = names.iter().copied().find(|known| known.rsplit('.').next() == Some(name));
        let by_meaning = || OTHER_WORDS.iter().find(|(word, _)| *word == name).map(|(_, key)| *key);
        let nearest = by_end.or_else(by_meaning).or_else(|| nearest(name, &names)).map(str::to_owned);
        Err(SetKeyError::UnknownKey { key: name.to_owned(), nearest })
    }

    /// The value of a key in this configuration; none if it is absent.
    pub fn value_of(&self, key: &ConfigKey) -> Option<Value> {
        let document = serde_json::to_value(self).ok()?;
        document.pointer(&format!("/{}", key.name.replace('.', "/"))).cloned()
    }
}

/// A value of the configuration as it is written in the file.
pub fn value_text(value: &Value) -> String {
    toml_text(value)
}

impl ConfigKey {
    fn new(name: String, entry: &ReferenceEntry) -> Self {
        let allowed = allowed(&entry.schema);
        let kind = entry.schema.get("type").map(ToString::to_string).unwrap_or_default();
        let form = if kind.contains("array") {
            ValueForm::List
        } else if kind.contains("string") || entry.schema.get("enum").is_some() {
            ValueForm::Text
        } else {
            ValueForm::Literal
        };
        Self { name, default: entry.default.clone(), allowed, meaning: entry.description.clone(), form }
    }

    /// Words from the command line as a value of the file.
    fn literal(&self, words: &[String]) -> Result<String, SetKeyError> {
        let wrong_count = |expected| Err(SetKeyError::WordCount { key: self.name.clone(), expected });
        match (self.form, words) {
            (ValueForm::List, []) => wrong_count("at least one word, or [] for none"),
            (ValueForm::List, [list]) if list.trim_start().starts_with('[') => Ok(list.clone()),
            (ValueForm::List, words) => Ok(toml_text(&Value::from(words))),
            (ValueForm::Text, [word]) => Ok(toml_text(&Value::from(word.as_str()))),
            (ValueForm::Literal, [word]) => Ok(word.clone()),
            (ValueForm::Text | ValueForm::Literal, _) => wrong_count("exactly one word"),
        }
    }
}

/// A new value for a key, or its removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyEdit {
    name: String,
    /// The value as the file has it. None removes the key, so that it has its default.
    literal: Option<String>,
}

impl KeyEdit {
    /// The value that these words of the command line mean. One empty word removes the key.
    pub fn from_words(name: &str, words: &[String]) -> Result<Self, SetKeyError> {
        let key = Config::find_key(name)?;
        let literal = match words {
            [word] if word.is_empty() => None,
            words => Some(key.literal(words)?),
        };
        Ok(Self { name: key.name, literal })
    }

    pub fn from_value(name: &str, value: &Value) -> Result<Self, SetKeyError> {
        Ok(Self { name: Config::find_key(name)?.name, literal: Some(toml_text(value)) })
    }
}

/// The file with these keys set or removed. Comments, order and all other bytes stay as they are. Keys that need each other
/// are set together: only the result must be valid.
pub fn edit_keys(text: &str, edits: &[KeyEdit]) -> Result<String, SetKeyError> {
    Config::decode(text.as_bytes()).map_err(SetKeyError::Invalid)?;
    let mut new = text.to_owned();
    for KeyEdit { name, literal } in edits {
        let (table, key) = name.split_once('.').unwrap_or(("", name));
        let edited = match literal {
            Some(literal) => {
                refuse_bad_literal(literal)?;
                // A line that landed in another table, or inside of a string, is valid too.
                edited(&new, table, key, literal).filter(|new| is_set_to(new, table, key, literal))
            }
            None => removed(&new, table, key),
        };
        new = edited.ok_or_else(|| SetKeyError::Layout(name.clone()))?;
    }
    Config::decode(new.as_bytes()).map_err(SetKeyError::Invalid)?;
    Ok(new)
}

/// Refuses text that is not one value: the lines behind it would become keys of their own.
fn refuse_bad_literal(literal: &str) -> Result<(), SetKeyError> {
    let is_one_value = !literal.contains('\n') && toml::from_str::<Value>(&format!("x = {literal}")).is_ok();
    let problem = || DocumentProblem::syntax(1, format!("`{}` is not a value", one_line(literal)));
    if is_one_value { Ok(()) } else { Err(SetKeyError::Invalid(vec![problem()])) }
}

fn is_set_to(text: &str, table: &str, key: &str, literal: &str) -> bool {
    let read = |text: &str| toml::from_str::<Value>(text).ok();
    let wanted = read(&format!("x = {literal}")).and_then(|document| document.get("x").cloned());
    let pointer = if table.is_empty() { format!("/{key}") } else { format!("/{table}/{key}") };
    wanted.is_some() && read(text).and_then(|document| document.pointer(&pointer).cloned()) == wanted
}

fn edited(text: &str, table: &str, key: &str, literal: &str) -> Option<String> {
    let document = DeTable::parse(text).ok()?.into_inner();
    let line = format!("{key} = {literal}\n");
    let keys = if table.is_empty() { Some(&document) } else { table_in(&document, table) };
    if let Some(value) = keys.and_then(|keys| value_in(keys, key)) {
        let span = value.span();
        return Some(format!("{}{literal}{}", text.get(..span.start)?, text.get(span.end..)?));
    }
    let Some(section) = Section::find(text, table) else {
        // A table that exists without a header is written inline.
        let separator = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        return keys.is_none().then(|| format!("{text}{separator}\n[{table}]\n{line}"));
    };
    if let Some(example) = section.example(text, key) {
        return Some(format!("{}{line}{}", text.get(..example.start)?, text.get(example.end..)?));
    }
    let last = keys.and_then(|keys| section.last_value(keys));
    let at = match last {
        Some(end) => text.get(end..)?.find('\n').map_or(text.len(), |rest| end + rest + 1),
        None => section.start,
    };
    let separator = if at == 0 || text.get(..at)?.ends_with('\n') { "" } else { "\n" };
    Some(format!("{}{separator}{line}{}", text.get(..at)?, text.get(at..)?))
}

/// The text without the lines of a key; none if they hold more than this key.
fn removed(text: &str, table: &str, key: &str) -> Option<String> {
    let document = DeTable::parse(text).ok()?.into_inner();
    let keys = if table.is_empty() { Some(&document) } else { table_in(&document, table) };
    let Some(value) = keys.and_then(|keys| value_in(keys, key)) else { return Some(text.to_owned()) };
    let span = value.span();
    let start = text.get(..span.start)?.rfind('\n').map_or(0, |end| end + 1);
    let end = text.get(span.end..)?.find('\n').map_or(text.len(), |rest| span.end + rest + 1);
    let new = format!("{}{}", text.get(..start)?, text.get(end..)?);
    (without_key(&new, table, key)? == without_key(text, table, key)?).then_some(new)
}

/// What the text means apart from a key. An empty table means the same as none.
fn without_key(text: &str, table: &str, key: &str) -> Option<Value> {
    let mut document = toml::from_str::<Value>(text).ok()?;
    let keys = if table.is_empty() { Some(&mut document) } else { document.get_mut(table) };
    if let Some(keys) = keys.and_then(Value::as_object_mut) {
        keys.shift_remove(key);
    }
    if let Some(tables) = document.as_object_mut() {
        tables.retain(|_, value| value.as_object().is_none_or(|keys| !keys.is_empty()));
    }
    Some(document)
}

fn value_in<'t, 'i>(table: &'t DeTable<'i>, key: &str) -> Option<&'t Spanned<DeValue<'i>>> {
    table.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value)
}

fn table_in<'t, 'i>(document: &'t DeTable<'i>, table: &str) -> Option<&'t DeTable<'i>> {
    match value_in(document, table)?.get_ref() {
        DeValue::Table(table) => Some(table),
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_)
        | DeValue::Array(_) => None,
    }
}

/// The lines of a table, without its header, up to the next header.
#[derive(Clone, Copy, Debug)]
struct Section {
    start: usize,
    end: usize,
}

impl Section {
    /// The section of a table; the keys before the first header for the name "".
    fn find(text: &str, table: &str) -> Option<Self> {
        let header = format!("[{table}]");
        let mut start = table.is_empty().then_some(0);
        let mut offset = 0;
        for line in text.split_inclusive('\n') {
            let content = line.trim_start();
            let is_header = content.starts_with('[');
            if is_header && start.is_none() && content.split('#').next().unwrap_or_default().trim() == header
            {
                start = Some(offset + line.len());
            } else if let Some(start) = start
                // The example of a table that is absent by default.
                && (is_header || content.starts_with("# ["))
            {
                return Some(Self { start, end: offset });
            }
            offset += line.len();
        }
        start.map(|start| Self { start, end: offset })
    }

    /// The line of a key that is commented out.
    fn example(self, text: &str, key: &str) -> Option<Self> {
        let mut offset = self.start;
        for line in text.get(self.start..self.end)?.split_inclusive('\n') {
            let commented = line.trim_start().strip_prefix('#').map(str::trim_start);
            let rest = commented.and_then(|content| content.strip_prefix(key)).map(str::trim_start);
            if rest.is_some_and(|rest| rest.starts_with('=')) {
                return Some(Self { start: offset, end: offset + line.len() });
            }
            offset += line.len();
        }
        None
    }

    /// Where the last value of the section ends.
    fn last_value(self, keys: &DeTable<'_>) -> Option<usize> {
        let ends = keys.iter().map(|(_, value)| value.span().end);
        ends.filter(|end| (self.start..=self.end).contains(end)).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn set(text: &str, key: &str, values: &[&str]) -> String {
        edit_keys(text, &[KeyEdit::from_words(key, &words(values)).unwrap()]).unwrap()
    }

    #[test]
    fn other_words_lead_to_keys_that_exist() {
        for (word, key) in OTHER_WORDS {
            assert!(Config::find_key(key).is_ok(), "{key}");
            let nearest = Some((*key).to_owned());
            let expected = SetKeyError::UnknownKey { key: (*word).to_owned(), nearest };
            assert_eq!(Config::find_key(word), Err(expected));
        }
    }

    #[test]
    fn every_key_of_the_documented_file_can_be_set_in_place() {
        let file = Config::documented_file();
        for (key, value) in [
            ("max_iterations", "7"),
            ("on_stuck", "replan"),
            ("guard.baseline", "false"),
            ("executor.model", "gpt-6.1-sol"),
            ("budget.run_usd", "2.5"),
        ] {
            let new = set(&file, key, &[value]);
            let changed: Vec<(&str, &str)> =
                file.lines().zip(new.lines()).filter(|(old, new)| old != new).collect();
            assert_eq!((changed.len(), new.lines().count()), (1, file.lines().count()), "{key}");
            let found = Config::decode(new.as_bytes()).unwrap().value_of(&Config::find_key(key).unwrap());
            assert_eq!(found.map(|found| found.to_string().replace('"', "")), Some(value.to_owned()));
        }
        assert!(Config::all_keys().iter().all(|key| !key.meaning.is_empty() && !key.allowed.is_empty()));
    }

    #[test]
    fn comments_and_order_stay() {
        let file = "# mine\nmax_iterations = 3 # few\n\n[guard] # ours\n# why\ncommand = [\n  \"make\",\n] # all\nbaseline = true\n\n[executor]\nkind = \"claude\"\n";
        assert_eq!(
            set(file, "guard.command", &["npm", "test"]),
            file.replace("[\n  \"make\",\n]", "[\"npm\", \"test\"]")
        );
        assert_eq!(set(file, "max_iterations", &["9"]), file.replace("3 #", "9 #"));
        assert_eq!(set(file, "on_stuck", &["replan"]), file.replace("few\n", "few\non_stuck = \"replan\"\n"));
        assert_eq!(
            set(file, "guard.network", &["false"]),
            file.replace("baseline = true\n", "baseline = true\nnetwork = false\n")
        );
        assert_eq!(set(file, "budget.run_usd", &["1"]), format!("{file}\n[budget]\nrun_usd = 1\n"));
        assert_eq!(set("", "max_iterations", &["9"]), "max_iterations = 9\n");
        assert_eq!(set("[guard]", "guard.baseline", &["false"]), "[guard]\nbaseline = false\n");
        assert_eq!(set("[guard]\n", "max_iterations", &["9"]), "max_iterations = 9\n[guard]\n");
    }

    #[test]
    fn lists_take_words_or_a_literal() {
        for (values, literal) in [
            (&["make", "a b"][..], "[\"make\", \"a b\"]"),
            (&["[\"make\"]"], "[\"make\"]"),
            (&["make"], "[\"make\"]"),
        ] {
            assert!(set("", "guard.command", values).ends_with(&format!("command = {literal}\n")));
        }
    }

    #[test]
    fn invalid_keys_and_values_change_nothing() {
        let error = |text: &str, key: &str, values: &[&str]| {
            let edit = KeyEdit::from_words(key, &words(values));
            edit.and_then(|edit| edit_keys(text, &[edit])).unwrap_err()
        };
        assert_eq!(
            error("", "model", &["x"]),
            SetKeyError::UnknownKey { key: "model".to_owned(), nearest: Some("executor.model".to_owned()) }
        );
        assert_eq!(
            error("", "guard.comand", &["x"]),
            SetKeyError::UnknownKey {
                key: "guard.comand".to_owned(),
                nearest: Some("guard.command".to_owned())
            }
        );
        assert_eq!(error("", "ladder", &["x"]), SetKeyError::Table("ladder".to_owned()));
        assert_eq!(error("", "prices.x.input", &["1"]), SetKeyError::Table("prices".to_owned()));
        assert!(matches!(error("", "max_iterations", &["1", "2"]), SetKeyError::WordCount { .. }));
        assert!(matches!(error("", "max_iterations", &["0"]), SetKeyError::Invalid(_)));
        assert!(matches!(error("", "max_iterations", &["1\nx = 2"]), SetKeyError::Invalid(_)));
        assert!(matches!(error("max = 1", "max_iterations", &["2"]), SetKeyError::Invalid(_)));
        assert_eq!(
            error("guard = { baseline = true }\n", "guard.network", &["false"]),
            SetKeyError::Layout("guard.network".to_owned())
        );
    }

    #[test]
    fn keys_that_need_each_other_are_set_together() {
        let edit = |key: &str, value: &str| KeyEdit::from_words(key, &words(&[value])).unwrap();
        let kind = edit("executor.kind", "command");
        assert!(matches!(edit_keys("", std::slice::from_ref(&kind)), Err(SetKeyError::Invalid(_))));
        let both = edit_keys(&Config::documented_file(), &[kind, edit("executor.preset", "pi")]).unwrap();
        assert_eq!(Config::decode(both.as_bytes()).unwrap().executor.label(), "command:pi");
    }

    #[test]
    fn an_empty_word_removes_a_key() {
        let file = "# mine\nmax_iterations = 3 # few\n\n[executor] # ours\nkind = \"command\"\ncommand = [\n  \"sh\",\n] # all\n\n[guard]\nbaseline = true\n";
        let edit = |key: &str, value: &str| KeyEdit::from_words(key, &words(&[value])).unwrap();
        let codex = edit_keys(file, &[edit("executor.kind", "codex"), edit("executor.command", "")]).unwrap();
        assert_eq!(
            codex,
            file.replace("\"command\"\n", "\"codex\"\n").replace("command = [\n  \"sh\",\n] # all\n", "")
        );
        assert_eq!(set(file, "max_iterations", &[""]), file.replace("max_iterations = 3 # few\n", ""));
        assert_eq!(set(file, "guard.baseline", &[""]), file.replace("baseline = true\n", ""));
        assert_eq!(set(file, "executor.model", &[""]), file, "it is not there");
        assert_eq!(set("guard.baseline = true", "guard.baseline", &[""]), "");
        assert_eq!(set("guard = { baseline = true }\n", "guard.baseline", &[""]), "");
        let inline = "guard = { baseline = true, network = false }\n";
        let error = edit_keys(inline, &[edit("guard.baseline", "")]).unwrap_err();
        assert_eq!(error, SetKeyError::Layout("guard.baseline".to_owned()));
        let error = edit_keys(file, &[edit("executor.command", "")]).unwrap_err();
        assert!(matches!(error, SetKeyError::Invalid(_)), "kind = \"command\" needs it");
    }

    #[test]
    fn inline_and_dotted_values_are_replaced() {
        let inline = "guard = { baseline = true }\n";
        assert_eq!(set(inline, "guard.baseline", &["false"]), "guard = { baseline = false }\n");
        assert_eq!(set("guard.baseline = true\n", "guard.baseline", &["false"]), "guard.baseline = false\n");
    }
}
