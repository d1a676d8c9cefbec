//! The results of a tool: as a table for people, as JSON, and as a page of the documents.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::adapter::{Adapter, AgentKind};
use crate::error::BenchError;
use crate::judge::{Judgement, RowVerdict};
use crate::row::Row;
use crate::row_run::RowFacts;

/// The version of the JSON document.
const FORMAT: u32 = 1;

/// All rows of one tool.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ToolReport {
    pub format: u32,
    pub tool: String,
    pub version: String,
    pub package: String,
    pub homepage: Option<String>,
    pub settings: String,
    /// The agent that the tool started, with its version.
    pub agent: String,
    /// The day on which the bench ran, in UTC.
    pub date: String,
    pub rows: Vec<RowReport>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RowReport {
    pub row: String,
    pub what: String,
    pub expected: String,
    pub verdict: String,
    pub found: String,
    /// What the adapter's author adds.
    pub remark: Option<String>,
    /// Missing if the row does not apply.
    pub facts: Option<serde_json::Value>,
}

impl RowReport {
    pub fn new(row: &Row, adapter: &Adapter, judgement: &Judgement, facts: Option<&RowFacts>) -> Self {
        let remark = adapter.remarks.get(&row.name).filter(|_| judgement.verdict == RowVerdict::Fail);
        Self {
            row: row.name.clone(),
            what: row.what.clone(),
            expected: row.expect.as_str().to_owned(),
            verdict: judgement.verdict.as_str().to_owned(),
            found: judgement.found.clone(),
            remark: remark.cloned(),
            facts: facts.and_then(|facts| serde_json::to_value(facts).ok()),
        }
    }

    /// One line of the printed table.
    pub fn line(&self) -> String {
        let mark = if self.verdict == RowVerdict::Ok.as_str() { "ok" } else { &self.verdict };
        let remark = self.remark.as_ref().map(|remark| format!(" ({remark})")).unwrap_or_default();
        format!("{:14} {:18} {}{remark}", mark, self.row, self.found)
    }
}

impl ToolReport {
    pub fn new(adapter: &Adapter, version: String, agent_version: Option<&str>, date: String) -> Self {
        let agent = match (adapter.agent.kind, agent_version) {
            (AgentKind::Claude, Some(version)) => format!("{version}, driven by a scripted model"),
            (AgentKind::Claude, None) => "Claude Code, driven by a scripted model".to_owned(),
            (AgentKind::Command, _) => "a scripted program".to_owned(),
        };
        Self {
            format: FORMAT,
            tool: adapter.name.clone(),
            version,
            package: adapter.package.clone(),
            homepage: adapter.homepage.clone(),
            settings: adapter.settings.trim().to_owned(),
            agent,
            date,
            rows: Vec::new(),
        }
    }

    pub fn count(&self, verdict: RowVerdict) -> usize {
        self.rows.iter().filter(|row| row.verdict == verdict.as_str()).count()
    }

    /// The last line of the printed table.
    pub fn summary(&self) -> String {
        format!(
            "{} {}: {} ok, {} failed, {} not applicable",
            self.tool,
            self.version,
            self.count(RowVerdict::Ok),
            self.count(RowVerdict::Fail),
            self.count(RowVerdict::NotApplicable)
        )
    }

    pub fn read(path: &Path) -> Result<Self, BenchError> {
        let bytes = fs::read(path).map_err(BenchError::io("read", path))?;
        serde_json::from_slice(&bytes).map_err(|source| BenchError::Json { path: path.to_owned(), source })
    }

    pub fn write(&self, path: &Path) -> Result<(), BenchError> {
        let json = serde_json::to_string_pretty(self)
            .map_err(|source| BenchError::Json { path: path.to_owned(), source })?;
        fs::write(path, format!("{json}\n")).map_err(BenchError::io("write", path))
    }
}

const PAGE_HEAD: &str = include_str!("page_head.md");

/// The page of the documents: one table for all tools, then the findings of each.
pub fn page(reports: &[ToolReport]) -> String {
    let mut page = PAGE_HEAD.to_owned();
    page.push_str(
        "## Results\n\n| tool | version | package | agent | date | ok | failed | not applicable |\n",
    );
    page.push_str("| --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for report in reports {
        let name = match &report.homepage {
            Some(homepage) => format!("[{}]({homepage})", report.tool),
            None => report.tool.clone(),
        };
        page.push_str(&format!(
            "| {name} | {} | `{}` | {} | {} | {} | {} | {} |\n",
            report.version,
            report.package,
            report.agent,
            report.date,
            report.count(RowVerdict::Ok),
            report.count(RowVerdict::Fail),
            report.count(RowVerdict::NotApplicable)
        ));
    }
    let names: Vec<&str> = reports.iter().map(|report| report.tool.as_str()).collect();
    page.push_str(&format!("\n| agent | must report | {} |\n", names.join(" | ")));
    page.push_str(&format!("| --- | --- |{}\n", " --- |".repeat(names.len())));
    for row in reports.first().map(|report| report.rows.as_slice()).unwrap_or_default() {
        let cells: Vec<&str> = reports.iter().map(|report| verdict_in(report, &row.row)).collect();
        page.push_str(&format!(
            "| **{}** {} | {} | {} |\n",
            row.row,
            row.what,
            row.expected,
            cells.join(" | ")
        ));
    }
    for report in reports {
        page.push_str(&format!("\n## {}\n\n{}\n", report.tool, report.settings));
        page.push_str("\n| agent | verdict | found |\n| --- | --- | --- |\n");
        for row in &report.rows {
            let remark = row.remark.as_ref().map(|remark| format!(" {remark}")).unwrap_or_default();
            page.push_str(&format!("| {} | {} | {}.{remark} |\n", row.row, cell(&row.verdict), row.found));
        }
    }
    page
}

fn verdict_in<'a>(report: &'a ToolReport, row: &str) -> &'a str {
    let found = report.rows.iter().find(|found| found.row == row);
    found.map_or("", |found| cell(&found.verdict))
}

/// Failures stand out.
fn cell(verdict: &str) -> &str {
    if verdict == RowVerdict::Fail.as_str() { "**fail**" } else { verdict }
}
