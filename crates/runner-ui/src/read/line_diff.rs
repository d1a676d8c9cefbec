//! The difference between two texts as a patch in git's format. It starts no program: git would run filters that an agent
//! configured.

use std::fmt::Write as _;

/// With more differences than this, the whole middle counts as replaced.
const EDITS_MAX: usize = 1_500;

/// How a line of either text becomes part of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEdit {
    Same,
    Removed,
    Added,
}

/// The patch of a file, without its header lines, and how many lines it adds and removes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct TextPatch {
    pub(crate) hunks: String,
    pub(crate) added: u64,
    pub(crate) removed: u64,
}

/// Compares two texts line by line, with `context` unchanged lines around each change.
pub(crate) fn text_patch(before: &str, after: &str, context: usize) -> TextPatch {
    let old: Vec<&str> = before.lines().collect();
    let new: Vec<&str> = after.lines().collect();
    let edits = line_edits(&old, &new);
    let count = |kind| {
        let edits = edits.iter().filter(|edit| **edit == kind).count();
        u64::try_from(edits).unwrap_or(u64::MAX)
    };
    let (added, removed) = (count(LineEdit::Added), count(LineEdit::Removed));
    TextPatch { hunks: hunks(&old, &new, &edits, context), added, removed }
}

/// The edits that turn `old` into `new`.
fn line_edits(old: &[&str], new: &[&str]) -> Vec<LineEdit> {
    let prefix = old.iter().zip(new).take_while(|(one, other)| one == other).count();
    let (old_rest, new_rest) = (old.get(prefix..).unwrap_or_default(), new.get(prefix..).unwrap_or_default());
    let suffix =
        old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(one, other)| one == other).count();
    let old_middle = old_rest.get(..old_rest.len() - suffix).unwrap_or_default();
    let new_middle = new_rest.get(..new_rest.len() - suffix).unwrap_or_default();
    let mut edits = vec![LineEdit::Same; prefix];
    edits.extend(shortest_edits(old_middle, new_middle).unwrap_or_else(|| {
        let mut replaced = vec![LineEdit::Removed; old_middle.len()];
        replaced.resize(old_middle.len() + new_middle.len(), LineEdit::Added);
        replaced
    }));
    edits.resize(edits.len() + suffix, LineEdit::Same);
    edits
}

/// The furthest position on each diagonal: a point of Myers' search.
type Furthest = Vec<usize>;

/// The shortest edits by Myers' greedy search; `None` if there are too many.
fn shortest_edits(old: &[&str], new: &[&str]) -> Option<Vec<LineEdit>> {
    let most = (old.len() + new.len()).min(EDITS_MAX);
    let mut steps: Vec<Furthest> = Vec::new();
    // Diagonal k is at index k + d + 1 of the step with d edits.
    let mut furthest: Furthest = vec![0, 0, 0];
    for edits in 0..=most {
        let mut next: Furthest = vec![0; 2 * edits + 5];
        for index in (0..=edits).map(|nth| 2 * nth) {
            let at = |offset: usize| furthest.get(index + offset).copied().unwrap_or_default();
            // From the diagonal above by an added line, or from the one below by a removed one.
            let is_down = index == 0 || (index != 2 * edits && at(0) < at(2));
            let mut x = match (edits, is_down) {
                (0, _) => 0,
                (_, true) => at(2),
                (_, false) => at(0) + 1,
            };
            let mut y = (x + edits).saturating_sub(index);
            while old.get(x).is_some() && old.get(x) == new.get(y) {
                (x, y) = (x + 1, y + 1);
            }
            if let Some(place) = next.get_mut(index + 2) {
                *place = x;
            }
            if x >= old.len() && y >= new.len() {
                steps.push(furthest);
                return Some(walked_back(&steps, old.len(), new.len()));
            }
        }
        steps.push(std::mem::replace(&mut furthest, next));
    }
    None
}

/// The edits of the path that reached the end, from the positions of every step.
fn walked_back(steps: &[Furthest], old_lines: usize, new_lines: usize) -> Vec<LineEdit> {
    let (mut x, mut y) = (old_lines, new_lines);
    let mut edits = Vec::new();
    for (count, furthest) in steps.iter().enumerate().rev() {
        if count == 0 {
            break;
        }
        let index = (x + count).saturating_sub(y);
        let at = |offset: usize| furthest.get(index + offset).copied().unwrap_or_default();
        let is_down = index == 0 || (index != 2 * count && at(0) < at(2));
        let start = if is_down { at(2) } else { at(0) + 1 };
        while x > start {
            edits.push(LineEdit::Same);
            (x, y) = (x - 1, y.saturating_sub(1));
        }
        if is_down {
            edits.push(LineEdit::Added);
            y = y.saturating_sub(1);
        } else {
            edits.push(LineEdit::Removed);
            x = x.saturating_sub(1);
        }
    }
    edits.resize(edits.len() + x, LineEdit::Same);
    edits.reverse();
    edits
}

