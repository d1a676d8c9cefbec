//! The documents of a commit, read with what is wrong with them.

use super::compare::{Difference, shown};
use super::record::CommitKind;
use super::rule::Rule;
use super::snapshot::{self, Files};
use crate::config::Config;
use crate::layout::Doc;
use crate::model::run_state::RunState;
use crate::model::tree::Tree;

/// The documents in a set of files.
pub(super) struct DocumentSet<'f>(pub(super) &'f Files);

impl DocumentSet<'_> {
    pub(super) fn tree(&self) -> Option<Result<Tree, String>> {
        let read = |bytes| Tree::decode(bytes).map_err(|problems| first(&problems));
        snapshot::doc(self.0, Doc::Tree).map(read)
    }

    pub(super) fn state(&self) -> Option<Result<RunState, String>> {
        let read = |bytes| RunState::decode(bytes).map_err(|problems| first(&problems));
        snapshot::doc(self.0, Doc::RunState).map(read)
    }

    pub(super) fn config(&self) -> Option<Result<Config, String>> {
        let read = |bytes| Config::decode(bytes).map_err(|problems| first(&problems));
        snapshot::doc(self.0, Doc::Config).map(read)
    }

    pub(super) fn checked_tree(&self, kind: &CommitKind, wrong: &mut Vec<Difference>) -> Option<Tree> {
        let tree = told(self.tree(), Rule::TreeInvalid, wrong)?;
        let is_own = matches!(kind, CommitKind::User { .. });
        if !is_own && snapshot::doc(self.0, Doc::Tree) != Some(tree.bytes()) {
            wrong.push((
                Rule::TreeCanonical,
                "the tree in its one form".to_owned(),
                "the same in another form".to_owned(),
            ));
        }
        Some(tree)
    }

    pub(super) fn checked_state(&self, wrong: &mut Vec<Difference>) -> Option<RunState> {
        let state = told(self.state(), Rule::RunStateInvalid, wrong)?;
        if snapshot::doc(self.0, Doc::RunState) != Some(state.to_bytes().as_slice()) {
            let expected = "the state in its one form".to_owned();
            wrong.push((Rule::RunStateCanonical, expected, "the same in another form".to_owned()));
        }
        Some(state)
    }

    pub(super) fn checked_config(&self, wrong: &mut Vec<Difference>) -> Option<Config> {
        told(self.config(), Rule::ConfigInvalid, wrong)
    }
}

fn told<T>(read: Option<Result<T, String>>, rule: Rule, wrong: &mut Vec<Difference>) -> Option<T> {
    match read {
        Some(Ok(value)) => Some(value),
        Some(Err(problem)) => {
            wrong.push((rule, "a valid document".to_owned(), shown(&problem)));
            None
        }
        None => {
            wrong.push((rule, "a document".to_owned(), "no such file".to_owned()));
            None
        }
    }
}

fn first<P: ToString>(problems: &[P]) -> String {
    problems.first().map(ToString::to_string).unwrap_or_default()
}
