//! The one way in which running a program fails: the operating system refused.

use std::io;
use std::path::{Path, PathBuf};

/// An operation that the operating system refused.
#[derive(Debug, thiserror::Error)]
#[error("could not {action} `{}`", .path.display())]
pub struct IoError {
    /// What was tried, as a verb.
    pub action: &'static str,
    /// The file or resource.
    pub path: PathBuf,
    /// The system's own error.
    pub source: io::Error,
}

impl IoError {
    /// Wraps an error of the system, for `map_err`.
    pub(crate) fn wrap<E: Into<io::Error>>(
        action: &'static str,
        path: impl AsRef<Path>,
    ) -> impl FnOnce(E) -> Self {
        let path = path.as_ref().to_owned();
        move |source| Self { action, path, source: source.into() }
    }
}
