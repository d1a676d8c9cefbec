//! The prompt of a session: the same bytes for the same state, within a budget.
//!
//! Sections come in the order of [`PromptSection`]. If they exceed the budget, they are shortened and then dropped in a fixed
//! order. The rules, both goals, the selected node and the format of the answer are never dropped. If even they are too
//! long, because of a long goal or node, their texts are shortened too, each down to a few hundred bytes: an agent must not be
//! able to stop a run by writing a long node. The prompt lists what was cut. Only a user's template can make a prompt too
//! large, and that is an error.
//!
//! Text from agents and files is put between fences that it cannot close, without control characters.

mod access;
mod budget;
mod context;
mod outline;
mod review;
mod template;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use minijinja::value::Value;
use serde::{Deserialize, Serialize};

pub use access::SessionAccess;
pub use budget::SectionCut;
pub use context::{ContextFiles, context_files};
pub use review::ReviewBrief;
pub use template::{BUILT_IN, PromptError};

use crate::config::{NetworkAccess, RemovalPolicy};
use crate::layout::{Doc, node_folder};
use crate::model::checks::TaskChecks;
use crate::model::digest::Sha256;
use crate::model::goal::GoalSummary;
use crate::model::id::NodeId;
use crate::model::protection::Protection;
use crate::model::tree::{Node, SelectedLeaf};
use crate::step::{Artifact, Ordinal, SessionTarget, Snapshot, pending_claim};
use crate::strict::canonical_json;
use crate::text::{lines, one_line};
use budget::{SectionText, fit};
use template::TemplateSet;

/// The most artifacts of a node to list.
const ARTIFACTS_MAX: usize = 50;

/// The prompt of one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prompt {
    pub text: String,
    pub sha256: Sha256,
    /// What was cut to fit the budget.
    pub cuts: Vec<SectionCut>,
}

/// The sections of a prompt, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptSection {
    /// The rules, and the kind of session.
    Contract,
    /// GOAL.md
    Project,
    /// The repository's own instructions.
    Instructions,
    /// context/goal.md
    Goal,
    /// context/history.md
    History,
    /// context/failure.md
    Failure,
    /// The path to the selected node.
    Path,
    Node,
    /// The checks of the selected node.
    Checks,
    /// In a repair: the errors of the rejected tree.
    Errors,
    /// In a repair: the rejected tree.
    Rejected,
    /// The rest of the tree.
    Outline,
    Notes,
    /// assumptions.md
    Assumptions,
    /// questions.md
    Questions,
    /// feedback.md
    Feedback,
    /// improvements.md
    Improvements,
    /// context.md of the node.
    Context,
    /// The files in the node's artifacts/.
    Artifacts,
    /// The format of the answer.
    Output,
}

