//! A tree as an agent left it: decoded as strictly as any, except for errors that the runner fixes itself.

use super::{Node, Tree, TreeError, TreeProblem, decode};

/// An agent's tree, with its children sorted. The fields that the runner owns (`passes`, `attempts`, `max_attempts`) have
/// the agent's values, which do not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentTree(Tree);

impl AgentTree {
    /// Decodes the document. Reports every problem that the agent must fix, in the order of the nodes.
    pub fn decode(bytes: &[u8]) -> Result<Self, Vec<TreeProblem>> {
        let (mut root, faults) = decode::document(bytes).map_err(|problem| vec![problem])?;
        let mut problems = faults.into_result(&root).err().unwrap_or_default();
        problems.retain(|problem| !is_fixed_by_runner(&problem.fault));
        if !problems.is_empty() {
            return Err(problems);
        }
        sort(&mut root);
        Ok(Self(Tree::of(root)))
    }

    /// The tree that an agent left of `before`. It is often unchanged, and then need not be decoded.
    pub fn left_of(before: &Tree, bytes: &[u8]) -> Result<Self, Vec<TreeProblem>> {
        if bytes == before.bytes() { Ok(Self(before.clone())) } else { Self::decode(bytes) }
    }

    /// Whether it equals this tree.
    pub fn is(&self, tree: &Tree) -> bool {
        self.0 == *tree
    }

    pub fn root(&self) -> &Node {
        self.0.root()
    }
}

impl Tree {
    /// Decodes a tree that a user wrote: as strictly as any, but the runner sorts the children.
    pub fn decode_and_sort(bytes: &[u8]) -> Result<Self, Vec<TreeProblem>> {
        let (mut root, faults) = decode::document(bytes).map_err(|problem| vec![problem])?;
        let mut problems = faults.into_result(&root).err().unwrap_or_default();
        problems.retain(|problem| !matches!(problem.fault, TreeError::Unsorted { .. }));
        if !problems.is_empty() {
            return Err(problems);
        }
        sort(&mut root);
        Ok(Self::of(root))
    }
}

/// The runner sorts children, and takes the fields that it owns from the tree before the session.
fn is_fixed_by_runner(fault: &TreeError) -> bool {
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
    fn unsorted_children_and_runner_owned_fields_are_accepted() {
        let tree = AgentTree::decode(document([2, 1], true).as_bytes()).unwrap();
        let ids: Vec<&str> = tree.root().children.iter().map(|child| child.id.as_str()).collect();
        assert_eq!(ids, ["n1", "n2"]);
    }

    #[test]
    fn a_users_tree_is_sorted_and_otherwise_strict() {
        let text = document([2, 1], false).replace("\"attempts\": 9", "\"attempts\": 0");
        assert!(Tree::decode(text.as_bytes()).is_err());
        let tree = Tree::decode_and_sort(text.as_bytes()).unwrap();
        assert_eq!(tree, Tree::decode(tree.bytes()).unwrap());
        let ids: Vec<&str> = tree.root().children.iter().map(|child| child.id.as_str()).collect();
        assert_eq!(ids, ["n1", "n2"]);
        assert!(
            Tree::decode_and_sort(document([2, 1], false).as_bytes()).is_err(),
            "attempts over the maximum"
        );
    }

    #[test]
    fn an_unchanged_tree_equals_the_one_before() {
        let before = super::super::sample::tree(super::super::sample::leaf("root"));
        let left = AgentTree::left_of(&before, before.bytes()).unwrap();
        assert!(left.is(&before));
        let changed = AgentTree::left_of(&before, document([1, 2], false).as_bytes()).unwrap();
        assert!(!changed.is(&before));
        assert_eq!(changed.root().children.len(), 2);
        assert!(AgentTree::left_of(&before, b"").is_err());
    }

    #[test]
    fn any_other_error_is_reported_with_its_node() {
        let duplicates = document([2, 2], false);
        let problems = AgentTree::decode(duplicates.as_bytes()).unwrap_err();
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].node, "root/n2");
    }
}
