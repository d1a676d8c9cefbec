//! A log of limited size: the beginning and the end of what was written, and a line that says how much is missing.
//!
//! The beginning goes to the file as it arrives, so that anyone can follow it. The end is kept in memory, in a ring
//! of fixed size, and written when the log is closed. Bytes are kept as they are; where something was left out the
//! cut falls between characters, so that a log of readable text stays readable.

use std::collections::VecDeque;
use std::io::{self, Write};

/// The end that is kept of a log that grew too large.
const TAIL_BYTES_MAX: u64 = 1 << 20;
/// Room for the line that says how much is missing, and for the rest of a character at the cut.
const MARKER_BYTES_MAX: u64 = 64;
/// Bytes that may follow the first one of a character.
const FOLLOWING_MAX: u8 = 3;

/// How many bytes came, and how many of them the log does not hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByteCounts {
    /// All that came.
    pub seen: u64,
    /// Those left out between the beginning and the end that were kept.
    pub dropped: u64,
}

/// How a size is shared between beginning and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HeadAndTail {
    pub(super) head: u64,
    pub(super) tail: u64,
}

impl HeadAndTail {
    pub(super) fn of(bytes_max: u64) -> Self {
        let room = bytes_max.saturating_sub(MARKER_BYTES_MAX);
        let tail = (room / 2).min(TAIL_BYTES_MAX);
        Self { head: room - tail, tail }
    }
}

/// A log under way.
#[derive(Debug)]
pub(super) struct BoundedLog<W> {
    to: W,
    head_left: u64,
    /// How many bytes may still finish the character at the cut.
    following_left: u8,
    last_of_head: Option<u8>,
    tail: VecDeque<u8>,
    tail_max: usize,
    bytes: ByteCounts,
    fault: Option<io::Error>,
}

impl<W: Write> BoundedLog<W> {
    pub(super) fn new(to: W, bytes_max: u64) -> Self {
        let shares = HeadAndTail::of(bytes_max);
        Self {
            to,
            head_left: shares.head,
            following_left: FOLLOWING_MAX,
            last_of_head: None,
            tail: VecDeque::new(),
            tail_max: usize::try_from(shares.tail).unwrap_or(usize::MAX),
            bytes: ByteCounts::default(),
            fault: None,
        }
    }

    /// Takes what came. A log that cannot be written any more goes on counting: the writer must not wait for it.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.seen = self.bytes.seen.saturating_add(bytes.len() as u64);
        let (head, rest) = bytes.split_at(self.share_of_head(bytes));
        self.write(head);
        self.keep(rest);
    }

    /// Writes what was kept of the end.
    pub(super) fn finish(mut self) -> (ByteCounts, Option<io::Error>) {
        if self.bytes.dropped > 0 {
            let cut =
                self.tail.iter().take(FOLLOWING_MAX.into()).take_while(|byte| is_following(**byte)).count();
            self.tail.drain(..cut);
            self.bytes.dropped += cut as u64;
            let line_break = if matches!(self.last_of_head, None | Some(b'\n')) { "" } else { "\n" };
            let marker = format!("{line_break}[runner: {} bytes dropped here]\n", self.bytes.dropped);
            self.write(marker.as_bytes());
        }
        let tail = std::mem::take(&mut self.tail);
        let (front, back) = tail.as_slices();
        self.write(front);
        self.write(back);
        (self.bytes, self.fault)
    }

    /// How many of these bytes belong to the beginning: what fits, and the rest of a character that just does not.
    fn share_of_head(&mut self, bytes: &[u8]) -> usize {
        let fits = usize::try_from(self.head_left).unwrap_or(usize::MAX).min(bytes.len());
        self.head_left -= fits as u64;
        if self.head_left > 0 {
            return fits;
        }
        let mut share = fits;
        for byte in bytes.iter().skip(fits) {
            if self.following_left == 0 || !is_following(*byte) {
                self.following_left = 0;
                break;
            }
            self.following_left -= 1;
            share += 1;
        }
        share
    }

    fn write(&mut self, bytes: &[u8]) {
        self.last_of_head = bytes.last().copied().or(self.last_of_head);
        if self.fault.is_none() && !bytes.is_empty() {
            self.fault = self.to.write_all(bytes).err();
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        let newest = bytes.len().min(self.tail_max);
        let (older, bytes) = bytes.split_at(bytes.len() - newest);
        let too_many = (self.tail.len() + bytes.len()).saturating_sub(self.tail_max);
        self.tail.drain(..too_many);
        self.tail.extend(bytes);
        self.bytes.dropped = self.bytes.dropped.saturating_add((older.len() + too_many) as u64);
    }
}

