//! Strict reading of a tree: one pass that builds the nodes and notes every fault on the way.
//!
//! A value that cannot be read leaves a stand-in behind, so that the rest of the document is still checked.
//! Whoever calls must look at what was found before using the nodes.

use std::fmt;
use std::ops::RangeInclusive;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::problem::{FIELDS, Found, Kind, Position, TreeFault, TreeProblem};
use super::{
    ATTEMPTS_RANGE, BYTES_MAX, DEPTH_MAX, MAX_ATTEMPTS_RANGE, NODES_MAX, Node, ORDER_RANGE, VERSION,
};
use crate::document::{Fault, SAFE_INTEGER_MAX, json_fault, nearest, text_of, whole_number};
use crate::id::NodeId;

/// Reads a document. What is not even text, or too large to look at, is the one fault told.
pub(super) fn document(bytes: &[u8]) -> Result<(Node, Found), TreeProblem> {
    let whole = |fault| TreeProblem { node: String::new(), fault };
    if bytes.len() > BYTES_MAX {
        return Err(whole(TreeFault::TooLarge(bytes.len())));
    }
    let text = text_of(bytes).map_err(|problem| {
        let what = match problem.fault {
            Fault::Syntax(what) | Fault::Value(what) | Fault::Rule(what) => what,
            Fault::Unknown(_) | Fault::Missing | Fault::Twice => String::new(),
        };
        whole(TreeFault::Syntax { line: problem.line, column: 1, what: format!("the file {what}") })
    })?;
    let mut reader = Reader { found: Found::default(), position: Vec::new(), nodes: 0 };
    let mut json = serde_json::Deserializer::from_str(text);
    let read = DocumentSeed(&mut reader).deserialize(&mut json).and_then(|root| json.end().map(|()| root));
    let root = match read {
        Ok(root) => root,
        Err(error) => {
            let what = json_fault(&error);
            reader.found.in_document(TreeFault::Syntax { line: error.line(), column: error.column(), what });
            stand_in()
        }
    };
    reader.found.all_read();
    Ok((root, reader.found))
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
struct Reader {
    found: Found,
    /// The node that is being read.
    position: Position,
    nodes: usize,
}

impl Reader {
    fn wrong(&mut self, field: &'static str, place: Option<usize>, wanted: Kind, found: Kind) {
        let named = place.map_or_else(|| field.to_owned(), |index| format!("{field}[{index}]"));
        self.found.at(&self.position, Some(field), TreeFault::WrongKind { field: named, wanted, found });
    }

    /// Reads one value of any kind and gives it to `take`, which says the kind it wanted if it was another.
    fn scalar<'de, A: MapAccess<'de>, T>(
        &mut self,
        map: &mut A,
        field: &'static str,
        take: impl FnOnce(Scalar) -> Result<T, (Kind, Kind)>,
    ) -> Result<Option<T>, A::Error> {
        match take(map.next_value_seed(ScalarSeed)?) {
            Ok(value) => Ok(Some(value)),
            Err((wanted, found)) => {
                self.wrong(field, None, wanted, found);
                Ok(None)
            }
        }
    }

    fn whole_in<'de, A: MapAccess<'de>>(
        &mut self,
        map: &mut A,
        field: &'static str,
        bounds: RangeInclusive<i64>,
    ) -> Result<Option<i64>, A::Error> {
        let Some((number, shown)) = self.scalar(map, field, Scalar::whole)? else { return Ok(None) };
        match number.filter(|number| bounds.contains(number)) {
            Some(number) => Ok(Some(number)),
            None => {
                let fault = TreeFault::OutOfRange { field, bounds, found: shown };
                self.found.at(&self.position, Some(field), fault);
                Ok(None)
            }
        }
    }

    fn node_id<'de, A: MapAccess<'de>>(&mut self, map: &mut A) -> Result<Option<NodeId>, A::Error> {
        let Some(text) = self.scalar(map, "id", Scalar::string)? else { return Ok(None) };
        match NodeId::new(text.as_str()) {
            Ok(id) => Ok(Some(id)),
            Err(fault) => {
                self.found.at(&self.position, Some("id"), TreeFault::BadId { id: text, fault });
                Ok(None)
            }
        }
    }
}

/// A value of a field that holds no nodes; what lies inside lists and objects is passed over.
enum Scalar {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    String(String),
    Array,
    Object,
}

impl Scalar {
    fn kind(&self) -> Kind {
        match self {
            Self::Null => Kind::Null,
            Self::Bool(_) => Kind::Bool,
            Self::Int(_) => Kind::Whole,
            Self::Float(_) => Kind::Number,
            Self::String(_) => Kind::String,
            Self::Array => Kind::Array,
            Self::Object => Kind::Object,
        }
    }

    fn string(self) -> Result<String, (Kind, Kind)> {
        let kind = self.kind();
        if let Self::String(text) = self { Ok(text) } else { Err((Kind::String, kind)) }
    }

    fn bool(self) -> Result<bool, (Kind, Kind)> {
        let kind = self.kind();
        if let Self::Bool(value) = self { Ok(value) } else { Err((Kind::Bool, kind)) }
    }

    /// A whole number if it can be kept exactly, and how it was written.
    fn whole(self) -> Result<(Option<i64>, String), (Kind, Kind)> {
        match self {
            Self::Int(number) => {
                Ok(((number.abs() <= SAFE_INTEGER_MAX).then_some(number), number.to_string()))
            }
            Self::Float(number) if number.fract() == 0.0 => Ok((whole_number(number), number.to_string())),
            Self::Null | Self::Bool(_) | Self::Float(_) | Self::String(_) | Self::Array | Self::Object => {
                Err((Kind::Whole, self.kind()))
            }
        }
    }
}

struct ScalarSeed;

impl<'de> DeserializeSeed<'de> for ScalarSeed {
    type Value = Scalar;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Scalar, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ScalarSeed {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Scalar, E> {
        Ok(Scalar::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Scalar, E> {
        Ok(Scalar::Bool(value))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Scalar, E> {
        Ok(Scalar::Int(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Scalar, E> {
        Ok(i64::try_from(number).map_or(Scalar::Float(number as f64), Scalar::Int))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Scalar, E> {
        Ok(Scalar::Float(number))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Scalar, E> {
        Ok(Scalar::String(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Scalar, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar::Array)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar::Object)
    }
}

/// The visits that only tell which kind of value stands where a list or an object should.
macro_rules! other_kinds {
    ($wanted:expr) => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{}", $wanted)
        }

        fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
            Ok(self.other(Kind::Null))
        }

        fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
            Ok(self.other(Kind::Bool))
        }

        fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
            Ok(self.other(Kind::Whole))
        }

        fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
            Ok(self.other(Kind::Whole))
        }

        fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
            Ok(self.other(Kind::Number))
        }

        fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
            Ok(self.other(Kind::String))
        }
    };
}

/// The same for a list where an object should stand.
macro_rules! other_array {
    () => {
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            while seq.next_element::<IgnoredAny>()?.is_some() {}
            Ok(self.other(Kind::Array))
        }
    };
}

/// And for an object where a list should stand.
macro_rules! other_object {
    () => {
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            Ok(self.other(Kind::Object))
        }
    };
}

