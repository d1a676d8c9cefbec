//! Which sandbox a session had.

use serde::{Deserialize, Serialize};

/// The sandbox of a session, as recorded in meta.json.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SandboxKind {
    #[default]
    None,
    /// The agent's own sandbox, around the commands that it runs.
    Own,
    /// Around the agent, or only around its commands if the agent must be able to reach its login.
    Bubblewrap,
    /// The same on macOS.
    Seatbelt,
    /// A container around the agent.
    Podman,
}

impl SandboxKind {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Own => "own",
            Self::Bubblewrap => "bubblewrap",
            Self::Seatbelt => "seatbelt",
            Self::Podman => "podman",
        }
    }
}
