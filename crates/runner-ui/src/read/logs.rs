//! Logs by the page: some lines, the lines that hold a word, the lines that tell of a fault. Never a whole file.

use std::io;

use crate::api::{LogHit, LogHits, LogLine, LogPage};
use crate::read::confined_fs::RegularFile;
use crate::read::error_lines::tells_of_failure;
use crate::read::log_index::{LogIndex, PIECE_BYTES, bytes};

/// The most lines of one answer.
pub(crate) const LINES_MAX: u64 = 2_000;
/// The most bytes of one answer.
const ANSWER_BYTES_MAX: usize = 4 << 20;
/// The most bytes of one line in an answer.
const LINE_BYTES_MAX: usize = 256 << 10;
/// The most lines that a search lists; it counts all.
const HITS_MAX: usize = 2_000;
/// How much of a line a hit shows.
const HIT_BYTES_MAX: usize = 300;

/// Goes through the lines of a file from a place on, until told to stop. A line is given up to
/// [`LINE_BYTES_MAX`], with whether that was not all of it.
fn each_line(
    file: &RegularFile,
    from: u64,
    until: u64,
    mut told: impl FnMut(&[u8], bool) -> bool,
) -> io::Result<()> {
    let (mut place, mut line, mut is_cut) = (from, Vec::new(), false);
    let add = |line: &mut Vec<u8>, is_cut: &mut bool, more: &[u8]| {
        let room = LINE_BYTES_MAX.saturating_sub(line.len()).min(more.len());
        *is_cut |= room < more.len();
        line.extend(more.iter().take(room));
    };
    while place < until {
        let most = usize::try_from(until - place).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        let piece = file.piece(place, most)?;
        if piece.is_empty() {
            break;
        }
        place += bytes(piece.len());
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            let (text, is_whole) = part.strip_suffix(b"\n").map_or((part, false), |text| (text, true));
            add(&mut line, &mut is_cut, text);
            if is_whole {
                if !told(&line, is_cut) {
                    return Ok(());
                }
                line.clear();
                is_cut = false;
            }
        }
    }
    if !line.is_empty() || is_cut {
        told(&line, is_cut);
    }
    Ok(())
}

/// Some lines of a log.
pub(crate) fn page(file: &RegularFile, index: &LogIndex, from: u64, count: u64) -> io::Result<LogPage> {
    let count = count.min(LINES_MAX);
    let (place, mut skip) = index.near(from.min(index.lines()));
    let (mut lines, mut cut, mut size) = (Vec::new(), Vec::new(), 0);
    each_line(file, place, index.seen(), |line, is_cut| {
        if skip > 0 {
            skip -= 1;
            return true;
        }
        if bytes(lines.len()) >= count || (size > 0 && size + line.len() > ANSWER_BYTES_MAX) {
            return false;
        }
        size += line.len();
        if is_cut {
            cut.extend(u32::try_from(lines.len()));
        }
        lines.push(text_of(line));
        true
    })?;
    let (total, bytes) = (index.lines(), index.seen());
    Ok(LogPage { total, bytes, from: from.min(total), lines, cut, is_open: index.is_open() })
}

/// The lines that hold a text. Upper and lower case are the same unless asked otherwise; colours in between do not
/// matter.
pub(crate) fn search(file: &RegularFile, index: &LogIndex, text: &str, by_case: bool) -> io::Result<LogHits> {
    let wanted = if by_case { text.as_bytes().to_vec() } else { text.to_lowercase().into_bytes() };
    find(file, index, |line| {
        let plain = without_escapes(line);
        if by_case {
            return holds(&plain, &wanted);
        }
        if plain.is_ascii() && wanted.is_ascii() {
            return holds(&plain.to_ascii_lowercase(), &wanted);
        }
        holds(String::from_utf8_lossy(&plain).to_lowercase().as_bytes(), &wanted)
    })
}

/// The lines that tell of a fault.
pub(crate) fn failures(file: &RegularFile, index: &LogIndex) -> io::Result<LogHits> {
    find(file, index, |line| tells_of_failure(&String::from_utf8_lossy(&without_escapes(line))))
}

/// The line that says best what went wrong: the first that tells of a fault, or else the last one.
pub(crate) fn most_telling(file: &RegularFile, iter: u32, log: &str) -> io::Result<Option<LogLine>> {
    let (mut line, mut best, mut last) = (0, None, None);
    each_line(file, 0, file.stamp.bytes, |bytes, _| {
        let text = shown(bytes);
        if tells_of_failure(&text) {
            best = Some((line, text));
            return false;
        }
        if !text.is_empty() {
            last = Some((line, text));
        }
        line += 1;
        true
    })?;
    let evidence = |(line, text)| LogLine { iter, log: log.to_owned(), line, text };
    Ok(best.or(last).map(evidence))
}

