//! The files around a session: what it finds, where it writes its answer, and what is removed after it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use runner_core::agents::{CommandSandbox, RepositoryAccess, SetupFile, SetupLink};
use runner_core::layout::Doc;
use runner_core::model::agent_report::AgentReport;
use runner_core::step::{Job, LeftFile};
use serde_json::Value;

use super::iteration_dir::IterationDir;
use crate::agent::command::{PreparedCommand, SessionPaths, SessionPurpose};
use crate::agent::sandbox::{expand_home, writable_folders};
use crate::error::{Error, UserError};
use crate::fs::atomic::{self, FileStamp};
use crate::git::Git;
use crate::recorder::{Recorder, RecorderPlaces};
use crate::redaction::redactor;
use crate::repo::journal::{self, IterationEntry, JournalEntry};
use crate::repo::publish;
use crate::repo::repo_guard::{FolderIdentity, GitAccess};

/// The file with an agent's output.
pub(super) const OUTPUT: &str = "executor.log";

const REPORT_BYTES_MAX: u64 = 64 << 10;
const ANSWER_BYTES_MAX: u64 = 1 << 20;
const LOGIN_BYTES_MAX: u64 = 1 << 20;

/// The state of the runner's files just before a session. The agent can change the journal, but not this copy.
pub(super) struct SessionCheckpoint {
    pub(super) entry: Box<IterationEntry>,
    /// The stamp of the private index.
    index: Option<FileStamp>,
    journal: Option<FileStamp>,
    /// The stamp of the user's index.
    user_index: Option<FileStamp>,
    pub(super) git_dir: FolderIdentity,
}

impl SessionCheckpoint {
    /// Records in the journal that a session begins.
    pub(super) fn begin(git: &Git, entry: Box<IterationEntry>, index: &Path) -> Result<Self, Error> {
        let paths = git.paths();
        atomic::remove_any(&paths.end_note())?;
        journal::begin(&paths.journal(), &JournalEntry::Iteration(entry.clone()))?;
        Ok(Self {
            entry,
            index: atomic::stamp(index),
            journal: atomic::stamp(&paths.journal()),
            user_index: atomic::stamp(&paths.index()),
            git_dir: FolderIdentity::of(paths.git_dir())?,
        })
    }

    /// Replaces the user's index by the private one, which describes the same commit, if the session changed it: git reads
    /// the user's index in more commands than one expects, and fails if it is damaged.
    pub(super) fn restore_user_index(&self, git: &Git, index: &Path) -> Result<(), Error> {
        if self.user_index.is_some() && atomic::stamp(&git.paths().index()) == self.user_index {
            return Ok(());
        }
        // Where the session cannot write to the git directory, the index is as the user left it.
        if GitAccess::of(self.entry.sandbox) == GitAccess::ReadOnly {
            publish::save_staged(git, &self.entry.run, &self.entry.base, &self.entry.base)?;
        }
        publish::copy_to_user_index(git, index)
    }

    /// Cleans the runner's private folder after a session: removes everything that the session put there except its answer,
    /// removes an index that it touched, and writes a changed journal again.
    pub(super) fn tidy_private(&self, git: &Git, index: &Path) -> Result<(), Error> {
        let paths = git.paths();
        let private = paths.private();
        atomic::create_folders(paths.git_dir(), &private)?;
        if atomic::stamp(&paths.journal()) != self.journal {
            journal::begin(&paths.journal(), &JournalEntry::Iteration(self.entry.clone()))?;
        }
        if atomic::stamp(index) != self.index {
            atomic::remove_any(index)?;
        }
        let kept = [
            paths.lock(),
            paths.lock_marker(),
            paths.journal(),
            paths.recovery(),
            // The user may have paused the run meanwhile. If an agent does it, the user sees that too.
            paths.pause(),
            paths.stop_request(),
            paths.edit_queue(),
            paths.loop_log(),
            paths.old_loop_log(),
            paths.asides(),
            paths.ignored_copies(),
            paths.reflogs(),
            paths.answers(),
            paths.room(),
            paths.all_kept(),
            index.to_owned(),
        ];
        for entry in fs::read_dir(&private).map_err(Error::io("look at", &private))?.flatten() {
            if !kept.contains(&entry.path()) {
                atomic::remove_any(&entry.path())?;
            }
        }
        [paths.asides(), paths.answers()]
            .iter()
            .try_for_each(|folder| atomic::create_folders(&private, folder))
    }
}

/// The paths of one session.
pub(super) fn session_paths(
    git: &Git,
    job: &Job,
    dir: &IterationDir,
    command_sandbox: Option<CommandSandbox>,
) -> SessionPaths {
    SessionPaths {
        root: git.root().to_owned(),
        prompt: dir.file("prompt.md"),
        output: answer_path(git, job),
        report: report_path(git, job),
        tree: git.paths().doc(Doc::Tree),
        settings: git.paths().session(),
        writable: writable_folders(git.root(), job),
        command_sandbox,
        purpose: SessionPurpose {
            mode: job.target.mode(),
            access: RepositoryAccess::Writable,
            schema: git.root().join(Doc::OutputSchema.path()),
        },
        recorder: None,
    }
}

