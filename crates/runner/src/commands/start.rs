//! `runner start`

use std::path::Path;

use runner_cli::{Exit, Glyph, Ink, Line, Pen, Reply, Report};
use runner_core::id::RunId;
use runner_core::layout::Doc;
use runner_core::start::Wish;
use runner_host::start::{How, Started, start};
use serde_json::{Value, json};

use crate::cli::StartArgs;
use crate::view::recovered::{recovered_json, recovered_line, recovered_text};

pub(crate) struct Done {
    started: Started,
}

pub(crate) fn run(dir: &Path, args: &StartArgs) -> Result<Done, Report> {
    let goal = match &args.goal_file {
        Some(path) => Some(read_goal(path)?),
        None => args.goal.clone(),
    };
    let wish = Wish { goal, keep_plan: args.keep_plan, plan: None };
    let started = start(dir, &wish).map_err(|error| Report::of("could not start the run", &error))?;
    Ok(Done { started })
}

fn read_goal(path: &Path) -> Result<String, Report> {
    std::fs::read_to_string(path).map_err(|error| {
        Report::new("goal_file", Exit::REFUSED, format!("could not read the goal from `{}`", path.display()))
            .cause(error.to_string())
            .hint("name a text file in UTF-8")
    })
}

fn word(how: How) -> &'static str {
    match how {
        How::New => "started",
        How::Updated => "updated",
        How::Resumed => "resumed",
    }
}

impl Reply for Done {
    fn json(&self) -> Value {
        let recovered = self.started.recovered.as_ref().map(recovered_json);
        json!({
            "schema": "runner.start/1",
            "run_id": self.started.run,
            "branch": self.started.run.branch(),
            "commit": self.started.commit,
            "how": word(self.started.how),
            "goal_written": !self.started.goal_unwritten,
            "other_runs": self.started.other_runs,
            "recovered": recovered,
        })
    }

    fn plain(&self) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        if let Some(recovered) = &self.started.recovered {
            lines.push(recovered_line(recovered));
        }
        lines.push(Line::new().with("run_id", &self.started.run));
        lines.push(Line::new().with("branch", self.started.run.branch()));
        lines.push(Line::new().with("commit", &self.started.commit));
        lines.push(Line::new().with("how", word(self.started.how)));
        lines.push(Line::new().with("goal_written", !self.started.goal_unwritten));
        lines
    }

    fn drawn(&self, pen: &Pen) -> String {
        let run = pen.ink(Ink::Strong, self.started.run.as_str());
        let tick = pen.ink(Ink::Good, pen.glyph(Glyph::Passed));
        let mut text = String::new();
        if let Some(recovered) = &self.started.recovered {
            text.push_str(&format!("{tick} {}\n", recovered_text(recovered)));
        }
        text.push_str(&format!(
            "{tick} run {run} {} on branch {}\n",
            word(self.started.how),
            self.started.run.branch()
        ));
        if self.started.goal_unwritten {
            let warning = pen.ink(Ink::Warn, "the goal is not written yet");
            text.push_str(&format!(
                "\n{warning}: edit {}, then run 'runner start' again\n",
                Doc::Goal.path()
            ));
        } else {
            text.push_str("\nNext: runner loop\n");
        }
        if self.started.how == How::New && !self.started.other_runs.is_empty() {
            let others: Vec<String> = self.started.other_runs.iter().map(RunId::branch).collect();
            let (first, more) = (others.first().cloned().unwrap_or_default(), others.len() - 1);
            let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
            text.push_str(&format!("To go on with an earlier run instead: git switch {first}{more}\n"));
        }
        text
    }
}
