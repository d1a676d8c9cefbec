//! The prompt of a session: the same bytes for the same state, within a budget.
//!
//! Sections come in the order of [`Section`]. Over budget they shrink and then drop in a fixed order; the rules,
//! both goals, the selected node and the answer's form are never dropped. If even they are too much, because a
//! goal or a node is longer than the budget, their texts shrink too, each down to a few hundred bytes: an agent
//! must not be able to stop a run by writing a long node. What was cut is said in the prompt. Only a user's own
//! template can make a prompt that does not fit, and that is an error.
//!
//! Text that an agent or a file wrote stands between fences that it cannot close, free of control characters.

mod budget;
mod context;
mod outline;
mod template;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use minijinja::value::Value;
use serde::{Deserialize, Serialize};

pub use budget::SectionCut;
pub use context::{ContextFiles, context_files};
pub use template::{BUILT_IN, PromptError};

use crate::config::RemovalPolicy;
use crate::layout::{Doc, node_folder};
use crate::model::digest::Sha256;
use crate::model::id::NodeId;
use crate::model::tree::SelectedLeaf;
use crate::step::{Artifact, Ordinal, SessionTarget, Snapshot};
use crate::strict::canonical_json;
use crate::text::{lines, one_line};
use budget::{SectionText, fit};
use template::TemplateSet;

/// How many of a node's artifacts are listed.
const ARTIFACTS_MAX: usize = 50;

/// A prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    /// The prompt itself.
    pub text: String,
    /// Its fingerprint.
    pub sha256: Sha256,
    /// What was cut to fit the budget.
    pub cuts: Vec<SectionCut>,
}

/// The sections, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptSection {
    /// The rules, and what the session is for.
    Contract,
    /// GOAL.md
    Project,
    /// context/goal.md
    Goal,
    /// context/history.md
    History,
    /// context/failure.md
    Failure,
    /// The titles on the way to the selected node.
    Path,
    /// The selected node.
    Node,
    /// In a repair: what is wrong with the refused tree.
    Errors,
    /// In a repair: the refused tree.
    Rejected,
    /// The rest of the tree.
    Outline,
    /// assumptions.md
    Assumptions,
    /// questions.md
    Questions,
    /// feedback.md
    Feedback,
    /// improvements.md
    Improvements,
    /// The node's own context.md.
    Context,
    /// The names of the files in the node's artifacts/.
    Artifacts,
    /// The form of the answer.
    Output,
}

impl PromptSection {
    /// The section's name, which is also that of its template.
    pub fn name(self) -> &'static str {
        match self {
            Self::Contract => "contract",
            Self::Project => "project",
            Self::Goal => "goal",
            Self::History => "history",
            Self::Failure => "failure",
            Self::Path => "path",
            Self::Node => "node",
            Self::Errors => "errors",
            Self::Rejected => "rejected",
            Self::Outline => "outline",
            Self::Assumptions => "assumptions",
            Self::Questions => "questions",
            Self::Feedback => "feedback",
            Self::Improvements => "improvements",
            Self::Context => "context",
            Self::Artifacts => "artifacts",
            Self::Output => "output",
        }
    }
}

/// Raised by hand when the composing below gives other bytes from the same templates.
const COMPOSING: u32 = 1;

/// Which prompts this program makes: a short name that changes when the built-in templates do. Commits carry it, so that
/// prompts of another edition are not taken for forged ones.
pub fn template_version() -> String {
    static EDITION: LazyLock<String> = LazyLock::new(|| {
        let mut all = format!("{COMPOSING}\n");
        BUILT_IN
            .iter()
            .chain([&template::CUTS])
            .for_each(|(name, text)| all.extend([*name, "\0", *text, "\0"]));
        Sha256::of(all.as_bytes()).to_string().chars().take(12).collect()
    });
    EDITION.clone()
}

/// Makes the prompt of a session.
pub fn compose(
    snapshot: &Snapshot,
    aim: &SessionTarget,
    choice: Option<&SelectedLeaf<'_>>,
    attempt: Ordinal,
    context: &ContextFiles,
) -> Result<Prompt, PromptError> {
    let templates = TemplateSet::new(&snapshot.templates)?;
    let facts = facts(snapshot, aim, attempt);
    let render = |section: PromptSection, text: &str| {
        let mut values = facts.clone();
        values.insert("text", Value::from(text));
        templates.render(&format!("{}.md", section.name()), &values).map(|text| text + "\n")
    };
    let contract = templates.render("contract.md", &facts)?
        + "\n"
        + &templates.render(&format!("{}.md", aim.mode().as_str()), &facts)?
        + "\n";
    let mut parts = vec![fixed(PromptSection::Contract, contract)];
    for (section, text) in texts(snapshot, aim, choice, context) {
        let rendered = render(section, &text)?;
        parts.push(SectionText { section, text: Some(text), rendered, cut: None });
    }
    parts.push(fixed(PromptSection::Output, templates.render("output.md", &facts)?));

    let note = |cuts: &[SectionCut]| note(&templates, cuts);
    let budget = usize::try_from(snapshot.config.prompt_budget_bytes.get()).unwrap_or(usize::MAX);
    let over = fit(&mut parts, budget, note, render)?;
    if over > 0 {
        return Err(PromptError::TooLarge { bytes: budget + over, budget });
    }
    assemble(parts, note)
}

fn fixed(section: PromptSection, rendered: String) -> SectionText {
    SectionText { section, text: None, rendered, cut: None }
}

