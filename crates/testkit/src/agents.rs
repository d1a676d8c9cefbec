//! The real agents: where their programs are, at the versions that `scripts/tool` pins.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Where an agent's program is: what `TEST_<NAME>_BIN` names, else the one that `scripts/tool` installed. Fails with
/// the command that installs it.
pub fn program(name: &str) -> PathBuf {
    let variable = format!("TEST_{}_BIN", name.to_uppercase());
    let path = std::env::var_os(&variable).map_or_else(|| pin(name).1, PathBuf::from);
    assert!(
        path.is_file(),
        "`{name}` is not at {}: install it with 'scripts/tool {name}', or name another in {variable}",
        path.display()
    );
    path
}

/// The version of an agent that the tests were made for.
pub fn pinned_version(name: &str) -> String {
    pin(name).0
}

fn pin(name: &str) -> (String, PathBuf) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let asked = Command::new(root.join("scripts/tool")).args(["--pin", name]).output().expect("bash");
    let told = String::from_utf8_lossy(&asked.stdout);
    let (version, path) = told
        .trim_end()
        .split_once(' ')
        .unwrap_or_else(|| panic!("scripts/tool --pin {name}: {}", String::from_utf8_lossy(&asked.stderr)));
    (version.to_owned(), path.into())
}
