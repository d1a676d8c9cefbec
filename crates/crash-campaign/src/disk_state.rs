//! Compares what two faults leave on the disk.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::SeekFrom;

const BLOCK_BYTES: usize = 4096;

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

/// A hash of the content of a file with holes, which count as such.
pub(crate) fn hash_sparse_file(path: &Path) -> String {
    let mut file = File::open(path).expect("a file");
    let mut hasher = DefaultHasher::new();
    let mut at = 0;
    // Fails after the last byte of data.
    while let Ok(start) = rustix::fs::seek(&file, SeekFrom::Data(at)) {
        let end = rustix::fs::seek(&file, SeekFrom::Hole(start)).expect("the end of the data");
        rustix::fs::seek(&file, SeekFrom::Start(start)).expect("the start of the data");
        let mut bytes = Vec::new();
        (&mut file).take(end - start).read_to_end(&mut bytes).expect("the data");
        // A block of zeros may be a hole in another copy.
        for (offset, block) in (start..).step_by(BLOCK_BYTES).zip(bytes.chunks(BLOCK_BYTES)) {
            if block.iter().any(|byte| *byte != 0) {
                (offset, block).hash(&mut hasher);
            }
        }
        at = end;
    }
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

    use super::{BLOCK_BYTES, hash_folder, hash_sparse_file};

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
    fn a_block_of_zeros_is_a_hole() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            fs::write(&path, bytes).expect("a file");
            path
        };
        let zeros = vec![0; 8 * BLOCK_BYTES];
        let mut changed = zeros.clone();
        changed[5 * BLOCK_BYTES] = 1;
        let [zeros, changed] =
            [("zeros", zeros), ("changed", changed)].map(|(name, bytes)| write(name, &bytes));
        let hole = write("hole", &[]);
        fs::File::options().write(true).open(&hole).expect("a file").set_len(8 * 4096).expect("a hole");
        assert_eq!(hash_sparse_file(&zeros), hash_sparse_file(&hole));
        assert_ne!(hash_sparse_file(&zeros), hash_sparse_file(&changed));
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
