//! `runner attest`: verifies a run and states the result as in-toto statements, signed with the user's key if they want.

use std::path::Path;

use runner_core::attest::{self, AttestedPass, AttestedRun};
use runner_core::commit_message::{CommitKind, MessageParts};
use runner_core::model::id::RunId;
use runner_core::verify::Verdict;
use serde_json::Value;

use super::signing::{NAMESPACE, SignatureKind, SigningKey};
use super::verify::{AuditResult, verify};
use crate::error::Error;
use crate::git::Git;

/// How statements are signed.
#[derive(Clone, Debug)]
pub struct SigningOptions {
    pub kind: SignatureKind,
    /// A file for ssh, a key id for gpg.
    pub key: Option<String>,
}

/// The statements about a run.
#[derive(Debug)]
pub struct Attestation {
    pub run: RunId,
    pub verdict: Verdict,
    /// A statement for every pass, then the summary: unsigned, or in envelopes.
    pub statements: Vec<Value>,
}

pub fn attest(
    dir: &Path,
    wanted: Option<&str>,
    version: &str,
    signing: Option<&SigningOptions>,
) -> Result<Attestation, Error> {
    let audit = verify(dir, wanted, &mut |_| {})?;
    let git = Git::open(dir)?;
    let statements = statements(&git, &audit, version)?;
    let statements = match signing {
        None => statements,
        Some(options) => {
            let key = SigningKey::find(&git, options.kind, options.key.as_deref())?;
            statements.iter().map(|statement| signed(statement, &key)).collect::<Result<_, _>>()?
        }
    };
    Ok(Attestation { run: audit.run().clone(), verdict: audit.verdict(), statements })
}

fn signed(statement: &Value, key: &SigningKey) -> Result<Value, Error> {
    let payload = statement.to_string().into_bytes();
    let signature = key.sign(&attest::signed_bytes(&payload), NAMESPACE)?;
    Ok(attest::envelope(&payload, &signature, &key.name()))
}

fn statements(git: &Git, audit: &AuditResult, version: &str) -> Result<Vec<Value>, Error> {
    let mut batch = git.batch()?;
    let mut statements = Vec::new();
    for pass in &audit.passes {
        let message = batch.commit(&pass.commit)?.unwrap_or_default().message;
        let kind = CommitKind::parse(&message);
        let text = String::from_utf8_lossy(&message);
        let parts = MessageParts::parse(&text);
        let (Some(node), Some(config)) = (kind.node(), &pass.config) else { continue };
        statements.push(attest::test_result(&AttestedPass {
            run: audit.run(),
            iter: pass.iter,
            node,
            commit: &pass.commit,
            guard: config.guard.command.words(),
            message: &parts,
        }));
    }
    statements.push(attest::verification_summary(&AttestedRun {
        run: audit.run(),
        tip: &audit.target.tip,
        verdict: audit.verdict(),
        passed: &audit.ending.passed,
        coverage: audit.ending.coverage,
        version,
    }));
    Ok(statements)
}
