//! What can be wrong with a tree, in words that say what to change.

use std::fmt;
use std::ops::RangeInclusive;

use serde::Serialize;
use thiserror::Error;

use super::{BYTES_MAX, DEPTH_MAX, NODES_MAX, Node};
use crate::model::id::IdError;

/// One fault in a tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TreeProblem {
    /// The ids from the root to the node; a node without a readable id stands as `children[2]`. Empty for
    /// the document as a whole.
    pub node: String,
    /// What is wrong there.
    #[serde(serialize_with = "as_text")]
    pub fault: TreeError,
}

fn as_text<S: serde::Serializer>(fault: &TreeError, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(fault)
}

impl fmt::Display for TreeProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.node.is_empty() {
            write!(f, "{}: ", self.node)?;
        }
        write!(f, "{}", self.fault)
    }
}

/// The kinds of JSON values.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum JsonKind {
    /// `null`
    #[error("null")]
    Null,
    /// `true` or `false`
    #[error("true or false")]
    Bool,
    /// A number with a fraction, or too large.
    #[error("a number")]
    Number,
    /// A number without a fraction.
    #[error("a whole number")]
    Whole,
    /// A text.
    #[error("a string")]
    String,
    /// A list.
    #[error("an array")]
    Array,
    /// An object.
    #[error("an object")]
    Object,
}

