//! Invariants of a run's repository that hold after any scenario, checked with git and files only.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::processes::wait_for;
use crate::run_builder::{BRANCH, RUN};
use crate::test_repo::TestRepo;

/// One iteration, read from its commit.
#[derive(Clone, Debug)]
struct CommittedIteration {
    commit: String,
    node: Option<String>,
    guard: String,
    is_charged: bool,
}

/// Asserts all invariants: the history, the tree, the repository, and that no process is left.
pub fn assert_sound(repo: &TestRepo) {
    assert_idle(repo);
    assert_clean(repo);
    let history = history(repo);
    assert_rules_hold(repo, &history);
    let state: Value = serde_json::from_str(&repo.read(".runner/state/run_state.json")).expect("a state");
    assert_eq!(state.get("next_iter"), Some(&(history.len() + 1).into()), "next_iter");
    assert_eq!(repo.runner(&["validate"]).ok().value("valid"), Some("true problems=0"));
    assert_verified(repo);
}

/// Asserts that `runner verify` finds no violation and checks every rule.
pub fn assert_verified(repo: &TestRepo) {
    let output = repo.runner(&["verify", RUN]);
    let is_verified = output.code == Some(0) && !output.stdout.contains("unchecked=");
    assert!(is_verified, "{}\n{}", output.stdout, output.stderr);
}

/// Asserts that no process uses the folder (see [`processes_of`]). Waits, because the last ones may still be exiting.
pub fn assert_no_processes_of(folder: &Path) {
    wait_for("the exit of every process", || processes_of(folder).is_empty());
}

/// Asserts that no process uses the test's folder, the lock is free, and there is no journal.
pub fn assert_idle(repo: &TestRepo) {
    assert_no_processes_of(repo.outside());
    let lock = repo.path(".git/runner/lock");
    if lock.exists() {
        File::open(&lock).expect("the lock").try_lock().expect("a free lock");
    }
    assert!(!repo.path(".git/runner/journal.json").exists(), "the journal has an unfinished operation");
}

/// The processes that have the folder as working directory, or its path in their environment or command line.
pub fn processes_of(folder: &Path) -> Vec<String> {
    let name = folder.as_os_str().as_encoded_bytes();
    let mentions = |file: PathBuf| {
        let bytes = fs::read(file).unwrap_or_default();
        bytes.windows(name.len()).any(|window| window == name)
    };
    let uses_folder = |process: &Path| {
        let is_inside = fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
        is_inside || mentions(process.join("environ")) || mentions(process.join("cmdline"))
    };
    let is_process = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().parse::<u32>().is_ok();
    let all = fs::read_dir("/proc").expect("/proc").flatten().filter(is_process).map(|entry| entry.path());
    all.filter(|process| uses_folder(process))
        .map(|process| {
            let line = fs::read(process.join("cmdline")).unwrap_or_default();
            format!("{}: {}", process.display(), String::from_utf8_lossy(&line).replace('\0', " "))
        })
        .collect()
}

fn assert_clean(repo: &TestRepo) {
    assert_eq!(repo.git(&["symbolic-ref", "HEAD"]), format!("refs/heads/{BRANCH}"));
    assert_eq!(repo.git(&["status", "--porcelain", "-uall"]), "", "the work tree is clean");
    assert_eq!(repo.git(&["fsck", "--strict", "--no-dangling", "--no-progress"]), "");
    let mut leftovers = Vec::new();
    for folder in [".git", ".runner"] {
        collect_leftovers(&repo.path(folder), &mut leftovers);
    }
    assert!(leftovers.is_empty(), "{leftovers:?} left behind");
}

/// Collects lock files and temporary files. Files that the runner moved aside and iterations' own files do not count.
fn collect_leftovers(folder: &Path, leftovers: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.ends_with(".git/runner/aside") || path.ends_with(".runner/iterations") {
            continue;
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect_leftovers(&path, leftovers);
        } else if path.extension().is_some_and(|end| end == "lock" || end == "tmp") {
            leftovers.push(path);
        }
    }
}

