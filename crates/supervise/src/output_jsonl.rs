//! A copy of a program's output as JSON Lines, one record per line with its time of arrival: `{"t":1234,"raw":…}`. Used by
//! pump.rs for agents, whose output is a stream of JSON events.
//!
//! A line that is JSON is copied as JSON, any other line as a string. Like a log, the copy has a bounded size: it keeps the
//! first and the last lines, with a record `{"t":…,"dropped":{"lines":…,"bytes":…}}` in between.

use std::collections::VecDeque;
use std::io::{self, Write};

use serde_json::value::RawValue;

use crate::bounded_log::HeadAndTail;

/// The longest line that is kept in memory.
const LINE_BYTES_MAX: usize = 1 << 20;
/// The most that is copied of a line that is not JSON.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// Reserved for the record that counts the dropped lines.
const DROPPED_RECORD_BYTES_MAX: u64 = 64;

/// A copy that is being written.
#[derive(Debug)]
pub(super) struct OutputJsonl<W> {
    file: W,
    line: Vec<u8>,
    /// Bytes of the current line after [`LINE_BYTES_MAX`].
    excess: u64,
    record: Vec<u8>,
    head_left: u64,
    /// Complete records, each with a line break at its end.
    tail: VecDeque<u8>,
    tail_max: usize,
    dropped_lines: u64,
    dropped_bytes: u64,
    error: Option<io::Error>,
}

impl<W: Write> OutputJsonl<W> {
    pub(super) fn new(file: W, bytes_max: u64) -> Self {
        let shares = HeadAndTail::of(bytes_max.saturating_sub(DROPPED_RECORD_BYTES_MAX));
        Self {
            file,
            line: Vec::new(),
            excess: 0,
            record: Vec::new(),
            head_left: shares.head,
            tail: VecDeque::new(),
            tail_max: usize::try_from(shares.tail).unwrap_or(usize::MAX),
            dropped_lines: 0,
            dropped_bytes: 0,
            error: None,
        }
    }

    /// Adds output that arrived at `t` milliseconds after the start.
    pub(super) fn push(&mut self, bytes: &[u8], t: u64) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (text, is_complete) = match piece.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (piece, false),
            };
            let available = LINE_BYTES_MAX.saturating_sub(self.line.len()).min(text.len());
            let (fits, excess) = text.split_at(available);
            self.line.extend_from_slice(fits);
            self.excess += excess.len() as u64;
            if is_complete {
                self.end_line(t);
            }
        }
    }

    /// Writes the last lines; returns the first error of any write.
    pub(super) fn finish(mut self, t: u64) -> Option<io::Error> {
        if !self.line.is_empty() {
            self.end_line(t);
        }
        if self.dropped_lines > 0 {
            let Self { dropped_lines: lines, dropped_bytes: bytes, .. } = self;
            let record = format!("{{\"t\":{t},\"dropped\":{{\"lines\":{lines},\"bytes\":{bytes}}}}}\n");
            self.write(record.as_bytes());
        }
        let tail = std::mem::take(&mut self.tail);
        let (front, back) = tail.as_slices();
        self.write(front);
        self.write(back);
        self.error
    }

    fn end_line(&mut self, t: u64) {
        let mut record = std::mem::take(&mut self.record);
        record.clear();
        record_line(&self.line, self.excess, t, &mut record);
        self.line.clear();
        self.excess = 0;
        let size = record.len() as u64;
        if size <= self.head_left {
            self.head_left -= size;
            self.write(&record);
        } else {
            // From here on only the last lines are kept, even if a shorter line would still fit into the first part.
            self.head_left = 0;
            self.push_tail(&record);
        }
        self.record = record;
    }

    fn push_tail(&mut self, record: &[u8]) {
        self.tail.extend(record);
        while self.tail.len() > self.tail_max {
            let line = self.tail.iter().position(|byte| *byte == b'\n').map_or(self.tail.len(), |at| at + 1);
            self.tail.drain(..line);
            self.dropped_lines += 1;
            self.dropped_bytes += line as u64;
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        if self.error.is_none() {
            self.error = self.file.write_all(bytes).err();
        }
    }
}

