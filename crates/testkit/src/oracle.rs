//! What must be true of a run's repository whatever happened, found out from git and files alone.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::processes::wait_for;
use crate::run_builder::{BRANCH, RUN};
use crate::test_repo::TestRepo;

/// One iteration, as its commit tells it.
#[derive(Clone, Debug)]
struct CommittedIteration {
    commit: String,
    node: Option<String>,
    guard: String,
    is_charged: bool,
}

/// Asserts everything at once: the history, the tree, the repository, and that nothing is left running.
pub fn assert_sound(sandbox: &TestRepo) {
    assert_nothing_runs(sandbox);
    assert_clean(sandbox);
    let history = history(sandbox);
    assert_lawful(sandbox, &history);
    let state: Value = serde_json::from_str(&sandbox.read(".runner/state/run_state.json")).expect("a state");
    assert_eq!(state.get("next_iter"), Some(&(history.len() + 1).into()), "next_iter");
    assert_eq!(sandbox.runner(&["validate"]).ok().value("valid"), Some("true problems=0"));
    assert_verified(sandbox);
}

/// The run's history is what the rules make of it, by the program's own audit.
pub fn assert_verified(sandbox: &TestRepo) {
    let told = sandbox.runner(&["verify", RUN]);
    assert!(told.code == Some(0) && !told.stdout.contains("unchecked="), "{}\n{}", told.stdout, told.stderr);
}

/// No process lives in a folder or knows its name. The last ones may be dying still.
pub fn assert_nothing_of(folder: &Path) {
    wait_for("the end of every process", || processes_of(folder).is_empty());
}

/// No process of the sandbox lives, the lock is free, and nothing is begun.
pub fn assert_nothing_runs(sandbox: &TestRepo) {
    assert_nothing_of(sandbox.outside());
    let lock = sandbox.path(".git/runner/lock");
    if lock.exists() {
        File::open(&lock).expect("the lock").try_lock().expect("nobody holds the lock");
    }
    assert!(!sandbox.path(".git/runner/journal.json").exists(), "something is begun and not finished");
}

/// The processes that live in a folder or know its name.
pub fn processes_of(folder: &Path) -> Vec<String> {
    let name = folder.as_os_str().as_encoded_bytes();
    let knows = |file: PathBuf| {
        let bytes = fs::read(file).unwrap_or_default();
        bytes.windows(name.len()).any(|part| part == name)
    };
    let is_ours = |process: &Path| {
        let lives_here = fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
        lives_here || knows(process.join("environ")) || knows(process.join("cmdline"))
    };
    let numbered = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().parse::<u32>().is_ok();
    let all = fs::read_dir("/proc").expect("/proc").flatten().filter(numbered).map(|entry| entry.path());
    all.filter(|process| is_ours(process))
        .map(|process| {
            let line = fs::read(process.join("cmdline")).unwrap_or_default();
            format!("{}: {}", process.display(), String::from_utf8_lossy(&line).replace('\0', " "))
        })
        .collect()
}

fn assert_clean(sandbox: &TestRepo) {
    assert_eq!(sandbox.git(&["symbolic-ref", "HEAD"]), format!("refs/heads/{BRANCH}"));
    assert_eq!(sandbox.git(&["status", "--porcelain", "-uall"]), "", "the work tree is clean");
    assert_eq!(sandbox.git(&["fsck", "--strict", "--no-dangling", "--no-progress"]), "");
    let mut left = Vec::new();
    for folder in [".git", ".runner"] {
        collect_left(&sandbox.path(folder), &mut left);
    }
    assert!(left.is_empty(), "{left:?} left behind");
}

/// Locks and temporary files; what was set aside is out of everyone's way.
fn collect_left(folder: &Path, left: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.ends_with(".git/runner/aside") || path.ends_with(".runner/iterations") {
            continue;
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect_left(&path, left);
        } else if path.extension().is_some_and(|end| end == "lock" || end == "tmp") {
            left.push(path);
        }
    }
}

