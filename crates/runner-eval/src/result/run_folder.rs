//! The folder of an evaluation run, `<results>/_runs/<run>`: its plan, its signing key, and a lock per trial. Any number of
//! machines may use it at the same time.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use runner_core::strict::canonical_json;
use runner_host::clock;
use runner_term::CommandError;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use crate::files;
use crate::plan::run_name::EvalRunName;
use crate::plan::{EvalPlan, PLAN_SCHEMA, PlanScope, PlannedTrial};
use crate::result::signature::SigningKey;
use crate::result::stored_trial::{StoredTrial, read_result};
use crate::result::{FailureCause, TrialMeta};

const PLAN_FILE: &str = "plan.json";

#[derive(Clone, Debug)]
pub(crate) struct RunFolder {
    results: PathBuf,
    path: PathBuf,
    pub(crate) plan: EvalPlan,
    pub(crate) key: SigningKey,
}

/// The attempts at a trial.
#[derive(Debug, Default)]
pub(crate) struct TrialAttempts {
    /// Ordered by their numbers.
    pub(crate) valid: Vec<StoredTrial>,
    /// Folders with the name of an attempt that cannot be read or whose signature is not valid.
    pub(crate) forged: Vec<PathBuf>,
}

impl RunFolder {
    /// Creates the folder of a new run, or opens the existing one if its scope is the same.
    pub(crate) fn create_or_open(
        results: &Path,
        run: &EvalRunName,
        scope: &PlanScope,
    ) -> Result<Self, CommandError> {
        let what = || format!("could not create the run `{run}`");
        let path = folder_of(results, run.as_str());
        let fail = |error: io::Error| CommandError::io(what(), &path, &error);
        fs::create_dir_all(path.join("locks")).map_err(fail)?;
        let plan = EvalPlan {
            schema: PLAN_SCHEMA.to_owned(),
            run: run.clone(),
            created_at: clock::utc(clock::now_ms()).unwrap_or_default(),
            scope: scope.clone(),
        };
        // The key comes first, so that every plan that can be read has its key.
        let key = SigningKey::path(results, run.as_str());
        if files::create_new(&key, random_key().map_err(fail)?.as_bytes()).map_err(fail)? {
            fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).map_err(fail)?;
        }
        files::create_new(&path.join(PLAN_FILE), &canonical_json(&plan)).map_err(fail)?;
        let folder = Self::open(results, run.as_str())?;
        if folder.plan.scope != *scope {
            return Err(CommandError::refused("other_plan", what())
                .cause("a run of this name exists with other cases, agents or trials, or another runner")
                .hint("choose another name: --run NAME"));
        }
        Ok(folder)
    }

    pub(crate) fn open(results: &Path, run: &str) -> Result<Self, CommandError> {
        let key = SigningKey::read(results, run);
        let plan = Self::read_plan(results, run)?;
        let key = key.ok_or_else(|| {
            CommandError::refused("key", format!("could not open the run `{run}`"))
                .cause("the signing key is missing, so its results cannot be verified")
        })?;
        Ok(Self { results: results.to_owned(), path: folder_of(results, run), plan, key })
    }

    /// Opens the run with a key from elsewhere.
    pub(crate) fn open_with_key(results: &Path, run: &str, key: SigningKey) -> Result<Self, CommandError> {
        let plan = Self::read_plan(results, run)?;
        Ok(Self { results: results.to_owned(), path: folder_of(results, run), plan, key })
    }

    fn read_plan(results: &Path, run: &str) -> Result<EvalPlan, CommandError> {
        let path = folder_of(results, run);
        let what = || format!("could not open the run `{run}`");
        let plan_file = path.join(PLAN_FILE);
        let plan = fs::read_to_string(&plan_file).map_err(|error| {
            CommandError::io(what(), &plan_file, &error).hint("list the runs: runner eval results")
        })?;
        serde_json::from_str(&plan)
            .map_err(|error| CommandError::refused("plan", what()).cause(format!("{PLAN_FILE}: {error}")))
    }

    /// The plans of all runs, newest first.
    pub(crate) fn plans(results: &Path) -> Vec<EvalPlan> {
        let mut plans = Vec::new();
        for entry in fs::read_dir(results.join("_runs")).into_iter().flatten().flatten() {
            let Ok(bytes) = fs::read(entry.path().join(PLAN_FILE)) else { continue };
            let Ok(plan) = serde_json::from_slice::<EvalPlan>(&bytes) else { continue };
            if entry.file_name() == plan.run.as_str() {
                plans.push(plan);
            }
        }
        plans.sort_by(|a, b| (&b.created_at, &b.run).cmp(&(&a.created_at, &a.run)));
        plans
    }

    /// The names of all runs, newest first.
    pub(crate) fn names(results: &Path) -> Vec<EvalRunName> {
        Self::plans(results).into_iter().map(|plan| plan.run).collect()
    }

    /// All runs that can be opened, newest first.
    pub(crate) fn all(results: &Path) -> impl Iterator<Item = Self> {
        Self::names(results).into_iter().filter_map(move |run| Self::open(results, run.as_str()).ok())
    }

    pub(crate) fn newest(results: &Path) -> Result<Self, CommandError> {
        match Self::names(results).first() {
            Some(run) => Self::open(results, run.as_str()),
            None => Err(no_runs(results)),
        }
    }

    pub(crate) fn name(&self) -> &EvalRunName {
        &self.plan.run
    }

    /// The path of a file in the run's folder.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The folder of an attempt's result.
    pub(crate) fn result_folder(&self, trial: &PlannedTrial, attempt: u32) -> PathBuf {
        self.results.join(&trial.case).join(trial.eval_run_id(self.name(), attempt))
    }

    pub(crate) fn attempts(&self, trial: &PlannedTrial) -> TrialAttempts {
        let mut attempts = TrialAttempts::default();
        for attempt in 1.. {
            let folder = self.result_folder(trial, attempt);
            if !folder.exists() {
                break;
            }
            match read_result(&folder) {
                Ok(stored) if self.key.verify(&stored) => attempts.valid.push(stored),
                Ok(_) | Err(_) => attempts.forged.push(folder),
            }
        }
        attempts
    }

    pub(crate) fn last_attempt(&self, trial: &PlannedTrial) -> Option<StoredTrial> {
        self.attempts(trial).valid.pop()
    }

    /// Whether any trial of the run still needs an attempt.
    pub(crate) fn is_unfinished(&self, retries: u32) -> bool {
        self.plan.scope.trials.iter().any(|trial| !is_final(&self.attempts(trial).valid, retries))
    }

    /// Takes a trial's lock; waits while another worker holds it, or returns none if `skips_busy`. The kernel releases it
    /// when its holder dies.
    pub(crate) fn lock(&self, trial: &PlannedTrial, skips_busy: bool) -> io::Result<Option<File>> {
        let name = format!("{}.{}", trial.case, trial.slug());
        let file = File::create(self.path.join("locks").join(name))?;
        let operation =
            if skips_busy { FlockOperation::NonBlockingLockExclusive } else { FlockOperation::LockExclusive };
        match rustix::fs::flock(&file, operation) {
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            locked => locked.map(|()| Some(file)).map_err(Into::into),
        }
    }

    /// Appends what an attempt used to the run's ledger, which all machines share.
    pub(crate) fn record_spending(&self, meta: &TrialMeta) -> io::Result<()> {
        let entry = SpendingEntry {
            eval_run_id: meta.eval_run_id.clone(),
            case: meta.case_id.clone(),
            microdollars: meta.cost.microdollars,
            tokens: meta.tokens,
            sessions: meta.metrics.map_or(0, |metrics| metrics.sessions),
        };
        let mut line = serde_json::to_vec(&entry)?;
        line.push(b'\n');
        File::options().create(true).append(true).open(self.file(LEDGER_FILE))?.write_all(&line)
    }

    /// Records the budget that the newest command gave the run, for reports.
    pub(crate) fn record_budget(&self, budget: RunBudget) -> io::Result<()> {
        if budget == RunBudget::default() {
            return Ok(());
        }
        files::write_atomic(&self.file(BUDGET_FILE), &serde_json::to_vec(&budget)?)
    }

    /// The budget of a run and what it has used, in words; none if it has no budget.
    pub(crate) fn budget_text(results: &Path, run: &str) -> Option<String> {
        let folder = folder_of(results, run.split('@').next().unwrap_or(run));
        let budget: RunBudget = serde_json::from_slice(&fs::read(folder.join(BUDGET_FILE)).ok()?).ok()?;
        let spent = read_spending(&folder);
        let mut parts = Vec::new();
        if let Some(limit) = budget.microdollars {
            let [spent, limit] = [spent.microdollars, limit].map(|micro| micro as f64 / 1e6);
            parts.push(format!("${spent:.2} of ${limit:.2}"));
        }
        if let Some(limit) = budget.tokens {
            parts.push(format!("{} of {limit} tokens", spent.tokens));
        }
        Some(parts.join(", "))
    }

    /// What all attempts of the run used, on all machines.
    pub(crate) fn spending(&self) -> SpendingSum {
        read_spending(&self.path)
    }
}

