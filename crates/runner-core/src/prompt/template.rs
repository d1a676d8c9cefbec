//! The templates: built in, one file each, and the user's own in their place.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use thiserror::Error;

use crate::model::tools::ToolsError;
use crate::strict::nearest;

/// The built-in templates by file name. A file of the same name in `.runner/prompts/` takes the place of one.
pub const BUILT_IN: [(&str, &str); 20] = [
    ("contract.md", include_str!("../../templates/contract.md")),
    ("leaf.md", include_str!("../../templates/leaf.md")),
    ("repair.md", include_str!("../../templates/repair.md")),
    ("replan.md", include_str!("../../templates/replan.md")),
    ("project.md", include_str!("../../templates/project.md")),
    ("goal.md", include_str!("../../templates/goal.md")),
    ("history.md", include_str!("../../templates/history.md")),
    ("failure.md", include_str!("../../templates/failure.md")),
    ("path.md", include_str!("../../templates/path.md")),
    ("node.md", include_str!("../../templates/node.md")),
    ("errors.md", include_str!("../../templates/errors.md")),
    ("rejected.md", include_str!("../../templates/rejected.md")),
    ("outline.md", include_str!("../../templates/outline.md")),
    ("assumptions.md", include_str!("../../templates/assumptions.md")),
    ("questions.md", include_str!("../../templates/questions.md")),
    ("feedback.md", include_str!("../../templates/feedback.md")),
    ("improvements.md", include_str!("../../templates/improvements.md")),
    ("context.md", include_str!("../../templates/context.md")),
    ("artifacts.md", include_str!("../../templates/artifacts.md")),
    ("output.md", include_str!("../../templates/output.md")),
];

/// The note of what was cut, which is the runner's own to word.
pub(super) const CUTS: (&str, &str) = ("cuts.md", include_str!("../../templates/cuts.md"));

/// Why no session could be planned. All of it is the user's to mend.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PromptError {
    /// A template of a name that no template has.
    #[error(
        "`.runner/prompts/{name}` takes the place of no template{}",
        .meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default()
    )]
    UnknownTemplate {
        /// The file.
        name: String,
        /// What it was most likely meant to be.
        meant: Option<&'static str>,
    },
    /// A template that cannot be rendered.
    #[error("`.runner/prompts/{name}`{}: {what}", .line.map(|line| format!(" line {line}")).unwrap_or_default())]
    Template {
        /// The file.
        name: String,
        /// From 1, if known.
        line: Option<usize>,
        /// The engine's words.
        what: String,
    },
    /// Tools that cannot be given to the agent.
    #[error(transparent)]
    Tools(#[from] ToolsError),
    /// What is never dropped is too much on its own.
    #[error(
        "the prompt needs at least {bytes} bytes, and `prompt_budget_bytes` is {budget}: raise it, or shorten \
         your templates in `.runner/prompts/`"
    )]
    TooLarge {
        /// What is needed.
        bytes: usize,
        /// What is allowed.
        budget: usize,
    },
}

/// Templates that were read without fault.
pub(super) enum TemplateSet<'t> {
    BuiltIn,
    Own(Box<Environment<'t>>),
}

static BUILT_IN_TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = environment();
    for (name, text) in BUILT_IN.into_iter().chain([CUTS]) {
        #[expect(clippy::expect_used, reason = "a test renders every one of them")]
        environment.add_template(name, text).expect("a built-in template is one");
    }
    environment
});

fn environment<'t>() -> Environment<'t> {
    let mut environment = Environment::empty();
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    let syntax =
        SyntaxConfig::builder().keep_trailing_newline(true).trim_blocks(true).lstrip_blocks(true).build();
    #[expect(clippy::expect_used, reason = "these are the engine's own delimiters")]
    environment.set_syntax(syntax.expect("the usual delimiters are good ones"));
    environment.add_filter("fence", |text: &str| fence(text));
    environment
}

impl<'t> TemplateSet<'t> {
    /// The built-in templates, with the user's own in their place.
    pub(super) fn new(own: &'t BTreeMap<String, String>) -> Result<Self, PromptError> {
        if own.is_empty() {
            return Ok(Self::BuiltIn);
        }
        let names = BUILT_IN.map(|(name, _)| name);
        let mut environment: Environment<'t> = BUILT_IN_TEMPLATES.clone();
        for (name, text) in own {
            if !names.contains(&name.as_str()) {
                let meant = nearest(name, &names);
                return Err(PromptError::UnknownTemplate { name: name.clone(), meant });
            }
            environment.add_template(name, text).map_err(|error| fault(name, &error))?;
        }
        Ok(Self::Own(Box::new(environment)))
    }

    /// Renders one template.
    pub(super) fn render(&self, name: &str, values: &BTreeMap<&str, Value>) -> Result<String, PromptError> {
        let environment = match self {
            Self::BuiltIn => &*BUILT_IN_TEMPLATES,
            Self::Own(environment) => environment,
        };
        let rendered =
            environment.get_template(name).and_then(|template| template.render(Value::from(values.clone())));
        rendered.map_err(|error| fault(name, &error))
    }
}

fn fault(name: &str, error: &minijinja::Error) -> PromptError {
    let kind = error.kind().to_string();
    let what = error.detail().map_or(kind.clone(), |detail| format!("{kind}: {detail}"));
    PromptError::Template { name: name.to_owned(), line: error.line(), what }
}

/// The text between fences that nothing in it can close: longer than any run of backticks inside.
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
    fn a_fence_is_longer_than_any_inside() {
        assert_eq!(fence("a"), "```text\na\n```");
        assert_eq!(fence("a ```` b\n"), "`````text\na ```` b\n`````");
        assert_eq!(fence(""), "```text\n\n```");
    }
}
