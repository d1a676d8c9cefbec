//! The digest of a plan: what the user consents to with `runner plan approve`.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::model::checks::TaskChecks;
use crate::model::digest::Sha256;
use crate::model::id::NodeId;
use crate::model::tree::{Node, Tree};

/// A task as the digest has it: without what the runner owns, which changes while the plan is carried out.
#[derive(Serialize)]
struct DigestedTask<'t> {
    parent: Option<&'t NodeId>,
    id: &'t NodeId,
    order: i64,
    title: &'t str,
    goal: &'t str,
    acceptance: &'t [String],
    /// The digest of checks.toml and its files.
    checks: Option<Sha256>,
}

/// The digest over the texts of all tasks, their places in the tree, and their checks with all files. Checks of nodes that are
/// not in the tree have no part in it.
pub fn plan_digest(tree: &Tree, checks: &BTreeMap<NodeId, TaskChecks>) -> Sha256 {
    let mut bytes = Vec::new();
    write(tree.root(), None, checks, &mut bytes);
    Sha256::of(&bytes)
}

fn write(node: &Node, parent: Option<&NodeId>, checks: &BTreeMap<NodeId, TaskChecks>, bytes: &mut Vec<u8>) {
    let task = DigestedTask {
        parent,
        id: &node.id,
        order: node.order,
        title: &node.title,
        goal: &node.goal,
        acceptance: &node.acceptance,
        checks: checks.get(&node.id).map(|checks| checks.digest),
    };
    bytes.extend(crate::strict::canonical_json(&task));
    node.children.iter().for_each(|child| write(child, Some(&node.id), checks, bytes));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tree::sample::{leaf, tree};

    fn checks(node: &str, toml: &str) -> BTreeMap<NodeId, TaskChecks> {
        let checks = TaskChecks::read(toml.as_bytes(), |_| Some(Sha256::of(b""))).unwrap();
        BTreeMap::from([(NodeId::new(node).unwrap(), checks)])
    }

    #[test]
    fn a_change_of_any_text_place_or_check_changes_the_digest_and_progress_does_not() {
        let with = |change: fn(&mut Node)| {
            let mut root = leaf("root");
            root.children = vec![leaf("a"), Node { order: 2, ..leaf("b") }];
            change(&mut root);
            tree(root)
        };
        let none = BTreeMap::new();
        let plan = plan_digest(&with(|_| {}), &none);
        let changes: [fn(&mut Node); 7] = [
            |root| root.title.push('x'),
            |root| root.children[0].goal.push('x'),
            |root| root.children[0].acceptance.push("x".to_owned()),
            |root| root.children[1].order = 3,
            |root| root.children[0].id = NodeId::new("c").unwrap(),
            |root| drop(root.children.pop()),
            |root| {
                let last = root.children.pop().unwrap();
                root.children[0].children.push(last);
            },
        ];
        for change in changes {
            assert_ne!(plan_digest(&with(change), &none), plan);
        }
        let progress = with(|root| {
            root.children[0].attempts = 1;
            root.children[0].max_attempts = 9;
            root.children[1].passes = true;
        });
        assert_eq!(plan_digest(&progress, &none), plan);
        let toml = "[[check]]\nname = \"c\"\ncommand = [\"true\"]\n";
        let checked = plan_digest(&with(|_| {}), &checks("a", toml));
        assert_ne!(checked, plan);
        assert_ne!(checked, plan_digest(&with(|_| {}), &checks("b", toml)));
        assert_ne!(checked, plan_digest(&with(|_| {}), &checks("a", &toml.replace("true", "false"))));
        assert_eq!(plan, plan_digest(&with(|_| {}), &checks("elsewhere", toml)));
    }
}
