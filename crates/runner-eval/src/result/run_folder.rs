//! The folder of a run, `<results>/_runs/<run>`: its plan, the key that seals its results, and a lock for each unit.
//! Any number of machines may work from it at the same time.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use runner_core::model::id::NodeId;
use runner_core::strict::canonical_json;
use runner_term::CommandError;
use rustix::fs::FlockOperation;

use crate::files;
use crate::plan::{EvalPlan, PLAN_SCHEMA, PlanScope, TrialUnit};
use crate::result::FailureCause;
use crate::result::signature::SigningKey;
use crate::result::stored_trial::{StoredTrial, read};

/// A run's folder, with its plan.
#[derive(Clone, Debug)]
pub(crate) struct RunFolder {
    results: PathBuf,
    path: PathBuf,
    pub(crate) plan: EvalPlan,
    pub(crate) key: SigningKey,
}

impl RunFolder {
    /// Makes the folder of a new run, or opens the one that has this name and this scope.
    pub(crate) fn make(results: &Path, run: &str, scope: &PlanScope) -> Result<Self, CommandError> {
        let what = || format!("could not make the run `{run}`");
        let fits = NodeId::new(run.to_owned()).map_err(|fault| fault.to_string());
        if let Err(fault) = fits.and_then(|_| {
            if run.starts_with(['_', '.']) { Err("begins with `_` or `.`".to_owned()) } else { Ok(()) }
        }) {
            return Err(CommandError::refused("run_name", what()).cause(format!("its name {fault}")));
        }
        let path = folder_of(results, run);
        let fail = |error: io::Error| CommandError::io(what(), &path, &error);
        fs::create_dir_all(path.join("locks")).map_err(fail)?;
        let created_at = runner_host::clock::utc(runner_host::clock::now_ms()).unwrap_or_default();
        let plan = EvalPlan {
            schema: PLAN_SCHEMA.to_owned(),
            run: run.to_owned(),
            created_at,
            scope: scope.clone(),
        };
        // The key comes first: whoever finds a plan finds its key.
        let key = SigningKey::path(results, run);
        if files::write_new(&key, random_key().map_err(fail)?.as_bytes()).map_err(fail)? {
            fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).map_err(fail)?;
        }
        files::write_new(&path.join("plan.json"), &canonical_json(&plan)).map_err(fail)?;
        let folder = Self::open(results, run)?;
        if folder.plan.scope != *scope {
            return Err(CommandError::refused("other_plan", what())
                .cause("there is one of this name with other cases, agents or trials, or another runner")
                .hint("choose another name: --run NAME"));
        }
        Ok(folder)
    }

    /// Opens the folder of a run.
    pub(crate) fn open(results: &Path, run: &str) -> Result<Self, CommandError> {
        let path = folder_of(results, run);
        let what = || format!("could not open the run `{run}`");
        let read = |name: &str| {
            fs::read_to_string(path.join(name)).map_err(|error| {
                CommandError::io(what(), &path.join(name), &error)
                    .hint("list the results: runner eval results")
            })
        };
        let plan: EvalPlan = serde_json::from_str(&read("plan.json")?)
            .map_err(|error| CommandError::refused("plan", what()).cause(format!("plan.json: {error}")))?;
        let key = SigningKey::read(results, run).ok_or_else(|| {
            CommandError::refused("key", what())
                .cause("its key is gone, so nobody can tell its results from others")
        })?;
        Ok(Self { results: results.to_owned(), path, plan, key })
    }

    /// The plans of all runs, newest first.
    pub(crate) fn plans(results: &Path) -> Vec<EvalPlan> {
        let entries = fs::read_dir(results.join("_runs")).into_iter().flatten().flatten();
        let plan = |entry: fs::DirEntry| -> Option<EvalPlan> {
            let run = entry.file_name().into_string().ok()?;
            let plan: EvalPlan =
                serde_json::from_slice(&fs::read(entry.path().join("plan.json")).ok()?).ok()?;
            (plan.run == run).then_some(plan)
        };
        let mut plans: Vec<EvalPlan> = entries.filter_map(plan).collect();
        plans.sort_by(|a, b| (&b.created_at, &b.run).cmp(&(&a.created_at, &a.run)));
        plans
    }

    /// The names of all runs, newest first.
    pub(crate) fn all(results: &Path) -> Vec<String> {
        Self::plans(results).into_iter().map(|plan| plan.run).collect()
    }

    pub(crate) fn name(&self) -> &str {
        &self.plan.run
    }

    /// Where the run's summary goes.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Where the result of an attempt goes.
    pub(crate) fn result(&self, unit: &TrialUnit, attempt: u32) -> PathBuf {
        self.results.join(&unit.case).join(unit.eval_run_id(self.name(), attempt))
    }

    /// The attempts at a unit that are on record, in order, and the folders in their places that nobody with the key
    /// made.
    pub(crate) fn attempts(&self, unit: &TrialUnit) -> (Vec<StoredTrial>, Vec<PathBuf>) {
        let (mut attempts, mut forged) = (Vec::new(), Vec::new());
        for attempt in 1.. {
            let folder = self.result(unit, attempt);
            if !folder.exists() {
                break;
            }
            match read(&folder) {
                Ok(trial) if self.key.fits(&trial) => attempts.push(trial),
                Ok(_) | Err(_) => forged.push(folder),
            }
        }
        (attempts, forged)
    }

    /// Whether a unit needs no more attempts.
    pub(crate) fn is_done(attempts: &[StoredTrial], retries: u32) -> bool {
        let Some(last) = attempts.last() else { return false };
        match last.meta.cause {
            None => true,
            Some(FailureCause::Interrupted) => false,
            Some(cause) if cause.is_retried() => {
                let failed =
                    attempts.iter().filter(|trial| trial.meta.cause.is_some_and(FailureCause::is_retried));
                failed.count() > retries as usize
            }
            Some(_) => true,
        }
    }

    /// Takes a unit's lock, which dies with its holder; waits for whoever has it.
    pub(crate) fn lock(&self, unit: &TrialUnit) -> io::Result<File> {
        let name = format!("{}.{}", unit.case, unit.slug());
        let file = File::create(self.path.join("locks").join(name))?;
        rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
        Ok(file)
    }
}

fn folder_of(results: &Path, run: &str) -> PathBuf {
    results.join("_runs").join(run)
}

fn random_key() -> io::Result<String> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
