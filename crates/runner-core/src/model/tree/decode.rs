//! The strict decoder of a tree: one pass that builds the nodes and collects every error.
//!
//! An invalid value is replaced by a placeholder, so that the rest of the document is still checked. Callers must look at
//! the errors before they use the nodes.

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

/// Decodes a document and checks the rules. If it is not text, or too large, that is the only error.
pub(super) fn document(bytes: &[u8]) -> Result<(Node, FaultCollector), TreeProblem> {
    if bytes.len() > BYTES_MAX {
        return Err(TreeProblem::of_document(TreeError::TooLarge(bytes.len())));
    }
    let text = decode_utf8(bytes).map_err(|problem| {
        let what = match problem.fault {
            DocumentFault::Syntax(what) | DocumentFault::Value(what) | DocumentFault::Rule(what) => what,
            DocumentFault::Unknown(_) | DocumentFault::Missing | DocumentFault::Twice => String::new(),
        };
        let what = format!("the file {what}");
        TreeProblem::of_document(TreeError::Syntax { line: problem.line, column: 1, what })
    })?;
    if let Some(root) = fast_path::decode_valid(text) {
        return Ok((root, FaultCollector::default()));
    }
    let mut reader = TreeReader { faults: FaultCollector::default(), position: Vec::new(), nodes: 0 };
    let mut json = serde_json::Deserializer::from_str(text);
    let read = DocumentSeed(&mut reader).deserialize(&mut json).and_then(|root| json.end().map(|()| root));
    let root = match read {
        Ok(root) => root,
        Err(error) => {
            let what = json_error_message(&error);
            let fault = TreeError::Syntax { line: error.line(), column: error.column(), what };
            reader.faults.add_to_document(fault);
            placeholder()
        }
    };
    let mut faults = reader.faults;
    faults.end_decoding();
    rules::check(&root, &mut faults);
    Ok((root, faults))
}

/// The node in place of one that could not be decoded.
fn placeholder() -> Node {
    Node {
        id: NodeId::invalid(),
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

/// The state of the pass.
struct TreeReader {
    faults: FaultCollector,
    position: Position,
    nodes: usize,
}

impl TreeReader {
    /// Stores a field's value, or reports why it is invalid.
    fn store<T>(&mut self, target: &mut T, field: NodeField, value: Result<T, TreeError>) {
        match value {
            Ok(value) => *target = value,
            Err(fault) => self.faults.add_to_field(&self.position, field, fault),
        }
    }

    /// Decodes the value of one field into `node`.
    fn field<'de, A: MapAccess<'de>>(
        &mut self,
        node: &mut Node,
        name: &'static str,
        field: NodeField,
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
            NodeField::Id => self.store(&mut node.id, field, node_id(value)),
            NodeField::Order => self.store(&mut node.order, field, value.integer(name, ORDER_RANGE)),
            NodeField::Title => self.store(&mut node.title, field, value.string(name)),
            NodeField::Goal => self.store(&mut node.goal, field, value.string(name)),
            NodeField::Passes => self.store(&mut node.passes, field, value.bool(name)),
            NodeField::Attempts => {
                self.store(&mut node.attempts, field, value.integer(name, ATTEMPTS_RANGE).map(count));
            }
            NodeField::MaxAttempts => {
                self.store(&mut node.max_attempts, field, value.integer(name, MAX_ATTEMPTS_RANGE).map(count));
            }
            NodeField::Acceptance | NodeField::Children => {}
        }
        Ok(())
    }
}

fn node_id(value: Scalar) -> Result<NodeId, TreeError> {
    let id = value.string("id")?;
    NodeId::from_string(id).map_err(|(id, fault)| TreeError::BadId { id: shortened(&id), fault })
}

/// Text from the document, shortened for a message.
fn shortened(text: &str) -> String {
    let head = head(text, EXCERPT_BYTES_MAX);
    if head.len() < text.len() { format!("{head}…") } else { head.to_owned() }
}

const EXCERPT_BYTES_MAX: usize = 200;

/// Visitor methods that report a scalar where a list or an object is expected.
macro_rules! other_kinds {
    ($expected:expr) => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{}", $expected)
        }

        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok(self.other(JsonKind::Null))
        }

        fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
            Ok(self.other(JsonKind::Bool))
        }

        fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
            Ok(self.other(JsonKind::Integer))
        }

        fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
            Ok(self.other(JsonKind::Integer))
        }

        fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
            Ok(self.other(JsonKind::Number))
        }

        fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
            Ok(self.other(JsonKind::String))
        }
    };
}

/// The same for a list where an object is expected.
macro_rules! other_array {
    () => {
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            Ok(self.other(JsonKind::Array))
        }
    };
}

/// And for an object where a list is expected.
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

const DOCUMENT_PARTS: [(&str, DocumentPart); 2] =
    [("version", DocumentPart::Version), ("root", DocumentPart::Root)];

