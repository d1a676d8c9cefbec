//! Decodes the documents of a commit and reports those that are missing, invalid or not canonical.

use super::Rule;
use super::compare::{Difference, shown};
use super::snapshot::{self, Files, StepDocuments};
use crate::commit_message::CommitKind;
use crate::config::Config;
use crate::layout::Doc;
use crate::model::run_state::RunState;
use crate::model::tree::Tree;

/// The documents of a commit; one that cannot be decoded is `None`.
#[derive(Clone, Debug, Default)]
pub(super) struct DecodedDocuments {
    pub(super) tree: Option<Tree>,
    pub(super) state: Option<RunState>,
    pub(super) config: Option<Config>,
}

impl DecodedDocuments {
    /// Decodes all documents, without reporting problems.
    pub(super) fn decode(files: &Files) -> Self {
        Self {
            tree: decode_tree(files).and_then(Result::ok),
            state: decode_state(files).and_then(Result::ok),
            config: decode_config(files).and_then(Result::ok),
        }
    }

    /// The documents after a commit. Those that the commit did not change are taken from `self`.
    pub(super) fn after(
        &self,
        before: &Files,
        after: &Files,
        kind: &CommitKind,
        differences: &mut Vec<Difference>,
    ) -> Self {
        let is_same = |doc: Doc| snapshot::doc(before, doc) == snapshot::doc(after, doc);
        let tree = match &self.tree {
            Some(tree) if is_same(Doc::Tree) => Some(tree.clone()),
            Some(_) | None => checked_tree(after, kind, differences),
        };
        let state = match &self.state {
            Some(state) if is_same(Doc::RunState) => Some(state.clone()),
            Some(_) | None => checked_state(after, differences),
        };
        let config = match &self.config {
            Some(config) if is_same(Doc::Config) => Some(config.clone()),
            Some(_) | None => decoded(decode_config(after), Rule::ConfigInvalid, differences),
        };
        Self { tree, state, config }
    }

    /// The documents, if a step could decide by them.
    pub(super) fn complete(&self) -> Option<StepDocuments<'_>> {
        Some(StepDocuments {
            tree: self.tree.as_ref()?,
            state: self.state.as_ref()?,
            config: self.config.as_ref()?,
        })
    }
}

fn decode_tree(files: &Files) -> Option<Result<Tree, String>> {
    snapshot::doc(files, Doc::Tree).map(|bytes| Tree::decode(bytes).map_err(|problems| first(&problems)))
}

fn decode_state(files: &Files) -> Option<Result<RunState, String>> {
    snapshot::doc(files, Doc::RunState)
        .map(|bytes| RunState::decode(bytes).map_err(|problems| first(&problems)))
}

fn decode_config(files: &Files) -> Option<Result<Config, String>> {
    snapshot::doc(files, Doc::Config).map(|bytes| Config::decode(bytes).map_err(|problems| first(&problems)))
}

fn checked_tree(files: &Files, kind: &CommitKind, differences: &mut Vec<Difference>) -> Option<Tree> {
    let tree = decoded(decode_tree(files), Rule::TreeInvalid, differences)?;
    // A user may write the tree in any form; `runner start` makes it canonical.
    let is_users = matches!(kind, CommitKind::User { .. });
    if !is_users && snapshot::doc(files, Doc::Tree) != Some(tree.bytes()) {
        differences.push(Difference::new(
            Rule::TreeCanonical,
            "the tree in its canonical form",
            "the same in another form",
        ));
    }
    Some(tree)
}

fn checked_state(files: &Files, differences: &mut Vec<Difference>) -> Option<RunState> {
    let state = decoded(decode_state(files), Rule::RunStateInvalid, differences)?;
    if snapshot::doc(files, Doc::RunState) != Some(state.to_bytes().as_slice()) {
        differences.push(Difference::new(
            Rule::RunStateCanonical,
            "the state in its canonical form",
            "the same in another form",
        ));
    }
    Some(state)
}

fn decoded<T>(
    document: Option<Result<T, String>>,
    rule: Rule,
    differences: &mut Vec<Difference>,
) -> Option<T> {
    match document {
        Some(Ok(value)) => Some(value),
        Some(Err(problem)) => {
            differences.push(Difference::new(rule, "a valid document", shown(&problem)));
            None
        }
        None => {
            differences.push(Difference::new(rule, "a document", "no such file"));
            None
        }
    }
}

fn first<P: ToString>(problems: &[P]) -> String {
    problems.first().map(ToString::to_string).unwrap_or_default()
}
