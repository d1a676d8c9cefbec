//! `runner explain`: what a code means and what to do about it.

use runner_core::step::Outcome;
use runner_core::strict::nearest;
use runner_core::verify::Rule;
use runner_term::explain::{CodePage, error_pages, stop_reason_pages};
use runner_term::{CommandError, CommandOutput, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use crate::args::ExplainArgs;

/// What a code is the code of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum CodeKind {
    Error,
    StopReason,
    Outcome,
    Rule,
}

impl CodeKind {
    const ALL: [Self; 4] = [Self::Error, Self::StopReason, Self::Outcome, Self::Rule];

    fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::StopReason => "stop reason",
            Self::Outcome => "outcome of an iteration",
            Self::Rule => "rule of 'runner verify'",
        }
    }

    fn heading(self) -> &'static str {
        match self {
            Self::Error => "Errors",
            Self::StopReason => "Stop reasons",
            Self::Outcome => "Outcomes of iterations",
            Self::Rule => "Rules of 'runner verify'",
        }
    }
}

pub(crate) struct Explanation {
    kind: CodeKind,
    code: &'static str,
    text: String,
}

/// The explanations of one code, or the list of all codes.
pub(crate) enum ExplainOutput {
    Code(Vec<Explanation>),
    List(Vec<Explanation>),
}

pub(crate) fn run(args: &ExplainArgs) -> Result<ExplainOutput, CommandError> {
    let all = explanations();
    let Some(wanted) = &args.code else { return Ok(ExplainOutput::List(all)) };
    let codes: Vec<&str> = all.iter().map(|explanation| explanation.code).collect();
    let suggestion = nearest(wanted, &codes).map(str::to_owned);
    let found: Vec<Explanation> = all.into_iter().filter(|explanation| explanation.code == wanted).collect();
    if !found.is_empty() {
        return Ok(ExplainOutput::Code(found));
    }
    let hint = suggestion.map_or("list all codes with 'runner explain'".to_owned(), |near| {
        format!("did you mean `{near}`? List all codes with 'runner explain'")
    });
    Err(CommandError::refused("unknown_code", format!("unknown code `{wanted}`")).hint(hint))
}

fn explanations() -> Vec<Explanation> {
    let of_pages = |kind: CodeKind, pages: Vec<CodePage>| {
        pages.into_iter().map(move |page| Explanation { kind, code: page.code, text: page.text.to_owned() })
    };
    let outcomes = Outcome::ALL.into_iter().map(|outcome| Explanation {
        kind: CodeKind::Outcome,
        code: outcome.as_str(),
        text: outcome.explanation(),
    });
    let rules = Rule::ALL.into_iter().map(|rule| Explanation {
        kind: CodeKind::Rule,
        code: rule.as_str(),
        text: format!("The rule requires: {}.", rule.description()),
    });
    of_pages(CodeKind::Error, error_pages())
        .chain(of_pages(CodeKind::StopReason, stop_reason_pages()))
        .chain(outcomes)
        .chain(rules)
        .collect()
}

impl ExplainOutput {
    fn explanations(&self) -> &[Explanation] {
        match self {
            Self::Code(explanations) | Self::List(explanations) => explanations,
        }
    }
}

impl CommandOutput for ExplainOutput {
    fn json(&self) -> Value {
        let codes: Vec<Value> = self
            .explanations()
            .iter()
            .map(|explanation| {
                json!({ "code": explanation.code, "kind": explanation.kind.as_str(), "text": explanation.text })
            })
            .collect();
        json!({ "schema": "runner.explain/1", "codes": codes })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let line = |explanation: &Explanation| {
            KeyValueLine::new()
                .with("code", explanation.code)
                .with("kind", explanation.kind.as_str())
                .with("text", explanation.text.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        self.explanations().iter().map(line).collect()
    }

    fn human(&self, styler: &Styler) -> String {
        match self {
            Self::Code(found) => found
                .iter()
                .map(|explanation| {
                    let title = styler.paint(TextRole::Strong, explanation.code);
                    let paragraphs = explanation.text.split("\n\n");
                    let words = |paragraph: &str| paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
                    let text: Vec<String> =
                        paragraphs.map(|paragraph| styler.wrap(&words(paragraph), 0)).collect();
                    format!("{title} ({})\n\n{}\n", explanation.kind.as_str(), text.join("\n\n"))
                })
                .collect::<Vec<_>>()
                .join("\n"),
            Self::List(all) => {
                let list = |kind: CodeKind| {
                    let codes: Vec<&str> =
                        all.iter().filter(|page| page.kind == kind).map(|page| page.code).collect();
                    let heading = styler.paint(TextRole::Strong, kind.heading());
                    format!("{heading}\n  {}\n", styler.wrap(&codes.join(" "), 2))
                };
                CodeKind::ALL.map(list).join("\n")
            }
        }
    }
}
