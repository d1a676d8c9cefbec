//! An iteration between the end of its session and its commit.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use runner_core::agents::SessionIdentity;
use runner_core::commit_message::snapshot_subject;
use runner_core::layout::Doc;
use runner_core::model::object_id::{CommitId, TreeId};
use runner_core::model::protection::Protection;
use runner_core::model::repo_path::RepoPath;
use runner_core::model::tree::{BYTES_MAX, Tree};
use runner_core::runs::edit::added_questions;
use runner_core::step::{
    Attempt, ChangeScope, FileAction, FileChanges, FileNotice, GuardRun, Interruption, Job, KeyReport,
    LeftFile, LoadedRun, PlanningChanges, ProtectedPath, RestoreReport, SessionExit, SessionTarget, Usage,
};

use super::commit::DOCS;
use super::iteration_dir::{IterationDir, PROMPT};
use super::laid_files::{CheckChanges, LaidFiles, remove_empty_folders};
use super::memory_files::restore_memory;
use super::protected_paths::{ProtectedPaths, SessionChanges, StagedIndex};
use super::redacted_docs::redact_documents;
use super::restored_index::RestoredIndex;
use super::session_files::{answer_path, read_answer, read_left_file};
use super::stored_attempt::StoredAttempt;
use crate::agent::sandbox_kind::SandboxKind;
use crate::error::Error;
use crate::failpoint;
use crate::fs::atomic::{self, FileStamp};
use crate::git::{Git, PathSet, path_of};
use crate::paths::is_runner_path;
use crate::repo::journal::{self, IterationEntry, IterationPhase, JournalEntry, StoredSession};
use crate::repo::worktree::{self, StagedChanges, show_command};
use crate::room::Candidate;

/// What is fixed when an iteration begins, except for the times in its directory.
pub(super) struct IterationSetup {
    /// The commit that the iteration begins from, and its tree.
    pub(super) base: CommitId,
    pub(super) tree: Tree,
    pub(super) index: PathBuf,
    pub(super) dir: IterationDir,
    /// The time that agent and guard may still use together. Only the time in which one of them runs is taken from it.
    pub(super) time_left: Duration,
    pub(super) sandbox: SandboxKind,
    pub(super) protected: ProtectedPaths,
}

impl IterationSetup {
    /// Opens the iteration's directory, and starts its clock.
    pub(super) fn new(
        git: &Git,
        run: &LoadedRun,
        job: &Job,
        index: PathBuf,
        sandbox: SandboxKind,
        protected: ProtectedPaths,
    ) -> Result<Self, Error> {
        let dir = IterationDir::open(git.paths(), &job.run_id, job.iteration)?;
        dir.write(PROMPT, job.prompt.text.as_bytes())?;
        Ok(Self {
            base: run.commit.clone(),
            tree: run.snapshot.tree.clone(),
            index,
            dir,
            time_left: Duration::from_secs(job.limits.iteration_secs),
            sandbox,
            protected,
        })
    }
}

/// How the process of a session ended.
#[derive(Clone, Debug)]
pub(super) struct SessionOutcome {
    pub(super) exit: SessionExit,
    pub(super) usage: Usage,
    pub(super) processes_left: u32,
}

/// A session that has ended, in a repository that is restored. Its changes are not stored yet.
pub(super) struct EndedSession {
    pub(super) setup: IterationSetup,
    /// The iteration as the journal has it.
    pub(super) entry: Box<IterationEntry>,
    pub(super) outcome: SessionOutcome,
    pub(super) restored: RestoreReport,
    pub(super) identity: SessionIdentity,
}

/// The agent's answer, which the log gets as well.
fn recorded_answer(git: &Git, setup: &IterationSetup, job: &Job) -> LeftFile {
    let answer = read_answer(&answer_path(git, job));
    match &answer {
        LeftFile::Bytes(bytes) => setup.dir.write_log("output.json", bytes),
        // What the agent itself put there is no answer.
        LeftFile::Missing | LeftFile::NotAFile | LeftFile::TooLarge(_) => setup.dir.remove_log("output.json"),
    }
    answer
}

