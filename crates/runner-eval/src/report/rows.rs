//! Renders every attempt as a row of JSON lines or CSV.

use serde_json::{Value, json};

use super::{TrialHistory, by_trial};
use crate::result::stored_trial::StoredTrial;

/// The columns of the CSV, which are also keys of the JSON lines.
const COLUMNS: [&str; 23] = [
    "run",
    "case_id",
    "agent",
    "trial",
    "attempt",
    "last",
    "scored",
    "outcome",
    "cause",
    "why",
    "expected",
    "runner_exit",
    "wall_secs",
    "loop_secs",
    "setup_secs",
    "check_secs",
    "cheated",
    "iterations",
    "tokens",
    "microdollars",
    "cost_source",
    "started_at",
    "folder",
];

/// An attempt: `meta.json`, the checks, and whether it counts in scores.
fn row(trial: &StoredTrial, is_last: bool) -> Value {
    let mut row = serde_json::to_value(&trial.meta).unwrap_or_default();
    if let Some(keys) = row.as_object_mut() {
        let cost = keys.remove("cost").unwrap_or_default();
        let part = |key: &str| cost.get(key).cloned().unwrap_or_default();
        keys.insert("microdollars".to_owned(), part("microdollars"));
        keys.insert("cost_source".to_owned(), part("source"));
        keys.insert("last".to_owned(), json!(is_last));
        keys.insert("scored".to_owned(), json!(is_last && trial.meta.is_scored()));
        keys.insert("checks".to_owned(), json!(trial.checks.checks));
        keys.insert("folder".to_owned(), json!(trial.folder.display().to_string()));
    }
    row
}

pub(crate) fn rows(trials: &[StoredTrial]) -> Vec<Value> {
    let mut rows = Vec::new();
    for TrialHistory { earlier, last } in by_trial(trials) {
        rows.extend(earlier.iter().map(|attempt| row(attempt, false)));
        rows.push(row(last, true));
    }
    rows
}

pub(crate) fn jsonl(trials: &[StoredTrial]) -> String {
    rows(trials).iter().map(|row| format!("{row}\n")).collect()
}

/// Comma-separated values as in RFC 4180, with a header line.
pub(crate) fn csv(trials: &[StoredTrial]) -> String {
    let mut text = COLUMNS.join(",") + "\r\n";
    for row in rows(trials) {
        text.push_str(&COLUMNS.map(|column| cell(&row, column)).join(","));
        text.push_str("\r\n");
    }
    text
}

fn cell(row: &Value, column: &str) -> String {
    match row.get(column) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => quoted(text),
        Some(value) => quoted(&value.to_string()),
    }
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_with_commas_quotes_or_line_breaks_are_quoted() {
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(quoted("a, \"b\"\nc"), "\"a, \"\"b\"\"\nc\"");
    }
}
