//! Files generated from the code: a test compares them, `just generate` updates them.

use std::path::Path;

/// Asserts that a file of this repository has this content. The name of the calling test must end in `is_generated`,
/// because `just generate` selects tests by it.
pub fn assert_generated(name: &str, bytes: &[u8]) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(name);
    if std::env::var_os("UPDATE_GENERATED").is_some() {
        std::fs::write(&path, bytes).expect("write the file");
    }
    let actual = std::fs::read(&path).unwrap_or_default();
    assert!(actual == bytes, "{name} is out of date: run 'just generate'");
}
