//! Watches a repository: documents, iterations, branches, the journal and the lock.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use runner_core::layout::{Doc, RUNNER_DIR};
use runner_core::model::id::{IterationNumber, RunId};

use super::{EventFilter, WatchTarget, is_folder};
use crate::api::{ChangeEvent, FileSize};
use crate::read::confined_fs::FileVersion;
use crate::read::iterations;
use crate::read::repo_reader::RepoReader;

/// How many of the newest iterations may still change.
const LIVE_ITERATIONS: usize = 2;
/// More new iterations than this at once cause one `resync`.
const ADDED_MAX: usize = 50;

impl WatchTarget for RepoReader {
    type Fingerprint = RepoFingerprint;

    fn fingerprint(&self) -> RepoFingerprint {
        fingerprint(self)
    }

    fn folders(&self, fingerprint: &RepoFingerprint) -> BTreeSet<PathBuf> {
        folders(self, fingerprint)
    }

    fn event_filter(&self) -> EventFilter {
        let root = self.repo.root().to_owned();
        let git = self.repo.watch_paths();
        Box::new(move |event| is_relevant(event, &root, &git))
    }

    fn is_live(fingerprint: &RepoFingerprint) -> bool {
        fingerprint.is_live
    }

    fn changes(&self, before: &RepoFingerprint, now: &RepoFingerprint) -> Vec<ChangeEvent> {
        if now.other != before.other || now.run != before.run {
            self.forget_branches();
        }
        changes(before, now)
    }
}

/// Everything that can change in a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RepoFingerprint {
    tree: Option<FileVersion>,
    state: Option<FileVersion>,
    run: Option<RunId>,
    /// Branches, the lock, the pause, the journal, goal and configuration.
    other: Vec<String>,
    is_live: bool,
    iterations: Arc<BTreeSet<IterationNumber>>,
    newest: BTreeMap<IterationNumber, Vec<FileSize>>,
}

fn fingerprint(project: &RepoReader) -> RepoFingerprint {
    let run = project.here();
    let folder = run.as_ref().and_then(|run| project.run_folder(run).ok());
    let iterations = run.as_ref().map(|run| project.iteration_folders(run)).unwrap_or_default();
    let newest = iterations.iter().rev().take(LIVE_ITERATIONS).filter_map(|iter| {
        let folder = folder.as_ref()?.folder(&iter.to_string()).ok()?;
        Some((*iter, iterations::file_sizes(&folder)))
    });
    let lock_holder = project.repo.lock_holder();
    let mut other = vec![
        format!("{lock_holder:?}"),
        format!("{:?}", (project.repo.is_paused(), project.repo.is_stopping())),
        format!("{:?}", project.repo.branch()),
        format!("{:?}", project.stamp(Doc::Goal)),
        format!("{:?}", project.stamp(Doc::Config)),
        format!("{:?}", project.stamp(Doc::Questions)),
    ];
    for folder in project.repo.watch_paths() {
        for name in ["packed-refs", "journal.json"] {
            other.push(git_file_version(&folder.join(name)));
        }
        if folder.ends_with("refs/heads/runner") {
            other.extend(versions_in(&folder));
        }
    }
    RepoFingerprint {
        tree: project.stamp(Doc::Tree),
        state: project.stamp(Doc::RunState),
        run,
        other,
        is_live: lock_holder.is_some(),
        newest: newest.collect(),
        iterations,
    }
}

/// The version of a file in git's folder.
fn git_file_version(path: &Path) -> String {
    fs::symlink_metadata(path)
        .map(|file| format!("{} {} {}.{}", file.ino(), file.len(), file.mtime(), file.mtime_nsec()))
        .unwrap_or_default()
}

fn versions_in(folder: &Path) -> Vec<String> {
    let paths = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut versions: Vec<String> =
        paths.map(|path| format!("{} {}", path.display(), git_file_version(&path))).collect();
    versions.sort_unstable();
    versions
}

