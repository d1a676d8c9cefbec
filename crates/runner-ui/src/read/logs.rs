//! Reads logs in parts: some lines, the lines that match a search, the lines that report an error. Never a whole file.

use std::io;

use crate::api::{LogHit, LogHits, LogLine, LogPage};
use crate::read::confined_fs::RegularFile;
use crate::read::error_lines::is_error_line;
use crate::read::log_index::{LogIndex, PIECE_BYTES, bytes};

/// The most lines of one response.
pub(crate) const LINES_MAX: u64 = 2_000;
/// The most bytes of one response.
const RESPONSE_BYTES_MAX: usize = 4 << 20;
/// The most bytes of one line in a response.
const LINE_BYTES_MAX: usize = 256 << 10;
/// The most hits that a search lists; it counts all.
const HITS_MAX: usize = 2_000;
/// The most bytes of a line that a hit shows.
const HIT_BYTES_MAX: usize = 300;

/// Calls `visit` with each line between two offsets of a file, until it returns `false`. A line is truncated to
/// [`LINE_BYTES_MAX`]; the second argument is `true` if it was.
pub(super) fn each_line(
    file: &RegularFile,
    from: u64,
    until: u64,
    mut visit: impl FnMut(&[u8], bool) -> bool,
) -> io::Result<()> {
    let mut offset = from;
    let mut line = Vec::new();
    let mut is_cut = false;
    while offset < until {
        let piece_bytes = usize::try_from(until - offset).unwrap_or(PIECE_BYTES).min(PIECE_BYTES);
        let piece = file.piece(offset, piece_bytes)?;
        if piece.is_empty() {
            break;
        }
        offset += bytes(piece.len());
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            let (text, has_end) = part.strip_suffix(b"\n").map_or((part, false), |text| (text, true));
            let room = LINE_BYTES_MAX.saturating_sub(line.len()).min(text.len());
            is_cut |= room < text.len();
            line.extend(text.iter().take(room));
            if has_end {
                if !visit(&line, is_cut) {
                    return Ok(());
                }
                line.clear();
                is_cut = false;
            }
        }
    }
    if !line.is_empty() || is_cut {
        visit(&line, is_cut);
    }
    Ok(())
}

/// Up to `count` lines of a log, from line `from` on.
pub(crate) fn page(file: &RegularFile, index: &LogIndex, from: u64, count: u64) -> io::Result<LogPage> {
    let count = count.min(LINES_MAX);
    let (offset, mut skip) = index.near(from.min(index.lines()));
    let mut lines = Vec::new();
    let mut cut = Vec::new();
    let mut size = 0;
    each_line(file, offset, index.seen(), |line, is_cut| {
        if skip > 0 {
            skip -= 1;
            return true;
        }
        if bytes(lines.len()) >= count || (size > 0 && size + line.len() > RESPONSE_BYTES_MAX) {
            return false;
        }
        size += line.len();
        if is_cut {
            cut.extend(u32::try_from(lines.len()));
        }
        lines.push(String::from_utf8_lossy(line).into_owned());
        true
    })?;
    let total = index.lines();
    Ok(LogPage { total, bytes: index.seen(), from: from.min(total), lines, cut, is_open: index.is_open() })
}

/// Whether a search is case-sensitive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LetterCase {
    Ignored,
    Matters,
}

/// The lines that contain a text. Escape sequences for colours within the text do not matter.
pub(crate) fn search(
    file: &RegularFile,
    index: &LogIndex,
    text: &str,
    case: LetterCase,
) -> io::Result<LogHits> {
    let wanted = match case {
        LetterCase::Matters => text.as_bytes().to_vec(),
        LetterCase::Ignored => text.to_lowercase().into_bytes(),
    };
    find(file, index, |line| {
        let plain = without_escapes(line);
        if case == LetterCase::Matters {
            return contains(&plain, &wanted);
        }
        if plain.is_ascii() && wanted.is_ascii() {
            return contains(&plain.to_ascii_lowercase(), &wanted);
        }
        contains(String::from_utf8_lossy(&plain).to_lowercase().as_bytes(), &wanted)
    })
}

/// The lines that report an error.
pub(crate) fn error_lines(file: &RegularFile, index: &LogIndex) -> io::Result<LogHits> {
    find(file, index, |line| is_error_line(&String::from_utf8_lossy(&without_escapes(line))))
}

/// Whether a line is a message between programs: an agent's protocol explains nothing to people.
pub(super) fn is_protocol(text: &str) -> bool {
    text.starts_with("{\"") || text.starts_with("[{\"")
}

