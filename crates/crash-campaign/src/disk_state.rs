//! Compares what two faults leave on the disk.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A hash of all names, permissions, times and contents below a folder. Times of folders do not count: a lock file that came and
/// went changes them, and neither git nor the runner reads them.
pub(crate) fn hash_folder(folder: &Path) -> String {
    // Two hashes of 64 bits with different first words: by chance, two states never agree in both.
    let mut hashers = [DefaultHasher::new(), DefaultHasher::new()];
    for (seed, hasher) in hashers.iter_mut().enumerate() {
        seed.hash(hasher);
    }
    add_folder(folder, folder, &mut hashers);
    hashers.iter().map(|hasher| format!("{:016x}", hasher.finish())).collect()
}

/// A hash of one file, such as a program.
pub(crate) fn hash_file(path: &Path) -> String {
    let mut hasher = DefaultHasher::new();
    fs::read(path).unwrap_or_default().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

fn add_folder(root: &Path, folder: &Path, hashers: &mut [DefaultHasher; 2]) {
    let mut entries: Vec<_> = fs::read_dir(folder).into_iter().flatten().flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let Ok(metadata) = entry.metadata() else { continue };
        let times = if metadata.is_dir() { (0, 0) } else { (metadata.mtime(), metadata.mtime_nsec()) };
        let content = if metadata.is_file() {
            fs::read(&path).unwrap_or_default()
        } else if metadata.is_symlink() {
            fs::read_link(&path).unwrap_or_default().into_os_string().into_encoded_bytes()
        } else {
            Vec::new()
        };
        let name = path.strip_prefix(root).unwrap_or(&path);
        for hasher in hashers.iter_mut() {
            (name, metadata.mode(), times, &content).hash(hasher);
        }
        if metadata.is_dir() {
            add_folder(root, &path, hashers);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::hash_folder;

    #[test]
    fn every_change_of_a_file_changes_the_hash() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let mut hashes = vec![hash_folder(folder.path())];
        let mut note = || hashes.push(hash_folder(folder.path()));
        fs::create_dir(path("sub")).expect("a folder");
        note();
        fs::write(path("sub/a"), "1").expect("a file");
        note();
        fs::write(path("sub/a"), "2").expect("a file");
        note();
        fs::rename(path("sub/a"), path("sub/b")).expect("rename");
        note();
        std::os::unix::fs::symlink("b", path("sub/c")).expect("a link");
        note();
        let count = hashes.len();
        hashes.sort();
        hashes.dedup();
        assert_eq!(hashes.len(), count, "{hashes:?}");
    }

    #[test]
    fn a_lock_that_came_and_went_leaves_the_same_state() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("a"), "1").expect("a file");
        let before = hash_folder(folder.path());
        fs::write(folder.path().join("a.lock"), "").expect("a file");
        assert_ne!(hash_folder(folder.path()), before);
        fs::remove_file(folder.path().join("a.lock")).expect("the lock");
        assert_eq!(hash_folder(folder.path()), before);
    }
}
