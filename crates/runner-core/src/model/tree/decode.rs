//! Strict reading of a tree: one pass that builds the nodes and notes every fault on the way.
//!
//! A value that cannot be read leaves a stand-in behind, so that the rest of the document is still checked.
//! Whoever calls must look at what was found before using the nodes.

mod fast_path;
mod value;

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use self::value::{FieldKey, KeySeed, Scalar, ScalarSeed};
use super::problem::{FaultCollector, JsonKind, NodeField, Position, TreeError, TreeProblem};
use super::{
    ATTEMPTS_RANGE, BYTES_MAX, DEPTH_MAX, MAX_ATTEMPTS_RANGE, NODES_MAX, Node, ORDER_RANGE, VERSION, rules,
};
use crate::model::id::NodeId;
use crate::strict::{DocumentFault, decode_utf8, json_error_message, nearest};
use crate::text::head;

/// Reads a document and looks at its rules. What is not even text, or too large to look at, is the one fault told.
pub(super) fn document(bytes: &[u8]) -> Result<(Node, FaultCollector), TreeProblem> {
    let whole = |fault| TreeProblem { node: String::new(), fault };
    if bytes.len() > BYTES_MAX {
        return Err(whole(TreeError::TooLarge(bytes.len())));
    }
    let text = decode_utf8(bytes).map_err(|problem| {
        let what = match problem.fault {
            DocumentFault::Syntax(what) | DocumentFault::Value(what) | DocumentFault::Rule(what) => what,
            DocumentFault::Unknown(_) | DocumentFault::Missing | DocumentFault::Twice => String::new(),
        };
        whole(TreeError::Syntax { line: problem.line, column: 1, what: format!("the file {what}") })
    })?;
    if let Some(root) = fast_path::good_root(text) {
        return Ok((root, FaultCollector::default()));
    }
    let mut reader = TreeReader { found: FaultCollector::default(), position: Vec::new(), nodes: 0 };
    let mut json = serde_json::Deserializer::from_str(text);
    let read = DocumentSeed(&mut reader).deserialize(&mut json).and_then(|root| json.end().map(|()| root));
    let root = match read {
        Ok(root) => root,
        Err(error) => {
            let what = json_error_message(&error);
            reader.found.in_document(TreeError::Syntax { line: error.line(), column: error.column(), what });
            stand_in()
        }
    };
    let mut found = reader.found;
    found.all_read();
    rules::check(&root, &mut found);
    Ok((root, found))
}

/// The node that stands in for one that could not be read.
fn stand_in() -> Node {
    Node {
        id: NodeId::unreadable(),
        order: 0,
        title: String::new(),
        goal: String::new(),
        acceptance: Vec::new(),
        passes: false,
        attempts: 0,
        max_attempts: 1,
        children: Vec::new(),
    }
}

/// What is carried through the pass.
struct TreeReader {
    found: FaultCollector,
    /// The node that is being read.
    position: Position,
    nodes: usize,
}

impl TreeReader {
    /// Puts a field's value into its place, or notes why it is none.
    fn keep<T>(&mut self, place: &mut T, field: NodeField, value: Result<T, TreeError>) {
        match value {
            Ok(value) => *place = value,
            Err(fault) => self.found.at(&self.position, Some(field), fault),
        }
    }

