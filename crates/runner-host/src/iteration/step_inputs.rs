//! The files under `.runner/` that a step reads beside the documents: templates, and what belongs to nodes.

use std::collections::BTreeMap;
use std::fs;

use runner_core::layout::{RUNNER_DIR, node_folder, tools_path};
use runner_core::model::id::NodeId;
use runner_core::model::repo_path::RepoPath;
use runner_core::model::tools::{Tools, ToolsError};
use runner_core::prompt::PromptError;
use runner_core::runs::start::DocSet;
use runner_core::step::Artifact;

use crate::error::Error;
use crate::fs::atomic;
use crate::git::Git;
use crate::view::inspect::{docs_of, read_docs};

/// The files under `.runner/` that a step reads: from the work tree, or as a commit has them.
pub(super) struct StepInputs {
    pub(super) docs: DocSet,
    commit: Option<String>,
}

impl StepInputs {
    pub(super) fn of_work_tree(git: &Git) -> Result<Self, Error> {
        Ok(Self { docs: read_docs(git)?, commit: None })
    }

    pub(super) fn of_commit(git: &Git, commit: &str) -> Result<Self, Error> {
        Ok(Self { docs: docs_of(git, commit)?, commit: Some(commit.to_owned()) })
    }

    pub(super) fn note(&self, git: &Git, node: &NodeId) -> Option<String> {
        let bytes = self.read(git, &format!("{}/context.md", node_folder(node))).ok().flatten();
        let text = String::from_utf8_lossy(&bytes?).into_owned();
        Some(text).filter(|text| !text.is_empty())
    }

    /// A file under `.runner/`; none where it is not there.
    fn read(&self, git: &Git, path: &str) -> Result<Option<Vec<u8>>, Error> {
        match &self.commit {
            Some(commit) => Ok(Some(git.file_at(commit, path)?).filter(|bytes| !bytes.is_empty())),
            None => atomic::read(&git.root().join(path), TEXT_BYTES_MAX),
        }
    }

    /// What agents may use on nodes, by those of their files that are there.
    pub(super) fn tools(
        &self,
        git: &Git,
        nodes: impl Iterator<Item = NodeId>,
    ) -> Result<BTreeMap<NodeId, Tools>, Error> {
        let mut tools = BTreeMap::new();
        for node in nodes {
            let Some(bytes) = self.read(git, &tools_path(&node))? else { continue };
            let node_tools = Tools::decode(&bytes).map_err(|problems| {
                let problem = problems.first().clone();
                PromptError::Tools(ToolsError::Invalid { node: node.clone(), problem })
            })?;
            tools.insert(node, node_tools);
        }
        Ok(tools)
    }

    /// What was kept for a node: the files that git knows.
    pub(super) fn artifacts(&self, git: &Git, node: &NodeId) -> Vec<Artifact> {
        let folder = format!("{}/artifacts/", node_folder(node));
        if self.commit.is_none() && !git.root().join(&folder).exists() {
            return Vec::new();
        }
        let commit = self.commit.as_deref().unwrap_or("HEAD");
        let sized = git.sizes_of(commit, &folder).unwrap_or_default();
        let artifact = |(path, bytes): (Vec<u8>, u64)| {
            Some(Artifact { path: RepoPath::of_bytes(path.strip_prefix(folder.as_bytes())?), bytes })
        };
        sized.into_iter().filter_map(artifact).collect()
    }

    /// The user's own templates, by file name.
    pub(super) fn templates(&self, git: &Git) -> BTreeMap<String, String> {
        let folder = format!("{RUNNER_DIR}/prompts/");
        let named = |name: String, bytes: Vec<u8>| (name, String::from_utf8_lossy(&bytes).into_owned());
        if let Some(commit) = &self.commit {
            let files = git.files_of(commit, &folder).unwrap_or_default();
            let objects: Vec<&str> = files.iter().map(|file| file.object.as_str()).collect();
            let blobs = git.blobs(&objects).unwrap_or_default();
            let names = files.iter().map(|file| String::from_utf8_lossy(&file.path).replace(&folder, ""));
            return names.zip(blobs).map(|(name, bytes)| named(name, bytes)).collect();
        }
        let entries = fs::read_dir(git.root().join(&folder)).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                Some(named(name, atomic::read(&entry.path(), TEXT_BYTES_MAX).ok()??))
            })
            .collect()
    }
}

/// The most bytes that a template or a note of the user's may have.
const TEXT_BYTES_MAX: u64 = 1 << 20;
