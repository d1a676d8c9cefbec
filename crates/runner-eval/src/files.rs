//! File operations of the evaluation: atomic writes, copies that do not follow links, and digests of file trees.

pub(crate) mod agent_folders;
mod rootfs_digest;

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use runner_core::model::digest::Sha256;

pub(crate) use agent_folders::copy_tree;
pub(crate) use rootfs_digest::digest_rootfs;

/// A file or link below a folder. Its content stays on the disk: a suite may be larger than the memory.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ListedEntry {
    /// Relative to the folder.
    path: PathBuf,
    kind: EntryKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum EntryKind {
    File { is_executable: bool },
    Link(PathBuf),
}

/// Lists everything in a folder but the `excluded` files and folders, ordered by path; or the file itself, if `root` is one.
fn list_tree(root: &Path, excluded: &[&str]) -> io::Result<Vec<ListedEntry>> {
    let mut entries = Vec::new();
    if fs::symlink_metadata(root)?.is_dir() {
        list_folder(root, Path::new(""), excluded, &mut entries)?;
    } else {
        entries.push(ListedEntry { path: PathBuf::new(), kind: entry_kind(root)? });
    }
    Ok(entries)
}

fn list_folder(
    root: &Path,
    relative: &Path,
    excluded: &[&str],
    entries: &mut Vec<ListedEntry>,
) -> io::Result<()> {
    let mut found: Vec<_> = fs::read_dir(root.join(relative))?.collect::<Result<_, _>>()?;
    found.sort_by_key(fs::DirEntry::file_name);
    for entry in found {
        let path = relative.join(entry.file_name());
        if excluded.iter().any(|name| path == Path::new(name)) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            list_folder(root, &path, excluded, entries)?;
        } else {
            entries.push(ListedEntry { kind: entry_kind(&root.join(&path))?, path });
        }
    }
    Ok(())
}

fn entry_kind(path: &Path) -> io::Result<EntryKind> {
    let metadata = fs::symlink_metadata(path)?;
    if metadata.is_symlink() {
        return Ok(EntryKind::Link(fs::read_link(path)?));
    }
    if !metadata.is_file() {
        return Err(io::Error::other(format!(
            "`{}` is neither a file nor a folder nor a link",
            path.display()
        )));
    }
    Ok(EntryKind::File { is_executable: metadata.permissions().mode() & 0o111 != 0 })
}

/// One digest of all files below a folder, without the `excluded` files and folders: names, contents and executable bits. Or the digest
/// of the file itself, if `root` is one.
pub(crate) fn digest_tree(root: &Path, excluded: &[&str]) -> io::Result<Sha256> {
    let mut listing = String::new();
    for ListedEntry { path, kind } in list_tree(root, excluded)? {
        let (kind, content) = match kind {
            EntryKind::File { is_executable } => {
                let content = Sha256::of(&fs::read(join(root, &path))?);
                (if is_executable { "program" } else { "file" }, content)
            }
            EntryKind::Link(target) => ("link", Sha256::of(target.as_os_str().as_encoded_bytes())),
        };
        let name = Sha256::of(path.as_os_str().as_encoded_bytes());
        listing.push_str(&format!("{kind} {name} {content}\n"));
    }
    Ok(Sha256::of(listing.as_bytes()))
}

/// Joining an empty path would add a slash, which a file does not have.
fn join(root: &Path, path: &Path) -> PathBuf {
    if path.as_os_str().is_empty() { root.to_owned() } else { root.join(path) }
}

/// Copies the files below `source` into a folder and replaces whatever exists at their paths. It never writes through a
/// link: a link in a parent path, perhaps an agent's, is replaced by a folder.
pub(crate) fn copy_files_into(source: &Path, folder: &Path) -> io::Result<()> {
    for ListedEntry { path, kind } in list_tree(source, &[])? {
        let mut parent = folder.to_owned();
        for component in path.parent().into_iter().flat_map(Path::components) {
            parent.push(component);
            if !fs::symlink_metadata(&parent).is_ok_and(|metadata| metadata.is_dir()) {
                remove_any(&parent)?;
                fs::create_dir(&parent)?;
            }
        }
        let target = folder.join(&path);
        remove_any(&target)?;
        match kind {
            EntryKind::Link(link) => symlink(link, &target)?,
            EntryKind::File { is_executable } => {
                fs::copy(join(source, &path), &target)?;
                let mode = if is_executable { 0o755 } else { 0o644 };
                fs::set_permissions(&target, fs::Permissions::from_mode(mode))?;
            }
        }
    }
    Ok(())
}

/// The paths of the files below a folder, relative to it, ordered.
pub(crate) fn relative_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    Ok(list_tree(folder, &[])?.into_iter().map(|entry| entry.path).collect())
}

/// Removes whatever is at a path, whatever an agent made of it.
pub(crate) fn remove_any(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(metadata) if metadata.is_dir() => agent_folders::remove_folder(path),
        Ok(_) => fs::remove_file(path),
    }
}

/// Replaces a file atomically: every reader sees the old bytes or the new ones.
pub(crate) fn write_atomic(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = temporary_path(path);
    let mut file = fs::File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, path)
}

/// Creates a file atomically; false if it already exists.
pub(crate) fn create_new(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let temporary = temporary_path(path);
    fs::write(&temporary, bytes)?;
    let linked = fs::hard_link(&temporary, path);
    fs::remove_file(&temporary)?;
    match linked {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        linked => linked.map(|()| true),
    }
}

/// Creates a link, or points an existing one at another target.
pub(crate) fn replace_link(target: &Path, path: &Path) -> io::Result<()> {
    let temporary = temporary_path(path);
    remove_any(&temporary)?;
    symlink(target, &temporary)?;
    fs::rename(&temporary, path)
}

/// A path in the same folder that no other process uses.
fn temporary_path(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}", std::process::id()))
}

/// The absolute path, or the path itself if the current folder cannot be read.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copied_tree_has_the_same_digest_and_a_change_alters_it() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("source");
        let copy = folder.path().join("copy");
        fs::create_dir_all(source.join("a")).unwrap();
        fs::write(source.join("a/x"), "1").unwrap();
        fs::set_permissions(source.join("a/x"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("a/x", source.join("l")).unwrap();
        let digest = || digest_tree(&source, &[]).unwrap();
        fs::create_dir(&copy).unwrap();
        copy_files_into(&source, &copy).unwrap();
        assert_eq!(digest_tree(&copy, &[]).unwrap(), digest());
        fs::write(copy.join("a/x"), "2").unwrap();
        assert_ne!(digest_tree(&copy, &[]).unwrap(), digest());
        assert_eq!(digest_tree(&copy, &["a/x"]).unwrap(), digest_tree(&source, &["a/x"]).unwrap());
    }

    #[test]
    fn files_are_not_copied_through_links() {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("source");
        let outside = folder.path().join("outside");
        let workspace = folder.path().join("workspace");
        fs::create_dir_all(source.join("tests")).unwrap();
        fs::write(source.join("tests/t"), "check").unwrap();
        fs::create_dir(&outside).unwrap();
        fs::create_dir(&workspace).unwrap();
        symlink(&outside, workspace.join("tests")).unwrap();
        copy_files_into(&source, &workspace).unwrap();
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
        assert_eq!(fs::read(workspace.join("tests/t")).unwrap(), b"check");
    }

    #[test]
    fn create_new_keeps_an_existing_file_and_leaves_no_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("plan");
        assert!(create_new(&path, b"one").unwrap());
        assert!(!create_new(&path, b"two").unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"one");
        write_atomic(&path, b"three").unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
