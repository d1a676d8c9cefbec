//! Changed files with their numbers of added and removed lines.

use runner_term::{KeyValueLine, Styler};
use serde_json::{Value, json};

use super::clean;

pub(crate) struct FileDiffStat {
    path: String,
    /// Added and removed lines; none for a binary file.
    lines: Option<(u64, u64)>,
}

/// Parses the output of `git diff --numstat -z`.
pub(crate) fn parse_numstat(numstat: &[u8]) -> Vec<FileDiffStat> {
    numstat.split(|byte| *byte == 0).filter_map(parse_entry).collect()
}

fn parse_entry(entry: &[u8]) -> Option<FileDiffStat> {
    let text = String::from_utf8_lossy(entry);
    let mut fields = text.splitn(3, '\t');
    let added = fields.next()?;
    let removed = fields.next()?;
    let path = clean(fields.next()?);
    // git prints `-` for the counts of a binary file.
    let lines = added.parse().ok().zip(removed.parse().ok());
    Some(FileDiffStat { path, lines })
}

/// One row per file.
pub(crate) fn render_files(files: &[FileDiffStat], styler: &Styler) -> String {
    let mut text = String::new();
    for FileDiffStat { path, lines } in files {
        let counts = lines.map_or("binary".to_owned(), |(added, removed)| format!("+{added} -{removed}"));
        text.push_str(&format!("  {counts:>12}  {}\n", styler.fit(path, styler.width.saturating_sub(16))));
    }
    text
}

impl FileDiffStat {
    pub(crate) fn json(&self) -> Value {
        json!({ "path": self.path, "added": self.lines.map(|l| l.0), "removed": self.lines.map(|l| l.1) })
    }

    pub(crate) fn line(&self) -> KeyValueLine {
        let (added, removed) = self.lines.unwrap_or_default();
        KeyValueLine::new().with("file", &self.path).with("added", added).with("removed", removed)
    }
}
