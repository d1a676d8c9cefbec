//! Arms of an experiment: variants of the runner's configuration that are tried on the same cases.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use runner_term::CommandError;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::case::{inline, toml_text};
use crate::files;

/// The arm without changes.
pub(crate) const BASE_ARM: &str = "base";
/// The key of an arm that is not a key of the configuration: a folder of prompt templates.
const PROMPTS_KEY: &str = "prompts";
/// Another such key: what becomes of the checks of the case's tasks.
const LEAF_CHECKS_KEY: &str = "leaf_checks";

/// Another such key: whether the run has the held-out checks of the case.
const HELDOUT_KEY: &str = "heldout";

/// What an arm does with the checks of a case's tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LeafChecks {
    /// The tasks have no checks: only the guard decides.
    Off,
    /// The checks need not fail before the work begins.
    Any,
    /// Every check must fail before the work begins.
    Required,
}

impl LeafChecks {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "off" => Some(Self::Off),
            "any" => Some(Self::Any),
            "required" => Some(Self::Required),
            _ => None,
        }
    }

    /// The value of `red` in a file of checks.
    pub(crate) fn red(self) -> &'static str {
        if self == Self::Any { "any" } else { "required" }
    }
}

/// One arm, as it is stored in the plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExperimentArm {
    pub(crate) name: String,
    /// Overrides of the configuration, as TOML.
    pub(crate) settings: String,
    /// A folder of prompt templates that replaces the built-in ones.
    pub(crate) prompts: Option<PathBuf>,
    /// The digest of that folder when the plan was made.
    pub(crate) prompts_sha256: Option<String>,
    /// What becomes of the checks of the case's tasks; none to leave them as they are.
    #[serde(default)]
    pub(crate) leaf_checks: Option<LeafChecks>,
    /// Whether the run has the held-out checks of the case.
    #[serde(default = "has_heldout")]
    pub(crate) heldout: bool,
}

fn has_heldout() -> bool {
    true
}

impl ExperimentArm {
    pub(crate) fn base() -> Self {
        Self {
            name: BASE_ARM.to_owned(),
            settings: String::new(),
            prompts: None,
            prompts_sha256: None,
            leaf_checks: None,
            heldout: true,
        }
    }

    /// The overrides as a table.
    pub(crate) fn table(&self) -> Table {
        self.settings.parse().unwrap_or_default()
    }

    fn new(name: String, mut settings: Table, folder: &Path) -> Result<Self, String> {
        if let Some(character) = name.chars().find(|c| c.is_control() || matches!(c, '+' | '@')) {
            return Err(format!("the name of an arm must not contain {character:?}"));
        }
        let prompts = match settings.remove(PROMPTS_KEY) {
            None => None,
            Some(Value::String(path)) => Some(files::absolute(&folder.join(path))),
            Some(_) => return Err("`prompts` must be the path of a folder".to_owned()),
        };
        let prompts_sha256 = match &prompts {
            None => None,
            Some(path) => {
                let fail = |error: io::Error| format!("`{}`: {error}", path.display());
                if !path.is_dir() || files::relative_files(path).map_err(fail)?.is_empty() {
                    return Err(format!("`{}` is not a folder with prompt templates", path.display()));
                }
                Some(files::digest_tree(path, &[]).map_err(fail)?.to_string())
            }
        };
        let leaf_checks =
            match settings.remove(LEAF_CHECKS_KEY) {
                None => None,
                Some(value) => Some(value.as_str().and_then(LeafChecks::parse).ok_or_else(|| {
                    format!("`{LEAF_CHECKS_KEY}` must be \"off\", \"any\" or \"required\"")
                })?),
            };
        let heldout = match settings.remove(HELDOUT_KEY) {
            None => true,
            Some(value) => value.as_bool().ok_or_else(|| format!("`{HELDOUT_KEY}` must be true or false"))?,
        };
        Ok(Self { name, settings: toml_text(&settings), prompts, prompts_sha256, leaf_checks, heldout })
    }
}

/// The value of `--arm`: `base`, or `[NAME:]KEY=VALUE[,KEY=VALUE…]`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ArmSpec {
    /// As typed.
    text: String,
    name: String,
    settings: Table,
}

