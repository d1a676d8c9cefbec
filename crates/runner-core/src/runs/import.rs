//! The import of plans: checklists and task files, parsed into entries that become open nodes of a tree.
//!
//! Only the runner can mark a node as passed. So completed entries are never imported as passed: they are skipped and counted,
//! or imported as open work if the user wants that. Dependencies become order, because the leftmost open leaf is always
//! next.

mod beads;
mod github;
mod insert;
mod json;
mod markdown;
mod markdown_lines;
mod prd;
mod spec_tasks;
mod task_master;
mod topo_sort;
mod write;

use std::fmt;

use serde::Serialize;
use thiserror::Error;

pub use insert::{ImportedTree, InsertError, PlanImport, SkippedEntry, insert_plan};
pub use write::export;

/// The most bytes of a plan.
pub const BYTES_MAX: usize = 16 << 20;

/// The file format of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlanFormat {
    Markdown,
    /// User stories as JSON.
    Prd,
    TaskMaster,
    /// GitHub issues, as `gh issue list --json` prints them.
    Github,
    /// tasks.md of Spec Kit.
    SpecKit,
    /// tasks.md of an OpenSpec change.
    OpenSpec,
    /// tasks.md of a Kiro spec.
    Kiro,
    /// issues.jsonl of beads.
    Beads,
}

impl PlanFormat {
    pub const ALL: [Self; 8] = [
        Self::Markdown,
        Self::Prd,
        Self::TaskMaster,
        Self::Github,
        Self::SpecKit,
        Self::OpenSpec,
        Self::Kiro,
        Self::Beads,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Markdown => "markdown",
            Self::Prd => "prd",
            Self::TaskMaster => "task-master",
            Self::Github => "github",
            Self::SpecKit => "spec-kit",
            Self::OpenSpec => "open-spec",
            Self::Kiro => "kiro",
            Self::Beads => "beads",
        }
    }
}

impl fmt::Display for PlanFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedPlan {
    pub format: PlanFormat,
    /// The plan's title. The root of the tree does not get it: its title comes from GOAL.md.
    pub title: String,
    pub goal: String,
    /// The acceptance criteria of the whole plan.
    pub acceptance: Vec<String>,
    pub entries: Vec<PlanEntry>,
    /// What was skipped or interpreted in a way that the user should know.
    pub warnings: Vec<ImportWarning>,
}

/// An entry of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanEntry {
    /// Its line in the file.
    pub line: usize,
    /// Its id in the plan.
    pub name: Option<String>,
    pub title: String,
    pub goal: String,
    pub acceptance: Vec<String>,
    pub status: EntryStatus,
    pub children: Vec<PlanEntry>,
}

/// The status of an entry in its plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryStatus {
    #[default]
    Open,
    Done,
    Dropped,
    Deferred,
}

impl EntryStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Done => "done",
            Self::Dropped => "dropped",
            Self::Deferred => "deferred",
        }
    }
}

/// A warning about a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImportWarning {
    pub line: usize,
    pub text: String,
}

/// An error in a plan.
#[derive(Clone, Debug, Error, PartialEq, Eq, Serialize)]
#[error("line {line}: {reason}")]
pub struct PlanError {
    pub line: usize,
    pub reason: String,
}

impl PlanError {
    fn new(line: usize, reason: impl Into<String>) -> Self {
        Self { line, reason: reason.into() }
    }
}

/// How to parse a plan.
#[derive(Clone, Copy, Debug, Default)]
pub struct ImportOptions<'a> {
    /// The file name, whose extension may decide the format.
    pub name: &'a str,
    /// The format [default: detected].
    pub format: Option<PlanFormat>,
    /// The task list to import, if the file has several.
    pub tag: Option<&'a str>,
}