/// Starts the recorder of a session's requests, if its executor wants one; `Err` has why it cannot start.
pub(super) fn start_recorder(
    git: &Git,
    job: &Job,
    dir: &IterationDir,
    log: &str,
) -> Result<Option<Recorder>, String> {
    let recorded_run = job.agent.executor.replay.as_deref().and_then(expand_home);
    let recording = recorded_run.map(|run| git.root().join(run).join(job.iteration.to_string()).join(log));
    let places = RecorderPlaces {
        root: git.root(),
        log: dir.file(log),
        recording,
        folder: git.paths().recorder(),
        log_bytes_max: job.limits.executor_output_bytes,
    };
    Recorder::start(&job.agent.executor, &places)
}

/// Where an agent writes its answer: outside the work tree, and at a path that no earlier iteration used.
pub(super) fn answer_path(git: &Git, job: &Job) -> PathBuf {
    git.paths().answer(&job.iteration.to_string())
}

fn report_path(git: &Git, job: &Job) -> PathBuf {
    git.paths().report(&job.iteration.to_string())
}

/// Removes old answers, and writes `.runner/context/`.
pub(super) fn write_context(git: &Git, job: &Job) -> Result<(), Error> {
    atomic::remove_any(&answer_path(git, job))?;
    atomic::remove_any(&report_path(git, job))?;
    atomic::ensure_folder(&git.paths().answers())?;
    let folder = git.paths().context();
    atomic::create_folders(git.root(), &folder)?;
    let context = &job.context;
    let mut files = BTreeMap::from([(folder.join("goal.md"), &context.goal)]);
    files.extend(context.history.as_ref().map(|text| (folder.join("history.md"), text)));
    files.extend(context.failure.as_ref().map(|text| (folder.join("failure.md"), text)));
    for entry in fs::read_dir(&folder).map_err(Error::io("look at", &folder))?.flatten() {
        if !files.contains_key(&entry.path()) {
            atomic::remove_any(&entry.path())?;
        }
    }
    // The goal is the same in every iteration.
    for (path, text) in &files {
        if !has_content(path, text.as_bytes()) {
            atomic::overwrite_any(git.root(), path, text.as_bytes())?;
        }
    }
    Ok(())
}

/// Whether a path is a regular file with exactly these bytes.
fn has_content(path: &Path, bytes: &[u8]) -> bool {
    let is_file =
        fs::symlink_metadata(path).is_ok_and(|file| file.is_file() && file.len() == bytes.len() as u64);
    is_file && fs::read(path).is_ok_and(|found| found == bytes)
}

/// Creates the session's own folder, with the files and folders that its program needs.
pub(super) fn write_setup_files(paths: &SessionPaths, command: &PreparedCommand) -> Result<(), Error> {
    atomic::remove_any(&paths.settings)?;
    if command.agent.is_some() || !command.files.is_empty() || !command.folders.is_empty() {
        atomic::ensure_folder(&paths.settings)?;
    }
    for folder in &command.folders {
        fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
    }
    for SetupFile { path, text, is_program } in &command.files {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
        }
        fs::write(path, text).map_err(Error::io("write", path))?;
        let mode = fs::Permissions::from_mode(if *is_program { 0o700 } else { 0o600 });
        fs::set_permissions(path, mode).map_err(Error::io("write", path))?;
    }
    let links = command.links.iter().filter(|link| link.target.exists());
    for SetupLink { path, target } in links {
        std::os::unix::fs::symlink(target, path).map_err(Error::io("link", path))?;
    }
    Ok(())
}

/// Writes a login back that the agent's program has renewed by replacing the link to it. A login that is newer stays.
pub(super) fn return_logins(links: &[SetupLink]) {
    for SetupLink { path, target } in links {
        let renewed = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_file);
        let (Some(renewed), Ok(users)) = (renewed, fs::metadata(target)) else { continue };
        let is_newer = renewed.modified().ok() > users.modified().ok();
        let LeftFile::Bytes(bytes) = read_left_file(path, LOGIN_BYTES_MAX) else { continue };
        let is_object = serde_json::from_slice::<Value>(&bytes).is_ok_and(|login| login.is_object());
        if is_newer && is_object {
            // The user's file may be a link itself. One that cannot be written stays as it is.
            let _ = target.canonicalize().map(|target| atomic::write_private(&target, &bytes));
        }
    }
}

/// The agent's report of its usage and errors so far.
pub(super) fn read_report(git: &Git, job: &Job) -> AgentReport {
    read_report_at(&report_path(git, job))
}

pub(super) fn read_report_at(path: &Path) -> AgentReport {
    match read_left_file(path, REPORT_BYTES_MAX) {
        LeftFile::Bytes(bytes) => AgentReport::decode(&redactor().redact(&bytes)).unwrap_or_default(),
        LeftFile::Missing | LeftFile::NotAFile | LeftFile::TooLarge(_) => AgentReport::default(),
    }
}

/// Reads the answer of an agent, without keys.
pub(super) fn read_answer(path: &Path) -> LeftFile {
    match read_left_file(path, ANSWER_BYTES_MAX) {
        LeftFile::Bytes(bytes) => LeftFile::Bytes(redactor().redact(&bytes).into_owned()),
        other @ (LeftFile::Missing | LeftFile::NotAFile | LeftFile::TooLarge(_)) => other,
    }
}

/// Reads a file that an agent may have left.
pub(super) fn read_left_file(path: &Path, bytes_max: u64) -> LeftFile {
    match atomic::read(path, bytes_max) {
        Ok(Some(bytes)) => LeftFile::Bytes(bytes),
        Ok(None) => LeftFile::Missing,
        Err(Error::Refused(UserError::TooLarge { bytes, .. })) => LeftFile::TooLarge(bytes),
        Err(_) => LeftFile::NotAFile,
    }
}
