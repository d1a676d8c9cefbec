//! The files of a commit that verification reads, and the snapshot that a step would have built from them.

use std::collections::BTreeMap;
use std::convert::Infallible;

use crate::config::Config;
use crate::layout::{
    CHECKS_FILE, Doc, DocOwner, RUNNER_DIR, TOOLS_FILE, checks_path, node_folder, tools_path,
};
use crate::model::checks::{CheckFilePath, ChecksFault, TaskChecks};
use crate::model::digest::Sha256;
use crate::model::goal::Goal;
use crate::model::id::{NodeId, RunId};
use crate::model::repo_path::RepoPath;
use crate::model::run_state::RunState;
use crate::model::tools::Tools;
use crate::model::tree::Tree;
use crate::step::{Artifact, Snapshot, SnapshotInputs, SnapshotSource};

pub type Files = BTreeMap<Vec<u8>, Vec<u8>>;

const PROMPTS: &str = "prompts";
const NODES: &str = "nodes";

/// The parts of a path below `.runner/`.
fn parts(path: &[u8]) -> Option<Vec<&str>> {
    let rest = std::str::from_utf8(path).ok()?.strip_prefix(RUNNER_DIR)?.strip_prefix('/')?;
    Some(rest.split('/').collect())
}

/// Whether verification needs the contents of a file: documents, prompt templates, and files of nodes.
pub fn is_read(path: &[u8]) -> bool {
    let is_text = parts(path).is_some_and(|parts| {
        matches!(parts.as_slice(), [PROMPTS, _] | [NODES, _, _] | [NODES, _, "artifacts", ..])
    });
    is_text || Doc::at(path).is_some()
}

/// Whether an iteration may change a path: everything outside `.runner/`; inside it the tree, the state, the memory and the
/// files of nodes.
pub(super) fn may_iteration_change(path: &[u8]) -> bool {
    let Some(parts) = parts(path) else { return true };
    let is_changeable =
        |doc: Doc| doc.owner() == DocOwner::Memory || matches!(doc, Doc::Tree | Doc::RunState);
    match parts.as_slice() {
        // Only the user allows tools, for any node and before it exists.
        [NODES, _, TOOLS_FILE] => false,
        [NODES, ..] => true,
        _ => Doc::at(path).is_some_and(is_changeable),
    }
}

/// Whether a path is inside `.runner/`.
pub(crate) fn is_runner_path(path: &[u8]) -> bool {
    parts(path).is_some()
}

pub(super) fn doc(files: &Files, doc: Doc) -> Option<&[u8]> {
    files.get(doc.path().as_bytes()).map(Vec::as_slice)
}

pub(super) fn goal_id(files: &Files) -> Option<RunId> {
    doc(files, Doc::Goal).and_then(|bytes| Goal::parse(bytes).ok()).and_then(|goal| goal.id().cloned())
}

/// The decoded documents that a step decides by.
#[derive(Clone, Copy, Debug)]
pub struct StepDocuments<'d> {
    pub tree: &'d Tree,
    pub state: &'d RunState,
    pub config: &'d Config,
}

/// The snapshot that a step would have read from these files; `None` if the goal cannot be parsed.
pub fn snapshot(
    files: &Files,
    run_id: &RunId,
    docs: StepDocuments<'_>,
    user_commits: u32,
) -> Option<Snapshot> {
    let inputs = SnapshotInputs {
        run_id: run_id.clone(),
        goal: Goal::parse(doc(files, Doc::Goal)?).ok()?.body().to_owned(),
        config: docs.config.clone(),
        tree: docs.tree.clone(),
        state: docs.state.clone(),
        user_commits,
    };
    let Ok(snapshot) = Snapshot::build(inputs, &RecordedFiles(files));
    Some(snapshot)
}

/// Files of a commit as the source of a snapshot. A tools.json that cannot be decoded counts as missing: no step would have
/// started with it.
struct RecordedFiles<'f>(&'f Files);

impl SnapshotSource for RecordedFiles<'_> {
    type Error = Infallible;

    fn document(&self, which: Doc) -> Option<&[u8]> {
        doc(self.0, which)
    }

    fn node_context(&self, node: &NodeId) -> Result<Option<Vec<u8>>, Infallible> {
        Ok(self.0.get(format!("{}/context.md", node_folder(node)).as_bytes()).cloned())
    }

    fn node_tools(&self, node: &NodeId) -> Result<Option<Tools>, Infallible> {
        let bytes = self.0.get(tools_path(node).as_bytes()).filter(|bytes| !bytes.is_empty());
        Ok(bytes.and_then(|bytes| Tools::decode(bytes).ok()))
    }

    fn node_checks(&self, node: &NodeId) -> Result<Option<TaskChecks>, Infallible> {
        Ok(task_checks(self.0, node).and_then(Result::ok))
    }

    fn artifacts(&self, node: &NodeId) -> Result<Vec<Artifact>, Infallible> {
        let folder = format!("{}/artifacts/", node_folder(node)).into_bytes();
        let below = self.0.range(folder.clone()..).take_while(|(path, _)| path.starts_with(&folder));
        let artifacts = below
            .filter_map(|(path, size)| {
                let bytes = std::str::from_utf8(size).ok()?.parse().ok()?;
                Some(Artifact { path: RepoPath::of_bytes(path.strip_prefix(folder.as_slice())?), bytes })
            })
            .collect();
        Ok(artifacts)
    }

    fn templates(&self) -> Result<BTreeMap<String, Vec<u8>>, Infallible> {
        let mut templates = BTreeMap::new();
        for (path, bytes) in self.0 {
            if let Some([PROMPTS, name]) = parts(path).as_deref() {
                templates.insert((*name).to_owned(), bytes.clone());
            }
        }
        Ok(templates)
    }
}