impl DocumentSeed<'_> {
    fn other(self, kind: JsonKind) -> Node {
        let field = "the document".to_owned();
        let fault = TreeError::WrongKind { field, expected: JsonKind::Object, found: kind };
        self.0.faults.add_to_document(fault);
        placeholder()
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
        let mut has_version = false;
        let mut root = None;
        while let Some(key) = map.next_key_seed(KeySeed { known: &DOCUMENT_PARTS, next: 0 })? {
            match key {
                FieldKey::Known(_, name, DocumentPart::Version) if !has_version => {
                    has_version = true;
                    if let Err(fault) = map.next_value_seed(ScalarSeed)?.integer(name, VERSION..=VERSION) {
                        self.0.faults.add_to_document(fault);
                    }
                }
                FieldKey::Known(_, _, DocumentPart::Root) if root.is_none() => {
                    root = Some(map.next_value_seed(NodeSeed(self.0))?);
                }
                FieldKey::Known(_, name, DocumentPart::Version | DocumentPart::Root) => {
                    map.next_value::<IgnoredAny>()?;
                    self.0.faults.add_to_document(TreeError::Twice(name));
                }
                FieldKey::Unknown(key) => {
                    map.next_value::<IgnoredAny>()?;
                    self.0.faults.add_to_document(unknown(&key, &DOCUMENT_PARTS));
                }
            }
        }
        if !has_version {
            self.0.faults.add_to_document(TreeError::Missing("version"));
        }
        if root.is_none() {
            self.0.faults.add_to_document(TreeError::Missing("root"));
        }
        Ok(root.unwrap_or_else(placeholder))
    }
}

/// A node with its subtree.
struct NodeSeed<'r>(&'r mut TreeReader);

impl NodeSeed<'_> {
    fn other(self, found: JsonKind) -> Node {
        self.0.nodes += 1;
        self.0.faults.add_not_a_node(&self.0.position, found);
        placeholder()
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
        let mut node = placeholder();
        let mut seen = [false; NodeField::ALL.len()];
        let mut next = 0;
        while let Some(key) = map.next_key_seed(KeySeed { known: &NodeField::ALL, next })? {
            match key {
                FieldKey::Known(index, name, field) => {
                    next = index + 1;
                    let is_first = seen.get_mut(index).is_some_and(|seen| !std::mem::replace(seen, true));
                    if is_first {
                        reader.field(&mut node, name, field, &mut map)?;
                    } else {
                        map.next_value::<IgnoredAny>()?;
                        reader.faults.add_to_field(&reader.position, field, TreeError::Twice(name));
                    }
                }
                FieldKey::Unknown(key) => {
                    map.next_value::<IgnoredAny>()?;
                    reader.faults.add_to_node(&reader.position, unknown(&key, &NodeField::ALL));
                }
            }
        }
        for ((name, field), _) in NodeField::ALL.iter().zip(seen).filter(|(_, seen)| !seen) {
            reader.faults.add_to_field(&reader.position, *field, TreeError::Missing(name));
        }
        Ok(node)
    }
}

fn unknown<K>(key: &str, known: &[(&'static str, K)]) -> TreeError {
    let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
    TreeError::Unknown { key: shortened(key), meant: nearest(key, &names) }
}

/// The list of acceptance criteria.
struct AcceptanceSeed<'r>(&'r mut TreeReader);

impl AcceptanceSeed<'_> {
    fn other(self, kind: JsonKind) -> Vec<String> {
        let fault =
            TreeError::WrongKind { field: "acceptance".to_owned(), expected: JsonKind::Array, found: kind };
        self.0.faults.add_to_field(&self.0.position, NodeField::Acceptance, fault);
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
                let fault = scalar.is_not(JsonKind::String, format!("acceptance[{index}]"));
                self.0.faults.add_to_field(&self.0.position, NodeField::Acceptance, fault);
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
            TreeError::WrongKind { field: "children".to_owned(), expected: JsonKind::Array, found: kind };
        self.0.faults.add_to_field(&self.0.position, NodeField::Children, fault);
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
        // Skip what is beyond the limits, so that no document can cost more than they allow.
        let reader = self.0;
        let mut children = Vec::new();
        if reader.position.len() + 1 >= DEPTH_MAX {
            if skip_rest(&mut seq)? {
                let first_child: Position = reader.position.iter().copied().chain([0]).collect();
                reader.faults.add_to_node(&first_child, TreeError::TooDeep);
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
        if skip_rest(&mut seq)? {
            reader.faults.add_too_many_nodes();
        }
        Ok(children)
    }
}

/// Skips the rest of a list. Returns whether there was any.
fn skip_rest<'de, A: SeqAccess<'de>>(seq: &mut A) -> Result<bool, A::Error> {
    let mut any = false;
    while seq.next_element::<IgnoredAny>()?.is_some() {
        any = true;
    }
    Ok(any)
}
