//! An attempt as it is stored: in the journal while its iteration is open, and in its directory for `runner replay`.

use runner_core::model::tree::Tree;
use runner_core::step::{Attempt, LeftFile};
use serde::{Deserialize, Serialize};

/// An attempt without a copy of the tree, if the session left that unchanged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredAttempt {
    attempt: Attempt,
    /// Whether the session left the tree as it was before.
    #[serde(default)]
    tree_untouched: bool,
}

impl StoredAttempt {
    pub(crate) fn new(attempt: &Attempt, tree_before: &Tree) -> Self {
        let tree_untouched = matches!(&attempt.tree, LeftFile::Bytes(bytes) if bytes == tree_before.bytes());
        let mut attempt = attempt.clone();
        if tree_untouched {
            attempt.tree = LeftFile::Missing;
        }
        Self { attempt, tree_untouched }
    }

    pub(crate) fn is_tree_untouched(&self) -> bool {
        self.tree_untouched
    }

    /// The attempt, with the tree before the session where it left that unchanged.
    pub(crate) fn into_attempt(self, tree_before: impl FnOnce() -> Vec<u8>) -> Attempt {
        let mut attempt = self.attempt;
        if self.tree_untouched {
            attempt.tree = LeftFile::Bytes(tree_before());
        }
        attempt
    }
}