/// What can be wrong.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TreeError {
    /// More bytes than a tree may have.
    #[error("the document has {0} bytes: at most {BYTES_MAX} are allowed")]
    TooLarge(usize),
    /// More bytes than a tree may have, in the form that the runner writes.
    #[error("the tree has {0} bytes once it is written out: at most {BYTES_MAX} are allowed, so shorten it")]
    WrittenTooLarge(usize),
    /// Not JSON.
    #[error("line {line}, column {column}: {what}")]
    Syntax {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// The fault.
        what: String,
    },
    /// A field that must be there.
    #[error("`{0}` is missing: add it")]
    Missing(&'static str),
    /// A field that does not exist.
    #[error("`{}` is not a field here{}", .key.escape_debug(), remove_or_rename(*.meant))]
    Unknown {
        /// The field as it stands, or its beginning where it is long.
        key: String,
        /// The field it was most likely meant to be.
        meant: Option<&'static str>,
    },
    /// The same field a second time.
    #[error("`{0}` stands twice: keep one of the two")]
    Twice(&'static str),
    /// A value of the wrong kind.
    #[error("`{field}` must be {wanted}, found {found}: change the value")]
    WrongKind {
        /// The field, with its place in a list.
        field: String,
        /// The kind it must have.
        wanted: JsonKind,
        /// The kind it has.
        found: JsonKind,
    },
    /// A number out of its bounds.
    #[error("`{field}` must be from {} to {}, found {found}: change the value", .bounds.start(), .bounds.end())]
    OutOfRange {
        /// The field.
        field: &'static str,
        /// The bounds, both allowed.
        bounds: RangeInclusive<i64>,
        /// The number as found.
        found: String,
    },
    /// An id that is none.
    #[error("`id` {id:?} {fault}: choose another id")]
    BadId {
        /// The text as it stands, or its beginning where it is long.
        id: String,
        /// Why it is no id.
        fault: IdError,
    },
    /// An id that another node has.
    #[error("`id` is also the id of {other}: give one of the two another id")]
    DuplicateId {
        /// The first node that has it.
        other: String,
    },
    /// Deeper than a tree may be.
    #[error("lies on level {}: at most {DEPTH_MAX} levels are allowed, so make the tree flatter", DEPTH_MAX + 1)]
    TooDeep,
    /// More nodes than a tree may have.
    #[error("the tree has more than {NODES_MAX} nodes: remove some")]
    TooManyNodes,
    /// Siblings out of order.
    #[error("`children` are out of order: `{late}` belongs before `{early}` (sorted by order, then by id)")]
    Unsorted {
        /// The sibling that stands too early.
        early: String,
        /// The sibling right behind it that belongs before it.
        late: String,
    },
    /// More attempts than allowed.
    #[error("`attempts` is {attempts}, above `max_attempts` {max}: lower it to {max} or less")]
    AttemptsOverMax {
        /// Attempts spent.
        attempts: u32,
        /// Attempts allowed.
        max: u32,
    },
    /// An inner node that passes although a child is open.
    #[error("`passes` is true although its child `{open}` is open: set it to false")]
    PassesTooEarly {
        /// The first open child.
        open: String,
    },
    /// An inner node that is open although every child passes.
    #[error("`passes` is false although all its children pass: set it to true")]
    PassesTooLate,
    /// More faults than are told one by one.
    #[error("and {0} more: mend the ones above first")]
    Untold(usize),
}

fn remove_or_rename(meant: Option<&str>) -> String {
    meant.map_or_else(|| ": remove it".to_owned(), |meant| format!("; did you mean `{meant}`?"))
}

/// The fields of a node, in their order.
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
    /// All of them, by the names that they have in the document.
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

/// A place in the tree: which child to take at each level. The root is the empty path.
pub(super) type Position = Vec<usize>;

/// The most faults that are told one by one; a document of nothing but faults must not fill the memory.
const FAULTS_MAX: usize = 10_000;

/// Faults as they are found, by position, until the ids on the way are known.
#[derive(Default)]
pub(super) struct FaultCollector {
    document: Vec<TreeError>,
    nodes: Vec<(FaultLocation, TreeError)>,
    /// How many of `nodes`, sorted, came from reading and not from a rule.
    unread: usize,
    untold: usize,
    cut_short: bool,
}

/// A node's position, and what of it is concerned.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FaultLocation {
    position: Position,
    part: FaultPart,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FaultPart {
    Whole,
    Field(NodeField),
    Beside,
}

impl FaultCollector {
    /// Notes a fault of the document around the tree.
    pub(super) fn in_document(&mut self, fault: TreeError) {
        if self.document.len() < FAULTS_MAX {
            self.document.push(fault);
        } else {
            self.untold += 1;
        }
    }

    /// Notes a fault in a field of the node at `position`; what concerns no single field says `None`.
    pub(super) fn at(&mut self, position: &[usize], field: Option<NodeField>, fault: TreeError) {
        let part = field.map_or(FaultPart::Beside, FaultPart::Field);
        self.note(FaultLocation { position: position.to_vec(), part }, fault);
    }

    /// Notes that something else stands where a node should.
    pub(super) fn no_node(&mut self, position: &[usize], found: JsonKind) {
        let field = "the node".to_owned();
        let place = FaultLocation { position: position.to_vec(), part: FaultPart::Whole };
        self.note(place, TreeError::WrongKind { field, wanted: JsonKind::Object, found });
    }

    /// Notes that there are more nodes than a tree may have, and that the rest was not read.
    pub(super) fn too_many_nodes(&mut self) {
        if !self.cut_short {
            self.in_document(TreeError::TooManyNodes);
        }
        self.cut_short = true;
    }

    /// Whether nothing is wrong so far.
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty() && self.document.is_empty()
    }

    /// Marks the end of reading: what was noted so far are fields without a value.
    pub(super) fn all_read(&mut self) {
        self.sort();
        self.unread = self.nodes.len();
    }

    /// Whether enough was read for rules about the whole to say something true.
    pub(super) fn can_be_ruled(&self) -> bool {
        !self.cut_short && self.untold == 0
    }

    /// Whether a field could not be read, so that a rule about its value would say nothing true.
    pub(super) fn unread(&self, position: &[usize], field: NodeField) -> bool {
        let unread = self.nodes.get(..self.unread).unwrap_or_default();
        let is_unread = |part| {
            unread
                .binary_search_by(|(one, _)| (one.position.as_slice(), one.part).cmp(&(position, part)))
                .is_ok()
        };
        !unread.is_empty() && (is_unread(FaultPart::Whole) || is_unread(FaultPart::Field(field)))
    }

    /// The faults in the order of the document, each with the path of its node; none is success.
    pub(super) fn into_result(mut self, root: &Node) -> Result<(), Vec<TreeProblem>> {
        if self.is_empty() {
            return Ok(());
        }
        self.sort();
        let whole = |fault| TreeProblem { node: String::new(), fault };
        let in_document = self.document.into_iter().map(whole);
        let in_nodes = self
            .nodes
            .into_iter()
            .map(|(place, fault)| TreeProblem { node: path_at(root, &place.position), fault });
        let untold = (self.untold > 0).then(|| whole(TreeError::Untold(self.untold)));
        Err(in_document.chain(in_nodes).chain(untold).collect())
    }

    fn note(&mut self, place: FaultLocation, fault: TreeError) {
        if self.nodes.len() < FAULTS_MAX {
            self.nodes.push((place, fault));
        } else {
            self.untold += 1;
        }
    }

    fn sort(&mut self) {
        self.nodes.sort_by(|(one, _), (other, _)| one.cmp(other));
    }
}

/// The ids on the way to a position.
pub(super) fn path_at(root: &Node, position: &[usize]) -> String {
    let name = |node: &Node, index: Option<usize>| match index {
        _ if !node.id.is_unreadable() => node.id.to_string(),
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
