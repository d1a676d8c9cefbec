//! The report of a run as one HTML page without scripts, fonts or addresses of others.

use runner_core::run_status::NextCommand;

use super::clean;
use super::report::{ANSWERED_QUESTIONS, OPEN_QUESTIONS, ReportQuestion, RunReport, TaskReport};

const STYLE: &str = include_str!("report.css");

impl RunReport {
    pub(crate) fn html(&self) -> String {
        let tone = self.status.label().tone.as_str();
        let mut body = format!(
            "<header>\n<p class=\"state {tone}\">{}</p>\n<h1>{}</h1>\n</header>\n<dl>\n",
            escaped(&self.headline()),
            escaped(&self.goal)
        );
        for number in &self.numbers {
            body.push_str(&format!("<dt>{}</dt><dd>{}</dd>\n", number.name, escaped(&number.value)));
        }
        body.push_str("</dl>\n");
        for section in self.sections() {
            body.push_str(&format!("<h2>{}</h2>\n", section.title));
            section.tasks.iter().for_each(|task| body.push_str(&task.html()));
        }
        for (title, is_open) in [(OPEN_QUESTIONS, true), (ANSWERED_QUESTIONS, false)] {
            let questions: String = self.questions(is_open).map(ReportQuestion::html).collect();
            if !questions.is_empty() {
                body.push_str(&format!("<h2>{title}</h2>\n<ol>\n{questions}</ol>\n"));
            }
        }
        let commands: String = self.next().iter().map(command_html).collect();
        if !commands.is_empty() {
            body.push_str(&format!("<h2>Next</h2>\n<pre>{commands}</pre>\n"));
        }
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <title>{}: {}</title>\n<style>\n{STYLE}</style>\n<body>\n{body}</body>\n</html>\n",
            escaped(&self.run),
            escaped(&self.goal)
        )
    }
}

fn command_html(next: &NextCommand) -> String {
    format!("{} <span># {}</span>\n", escaped(&next.command), escaped(&next.what))
}

impl ReportQuestion {
    fn html(&self) -> String {
        let answer = |answer: &String| format!("<p class=\"answer\">{}</p>", escaped(answer));
        let answers: String = self.answers.iter().map(answer).collect();
        format!("<li value=\"{}\">{}{answers}</li>\n", self.number, escaped(&self.text))
    }
}

impl TaskReport {
    fn html(&self) -> String {
        let label = self.state.label();
        let details = self.details();
        let (summary, details) = match details.split_first() {
            Some((summary, rest)) if !self.summary.is_empty() => (Some(summary), rest),
            Some(_) | None => (None, details.as_slice()),
        };
        let summary = summary.map(|text| format!("<p>{}</p>\n", escaped(text))).unwrap_or_default();
        let lines: String = details.iter().map(|detail| format!("<li>{}</li>\n", escaped(detail))).collect();
        let lines = if lines.is_empty() { lines } else { format!("<ul>\n{lines}</ul>\n") };
        format!(
            "<article class=\"{}\">\n<h3><span aria-hidden=\"true\">{}</span> {} <small>{}</small></h3>\n{summary}{lines}\
             <p class=\"id\">{}</p>\n</article>\n",
            label.tone.as_str(),
            label.symbol.glyph(),
            escaped(&self.title),
            escaped(&self.situation()),
            escaped(&self.id)
        )
    }
}

fn escaped(text: &str) -> String {
    let text = clean(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    text.replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_cannot_mark_up_the_page() {
        assert_eq!(escaped("<script>\"&"), "&lt;script&gt;&quot;&amp;");
    }
}
