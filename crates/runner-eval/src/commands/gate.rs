//! `runner eval gate`

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use runner_core::model::digest::Sha256;
use runner_host::clock::{now_ms, utc};
use runner_term::{CommandError, CommandExit, CommandOutput, KeyValueLine, Styler, TextRole};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::compare::{DRAWS, add_difference, inference_scope, p_value, render_difference, summary};
use crate::args::{EvalGlobalArgs, GateArgs};
use crate::result::selection::ResultSelection;
use crate::result::stored_trial::StoredTrial;
use crate::stats::comparison::{PairedComparison, scores_by_case};
use crate::stats::gate::{CaseModel, GateRule, GateVerdict, VerdictTally, decide, simulate};
use crate::stats::paired::{InferenceScope, MeanDifference, mean_difference};
use crate::stats::score::Score;

/// Simulated comparisons of `--aa`.
const ROUNDS: u32 = 2_000;
/// The drops of the pass rate whose detection `--aa` simulates.
const DROPS: [f64; 3] = [0.05, 0.1, 0.2];

/// Not 1: an error must not look like a verdict.
const REGRESSION: CommandExit = CommandExit(7);
const INCONCLUSIVE: CommandExit = CommandExit(5);
const INCOMPLETE: CommandExit = CommandExit(6);

pub(crate) fn run(global: &EvalGlobalArgs, args: &GateArgs) -> Result<Box<dyn CommandOutput>, CommandError> {
    for (name, value) in [("margin", args.margin), ("max-lost", args.max_lost)] {
        if !(0.0..=1.0).contains(&value) {
            return Err(CommandError::refused("usage", format!("invalid {name}: {value}"))
                .cause("it must be from 0 to 1")
                .hint(format!("five percentage points: --{name} 0.05")));
        }
    }
    let rule = GateRule {
        margin: args.margin,
        min_cases: args.min_cases as usize,
        scope: inference_scope(args.population),
        draws: DRAWS,
    };
    let base = ResultSelection::load(global, Some(&args.base))?;
    let Some(new) = &args.new else { return Ok(Box::new(simulate_gate(&base, rule)?)) };
    let new = ResultSelection::load(global, Some(new))?;
    refuse_same_results(&base, &new)?;
    let comparison = PairedComparison::new(&base, &new)?;
    let pairs = comparison.pairs();
    let missing = find_missing(&base, &new, &comparison, args.max_lost);
    let verdict = if missing.is_empty() { decide(&pairs, &rule) } else { GateVerdict::Incomplete };
    let difference = mean_difference(&pairs, rule.scope, DRAWS);
    let look = GateLook {
        base: base.name.clone(),
        new: new.name.clone(),
        question: question(&base, &new),
        data: data(&base, &new),
        verdict: verdict.to_string(),
        p_drop: difference.map(|difference| difference.p_drop),
        at: utc(now_ms()).unwrap_or_default(),
    };
    let earlier_looks = record_look(&global.results(), &look)
        .map_err(|error| CommandError::io("could not record the verdict", &global.results(), &error))?;
    Ok(Box::new(GateOutput {
        base: base.name,
        new: new.name,
        rule,
        verdict,
        worst_verdict: decide(&comparison.worst_pairs, &rule),
        missing,
        difference,
        comparison,
        earlier_looks,
    }))
}

/// Comparing results with themselves would always pass.
fn refuse_same_results(base: &ResultSelection, new: &ResultSelection) -> Result<(), CommandError> {
    let folders = |selection: &ResultSelection| -> BTreeSet<PathBuf> {
        selection.last_attempts().iter().map(|trial| trial.folder.clone()).collect()
    };
    if folders(base).is_disjoint(&folders(new)) {
        return Ok(());
    }
    let what = format!("`{}` and `{}` are the same results", base.name, new.name);
    Err(CommandError::refused("same_results", what)
        .hint("compare two runs; the noise of one run alone: runner eval gate BASE --aa"))
}

