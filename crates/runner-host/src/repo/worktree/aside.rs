//! Files that cannot be committed. They are moved to `.git/runner/aside/<name>/`, each under a number of its own, and
//! `manifest.json` there records where each came from and why.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use runner_core::model::id::IterationNumber;
use runner_core::model::repo_path::RepoPath;
use runner_core::step::{FileAction, FileNotice};
use runner_core::strict::canonical_json;
use serde::{Deserialize, Serialize};

use super::permissions::{FolderAccess, open_files, open_folders};
use crate::clock::now_ms;
use crate::error::Error;
use crate::fs::atomic;
use crate::fs::copy::{CopySafety, copy_tree};
use crate::git::{Git, path_of};
use crate::redaction::redactor;

const MANIFEST: &str = "manifest.json";
const MANIFEST_BYTES_MAX: u64 = 64 << 20;

/// How many bytes of a file's own name its name in the folder has at most. A name may have 255.
const NAME_BYTES_MAX: usize = 200;

/// A path to set aside.
pub(super) struct AsideItem {
    /// Relative to the root, as git prints it.
    pub(super) path: Vec<u8>,
    pub(super) reason: &'static str,
}

/// One file in the manifest.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ManifestEntry {
    path: RepoPath,
    /// Its name in this folder; none for a file without content, which was removed.
    name: Option<String>,
    reason: String,
    bytes: u64,
    /// File type and permissions, in octal.
    mode: String,
    /// Milliseconds since 1970.
    at_ms: u64,
}

/// The folder for what one iteration, or one recovery, sets aside.
pub(crate) struct AsideFolder<'g> {
    git: &'g Git,
    folder: PathBuf,
    notices: Vec<FileNotice>,
}

impl<'g> AsideFolder<'g> {
    /// The folder with this name, which is created when something is set aside.
    pub(crate) fn new(git: &'g Git, name: &str) -> Self {
        Self { git, folder: git.paths().set_aside(name), notices: Vec::new() }
    }

    pub(super) fn notices(self) -> Vec<FileNotice> {
        self.notices
    }

    pub(super) fn note(&mut self, path: &[u8], action: FileAction, reason: impl Into<String>) {
        let path = RepoPath::of_bytes(&redactor().redact(path));
        self.notices.push(FileNotice { path, action, reason: reason.into(), restore: None });
    }

    /// Moves paths out of the work tree. Named pipes, sockets and devices have no content and are removed. The manifest is on
    /// the disk before the first path moves. A path that cannot be moved stays and is reported.
    pub(super) fn put(&mut self, items: &[AsideItem]) -> Result<(), Error> {
        if items.is_empty() {
            return Ok(());
        }
        atomic::create_folders(self.git.paths().git_dir(), &self.folder)?;
        let mut manifest = self.manifest();
        let first = manifest.len();
        let mut number = self.highest_number();
        for item in items {
            let metadata = self.git.root().join(path_of(&item.path)).symlink_metadata().ok();
            let has_content = metadata.as_ref().is_some_and(has_content);
            number += u32::from(has_content);
            manifest.push(ManifestEntry {
                path: RepoPath::of_bytes(&item.path),
                name: has_content.then(|| aside_name(number, &item.path)),
                reason: item.reason.to_owned(),
                bytes: metadata.as_ref().map_or(0, MetadataExt::size),
                mode: format!("{:o}", metadata.as_ref().map_or(0, MetadataExt::mode)),
                at_ms: now_ms(),
            });
        }
        self.write_manifest(&manifest)?;
        for (item, entry) in items.iter().zip(manifest.iter().skip(first)) {
            self.move_item(item, entry.name.as_deref());
        }
        fs::File::open(&self.folder)
            .and_then(|folder| folder.sync_all())
            .map_err(Error::io("write", &self.folder))
    }

    fn move_item(&mut self, item: &AsideItem, name: Option<&str>) {
        let from = self.git.root().join(path_of(&item.path));
        let moved = match name {
            Some(name) => move_path(&from, &self.folder.join(name)),
            None => atomic::remove_any(&from).map_err(io::Error::other),
        };
        if let Err(error) = moved {
            let reason = format!("{}, and it could not be moved: {error}", item.reason);
            return self.note(&item.path, FileAction::LeftInPlace, reason);
        }
        let action = if name.is_some() { FileAction::SetAside } else { FileAction::Removed };
        self.note(&item.path, action, item.reason);
        let restore = name.and_then(|name| self.restore_command(name, &item.path));
        if let Some(notice) = self.notices.last_mut() {
            notice.restore = restore;
        }
    }

