//! `runner plan lint`

use std::path::Path;

use runner_core::runs::estimate::{PlanEstimate, SAMPLES_MIN};
use runner_core::runs::plan_lint::{PlanProblem, UntriedCheck};
use runner_core::step::Event;
use runner_host::ops::plan_lint::{PlanLint, StubPolicy, plan_lint};
use runner_term::format::{counted, dollars, duration};
use runner_term::{CommandError, CommandExit, CommandOutput, Glyph, KeyValueLine, Styler, TextRole, Ui};
use serde_json::{Value, json};

use crate::args::PlanLintArgs;
use crate::render::clean;

pub(crate) struct PlanLintOutput(PlanLint);

pub(crate) fn run(dir: &Path, args: &PlanLintArgs, ui: &Ui) -> Result<PlanLintOutput, CommandError> {
    let stubs = if args.mutants { StubPolicy::Try } else { StubPolicy::Skip };
    let mut status_line = None;
    let mut show_check = |event: &Event| {
        if let Event::CheckStarted { check, .. } = event {
            // The old line is erased before the new one is written.
            drop(status_line.take());
            status_line = Some(ui.status_line(&format!("running the check {check}")));
        }
    };
    let lint = plan_lint(dir, stubs, &mut show_check);
    drop(status_line);
    lint.map(PlanLintOutput).map_err(|error| CommandError::from_host("could not check the plan", error))
}

fn name(problem: &PlanProblem) -> String {
    match &problem.check {
        Some(check) => format!("{}: check `{check}`", problem.task),
        None => problem.task.clone(),
    }
}

fn estimate_text(estimate: &PlanEstimate) -> String {
    let time = format!("P50 {}, P90 {}", duration(estimate.secs.p50), duration(estimate.secs.p90));
    let cost = estimate.microdollars.map_or_else(
        || "unknown".to_owned(),
        |cost| format!("P50 {}, P90 {}", dollars(cost.p50), dollars(cost.p90)),
    );
    let samples = counted(estimate.samples, "passed task", "passed tasks");
    format!("cost {cost}; time {time}; from {samples} in this repository")
}

impl CommandOutput for PlanLintOutput {
    fn json(&self) -> Value {
        let lint = &self.0;
        json!({
            "schema": "runner.plan_lint/1",
            "problems": lint.problems,
            "untried": lint.untried,
            "prose": lint.prose,
            "coverage": lint.coverage,
            "estimate": lint.estimate,
            "tasks": lint.tasks,
            "checks": lint.checks,
            "stop": lint.stop,
            "exit": self.exit().0,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let lint = &self.0;
        let mut lines = Vec::new();
        for problem in &lint.problems {
            let mut line =
                KeyValueLine::new().with("problem", problem.kind.as_str()).with("task", &problem.task);
            if let Some(check) = &problem.check {
                line = line.with("check", check);
            }
            lines.push(line.with("text", clean(&problem.text)));
        }
        for UntriedCheck { task, check } in &lint.untried {
            lines.push(KeyValueLine::new().with("untried", check).with("task", task));
        }
        for point in &lint.prose {
            let line = KeyValueLine::new().with("prose", clean(&point.text)).with("task", &point.task);
            lines.push(line.with("point", point.point));
        }
        let mut end = KeyValueLine::new()
            .with("tasks", lint.tasks)
            .with("checks", lint.checks)
            .with("problems", lint.problems.len())
            .with("acceptance", lint.coverage);
        if let Some(estimate) = &lint.estimate {
            end = end.with("estimate", estimate_text(estimate));
        }
        lines.push(end.with("exit", self.exit().0));
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        let lint = &self.0;
        let mut text = String::new();
        let cross = styler.paint(TextRole::Bad, styler.glyph(Glyph::Failed));
        for problem in &lint.problems {
            let line = format!("{} {}", name(problem), clean(&problem.text));
            text.push_str(&format!("{cross} {}\n", styler.wrap(&line, 2)));
        }
        for UntriedCheck { task, check } in &lint.untried {
            let line = styler.wrap(&format!("not tried on stubs: {task}: check `{check}`"), 4);
            text.push_str(&format!("  {}\n", styler.paint(TextRole::Warn, &line)));
        }
        for point in &lint.prose {
            let line = format!("in prose: {} ({}): {}", point.task, point.point, clean(&point.text));
            text.push_str(&format!("  {}\n", styler.paint(TextRole::Faint, &styler.wrap(&line, 4))));
        }
        if !text.is_empty() {
            text.push('\n');
        }
        let tasks = counted(lint.tasks, "open task", "open tasks");
        let checks = counted(lint.checks, "check", "checks");
        let counts = format!("{tasks}, {checks}; acceptance: {}", lint.coverage);
        text.push_str(&format!("{}\n", styler.wrap(&counts, 0)));
        let expected = lint.estimate.as_ref().map_or_else(
            || format!("unknown (fewer than {SAMPLES_MIN} tasks passed in this repository)"),
            estimate_text,
        );
        text.push_str(&format!("expected: {}\n", styler.wrap(&expected, 10)));
        if lint.problems.is_empty() && lint.stop.is_none() {
            let tick = styler.paint(TextRole::Good, styler.glyph(Glyph::Passed));
            text.push_str(&format!("{tick} the plan is sound\n\nNext: runner plan approve\n"));
        } else {
            text.push_str("\nNext: runner plan edit\n");
            if lint.problems.iter().any(|problem| problem.check.is_some()) {
                text.push_str("      runner node check remove NODE NAME\n");
            }
            text.push_str("      runner plan lint\n");
        }
        text
    }

    fn is_long(&self) -> bool {
        true
    }

    fn exit(&self) -> CommandExit {
        match (&self.0.stop, self.0.problems.is_empty()) {
            (Some(stop), _) => CommandExit(stop.exit_code()),
            (None, true) => CommandExit::SUCCESS,
            (None, false) => CommandExit(2),
        }
    }
}
