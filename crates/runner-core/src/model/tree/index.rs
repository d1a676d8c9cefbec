//! An index of a tree: each node and its parent, by id.

use std::collections::BTreeMap;

use crate::model::id::NodeId;
use crate::model::tree::Node;

#[derive(Clone, Copy, Debug)]
pub(crate) struct IndexedNode<'t> {
    pub(crate) node: &'t Node,
    pub(crate) parent: Option<&'t NodeId>,
}

/// The nodes of a tree by id.
pub(crate) struct NodeIndex<'t>(BTreeMap<&'t NodeId, IndexedNode<'t>>);

impl<'t> NodeIndex<'t> {
    pub(crate) fn of(root: &'t Node) -> Self {
        fn descend<'t>(
            node: &'t Node,
            parent: Option<&'t NodeId>,
            all: &mut BTreeMap<&'t NodeId, IndexedNode<'t>>,
        ) {
            all.insert(&node.id, IndexedNode { node, parent });
            for child in &node.children {
                descend(child, Some(&node.id), all);
            }
        }
        let mut all = BTreeMap::new();
        descend(root, None, &mut all);
        Self(all)
    }

    pub(crate) fn get(&self, id: &NodeId) -> Option<IndexedNode<'t>> {
        self.0.get(id).copied()
    }

    /// The nodes in the order of their ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = IndexedNode<'t>> {
        self.0.values().copied()
    }

    /// The path of a node as text.
    pub(crate) fn path(&self, id: &'t NodeId) -> String {
        let up = std::iter::successors(Some(id), |id| self.get(id).and_then(|indexed| indexed.parent));
        let mut ids: Vec<&str> = up.map(NodeId::as_str).collect();
        ids.reverse();
        ids.join("/")
    }
}