impl PromptSection {
    /// The section's name, which is also the name of its template.
    pub fn name(self) -> &'static str {
        match self {
            Self::Contract => "contract",
            Self::Project => "project",
            Self::Instructions => "instructions",
            Self::Goal => "goal",
            Self::History => "history",
            Self::Failure => "failure",
            Self::Path => "path",
            Self::Node => "node",
            Self::Checks => "checks",
            Self::Errors => "errors",
            Self::Rejected => "rejected",
            Self::Outline => "outline",
            Self::Notes => "notes",
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

/// Increase this when the code below gives other bytes for the same templates.
const COMPOSE_VERSION: u32 = 2;

/// The version of the built-in templates: a short hash of them. Commits contain it, so that `verify` does not take prompts of
/// another version for forged ones.
pub fn template_version() -> String {
    static VERSION: LazyLock<String> = LazyLock::new(|| {
        let mut all = format!("{COMPOSE_VERSION}\n");
        BUILT_IN
            .iter()
            .chain([&template::CUTS])
            .for_each(|(name, text)| all.extend([*name, "\0", *text, "\0"]));
        Sha256::of(all.as_bytes()).to_string().chars().take(12).collect()
    });
    VERSION.clone()
}

/// Composes the prompt of a session.
pub fn compose(
    snapshot: &Snapshot,
    target: &SessionTarget,
    selected: Option<&SelectedLeaf<'_>>,
    attempt: Ordinal,
    context: &ContextFiles,
    access: &SessionAccess,
) -> Result<Prompt, PromptError> {
    let templates = TemplateSet::new(&snapshot.templates)?;
    let values = template_values(snapshot, target, attempt, access);
    let render = |section: PromptSection, text: &str| {
        let mut section_values = values.clone();
        section_values.insert("text", Value::from(text));
        templates.render(&format!("{}.md", section.name()), &section_values).map(|text| text + "\n")
    };
    let contract = templates.render("contract.md", &values)?
        + "\n"
        + &templates.render(&format!("{}.md", target.mode().as_str()), &values)?
        + "\n";
    let mut parts = vec![fixed(PromptSection::Contract, contract)];
    for (section, text) in section_texts(snapshot, target, selected, context) {
        let rendered = render(section, &text)?;
        parts.push(SectionText { section, text: Some(text), rendered, cut: None });
    }
    parts.push(fixed(PromptSection::Output, templates.render("output.md", &values)?));

    let note = |cuts: &[SectionCut]| cuts_note(&templates, cuts);
    let budget = usize::try_from(snapshot.config.prompt_budget_bytes.as_u32()).unwrap_or(usize::MAX);
    let excess = fit(&mut parts, budget, note, render)?;
    if excess > 0 {
        return Err(PromptError::TooLarge { bytes: budget + excess, budget });
    }
    assemble(parts, note)
}

fn fixed(section: PromptSection, rendered: String) -> SectionText {
    SectionText { section, text: None, rendered, cut: None }
}

/// Joins the parts, with the note about cuts before the format of the answer.
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

fn cuts_note(templates: &TemplateSet<'_>, cuts: &[SectionCut]) -> Result<String, PromptError> {
    let lines: Vec<Value> = cuts.iter().map(|cut| Value::from(cut.to_string())).collect();
    templates.render("cuts.md", &BTreeMap::from([("cuts", Value::from(lines))])).map(|note| note + "\n")
}

/// The values that every template may use.
fn template_values(
    snapshot: &Snapshot,
    target: &SessionTarget,
    attempt: Ordinal,
    access: &SessionAccess,
) -> BTreeMap<&'static str, Value> {
    let config = &snapshot.config;
    let removal = match config.plan.removal {
        RemovalPolicy::Refuse => "refuse",
        RemovalPolicy::Record => "record",
    };
    let unconfirmed = match target {
        SessionTarget::Leaf(node) => pending_claim(snapshot, node),
        SessionTarget::Replan(_)
        | SessionTarget::Split(_)
        | SessionTarget::Plan(_)
        | SessionTarget::Repair(_) => None,
    };
    let protected = protected_names(&snapshot.protection());
    let instructions = snapshot.state.instructions.as_ref();
    BTreeMap::from([
        ("unconfirmed", Value::from(unconfirmed.map(|claim| claim.iter.to_string()).unwrap_or_default())),
        ("mode", Value::from(target.mode().as_str())),
        ("run_id", Value::from(snapshot.run_id.as_str())),
        ("iteration", Value::from(snapshot.state.next_iter.to_string())),
        ("node", Value::from(target.node().map(NodeId::as_str).unwrap_or_default())),
        ("attempt", Value::from(attempt.nth)),
        ("attempts_max", Value::from(attempt.of)),
        ("guard", Value::from(one_line(&config.guard.command.words().join(" ")))),
        ("protected", Value::from(protected)),
        ("removal", Value::from(removal)),
        (
            "instructions_file",
            Value::from(instructions.map(|pinned| one_line(&pinned.file)).unwrap_or_default()),
        ),
        ("sandbox", Value::from(on_or_off(access.has_sandbox))),
        ("network", Value::from(on_or_off(access.has_network))),
        ("installs", Value::from(access.installs.map(NetworkAccess::as_str).unwrap_or_default())),
        ("writable", Value::from(code_list(&access.writable))),
    ])
}

/// How many protected files a prompt names.
const PROTECTED_MAX: usize = 50;

/// The protected files, as a list in one line.
fn protected_names(protection: &Protection) -> String {
    let names = protection.names();
    let shown = code_list(names.iter().take(PROTECTED_MAX));
    match names.len().saturating_sub(PROTECTED_MAX) {
        0 => shown,
        more => format!("{shown}, and {more} more"),
    }
}

/// Names as code, in one line.
fn code_list<'n>(names: impl IntoIterator<Item = &'n String>) -> String {
    names.into_iter().map(|name| format!("`{}`", one_line(name))).collect::<Vec<_>>().join(", ")
}

fn on_or_off(is_on: bool) -> &'static str {
    if is_on { "on" } else { "off" }
}

