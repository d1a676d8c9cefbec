//! A repository as an audit reads it, computed from its objects alone.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use runner_core::config::{Executor, GuardConfig};
use runner_core::guard_files::{self, DerivedProtection, RepoFiles, RunChecks};
use runner_core::layout::RUNNER_DIR;
use runner_core::model::instructions::PinnedInstructions;
use runner_core::model::object_id::CommitId;
use runner_core::model::protection::Protection;
use runner_core::verify::{AuditSource, ChangedPaths, RawChange, StoredBlob, StoredFile};

use crate::git_object::{CommitContent, EntryKind, FolderEntry, ObjectKind, folder_entries, object_id};
use crate::path_pattern::{matches, may_contain_match};

/// Why an audit cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectError {
    /// The object should be there.
    #[error("the object {id} is missing")]
    Missing { id: String },
    /// The object was left out on purpose, because it contains a key.
    #[error("the object {id} contains a key and was left out")]
    Omitted { id: String },
    #[error("the object {id} is not a valid {kind}")]
    Invalid { id: String, kind: &'static str },
    #[error("{0}")]
    Read(String),
}

/// Where objects come from.
pub(crate) trait ObjectReader {
    /// The bytes of an object, which is at `path` of a commit; none if it is not there.
    fn read(&mut self, id: &str, kind: ObjectKind, path: &[u8]) -> Result<Option<Rc<Vec<u8>>>, ObjectError>;

    /// Whether the bytes of a blob, as far as it is there, are those of its id.
    fn is_intact(&mut self, id: &str) -> Result<bool, ObjectError>;
}

/// A commit and its changes against its first parent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct KnownCommit {
    pub(crate) content: CommitContent,
    pub(crate) changes: Vec<RawChange>,
}

/// How many links are followed from one path.
const LINKS_MAX: usize = 40;
/// The longest path that a link can hold.
const LINK_BYTES_MAX: usize = 4096;

/// The objects of a repository, and what was computed from them.
#[derive(Debug)]
pub(crate) struct ObjectSource<R> {
    pub(crate) reader: R,
    /// 40, or 64 in a repository with SHA-256.
    digits: usize,
    commits: BTreeMap<CommitId, KnownCommit>,
}

/// A folder or a file in two versions of a tree.
struct EntryPair {
    old: Option<FolderEntry>,
    new: Option<FolderEntry>,
}

impl<R: ObjectReader> ObjectSource<R> {
    pub(crate) fn new(reader: R, digits: usize) -> Self {
        Self { reader, digits, commits: BTreeMap::new() }
    }

    /// A commit, if it is there.
    fn commit(&mut self, id: &CommitId) -> Result<Option<CommitContent>, ObjectError> {
        if let Some(known) = self.commits.get(id) {
            return Ok(Some(known.content.clone()));
        }
        let bytes = self.reader.read(id.as_str(), ObjectKind::Commit, b"")?;
        Ok(bytes.map(|bytes| CommitContent::parse(&bytes)))
    }

    /// A commit with its changes; none if it or its first parent is not there.
    pub(crate) fn known_commit(&mut self, id: &CommitId) -> Result<Option<KnownCommit>, ObjectError> {
        let Some(content) = self.commit(id)? else { return Ok(None) };
        let old = match content.parents.first() {
            None => None,
            Some(parent) => match self.commit(parent)? {
                Some(parent) => Some(parent.tree),
                None => return Ok(None),
            },
        };
        let mut changes = Vec::new();
        self.add_changes(old.as_deref(), Some(&content.tree), b"", &mut changes)?;
        let known = KnownCommit { content, changes };
        self.commits.insert(id.clone(), known.clone());
        Ok(Some(known))
    }

    fn tree(&mut self, id: &str, path: &[u8]) -> Result<Vec<FolderEntry>, ObjectError> {
        let missing = || ObjectError::Missing { id: id.to_owned() };
        let bytes = self.reader.read(id, ObjectKind::Tree, path)?.ok_or_else(missing)?;
        let invalid = || ObjectError::Invalid { id: id.to_owned(), kind: "folder" };
        folder_entries(&bytes, self.digits / 2).ok_or_else(invalid)
    }

