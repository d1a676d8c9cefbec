//! `runner conformance`

use std::fs;
use std::path::{Path, PathBuf};

use runner_core::config::{Executor, ExecutorKind};
use runner_core::conformance_cases::{LIVE_CASES, LiveCase, SCRIPTED_CASES, SCRIPTED_GOAL};
use runner_core::step::Outcome;
use runner_host::ops::conformance::{
    ConformanceResult, ConformanceTask, configured, player, program, run_task,
};
use runner_host::ops::doctor::CheckVerdict;
use runner_term::format::counted;
use runner_term::{CommandError, CommandExit, CommandOutput, Glyph, KeyValueLine, Styler, TextRole, Ui};
use serde_json::{Value, json};

use crate::args::{ConformanceAgent, ConformanceArgs};
use crate::render::verdict::{verdict_glyph, verdict_word};

const WHAT: &str = "could not test the agent";

/// The width of the column of names.
const NAME_CELLS: usize = 17;

const NO_ROOM: &str =
    "the guard ran in place: only a room catches this; install bubblewrap ('runner doctor')";

/// How long after its time limit a session and all its processes may still run.
const GRACE_SECS: u64 = 10;

pub(crate) struct ConformanceOutput {
    agent: String,
    rows: Vec<ConformanceRow>,
    /// The folder with the repositories, which is kept if there is a problem.
    kept: Option<PathBuf>,
}

/// One check of the table.
#[derive(Clone)]
struct ConformanceRow {
    session: &'static str,
    what: String,
    expected: String,
    actual: String,
    verdict: CheckVerdict,
    notes: Vec<String>,
}

enum ConformanceSubject {
    /// The scripted agent, run inside the runner (`script`) or as a program (`command`).
    Scripted(ExecutorKind),
    Agent(Box<Executor>),
}

pub(crate) fn run(dir: &Path, args: &ConformanceArgs, ui: &Ui) -> Result<ConformanceOutput, CommandError> {
    let subject = choose(args.agent, configured(dir));
    let agent = match &subject {
        ConformanceSubject::Scripted(kind) => kind.as_str().to_owned(),
        ConformanceSubject::Agent(executor) => executor.label(),
    };
    if let (ConformanceSubject::Agent(_), false) = (&subject, args.yes) {
        return Err(CommandError::refused("costs", format!("{WHAT} `{agent}`"))
            .cause(format!(
                "its {} sessions use your login and cost a few thousand tokens each",
                LIVE_CASES.len()
            ))
            .hint("confirm with --yes")
            .hint("or test the runner itself, free of charge: runner conformance --agent script"));
    }
    let folder = std::env::temp_dir().join(format!("runner-conformance-{}", std::process::id()));
    fs::create_dir(&folder).map_err(|error| CommandError::io(WHAT, &folder, &error))?;
    ui.print_unless_json(&ConformanceHeader(&agent));
    let rows = match &subject {
        ConformanceSubject::Scripted(kind) => run_scripted(&folder, *kind, ui)?,
        ConformanceSubject::Agent(executor) => run_agent(&folder, executor, args.timeout_secs, ui)?,
    };
    let is_good = rows.iter().all(|row| row.verdict != CheckVerdict::Problem);
    if is_good {
        let _ = fs::remove_dir_all(&folder);
    }
    Ok(ConformanceOutput { agent, rows, kept: (!is_good).then_some(folder) })
}

/// Chooses the configured agent if it is the requested one, or else the requested one with its defaults.
fn choose(requested: Option<ConformanceAgent>, configured: Option<Executor>) -> ConformanceSubject {
    match requested {
        None => {
            let agent = configured.filter(|configured| configured.kind != ExecutorKind::Script);
            agent.map_or(ConformanceSubject::Scripted(ExecutorKind::Script), agent_subject)
        }
        Some(ConformanceAgent::Script) => ConformanceSubject::Scripted(ExecutorKind::Script),
        Some(ConformanceAgent::Command) => {
            let program = configured
                .filter(|configured| configured.kind == ExecutorKind::Command && configured.preset.is_none());
            program.map_or(ConformanceSubject::Scripted(ExecutorKind::Command), agent_subject)
        }
        Some(ConformanceAgent::Known(agent)) => {
            let configured = configured.filter(|configured| configured.agent() == Some(agent));
            agent_subject(configured.unwrap_or_else(|| Executor::for_agent(agent)))
        }
    }
}

fn agent_subject(executor: Executor) -> ConformanceSubject {
    ConformanceSubject::Agent(Box::new(executor))
}

