//! The report of a run as text for a terminal and as Markdown. [`super::report_html`] has the page; all three show the same
//! sections.

use runner_core::labels::NodeState;
use runner_core::run_status::{NextCommand, RunStatus};
use runner_term::{Styler, TextRole};

use super::clean;
use super::summary::command_lines;

/// The column of the text below a task.
const TEXT_COLUMN: usize = 4;

/// What a run did.
#[derive(Debug)]
pub(crate) struct RunReport {
    pub(crate) run: String,
    pub(crate) goal: String,
    pub(crate) status: RunStatus,
    pub(crate) tasks: Vec<TaskReport>,
    /// Questions of agents, with their numbers and answers.
    pub(crate) questions: Vec<ReportQuestion>,
    /// Name and value of the numbers: progress, iterations, time, cost.
    pub(crate) numbers: Vec<ReportNumber>,
}

#[derive(Debug)]
pub(crate) struct ReportQuestion {
    pub(crate) number: usize,
    pub(crate) text: String,
    /// The user's answers; none for an open question.
    pub(crate) answers: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct ReportNumber {
    pub(crate) name: &'static str,
    pub(crate) value: String,
}

/// One task of the plan.
#[derive(Debug)]
pub(crate) struct TaskReport {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) state: NodeState,
    /// Whether the loop goes on without it.
    pub(crate) is_skipped: bool,
    /// `2 of 3 attempts used`.
    pub(crate) attempts: String,
    /// The agent's summary of the last iteration.
    pub(crate) summary: String,
    /// Where the result can be checked: iteration, checks and commit.
    pub(crate) evidence: Vec<String>,
    /// The verdicts of reviewers, oldest first.
    pub(crate) reviews: Vec<String>,
    /// Notes of the runner on any of its iterations.
    pub(crate) notes: Vec<String>,
}

/// The parts of the list of tasks, what needs a person first.
const SECTIONS: [ReportSection; 3] = [ReportSection::Stuck, ReportSection::Open, ReportSection::Passed];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReportSection {
    Stuck,
    Open,
    Passed,
}

impl ReportSection {
    fn of(task: &TaskReport) -> Self {
        match task.state {
            NodeState::Stuck => Self::Stuck,
            NodeState::Passed => Self::Passed,
            NodeState::Running | NodeState::Next | NodeState::Retried | NodeState::Open => Self::Open,
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Stuck => "Stuck tasks",
            Self::Open => "Open tasks",
            Self::Passed => "Passed tasks",
        }
    }
}

impl RunReport {
    pub(super) fn headline(&self) -> String {
        format!("{}: {}", self.status.label().text.to_uppercase(), clean(&self.status.headline))
    }

