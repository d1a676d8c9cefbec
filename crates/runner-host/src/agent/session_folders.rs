//! The folders that a session may write to: the repository without `.git`, and others that its configuration allows.

use std::path::{Component, Path, PathBuf};

/// Why a session may not write to a path, if it may not. The repository is the first of the folders.
pub(super) fn write_refusal(path: &Path, folders: &[PathBuf]) -> Option<String> {
    let (root, others) = folders.split_first()?;
    let target = resolve_existing(&root.join(path));
    let is_in_git = target.starts_with(resolve_existing(&root.join(".git")));
    let is_in_repository = target.starts_with(resolve_existing(root)) && !is_in_git;
    let is_in_other = others.iter().any(|folder| target.starts_with(resolve_existing(folder)));
    if is_in_repository || is_in_other {
        return None;
    }
    let path = path.display();
    Some(format!("this session may not write `{path}`: only files in the repository, outside of .git"))
}

/// Resolves the links in the part of a path that exists. Empty if the rest contains `..`, which leads nowhere known.
fn resolve_existing(path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        if let (Ok(resolved), Ok(rest)) = (ancestor.canonicalize(), path.strip_prefix(ancestor)) {
            let goes_up = rest.components().any(|part| part == Component::ParentDir);
            return if goes_up { PathBuf::new() } else { resolved.join(rest) };
        }
    }
    PathBuf::new()
}