/// The line that shows best what went wrong: the first that reports an error, or else the last one. Some agents print a
/// protocol and their errors into one log, so lines of a protocol do not count.
pub(crate) fn best_error_line(file: &RegularFile, iter: u32, log: &str) -> io::Result<Option<LogLine>> {
    let mut line = 0;
    let mut best = None;
    let mut last = None;
    each_line(file, 0, file.stamp.bytes, |bytes, _| {
        let text = hit_text(bytes);
        if is_error_line(&text) && !is_protocol(&text) {
            best = Some((line, text));
            return false;
        }
        if !text.is_empty() && !is_protocol(&text) {
            last = Some((line, text));
        }
        line += 1;
        true
    })?;
    Ok(best.or(last).map(|(line, text)| LogLine { iter, log: log.to_owned(), line, text }))
}

fn find(file: &RegularFile, index: &LogIndex, matches: impl Fn(&[u8]) -> bool) -> io::Result<LogHits> {
    let mut hits = Vec::new();
    let mut total = 0;
    let mut searched = 0;
    each_line(file, 0, index.seen(), |line, _| {
        if matches(line) {
            total += 1;
            if hits.len() < HITS_MAX {
                hits.push(LogHit { line: searched, text: hit_text(line) });
            }
        }
        searched += 1;
        true
    })?;
    Ok(LogHits { total, searched, hits })
}

/// Whether a line contains these bytes.
fn contains(line: &[u8], wanted: &[u8]) -> bool {
    let Some((first, rest)) = wanted.split_first() else { return false };
    let mut unsearched = line;
    while let Some(index) = unsearched.iter().position(|byte| byte == first) {
        unsearched = unsearched.get(index + 1..).unwrap_or_default();
        if unsearched.starts_with(rest) {
            return true;
        }
    }
    false
}

/// The line without escape sequences, such as those for colours.
pub(super) fn without_escapes(line: &[u8]) -> std::borrow::Cow<'_, [u8]> {
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

/// A line as a list of hits shows it.
pub(super) fn hit_text(line: &[u8]) -> String {
    let head = line.get(..HIT_BYTES_MAX.min(line.len())).unwrap_or(line);
    runner_core::text::one_line(&String::from_utf8_lossy(head))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::confined_fs::ConfinedDir;

    fn log(text: impl AsRef<[u8]>) -> (tempfile::TempDir, RegularFile, LogIndex) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("log"), text).unwrap();
        let file = ConfinedDir::open(folder.path()).unwrap().file("log").unwrap();
        let mut index = LogIndex::default();
        index.extend(&file).unwrap();
        (folder, file, index)
    }

    #[test]
    fn page_has_the_lines_of_its_numbers() {
        let text: String = (0..5_000).map(|line| format!("line {line}\n")).collect();
        let (_folder, file, index) = log(text);
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
    fn open_lines_and_invalid_utf_8_are_shown() {
        let (_folder, file, index) = log(b"a\xff\0b\n\nopen");
        let page = page(&file, &index, 0, 9).unwrap();
        assert_eq!(page.lines, ["a\u{fffd}\0b", "", "open"]);
        assert!(page.is_open);
    }

    #[test]
    fn long_line_is_truncated_and_marked() {
        let (_folder, file, index) = log("x".repeat(1 << 20) + "\nnext\n");
        let page = page(&file, &index, 0, 9).unwrap();
        assert_eq!(
            (page.lines[0].len(), page.lines[1].as_str(), page.cut),
            (LINE_BYTES_MAX, "next", vec![0])
        );
    }

    #[test]
    fn search_counts_every_line_and_ignores_colours() {
        let (_folder, file, index) = log("Er\x1b[31mror: x\nfine\n".repeat(3_000));
        let hits = search(&file, &index, "error", LetterCase::Ignored).unwrap();
        assert_eq!((hits.total, hits.searched, hits.hits.len()), (3_000, 6_000, HITS_MAX));
        assert_eq!((hits.hits[1].line, hits.hits[1].text.as_str()), (2, "Error: x"));
        assert_eq!(search(&file, &index, "error", LetterCase::Matters).unwrap().total, 0);
        assert_eq!(search(&file, &index, "", LetterCase::Ignored).unwrap().total, 0);
    }

    #[test]
    fn best_error_line_is_the_first_error_or_else_the_last_line() {
        let best = |text: &str| {
            let (_folder, file, _) = log(text);
            best_error_line(&file, 7, "guard").unwrap().map(|evidence| (evidence.line, evidence.text))
        };
        assert_eq!(best("ok\nerror: one\nerror: two\n"), Some((1, "error: one".to_owned())));
        assert_eq!(best("ok\nwell\n\n"), Some((1, "well".to_owned())));
        assert_eq!(best(""), None);
        let mixed = "{\"type\":\"init\"}\nno space left\n{\"type\":\"result\",\"text\":\"npm ERR!\"}\n";
        assert_eq!(best(mixed), Some((1, "no space left".to_owned())));
        assert_eq!(best("{\"type\":\"init\"}\n"), None);
    }
}