/// Whether a byte is inside a character, in UTF-8.
fn is_following(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a log of this size holds of a text that arrives in pieces.
    fn logged(text: &[u8], bytes_max: u64, piece: usize) -> (Vec<u8>, ByteCounts) {
        let mut file = Vec::new();
        let mut log = BoundedLog::new(&mut file, bytes_max);
        text.chunks(piece).for_each(|piece| log.push(piece));
        let (bytes, fault) = log.finish();
        assert!(fault.is_none());
        (file, bytes)
    }

    #[test]
    fn what_fits_is_kept_as_it_is() {
        let text = b"\0\xffno line break at the end";
        for piece in 1..text.len() {
            let (file, bytes) = logged(text, 200, piece);
            assert_eq!((file.as_slice(), bytes), (&text[..], ByteCounts { seen: 26, dropped: 0 }));
        }
    }

    #[test]
    fn of_more_the_beginning_and_the_end_are_kept_and_the_rest_is_counted() {
        let text: Vec<u8> =
            (0..10_000_u32).flat_map(|number| format!("{number:04}\n").into_bytes()).collect();
        for piece in [1, 7, 64, 5_000, 50_000] {
            let (file, bytes) = logged(&text, 1_064, piece);
            let file = String::from_utf8(file).unwrap();
            assert_eq!(bytes, ByteCounts { seen: 50_000, dropped: 49_000 }, "{piece}");
            let (head, tail) = file.split_once("[runner: 49000 bytes dropped here]\n").unwrap();
            assert_eq!((head.len(), tail.len()), (500, 500));
            assert!(head.starts_with("0000\n") && head.ends_with("0099\n"), "{head}");
            assert!(tail.starts_with("9900\n") && tail.ends_with("9999\n"), "{tail}");
        }
    }

    #[test]
    fn a_character_on_any_cut_stays_whole_and_the_numbers_add_up() {
        for character in ["é", "€", "🦀"] {
            for shift in 0..8 {
                let text = format!("{}{}", "x".repeat(shift), character.repeat(400));
                for piece in [1, 2, 3, 5, 1_000] {
                    let (file, bytes) = logged(text.as_bytes(), 200, piece);
                    let file = String::from_utf8(file).expect("whole characters");
                    let marker = format!("\n[runner: {} bytes dropped here]\n", bytes.dropped);
                    let (head, tail) = file.split_once(&marker).expect("a marker on its own line");
                    assert_eq!((head.len() + tail.len()) as u64 + bytes.dropped, bytes.seen);
                    assert!(file.len() <= 200);
                }
            }
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_cut_anywhere() {
        let (file, bytes) = logged(&[0x80; 1_000], 264, 10);
        assert!(file.len() <= 264 && bytes.seen == 1_000);
        let kept = file.iter().filter(|byte| **byte == 0x80).count() as u64;
        assert_eq!(kept + bytes.dropped, 1_000);
    }

    #[test]
    fn no_room_at_all_still_counts() {
        let (file, bytes) = logged(&[b'x'; 500], 0, 100);
        assert_eq!((file, bytes.dropped), (b"[runner: 500 bytes dropped here]\n".to_vec(), 500));
    }

    #[test]
    fn a_log_that_cannot_be_written_goes_on_counting() {
        let mut small = [0; 10];
        let mut log = BoundedLog::new(&mut small[..], 1_000);
        (0..100).for_each(|_| log.push(b"0123456"));
        let (bytes, fault) = log.finish();
        assert_eq!((bytes.seen, fault.unwrap().kind()), (700, io::ErrorKind::WriteZero));
    }
}
