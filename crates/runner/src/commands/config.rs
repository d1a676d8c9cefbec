//! `runner config`

use std::path::Path;

use runner_core::config::{Config, ConfigKey, KeyEdit, SetKeyError, value_text};
use runner_core::layout::Doc;
use runner_core::schema::SchemaDocument;
use runner_host::UserError;
use runner_host::ops::config_file::{ConfigFile, read_config, set_config};
use runner_term::{CommandError, CommandOutput, Glyph, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use crate::args::{ConfigArgs, ConfigCommand, ConfigSetArgs};
use crate::render::clean;

const READ: &str = "could not read the configuration";
const SET: &str = "could not change the configuration";

/// The column of the meanings and defaults.
const TEXT_COLUMN: usize = 4;

pub(crate) fn run(dir: &Path, args: &ConfigArgs) -> Result<Box<dyn CommandOutput>, CommandError> {
    let read = || read_config(dir).map_err(|error| CommandError::from_host(READ, error));
    Ok(match &args.command {
        ConfigCommand::Show(args) => Box::new(show(&read()?, args.key.as_deref())?),
        ConfigCommand::Get(args) => Box::new(get(&read()?, &args.key)?),
        ConfigCommand::Set(args) => Box::new(set(dir, args)?),
        ConfigCommand::Schema(_) => Box::new(SchemaOutput),
    })
}

fn key_error(what: &str, error: SetKeyError) -> CommandError {
    CommandError::from_host(what, UserError::SetKey(error))
}

/// One key with its current value.
struct KeyRow {
    key: ConfigKey,
    value: Option<Value>,
    source: ValueSource,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueSource {
    Default,
    File,
}

impl ValueSource {
    fn word(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::File => "config.toml",
        }
    }
}

impl KeyRow {
    /// A value that is written in the file but equals the default counts as the default.
    fn new(key: ConfigKey, file: &ConfigFile) -> Self {
        let value = file.config.value_of(&key);
        let source = if value == key.default { ValueSource::Default } else { ValueSource::File };
        Self { key, value, source }
    }

    fn value_text(&self) -> String {
        self.value.as_ref().map_or_else(|| "(not set)".to_owned(), |value| clean(&value_text(value)))
    }

    /// The value behind the key and its sign, in a line that begins with `lead` other cells.
    fn wrapped_value(&self, lead: usize, styler: &Styler) -> String {
        let used = lead + self.key.name.len() + " = ".len();
        styler.wrap_behind(&self.value_text(), used, TEXT_COLUMN)
    }

    fn default_text(&self) -> String {
        self.key.default.as_ref().map_or_else(|| "none".to_owned(), value_text)
    }
}

pub(crate) struct ShowOutput {
    rows: Vec<KeyRow>,
    /// Whether the user asked for one key or table, which is shown with its meaning.
    is_selection: bool,
}

fn show(file: &ConfigFile, wanted: Option<&str>) -> Result<ShowOutput, CommandError> {
    let is_wanted = |key: &ConfigKey| {
        wanted.is_none_or(|wanted| {
            key.name == wanted || key.name.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('.'))
        })
    };
    let rows: Vec<KeyRow> =
        Config::all_keys().into_iter().filter(is_wanted).map(|key| KeyRow::new(key, file)).collect();
    if let (Some(wanted), true) = (wanted, rows.is_empty()) {
        return Err(Config::find_key(wanted)
            .err()
            .map_or_else(|| CommandError::refused("unknown_key", READ), |error| key_error(READ, error)));
    }
    Ok(ShowOutput { rows, is_selection: wanted.is_some() })
}

impl CommandOutput for ShowOutput {
    fn json(&self) -> Value {
        let keys: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                json!({
                    "key": row.key.name, "value": row.value, "default": row.key.default,
                    "source": row.source.word(), "allowed": row.key.allowed, "meaning": row.key.meaning,
                })
            })
            .collect();
        json!({ "schema": "runner.config/1", "keys": keys })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let line = |row: &KeyRow| {
            let line = KeyValueLine::new().with("key", &row.key.name).with("value", row.value_text());
            line.with("default", row.default_text()).with("source", row.source.word())
        };
        self.rows.iter().map(line).collect()
    }

    fn human(&self, styler: &Styler) -> String {
        let mut text = String::new();
        let mut table = "";
        for row in &self.rows {
            let (prefix, _) = row.key.name.split_once('.').unwrap_or(("", ""));
            if prefix != table {
                table = prefix;
                text.push('\n');
            }
            let name = match row.source {
                ValueSource::File => styler.paint(TextRole::Strong, &row.key.name),
                ValueSource::Default => row.key.name.clone(),
            };
            text.push_str(&format!("{name} = {}\n", row.wrapped_value(0, styler)));
            if self.is_selection || styler.verbose {
                let details = [
                    row.key.meaning.clone(),
                    format!("allowed: {}", row.key.allowed.replace('`', "")),
                    format!("default: {}; now from: {}", row.default_text(), row.source.word()),
                ];
                for detail in details {
                    let detail = styler.wrap(&detail, TEXT_COLUMN);
                    text.push_str(&format!(
                        "{:TEXT_COLUMN$}{}\n",
                        "",
                        styler.paint(TextRole::Faint, &detail)
                    ));
                }
            }
        }
        text.trim_start_matches('\n').to_owned()
    }

    fn is_long(&self) -> bool {
        !self.is_selection
    }
}

