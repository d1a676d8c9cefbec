//! Finds the groups of a log: parts that CI systems mark, and those that test programs and compilers print under a heading.
//! Durations are those that the log itself contains.

use std::io;

use crate::api::{LogGroup, LogGroups};
use crate::read::confined_fs::RegularFile;
use crate::read::log_index::LogIndex;
use crate::read::logs::{each_line, hit_text, without_escapes};

/// The most groups that are listed.
const GROUPS_MAX: usize = 2_000;
/// A part of fewer lines needs no folding.
const LINES_MIN: u64 = 3;

/// The groups of a log.
pub(crate) fn log_groups(file: &RegularFile, index: &LogIndex) -> io::Result<LogGroups> {
    let mut finder = GroupFinder::default();
    each_line(file, 0, index.seen(), |line, _| {
        // The title of a GitLab section follows a carriage return.
        finder.push(&String::from_utf8_lossy(&without_escapes(line)));
        finder.found.len() < GROUPS_MAX
    })?;
    Ok(finder.finish())
}

/// What a line means for groups.
#[derive(Clone, Debug, PartialEq)]
enum LineMark {
    /// A group that ends with a mark of its own begins.
    Begin {
        title: String,
        name: String,
        unix_secs: Option<f64>,
    },
    /// The innermost group, or the one of this name, ends.
    End {
        name: String,
        unix_secs: Option<f64>,
    },
    /// A part begins, which the next heading ends.
    Heading(String),
    /// A part ends with this line.
    Total(f64),
    /// A line of a sequence of equal steps, such as compiling crate after crate.
    Step(&'static str),
    Text,
}

#[derive(Debug)]
struct OpenGroup {
    first: u64,
    title: String,
    /// Of a group with marks; empty for a part under a heading or a sequence.
    name: String,
    kind: GroupKind,
    begun: Option<f64>,
    seconds: Option<f64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GroupKind {
    Marked,
    Headed,
    Sequence,
}

#[derive(Debug, Default)]
struct GroupFinder {
    line: u64,
    open: Vec<OpenGroup>,
    found: Vec<LogGroup>,
    has_times: bool,
}

impl GroupFinder {
    fn push(&mut self, line: &str) {
        self.has_times = self.has_times || has_time(line);
        let mark = mark_of(line);
        if !matches!(mark, LineMark::Step(_) | LineMark::Total(_)) {
            self.close_innermost(GroupKind::Sequence, self.line);
        }
        match mark {
            LineMark::Begin { title, name, unix_secs } => {
                self.open(title, name, GroupKind::Marked, unix_secs);
            }
            LineMark::End { name, unix_secs } => self.end_marked(&name, unix_secs),
            LineMark::Heading(title) => {
                self.close_innermost(GroupKind::Headed, self.line);
                self.open(title, String::new(), GroupKind::Headed, None);
            }
            LineMark::Total(seconds) => {
                if let Some(group) = self.open.last_mut().filter(|group| group.kind != GroupKind::Marked) {
                    group.seconds = Some(seconds);
                }
                self.close_innermost(GroupKind::Sequence, self.line + 1);
            }
            LineMark::Step(title) => {
                if self.open.last().is_none_or(|group| group.kind != GroupKind::Sequence) {
                    self.open(title.to_owned(), String::new(), GroupKind::Sequence, None);
                }
            }
            LineMark::Text => {}
        }
        self.line += 1;
    }

    fn open(&mut self, title: String, name: String, kind: GroupKind, begun: Option<f64>) {
        self.open.push(OpenGroup { first: self.line, title, name, kind, begun, seconds: None });
    }

    /// Closes the innermost group if it is of this kind. `end` is the line behind it.
    fn close_innermost(&mut self, kind: GroupKind, end: u64) {
        if self.open.last().is_some_and(|group| group.kind == kind)
            && let Some(group) = self.open.pop()
        {
            self.add(&group, end);
        }
    }

    fn end_marked(&mut self, name: &str, unix_secs: Option<f64>) {
        let is_it =
            |group: &OpenGroup| group.kind == GroupKind::Marked && (name.is_empty() || group.name == name);
        let Some(at) = self.open.iter().rposition(is_it) else { return };
        while self.open.len() > at {
            let Some(mut group) = self.open.pop() else { break };
            if self.open.len() == at {
                group.seconds = unix_secs.zip(group.begun).map(|(end, begun)| end - begun);
            }
            self.add(&group, self.line + 1);
        }
    }

    fn add(&mut self, group: &OpenGroup, end: u64) {
        let lines = end.saturating_sub(group.first);
        if lines >= LINES_MIN {
            self.found.push(LogGroup {
                first: group.first,
                last: end - 1,
                title: hit_text(group.title.as_bytes()),
                seconds: group.seconds,
            });
        }
    }

