//! `runner run`: from a goal to a working loop.

use std::path::Path;

use runner_core::detect::{AgentRequest, ConfigRequest, command_line, guard_words};
use runner_host::ops::doctor::{CheckVerdict, DoctorCheck, sandbox_checks};
use runner_host::ops::new_run::{NewRun, NewRunRequest, RunPlace, plan_run, start_run, undo_start};
use runner_host::ops::preflight::refuse_unmeasurable;
use runner_host::repo::own_output::ignore_own_output;
use runner_term::{CommandError, CommandOutput, KeyValueLine, RED_BASELINE, Styler, TextRole, Ui};
use serde_json::{Value, json};

use super::run_loop;
use crate::args::{LoopOptions, RunGoalArgs};
use crate::render::clean;
use crate::render::setup::{SetupRow, draw_notes, draw_rows, setup_rows};

const WHAT: &str = "could not start the run";

/// What to do about a guard that fails before the start of a run, which is then as if it had not been started.
const RED_HINTS: [&str; 2] =
    ["fix it first; no task can pass until it succeeds", "or let the agent fix it: add --allow-red"];

pub(crate) fn run(dir: &Path, args: &RunGoalArgs, ui: &Ui) -> Result<Box<dyn CommandOutput>, CommandError> {
    if args.goal.is_empty() {
        return run_loop::run(dir, &args.options, ui);
    }
    refuse_file_name(dir, &args.goal)?;
    let failed = |error| CommandError::from_host(WHAT, error);
    ignore_own_output(dir).map_err(failed)?;
    let planned = plan_run(dir, &request(args)).map_err(failed)?;
    refuse_unmeasurable(planned.config(), &args.options.budget()).map_err(failed)?;
    let sandbox = sandbox_checks(dir, planned.config()).map_err(failed)?;
    ui.print_now(&PlannedRun { run: &planned, sandbox });
    if !args.yes {
        confirm(ui)?;
    }
    let started = start_run(dir, &planned).map_err(failed)?;
    let options = LoopOptions { no_questions: args.yes, ..args.options.clone() };
    match run_loop::run(&planned.root, &options, ui) {
        Err(error) if error.code() == RED_BASELINE => {
            let is_undone = undo_start(dir, &planned, &started.commit).map_err(failed)?;
            Err(if is_undone { error.with_hints(RED_HINTS) } else { error })
        }
        ended => ended,
    }
}

/// Refuses a goal that is only the name of a file: the user more likely means what is in it.
fn refuse_file_name(dir: &Path, goal: &[String]) -> Result<(), CommandError> {
    let [word] = goal else { return Ok(()) };
    if word.contains(char::is_whitespace) || !dir.join(word).is_file() {
        return Ok(());
    }
    let file = command_line(std::slice::from_ref(word));
    Err(CommandError::refused("goal_is_file", WHAT)
        .cause(format!("the goal is only the name of a file: `{}`", clean(word)))
        .hint(format!("to import it as a plan: runner plan import {file}"))
        .hint(format!("to use its text as the goal: runner run \"$(cat {file})\"")))
}

fn request(args: &RunGoalArgs) -> NewRunRequest {
    NewRunRequest {
        goal: args.goal.join(" "),
        id: args.id.clone(),
        config: ConfigRequest {
            agent: args.agent.as_deref().map(AgentRequest::parse),
            model: args.model.clone(),
            guard: args.guard.as_deref().map(guard_words).filter(|words| !words.is_empty()),
            is_for_night: true,
        },
        place: args.worktree.clone().map_or(RunPlace::Here, RunPlace::Worktree),
    }
}

fn confirm(ui: &Ui) -> Result<(), CommandError> {
    match ui.confirm("Start?") {
        Some(true) => Ok(()),
        Some(false) => Err(CommandError::refused("not_confirmed", "not started")
            .hint("change the setup with --agent, --model or --guard")),
        None => Err(CommandError::refused("not_confirmed", "there is no terminal to ask on")
            .hint("to start with this setup, add --yes")),
    }
}

/// The setup of a run that is about to start.
struct PlannedRun<'a> {
    run: &'a NewRun,
    sandbox: Vec<DoctorCheck>,
}

impl PlannedRun<'_> {
    fn rows(&self) -> Vec<SetupRow> {
        let run = self.run;
        let title = run.goal.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let mut rows = vec![
            SetupRow::new("goal", clean(title.trim_start_matches('#').trim())),
            SetupRow::new("branch", format!("{} from {}", run.id.branch(), clean(&run.base))),
        ];
        rows.push(SetupRow::new("folder", clean(&run.root.display().to_string())));
        rows.extend(setup_rows(&run.setup));
        rows.extend(self.sandbox.iter().map(|check| SetupRow::new(check.name, clean(&check.found))));
        rows
    }
}

impl CommandOutput for PlannedRun<'_> {
    fn json(&self) -> Value {
        let mut setup = serde_json::Map::new();
        for row in self.rows() {
            setup.insert(row.name.to_owned(), json!(row.value));
        }
        json!({
            "event": "setup",
            "run_id": self.run.id,
            "root": self.run.root.display().to_string(),
            "setup": setup,
            "notes": self.run.setup.proposed.notes,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let line = KeyValueLine::new().with("event", "setup").with("run_id", &self.run.id);
        vec![self.rows().iter().fold(line, |line, row| line.with(row.name, &row.value))]
    }

    fn human(&self, styler: &Styler) -> String {
        let title = styler.paint(TextRole::Strong, &format!("New run {}", self.run.id));
        let mut text = format!("{title}\n\n{}", draw_rows(&self.rows(), styler));
        text.push_str(&draw_notes(&self.run.setup.proposed.notes, styler));
        if self.sandbox.iter().any(|check| check.verdict != CheckVerdict::Ok) {
            text.push_str(&draw_notes(&["for details: runner doctor".to_owned()], styler));
        }
        text + "\n"
    }
}
