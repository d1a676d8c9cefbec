//! `runner status`

use std::path::Path;

use runner_core::layout::{Doc, RUNNER_DIR};
use runner_core::model::cost::{BudgetLimit, ReachedLimit, number, reached, unenforceable_limits};
use runner_core::model::run_state::{GuardResult, RunState};
use runner_core::model::tree::{SelectedLeaf, Selection, Tree, path_text, select};
use runner_core::step::{AgentChoice, Ordinal, Wait, next_agent, pending_wait};
use runner_host::git::Head;
use runner_host::repo::recovery::RecoveryNote;
use runner_host::view::inspect::{Inspection, inspect};
use runner_term::progress::bar;
use runner_term::{CommandError, CommandOutput, Glyph, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use crate::render::clean;
use crate::render::cost::{blind_text, of_limit, spent_text};
use crate::render::wait::{countdown, in_utc, on_the_wall, reason};

pub(crate) struct StatusOutput {
    found: Inspection,
}

pub(crate) fn run(dir: &Path) -> Result<StatusOutput, CommandError> {
    let found = inspect(dir).map_err(|error| CommandError::from_host("could not tell the status", error))?;
    Ok(StatusOutput { found })
}

/// Where the run stands, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RunStatus {
    Interrupted,
    Invalid,
    Unstarted,
    Elsewhere,
    Ready,
    Waiting,
    Paused,
    Spent,
    Stuck,
    Complete,
}

impl RunStatus {
    fn word(self) -> &'static str {
        match self {
            Self::Interrupted => "interrupted",
            Self::Invalid => "invalid",
            Self::Unstarted => "not started",
            Self::Elsewhere => "not here",
            Self::Ready => "ready",
            Self::Waiting => "waiting",
            Self::Paused => "paused",
            Self::Spent => "out of budget",
            Self::Stuck => "stuck",
            Self::Complete => "complete",
        }
    }

    fn look(self) -> (Glyph, TextRole) {
        match self {
            Self::Interrupted | Self::Elsewhere | Self::Waiting | Self::Paused => {
                (Glyph::Retried, TextRole::Warn)
            }
            Self::Invalid | Self::Stuck | Self::Spent => (Glyph::Failed, TextRole::Bad),
            Self::Unstarted => (Glyph::Open, TextRole::Faint),
            Self::Ready => (Glyph::Next, TextRole::Active),
            Self::Complete => (Glyph::Passed, TextRole::Good),
        }
    }
}

impl StatusOutput {
    fn tree(&self) -> Option<&Tree> {
        self.found.tree.valid()
    }

    /// What was last finished after a crash in this run.
    fn recovery(&self) -> Option<&RecoveryNote> {
        let run = self.found.run()?;
        self.found.recovery.as_ref().filter(|recovery| recovery.run == run.as_str())
    }

