//! The parser of beads' `issues.jsonl`: one issue per line, with dependencies that order issues or nest them.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use super::topo_sort::{DependentEntry, sort_by_dependencies};
use super::{EntryStatus, ImportWarning, ImportedPlan, PlanEntry, PlanError, PlanFormat};
use crate::model::tree::DEPTH_MAX;
use crate::strict::json_error_message;

#[derive(Debug, Deserialize)]
struct BeadsIssue {
    id: String,
    title: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    design: Option<String>,
    #[serde(default)]
    acceptance_criteria: Option<String>,
    #[serde(default)]
    notes: Option<String>,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    priority: Option<i64>,
    #[serde(default)]
    dependencies: Vec<BeadsDependency>,
    /// The line in the file.
    #[serde(skip)]
    line: usize,
}

/// A dependency, as the dependent issue has it.
#[derive(Debug, Deserialize)]
struct BeadsDependency {
    depends_on_id: String,
    #[serde(default, rename = "type")]
    kind: Option<String>,
}

/// A row of another kind than an issue.
#[derive(Deserialize)]
struct RowKind {
    #[serde(default, rename = "_type")]
    kind: Option<String>,
}

/// Whether the first line is an issue and nothing else: that is no other format's first line.
pub(super) fn is_beads(name: &str, text: &str) -> bool {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    name.to_ascii_lowercase().ends_with(".jsonl") && serde_json::from_str::<BeadsIssue>(first).is_ok()
}

pub(super) fn parse(text: &str) -> Result<ImportedPlan, Vec<PlanError>> {
    let mut issues = Vec::new();
    let mut errors = Vec::new();
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match parse_row(line) {
            Ok(None) => {}
            Ok(Some(issue)) if issue.title.trim().is_empty() => {
                errors.push(PlanError::new(index + 1, format!("issue `{}` has no title", issue.id)));
            }
            Ok(Some(issue)) => issues.push(BeadsIssue { line: index + 1, ..issue }),
            Err(error) => {
                let reason = format!("the line is not an issue: {}", json_error_message(&error));
                errors.push(PlanError::new(index + 1, reason));
            }
        }
    }
    if issues.is_empty() && errors.is_empty() {
        errors.push(PlanError::new(1, "the file has no issues"));
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    // A stable sort: 0 is the most urgent, and issues without a priority come last.
    issues.sort_by_key(|issue| issue.priority.unwrap_or(i64::MAX));
    let mut warnings = Vec::new();
    let tasks = nested(&issues, &mut warnings)?;
    Ok(ImportedPlan {
        format: PlanFormat::Beads,
        title: String::new(),
        goal: String::new(),
        acceptance: Vec::new(),
        entries: sort_by_dependencies(tasks)?,
        warnings,
    })
}

fn parse_row(line: &str) -> Result<Option<BeadsIssue>, serde_json::Error> {
    let row: RowKind = serde_json::from_str(line)?;
    if row.kind.is_some_and(|kind| kind != "issue") {
        return Ok(None);
    }
    serde_json::from_str(line).map(Some)
}

/// The issues with their children: an issue is below the first one that it names as its parent.
fn nested(
    issues: &[BeadsIssue],
    warnings: &mut Vec<ImportWarning>,
) -> Result<Vec<DependentEntry>, Vec<PlanError>> {
    let known: BTreeSet<&str> = issues.iter().map(|issue| issue.id.as_str()).collect();
    let mut below: BTreeMap<&str, Vec<&BeadsIssue>> = BTreeMap::new();
    let mut top = Vec::new();
    for issue in issues {
        let parents = issue.dependencies.iter().filter(|dependency| dependency.is_parent());
        let parent =
            parents.map(|parent| parent.depends_on_id.as_str()).find(|parent| known.contains(parent));
        match parent {
            Some(parent) => below.entry(parent).or_default().push(issue),
            None => top.push(issue),
        }
    }
    let mut placed = BTreeSet::new();
    let mut tasks = Vec::new();
    for issue in top {
        tasks.push(task(issue, &below, &known, &mut placed, warnings, 1));
    }
    // Issues that are each other's ancestors are below none at the top.
    let lost: Vec<&BeadsIssue> = issues.iter().filter(|issue| !placed.contains(issue.id.as_str())).collect();
    if lost.is_empty() {
        return Ok(tasks);
    }
    let error = |issue: &&BeadsIssue| {
        PlanError::new(issue.line, format!("issue `{}` is its own ancestor, or too deep", issue.id))
    };
    Err(lost.iter().map(error).collect())
}

fn task<'i>(
    issue: &'i BeadsIssue,
    below: &BTreeMap<&str, Vec<&'i BeadsIssue>>,
    known: &BTreeSet<&str>,
    placed: &mut BTreeSet<&'i str>,
    warnings: &mut Vec<ImportWarning>,
    level: usize,
) -> DependentEntry {
    placed.insert(&issue.id);
    let mut after = Vec::new();
    for dependency in issue.dependencies.iter().filter(|dependency| dependency.is_blocker()) {
        if known.contains(dependency.depends_on_id.as_str()) {
            after.push(dependency.depends_on_id.clone());
        } else {
            let text = format!(
                "ignored that `{}` depends on `{}`, which is not in the file",
                issue.id, dependency.depends_on_id
            );
            warnings.push(ImportWarning { line: issue.line, text });
        }
    }
    let mut children = Vec::new();
    if level < DEPTH_MAX {
        for child in below.get(issue.id.as_str()).into_iter().flatten() {
            children.push(task(child, below, known, placed, warnings, level + 1));
        }
    }
    DependentEntry { entry: issue.entry(), key: issue.id.clone(), after, children }
}

