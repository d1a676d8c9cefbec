//! The checks that a session left for tasks that did not exist before it: only the session that creates a task may write them.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::attempt::LeftFile;
use crate::layout::{checks_path, node_folder};
use crate::model::checks::{CheckPath, ChecksFault, TaskChecks, decode};
use crate::model::digest::Sha256;
use crate::model::id::NodeId;
use crate::model::repo_path::RepoPath;

/// checks.toml of a new task, and what its correctness depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftChecks {
    pub toml: LeftFile,
    /// The regular files beside it.
    pub files: BTreeSet<String>,
    /// Destinations that cannot be used.
    #[serde(default)]
    pub blocked: BTreeMap<String, BlockedDestination>,
}

/// Why a path cannot be the destination of a check file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockedDestination {
    Exists,
    Protected,
}

impl BlockedDestination {
    pub fn why(self) -> &'static str {
        match self {
            Self::Exists => "exists already: choose another destination",
            Self::Protected => "is protected: choose another destination",
        }
    }
}

impl LeftChecks {
    /// Everything that is wrong with the checks of a task with so many acceptance criteria.
    pub(super) fn faults(&self, acceptance: usize) -> Vec<String> {
        let bytes = match &self.toml {
            LeftFile::Bytes(bytes) => bytes,
            LeftFile::Missing => return Vec::new(),
            LeftFile::NotAFile => return vec!["is not a regular file".to_owned()],
            LeftFile::TooLarge(bytes) => return vec![format!("is too large: {bytes} bytes")],
        };
        let exists = |name: &str| self.files.contains(name).then(|| Sha256::of(b""));
        let faults = match TaskChecks::read(bytes, |file| exists(file.as_str())) {
            Ok(checks) => {
                let mut faults = checks.point_faults(acceptance);
                for check in &checks.checks {
                    faults.extend(check.files.keys().filter_map(|path| {
                        let why = self.blocked.get(path.as_str())?.why();
                        Some(ChecksFault::Destination { check: check.name.clone(), path: path.clone(), why })
                    }));
                }
                faults
            }
            Err(faults) => faults,
        };
        faults.iter().map(ToString::to_string).collect()
    }

    /// The files that belong to the checks.
    pub(super) fn paths(&self, node: &NodeId) -> Vec<RepoPath> {
        let path = |text: String| RepoPath::of_bytes(text.as_bytes());
        let mut paths = vec![path(checks_path(node))];
        if let LeftFile::Bytes(bytes) = &self.toml {
            let named: BTreeSet<String> = decode(bytes)
                .unwrap_or_default()
                .iter()
                .flat_map(|check| check.files.values())
                .map(ToString::to_string)
                .collect();
            let left = named.into_iter().filter(|name| self.files.contains(name));
            paths.extend(left.map(|name| path(format!("{}/{name}", node_folder(node)))));
        }
        paths
    }

    /// The destinations of a checks.toml that can be decoded.
    pub fn destinations(toml: &[u8]) -> Vec<CheckPath> {
        let checks = decode(toml).unwrap_or_default();
        checks.iter().flat_map(|check| check.files.keys().cloned()).collect()
    }
}
