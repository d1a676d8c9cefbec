//! Reads what detection needs to know about a repository, and proposes a configuration.

use std::path::Path;

use runner_core::config::{Config, GuardConfig, SetKeyError};
use runner_core::detect::{
    ConfigRequest, DEPTH_MAX, LOCAL_FOLDERS, PROGRAMS, ProposedConfig, RepoListing, is_manifest,
    propose_config,
};
use runner_core::layout::Doc;
use runner_core::model::id::RunId;
use runner_core::model::instructions::PinnedInstructions;
use runner_core::model::protection::Protection;
use runner_core::runs::start::StartError;
use supervise::executables;

use super::init::ExistingFiles;
use crate::agent::login::installed_agents;
use crate::error::{Error, UserError};
use crate::fs::atomic;
use crate::git::{Git, path_of};
use crate::repo::documents::read_doc;
use crate::repo::readonly_repo::ReadonlyRepo;
use crate::repo::work_tree_files::{work_tree_instructions, work_tree_protection};

/// A larger manifest is not read.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;
const MANIFESTS_MAX: usize = 500;

/// Where a proposed configuration comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConfigSource {
    Detected,
    /// The user's config.toml in the work tree.
    WorkTree,
    /// An earlier run in this repository.
    Run(RunId),
}

/// A configuration for a new run.
#[derive(Clone, Debug)]
pub struct SetupProposal {
    pub proposed: ProposedConfig,
    pub source: ConfigSource,
    /// What a run with it would protect from its agents.
    pub protection: Protection,
    /// The project's instructions that its prompts would contain.
    pub instructions: Option<PinnedInstructions>,
}

impl SetupProposal {
    fn new(git: &Git, proposed: ProposedConfig, source: ConfigSource) -> Self {
        let protection = work_tree_protection(git, &proposed.config.guard);
        let instructions = work_tree_instructions(git, &proposed.config.executor);
        Self { proposed, source, protection, instructions }
    }
}

/// Proposes a configuration: the one in the work tree, or that of the newest run, with what the user asked for; or else one
/// from the files of the repository and the programs on the PATH. To replace existing files means to detect again.
pub fn propose(dir: &Path, existing: ExistingFiles, request: &ConfigRequest) -> Result<SetupProposal, Error> {
    let git = Git::open(dir)?;
    match existing {
        ExistingFiles::Keep => propose_in(&git, request),
        ExistingFiles::Replace => detect_in(&git, request),
    }
}

pub(crate) fn propose_in(git: &Git, request: &ConfigRequest) -> Result<SetupProposal, Error> {
    let (source, base) = match read_doc(git, Doc::Config)? {
        Some(bytes) => (ConfigSource::WorkTree, Some(bytes)),
        None => match newest_config(git)? {
            Some((run, bytes)) => (ConfigSource::Run(run), Some(bytes)),
            None => (ConfigSource::Detected, None),
        },
    };
    let base = base.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let Some(base) = base else { return detect_in(git, request) };
    match propose_config(&listing(git)?, &installed_agents(git.root()), request, Some(&base)) {
        Ok(proposed) => Ok(SetupProposal::new(git, proposed, source)),
        // An earlier run's configuration that this version cannot read is no reason to stop.
        Err(SetKeyError::Invalid(_)) if matches!(source, ConfigSource::Run(_)) => detect_in(git, request),
        Err(SetKeyError::Invalid(problems)) if Config::decode(base.as_bytes()).is_err() => {
            Err(StartError::Config(problems).into())
        }
        Err(error) => Err(UserError::SetKey(error).into()),
    }
}

fn detect_in(git: &Git, request: &ConfigRequest) -> Result<SetupProposal, Error> {
    let proposed = propose_config(&listing(git)?, &installed_agents(git.root()), request, None);
    Ok(SetupProposal::new(git, proposed.map_err(UserError::SetKey)?, ConfigSource::Detected))
}

/// The command that prepares a fresh checkout of this project, as keys of `[guard]`; none if it needs none.
pub(crate) fn detected_setup(git: &Git) -> Result<Option<GuardConfig>, Error> {
    let detected = detect_in(git, &ConfigRequest::default())?.proposed.config.guard;
    Ok(Some(detected).filter(|guard| guard.setup.is_some()))
}

/// The configuration of the newest run with a branch here.
fn newest_config(git: &Git) -> Result<Option<(RunId, Vec<u8>)>, Error> {
    let repo = ReadonlyRepo::open(git.root())?;
    let Some(newest) = repo.runs()?.into_iter().next() else { return Ok(None) };
    Ok(repo.doc(&newest.commit, Doc::Config)?.map(|bytes| (newest.run, bytes)))
}

fn listing(git: &Git) -> Result<RepoListing, Error> {
    let text = |path: &[u8]| String::from_utf8(path.to_vec()).ok();
    let mut listing = RepoListing {
        paths: git.tracked_paths()?.iter().filter_map(|path| text(path)).collect(),
        ..RepoListing::default()
    };
    for path in listing.paths.iter().filter(|path| is_manifest(path)).take(MANIFESTS_MAX) {
        let bytes = atomic::read(&git.root().join(path_of(path.as_bytes())), MANIFEST_BYTES_MAX);
        if let Some(text) = bytes.ok().flatten().and_then(|bytes| String::from_utf8(bytes).ok()) {
            listing.manifests.insert(path.clone(), text);
        }
    }
    let mut folders: Vec<String> = vec![String::new()];
    folders.extend(listing.manifests.keys().filter_map(|path| Some(path.rsplit_once('/')?.0.to_owned())));
    folders.retain(|folder| folder.split('/').count() <= DEPTH_MAX);
    for folder in folders {
        for name in LOCAL_FOLDERS {
            let path = if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") };
            let is_tracked = listing.paths.range(format!("{path}/")..).next();
            let is_tracked = is_tracked.is_some_and(|next| next.starts_with(&format!("{path}/")));
            if git.root().join(&path).is_dir() && !is_tracked {
                listing.local_folders.insert(path);
            }
        }
    }
    let is_installed = |program: &&&str| executables::find(program, Some(git.root())).is_some();
    listing.programs = PROGRAMS.iter().filter(is_installed).map(|program| (*program).to_owned()).collect();
    Ok(listing)
}