impl ArmSpec {
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

impl FromStr for ArmSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == BASE_ARM {
            return Ok(Self { text: text.to_owned(), name: text.to_owned(), settings: Table::new() });
        }
        let (name, list) = match text.split_once(':') {
            Some((name, list)) if !name.contains('=') => (name, list),
            _ => (text, text),
        };
        let mut settings = Table::new();
        for setting in split_settings(list) {
            let (key, value) = setting
                .split_once('=')
                .ok_or_else(|| format!("expected `{BASE_ARM}` or KEY=VALUE, found `{setting}`"))?;
            insert(&mut settings, key.trim(), parse_value(value.trim()))?;
        }
        Ok(Self { text: text.to_owned(), name: name.trim().to_owned(), settings })
    }
}

/// Splits at commas that are followed by another `KEY=`; other commas belong to a value.
fn split_settings(list: &str) -> Vec<String> {
    let mut settings: Vec<String> = Vec::new();
    for piece in list.split(',') {
        let is_key = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        let begins_setting =
            piece.split_once('=').is_some_and(|(key, _)| !key.is_empty() && key.trim().chars().all(is_key));
        match settings.last_mut() {
            Some(last) if !begins_setting => last.push_str(&format!(",{piece}")),
            _ => settings.push(piece.to_owned()),
        }
    }
    settings
}

/// A TOML value; anything that is not one is a text.
fn parse_value(text: &str) -> Value {
    let table: Result<Table, _> = format!("value = {text}").parse();
    let value = table.ok().and_then(|mut table| table.remove("value"));
    value.unwrap_or_else(|| Value::String(text.to_owned()))
}

/// Inserts a value at a dotted key.
fn insert(table: &mut Table, key: &str, value: Value) -> Result<(), String> {
    match key.split_once('.') {
        None if key.is_empty() => Err("a key is empty".to_owned()),
        None => {
            table.insert(key.to_owned(), value);
            Ok(())
        }
        Some((first, rest)) => {
            let inner = table.entry(first.to_owned()).or_insert_with(|| Value::Table(Table::new()));
            match inner {
                Value::Table(inner) => insert(inner, rest, value),
                Value::String(_)
                | Value::Integer(_)
                | Value::Float(_)
                | Value::Boolean(_)
                | Value::Datetime(_)
                | Value::Array(_) => Err(format!("`{first}` is not a table")),
            }
        }
    }
}

/// Writes `overrides` over a table, key by key at every level.
pub(crate) fn merge_tables(table: &mut Table, overrides: &Table) {
    for (key, value) in overrides {
        match (table.get_mut(key), value) {
            (Some(Value::Table(inner)), Value::Table(more)) => merge_tables(inner, more),
            _ => {
                table.insert(key.clone(), value.clone());
            }
        }
    }
}

/// A grid file: `[[arm]]` tables with `name` and `set`, or `[grid]` with a list of values per key, of which every
/// combination becomes an arm.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GridFile {
    #[serde(default)]
    arm: Vec<GridArm>,
    #[serde(default)]
    grid: Table,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GridArm {
    name: String,
    #[serde(default)]
    set: Table,
    prompts: Option<String>,
}

/// The arms of the command line and of a grid file. Without any, only the base.
pub(crate) fn resolve_arms(
    specs: &[ArmSpec],
    grid: Option<&Path>,
    folder: &Path,
) -> Result<Vec<ExperimentArm>, CommandError> {
    let refuse = |why: String| CommandError::refused("arm", "invalid arms").cause(why);
    let mut arms = Vec::new();
    for ArmSpec { name, settings, .. } in specs {
        arms.push(ExperimentArm::new(name.clone(), settings.clone(), folder).map_err(refuse)?);
    }
    if let Some(path) = grid {
        let text = fs::read_to_string(path)
            .map_err(|error| CommandError::io("could not read the arms", path, &error))?;
        let file: GridFile = toml::from_str(&text).map_err(|error| refuse(error.to_string()))?;
        arms.extend(grid_arms(file, path.parent().unwrap_or(folder)).map_err(refuse)?);
    }
    if arms.is_empty() {
        arms.push(ExperimentArm::base());
    }
    let names: BTreeSet<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
    if names.len() < arms.len() {
        return Err(refuse("two arms have the same name".to_owned()));
    }
    Ok(arms)
}

