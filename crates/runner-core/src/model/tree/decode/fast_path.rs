//! The short way through a document without a fault: every field in its place, read as what it must be.
//!
//! It stops at the first thing that is unusual and says nothing about it: the careful reader then begins anew. What
//! is left over in an object after its last field is an error of serde_json's own.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::model::tree::problem::{FaultCollector, Position};
use crate::model::tree::rules::TreeRules;
use crate::model::tree::serialized_len::{escapes, escapes_below};
use crate::model::tree::{BYTES_MAX, Node, VERSION};

/// The root, if the fields stand in the order in which the runner writes them and every rule holds.
pub(super) fn good_root(text: &str) -> Option<Node> {
    let escapes = (text.len() > BYTES_MAX / 4).then_some(0);
    let mut pass = FastPass { escapes, ..FastPass::default() };
    let mut json = serde_json::Deserializer::from_str(text);
    let root = FastDocumentSeed(&mut pass).deserialize(&mut json).ok()?;
    json.end().ok()?;
    let FastPass { rules, mut broken, escapes, .. } = pass;
    rules.of_the_whole(&root, || escapes.unwrap_or_else(|| escapes_below(&root)), &mut broken);
    broken.is_empty().then_some(root)
}

/// What is carried through the pass.
#[derive(Default)]
struct FastPass {
    /// The rules, looked at as soon as a node is read, while it is at hand.
    rules: TreeRules,
    broken: FaultCollector,
    /// The node that is being read.
    position: Position,
    /// What the escapes in the texts of a large document cost, for the same reason. Whether a small one is too long once
    /// it is written can nearly always be told without.
    escapes: Option<usize>,
}

/// Reads the field that must come next.
fn next<'de, A: MapAccess<'de>, T: Deserialize<'de>>(map: &mut A, name: &str) -> Result<T, A::Error> {
    next_with(map, name, PhantomData)
}

fn next_with<'de, A: MapAccess<'de>, S: DeserializeSeed<'de>>(
    map: &mut A,
    name: &str,
    seed: S,
) -> Result<S::Value, A::Error> {
    if map.next_key()? == Some(name) { map.next_value_seed(seed) } else { Err(unusual()) }
}

#[cold]
fn unusual<E: Error>() -> E {
    E::custom("unusual")
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
            return Err(unusual());
        }
        next_with(&mut map, "root", FastNodeSeed(self.0))
    }
}

/// One node with all below it.
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
        self.0.rules.see(&node, &self.0.position, &mut self.0.broken);
        Ok(node)
    }
}

/// A list of nodes.
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
                None => return Ok(children),
            }
        }
    }
}

/// A list of texts.
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

/// A text.
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

    /// What can be borrowed has no escapes in the document, and so needs none where the runner writes it.
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