    /// Reads the value of one field into `node`.
    fn field<'de, A: MapAccess<'de>>(
        &mut self,
        node: &mut Node,
        (name, field): (&'static str, NodeField),
        map: &mut A,
    ) -> Result<(), A::Error> {
        if field == NodeField::Children {
            node.children = map.next_value_seed(ChildrenSeed(self))?;
            return Ok(());
        }
        if field == NodeField::Acceptance {
            node.acceptance = map.next_value_seed(AcceptanceSeed(self))?;
            return Ok(());
        }
        let value = map.next_value_seed(ScalarSeed)?;
        let count = |number: i64| u32::try_from(number).unwrap_or_default();
        match field {
            NodeField::Id => self.keep(&mut node.id, field, node_id(value)),
            NodeField::Order => self.keep(&mut node.order, field, value.whole(name, ORDER_RANGE)),
            NodeField::Title => self.keep(&mut node.title, field, value.string(name)),
            NodeField::Goal => self.keep(&mut node.goal, field, value.string(name)),
            NodeField::Passes => self.keep(&mut node.passes, field, value.bool(name)),
            NodeField::Attempts => {
                self.keep(&mut node.attempts, field, value.whole(name, ATTEMPTS_RANGE).map(count));
            }
            NodeField::MaxAttempts => {
                self.keep(&mut node.max_attempts, field, value.whole(name, MAX_ATTEMPTS_RANGE).map(count));
            }
            NodeField::Acceptance | NodeField::Children => {}
        }
        Ok(())
    }
}

fn node_id(value: Scalar) -> Result<NodeId, TreeError> {
    let id = value.string("id")?;
    NodeId::taking(id).map_err(|(id, fault)| TreeError::BadId { id: shown(&id), fault })
}

/// Text from the document, short enough for a message and safe to show.
fn shown(text: &str) -> String {
    let head = head(text, SHOWN_BYTES_MAX);
    if head.len() < text.len() { format!("{head}…") } else { head.to_owned() }
}

const SHOWN_BYTES_MAX: usize = 200;

/// The visits that only tell which kind of value stands where a list or an object should.
macro_rules! other_kinds {
    ($wanted:expr) => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{}", $wanted)
        }

        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok(self.other(JsonKind::Null))
        }

        fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
            Ok(self.other(JsonKind::Bool))
        }

        fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
            Ok(self.other(JsonKind::Whole))
        }

        fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
            Ok(self.other(JsonKind::Whole))
        }

        fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
            Ok(self.other(JsonKind::Number))
        }

        fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
            Ok(self.other(JsonKind::String))
        }
    };
}

/// The same for a list where an object should stand.
macro_rules! other_array {
    () => {
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            Ok(self.other(JsonKind::Array))
        }
    };
}

/// And for an object where a list should stand.
macro_rules! other_object {
    () => {
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(self.other(JsonKind::Object))
        }
    };
}

/// `{"version": 1, "root": …}`
struct DocumentSeed<'r>(&'r mut TreeReader);

#[derive(Clone, Copy)]
enum DocumentPart {
    Version,
    Root,
}

const AROUND: [(&str, DocumentPart); 2] = [("version", DocumentPart::Version), ("root", DocumentPart::Root)];

impl DocumentSeed<'_> {
    fn other(self, kind: JsonKind) -> Node {
        let field = "the document".to_owned();
        self.0.found.in_document(TreeError::WrongKind { field, wanted: JsonKind::Object, found: kind });
        stand_in()
    }
}

impl<'de> DeserializeSeed<'de> for DocumentSeed<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for DocumentSeed<'_> {
    type Value = Node;

    other_kinds!(JsonKind::Object);
    other_array!();

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let (mut version_seen, mut root) = (false, None);
        while let Some(key) = map.next_key_seed(KeySeed { known: &AROUND, next: 0 })? {
            match key {
                FieldKey::Known(_, name, DocumentPart::Version) if !version_seen => {
                    version_seen = true;
                    if let Err(fault) = map.next_value_seed(ScalarSeed)?.whole(name, VERSION..=VERSION) {
                        self.0.found.in_document(fault);
                    }
                }
                FieldKey::Known(_, _, DocumentPart::Root) if root.is_none() => {
                    root = Some(map.next_value_seed(NodeSeed(self.0))?);
                }
                FieldKey::Known(_, again, DocumentPart::Version | DocumentPart::Root) => {
                    map.next_value::<IgnoredAny>()?;
                    self.0.found.in_document(TreeError::Twice(again));
                }
                FieldKey::Unknown(key) => {
                    map.next_value::<IgnoredAny>()?;
                    self.0.found.in_document(unknown(&key, &AROUND));
                }
            }
        }
        if !version_seen {
            self.0.found.in_document(TreeError::Missing("version"));
        }
        if root.is_none() {
            self.0.found.in_document(TreeError::Missing("root"));
        }
        Ok(root.unwrap_or_else(stand_in))
    }
}

/// One node with all below it.
struct NodeSeed<'r>(&'r mut TreeReader);

impl NodeSeed<'_> {
    fn other(self, found: JsonKind) -> Node {
        self.0.nodes += 1;
        self.0.found.no_node(&self.0.position, found);
        stand_in()
    }
}

