//! `runner tree`

use std::path::Path;

use runner_core::labels::{NodeState, NodeStates};
use runner_core::layout::Doc;
use runner_core::model::tree::{Node, Tree};
use runner_host::view::inspect::{LoadedDoc, read_tree};
use runner_term::format::counted;
use runner_term::{CommandError, CommandExit, CommandOutput, KeyValueLine, Styler};
use serde_json::{Value, json};

use crate::args::TreeArgs;
use crate::render::clean;
use crate::render::tree::{TreeScope, draw};

pub(crate) struct TreeOutput {
    tree: Tree,
    shown: TreeScope,
}

pub(crate) fn run(dir: &Path, args: &TreeArgs) -> Result<TreeOutput, CommandError> {
    let shown = TreeScope { levels: args.depth.map_or(usize::MAX, usize::from), only_open: args.open };
    Ok(TreeOutput { tree: load(dir, "could not show the tree")?, shown })
}

/// The tree, or every fault in it.
pub(crate) fn load(dir: &Path, what: &str) -> Result<Tree, CommandError> {
    match read_tree(dir).map_err(|error| CommandError::from_host(what, error))? {
        LoadedDoc::Valid(tree) => Ok(tree),
        LoadedDoc::Invalid(problems) => {
            let count = counted(problems.len(), "fault", "faults");
            Err(CommandError::new("tree", CommandExit::REFUSED, what)
                .cause(format!("`{}` has {count}", Doc::Tree.path()))
                .details(problems.iter().map(ToString::to_string))
                .hint(format!("mend it, or undo: git checkout -- {}", Doc::Tree.path())))
        }
        LoadedDoc::Missing => Err(CommandError::new("missing", CommandExit::REFUSED, what)
            .cause(format!("`{}` is missing", Doc::Tree.path()))
            .hint("run 'runner start' to write what is missing")),
    }
}

impl TreeOutput {
    fn each(&self, mut tell: impl FnMut(&Node, usize, NodeState)) {
        fn descend(
            node: &Node,
            level: usize,
            answer: &TreeOutput,
            states: &NodeStates<'_>,
            tell: &mut impl FnMut(&Node, usize, NodeState),
        ) {
            tell(node, level, states.of(node));
            if level < answer.shown.levels {
                for child in node.children.iter().filter(|child| answer.shown.includes(child)) {
                    descend(child, level + 1, answer, states, tell);
                }
            }
        }
        descend(self.tree.root(), 1, self, &NodeStates::new(&self.tree), &mut tell);
    }
}

impl CommandOutput for TreeOutput {
    fn json(&self) -> Value {
        let mut nodes = Vec::new();
        self.each(|node, level, state| {
            let leaves = node.leaves();
            nodes.push(json!({
                "id": node.id, "level": level, "state": state.as_str(), "title": node.title,
                "attempts": node.attempts, "max_attempts": node.max_attempts,
                "leaves": leaves.total, "leaves_passed": leaves.passed,
            }));
        });
        json!({ "schema": "runner.tree/1", "nodes": nodes })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut lines = Vec::new();
        self.each(|node, level, state| {
            let leaves = node.leaves();
            lines.push(
                KeyValueLine::new()
                    .with("level", level)
                    .with("id", &node.id)
                    .with("state", state.as_str())
                    .with("attempts", format!("{}/{}", node.attempts, node.max_attempts))
                    .with("leaves", format!("{}/{}", leaves.passed, leaves.total))
                    .with("title", clean(&node.title)),
            );
        });
        lines
    }

    fn human(&self, pen: &Styler) -> String {
        draw(&self.tree, self.shown, pen)
    }
}
