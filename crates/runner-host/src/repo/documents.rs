//! The runner's documents: read from the work tree or from a commit, and stored as a commit.

use std::path::Path;

use runner_core::layout::Doc;
use runner_core::model::object_id::CommitId;
use runner_core::model::tree::BYTES_MAX;
use runner_core::model::user_notes::UserNotes;
use runner_core::runs::edit::{self, Question};
use runner_core::runs::start::{DocSet, StartError};
use runner_core::text::one_line;

use crate::error::{Error, UserError};
use crate::fs::atomic;
use crate::git::{EntryMode, Git, IndexEntry, TreeEntry, lossy};
use crate::paths::RUNNER_FOLDERS;
use crate::repo::commit_scope::check_scope;

/// The limit for every document but the tree.
pub(crate) const SMALL_BYTES_MAX: u64 = 16 << 20;

/// How many paths an error lists.
const LISTED_PATHS_MAX: usize = 10;

/// Reads the documents in the work tree. Each is a regular file in a real folder, or missing.
pub(crate) fn read_docs(git: &Git) -> Result<DocSet, Error> {
    let (docs, refused) = read_docs_and_errors(git)?;
    refused.into_iter().next().map_or(Ok(docs), |refusal| Err(refusal.into()))
}

/// Reads every document that can be read, and returns the errors of the others beside them.
pub(crate) fn read_docs_and_errors(git: &Git) -> Result<(DocSet, Vec<UserError>), Error> {
    let mut docs = DocSet::new();
    let mut refused = Vec::new();
    match check_folders(git) {
        Ok(()) => {}
        Err(Error::Refused(refusal)) => return Ok((docs, vec![refusal])),
        Err(error) => return Err(error),
    }
    for doc in Doc::ALL {
        match read_file(git, doc) {
            Ok(Some(bytes)) => drop(docs.insert(doc, bytes)),
            Ok(None) => {}
            Err(Error::Refused(refusal)) => refused.push(refusal),
            Err(error) => return Err(error),
        }
    }
    Ok((docs, refused))
}

/// Reads one document in the work tree.
pub(crate) fn read_doc(git: &Git, doc: Doc) -> Result<Option<Vec<u8>>, Error> {
    check_folders(git)?;
    read_file(git, doc)
}

/// Refuses if a folder of the runner's is a link or a file.
fn check_folders(git: &Git) -> Result<(), Error> {
    RUNNER_FOLDERS.iter().try_for_each(|folder| atomic::is_folder(&git.root().join(folder)).map(drop))
}

fn read_file(git: &Git, doc: Doc) -> Result<Option<Vec<u8>>, Error> {
    let bytes_max = if doc == Doc::Tree { BYTES_MAX as u64 } else { SMALL_BYTES_MAX };
    atomic::read(&git.paths().doc(doc), bytes_max)
}

/// The documents of a commit.
pub(crate) fn docs_at_commit(git: &Git, commit: &CommitId) -> Result<DocSet, Error> {
    let mut docs = Vec::new();
    let mut objects = Vec::new();
    for file in git.runner_files(commit)? {
        if let Some(doc) = Doc::at(&file.path) {
            docs.push(doc);
            objects.push(file.object);
        }
    }
    let objects: Vec<&str> = objects.iter().map(String::as_str).collect();
    Ok(docs.into_iter().zip(git.blobs(&objects)?).collect())
}

/// Stores documents as blobs; returns the index entries that put them in their places.
pub(crate) fn store_docs(git: &Git, docs: &DocSet) -> Result<Vec<IndexEntry>, Error> {
    let contents: Vec<&[u8]> = docs.values().map(Vec::as_slice).collect();
    let objects = git.store_blobs(&contents)?;
    let entry = |(doc, object): (&Doc, String)| {
        IndexEntry::Put(TreeEntry { mode: EntryMode::File, object, path: doc.path().into() })
    };
    Ok(docs.keys().zip(objects).map(entry).collect())
}

/// Stores a commit: the parent's files with these documents replaced. The index describes it afterwards.
pub(crate) fn commit_docs(
    git: &Git,
    index: &Path,
    parent: &CommitId,
    docs: &DocSet,
    message: &str,
) -> Result<CommitId, Error> {
    git.read_into_index(index, parent)?;
    git.edit_index(index, &store_docs(git, docs)?)?;
    let tree = git.write_tree(index)?;
    let commit = git.store_commit(&tree, parent, message)?;
    check_scope(git, parent, &commit)?;
    Ok(commit)
}

/// The first paths of a list for an error message, and how many more there are.
pub(crate) fn first_paths(paths: &[Vec<u8>]) -> (Vec<String>, usize) {
    let first: Vec<String> = paths.iter().take(LISTED_PATHS_MAX).map(|path| one_line(&lossy(path))).collect();
    let more = paths.len() - first.len();
    (first, more)
}

/// Refuses uncommitted changes outside `.runner/`.
pub(crate) fn refuse_dirty(paths: &[Vec<u8>]) -> Result<(), UserError> {
    if paths.is_empty() {
        return Ok(());
    }
    let (paths, more) = first_paths(paths);
    Err(UserError::Dirty { paths, more })
}

/// Refuses changes hidden by assume-unchanged or skip-worktree in the user's index.
pub(crate) fn refuse_hidden(git: &Git) -> Result<(), Error> {
    let hidden = git.hidden_changes()?;
    if hidden.is_empty() {
        return Ok(());
    }
    let paths = hidden.iter().take(LISTED_PATHS_MAX).map(|change| {
        let path = one_line(&lossy(&change.path));
        format!("{path} ({}): git update-index --no-{} {path}", change.mark.as_str(), change.mark.as_str())
    });
    let paths: Vec<String> = paths.collect();
    let more = hidden.len() - paths.len();
    Err(UserError::HiddenChanges { paths, more }.into())
}

/// Refuses changes under `.runner/` that `runner start` has not committed.
pub(crate) fn refuse_changed_documents(paths: &[Vec<u8>]) -> Result<(), UserError> {
    if paths.is_empty() {
        return Ok(());
    }
    let (paths, more) = first_paths(paths);
    Err(UserError::RunnerChanged { paths, more })
}

/// The questions of agents in this work tree, with their answers.
pub(crate) fn questions_in(git: &Git) -> Result<Vec<Question>, Error> {
    questions_of(|doc| read_doc(git, doc))
}

/// The questions in a run's documents, with their answers.
pub(crate) fn questions_of(
    read: impl Fn(Doc) -> Result<Option<Vec<u8>>, Error>,
) -> Result<Vec<Question>, Error> {
    let file = read(Doc::Questions)?.unwrap_or_default();
    let notes = UserNotes::decode(&read(Doc::Notes)?.unwrap_or_default()).map_err(StartError::Notes)?;
    Ok(edit::questions(&String::from_utf8_lossy(&file), &notes))
}
