//! `runner attest`

use std::path::Path;

use runner_core::verify::Verdict;
use runner_host::ops::attest::{Attestation, SigningOptions, attest};
use runner_host::ops::signing::SignatureKind;
use runner_term::{CommandError, CommandExit, CommandOutput, KeyValueLine, Styler};
use serde_json::{Value, json};

use crate::args::{AttestArgs, SignKind};

pub(crate) struct AttestOutput {
    attestation: Attestation,
}

pub(crate) fn run(dir: &Path, args: &AttestArgs) -> Result<AttestOutput, CommandError> {
    let target = args.target.as_deref().or(args.run.as_deref());
    let signing = args.sign.map(|kind| SigningOptions {
        kind: match kind {
            SignKind::Ssh => SignatureKind::Ssh,
            SignKind::Gpg => SignatureKind::Gpg,
        },
        key: args.key.clone(),
    });
    let attestation = attest(dir, target, env!("CARGO_PKG_VERSION"), signing.as_ref())
        .map_err(|error| CommandError::from_host("could not attest the run", error))?;
    Ok(AttestOutput { attestation })
}

impl CommandOutput for AttestOutput {
    fn json(&self) -> Value {
        json!({
            "schema": "runner.attest/1",
            "run_id": self.attestation.run,
            "verdict": self.attestation.verdict,
            "statements": self.attestation.statements,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let statements = self.attestation.statements.iter();
        statements.map(|statement| KeyValueLine::verbatim(statement.to_string())).collect()
    }

    fn human(&self, _styler: &Styler) -> String {
        self.attestation.statements.iter().map(|statement| format!("{statement}\n")).collect()
    }

    fn exit(&self) -> CommandExit {
        verdict_exit(self.attestation.verdict)
    }
}

/// The exit code of a verdict.
pub(super) fn verdict_exit(verdict: Verdict) -> CommandExit {
    match verdict {
        Verdict::Verified => CommandExit::SUCCESS,
        Verdict::Violated => CommandExit::FAILURE,
        Verdict::Partial => CommandExit::PARTIAL,
    }
}