    fn choice(&self) -> Option<SelectedLeaf<'_>> {
        match self.tree().map(select) {
            Some(Selection::Leaf(choice) | Selection::Stuck(choice)) => Some(choice),
            Some(Selection::Complete) | None => None,
        }
    }

    fn stand(&self) -> RunStatus {
        let found = &self.found;
        let readable = found.tree.valid().is_some()
            && found.state.valid().is_some()
            && found.config.valid().is_some()
            && found.goal.valid().is_some()
            && found.refused.is_empty();
        match self.tree().map(select) {
            _ if found.interrupted => RunStatus::Interrupted,
            _ if !readable => RunStatus::Invalid,
            _ if found.run().is_none() && found.identity_faults().is_empty() => RunStatus::Unstarted,
            _ if found.run().is_none() => RunStatus::Elsewhere,
            Some(Selection::Complete) => RunStatus::Complete,
            Some(Selection::Stuck(_)) => RunStatus::Stuck,
            Some(Selection::Leaf(_)) if self.reached().is_some() => RunStatus::Spent,
            Some(Selection::Leaf(_)) if found.is_paused => RunStatus::Paused,
            Some(Selection::Leaf(_)) if self.waiting().is_some() => RunStatus::Waiting,
            Some(Selection::Leaf(_)) | None => RunStatus::Ready,
        }
    }

    /// The agent that the next session asks.
    fn agent(&self) -> Option<AgentChoice> {
        let (config, state) = (self.found.config.valid()?, self.found.state.valid()?);
        Some(next_agent(config, state, Some(self.choice()?.leaf)))
    }

    /// What the next session waits for: the wait, when it ends, and how much of it is left.
    fn waiting(&self) -> Option<(&Wait, u64, u64)> {
        let (ends_unix_ms, left_ms) = self.found.waiting?;
        let wait = pending_wait(self.found.state.valid()?, &self.agent()?.executor)?;
        Some((wait, ends_unix_ms, left_ms))
    }

    /// The limit of the budget that keeps the next session from being started.
    fn reached(&self) -> Option<ReachedLimit> {
        let (config, state) = (self.found.config.valid()?, self.found.state.valid()?);
        reached(&config.budget, &state.spent, state.spent_on(&self.choice()?.leaf.id))
    }

    /// What cannot be limited, because it is not known.
    fn blind(&self) -> Option<String> {
        let (config, state, agent) = (self.found.config.valid()?, self.found.state.valid()?, self.agent()?);
        let limits = unenforceable_limits(config, &state.spent, &agent.executor);
        (!limits.is_empty()).then(|| blind_text(&limits, &clean(&agent.executor.label())))
    }

    /// Who is asked, what is waited for, what it has cost.
    fn means(&self) -> Vec<(&'static str, String)> {
        let mut rows = Vec::new();
        if let Some(agent) = self.agent().filter(|agent| agent.rung.of > 1) {
            let Ordinal { nth, of } = agent.rung;
            rows.push(("agent", format!("{} (rung {nth} of {of})", clean(&agent.executor.label()))));
        }
        if let Some((wait, ends_unix_ms, left_ms)) = self.waiting() {
            let (until, left) = (on_the_wall(ends_unix_ms), countdown(left_ms));
            rows.push(("waits", format!("{left} more, until {until}: {}", clean(&reason(wait)))));
        }
        if let (Some(state), Some(config)) = (self.found.state.valid(), self.found.config.valid()) {
            rows.extend(spent_text(&state.spent, &config.budget).map(|text| ("spent", text)));
            let leaf = self.choice().and_then(|choice| state.spent_on(&choice.leaf.id));
            let limits = [BudgetLimit::LeafTokens, BudgetLimit::LeafUsd];
            for limit in limits {
                let spent = leaf
                    .map_or(0, |leaf| number(if limit.is_money() { leaf.microdollars } else { leaf.tokens }));
                let text =
                    |max| format!("{} of {} on this leaf", of_limit(limit, spent), of_limit(limit, max));
                rows.extend(limit.of(&config.budget).map(|max| ("spent", text(max))));
            }
        }
        rows.extend(self.blind().map(|text| ("warning", text)));
        rows.extend(self.red_before().map(|text| ("baseline", text)));
        rows
    }

    /// What the guard said before the first session, unless it was green.
    fn red_before(&self) -> Option<String> {
        let baseline = self.found.state.valid()?.baseline.as_ref()?;
        match baseline.guard {
            GuardResult::Pass => None,
            GuardResult::Fail => {
                Some(format!("the guard was red before any agent came (exit {})", clean(&baseline.exit)))
            }
            GuardResult::Skipped => Some(clean(baseline.output.as_deref().unwrap_or_default())),
        }
    }

    /// What a person would want to do now.
    fn next(&self) -> String {
        let goal_written = self.found.goal.valid().is_some_and(|goal| goal.is_written);
        match self.stand() {
            RunStatus::Invalid => "runner validate    to see every fault".to_owned(),
            RunStatus::Unstarted if !goal_written => {
                format!("write your goal into {}, then run 'runner start'", Doc::Goal.path())
            }
            RunStatus::Interrupted | RunStatus::Unstarted | RunStatus::Elsewhere => "runner start".to_owned(),
            RunStatus::Ready if !goal_written => {
                format!("write your goal into {}, then run 'runner start'", Doc::Goal.path())
            }
            RunStatus::Ready if self.found.runner_changed => {
                format!("runner start    to take in what changed under {RUNNER_DIR}/")
            }
            RunStatus::Ready if !self.found.dirty.0.is_empty() => {
                "commit or stash the changes below".to_owned()
            }
            RunStatus::Ready => "runner loop".to_owned(),
            RunStatus::Waiting => "runner loop    waits for the rest, then goes on".to_owned(),
            RunStatus::Spent => self.reached().map_or_else(String::new, |reached| {
                format!(
                    "raise {} under [budget] in {}, run 'runner start', then 'runner loop'",
                    reached.limit.as_str(),
                    Doc::Config.path()
                )
            }),
            RunStatus::Stuck => self.choice().map_or_else(String::new, |choice| {
                let node = &choice.leaf.id;
                format!(
                    "runner node allow {node}, or edit or split it (runner node --help); then 'runner loop'"
                )
            }),
            RunStatus::Paused => "runner resume    to go on".to_owned(),
            RunStatus::Complete => "look at the branch and merge it".to_owned(),
        }
    }

    /// The rows of the screen: a name and what it says.
    fn rows(&self, pen: &Styler) -> Vec<(&'static str, String)> {
        let found = &self.found;
        let mut rows = Vec::new();
        if pen.verbose {
            rows.push(("root", clean(&found.root.display().to_string())));
        }
        if let Some(goal) = found.goal.valid() {
            rows.push((
                "goal",
                if goal.is_written { clean(&goal.title) } else { "not written yet".to_owned() },
            ));
        }
        rows.push(("branch", head_text(&found.head)));
        if let Some(tree) = self.tree() {
            rows.push(("progress", bar(tree.root().leaves(), room(pen), pen)));
        }
        if let Some(choice) = self.choice() {
            let (attempts, max) = (choice.leaf.attempts, choice.leaf.max_attempts);
            rows.push(("leaf", path_text(&choice.path)));
            rows.push(("", clean(&choice.leaf.title)));
            rows.push(("attempts", format!("{attempts} of {max} spent")));
        }
        if let Some(last) = found.state.valid().and_then(last_text) {
            rows.push(("last", last));
        }
        if let (Some(state), Some(config)) = (found.state.valid(), found.config.valid()) {
            let spent = state.next_iter.get() - 1;
            rows.push(("iterations", format!("{spent} of {}", config.max_iterations.get())));
        }
        rows.extend(self.means());
        if let Some(recovery) = self.recovery() {
            rows.push(("recovered", recovery_text(recovery)));
        }
        rows.extend(found.identity_faults().iter().map(|fault| ("identity", fault.to_string())));
        let (paths, more) = &found.dirty;
        rows.extend(paths.iter().map(|path| ("changed", path.clone())));
        if *more > 0 {
            rows.push(("changed", format!("and {more} more")));
        }
        rows
    }
}

