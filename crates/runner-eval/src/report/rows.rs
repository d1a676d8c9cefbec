//! Every attempt as a row: JSON lines and CSV.

use serde_json::{Value, json};

use super::{TrialHistory, by_trial};
use crate::result::stored_trial::StoredTrial;

/// The columns of CSV, which are keys of the JSON lines too.
const COLUMNS: [&str; 20] = [
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
    "iterations",
    "tokens",
    "microdollars",
    "cost_basis",
    "started_at",
    "folder",
];

/// An attempt: all of `meta.json`, the checks, and whether it counts.
fn row(trial: &StoredTrial, is_last: bool) -> Value {
    let mut row = serde_json::to_value(&trial.meta).unwrap_or_default();
    if let Some(keys) = row.as_object_mut() {
        let cost = keys.remove("cost").unwrap_or_default();
        let part = |key: &str| cost.get(key).cloned().unwrap_or_default();
        keys.insert("microdollars".to_owned(), part("microdollars"));
        keys.insert("cost_basis".to_owned(), part("basis"));
        keys.insert("last".to_owned(), json!(is_last));
        keys.insert("scored".to_owned(), json!(is_last && trial.meta.is_scored()));
        keys.insert("checks".to_owned(), json!(trial.checks.checks));
        keys.insert("folder".to_owned(), json!(trial.folder.display().to_string()));
    }
    row
}

/// Every attempt.
pub(crate) fn rows(trials: &[StoredTrial]) -> impl Iterator<Item = Value> {
    let of = |tried: TrialHistory<'_>| {
        let mut rows: Vec<Value> = tried.earlier.iter().map(|trial| row(trial, false)).collect();
        rows.push(row(tried.last, true));
        rows
    };
    by_trial(trials).into_iter().flat_map(of)
}

/// One JSON object a line.
pub(crate) fn jsonl(trials: &[StoredTrial]) -> String {
    rows(trials).map(|row| format!("{row}\n")).collect()
}

/// Comma-separated values, as RFC 4180 has them, with a line of names.
pub(crate) fn csv(trials: &[StoredTrial]) -> String {
    let cell = |row: &Value, column: &str| match row.get(column) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => quoted(text),
        Some(value) => quoted(&value.to_string()),
    };
    let line = |row: Value| COLUMNS.map(|column| cell(&row, column)).join(",") + "\r\n";
    COLUMNS.join(",") + "\r\n" + &rows(trials).map(line).collect::<String>()
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
    fn a_value_with_a_comma_or_a_quote_stays_one_value() {
        assert_eq!(quoted("plain"), "plain");
        assert_eq!(quoted("a, \"b\"\nc"), "\"a, \"\"b\"\"\nc\"");
    }
}