/// One use of the gate, as it is recorded: a gate that is asked until it passes proves little.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct GateLook {
    base: String,
    new: String,
    /// A digest of what is asked: the base and its cases, the agent and the runner. Another run of the same agent and runner
    /// asks the same question again.
    question: String,
    /// A digest of the results that were compared.
    data: String,
    verdict: String,
    p_drop: Option<f64>,
    at: String,
}

fn digest_of(lines: impl Iterator<Item = String>) -> String {
    let lines: BTreeSet<String> = lines.collect();
    Sha256::of(lines.into_iter().collect::<Vec<_>>().join("\n").as_bytes()).to_string()
}

fn question(base: &ResultSelection, new: &ResultSelection) -> String {
    let base_trials = base.last_attempts().into_iter();
    let cases = base_trials.map(|trial| format!("case {} {}", trial.meta.case_id, trial.inputs.case_sha256));
    let new_trials = new.last_attempts().into_iter();
    let subjects =
        new_trials.map(|trial| format!("agent {} {}", trial.meta.agent, trial.inputs.runner.sha256));
    digest_of(cases.chain(subjects).chain([format!("base {}", base.name)]))
}

fn data(base: &ResultSelection, new: &ResultSelection) -> String {
    let trials = base.last_attempts().into_iter().chain(new.last_attempts());
    digest_of(
        trials.map(|StoredTrial { meta, .. }| {
            format!("{} {} {}", meta.case_id, meta.eval_run_id, meta.outcome)
        }),
    )
}

/// Appends a look to the record and returns how many earlier ones asked the same of other data.
fn record_look(results: &Path, look: &GateLook) -> io::Result<usize> {
    let file = results.join("_runs").join("looks.jsonl");
    let text = fs::read_to_string(&file).unwrap_or_default();
    let looks: Vec<GateLook> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let same = looks.iter().filter(|other| other.question == look.question && other.data != look.data);
    let earlier: BTreeSet<&str> = same.map(|other| other.data.as_str()).collect();
    let is_known = looks.iter().any(|other| GateLook { at: look.at.clone(), ..other.clone() } == *look);
    if !is_known && file.parent().is_some_and(Path::is_dir) {
        let mut line = serde_json::to_vec(look)?;
        line.push(b'\n');
        fs::File::options().create(true).append(true).open(&file)?.write_all(&line)?;
    }
    Ok(earlier.len())
}

/// What is missing for a verdict, in sentences.
fn find_missing(
    base: &ResultSelection,
    new: &ResultSelection,
    comparison: &PairedComparison,
    max_lost: f64,
) -> Vec<String> {
    let mut missing = Vec::new();
    for (side, lost) in [(base, comparison.base_lost), (new, comparison.new_lost)] {
        if !side.missing.is_empty() {
            missing.push(format!("{} planned trials of `{}` have no result", side.missing.len(), side.name));
        }
        for result in &side.unreadable {
            missing.push(format!("{result} (in `{}`)", side.name));
        }
        if lost.share() > max_lost {
            missing.push(format!(
                "{} of {} trials of `{}` have no score, more than {:.0} %",
                lost.lost,
                lost.trials,
                side.name,
                100.0 * max_lost
            ));
        }
    }
    for (what, cases) in [
        ("no score in the new results", &comparison.only_base),
        ("no score in the base results", &comparison.only_new),
        ("changed between the results", &comparison.changed),
    ] {
        if !cases.is_empty() {
            missing.push(format!("{what}: {}", cases.join(", ")));
        }
    }
    missing
}

struct GateOutput {
    base: String,
    new: String,
    rule: GateRule,
    verdict: GateVerdict,
    /// The verdict if every lost trial had ended in the way that is worst for the new results.
    worst_verdict: GateVerdict,
    missing: Vec<String>,
    /// How often the gate was asked the same with other results.
    earlier_looks: usize,
    /// None if no case has a score on both sides.
    difference: Option<MeanDifference>,
    comparison: PairedComparison,
}