/// How many cells a row has for what it says.
fn room(pen: &Styler) -> usize {
    pen.width.saturating_sub(14)
}

fn head_text(head: &Head) -> String {
    match head {
        Head::Branch { name, commit } => format!("{} at {}", clean(name.as_str()), commit.prefix(8)),
        Head::Detached { commit } => format!("detached at {}", commit.prefix(8)),
        Head::Unborn => "no commit yet".to_owned(),
    }
}

/// What was finished after a crash, and what became of the files it left.
fn recovery_text(recovery: &RecoveryNote) -> String {
    let what = match (&recovery.iter, &recovery.outcome) {
        (Some(iter), Some(outcome)) => format!("iteration {iter} after a crash: {outcome}, nothing lost"),
        _ => "a commit that a crash had interrupted, nothing lost".to_owned(),
    };
    let found = recovery.saved.as_ref().map(|found| format!("; files found on the way are in {found}"));
    clean(&format!("{what}{}", found.unwrap_or_default()))
}

/// How the last iteration ended.
fn last_text(state: &RunState) -> Option<String> {
    let status = state.last_status?;
    let status = serde_json::to_value(status).ok()?.as_str().map(str::to_owned)?;
    let guard = match state.last_guard {
        Some(GuardResult::Pass) => ", guard passed",
        Some(GuardResult::Fail) => ", guard failed",
        Some(GuardResult::Skipped) | None => "",
    };
    let summary = state.last_summary.as_deref().map(clean).filter(|summary| !summary.is_empty());
    let summary = summary.map(|summary| format!(": {summary}")).unwrap_or_default();
    Some(format!("#{} {status}{guard}{summary}", state.next_iter.get().saturating_sub(1)))
}

