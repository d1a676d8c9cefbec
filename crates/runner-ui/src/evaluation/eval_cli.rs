//! Runs `runner-eval` and caches its output until results change. It alone computes scores and comparisons.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::time::Duration;

use runner_core::text::one_line;
use runner_host::repo::readonly_repo::locked_inodes;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use supervise::executables::capture_sibling;

use super::{EntryName, EvalPaths, entry_names};
use crate::api::{EvalComparison, EvalGrid, EvalMissing, EvalRun, EvalView};
use crate::error::RequestError;
use crate::read::confined_fs::ConfinedDir;

/// How long `runner-eval` may take on many results.
const TIMEOUT: Duration = Duration::from_secs(120);
/// How much of its output is read.
const OUTPUT_BYTES_MAX: u64 = 64 << 20;
/// How much of a check's output is shown.
const CHECK_CHARS_MAX: usize = 2_000;

#[derive(Debug, Default)]
pub(super) struct EvalCliCache {
    runs: Option<Vec<EvalRun>>,
    grids: BTreeMap<String, EvalGrid>,
    comparisons: BTreeMap<(String, String), EvalComparison>,
}

/// The part of the output of `runner-eval results` that is used.
#[derive(Deserialize)]
struct EvalResults {
    runs: Vec<EvalRun>,
}

impl EvalCliCache {
    fn runs(&mut self, paths: &EvalPaths) -> Result<&[EvalRun], RequestError> {
        if self.runs.is_none() {
            let results: EvalResults = run_eval(paths, &["results"])?;
            self.runs = Some(results.runs);
        }
        Ok(self.runs.as_deref().unwrap_or_default())
    }

    pub(super) fn view(&mut self, paths: &EvalPaths, wanted: Option<&str>) -> Result<EvalView, RequestError> {
        let runs = self.runs(paths)?.to_vec();
        let results = one_line(&paths.results.display().to_string());
        let run = match wanted {
            Some(wanted) => {
                Some(known_results(&runs, wanted).ok_or_else(|| RequestError::no_results(wanted))?)
            }
            None => runs.first().map(|run| run.run.clone()),
        };
        let Some(run) = run else { return Ok(EvalView { results, runs, grid: None }) };
        if !self.grids.contains_key(&run) {
            let mut grid: EvalGrid = run_eval(paths, &["report", "table", &run])?;
            grid.trials.iter_mut().flat_map(|trial| &mut trial.checks).for_each(|check| {
                let output = check.output.take().filter(|_| !check.passed);
                check.output = output.map(|text| last_chars(&text));
            });
            self.grids.insert(run.clone(), grid);
        }
        let mut grid = self.grids.get(&run).cloned();
        // Never cached: no file changes when a process dies.
        if let Some(grid) = &mut grid {
            mark_running(paths, &run, &mut grid.missing);
        }
        Ok(EvalView { results, runs, grid })
    }

    pub(super) fn compare(
        &mut self,
        paths: &EvalPaths,
        base: &str,
        new: &str,
    ) -> Result<EvalComparison, RequestError> {
        let runs = self.runs(paths)?;
        let known = |side: &str| known_results(runs, side).ok_or_else(|| RequestError::no_results(side));
        let key = (known(base)?, known(new)?);
        if let Some(comparison) = self.comparisons.get(&key) {
            return Ok(comparison.clone());
        }
        let comparison: EvalComparison = run_eval(paths, &["compare", &key.0, &key.1])?;
        self.comparisons.insert(key, comparison.clone());
        Ok(comparison)
    }
}

/// `RUN` or `RUN@AGENT`, if that run and agent exist: nothing else is ever passed to `runner-eval`.
fn known_results(runs: &[EvalRun], text: &str) -> Option<String> {
    let (name, agent) = text.split_once('@').map_or((text, None), |(name, agent)| (name, Some(agent)));
    let run = runs.iter().find(|run| run.run == name)?;
    let has_agent = agent.is_none_or(|agent| run.agents.iter().any(|known| known == agent));
    (has_agent && !name.starts_with('-')).then(|| text.to_owned())
}

