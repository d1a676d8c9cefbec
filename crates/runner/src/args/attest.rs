//! Arguments of `runner attest`.

use clap::{Args, ValueEnum};

use super::RunArg;

/// Print what a run proves as in-toto statements
///
/// Verifies the run and prints one JSON line for every task that passed (test result) and one for the run (verification
/// summary). With --sign, each line is a DSSE envelope, signed with your own key. Exit codes are those of 'runner verify'.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner attest > run.intoto.jsonl
  runner attest --sign ssh --key ~/.ssh/id_ed25519 > run.intoto.jsonl")]
pub(crate) struct AttestArgs {
    /// Run, commit or range of commits [default: the run on the current branch]
    #[arg(value_name = "RUN", conflicts_with = "run")]
    pub(crate) target: Option<String>,
    /// Sign the statements with your ssh or gpg key
    #[arg(long, value_name = "KIND")]
    pub(crate) sign: Option<SignKind>,
    /// File of the ssh key, or id of the gpg key [default: the key that git signs with, or your usual ssh key]
    #[arg(long, value_name = "KEY", requires = "sign")]
    pub(crate) key: Option<String>,
    #[command(flatten)]
    pub(crate) run: RunArg,
}

/// The program that signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SignKind {
    Ssh,
    Gpg,
}
