//! `runner conformance`

use std::fs;
use std::path::{Path, PathBuf};

use runner_core::config::{Executor, ExecutorKind};
use runner_core::conformance_cases::{
    LIVE_CASES, LiveCase, SCRIPTED_CASES, SCRIPTED_GOAL, SCRIPTED_GUARD, ScriptedCase,
};
use runner_core::step::Outcome;
use runner_host::ops::conformance::{
    ConformanceResult, ConformanceTask, configured, player, program, run_task,
};
use runner_host::ops::doctor::CheckVerdict;
use runner_term::{CommandError, CommandExit, CommandOutput, Glyph, KeyValueLine, Styler, TextRole, Ui};
use serde_json::{Value, json};

use crate::args::{ConformanceAgent, ConformanceArgs};

const WHAT: &str = "could not check the agent";

/// Seconds beyond its limit after which a session must be over, the processes that it started included.
const GRACE_SECS: u64 = 10;

/// What was checked.
pub(crate) struct ConformanceOutput {
    agent: String,
    rows: Vec<ConformanceRow>,
    /// Where the repositories still are, if something is wrong.
    kept: Option<PathBuf>,
}

/// One line of the table.
#[derive(Clone)]
struct ConformanceRow {
    session: &'static str,
    what: String,
    expected: String,
    found: String,
    verdict: CheckVerdict,
    notes: Vec<String>,
}

/// Who is checked, and how.
enum ConformanceSubject {
    /// The scripted agent, started in one of two ways.
    Player(ExecutorKind),
    /// A real agent.
    Agent(Box<Executor>),
}

pub(crate) fn run(dir: &Path, args: &ConformanceArgs, out: &Ui) -> Result<ConformanceOutput, CommandError> {
    let subject = choose(args.agent, configured(dir));
    let agent = match &subject {
        ConformanceSubject::Player(kind) => kind.as_str().to_owned(),
        ConformanceSubject::Agent(executor) => executor.label(),
    };
    if let (ConformanceSubject::Agent(_), false) = (&subject, args.yes) {
        return Err(CommandError::new("costs", CommandExit::REFUSED, format!("{WHAT} `{agent}`"))
            .cause(format!(
                "its {} sessions use your login and cost some thousand tokens each",
                LIVE_CASES.len()
            ))
            .hint("let it work: the same with --yes")
            .hint("or check the runner itself, free of charge: runner conformance --agent script"));
    }
    let place = std::env::temp_dir().join(format!("runner-conformance-{}", std::process::id()));
    fs::create_dir(&place).map_err(|error| {
        CommandError::new("conformance", CommandExit::FAILURE, WHAT)
            .cause(format!("`{}`: {error}", place.display()))
    })?;
    out.print_unless_json(&ConformanceHeader(&agent));
    let rows = match &subject {
        ConformanceSubject::Player(kind) => play(&place, *kind, out)?,
        ConformanceSubject::Agent(executor) => ask(&place, executor, args.limit, out)?,
    };
    let is_good = rows.iter().all(|row| row.verdict != CheckVerdict::Bad);
    if is_good {
        let _ = fs::remove_dir_all(&place);
    }
    Ok(ConformanceOutput { agent, rows, kept: (!is_good).then_some(place) })
}

/// The agent to test: as configured here if that is the same agent, or else with default settings.
fn choose(wanted: Option<ConformanceAgent>, here: Option<Executor>) -> ConformanceSubject {
    match wanted {
        None => here.filter(|here| here.kind != ExecutorKind::Script).map_or_else(played, asked),
        Some(ConformanceAgent::Script) => ConformanceSubject::Player(ExecutorKind::Script),
        Some(ConformanceAgent::Command) => {
            let own = here.filter(|here| here.kind == ExecutorKind::Command && here.preset.is_none());
            own.map_or(ConformanceSubject::Player(ExecutorKind::Command), asked)
        }
        Some(ConformanceAgent::Known(agent)) => {
            let configured = here.filter(|here| here.agent() == Some(agent));
            asked(configured.unwrap_or_else(|| Executor::for_agent(agent)))
        }
    }
}

fn asked(executor: Executor) -> ConformanceSubject {
    ConformanceSubject::Agent(Box::new(executor))
}

fn played() -> ConformanceSubject {
    ConformanceSubject::Player(ExecutorKind::Script)
}