impl EndedSession {
    /// Stores what the session left as git objects, records that in the journal, and returns it as values. From then on the
    /// iteration depends on nothing that another process can change. `on_candidate` gets the tree to commit as soon as it is
    /// stored.
    pub(super) fn store(
        self,
        git: &Git,
        job: &Job,
        on_candidate: impl FnOnce(&TreeId),
    ) -> Result<(OpenIteration, Attempt), Error> {
        let Self { setup, mut entry, outcome, restored, identity } = self;
        atomic::create_folders(git.root(), &git.paths().context())?;
        let answer = recorded_answer(git, &setup, job);
        let redacted = redact_documents(git, &setup)?;
        let tree = read_left_file(&git.paths().doc(Doc::Tree), BYTES_MAX as u64);
        let StagedChanges { changed: mut staged, mut notices, withheld, with_keys } =
            worktree::stage(git, &setup.index, job.iteration)?;
        let memory = restore_memory(git, &setup, &mut staged)?;
        let index = StagedIndex { git, path: &setup.index, base: &setup.base, staged: &staged };
        let SessionChanges { mut changed, protected_now, mut protected } =
            setup.protected.changes(&index, &job.permissions.protection)?;
        let checks = CheckChanges::find(git, job, &setup.base, &setup.tree, &changed)?;
        let kept: Vec<Vec<u8>> = withheld.into_iter().chain(checks.frozen.iter().cloned()).collect();
        notices.extend(worktree::keep_edits(git, &job.run_id, job.iteration, &kept)?);
        protected.extend(checks.frozen_paths());
        let laid = LaidFiles::read(git, job, &setup.base)?;
        // A runner that crashed may not have written them all.
        let is_crash = matches!(outcome.exit, SessionExit::Interrupted { by: Interruption::Crash });
        protected.extend(laid.changed(git).into_iter().filter(|_| !is_crash));
        laid.freeze(git, &setup.index)?;
        let laid_paths = laid.paths();
        changed.retain(|path| !laid_paths.iter().any(|laid| is_replaced_by(laid, path)));
        let planning = planning_changes(git, &setup, job, &changed)?;
        // What is restored is not in the commit, so that it counts as no change.
        let is_kept = |path: &&Vec<u8>| {
            !checks.frozen.contains(path) && !planning.discarded.contains(&RepoPath::of_bytes(path))
        };
        let counted: PathSet = changed.iter().filter(is_kept).cloned().collect();
        let keys = KeyReport { redacted, committed: committed_keys(&with_keys, &counted) };
        notices.extend(keys.committed.iter().map(key_notice));
        let attempt = Attempt {
            memory,
            keys,
            new_checks: checks.new,
            planning,
            ..attempt(outcome, answer, tree, &counted, protected)
        };
        let is_unchanged = changed.is_empty() && laid.is_empty();
        let candidate = if is_unchanged { None } else { Some(git.write_candidate(&setup.index)?) };
        if let Some(tree) = &candidate {
            on_candidate(tree);
        }
        let commit = store_snapshot(git, job, &setup.base, candidate.as_ref())?;
        entry.phase = IterationPhase::Stored(Box::new(StoredSession {
            commit,
            attempt: StoredAttempt::new(&attempt, &setup.tree),
        }));
        journal::begin(&git.paths().journal(), &JournalEntry::Iteration(entry.clone()))?;
        failpoint::reach("iter.stored");
        let iteration = OpenIteration {
            entry,
            restored,
            identity,
            attempt: attempt.clone(),
            guard: GuardRun::Skipped,
            index_stamp: atomic::stamp(&setup.index),
            candidate,
            notices,
            protected_now: protected_now.union(&laid_paths).cloned().collect(),
            setup,
        };
        Ok((iteration, attempt))
    }
}

/// The first files with keys that are in the commit.
fn committed_keys(with_keys: &[Vec<u8>], counted: &PathSet) -> Vec<RepoPath> {
    let committed = with_keys.iter().filter(|path| counted.contains(*path));
    committed.map(|path| RepoPath::of_bytes(path)).take(KeyReport::FILES_MAX).collect()
}

