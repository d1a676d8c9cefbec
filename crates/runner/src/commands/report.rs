//! `runner report`

use std::path::Path;
use std::time::Duration;

use runner_core::checks::coverage::Coverage;
use runner_core::config::{Budget, OnStuck};
use runner_core::labels::{NodeState, NodeStates, annotation_text};
use runner_core::layout::Doc;
use runner_core::model::checks::CheckRecord;
use runner_core::model::goal::Goal;
use runner_core::model::review::{RecordedReview, ReviewResult};
use runner_core::model::tree::{LeafCount, Node, Tree};
use runner_core::model::user_notes::UserNotes;
use runner_core::run_status::RunStatus;
use runner_core::runs::edit::{Question, questions};
use runner_core::step::{Annotation, Outcome};
use runner_host::repo::readonly_repo::{ReadonlyRepo, RunBranch};
use runner_host::view::checks::coverage_at;
use runner_host::view::run_view::{IterationView, RunView};
use runner_term::format::{counted, duration};
use runner_term::{CommandError, CommandOutput, KeyValueLine, Styler};
use serde_json::{Value, json};

use super::status;
use crate::args::ReportArgs;
use crate::render::clean;
use crate::render::cost::spent_text;
use crate::render::iteration::outcome_label;
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
    let coverage = coverage_at(&repo, &view.target.tip).map_err(failed)?;
    let report = RunReport {
        run: view.target.run.to_string(),
        goal,
        status: status_of(dir, &repo, &view),
        tasks: view.tree.as_ref().map(|tree| task_reports(tree, &view)).unwrap_or_default(),
        questions: asked.into_iter().map(report_question).collect(),
        numbers: numbers(&view, coverage),
    };
    let format = match (args.markdown, args.html) {
        (true, _) => ReportFormat::Markdown,
        (false, true) => ReportFormat::Html,
        (false, false) => ReportFormat::Plain,
    };
    Ok(ReportOutput { report, format, coverage })
}

fn report_question(question: Question) -> ReportQuestion {
    ReportQuestion { number: question.number, text: question.text, answers: question.answers }
}

/// The status of the run: the one in this work tree as `runner status` shows it, another one's from its last commit.
fn status_of(dir: &Path, repo: &ReadonlyRepo, view: &RunView) -> RunStatus {
    let run = &view.target.run;
    let is_here = repo.branch().as_deref() == Some(run.branch().to_string().as_str());
    let branch = RunBranch {
        run: run.clone(),
        name: run.branch().to_string(),
        commit: view.target.tip.clone(),
        unix_secs: view.iterations.last().map_or(0, |last| u64::try_from(last.committed).unwrap_or(0)),
    };
    status::status_of_run(repo, &branch, is_here.then_some(dir))
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
            outcome_label(last.outcome),
            last.commit.prefix(8)
        )
    });
    let checks = last.and_then(|last| checks_text(last));
    let state = states.of(leaf);
    let review = |iteration: &&IterationView| {
        view.review_of(iteration).map(|review| format!("of #{}: {}", iteration.iter.get(), review.text()))
    };
    let attempts = match leaf.attempts {
        0 => String::new(),
        used => format!("{used} of {} attempts used", leaf.max_attempts),
    };
    TaskReport {
        id: leaf.id.to_string(),
        title: leaf.title.clone(),
        is_skipped: state == NodeState::Stuck && view.on_stuck == OnStuck::Skip,
        state,
        attempts,
        summary: last.map(|last| last.body.clone()).unwrap_or_default(),
        evidence: evidence.into_iter().chain(checks).collect(),
        reviews: iterations.iter().filter_map(review).collect(),
        notes: iterations.iter().flat_map(|iteration| notes_on(iteration)).collect(),
    }
}

/// `#4: the session changed nothing`.
fn notes_on(iteration: &IterationView) -> Vec<String> {
    let text =
        |value: &String| format!("#{}: {}", iteration.iter.get(), annotation_text(&Annotation::parse(value)));
    iteration.annotations.iter().map(text).collect()
}

/// `checks: greets (failed before the work, green after it)`.
fn checks_text(iteration: &IterationView) -> Option<String> {
    let records = &iteration.meta.as_ref()?.meta.checks;
    let text = |record: &CheckRecord| {
        let after = match record.exit {
            Some(exit) if exit.is_green() => "green after it".to_owned(),
            Some(exit) => format!("{exit} after it"),
            None => "not run after it".to_owned(),
        };
        format!("{} ({} before the work, {after})", record.name, record.red)
    };
    let texts: Vec<String> = records.iter().map(text).collect();
    (!texts.is_empty()).then(|| format!("checks: {}", texts.join(", ")))
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
    numbers.push(number("iterations", format!("{iterations}, {failed} without a pass")));
    let agent: Duration = view.iterations.iter().filter_map(IterationView::agent_time).sum();
    let guard: Duration = view.iterations.iter().filter_map(IterationView::guard_time).sum();
    let (agent, guard) = (agent.as_secs(), guard.as_secs());
    if agent + guard > 0 {
        numbers
            .push(number("time", format!("{} of agents, {} of the guard", duration(agent), duration(guard))));
    }
    if let Some(spent) = view.state.as_ref().and_then(|state| spent_text(&state.spent, &Budget::default())) {
        numbers.push(number("cost", spent));
    }
    numbers.extend(review_counts(view).map(|counts| number("reviews", counts)));
    numbers
}

/// `3 accepted, 1 refused`.
fn review_counts(view: &RunView) -> Option<String> {
    let reviews: Vec<RecordedReview> =
        view.iterations.iter().filter_map(|iteration| view.review_of(iteration)).collect();
    let of = |result: ReviewResult| match reviews.iter().filter(|review| review.result == result).count() {
        0 => None,
        count => Some(format!("{count} {}", result.as_str())),
    };
    let results = [ReviewResult::Accepted, ReviewResult::Refused, ReviewResult::Failed];
    let counts: Vec<String> = results.into_iter().filter_map(of).collect();
    (!counts.is_empty()).then(|| counts.join(", "))
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
                    "skipped": task.is_skipped, "summary": task.summary, "evidence": task.evidence,
                    "reviews": task.reviews, "notes": task.notes,
                })
            })
            .collect();
        let questions: Vec<Value> = report
            .questions
            .iter()
            .map(|question| {
                json!({ "number": question.number, "text": question.text, "answers": question.answers })
            })
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
            let line = line.with("title", clean(&task.title)).with("summary", clean(&task.summary));
            let line = if task.is_skipped { line.with("skipped", true) } else { line };
            lines.push(task.reviews.iter().fold(line, |line, review| line.with("review", clean(review))));
        }
        for question in &report.questions {
            let line = KeyValueLine::new().with("question", question.number);
            let line = line.with("text", clean(&question.text));
            lines.push(question.answers.iter().fold(line, |line, answer| line.with("answer", clean(answer))));
        }
        lines.extend(report.next().iter().map(|next| KeyValueLine::new().with("next", &next.command)));
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        self.document().unwrap_or_else(|| self.report.terminal(styler))
    }

    fn is_long(&self) -> bool {
        self.format == ReportFormat::Plain
    }
}