/// Plays every session.
fn play(place: &Path, kind: ExecutorKind, out: &Ui) -> Result<Vec<ConformanceRow>, CommandError> {
    let told = |error| CommandError::from_host(WHAT, error);
    let mut rows = Vec::new();
    for session in SCRIPTED_CASES {
        let scenario = place.join(format!("{}.toml", session.name));
        fs::write(&scenario, session.scenario).map_err(|error| {
            CommandError::new("conformance", CommandExit::FAILURE, WHAT)
                .cause(format!("`{}`: {error}", scenario.display()))
        })?;
        let executor = match kind {
            ExecutorKind::Command => {
                format!("kind = \"command\"\ncommand = {}\n", json!(player(&scenario).map_err(told)?))
            }
            ExecutorKind::Script | ExecutorKind::Codex | ExecutorKind::Claude => {
                format!("kind = \"script\"\nscenario = {}\n", json!(scenario.display().to_string()))
            }
        };
        let exercise = ConformanceTask {
            goal: SCRIPTED_GOAL,
            guard: SCRIPTED_GUARD,
            keys: session.keys.to_owned(),
            executor,
            iterations: session.expected.len(),
        };
        let found = run_task(&place.join(session.name), &exercise).map_err(told)?;
        let row = played_row(&session, &found);
        out.print_unless_json(&row);
        rows.push(row);
        if found.outcomes.contains(&Outcome::Interrupted) {
            break;
        }
    }
    Ok(rows)
}

fn played_row(session: &ScriptedCase, found: &ConformanceResult) -> ConformanceRow {
    let mut row = ConformanceRow {
        session: session.name,
        what: session.what.to_owned(),
        expected: words(session.expected),
        found: words(&found.outcomes),
        verdict: CheckVerdict::Good,
        notes: faults(found),
    };
    if row.expected != row.found || !row.notes.is_empty() {
        row.verdict = CheckVerdict::Bad;
        row.notes.extend(found.notes.iter().cloned());
    }
    row
}

/// What must never be, whatever the agent does.
fn faults(found: &ConformanceResult) -> Vec<String> {
    let alive =
        (found.processes_alive > 0).then(|| format!("{} processes outlived it", found.processes_alive));
    found.audit.iter().map(|fault| format!("the proof fails: {fault}")).chain(alive).collect()
}

fn words(outcomes: &[Outcome]) -> String {
    outcomes.iter().map(|outcome| outcome.as_str()).collect::<Vec<_>>().join(" ")
}

/// Asks a real agent for every task, and looks at what it left.
fn ask(
    place: &Path,
    executor: &Executor,
    limit_secs: u32,
    out: &Ui,
) -> Result<Vec<ConformanceRow>, CommandError> {
    let mut rows = Vec::new();
    let mut tell = |row: ConformanceRow| {
        out.print_unless_json(&row);
        let is_bad = row.verdict == CheckVerdict::Bad;
        rows.push(row);
        is_bad
    };
    let point = program(place, executor);
    let is_missing = tell(ConformanceRow {
        session: "program",
        what: "is on this machine, at a version that was tried, with a login".to_owned(),
        expected: "found".to_owned(),
        found: point.found,
        verdict: point.verdict,
        notes: point.fix.into_iter().collect(),
    });
    if is_missing {
        return Ok(rows);
    }
    for task in LIVE_CASES {
        let never_ends = task.expected == Outcome::TimedOut;
        let keys =
            if never_ends { format!("iteration_timeout_secs = {limit_secs}\n") } else { String::new() };
        let exercise = ConformanceTask {
            goal: task.goal,
            guard: task.guard,
            keys,
            executor: executor.table(),
            iterations: 1,
        };
        let found = run_task(&place.join(task.name), &exercise)
            .map_err(|error| CommandError::from_host(WHAT, error))?;
        let is_over = found.outcomes.iter().any(|outcome| {
            matches!(outcome, Outcome::Interrupted | Outcome::NotLoggedIn | Outcome::AgentNotStarted)
        });
        for row in task_rows(&task, &found, limit_secs) {
            tell(row);
        }
        if is_over {
            break;
        }
    }
    Ok(rows)
}

fn task_rows(task: &LiveCase, found: &ConformanceResult, limit_secs: u32) -> Vec<ConformanceRow> {
    let mut row = ConformanceRow {
        session: task.name,
        what: task.what.to_owned(),
        expected: task.expected.as_str().to_owned(),
        found: words(&found.outcomes),
        verdict: CheckVerdict::Good,
        notes: faults(found),
    };
    if row.expected != row.found || !row.notes.is_empty() {
        row.verdict = CheckVerdict::Bad;
        row.notes.extend(found.notes.iter().cloned());
    }
    let mut rows = vec![row];
    if task.expected == Outcome::Passed {
        rows.push(usage_row(found));
    }
    if task.expected == Outcome::TimedOut {
        rows.push(time_row(found, limit_secs));
    }
    rows
}

