//! The files under `.runner/` that a step reads, from the work tree or from a commit.

use std::collections::BTreeMap;

use runner_core::layout::{Doc, RUNNER_DIR, checks_path, node_folder, tools_path};
use runner_core::model::checks::{CheckFileName, ChecksError, TaskChecks};
use runner_core::model::digest::Sha256;
use runner_core::model::id::NodeId;
use runner_core::model::object_id::CommitId;
use runner_core::model::repo_path::RepoPath;
use runner_core::model::tools::{Tools, ToolsError};
use runner_core::prompt::PromptError;
use runner_core::runs::start::DocSet;
use runner_core::step::{Artifact, SnapshotSource, TEXT_BYTES_MAX};

use crate::error::Error;
use crate::fs::atomic;
use crate::fs::lookup;
use crate::git::Git;
use crate::repo::documents::{docs_at_commit, read_docs};

/// The inputs of a step.
pub(super) struct StepInputs<'g> {
    git: &'g Git,
    pub(super) docs: DocSet,
    source: InputSource,
}

/// Where inputs come from.
enum InputSource {
    WorkTree,
    Commit(CommitId),
}

impl<'g> StepInputs<'g> {
    pub(super) fn of_work_tree(git: &'g Git) -> Result<Self, Error> {
        Ok(Self { git, docs: read_docs(git)?, source: InputSource::WorkTree })
    }

    pub(super) fn of_commit(git: &'g Git, commit: &CommitId) -> Result<Self, Error> {
        Ok(Self { git, docs: docs_at_commit(git, commit)?, source: InputSource::Commit(commit.clone()) })
    }

    /// A file under `.runner/`; none if it does not exist.
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, Error> {
        match &self.source {
            InputSource::Commit(commit) => {
                Ok(Some(self.git.file_at(commit, path)?).filter(|bytes| !bytes.is_empty()))
            }
            InputSource::WorkTree => atomic::read(&self.git.root().join(path), TEXT_BYTES_MAX as u64),
        }
    }

    fn committed_templates(
        &self,
        commit: &CommitId,
        folder: &str,
    ) -> Result<BTreeMap<String, Vec<u8>>, Error> {
        let files = self.git.files_of(commit, folder)?;
        let objects: Vec<&str> = files.iter().map(|file| file.object.as_str()).collect();
        let blobs = self.git.blobs(&objects)?;
        let names = files.iter().map(|file| String::from_utf8_lossy(&file.path).replace(folder, ""));
        Ok(names.zip(blobs).collect())
    }

    fn work_tree_templates(&self, folder: &str) -> Result<BTreeMap<String, Vec<u8>>, Error> {
        let mut templates = BTreeMap::new();
        for entry in lookup::entries(&self.git.root().join(folder))? {
            let bytes = unless_refused(atomic::read(&entry.path(), TEXT_BYTES_MAX as u64))?;
            if let (Ok(name), Some(bytes)) = (entry.file_name().into_string(), bytes) {
                templates.insert(name, bytes);
            }
        }
        Ok(templates)
    }
}

/// Nothing for a file that is too long or no regular file.
fn unless_refused(read: Result<Option<Vec<u8>>, Error>) -> Result<Option<Vec<u8>>, Error> {
    read.or_else(|error| if matches!(error, Error::Refused(_)) { Ok(None) } else { Err(error) })
}

impl SnapshotSource for StepInputs<'_> {
    type Error = Error;

    fn document(&self, doc: Doc) -> Option<&[u8]> {
        self.docs.get(&doc).map(Vec::as_slice)
    }

    fn node_context(&self, node: &NodeId) -> Result<Option<Vec<u8>>, Error> {
        unless_refused(self.read(&format!("{}/context.md", node_folder(node))))
    }

    fn node_tools(&self, node: &NodeId) -> Result<Option<Tools>, Error> {
        let Some(bytes) = self.read(&tools_path(node))? else { return Ok(None) };
        let tools = Tools::decode(&bytes).map_err(|problems| {
            let problem = problems.first().clone();
            PromptError::Tools(ToolsError::Invalid { node: node.clone(), problem })
        })?;
        Ok(Some(tools))
    }

    fn node_checks(&self, node: &NodeId) -> Result<Option<TaskChecks>, Error> {
        let Some(toml) = self.read(&checks_path(node))? else { return Ok(None) };
        let digest_of = |file: &CheckFileName| {
            let bytes = self.read(&format!("{}/{file}", node_folder(node))).ok().flatten()?;
            Some(Sha256::of(&bytes))
        };
        let checks = TaskChecks::read(&toml, digest_of)
            .map_err(|faults| PromptError::Checks(ChecksError { node: node.clone(), faults }))?;
        Ok(Some(checks))
    }

    /// Only files in git count: what is in the folder besides was never committed.
    fn artifacts(&self, node: &NodeId) -> Result<Vec<Artifact>, Error> {
        let folder = format!("{}/artifacts/", node_folder(node));
        let commit = match &self.source {
            InputSource::Commit(commit) => Some(commit.clone()),
            InputSource::WorkTree if !self.git.root().join(&folder).exists() => None,
            InputSource::WorkTree => self.git.resolve("HEAD")?,
        };
        let Some(commit) = commit else { return Ok(Vec::new()) };
        let mut artifacts = Vec::new();
        for file in self.git.sizes_of(&commit, &folder)? {
            if let Some(path) = file.path.strip_prefix(folder.as_bytes()) {
                artifacts.push(Artifact { path: RepoPath::of_bytes(path), bytes: file.bytes });
            }
        }
        Ok(artifacts)
    }

    fn templates(&self) -> Result<BTreeMap<String, Vec<u8>>, Error> {
        let folder = format!("{RUNNER_DIR}/prompts/");
        match &self.source {
            InputSource::Commit(commit) => self.committed_templates(commit, &folder),
            InputSource::WorkTree => self.work_tree_templates(&folder),
        }
    }
}

/// The checks of a task, as a commit has them.
pub(crate) fn checks_at(git: &Git, commit: &CommitId, node: &NodeId) -> Result<Option<TaskChecks>, Error> {
    let docs = DocSet::new();
    StepInputs { git, docs, source: InputSource::Commit(commit.clone()) }.node_checks(node)
}
