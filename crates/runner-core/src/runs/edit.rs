//! What a person does to a run between its iterations: edits of the plan, answers, notes.
//!
//! An edit is a value that says all of itself. Its commit carries it, so that [`verify`](crate::verify) applies it
//! again to the commit before and compares. Nothing is written here.

mod memory;
mod message;
mod plan;
mod split_file;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use memory::{Question, questions};
pub use message::message;
pub use split_file::{SplitPart, parts};

use crate::layout::Doc;
use crate::model::id::NodeId;
use crate::model::tree::{Tree, TreeProblem, UserEditError};
use crate::text::{lines, one_line};

/// The most bytes that one text of an edit may have: it stands in a commit's message and in every later prompt.
pub const TEXT_BYTES_MAX: usize = 16 << 10;

/// One edit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case")]
pub enum UserEdit {
    /// A new node.
    Add { under: NodeId, node: NewNode, place: SiblingPosition },
    /// Another wording, or another limit.
    Edit {
        node: NodeId,
        #[serde(flatten)]
        to: NodeChanges,
    },
    /// A leaf becomes these steps.
    Split { node: NodeId, into: Vec<NewNode> },
    /// A node and everything below it goes.
    Remove { node: NodeId },
    /// A node goes elsewhere, with everything below it.
    Move { node: NodeId, under: NodeId, place: SiblingPosition },
    /// So many attempts more.
    Allow { node: NodeId, more: u32 },
    /// What an agent asked is answered.
    Answer { question: usize, text: String },
    /// A word for the sessions to come.
    Note { text: String },
}

/// A node that is not there yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewNode {
    pub id: NodeId,
    pub title: String,
    pub goal: String,
    pub acceptance: Vec<String>,
    pub max_attempts: u32,
}

/// What an edit of a node changes; what is not named stays.
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

/// Where among its siblings a node stands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SiblingPosition {
    /// Behind all of them.
    #[default]
    Last,
    /// Before this one.
    Before(NodeId),
    /// Behind this one.
    After(NodeId),
    /// With this number.
    Order(i64),
}

/// The documents that edits change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditableDocs {
    /// The tree.
    pub tree: Tree,
    /// questions.md
    pub questions: Vec<u8>,
    /// feedback.md
    pub feedback: Vec<u8>,
}

/// Why an edit is refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum EditError {
    /// No such node.
    #[error("there is no node `{0}`")]
    NoSuchNode(NodeId),
    /// It passed.
    #[error("`{0}` passed, and what passed never changes again")]
    Passed(String),
    /// Something below it passed.
    #[error("`{below}` passed, and would be removed with `{node}`")]
    PassedBelow { node: String, below: String },
    /// The place is below a node that passed.
    #[error("`{0}` passed, and gets no new children")]
    UnderPassed(String),
    /// The goal as a whole.
    #[error("`{0}` is the root: it is the goal as a whole, and stays where it is")]
    Root(NodeId),
    /// It is divided already.
    #[error("`{0}` is divided already")]
    NotALeaf(String),
    /// It would be its own parent.
    #[error("`{node}` cannot go below itself")]
    UnderItself { node: String },
    /// A neighbour that is none.
    #[error("`{sibling}` is no child of `{under}`")]
    NotASibling { sibling: NodeId, under: NodeId },
    /// Nodes that passed stand too close.
    #[error("there is no number left beside `{0}`, and its neighbours passed and keep theirs")]
    NoRoom(NodeId),
    /// The id is another node's.
    #[error("there is a node `{0}` already")]
    Taken(NodeId),
    /// The same as before.
    #[error("nothing would change")]
    Nothing,
    /// A title without a letter.
    #[error("a title is empty")]
    NoTitle,
    /// A text without a letter.
    #[error("the text is empty")]
    NoText,
    /// A text beyond all sense.
    #[error("a text has {bytes} bytes, more than {TEXT_BYTES_MAX}")]
    TooLong { bytes: usize },
    /// A division that divides nothing.
    #[error("a leaf is split into two steps or more")]
    TooFewParts,
    /// More attempts are spent.
    #[error("`{node}` has {attempts} attempts behind it, and cannot have fewer than that")]
    BelowAttempts { node: String, attempts: u32 },
    /// The tree would break its rules.
    #[error("the tree would break its rules")]
    Tree(Vec<TreeProblem>),
    /// What is not the user's would change.
    #[error("the edit would change what is the runner's")]
    RunnerOwned(Vec<UserEditError>),
    /// No such question.
    #[error("there is no question {wanted}")]
    NoSuchQuestion { wanted: usize, count: usize },
}

