//! Which files belong to the checks of a task, and so may change only with the user's command.

use super::decode;
use crate::layout::{CHECKS_FILE, NODES_DIR};
use crate::model::id::NodeId;

/// A file in the folder of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckFilePath<'p> {
    pub node: NodeId,
    pub name: &'p str,
}

impl<'p> CheckFilePath<'p> {
    /// The path, if it is a file directly in the folder of a task.
    pub fn parse(path: &'p [u8]) -> Option<Self> {
        let rest = std::str::from_utf8(path).ok()?.strip_prefix(NODES_DIR)?.strip_prefix('/')?;
        let (node, name) = rest.split_once('/')?;
        let node = NodeId::new(node).ok()?;
        (!name.contains('/')).then_some(Self { node, name })
    }

    pub fn is_checks_toml(&self) -> bool {
        self.name == CHECKS_FILE
    }

    /// Whether this checks.toml names the file, or the file is checks.toml itself.
    pub fn is_part_of(&self, toml: Option<&[u8]>) -> bool {
        let is_named = |toml: &[u8]| {
            let checks = decode(toml).unwrap_or_default();
            checks.iter().flat_map(|check| check.files.values()).any(|file| file.as_str() == self.name)
        };
        self.is_checks_toml() || toml.is_some_and(is_named)
    }
}

/// The task whose frozen checks a path belongs to. `checks_of` returns the committed checks.toml of a task that exists; for a
/// task that does not, nothing is frozen.
pub fn frozen_node(
    path: &[u8],
    exists: impl FnOnce(&NodeId) -> bool,
    checks_of: impl FnOnce(&NodeId) -> Option<Vec<u8>>,
) -> Option<NodeId> {
    let file = CheckFilePath::parse(path)?;
    if !exists(&file.node) {
        return None;
    }
    let is_frozen = file.is_checks_toml() || file.is_part_of(checks_of(&file.node).as_deref());
    is_frozen.then_some(file.node)
}
