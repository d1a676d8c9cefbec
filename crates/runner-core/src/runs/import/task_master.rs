//! Task-master's `tasks.json`: tasks with parts, which wait for each other.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::json::{JsonPart, TopLevel, top};
use super::prd::{TextOrNumber, standing_of};
use super::topo_sort::{DependentEntry, arranged};
use super::{ImportedPlan, PlanEntry, PlanError, PlanFormat};
use crate::model::tree::DEPTH_MAX;

const TASKS: &str = "tasks";
/// The list that the tool itself takes where several are in one file.
const MAIN: &str = "master";

/// One task or part of one.
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
    lists(text).is_ok_and(|lists| !lists.is_empty())
}

/// The lists of tasks in a file, by tag. A file without tags has one, under no name.
fn lists(text: &str) -> Result<BTreeMap<String, JsonPart<'_>>, PlanError> {
    let TopLevel::Object(keys) = top(text)? else { return Ok(BTreeMap::new()) };
    if let Some(tasks) = keys.get(TASKS).filter(|tasks| tasks.is_array()) {
        return Ok(BTreeMap::from([(String::new(), *tasks)]));
    }
    let mut lists = BTreeMap::new();
    for (tag, part) in keys.into_iter().filter(|(_, part)| part.is_object()) {
        if let Some(tasks) = part.object(text)?.remove(TASKS).filter(JsonPart::is_array) {
            lists.insert(tag, tasks);
        }
    }
    Ok(lists)
}

pub(super) fn read(text: &str, tag: Option<&str>) -> Result<ImportedPlan, Vec<PlanError>> {
    let list = choose(text, tag).map_err(|fault| vec![fault])?;
    let mut reader = TaskMasterParser { text, faults: Vec::new() };
    let tasks = reader.tasks(&list, "", 1);
    if tasks.is_empty() && reader.faults.is_empty() {
        reader.faults.push(PlanError::new(list.line, "there is no task in the list"));
    }
    if !reader.faults.is_empty() {
        return Err(reader.faults);
    }
    let items = arranged(tasks)?;
    let (title, goal) = (String::new(), String::new());
    Ok(ImportedPlan {
        format: PlanFormat::TaskMaster,
        title,
        goal,
        acceptance: Vec::new(),
        entries: items,
        warnings: Vec::new(),
    })
}

fn choose<'t>(text: &'t str, tag: Option<&str>) -> Result<JsonPart<'t>, PlanError> {
    let lists = lists(text)?;
    let tags = || lists.keys().map(|tag| format!("`{tag}`")).collect::<Vec<_>>().join(", ");
    let found = match (tag, lists.len()) {
        (Some(tag), _) => lists.get(tag),
        (None, 1) => lists.values().next(),
        (None, _) => lists.get(MAIN),
    };
    found.copied().ok_or_else(|| {
        PlanError::new(
            1,
            match (tag, lists.len()) {
                (_, 0) => "the file has no list `tasks`".to_owned(),
                (Some(tag), _) => format!("there is no tag `{tag}`; those in the file: {}", tags()),
                (None, _) => format!("the file holds several lists; name one with --tag: {}", tags()),
            },
        )
    })
}

struct TaskMasterParser<'t> {
    text: &'t str,
    faults: Vec<PlanError>,
}

impl<'t> TaskMasterParser<'t> {
    /// The tasks of a list; `prefix` is the name of the task that they are parts of, with a dot.
    fn tasks(&mut self, list: &JsonPart<'t>, prefix: &str, level: usize) -> Vec<DependentEntry> {
        let parts = match list.array(self.text) {
            Ok(parts) => parts,
            Err(fault) => {
                self.faults.push(fault);
                return Vec::new();
            }
        };
        if level >= DEPTH_MAX && !parts.is_empty() {
            self.faults.push(PlanError::new(list.line, format!("more than {DEPTH_MAX} levels deep")));
            return Vec::new();
        }
        let mut tasks = Vec::new();
        for part in &parts {
            match self.task(part, prefix, level) {
                Ok(task) => tasks.push(task),
                Err(fault) => self.faults.push(fault),
            }
        }
        tasks
    }

    fn task(&mut self, part: &JsonPart<'t>, prefix: &str, level: usize) -> Result<DependentEntry, PlanError> {
        let read: TaskEntry<'t> = part.read("the task")?;
        let key = format!("{prefix}{}", read.id.text());
        let title = read.title.trim().to_owned();
        if title.is_empty() {
            return Err(PlanError::new(part.line, format!("task `{key}` has no title")));
        }
        let children = match read.subtasks.filter(|raw| raw.get().starts_with('[')) {
            Some(raw) => self.tasks(&JsonPart::within(self.text, raw), &format!("{key}."), level + 1),
            None => Vec::new(),
        };
        let told =
            |text: Option<String>| text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let goal: Vec<String> = [told(read.description), told(read.details)].into_iter().flatten().collect();
        let item = PlanEntry {
            line: part.line,
            name: Some(format!("task-{key}")),
            title,
            goal: goal.join("\n\n"),
            acceptance: told(read.test_strategy).map(|text| points(&text)).unwrap_or_default(),
            status: read.status.as_deref().map(standing_of).unwrap_or_default(),
            children: Vec::new(),
        };
        // A number in a part means the part beside it; a whole name means any task.
        let full = |name: &TextOrNumber| match name {
            TextOrNumber::Text(text) if text.contains('.') || prefix.is_empty() => text.trim().to_owned(),
            TextOrNumber::Text(_) | TextOrNumber::Number(_) => format!("{prefix}{}", name.text()),
        };
        let after = read.dependencies.iter().map(full).collect();
        Ok(DependentEntry { item, key, after, children })
    }
}

/// A text that is a list becomes its points; any other is one.
fn points(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let point = |line: &str| {
        let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let rest = if digits.len() == line.len() {
            line.strip_prefix(['-', '*', '+'])
        } else {
            digits.strip_prefix(['.', ')'])
        };
        rest.and_then(|rest| rest.strip_prefix(' ')).map(|rest| rest.trim().to_owned())
    };
    let all: Option<Vec<String>> = lines.iter().map(|line| point(line)).collect();
    all.filter(|all| all.len() > 1).unwrap_or_else(|| vec![text.to_owned()])
}
