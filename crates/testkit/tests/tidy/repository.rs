//! The repository under test: its root, its tracked files, and how a broken rule is reported.

use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A tracked file that is text.
pub(crate) struct File {
    /// From the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default()
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Code that users run: the sources of every crate but the test support. Unit tests in files of their own are
    /// `tests.rs` or lie in a folder `tests`, and are not.
    pub(crate) fn is_product(&self) -> bool {
        let mut folders = self.path.split('/').skip(1);
        self.is_rust()
            && self.path.starts_with("crates/")
            && !matches!(folders.next(), Some("scripted-model" | "testkit"))
            && folders.next() == Some("src")
            && !folders.any(|part| part == "tests" || part == "tests.rs")
    }

    /// The line that holds the byte at `offset`, counted from 1.
    pub(crate) fn line_at(&self, offset: usize) -> usize {
        1 + self.text.bytes().take(offset).filter(|byte| *byte == b'\n').count()
    }
}

/// The tracked text files, ordered by path. One that is deleted but still tracked is passed over.
pub(crate) fn files() -> Vec<File> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output();
    let listed = listed.expect("git runs");
    assert!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
    let listed = String::from_utf8(listed.stdout).expect("paths are UTF-8");
    let read = |path: &str| {
        let text = std::fs::read_to_string(root().join(path)).ok()?;
        Some(File { path: path.to_owned(), text })
    };
    let files: Vec<File> = listed.split_terminator('\0').filter_map(read).collect();
    assert!(files.iter().any(|file| file.path == "Cargo.toml"), "git lists the whole repository");
    files
}

/// Fails with one line for each broken rule.
pub(crate) fn assert_none(broken: &[String]) {
    assert!(broken.is_empty(), "{} found:\n  {}", broken.len(), broken.join("\n  "));
}