/// The sections with text from agents and files, in order, without empty ones.
fn section_texts(
    snapshot: &Snapshot,
    target: &SessionTarget,
    selected: Option<&SelectedLeaf<'_>>,
    context: &ContextFiles,
) -> Vec<(PromptSection, String)> {
    let memory = &snapshot.memory;
    let node_id = selected.map(|selected| &selected.leaf.id);
    let repair = match target {
        SessionTarget::Repair(repair) => Some(repair),
        SessionTarget::Leaf(_)
        | SessionTarget::Replan(_)
        | SessionTarget::Split(_)
        | SessionTarget::Plan(_) => None,
    };
    let errors = repair.map(|repair| {
        repair.error_lines().iter().map(|error| format!("- {}\n", one_line(error))).collect::<String>()
    });
    let instructions = snapshot.state.instructions.as_ref();
    let node_context = node_id.and_then(|id| snapshot.node_files.contexts.get(id));
    let sections = [
        (PromptSection::Project, Some(snapshot.goal.clone())),
        (PromptSection::Instructions, instructions.map(|pinned| pinned.text.clone())),
        (PromptSection::Goal, Some(session_goal(snapshot, selected, context))),
        (PromptSection::History, context.history.clone()),
        (PromptSection::Failure, context.failure.clone()),
        (PromptSection::Path, selected.map(outline::path)),
        (PromptSection::Node, selected.map(|selected| node_json(selected.leaf))),
        (PromptSection::Checks, checks_of(snapshot, target).map(check_list)),
        (PromptSection::Errors, errors),
        (PromptSection::Rejected, repair.map(|repair| repair.rejected.clone())),
        (PromptSection::Outline, Some(outline::rest(&snapshot.tree, node_id))),
        (PromptSection::Notes, Some(snapshot.notes.prompt_text())),
        (PromptSection::Assumptions, non_empty_memory(&memory.assumptions, Doc::Assumptions)),
        (PromptSection::Questions, non_empty_memory(&memory.questions, Doc::Questions)),
        (PromptSection::Feedback, non_empty_memory(&memory.feedback, Doc::Feedback)),
        (PromptSection::Improvements, non_empty_memory(&memory.improvements, Doc::Improvements)),
        (PromptSection::Context, node_context.cloned()),
        (
            PromptSection::Artifacts,
            node_id.and_then(|id| artifact_list(id, snapshot.node_files.artifacts.get(id)?)),
        ),
    ];
    let mut texts = Vec::new();
    for (section, text) in sections {
        let text = lines(text.unwrap_or_default().trim());
        if !text.is_empty() {
            texts.push((section, text));
        }
    }
    texts
}

/// The goal of the session. A root that still has the project's goal refers to it, so that a long goal is in the prompt once.
fn session_goal(snapshot: &Snapshot, selected: Option<&SelectedLeaf<'_>>, context: &ContextFiles) -> String {
    let project = GoalSummary::of(&snapshot.goal);
    let is_project = selected.is_some_and(|SelectedLeaf { leaf, .. }| {
        leaf.title == project.title && leaf.goal == project.goal && leaf.acceptance == project.acceptance
    });
    if is_project { "The project goal above, all of it.".to_owned() } else { context.goal.clone() }
}

/// A leaf as in tree.json, without the texts that are the goal of the session.
fn node_json(leaf: &Node) -> String {
    let mut node = serde_json::to_value(leaf).unwrap_or_default();
    if let Some(fields) = node.as_object_mut() {
        fields.retain(|name, _| !matches!(name.as_str(), "goal" | "acceptance"));
    }
    String::from_utf8_lossy(&canonical_json(&node)).into_owned()
}

/// The checks of the leaf that a session works on.
fn checks_of<'s>(snapshot: &'s Snapshot, target: &SessionTarget) -> Option<&'s TaskChecks> {
    match target {
        SessionTarget::Leaf(node) => snapshot.node_files.checks.get(node),
        SessionTarget::Split(_)
        | SessionTarget::Replan(_)
        | SessionTarget::Plan(_)
        | SessionTarget::Repair(_) => None,
    }
}

/// One line for each check, with what it covers and where its files are.
fn check_list(checks: &TaskChecks) -> String {
    let mut text = String::new();
    for check in &checks.checks {
        let points: Vec<String> = check.covers.iter().map(|point| point.get().to_string()).collect();
        let covers = match points.as_slice() {
            [] => "all acceptance criteria".to_owned(),
            points => format!("acceptance {}", points.join(", ")),
        };
        text.push_str(&format!("{}: {} ({covers})\n", check.name, check.command.words().join(" ")));
        for path in check.files.keys() {
            text.push_str(&format!("  file: {path}\n"));
        }
    }
    text
}

/// The first artifacts of a node by name, with their sizes.
fn artifact_list(node: &NodeId, artifacts: &[Artifact]) -> Option<String> {
    let folder = node_folder(node);
    let mut sorted: Vec<&Artifact> = artifacts.iter().collect();
    sorted.sort();
    let mut text: String = sorted
        .iter()
        .take(ARTIFACTS_MAX)
        .map(|artifact| format!("{folder}/artifacts/{} ({} bytes)\n", artifact.path, artifact.bytes))
        .collect();
    let more = sorted.len().saturating_sub(ARTIFACTS_MAX);
    if more > 0 {
        text.push_str(&format!("… and {more} more\n"));
    }
    Some(text).filter(|text| !text.is_empty())
}

/// The text of a memory file, if anything was ever added to it.
fn non_empty_memory(text: &str, doc: Doc) -> Option<String> {
    let text = text.trim();
    let is_changed = !text.is_empty() && text.as_bytes() != doc.scaffold().trim_ascii();
    is_changed.then(|| text.to_owned())
}

#[cfg(test)]
mod tests;