/// Runs every scripted session.
fn run_scripted(folder: &Path, kind: ExecutorKind, ui: &Ui) -> Result<Vec<ConformanceRow>, CommandError> {
    let failed = |error| CommandError::from_host(WHAT, error);
    let mut rows = Vec::new();
    for session in SCRIPTED_CASES {
        let scenario = folder.join(format!("{}.toml", session.name));
        fs::write(&scenario, session.scenario).map_err(|error| CommandError::io(WHAT, &scenario, &error))?;
        let executor = match kind {
            ExecutorKind::Command => {
                format!("kind = \"command\"\ncommand = {}\n", json!(player(&scenario).map_err(failed)?))
            }
            ExecutorKind::Script | ExecutorKind::Codex | ExecutorKind::Claude | ExecutorKind::Acp => {
                format!("kind = \"script\"\nscenario = {}\n", json!(scenario.display().to_string()))
            }
        };
        let task = ConformanceTask {
            goal: SCRIPTED_GOAL,
            guard: session.guard,
            files: session.files,
            checks: session.checks,
            protected: session.protected,
            keys: session.keys.to_owned(),
            executor,
            iterations: session.expected.len(),
        };
        let result = run_task(&folder.join(session.name), &task).map_err(failed)?;
        let mut row = session_row(session.name, session.what, outcome_words(session.expected), &result);
        if session.needs_room && result.was_in_place && row.verdict == CheckVerdict::Problem {
            row.verdict = CheckVerdict::Warning;
            row.notes = vec![NO_ROOM.to_owned()];
        }
        ui.print_unless_json(&row);
        rows.push(row);
        if result.outcomes.contains(&Outcome::Interrupted) {
            break;
        }
    }
    Ok(rows)
}

/// The check of one session: its outcomes, and what must hold whatever the agent does.
fn session_row(
    session: &'static str,
    what: &str,
    expected: String,
    result: &ConformanceResult,
) -> ConformanceRow {
    let mut row = ConformanceRow {
        session,
        what: what.to_owned(),
        expected,
        actual: outcome_words(&result.outcomes),
        verdict: CheckVerdict::Ok,
        notes: result.audit.iter().map(|finding| format!("verify failed: {finding}")).collect(),
    };
    if result.processes_alive > 0 {
        let count = counted(result.processes_alive, "process is", "processes are");
        row.notes.push(format!("{count} still running after the session"));
    }
    if row.expected != row.actual || !row.notes.is_empty() {
        row.verdict = CheckVerdict::Problem;
        row.notes.extend(result.notes.iter().cloned());
    }
    row
}

fn outcome_words(outcomes: &[Outcome]) -> String {
    outcomes.iter().map(|outcome| outcome.as_str()).collect::<Vec<_>>().join(" ")
}

/// Gives a real agent every task and checks the results.
fn run_agent(
    folder: &Path,
    executor: &Executor,
    timeout_secs: u32,
    ui: &Ui,
) -> Result<Vec<ConformanceRow>, CommandError> {
    let mut rows = Vec::new();
    let check = program(folder, executor);
    let is_missing = check.verdict == CheckVerdict::Problem;
    let row = ConformanceRow {
        session: "program",
        what: "is installed in a known version and logged in".to_owned(),
        expected: "found".to_owned(),
        actual: check.found,
        verdict: check.verdict,
        notes: check.fix.into_iter().collect(),
    };
    ui.print_unless_json(&row);
    rows.push(row);
    if is_missing {
        return Ok(rows);
    }
    for case in LIVE_CASES {
        let hangs = case.expected == Outcome::TimedOut;
        let keys = if hangs { format!("iteration_timeout_secs = {timeout_secs}\n") } else { String::new() };
        let task = ConformanceTask {
            goal: case.goal,
            guard: case.guard,
            files: &[],
            checks: &[],
            protected: &[],
            keys,
            executor: executor.table(),
            iterations: 1,
        };
        let result =
            run_task(&folder.join(case.name), &task).map_err(|error| CommandError::from_host(WHAT, error))?;
        for row in task_rows(&case, &result, timeout_secs) {
            ui.print_unless_json(&row);
            rows.push(row);
        }
        let cannot_continue = result.outcomes.iter().any(|outcome| {
            matches!(outcome, Outcome::Interrupted | Outcome::NotLoggedIn | Outcome::AgentNotStarted)
        });
        if cannot_continue {
            break;
        }
    }
    Ok(rows)
}

fn task_rows(case: &LiveCase, result: &ConformanceResult, timeout_secs: u32) -> Vec<ConformanceRow> {
    let mut rows = vec![session_row(case.name, case.what, case.expected.as_str().to_owned(), result)];
    if case.expected == Outcome::Passed {
        rows.push(usage_row(result));
    }
    if case.expected == Outcome::TimedOut {
        rows.push(time_row(result, timeout_secs));
    }
    rows
}

