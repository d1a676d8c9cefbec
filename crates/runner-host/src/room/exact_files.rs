//! Protected and check files have the bytes of the candidate in a room, whatever its attributes make of them in a checkout.

use std::fs;
use std::path::PathBuf;

use runner_core::model::object_id::TreeId;

use crate::error::Error;
use crate::fs::atomic;
use crate::git::Git;
use crate::room::checkout::Checkout;

/// A larger file is not read by a program before it runs code of the project.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Compares regular files of a checkout with their tree, and writes those that were converted.
pub(super) fn restore(
    git: &Git,
    checkout: &mut Checkout,
    tree: &TreeId,
    files: &[PathBuf],
) -> Result<(), Error> {
    // The process that reads objects takes one path per line.
    let names =
        files.iter().filter_map(|file| Some((file, file.to_str().filter(|name| !name.contains('\n'))?)));
    let mut written = Vec::new();
    for (file, name) in names {
        let Some(bytes) = git.file_of_tree(tree, name)? else { continue };
        let path = checkout.tree.join(file);
        if atomic::read(&path, FILE_BYTES_MAX)?.is_some_and(|found| found != bytes) {
            fs::write(&path, bytes).map_err(Error::io("write", &path))?;
            written.extend_from_slice(name.as_bytes());
            written.push(0);
        }
    }
    if !written.is_empty() {
        checkout.stage_written(git, &written);
    }
    Ok(())
}