    /// Adds the differences between two folders, in git's order.
    fn add_changes(
        &mut self,
        old: Option<&str>,
        new: Option<&str>,
        path: &[u8],
        changes: &mut Vec<RawChange>,
    ) -> Result<(), ObjectError> {
        if old == new {
            return Ok(());
        }
        let mut pairs: BTreeMap<Vec<u8>, EntryPair> = BTreeMap::new();
        for entry in old.map(|id| self.tree(id, path)).transpose()?.unwrap_or_default() {
            pairs.insert(entry.sort_key(), EntryPair { old: Some(entry), new: None });
        }
        for entry in new.map(|id| self.tree(id, path)).transpose()?.unwrap_or_default() {
            let key = entry.sort_key();
            pairs.entry(key).or_insert(EntryPair { old: None, new: None }).new = Some(entry);
        }
        for (key, EntryPair { old, new }) in pairs {
            if old == new {
                continue;
            }
            let entry_path = [path, &key].concat();
            if key.ends_with(b"/") {
                let id = |entry: &Option<FolderEntry>| entry.as_ref().map(|entry| entry.object.clone());
                self.add_changes(id(&old).as_deref(), id(&new).as_deref(), &entry_path, changes)?;
                continue;
            }
            changes.push(match new {
                Some(new) => {
                    RawChange { mode: new.kind.mode().to_owned(), object: new.object, path: entry_path }
                }
                None => {
                    RawChange { mode: "000000".to_owned(), object: "0".repeat(self.digits), path: entry_path }
                }
            });
        }
        Ok(())
    }

    /// The entry at a path of a commit. Folders on the way must not be links.
    fn entry_at(&mut self, commit: &CommitId, path: &str) -> Result<Option<FolderEntry>, ObjectError> {
        let Some(content) = self.commit(commit)? else { return Ok(None) };
        let mut folder = FolderEntry { kind: EntryKind::Folder, name: Vec::new(), object: content.tree };
        let mut at = Vec::new();
        for name in path.split('/').filter(|name| !matches!(*name, "" | ".")) {
            if folder.kind != EntryKind::Folder {
                return Ok(None);
            }
            let entries = self.tree(&folder.object, &at)?;
            let Some(entry) = entries.into_iter().find(|entry| entry.name == name.as_bytes()) else {
                return Ok(None);
            };
            at.extend_from_slice(name.as_bytes());
            at.push(b'/');
            folder = entry;
        }
        Ok(Some(folder))
    }

    fn blob_bytes(&mut self, id: &str, path: &[u8]) -> Result<Rc<Vec<u8>>, ObjectError> {
        let missing = || ObjectError::Missing { id: id.to_owned() };
        self.reader.read(id, ObjectKind::Blob, path)?.ok_or_else(missing)
    }

    /// The files and links below a folder that `is_wanted` accepts, in git's order.
    fn add_files(
        &mut self,
        folder: &str,
        path: &[u8],
        is_wanted: &dyn Fn(&FolderEntry, &[u8]) -> bool,
        files: &mut Vec<StoredFile>,
    ) -> Result<(), ObjectError> {
        for entry in self.tree(folder, path)? {
            let entry_path = [path, &entry.sort_key()].concat();
            if !is_wanted(&entry, &entry_path) {
                continue;
            }
            if entry.kind == EntryKind::Folder {
                self.add_files(&entry.object, &entry_path, is_wanted, files)?;
            } else {
                files.push(StoredFile { path: entry_path, object: entry.object });
            }
        }
        Ok(())
    }

