//! What a run protects from its agents: the files, and the parts of files, that decide what the guard does.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::digest::Sha256;
use super::repo_path::RepoPath;

/// The protected files of a run, as `runner start` found them. An iteration never changes the list.
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
    /// Whether a path is protected although it did not exist at the start, or is a part of a file that did.
    pub fn pins(&self, path: &RepoPath) -> bool {
        self.missing.contains(path) || self.entries.iter().any(|entry| entry.pinned && entry.path() == *path)
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

#[cfg(test)]
mod tests {
    use super::*;

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
        };
        assert!(protection.pins(&path(".env")) && protection.pins(&path("package.json#scripts.test")));
        assert!(!protection.pins(&path("justfile")) && !protection.pins(&path("package.json#scripts.lint")));
        assert_eq!(protection.entry_files(), [path("package.json")]);
        let names = ["justfile", ".env", "package.json#scripts.test", "package.json#scripts.lint"];
        assert_eq!(protection.names(), names);
    }
}