/// Without tokens no budget holds, which is to know, and no fault.
fn usage_row(found: &ConformanceResult) -> ConformanceRow {
    let (read, written) = (found.usage.input_tokens, found.usage.output_tokens);
    let told = match (read, written) {
        (Some(read), Some(written)) => Some(format!("{read} tokens read, {written} written")),
        _ => None,
    };
    ConformanceRow {
        session: "usage",
        what: "reports what it used".to_owned(),
        expected: "reported".to_owned(),
        verdict: if told.is_some() { CheckVerdict::Good } else { CheckVerdict::Doubtful },
        notes: if told.is_some() {
            Vec::new()
        } else {
            vec!["budgets of tokens or money cannot hold".to_owned()]
        },
        found: told.unwrap_or_else(|| "nothing".to_owned()),
    }
}

/// The end must be near the limit, with everything that the session had started.
fn time_row(found: &ConformanceResult, limit_secs: u32) -> ConformanceRow {
    let at_most = u64::from(limit_secs) + GRACE_SECS;
    let is_late = found.took.as_secs() > at_most;
    let left = match found.processes_left {
        0 => String::new(),
        left => format!(", {left} processes of it ended by the runner"),
    };
    ConformanceRow {
        session: "end",
        what: "is over in time, and so is everything it started".to_owned(),
        expected: format!("within {at_most} s"),
        found: format!("{:.1} s{left}", found.took.as_secs_f64()),
        verdict: if is_late { CheckVerdict::Bad } else { CheckVerdict::Good },
        notes: Vec::new(),
    }
}

fn verdict_word(verdict: CheckVerdict) -> &'static str {
    match verdict {
        CheckVerdict::Good => "good",
        CheckVerdict::Doubtful => "doubtful",
        CheckVerdict::Bad => "bad",
    }
}

/// The head of the table.
struct ConformanceHeader<'a>(&'a str);

impl CommandOutput for ConformanceHeader<'_> {
    fn json(&self) -> Value {
        Value::Null
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        Vec::new()
    }

    fn human(&self, pen: &Styler) -> String {
        let head = format!("  {:13} {:30} {:30}", "session", "expected", "found");
        format!("{}\n{}\n", pen.paint(TextRole::Strong, self.0), pen.paint(TextRole::Faint, head.trim_end()))
    }
}

impl CommandOutput for ConformanceRow {
    fn json(&self) -> Value {
        json!({
            "session": self.session, "what": self.what, "expected": self.expected, "found": self.found,
            "verdict": verdict_word(self.verdict), "notes": self.notes,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let line = KeyValueLine::new().with("session", self.session).with("expected", &self.expected);
        let line = line.with("found", &self.found).with("verdict", verdict_word(self.verdict));
        vec![self.notes.iter().fold(line, |line, note| line.with("note", note))]
    }

    fn human(&self, pen: &Styler) -> String {
        let (glyph, ink) = match self.verdict {
            CheckVerdict::Good => (Glyph::Passed, TextRole::Good),
            CheckVerdict::Doubtful => (Glyph::Open, TextRole::Warn),
            CheckVerdict::Bad => (Glyph::Failed, TextRole::Bad),
        };
        let mark = pen.paint(ink, pen.glyph(glyph));
        let mut text = format!("{mark} {:13} {:30} {}\n", self.session, self.expected, self.found);
        text.push_str(&format!("  {:13} {}\n", "", pen.paint(TextRole::Faint, &self.what)));
        for note in &self.notes {
            text.push_str(&format!("  {:13} {} {note}\n", "", pen.glyph(Glyph::Arrow)));
        }
        text
    }
}

impl ConformanceOutput {
    fn bad(&self) -> usize {
        self.rows.iter().filter(|row| row.verdict == CheckVerdict::Bad).count()
    }
}

impl CommandOutput for ConformanceOutput {
    fn json(&self) -> Value {
        let rows: Vec<Value> = self.rows.iter().map(CommandOutput::json).collect();
        let kept = self.kept.as_ref().map(|path| path.display().to_string());
        json!({
            "schema": "runner.conformance/1", "agent": self.agent, "rows": rows, "bad": self.bad(), "kept": kept,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let line = KeyValueLine::new()
            .with("agent", &self.agent)
            .with("rows", self.rows.len())
            .with("bad", self.bad());
        vec![match &self.kept {
            Some(place) => line.with("kept", place.display()),
            None => line,
        }]
    }

    fn human(&self, pen: &Styler) -> String {
        let verdict = match self.bad() {
            0 => pen.paint(TextRole::Good, "everything is as it should be"),
            1 => pen.paint(TextRole::Bad, "1 thing is not as it should be"),
            n => pen.paint(TextRole::Bad, &format!("{n} things are not as they should be")),
        };
        let kept =
            self.kept.as_ref().map(|place| format!("; look at {}", place.display())).unwrap_or_default();
        format!("\n{verdict}{kept}\n")
    }

    fn exit(&self) -> CommandExit {
        if self.bad() == 0 { CommandExit::SUCCESS } else { CommandExit::FAILURE }
    }
}
