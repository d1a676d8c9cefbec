//! Makes the table of the page's files that the binary carries. Without built files the table is empty, and the
//! server is an API alone; with `RUNNER_REQUIRE_UI=1` that is an error.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=dist");
    println!("cargo::rerun-if-env-changed=RUNNER_REQUIRE_UI");
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("dist");
    let mut files = Vec::new();
    collect(&root, "", &mut files);
    files.sort();
    if files.is_empty() && env::var_os("RUNNER_REQUIRE_UI").is_some() {
        println!("cargo::error=dist/ has no page; build it: just ui-build");
    }
    let mut table = String::from("&[\n");
    for (name, path) in &files {
        let _ = writeln!(table, "    ({name:?}, include_bytes!({path:?})),");
    }
    table.push_str("]\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default()).join("page.rs");
    if let Err(error) = fs::write(&out, table) {
        println!("cargo::error={}: {error}", out.display());
    }
}

/// The files below a folder, by their names from it.
fn collect(folder: &Path, prefix: &str, files: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.path().is_dir() {
            collect(&entry.path(), &format!("{name}/"), files);
        } else {
            files.push((name, entry.path().display().to_string()));
        }
    }
}
