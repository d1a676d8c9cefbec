//! The signature of a complete run: a signed git tag on its last commit, made with the user's own key.
//!
//! The commit's id covers the whole history, so that a truncated or replaced one does not fit. `git verify-tag` checks it.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use runner_core::config::{Config, ProofConfig, SignPolicy};
use runner_core::layout::Doc;
use runner_core::model::id::RunId;
use runner_core::model::object_id::CommitId;
use serde::Serialize;
use supervise::executables;

use super::signing::{SignatureKind, SigningKey};
use crate::error::Error;
use crate::fs::temp_dir::TempDir;
use crate::git::{Git, lossy};
use crate::repo::documents::read_docs;
use crate::repo::run_history::{RunSelector, resolve};

/// The namespace of git's own ssh signatures.
const GIT_NAMESPACE: &str = "git";
const SSH_BEGIN: &str = "-----BEGIN SSH SIGNATURE-----";
const GPG_BEGIN: &str = "-----BEGIN PGP SIGNATURE-----";

/// A signature that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedTip {
    pub tag: String,
    pub commit: CommitId,
    /// The key, as people know it.
    pub key: String,
}

/// A signature that a run has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TipSignature {
    pub tag: String,
    /// The id of the commit that the tag signs.
    pub commit: String,
    pub place: SignedPlace,
    /// Whether the signature fits the tag. Whose key it is, `git verify-tag` shows.
    pub intact: bool,
}

/// Where in a history the signed commit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SignedPlace {
    Tip,
    /// The run went on since.
    Earlier,
    /// The history was truncated or replaced since, or the signature is of another one.
    Elsewhere,
}

impl TipSignature {
    /// One line for people.
    pub fn text(&self) -> String {
        let commit: String = self.commit.chars().take(12).collect();
        let place = match self.place {
            SignedPlace::Tip => "this commit".to_owned(),
            SignedPlace::Earlier => format!("the earlier commit {commit}"),
            SignedPlace::Elsewhere => format!("commit {commit}, which is not in this history"),
        };
        let intact = if self.intact { "" } else { ", and the signature does not fit" };
        format!("tag {} signs {place}{intact}", self.tag)
    }
}

fn tag_name(run: &RunId) -> String {
    format!("runner-signed/{run}")
}

fn kind_of(policy: SignPolicy) -> Option<SignatureKind> {
    match policy {
        SignPolicy::Off => None,
        SignPolicy::Ssh => Some(SignatureKind::Ssh),
        SignPolicy::Gpg => Some(SignatureKind::Gpg),
    }
}

/// Signs the last commit of the run on the current branch, if its configuration enables it.
pub fn sign_tip(dir: &Path) -> Result<Option<SignedTip>, Error> {
    let git = Git::open(dir)?;
    let config = read_docs(&git)?.get(&Doc::Config).and_then(|bytes| Config::decode(bytes).ok());
    let proof = config.unwrap_or_default().proof;
    let Some(kind) = kind_of(proof.sign) else { return Ok(None) };
    let target = resolve(&git, None)?;
    let key = SigningKey::find(&git, kind, proof.key.as_deref())?;
    let tag = tag_name(&target.run);
    let message = format!("Run {} is complete.", target.run);
    git.store_signed_tag(&tag, &target.tip, &message, |text| key.sign(text, GIT_NAMESPACE))?;
    Ok(Some(SignedTip { tag, commit: target.tip, key: key.name() }))
}

/// Why the configured key cannot sign without asking; none if it can, or if nothing is signed.
pub(crate) fn signing_obstacle(git: &Git, proof: &ProofConfig) -> Option<String> {
    let kind = kind_of(proof.sign)?;
    let signed =
        SigningKey::find(git, kind, proof.key.as_deref()).and_then(|key| key.sign(b"probe", GIT_NAMESPACE));
    signed
        .err()
        .map(|error| std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string))
}

/// The signature of a run, if it has one.
pub fn tip_signature(dir: &Path, target: &RunSelector) -> Result<Option<TipSignature>, Error> {
    let git = Git::open(dir)?;
    let tag = tag_name(&target.run);
    let Some(text) = git.tag_text(&tag)? else { return Ok(None) };
    let commit = lossy(&text);
    let commit = commit.lines().next().and_then(|line| line.strip_prefix("object ")).unwrap_or_default();
    let place = if commit == target.tip.to_string() {
        SignedPlace::Tip
    } else if git.is_ancestor(commit, &target.tip.to_string())? {
        SignedPlace::Earlier
    } else {
        SignedPlace::Elsewhere
    };
    Ok(Some(TipSignature { tag, commit: commit.to_owned(), place, intact: is_intact(&git, &text)? }))
}

/// Whether the signature at the end of a tag fits its text.
fn is_intact(git: &Git, tag: &[u8]) -> Result<bool, Error> {
    let at = |begin: &str| tag.windows(begin.len()).position(|part| part == begin.as_bytes());
    let dir = TempDir::create()?;
    let file = dir.path().join("signature");
    let (program, split) = match (at(SSH_BEGIN), at(GPG_BEGIN)) {
        (Some(at), _) => ("ssh-keygen", at),
        (None, Some(at)) => ("gpg", at),
        (None, None) => return Ok(false),
    };
    let (text, signature) = tag.split_at(split);
    fs::write(&file, [signature, b"\n"].concat()).map_err(Error::io("write", &file))?;
    let Some(path) = executables::find(program, Some(git.root())) else { return Ok(false) };
    let mut command = Command::new(&path);
    match program {
        "ssh-keygen" => {
            command.args(["-q", "-Y", "check-novalidate", "-n", GIT_NAMESPACE, "-s"]).arg(&file);
        }
        _ => {
            command.args(["--batch", "--verify"]).arg(&file).arg("-");
        }
    }
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(Error::io("run", &path))?;
    if let Some(mut stdin) = child.stdin.take() {
        let _ = stdin.write_all(text);
    }
    Ok(child.wait().map_err(Error::io("run", &path))?.success())
}
