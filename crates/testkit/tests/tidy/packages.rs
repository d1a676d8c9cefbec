//! Packages and workflows: what installs a release fits what `scripts/release` makes, and the workflows can run.

use std::process::Command;

use cargo_metadata::MetadataCommand;

use crate::repository::{TrackedFile, files, root};

fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).expect("a tracked file")
}

/// The templates of `cargo binstall`, filled in for a version and a target.
fn filled(template: &str) -> String {
    let values = [
        ("{ repo }", "https://host.example/owner/runner"),
        ("{ version }", "1.2.3"),
        ("{ target }", "x86_64-unknown-linux-musl"),
        ("{ bin }", "runner"),
    ];
    values.iter().fold(template.to_owned(), |text, (name, value)| text.replace(name, value))
}

#[test]
fn binstall_finds_the_archive_that_a_release_has() {
    let metadata = MetadataCommand::new().current_dir(root()).no_deps().exec().expect("cargo metadata");
    let package = metadata.packages.iter().find(|package| package.name.as_str() == "runner").expect("runner");
    let binstall = &package.metadata["binstall"];
    let key = |name: &str| filled(binstall[name].as_str().expect("a template"));
    let archive = "runner-1.2.3-x86_64-unknown-linux-musl";
    let address = format!("https://host.example/owner/runner/releases/download/v1.2.3/{archive}.tar.gz");
    assert_eq!((key("pkg-url"), key("pkg-fmt")), (address, "tgz".to_owned()));
    assert_eq!(key("bin-dir"), format!("{archive}/bin/runner"));
    // The names that the script gives to the archive and to the folder in it.
    let script = text("scripts/release");
    for line in [
        "local name=runner-$version-$1",
        "tree \"$work/$name\" \"$1\"",
        "\"$1/bin/runner\"",
        "\"$out/$name.tar.gz\"",
    ] {
        assert!(script.contains(line), "scripts/release: `{line}`");
    }
    let guide = text("docs/guide/install.md");
    assert!(
        package.repository.is_some() || guide.contains("--pkg-url"),
        "without `repository` an address must be typed"
    );
    let (_, typed) = guide.split_once("--pkg-url 'URL/").expect("an address in the guide");
    let (template, _) = typed.split_once('\'').expect("a quote");
    assert_eq!(filled(template), format!("{archive}.tar.gz"));
}

#[test]
fn a_release_does_not_replace_other_folders() {
    let folder = tempfile::tempdir().expect("a folder");
    let kept = folder.path().join("kept.txt");
    std::fs::write(&kept, "mine").expect("a file");
    let output = Command::new(root().join("scripts/release"))
        .arg(folder.path())
        .env("RUNNER_TARGETS", "no-such-target")
        .output()
        .expect("the script");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && errors.contains("has other files than packages"), "{errors}");
    assert!(kept.exists());
}

#[test]
fn a_release_depends_on_no_settings_of_the_shell() {
    let script = text("scripts/release");
    for name in [
        "CARGO_ENCODED_RUSTFLAGS",
        "RUSTC_WRAPPER",
        "RUSTC_WORKSPACE_WRAPPER",
        "CARGO_PROFILE_",
        "rustup; do",
    ] {
        assert!(script.contains(name), "{name}");
    }
    let fetch = script.find("cargo fetch --quiet --locked").expect("a fetch");
    assert!(
        fetch < script.find("cargo build").expect("a build"),
        "the build and `cargo metadata` need no network"
    );
}

fn workflows() -> Vec<TrackedFile> {
    files().into_iter().filter(|file| file.path.starts_with(".github/workflows/")).collect()
}

#[test]
fn workflows_keep_the_path_of_the_user_as_root() {
    let workflows = workflows();
    assert!(!workflows.is_empty());
    for file in &workflows {
        // `secure_path` of sudo replaces PATH, whatever is preserved.
        assert!(!file.text.contains("--preserve-env"), "{}: use sudo env \"PATH=$PATH\"", file.path);
    }
}

#[test]
fn a_workflow_compares_two_builds_of_the_packages() {
    let is_full = |line: &str| line.contains("scripts/release-check") && !line.contains("--once");
    assert!(workflows().iter().any(|file| file.text.lines().any(is_full)));
}
