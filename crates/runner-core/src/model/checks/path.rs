//! Paths in checks.toml: destinations in the repository, and the names of files beside checks.toml.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::layout::{CHECKS_FILE, RUNNER_DIR, TOOLS_FILE};
use crate::model::repo_path::RepoPath;

/// A path in the user's repository, outside `.runner/` and `.git/`, of printable characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct CheckPath(String);

impl CheckPath {
    /// The path; or why it cannot be one.
    pub fn new(text: &str) -> Result<Self, &'static str> {
        let has = |bad: fn(&str) -> bool| text.split('/').any(bad);
        if text.is_empty() || text.starts_with('/') || has(|part| part == "..") {
            return Err("expected a path inside the repository, relative to its root");
        }
        if has(|part| part.is_empty() || part == ".") {
            return Err("expected the path of a file, without `.`, `//` and a slash at the end");
        }
        if has(|part| part.eq_ignore_ascii_case(".git")) || text.split('/').next() == Some(RUNNER_DIR) {
            return Err("expected a path outside of git's and the runner's own folders");
        }
        if text.contains(|c: char| c.is_control() || c == '\\') {
            return Err("expected a path of printable characters, without a backslash");
        }
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn to_repo_path(&self) -> RepoPath {
        RepoPath::of_bytes(self.0.as_bytes())
    }
}

impl fmt::Display for CheckPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for CheckPath {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

/// The name of a file beside checks.toml.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct CheckFileName(String);

impl CheckFileName {
    /// The name; or why it cannot be one.
    pub fn new(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() || text.starts_with('.') || text.contains(['/', '\\']) {
            return Err("expected the name of a file beside checks.toml, without folders");
        }
        if [CHECKS_FILE, TOOLS_FILE, "context.md", "artifacts"].contains(&text) {
            return Err("expected a file that the runner does not use itself");
        }
        // The runner's .gitignore has these.
        if text.ends_with(".tmp") || text.ends_with(".bak") || text.contains(char::is_control) {
            return Err("expected a file that git tracks: not `*.tmp` or `*.bak`");
        }
        Ok(Self(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CheckFileName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for CheckFileName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(&String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}
