//! The parser of GitHub issues, as `gh issue list --json number,title,body,labels,state` prints them.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::json::{JsonPart, TopLevel, top_level};
use super::topo_sort::{DependentEntry, sort_by_dependencies};
use super::{EntryStatus, ImportWarning, ImportedPlan, PlanEntry, PlanError, PlanFormat};

#[derive(Debug, Deserialize)]
struct GithubIssue {
    number: u64,
    title: String,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    state: Option<String>,
    #[serde(default)]
    labels: Vec<GithubLabel>,
    /// GitHub's API lists pull requests among the issues, with this key.
    #[serde(default)]
    pull_request: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
struct GithubLabel {
    name: String,
}

/// The first keys of an issue are enough to tell it from a user story.
#[derive(Deserialize)]
struct IssueKeys {
    #[expect(dead_code, reason = "only its presence matters")]
    number: u64,
    #[expect(dead_code, reason = "only its presence matters")]
    title: String,
}

pub(super) fn is_github(top: &TopLevel<'_>) -> bool {
    match top {
        TopLevel::Array(issues) => {
            issues.first().is_some_and(|issue| issue.decode::<IssueKeys>("the issue").is_ok())
        }
        TopLevel::Object(_) | TopLevel::Other => false,
    }
}

pub(super) fn parse(text: &str) -> Result<ImportedPlan, Vec<PlanError>> {
    let TopLevel::Array(parts) = top_level(text).map_err(|error| vec![error])? else {
        return Err(vec![PlanError::new(1, "the file is not a list of issues")]);
    };
    if parts.is_empty() {
        return Err(vec![PlanError::new(1, "the file has no issues")]);
    }
    let mut issues = Vec::new();
    let mut errors = Vec::new();
    let mut warnings = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        match part.decode::<GithubIssue>(&format!("issue {}", index + 1)) {
            Ok(issue) if issue.pull_request.is_some() => {
                let text = format!("skipped #{}, which is a pull request", issue.number);
                warnings.push(ImportWarning { line: part.line, text });
            }
            Ok(issue) if issue.title.trim().is_empty() => {
                errors.push(PlanError::new(part.line, format!("issue #{} has no title", issue.number)));
            }
            Ok(issue) => issues.push((part, issue)),
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() && issues.is_empty() {
        errors.push(PlanError::new(1, "the file has only pull requests"));
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    // `gh` lists the newest first; the oldest is the natural first task.
    issues.sort_by_key(|(_, issue)| issue.number);
    let known: Vec<u64> = issues.iter().map(|(_, issue)| issue.number).collect();
    let tasks = issues.into_iter().map(|(part, issue)| task(part, &issue, &known, &mut warnings)).collect();
    Ok(ImportedPlan {
        format: PlanFormat::Github,
        title: String::new(),
        goal: String::new(),
        acceptance: Vec::new(),
        entries: sort_by_dependencies(tasks)?,
        warnings,
    })
}

fn task(
    part: &JsonPart<'_>,
    issue: &GithubIssue,
    known: &[u64],
    warnings: &mut Vec<ImportWarning>,
) -> DependentEntry {
    let body = issue.body.as_deref().unwrap_or_default().replace("\r\n", "\n");
    let mut goal = Vec::new();
    let mut acceptance = Vec::new();
    let mut after = Vec::new();
    for line in body.lines() {
        match task_list_item(line) {
            Some(item) => acceptance.push(item.to_owned()),
            None => goal.push(line),
        }
        for number in dependencies(line) {
            if known.contains(&number) {
                after.push(number.to_string());
            } else {
                let text =
                    format!("ignored that #{} depends on #{number}, which is not in the file", issue.number);
                warnings.push(ImportWarning { line: part.line, text });
            }
        }
    }
    let mut goal = goal.join("\n").trim().to_owned();
    let labels: Vec<&str> = issue.labels.iter().map(|label| label.name.trim()).collect();
    if !labels.is_empty() {
        goal = format!("{goal}\n\nLabels: {}", labels.join(", ")).trim().to_owned();
    }
    let is_closed = issue.state.as_deref().is_some_and(|state| state.eq_ignore_ascii_case("closed"));
    let entry = PlanEntry {
        line: part.line,
        name: Some(format!("issue-{}", issue.number)),
        title: issue.title.trim().to_owned(),
        goal,
        acceptance,
        status: if is_closed { EntryStatus::Done } else { EntryStatus::Open },
        children: Vec::new(),
    };
    DependentEntry { entry, key: issue.number.to_string(), after, children: Vec::new() }
}

/// The text of `- [ ] text`.
fn task_list_item(line: &str) -> Option<&str> {
    let item = line.trim().strip_prefix(['-', '*'])?.trim_start();
    let rest = ["[ ] ", "[x] ", "[X] "].into_iter().find_map(|start| item.strip_prefix(start))?;
    Some(rest.trim()).filter(|text| !text.is_empty())
}

/// The issues that must come first by a line: `Depends on #3, #4`, `Blocked by #3`.
fn dependencies(line: &str) -> Vec<u64> {
    let lower = line.to_ascii_lowercase();
    let starts = ["depends on", "blocked by"].into_iter().filter_map(|words| lower.split_once(words));
    let mut numbers = Vec::new();
    for (_, rest) in starts {
        for word in rest.split([' ', ',', ':', ';']).filter(|word| !word.is_empty() && *word != "and") {
            let Some(number) = word.strip_prefix('#').map(|digits| digits.trim_end_matches(['.', ')']))
            else {
                break;
            };
            let Ok(number) = number.parse() else { break };
            numbers.push(number);
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::super::{ImportOptions, parse_plan};
    use super::*;

    fn read(text: &str) -> Result<ImportedPlan, Vec<PlanError>> {
        parse_plan(text.as_bytes(), ImportOptions { name: "issues.json", ..ImportOptions::default() })
    }

    #[test]
    fn issues_come_oldest_first_after_what_they_depend_on() {
        let plan = read(
            r#"[
            {"number": 9, "title": "Ship it", "body": "", "labels": [], "state": "OPEN"},
            {"number": 4, "title": "Store", "body": "Blocked by #9 and #77.\r\n\r\n- [ ] it is read back\r\n- [x] small", "labels": [{"name": "api"}], "state": "OPEN"},
            {"number": 2, "title": "Old", "body": null, "state": "CLOSED"}
            ]"#,
        )
        .unwrap();
        assert_eq!(plan.format, PlanFormat::Github);
        let titles: Vec<&str> = plan.entries.iter().map(|entry| entry.title.as_str()).collect();
        assert_eq!(titles, ["Old", "Ship it", "Store"]);
        let store = &plan.entries[2];
        assert_eq!(store.name.as_deref(), Some("issue-4"));
        assert_eq!(store.acceptance, ["it is read back", "small"]);
        assert_eq!(store.goal, "Blocked by #9 and #77.\n\nLabels: api");
        assert_eq!(plan.entries[0].status, EntryStatus::Done);
        assert_eq!(plan.warnings[0].text, "ignored that #4 depends on #77, which is not in the file");
    }

    #[test]
    fn pull_requests_among_the_issues_are_skipped() {
        let request = r#"{"number": 8, "title": "Fix it", "state": "open", "pull_request": {"url": "u"}}"#;
        let issue = r#"{"number": 7, "title": "Broken", "state": "open", "pull_request": null}"#;
        let plan = read(&format!("[{request},\n{issue}]")).unwrap();
        assert_eq!(plan.entries.iter().map(|entry| entry.title.as_str()).collect::<Vec<_>>(), ["Broken"]);
        let warning = ImportWarning { line: 1, text: "skipped #8, which is a pull request".to_owned() };
        assert_eq!(plan.warnings, [warning]);
        let errors = read(&format!("[{request}]")).unwrap_err();
        assert_eq!(errors[0].reason, "the file has only pull requests");
    }

    #[test]
    fn broken_issues_are_all_reported_with_their_lines() {
        let errors = read(
            "[{\"number\": 1, \"title\": \"a\"},\n{\"number\": 1.5, \"title\": \"b\"},\n{\"number\": 3, \"title\": \" \"}]",
        );
        let lines: Vec<usize> = errors.unwrap_err().iter().map(|error| error.line).collect();
        assert_eq!(lines, [2, 3]);
        let cycle = read(
            r#"[{"number": 1, "title": "a", "body": "depends on #2"}, {"number": 2, "title": "b", "body": "Depends on: #1"}]"#,
        );
        assert!(cycle.unwrap_err()[0].reason.contains("dependency cycle"));
        let twice = read(r#"[{"number": 1, "title": "a"}, {"number": 1, "title": "b"}]"#);
        assert!(twice.unwrap_err()[0].reason.contains("duplicate task id"));
    }

    #[test]
    fn only_issue_numbers_after_the_words_are_dependencies() {
        for (line, expected) in [
            ("Depends on #1, #2 and #3.", vec![1, 2, 3]),
            ("see #4; depends on the weather #5", vec![]),
            ("Blocked by: #6", vec![6]),
            ("fixes #7", vec![]),
        ] {
            assert_eq!(dependencies(line), expected, "{line}");
        }
    }
}