impl GateOutput {
    fn why(&self) -> String {
        let n = self.comparison.pairs.len();
        let margin = 100.0 * self.rule.margin;
        let subject = match self.rule.scope {
            InferenceScope::Cases => "the pass rate on these cases",
            InferenceScope::Population => "the pass rate on cases like these",
        };
        match self.verdict {
            GateVerdict::Pass => {
                format!("{subject} did not fall by more than {margin:.1} points (95 % confidence)")
            }
            GateVerdict::WithinMargin => {
                format!("{subject} fell, but by at most {margin:.1} points (95 % confidence)")
            }
            GateVerdict::Regression => {
                format!("{subject} fell by more than {margin:.1} points (95 % confidence)")
            }
            GateVerdict::Worse => {
                format!(
                    "{subject} fell (p <= 5 %); whether by more than {margin:.1} points is open: run more trials"
                )
            }
            GateVerdict::Inconclusive if n < self.rule.min_cases => {
                format!(
                    "{n} cases have a score on both sides, fewer than --min-cases {}",
                    self.rule.min_cases
                )
            }
            GateVerdict::Inconclusive => {
                "neither a drop nor its absence is shown: run more cases or trials".to_owned()
            }
            GateVerdict::Incomplete => self.missing.join("; "),
        }
    }
}

impl GateOutput {
    fn notes(&self) -> Vec<String> {
        let mut notes = self.comparison.notes();
        if self.worst_verdict != self.verdict && self.verdict != GateVerdict::Incomplete {
            notes.push(format!(
                "if every lost trial had gone against the new results: {}",
                self.worst_verdict
            ));
        }
        if self.earlier_looks > 0 {
            notes.push(format!(
                "the gate was used {} times before with other results of this agent on these cases: each look adds to its errors",
                self.earlier_looks
            ));
        }
        notes
    }
}

/// What the difference means to the gate.
fn drop_summary(difference: &MeanDifference) -> &'static str {
    summary(difference.drop_direction(), difference.scope)
}

