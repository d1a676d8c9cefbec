//! What changes in an evaluation while trials are made: results, the newest workspaces, who is at work.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::{Sieve, WatchTarget, is_folder};
use crate::api::ChangeEvent;
use crate::evaluation::{EntryName, Evaluation, latest_of_all, locked, names_in};
use crate::read::confined_fs::ConfinedDir;

/// One look at everything that can change. Results appear whole and stay as they are, so their names tell all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct EvalFingerprint {
    results: BTreeSet<(EntryName, EntryName)>,
    runs: BTreeSet<EntryName>,
    latest: BTreeMap<EntryName, EntryName>,
    /// By run and lock.
    at_work: BTreeSet<(EntryName, String)>,
}

impl WatchTarget for Evaluation {
    type RepoFingerprint = EvalFingerprint;

    fn look(&self) -> EvalFingerprint {
        let results = ConfinedDir::open(&self.places.results);
        let mut look = EvalFingerprint { latest: latest_of_all(&self.places), ..EvalFingerprint::default() };
        if let Ok(folder) = &results {
            for case in names_in(&results) {
                let ids = names_in(&folder.folder(case.as_str()));
                look.results.extend(ids.into_iter().map(|id| (case.clone(), id)));
            }
        }
        look.runs.extend(names_in(&ConfinedDir::open(&self.places.results.join("_runs"))));
        for run in &look.runs {
            let locks = locked(&self.places, run.as_str());
            look.at_work.extend(locks.into_iter().map(|lock| (run.clone(), lock)));
        }
        look
    }

    fn folders(&self, look: &EvalFingerprint) -> BTreeSet<PathBuf> {
        let (results, workspaces) = (&self.places.results, &self.places.workspaces);
        let runs = results.join("_runs");
        let mut folders = BTreeSet::from([results.clone(), workspaces.clone(), runs.clone()]);
        folders.extend([results, workspaces].into_iter().filter_map(|place| place.parent()).map(Into::into));
        let cases: BTreeSet<&EntryName> =
            look.results.iter().map(|(case, _)| case).chain(look.latest.keys()).collect();
        folders.extend(cases.into_iter().map(|case| results.join(case.as_str())));
        // A lock that is taken tells that a trial begins.
        folders.extend(look.runs.iter().map(|run| runs.join(run.as_str()).join("locks")));
        folders.retain(|path| is_folder(path));
        folders
    }

    fn sieve(&self) -> Sieve {
        Box::new(|_| true)
    }

    fn is_live(look: &EvalFingerprint) -> bool {
        !look.at_work.is_empty()
    }

    fn changes(&self, before: &EvalFingerprint, now: &EvalFingerprint) -> Vec<ChangeEvent> {
        if before == now {
            return Vec::new();
        }
        self.forget();
        // Whoever follows the newest trial of a case is taken to the next one.
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
