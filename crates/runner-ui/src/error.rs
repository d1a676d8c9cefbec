//! Errors of requests, with their HTTP status, a stable code and a hint.

use std::fmt;
use std::io;
use std::path::Path;

use axum::http::StatusCode;
use runner_core::layout::Doc;
use runner_core::model::id::{IterationNumber, RunId};
use runner_core::text::one_line;

use crate::api;

/// Why a request failed.
#[derive(Debug)]
pub(crate) struct RequestError {
    pub(crate) status: StatusCode,
    code: &'static str,
    message: String,
    hint: Option<&'static str>,
    problems: Vec<String>,
}

impl RequestError {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into(), hint: None, problems: Vec::new() }
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    fn hint(mut self, hint: &'static str) -> Self {
        self.hint = Some(hint);
        self
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }

    pub(crate) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", "nothing exists at this address")
    }

    pub(crate) fn no_run(run: &RunId) -> Self {
        Self::new(StatusCode::NOT_FOUND, "no_run", format!("no such run: `{run}`"))
            .hint("`/api/runs` lists the runs")
    }

    pub(crate) fn no_trial(case: &impl fmt::Display, id: &str) -> Self {
        let message = format!("case `{case}` has no trial `{id}`");
        Self::new(StatusCode::NOT_FOUND, "no_trial", message).hint("`/api/eval` lists the trials")
    }

    pub(crate) fn no_results(name: &str) -> Self {
        let message = format!("no such results: `{}`", one_line(name));
        Self::new(StatusCode::NOT_FOUND, "no_results", message)
            .hint("`/api/eval` lists the runs and their agents")
    }

    /// An error of `runner-eval`, or that it is missing.
    pub(crate) fn evaluation(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "evaluation", message)
            .hint("run 'runner eval results' to see the whole error")
    }

    pub(crate) fn no_iteration(run: &RunId, iter: IterationNumber) -> Self {
        let message = format!("run `{run}` has no iteration {}", iter.get());
        Self::new(StatusCode::NOT_FOUND, "no_iteration", message).hint("`/api/iterations` lists them")
    }

    pub(crate) fn no_logs(run: &RunId, iter: IterationNumber) -> Self {
        let message = format!("the logs of iteration {} of run `{run}` are missing", iter.get());
        Self::new(StatusCode::NOT_FOUND, "no_logs", message)
            .hint("logs are not committed: they only exist where the run was made")
    }

    pub(crate) fn logs_removed(name: &str, iter: IterationNumber) -> Self {
        let message = format!("`{name}` of iteration {} was removed to save space", iter.get());
        Self::new(StatusCode::NOT_FOUND, "logs_removed", message)
            .hint("`keep_iterations` under [logs] in config.toml decides how long logs are kept")
    }

    pub(crate) fn tree_in_git(name: &str) -> Self {
        let message = format!("`{name}` is only kept for the newest iterations");
        Self::new(StatusCode::NOT_FOUND, "tree_in_git", message)
            .hint("the commits before and after the iteration contain the tree")
    }

    pub(crate) fn no_node(id: &impl fmt::Display) -> Self {
        Self::new(StatusCode::NOT_FOUND, "no_node", format!("the tree has no node `{id}`"))
    }

    pub(crate) fn no_doc(doc: Doc) -> Self {
        Self::new(StatusCode::NOT_FOUND, "no_document", format!("`{}` is missing", doc.path()))
            .hint("run 'runner init' in the repository")
    }

    pub(crate) fn no_current_run() -> Self {
        Self::new(StatusCode::NOT_FOUND, "no_run", "no run was started in this repository")
            .hint("`runner status` shows what to type")
    }

    pub(crate) fn invalid_tree(problems: Vec<String>) -> Self {
        let error = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_tree", "tree.json is invalid");
        Self { problems, ..error }.hint("run 'runner validate' in the repository")
    }

    /// A file that is missing, is not a regular file, or is too large.
    pub(crate) fn unreadable(path: &str, error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::NotFound {
            return Self::new(StatusCode::NOT_FOUND, "no_file", format!("`{path}` is missing"));
        }
        if error.kind() == io::ErrorKind::FileTooLarge {
            let message = format!("`{path}` is too large: {error}");
            return Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
                .hint("read it in pages, below `/log/`");
        }
        Self::new(
            StatusCode::FORBIDDEN,
            "unreadable",
            format!("`{path}` cannot be read: {}", one_line(&error.to_string())),
        )
    }

    /// The repository's folder was moved or removed. It may come back, so clients may try again.
    pub(crate) fn repository_gone(root: &Path) -> Self {
        let message = format!("The repository is no longer at {}", one_line(&root.display().to_string()));
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "repository_gone", message)
            .hint("move it back, or start the server where it is now")
    }

    /// A panic in a handler.
    pub(crate) fn failed() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "panic", "internal error, please report it")
    }

    pub(crate) fn busy(message: &str) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", message).hint("close some tabs, then try again")
    }

    pub(crate) fn body(self) -> api::ErrorResponse {
        api::ErrorResponse {
            error: api::ErrorBody {
                code: self.code.to_owned(),
                message: self.message,
                hint: self.hint.map(str::to_owned),
                problems: self.problems,
            },
        }
    }
}

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<runner_host::Error> for RequestError {
    fn from(error: runner_host::Error) -> Self {
        let message = one_line(&error.to_string());
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "git", message)
            .hint("run 'runner doctor' in the repository")
    }
}

impl From<io::Error> for RequestError {
    fn from(error: io::Error) -> Self {
        Self::unreadable("the file", &error)
    }
}
