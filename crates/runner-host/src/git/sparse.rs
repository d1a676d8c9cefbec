//! Sparse checkouts: `.runner/` is always checked out, whatever else is not.

use runner_core::layout::RUNNER_DIR;

use super::{Git, nul_separated, nul_terminated, path_of};
use crate::error::Error;
use crate::fs::atomic;

const PATTERNS_BYTES_MAX: u64 = 16 << 20;

impl Git {
    /// Makes a sparse checkout include `.runner/`: the last pattern that matches decides, with and without cones.
    pub(crate) fn include_runner_folder(&self) -> Result<(), Error> {
        if !self.settings().is_sparse() {
            return Ok(());
        }
        let path = self.paths().in_git_dir("info/sparse-checkout");
        let Some(mut patterns) = atomic::read(&path, PATTERNS_BYTES_MAX)? else { return Ok(()) };
        let pattern = format!("/{RUNNER_DIR}/");
        let is_own = |line: &[u8]| line.trim_ascii() == pattern.as_bytes();
        if patterns.split(|byte| *byte == b'\n').any(is_own) {
            return Ok(());
        }
        if !patterns.is_empty() && !patterns.ends_with(b"\n") {
            patterns.push(b'\n');
        }
        patterns.extend(pattern.bytes().chain([b'\n']));
        atomic::write(&path, &patterns)
    }

    /// Checks out the files in `.runner/` that a sparse checkout had left out.
    pub(crate) fn check_out_runner_folder(&self) -> Result<(), Error> {
        if !self.settings().is_sparse() {
            return Ok(());
        }
        self.include_runner_folder()?;
        let listed = self.call(&["ls-files", "-z", "-t", "--cached", "--", RUNNER_DIR]).run()?;
        let skipped = nul_separated(&listed).filter(|line| line.starts_with(b"S"));
        let paths: Vec<Vec<u8>> = skipped.filter_map(|line| line.get(2..)).map(<[u8]>::to_vec).collect();
        if paths.is_empty() {
            return Ok(());
        }
        let request = nul_terminated(&paths);
        self.call(&["update-index", "-z", "--no-skip-worktree", "--stdin"]).input(&request).run()?;
        let missing = |path: &&Vec<u8>| self.root().join(path_of(path)).symlink_metadata().is_err();
        let missing: Vec<Vec<u8>> = paths.iter().filter(missing).cloned().collect();
        self.check_out(&self.paths().index(), &missing)
    }
}