/// Tells the user at once that a file with a key is committed.
fn key_notice(path: &RepoPath) -> FileNotice {
    FileNotice {
        action: FileAction::HasKey,
        reason: "if it is real, revoke it, and remove it from the branch before you push".to_owned(),
        restore: show_command(&path.to_bytes()),
        path: path.clone(),
    }
}

/// Stores the files of a session as a commit under `refs/runner/<run>/wip`. One sync of the file system covers all of its
/// objects, however many they are; the reference follows when they are on the disk. Without a candidate, the base is the commit.
fn store_snapshot(
    git: &Git,
    job: &Job,
    base: &CommitId,
    candidate: Option<&TreeId>,
) -> Result<CommitId, Error> {
    let Some(tree) = candidate else { return Ok(base.clone()) };
    let message = format!("{}\n", snapshot_subject(job.run_id.as_str(), job.iteration));
    let commit = git.store_commit(tree, base, &message)?;
    git.sync()?;
    git.point_ref(&format!("refs/runner/{}/wip", job.run_id), &commit)?;
    Ok(commit)
}

fn attempt(
    outcome: SessionOutcome,
    answer: LeftFile,
    tree: LeftFile,
    changed: &PathSet,
    protected: Vec<ProtectedPath>,
) -> Attempt {
    let changes = file_changes(changed);
    Attempt {
        exit: outcome.exit,
        answer,
        tree,
        work: if changes.work_files > 0 { ChangeScope::Execute } else { ChangeScope::Decompose },
        changes,
        protected,
        new_checks: BTreeMap::new(),
        memory: Vec::new(),
        planning: PlanningChanges::default(),
        keys: KeyReport::default(),
        usage: outcome.usage,
        processes_left: outcome.processes_left,
    }
}

/// What a planning session did besides its plan; nothing for any other session.
fn planning_changes(
    git: &Git,
    setup: &IterationSetup,
    job: &Job,
    changed: &PathSet,
) -> Result<PlanningChanges, Error> {
    if !matches!(job.target, SessionTarget::Plan(_)) {
        return Ok(PlanningChanges::default());
    }
    let path = RepoPath::of_bytes(Doc::Questions.path().as_bytes());
    let before = git.file_in_commit(&setup.base, &path)?.unwrap_or_default();
    let after = git.file_in_index(&setup.index, &path)?.unwrap_or_default();
    let outside = changed.iter().filter(|path| !is_runner_path(path));
    Ok(PlanningChanges {
        discarded: outside.map(|path| RepoPath::of_bytes(path)).collect(),
        questions: added_questions(&before, &after),
    })
}

fn file_changes(changed: &PathSet) -> FileChanges {
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let is_document = |path: &[u8]| DOCS.iter().any(|doc| doc.path().as_bytes() == path);
    let of_runner = changed.iter().filter(|path| is_runner_path(path) && !is_document(path)).count();
    let of_work = changed.iter().filter(|path| !is_runner_path(path)).count();
    FileChanges { work_files: count(of_work), runner_files: count(of_runner) }
}

/// Whether a path cannot exist beside a check file: it is that file, a folder on the way to it, or something below it.
fn is_replaced_by(check_file: &[u8], path: &[u8]) -> bool {
    let is_below =
        |path: &[u8], folder: &[u8]| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with(b"/"));
    path == check_file || is_below(path, check_file) || is_below(check_file, path)
}

/// An iteration whose session has ended and whose changes are stored. Committing or discarding it consumes it.
pub struct OpenIteration {
    pub(super) setup: IterationSetup,
    /// The iteration as the journal has it.
    pub(super) entry: Box<IterationEntry>,
    pub(super) restored: RestoreReport,
    pub(super) identity: SessionIdentity,
    /// The attempt and the guard run, for session.json.
    pub(super) attempt: Attempt,
    pub(super) guard: GuardRun,
    /// The tree that is committed, but for the runner's documents; none if it is the base commit's.
    pub(super) candidate: Option<TreeId>,
    /// The private index, which describes the candidate, when the runner wrote it last.
    pub(super) index_stamp: Option<FileStamp>,
    /// Files that are not committed as the session left them.
    pub(super) notices: Vec<FileNotice>,
    /// The protected paths after the session, and the check files of the task.
    pub(super) protected_now: PathSet,
}