    /// The sections that have tasks, with their titles.
    pub(super) fn sections(&self) -> impl Iterator<Item = TaskSection<'_>> {
        let tasks_of = |section| self.tasks.iter().filter(move |task| ReportSection::of(task) == section);
        let sections = SECTIONS
            .map(|section| TaskSection { title: section.title(), tasks: tasks_of(section).collect() });
        sections.into_iter().filter(|section| !section.tasks.is_empty())
    }

    pub(super) fn questions(&self, is_open: bool) -> impl Iterator<Item = &ReportQuestion> {
        self.questions.iter().filter(move |question| question.answers.is_empty() == is_open)
    }

    pub(crate) fn terminal(&self, styler: &Styler) -> String {
        let label = self.status.label();
        let mut text = format!(
            "{} {}\n{}\n\n",
            styler.label_glyph(label),
            styler.paint(label.tone.into(), &styler.wrap_commands(&self.headline(), 2)),
            styler.wrap(&clean(&self.goal), 0)
        );
        for number in &self.numbers {
            let name = styler.paint(TextRole::Faint, &format!("{:10}", number.name));
            text.push_str(&format!("  {name} {}\n", styler.wrap(&clean(&number.value), 13)));
        }
        let title = |title: &str| format!("\n{}\n", styler.paint(TextRole::Strong, title));
        for section in self.sections() {
            text.push_str(&title(section.title));
            section.tasks.iter().for_each(|task| text.push_str(&task.terminal(styler)));
        }
        for (name, is_open) in [(OPEN_QUESTIONS, true), (ANSWERED_QUESTIONS, false)] {
            if self.questions(is_open).next().is_some() {
                text.push_str(&title(name));
            }
            for question in self.questions(is_open) {
                let line = format!("{}. {}", question.number, clean(&question.text));
                text.push_str(&format!("  {}\n", styler.wrap(&line, 5)));
                for answer in &question.answers {
                    let answer = styler.wrap(&format!("your answer: {}", clean(answer)), 5);
                    text.push_str(&format!("     {}\n", styler.paint(TextRole::Faint, &answer)));
                }
            }
        }
        let commands = command_lines(&self.next(), styler.width.saturating_sub(6));
        for (name, command) in std::iter::once("Next:").chain(std::iter::repeat("")).zip(&commands) {
            let gap = if name.is_empty() { "" } else { "\n" };
            text.push_str(&format!("{gap}{name:5} {}\n", styler.paint(TextRole::Strong, command)));
        }
        text
    }

    /// What to type next: as in the status, after an answer to the first open question, and without this command itself.
    pub(crate) fn next(&self) -> Vec<NextCommand> {
        let answer = self.questions(true).next().map(|question| {
            NextCommand::new(format!("runner answer {} \"…\"", question.number), "answer a question")
        });
        let others = self.status.next.iter().filter(|next| next.command != "runner report");
        answer.into_iter().chain(others.cloned()).collect()
    }

    pub(crate) fn markdown(&self) -> String {
        let mut text =
            format!("# {}\n\n**{}**\n\n", markdown_text(&self.goal), markdown_text(&self.headline()));
        for number in &self.numbers {
            text.push_str(&format!("- {}: {}\n", number.name, markdown_text(&number.value)));
        }
        for section in self.sections() {
            text.push_str(&format!("\n## {}\n\n", section.title));
            section.tasks.iter().for_each(|task| text.push_str(&task.markdown()));
        }
        for (name, is_open) in [(OPEN_QUESTIONS, true), (ANSWERED_QUESTIONS, false)] {
            if self.questions(is_open).next().is_some() {
                text.push_str(&format!("\n## {name}\n\n"));
            }
            for question in self.questions(is_open) {
                text.push_str(&format!("{}. {}\n", question.number, markdown_text(&question.text)));
                for answer in &question.answers {
                    text.push_str(&format!("   - answer: {}\n", markdown_text(answer)));
                }
            }
        }
        let next = self.next();
        if !next.is_empty() {
            text.push_str("\n## Next\n\n```sh\n");
            for NextCommand { command, what } in &next {
                text.push_str(&format!("{}  # {}\n", clean(command), clean(what)));
            }
            text.push_str("```\n");
        }
        text
    }
}

pub(super) const OPEN_QUESTIONS: &str = "Open questions";
pub(super) const ANSWERED_QUESTIONS: &str = "Answered questions";

/// Tasks in the same situation.
pub(super) struct TaskSection<'r> {
    pub(super) title: &'static str,
    pub(super) tasks: Vec<&'r TaskReport>,
}

impl TaskReport {
    /// What stands below the title: summary, evidence, reviews, notes.
    pub(super) fn details(&self) -> Vec<String> {
        let mut details = Vec::new();
        if !self.summary.is_empty() {
            details.push(clean(&self.summary));
        }
        details.extend(self.evidence.iter().map(|evidence| clean(evidence)));
        details.extend(self.reviews.iter().map(|review| format!("review {}", clean(review))));
        details.extend(self.notes.iter().map(|note| format!("note on {}", clean(note))));
        details
    }

    /// `stuck, skipped, 3 of 3 attempts used`.
    pub(super) fn situation(&self) -> String {
        let skipped = if self.is_skipped { "skipped" } else { "" };
        let parts = [self.state.as_str(), skipped, &self.attempts];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }

    fn heading(&self) -> String {
        format!("{} ({})", clean(&self.title), self.situation())
    }

    fn terminal(&self, styler: &Styler) -> String {
        let glyph = styler.label_glyph(self.state.label());
        let mut text = format!("{glyph} {}\n", styler.wrap(&self.heading(), 2));
        for detail in self.details() {
            let detail = styler.wrap(&detail, TEXT_COLUMN);
            text.push_str(&format!("{:TEXT_COLUMN$}{}\n", "", styler.paint(TextRole::Faint, &detail)));
        }
        text
    }

    fn markdown(&self) -> String {
        let tick = if self.state == NodeState::Passed { "x" } else { " " };
        let mut text = format!("- [{tick}] **{}** `{}`\n", markdown_text(&self.heading()), clean(&self.id));
        for detail in self.details() {
            text.push_str(&format!("  - {}\n", markdown_text(&detail)));
        }
        text
    }
}

/// Foreign text in Markdown: on one line, and without characters that would format it.
fn markdown_text(text: &str) -> String {
    let mut escaped = String::new();
    for c in clean(text).chars() {
        if matches!(c, '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|') {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_cannot_format_the_report() {
        assert_eq!(markdown_text("a *b* <i>\n# x"), r"a \*b\* \<i\> \# x");
    }
}