/// An agent that reports no usage is worth a warning, because budgets cannot be enforced, but it is not a problem.
fn usage_row(result: &ConformanceResult) -> ConformanceRow {
    let mut row = ConformanceRow {
        session: "usage",
        what: "reports its usage".to_owned(),
        expected: "reported".to_owned(),
        actual: "not reported".to_owned(),
        verdict: CheckVerdict::Warning,
        notes: vec!["budgets of tokens or money cannot be enforced".to_owned()],
    };
    if let (Some(input), Some(output)) = (result.usage.input_tokens, result.usage.output_tokens) {
        row.actual = format!("{input} input tokens, {output} output tokens");
        row.verdict = CheckVerdict::Ok;
        row.notes = Vec::new();
    }
    row
}

/// The session and all its processes must end soon after the time limit.
fn time_row(result: &ConformanceResult, timeout_secs: u32) -> ConformanceRow {
    let max_secs = u64::from(timeout_secs) + GRACE_SECS;
    let is_late = result.took.as_secs() > max_secs;
    let killed = match result.processes_left {
        0 => String::new(),
        count => format!(", the runner killed {}", counted(count, "process", "processes")),
    };
    ConformanceRow {
        session: "end",
        what: "stops in time, with all its processes".to_owned(),
        expected: format!("within {max_secs} s"),
        actual: format!("{:.1} s{killed}", result.took.as_secs_f64()),
        verdict: if is_late { CheckVerdict::Problem } else { CheckVerdict::Ok },
        notes: Vec::new(),
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

    fn human(&self, styler: &Styler) -> String {
        let head = format!("  {:NAME_CELLS$} outcomes", "session");
        format!(
            "{}\n{}\n",
            styler.paint(TextRole::Strong, self.0),
            styler.paint(TextRole::Faint, head.trim_end())
        )
    }
}

impl CommandOutput for ConformanceRow {
    fn json(&self) -> Value {
        json!({
            "session": self.session, "what": self.what, "expected": self.expected, "actual": self.actual,
            "verdict": verdict_word(self.verdict), "notes": self.notes,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let line = KeyValueLine::new().with("session", self.session).with("expected", &self.expected);
        let line = line.with("actual", &self.actual).with("verdict", verdict_word(self.verdict));
        vec![self.notes.iter().fold(line, |line, note| line.with("note", note))]
    }

    fn human(&self, styler: &Styler) -> String {
        let glyph = verdict_glyph(self.verdict, styler);
        let mut text = format!("{glyph} {:NAME_CELLS$} {}\n", self.session, self.actual);
        let indent = NAME_CELLS + 3;
        let mut add = |role: TextRole, part: &str| {
            for line in styler.wrap(part, indent).lines() {
                text.push_str(&format!("{:indent$}{}\n", "", styler.paint(role, line.trim_start())));
            }
        };
        add(TextRole::Faint, &self.what);
        if self.actual != self.expected {
            add(TextRole::Warn, &format!("{} expected: {}", styler.glyph(Glyph::Arrow), self.expected));
        }
        for note in &self.notes {
            add(TextRole::Warn, &format!("{} {note}", styler.glyph(Glyph::Arrow)));
        }
        text
    }
}

impl ConformanceOutput {
    fn problems(&self) -> usize {
        self.rows.iter().filter(|row| row.verdict == CheckVerdict::Problem).count()
    }
}

impl CommandOutput for ConformanceOutput {
    fn json(&self) -> Value {
        let checks: Vec<Value> = self.rows.iter().map(CommandOutput::json).collect();
        let kept = self.kept.as_ref().map(|path| path.display().to_string());
        json!({
            "schema": "runner.conformance/1", "agent": self.agent, "checks": checks, "problems": self.problems(), "kept": kept,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let line = KeyValueLine::new()
            .with("agent", &self.agent)
            .with("checks", self.rows.len())
            .with("problems", self.problems());
        vec![match &self.kept {
            Some(folder) => line.with("kept", folder.display()),
            None => line,
        }]
    }

    fn human(&self, styler: &Styler) -> String {
        let verdict = match self.problems() {
            0 => styler.paint(TextRole::Good, "Conforms"),
            count => styler.paint(TextRole::Bad, &counted(count, "problem", "problems")),
        };
        let kept = self.kept.as_ref().map(|folder| format!("; the repositories are in {}", folder.display()));
        format!("\n{verdict}{}\n", kept.unwrap_or_default())
    }

    fn exit(&self) -> CommandExit {
        if self.problems() == 0 { CommandExit::SUCCESS } else { CommandExit::FAILURE }
    }
}
