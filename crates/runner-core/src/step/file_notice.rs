//! Files that a session left and the runner could not commit as they are, and ignored files that it changed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::repo_path::RepoPath;

/// One file that a person should look at, and how to get it back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FileNotice {
    pub path: RepoPath,
    pub action: FileAction,
    /// Why, as a clause: "larger than 50 MiB".
    pub reason: String,
    /// A shell command, for the repository's root, that gets the file back; for a committed file, one that shows it.
    pub restore: Option<String>,
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileAction {
    /// The runner moved it out of the work tree.
    SetAside,
    /// The runner removed it, because it has no content: a named pipe, a socket, a device.
    Removed,
    /// The runner committed its bytes without the conversions that git's attributes ask for.
    StoredRaw,
    /// The runner could neither commit nor move it.
    LeftInPlace,
    /// The runner kept it ignored, although the session changed the rule.
    KeptIgnored,
    /// A file of the run that only the user may change: the runner kept the change and undid it.
    EditKept,
    /// It is committed, and contains what looks like a key.
    HasKey,
    /// The session changed this ignored file.
    IgnoredChanged,
    /// The session deleted this ignored file.
    IgnoredDeleted,
    /// The session deleted this ignored file, and the runner restored it.
    IgnoredRestored,
}

impl FileAction {
    fn text(self) -> &'static str {
        match self {
            Self::SetAside => "set aside",
            Self::Removed => "removed",
            Self::StoredRaw => "committed without conversion",
            Self::LeftInPlace => "left in place, not committed",
            Self::KeptIgnored => "kept ignored",
            Self::EditKept => "kept, but not in effect yet",
            Self::HasKey => "committed with what looks like a key",
            Self::IgnoredChanged => "changed by the session",
            Self::IgnoredDeleted => "deleted by the session",
            Self::IgnoredRestored => "deleted by the session, restored",
        }
    }
}

impl FileNotice {
    /// What [`FileNotice::restore`] does, before a colon.
    pub fn command_label(&self) -> &'static str {
        if self.action == FileAction::HasKey { "look at it" } else { "get it back" }
    }

    /// What happened and why, in one line, without the command.
    pub fn text(&self) -> String {
        format!("`{}` {} ({})", self.path, self.action.text(), self.reason)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_names_path_action_and_reason() {
        let notice = FileNotice {
            path: RepoPath::of_bytes(b"a/big\n"),
            action: FileAction::SetAside,
            reason: "larger than 50 MiB".to_owned(),
            restore: None,
        };
        assert_eq!(notice.text(), "`a/big\\x0a` set aside (larger than 50 MiB)");
    }
}
