//! The prompt templates: built in, one file each; the user's templates override them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use thiserror::Error;

use crate::model::checks::ChecksError;
use crate::model::tools::ToolsError;
use crate::strict::nearest;

/// The built-in templates by file name. A file of the same name in `.runner/prompts/` overrides one.
pub const BUILT_IN: [(&str, &str); 26] = [
    ("contract.md", include_str!("../../templates/contract.md")),
    ("leaf.md", include_str!("../../templates/leaf.md")),
    ("repair.md", include_str!("../../templates/repair.md")),
    ("replan.md", include_str!("../../templates/replan.md")),
    ("split.md", include_str!("../../templates/split.md")),
    ("plan.md", include_str!("../../templates/plan.md")),
    ("project.md", include_str!("../../templates/project.md")),
    ("instructions.md", include_str!("../../templates/instructions.md")),
    ("goal.md", include_str!("../../templates/goal.md")),
    ("history.md", include_str!("../../templates/history.md")),
    ("failure.md", include_str!("../../templates/failure.md")),
    ("path.md", include_str!("../../templates/path.md")),
    ("node.md", include_str!("../../templates/node.md")),
    ("checks.md", include_str!("../../templates/checks.md")),
    ("errors.md", include_str!("../../templates/errors.md")),
    ("rejected.md", include_str!("../../templates/rejected.md")),
    ("outline.md", include_str!("../../templates/outline.md")),
    ("notes.md", include_str!("../../templates/notes.md")),
    ("assumptions.md", include_str!("../../templates/assumptions.md")),
    ("questions.md", include_str!("../../templates/questions.md")),
    ("feedback.md", include_str!("../../templates/feedback.md")),
    ("improvements.md", include_str!("../../templates/improvements.md")),
    ("context.md", include_str!("../../templates/context.md")),
    ("artifacts.md", include_str!("../../templates/artifacts.md")),
    ("output.md", include_str!("../../templates/output.md")),
    ("review.md", include_str!("../../templates/review.md")),
];

/// The note about cuts, which users cannot override.
pub(super) const CUTS: (&str, &str) = ("cuts.md", include_str!("../../templates/cuts.md"));

/// Why no prompt could be composed. Each is for the user to fix.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PromptError {
    #[error(
        "`.runner/prompts/{name}` is not the name of a template{}",
        .meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default()
    )]
    UnknownTemplate {
        name: String,
        /// The nearest template name.
        meant: Option<&'static str>,
    },
    #[error("`.runner/prompts/{name}`{}: {what}", .line.map(|line| format!(" line {line}")).unwrap_or_default())]
    Template {
        name: String,
        line: Option<usize>,
        /// The message of the template engine.
        what: String,
    },
    #[error(transparent)]
    Tools(#[from] ToolsError),
    #[error(transparent)]
    Checks(#[from] ChecksError),
    /// The sections that are never dropped exceed the budget.
    #[error(
        "the prompt needs at least {bytes} bytes, but `prompt_budget_bytes` is {budget}: raise it, or shorten your \
         templates in `.runner/prompts/`"
    )]
    TooLarge { bytes: usize, budget: usize },
}

pub(super) enum TemplateSet<'t> {
    BuiltIn,
    Overridden(Box<Environment<'t>>),
}

static BUILT_IN_TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = environment();
    for (name, text) in BUILT_IN.into_iter().chain([CUTS]) {
        #[expect(clippy::expect_used, reason = "a test renders every one of them")]
        environment.add_template(name, text).expect("built-in templates are valid");
    }
    environment
});

fn environment<'t>() -> Environment<'t> {
    let mut environment = Environment::empty();
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax =
        SyntaxConfig::builder().keep_trailing_newline(true).trim_blocks(true).lstrip_blocks(true).build();
    #[expect(clippy::expect_used, reason = "these are the default delimiters")]
    environment.set_syntax(syntax.expect("the default delimiters are valid"));
    environment.add_filter("fence", |text: &str| fence(text));
    environment
}

impl<'t> TemplateSet<'t> {
    /// The built-in templates, overridden by the user's.
    pub(super) fn new(user: &'t BTreeMap<String, String>) -> Result<Self, PromptError> {
        if user.is_empty() {
            return Ok(Self::BuiltIn);
        }
        let names = BUILT_IN.map(|(name, _)| name);
        let mut environment: Environment<'t> = BUILT_IN_TEMPLATES.clone();
        for (name, text) in user {
            if !names.contains(&name.as_str()) {
                let meant = nearest(name, &names);
                return Err(PromptError::UnknownTemplate { name: name.clone(), meant });
            }
            environment.add_template(name, text).map_err(|error| template_error(name, &error))?;
        }
        Ok(Self::Overridden(Box::new(environment)))
    }

    pub(super) fn render(&self, name: &str, values: &BTreeMap<&str, Value>) -> Result<String, PromptError> {
        let environment = match self {
            Self::BuiltIn => &*BUILT_IN_TEMPLATES,
            Self::Overridden(environment) => environment,
        };
        let rendered =
            environment.get_template(name).and_then(|template| template.render(Value::from(values.clone())));
        rendered.map_err(|error| template_error(name, &error))
    }
}

fn template_error(name: &str, error: &minijinja::Error) -> PromptError {
    let kind = error.kind().to_string();
    let what = error.detail().map_or(kind.clone(), |detail| format!("{kind}: {detail}"));
    PromptError::Template { name: name.to_owned(), line: error.line(), what }
}

/// The text between fences that it cannot close: they are longer than any run of backticks in it.
fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}text\n{text}{end}{fence}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_is_longer_than_any_in_the_text() {
        assert_eq!(fence("a"), "```text\na\n```");
        assert_eq!(fence("a ```` b\n"), "`````text\na ```` b\n`````");
        assert_eq!(fence(""), "```text\n\n```");
    }
}
