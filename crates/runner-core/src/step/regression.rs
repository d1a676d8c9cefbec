//! The task that the runner adds for checks of passed tasks that fail again: its goal is the failing check, and so are its
//! checks.

use std::collections::{BTreeMap, BTreeSet};

use super::recheck::passed_checks;
use super::snapshot::Snapshot;
use crate::layout::{checks_path, node_folder};
use crate::model::checks::{Check, CheckFileName, CheckName, CheckPath, PointNumber, RedRule, with_check};
use crate::model::id::NodeId;
use crate::model::ratchet::{CheckSource, RecheckRecord};
use crate::model::tree::{Node, Tree};

/// A task for checks that fail again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegressionTask {
    pub node: NodeId,
    /// The plan with the task.
    pub tree: Tree,
    /// Its checks and their files.
    pub files: Vec<RecordFile>,
}

/// A file that a commit of the runner adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordFile {
    pub path: String,
    pub content: RecordContent,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordContent {
    Bytes(Vec<u8>),
    /// The file at this path of the commit before.
    CopyOf(String),
}

/// The most checks of one such task.
const CHECKS_MAX: usize = 20;

/// The task for these failures. None if so many tasks were added that the run must stop, or if none can be added.
pub(super) fn regression(snapshot: &Snapshot, records: &[RecheckRecord]) -> Option<RegressionTask> {
    let max = snapshot.config.checks.regression_tasks.as_u32();
    let root = snapshot.tree.root();
    let reds: Vec<&RecheckRecord> = records.iter().filter(|record| !record.exit.is_green()).collect();
    if reds.is_empty() || root.is_leaf() || snapshot.state.ratchet.tasks >= max {
        return None;
    }
    let node = free_id(snapshot)?;
    let mut task = TaskWriter::new(node);
    let passed = passed_checks(snapshot);
    for red in reds {
        if red.source == CheckSource::Heldout {
            task.add_heldout(red);
            continue;
        }
        let checks = passed.iter().find(|task| task.node == red.node);
        let check = checks.and_then(|task| task.task.checks.iter().find(|check| check.name == red.name));
        if let Some(check) = check {
            task.add(red, check);
        }
    }
    task.finish(root, u32::try_from(snapshot.config.max_attempts_default.get()).unwrap_or(1))
}

/// The first id that no node has.
fn free_id(snapshot: &Snapshot) -> Option<NodeId> {
    let first = snapshot.state.ratchet.tasks.saturating_add(1);
    let ids = (first..=u32::MAX).map(|nth| NodeId::new(format!("regression-{nth}")));
    ids.filter_map(Result::ok).find(|id| snapshot.tree.path_to(id).is_none())
}

/// A task while its checks are collected.
struct TaskWriter {
    node: NodeId,
    sentences: Vec<String>,
    acceptance: Vec<String>,
    names: BTreeSet<CheckName>,
    destinations: BTreeSet<CheckPath>,
    toml: String,
    files: Vec<RecordFile>,
}

impl TaskWriter {
    fn new(node: NodeId) -> Self {
        Self {
            node,
            sentences: Vec::new(),
            acceptance: Vec::new(),
            names: BTreeSet::new(),
            destinations: BTreeSet::new(),
            toml: String::new(),
            files: Vec::new(),
        }
    }

    /// Adds a check. One that shares a destination with another waits for the next task.
    fn add(&mut self, red: &RecheckRecord, check: &Check) {
        let is_free = |path: &CheckPath| !self.destinations.contains(path);
        if self.acceptance.len() >= CHECKS_MAX || !check.files.keys().all(is_free) {
            return;
        }
        let mut files = BTreeMap::new();
        let mut copies = Vec::new();
        for (destination, file) in &check.files {
            let Ok(copy) = CheckFileName::new(&format!("{}-{file}", red.node)) else { return };
            copies.push(RecordFile {
                path: format!("{}/{copy}", node_folder(&self.node)),
                content: RecordContent::CopyOf(format!("{}/{file}", node_folder(&red.node))),
            });
            files.insert(destination.clone(), copy);
        }
        copies.retain(|copy| !self.files.contains(copy));
        if copies.iter().any(|copy| self.files.iter().any(|file| file.path == copy.path)) {
            return;
        }
        copies.dedup();
        self.files.extend(copies);
        let broken = red.broken_by.map(|iter| format!(" Iteration {} broke it.", iter.get()));
        self.sentences.push(format!(
            "Check `{}` of task `{}` fails, although the task passed (`{}`: {}).{}",
            red.name,
            red.node,
            check.command.words().join(" "),
            red.exit,
            broken.unwrap_or_default(),
        ));
        self.acceptance.push(format!("Check `{}` of task `{}` succeeds", red.name, red.node));
        self.destinations.extend(check.files.keys().cloned());
        let name = self.free_name(&red.name);
        let covers = i64::try_from(self.acceptance.len()).ok().and_then(PointNumber::new);
        let check = Check {
            name,
            covers: covers.into_iter().collect(),
            files,
            red: RedRule::Required,
            ..check.clone()
        };
        self.toml = with_check(&self.toml, &check);
    }

    /// Adds a held-out check: its name alone. The next final check decides whether the task did what it asks for.
    fn add_heldout(&mut self, red: &RecheckRecord) {
        if self.acceptance.len() >= CHECKS_MAX {
            return;
        }
        let RecheckRecord { node, name, .. } = red;
        self.sentences
            .push(format!("Held-out check `{name}` of task `{node}` fails, although the task passed."));
        self.acceptance.push(format!("Held-out check `{name}` of task `{node}` succeeds"));
    }

    fn free_name(&mut self, wanted: &CheckName) -> CheckName {
        let numbered = (2..).map(|nth: u32| CheckName::new(&format!("check-{nth}")));
        let mut names = std::iter::once(Some(wanted.clone())).chain(numbered).flatten();
        let name = names.find(|name| !self.names.contains(name)).unwrap_or_else(|| wanted.clone());
        self.names.insert(name.clone());
        name
    }

    /// The task as the first child of the root, so that it is worked on next.
    fn finish(mut self, root: &Node, max_attempts: u32) -> Option<RegressionTask> {
        let first = self.acceptance.first()?;
        let title = match self.acceptance.len() {
            1 => first.clone(),
            count => format!("{count} checks of passed tasks succeed"),
        };
        let goal = format!(
            "{} Find out why, and make it succeed without breaking what other tasks did.",
            self.sentences.join(" ")
        );
        let order = root.children.iter().map(|child| child.order).min().unwrap_or(0) - 1;
        let task = Node {
            id: self.node.clone(),
            order,
            title,
            goal,
            acceptance: self.acceptance,
            passes: false,
            attempts: 0,
            max_attempts,
            children: Vec::new(),
        };
        let mut root = root.clone();
        root.children.insert(0, task);
        root.derive_passes();
        if !self.toml.is_empty() {
            self.files.push(RecordFile {
                path: checks_path(&self.node),
                content: RecordContent::Bytes(self.toml.into_bytes()),
            });
        }
        Some(RegressionTask { node: self.node, tree: Tree::new(root).ok()?, files: self.files })
    }
}