/// Appends the record of one line.
fn record_line(line: &[u8], excess: u64, t: u64, record: &mut Vec<u8>) {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    // Writing to a `Vec` does not fail.
    let _ = write!(record, "{{\"t\":{t},\"raw\":");
    let cut = match parse_json(line) {
        Some(json) if excess == 0 => {
            record.extend_from_slice(json.get().as_bytes());
            0
        }
        _ => {
            let (kept, cut) = line.split_at_checked(TEXT_BYTES_MAX).unwrap_or((line, &[]));
            let _ = serde_json::to_writer(&mut *record, &String::from_utf8_lossy(kept));
            excess + cut.len() as u64
        }
    };
    if cut > 0 {
        let _ = write!(record, ",\"cut\":{cut}");
    }
    record.extend_from_slice(b"}\n");
}

/// The line as JSON, if it is valid JSON. The first byte is checked to skip the parser for most other lines.
fn parse_json(line: &[u8]) -> Option<&RawValue> {
    let may_begin_json = line.first().is_some_and(|first| b"{[\"-0123456789tfn \t".contains(first));
    if may_begin_json { serde_json::from_slice(line).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn copy_lines(pieces: &[(&[u8], u64)], bytes_max: u64) -> Vec<Value> {
        let mut file = Vec::new();
        let mut lines = OutputJsonl::new(&mut file, bytes_max);
        pieces.iter().for_each(|(bytes, t)| lines.push(bytes, *t));
        assert!(lines.finish(99).is_none());
        assert!(file.len() as u64 <= bytes_max);
        let text = String::from_utf8(file).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn json_is_copied_as_json_and_other_lines_as_strings() {
        let pieces: [(&[u8], u64); 3] =
            [(b"{\"a\": [1, 2]}\r\nhal", 5), (b"f {\n\xff\n", 7), (b"\n{\"a\"", 8)];
        let expected = [
            json!({"t": 5, "raw": {"a": [1, 2]}}),
            json!({"t": 7, "raw": "half {"}),
            json!({"t": 7, "raw": "\u{fffd}"}),
            json!({"t": 8, "raw": ""}),
            json!({"t": 99, "raw": "{\"a\""}),
        ];
        assert_eq!(copy_lines(&pieces, 10_000), expected);
    }

    #[test]
    fn numbers_keep_every_digit() {
        let mut file = Vec::new();
        let mut lines = OutputJsonl::new(&mut file, 1_000);
        lines.push(b"{\"cost\": 0.10000000000000000000001}\n", 1);
        assert!(lines.finish(2).is_none());
        assert_eq!(file, b"{\"t\":1,\"raw\":{\"cost\": 0.10000000000000000000001}}\n");
    }

    #[test]
    fn an_endless_line_is_cut_and_counted() {
        let piece = vec![b'x'; 1 << 16];
        let pieces: Vec<(&[u8], u64)> = (0..32).map(|t| (piece.as_slice(), t)).collect();
        let lines = copy_lines(&pieces, 10 << 20);
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0]["raw"].as_str().unwrap().len(), TEXT_BYTES_MAX);
        assert_eq!(lines[0]["cut"], (32 << 16) - TEXT_BYTES_MAX);
    }

    #[test]
    fn first_and_last_lines_are_kept() {
        let text: String = (0..1_000).map(|number| format!("{number}\n")).collect();
        let lines = copy_lines(&[(text.as_bytes(), 3)], 1_064);
        let at = lines.iter().position(|line| line["raw"].is_null()).unwrap();
        assert_eq!((&lines[0]["raw"], &lines[lines.len() - 1]["raw"]), (&json!(0), &json!(999)));
        assert_eq!(lines[at]["dropped"]["lines"], 1_000 - (lines.len() - 1));
    }

    #[test]
    fn a_character_at_the_cut_of_a_line_is_replaced() {
        for shift in 0..4 {
            let mut text = vec![b'x'; shift];
            text.extend("🦀".repeat(TEXT_BYTES_MAX / 2).bytes());
            text.push(b'\n');
            let lines = copy_lines(&[(&text, 1)], 10 << 20);
            assert_eq!(lines[0]["cut"], text.len() - 1 - TEXT_BYTES_MAX);
        }
    }
}