/// Without a sandbox, a user who deletes a branch looks like an agent who does.
const RECREATED: &str = "a reference; if you deleted it yourself, delete it again";
const OBEYED: &str = "git obeys this file, so that a session may not change it; the change is undone";

impl OpenIteration {
    /// What was restored after the session and may have been the user's doing.
    pub(super) fn restored_notices(&self) -> Vec<FileNotice> {
        let snapshot = &self.entry.snapshot;
        let notice = |name: &String, action, reason: &str| FileNotice {
            path: RepoPath::of_bytes(name.as_bytes()),
            action,
            reason: reason.to_owned(),
            restore: None,
        };
        let refs = snapshot.recreated_refs(&self.entry.run, &self.restored).into_iter();
        let files = snapshot.restored_files(&self.restored).into_iter();
        refs.map(|name| notice(name, FileAction::IgnoredRestored, RECREATED))
            .chain(files.map(|name| notice(name, FileAction::SetAside, OBEYED)))
            .collect()
    }

    /// The files to commit, but for the runner's documents, as a tree and as a commit.
    pub(super) fn candidate(&self, git: &Git) -> Result<Candidate, Error> {
        let base = &self.setup.base;
        let Some(tree) = self.candidate.clone() else {
            return Ok(Candidate { tree: git.tree_of(base)?, commit: base.clone() });
        };
        let commit = git.store_commit(&tree, base, "candidate\n")?;
        Ok(Candidate { tree, commit })
    }

    /// Restores protected files and entries to their committed content, in the candidate and in the work tree.
    pub(super) fn restore_files(
        &mut self,
        git: &Git,
        paths: &[RepoPath],
        protection: &Protection,
    ) -> Result<(), Error> {
        if paths.is_empty() {
            return Ok(());
        }
        self.ensure_index(git)?;
        let index = RestoredIndex { git, index: &self.setup.index, base: &self.setup.base };
        let paths: Vec<Vec<u8>> = index.restore(paths, protection)?;
        for path in paths.iter().map(|path| git.root().join(path_of(path))) {
            // A link on the way points elsewhere, and nothing there belongs to the run.
            path.parent().map_or(Ok(()), |folder| atomic::create_folders(git.root(), folder))?;
            atomic::remove_any(&path)?;
        }
        git.check_out(&self.setup.index, &paths)?;
        for path in paths.iter().map(|path| git.root().join(path_of(path))) {
            remove_empty_folders(git.root(), &path);
        }
        self.candidate = Some(git.write_tree(&self.setup.index)?);
        self.index_stamp = atomic::stamp(&self.setup.index);
        Ok(())
    }

    /// Ends the iteration without a commit. Its session changed nothing but, at most, the runner's documents, which are
    /// restored. Until the journal is removed, a crash makes it an iteration that recovery commits.
    pub(super) fn discard(mut self, git: &Git, job: &Job) -> Result<(), Error> {
        let docs = DOCS.map(|doc| RepoPath::of_bytes(doc.path().as_bytes()));
        self.restore_files(git, &docs, &job.permissions.protection)?;
        atomic::remove_any(&git.paths().answer(&job.iteration.to_string()))?;
        // The next session has the same number: neither its end nor its beginning must be taken for this one's.
        atomic::remove_any(&git.paths().end_note())?;
        atomic::remove_any(&self.setup.dir.file(PROMPT))?;
        failpoint::reach("iter.discarded");
        journal::end(&git.paths().journal())
    }

    /// Makes the private index describe the candidate again, if anything but the runner wrote to it.
    pub(super) fn ensure_index(&mut self, git: &Git) -> Result<(), Error> {
        let index = &self.setup.index;
        if self.index_stamp.is_some() && atomic::stamp(index) == self.index_stamp {
            return Ok(());
        }
        match &self.candidate {
            Some(tree) => git.read_for_worktree(index, tree)?,
            None => git.read_for_worktree(index, &self.setup.base)?,
        }
        git.refresh_index(index)?;
        self.index_stamp = atomic::stamp(index);
        Ok(())
    }
}
