//! `runner report`

use std::path::Path;

use runner_core::checks::coverage::Coverage;
use runner_core::labels::NodeStates;
use runner_core::layout::Doc;
use runner_core::model::goal::Goal;
use runner_core::model::tree::{LeafCount, Node, Tree};
use runner_core::model::user_notes::UserNotes;
use runner_core::run_status::{DocumentFacts, RunFacts, RunRef, RunStatus, RunTotals, run_status};
use runner_core::runs::edit::questions;
use runner_core::step::Outcome;
use runner_host::repo::readonly_repo::ReadonlyRepo;
use runner_host::view::checks::coverage_at;
use runner_host::view::run_view::{IterationView, RunView};
use runner_term::format::{counted, dollars, duration};
use runner_term::{CommandError, CommandOutput, KeyValueLine, Styler};
use serde_json::{Value, json};

use super::status;
use crate::args::ReportArgs;
use crate::render::clean;
use crate::render::iteration::outcome_word;
use crate::render::report::{ReportNumber, ReportQuestion, RunReport, TaskReport};

const WHAT: &str = "could not report on the run";

pub(crate) struct ReportOutput {
    report: RunReport,
    format: ReportFormat,
    /// How much of the acceptance is proven.
    coverage: Option<Coverage>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ReportFormat {
    Plain,
    Markdown,
    Html,
}

pub(crate) fn run(dir: &Path, args: &ReportArgs) -> Result<ReportOutput, CommandError> {
    let failed = |error| CommandError::from_host(WHAT, error);
    let view = RunView::at(dir, args.run.as_deref()).map_err(failed)?;
    let repo = ReadonlyRepo::open(dir).map_err(failed)?;
    let read = |doc| repo.doc(&view.target.tip, doc).map_err(failed);
    let goal = read(Doc::Goal)?.unwrap_or_default();
    let goal = Goal::parse(&goal).map(|goal| goal.summary().title).unwrap_or_default();
    let asked = read(Doc::Questions)?.unwrap_or_default();
    let notes = UserNotes::decode(&read(Doc::Notes)?.unwrap_or_default()).unwrap_or_default();
    let asked = questions(&String::from_utf8_lossy(&asked), &notes);
    let open = asked.into_iter().filter(|question| question.answers.is_empty());
    let coverage = coverage_at(dir, &view.target.tip).map_err(failed)?;
    let report = RunReport {
        run: view.target.run.to_string(),
        goal,
        status: status_of(dir, &repo, &view),
        tasks: view.tree.as_ref().map(|tree| task_reports(tree, &view)).unwrap_or_default(),
        questions: open
            .map(|question| ReportQuestion { number: question.number, text: question.text })
            .collect(),
        numbers: numbers(&view, coverage),
    };
    let format = match (args.markdown, args.html) {
        (true, _) => ReportFormat::Markdown,
        (false, true) => ReportFormat::Html,
        (false, false) => ReportFormat::Plain,
    };
    Ok(ReportOutput { report, format, coverage })
}

/// The status of the run: the current one's as `runner status` shows it, another one's from its last commit.
fn status_of(dir: &Path, repo: &ReadonlyRepo, view: &RunView) -> RunStatus {
    let branch = view.target.run.branch().to_string();
    let is_current = repo.branch().as_deref() == Some(branch.as_str());
    if let Some(current) = is_current.then(|| status::read(dir).ok()).flatten() {
        return run_status(&current.facts());
    }
    run_status(&RunFacts {
        run: Some(RunRef { id: &view.target.run, branch: &branch }),
        documents: DocumentFacts {
            tree: view.tree.as_ref(),
            state: view.state.as_ref(),
            ..DocumentFacts::default()
        },
        totals: RunTotals {
            iterations: u32::try_from(view.iterations.len()).unwrap_or(u32::MAX),
            ..RunTotals::default()
        },
        ..RunFacts::default()
    })
}

fn task_reports(tree: &Tree, view: &RunView) -> Vec<TaskReport> {
    let states = NodeStates::new(tree, view.on_stuck);
    let mut leaves = Vec::new();
    collect_leaves(tree.root(), &mut leaves);
    leaves.into_iter().map(|leaf| task_report(leaf, &states, view)).collect()
}

fn collect_leaves<'t>(node: &'t Node, leaves: &mut Vec<&'t Node>) {
    if node.is_leaf() {
        leaves.push(node);
    }
    node.children.iter().for_each(|child| collect_leaves(child, leaves));
}

