//! Inherited descriptors: a program gets standard input, output and error, and no other descriptor of the user's shell.

use std::fs;

/// The folder with an entry for every open descriptor of this process.
const OPEN: &str = "/dev/fd";
/// Standard input, output and error stay.
const FIRST: i32 = 3;

/// Closes every descriptor that this process inherited, so that no program it starts has it. To be called first, before
/// this process opens anything itself.
pub(crate) fn close_inherited() {
    let names = fs::read_dir(OPEN).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let open: Vec<i32> = names.filter_map(|name| name.to_str()?.parse().ok()).collect();
    for descriptor in open.into_iter().filter(|descriptor| *descriptor >= FIRST) {
        // The one that listed the folder is closed already.
        let _ = nix::unistd::close(descriptor);
    }
}
