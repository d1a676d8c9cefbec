//! Finds the real agents' programs, at the versions that `scripts/tool` pins.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The path of an agent's program: `TEST_<NAME>_BIN`, or else the one that `scripts/tool` installed. If it is missing, the
/// panic message has the command that installs it.
pub fn program(name: &str) -> PathBuf {
    let variable = format!("TEST_{}_BIN", name.to_uppercase());
    let path = std::env::var_os(&variable).map_or_else(|| pin(name).1, PathBuf::from);
    assert!(
        path.is_file(),
        "`{name}` is not at {}: install it with 'scripts/tool {name}', or set {variable}",
        path.display()
    );
    path
}

/// The version of the agent that the tests expect.
pub fn pinned_version(name: &str) -> String {
    pin(name).0
}

fn pin(name: &str) -> (String, PathBuf) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let output = Command::new(root.join("scripts/tool")).args(["--pin", name]).output().expect("bash");
    let stdout = String::from_utf8_lossy(&output.stdout);
    let (version, path) = stdout
        .trim_end()
        .split_once(' ')
        .unwrap_or_else(|| panic!("scripts/tool --pin {name}: {}", String::from_utf8_lossy(&output.stderr)));
    (version.to_owned(), path.into())
}