/// The iterations on the run's branch; asserts that they are numbered from 1 without a gap and form a linear history.
fn history(repo: &TestRepo) -> Vec<CommittedIteration> {
    let format = "--format=%H%x09%P%x09%(trailers:key=Runner-Attempt,valueonly,separator=)%x09%s";
    let mut previous = String::new();
    let mut iterations = Vec::new();
    for line in repo.git(&["log", "--reverse", "--first-parent", format, BRANCH]).lines() {
        let mut fields = line.splitn(4, '\t');
        let mut field = || fields.next().unwrap_or_default().to_owned();
        let commit = field();
        let parents = field();
        let attempt = field();
        let subject = field();
        assert_eq!(parents, previous, "{subject}: its parent is the previous commit");
        previous.clone_from(&commit);
        let Some(rest) = subject.strip_prefix(&format!("chore(loop): run {RUN} iter ")) else { continue };
        let words: Vec<&str> = rest.split(' ').collect();
        assert_eq!(
            words.first().copied(),
            Some(format!("{:04}", iterations.len() + 1).as_str()),
            "{subject}"
        );
        let value = |key: &str| words.iter().find_map(|word| word.strip_prefix(key)).map(str::to_owned);
        let node = words.iter().position(|word| *word == "node").and_then(|at| words.get(at + 1));
        assert!(matches!(attempt.as_str(), "charged" | "free"), "{subject}: {attempt}");
        assert!(value("status=").is_some(), "{subject}");
        iterations.push(CommittedIteration {
            commit,
            node: node.map(|node| (*node).to_owned()),
            guard: value("guard=").unwrap_or_default(),
            is_charged: attempt == "charged",
        });
    }
    iterations
}

/// Parent id and node, by id.
type Nodes = BTreeMap<String, (String, Value)>;

fn nodes_of(tree: &Value) -> Nodes {
    fn walk(node: &Value, parent: &str, nodes: &mut Nodes) {
        let id = node["id"].as_str().expect("an id").to_owned();
        let children = node["children"].as_array().expect("children");
        children.iter().for_each(|child| walk(child, &id, nodes));
        if !children.is_empty() {
            let passes = children.iter().all(|child| child["passes"] == true);
            assert_eq!(node["passes"], passes, "{id} passes exactly when all its children do");
        }
        assert!(node["attempts"].as_u64() <= node["max_attempts"].as_u64(), "{id} has too many attempts");
        assert!(nodes.insert(id.clone(), (parent.to_owned(), node.clone())).is_none(), "{id} is not unique");
    }
    let mut nodes = Nodes::new();
    walk(&tree["root"], "", &mut nodes);
    nodes
}

/// Asserts that every commit has a valid tree, that a leaf passed only with a successful guard and never changed afterwards,
/// and that attempts equal the charged iterations.
fn assert_rules_hold(repo: &TestRepo, history: &[CommittedIteration]) {
    let tree_of = |commit: &str| {
        let text = repo.git(&["show", &format!("{commit}:.runner/state/tree.json")]);
        nodes_of(&serde_json::from_str(&text).expect("a tree"))
    };
    let Some(first) = history.first() else { return };
    let mut before = tree_of(&format!("{}^", first.commit));
    let mut charged: BTreeMap<String, u64> = BTreeMap::new();
    for iteration in history {
        let after = tree_of(&iteration.commit);
        if let Some(node) = iteration.node.as_ref().filter(|_| iteration.is_charged) {
            *charged.entry(node.clone()).or_default() += 1;
        }
        for (id, old) in before.iter().filter(|(_, (_, node))| node["passes"] == true) {
            assert_eq!(after.get(id), Some(old), "{id} passed and was changed by {iteration:?}");
        }
        for (id, (_, node)) in &after {
            let attempts = charged.get(id).copied().unwrap_or_default();
            assert_eq!(node["attempts"], attempts, "attempts of {id} after {iteration:?}");
            let is_new = before.get(id).is_none_or(|(_, old)| old["passes"] == false);
            let is_leaf = node["children"].as_array().is_some_and(Vec::is_empty);
            if node["passes"] == true && is_new && is_leaf {
                assert_eq!(
                    (iteration.node.as_ref(), iteration.guard.as_str()),
                    (Some(id), "pass"),
                    "{iteration:?}"
                );
            }
        }
        before = after;
    }
}
