//! What a session had changed in `.git`, and the runner restored.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The changes of a session in the git directory, as `restored` in meta.json has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RestoreReport {
    /// Restored files of the git directory.
    pub files: Vec<String>,
    /// References that were restored or removed: the run's own, those that vanished, and those that cannot stay.
    pub refs: Vec<String>,
    /// New references, which stay.
    pub new_refs: Vec<String>,
    /// Other references that moved and that an agent outside a sandbox could have moved. They keep their new value.
    pub moved_refs: Vec<MovedRef>,
    /// Files of the git directory that were moved out of git's way.
    pub set_aside: Vec<String>,
    /// References that keep the agent's own commits.
    pub kept: Vec<String>,
}

/// A reference that is not the run's and that changed during a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MovedRef {
    pub name: String,
    pub from: String,
    pub to: String,
    /// The reference that keeps the old value, if the new one does not contain it.
    pub saved: Option<String>,
}
