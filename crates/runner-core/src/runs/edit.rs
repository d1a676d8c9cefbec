//! Edits of a run by its user, between iterations: changes to the plan, answers, notes.
//!
//! An edit is a value with everything it needs. Its commit contains it, so that [`verify`](crate::verify) can apply it to the
//! commit before and compare. This module writes nothing.

mod memory;
mod message;
mod plan;
mod split_file;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use memory::{Question, added_questions, questions};
pub use message::message;
pub use split_file::{SplitPart, parse_split_file};

use crate::layout::Doc;
use crate::model::digest::Sha256;
use crate::model::id::NodeId;
use crate::model::run_state::RunState;
use crate::model::tree::{Tree, TreeProblem, UserEditError};
use crate::runs::start::DocSet;
use crate::strict::DocumentProblem;
use crate::text::{lines, one_line};

/// The most bytes of one text in an edit: it becomes part of a commit message and of every later prompt.
pub const TEXT_BYTES_MAX: usize = 16 << 10;

/// One edit of the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum UserEdit {
    Add {
        under: NodeId,
        node: NewNode,
        place: SiblingPosition,
    },
    /// Change the text or the attempt limit of a node.
    Edit {
        node: NodeId,
        #[serde(flatten)]
        to: NodeChanges,
    },
    /// Split a leaf into children.
    Split {
        node: NodeId,
        into: Vec<NewNode>,
    },
    /// Remove a node with its subtree.
    Remove {
        node: NodeId,
    },
    /// Move a node with its subtree.
    Move {
        node: NodeId,
        under: NodeId,
        place: SiblingPosition,
    },
    /// Allow a leaf more attempts.
    Allow {
        node: NodeId,
        more: u32,
    },
    /// Answer a question of an agent.
    Answer {
        question: usize,
        text: String,
    },
    /// Leave a note for all later sessions.
    Note {
        text: String,
    },
    /// Approve the plan with this digest.
    Approve {
        plan: Sha256,
    },
}

/// A node to add.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewNode {
    pub id: NodeId,
    pub title: String,
    pub goal: String,
    pub acceptance: Vec<String>,
    pub max_attempts: u32,
}

/// The fields of a node that an edit changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeChanges {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acceptance: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
}

/// The position of a node among its siblings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SiblingPosition {
    #[default]
    Last,
    Before(NodeId),
    After(NodeId),
    /// By its `order`.
    Order(i64),
}

/// The documents that edits change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditableDocs {
    pub tree: Tree,
    /// questions.md, which edits only read.
    pub questions: Vec<u8>,
    pub notes: Vec<u8>,
    /// The digest of the plan, which an approval reads.
    pub plan: Option<Sha256>,
    /// The approval in run_state.json.
    pub approval: Option<Sha256>,
}

/// Why an edit is not possible.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum EditError {
    #[error("no such task: `{0}`")]
    NoSuchNode(NodeId),
    #[error("`{0}` has passed and cannot be changed")]
    Passed(String),
    /// A root without parts has passed.
    #[error("`{0}` has passed, and with it the whole goal")]
    GoalPassed(NodeId),
    /// A descendant has passed.
    #[error("`{node}` cannot be removed: `{descendant}` below it has passed")]
    PassedBelow { node: String, descendant: String },
    /// The new parent has passed.
    #[error("`{0}` has passed and cannot get new children")]
    UnderPassed(String),
    #[error("`{0}` is the root and cannot be moved or removed")]
    Root(NodeId),
    #[error("`{0}` already has children")]
    NotALeaf(String),
    #[error("`{node}` cannot be moved below itself")]
    UnderItself { node: String },
    #[error("`{sibling}` is not a child of `{under}`")]
    NotASibling { sibling: NodeId, under: NodeId },
    /// No `order` is free, and the neighbours have passed and keep theirs.
    #[error("there is no free order next to `{0}`, and its neighbours have passed and cannot be moved")]
    NoRoom(NodeId),
    #[error("a task with the id `{0}` already exists")]
    Taken(NodeId),
    #[error("the edit changes nothing")]
    Nothing,
    #[error("a title is empty")]
    NoTitle,
    #[error("the text is empty")]
    NoText,
    #[error("a text has {bytes} bytes: at most {TEXT_BYTES_MAX} are allowed")]
    TooLong { bytes: usize },
    #[error("a task must be split into at least two parts")]
    TooFewParts,
    #[error("`max_attempts` of `{node}` cannot be lower than the {attempts} attempts already used")]
    BelowAttempts { node: String, attempts: u32 },
    #[error("the tree would be invalid")]
    Tree(Vec<TreeProblem>),
    #[error("the edit would change fields that only the runner may set")]
    RunnerOwned(Vec<UserEditError>),
    #[error("notes.json is invalid")]
    Notes(Vec<DocumentProblem>),
    /// The plan is not the one that the approval names.
    #[error("the plan changed since you saw it")]
    PlanChanged,
    #[error("no such question: {wanted}")]
    NoSuchQuestion { wanted: usize, count: usize },
}

