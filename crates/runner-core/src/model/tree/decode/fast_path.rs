//! The fast path of the decoder, for valid documents in canonical order.
//!
//! It gives up at the first irregularity, without a message: the strict decoder then starts over. serde_json itself rejects
//! extra keys at the end of an object.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::model::tree::problem::{FaultCollector, Position};
use crate::model::tree::rules::TreeRules;
use crate::model::tree::serialized_len::{escapes, escapes_below};
use crate::model::tree::{BYTES_MAX, Node, VERSION};

/// The root of a document, if it is valid and its fields are in canonical order.
pub(super) fn decode_valid(text: &str) -> Option<Node> {
    let escapes = (text.len() > BYTES_MAX / 4).then_some(0);
    let mut pass = FastPass { escapes, ..FastPass::default() };
    let mut json = serde_json::Deserializer::from_str(text);
    let root = FastDocumentSeed(&mut pass).deserialize(&mut json).ok()?;
    json.end().ok()?;
    let FastPass { rules, mut faults, escapes, .. } = pass;
    rules.check_tree(&root, || escapes.unwrap_or_else(|| escapes_below(&root)), &mut faults);
    faults.is_empty().then_some(root)
}

/// The state of the pass.
#[derive(Default)]
struct FastPass {
    /// The rules, checked as soon as a node is decoded, while it is in the cache.
    rules: TreeRules,
    faults: FaultCollector,
    position: Position,
    /// The extra bytes of escapes in the texts of a large document, counted for the same reason. A small document is almost
    /// never too large in canonical form, so they are not needed.
    escapes: Option<usize>,
}

/// Decodes the field that must come next.
fn next<'de, A: MapAccess<'de>, T: Deserialize<'de>>(map: &mut A, name: &str) -> Result<T, A::Error> {
    next_with(map, name, PhantomData)
}

fn next_with<'de, A: MapAccess<'de>, S: DeserializeSeed<'de>>(
    map: &mut A,
    name: &str,
    seed: S,
) -> Result<S::Value, A::Error> {
    if map.next_key()? == Some(name) { map.next_value_seed(seed) } else { Err(irregular()) }
}

#[cold]
fn irregular<E: Error>() -> E {
    E::custom("irregular")
}

struct FastDocumentSeed<'r>(&'r mut FastPass);

impl<'de> DeserializeSeed<'de> for FastDocumentSeed<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FastDocumentSeed<'_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a document")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        if next::<_, i64>(&mut map, "version")? != VERSION {
            return Err(irregular());
        }
        next_with(&mut map, "root", FastNodeSeed(self.0))
    }
}

/// A node with its subtree.
struct FastNodeSeed<'r>(&'r mut FastPass);

impl<'de> DeserializeSeed<'de> for FastNodeSeed<'_> {
    type Value = Node;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FastNodeSeed<'_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a node")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        let map = &mut map;
        let node = Node {
            id: next(map, "id")?,
            order: next(map, "order")?,
            title: next_with(map, "title", TextSeed(self.0))?,
            goal: next_with(map, "goal", TextSeed(self.0))?,
            acceptance: next_with(map, "acceptance", TextsSeed(self.0))?,
            passes: next(map, "passes")?,
            attempts: next(map, "attempts")?,
            max_attempts: next(map, "max_attempts")?,
            children: next_with(map, "children", FastChildrenSeed(self.0))?,
        };
        self.0.rules.check_node(&node, &self.0.position, &mut self.0.faults);
        Ok(node)
    }
}

struct FastChildrenSeed<'r>(&'r mut FastPass);

impl<'de> DeserializeSeed<'de> for FastChildrenSeed<'_> {
    type Value = Vec<Node>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<Node>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for FastChildrenSeed<'_> {
    type Value = Vec<Node>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("nodes")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<Node>, A::Error> {
        let mut children = Vec::new();
        loop {
            self.0.position.push(children.len());
            let child = seq.next_element_seed(FastNodeSeed(self.0))?;
            self.0.position.pop();
            match child {
                Some(child) => children.push(child),
                None => {
                    // A tree is kept for long, and a list that grew has room for up to twice its nodes.
                    children.shrink_to_fit();
                    return Ok(children);
                }
            }
        }
    }
}

struct TextsSeed<'r>(&'r mut FastPass);

impl<'de> DeserializeSeed<'de> for TextsSeed<'_> {
    type Value = Vec<String>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<String>, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for TextsSeed<'_> {
    type Value = Vec<String>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("texts")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<String>, A::Error> {
        let mut texts = Vec::new();
        while let Some(text) = seq.next_element_seed(TextSeed(self.0))? {
            texts.push(text);
        }
        Ok(texts)
    }
}

struct TextSeed<'r>(&'r mut FastPass);

impl<'de> DeserializeSeed<'de> for TextSeed<'_> {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for TextSeed<'_> {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    /// A text that can be borrowed has no escapes in the document, so it has none in canonical form.
    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<String, E> {
        Ok(text.to_owned())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
        if let Some(cost) = &mut self.0.escapes {
            *cost += escapes(text);
        }
        Ok(text.to_owned())
    }
}
