//! The difference between two versions of an object: which bytes of the old one to copy, and which to insert.
//!
//! A run changes a few lines of its plan in every iteration. Lines are matched as a whole, so the time is linear in the size.

use std::collections::BTreeMap;

use crate::varint;

/// Shorter lines occur too often to say where a copy begins.
const LINE_BYTES_MIN: usize = 16;
/// No object of a run is larger: a delta cannot fill the memory.
const OBJECT_BYTES_MAX: usize = 256 << 20;

/// The instructions that turn `old` into `new`.
pub(crate) fn delta(old: &[u8], new: &[u8]) -> Vec<u8> {
    let prefix = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let (old_rest, new_rest) = (tail(old, prefix), tail(new, prefix));
    let suffix = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let (old_middle, _) = old_rest.split_at(old_rest.len() - suffix);
    let (new_middle, _) = new_rest.split_at(new_rest.len() - suffix);
    let mut steps = DeltaSteps { new, out: Vec::new(), copy: 0..0, inserted: 0 };
    steps.copy(0..prefix);
    steps.copy_lines(old_middle, prefix, new_middle);
    steps.copy(old.len() - suffix..old.len());
    steps.flush_copy();
    steps.out
}

fn tail(bytes: &[u8], from: usize) -> &[u8] {
    bytes.get(from..).unwrap_or_default()
}

/// Instructions as they are found. Adjacent ones are merged.
struct DeltaSteps<'n> {
    new: &'n [u8],
    out: Vec<u8>,
    /// The part of the old version that is copied next.
    copy: std::ops::Range<usize>,
    /// How many bytes of the new version the instructions so far give, with the pending copy.
    inserted: usize,
}

impl DeltaSteps<'_> {
    fn copy(&mut self, range: std::ops::Range<usize>) {
        if range.is_empty() {
            return;
        }
        self.inserted += range.len();
        if self.copy.end == range.start && !self.copy.is_empty() {
            self.copy.end = range.end;
            return;
        }
        self.flush_copy();
        self.copy = range;
    }

    fn flush_copy(&mut self) {
        if !self.copy.is_empty() {
            varint::write(&mut self.out, self.copy.len() << 1);
            varint::write(&mut self.out, self.copy.start);
            self.copy = 0..0;
        }
    }

    fn insert(&mut self, len: usize) {
        if len == 0 {
            return;
        }
        self.flush_copy();
        varint::write(&mut self.out, len << 1 | 1);
        let bytes = self.new.get(self.inserted..self.inserted + len).unwrap_or_default();
        self.out.extend_from_slice(bytes);
        self.inserted += len;
    }

    /// Copies the lines that the old version has, wherever they are in it.
    fn copy_lines(&mut self, old: &[u8], old_start: usize, new: &[u8]) {
        let mut known: BTreeMap<&[u8], usize> = BTreeMap::new();
        let mut at = 0;
        for line in old.split_inclusive(|byte| *byte == b'\n') {
            if line.len() >= LINE_BYTES_MIN {
                known.entry(line).or_insert(at);
            }
            at += line.len();
        }
        let mut next = None;
        let mut pending = 0;
        for line in new.split_inclusive(|byte| *byte == b'\n') {
            let follows = next.filter(|at| tail(old, *at).starts_with(line));
            let Some(at) = follows.or_else(|| known.get(line).copied()) else {
                pending += line.len();
                next = None;
                continue;
            };
            self.insert(pending);
            pending = 0;
            self.copy(old_start + at..old_start + at + line.len());
            next = Some(at + line.len());
        }
        self.insert(pending);
    }
}

/// The new version; none if the instructions are not those of a delta for this old version.
pub(crate) fn apply(old: &[u8], mut steps: &[u8]) -> Option<Vec<u8>> {
    let mut new = Vec::new();
    while !steps.is_empty() {
        let head = varint::read(&mut steps)?;
        let len = head >> 1;
        let part = if head & 1 == 0 {
            let start = varint::read(&mut steps)?;
            old.get(start..start.checked_add(len)?)?
        } else {
            let (part, rest) = steps.split_at_checked(len)?;
            steps = rest;
            part
        };
        if new.len() + part.len() > OBJECT_BYTES_MAX {
            return None;
        }
        new.extend_from_slice(part);
    }
    Some(new)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_version_is_its_delta_applied_to_the_old_one() {
        let plan: String = (0..200).map(|nth| format!("    \"title\": \"task number {nth}\",\n")).collect();
        let edited = plan.replace("number 7\"", "number seven\"").replace("number 150\"", "number 15O\"");
        let (front, back) = plan.split_at(plan.len() / 2);
        let swapped = format!("{back}{front}");
        let versions = ["", "x", "no line feed", &plan, &edited, &swapped, "\n\n\n", front];
        for old in versions {
            for new in versions {
                let steps = delta(old.as_bytes(), new.as_bytes());
                assert_eq!(apply(old.as_bytes(), &steps).as_deref(), Some(new.as_bytes()), "{old:?} {new:?}");
            }
        }
        assert!(delta(plan.as_bytes(), edited.as_bytes()).len() < 100, "two changed lines are a small delta");
        assert!(delta(plan.as_bytes(), swapped.as_bytes()).len() < 100, "moved lines are copied");
    }

    #[test]
    fn steps_outside_of_the_old_version_are_refused() {
        let mut beyond = Vec::new();
        varint::write(&mut beyond, 4 << 1);
        varint::write(&mut beyond, 8);
        for steps in [&[0x80][..], &beyond, &[9, 1]] {
            assert_eq!(apply(b"0123456789", steps), None);
        }
    }
}
