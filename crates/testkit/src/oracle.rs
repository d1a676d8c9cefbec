//! Invariants of a run's repository that hold after any scenario, checked with git and files only.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::processes::wait_for;
use crate::run_builder::{RUN, UNREPEATABLE};
use crate::test_repo::{RunOutput, TestRepo, run};

/// How long the last processes of a run may take to exit.
const EXIT_TIMEOUT: Duration = Duration::from_secs(20);

/// Checks one run of a repository. A check that fails becomes a violation, so that one call reports all of them.
#[derive(Clone, Copy, Debug)]
pub struct RunOracle<'a> {
    repo: &'a TestRepo,
    run: &'a str,
}

/// One iteration, read from its commit.
#[derive(Clone, Debug)]
struct CommittedIteration {
    commit: String,
    node: Option<String>,
    guard: String,
    is_charged: bool,
}

/// Every pass of every test run is repeated in a fresh clone if this variable is set; otherwise those of runs that require a
/// room, because a guard in the work tree may depend on anything.
const RERUN_VARIABLE: &str = "RUNNER_ORACLE_RERUN";

/// Asserts all invariants: the history, the tree, the repository, that no process is left, and that passes can be repeated.
pub fn assert_sound(repo: &TestRepo) {
    let oracle = RunOracle::new(repo, RUN);
    let mut violations = oracle.violations();
    if oracle.must_be_repeatable() {
        oracle.check_repeated(&mut violations);
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

/// Asserts that `runner verify` finds no violation and checks every rule, and that passes can be repeated.
pub fn assert_verified(repo: &TestRepo) {
    let mut violations = Vec::new();
    let oracle = RunOracle::new(repo, RUN);
    oracle.check_verified(&mut violations);
    if oracle.must_be_repeatable() {
        oracle.check_repeated(&mut violations);
    }
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

/// What keeps others from repeating the passes of a run in a fresh clone; empty if nothing does.
pub fn unrepeatable_passes(repo: &TestRepo) -> Vec<String> {
    let mut violations = Vec::new();
    RunOracle::new(repo, RUN).check_repeated(&mut violations);
    violations
}

/// Asserts that no process uses the folder (see [`processes_of`]). Waits, because the last ones may still be exiting.
pub fn assert_no_processes_of(folder: &Path) {
    wait_for("the exit of every process", || processes_of(folder).is_empty());
}

/// Asserts that no process uses the test's folder, the lock is free, and there is no journal.
pub fn assert_idle(repo: &TestRepo) {
    let mut violations = Vec::new();
    RunOracle::new(repo, RUN).check_idle(&mut violations);
    assert!(violations.is_empty(), "{}", violations.join("\n"));
}

impl<'a> RunOracle<'a> {
    pub fn new(repo: &'a TestRepo, run: &'a str) -> Self {
        Self { repo, run }
    }

    /// Everything that does not hold, in words.
    pub fn violations(&self) -> Vec<String> {
        let mut violations = Vec::new();
        self.check_idle(&mut violations);
        self.check_clean(&mut violations);
        let history = self.history(&mut violations);
        self.check_rules(&history, &mut violations);
        let path = self.repo.path(".runner/state/run_state.json");
        let state: Value = serde_json::from_slice(&fs::read(path).unwrap_or_default()).unwrap_or_default();
        let next = history.len() + 1;
        if state.get("next_iter") != Some(&next.into()) {
            violations.push(format!(
                "next_iter is {:?} after {} iterations",
                state.get("next_iter"),
                next - 1
            ));
        }
        let output = self.repo.runner(&["validate"]);
        if output.value("valid") != Some("true problems=0") {
            violations.push(format!("validate: {}{}", output.stdout, output.stderr));
        }
        self.check_verified(&mut violations);
        violations
    }

    fn check_verified(&self, violations: &mut Vec<String>) {
        let output = self.repo.runner(&["verify", self.run]);
        if output.code != Some(0) || output.stdout.contains("unchecked=") {
            violations.push(format!("verify: exit {:?}: {}{}", output.code, output.stdout, output.stderr));
        }
    }

    fn must_be_repeatable(&self) -> bool {
        let requires_room = || {
            let config = fs::read_to_string(self.repo.path(".runner/state/config.toml"));
            config.is_ok_and(|config| config.contains("room = \"require\""))
        };
        !self.repo.outside().join(UNREPEATABLE).exists()
            && (std::env::var_os(RERUN_VARIABLE).is_some() || requires_room())
    }

    /// Everyone can repeat every pass: guard and checks come to the same in rooms of a fresh clone.
    fn check_repeated(&self, violations: &mut Vec<String>) {
        let branch = format!("runner/{}", self.run);
        let passed = self.git(&["log", "--format=%h", "--grep=^Runner-Outcome: passed$", &branch]);
        if passed.is_ok_and(|passed| passed.is_empty()) {
            return;
        }
        let folder = tempfile::tempdir_in(self.repo.outside()).expect("a temporary folder");
        let clone = folder.path().join("clone");
        let url = format!("file://{}", self.repo.root().display());
        if let Err(error) = self.git(&["clone", "-q", "-b", &branch, &url, &clone.display().to_string()]) {
            violations.push(error);
            return;
        }
        let mut command = self.repo.runner_command(&["verify", self.run, "--rerun", "all"]);
        let output = run(command.current_dir(&clone));
        if output.code != Some(0) || output.stdout.contains("unchecked=") {
            let RunOutput { code, stdout, stderr } = output;
            violations.push(format!("verify --rerun all in a fresh clone: exit {code:?}: {stdout}{stderr}"));
        }
    }

    /// No process uses the folder, the lock is free, and no operation is unfinished.
    fn check_idle(&self, violations: &mut Vec<String>) {
        let deadline = Instant::now() + EXIT_TIMEOUT;
        let mut left = processes_of(self.repo.outside());
        while !left.is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
            left = processes_of(self.repo.outside());
        }
        if !left.is_empty() {
            violations.push(format!("processes are left: {left:?}"));
        }
        let folder = self.git_dir().join("runner");
        let is_locked = |lock: File| lock.try_lock().is_err();
        if File::open(folder.join("lock")).is_ok_and(is_locked) {
            violations.push("the runner's lock is held".to_owned());
        }
        if folder.join("journal.json").exists() {
            violations.push("the journal has an unfinished operation".to_owned());
        }
    }

    /// The git folder of the work tree, also if the repository is broken.
    fn git_dir(&self) -> PathBuf {
        let folder = self.git(&["rev-parse", "--path-format=absolute", "--git-dir"]);
        folder.map_or_else(|_| self.repo.path(".git"), PathBuf::from)
    }

    fn check_clean(&self, violations: &mut Vec<String>) {
        let branch = format!("refs/heads/runner/{}", self.run);
        let expected: [(&[&str], &str); 3] = [
            (&["symbolic-ref", "HEAD"], &branch),
            (&["status", "--porcelain", "-uall"], ""),
            (&["fsck", "--strict", "--no-dangling", "--no-progress"], ""),
        ];
        for (args, output) in expected {
            match self.git(args) {
                Ok(actual) if actual == output => {}
                Ok(actual) => violations.push(format!("git {}: `{actual}`", args.join(" "))),
                Err(error) => violations.push(error),
            }
        }
        let mut leftovers = Vec::new();
        let common = self.git(&["rev-parse", "--path-format=absolute", "--git-common-dir"]);
        let git_dir = common.map_or_else(|_| self.repo.path(".git"), PathBuf::from);
        collect_leftovers(&git_dir, &mut leftovers);
        collect_leftovers(&self.repo.path(".runner"), &mut leftovers);
        if !leftovers.is_empty() {
            violations.push(format!("files are left: {leftovers:?}"));
        }
    }

    fn git(&self, args: &[&str]) -> Result<String, String> {
        let output = self.repo.try_git(args);
        if output.code == Some(0) {
            return Ok(output.stdout.trim_end().to_owned());
        }
        Err(format!("git {}: exit {:?}: {}", args.join(" "), output.code, output.stderr.trim_end()))
    }

    /// The iterations on the run's branch. They must be numbered from 1 without a gap and form a linear history.
    fn history(&self, violations: &mut Vec<String>) -> Vec<CommittedIteration> {
        let format = "--format=%H%x09%P%x09%(trailers:key=Runner-Attempt,valueonly,separator=)%x09%s";
        let branch = format!("refs/heads/runner/{}", self.run);
        let log = self.git(&["log", "--reverse", "--first-parent", format, &branch]);
        let log = log.unwrap_or_else(|error| {
            violations.push(error);
            String::new()
        });
        let mut previous = String::new();
        let mut is_of_run = false;
        let mut iterations = Vec::new();
        for line in log.lines() {
            let mut fields = line.splitn(4, '\t');
            let mut field = || fields.next().unwrap_or_default().to_owned();
            let commit = field();
            let parents = field();
            let attempt = field();
            let subject = field();
            // Below the run's first commit, the history is the user's.
            is_of_run |= subject.starts_with("chore(loop): ");
            if is_of_run && parents != previous {
                violations.push(format!("{subject}: its parent is not the previous commit"));
            }
            previous.clone_from(&commit);
            let Some((_, rest)) = subject.split_once(" iter ") else { continue };
            let is_iteration = subject.starts_with("chore(loop): run ");
            if !is_iteration {
                continue;
            }
            let words: Vec<&str> = rest.split(' ').collect();
            if words.first().copied() != Some(format!("{:04}", iterations.len() + 1).as_str()) {
                violations.push(format!("{subject}: expected number {}", iterations.len() + 1));
            }
            let value = |key: &str| words.iter().find_map(|word| word.strip_prefix(key)).map(str::to_owned);
            let node = words.iter().position(|word| *word == "node").and_then(|at| words.get(at + 1));
            if !matches!(attempt.as_str(), "charged" | "free") || value("status=").is_none() {
                violations.push(format!("{subject}: attempt `{attempt}`"));
            }
            iterations.push(CommittedIteration {
                commit,
                node: node.map(|node| (*node).to_owned()),
                guard: value("guard=").unwrap_or_default(),
                is_charged: attempt == "charged",
            });
        }
        iterations
    }

    /// Every commit has a valid tree, a leaf passed only with a successful guard and never changed afterwards, and attempts
    /// equal the charged iterations.
    fn check_rules(&self, history: &[CommittedIteration], violations: &mut Vec<String>) {
        let Some(first) = history.first() else { return };
        let mut commits = vec![format!("{}^", first.commit)];
        commits.extend(history.iter().map(|iteration| iteration.commit.clone()));
        let mut trees = self.trees_of(&commits, violations).into_iter();
        let mut before = trees.next().unwrap_or_default();
        let mut charged: BTreeMap<String, u64> = BTreeMap::new();
        for (iteration, after) in history.iter().zip(trees) {
            if let Some(node) = iteration.node.as_ref().filter(|_| iteration.is_charged) {
                *charged.entry(node.clone()).or_default() += 1;
            }
            // A task that the user adds to a complete plan, or the runner for a check that fails again, opens the root again.
            let is_reopened = after.keys().any(|id| !before.contains_key(id));
            for (id, old) in before.iter().filter(|(_, entry)| entry.passes()) {
                if after.get(id) != Some(old) && !(id == "root" && is_reopened) {
                    violations.push(format!("{id} passed and was changed by {iteration:?}"));
                }
            }
            for (id, TreeEntry { node, .. }) in &after {
                let attempts = charged.get(id).copied().unwrap_or_default();
                if node["attempts"] != attempts {
                    let count = &node["attempts"];
                    violations
                        .push(format!("{id} has {count} attempts, {attempts} are charged: {iteration:?}"));
                }
                let is_new = before.get(id).is_none_or(|old| !old.passes());
                let is_leaf = node["children"].as_array().is_some_and(Vec::is_empty);
                let is_pass = iteration.node.as_ref() == Some(id) && iteration.guard == "pass";
                if node["passes"] == true && is_new && is_leaf && !is_pass {
                    violations.push(format!("{id} passes without its guard: {iteration:?}"));
                }
            }
            before = after;
        }
    }

    /// The trees of these commits, read by one process.
    fn trees_of(&self, commits: &[String], violations: &mut Vec<String>) -> Vec<TreeNodes> {
        let names: Vec<String> =
            commits.iter().map(|commit| format!("{commit}:.runner/state/tree.json")).collect();
        let texts = self.repo.blobs(&names);
        let mut trees = Vec::new();
        for (commit, text) in commits.iter().zip(texts) {
            let mut nodes = TreeNodes::new();
            match serde_json::from_slice::<Value>(&text) {
                Ok(tree) => {
                    collect_nodes(tree.get("root").unwrap_or(&Value::Null), "", &mut nodes, violations);
                }
                Err(error) => violations.push(format!("{commit}: tree.json: {error}")),
            }
            trees.push(nodes);
        }
        trees
    }
}

/// One node of a tree, with its children inside of it.
#[derive(Debug, PartialEq)]
struct TreeEntry {
    parent: String,
    node: Value,
}

impl TreeEntry {
    fn passes(&self) -> bool {
        self.node.get("passes") == Some(&Value::Bool(true))
    }
}

type TreeNodes = BTreeMap<String, TreeEntry>;

fn collect_nodes(node: &Value, parent: &str, nodes: &mut TreeNodes, violations: &mut Vec<String>) {
    let id = node["id"].as_str().unwrap_or_default().to_owned();
    let Some(children) = node["children"].as_array() else {
        violations.push(format!("`{id}` has no list of children"));
        return;
    };
    children.iter().for_each(|child| collect_nodes(child, &id, nodes, violations));
    let passes = children.iter().all(|child| child["passes"] == true);
    if !children.is_empty() && node["passes"] != passes {
        violations.push(format!("{id} must pass exactly when all its children do"));
    }
    if node["attempts"].as_u64() > node["max_attempts"].as_u64() {
        violations.push(format!("{id} has too many attempts"));
    }
    let entry = TreeEntry { parent: parent.to_owned(), node: node.clone() };
    if nodes.insert(id.clone(), entry).is_some() {
        violations.push(format!("{id} is not unique"));
    }
}

/// The processes that have the folder as working directory, or its path in their environment or command line.
pub fn processes_of(folder: &Path) -> Vec<String> {
    let own = std::process::id();
    let name = folder.as_os_str().as_encoded_bytes();
    let mentions = |file: PathBuf| {
        let bytes = fs::read(file).unwrap_or_default();
        bytes.windows(name.len()).any(|window| window == name)
    };
    let uses_folder = |process: &Path| {
        let is_inside = fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd.starts_with(folder));
        is_inside || mentions(process.join("environ")) || mentions(process.join("cmdline"))
    };
    let is_other = |entry: &fs::DirEntry| {
        entry.file_name().to_string_lossy().parse::<u32>().is_ok_and(|process| process != own)
    };
    let all = fs::read_dir("/proc").expect("/proc").flatten().filter(is_other).map(|entry| entry.path());
    all.filter(|process| uses_folder(process))
        .map(|process| {
            let line = fs::read(process.join("cmdline")).unwrap_or_default();
            format!("{}: {}", process.display(), String::from_utf8_lossy(&line).replace('\0', " "))
        })
        .collect()
}

/// Collects lock files and temporary files. Files that the runner moved aside, iterations' own files and what guards wrote in
/// the room do not count.
fn collect_leftovers(folder: &Path, leftovers: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let others =
            ["runner/aside", ".runner/iterations", "runner/room/tree", "runner/room/cache", "runner/session"];
        if others.iter().any(|folder| path.ends_with(folder)) {
            continue;
        }
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            collect_leftovers(&path, leftovers);
        } else if path.extension().is_some_and(|end| end == "lock" || end == "tmp") {
            leftovers.push(path);
        }
    }
}