impl CommandOutput for StatusOutput {
    fn json(&self) -> Value {
        let found = &self.found;
        let leaves = self.tree().map(|tree| tree.root().leaves());
        json!({
            "schema": "runner.status/1",
            "state": self.stand().word(),
            "run_id": found.run(),
            "root": found.root.display().to_string(),
            "branch": found.head.branch(),
            "commit": found.head.commit(),
            "goal": found.goal.valid().map(|goal| json!({ "title": goal.title, "written": goal.is_written })),
            "leaves": leaves,
            "node": self.choice().map(|choice| json!({
                "id": choice.leaf.id,
                "path": path_text(&choice.path),
                "title": choice.leaf.title,
                "attempts": choice.leaf.attempts,
                "max_attempts": choice.leaf.max_attempts,
            })),
            "run_state": found.state.valid().map(|state| serde_json::to_value(state).unwrap_or_default()),
            "agent": self.agent().map(|agent| json!({ "name": agent.executor.label(), "rung": agent.rung })),
            "wait": self.waiting().map(|(wait, ends, left)| json!({
                "outcome": wait.outcome,
                "agent": wait.agent,
                "ends_unix_ms": ends,
                "left_ms": left,
            })),
            "paused": found.is_paused,
            "budget": found.config.valid().map(|config| config.budget),
            "cost": found.state.valid().map(|state| state.spent.basis()),
            "warning": self.blind(),
            "max_iterations": found.config.valid().map(|config| config.max_iterations.get()),
            "recovered": self.recovery(),
            "identity": found.identity_faults().iter().map(ToString::to_string).collect::<Vec<_>>(),
            "changed": found.dirty.0,
            "next": self.next(),
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let found = &self.found;
        let mut lines = vec![KeyValueLine::new().with("state", self.stand().word())];
        if let Some(run) = found.run() {
            lines.push(KeyValueLine::new().with("run_id", run));
        }
        lines.push(
            KeyValueLine::new()
                .with("branch", found.head.branch().map(|branch| clean(branch.as_str())).unwrap_or_default()),
        );
        if let Some(tree) = self.tree() {
            let leaves = tree.root().leaves();
            lines.push(KeyValueLine::new().with("leaves", leaves.total));
            lines.push(KeyValueLine::new().with("leaves_passed", leaves.passed));
        }
        if let Some(choice) = self.choice() {
            lines.push(KeyValueLine::new().with("node", path_text(&choice.path)));
            lines.push(KeyValueLine::new().with("attempts", choice.leaf.attempts));
            lines.push(KeyValueLine::new().with("max_attempts", choice.leaf.max_attempts));
        }
        if let Some(state) = found.state.valid() {
            lines.push(KeyValueLine::new().with("next_iter", state.next_iter.get()));
        }
        if let Some((wait, ends_unix_ms, left_ms)) = self.waiting() {
            lines.push(KeyValueLine::new().with("waits_for", wait.outcome));
            lines.push(KeyValueLine::new().with("waits_until", in_utc(ends_unix_ms)));
            lines.push(KeyValueLine::new().with("waits_left", countdown(left_ms)));
        }
        let means = self.means().into_iter().filter(|(row, _)| *row != "waits");
        lines.extend(means.map(|(row, text)| KeyValueLine::new().with(row, text)));
        if let Some(recovery) = self.recovery() {
            lines.push(KeyValueLine::new().with("recovered", recovery_text(recovery)));
        }
        lines.extend(found.identity_faults().iter().map(|fault| KeyValueLine::new().with("identity", fault)));
        lines.push(KeyValueLine::new().with("changed", found.dirty.0.len() + found.dirty.1));
        lines.push(KeyValueLine::new().with("next", self.next()));
        lines
    }

    fn human(&self, pen: &Styler) -> String {
        let (glyph, ink) = self.stand().look();
        let name = self.found.run().map(ToString::to_string).unwrap_or_default();
        let mut text = format!(
            "{} {}  {}\n\n",
            pen.paint(ink, pen.glyph(glyph)),
            pen.paint(ink, self.stand().word()),
            pen.paint(TextRole::Strong, &name)
        );
        for (row, says) in self.rows(pen) {
            // The bar brings its own colours and keeps to its room by itself.
            let says = if row == "progress" { says } else { pen.fit(&says, room(pen)) };
            text.push_str(&format!("  {} {says}\n", pen.paint(TextRole::Faint, &format!("{row:10}"))));
        }
        text + &format!(
            "\n  {} {}\n",
            pen.paint(TextRole::Faint, "next      "),
            pen.paint(TextRole::Strong, &self.next())
        )
    }
}
