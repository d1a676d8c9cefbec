//! What a run protects from its agents: the files, and the parts of files, that decide what the guard does.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::digest::Sha256;
use super::id::NodeId;
use super::repo_path::RepoPath;

/// The protected files of a run, as `runner start` found them. An iteration adds what new checks depend on, and nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Protection {
    /// Files, relative to the repository; `*` matches any part of a name, `**` any folders.
    pub files: Vec<String>,
    /// Files among them that did not exist and would change what the guard does: no agent may create them.
    pub missing: Vec<RepoPath>,
    /// Parts of files that agents may change otherwise.
    pub entries: Vec<FileEntry>,
    /// The digest of everything known to decide the guard's result: its configuration, and the content of these files and
    /// entries. Files behind a wildcard do not count.
    #[serde(deserialize_with = "Option::deserialize")]
    pub guard_sha256: Option<Sha256>,
    /// What the checks of tasks depend on.
    #[serde(default, skip_serializing_if = "CheckProtection::is_empty")]
    pub checks: CheckProtection,
}

/// The same for the commands of the tasks' checks. It is empty after a start; the next commit that follows a run of the agent or
/// of the guard has those of every task, with the files of the commit before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckProtection {
    /// The tasks whose checks were followed.
    pub tasks: BTreeMap<NodeId, CheckStage>,
    pub files: Vec<String>,
    pub missing: Vec<RepoPath>,
    pub entries: Vec<FileEntry>,
}

impl CheckProtection {
    fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }
}

/// When a task's checks were followed. What the task itself adds counts from its pass on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum CheckStage {
    /// Before any session worked on it.
    Open,
    /// With the files of its pass.
    Passed,
}

/// One value in a file, such as the script `test` in package.json. `Display` gives its name: `package.json#scripts.test`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileEntry {
    /// A JSON or TOML file.
    pub file: RepoPath,
    /// The keys from the document to the value.
    pub keys: Vec<String>,
    /// Whether the file existed when the run started. In a new file, the value is protected from the first pass on.
    pub pinned: bool,
}

impl fmt::Display for FileEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.file, self.keys.join("."))
    }
}

impl FileEntry {
    /// The name under which the entry is reported, like the path of a file.
    pub fn path(&self) -> RepoPath {
        RepoPath::of_bytes(self.to_string().as_bytes())
    }
}

impl Protection {
    /// Everything that is protected, for the guard and for checks, in one list.
    pub fn whole(mut self) -> Self {
        let CheckProtection { files, missing, entries, .. } = std::mem::take(&mut self.checks);
        self.with(Self { files, missing, entries, ..Self::default() })
    }

    /// This with further files and entries.
    pub(crate) fn with(self, added: Self) -> Self {
        if added.files.is_empty() && added.entries.is_empty() {
            return self;
        }
        let files: BTreeSet<String> = self.files.into_iter().chain(added.files).collect();
        let missing: BTreeSet<RepoPath> = self.missing.into_iter().chain(added.missing).collect();
        let mut entries: Vec<FileEntry> = self.entries.into_iter().chain(added.entries).collect();
        // An entry that is pinned in one of them is.
        entries.sort_by(|one, other| {
            (&one.file, &one.keys, !one.pinned).cmp(&(&other.file, &other.keys, !other.pinned))
        });
        entries.dedup_by(|one, other| one.file == other.file && one.keys == other.keys);
        let (files, missing) = (files.into_iter().collect(), missing.into_iter().collect());
        Self { files, missing, entries, guard_sha256: self.guard_sha256, checks: self.checks }
    }

    /// Whether a path is protected although it did not exist at the start, or is a part of a file that did.
    pub fn pins(&self, path: &RepoPath) -> bool {
        let mut missing = self.missing.iter().chain(&self.checks.missing);
        let mut entries = self.entries.iter().chain(&self.checks.entries);
        missing.any(|missing| is_at(path.as_str(), missing.as_str()))
            || entries.any(|entry| entry.pinned && entry.path() == *path)
    }

    /// The entry that is reported under this path.
    pub fn entry(&self, path: &RepoPath) -> Option<&FileEntry> {
        self.entries.iter().find(|entry| entry.path() == *path)
    }

    /// The files that have protected entries, each once.
    pub fn entry_files(&self) -> Vec<RepoPath> {
        let mut files: Vec<RepoPath> = self.entries.iter().map(|entry| entry.file.clone()).collect();
        files.sort();
        files.dedup();
        files
    }

    /// Everything that is protected, as people read it.
    pub fn names(&self) -> Vec<String> {
        let entries = self.entries.iter().map(ToString::to_string);
        self.files.iter().map(|pattern| pattern.replace('\\', "")).chain(entries).collect()
    }
}

/// Whether a path is this one, in a folder of this name, or matches it as a pattern.
fn is_at(path: &str, place: &str) -> bool {
    let is_below = path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    is_below || (place.contains('*') && matches(path, place))
}

/// Whether a path matches a pattern in which `*` stands for any part of a name.
fn matches(path: &str, pattern: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return path == pattern };
    let Some(tail) = path.strip_prefix(start) else { return false };
    let name_end = tail.find('/').unwrap_or(tail.len());
    let ends = tail.char_indices().map(|(at, _)| at).chain([tail.len()]).filter(|at| *at <= name_end);
    ends.into_iter().any(|at| matches(tail.get(at..).unwrap_or_default(), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_covers_its_folder_and_its_pattern() {
        assert!(is_at("check", "check") && is_at("check/x", "check") && !is_at("checks", "check"));
        assert!(
            is_at("mk/z.mk", "mk/*.mk") && !is_at("mk/a/z.mk", "mk/*.mk") && !is_at("mk/z.mk.c", "mk/*.mk")
        );
    }

    #[test]
    fn a_missing_file_and_an_entry_of_an_existing_file_are_pinned() {
        let path = |text: &str| RepoPath::of_bytes(text.as_bytes());
        let entry = |key: &str, pinned| FileEntry {
            file: path("package.json"),
            keys: vec!["scripts".to_owned(), key.to_owned()],
            pinned,
        };
        let protection = Protection {
            files: vec!["justfile".to_owned(), ".env".to_owned()],
            missing: vec![path(".env")],
            entries: vec![entry("test", true), entry("lint", false)],
            guard_sha256: None,
            checks: CheckProtection::default(),
        };
        assert!(protection.pins(&path(".env")) && protection.pins(&path("package.json#scripts.test")));
        assert!(!protection.pins(&path("justfile")) && !protection.pins(&path("package.json#scripts.lint")));
        assert_eq!(protection.entry_files(), [path("package.json")]);
        let names = ["justfile", ".env", "package.json#scripts.test", "package.json#scripts.lint"];
        assert_eq!(protection.names(), names);
    }
}
