//! What changes in a repository while runs are made.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use runner_core::layout::{Doc, RUNNER_DIR};
use runner_core::model::id::{IterationNumber, RunId};

use super::{Sieve, WatchTarget, is_folder};
use crate::api::{ChangeEvent, FileSize};
use crate::read::confined_fs::FileVersion;
use crate::read::iterations;
use crate::read::repo_reader::RepoReader;

/// How many of the newest iterations may still change.
const LIVE: usize = 2;
/// More new iterations than this at once are not told one by one.
const ADDED_MAX: usize = 50;

impl WatchTarget for RepoReader {
    type RepoFingerprint = Look;

    fn look(&self) -> Look {
        look(self)
    }

    fn folders(&self, look: &Look) -> BTreeSet<PathBuf> {
        folders(self, look)
    }

    fn sieve(&self) -> Sieve {
        let (root, git) = (self.reading.root().to_owned(), self.reading.watch_paths());
        Box::new(move |event| is_hint(event, &root, &git))
    }

    fn is_live(look: &Look) -> bool {
        look.is_live
    }

    fn changes(&self, before: &Look, now: &Look) -> Vec<ChangeEvent> {
        if now.around != before.around || now.run != before.run {
            self.forget_branches();
        }
        changes(before, now)
    }
}

/// One look at everything that can change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Look {
    tree: Option<FileVersion>,
    state: Option<FileVersion>,
    run: Option<RunId>,
    /// Branches, the runner at work, its journal, goal and configuration.
    around: Vec<String>,
    is_live: bool,
    iterations: BTreeSet<IterationNumber>,
    newest: BTreeMap<IterationNumber, Vec<FileSize>>,
}

fn look(project: &RepoReader) -> Look {
    let run = project.here();
    let folder = run.as_ref().and_then(|run| project.folder_of(run).ok());
    let names = folder.as_ref().and_then(|folder| folder.names().ok()).unwrap_or_default();
    let iterations: BTreeSet<IterationNumber> =
        names.iter().filter_map(|name| iterations::of_name(name)).collect();
    let newest = iterations.iter().rev().take(LIVE).filter_map(|iter| {
        let folder = folder.as_ref()?.folder(&iter.to_string()).ok()?;
        Some((*iter, iterations::sizes(&folder)))
    });
    let at_work = project.reading.lock_holder();
    let mut around = vec![
        format!("{at_work:?}"),
        format!("{:?}", project.reading.is_paused()),
        format!("{:?}", project.reading.branch()),
        format!("{:?}", project.stamp(Doc::Goal)),
        format!("{:?}", project.stamp(Doc::Config)),
    ];
    for place in project.reading.watch_paths() {
        for name in ["packed-refs", "journal.json"] {
            around.push(plain_stamp(&place.join(name)));
        }
        if place.ends_with("refs/heads/runner") {
            around.extend(stamps_in(&place));
        }
    }
    Look {
        tree: project.stamp(Doc::Tree),
        state: project.stamp(Doc::RunState),
        run,
        around,
        is_live: at_work.is_some(),
        newest: newest.collect(),
        iterations,
    }
}

/// The version of a file of git's.
fn plain_stamp(path: &Path) -> String {
    fs::symlink_metadata(path)
        .map(|found| format!("{} {} {}.{}", found.ino(), found.len(), found.mtime(), found.mtime_nsec()))
        .unwrap_or_default()
}

fn stamps_in(folder: &Path) -> Vec<String> {
    let paths = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut stamps: Vec<String> =
        paths.map(|path| format!("{} {}", path.display(), plain_stamp(&path))).collect();
    stamps.sort_unstable();
    stamps
}