/// A word that differs between versions of a file.
fn revision_of(version: Option<FileVersion>) -> String {
    let mut hasher = DefaultHasher::new();
    version.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// The changes between two fingerprints.
fn changes(before: &RepoFingerprint, now: &RepoFingerprint) -> Vec<ChangeEvent> {
    if before.run != now.run {
        return vec![ChangeEvent::Resync {}];
    }
    let mut changes = Vec::new();
    if before.tree != now.tree {
        changes.push(ChangeEvent::TreeChanged { revision: revision_of(now.tree) });
    }
    if before.state != now.state {
        changes.push(ChangeEvent::RunStateChanged {});
    }
    if before.other != now.other {
        changes.push(ChangeEvent::RunChanged {});
    }
    let Some(run) = now.run.as_ref().map(ToString::to_string) else { return changes };
    if !Arc::ptr_eq(&before.iterations, &now.iterations) {
        let added: Vec<IterationNumber> = now.iterations.difference(&before.iterations).copied().collect();
        if added.len() > ADDED_MAX || before.iterations.difference(&now.iterations).next().is_some() {
            return vec![ChangeEvent::Resync {}];
        }
        let event =
            |iter: &IterationNumber| ChangeEvent::IterationAdded { run: run.clone(), iter: iter.get() };
        changes.extend(added.iter().map(event));
    }
    for (iter, files) in &now.newest {
        if before.newest.get(iter) != Some(files) {
            changes.push(ChangeEvent::IterationChanged {
                run: run.clone(),
                iter: iter.get(),
                files: files.clone(),
            });
        }
    }
    changes
}

/// The folders in which every change happens: few, because old iterations do not change.
fn folders(project: &RepoReader, fingerprint: &RepoFingerprint) -> BTreeSet<PathBuf> {
    let root = project.repo.root();
    let mut folders = BTreeSet::from([root.to_owned()]);
    let iterations = root.join(project.iterations());
    folders.extend([root.join(RUNNER_DIR), root.join(RUNNER_DIR).join("state"), iterations.clone()]);
    if let Some(run) = &fingerprint.run {
        let run = iterations.join(run.as_str());
        folders.extend(fingerprint.newest.keys().map(|iter| run.join(iter.to_string())));
        folders.insert(run);
    }
    folders.extend(project.repo.watch_paths());
    folders.retain(|path| is_folder(path));
    folders
}

/// Whether a notification can be about a watched file.
fn is_relevant(event: &notify::Event, root: &Path, git: &[PathBuf]) -> bool {
    event.paths.is_empty()
        || event.paths.iter().any(|path| {
            let name = path.file_name().unwrap_or_default();
            match path.parent() {
                Some(parent) if parent == root => name == RUNNER_DIR,
                // Much else happens in git's folders: only these names matter.
                Some(parent) if git.iter().take(2).any(|folder| folder == parent) => {
                    ["HEAD", "packed-refs", "refs", "runner"].iter().any(|known| name == *known)
                }
                Some(_) | None => true,
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn iteration(number: u32) -> IterationNumber {
        IterationNumber::new(number).unwrap()
    }

    #[test]
    fn only_differences_are_changes() {
        let before = RepoFingerprint {
            run: RunId::new("x").ok(),
            tree: Some(FileVersion::default()),
            ..RepoFingerprint::default()
        };
        assert_eq!(changes(&before, &before), []);
        let size = |bytes| vec![FileSize { name: "guard.log".to_owned(), bytes }];
        let now = RepoFingerprint {
            tree: None,
            iterations: Arc::new([iteration(1)].into()),
            newest: [(iteration(1), size(3))].into(),
            ..before.clone()
        };
        let (run, iter) = ("x".to_owned(), 1);
        let grown = |bytes| ChangeEvent::IterationChanged { run: run.clone(), iter, files: size(bytes) };
        let tree = ChangeEvent::TreeChanged { revision: revision_of(None) };
        assert_eq!(
            changes(&before, &now),
            [tree, ChangeEvent::IterationAdded { run: run.clone(), iter }, grown(3)]
        );
        let more = RepoFingerprint { newest: [(iteration(1), size(4))].into(), ..now.clone() };
        assert_eq!(changes(&now, &more), [grown(4)]);
    }

    #[test]
    fn another_run_or_removed_iterations_cause_a_resync() {
        let before = RepoFingerprint {
            run: RunId::new("x").ok(),
            iterations: Arc::new([iteration(1)].into()),
            ..RepoFingerprint::default()
        };
        let other = RepoFingerprint { run: RunId::new("y").ok(), ..before.clone() };
        assert_eq!(changes(&before, &other), [ChangeEvent::Resync {}]);
        let gone = RepoFingerprint { iterations: Arc::default(), ..before.clone() };
        assert_eq!(changes(&before, &gone), [ChangeEvent::Resync {}]);
        let many =
            RepoFingerprint { iterations: Arc::new((1..=99).map(iteration).collect()), ..before.clone() };
        assert_eq!(changes(&before, &many), [ChangeEvent::Resync {}]);
    }
}