fn last_chars(text: &str) -> String {
    let skipped = text.chars().count().saturating_sub(CHECK_CHARS_MAX);
    text.chars().skip(skipped).collect()
}

/// Runs `runner-eval` and parses its JSON.
fn run_eval<T: DeserializeOwned>(paths: &EvalPaths, words: &[&str]) -> Result<T, RequestError> {
    let mut args: Vec<OsString> = vec!["--results".into(), paths.results.as_os_str().to_owned()];
    args.extend(["--json".into()]);
    args.extend(words.iter().map(OsString::from));
    let output = capture_sibling("runner-eval", &args, OUTPUT_BYTES_MAX, TIMEOUT);
    let output = output.ok_or_else(|| {
        RequestError::evaluation("`runner-eval` is not installed beside runner-ui, or timed out")
    })?;
    serde_json::from_slice(&output.stdout).map_err(|_| eval_error(&output.stderr))
}

/// The error that `runner-eval` printed.
fn eval_error(stderr: &[u8]) -> RequestError {
    let error: Value = serde_json::from_slice(stderr).unwrap_or_default();
    let message = error.get("message").and_then(Value::as_str).map(one_line);
    let causes = error.get("causes").and_then(Value::as_array).into_iter().flatten();
    let causes: Vec<String> = causes.filter_map(Value::as_str).map(one_line).collect();
    let message = message.unwrap_or_else(|| "unexpected output from `runner-eval`".to_owned());
    RequestError::evaluation([vec![message], causes].concat().join(": "))
}

/// Marks the missing trials that a process works on, with their newest workspaces.
fn mark_running(paths: &EvalPaths, run: &str, missing: &mut [EvalMissing]) {
    if missing.is_empty() {
        return;
    }
    let locked = locked_trials(paths, run);
    let workspaces = ConfinedDir::open(&paths.workspaces);
    for unit in missing {
        unit.is_under_way = locked.contains(&format!("{}.{}", unit.case, unit.slug));
        let folder = match (EntryName::new(&unit.case), &workspaces) {
            (Some(case), Ok(folder)) => folder.folder(case.as_str()),
            _ => Err(io::ErrorKind::NotFound.into()),
        };
        let prefix = format!("{run}.{}.a", unit.slug);
        let attempts = entry_names(&folder).into_iter().filter_map(|name| {
            let attempt: u32 = name.as_str().strip_prefix(&prefix)?.parse().ok()?;
            Some((attempt, name.to_string()))
        });
        unit.id = attempts.max().map(|(_, name)| name);
    }
}

/// The names of the lock files of a run that a process holds.
pub(crate) fn locked_trials(paths: &EvalPaths, run: &str) -> Vec<String> {
    let held = locked_inodes();
    if held.is_empty() {
        return Vec::new();
    }
    let locks =
        ConfinedDir::open(&paths.results).and_then(|folder| folder.folder(&format!("_runs/{run}/locks")));
    let files = locks.and_then(|folder| folder.inodes()).unwrap_or_default();
    files.into_iter().filter(|(_, inode)| held.contains(inode)).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_existing_runs_and_agents_are_passed_on() {
        let run = |name: &str, agents: &[&str]| EvalRun {
            run: name.to_owned(),
            created_at: String::new(),
            runner: String::new(),
            agents: agents.iter().map(|agent| (*agent).to_owned()).collect(),
            cases: 1,
            units: 1,
            done: 0,
        };
        let runs = [run("monday", &["codex:gpt-5"]), run("--out", &[])];
        assert_eq!(known_results(&runs, "monday").as_deref(), Some("monday"));
        assert_eq!(known_results(&runs, "monday@codex:gpt-5").as_deref(), Some("monday@codex:gpt-5"));
        for bad in
            ["", "tuesday", "monday@claude", "--out", "monday@", "/etc", "../x", "monday@codex:gpt-5@x"]
        {
            assert_eq!(known_results(&runs, bad), None, "{bad}");
        }
    }

    #[test]
    fn error_of_runner_eval_is_passed_on() {
        let error = eval_error(br#"{"message": "no pairs", "causes": ["no case has a score"]}"#);
        assert_eq!(error.message(), "no pairs: no case has a score");
    }
}