/// The checks of a task, if it has any; or what is wrong with them.
pub(super) fn task_checks(files: &Files, node: &NodeId) -> Option<Result<TaskChecks, Vec<ChecksFault>>> {
    let toml = files.get(checks_path(node).as_bytes()).filter(|bytes| !bytes.is_empty())?;
    Some(TaskChecks::read(toml, |file| {
        let digest = files.get(format!("{}/{file}", node_folder(node)).as_bytes())?;
        Sha256::parse(std::str::from_utf8(digest).ok()?)
    }))
}

/// The valid checks of all tasks of a tree, from the files that a commit has.
pub fn all_checks(files: &Files, tree: &Tree) -> BTreeMap<NodeId, TaskChecks> {
    let nodes = files.keys().filter_map(|path| {
        let file = CheckFilePath::parse(path).filter(CheckFilePath::is_checks_toml)?;
        tree.path_to(&file.node).is_some().then_some(file.node)
    });
    nodes.filter_map(|node| Some((node.clone(), task_checks(files, &node)?.ok()?))).collect()
}

/// What [`Files`] hold of a file: its bytes; for an artifact its size in digits, because prompts only name the size; for a
/// check file its digest.
pub fn kept(path: &[u8], bytes: Vec<u8>) -> Vec<u8> {
    let parts = parts(path).unwrap_or_default();
    match parts.as_slice() {
        [NODES, _, "artifacts", ..] => bytes.len().to_string().into_bytes(),
        [NODES, _, "context.md" | TOOLS_FILE | CHECKS_FILE] => bytes,
        [NODES, _, _] => Sha256::of(&bytes).to_string().into_bytes(),
        _ => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::step::TEXT_BYTES_MAX;

    #[test]
    fn only_files_that_decide_something_are_read() {
        for read in [
            ".runner/GOAL.md",
            ".runner/state/tree.json",
            ".runner/prompts/leaf.md",
            ".runner/nodes/a/context.md",
            ".runner/nodes/a/checks.toml",
            ".runner/nodes/a/nested.rs",
        ] {
            assert!(is_read(read.as_bytes()), "{read}");
        }
        for other in ["src/a.rs", ".runner/nodes/a/b/other", ".runner/prompts/a/b.md", ".runner/iterations/x"]
        {
            assert!(!is_read(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn an_iteration_may_not_change_the_rules_of_the_run() {
        for allowed in [
            "src/a.rs",
            ".runner/state/tree.json",
            ".runner/state/questions.md",
            ".runner/nodes/a/artifacts/x",
        ] {
            assert!(may_iteration_change(allowed.as_bytes()), "{allowed}");
        }
        for forbidden in [
            ".runner/GOAL.md",
            ".runner/state/config.toml",
            ".runner/prompts/x.md",
            ".runner/nodes/x/tools.json",
        ] {
            assert!(!may_iteration_change(forbidden.as_bytes()), "{forbidden}");
        }
    }

    /// The snapshot of a run with one leaf and this file.
    fn snapshot_with(path: &str, bytes: &[u8]) -> Snapshot {
        let run = RunId::new("r").unwrap();
        let state = RunState::new(Some(run.clone()));
        let goal = (Doc::Goal.path().as_bytes().to_vec(), b"# Goal\n\nAll.\n".to_vec());
        let files = Files::from([goal, (path.as_bytes().to_vec(), kept(path.as_bytes(), bytes.to_vec()))]);
        let tree = crate::model::tree::sample::tree(crate::model::tree::sample::leaf("root"));
        let docs = StepDocuments { tree: &tree, state: &state, config: &Config::default() };
        snapshot(&files, &run, docs, 0).unwrap()
    }

    #[test]
    fn files_of_the_selected_node_are_in_the_snapshot() {
        let root = NodeId::root();
        let context =
            |bytes: &[u8]| snapshot_with(".runner/nodes/root/context.md", bytes).node_files.contexts;
        assert_eq!(context(b"by hand\n"), BTreeMap::from([(root.clone(), "by hand\n".to_owned())]));
        assert_eq!(context(b""), BTreeMap::new());
        assert_eq!(context(&vec![b'x'; TEXT_BYTES_MAX]).len(), 1);
        assert_eq!(context(&vec![b'x'; TEXT_BYTES_MAX + 1]).len(), 0, "too long");
        let tools = |bytes: &[u8]| snapshot_with(".runner/nodes/root/tools.json", bytes).node_files.tools;
        let model = br#"{"model": "small"}"#;
        assert_eq!(tools(model), BTreeMap::from([(root.clone(), Tools::decode(model).unwrap())]));
        assert_eq!(tools(b""), BTreeMap::new());
        let artifact = Artifact { path: RepoPath::of_bytes(b"a/b.png"), bytes: 5 };
        let kept = snapshot_with(".runner/nodes/root/artifacts/a/b.png", b"12345").node_files.artifacts;
        assert_eq!(kept, BTreeMap::from([(root, vec![artifact])]));
    }

    #[test]
    fn a_template_is_in_the_snapshot_unless_it_is_too_long() {
        let templates = |bytes: usize| snapshot_with(".runner/prompts/leaf.md", &vec![b'x'; bytes]).templates;
        assert_eq!(templates(2), BTreeMap::from([("leaf.md".to_owned(), "xx".to_owned())]));
        assert_eq!(templates(TEXT_BYTES_MAX).len(), 1);
        assert_eq!(templates(TEXT_BYTES_MAX + 1).len(), 0);
    }
}
