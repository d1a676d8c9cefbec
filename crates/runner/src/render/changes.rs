//! Changed files, with how many lines came and went.

use runner_term::{KeyValueLine, Styler};
use serde_json::{Value, json};

use super::clean;

/// A changed file, with lines added and removed; none of a binary one.
pub(crate) struct FileDiffStat {
    path: String,
    lines: Option<(u64, u64)>,
}

/// The files in git's own list of numbers.
pub(crate) fn files(numbers: &[u8]) -> Vec<FileDiffStat> {
    let read = |line: &[u8]| {
        let text = String::from_utf8_lossy(line).into_owned();
        let mut fields = text.splitn(3, '\t');
        let (added, removed, path) = (fields.next()?, fields.next()?, fields.next()?);
        let lines = added.parse().ok().zip(removed.parse().ok());
        Some(FileDiffStat { path: clean(path), lines })
    };
    numbers.split(|byte| *byte == 0).filter_map(read).collect()
}

/// The files, a line each.
pub(crate) fn files_drawn(files: &[FileDiffStat], pen: &Styler) -> String {
    let line = |FileDiffStat { path, lines }: &FileDiffStat| {
        let counts = lines.map_or("binary".to_owned(), |(added, removed)| format!("+{added} -{removed}"));
        format!("  {counts:>12}  {}\n", pen.fit(path, pen.width.saturating_sub(16)))
    };
    files.iter().map(line).collect()
}

impl FileDiffStat {
    pub(crate) fn json(&self) -> Value {
        json!({ "path": self.path, "added": self.lines.map(|l| l.0), "removed": self.lines.map(|l| l.1) })
    }

    pub(crate) fn plain(&self) -> KeyValueLine {
        let (added, removed) = self.lines.unwrap_or_default();
        KeyValueLine::new().with("file", &self.path).with("added", added).with("removed", removed)
    }
}
