//! The errors of a tree, each with what to change.

use std::fmt;
use std::ops::RangeInclusive;

use serde::Serialize;
use thiserror::Error;

use super::{BYTES_MAX, DEPTH_MAX, NODES_MAX, Node};
use crate::model::id::IdError;

/// One error in a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TreeProblem {
    /// The path of the node; a node without a valid id appears as `children[2]`. Empty for the document as a whole.
    pub node: String,
    #[serde(serialize_with = "as_text")]
    pub fault: TreeError,
}

fn as_text<S: serde::Serializer>(fault: &TreeError, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(fault)
}

impl TreeProblem {
    /// An error of the document as a whole.
    pub(super) fn of_document(fault: TreeError) -> Self {
        Self { node: String::new(), fault }
    }
}

impl fmt::Display for TreeProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.node.is_empty() {
            write!(f, "{}: ", self.node)?;
        }
        write!(f, "{}", self.fault)
    }
}

/// The types of JSON values.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum JsonKind {
    #[error("null")]
    Null,
    #[error("true or false")]
    Bool,
    /// A number with a fraction, or out of range.
    #[error("a number")]
    Number,
    #[error("an integer")]
    Integer,
    #[error("a string")]
    String,
    #[error("an array")]
    Array,
    #[error("an object")]
    Object,
}

/// What can be wrong with a tree.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TreeError {
    #[error("the document has {0} bytes: at most {BYTES_MAX} are allowed")]
    TooLarge(usize),
    /// The canonical form is too large; the document may be smaller.
    #[error("the tree has {0} bytes in canonical form: at most {BYTES_MAX} are allowed, so shorten it")]
    CanonicalTooLarge(usize),
    #[error("line {line}, column {column}: {what}")]
    Syntax { line: usize, column: usize, what: String },
    #[error("`{0}` is missing: add it")]
    Missing(&'static str),
    #[error("`{}` is not a field here{}", .key.escape_debug(), remove_or_rename(*.meant))]
    Unknown {
        key: String,
        /// The nearest known field.
        meant: Option<&'static str>,
    },
    #[error("`{0}` is a duplicate: remove one of the two")]
    Twice(&'static str),
    #[error("`{field}` must be {expected}, found {found}: change the value")]
    WrongKind {
        /// The field, with its index in a list.
        field: String,
        expected: JsonKind,
        found: JsonKind,
    },
    #[error("`{field}` must be from {} to {}, found {found}: change the value", .bounds.start(), .bounds.end())]
    OutOfRange {
        field: &'static str,
        bounds: RangeInclusive<i64>,
        /// The number, as text.
        found: String,
    },
    #[error("`id` {id:?} {fault}: choose another id")]
    BadId { id: String, fault: IdError },
    #[error("`id` is also the id of {other}: give one of the two another id")]
    DuplicateId {
        /// The path of the first node with this id.
        other: String,
    },
    #[error("is on level {}: at most {DEPTH_MAX} levels are allowed, so make the tree flatter", DEPTH_MAX + 1)]
    TooDeep,
    #[error("the tree has more than {NODES_MAX} nodes: remove some")]
    TooManyNodes,
    #[error("`children` are out of order: `{late}` belongs before `{early}` (sorted by order, then by id)")]
    Unsorted {
        /// The sibling that comes too early.
        early: String,
        /// The next sibling, which belongs before it.
        late: String,
    },
    #[error("`attempts` is {attempts}, above `max_attempts` {max}: lower it to {max} or less")]
    AttemptsOverMax { attempts: u32, max: u32 },
    /// A parent passes although a child is open.
    #[error("`passes` is true although its child `{open}` is open: set it to false")]
    PassesTooEarly {
        /// The id of the first open child.
        open: String,
    },
    /// A parent is open although all its children pass.
    #[error("`passes` is false although all its children pass: set it to true")]
    PassesTooLate,
    /// The number of further errors, which are not listed.
    #[error("… and {0} more errors")]
    Omitted(usize),
}

fn remove_or_rename(meant: Option<&str>) -> String {
    meant.map_or_else(|| ": remove it".to_owned(), |meant| format!("; did you mean `{meant}`?"))
}

/// The fields of a node, in the order of the canonical form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum NodeField {
    Id,
    Order,
    Title,
    Goal,
    Acceptance,
    Passes,
    Attempts,
    MaxAttempts,
    Children,
}

impl NodeField {
    /// All fields, with their names in the document.
    pub(super) const ALL: [(&str, Self); 9] = [
        ("id", Self::Id),
        ("order", Self::Order),
        ("title", Self::Title),
        ("goal", Self::Goal),
        ("acceptance", Self::Acceptance),
        ("passes", Self::Passes),
        ("attempts", Self::Attempts),
        ("max_attempts", Self::MaxAttempts),
        ("children", Self::Children),
    ];
}