/// Which of the known keys comes next; an unknown one is kept as it stands.
struct KeySeed(&'static [&'static str]);

enum Key {
    Known(&'static str),
    Unknown(String),
}

impl<'de> DeserializeSeed<'de> for KeySeed {
    type Value = Key;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Key, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeySeed {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Key, E> {
        let known = self.0.iter().find(|known| **known == text);
        Ok(known.map_or_else(|| Key::Unknown(text.to_owned()), |known| Key::Known(known)))
    }
}

/// `{"version": 1, "root": …}`
struct DocumentSeed<'r>(&'r mut Reader);

const DOCUMENT_FIELDS: [&str; 2] = ["version", "root"];

impl DocumentSeed<'_> {
    fn other(self, kind: Kind) -> Node {
        let field = "the document".to_owned();
        self.0.found.in_document(TreeFault::WrongKind { field, wanted: Kind::Object, found: kind });
        stand_in()
    }

    fn version(reader: &mut Reader, scalar: Scalar) {
        let field = "version";
        let fault = match scalar.whole() {
            Ok((Some(VERSION), _)) => return,
            Ok((_, found)) => TreeFault::OutOfRange { field, bounds: VERSION..=VERSION, found },
            Err((wanted, found)) => TreeFault::WrongKind { field: field.to_owned(), wanted, found },
        };
        reader.found.in_document(fault);
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

    other_kinds!(Kind::Object);
    other_array!();

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let (mut version_seen, mut root) = (false, None);
        while let Some(key) = map.next_key_seed(KeySeed(&DOCUMENT_FIELDS))? {
            match key {
                Key::Known("version") if !version_seen => {
                    version_seen = true;
                    let scalar = map.next_value_seed(ScalarSeed)?;
                    Self::version(self.0, scalar);
                }
                Key::Known("root") if root.is_none() => root = Some(map.next_value_seed(NodeSeed(self.0))?),
                Key::Known(again) => {
                    map.next_value::<IgnoredAny>()?;
                    self.0.found.in_document(TreeFault::Twice(again));
                }
                Key::Unknown(key) => {
                    map.next_value::<IgnoredAny>()?;
                    let meant = nearest(&key, &DOCUMENT_FIELDS);
                    self.0.found.in_document(TreeFault::Unknown { key, meant });
                }
            }
        }
        if !version_seen {
            self.0.found.in_document(TreeFault::Missing("version"));
        }
        if root.is_none() {
            self.0.found.in_document(TreeFault::Missing("root"));
        }
        Ok(root.unwrap_or_else(stand_in))
    }
}

