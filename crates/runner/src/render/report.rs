//! The report of a run as text for a terminal, Markdown and HTML. All three show the same sections.

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
    /// Open questions of agents, with their numbers.
    pub(crate) questions: Vec<ReportQuestion>,
    /// Name and value of the numbers: progress, iterations, time, cost.
    pub(crate) numbers: Vec<ReportNumber>,
}

#[derive(Debug)]
pub(crate) struct ReportQuestion {
    pub(crate) number: usize,
    pub(crate) text: String,
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
    /// `2 of 3 attempts used`.
    pub(crate) attempts: String,
    /// The agent's summary of the last iteration.
    pub(crate) summary: String,
    /// Where the result can be checked: iteration and commit.
    pub(crate) evidence: Option<String>,
    /// Notes of the runner on any of its iterations.
    pub(crate) notes: Vec<String>,
}

impl RunReport {
    fn headline(&self) -> String {
        format!("{}: {}", self.status.label().text.to_uppercase(), clean(&self.status.headline))
    }

    pub(crate) fn terminal(&self, styler: &Styler) -> String {
        let label = self.status.label();
        let mut text = format!(
            "{} {}\n{}\n\n",
            styler.label_glyph(label),
            styler.paint(label.tone.into(), &self.headline()),
            styler.wrap(&clean(&self.goal), 0)
        );
        for number in &self.numbers {
            let name = styler.paint(TextRole::Faint, &format!("{:10}", number.name));
            text.push_str(&format!("  {name} {}\n", styler.wrap(&clean(&number.value), 13)));
        }
        text.push('\n');
        for task in &self.tasks {
            text.push_str(&task.terminal(styler));
        }
        if !self.questions.is_empty() {
            text.push_str(&format!("\n{}\n", styler.paint(TextRole::Strong, "Open questions")));
        }
        for question in &self.questions {
            let line = format!("{}. {}", question.number, clean(&question.text));
            text.push_str(&format!("  {}\n", styler.wrap(&line, 5)));
        }
        let commands = command_lines(&self.status.next, styler.width.saturating_sub(6));
        for (name, command) in std::iter::once("Next:").chain(std::iter::repeat("")).zip(&commands) {
            let gap = if name.is_empty() { "" } else { "\n" };
            text.push_str(&format!("{gap}{name:5} {}\n", styler.paint(TextRole::Strong, command)));
        }
        text
    }

    pub(crate) fn markdown(&self) -> String {
        let mut text =
            format!("# {}\n\n**{}**\n\n", markdown_text(&self.goal), markdown_text(&self.headline()));
        for number in &self.numbers {
            text.push_str(&format!("- {}: {}\n", number.name, markdown_text(&number.value)));
        }
        text.push_str("\n## Tasks\n\n");
        for task in &self.tasks {
            text.push_str(&task.markdown());
        }
        if !self.questions.is_empty() {
            text.push_str("\n## Open questions\n\n");
        }
        for question in &self.questions {
            text.push_str(&format!("{}. {}\n", question.number, markdown_text(&question.text)));
        }
        if !self.status.next.is_empty() {
            text.push_str("\n## Next\n\n```sh\n");
            for NextCommand { command, what } in &self.status.next {
                text.push_str(&format!("{}  # {}\n", clean(command), clean(what)));
            }
            text.push_str("```\n");
        }
        text
    }

    pub(crate) fn html(&self) -> String {
        let mut body = format!(
            "<h1>{}</h1>\n<p><strong>{}</strong></p>\n<ul>\n",
            escaped(&self.goal),
            escaped(&self.headline())
        );
        for number in &self.numbers {
            body.push_str(&format!("<li>{}: {}</li>\n", number.name, escaped(&number.value)));
        }
        body.push_str("</ul>\n<h2>Tasks</h2>\n");
        for task in &self.tasks {
            body.push_str(&task.html());
        }
        if !self.questions.is_empty() {
            body.push_str("<h2>Open questions</h2>\n<ol>\n");
            for question in &self.questions {
                body.push_str(&format!(
                    "<li value=\"{}\">{}</li>\n",
                    question.number,
                    escaped(&question.text)
                ));
            }
            body.push_str("</ol>\n");
        }
        if !self.status.next.is_empty() {
            body.push_str("<h2>Next</h2>\n<pre>");
            for NextCommand { command, what } in &self.status.next {
                body.push_str(&format!("{}  # {}\n", escaped(command), escaped(what)));
            }
            body.push_str("</pre>\n");
        }
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>{}</title>\n<style>{STYLE}</style>\n\
             <body>\n{body}</body>\n</html>\n",
            escaped(&self.run)
        )
    }
}

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem}\
h3{margin-bottom:0}p{margin-top:.25rem}pre{background:#f4f4f4;padding:1rem;overflow:auto}small{color:#555}";

impl TaskReport {
    /// What stands below the title: attempts, evidence, summary, notes.
    fn details(&self) -> Vec<String> {
        let mut details = Vec::new();
        if !self.summary.is_empty() {
            details.push(clean(&self.summary));
        }
        details.extend(self.evidence.iter().map(|evidence| clean(evidence)));
        details.extend(self.notes.iter().map(|note| format!("note: {}", clean(note))));
        details
    }

    fn heading(&self) -> String {
        let attempts = if self.attempts.is_empty() { String::new() } else { format!(", {}", self.attempts) };
        format!("{} ({}{attempts})", clean(&self.title), self.state.as_str())
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

    fn html(&self) -> String {
        let details: Vec<String> = self.details().iter().map(|detail| escaped(detail)).collect();
        format!(
            "<h3>{}</h3>\n<p>{}<br><small>{}</small></p>\n",
            escaped(&self.heading()),
            details.join("<br>"),
            escaped(&self.id)
        )
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

fn escaped(text: &str) -> String {
    let text = clean(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_cannot_format_the_report() {
        assert_eq!(markdown_text("a *b* <i>\n# x"), r"a \*b\* \<i\> \# x");
        assert_eq!(escaped("<script>\"&"), "&lt;script&gt;&quot;&amp;");
    }
}