pub(crate) struct GetOutput {
    row: KeyRow,
}

fn get(file: &ConfigFile, name: &str) -> Result<GetOutput, CommandError> {
    let key = Config::find_key(name).map_err(|error| key_error(READ, error))?;
    Ok(GetOutput { row: KeyRow::new(key, file) })
}

impl CommandOutput for GetOutput {
    fn json(&self) -> Value {
        json!({ "schema": "runner.config_value/1", "key": self.row.key.name, "value": self.row.value })
    }

    /// The bare value, for scripts.
    fn key_values(&self) -> Vec<KeyValueLine> {
        match &self.row.value {
            Some(Value::String(text)) => vec![KeyValueLine::verbatim(clean(text))],
            Some(value) => vec![KeyValueLine::verbatim(clean(&value_text(value)))],
            None => Vec::new(),
        }
    }

    fn human(&self, _: &Styler) -> String {
        self.key_values().iter().map(|line| format!("{}\n", line.as_str())).collect()
    }
}

pub(crate) struct SetOutput {
    rows: Vec<KeyRow>,
}

fn set(dir: &Path, args: &ConfigSetArgs) -> Result<SetOutput, CommandError> {
    let mut edits = Vec::new();
    let mut names = Vec::new();
    for (name, words) in assignments(&args.words) {
        edits.push(KeyEdit::from_words(&name, &words).map_err(|error| key_error(SET, error))?);
        names.push(name);
    }
    let file = set_config(dir, &edits).map_err(|error| CommandError::from_host(SET, error))?;
    let row = |name: &String| Config::find_key(name).ok().map(|key| KeyRow::new(key, &file));
    Ok(SetOutput { rows: names.iter().filter_map(row).collect() })
}

/// `KEY VALUE…` as one assignment, `KEY=VALUE …` as any number of them.
fn assignments(words: &[String]) -> Vec<(String, Vec<String>)> {
    let split = |word: &String| {
        let (key, value) = word.split_once('=')?;
        Some((key.to_owned(), vec![value.to_owned()]))
    };
    match words {
        [first, ..] if first.contains('=') => {
            words.iter().map(|word| split(word).unwrap_or_else(|| (word.clone(), Vec::new()))).collect()
        }
        [key, values @ ..] => vec![(key.clone(), values.to_vec())],
        [] => Vec::new(),
    }
}

impl CommandOutput for SetOutput {
    fn json(&self) -> Value {
        let keys: Vec<Value> =
            self.rows.iter().map(|row| json!({ "key": row.key.name, "value": row.value })).collect();
        json!({ "schema": "runner.config_set/1", "keys": keys, "next": "runner start" })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let line =
            |row: &KeyRow| KeyValueLine::new().with("key", &row.key.name).with("value", row.value_text());
        self.rows.iter().map(line).collect()
    }

    fn human(&self, styler: &Styler) -> String {
        let mut text = String::new();
        let tick = styler.paint(TextRole::Good, styler.glyph(Glyph::Passed));
        for row in &self.rows {
            text.push_str(&format!("{tick} {} = {}\n", row.key.name, row.wrapped_value(2, styler)));
        }
        let effect = format!("which commits {} and puts it into effect", Doc::Config.path());
        text + &format!("\nNext: {}\n", styler.wrap_headed(TextRole::Strong, "runner start,", &effect, 6))
    }
}

/// The JSON Schema, the same in every format.
pub(crate) struct SchemaOutput;

impl SchemaOutput {
    fn text() -> String {
        String::from_utf8_lossy(&SchemaDocument::Config.schema_bytes()).into_owned()
    }
}

impl CommandOutput for SchemaOutput {
    fn json(&self) -> Value {
        serde_json::from_str(&Self::text()).unwrap_or_default()
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        Self::text().lines().map(KeyValueLine::verbatim).collect()
    }

    fn human(&self, _: &Styler) -> String {
        Self::text()
    }

    fn is_long(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_takes_words_or_several_keys_take_one_value_each() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            assignments(&words(&["guard.command", "npm", "A=1"])),
            [("guard.command".to_owned(), words(&["npm", "A=1"]))]
        );
        assert_eq!(
            assignments(&words(&["a=1=2", "b"])),
            [("a".to_owned(), words(&["1=2"])), ("b".to_owned(), Vec::new())]
        );
    }
}