fn task_report(leaf: &Node, states: &NodeStates<'_>, view: &RunView) -> TaskReport {
    let iterations: Vec<&IterationView> =
        view.iterations.iter().filter(|iteration| iteration.node() == Some(&leaf.id)).collect();
    let last = iterations.last();
    let evidence = last.map(|last| {
        let files = counted(last.files, "file", "files");
        format!(
            "#{} {}, {files} changed, commit {}",
            last.iter.get(),
            outcome_word(last.outcome),
            last.commit.prefix(8)
        )
    });
    let attempts = match leaf.attempts {
        0 => String::new(),
        used => format!("{used} of {} attempts used", leaf.max_attempts),
    };
    TaskReport {
        id: leaf.id.to_string(),
        title: leaf.title.clone(),
        state: states.of(leaf),
        attempts,
        summary: last.map(|last| last.body.clone()).unwrap_or_default(),
        evidence,
        notes: iterations.iter().flat_map(|iteration| iteration.annotations.iter().cloned()).collect(),
    }
}

fn numbers(view: &RunView, coverage: Option<Coverage>) -> Vec<ReportNumber> {
    let number = |name: &'static str, value: String| ReportNumber { name, value };
    let mut numbers = vec![number("run", view.target.run.to_string())];
    if let Some(LeafCount { passed, total }) = view.tree.as_ref().map(|tree| tree.root().leaves()) {
        numbers.push(number("progress", format!("{passed} of {} passed", counted(total, "task", "tasks"))));
    }
    if let Some(coverage) = coverage.filter(|coverage| coverage.points > 0) {
        numbers.push(number("acceptance", coverage.to_string()));
    }
    let failed = view
        .iterations
        .iter()
        .filter(|it| it.outcome.is_some_and(|outcome| outcome != Outcome::Passed))
        .count();
    let iterations = counted(view.iterations.len(), "iteration", "iterations");
    numbers.push(number("iterations", format!("{iterations}, {failed} of them without a pass")));
    let sum = |key: &str| view.iterations.iter().filter_map(|iteration| iteration.number(key)).sum::<u64>();
    let (agent, guard) = (sum("agent_ms") / 1000, sum("guard_ms") / 1000);
    if agent + guard > 0 {
        numbers
            .push(number("time", format!("{} of agents, {} of the guard", duration(agent), duration(guard))));
    }
    let costs: Vec<u64> = view.iterations.iter().filter_map(IterationView::cost).collect();
    if !costs.is_empty() {
        let unknown = view.iterations.len() - costs.len();
        let unknown = if unknown == 0 {
            String::new()
        } else {
            format!(" (cost of {} unknown)", counted(unknown, "session", "sessions"))
        };
        numbers.push(number("cost", format!("{}{unknown}", dollars(costs.iter().sum()))));
    }
    numbers
}

impl ReportOutput {
    fn document(&self) -> Option<String> {
        match self.format {
            ReportFormat::Plain => None,
            ReportFormat::Markdown => Some(self.report.markdown()),
            ReportFormat::Html => Some(self.report.html()),
        }
    }
}

impl CommandOutput for ReportOutput {
    fn json(&self) -> Value {
        let report = &self.report;
        let tasks: Vec<Value> = report
            .tasks
            .iter()
            .map(|task| {
                json!({
                    "id": task.id, "title": task.title, "state": task.state.as_str(), "attempts": task.attempts,
                    "summary": task.summary, "evidence": task.evidence, "notes": task.notes,
                })
            })
            .collect();
        let questions: Vec<Value> = report
            .questions
            .iter()
            .map(|question| json!({ "number": question.number, "text": question.text }))
            .collect();
        let mut document = json!({
            "schema": "runner.report/1",
            "acceptance": self.coverage, "run_id": report.run, "goal": report.goal, "tasks": tasks, "questions": questions,
        });
        status::insert_status(&mut document, &report.status);
        document
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        if let Some(document) = self.document() {
            return document.lines().map(KeyValueLine::verbatim).collect();
        }
        let report = &self.report;
        let mut lines = vec![
            KeyValueLine::new()
                .with("state", report.status.state.as_str())
                .with("headline", clean(&report.status.headline)),
            KeyValueLine::new().with("goal", clean(&report.goal)),
        ];
        lines.extend(
            report.numbers.iter().map(|number| KeyValueLine::new().with(number.name, clean(&number.value))),
        );
        for task in &report.tasks {
            let line = KeyValueLine::new().with("task", &task.id).with("state", task.state.as_str());
            lines.push(line.with("title", clean(&task.title)).with("summary", clean(&task.summary)));
        }
        for question in &report.questions {
            lines.push(
                KeyValueLine::new().with("question", question.number).with("text", clean(&question.text)),
            );
        }
        lines.extend(report.status.next.iter().map(|next| KeyValueLine::new().with("next", &next.command)));
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        self.document().unwrap_or_else(|| self.report.terminal(styler))
    }

    fn is_long(&self) -> bool {
        self.format == ReportFormat::Plain
    }
}
