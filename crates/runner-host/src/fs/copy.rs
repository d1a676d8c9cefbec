//! Copies of files and folders.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::{fs, io};

/// How safe a copy must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CopySafety {
    /// Every file is on the disk afterwards.
    Durable,
    /// A crash may lose it, because it can be made again.
    Cached,
}

/// Copies a file, link or folder with permissions and times to a path that does not exist. Named pipes and the like are left
/// out. Where the file system can, the copy shares its content with the original until one of them changes.
pub(crate) fn copy_tree(from: &Path, to: &Path, safety: CopySafety) -> io::Result<()> {
    let metadata = from.symlink_metadata()?;
    if metadata.is_symlink() {
        return std::os::unix::fs::symlink(fs::read_link(from)?, to);
    }
    if metadata.is_file() {
        let mut target = fs::File::options().write(true).create_new(true).open(to)?;
        io::copy(&mut fs::File::open(from)?, &mut target)?;
        target.set_times(fs::FileTimes::new().set_modified(metadata.modified()?))?;
        target.set_permissions(metadata.permissions())?;
        return if safety == CopySafety::Durable { target.sync_all() } else { Ok(()) };
    }
    if metadata.is_dir() {
        fs::create_dir(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy_tree(&entry.path(), &to.join(entry.file_name()), safety)?;
        }
        let folder = fs::File::open(to)?;
        folder.set_times(fs::FileTimes::new().set_modified(metadata.modified()?))?;
        if safety == CopySafety::Durable {
            folder.sync_all()?;
        }
        return fs::set_permissions(to, fs::Permissions::from_mode(metadata.mode() | 0o700));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_content_links_and_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let from = folder.path().join("from");
        fs::create_dir_all(from.join("sub")).unwrap();
        fs::write(from.join("sub/file"), "content").unwrap();
        fs::set_permissions(from.join("sub/file"), fs::Permissions::from_mode(0o750)).unwrap();
        std::os::unix::fs::symlink("sub/file", from.join("link")).unwrap();
        for (name, safety) in [("one", CopySafety::Durable), ("two", CopySafety::Cached)] {
            let to = folder.path().join(name);
            copy_tree(&from, &to, safety).unwrap();
            assert_eq!(fs::read_to_string(to.join("link")).unwrap(), "content");
            let [old, new] = [&from, &to].map(|root| fs::metadata(root.join("sub/file")).unwrap());
            assert_eq!((new.mode() & 0o777, new.mtime()), (0o750, old.mtime()));
            assert!(copy_tree(&from, &to, safety).is_err(), "nothing is overwritten");
        }
    }
}
