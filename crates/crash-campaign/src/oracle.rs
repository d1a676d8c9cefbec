//! Judges a repository after a fault: the next commands succeed, the run is sound, and neither the agent's nor the user's
//! work is lost. It knows git, plain files and the runner's command line, and shares no code with the runner.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::oracle::{RunOracle, processes_of};
use testkit::test_repo::{TestRepo, run};

use crate::disk_state::hash_folder;
use crate::scenarios::FaultScenario;

/// What belongs to the user: it must be the same before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Belongings {
    /// Branches and tags but those of runs that may move, with their commits.
    refs: BTreeMap<String, String>,
    stashes: Vec<String>,
    /// The entries of the reflogs of HEAD and of these branches, by the path of the log.
    reflogs: BTreeMap<PathBuf, Vec<String>>,
    /// Files that git does not track, and files of the git folder.
    files: BTreeMap<PathBuf, Vec<u8>>,
}

impl Belongings {
    /// `runs` are the runs whose branches may move.
    pub(crate) fn read(repo: &TestRepo, runs: &[&str]) -> Self {
        let is_of_run = |name: &str| runs.iter().any(|run| name == format!("refs/heads/runner/{run}"));
        let format = "--format=%(refname) %(objectname)";
        let output = repo.try_git(&["for-each-ref", format, "refs/heads", "refs/tags", "refs/remotes"]);
        let lines = output.stdout.lines().filter_map(|line| line.split_once(' '));
        let refs = lines
            .filter(|(name, _)| !is_of_run(name))
            .map(|(name, commit)| (name.to_owned(), commit.to_owned()))
            .collect();
        let stashes = repo.try_git(&["stash", "list", "--format=%H"]).stdout;
        let mut files = BTreeMap::new();
        for name in ["ignored", "local", ".git/hooks", ".git/config"] {
            collect_files(&repo.path(name), &mut files);
        }
        let stashes = stashes.lines().map(str::to_owned).collect();
        Self { refs, stashes, reflogs: read_reflogs(repo, runs), files }
    }

    /// For another process that judges.
    pub(crate) fn to_json(&self) -> Value {
        json!({ "refs": self.refs, "stashes": self.stashes, "reflogs": self.reflogs, "files": self.files })
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let field = |name: &str| value.get(name).cloned();
        Some(Self {
            refs: serde_json::from_value(field("refs")?).ok()?,
            stashes: serde_json::from_value(field("stashes")?).ok()?,
            reflogs: serde_json::from_value(field("reflogs")?).ok()?,
            files: serde_json::from_value(field("files")?).ok()?,
        })
    }

    /// What differs from `before`. New refs are allowed: an agent may create branches.
    fn violations_since(&self, before: &Self, violations: &mut Vec<String>) {
        for (name, commit) in &before.refs {
            if self.refs.get(name) != Some(commit) {
                violations.push(format!("{name} moved from {commit} to {:?}", self.refs.get(name)));
            }
        }
        if self.stashes != before.stashes {
            violations.push(format!("the stashes changed from {:?} to {:?}", before.stashes, self.stashes));
        }
        self.lost_reflog_entries(before, violations);
        for (path, bytes) in &before.files {
            if self.files.get(path) != Some(bytes) {
                let state = if self.files.contains_key(path) { "changed" } else { "is gone" };
                violations.push(format!("the user's {} {state}", path.display()));
            }
        }
    }

    /// Reports every log that has lost entries since `before`. New entries are allowed.
    pub(crate) fn lost_reflog_entries(&self, before: &Self, violations: &mut Vec<String>) {
        for (path, entries) in &before.reflogs {
            let now: BTreeSet<&String> = self.reflogs.get(path).into_iter().flatten().collect();
            let lost = entries.iter().filter(|entry| !now.contains(entry)).count();
            if lost > 0 {
                let all = entries.len();
                violations.push(format!("{} lost {lost} of {all} entries of the reflog", path.display()));
            }
        }
    }
}

