//! The user's ignored files that the configuration keeps. They are copied once, before a session could change them, into a store
//! of the run, and every room gets them from there.
//!
//! `runner start` asks for a copy of each path that is new in the configuration; the next room makes it, before the next session.
//! A path that is missing then stays missing: what a session puts there later is not the user's. Until the first session of a
//! run, nothing is final.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use runner_core::model::id::RunId;
use runner_core::strict::canonical_json;
use serde::{Deserialize, Serialize};

use super::setup::copy;
use crate::error::{Error, UserError};
use crate::fs::atomic;
use crate::fs::lookup;
use crate::git::Git;

const MANIFEST: &str = "manifest.json";
const MANIFEST_BYTES_MAX: u64 = 1 << 20;
/// What a room has copies of, beside its files.
const IN_ROOM: &str = "kept";

/// The copies of a run's kept files, in the runner's private folder.
#[derive(Clone, Debug)]
pub(crate) struct KeptStore {
    folder: PathBuf,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Manifest {
    /// Whether a session began: from then on, what is in the work tree may be an agent's.
    is_closed: bool,
    /// The number of the last copy. No number is used twice, because rooms know copies by it.
    last_copy: u32,
    entries: BTreeMap<String, KeptEntry>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum KeptEntry {
    /// The next room copies it.
    Pending,
    /// There was nothing to copy.
    Absent,
    /// The copy with this number.
    Copied(u32),
}

impl KeptStore {
    pub(crate) fn of_run(git: &Git, run: &RunId) -> Self {
        Self { folder: git.paths().kept(run.as_str()) }
    }

    /// Removes what an earlier run with the same name left.
    pub(crate) fn forget(&self) -> Result<(), Error> {
        atomic::remove_any(&self.folder)
    }

    /// Called by a start of the run: paths that are new are copied before the next session, and copies of others are removed.
    pub(crate) fn begin(&self, git: &Git, keep: &[String]) -> Result<(), Error> {
        let old = self.manifest()?;
        if keep.is_empty() && old.is_none() {
            return Ok(());
        }
        let old = old.unwrap_or_default();
        let entry = |path: &str| match old.entries.get(path) {
            Some(entry) if old.is_closed => *entry,
            Some(_) | None => KeptEntry::Pending,
        };
        let entries = names(keep).map(|path| (path.to_owned(), entry(path))).collect();
        let new = Manifest { entries, ..old.clone() };
        if new != old || !self.folder.exists() {
            self.write(git, &new)?;
        }
        self.remove_others(&new)
    }

    /// Refuses paths that no start of the run asked for here: only the user knows whether a session changed them.
    pub(crate) fn require(&self, keep: &[String]) -> Result<(), Error> {
        if keep.is_empty() {
            return Ok(());
        }
        let manifest = self.manifest()?.unwrap_or_default();
        match names(keep).find(|path| !manifest.entries.contains_key(*path)) {
            Some(path) => Err(UserError::KeptUnknown(path.to_owned()).into()),
            None => Ok(()),
        }
    }

    /// Copies what is to be copied. The manifest names a copy when it is on the disk.
    pub(super) fn take(&self, git: &Git, keep: &[String]) -> Result<(), Error> {
        let Some(old) = self.manifest()?.filter(|_| !keep.is_empty()) else { return Ok(()) };
        let mut new = old.clone();
        let is_due = |entry: KeptEntry| match entry {
            KeptEntry::Pending => true,
            KeptEntry::Absent => !old.is_closed,
            KeptEntry::Copied(_) => false,
        };
        for (path, entry) in new.entries.iter_mut().filter(|(_, entry)| is_due(**entry)) {
            let source = git.root().join(path);
            if source.symlink_metadata().is_err() {
                *entry = KeptEntry::Absent;
                continue;
            }
            new.last_copy = new.last_copy.saturating_add(1);
            let target = self.copy_path(new.last_copy);
            // A crash may have interrupted another copy with this number.
            atomic::remove_any(&target)?;
            copy(&source, &target)?;
            *entry = KeptEntry::Copied(new.last_copy);
        }
        if new == old {
            return Ok(());
        }
        atomic::sync_file_system(&self.folder)?;
        self.write(git, &new)
    }

    /// Records that a session begins. What is not copied by now is not copied without another start.
    pub(super) fn close(&self, git: &Git) -> Result<(), Error> {
        let Some(old) = self.manifest()? else { return Ok(()) };
        let mut new = Manifest { is_closed: true, ..old.clone() };
        new.entries.retain(|_, entry| *entry != KeptEntry::Pending);
        if new == old { Ok(()) } else { self.write(git, &new) }
    }

    /// Whether no start of the run was here.
    fn is_unknown(&self) -> Result<bool, Error> {
        Ok(self.manifest()?.is_none())
    }

    fn manifest(&self) -> Result<Option<Manifest>, Error> {
        let bytes = match atomic::read(&self.folder.join(MANIFEST), MANIFEST_BYTES_MAX) {
            // Something else is in its place.
            Err(Error::Refused(_)) => return Ok(None),
            bytes => bytes?,
        };
        // One that cannot be read is none: a start asks for new copies.
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    fn write(&self, git: &Git, manifest: &Manifest) -> Result<(), Error> {
        atomic::create_folders(git.paths().git_dir(), &self.folder)?;
        atomic::write_private(&self.folder.join(MANIFEST), &canonical_json(manifest))
    }

    fn copy_path(&self, number: u32) -> PathBuf {
        self.folder.join(number.to_string())
    }

    /// Removes what a manifest does not name.
    fn remove_others(&self, manifest: &Manifest) -> Result<(), Error> {
        let named = manifest.entries.values().filter_map(|entry| match entry {
            KeptEntry::Copied(number) => Some(self.copy_path(*number)),
            KeptEntry::Pending | KeptEntry::Absent => None,
        });
        let named: Vec<PathBuf> = named.chain([self.folder.join(MANIFEST)]).collect();
        let found = lookup::entries(&self.folder)?.into_iter().map(|entry| entry.path());
        found.filter(|path| !named.contains(path)).try_for_each(|path| atomic::remove_any(&path))
    }
}

/// Where a room gets kept files from.
#[derive(Clone, Debug)]
pub(crate) enum KeptFiles {
    /// The copies of a run.
    Store { store: KeptStore, root: PathBuf },
    /// The work tree with this root, as it is now: for trials, and for a clone in which no session ran.
    WorkTree { root: PathBuf },
}

/// One kept file or folder, to be copied into a room.
struct KeptSource {
    path: PathBuf,
    /// Differs between one copy and the next.
    version: String,
}

impl KeptFiles {
    pub(super) fn of_store(git: &Git, store: KeptStore) -> Self {
        Self::Store { store, root: git.root().to_owned() }
    }

    pub(crate) fn of_work_tree(git: &Git) -> Self {
        Self::WorkTree { root: git.root().to_owned() }
    }

    /// What a repetition of a run gets: the run's copies; where neither a start nor a session of the run was, the user's own
    /// files.
    pub(crate) fn for_rerun(git: &Git, run: &RunId) -> Result<Self, Error> {
        let store = KeptStore::of_run(git, run);
        let is_elsewhere = store.is_unknown()? && !git.paths().run_logs(run.as_str()).exists();
        Ok(if is_elsewhere { Self::of_work_tree(git) } else { Self::of_store(git, store) })
    }

    /// The first path of which it is not known what the guard of the run had there.
    pub(crate) fn missing<'k>(&self, keep: &'k [String]) -> Result<Option<&'k str>, Error> {
        let manifest = self.manifest()?;
        let is_missing = |path: &&str| match self {
            Self::Store { .. } => !manifest.entries.contains_key(*path),
            Self::WorkTree { root } => root.join(path).symlink_metadata().is_err(),
        };
        Ok(names(keep).find(is_missing))
    }

    /// Where the content of a path is now.
    pub(crate) fn path_of(&self, path: &str) -> Result<Option<PathBuf>, Error> {
        Ok(self.source(&self.manifest()?, path.trim_end_matches('/')).map(|source| source.path))
    }

    /// Copies those into a room that it does not have yet, or of which it has another copy. The room's record is written last,
    /// so that an incomplete copy is made again.
    pub(super) fn copy_new(&self, room: &Path, keep: &[String]) -> Result<(), Error> {
        let record = room.join(IN_ROOM);
        let in_room = atomic::read(&record, MANIFEST_BYTES_MAX).ok().flatten().unwrap_or_default();
        let mut in_room: BTreeMap<String, String> = serde_json::from_slice(&in_room).unwrap_or_default();
        let manifest = self.manifest()?;
        for path in names(keep) {
            let Some(source) = self.source(&manifest, path) else { continue };
            if in_room.get(path) == Some(&source.version) {
                continue;
            }
            source.copy_to(room, path)?;
            in_room.insert(path.to_owned(), source.version);
            atomic::write_no_sync(&record, &canonical_json(&in_room))?;
        }
        Ok(())
    }

    /// Copies some into a room again.
    pub(super) fn copy_again(&self, room: &Path, keep: &[String]) -> Result<(), Error> {
        let manifest = self.manifest()?;
        for path in names(keep) {
            if let Some(source) = self.source(&manifest, path) {
                source.copy_to(room, path)?;
            }
        }
        Ok(())
    }

    fn manifest(&self) -> Result<Manifest, Error> {
        Ok(match self {
            Self::Store { store, .. } => store.manifest()?.unwrap_or_default(),
            Self::WorkTree { .. } => Manifest::default(),
        })
    }

    fn source(&self, manifest: &Manifest, path: &str) -> Option<KeptSource> {
        let work_tree = |root: &Path| KeptSource { path: root.join(path), version: String::new() };
        let source = match self {
            Self::WorkTree { root } => work_tree(root),
            Self::Store { store, root } => match manifest.entries.get(path)? {
                // No session ran since the user asked for it.
                KeptEntry::Pending => work_tree(root),
                KeptEntry::Absent => return None,
                KeptEntry::Copied(number) => {
                    KeptSource { path: store.copy_path(*number), version: number.to_string() }
                }
            },
        };
        Some(source).filter(|source| source.path.symlink_metadata().is_ok())
    }
}

impl KeptSource {
    fn copy_to(&self, room: &Path, path: &str) -> Result<(), Error> {
        let target = room.join("tree").join(path);
        atomic::remove_any(&target)?;
        copy(&self.path, &target)
    }
}

/// The paths without a slash at their end.
fn names(keep: &[String]) -> impl Iterator<Item = &str> {
    keep.iter().map(|path| path.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Fixture {
        _folder: tempfile::TempDir,
        git: Git,
        store: KeptStore,
        room: PathBuf,
    }

    impl Fixture {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let work = folder.path().join("work");
            fs::create_dir(&work).unwrap();
            let git = Git::create(&work).unwrap();
            let store = KeptStore::of_run(&git, &RunId::new("demo").unwrap());
            let room = folder.path().join("room");
            Self { _folder: folder, git, store, room }
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.git.root().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        /// What a room that is opened now has at a path.
        fn in_room(&self, keep: &[String], path: &str) -> Option<String> {
            self.store.take(&self.git, keep).unwrap();
            KeptFiles::of_store(&self.git, self.store.clone()).copy_new(&self.room, keep).unwrap();
            fs::read_to_string(self.room.join("tree").join(path)).ok()
        }
    }

    fn keep(paths: &[&str]) -> Vec<String> {
        paths.iter().map(|path| (*path).to_owned()).collect()
    }

    #[test]
    fn only_what_was_there_before_a_session_is_ever_in_a_room() {
        let fixture = Fixture::new();
        let keep = keep(&["data/", "late"]);
        fixture.write("data/a", "mine");
        fixture.store.begin(&fixture.git, &keep).unwrap();
        assert_eq!(fixture.in_room(&keep, "data/a").as_deref(), Some("mine"));
        fixture.store.close(&fixture.git).unwrap();
        fixture.write("data/a", "of a session");
        fixture.write("late", "of a session");
        fixture.store.begin(&fixture.git, &keep).unwrap();
        fs::remove_dir_all(&fixture.room).unwrap();
        assert_eq!(fixture.in_room(&keep, "data/a").as_deref(), Some("mine"));
        assert_eq!(fixture.in_room(&keep, "late"), None);
    }

    #[test]
    fn until_the_first_session_nothing_is_final() {
        let fixture = Fixture::new();
        let keep = keep(&["data", "late"]);
        fixture.write("data", "old");
        fixture.store.begin(&fixture.git, &keep).unwrap();
        assert_eq!(fixture.in_room(&keep, "late"), None);
        fixture.write("late", "there now");
        assert_eq!(fixture.in_room(&keep, "late").as_deref(), Some("there now"));
        fixture.write("data", "new");
        assert_eq!(fixture.in_room(&keep, "data").as_deref(), Some("old"));
        fixture.store.begin(&fixture.git, &keep).unwrap();
        assert_eq!(fixture.in_room(&keep, "data").as_deref(), Some("new"), "a start copies again");
    }

    #[test]
    fn a_path_that_no_start_asked_for_is_refused() {
        let fixture = Fixture::new();
        let keep = keep(&["data"]);
        fixture.write("data", "x");
        assert!(matches!(fixture.store.require(&keep), Err(Error::Refused(UserError::KeptUnknown(_)))));
        assert_eq!(fixture.in_room(&keep, "data"), None);
        fixture.store.begin(&fixture.git, &keep).unwrap();
        fixture.store.require(&keep).unwrap();
        // A session without a room: what it leaves is not copied when there is one.
        fixture.store.close(&fixture.git).unwrap();
        assert!(fixture.store.require(&keep).is_err());
        assert_eq!(fixture.in_room(&keep, "data"), None);
    }

    #[test]
    fn a_copy_that_a_crash_interrupted_is_made_again() {
        let fixture = Fixture::new();
        let keep = keep(&["data"]);
        fixture.write("data/a", "a");
        fixture.store.begin(&fixture.git, &keep).unwrap();
        fs::create_dir_all(fixture.store.copy_path(1)).unwrap();
        fs::create_dir_all(fixture.room.join("tree/data")).unwrap();
        assert_eq!(fixture.in_room(&keep, "data/a").as_deref(), Some("a"));
        fixture.store.begin(&fixture.git, &[]).unwrap();
        assert!(!fixture.store.copy_path(1).exists(), "a start removes what the configuration does not keep");
    }
}