/// The sum of a run's ledger.
fn read_spending(folder: &Path) -> SpendingSum {
    let text = fs::read_to_string(folder.join(LEDGER_FILE)).unwrap_or_default();
    let mut sum = SpendingSum::default();
    for entry in text.lines().filter_map(|line| serde_json::from_str::<SpendingEntry>(line).ok()) {
        sum.microdollars += entry.microdollars.unwrap_or(0);
        sum.tokens += entry.tokens.unwrap_or(0);
        sum.has_unknown_cost |= entry.sessions > 0 && entry.microdollars.is_none();
        sum.has_unknown_tokens |= entry.sessions > 0 && entry.tokens.is_none();
    }
    sum
}

const BUDGET_FILE: &str = "budget.json";
/// The file with a line per attempt of any machine.
const LEDGER_FILE: &str = "spending.jsonl";

#[derive(Serialize, Deserialize)]
struct SpendingEntry {
    eval_run_id: String,
    case: String,
    microdollars: Option<u64>,
    tokens: Option<u64>,
    /// An attempt without a session used nothing.
    sessions: u32,
}

/// What the attempts of a run used together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SpendingSum {
    pub(crate) microdollars: u64,
    pub(crate) tokens: u64,
    pub(crate) has_unknown_cost: bool,
    pub(crate) has_unknown_tokens: bool,
}