/// The reflogs that are files, but those of the branches of these runs.
fn read_reflogs(repo: &TestRepo, runs: &[&str]) -> BTreeMap<PathBuf, Vec<String>> {
    let mut files = BTreeMap::new();
    let git_dir = repo.path(".git");
    // A linked work tree has a file with the path of its own folder, two levels below the shared one.
    let link = fs::read_to_string(&git_dir).unwrap_or_default();
    let linked = link.trim_end().strip_prefix("gitdir: ").map(PathBuf::from);
    let common = linked.as_deref().and_then(|own| own.ancestors().nth(2)).unwrap_or(&git_dir);
    for name in ["logs/HEAD", "logs/refs/heads", "logs/refs/stash"] {
        collect_files(&common.join(name), &mut files);
    }
    linked.iter().for_each(|own| collect_files(&own.join("logs/HEAD"), &mut files));
    let is_of_run = |path: &Path| runs.iter().any(|run| path.ends_with(format!("refs/heads/runner/{run}")));
    files.retain(|path, _| !is_of_run(path));
    let entries = |bytes: &[u8]| String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect();
    files.into_iter().map(|(path, bytes)| (path, entries(&bytes))).collect()
}

fn collect_files(path: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    if path.is_dir() {
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            collect_files(&entry.path(), files);
        }
    } else if let Ok(bytes) = fs::read(path) {
        files.insert(path.to_owned(), bytes);
    }
}

/// The work trees and the home before a scenario's command.
pub(crate) struct Untouched(Vec<String>);

impl Untouched {
    pub(crate) fn read(repo: &TestRepo) -> Self {
        Self(["work", "second", "home"].iter().map(|name| hash_folder(&repo.outside().join(name))).collect())
    }

    /// Like [`judge`], for a command that ended by itself. If it left everything as it was, the next command finds what the family
    /// `no-fault` judges, and need not run.
    pub(crate) fn judge(
        &self,
        repo: &TestRepo,
        scenario: &FaultScenario,
        before: &Belongings,
    ) -> Vec<String> {
        let is_untouched = Self::read(repo).0 == self.0 && processes_of(repo.outside()).is_empty();
        if is_untouched { Vec::new() } else { judge(repo, scenario, before) }
    }
}

/// Runs the commands that must succeed, then checks everything. Returns what does not hold.
pub(crate) fn judge(repo: &TestRepo, scenario: &FaultScenario, before: &Belongings) -> Vec<String> {
    let published = published_commits(repo, scenario.runs);
    let mut violations = resume(repo, scenario.resume);
    violations.extend(judge_state(repo, scenario.runs));
    violations.extend(published.iter().filter_map(|tip| tip.violation(repo)));
    violations.extend(check_by_shell(repo, scenario.check));
    check_base_files(repo, &mut violations);
    Belongings::read(repo, scenario.runs).violations_since(before, &mut violations);
    violations
}

/// The tip of a run's branch at the fault, if the runner made it. A later command must not take it back.
struct PublishedTip {
    branch: String,
    commit: String,
}

fn published_commits(repo: &TestRepo, runs: &[&str]) -> Vec<PublishedTip> {
    let tip = |line: &str| {
        let mut words = line.splitn(3, ' ');
        let (branch, commit) = (words.next()?.to_owned(), words.next()?.to_owned());
        let is_of_run = runs.iter().any(|run| branch == format!("refs/heads/runner/{run}"));
        let is_of_runner = words.next()?.starts_with("chore(loop): ");
        (is_of_run && is_of_runner).then_some(PublishedTip { branch, commit })
    };
    let output =
        repo.try_git(&["for-each-ref", "--format=%(refname) %(objectname) %(subject)", "refs/heads/runner"]);
    output.stdout.lines().filter_map(tip).collect()
}

impl PublishedTip {
    fn violation(&self, repo: &TestRepo) -> Option<String> {
        let Self { branch, commit } = self;
        // `runner clean` removes a branch.
        let commits = repo.try_git(&["rev-list", branch]).stdout;
        let is_kept = commits.is_empty() || commits.lines().any(|line| line == commit);
        (!is_kept).then(|| format!("{branch} had {commit} at the fault, and has it no more"))
    }
}