/// The iterations on the run's branch: numbered from 1 without a gap, each on top of the one before.
fn history(sandbox: &TestRepo) -> Vec<CommittedIteration> {
    let format = "--format=%H%x09%P%x09%(trailers:key=Runner-Attempt,valueonly,separator=)%x09%s";
    let mut before = String::new();
    let mut told = Vec::new();
    for line in sandbox.git(&["log", "--reverse", "--first-parent", format, BRANCH]).lines() {
        let mut fields = line.splitn(4, '\t');
        let mut field = || fields.next().unwrap_or_default().to_owned();
        let (commit, parents, attempt, subject) = (field(), field(), field(), field());
        assert_eq!(parents, before, "{subject}: its parent is the commit before");
        before.clone_from(&commit);
        let Some(rest) = subject.strip_prefix(&format!("chore(loop): run {RUN} iter ")) else { continue };
        let words: Vec<&str> = rest.split(' ').collect();
        assert_eq!(words.first().copied(), Some(format!("{:04}", told.len() + 1).as_str()), "{subject}");
        let value = |key: &str| words.iter().find_map(|word| word.strip_prefix(key)).map(str::to_owned);
        let node = words.iter().position(|word| *word == "node").and_then(|at| words.get(at + 1));
        assert!(matches!(attempt.as_str(), "charged" | "free"), "{subject}: {attempt}");
        assert!(value("status=").is_some(), "{subject}");
        told.push(CommittedIteration {
            commit,
            node: node.map(|node| (*node).to_owned()),
            guard: value("guard=").unwrap_or_default(),
            is_charged: attempt == "charged",
        });
    }
    told
}

/// A node and what is above it.
type Nodes = BTreeMap<String, (String, Value)>;

fn nodes_of(tree: &Value) -> Nodes {
    fn walk(node: &Value, above: &str, nodes: &mut Nodes) {
        let id = node["id"].as_str().expect("an id").to_owned();
        let children = node["children"].as_array().expect("children");
        children.iter().for_each(|child| walk(child, &id, nodes));
        if !children.is_empty() {
            let passes = children.iter().all(|child| child["passes"] == true);
            assert_eq!(node["passes"], passes, "{id} passes exactly when all its children do");
        }
        assert!(node["attempts"].as_u64() <= node["max_attempts"].as_u64(), "{id} has too many attempts");
        assert!(nodes.insert(id.clone(), (above.to_owned(), node.clone())).is_none(), "{id} is there twice");
    }
    let mut nodes = Nodes::new();
    walk(&tree["root"], "", &mut nodes);
    nodes
}

/// Every commit holds a valid tree; what passed was passed by a green guard, once, and never changed again;
/// attempts are exactly those that were charged.
fn assert_lawful(sandbox: &TestRepo, history: &[CommittedIteration]) {
    let tree_of = |commit: &str| {
        let text = sandbox.git(&["show", &format!("{commit}:.runner/state/tree.json")]);
        nodes_of(&serde_json::from_str(&text).expect("a tree"))
    };
    let Some(first) = history.first() else { return };
    let mut before = tree_of(&format!("{}^", first.commit));
    let mut charged: BTreeMap<String, u64> = BTreeMap::new();
    for told in history {
        let after = tree_of(&told.commit);
        if let Some(node) = told.node.as_ref().filter(|_| told.is_charged) {
            *charged.entry(node.clone()).or_default() += 1;
        }
        for (id, was) in before.iter().filter(|(_, (_, node))| node["passes"] == true) {
            assert_eq!(after.get(id), Some(was), "{id} passed and was changed by {told:?}");
        }
        for (id, (_, node)) in &after {
            let attempts = charged.get(id).copied().unwrap_or_default();
            assert_eq!(node["attempts"], attempts, "attempts of {id} after {told:?}");
            let is_new = before.get(id).is_none_or(|(_, was)| was["passes"] == false);
            let is_leaf = node["children"].as_array().is_some_and(Vec::is_empty);
            if node["passes"] == true && is_new && is_leaf {
                assert_eq!((told.node.as_ref(), told.guard.as_str()), (Some(id), "pass"), "{told:?}");
            }
        }
        before = after;
    }
}
