//! The length of a tree's canonical form, computed without writing it.

use super::Node;
use super::problem::NodeField;

/// The length so far; grows with each node.
pub(super) struct SerializedLen {
    /// The length if no text needs an escape.
    plain: usize,
    /// The part of it that is text.
    text: usize,
}

/// The longest escape of a byte: `\u001b`.
const ESCAPED_LEN_MAX: usize = 6;

/// The bytes around the root: `{`, the version, the root's key, `}`.
impl Default for SerializedLen {
    fn default() -> Self {
        Self { plain: "{\n  \"version\": 1,\n  \"root\": \n}\n".len(), text: 0 }
    }
}

impl SerializedLen {
    /// Adds a node on `level` (the root's is 1) without its children.
    pub(super) fn add(&mut self, node: &Node, level: usize) {
        let outer = 4 * level - 2;
        let inner = 4 * level;
        let text: usize = texts(node).map(str::len).sum();
        let quotes = 2 * (3 + node.acceptance.len());
        let numbers = digits(node.order.unsigned_abs())
            + usize::from(node.order < 0)
            + digits(node.attempts.into())
            + digits(node.max_attempts.into());
        let passes = if node.passes { "true".len() } else { "false".len() };
        let lists = list_len(node.acceptance.len(), inner) + list_len(node.children.len(), inner);
        let names = NAMES_LEN + NodeField::ALL.len() * ("\n\"\": ".len() + inner) + NodeField::ALL.len() - 1;
        self.text += text;
        self.plain += "{\n}".len() + outer + names + numbers + passes + lists + quotes + text;
    }

    /// The length if it is above `max`. Calls `escapes`, the extra bytes of all escapes, only if they matter.
    pub(super) fn above(&self, max: usize, escapes: impl FnOnce() -> usize) -> Option<usize> {
        if self.upper_bound() <= max {
            return None;
        }
        Some(self.plain + escapes()).filter(|len| *len > max)
    }

    /// The length if every byte of text needed the longest escape.
    fn upper_bound(&self) -> usize {
        self.plain + self.text * (ESCAPED_LEN_MAX - 1)
    }
}

const NAMES_LEN: usize = "idordertitlegoalacceptancepassesattemptsmax_attemptschildren".len();

fn texts(node: &Node) -> impl Iterator<Item = &str> {
    let criteria = node.acceptance.iter().map(String::as_str);
    [node.id.as_str(), &node.title, &node.goal].into_iter().chain(criteria)
}

/// The brackets, commas and indentation of a list.
fn list_len(items: usize, indent: usize) -> usize {
    if items == 0 {
        "[]".len()
    } else {
        "[\n]".len() + indent + items * ("\n".len() + indent + 2) + items - 1
    }
}

fn digits(number: u64) -> usize {
    number.checked_ilog10().map_or(1, |log| log as usize + 1)
}

/// The extra bytes of escapes in the texts of a subtree.
pub(super) fn escapes_below(node: &Node) -> usize {
    texts(node).map(escapes).sum::<usize>() + node.children.iter().map(escapes_below).sum::<usize>()
}

/// The extra bytes of escapes in a text.
pub(super) fn escapes(text: &str) -> usize {
    let escape = |byte| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | b'\x08' | b'\x0c' => "\\".len(),
        0..b' ' => ESCAPED_LEN_MAX - 1,
        _ => 0,
    };
    if may_have_escapes(text) { text.bytes().map(escape).sum() } else { 0 }
}

/// Whether a text may need escapes. Checks every byte, without an early exit, so that the compiler can vectorize the loop.
fn may_have_escapes(text: &str) -> bool {
    text.bytes().fold(false, |any, byte| any | (byte < b' ') | (byte == b'"') | (byte == b'\\'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tree::sample::{inner, leaf, passed, tree};

    fn computed(root: &Node) -> Option<usize> {
        fn add(len: &mut SerializedLen, node: &Node, level: usize) {
            len.add(node, level);
            node.children.iter().for_each(|child| add(len, child, level + 1));
        }
        let mut len = SerializedLen::default();
        add(&mut len, root, 1);
        len.above(1, || escapes_below(root))
    }

    #[test]
    fn the_length_is_that_of_the_canonical_form() {
        let criteria =
            vec!["\"\\\n\r\t\u{8}\u{c}".to_owned(), "\0\u{1b}\u{1f}".to_owned(), "\u{7f}é日 /".to_owned()];
        let odd = Node {
            order: -1_000,
            title: "\"".to_owned(),
            goal: "\\".to_owned(),
            acceptance: criteria,
            attempts: 10,
            max_attempts: 999_999,
            ..leaf("odd")
        };
        let one_criterion = Node { acceptance: vec![String::new()], order: 9, ..passed("one") };
        let deep =
            Node { order: 10, ..inner("deep", vec![inner("er", vec![leaf("a"), leaf("b"), leaf("c")])]) };
        for root in [leaf("root"), passed("root"), inner("root", vec![odd, one_criterion, deep])] {
            assert_eq!(computed(&root), Some(tree(root.clone()).bytes().len()), "{root:?}");
        }
    }

    #[test]
    fn only_a_length_above_the_limit_is_returned() {
        let root = Node { title: "\u{1b}".repeat(10), ..leaf("root") };
        let len_max = tree(root.clone()).bytes().len();
        let mut len = SerializedLen::default();
        len.add(&root, 1);
        let escapes = || escapes_below(&root);
        assert_eq!(len.above(len_max, escapes), None);
        assert_eq!(len.above(len_max - 1, escapes), Some(len_max));
        assert_eq!(len.above(10 * len_max, escapes), None);
    }
}