/// What to tell of the difference between two looks.
fn changes(before: &Look, now: &Look) -> Vec<ChangeEvent> {
    if before.run != now.run {
        return vec![ChangeEvent::Resync {}];
    }
    let mut told = Vec::new();
    if before.tree != now.tree {
        told.push(ChangeEvent::TreeChanged { revision: format!("{:?}", now.tree) });
    }
    if before.state != now.state {
        told.push(ChangeEvent::RunStateChanged {});
    }
    if before.around != now.around {
        told.push(ChangeEvent::RunChanged {});
    }
    let Some(run) = now.run.as_ref().map(ToString::to_string) else { return told };
    let added: Vec<IterationNumber> = now.iterations.difference(&before.iterations).copied().collect();
    if added.len() > ADDED_MAX || before.iterations.difference(&now.iterations).next().is_some() {
        return vec![ChangeEvent::Resync {}];
    }
    told.extend(added.iter().map(|iter| ChangeEvent::IterationAdded { run: run.clone(), iter: iter.get() }));
    for (iter, files) in &now.newest {
        if before.newest.get(iter) != Some(files) {
            told.push(ChangeEvent::IterationChanged {
                run: run.clone(),
                iter: iter.get(),
                files: files.clone(),
            });
        }
    }
    told
}

/// The folders that tell of every change: few, because what is old does not change.
fn folders(project: &RepoReader, look: &Look) -> BTreeSet<PathBuf> {
    let root = project.reading.root();
    let mut folders = BTreeSet::from([root.to_owned()]);
    let iterations = root.join(project.iterations());
    folders.extend([root.join(RUNNER_DIR), root.join(RUNNER_DIR).join("state"), iterations.clone()]);
    if let Some(run) = &look.run {
        let run = iterations.join(run.as_str());
        folders.extend(look.newest.keys().map(|iter| run.join(iter.to_string())));
        folders.insert(run);
    }
    folders.extend(project.reading.watch_paths());
    folders.retain(|path| is_folder(path));
    folders
}

/// Whether a report can be about something that is looked at.
fn is_hint(event: &notify::Event, root: &Path, git: &[PathBuf]) -> bool {
    event.paths.is_empty()
        || event.paths.iter().any(|path| {
            let name = path.file_name().unwrap_or_default();
            match path.parent() {
                Some(parent) if parent == root => name == RUNNER_DIR,
                // git's folders are busy with what is not ours: only these names are.
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
    fn only_what_differs_is_told() {
        let before =
            Look { run: RunId::new("x").ok(), tree: Some(FileVersion::default()), ..Look::default() };
        assert_eq!(changes(&before, &before), []);
        let size = |bytes| vec![FileSize { name: "guard.log".to_owned(), bytes }];
        let now = Look {
            tree: None,
            iterations: [iteration(1)].into(),
            newest: [(iteration(1), size(3))].into(),
            ..before.clone()
        };
        let (run, iter) = ("x".to_owned(), 1);
        let grown = |bytes| ChangeEvent::IterationChanged { run: run.clone(), iter, files: size(bytes) };
        let tree = ChangeEvent::TreeChanged { revision: "None".to_owned() };
        assert_eq!(
            changes(&before, &now),
            [tree, ChangeEvent::IterationAdded { run: run.clone(), iter }, grown(3)]
        );
        let more = Look { newest: [(iteration(1), size(4))].into(), ..now.clone() };
        assert_eq!(changes(&now, &more), [grown(4)]);
    }

    #[test]
    fn another_run_and_iterations_that_are_gone_are_read_anew() {
        let before = Look { run: RunId::new("x").ok(), iterations: [iteration(1)].into(), ..Look::default() };
        let other = Look { run: RunId::new("y").ok(), ..before.clone() };
        assert_eq!(changes(&before, &other), [ChangeEvent::Resync {}]);
        let gone = Look { iterations: BTreeSet::new(), ..before.clone() };
        assert_eq!(changes(&before, &gone), [ChangeEvent::Resync {}]);
        let many = Look { iterations: (1..=99).map(iteration).collect(), ..before.clone() };
        assert_eq!(changes(&before, &many), [ChangeEvent::Resync {}]);
    }
}
