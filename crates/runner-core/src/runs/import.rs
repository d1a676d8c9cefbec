//! Plans that people have already: checklists and task files, read into items that become open nodes of a tree.
//!
//! Only the runner says that a node passes. What a plan calls done is therefore never imported as passed: it is left
//! out and counted, or taken in as open work where the user asks for that. Dependencies become order, because the
//! leftmost open leaf is always worked on first.

mod insert;
mod json;
mod markdown;
mod markdown_lines;
mod prd;
mod task_master;
mod topo_sort;
mod write;

use std::fmt;

use serde::Serialize;
use thiserror::Error;

pub use insert::{ImportedTree, InsertError, PlanImport, SkippedEntry, insert_plan};
pub use write::export;

/// The most bytes a plan may have.
pub const BYTES_MAX: usize = 16 << 20;

/// How a plan is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlanFormat {
    /// A checklist.
    Markdown,
    /// User stories.
    Prd,
    /// Task-master's tasks.json.
    TaskMaster,
}

impl PlanFormat {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Markdown, Self::Prd, Self::TaskMaster];

    /// The format's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Markdown => "markdown",
            Self::Prd => "prd",
            Self::TaskMaster => "task-master",
        }
    }
}

impl fmt::Display for PlanFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A plan as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportedPlan {
    /// How it was written.
    pub format: PlanFormat,
    /// What it calls itself. The tree's root has its own title and goal, from GOAL.md.
    pub title: String,
    /// What it says about itself.
    pub goal: String,
    /// How one sees that all of it is done.
    pub acceptance: Vec<String>,
    /// What is to be done, in order.
    pub entries: Vec<PlanEntry>,
    /// What was left out or understood in a way that one should know.
    pub warnings: Vec<ImportWarning>,
}

/// One thing to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanEntry {
    /// Where it begins in the file.
    pub line: usize,
    /// The name it has in its plan, if it has one.
    pub name: Option<String>,
    pub title: String,
    pub goal: String,
    pub acceptance: Vec<String>,
    pub status: EntryStatus,
    pub children: Vec<PlanEntry>,
}

/// What the plan says of an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryStatus {
    /// To be done.
    #[default]
    Open,
    /// Done, says the plan.
    Done,
    /// Not wanted any more.
    Dropped,
    /// Put off.
    Deferred,
}

impl EntryStatus {
    /// The standing in a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Done => "done",
            Self::Dropped => "dropped",
            Self::Deferred => "deferred",
        }
    }
}

/// Something that one should know about a plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ImportWarning {
    pub line: usize,
    pub text: String,
}

/// Why a plan cannot be read.
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

/// How a plan is to be read.
#[derive(Clone, Copy, Debug, Default)]
pub struct ImportOptions<'a> {
    /// The file's name, which may tell the format.
    pub name: &'a str,
    /// The format, where the user says it.
    pub format: Option<PlanFormat>,
    /// Which of several lists of tasks in one file.
    pub tag: Option<&'a str>,
}

/// Reads a plan. Every fault that can be told is told.
pub fn read(bytes: &[u8], reading: ImportOptions<'_>) -> Result<ImportedPlan, Vec<PlanError>> {
    if bytes.len() > BYTES_MAX {
        let reason = format!("the file has {} bytes, more than {BYTES_MAX}", bytes.len());
        return Err(vec![PlanError::new(1, reason)]);
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let good = bytes.get(..error.valid_up_to()).unwrap_or_default();
        let line = 1 + good.iter().filter(|byte| **byte == b'\n').count();
        vec![PlanError::new(line, "the file is no text in UTF-8")]
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let format = match reading.format {
        Some(format) => format,
        None => detect(reading.name, text)?,
    };
    match format {
        PlanFormat::Markdown => markdown::read(text),
        PlanFormat::Prd => prd::read(text),
        PlanFormat::TaskMaster => task_master::read(text, reading.tag),
    }
}

/// Which format a file has: by its name where that says enough, else by how it begins; JSON by its keys.
fn detect(name: &str, text: &str) -> Result<PlanFormat, Vec<PlanError>> {
    let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase());
    let is_json = match ending.as_deref() {
        Some("md" | "markdown" | "txt") => false,
        Some("json") => true,
        Some(_) | None => text.trim_start().starts_with(['{', '[']),
    };
    if !is_json {
        return Ok(PlanFormat::Markdown);
    }
    let is_prd = json::top(text).map(|top| prd::is_prd(&top));
    match is_prd.map_err(|fault| vec![fault])? {
        true => Ok(PlanFormat::Prd),
        false if task_master::is_task_master(text) => Ok(PlanFormat::TaskMaster),
        false => {
            let reason = "the file is JSON, but holds neither `userStories` (prd) nor `tasks` (task-master)";
            Err(vec![PlanError::new(1, reason)])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(name: &str, text: &str) -> Result<PlanFormat, String> {
        let reading = ImportOptions { name, ..ImportOptions::default() };
        read(text.as_bytes(), reading).map(|plan| plan.format).map_err(|faults| faults[0].to_string())
    }

    #[test]
    fn the_format_is_told_by_name_and_content() {
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
    fn what_is_no_plan_is_told_with_line_and_reason() {
        assert_eq!(
            format("x.json", "{\n\"a\": 1}"),
            Err("line 1: the file is JSON, but holds neither `userStories` (prd) nor `tasks` (task-master)"
                .to_owned())
        );
        assert!(format("x.json", "{\n\"a\": }").unwrap_err().starts_with("line 2: "));
        let faults = read(b"- [ ] a\n\xff", ImportOptions::default()).unwrap_err();
        assert_eq!(faults[0].to_string(), "line 2: the file is no text in UTF-8");
    }

    #[test]
    fn a_file_is_looked_at_up_to_the_most_bytes_that_a_plan_may_have() {
        let fault = |bytes| read(&vec![0xff; bytes], ImportOptions::default()).unwrap_err()[0].to_string();
        assert_eq!(fault(BYTES_MAX), "line 1: the file is no text in UTF-8");
        assert_eq!(fault(BYTES_MAX + 1), "line 1: the file has 16777217 bytes, more than 16777216");
    }
}