    /// The command that copies a file back to its path, or to the root if the path has a key; none for a path that is not text.
    fn restore_command(&self, name: &str, path: &[u8]) -> Option<String> {
        let kept = self.folder.join(name);
        let kept = kept.strip_prefix(self.git.root()).unwrap_or(&kept);
        let path = if redactor().redact(path) == path { path } else { b".".as_slice() };
        let path = std::str::from_utf8(path).ok().filter(|path| !path.contains(char::is_control))?;
        Some(format!("cp -a {} {}", shell_word(kept.to_str()?), shell_word(path)))
    }

    /// The entries so far. A manifest that cannot be read is replaced; the files beside it stay.
    fn manifest(&self) -> Vec<ManifestEntry> {
        let bytes = atomic::read(&self.folder.join(MANIFEST), MANIFEST_BYTES_MAX).ok().flatten();
        bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    fn write_manifest(&self, entries: &[ManifestEntry]) -> Result<(), Error> {
        let path = self.folder.join(MANIFEST);
        if path.symlink_metadata().is_ok_and(|metadata| !metadata.is_file()) {
            atomic::remove_any(&path)?;
        }
        atomic::discard_prepared(&path)?;
        atomic::write(&path, &canonical_json(&entries))
    }

    /// The highest number that a name in the folder begins with.
    fn highest_number(&self) -> u32 {
        let number = |entry: fs::DirEntry| entry.file_name().to_str()?.split_once('-')?.0.parse().ok();
        fs::read_dir(&self.folder).into_iter().flatten().flatten().filter_map(number).max().unwrap_or(0)
    }
}

/// What an iteration set aside, from its manifest: for an iteration that a crash interrupted.
pub(crate) fn recorded_notices(git: &Git, iter: IterationNumber) -> Vec<FileNotice> {
    let folder = AsideFolder::new(git, &iter.to_string());
    let notice = |entry: ManifestEntry| FileNotice {
        action: if entry.name.is_some() { FileAction::SetAside } else { FileAction::Removed },
        restore: entry.name.and_then(|name| folder.restore_command(&name, &entry.path.to_bytes())),
        path: RepoPath::of_bytes(&redactor().redact(&entry.path.to_bytes())),
        reason: entry.reason,
    };
    folder.manifest().into_iter().map(notice).collect()
}

fn has_content(metadata: &fs::Metadata) -> bool {
    metadata.is_file() || metadata.is_dir() || metadata.is_symlink()
}

/// `<number>-<file name>`, shortened to whole characters. Bytes that are not UTF-8, and keys, are replaced.
fn aside_name(number: u32, path: &[u8]) -> String {
    let name = path_of(path).file_name().map_or(&b""[..], OsStrExt::as_bytes);
    let name = String::from_utf8_lossy(&redactor().redact(name)).replace(char::is_control, "_");
    format!("{number}-{}", runner_core::text::head(&name, NAME_BYTES_MAX))
}

/// A word of a shell command, quoted if it needs to be.
pub(super) fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._/+@,=:-".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) && !text.starts_with('-') {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Moves a file, link or folder; to another file system by a durable copy. Nothing is removed before the copy is complete.
fn move_path(from: &Path, to: &Path) -> io::Result<()> {
    let _access = FolderAccess::open(from.parent());
    let result = fs::rename(from, to).or_else(|error| {
        // A folder that moves to another parent must be writable itself.
        if error.kind() == ErrorKind::PermissionDenied && from.is_dir() {
            open_folders(from);
            return fs::rename(from, to);
        }
        Err(error)
    });
    match result {
        Err(error) if error.kind() == ErrorKind::CrossesDevices => {
            open_folders(from);
            open_files(from);
            copy_tree(from, to, CopySafety::Durable).inspect_err(|_| drop(atomic::remove_any(to)))?;
            atomic::remove_any(from).map_err(io::Error::other)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_unique() {
        assert_eq!(aside_name(3, b"a/b.bin"), "3-b.bin");
        let long = aside_name(12, "é".repeat(127).as_bytes());
        assert!(long.len() <= 3 + NAME_BYTES_MAX && long.ends_with('é'), "{long}");
        assert_eq!(aside_name(1, b"x/a\nb"), "1-a_b");
    }

    #[test]
    fn words_with_special_characters_are_quoted() {
        assert_eq!(shell_word("a/b-1.bin"), "a/b-1.bin");
        assert_eq!(shell_word("it's $x"), "'it'\\''s $x'");
        assert_eq!((shell_word(""), shell_word("-x")), ("''".to_owned(), "'-x'".to_owned()));
    }
}
