//! Every error in words: what could not be done, why, and what to do next.

use std::io;
use std::path::Path;

use serde_json::{Value, json};

use crate::out::{Exit, Ink, Pen};

/// An error, ready to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    /// A stable word for programs.
    code: &'static str,
    what: String,
    causes: Vec<String>,
    hints: Vec<String>,
    exit: Exit,
}

impl Report {
    /// An error without a cause yet.
    pub(crate) fn new(code: &'static str, exit: Exit, what: impl Into<String>) -> Self {
        Self { code, what: what.into(), causes: Vec::new(), hints: Vec::new(), exit }
    }

    /// Something that the user can mend in what was typed or written.
    pub(crate) fn refused(code: &'static str, what: impl Into<String>) -> Self {
        Self::new(code, Exit::REFUSED, what)
    }

    /// The operating system refused.
    pub(crate) fn io(what: impl Into<String>, path: &Path, error: &io::Error) -> Self {
        let report = Self::new("io", Exit::FAILURE, what).cause(format!("`{}`: {error}", path.display()));
        let is_full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
        if is_full {
            return report
                .hint("free some space and run the same command again: it goes on where it stopped");
        }
        if error.kind() == io::ErrorKind::PermissionDenied {
            return report.hint("check who owns it and whether you may write there");
        }
        report
    }

    /// An error of the host.
    pub(crate) fn host(what: impl Into<String>, error: &runner_host::Error) -> Self {
        let report = Self::new("host", Exit::FAILURE, what).cause(error.to_string());
        match std::error::Error::source(error) {
            Some(source) => report.cause(source.to_string()),
            None => report,
        }
    }

    pub(crate) fn cause(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    pub(crate) fn exit(&self) -> Exit {
        self.exit
    }

    /// The error that a worker ended with.
    pub(crate) fn of_json(line: &str) -> Self {
        let told: Value = serde_json::from_str(line).unwrap_or_default();
        let texts = |key: &str| -> Vec<String> {
            let list = told.pointer(&format!("/failed/{key}")).and_then(Value::as_array);
            list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let what = told.pointer("/failed/message").and_then(Value::as_str).unwrap_or("a worker failed");
        let report = Self::new("worker", Exit::FAILURE, what);
        Self { causes: texts("causes"), hints: texts("hints"), ..report }
    }

    /// For programs.
    pub(crate) fn json(&self) -> Value {
        json!({
            "schema": "runner.error/1",
            "code": self.code,
            "message": self.what,
            "causes": self.causes,
            "hints": self.hints,
            "exit": self.exit.0,
        })
    }

    /// For people.
    pub(crate) fn drawn(&self, pen: &Pen) -> String {
        let mut text = format!("{} {}\n", pen.ink(Ink::Bad, "error:"), self.what);
        for cause in &self.causes {
            text.push_str(&format!("{} {cause}\n", pen.ink(Ink::Strong, "caused by:")));
        }
        for hint in &self.hints {
            text.push_str(&format!("{} {hint}\n", pen.ink(Ink::Active, "hint:")));
        }
        text
    }
}
