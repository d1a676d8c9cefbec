//! The rows of `runner status`: a name and a value each.

use runner_core::config::OnStuck;
use runner_core::model::cost::{BudgetLimit, number};
use runner_core::model::id::IterationNumber;
use runner_core::model::run_state::{GuardResult, RunState};
use runner_core::model::tree::{path_text, stuck_leaves};
use runner_core::run_status::{PendingWait, RunStatus};
use runner_core::step::{Ordinal, RoomLevel};
use runner_host::git::Head;
use runner_host::repo::recovery::RecoveryNote;
use runner_term::Styler;
use runner_term::format::{counted, duration};
use runner_term::progress::bar;

use super::StatusOutput;
use crate::render::clean;
use crate::render::cost::{of_limit, spent_text};
use crate::render::wait::{left_ms, on_the_wall, reason};

impl StatusOutput {
    /// The verdict on the last iteration, and how often open tasks were refused.
    fn review_text(&self) -> Option<String> {
        let review = &self.state()?.review;
        let refused = review
            .refusals
            .iter()
            .map(|task| format!("`{}` refused {}", task.node, counted(task.count, "time", "times")));
        let last = review.last.as_ref().map(|last| clean(&last.text()));
        let texts: Vec<String> = last.into_iter().chain(refused).collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    }

    /// The tasks without attempts left.
    fn stuck_text(&self) -> Option<String> {
        let on_stuck = self.config().map_or(OnStuck::Stop, |config| config.on_stuck);
        let leaves = stuck_leaves(self.tree()?);
        let names: Vec<&str> = leaves.iter().map(|leaf| leaf.id.as_str()).collect();
        let skipped = if on_stuck == OnStuck::Skip { ", skipped" } else { "" };
        let tasks = counted(names.len(), "task", "tasks");
        (!names.is_empty()).then(|| format!("{tasks} without attempts left{skipped}: {}", names.join(", ")))
    }

    /// Where the guard last ran.
    fn guard_room(&self) -> Option<String> {
        let state = self.state()?;
        let baseline = state.baseline.as_ref().and_then(|baseline| baseline.room);
        Some(match state.last_room.or(baseline)? {
            RoomLevel::InPlace => "runs in the work tree, without a sandbox".to_owned(),
            RoomLevel::Bubblewrap { .. } => "runs in a room (bubblewrap)".to_owned(),
        })
    }

    /// The guard's result before the first session with it, unless it passed.
    fn baseline_text(&self) -> Option<String> {
        let baseline = self.state()?.baseline.as_ref()?;
        match baseline.guard {
            GuardResult::Pass => None,
            GuardResult::Fail => {
                let when = match baseline.next_iter {
                    IterationNumber::FIRST => "the first session".to_owned(),
                    iter => format!("iteration {}", iter.get()),
                };
                Some(format!("the guard already failed before {when} (exit {})", clean(&baseline.exit)))
            }
            GuardResult::Skipped => Some(clean(baseline.output.as_deref().unwrap_or_default())),
        }
    }

    /// Agent, wait, cost and warnings, as rows with their names.
    pub(super) fn session_rows(&self) -> Vec<(&'static str, String)> {
        let mut rows = Vec::new();
        if let Some(agent) = self.agent().filter(|agent| agent.rung.of > 1) {
            let Ordinal { nth, of } = agent.rung;
            rows.push(("agent", format!("{} (rung {nth} of {of})", clean(&agent.executor.label()))));
        }
        if let Some(PendingWait { wait, ends_ms }) = self.wait() {
            let (left, until) = (duration(left_ms(ends_ms).div_ceil(1000)), on_the_wall(ends_ms));
            rows.push(("wait", format!("{left}, until {until} ({})", clean(&reason(wait)))));
        }
        if let (Some(state), Some(config)) = (self.state(), self.config()) {
            rows.extend(spent_text(&state.spent, &config.budget).map(|text| ("spent", text)));
            let leaf = self.selected().and_then(|selected| state.spent_on(&selected.leaf.id));
            for limit in [BudgetLimit::LeafTokens, BudgetLimit::LeafUsd] {
                let Some(max) = limit.of(&config.budget) else { continue };
                let spent = leaf.map(|leaf| if limit.is_money() { leaf.microdollars } else { leaf.tokens });
                let spent = of_limit(limit, spent.map_or(0, number));
                rows.push(("spent", format!("{spent} of {} on this task", of_limit(limit, max))));
            }
        }
        if self.queued > 0 {
            let edits = counted(self.queued, "note or answer", "notes and answers");
            rows.push(("queued", format!("{edits}, recorded before the next session")));
        }
        rows.extend(self.review_text().map(|text| ("review", text)));
        rows.extend(self.stuck_text().map(|text| ("stuck", text)));
        if self.open_questions > 0 {
            let open = counted(self.open_questions, "open question", "open questions");
            rows.push(("questions", format!("{open}: runner questions --open")));
        }
        rows.extend(self.guard_room().map(|text| ("guard", text)));
        rows.extend(self.warning().map(|text| ("warning", text)));
        rows.extend(self.baseline_text().map(|text| ("baseline", text)));
        rows.extend(self.coverage.map(|coverage| ("acceptance", coverage.to_string())));
        rows
    }

