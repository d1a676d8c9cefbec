//! A tree as an agent left it: read as strictly as any, but for what is the runner's own to mend.

use super::{Node, Tree, TreeError, TreeProblem, decode};

/// An agent's tree, its children sorted. What the runner owns in it (`passes`, `attempts`, `max_attempts`)
/// is what the agent wrote and means nothing yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentTree(Tree);

impl AgentTree {
    /// Reads the document; every fault that the agent must mend is told, in the order of the nodes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Vec<TreeProblem>> {
        let (mut root, found) = decode::document(bytes).map_err(|problem| vec![problem])?;
        let mut problems = found.into_result(&root).err().unwrap_or_default();
        problems.retain(|problem| !is_the_runners_to_mend(&problem.fault));
        if !problems.is_empty() {
            return Err(problems);
        }
        sort(&mut root);
        Ok(Self(Tree::of(root)))
    }

    /// What an agent left that was given `before`: often just that, and then there is nothing to read.
    pub fn left_of(before: &Tree, bytes: &[u8]) -> Result<Self, Vec<TreeProblem>> {
        if bytes == before.bytes() { Ok(Self(before.clone())) } else { Self::decode(bytes) }
    }

    /// Whether it is this very tree.
    pub fn is(&self, tree: &Tree) -> bool {
        self.0 == *tree
    }

    /// The goal as a whole.
    pub fn root(&self) -> &Node {
        self.0.root()
    }
}

/// Children out of order are sorted; runner-owned fields are taken from the tree before.
fn is_the_runners_to_mend(fault: &TreeError) -> bool {
    matches!(
        fault,
        TreeError::Unsorted { .. }
            | TreeError::AttemptsOverMax { .. }
            | TreeError::PassesTooEarly { .. }
            | TreeError::PassesTooLate
    )
}

fn sort(node: &mut Node) {
    node.children.sort_by(|one, other| one.sort_key().cmp(&other.sort_key()));
    node.children.iter_mut().for_each(sort);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(order: [i64; 2], passes: bool) -> String {
        let node = |id: &str, order: i64, children: &str| {
            format!(
                r#"{{"id": "{id}", "order": {order}, "title": "", "goal": "", "acceptance": [],
                "passes": {passes}, "attempts": 9, "max_attempts": 3, "children": [{children}]}}"#
            )
        };
        let children = order.map(|order| node(&format!("n{order}"), order, "")).join(",");
        format!(r#"{{"version": 1, "root": {}}}"#, node("root", 0, &children))
    }

    #[test]
    fn unsorted_children_and_runner_owned_fields_are_no_fault_of_the_agent() {
        let tree = AgentTree::decode(document([2, 1], true).as_bytes()).unwrap();
        let ids: Vec<&str> = tree.root().children.iter().map(|child| child.id.as_str()).collect();
        assert_eq!(ids, ["n1", "n2"]);
    }

    #[test]
    fn a_tree_that_was_not_touched_is_the_one_before() {
        let before = super::super::sample::tree(super::super::sample::leaf("root"));
        let left = AgentTree::left_of(&before, before.bytes()).unwrap();
        assert!(left.is(&before));
        let touched = AgentTree::left_of(&before, document([1, 2], false).as_bytes()).unwrap();
        assert!(!touched.is(&before));
        assert_eq!(touched.root().children.len(), 2);
        assert!(AgentTree::left_of(&before, b"").is_err());
    }

    #[test]
    fn anything_else_is_told_with_its_node() {
        let twins = document([2, 2], false);
        let problems = AgentTree::decode(twins.as_bytes()).unwrap_err();
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].node, "root/n2");
    }
}
