//! `runner tree`

use std::path::Path;

use runner_core::config::OnStuck;
use runner_core::labels::{NodeState, NodeStates};
use runner_core::layout::Doc;
use runner_core::model::tree::{Node, Tree};
use runner_host::repo::readonly_repo::ReadonlyRepo;
use runner_host::view::inspect::{LoadedDoc, read_on_stuck, read_tree};
use runner_term::format::counted;
use runner_term::{CommandError, CommandOutput, KeyValueLine, Styler};
use serde_json::{Value, json};

use crate::args::TreeArgs;
use crate::render::clean;
use crate::render::tree::{TreeScope, draw};

pub(crate) struct TreeOutput {
    tree: Tree,
    on_stuck: OnStuck,
    scope: TreeScope,
}

pub(crate) fn run(dir: &Path, args: &TreeArgs) -> Result<TreeOutput, CommandError> {
    let scope = TreeScope { levels: args.depth.map_or(usize::MAX, usize::from), only_open: args.open };
    let what = "could not show the tree";
    let failed = |error| CommandError::from_host(what, error);
    let repo = ReadonlyRepo::open(dir).map_err(failed)?;
    let on_stuck = read_on_stuck(&repo).map_err(failed)?;
    Ok(TreeOutput { tree: load_from(&repo, what)?, on_stuck, scope })
}

/// Reads the tree of the run in or around a folder.
pub(crate) fn load(dir: &Path, what: &str) -> Result<Tree, CommandError> {
    let repo = ReadonlyRepo::open(dir).map_err(|error| CommandError::from_host(what, error))?;
    load_from(&repo, what)
}

/// Reads the tree; the error lists every problem in it.
pub(crate) fn load_from(repo: &ReadonlyRepo, what: &str) -> Result<Tree, CommandError> {
    match read_tree(repo).map_err(|error| CommandError::from_host(what, error))? {
        LoadedDoc::Valid(tree) => Ok(tree),
        LoadedDoc::Invalid(problems) => {
            let count = counted(problems.len(), "problem", "problems");
            Err(CommandError::refused("tree", what)
                .cause(format!("`{}` has {count}", Doc::Tree.path()))
                .details(problems.iter().map(ToString::to_string))
                .hint(format!("fix it, or undo the edit: git checkout -- {}", Doc::Tree.path())))
        }
        LoadedDoc::Missing => Err(CommandError::refused("missing", what)
            .cause(format!("`{}` is missing", Doc::Tree.path()))
            .hint("run 'runner start' to create missing files")),
    }
}

struct TreeRow<'t> {
    node: &'t Node,
    level: usize,
    state: NodeState,
}

impl TreeOutput {
    /// The nodes in the tree's order.
    fn rows(&self) -> Vec<TreeRow<'_>> {
        let mut rows = Vec::new();
        self.push_rows(self.tree.root(), 1, &NodeStates::new(&self.tree, self.on_stuck), &mut rows);
        rows
    }

    fn push_rows<'t>(
        &'t self,
        node: &'t Node,
        level: usize,
        states: &NodeStates<'_>,
        rows: &mut Vec<TreeRow<'t>>,
    ) {
        rows.push(TreeRow { node, level, state: states.of(node) });
        if level < self.scope.levels {
            for child in node.children.iter().filter(|child| self.scope.includes(child)) {
                self.push_rows(child, level + 1, states, rows);
            }
        }
    }
}

impl CommandOutput for TreeOutput {
    fn json(&self) -> Value {
        let mut nodes = Vec::new();
        for TreeRow { node, level, state } in self.rows() {
            let leaves = node.leaves();
            nodes.push(json!({
                "id": node.id, "level": level, "state": state.as_str(), "title": node.title,
                "attempts": node.attempts, "max_attempts": node.max_attempts,
                "leaves": leaves.total, "leaves_passed": leaves.passed,
            }));
        }
        json!({ "schema": "runner.tree/1", "nodes": nodes })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut lines = Vec::new();
        for TreeRow { node, level, state } in self.rows() {
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
        }
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        draw(&self.tree, self.on_stuck, self.scope, styler)
    }
}
