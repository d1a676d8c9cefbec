//! A log file of bounded size: the beginning and the end of the output, with a line in between that counts the dropped
//! bytes. Used by pump.rs for every program's output.
//!
//! The beginning goes to the file as it arrives, so that `tail -f` works. The end stays in memory, in a ring buffer of fixed
//! size, until the log is closed. Bytes are written unchanged. Both cuts fall between UTF-8 characters, so that a text stays
//! readable.

use std::collections::VecDeque;
use std::io::{self, Write};

/// The most that is kept of the end.
const TAIL_BYTES_MAX: u64 = 1 << 20;
/// Reserved for the line that counts the dropped bytes, and for the rest of a character at the cut.
const MARKER_BYTES_MAX: u64 = 64;
/// UTF-8 characters have at most this many bytes after the first.
const CONTINUATION_MAX: u8 = 3;

/// How many bytes a program wrote, and how many of them the log does not contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByteCounts {
    pub total: u64,
    pub dropped: u64,
}

/// How much of a size limit goes to the beginning and how much to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeadAndTail {
    pub(super) head: u64,
    pub(super) tail: u64,
}

impl HeadAndTail {
    pub(super) fn of(bytes_max: u64) -> Self {
        let available = bytes_max.saturating_sub(MARKER_BYTES_MAX);
        let tail = (available / 2).min(TAIL_BYTES_MAX);
        Self { head: available - tail, tail }
    }
}

/// A log that is being written.
#[derive(Debug)]
pub(super) struct BoundedLog<W> {
    file: W,
    head_left: u64,
    /// How many bytes may still complete the character at the cut.
    continuation_left: u8,
    last_written: Option<u8>,
    tail: VecDeque<u8>,
    tail_max: usize,
    counts: ByteCounts,
    error: Option<io::Error>,
}

impl<W: Write> BoundedLog<W> {
    pub(super) fn new(file: W, bytes_max: u64) -> Self {
        let shares = HeadAndTail::of(bytes_max);
        Self {
            file,
            head_left: shares.head,
            continuation_left: CONTINUATION_MAX,
            last_written: None,
            tail: VecDeque::new(),
            tail_max: usize::try_from(shares.tail).unwrap_or(usize::MAX),
            counts: ByteCounts::default(),
            error: None,
        }
    }

    /// Adds output. If the file cannot be written, the log only counts: the program must not block on it.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.counts.total = self.counts.total.saturating_add(bytes.len() as u64);
        let (head, rest) = bytes.split_at(self.head_share(bytes));
        self.write(head);
        self.push_tail(rest);
    }

    /// Writes the end of the output; returns the first error of any write.
    pub(super) fn finish(mut self) -> (ByteCounts, Option<io::Error>) {
        if self.counts.dropped > 0 {
            let cut = self
                .tail
                .iter()
                .take(CONTINUATION_MAX.into())
                .take_while(|byte| is_continuation(**byte))
                .count();
            self.tail.drain(..cut);
            self.counts.dropped += cut as u64;
            let line_break = if matches!(self.last_written, None | Some(b'\n')) { "" } else { "\n" };
            let marker = format!("{line_break}[runner: {} bytes dropped here]\n", self.counts.dropped);
            self.write(marker.as_bytes());
        }
        let tail = std::mem::take(&mut self.tail);
        let (front, back) = tail.as_slices();
        self.write(front);
        self.write(back);
        (self.counts, self.error)
    }

    /// How many of these bytes belong to the beginning: those that fit, and the rest of a character that started in it.
    fn head_share(&mut self, bytes: &[u8]) -> usize {
        let fits = usize::try_from(self.head_left).unwrap_or(usize::MAX).min(bytes.len());
        self.head_left -= fits as u64;
        if self.head_left > 0 {
            return fits;
        }
        let mut share = fits;
        for byte in bytes.iter().skip(fits) {
            if self.continuation_left == 0 || !is_continuation(*byte) {
                self.continuation_left = 0;
                break;
            }
            self.continuation_left -= 1;
            share += 1;
        }
        share
    }

    fn write(&mut self, bytes: &[u8]) {
        self.last_written = bytes.last().copied().or(self.last_written);
        if self.error.is_none() && !bytes.is_empty() {
            self.error = self.file.write_all(bytes).err();
        }
    }

    fn push_tail(&mut self, bytes: &[u8]) {
        let newest = bytes.len().min(self.tail_max);
        let (older, bytes) = bytes.split_at(bytes.len() - newest);
        let too_many = (self.tail.len() + bytes.len()).saturating_sub(self.tail_max);
        self.tail.drain(..too_many);
        self.tail.extend(bytes);
        self.counts.dropped = self.counts.dropped.saturating_add((older.len() + too_many) as u64);
    }
}

