//! The parser of `prd.json`: user stories, ordered by priority.

use serde::Deserialize;
use serde_json::Value;

use super::json::{JsonPart, TopLevel, top_level};
use super::topo_sort::{DependentEntry, sort_by_dependencies};
use super::{EntryStatus, ImportWarning, ImportedPlan, PlanEntry, PlanError, PlanFormat};

/// The keys of the story list.
const STORY_KEYS: [&str; 3] = ["userStories", "user_stories", "stories"];

/// One story. Tools use different keys.
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

/// An id, written as a string or a number.
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
        TopLevel::Object(keys) => STORY_KEYS.iter().any(|key| keys.contains_key(*key)),
        TopLevel::Array(_) => true,
        TopLevel::Other => false,
    }
}

pub(super) fn parse(text: &str) -> Result<ImportedPlan, Vec<PlanError>> {
    let single = |error| vec![error];
    let (title, goal, stories) = match top_level(text).map_err(single)? {
        TopLevel::Object(keys) => {
            let text_of = |names: &[&str]| {
                let part = names.iter().find_map(|name| keys.get(*name));
                part.and_then(|part| part.decode::<String>("the text").ok()).unwrap_or_default()
            };
            let stories = STORY_KEYS.iter().find_map(|key| keys.get(*key));
            let missing = || PlanError::new(1, "the file has no list `userStories`");
            let stories = stories.ok_or_else(missing).and_then(|part| part.array(text)).map_err(single)?;
            (text_of(&["project", "title", "name"]), text_of(&["description", "overview"]), stories)
        }
        TopLevel::Array(stories) => (String::new(), String::new(), stories),
        TopLevel::Other => {
            return Err(vec![PlanError::new(1, "the file is neither an object nor a list")]);
        }
    };
    if stories.is_empty() {
        return Err(vec![PlanError::new(1, "the file has no stories")]);
    }
    let mut tasks = Vec::new();
    let mut errors = Vec::new();
    let mut warnings = Vec::new();
    for (index, part) in stories.iter().enumerate() {
        match parse_story(index, part, &mut warnings) {
            Ok(task) => tasks.push(task),
            Err(error) => errors.push(error),
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    // A stable sort: stories with the same priority keep the order of the file, and those without one come last.
    tasks.sort_by_key(|(priority, _)| *priority);
    let entries = sort_by_dependencies(tasks.into_iter().map(|(_, task)| task).collect())?;
    Ok(ImportedPlan { format: PlanFormat::Prd, title, goal, acceptance: Vec::new(), entries, warnings })
}

/// A story, with its priority in front.
fn parse_story(
    index: usize,
    part: &JsonPart<'_>,
    warnings: &mut Vec<ImportWarning>,
) -> Result<(u64, DependentEntry), PlanError> {
    let what = format!("story {}", index + 1);
    let story: PrdStory = part.decode(&what)?;
    let trimmed =
        |text: Option<String>| text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let description = trimmed(story.description);
    let first_line = || description.as_deref().and_then(|text| text.lines().next()).map(str::to_owned);
    let Some(title) = trimmed(story.title).or_else(first_line) else {
        return Err(PlanError::new(part.line, format!("{what} has neither a title nor a description")));
    };
    let priority = story.priority.as_ref().map(parse_priority);
    if priority == Some(None) {
        let text = format!("ignored the priority of {what}: it is neither a number nor high, medium or low");
        warnings.push(ImportWarning { line: part.line, text });
    }
    let goal = [description.filter(|text| *text != title), trimmed(story.notes)];
    let status = match story.status.as_deref().map(parse_status) {
        _ if story.passes => EntryStatus::Done,
        Some(status) => status,
        None => EntryStatus::Open,
    };
    let name = story.id.map(|id| id.text());
    let entry = PlanEntry {
        line: part.line,
        name: name.clone(),
        title,
        goal: goal.into_iter().flatten().collect::<Vec<_>>().join("\n\n"),
        acceptance: story
            .acceptance
            .iter()
            .map(|criterion| criterion.trim().to_owned())
            .filter(|criterion| !criterion.is_empty())
            .collect(),
        status,
        children: Vec::new(),
    };
    let task = DependentEntry {
        entry,
        key: name.unwrap_or(what),
        after: story.dependencies.iter().map(TextOrNumber::text).collect(),
        children: Vec::new(),
    };
    Ok((priority.flatten().unwrap_or(u64::MAX), task))
}

/// A priority as a number; the smallest comes first.
fn parse_priority(value: &Value) -> Option<u64> {
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

/// The status words of common tools.
pub(super) fn parse_status(status: &str) -> EntryStatus {
    match status.trim().to_ascii_lowercase().as_str() {
        "done" | "completed" | "complete" | "passed" | "closed" => EntryStatus::Done,
        "cancelled" | "canceled" | "dropped" | "wontfix" => EntryStatus::Dropped,
        "deferred" | "postponed" => EntryStatus::Deferred,
        _ => EntryStatus::Open,
    }
}
