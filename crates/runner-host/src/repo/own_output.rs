//! The files behind this process's own standard output and error: `runner loop > night.log` in the repository is neither a
//! change of the user's nor an agent's work.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::fs::atomic;
use crate::git::Git;
use crate::repo::git_dir_repair;

const BYTES_MAX: u64 = 1 << 20;

/// Lets git ignore the files that this process writes its output to, if they are untracked files of the work tree.
pub fn ignore_own_output(dir: &Path) -> Result<(), Error> {
    let files = own_files();
    if files.is_empty() {
        return Ok(());
    }
    // Recovery comes later, so the repository may be in any state that a crash left.
    git_dir_repair::repair(dir)?;
    let git = Git::open(dir)?;
    let tracked = git.tracked_paths().unwrap_or_default();
    for file in files {
        let Ok(path) = file.strip_prefix(git.root()) else { continue };
        let path = path.as_os_str().as_bytes();
        if !tracked.contains(path) && !path.starts_with(b".git/") {
            add_pattern(&git.common_dir().join("info/exclude"), &pattern(path))?;
        }
    }
    Ok(())
}

/// Whether a file is one that this process writes its output to.
pub(crate) fn is_own_output(file: &Path) -> bool {
    let Ok(metadata) = file.symlink_metadata() else { return false };
    let is_same = |own: &std::fs::Metadata| (own.dev(), own.ino()) == (metadata.dev(), metadata.ino());
    streams().iter().filter_map(|stream| stream.metadata().ok()).any(|own| is_same(&own))
}

fn streams() -> Vec<File> {
    let fds =
        [std::io::stdout().as_fd().try_clone_to_owned(), std::io::stderr().as_fd().try_clone_to_owned()];
    fds.into_iter()
        .flatten()
        .map(File::from)
        .filter(|file| file.metadata().is_ok_and(|own| own.is_file()))
        .collect()
}

/// The paths of the regular files behind the streams, where the system can tell.
fn own_files() -> Vec<PathBuf> {
    use std::os::fd::AsRawFd;
    let path_of = |file: &File| {
        let path = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
        is_own_output(&path).then_some(path)
    };
    let mut files: Vec<PathBuf> = streams().iter().filter_map(path_of).collect();
    files.dedup();
    files
}

/// A path as a line of an ignore file that matches nothing else.
fn pattern(path: &[u8]) -> Vec<u8> {
    let mut pattern = vec![b'/'];
    for byte in path {
        if matches!(byte, b'*' | b'?' | b'[' | b'\\' | b' ') {
            pattern.push(b'\\');
        }
        pattern.push(*byte);
    }
    pattern
}

fn add_pattern(exclude: &Path, pattern: &[u8]) -> Result<(), Error> {
    let mut lines = atomic::read(exclude, BYTES_MAX)?.unwrap_or_default();
    if lines.split(|byte| *byte == b'\n').any(|line| line == pattern) || pattern.contains(&b'\n') {
        return Ok(());
    }
    if !lines.is_empty() && !lines.ends_with(b"\n") {
        lines.push(b'\n');
    }
    lines.extend(pattern);
    lines.push(b'\n');
    exclude.parent().map_or(Ok(()), atomic::ensure_folder)?;
    atomic::write(exclude, &lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_matches_one_path_only() {
        assert_eq!(pattern(b"night.log"), b"/night.log");
        assert_eq!(pattern(b"a/b [1]*.log"), br"/a/b\ \[1]\*.log");
    }

    #[test]
    fn a_pattern_is_added_once_and_keeps_other_lines() {
        let folder = tempfile::tempdir().unwrap();
        let exclude = folder.path().join("info/exclude");
        for _ in 0..2 {
            add_pattern(&exclude, b"/night.log").unwrap();
        }
        add_pattern(&exclude, b"/other").unwrap();
        assert_eq!(std::fs::read(&exclude).unwrap(), b"/night.log\n/other\n");
    }
}