/// Parses a plan. Reports as many errors as possible.
pub fn parse_plan(bytes: &[u8], options: ImportOptions<'_>) -> Result<ImportedPlan, Vec<PlanError>> {
    if bytes.len() > BYTES_MAX {
        let reason = format!("the file has {} bytes: at most {BYTES_MAX} are allowed", bytes.len());
        return Err(vec![PlanError::new(1, reason)]);
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        vec![PlanError::new(line, "the file is not UTF-8")]
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let format = match options.format {
        Some(format) => format,
        None => detect(options.name, text)?,
    };
    match format {
        PlanFormat::Markdown => markdown::parse(text),
        PlanFormat::Prd => prd::parse(text),
        PlanFormat::TaskMaster => task_master::parse(text, options.tag),
        PlanFormat::Github => github::parse(text),
        PlanFormat::SpecKit | PlanFormat::OpenSpec | PlanFormat::Kiro => spec_tasks::parse(text, format),
        PlanFormat::Beads => beads::parse(text),
    }
}

/// Detects the format: by the file's extension or its first character, and for JSON by its keys.
fn detect(name: &str, text: &str) -> Result<PlanFormat, Vec<PlanError>> {
    if beads::is_beads(name, text) {
        return Ok(PlanFormat::Beads);
    }
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    let is_json = match extension.as_deref() {
        Some("md" | "markdown" | "txt") => false,
        Some("json") => true,
        Some(_) | None => text.trim_start().starts_with(['{', '[']),
    };
    if !is_json {
        return Ok(spec_tasks::detect(name, text).unwrap_or(PlanFormat::Markdown));
    }
    let top = json::top_level(text).map_err(|error| vec![error])?;
    if github::is_github(&top) {
        Ok(PlanFormat::Github)
    } else if prd::is_prd(&top) {
        Ok(PlanFormat::Prd)
    } else if task_master::is_task_master(text) {
        Ok(PlanFormat::TaskMaster)
    } else {
        let reason = "the file is JSON, but has neither `userStories` (prd), nor `tasks` (task-master), nor a list of issues";
        Err(vec![PlanError::new(1, reason)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(name: &str, text: &str) -> Result<PlanFormat, String> {
        let options = ImportOptions { name, ..ImportOptions::default() };
        parse_plan(text.as_bytes(), options).map(|plan| plan.format).map_err(|errors| errors[0].to_string())
    }

    #[test]
    fn the_format_is_detected_by_name_and_content() {
        let story = r#"{"userStories": [{"title": "a"}]}"#;
        let tasks = r#"{"master": {"tasks": [{"id": 1, "title": "a"}]}}"#;
        assert_eq!(format("plan.md", "- [ ] a"), Ok(PlanFormat::Markdown));
        assert_eq!(format("-", "- [ ] a"), Ok(PlanFormat::Markdown));
        assert_eq!(format("-", story), Ok(PlanFormat::Prd));
        assert_eq!(format("x.json", r#"[{"description": "a"}]"#), Ok(PlanFormat::Prd));
        assert_eq!(format("x.json", tasks), Ok(PlanFormat::TaskMaster));
        assert_eq!(format("x.json", r#"{"tasks": [{"id": 1, "title": "a"}]}"#), Ok(PlanFormat::TaskMaster));
    }

    #[test]
    fn files_that_are_not_plans_are_reported_with_line_and_reason() {
        assert_eq!(
            format("x.json", "{\n\"a\": 1}"),
            Err("line 1: the file is JSON, but has neither `userStories` (prd), nor `tasks` (task-master), nor a list of issues"
                .to_owned())
        );
        assert!(format("x.json", "{\n\"a\": }").unwrap_err().starts_with("line 2: "));
        let errors = parse_plan(b"- [ ] a\n\xff", ImportOptions::default()).unwrap_err();
        assert_eq!(errors[0].to_string(), "line 2: the file is not UTF-8");
    }

    #[test]
    fn files_above_the_size_limit_are_rejected() {
        let error =
            |bytes| parse_plan(&vec![0xff; bytes], ImportOptions::default()).unwrap_err()[0].to_string();
        assert_eq!(error(BYTES_MAX), "line 1: the file is not UTF-8");
        assert_eq!(error(BYTES_MAX + 1), "line 1: the file has 16777217 bytes: at most 16777216 are allowed");
    }
}