    fn finish(mut self) -> LogGroups {
        while let Some(group) = self.open.pop() {
            self.add(&group, self.line);
        }
        // An outer group begins first; of two that begin together, the longer one is outside.
        self.found.sort_by_key(|group| (group.first, std::cmp::Reverse(group.last)));
        LogGroups { groups: self.found, has_times: self.has_times }
    }
}

/// What a line without escape sequences means.
fn mark_of(line: &str) -> LineMark {
    if let Some(mark) = ci_mark(line) {
        return mark;
    }
    let text = line.trim();
    let word = text.split(' ').next().unwrap_or_default();
    let rest = text.get(word.len()..).unwrap_or_default().trim_start();
    let is_indented = line.starts_with(' ');
    match word {
        "Compiling" | "Checking" | "Downloading" | "Downloaded" | "Fresh" | "Documenting" if is_indented => {
            LineMark::Step("Building crates")
        }
        "Finished" if is_indented => total_of(rest.rsplit_once(" in ").map_or("", |(_, time)| time)),
        "Running" if is_indented && rest.contains('(') => LineMark::Heading(text.to_owned()),
        "Doc-tests" if is_indented => LineMark::Heading(text.to_owned()),
        "Starting" if is_indented && rest.contains(" tests") => LineMark::Heading(text.to_owned()),
        "Summary" if is_indented => {
            total_of(rest.trim_start_matches('[').split(']').next().unwrap_or_default().trim())
        }
        "test" if rest.starts_with("result: ") => {
            total_of(rest.rsplit_once("finished in ").map_or("", |(_, time)| time))
        }
        "PASS" | "FAIL" if !is_indented && rest.contains('.') && !rest.contains('[') => {
            LineMark::Heading(text.to_owned())
        }
        _ => banner(text).or_else(|| make_mark(text)).unwrap_or(LineMark::Text),
    }
}

/// Marks of GitHub, Azure and GitLab.
fn ci_mark(line: &str) -> Option<LineMark> {
    for (begin, end) in [("::group::", "::endgroup::"), ("##[group]", "##[endgroup]")] {
        if let Some(title) = line.strip_prefix(begin) {
            return Some(LineMark::Begin { title: title.to_owned(), name: String::new(), unix_secs: None });
        }
        if line.starts_with(end) {
            return Some(LineMark::End { name: String::new(), unix_secs: None });
        }
    }
    let is_start = line.starts_with("section_start:");
    let rest = line.strip_prefix("section_start:").or_else(|| line.strip_prefix("section_end:"))?;
    let (time, rest) = rest.split_once(':')?;
    let (name, title) = rest.split_once('\r').unwrap_or((rest, rest));
    let name = name.split('[').next().unwrap_or_default().to_owned();
    let unix_secs = time.parse().ok();
    Some(if is_start {
        LineMark::Begin { title: title.to_owned(), name, unix_secs }
    } else {
        LineMark::End { name, unix_secs }
    })
}

/// `=== title ===`, as pytest prints it.
fn banner(text: &str) -> Option<LineMark> {
    let title = text.trim_matches('=').trim();
    let is_banner = text.starts_with("===") && text.ends_with("===") && !title.is_empty();
    is_banner.then(|| LineMark::Heading(title.to_owned()))
}

/// Folders of a recursive make.
fn make_mark(text: &str) -> Option<LineMark> {
    let rest = text.strip_prefix("make[")?;
    let (level, message) = rest.split_once("]: ")?;
    let name = format!("make {level}");
    if message.starts_with("Entering directory ") {
        return Some(LineMark::Begin { title: text.to_owned(), name, unix_secs: None });
    }
    message.starts_with("Leaving directory ").then_some(LineMark::End { name, unix_secs: None })
}

fn total_of(time: &str) -> LineMark {
    duration_of(time).map_or(LineMark::Text, LineMark::Total)
}

/// `1.25s` or `2m 03s` in seconds.
fn duration_of(time: &str) -> Option<f64> {
    let mut seconds = 0.0;
    for part in time.split_whitespace() {
        let (number, unit) = part.split_at(part.find(|c: char| c.is_ascii_alphabetic())?);
        let factor = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        seconds += number.parse::<f64>().ok()? * factor;
    }
    (seconds > 0.0).then_some(seconds)
}

/// Whether a line begins with a time of the day: `2026-01-31T12:00:00Z …` or `[12:00:00] …`.
fn has_time(line: &str) -> bool {
    let text = line.trim_start_matches('[');
    let time = match text.get(10..11) {
        Some("T" | " ") if text.get(4..5) == Some("-") => text.get(11..).unwrap_or_default(),
        _ => text,
    };
    let is_at = |at: usize, wanted: &str| time.get(at..=at) == Some(wanted);
    let digits = [0, 1, 3, 4, 6, 7];
    let is_digit = |at: &usize| time.as_bytes().get(*at).is_some_and(u8::is_ascii_digit);
    is_at(2, ":") && is_at(5, ":") && digits.iter().all(is_digit)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Title, first and last line, and seconds of every group.
    fn groups(lines: &[&str]) -> Vec<(String, u64, u64, Option<f64>)> {
        let mut finder = GroupFinder::default();
        lines.iter().for_each(|line| finder.push(line));
        let groups = finder.finish().groups;
        groups.into_iter().map(|group| (group.title, group.first, group.last, group.seconds)).collect()
    }

    fn group(title: &str, first: u64, last: u64, seconds: Option<f64>) -> (String, u64, u64, Option<f64>) {
        (title.to_owned(), first, last, seconds)
    }

    #[test]
    fn marked_groups_nest() {
        let lines = ["a", "::group::One", "x", "::group::Two", "y", "y", "::endgroup::", "::endgroup::", "b"];
        assert_eq!(groups(&lines), [group("One", 1, 7, None), group("Two", 3, 6, None)]);
        let unclosed = ["::group::One", "x", "y"];
        assert_eq!(groups(&unclosed), [group("One", 0, 2, None)]);
        assert_eq!(groups(&["::group::One", "::endgroup::"]), [], "nothing to fold");
    }

    #[test]
    fn a_section_of_gitlab_has_its_duration() {
        let lines = [
            "section_start:1560896352:build[collapsed=true]\rBuild it",
            "x",
            "y",
            "section_end:1560896360:build\r",
        ];
        assert_eq!(groups(&lines), [group("Build it", 0, 3, Some(8.0))]);
    }

    #[test]
    fn cargo_prints_a_sequence_and_headings() {
        let lines = [
            "   Compiling a v1.0.0",
            "   Compiling b v1.0.0",
            "    Finished `test` profile [unoptimized] target(s) in 1m 02s",
            "     Running unittests src/lib.rs (target/debug/deps/a-1)",
            "",
            "running 1 test",
            "test result: ok. 1 passed; 0 failed; finished in 0.25s",
            "     Running tests/it.rs (target/debug/deps/it-2)",
            "test x ... FAILED",
            "test result: FAILED. 0 passed; 1 failed; finished in 0.01s",
        ];
        assert_eq!(
            groups(&lines),
            [
                group("Building crates", 0, 2, Some(62.0)),
                group("Running unittests src/lib.rs (target/debug/deps/a-1)", 3, 6, Some(0.25)),
                group("Running tests/it.rs (target/debug/deps/it-2)", 7, 9, Some(0.01)),
            ]
        );
    }

    #[test]
    fn pytest_nextest_jest_and_make_have_headings() {
        let lines = ["=== test session starts ===", "a", "b", "=== FAILURES ===", "c", "d"];
        assert_eq!(groups(&lines), [group("test session starts", 0, 2, None), group("FAILURES", 3, 5, None)]);
        let lines = [
            "    Starting 2 tests across 1 binary",
            "PASS [ 0.1s] a",
            "     Summary [   1.500s] 2 tests run",
        ];
        assert_eq!(groups(&lines), [group("Starting 2 tests across 1 binary", 0, 2, Some(1.5))]);
        let lines = ["PASS src/a.test.ts", "  ✓ x", "  ✓ y", "FAIL src/b.test.ts", "  ✗ x", "  ✓ y"];
        assert_eq!(
            groups(&lines),
            [group("PASS src/a.test.ts", 0, 2, None), group("FAIL src/b.test.ts", 3, 5, None)]
        );
        let lines = ["make[1]: Entering directory '/a'", "cc x", "make[1]: Leaving directory '/a'", "done"];
        assert_eq!(groups(&lines), [group("make[1]: Entering directory '/a'", 0, 2, None)]);
    }

    #[test]
    fn text_that_only_looks_alike_is_no_group() {
        let lines = [
            "Compiling the list",
            "Running late",
            "Summary of it",
            "== two ==",
            "test result: x",
            "Finished",
        ];
        assert_eq!(groups(&lines), []);
    }

    #[test]
    fn times_at_the_beginning_of_a_line_are_noticed() {
        for line in ["2026-01-31T12:00:00.123Z x", "[12:00:00] x", "12:00:00 x", "2026-01-31 12:00:00 x"] {
            assert!(has_time(line), "{line}");
        }
        for line in ["", "1:2:3", "at 12:00:00", "2026-01-31", "ab:cd:ef"] {
            assert!(!has_time(line), "{line}");
        }
    }
}
