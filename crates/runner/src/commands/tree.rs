//! `runner tree`

use std::path::Path;

use runner_cli::numbers::counted;
use runner_cli::state::{State, States};
use runner_cli::{Exit, Line, Pen, Reply, Report};
use runner_core::layout::Doc;
use runner_core::tree::{Node, Tree};
use runner_host::inspect::{Read, read_tree};
use serde_json::{Value, json};

use crate::cli::TreeArgs;
use crate::view::clean;
use crate::view::tree::{Shown, draw};

pub(crate) struct Answer {
    tree: Tree,
    shown: Shown,
}

pub(crate) fn run(dir: &Path, args: &TreeArgs) -> Result<Answer, Report> {
    let shown = Shown { levels: args.depth.map_or(usize::MAX, usize::from), only_open: args.open };
    Ok(Answer { tree: load(dir, "could not show the tree")?, shown })
}

/// The tree, or every fault in it.
pub(crate) fn load(dir: &Path, what: &str) -> Result<Tree, Report> {
    match read_tree(dir).map_err(|error| Report::of(what, &error))? {
        Read::Good(tree) => Ok(tree),
        Read::Faulty(problems) => {
            let count = counted(problems.len(), "fault", "faults");
            Err(Report::new("tree", Exit::REFUSED, what)
                .cause(format!("`{}` has {count}", Doc::Tree.path()))
                .details(problems.iter().map(ToString::to_string))
                .hint(format!("mend it, or undo: git checkout -- {}", Doc::Tree.path())))
        }
        Read::Missing => Err(Report::new("missing", Exit::REFUSED, what)
            .cause(format!("`{}` is missing", Doc::Tree.path()))
            .hint("run 'runner start' to write what is missing")),
    }
}

impl Answer {
    fn each(&self, mut tell: impl FnMut(&Node, usize, State)) {
        fn descend(
            node: &Node,
            level: usize,
            answer: &Answer,
            states: &States<'_>,
            tell: &mut impl FnMut(&Node, usize, State),
        ) {
            tell(node, level, states.of(node));
            if level < answer.shown.levels {
                for child in node.children.iter().filter(|child| answer.shown.includes(child)) {
                    descend(child, level + 1, answer, states, tell);
                }
            }
        }
        descend(self.tree.root(), 1, self, &States::new(&self.tree), &mut tell);
    }
}

impl Reply for Answer {
    fn json(&self) -> Value {
        let mut nodes = Vec::new();
        self.each(|node, level, state| {
            let leaves = node.leaves();
            nodes.push(json!({
                "id": node.id, "level": level, "state": state.word(), "title": node.title,
                "attempts": node.attempts, "max_attempts": node.max_attempts,
                "leaves": leaves.total, "leaves_passed": leaves.passed,
            }));
        });
        json!({ "schema": "runner.tree/1", "nodes": nodes })
    }

    fn plain(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        self.each(|node, level, state| {
            let leaves = node.leaves();
            lines.push(
                Line::new()
                    .with("level", level)
                    .with("id", &node.id)
                    .with("state", state.word())
                    .with("attempts", format!("{}/{}", node.attempts, node.max_attempts))
                    .with("leaves", format!("{}/{}", leaves.passed, leaves.total))
                    .with("title", clean(&node.title)),
            );
        });
        lines
    }

    fn drawn(&self, pen: &Pen) -> String {
        draw(&self.tree, self.shown, pen)
    }
}