/// One node with all below it.
struct NodeSeed<'r>(&'r mut Reader);

impl NodeSeed<'_> {
    fn other(self, found: Kind) -> Node {
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

/// A node's fields, as far as they were read.
#[derive(Default)]
struct Draft {
    seen: Vec<&'static str>,
    id: Option<NodeId>,
    order: Option<i64>,
    title: Option<String>,
    goal: Option<String>,
    acceptance: Option<Vec<String>>,
    passes: Option<bool>,
    attempts: Option<u32>,
    max_attempts: Option<u32>,
    children: Option<Vec<Node>>,
}

impl Draft {
    fn read<'de, A: MapAccess<'de>>(
        &mut self,
        reader: &mut Reader,
        map: &mut A,
        field: &'static str,
    ) -> Result<(), A::Error> {
        let count = |number: i64| u32::try_from(number).ok();
        match field {
            "id" => self.id = reader.node_id(map)?,
            "order" => self.order = reader.whole_in(map, field, ORDER_RANGE)?,
            "title" => self.title = reader.scalar(map, field, Scalar::string)?,
            "goal" => self.goal = reader.scalar(map, field, Scalar::string)?,
            "acceptance" => self.acceptance = map.next_value_seed(AcceptanceSeed(reader))?,
            "passes" => self.passes = reader.scalar(map, field, Scalar::bool)?,
            "attempts" => self.attempts = reader.whole_in(map, field, ATTEMPTS_RANGE)?.and_then(count),
            "max_attempts" => {
                self.max_attempts = reader.whole_in(map, field, MAX_ATTEMPTS_RANGE)?.and_then(count);
            }
            _ => self.children = map.next_value_seed(ChildrenSeed(reader))?,
        }
        Ok(())
    }

    fn into_node(self) -> Node {
        let empty = stand_in();
        Node {
            id: self.id.unwrap_or(empty.id),
            order: self.order.unwrap_or(empty.order),
            title: self.title.unwrap_or(empty.title),
            goal: self.goal.unwrap_or(empty.goal),
            acceptance: self.acceptance.unwrap_or(empty.acceptance),
            passes: self.passes.unwrap_or(empty.passes),
            attempts: self.attempts.unwrap_or(empty.attempts),
            max_attempts: self.max_attempts.unwrap_or(empty.max_attempts),
            children: self.children.unwrap_or(empty.children),
        }
    }
}

impl<'de> Visitor<'de> for NodeSeed<'_> {
    type Value = Node;

    other_kinds!(Kind::Object);
    other_array!();

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let reader = self.0;
        reader.nodes += 1;
        let mut draft = Draft::default();
        while let Some(key) = map.next_key_seed(KeySeed(&FIELDS))? {
            match key {
                Key::Known(field) if !draft.seen.contains(&field) => {
                    draft.seen.push(field);
                    draft.read(reader, &mut map, field)?;
                }
                Key::Known(again) => {
                    map.next_value::<IgnoredAny>()?;
                    reader.found.at(&reader.position, Some(again), TreeFault::Twice(again));
                }
                Key::Unknown(key) => {
                    map.next_value::<IgnoredAny>()?;
                    let meant = nearest(&key, &FIELDS);
                    reader.found.at(&reader.position, None, TreeFault::Unknown { key, meant });
                }
            }
        }
        for field in FIELDS.iter().filter(|field| !draft.seen.contains(field)) {
            reader.found.at(&reader.position, Some(field), TreeFault::Missing(field));
        }
        Ok(draft.into_node())
    }
}

