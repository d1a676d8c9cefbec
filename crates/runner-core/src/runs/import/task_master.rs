//! The parser of task-master's `tasks.json`: tasks with subtasks and dependencies.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::json::{JsonPart, TopLevel, top_level};
use super::prd::{TextOrNumber, parse_status};
use super::topo_sort::{DependentEntry, sort_by_dependencies};
use super::{ImportedPlan, PlanEntry, PlanError, PlanFormat};
use crate::model::tree::DEPTH_MAX;

const TASKS_KEY: &str = "tasks";
/// The default list of the tool, if a file has several.
const DEFAULT_TAG: &str = "master";

/// A task or subtask.
#[derive(Debug, Deserialize)]
struct TaskEntry<'t> {
    id: TextOrNumber,
    title: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    details: Option<String>,
    #[serde(default, rename = "testStrategy")]
    test_strategy: Option<String>,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    dependencies: Vec<TextOrNumber>,
    #[serde(default, borrow)]
    subtasks: Option<&'t RawValue>,
}

pub(super) fn is_task_master(text: &str) -> bool {
    task_lists(text).is_ok_and(|lists| !lists.is_empty())
}

/// The task lists of a file by tag. A file without tags has one list, with an empty tag.
fn task_lists(text: &str) -> Result<BTreeMap<String, JsonPart<'_>>, PlanError> {
    let TopLevel::Object(keys) = top_level(text)? else { return Ok(BTreeMap::new()) };
    if let Some(tasks) = keys.get(TASKS_KEY).filter(|tasks| tasks.is_array()) {
        return Ok(BTreeMap::from([(String::new(), *tasks)]));
    }
    let mut lists = BTreeMap::new();
    for (tag, part) in keys.into_iter().filter(|(_, part)| part.is_object()) {
        if let Some(tasks) = part.object(text)?.remove(TASKS_KEY).filter(JsonPart::is_array) {
            lists.insert(tag, tasks);
        }
    }
    Ok(lists)
}

pub(super) fn parse(text: &str, tag: Option<&str>) -> Result<ImportedPlan, Vec<PlanError>> {
    let list = choose_list(text, tag).map_err(|error| vec![error])?;
    let mut parser = TaskMasterParser { text, errors: Vec::new() };
    let tasks = parser.tasks(&list, "", 1);
    if tasks.is_empty() && parser.errors.is_empty() {
        parser.errors.push(PlanError::new(list.line, "the list has no tasks"));
    }
    if !parser.errors.is_empty() {
        return Err(parser.errors);
    }
    Ok(ImportedPlan {
        format: PlanFormat::TaskMaster,
        title: String::new(),
        goal: String::new(),
        acceptance: Vec::new(),
        entries: sort_by_dependencies(tasks)?,
        warnings: Vec::new(),
    })
}

fn choose_list<'t>(text: &'t str, tag: Option<&str>) -> Result<JsonPart<'t>, PlanError> {
    let lists = task_lists(text)?;
    let tags = || lists.keys().map(|tag| format!("`{tag}`")).collect::<Vec<_>>().join(", ");
    let chosen = match (tag, lists.len()) {
        (Some(tag), _) => lists.get(tag),
        (None, 1) => lists.values().next(),
        (None, _) => lists.get(DEFAULT_TAG),
    };
    chosen.copied().ok_or_else(|| {
        let reason = match (tag, lists.len()) {
            (_, 0) => "the file has no list `tasks`".to_owned(),
            (Some(tag), _) => format!("no such tag: `{tag}`; the file has {}", tags()),
            (None, _) => format!("the file has several lists: choose one with --tag: {}", tags()),
        };
        PlanError::new(1, reason)
    })
}

struct TaskMasterParser<'t> {
    text: &'t str,
    errors: Vec<PlanError>,
}

impl<'t> TaskMasterParser<'t> {
    /// The tasks of a list; `prefix` is the id of their parent, with a dot.
    fn tasks(&mut self, list: &JsonPart<'t>, prefix: &str, level: usize) -> Vec<DependentEntry> {
        let parts = match list.array(self.text) {
            Ok(parts) => parts,
            Err(error) => {
                self.errors.push(error);
                return Vec::new();
            }
        };
        if level >= DEPTH_MAX && !parts.is_empty() {
            let reason = format!("the tasks have more than {DEPTH_MAX} levels");
            self.errors.push(PlanError::new(list.line, reason));
            return Vec::new();
        }
        let mut tasks = Vec::new();
        for part in &parts {
            match self.task(part, prefix, level) {
                Ok(task) => tasks.push(task),
                Err(error) => self.errors.push(error),
            }
        }
        tasks
    }

    fn task(&mut self, part: &JsonPart<'t>, prefix: &str, level: usize) -> Result<DependentEntry, PlanError> {
        let task: TaskEntry<'t> = part.decode("the task")?;
        let key = format!("{prefix}{}", task.id.text());
        let title = task.title.trim().to_owned();
        if title.is_empty() {
            return Err(PlanError::new(part.line, format!("task `{key}` has no title")));
        }
        let children = match task.subtasks.filter(|raw| raw.get().starts_with('[')) {
            Some(raw) => self.tasks(&JsonPart::within(self.text, raw), &format!("{key}."), level + 1),
            None => Vec::new(),
        };
        let trimmed =
            |text: Option<String>| text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let goal: Vec<String> =
            [trimmed(task.description), trimmed(task.details)].into_iter().flatten().collect();
        let entry = PlanEntry {
            line: part.line,
            name: Some(format!("task-{key}")),
            title,
            goal: goal.join("\n\n"),
            acceptance: trimmed(task.test_strategy).map(|text| criteria(&text)).unwrap_or_default(),
            status: task.status.as_deref().map(parse_status).unwrap_or_default(),
            children: Vec::new(),
        };
        // In a subtask, a number refers to a sibling; an id with a dot refers to any task.
        let full_id = |name: &TextOrNumber| match name {
            TextOrNumber::Text(text) if text.contains('.') || prefix.is_empty() => text.trim().to_owned(),
            TextOrNumber::Text(_) | TextOrNumber::Number(_) => format!("{prefix}{}", name.text()),
        };
        let after = task.dependencies.iter().map(full_id).collect();
        Ok(DependentEntry { entry, key, after, children })
    }
}

/// The items of a text that is a list, or else the whole text as one criterion.
fn criteria(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let item = |line: &str| {
        let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let rest = if digits.len() == line.len() {
            line.strip_prefix(['-', '*', '+'])
        } else {
            digits.strip_prefix(['.', ')'])
        };
        rest.and_then(|rest| rest.strip_prefix(' ')).map(|rest| rest.trim().to_owned())
    };
    let items: Option<Vec<String>> = lines.iter().map(|line| item(line)).collect();
    items.filter(|items| items.len() > 1).unwrap_or_else(|| vec![text.to_owned()])
}