impl BeadsDependency {
    fn is_parent(&self) -> bool {
        self.kind.as_deref() == Some("parent-child")
    }

    /// Whether the other issue must come first. `related` and `discovered-from` say nothing about order.
    fn is_blocker(&self) -> bool {
        matches!(self.kind.as_deref(), None | Some("blocks"))
    }
}

impl BeadsIssue {
    fn entry(&self) -> PlanEntry {
        let texts = [&self.description, &self.design, &self.notes];
        let texts = texts.into_iter().filter_map(|text| text.as_deref().map(str::trim));
        let goal: Vec<&str> = texts.filter(|text| !text.is_empty()).collect();
        let criteria = self.acceptance_criteria.as_deref().unwrap_or_default();
        PlanEntry {
            line: self.line,
            name: Some(self.id.clone()),
            title: self.title.trim().to_owned(),
            goal: goal.join("\n\n"),
            acceptance: criteria
                .lines()
                .map(criterion)
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
                .collect(),
            status: match self.status.as_deref() {
                Some("closed") => EntryStatus::Done,
                Some("tombstone") => EntryStatus::Dropped,
                Some("deferred") => EntryStatus::Deferred,
                Some(_) | None => EntryStatus::Open,
            },
            children: Vec::new(),
        }
    }
}

/// A criterion without its bullet and box.
fn criterion(line: &str) -> &str {
    let item = line.trim();
    let item =
        ["- ", "* "].into_iter().find_map(|start| item.strip_prefix(start)).unwrap_or(item).trim_start();
    ["[ ] ", "[x] "].into_iter().find_map(|start| item.strip_prefix(start)).unwrap_or(item).trim()
}

#[cfg(test)]
mod tests {
    use super::super::{ImportOptions, parse_plan};
    use super::*;

    fn read(text: &str) -> Result<ImportedPlan, Vec<PlanError>> {
        parse_plan(text.as_bytes(), ImportOptions { name: ".beads/issues.jsonl", ..ImportOptions::default() })
    }

    #[test]
    fn issues_nest_below_their_parents_and_follow_what_blocks_them() {
        let plan = read(
            "{\"id\":\"bd-1\",\"title\":\"Epic\",\"issue_type\":\"epic\",\"status\":\"open\",\"priority\":1}\n\
             {\"id\":\"bd-1.1\",\"title\":\"Show\",\"priority\":0,\"acceptance_criteria\":\"- [ ] fast\\n- small\",\"dependencies\":[\
             {\"issue_id\":\"bd-1.1\",\"depends_on_id\":\"bd-1\",\"type\":\"parent-child\"},\
             {\"issue_id\":\"bd-1.1\",\"depends_on_id\":\"bd-1.2\",\"type\":\"blocks\"}]}\n\n\
             {\"id\":\"bd-1.2\",\"title\":\"Store\",\"description\":\"One.\",\"design\":\"Two.\",\"priority\":2,\"dependencies\":[\
             {\"depends_on_id\":\"bd-1\",\"type\":\"parent-child\"},{\"depends_on_id\":\"bd-9\",\"type\":\"related\"},\
             {\"depends_on_id\":\"bd-8\",\"type\":\"blocks\"}]}\n\
             {\"_type\":\"memory\",\"key\":\"x\"}\n\
             {\"id\":\"bd-2\",\"title\":\"Done\",\"status\":\"closed\",\"priority\":0}\n",
        )
        .unwrap();
        assert_eq!(plan.format, PlanFormat::Beads);
        let titles =
            |entries: &[PlanEntry]| entries.iter().map(|entry| entry.title.clone()).collect::<Vec<_>>();
        assert_eq!(titles(&plan.entries), ["Done", "Epic"]);
        assert_eq!(titles(&plan.entries[1].children), ["Store", "Show"]);
        assert_eq!(plan.entries[1].children[0].goal, "One.\n\nTwo.");
        assert_eq!(plan.entries[1].children[1].acceptance, ["fast", "small"]);
        assert_eq!(plan.entries[0].status, EntryStatus::Done);
        assert_eq!(plan.warnings.len(), 1);
        assert!(plan.warnings[0].text.contains("`bd-8`"), "{:?}", plan.warnings);
    }

    #[test]
    fn broken_files_are_reported_with_their_lines() {
        let lines = |text: &str| read(text).unwrap_err().iter().map(|error| error.line).collect::<Vec<_>>();
        let good = "{\"id\":\"a\",\"title\":\"A\"}\n";
        assert_eq!(
            lines(&format!("{good}nonsense\n{{\"id\":\"b\"}}\n{{\"id\":\"c\",\"title\":\"\"}}\n")),
            [2, 3, 4]
        );
        let below = |id: &str, parent: &str| {
            format!(
                "{{\"id\":\"{id}\",\"title\":\"T\",\"dependencies\":[{{\"depends_on_id\":\"{parent}\",\"type\":\"parent-child\"}}]}}\n"
            )
        };
        assert_eq!(lines(&(below("a", "b") + &below("b", "a"))), [1, 2], "a cycle of parents");
        assert_eq!(lines(&below("a", "a")), [1]);
        assert!(read(&(good.to_owned() + good)).unwrap_err()[0].reason.contains("duplicate"));
    }
}
