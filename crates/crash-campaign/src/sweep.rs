//! One traced run of a scenario's command that judges every crash in it: before each counted call, while all processes are
//! stopped, the next command runs in a view of the disk. A kill of all processes leaves exactly these files, so nothing has to
//! run again from its beginning, and two calls with the same files are one point.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use testkit::test_repo::{TestRepo, temporary_root};

use crate::disk_state::hash_folder;
use crate::disk_view::DiskView;
use crate::families::counted_folder;
use crate::injector::{CallClass, Injection, trace};
use crate::oracle::{Belongings, judge};
use crate::point::{PointSpec, PointVerdict};
use crate::pool::POINT_TIMEOUT;
use crate::scenarios::{FaultScenario, Workspace, find};

/// How often a point is judged if its files change meanwhile: a process that was not stopped yet finished its last call.
const JUDGEMENTS_MAX: usize = 3;

/// A point of a sweep and what it showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SweptPoint {
    pub(crate) spec: PointSpec,
    pub(crate) verdict: PointVerdict,
}

/// Where each state of the disk was first seen.
pub(crate) struct StateNumbers {
    first_with: BTreeMap<String, usize>,
    every: usize,
}

/// What to do with the next state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextState {
    New,
    /// The call with this number had the same files.
    Same(usize),
    /// New, but not one of every K.
    LeftOut,
}

impl StateNumbers {
    pub(crate) fn new(every: usize) -> Self {
        Self { first_with: BTreeMap::new(), every: every.max(1) }
    }

    pub(crate) fn add(&mut self, state: &str, number: usize) -> NextState {
        if let Some(first) = self.first_with.get(state) {
            return NextState::Same(*first);
        }
        let is_chosen = self.first_with.len().is_multiple_of(self.every);
        self.first_with.insert(state.to_owned(), number);
        if is_chosen { NextState::New } else { NextState::LeftOut }
    }
}

/// Runs a scenario's command and prints one line per point, and a last one with their number.
pub(crate) fn run(workspace: &Workspace, family: &str, scenario: &FaultScenario, every: usize) {
    let repo = workspace.copy(scenario);
    let folder = tempfile::tempdir_in(temporary_root()).expect("a temporary folder");
    let before = folder.path().join("before.json");
    fs::write(&before, Belongings::read(&repo, scenario.runs).to_json().to_string()).expect("a file");
    let judge = PointJudge { workspace, scenario, repo: &repo, before, scratch: folder.path().join("view") };
    let mut states = StateNumbers::new(every);
    let mut observer = |number: usize, _: &_| {
        let state = hash_folder(repo.outside());
        let spec = |number: usize| PointSpec::new(family, scenario.name, &[number]);
        let verdict = match states.add(&state, number) {
            NextState::New => judge.verdict(&state),
            NextState::Same(first) => PointVerdict::Same(spec(first)),
            NextState::LeftOut => PointVerdict::NotReached,
        };
        crate::print(&SweptPoint { spec: spec(number), verdict }.to_line());
    };
    let injection = Injection {
        class: CallClass::Mutating,
        root: counted_folder(&repo),
        at: 0,
        fault: None,
        observer: Some(&mut observer),
    };
    let outcome = trace(&repo.runner_command(scenario.command), injection);
    assert_eq!(outcome.exit_code, Some(0), "`runner {}` without a fault", scenario.command.join(" "));
    crate::print(&last_line(outcome.calls.len()));
}

/// Judges what is on the disk while the processes are stopped.
struct PointJudge<'a> {
    workspace: &'a Workspace,
    scenario: &'a FaultScenario,
    repo: &'a TestRepo,
    before: PathBuf,
    scratch: PathBuf,
}