/// Runs a scenario's own check.
fn check_by_shell(repo: &TestRepo, check: &str) -> Option<String> {
    let output = run(repo.command("sh").args(["-euc", check]).env("RUNNER", repo.binary()));
    let stderr = output.stderr.trim_end();
    (output.code != Some(0)).then(|| format!("`{check}`: exit {:?}: {}{stderr}", output.code, output.stdout))
}

/// Runs commands that must exit with 0.
pub(crate) fn resume(repo: &TestRepo, commands: &[&[&str]]) -> Vec<String> {
    let mut violations = Vec::new();
    for args in commands {
        // As in `nohup runner loop > night.log`: the runner then asks where its output goes before it recovers anything.
        let log = repo.outside().join("night.log");
        let file = File::create(&log).expect("a file for the output");
        let mut command = repo.runner_command(args);
        let stderr = file.try_clone().expect("a file for the output");
        let status = command.stdout(file).stderr(stderr).status().expect("the runner");
        if !status.success() {
            let output = fs::read_to_string(&log).unwrap_or_default();
            let error = output.find("error: ").and_then(|at| output.get(at..)).unwrap_or(&output).trim_end();
            violations.push(format!("`runner {}`: {status}: {error}", args.join(" ")));
            // Later commands would fail for the same reason.
            break;
        }
    }
    violations
}

/// Checks the run that is checked out, and that every file of the ledger is stored.
pub(crate) fn judge_state(repo: &TestRepo, runs: &[&str]) -> Vec<String> {
    let head = repo.try_git(&["symbolic-ref", "--short", "HEAD"]).stdout;
    let run = head.trim_end().strip_prefix("runner/").unwrap_or_default();
    if !runs.contains(&run) {
        return vec![format!("HEAD is `{}`, expected a branch of {runs:?}", head.trim_end())];
    }
    let mut violations = RunOracle::new(repo, run).violations();
    check_ledger(repo, &mut violations);
    violations
}

/// Every file of the branch that the run began from is in its last commit, but for `old`, which agents delete.
fn check_base_files(repo: &TestRepo, violations: &mut Vec<String>) {
    let files = |commit: &str| repo.try_git(&["ls-tree", "-r", "-z", "--name-only", commit]).stdout;
    let kept = files("HEAD");
    let kept: BTreeSet<&str> = kept.split('\0').collect();
    for lost in files("main").split('\0').filter(|file| *file != "old" && !kept.contains(file)) {
        violations.push(format!("no agent deleted `{lost}`, and the commit does not have it"));
    }
}

/// Every file that an agent completed is reachable from a branch of a run or from `refs/runner/`.
pub(crate) fn check_ledger(repo: &TestRepo, violations: &mut Vec<String>) {
    let mut files = BTreeMap::new();
    collect_files(&repo.outside().join("home/ledger"), &mut files);
    let names: Vec<PathBuf> = files.into_keys().collect();
    if names.is_empty() {
        return;
    }
    let listed = repo.try_git(&[
        "rev-list",
        "--objects",
        "--no-object-names",
        "--glob=refs/runner",
        "--glob=refs/heads/runner",
    ]);
    if listed.code != Some(0) {
        violations.push(format!("git rev-list: {}", listed.stderr.trim_end()));
    }
    let reachable: BTreeSet<&str> = listed.stdout.lines().collect();
    let mut hash = repo.command("git");
    let hashed = run(hash.args(["hash-object", "--no-filters"]).args(&names)).stdout;
    let mut hashes = hashed.lines();
    for path in &names {
        if hashes.next().is_none_or(|hash| !reachable.contains(hash)) {
            violations.push(format!("the agent's file {} is lost", path.display()));
        }
    }
    let is_kept = repo.try_git(&["cat-file", "-e", "HEAD:old"]).code == Some(0);
    if is_kept {
        violations.push("the agent's deletion of `old` is lost".to_owned());
    }
}

#[cfg(test)]
mod tests;
