//! Signs with the user's own key: `ssh-keygen -Y sign` or `gpg --detach-sign`. The runner never reads the key.

use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use supervise::executables;

use crate::error::{Error, UserError};
use crate::fs::temp_dir::TempDir;
use crate::git::Git;

/// The namespace of the runner's ssh signatures: a signature for something else does not count.
pub const NAMESPACE: &str = "runner";

/// The kind of a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureKind {
    Ssh,
    Gpg,
}

/// A key of the user's.
#[derive(Clone, Debug)]
pub struct SigningKey {
    kind: SignatureKind,
    program: PathBuf,
    /// A file for ssh, a key id for gpg; none for gpg's default key.
    key: Option<String>,
}

impl SigningKey {
    /// The key that the user named, else the one that git signs with, else the usual ssh key.
    pub fn find(git: &Git, kind: SignatureKind, named: Option<&str>) -> Result<Self, Error> {
        let name = match kind {
            SignatureKind::Ssh => "ssh-keygen",
            SignatureKind::Gpg => "gpg",
        };
        let failed = |why: String| Error::from(UserError::CannotSign { why });
        let program = executables::find(name, Some(git.root()))
            .ok_or_else(|| failed(format!("`{name}` is not on PATH")))?;
        let key = match named {
            Some(key) => Some(key.to_owned()),
            None => git.user_setting("user.signingkey")?,
        };
        let key = match kind {
            SignatureKind::Gpg => key,
            SignatureKind::Ssh => {
                let file = key.map_or_else(default_ssh_key, |key| Some(expand_home(&key)));
                Some(file.ok_or_else(|| failed("no ssh key was found: name one with --key".to_owned()))?)
            }
        };
        Ok(Self { kind, program, key })
    }

    /// The key as it is named in an envelope.
    pub fn name(&self) -> String {
        let key = self.key.as_deref().unwrap_or("default");
        let name = key.rsplit('/').next().unwrap_or_default();
        match self.kind {
            SignatureKind::Ssh => format!("ssh:{name}"),
            SignatureKind::Gpg => format!("gpg:{name}"),
        }
    }

    /// A detached signature. The namespace is part of an ssh signature.
    pub fn sign(&self, bytes: &[u8], namespace: &str) -> Result<Vec<u8>, Error> {
        match self.kind {
            SignatureKind::Ssh => self.sign_with_ssh(bytes, namespace),
            SignatureKind::Gpg => {
                let mut command = Command::new(&self.program);
                // A key that needs a passphrase fails here instead of asking for it at night.
                command.args(["--batch", "--pinentry-mode", "error", "--armor", "--detach-sign"]);
                if let Some(key) = &self.key {
                    command.args(["--local-user", key]);
                }
                signed(command, bytes)
            }
        }
    }

    fn sign_with_ssh(&self, bytes: &[u8], namespace: &str) -> Result<Vec<u8>, Error> {
        let dir = TempDir::create()?;
        let file = dir.path().join("payload");
        fs::write(&file, bytes).map_err(Error::io("write", &file))?;
        let mut command = Command::new(&self.program);
        command.args(["-q", "-Y", "sign", "-n", namespace, "-f"]);
        command.arg(self.key.as_deref().unwrap_or_default()).arg(&file);
        signed(command, b"")?;
        let signature = dir.path().join("payload.sig");
        fs::read(&signature).map_err(Error::io("read", &signature))
    }
}

/// Runs a signing program without a terminal, so that it fails instead of asking.
fn signed(mut command: Command, input: &[u8]) -> Result<Vec<u8>, Error> {
    let program = PathBuf::from(command.get_program());
    command.env("SSH_ASKPASS_REQUIRE", "never").env_remove("SSH_ASKPASS");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(Error::io("run", &program))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read its input says why it failed.
        let _ = stdin.write_all(input);
    }
    let output = child.wait_with_output().map_err(Error::io("run", &program))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(UserError::CannotSign { why }.into())
}

fn expand_home(key: &str) -> String {
    let home = env::var("HOME").unwrap_or_default();
    key.strip_prefix("~/").map_or_else(|| key.to_owned(), |rest| format!("{home}/{rest}"))
}

fn default_ssh_key() -> Option<String> {
    let names = ["~/.ssh/id_ed25519", "~/.ssh/id_ecdsa", "~/.ssh/id_rsa"];
    names.map(expand_home).into_iter().find(|file| Path::new(file).exists())
}
