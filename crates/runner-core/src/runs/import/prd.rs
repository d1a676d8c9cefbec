//! `prd.json`: user stories, in order of priority.

use serde::Deserialize;
use serde_json::Value;

use super::json::{JsonPart, TopLevel, top};
use super::topo_sort::{DependentEntry, arranged};
use super::{EntryStatus, ImportWarning, ImportedPlan, PlanEntry, PlanError, PlanFormat};

/// The keys under which stories are found.
const STORIES: [&str; 3] = ["userStories", "user_stories", "stories"];

/// One story. Names differ from tool to tool.
#[derive(Debug, Deserialize)]
struct PrdStory {
    #[serde(default)]
    id: Option<TextOrNumber>,
    #[serde(default, alias = "name", alias = "story")]
    title: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default, alias = "acceptance_criteria", alias = "acceptance", alias = "steps")]
    #[serde(rename = "acceptanceCriteria")]
    acceptance: Vec<String>,
    #[serde(default)]
    priority: Option<Value>,
    #[serde(default, alias = "done", alias = "completed")]
    passes: bool,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    notes: Option<String>,
    #[serde(default, alias = "dependsOn", alias = "depends_on")]
    dependencies: Vec<TextOrNumber>,
}

/// A name, written as a text or as a number.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum TextOrNumber {
    Text(String),
    Number(u64),
}

impl TextOrNumber {
    pub(super) fn text(&self) -> String {
        match self {
            Self::Text(text) => text.trim().to_owned(),
            Self::Number(number) => number.to_string(),
        }
    }
}

pub(super) fn is_prd(top: &TopLevel<'_>) -> bool {
    match top {
        TopLevel::Object(keys) => STORIES.iter().any(|key| keys.contains_key(*key)),
        TopLevel::Array(_) => true,
        TopLevel::Other => false,
    }
}

pub(super) fn read(text: &str) -> Result<ImportedPlan, Vec<PlanError>> {
    let one = |fault| vec![fault];
    let (title, goal, stories) = match top(text).map_err(one)? {
        TopLevel::Object(keys) => {
            let words = |names: &[&str]| {
                let part = names.iter().find_map(|name| keys.get(*name));
                part.and_then(|part| part.read::<String>("it").ok()).unwrap_or_default()
            };
            let stories = STORIES.iter().find_map(|key| keys.get(*key));
            let missing = || PlanError::new(1, "the file has no list `userStories`");
            let stories = stories.ok_or_else(missing).and_then(|part| part.array(text)).map_err(one)?;
            (words(&["project", "title", "name"]), words(&["description", "overview"]), stories)
        }
        TopLevel::Array(stories) => (String::new(), String::new(), stories),
        TopLevel::Other => {
            return Err(vec![PlanError::new(1, "the file holds neither an object nor a list")]);
        }
    };
    if stories.is_empty() {
        return Err(vec![PlanError::new(1, "there is no story in it")]);
    }
    let (mut tasks, mut faults, mut remarks) = (Vec::new(), Vec::new(), Vec::new());
    for (nth, part) in stories.iter().enumerate() {
        match story(nth, part, &mut remarks) {
            Ok(read) => tasks.push(read),
            Err(fault) => faults.push(fault),
        }
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    // Stable: stories of one priority stay in the order of the file, and those without one come last.
    tasks.sort_by_key(|(priority, _)| *priority);
    let items = arranged(tasks.into_iter().map(|(_, task)| task).collect())?;
    Ok(ImportedPlan {
        format: PlanFormat::Prd,
        title,
        goal,
        acceptance: Vec::new(),
        entries: items,
        warnings: remarks,
    })
}

fn story(
    nth: usize,
    part: &JsonPart<'_>,
    remarks: &mut Vec<ImportWarning>,
) -> Result<(u64, DependentEntry), PlanError> {
    let what = format!("story {}", nth + 1);
    let read: PrdStory = part.read(&what)?;
    let trimmed =
        |text: Option<String>| text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let (title, description) = (trimmed(read.title), trimmed(read.description));
    let Some(title) = title
        .clone()
        .or_else(|| description.as_deref().and_then(|text| text.lines().next()).map(str::to_owned))
    else {
        return Err(PlanError::new(part.line, format!("{what} has neither a title nor a description")));
    };
    let priority = read.priority.as_ref().map(priority);
    if priority == Some(None) {
        let text =
            format!("the priority of {what} is neither a number nor high, medium or low, and is not used");
        remarks.push(ImportWarning { line: part.line, text });
    }
    let goal = [description.filter(|text| *text != title), trimmed(read.notes)];
    let standing = match read.status.as_deref().map(standing_of) {
        _ if read.passes => EntryStatus::Done,
        Some(standing) => standing,
        None => EntryStatus::Open,
    };
    let name = read.id.map(|id| id.text());
    let item = PlanEntry {
        line: part.line,
        name: name.clone(),
        title,
        goal: goal.into_iter().flatten().collect::<Vec<_>>().join("\n\n"),
        acceptance: read
            .acceptance
            .iter()
            .map(|point| point.trim().to_owned())
            .filter(|point| !point.is_empty())
            .collect(),
        status: standing,
        children: Vec::new(),
    };
    let task = DependentEntry {
        item,
        key: name.unwrap_or(what),
        after: read.dependencies.iter().map(TextOrNumber::text).collect(),
        children: Vec::new(),
    };
    Ok((priority.flatten().unwrap_or(u64::MAX), task))
}

/// The smaller, the earlier.
fn priority(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(word) => match word.to_ascii_lowercase().as_str() {
            "critical" | "highest" => Some(0),
            "high" => Some(1),
            "medium" => Some(2),
            "low" => Some(3),
            word => word.trim_start_matches('p').parse().ok(),
        },
        Value::Null => Some(u64::MAX),
        Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// What tools write for how far a task is.
pub(super) fn standing_of(status: &str) -> EntryStatus {
    match status.trim().to_ascii_lowercase().as_str() {
        "done" | "completed" | "complete" | "passed" | "closed" => EntryStatus::Done,
        "cancelled" | "canceled" | "dropped" | "wontfix" => EntryStatus::Dropped,
        "deferred" | "postponed" => EntryStatus::Deferred,
        _ => EntryStatus::Open,
    }
}
