//! What `runner-eval` says of results, asked once for every state of them. It alone counts and computes.

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

use super::{EntryName, EvalPaths, names_in};
use crate::api::{EvalComparison, EvalGrid, EvalMissing, EvalRun, EvalView};
use crate::error::RequestError;
use crate::read::confined_fs::ConfinedDir;

/// How long reading many results may take.
const WAIT_MAX: Duration = Duration::from_secs(120);
/// How much of an answer is read.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
/// How much of a check's output is shown.
const OUTPUT_CHARS_MAX: usize = 2_000;

/// What was asked before.
#[derive(Debug, Default)]
pub(super) struct EvalCliCache {
    runs: Option<Vec<EvalRun>>,
    grids: BTreeMap<String, EvalGrid>,
    comparisons: BTreeMap<(String, String), EvalComparison>,
}

/// The part of `runner-eval results` that is used.
#[derive(Deserialize)]
struct EvalResults {
    runs: Vec<EvalRun>,
}

impl EvalCliCache {
    fn runs(&mut self, places: &EvalPaths) -> Result<&[EvalRun], RequestError> {
        if self.runs.is_none() {
            let recorded: EvalResults = ask(places, &["results"])?;
            self.runs = Some(recorded.runs);
        }
        Ok(self.runs.as_deref().unwrap_or_default())
    }

    pub(super) fn view(
        &mut self,
        places: &EvalPaths,
        wanted: Option<&str>,
    ) -> Result<EvalView, RequestError> {
        let runs = self.runs(places)?.to_vec();
        let results = one_line(&places.results.display().to_string());
        let run = match wanted {
            Some(wanted) => Some(known(&runs, wanted).ok_or_else(|| RequestError::no_results(wanted))?),
            None => runs.first().map(|run| run.run.clone()),
        };
        let Some(run) = run else { return Ok(EvalView { results, runs, grid: None }) };
        if !self.grids.contains_key(&run) {
            let mut grid: EvalGrid = ask(places, &["report", "table", &run])?;
            grid.trials.iter_mut().flat_map(|trial| &mut trial.checks).for_each(|check| {
                let output = check.output.take().filter(|_| !check.passed);
                check.output = output.map(|text| end_of(&text));
            });
            self.grids.insert(run.clone(), grid);
        }
        let mut grid = self.grids.get(&run).cloned();
        // Who is at work is looked at anew each time: no file tells when a process dies.
        if let Some(grid) = &mut grid {
            under_way(places, &run, &mut grid.missing);
        }
        Ok(EvalView { results, runs, grid })
    }

    pub(super) fn compare(
        &mut self,
        places: &EvalPaths,
        base: &str,
        new: &str,
    ) -> Result<EvalComparison, RequestError> {
        let runs = self.runs(places)?;
        let known = |side: &str| known(runs, side).ok_or_else(|| RequestError::no_results(side));
        let key = (known(base)?, known(new)?);
        if let Some(found) = self.comparisons.get(&key) {
            return Ok(found.clone());
        }
        let found: EvalComparison = ask(places, &["compare", &key.0, &key.1])?;
        self.comparisons.insert(key, found.clone());
        Ok(found)
    }
}

/// `RUN` or `RUN@AGENT`, if there is such a run with such an agent: nothing else is ever handed on.
fn known(runs: &[EvalRun], text: &str) -> Option<String> {
    let (name, agent) = text.split_once('@').map_or((text, None), |(name, agent)| (name, Some(agent)));
    let run = runs.iter().find(|run| run.run == name)?;
    let fits = agent.is_none_or(|agent| run.agents.iter().any(|known| known == agent));
    (fits && !name.starts_with('-')).then(|| text.to_owned())
}

/// The last of many lines.
fn end_of(text: &str) -> String {
    let skipped = text.chars().count().saturating_sub(OUTPUT_CHARS_MAX);
    text.chars().skip(skipped).collect()
}

/// Asks `runner-eval`.
fn ask<T: DeserializeOwned>(places: &EvalPaths, words: &[&str]) -> Result<T, RequestError> {
    let mut args: Vec<OsString> = vec!["--results".into(), places.results.as_os_str().to_owned()];
    args.extend(["--json".into()]);
    args.extend(words.iter().map(OsString::from));
    let asked = capture_sibling("runner-eval", &args, ANSWER_BYTES_MAX, WAIT_MAX);
    let asked = asked.ok_or_else(|| {
        RequestError::evaluation("`runner-eval` is not beside this page, or did not answer")
    })?;
    serde_json::from_slice(&asked.stdout).map_err(|_| refused(&asked.stderr))
}

/// Why `runner-eval` did not answer, in its own words.
fn refused(complaint: &[u8]) -> RequestError {
    let told: Value = serde_json::from_slice(complaint).unwrap_or_default();
    let message = told.get("message").and_then(Value::as_str).map(one_line);
    let causes = told.get("causes").and_then(Value::as_array).into_iter().flatten();
    let causes: Vec<String> = causes.filter_map(Value::as_str).map(one_line).collect();
    let message = message.unwrap_or_else(|| "`runner-eval` gave an answer that is not understood".to_owned());
    RequestError::evaluation([vec![message], causes].concat().join(": "))
}

/// Which of the missing trials somebody is at work on, and where.
fn under_way(places: &EvalPaths, run: &str, missing: &mut [EvalMissing]) {
    if missing.is_empty() {
        return;
    }
    let locked = locked(places, run);
    let workspaces = ConfinedDir::open(&places.workspaces);
    for unit in missing {
        unit.is_under_way = locked.contains(&format!("{}.{}", unit.case, unit.slug));
        let folder = match (EntryName::new(&unit.case), &workspaces) {
            (Some(case), Ok(folder)) => folder.folder(case.as_str()),
            _ => Err(io::ErrorKind::NotFound.into()),
        };
        let begins = format!("{run}.{}.a", unit.slug);
        let attempts = names_in(&folder).into_iter().filter_map(|name| {
            let attempt: u32 = name.as_str().strip_prefix(&begins)?.parse().ok()?;
            Some((attempt, name.to_string()))
        });
        unit.id = attempts.max().map(|(_, name)| name);
    }
}

/// The trials of a run whose lock is held, as the lock's files are called.
pub(crate) fn locked(places: &EvalPaths, run: &str) -> Vec<String> {
    let held = locked_inodes();
    if held.is_empty() {
        return Vec::new();
    }
    let locks =
        ConfinedDir::open(&places.results).and_then(|folder| folder.folder(&format!("_runs/{run}/locks")));
    let files = locks.and_then(|folder| folder.inodes()).unwrap_or_default();
    files.into_iter().filter(|(_, inode)| held.contains(inode)).map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_runs_and_agents_that_are_there_are_handed_on() {
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
        assert_eq!(known(&runs, "monday").as_deref(), Some("monday"));
        assert_eq!(known(&runs, "monday@codex:gpt-5").as_deref(), Some("monday@codex:gpt-5"));
        for bad in
            ["", "tuesday", "monday@claude", "--out", "monday@", "/etc", "../x", "monday@codex:gpt-5@x"]
        {
            assert_eq!(known(&runs, bad), None, "{bad}");
        }
    }

    #[test]
    fn what_runner_eval_complains_of_is_told() {
        let told = refused(br#"{"message": "no pairs", "causes": ["no case has a score"]}"#);
        assert_eq!(told.message(), "no pairs: no case has a score");
    }
}
