//! How long a tree's written form is, told without writing it.

use super::Node;
use super::problem::NodeField;

/// A length that grows as nodes are added.
pub(super) struct SerializedLen {
    /// What it is if no text needs an escape.
    plain: usize,
    /// How much of that is text.
    text: usize,
}

/// The most bytes that a byte of text is written with: `\u001b`.
const ESCAPED_LEN_MAX: usize = 6;

/// The bytes around the root: `{`, the version, the root's key, `}`.
impl Default for SerializedLen {
    fn default() -> Self {
        Self { plain: "{\n  \"version\": 1,\n  \"root\": \n}\n".len(), text: 0 }
    }
}

impl SerializedLen {
    /// Adds a node on `level` (the root's is 1), but for its children.
    pub(super) fn add(&mut self, node: &Node, level: usize) {
        let (outer, inner) = (4 * level - 2, 4 * level);
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

    /// The whole length if it is above `max`. What the escapes cost is asked for only where it could be.
    pub(super) fn above(&self, max: usize, escapes: impl FnOnce() -> usize) -> Option<usize> {
        if self.at_most() <= max {
            return None;
        }
        Some(self.plain + escapes()).filter(|len| *len > max)
    }

    /// What the length is if every byte of text needs the longest escape.
    fn at_most(&self) -> usize {
        self.plain + self.text * (ESCAPED_LEN_MAX - 1)
    }
}

const NAMES_LEN: usize = "idordertitlegoalacceptancepassesattemptsmax_attemptschildren".len();

fn texts(node: &Node) -> impl Iterator<Item = &str> {
    let points = node.acceptance.iter().map(String::as_str);
    [node.id.as_str(), &node.title, &node.goal].into_iter().chain(points)
}

/// A list's brackets, commas and indentation.
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

/// What the escapes in the texts at and below a node cost beyond the texts themselves.
pub(super) fn escapes_below(node: &Node) -> usize {
    texts(node).map(escapes).sum::<usize>() + node.children.iter().map(escapes_below).sum::<usize>()
}

/// What a text's escapes cost beyond the text itself.
pub(super) fn escapes(text: &str) -> usize {
    let escape = |byte| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | b'\x08' | b'\x0c' => "\\".len(),
        0..b' ' => ESCAPED_LEN_MAX - 1,
        _ => 0,
    };
    if may_have_escapes(text) { text.bytes().map(escape).sum() } else { 0 }
}

/// Whether it is worth the time to look at each byte of a text. All are looked at on purpose: without a way out,
/// the processor takes many at once.
fn may_have_escapes(text: &str) -> bool {
    text.bytes().fold(false, |any, byte| any | (byte < b' ') | (byte == b'"') | (byte == b'\\'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tree::sample::{inner, leaf, passed, tree};

    /// The length by counting, told by a limit that is just too low.
    fn counted(root: &Node) -> Option<usize> {
        fn add(len: &mut SerializedLen, node: &Node, level: usize) {
            len.add(node, level);
            node.children.iter().for_each(|child| add(len, child, level + 1));
        }
        let mut len = SerializedLen::default();
        add(&mut len, root, 1);
        len.above(1, || escapes_below(root))
    }

    #[test]
    fn the_length_is_that_of_the_written_form() {
        let points =
            vec!["\"\\\n\r\t\u{8}\u{c}".to_owned(), "\0\u{1b}\u{1f}".to_owned(), "\u{7f}é日 /".to_owned()];
        let odd = Node {
            order: -1_000,
            title: "\"".to_owned(),
            goal: "\\".to_owned(),
            acceptance: points,
            attempts: 10,
            max_attempts: 999_999,
            ..leaf("odd")
        };
        let one_point = Node { acceptance: vec![String::new()], order: 9, ..passed("one") };
        let deep =
            Node { order: 10, ..inner("deep", vec![inner("er", vec![leaf("a"), leaf("b"), leaf("c")])]) };
        for root in [leaf("root"), passed("root"), inner("root", vec![odd, one_point, deep])] {
            assert_eq!(counted(&root), Some(tree(root.clone()).bytes().len()), "{root:?}");
        }
    }

    #[test]
    fn only_a_length_above_the_limit_is_told() {
        let root = Node { title: "\u{1b}".repeat(10), ..leaf("root") };
        let whole = tree(root.clone()).bytes().len();
        let mut len = SerializedLen::default();
        len.add(&root, 1);
        let escapes = || escapes_below(&root);
        assert_eq!(len.above(whole, escapes), None);
        assert_eq!(len.above(whole - 1, escapes), Some(whole));
        assert_eq!(len.above(10 * whole, escapes), None);
    }
}