impl NewNode {
    /// A node with its texts made safe to show. The default of the goal is the title.
    pub fn new(
        id: NodeId,
        title: &str,
        goal: Option<&str>,
        acceptance: &[String],
        max_attempts: u32,
    ) -> Self {
        let title = one_line(title);
        let goal = goal.map_or_else(|| title.clone(), clean_text);
        Self {
            id,
            goal,
            title,
            acceptance: acceptance.iter().map(|criterion| clean_text(criterion)).collect(),
            max_attempts,
        }
    }
}

/// A text, possibly of several lines, made safe to show.
pub fn clean_text(text: &str) -> String {
    lines(text.trim())
}

impl UserEdit {
    /// The document that the edit changes.
    pub fn doc(&self) -> Doc {
        match self {
            Self::Add { .. }
            | Self::Edit { .. }
            | Self::Split { .. }
            | Self::Remove { .. }
            | Self::Move { .. }
            | Self::Allow { .. } => Doc::Tree,
            Self::Answer { .. } | Self::Note { .. } => Doc::Notes,
            Self::Approve { .. } => Doc::RunState,
        }
    }

    /// The documents that the edit changes. `state` is the run state after it.
    pub fn changed_docs(&self, after: &EditableDocs, state: &RunState) -> DocSet {
        let bytes = match self {
            Self::Approve { .. } => state.to_bytes(),
            Self::Answer { .. } | Self::Note { .. } => after.notes.clone(),
            Self::Add { .. }
            | Self::Edit { .. }
            | Self::Split { .. }
            | Self::Remove { .. }
            | Self::Move { .. }
            | Self::Allow { .. } => after.tree.bytes().to_vec(),
        };
        DocSet::from([(self.doc(), bytes), (Doc::RunState, state.to_bytes())])
    }

    /// The node that the edit changes.
    pub fn node(&self) -> Option<&NodeId> {
        match self {
            Self::Add { node, .. } => Some(&node.id),
            Self::Edit { node, .. }
            | Self::Split { node, .. }
            | Self::Remove { node }
            | Self::Move { node, .. }
            | Self::Allow { node, .. } => Some(node),
            Self::Answer { .. } | Self::Note { .. } | Self::Approve { .. } => None,
        }
    }

    /// Whether the edit changes the plan that an approval is about. More attempts do not.
    fn changes_plan(&self) -> bool {
        match self {
            Self::Add { .. }
            | Self::Edit { .. }
            | Self::Split { .. }
            | Self::Remove { .. }
            | Self::Move { .. } => true,
            Self::Allow { .. } | Self::Answer { .. } | Self::Note { .. } | Self::Approve { .. } => false,
        }
    }

    /// Applies the edit. The result depends on nothing but the arguments.
    pub fn apply(&self, before: &EditableDocs) -> Result<EditableDocs, EditError> {
        self.check_texts()?;
        let mut after = before.clone();
        match self {
            Self::Answer { question, text } => {
                after.notes = memory::add_answer(&before.notes, &before.questions, *question, text)?;
            }
            Self::Note { text } => after.notes = memory::add_note(&before.notes, text)?,
            Self::Approve { plan } if before.plan == Some(*plan) => after.approval = Some(*plan),
            Self::Approve { .. } => return Err(EditError::PlanChanged),
            Self::Add { .. }
            | Self::Edit { .. }
            | Self::Split { .. }
            | Self::Remove { .. }
            | Self::Move { .. }
            | Self::Allow { .. } => after.tree = plan::apply(&before.tree, self)?,
        }
        if after == *before {
            return Err(EditError::Nothing);
        }
        if self.changes_plan() {
            after.approval = None;
        }
        Ok(after)
    }

    /// Refuses texts that are empty or too long.
    pub fn check_texts(&self) -> Result<(), EditError> {
        let check_node = |node: &NewNode| {
            check_title(&node.title)?;
            check_lengths(node.acceptance.iter().chain([&node.goal]))
        };
        match self {
            Self::Add { node, .. } => check_node(node),
            Self::Split { into, .. } => into.iter().try_for_each(check_node),
            Self::Edit { to, .. } => {
                to.title.as_deref().map_or(Ok(()), check_title)?;
                check_lengths(to.goal.iter().chain(to.acceptance.iter().flatten()))
            }
            Self::Answer { text, .. } | Self::Note { text } => {
                if text.trim().is_empty() {
                    return Err(EditError::NoText);
                }
                check_lengths([text])
            }
            Self::Remove { .. } | Self::Move { .. } | Self::Allow { .. } | Self::Approve { .. } => Ok(()),
        }
    }
}

fn check_title(title: &str) -> Result<(), EditError> {
    if title.trim().is_empty() { Err(EditError::NoTitle) } else { check_lengths([title]) }
}

fn check_lengths<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Result<(), EditError> {
    for text in texts {
        let bytes = text.as_ref().len();
        if bytes > TEXT_BYTES_MAX {
            return Err(EditError::TooLong { bytes });
        }
    }
    Ok(())
}
