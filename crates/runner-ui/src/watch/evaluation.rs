//! Watches an evaluation: results, the newest workspaces, and which trials a process works on.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::{EventFilter, WatchTarget, is_folder};
use crate::api::ChangeEvent;
use crate::evaluation::{EntryName, Evaluation, entry_names, latest_by_case, locked_trials};
use crate::read::confined_fs::ConfinedDir;

/// Everything that can change. Results appear whole and never change, so their names are enough.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EvalFingerprint {
    results: BTreeSet<(EntryName, EntryName)>,
    runs: BTreeSet<EntryName>,
    latest: BTreeMap<EntryName, EntryName>,
    /// The held locks, by run.
    locks: BTreeSet<(EntryName, String)>,
}

impl WatchTarget for Evaluation {
    type Fingerprint = EvalFingerprint;

    fn fingerprint(&self) -> EvalFingerprint {
        let results = ConfinedDir::open(&self.paths.results);
        let mut fingerprint =
            EvalFingerprint { latest: latest_by_case(&self.paths), ..EvalFingerprint::default() };
        if let Ok(folder) = &results {
            for case in entry_names(&results) {
                let ids = entry_names(&folder.folder(case.as_str()));
                fingerprint.results.extend(ids.into_iter().map(|id| (case.clone(), id)));
            }
        }
        fingerprint.runs.extend(entry_names(&ConfinedDir::open(&self.paths.results.join("_runs"))));
        for run in &fingerprint.runs {
            let locks = locked_trials(&self.paths, run.as_str());
            fingerprint.locks.extend(locks.into_iter().map(|lock| (run.clone(), lock)));
        }
        fingerprint
    }

    fn folders(&self, fingerprint: &EvalFingerprint) -> BTreeSet<PathBuf> {
        let results = &self.paths.results;
        let workspaces = &self.paths.workspaces;
        let runs = results.join("_runs");
        let mut folders = BTreeSet::from([results.clone(), workspaces.clone(), runs.clone()]);
        folders
            .extend([results, workspaces].into_iter().filter_map(|folder| folder.parent()).map(Into::into));
        let cases: BTreeSet<&EntryName> =
            fingerprint.results.iter().map(|(case, _)| case).chain(fingerprint.latest.keys()).collect();
        folders.extend(cases.into_iter().map(|case| results.join(case.as_str())));
        // A trial begins by taking its lock.
        folders.extend(fingerprint.runs.iter().map(|run| runs.join(run.as_str()).join("locks")));
        folders.retain(|path| is_folder(path));
        folders
    }

    fn event_filter(&self) -> EventFilter {
        Box::new(|_| true)
    }

    fn is_live(fingerprint: &EvalFingerprint) -> bool {
        !fingerprint.locks.is_empty()
    }

    fn changes(&self, before: &EvalFingerprint, now: &EvalFingerprint) -> Vec<ChangeEvent> {
        if before == now {
            return Vec::new();
        }
        self.clear_cache();
        // Clients that follow the newest trial of a case switch to the next one.
        let moved = now.latest.iter().filter(|(case, id)| before.latest.get(case) != Some(id));
        let moved = moved.map(|(case, id)| ChangeEvent::TrialChanged {
            case: case.to_string(),
            id: id.to_string(),
            is_latest: true,
            change: Box::new(ChangeEvent::Resync {}),
        });
        moved.chain([ChangeEvent::ResultsChanged {}]).collect()
    }
}
