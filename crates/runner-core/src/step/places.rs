//! Where each node of a tree stands, by id.

use std::collections::BTreeMap;

use crate::id::NodeId;
use crate::tree::Node;

/// A node and its parent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place<'t> {
    pub(super) node: &'t Node,
    pub(super) parent: Option<&'t NodeId>,
}

/// All nodes of a tree.
pub(super) struct Places<'t>(BTreeMap<&'t NodeId, Place<'t>>);

impl<'t> Places<'t> {
    pub(super) fn of(root: &'t Node) -> Self {
        fn descend<'t>(
            node: &'t Node,
            parent: Option<&'t NodeId>,
            all: &mut BTreeMap<&'t NodeId, Place<'t>>,
        ) {
            all.insert(&node.id, Place { node, parent });
            for child in &node.children {
                descend(child, Some(&node.id), all);
            }
        }
        let mut all = BTreeMap::new();
        descend(root, None, &mut all);
        Self(all)
    }

    pub(super) fn get(&self, id: &NodeId) -> Option<Place<'t>> {
        self.0.get(id).copied()
    }

    /// By id.
    pub(super) fn iter(&self) -> impl Iterator<Item = Place<'t>> {
        self.0.values().copied()
    }

    /// The ids from the root to a node.
    pub(super) fn path(&self, id: &'t NodeId) -> String {
        let up = std::iter::successors(Some(id), |id| self.get(id).and_then(|place| place.parent));
        let mut ids: Vec<&str> = up.map(NodeId::as_str).collect();
        ids.reverse();
        ids.join("/")
    }
}