impl NewNode {
    /// A node with its texts made safe to show. Without a goal, its title is its goal.
    pub fn new(
        id: NodeId,
        title: &str,
        goal: Option<&str>,
        acceptance: &[String],
        max_attempts: u32,
    ) -> Self {
        let title = one_line(title);
        let goal = goal.map_or_else(|| title.clone(), text_of);
        Self {
            id,
            goal,
            title,
            acceptance: acceptance.iter().map(|point| text_of(point)).collect(),
            max_attempts,
        }
    }
}

/// A text of more than one line, made safe to show.
pub fn text_of(text: &str) -> String {
    lines(text.trim())
}

impl UserEdit {
    /// The document that it changes.
    pub fn doc(&self) -> Doc {
        match self {
            Self::Add { .. }
            | Self::Edit { .. }
            | Self::Split { .. }
            | Self::Remove { .. }
            | Self::Move { .. }
            | Self::Allow { .. } => Doc::Tree,
            Self::Answer { .. } => Doc::Questions,
            Self::Note { .. } => Doc::Feedback,
        }
    }

    /// The document that it changes, as it is after it.
    pub fn written(&self, after: &EditableDocs) -> (Doc, Vec<u8>) {
        let bytes = match self {
            Self::Answer { .. } => after.questions.clone(),
            Self::Note { .. } => after.feedback.clone(),
            Self::Add { .. }
            | Self::Edit { .. }
            | Self::Split { .. }
            | Self::Remove { .. }
            | Self::Move { .. }
            | Self::Allow { .. } => after.tree.bytes().to_vec(),
        };
        (self.doc(), bytes)
    }

    /// The node that it is about.
    pub fn node(&self) -> Option<&NodeId> {
        match self {
            Self::Add { node, .. } => Some(&node.id),
            Self::Edit { node, .. }
            | Self::Split { node, .. }
            | Self::Remove { node }
            | Self::Move { node, .. }
            | Self::Allow { node, .. } => Some(node),
            Self::Answer { .. } | Self::Note { .. } => None,
        }
    }

    /// The documents after it, or why it cannot be made. A function of its arguments alone.
    pub fn apply(&self, before: &EditableDocs) -> Result<EditableDocs, EditError> {
        self.check_texts()?;
        let mut after = before.clone();
        match self {
            Self::Answer { question, text } => {
                after.questions = memory::answered(&before.questions, *question, text)?;
            }
            Self::Note { text } => after.feedback = memory::noted(&before.feedback, text),
            Self::Add { .. }
            | Self::Edit { .. }
            | Self::Split { .. }
            | Self::Remove { .. }
            | Self::Move { .. }
            | Self::Allow { .. } => after.tree = plan::edited(&before.tree, self)?,
        }
        if after == *before { Err(EditError::Nothing) } else { Ok(after) }
    }

    fn check_texts(&self) -> Result<(), EditError> {
        let of_node = |node: &NewNode| {
            check_title(&node.title)?;
            check_lengths(node.acceptance.iter().chain([&node.goal]))
        };
        match self {
            Self::Add { node, .. } => of_node(node),
            Self::Split { into, .. } => into.iter().try_for_each(of_node),
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
            Self::Remove { .. } | Self::Move { .. } | Self::Allow { .. } => Ok(()),
        }
    }
}

fn check_title(title: &str) -> Result<(), EditError> {
    if title.trim().is_empty() { Err(EditError::NoTitle) } else { check_lengths([title]) }
}

fn check_lengths<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> Result<(), EditError> {
    let mut long = texts.into_iter().map(|text| text.as_ref().len()).filter(|bytes| *bytes > TEXT_BYTES_MAX);
    long.next().map_or(Ok(()), |bytes| Err(EditError::TooLong { bytes }))
}