/// The changes with their context, in git's format.
fn hunks(old: &[&str], new: &[&str], edits: &[LineEdit], context: usize) -> String {
    let changed: Vec<usize> =
        edits.iter().enumerate().filter(|(_, edit)| **edit != LineEdit::Same).map(|(at, _)| at).collect();
    let mut text = String::new();
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for at in changed {
        let (from, to) = (at.saturating_sub(context), at.saturating_add(context + 1).min(edits.len()));
        match ranges.last_mut().filter(|(_, end)| *end >= from) {
            Some((_, end)) => *end = to,
            None => ranges.push((from, to)),
        }
    }
    let (mut old_at, mut new_at, mut done) = (0, 0, 0);
    for (from, to) in ranges {
        let skipped = edits.get(done..from).unwrap_or_default().len();
        (old_at, new_at, done) = (old_at + skipped, new_at + skipped, to);
        let part = edits.get(from..to).unwrap_or_default();
        let old_count = part.iter().filter(|edit| **edit != LineEdit::Added).count();
        let new_count = part.iter().filter(|edit| **edit != LineEdit::Removed).count();
        let start = |at: usize, count: usize| if count == 0 { at } else { at + 1 };
        let (old_start, new_start) = (start(old_at, old_count), start(new_at, new_count));
        let _ = writeln!(text, "@@ -{old_start},{old_count} +{new_start},{new_count} @@");
        for edit in part {
            let (sign, line) = match edit {
                LineEdit::Same => (' ', old.get(old_at)),
                LineEdit::Removed => ('-', old.get(old_at)),
                LineEdit::Added => ('+', new.get(new_at)),
            };
            let _ = writeln!(text, "{sign}{}", line.copied().unwrap_or_default());
            old_at += usize::from(*edit != LineEdit::Added);
            new_at += usize::from(*edit != LineEdit::Removed);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Applies edits, to check that they turn one text into the other.
    fn applied(old: &[&str], new: &[&str]) -> (Vec<String>, usize) {
        let edits = line_edits(old, new);
        let (mut from, mut to, mut result, mut changes) = (0, 0, Vec::new(), 0);
        for edit in edits {
            match edit {
                LineEdit::Same => {
                    assert_eq!(old.get(from), new.get(to));
                    result.push(old[from].to_owned());
                    (from, to) = (from + 1, to + 1);
                }
                LineEdit::Removed => (from, changes) = (from + 1, changes + 1),
                LineEdit::Added => {
                    result.push(new[to].to_owned());
                    (to, changes) = (to + 1, changes + 1);
                }
            }
        }
        assert_eq!((from, to), (old.len(), new.len()));
        (result, changes)
    }

    #[test]
    fn edits_turn_one_text_into_the_other_and_are_the_fewest() {
        for (old, new, fewest) in [
            ("", "", 0),
            ("a", "a", 0),
            ("", "ab", 2),
            ("ab", "", 2),
            ("abcabba", "cbabac", 5),
            ("abcdefgh", "abXdefYh", 4),
            ("aaaa", "aa", 2),
            ("xaxbxc", "abc", 3),
        ] {
            let split =
                |text: &'static str| text.split("").filter(|part| !part.is_empty()).collect::<Vec<_>>();
            let (old, new) = (split(old), split(new));
            let (result, changes) = applied(&old, &new);
            assert_eq!(result, new, "{old:?}");
            assert_eq!(changes, fewest, "{old:?} to {new:?}");
        }
    }

    #[test]
    fn random_texts_are_turned_into_each_other() {
        let mut seed = 7_u64;
        let mut next = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..300 {
            let mut text = |lines: u64| -> Vec<&str> {
                (0..lines)
                    .map(|_| if next(3) == 0 { "a" } else { ["b", "c"][usize::from(next(2) == 0)] })
                    .collect()
            };
            let (old, new) = (text(12), text(9));
            assert_eq!(applied(&old, &new).0, new, "{old:?}");
        }
    }

    #[test]
    fn hunks_have_the_numbers_of_both_texts() {
        let before: String = (1..=20).map(|nth| format!("{nth}\n")).collect();
        let after = before.replace("\n10\n", "\nten\nmore\n");
        let patch = text_patch(&before, &after, 1);
        assert_eq!(patch.hunks, "@@ -9,3 +9,4 @@\n 9\n-10\n+ten\n+more\n 11\n");
        assert_eq!((patch.added, patch.removed), (2, 1));
        assert_eq!(text_patch("", "a\nb\n", 3).hunks, "@@ -0,0 +1,2 @@\n+a\n+b\n");
        assert_eq!(text_patch("same", "same", 3), TextPatch::default());
        let many: String = (0..5_000).map(|nth| format!("{nth}\n")).collect();
        let others: String = (0..5_000).map(|nth| format!("x{nth}\n")).collect();
        let patch = text_patch(&many, &others, 3);
        assert_eq!((patch.added, patch.removed), (5_000, 5_000));
    }
}
