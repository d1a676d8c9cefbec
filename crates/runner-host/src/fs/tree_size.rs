//! The size of a folder with everything in it.

use std::path::Path;

/// Whether the files at a path have more bytes than this. It stops counting there, and does not follow links.
pub(crate) fn is_larger(path: &Path, bytes_max: u64) -> bool {
    let mut left = bytes_max;
    !fits(path, &mut left)
}

/// Subtracts the size of everything at a path; `false` if it does not fit.
pub(crate) fn fits(path: &Path, left: &mut u64) -> bool {
    let Ok(metadata) = path.symlink_metadata() else { return true };
    if !metadata.is_dir() {
        let fits = metadata.len() <= *left;
        *left = left.saturating_sub(metadata.len());
        return fits;
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.into_iter().all(|entry| fits(&entry.path(), left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_of_a_folder_count() {
        let folder = std::env::temp_dir().join(format!("runner-tree-size-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("sub")).unwrap();
        std::fs::write(folder.join("sub/a"), [0; 60]).unwrap();
        std::fs::write(folder.join("b"), [0; 40]).unwrap();
        assert!(!is_larger(&folder, 100));
        assert!(is_larger(&folder, 99));
        assert!(!is_larger(&folder.join("missing"), 0));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
