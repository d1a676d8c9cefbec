//! [`IoError`]: a failed system call with the action and the path.

use std::io;
use std::path::{Path, PathBuf};

/// A system call that failed.
#[derive(Debug, thiserror::Error)]
#[error("could not {action} `{}`", .path.display())]
pub struct IoError {
    /// A verb phrase: "open", "write".
    pub action: &'static str,
    /// The file or resource.
    pub path: PathBuf,
    pub source: io::Error,
}

impl IoError {
    /// Wraps an I/O error, for `map_err`.
    pub(crate) fn wrap<E: Into<io::Error>>(
        action: &'static str,
        path: impl AsRef<Path>,
    ) -> impl FnOnce(E) -> Self {
        let path = path.as_ref().to_owned();
        move |source| Self { action, path, source: source.into() }
    }
}