/// The budget of a whole run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RunBudget {
    pub(crate) microdollars: Option<u64>,
    pub(crate) tokens: Option<u64>,
}

impl RunBudget {
    pub(crate) fn is_used_up(self, spent: SpendingSum) -> bool {
        self.microdollars.is_some_and(|budget| spent.microdollars >= budget)
            || self.tokens.is_some_and(|budget| spent.tokens >= budget)
    }

    /// Whether a limit cannot be enforced, because what some attempts used is unknown.
    pub(crate) fn is_unenforceable(self, spent: SpendingSum) -> bool {
        (self.microdollars.is_some() && spent.has_unknown_cost)
            || (self.tokens.is_some() && spent.has_unknown_tokens)
    }
}

/// Whether a trial with these attempts needs no more of them.
pub(crate) fn is_final(attempts: &[StoredTrial], retries: u32) -> bool {
    let Some(last) = attempts.last() else { return false };
    match last.meta.cause {
        None => true,
        Some(FailureCause::Interrupted) => false,
        Some(cause) if cause.is_retried() => {
            let failed =
                attempts.iter().filter(|stored| stored.meta.cause.is_some_and(FailureCause::is_retried));
            failed.count() > retries as usize
        }
        Some(_) => true,
    }
}

pub(crate) fn no_runs(results: &Path) -> CommandError {
    CommandError::refused("no_runs", format!("no evaluation runs in `{}`", results.display()))
        .hint("start one: runner eval run")
}

fn folder_of(results: &Path, run: &str) -> PathBuf {
    results.join("_runs").join(run)
}

fn random_key() -> io::Result<String> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budget_without_known_cost_is_not_ignored() {
        let budget = RunBudget { microdollars: Some(10), tokens: None };
        let spent = SpendingSum { microdollars: 3, ..SpendingSum::default() };
        assert!(!budget.is_used_up(spent) && !budget.is_unenforceable(spent));
        assert!(budget.is_unenforceable(SpendingSum { has_unknown_cost: true, ..spent }));
        assert!(budget.is_used_up(SpendingSum { microdollars: 10, ..spent }));
        assert!(!RunBudget::default().is_unenforceable(SpendingSum { has_unknown_cost: true, ..spent }));
    }
}
