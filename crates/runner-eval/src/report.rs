//! Renders results as documents: an HTML page, and the formats of other programs.

mod agent_tables;
pub(crate) mod atif;
pub(crate) mod harbor;
pub(crate) mod html;
pub(crate) mod inspect;
pub(crate) mod junit;
pub(crate) mod plots;
pub(crate) mod predictions;
pub(crate) mod rows;
mod transcript;

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::execution::trial::ITERATIONS;
use crate::result::stored_trial::StoredTrial;

/// How much of the end of a log is shown.
const TAIL_BYTES: u64 = 12_000;
const TAIL_LINES: usize = 40;

/// All attempts at one trial; the last one counts.
pub(crate) struct TrialHistory<'a> {
    pub(crate) earlier: &'a [StoredTrial],
    pub(crate) last: &'a StoredTrial,
}

/// Groups attempts, which are ordered by trial.
pub(crate) fn by_trial(attempts: &[StoredTrial]) -> Vec<TrialHistory<'_>> {
    let mut trials = Vec::new();
    for group in attempts.chunk_by(|a, b| a.key() == b.key()) {
        if let Some((last, earlier)) = group.split_last() {
            trials.push(TrialHistory { earlier, last });
        }
    }
    trials
}

/// Escapes text for elements and quoted attributes of XML and HTML. Replaces characters that XML does not allow.
pub(crate) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(c),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// The folders of a trial's iterations, in order.
pub(crate) fn iteration_folders(result: &Path) -> Vec<PathBuf> {
    subfolders(&result.join(ITERATIONS)).iter().flat_map(|run| subfolders(run)).collect()
}

/// Without links: an agent may have created them to have a file of the user's shown.
fn subfolders(folder: &Path) -> Vec<PathBuf> {
    let mut folders = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            folders.push(entry.path());
        }
    }
    folders.sort();
    folders
}

/// The last lines of a log. Does not follow a link, which an agent may have created.
pub(crate) fn tail(path: &Path) -> Option<String> {
    if !fs::symlink_metadata(path).ok()?.is_file() {
        return None;
    }
    let mut file = File::open(path).ok()?;
    let from = file.metadata().ok()?.len().saturating_sub(TAIL_BYTES);
    file.seek(SeekFrom::Start(from)).ok()?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    let tail = lines.get(lines.len().saturating_sub(TAIL_LINES)..).unwrap_or_default().join("\n");
    (!tail.is_empty()).then_some(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_text_cannot_end_an_element_or_an_attribute() {
        assert_eq!(
            escape("<b a='x' c=\"&\">\u{1b}[1m"),
            "&lt;b a=&#39;x&#39; c=&quot;&amp;&quot;&gt;\u{fffd}[1m"
        );
    }

    #[test]
    fn tail_returns_the_last_lines_and_does_not_follow_links() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let link = folder.path().join("link");
        let lines: Vec<String> = (0..5_000).map(|number| format!("line {number}")).collect();
        fs::write(&log, lines.join("\n")).unwrap();
        let tail_of_log = tail(&log).unwrap();
        assert_eq!(tail_of_log.lines().count(), TAIL_LINES);
        assert_eq!(tail_of_log.lines().last(), Some("line 4999"));
        std::os::unix::fs::symlink(&log, &link).unwrap();
        assert_eq!(tail(&link), None);
    }
}
