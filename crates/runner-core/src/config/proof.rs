//! `[proof]`: how the result of a run is signed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{read_keys, read_optional_keys};
use crate::strict::TomlTable;

/// How the result of a run is signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(default)]
pub struct ProofConfig {
    /// Sign the last commit of a complete run with your own key: "off", "ssh" or "gpg". The signature is a git tag,
    /// `runner-signed/<run>`.
    pub sign: SignPolicy,
    /// The key: a file for "ssh", a key id for "gpg" [default: the key that git signs with, or your usual ssh key].
    #[schemars(extend("examples" = ["~/.ssh/id_ed25519"]))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// What a complete run is signed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum SignPolicy {
    Off,
    Ssh,
    Gpg,
}

impl Default for ProofConfig {
    fn default() -> Self {
        Self { sign: SignPolicy::Off, key: None }
    }
}

impl ProofConfig {
    pub(super) fn take(table: &mut TomlTable<'_>) -> Self {
        let mut proof = Self::default();
        read_keys!(table, proof: sign);
        read_optional_keys!(table, proof: key);
        proof
    }
}