/// Whether a byte is a UTF-8 continuation byte.
fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The content of a log of this size after a text has arrived in pieces.
    fn log_in_pieces(text: &[u8], bytes_max: u64, piece: usize) -> (Vec<u8>, ByteCounts) {
        let mut file = Vec::new();
        let mut log = BoundedLog::new(&mut file, bytes_max);
        text.chunks(piece).for_each(|piece| log.push(piece));
        let (counts, error) = log.finish();
        assert!(error.is_none());
        (file, counts)
    }

    #[test]
    fn output_that_fits_is_kept_unchanged() {
        let text = b"\0\xffno line break at the end";
        for piece in 1..text.len() {
            let (file, counts) = log_in_pieces(text, 200, piece);
            assert_eq!((file.as_slice(), counts), (&text[..], ByteCounts { total: 26, dropped: 0 }));
        }
    }

    #[test]
    fn large_output_keeps_beginning_and_end_and_counts_the_rest() {
        let text: Vec<u8> =
            (0..10_000_u32).flat_map(|number| format!("{number:04}\n").into_bytes()).collect();
        for piece in [1, 7, 64, 5_000, 50_000] {
            let (file, counts) = log_in_pieces(&text, 1_064, piece);
            let file = String::from_utf8(file).unwrap();
            assert_eq!(counts, ByteCounts { total: 50_000, dropped: 49_000 }, "{piece}");
            let (head, tail) = file.split_once("[runner: 49000 bytes dropped here]\n").unwrap();
            assert_eq!((head.len(), tail.len()), (500, 500));
            assert!(head.starts_with("0000\n") && head.ends_with("0099\n"), "{head}");
            assert!(tail.starts_with("9900\n") && tail.ends_with("9999\n"), "{tail}");
        }
    }

    #[test]
    fn characters_at_the_cuts_stay_whole_and_the_counts_add_up() {
        for character in ["é", "€", "🦀"] {
            for shift in 0..8 {
                let text = format!("{}{}", "x".repeat(shift), character.repeat(400));
                for piece in [1, 2, 3, 5, 1_000] {
                    let (file, counts) = log_in_pieces(text.as_bytes(), 200, piece);
                    let file = String::from_utf8(file).expect("whole characters");
                    let marker = format!("\n[runner: {} bytes dropped here]\n", counts.dropped);
                    let (head, tail) = file.split_once(&marker).expect("a marker on its own line");
                    assert_eq!((head.len() + tail.len()) as u64 + counts.dropped, counts.total);
                    assert!(file.len() <= 200);
                }
            }
        }
    }

    #[test]
    fn bytes_that_are_not_text_are_cut_anywhere() {
        let (file, counts) = log_in_pieces(&[0x80; 1_000], 264, 10);
        assert!(file.len() <= 264 && counts.total == 1_000);
        let kept = file.iter().filter(|byte| **byte == 0x80).count() as u64;
        assert_eq!(kept + counts.dropped, 1_000);
    }

    #[test]
    fn a_limit_of_zero_still_counts() {
        let (file, counts) = log_in_pieces(&[b'x'; 500], 0, 100);
        assert_eq!((file, counts.dropped), (b"[runner: 500 bytes dropped here]\n".to_vec(), 500));
    }

    #[test]
    fn a_log_that_cannot_be_written_keeps_counting() {
        let mut small = [0; 10];
        let mut log = BoundedLog::new(&mut small[..], 1_000);
        (0..100).for_each(|_| log.push(b"0123456"));
        let (counts, error) = log.finish();
        assert_eq!((counts.total, error.unwrap().kind()), (700, io::ErrorKind::WriteZero));
    }
}