fn find(file: &RegularFile, index: &LogIndex, matches: impl Fn(&[u8]) -> bool) -> io::Result<LogHits> {
    let (mut hits, mut total, mut searched) = (Vec::new(), 0, 0);
    each_line(file, 0, index.seen(), |line, _| {
        if matches(line) {
            total += 1;
            if hits.len() < HITS_MAX {
                hits.push(LogHit { line: searched, text: shown(line) });
            }
        }
        searched += 1;
        true
    })?;
    Ok(LogHits { total, searched, hits })
}

/// Whether bytes stand somewhere in a line.
fn holds(line: &[u8], wanted: &[u8]) -> bool {
    let Some((first, rest)) = wanted.split_first() else { return false };
    let mut left = line;
    while let Some(place) = left.iter().position(|byte| byte == first) {
        left = left.get(place + 1..).unwrap_or_default();
        if left.starts_with(rest) {
            return true;
        }
    }
    false
}

/// The line without the escape sequences that terminals take for colours.
fn without_escapes(line: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    if !line.contains(&0x1b) {
        return line.into();
    }
    let mut plain = Vec::with_capacity(line.len());
    let mut rest = line.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        if byte != 0x1b {
            plain.push(byte);
        } else if rest.next_if_eq(&b'[').is_some() {
            for byte in rest.by_ref() {
                if (0x40..=0x7e).contains(&byte) {
                    break;
                }
            }
        }
    }
    plain.into()
}

/// A line as a list shows it.
fn shown(line: &[u8]) -> String {
    let head = line.get(..HIT_BYTES_MAX.min(line.len())).unwrap_or(line);
    runner_core::text::one_line(&String::from_utf8_lossy(head))
}

/// A line as it stands; what is no text is shown as a replacement character.
fn text_of(line: &[u8]) -> String {
    String::from_utf8_lossy(line).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::confined_fs::ConfinedDir;

    fn log(text: impl AsRef<[u8]>) -> (tempfile::TempDir, RegularFile, LogIndex) {
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("log"), text).unwrap();
        let file = ConfinedDir::open(place.path()).unwrap().file("log").unwrap();
        let mut index = LogIndex::default();
        index.extend(&file).unwrap();
        (place, file, index)
    }

    #[test]
    fn any_page_of_a_log_holds_the_lines_of_its_numbers() {
        let text: String = (0..5_000).map(|line| format!("line {line}\n")).collect();
        let (_place, file, index) = log(text);
        for from in [0, 1, 511, 512, 513, 1_024, 4_999] {
            let page = page(&file, &index, from, 3).unwrap();
            assert_eq!((page.total, page.from), (5_000, from));
            assert_eq!(page.lines.first(), Some(&format!("line {from}")));
            assert_eq!(bytes(page.lines.len()), 3.min(5_000 - from));
        }
        assert!(page(&file, &index, 9_999, 3).unwrap().lines.is_empty());
        assert_eq!(bytes(page(&file, &index, 0, u64::MAX).unwrap().lines.len()), LINES_MAX);
    }

    #[test]
    fn a_line_without_end_and_bytes_that_are_no_text_are_shown() {
        let (_place, file, index) = log(b"a\xff\0b\n\nopen");
        let page = page(&file, &index, 0, 9).unwrap();
        assert_eq!(page.lines, ["a\u{fffd}\0b", "", "open"]);
        assert!(page.is_open);
    }

    #[test]
    fn a_line_beyond_measure_is_cut_and_said_to_be() {
        let (_place, file, index) = log("x".repeat(1 << 20) + "\nnext\n");
        let page = page(&file, &index, 0, 9).unwrap();
        assert_eq!(
            (page.lines[0].len(), page.lines[1].as_str(), page.cut),
            (LINE_BYTES_MAX, "next", vec![0])
        );
    }

    #[test]
    fn a_search_counts_every_line_and_looks_through_colours() {
        let (_place, file, index) = log("Er\x1b[31mror: x\nfine\n".repeat(3_000));
        let hits = search(&file, &index, "error", false).unwrap();
        assert_eq!((hits.total, hits.searched, hits.hits.len()), (3_000, 6_000, HITS_MAX));
        assert_eq!((hits.hits[1].line, hits.hits[1].text.as_str()), (2, "Error: x"));
        assert_eq!(search(&file, &index, "error", true).unwrap().total, 0);
        assert_eq!(search(&file, &index, "", false).unwrap().total, 0);
    }

    #[test]
    fn the_first_fault_tells_most_and_else_the_last_line() {
        let told = |text: &str| {
            let (_place, file, _) = log(text);
            most_telling(&file, 7, "guard").unwrap().map(|evidence| (evidence.line, evidence.text))
        };
        assert_eq!(told("ok\nerror: one\nerror: two\n"), Some((1, "error: one".to_owned())));
        assert_eq!(told("ok\nwell\n\n"), Some((1, "well".to_owned())));
        assert_eq!(told(""), None);
    }
}
