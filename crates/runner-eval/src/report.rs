//! Results as documents for others: a page, and the formats of other programs.

pub(crate) mod atif;
pub(crate) mod html;
pub(crate) mod inspect;
pub(crate) mod junit;
pub(crate) mod rows;
mod transcript;

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::execution::trial::ITERATIONS;
use crate::result::stored_trial::StoredTrial;

/// How much of a log is shown.
const TAIL_BYTES: u64 = 12_000;
const TAIL_LINES: usize = 40;

/// A trial with all attempts at it, the last of which counts.
pub(crate) struct TrialHistory<'a> {
    pub(crate) earlier: &'a [StoredTrial],
    pub(crate) last: &'a StoredTrial,
}

/// Attempts, put together by trial.
pub(crate) fn by_trial(trials: &[StoredTrial]) -> Vec<TrialHistory<'_>> {
    let groups = trials.chunk_by(|a, b| a.unit() == b.unit());
    groups
        .filter_map(|group| group.split_last())
        .map(|(last, earlier)| TrialHistory { earlier, last })
        .collect()
}

/// Text as it may stand in XML and HTML, in elements and in quoted attributes. What no such document may hold is replaced.
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

/// The folders of a trial's iterations, in order. Links are not followed here either.
pub(crate) fn iterations(folder: &Path) -> Vec<PathBuf> {
    let folders = |folder: &Path| -> Vec<PathBuf> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let is_folder = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
        let mut found: Vec<PathBuf> = entries.filter(is_folder).map(|entry| entry.path()).collect();
        found.sort();
        found
    };
    folders(&folder.join(ITERATIONS)).iter().flat_map(|run| folders(run)).collect()
}

/// The last lines of a log. A link is not followed: an agent may have put it there.
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
    let kept = lines.get(lines.len().saturating_sub(TAIL_LINES)..).unwrap_or_default().join("\n");
    (!kept.is_empty()).then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_can_end_an_element_or_an_attribute() {
        assert_eq!(
            escape("<b a='x' c=\"&\">\u{1b}[1m"),
            "&lt;b a=&#39;x&#39; c=&quot;&amp;&quot;&gt;\u{fffd}[1m"
        );
    }

    #[test]
    fn the_end_of_a_log_is_shown_and_a_link_is_not_followed() {
        let room = tempfile::tempdir().unwrap();
        let (log, link) = (room.path().join("log"), room.path().join("link"));
        let lines: Vec<String> = (0..5_000).map(|at| format!("line {at}")).collect();
        fs::write(&log, lines.join("\n")).unwrap();
        let shown = tail(&log).unwrap();
        assert_eq!((shown.lines().count(), shown.lines().last()), (TAIL_LINES, Some("line 4999")));
        std::os::unix::fs::symlink(&log, &link).unwrap();
        assert_eq!(tail(&link), None);
    }
}
