//! What the guard's result depends on besides the files of the commit: the versions of tools, and the lock files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::digest::Sha256;
use super::repo_path::RepoPath;

/// The environment of a run, as `runner start` finds it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Environment {
    /// In the order of the configuration.
    pub tools: Vec<ToolVersion>,
    /// The lock files of the commit, sorted by path.
    pub locks: Vec<LockFile>,
}

/// A program, and the version that it prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolVersion {
    /// As the configuration has it.
    pub tool: String,
    /// The first line that it prints; null if it cannot be run.
    #[serde(deserialize_with = "Option::deserialize")]
    pub version: Option<String>,
}

/// A file that names what a package manager installs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LockFile {
    pub path: RepoPath,
    pub digest: Sha256,
}

/// Files that name what a package manager installs.
pub const LOCK_FILES: [&str; 14] = [
    "package-lock.json",
    "npm-shrinkwrap.json",
    "pnpm-lock.yaml",
    "yarn.lock",
    "bun.lock",
    "bun.lockb",
    "uv.lock",
    "poetry.lock",
    "Pipfile.lock",
    "requirements.txt",
    "go.sum",
    "Cargo.lock",
    "Gemfile.lock",
    "composer.lock",
];

impl Environment {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// What differs in another environment, one sentence for each.
    pub fn differences(&self, now: &Self) -> Vec<String> {
        let shown = |version: Option<&String>| version.map_or("not found", String::as_str).to_owned();
        let mut differences = Vec::new();
        for then in &self.tools {
            let is = now.tools.iter().find(|tool| tool.tool == then.tool);
            let is = is.and_then(|tool| tool.version.as_ref());
            if is != then.version.as_ref() {
                let was = shown(then.version.as_ref());
                differences.push(format!("{}: {was} at the start, {} now", then.tool, shown(is)));
            }
        }
        let digest = |of: &Self, path: &RepoPath| {
            of.locks.iter().find(|lock| lock.path == *path).map(|lock| lock.digest)
        };
        for lock in &self.locks {
            match digest(now, &lock.path) {
                Some(is) if is == lock.digest => {}
                Some(_) => differences.push(format!("{}: changed since the start", lock.path)),
                None => differences.push(format!("{}: removed since the start", lock.path)),
            }
        }
        let added = now.locks.iter().filter(|lock| digest(self, &lock.path).is_none());
        differences.extend(added.map(|lock| format!("{}: added since the start", lock.path)));
        differences
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_difference_is_named() {
        let tool = |tool: &str, version: Option<&str>| ToolVersion {
            tool: tool.to_owned(),
            version: version.map(str::to_owned),
        };
        let lock = |path: &str, text: &[u8]| LockFile {
            path: RepoPath::of_bytes(path.as_bytes()),
            digest: Sha256::of(text),
        };
        let then = Environment {
            tools: vec![tool("cc", Some("1")), tool("go", Some("2")), tool("jq", None)],
            locks: vec![lock("a.lock", b"a"), lock("b.lock", b"b"), lock("c.lock", b"c")],
        };
        assert_eq!(then.differences(&then), Vec::<String>::new());
        let now = Environment {
            tools: vec![tool("cc", Some("1")), tool("go", Some("3")), tool("jq", Some("1.7"))],
            locks: vec![lock("a.lock", b"a"), lock("b.lock", b"x"), lock("d.lock", b"d")],
        };
        assert_eq!(
            then.differences(&now),
            [
                "go: 2 at the start, 3 now",
                "jq: not found at the start, 1.7 now",
                "b.lock: changed since the start",
                "c.lock: removed since the start",
                "d.lock: added since the start",
            ]
        );
    }
}
