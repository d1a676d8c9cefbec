//! Names that people type: runs, tasks and iterations, for the completion of command lines.

use std::path::Path;

use runner_core::layout::Doc;
use runner_core::model::id::RunId;
use runner_core::model::tree::{Node, Tree};

use crate::repo::readonly_repo::{ReadonlyRepo, RunBranch};
use crate::view::run_folder::run_folder;

/// How many iterations are offered.
const ITERATIONS_MAX: usize = 50;

/// A name and what it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownName {
    pub name: String,
    pub meaning: String,
}

/// The runs of the repository, newest first. None if there is no repository.
pub fn run_names(dir: &Path) -> Vec<KnownName> {
    let runs = ReadonlyRepo::open(dir).and_then(|repo| repo.runs()).unwrap_or_default();
    runs.into_iter().map(|branch| KnownName { name: branch.run.to_string(), meaning: branch.name }).collect()
}

/// The tasks of the current run, in the order of the plan.
pub fn node_names(dir: &Path) -> Vec<KnownName> {
    let Some((repo, branch)) = current_run(dir) else { return Vec::new() };
    let bytes = repo.doc(&branch.commit, Doc::Tree).ok().flatten().unwrap_or_default();
    let Ok(tree) = Tree::decode(&bytes) else { return Vec::new() };
    let mut names = Vec::new();
    push_nodes(tree.root(), &mut names);
    names
}

fn push_nodes(node: &Node, names: &mut Vec<KnownName>) {
    names.push(KnownName { name: node.id.to_string(), meaning: node.title.clone() });
    node.children.iter().for_each(|child| push_nodes(child, names));
}

/// The newest iterations of the current run, newest first.
pub fn iteration_names(dir: &Path) -> Vec<KnownName> {
    let Some((repo, branch)) = current_run(dir) else { return Vec::new() };
    let iterations = repo.iterations(&branch.run, &branch.commit).unwrap_or_default();
    let name = |iter: u32, summary: String| KnownName { name: iter.to_string(), meaning: summary };
    iterations.into_iter().rev().take(ITERATIONS_MAX).map(|it| name(it.iter.get(), it.summary)).collect()
}

/// The run that is checked out, here or in the only linked work tree with one; otherwise the newest.
fn current_run(dir: &Path) -> Option<(ReadonlyRepo, RunBranch)> {
    let repo = ReadonlyRepo::open(&run_folder(dir, None)).ok()?;
    let current = repo.branch().and_then(|branch| RunId::of_branch(&branch));
    let mut runs = repo.runs().ok()?;
    let at = runs.iter().position(|branch| Some(&branch.run) == current.as_ref()).unwrap_or(0);
    (at < runs.len()).then(|| (repo, runs.swap_remove(at)))
}
