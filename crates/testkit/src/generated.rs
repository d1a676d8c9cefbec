//! Files that are made from the code: a test compares them, `just generate` writes them anew.

use std::path::Path;

/// Holds a file of this repository to what the code says. The test's name ends in `is_generated`, which is how
/// `just generate` finds it.
///
/// # Panics
///
/// If the file holds anything else.
pub fn assert_generated(name: &str, bytes: &[u8]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        std::fs::write(&path, bytes).expect("the file can be written");
    }
    let found = std::fs::read(&path).unwrap_or_default();
    assert!(found == bytes, "{name} is not what the code says: run 'just generate'");
}
