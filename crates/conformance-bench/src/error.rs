//! What keeps the bench from running a row. What a tool does is a result, never an error.

use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    #[error("could not {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    #[error("{}: {problem}", path.display())]
    Adapter { path: PathBuf, problem: String },
    #[error("the row table is invalid: {0}")]
    Rows(#[from] toml::de::Error),
    #[error("there is no row `{0}`; `conformance-bench rows` lists them")]
    NoSuchRow(String),
    #[error("`{program}` is not on PATH: {hint}")]
    NotFound { program: String, hint: &'static str },
    #[error("the sandbox does not work: {0}")]
    Sandbox(String),
    #[error("{step} of `{row}` failed: {output}")]
    Step { row: String, step: &'static str, output: String },
    #[error("{}: {source}", path.display())]
    Json { path: PathBuf, source: serde_json::Error },
}

impl BenchError {
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }
}