impl PointJudge<'_> {
    fn verdict(&self, state: &str) -> PointVerdict {
        let view = DiskView { folder: self.repo.outside(), scratch: &self.scratch };
        let [folder, before, templates] = [self.repo.outside(), &self.before, self.workspace.templates()]
            .map(|path| path.display().to_string());
        let args = [
            "judge",
            self.scenario.name,
            &folder,
            &before,
            "--runner",
            &self.workspace.runner,
            "--templates",
            &templates,
        ];
        for _ in 0..JUDGEMENTS_MAX {
            let Some(output) = view.run(&args, POINT_TIMEOUT) else {
                return PointVerdict::Bad(vec![format!("no end within {} s", POINT_TIMEOUT.as_secs())]);
            };
            if hash_folder(self.repo.outside()) == state {
                return PointVerdict::parse(&output.stdout).unwrap_or_else(|| {
                    PointVerdict::Bad(vec![format!("the judgement failed: {}", output.stderr.trim_end())])
                });
            }
        }
        PointVerdict::Bad(vec!["the files changed while they were judged".to_owned()])
    }
}

/// Judges the scenario's folder as it is; runs in a view of it.
pub(crate) fn judge_folder(
    workspace: &Workspace,
    scenario: &str,
    folder: &Path,
    before: &Path,
) -> PointVerdict {
    let scenario = find(scenario).unwrap_or_else(|| panic!("`{scenario}` is not a scenario"));
    let repo = TestRepo::borrow(&workspace.runner, folder).at(folder.join(scenario.work_tree));
    let before = fs::read_to_string(before).ok().and_then(|text| Belongings::parse(&text));
    let before = before.expect("what belonged to the user before the command");
    PointVerdict::of(judge(&repo, &scenario, &before))
}

impl SweptPoint {
    fn to_line(&self) -> String {
        json!({ "point": self.spec.to_string(), "verdict": self.verdict.to_text() }).to_string()
    }
}

fn last_line(count: usize) -> String {
    json!({ "complete": count }).to_string()
}

/// What a sweep with these points prints.
pub(crate) fn to_text(points: &[SweptPoint]) -> String {
    let lines = points.iter().map(SweptPoint::to_line).chain([last_line(points.len())]);
    lines.map(|line| format!("{line}\n")).collect()
}

/// Prints the points of a sweep that has ended.
pub(crate) fn print_points(points: &[SweptPoint]) {
    crate::print(to_text(points).trim_end());
}

/// The points that a sweep printed; none if it is not complete.
pub(crate) fn parse(output: &str) -> Option<Vec<SweptPoint>> {
    let mut points = Vec::new();
    for line in output.lines() {
        let value: Value = serde_json::from_str(line).ok()?;
        if let Some(count) = value.get("complete") {
            return (*count == points.len()).then_some(points);
        }
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        let spec = PointSpec::parse(text("point")?)?;
        points.push(SweptPoint { spec, verdict: PointVerdict::parse(text("verdict")?)? });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{NextState, StateNumbers, SweptPoint, parse, to_text};
    use crate::point::{PointSpec, PointVerdict};

    #[test]
    fn a_state_is_judged_once_and_every_second_one_on_request() {
        let states = ["a", "a", "b", "c", "b"];
        let judged = |every: usize| {
            let mut numbers = StateNumbers::new(every);
            (1..).zip(states).map(|(number, state)| numbers.add(state, number)).collect::<Vec<_>>()
        };
        let (new, left_out) = (NextState::New, NextState::LeftOut);
        assert_eq!(judged(1), [new, NextState::Same(1), new, new, NextState::Same(3)]);
        assert_eq!(judged(2), [new, NextState::Same(1), left_out, new, NextState::Same(3)]);
    }

    #[test]
    fn a_sweep_counts_only_if_it_is_complete() {
        let point =
            |at: usize, verdict| SweptPoint { spec: PointSpec::new("kill-all", "step", &[at]), verdict };
        let points = [
            point(1, PointVerdict::Sound),
            point(2, PointVerdict::Same(PointSpec::new("kill-all", "step", &[1]))),
        ];
        let text = to_text(&points);
        assert_eq!(parse(&text).as_deref(), Some(&points[..]));
        let (lines, _) = text.trim_end().rsplit_once('\n').expect("a last line");
        assert_eq!(parse(lines), None);
        assert_eq!(parse(&text.replace("\"complete\":2", "\"complete\":3")), None);
    }
}
