//! The folder of a run, `<results>/_runs/<run>`: its plan, the key that seals its results, and a lock for each unit.
//! Any number of machines may work from it at the same time.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use runner_core::digest::Sha256;
use runner_core::document::canonical_json;
use runner_core::id::NodeId;
use rustix::fs::FlockOperation;

use crate::error::Report;
use crate::files;
use crate::plan::{PLAN_SCHEMA, Plan, Scope, Unit};
use crate::result::{Cause, Lock};
use crate::results::{CHECKS, LOCK, META, Trial, read};

/// The files of a result that its lock holds fingerprints of.
pub(crate) const SEALED: [&str; 4] = [META, CHECKS, "tree.json", "run_state.json"];

/// A run's folder, with its plan.
#[derive(Clone, Debug)]
pub(crate) struct RunFolder {
    results: PathBuf,
    path: PathBuf,
    pub(crate) plan: Plan,
    key: String,
}

impl RunFolder {
    /// Makes the folder of a new run, or opens the one that has this name and this scope.
    pub(crate) fn make(results: &Path, run: &str, scope: &Scope) -> Result<Self, Report> {
        let what = || format!("could not make the run `{run}`");
        let fits = NodeId::new(run.to_owned()).map_err(|fault| fault.to_string());
        if let Err(fault) = fits.and_then(|_| {
            if run.starts_with(['_', '.']) { Err("begins with `_` or `.`".to_owned()) } else { Ok(()) }
        }) {
            return Err(Report::refused("run_name", what()).cause(format!("its name {fault}")));
        }
        let path = folder_of(results, run);
        let fail = |error: io::Error| Report::io(what(), &path, &error);
        fs::create_dir_all(path.join("locks")).map_err(fail)?;
        let created_at = runner_host::clock::utc(runner_host::clock::now_ms()).unwrap_or_default();
        let plan =
            Plan { schema: PLAN_SCHEMA.to_owned(), run: run.to_owned(), created_at, scope: scope.clone() };
        // The key comes first: whoever finds a plan finds its key.
        let key = path.join("key");
        if files::write_new(&key, random_key().map_err(fail)?.as_bytes()).map_err(fail)? {
            fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).map_err(fail)?;
        }
        files::write_new(&path.join("plan.json"), &canonical_json(&plan)).map_err(fail)?;
        let folder = Self::open(results, run)?;
        if folder.plan.scope != *scope {
            return Err(Report::refused("other_plan", what())
                .cause("there is one of this name with other cases, agents or trials, or another runner")
                .hint("choose another name: --run NAME"));
        }
        Ok(folder)
    }

    /// Opens the folder of a run.
    pub(crate) fn open(results: &Path, run: &str) -> Result<Self, Report> {
        let path = folder_of(results, run);
        let what = || format!("could not open the run `{run}`");
        let read = |name: &str| {
            fs::read_to_string(path.join(name)).map_err(|error| {
                Report::io(what(), &path.join(name), &error).hint("list the results: runner eval results")
            })
        };
        let plan: Plan = serde_json::from_str(&read("plan.json")?)
            .map_err(|error| Report::refused("plan", what()).cause(format!("plan.json: {error}")))?;
        let key = read("key")?;
        Ok(Self { results: results.to_owned(), path, plan, key })
    }

    /// The names of all runs, newest first.
    pub(crate) fn all(results: &Path) -> Vec<String> {
        let entries = fs::read_dir(results.join("_runs")).into_iter().flatten().flatten();
        let mut runs: Vec<(String, String)> = entries
            .filter_map(|entry| {
                let run = entry.file_name().into_string().ok()?;
                let plan: Plan =
                    serde_json::from_slice(&fs::read(entry.path().join("plan.json")).ok()?).ok()?;
                Some((plan.created_at, run))
            })
            .collect();
        runs.sort();
        runs.into_iter().rev().map(|(_, run)| run).collect()
    }

    pub(crate) fn name(&self) -> &str {
        &self.plan.run
    }

    /// Where the run's summary goes.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Where the result of an attempt goes.
    pub(crate) fn result(&self, unit: &Unit, attempt: u32) -> PathBuf {
        self.results.join(&unit.case).join(unit.eval_run_id(self.name(), attempt))
    }

    /// The attempts at a unit that are on record, in order, and the folders in their places that nobody with the key
    /// made.
    pub(crate) fn attempts(&self, unit: &Unit) -> (Vec<Trial>, Vec<PathBuf>) {
        let (mut attempts, mut forged) = (Vec::new(), Vec::new());
        for attempt in 1.. {
            let folder = self.result(unit, attempt);
            if !folder.exists() {
                break;
            }
            match read(&folder) {
                Ok(trial) if self.is_sealed(&trial) => attempts.push(trial),
                Ok(_) | Err(_) => forged.push(folder),
            }
        }
        (attempts, forged)
    }

    /// Whether a unit needs no more attempts.
    pub(crate) fn is_done(attempts: &[Trial], retries: u32) -> bool {
        let Some(last) = attempts.last() else { return false };
        match last.meta.cause {
            None => true,
            Some(Cause::Interrupted) => false,
            Some(cause) if cause.is_retried() => {
                let failed = attempts.iter().filter(|trial| trial.meta.cause.is_some_and(Cause::is_retried));
                failed.count() > retries as usize
            }
            Some(_) => true,
        }
    }

    /// Takes a unit's lock, which dies with its holder; waits for whoever has it.
    pub(crate) fn lock(&self, unit: &Unit) -> io::Result<File> {
        let name = format!("{}.{}", unit.case, unit.slug());
        let file = File::create(self.path.join("locks").join(name))?;
        rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    }

    /// The lock of a result with its seal.
    pub(crate) fn sealed(&self, lock: Lock) -> Lock {
        Lock { seal: self.seal(&lock), ..lock }
    }

    fn seal(&self, lock: &Lock) -> String {
        let lock = Lock { seal: String::new(), ..lock.clone() };
        let inner = [self.key.as_bytes(), &canonical_json(&lock)].concat();
        Sha256::of(format!("{}{}", self.key, Sha256::of(&inner)).as_bytes()).to_string()
    }

    /// Whether a result was made by someone who has the run's key, and is as it was made.
    pub(crate) fn is_sealed(&self, trial: &Trial) -> bool {
        trial.lock.seal == self.seal(&trial.lock) && trial.lock.files == fingerprints(&trial.folder)
    }
}

/// The fingerprints of a result's files.
pub(crate) fn fingerprints(folder: &Path) -> BTreeMap<String, String> {
    let of = |name: &str| Some((name.to_owned(), Sha256::of(&fs::read(folder.join(name)).ok()?).to_string()));
    SEALED.into_iter().filter_map(of).collect()
}

fn folder_of(results: &Path, run: &str) -> PathBuf {
    results.join("_runs").join(run)
}

fn random_key() -> io::Result<String> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The file with the lock of a result.
pub(crate) const LOCK_FILE: &str = LOCK;