impl<'de> DeserializeSeed<'de> for NodeSeed<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for NodeSeed<'_> {
    type Value = Node;

    other_kinds!(JsonKind::Object);
    other_array!();

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let reader = self.0;
        reader.nodes += 1;
        let mut node = stand_in();
        let mut seen = [false; NodeField::ALL.len()];
        let mut next = 0;
        while let Some(key) = map.next_key_seed(KeySeed { known: &NodeField::ALL, next })? {
            match key {
                FieldKey::Known(place, name, field) => {
                    next = place + 1;
                    let first = seen.get_mut(place).is_some_and(|seen| !std::mem::replace(seen, true));
                    if first {
                        reader.field(&mut node, (name, field), &mut map)?;
                    } else {
                        map.next_value::<IgnoredAny>()?;
                        reader.found.at(&reader.position, Some(field), TreeError::Twice(name));
                    }
                }
                FieldKey::Unknown(key) => {
                    map.next_value::<IgnoredAny>()?;
                    reader.found.at(&reader.position, None, unknown(&key, &NodeField::ALL));
                }
            }
        }
        for ((name, field), _) in NodeField::ALL.iter().zip(seen).filter(|(_, seen)| !seen) {
            reader.found.at(&reader.position, Some(*field), TreeError::Missing(name));
        }
        Ok(node)
    }
}

fn unknown<K>(key: &str, known: &[(&'static str, K)]) -> TreeError {
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    TreeError::Unknown { key: shown(key), meant: nearest(key, &names) }
}

/// A list of texts.
struct AcceptanceSeed<'r>(&'r mut TreeReader);

impl AcceptanceSeed<'_> {
    fn other(self, kind: JsonKind) -> Vec<String> {
        let fault =
            TreeError::WrongKind { field: "acceptance".to_owned(), wanted: JsonKind::Array, found: kind };
        self.0.found.at(&self.0.position, Some(NodeField::Acceptance), fault);
        Vec::new()
    }
}

impl<'de> DeserializeSeed<'de> for AcceptanceSeed<'_> {
    type Value = Vec<String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AcceptanceSeed<'_> {
    type Value = Vec<String>;

    other_kinds!(JsonKind::Array);
    other_object!();

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut texts = Vec::new();
        let mut index = 0;
        while let Some(scalar) = seq.next_element_seed(ScalarSeed)? {
            if let Scalar::String(text) = scalar {
                texts.push(text);
            } else {
                let fault = scalar.not(JsonKind::String, format!("acceptance[{index}]"));
                self.0.found.at(&self.0.position, Some(NodeField::Acceptance), fault);
            }
            index += 1;
        }
        Ok(texts)
    }
}

/// A list of nodes, one level down.
struct ChildrenSeed<'r>(&'r mut TreeReader);

impl ChildrenSeed<'_> {
    fn other(self, kind: JsonKind) -> Vec<Node> {
        let fault =
            TreeError::WrongKind { field: "children".to_owned(), wanted: JsonKind::Array, found: kind };
        self.0.found.at(&self.0.position, Some(NodeField::Children), fault);
        Vec::new()
    }
}

impl<'de> DeserializeSeed<'de> for ChildrenSeed<'_> {
    type Value = Vec<Node>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ChildrenSeed<'_> {
    type Value = Vec<Node>;

    other_kinds!(JsonKind::Array);
    other_object!();

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        // What is beyond the limits is passed over unread: no document can cost more than they allow.
        let reader = self.0;
        let mut children = Vec::new();
        if reader.position.len() + 1 >= DEPTH_MAX {
            if pass_over(&mut seq)? {
                let below: Position = reader.position.iter().copied().chain([0]).collect();
                reader.found.at(&below, None, TreeError::TooDeep);
            }
            return Ok(children);
        }
        while reader.nodes < NODES_MAX {
            reader.position.push(children.len());
            let child = seq.next_element_seed(NodeSeed(reader))?;
            reader.position.pop();
            match child {
                Some(child) => children.push(child),
                None => return Ok(children),
            }
        }
        if pass_over(&mut seq)? {
            reader.found.too_many_nodes();
        }
        Ok(children)
    }
}

/// Reads a list to its end without keeping anything; tells whether there was anything.
fn pass_over<'de, A: SeqAccess<'de>>(seq: &mut A) -> Result<bool, A::Error> {
    let mut any = false;
    while seq.next_element::<IgnoredAny>()?.is_some() {
        any = true;
    }
    Ok(any)
}