/// A list of texts.
struct AcceptanceSeed<'r>(&'r mut Reader);

impl AcceptanceSeed<'_> {
    fn other(self, kind: Kind) -> Option<Vec<String>> {
        self.0.wrong("acceptance", None, Kind::Array, kind);
        None
    }
}

impl<'de> DeserializeSeed<'de> for AcceptanceSeed<'_> {
    type Value = Option<Vec<String>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AcceptanceSeed<'_> {
    type Value = Option<Vec<String>>;

    other_kinds!(Kind::Array);
    other_object!();

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut texts = Vec::new();
        let mut index = 0;
        while let Some(scalar) = seq.next_element_seed(ScalarSeed)? {
            match scalar.string() {
                Ok(text) => texts.push(text),
                Err((wanted, found)) => self.0.wrong("acceptance", Some(index), wanted, found),
            }
            index += 1;
        }
        Ok(Some(texts))
    }
}

/// A list of nodes, one level down.
struct ChildrenSeed<'r>(&'r mut Reader);

impl ChildrenSeed<'_> {
    fn other(self, kind: Kind) -> Option<Vec<Node>> {
        self.0.wrong("children", None, Kind::Array, kind);
        None
    }
}

impl<'de> DeserializeSeed<'de> for ChildrenSeed<'_> {
    type Value = Option<Vec<Node>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ChildrenSeed<'_> {
    type Value = Option<Vec<Node>>;

    other_kinds!(Kind::Array);
    other_object!();

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        // What is beyond the limits is passed over unread: no document can cost more than they allow.
        let reader = self.0;
        let mut children = Vec::new();
        if reader.position.len() + 1 >= DEPTH_MAX {
            if pass_over(&mut seq)? {
                let below: Position = reader.position.iter().copied().chain([0]).collect();
                reader.found.at(&below, None, TreeFault::TooDeep);
            }
            return Ok(Some(children));
        }
        while reader.nodes < NODES_MAX {
            reader.position.push(children.len());
            let child = seq.next_element_seed(NodeSeed(reader))?;
            reader.position.pop();
            match child {
                Some(child) => children.push(child),
                None => return Ok(Some(children)),
            }
        }
        if pass_over(&mut seq)? {
            reader.found.too_many_nodes();
        }
        Ok(Some(children))
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