impl CommandOutput for GateOutput {
    fn json(&self) -> Value {
        json!({
            "schema": "runner.eval.gate/1",
            "base": self.base,
            "new": self.new,
            "margin": self.rule.margin,
            "min_cases": self.rule.min_cases,
            "n": self.comparison.pairs.len(),
            "verdict": self.verdict,
            "worst_case": self.worst_verdict,
            "earlier_looks": self.earlier_looks,
            "scope": self.rule.scope,
            "why": self.why(),
            "missing": self.missing,
            "difference": self.difference,
            "summary": self.difference.as_ref().map(drop_summary),
            "paired": self.comparison.json(),
            "exit": self.exit().0,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut head = KeyValueLine::new()
            .with("verdict", self.verdict)
            .with("worst_case", self.worst_verdict)
            .with("base", &self.base)
            .with("new", &self.new)
            .with("margin", self.rule.margin)
            .with("min_cases", self.rule.min_cases)
            .with("n", self.comparison.pairs.len())
            .with("earlier_looks", self.earlier_looks);
        if let Some(difference) = &self.difference {
            head = add_difference(head, difference);
        }
        let mut lines = vec![head, KeyValueLine::new().with("why", self.why())];
        if let Some(difference) = &self.difference {
            lines.push(KeyValueLine::new().with("summary", drop_summary(difference)));
        }
        lines.extend(self.notes().iter().map(|note| KeyValueLine::new().with("note", note)));
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        let role = match self.verdict {
            GateVerdict::Pass | GateVerdict::WithinMargin => TextRole::Good,
            GateVerdict::Regression => TextRole::Bad,
            GateVerdict::Worse | GateVerdict::Inconclusive | GateVerdict::Incomplete => TextRole::Warn,
        };
        let mut text = format!("{}: {}\n", styler.paint(role, self.verdict.as_str()), self.why());
        if let Some(difference) = &self.difference {
            let p = format!("{} for a drop", p_value(difference.p_drop));
            text.push_str(&render_difference(styler, difference, difference.drop_direction(), &p));
        }
        for note in self.notes() {
            text.push_str(&format!("{}\n", styler.paint(TextRole::Faint, &note)));
        }
        text
    }

    fn exit(&self) -> CommandExit {
        match self.verdict {
            GateVerdict::Pass | GateVerdict::WithinMargin => CommandExit::SUCCESS,
            GateVerdict::Regression => REGRESSION,
            GateVerdict::Worse | GateVerdict::Inconclusive => INCONCLUSIVE,
            GateVerdict::Incomplete => INCOMPLETE,
        }
    }
}

/// The verdicts of simulated comparisons: of the suite with itself, and with one that got worse.
struct GateSimulationOutput {
    base: String,
    rule: GateRule,
    cases: usize,
    no_change: VerdictTally,
    drops: Vec<SimulatedDrop>,
}

struct SimulatedDrop {
    drop: f64,
    tally: VerdictTally,
}

fn simulate_gate(base: &ResultSelection, rule: GateRule) -> Result<GateSimulationOutput, CommandError> {
    base.require_one_agent()?;
    let scores = scores_by_case(base);
    let models: Vec<CaseModel> =
        scores.values().filter_map(Score::counts).map(CaseModel::from_counts).collect();
    if models.is_empty() {
        return Err(CommandError::refused("no_scores", format!("no case of `{}` has a score", base.name))
            .hint(format!("see the results: runner eval report table {}", base.name)));
    }
    let tally = |drop| simulate(&models, drop, &rule, ROUNDS);
    Ok(GateSimulationOutput {
        base: base.name.clone(),
        rule,
        cases: models.len(),
        no_change: tally(0.0),
        drops: DROPS.into_iter().map(|drop| SimulatedDrop { drop, tally: tally(drop) }).collect(),
    })
}

impl CommandOutput for GateSimulationOutput {
    fn json(&self) -> Value {
        let mut power = Vec::new();
        for SimulatedDrop { drop, tally } in &self.drops {
            power.push(json!({ "drop": drop, "detected": tally.detection_rate(), "verdicts": tally }));
        }
        json!({
            "schema": "runner.eval.aa/1",
            "base": self.base,
            "margin": self.rule.margin,
            "min_cases": self.rule.min_cases,
            "n": self.cases,
            "false_alarm_rate": self.no_change.detection_rate(),
            "confidence_interval": self.no_change.detection_interval(),
            "verdicts": self.no_change,
            "power": power,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let interval = self.no_change.detection_interval();
        let mut lines = vec![
            KeyValueLine::new()
                .with("base", &self.base)
                .with("n", self.cases)
                .with("rounds", ROUNDS)
                .with("false_alarm_rate", format!("{:.4}", self.no_change.detection_rate()))
                .with("ci_low", format!("{:.4}", interval.low))
                .with("ci_high", format!("{:.4}", interval.high))
                .with("no_change_passes", format!("{:.4}", self.no_change.pass_rate())),
        ];
        for SimulatedDrop { drop, tally } in &self.drops {
            let detected = format!("{:.4}", tally.detection_rate());
            lines.push(KeyValueLine::new().with("drop", drop).with("detected", detected));
        }
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        let interval = self.no_change.detection_interval();
        let rate = format!("{:.1} %", 100.0 * self.no_change.detection_rate());
        let mut text = format!(
            "{} cases, {ROUNDS} simulated comparisons of the suite with itself\n\
             false alarms: {} (95 % confidence interval {:.1} to {:.1} %)\n\
             no change passes: {:.0} %\n",
            self.cases,
            styler.paint(TextRole::Strong, &rate),
            100.0 * interval.low,
            100.0 * interval.high,
            100.0 * self.no_change.pass_rate()
        );
        for SimulatedDrop { drop, tally } in &self.drops {
            text.push_str(&format!(
                "a drop of {:.0} percentage points is noticed: {:.0} %\n",
                100.0 * drop,
                100.0 * tally.detection_rate()
            ));
        }
        text
    }
}