/// The position of a node: the index of the child at each level. The root's is empty.
pub(super) type Position = Vec<usize>;

/// The most errors to list. A document full of errors must not exhaust the memory.
const ERRORS_MAX: usize = 10_000;

/// Collects errors by position, until the ids of the path are known.
#[derive(Default)]
pub(super) struct FaultCollector {
    document: Vec<TreeError>,
    nodes: Vec<(FaultLocation, TreeError)>,
    /// How many of `nodes`, once sorted, come from decoding and not from a rule.
    undecoded: usize,
    omitted: usize,
    is_truncated: bool,
}

/// A node's position, and which part of the node is wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FaultLocation {
    position: Position,
    part: FaultPart,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FaultPart {
    Whole,
    Field(NodeField),
    /// No single field, such as an unknown key.
    Other,
}

impl FaultCollector {
    /// Adds an error of the document as a whole.
    pub(super) fn add_to_document(&mut self, fault: TreeError) {
        if self.document.len() < ERRORS_MAX {
            self.document.push(fault);
        } else {
            self.omitted += 1;
        }
    }

    /// Adds an error in a field of the node at `position`.
    pub(super) fn add_to_field(&mut self, position: &[usize], field: NodeField, fault: TreeError) {
        self.add(FaultLocation { position: position.to_vec(), part: FaultPart::Field(field) }, fault);
    }

    /// Adds an error of the node at `position` that concerns no single field.
    pub(super) fn add_to_node(&mut self, position: &[usize], fault: TreeError) {
        self.add(FaultLocation { position: position.to_vec(), part: FaultPart::Other }, fault);
    }

    /// Adds that a value is not a node.
    pub(super) fn add_not_a_node(&mut self, position: &[usize], found: JsonKind) {
        let field = "the node".to_owned();
        let location = FaultLocation { position: position.to_vec(), part: FaultPart::Whole };
        self.add(location, TreeError::WrongKind { field, expected: JsonKind::Object, found });
    }

    /// Adds that there are too many nodes, and that the rest was not decoded.
    pub(super) fn add_too_many_nodes(&mut self) {
        if !self.is_truncated {
            self.add_to_document(TreeError::TooManyNodes);
        }
        self.is_truncated = true;
    }

    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.document.is_empty()
    }

    /// Marks the end of decoding: the fields with errors so far have no value.
    pub(super) fn end_decoding(&mut self) {
        self.sort();
        self.undecoded = self.nodes.len();
    }

    /// Whether the whole tree was decoded, so that rules about it can be checked.
    pub(super) fn is_complete(&self) -> bool {
        !self.is_truncated && self.omitted == 0
    }

    /// Whether a field could not be decoded, so that rules about its value do not apply.
    pub(super) fn is_undecoded(&self, position: &[usize], field: NodeField) -> bool {
        let undecoded = self.nodes.get(..self.undecoded).unwrap_or_default();
        let contains = |part| {
            undecoded
                .binary_search_by(|(one, _)| (one.position.as_slice(), one.part).cmp(&(position, part)))
                .is_ok()
        };
        !undecoded.is_empty() && (contains(FaultPart::Whole) || contains(FaultPart::Field(field)))
    }

    /// The errors in the order of the document, each with the path of its node.
    pub(super) fn into_result(mut self, root: &Node) -> Result<(), Vec<TreeProblem>> {
        if self.is_empty() {
            return Ok(());
        }
        self.sort();
        let mut problems: Vec<TreeProblem> =
            self.document.into_iter().map(TreeProblem::of_document).collect();
        for (location, fault) in self.nodes {
            problems.push(TreeProblem { node: path_at(root, &location.position), fault });
        }
        if self.omitted > 0 {
            problems.push(TreeProblem::of_document(TreeError::Omitted(self.omitted)));
        }
        Err(problems)
    }

    fn add(&mut self, location: FaultLocation, fault: TreeError) {
        if self.nodes.len() < ERRORS_MAX {
            self.nodes.push((location, fault));
        } else {
            self.omitted += 1;
        }
    }

    fn sort(&mut self) {
        self.nodes.sort_by(|(one, _), (other, _)| one.cmp(other));
    }
}

/// The path of the node at a position.
pub(super) fn path_at(root: &Node, position: &[usize]) -> String {
    let name = |node: &Node, index: Option<usize>| match index {
        _ if !node.id.is_invalid() => node.id.to_string(),
        Some(index) => format!("children[{index}]"),
        None => "(root)".to_owned(),
    };
    let mut path = vec![name(root, None)];
    let mut node = Some(root);
    for index in position {
        node = node.and_then(|node| node.children.get(*index));
        path.push(node.map_or_else(|| format!("children[{index}]"), |node| name(node, Some(*index))));
    }
    path.join("/")
}