    /// The regular file at a path, with links to other files of the commit resolved.
    fn resolved_file(&mut self, commit: &CommitId, path: &str) -> Result<Option<Vec<u8>>, ObjectError> {
        let mut rest: Vec<String> = components(path);
        let mut done: Vec<String> = Vec::new();
        let mut links = 0;
        while let Some(name) = rest.pop() {
            if name == ".." {
                if done.pop().is_none() {
                    return Ok(None);
                }
                continue;
            }
            done.push(name);
            let here = done.join("/");
            match self.entry_at(commit, &here)? {
                Some(entry) if entry.kind == EntryKind::Link => {
                    links += 1;
                    let target = self.blob_bytes(&entry.object, here.as_bytes())?;
                    let target = String::from_utf8_lossy(&target).into_owned();
                    if links > LINKS_MAX || target.starts_with('/') {
                        return Ok(None);
                    }
                    done.pop();
                    rest.extend(components(&target));
                }
                Some(entry) if entry.kind.is_regular() && rest.is_empty() => {
                    return self.blob_bytes(&entry.object, here.as_bytes()).map(|bytes| Some(bytes.to_vec()));
                }
                Some(entry) if entry.kind == EntryKind::Folder => {}
                Some(_) | None => return Ok(None),
            }
        }
        Ok(None)
    }
}

/// The names of a path, the last one first.
fn components(path: &str) -> Vec<String> {
    let names = path.split('/').filter(|name| !matches!(*name, "" | "."));
    names.rev().map(str::to_owned).collect()
}

impl<R: ObjectReader> AuditSource for ObjectSource<R> {
    type Error = ObjectError;

    fn object_id(&self, kind: &str, bytes: &[u8]) -> String {
        object_id(kind, bytes, self.digits)
    }

    fn folder(&mut self, commit: &CommitId, path: &str) -> Result<Option<Vec<u8>>, ObjectError> {
        let Some(entry) = self.entry_at(commit, path)?.filter(|entry| entry.kind == EntryKind::Folder) else {
            return Ok(None);
        };
        let at = if path.is_empty() { String::new() } else { format!("{path}/") };
        Ok(self.reader.read(&entry.object, ObjectKind::Tree, at.as_bytes())?.map(|bytes| bytes.to_vec()))
    }

    fn file(&mut self, commit: &CommitId, path: &str) -> Result<Option<Vec<u8>>, ObjectError> {
        let entry = self.entry_at(commit, path)?;
        let is_blob = |entry: &FolderEntry| entry.kind.is_regular() || entry.kind == EntryKind::Link;
        let Some(entry) = entry.filter(is_blob) else { return Ok(None) };
        self.blob_bytes(&entry.object, path.as_bytes()).map(|bytes| Some(bytes.to_vec()))
    }

    fn blob(&mut self, object: &str, path: &[u8]) -> Result<StoredBlob, ObjectError> {
        let bytes = self.blob_bytes(object, path)?.to_vec();
        let is_intact = self.reader.is_intact(object)?;
        Ok(StoredBlob { bytes, is_intact })
    }

    fn is_intact(&mut self, object: &str) -> Result<bool, ObjectError> {
        self.reader.is_intact(object)
    }

    fn runner_files(&mut self, commit: &CommitId) -> Result<Vec<StoredFile>, ObjectError> {
        let folder = self.entry_at(commit, RUNNER_DIR)?.filter(|entry| entry.kind == EntryKind::Folder);
        let Some(folder) = folder else { return Ok(Vec::new()) };
        let is_wanted =
            |entry: &FolderEntry, _: &[u8]| entry.kind == EntryKind::Folder || entry.kind.is_regular();
        let mut files = Vec::new();
        self.add_files(&folder.object, format!("{RUNNER_DIR}/").as_bytes(), &is_wanted, &mut files)?;
        Ok(files)
    }

