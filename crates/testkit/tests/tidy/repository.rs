//! The repository under test: its root, its tracked files, and the report of violations.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::rust_source::SourceViews;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A tracked text file.
pub(crate) struct TrackedFile {
    /// Relative to the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
    product_views: OnceLock<SourceViews>,
    all_views: OnceLock<SourceViews>,
}

impl TrackedFile {
    pub(crate) fn new(path: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            text: text.into(),
            product_views: OnceLock::new(),
            all_views: OnceLock::new(),
        }
    }

    /// The source without its unit tests. Parsed once.
    pub(crate) fn views_without_tests(&self) -> &SourceViews {
        self.product_views.get_or_init(|| SourceViews::without_tests(&self.text))
    }

    /// The source with its unit tests. Parsed once.
    pub(crate) fn views(&self) -> &SourceViews {
        self.all_views.get_or_init(|| SourceViews::with_tests(&self.text))
    }

    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    /// Whether this is Rust code of the project. The fixtures of evaluation cases are projects of their own.
    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs") && !self.path.starts_with("eval/cases/")
    }

    /// Whether this is code that users run: a source of a crate that is not test support, and not a unit test (`tests.rs`, or
    /// in a folder `tests`).
    pub(crate) fn is_product(&self) -> bool {
        let mut folders = self.path.split('/').skip(1);
        self.is_rust()
            && self.path.starts_with("crates/")
            && !matches!(
                folders.next(),
                Some("conformance-bench" | "crash-campaign" | "scripted-model" | "testkit")
            )
            && folders.next() == Some("src")
            && !folders.any(|part| part == "tests" || part == "tests.rs")
    }

    /// The line number of an offset, from 1.
    pub(crate) fn line_at(&self, offset: usize) -> usize {
        1 + self.text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
    }
}

/// The tracked text files, ordered by path. A deleted file that is still tracked is skipped.
pub(crate) fn files() -> Vec<TrackedFile> {
    let output = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output().expect("git runs");
    assert!(output.status.success(), "git ls-files: {}", String::from_utf8_lossy(&output.stderr));
    let paths = String::from_utf8(output.stdout).expect("paths are UTF-8");
    let mut files = Vec::new();
    for path in paths.split_terminator('\0') {
        if let Ok(text) = std::fs::read_to_string(root().join(path)) {
            files.push(TrackedFile::new(path, text));
        }
    }
    assert!(files.iter().any(|file| file.path == "Cargo.toml"), "git lists the files of the root");
    files
}

/// Fails with one line per violation.
pub(crate) fn assert_none(violations: &[String]) {
    assert!(violations.is_empty(), "{} violations:\n  {}", violations.len(), violations.join("\n  "));
}

/// Fails if there are more violations than allowed. The number is what is left of an older time: lower it, never raise it.
pub(crate) fn assert_at_most(allowed: usize, rule: &str, violations: &[String]) {
    let count = violations.len();
    assert!(
        count <= allowed,
        "{rule}: {count} violations, {allowed} allowed:\n  {}",
        violations.join("\n  ")
    );
}