fn grid_arms(file: GridFile, folder: &Path) -> Result<Vec<ExperimentArm>, String> {
    let mut arms = Vec::new();
    for GridArm { name, mut set, prompts } in file.arm {
        if let Some(prompts) = prompts {
            set.insert(PROMPTS_KEY.to_owned(), Value::String(prompts));
        }
        arms.push(ExperimentArm::new(name, set, folder)?);
    }
    let mut combinations: Vec<Vec<(String, Value)>> = vec![Vec::new()];
    for (key, values) in &file.grid {
        let Value::Array(values) = values else {
            return Err(format!("`grid.{key}` must be a list of values"));
        };
        let mut longer = Vec::new();
        for combination in &combinations {
            for value in values {
                let mut next = combination.clone();
                next.push((key.clone(), value.clone()));
                longer.push(next);
            }
        }
        combinations = longer;
    }
    for combination in combinations.into_iter().filter(|combination| !combination.is_empty()) {
        let mut settings = Table::new();
        let mut names = Vec::new();
        for (key, value) in combination {
            names.push(format!("{key}={}", inline(&value).trim_matches('"')));
            insert(&mut settings, &key, value)?;
        }
        arms.push(ExperimentArm::new(names.join(","), settings, folder)?);
    }
    Ok(arms)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> String {
        toml_text(&text.parse::<ArmSpec>().unwrap().settings)
    }

    #[test]
    fn arm_is_a_list_of_settings() {
        assert_eq!(settings("base"), "");
        assert_eq!(settings("max_attempts_default=1"), "\"max_attempts_default\" = 1\n");
        assert_eq!(
            settings("executor.model=gpt-6.1-sol"),
            "\"executor\" = { \"model\" = \"gpt-6.1-sol\" }\n"
        );
        assert_eq!(
            settings("guard.command=[\"sh\", \"x=1\"],max_iterations=5"),
            "\"guard\" = { \"command\" = [\"sh\", \"x=1\"] }\n\"max_iterations\" = 5\n"
        );
        assert_eq!("one:a=1".parse::<ArmSpec>().unwrap().name, "one");
        assert!("nonsense".parse::<ArmSpec>().is_err());
        assert!("a=1,a.b=2".parse::<ArmSpec>().is_err());
    }

    #[test]
    fn prompts_must_be_a_folder_with_files() {
        let folder = tempfile::tempdir().unwrap();
        let arm = || {
            let settings = Table::from_iter([("prompts".to_owned(), Value::String("p".to_owned()))]);
            ExperimentArm::new("short".to_owned(), settings, folder.path())
        };
        assert!(arm().is_err());
        fs::create_dir(folder.path().join("p")).unwrap();
        assert!(arm().unwrap_err().contains("is not a folder with prompt templates"));
        fs::write(folder.path().join("p/leaf.md"), "x").unwrap();
        assert!(arm().unwrap().prompts_sha256.is_some());
    }

    #[test]
    fn grid_has_every_combination() {
        let file: GridFile = toml::from_str(
            "[[arm]]\nname = \"base\"\n[grid]\nmax_attempts_default = [1, 2]\n\"executor.model\" = [\"a\", \"b\"]\n",
        )
        .unwrap();
        let arms = grid_arms(file, Path::new(".")).unwrap();
        let names: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
        assert_eq!(names.len(), 5);
        assert!(names.contains(&"max_attempts_default=2,executor.model=b"), "{names:?}");
        assert_eq!(arms[0].table(), Table::new());
    }

    #[test]
    fn overrides_are_merged_at_every_level() {
        let mut table: Table = "a = 1\n[b]\nc = 2\nd = 3\n".parse().unwrap();
        merge_tables(&mut table, &"[b]\nc = 4\n".parse().unwrap());
        assert_eq!(table, "a = 1\n[b]\nc = 4\nd = 3\n".parse().unwrap());
    }
}