    fn matching_paths(
        &mut self,
        commit: &CommitId,
        patterns: &[String],
    ) -> Result<BTreeSet<Vec<u8>>, ObjectError> {
        let Some(content) = self.commit(commit)? else { return Ok(BTreeSet::new()) };
        let is_wanted = |entry: &FolderEntry, path: &[u8]| match entry.kind {
            EntryKind::Folder => may_contain_match(patterns, path),
            EntryKind::File | EntryKind::Executable | EntryKind::Link | EntryKind::Submodule => {
                patterns.iter().any(|pattern| matches(pattern, path))
            }
        };
        let mut files = Vec::new();
        self.add_files(&content.tree, b"", &is_wanted, &mut files)?;
        Ok(files.into_iter().map(|file| file.path).collect())
    }

    fn matching_changes(
        &mut self,
        after: &CommitId,
        tip: &CommitId,
        patterns: &[String],
    ) -> Result<ChangedPaths, ObjectError> {
        let mut changed = ChangedPaths::new();
        let mut next = Some(tip.clone());
        while let Some(id) = next.take().filter(|id| id != after) {
            let Some(known) = self.known_commit(&id)? else { break };
            let is_match = |path: &Vec<u8>| patterns.iter().any(|pattern| matches(pattern, path));
            let paths: BTreeSet<Vec<u8>> =
                known.changes.into_iter().map(|change| change.path).filter(is_match).collect();
            if !paths.is_empty() {
                changed.insert(id, paths);
            }
            next = known.content.parents.first().cloned();
        }
        Ok(changed)
    }

    fn protection(&mut self, commit: &CommitId, guard: &GuardConfig) -> Result<Protection, ObjectError> {
        let files = CommitFiles::new(self, commit);
        let protection = guard_files::protection(guard, &files);
        files.finish().map(|()| protection)
    }

    fn followed(
        &mut self,
        commit: &CommitId,
        checks: RunChecks<'_>,
    ) -> Result<Option<DerivedProtection>, ObjectError> {
        let files = CommitFiles::new(self, commit);
        let derived = checks.follow(&files);
        files.finish().map(|()| derived)
    }

    fn instructions(
        &mut self,
        commit: &CommitId,
        executor: &Executor,
    ) -> Result<Option<PinnedInstructions>, ObjectError> {
        let files = CommitFiles::new(self, commit);
        let instructions = PinnedInstructions::of(&executor.instructions, &files);
        files.finish().map(|()| instructions)
    }
}

/// The files of one commit.
struct CommitFiles<'s, R> {
    source: std::cell::RefCell<&'s mut ObjectSource<R>>,
    commit: &'s CommitId,
    /// The first failure; what was read after it does not count.
    failure: std::cell::RefCell<Option<ObjectError>>,
}

impl<'s, R: ObjectReader> CommitFiles<'s, R> {
    fn new(source: &'s mut ObjectSource<R>, commit: &'s CommitId) -> Self {
        Self { source: source.into(), commit, failure: None.into() }
    }

    fn recorded<T>(&self, result: Result<Option<T>, ObjectError>) -> Option<T> {
        result.unwrap_or_else(|error| {
            self.failure.borrow_mut().get_or_insert(error);
            None
        })
    }

    fn finish(self) -> Result<(), ObjectError> {
        self.failure.into_inner().map_or(Ok(()), Err)
    }
}

impl<R: ObjectReader> RepoFiles for CommitFiles<'_, R> {
    fn read(&self, path: &str) -> Option<Vec<u8>> {
        let file = self.source.borrow_mut().resolved_file(self.commit, path);
        self.recorded(file)
    }

    fn is_folder(&self, path: &str) -> bool {
        let entry = self.source.borrow_mut().entry_at(self.commit, path);
        self.recorded(entry).is_some_and(|entry| entry.kind == EntryKind::Folder)
    }

    fn link(&self, path: &str) -> Option<String> {
        let mut source = self.source.borrow_mut();
        let entry = source.entry_at(self.commit, path);
        self.recorded(entry).filter(|entry| entry.kind == EntryKind::Link)?;
        let target = source.file(self.commit, path);
        let target = self.recorded(target).filter(|target| target.len() < LINK_BYTES_MAX)?;
        Some(String::from_utf8_lossy(&target).into_owned())
    }
}