/// Puts the parts together, with the note of what was cut before the answer's form.
fn assemble(
    mut parts: Vec<SectionText>,
    note: impl Fn(&[SectionCut]) -> Result<String, PromptError>,
) -> Result<Prompt, PromptError> {
    let cuts: Vec<SectionCut> = parts.iter().filter_map(|part| part.cut).collect();
    let output = parts.pop();
    let mut text: String = parts.iter().map(|part| part.rendered.as_str()).collect();
    if !cuts.is_empty() {
        text.push_str(&note(&cuts)?);
    }
    text.extend(output.map(|part| part.rendered));
    let sha256 = Sha256::of(text.as_bytes());
    Ok(Prompt { text, sha256, cuts })
}

fn note(templates: &TemplateSet<'_>, cuts: &[SectionCut]) -> Result<String, PromptError> {
    let lines: Vec<Value> = cuts.iter().map(|cut| Value::from(cut.to_string())).collect();
    templates.render("cuts.md", &BTreeMap::from([("cuts", Value::from(lines))])).map(|note| note + "\n")
}

/// What every template may use.
fn facts(snapshot: &Snapshot, aim: &SessionTarget, attempt: Ordinal) -> BTreeMap<&'static str, Value> {
    let config = &snapshot.config;
    let removal = match config.plan.removal {
        RemovalPolicy::Refuse => "refuse",
        RemovalPolicy::Record => "record",
    };
    let protected: Vec<String> =
        config.guard.protected.iter().map(|pattern| format!("`{}`", one_line(pattern))).collect();
    BTreeMap::from([
        ("mode", Value::from(aim.mode().as_str())),
        ("run_id", Value::from(snapshot.run_id.as_str())),
        ("iteration", Value::from(snapshot.state.next_iter.to_string())),
        ("node", Value::from(aim.node().map(NodeId::as_str).unwrap_or_default())),
        ("attempt", Value::from(attempt.nth)),
        ("attempts_max", Value::from(attempt.of)),
        ("guard", Value::from(one_line(&config.guard.command.words().join(" ")))),
        ("protected", Value::from(protected.join(", "))),
        ("removal", Value::from(removal)),
    ])
}

/// The sections that hold text from outside, in their order; one with nothing to say is not there.
fn texts(
    snapshot: &Snapshot,
    aim: &SessionTarget,
    choice: Option<&SelectedLeaf<'_>>,
    context: &ContextFiles,
) -> Vec<(PromptSection, String)> {
    let memory = &snapshot.memory;
    let selected = choice.map(|choice| &choice.leaf.id);
    let repair = match aim {
        SessionTarget::Repair(repair) => Some(repair),
        SessionTarget::Leaf(_) | SessionTarget::Replan(_) => None,
    };
    let node = choice.map(|choice| String::from_utf8_lossy(&canonical_json(choice.leaf)).into_owned());
    let errors = repair.map(|repair| {
        repair.error_lines().iter().map(|error| format!("- {}\n", one_line(error))).collect::<String>()
    });
    let own = selected.and_then(|id| snapshot.node_contexts.get(id));
    let sections = [
        (PromptSection::Project, Some(snapshot.goal.clone())),
        (PromptSection::Goal, Some(context.goal.clone())),
        (PromptSection::History, context.history.clone()),
        (PromptSection::Failure, context.failure.clone()),
        (PromptSection::Path, choice.map(outline::path)),
        (PromptSection::Node, node),
        (PromptSection::Errors, errors),
        (PromptSection::Rejected, repair.map(|repair| repair.rejected.clone())),
        (PromptSection::Outline, Some(outline::rest(&snapshot.tree, selected))),
        (PromptSection::Assumptions, written(&memory.assumptions, Doc::Assumptions)),
        (PromptSection::Questions, written(&memory.questions, Doc::Questions)),
        (PromptSection::Feedback, written(&memory.feedback, Doc::Feedback)),
        (PromptSection::Improvements, written(&memory.improvements, Doc::Improvements)),
        (PromptSection::Context, own.cloned()),
        (PromptSection::Artifacts, selected.and_then(|id| listed(id, snapshot.artifacts.get(id)?))),
    ];
    let told = |(section, text): (PromptSection, Option<String>)| {
        let text = lines(text?.trim());
        (!text.is_empty()).then_some((section, text))
    };
    sections.into_iter().filter_map(told).collect()
}

/// The files that were kept for a node, the first of them by name, with their sizes.
fn listed(node: &NodeId, artifacts: &[Artifact]) -> Option<String> {
    let folder = node_folder(node);
    let mut names: Vec<&Artifact> = artifacts.iter().collect();
    names.sort();
    let mut text: String = names
        .iter()
        .take(ARTIFACTS_MAX)
        .map(|artifact| format!("{folder}/artifacts/{} ({} bytes)\n", artifact.path, artifact.bytes))
        .collect();
    let more = names.len().saturating_sub(ARTIFACTS_MAX);
    if more > 0 {
        text.push_str(&format!("and {more} more\n"));
    }
    Some(text).filter(|text| !text.is_empty())
}

/// A memory file, if anything was ever added to it.
fn written(text: &str, doc: Doc) -> Option<String> {
    let text = text.trim();
    let is_told = !text.is_empty() && text.as_bytes() != doc.scaffold().trim_ascii();
    is_told.then(|| text.to_owned())
}

#[cfg(test)]
mod tests;