    /// The rows of the screen: a name and a value each.
    pub(super) fn rows(&self, status: &RunStatus, styler: &Styler) -> Vec<(&'static str, String)> {
        let inspection = &self.inspection;
        let mut rows = Vec::new();
        if styler.verbose {
            rows.push(("root", clean(&inspection.root.display().to_string())));
        }
        rows.extend(self.run_id().map(|run| ("run", run.to_string())));
        rows.extend(status.since_ms.map(|since_ms| ("since", on_the_wall(since_ms))));
        if let Some(goal) = self.goal() {
            let title = if goal.is_written { clean(goal.title) } else { "not written yet".to_owned() };
            rows.push(("goal", title));
        }
        rows.push(("branch", head_text(&inspection.head)));
        if let Some(tree) = self.tree() {
            rows.push(("progress", bar(tree.root().leaves(), value_width(styler), styler)));
        }
        if let Some(selected) = self.selected() {
            let (attempts, max) = (selected.leaf.attempts, selected.leaf.max_attempts);
            rows.push(("task", path_text(&selected.path)));
            rows.push(("", clean(&selected.leaf.title)));
            rows.push(("attempts", format!("{attempts} of {max} used")));
        }
        if let Some(last) = self.state().and_then(last_text) {
            rows.push(("last", last));
        }
        if let (Some(state), Some(config)) = (self.state(), self.config()) {
            let iterations = state.counted_iterations();
            let outages = match state.progress.outages {
                0 => String::new(),
                outages => format!(", and {}", counted(outages, "outage", "outages")),
            };
            rows.push(("iterations", format!("{iterations} of {}{outages}", config.max_iterations.get())));
        }
        rows.extend(self.session_rows());
        if let Some(recovery) = self.recovery() {
            rows.push(("recovered", recovery_text(recovery)));
        }
        let (paths, more) = &inspection.dirty;
        rows.extend(paths.iter().map(|path| ("changed", path.clone())));
        if *more > 0 {
            rows.push(("changed", format!("and {more} more")));
        }
        rows
    }
}

/// How many cells a row has for its value.
pub(super) fn value_width(styler: &Styler) -> usize {
    styler.width.saturating_sub(14)
}

fn head_text(head: &Head) -> String {
    match head {
        Head::Branch { name, commit } => format!("{} at {}", clean(name.as_str()), commit.prefix(8)),
        Head::Detached { commit } => format!("detached at {}", commit.prefix(8)),
        Head::Unborn => "no commit yet".to_owned(),
    }
}

/// What a recovery finished, and where it saved the files that it found.
pub(super) fn recovery_text(recovery: &RecoveryNote) -> String {
    let what = match (&recovery.iter, &recovery.outcome) {
        (Some(iter), Some(outcome)) => format!("iteration {iter} after a crash: {outcome}, nothing lost"),
        _ => "a commit that a crash had interrupted, nothing lost".to_owned(),
    };
    let saved = recovery.saved.as_ref().map(|saved| format!("; files found in the work tree are in {saved}"));
    clean(&format!("{what}{}", saved.unwrap_or_default()))
}

/// The outcome of the last iteration, with the agent's summary.
fn last_text(state: &RunState) -> Option<String> {
    let outcome = state.last_outcome?.label().text;
    let summary = state.last_note_line();
    let colon = if summary.is_empty() { "" } else { ": " };
    Some(format!("#{} {outcome}{colon}{summary}", state.next_iter.get().saturating_sub(1)))
}
