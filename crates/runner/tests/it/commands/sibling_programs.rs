//! `runner ui`, `watch`, `export` and `eval`, which execute sibling programs.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use testkit::test_repo::{TestRepo, run};

/// A copy of the runner in a folder of its own.
fn installed(sandbox: &TestRepo, name: &str) -> std::path::PathBuf {
    let folder = sandbox.outside().join(name);
    fs::create_dir(&folder).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_runner"), folder.join("runner")).unwrap();
    folder
}

fn write_runner_ui(folder: &std::path::Path, prefix: &str) {
    write_program(folder, "runner-ui", prefix);
}

fn write_program(folder: &std::path::Path, name: &str, prefix: &str) {
    let path = folder.join(name);
    fs::write(&path, format!("#!/bin/sh\necho {prefix} \"$@\"\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn ui_runs_the_program_beside_the_runner_with_all_arguments() {
    let sandbox = TestRepo::with_commit(env!("CARGO_BIN_EXE_runner"));
    let folder = installed(&sandbox, "bin");
    write_runner_ui(&folder, "beside");
    let ran =
        run(sandbox.command(folder.join("runner")).args(["-C", "x", "ui", "--port", "0", "--open"])).ok();
    assert_eq!(ran.stdout, "beside --project-dir x --port 0 --open\n");
    let ran = run(sandbox.command(folder.join("runner")).args(["--json", "ui"])).ok();
    assert_eq!(ran.stdout, "beside --project-dir . --json\n");
    let ran =
        run(sandbox.command(folder.join("runner")).args(["-C", "x", "watch", "nightly", "--poll"])).ok();
    assert_eq!(ran.stdout, "beside --project-dir x watch nightly --poll\n");
    let ran = run(sandbox.command(folder.join("runner")).args(["--color", "never", "watch"])).ok();
    assert_eq!(ran.stdout, "beside --project-dir . watch --color never\n");
    let ran = run(sandbox.command(folder.join("runner")).args(["export", "json", "--out", "y"])).ok();
    assert_eq!(ran.stdout, "beside --project-dir . export json --out y\n");
    let ran = run(sandbox.command(folder.join("runner")).args(["watch", "--run", "nightly"])).ok();
    assert_eq!(ran.stdout, "beside --project-dir . watch nightly\n");
    let ran = run(sandbox.command(folder.join("runner")).args(["export", "--run", "nightly", "html"])).ok();
    assert_eq!(ran.stdout, "beside --project-dir . export html nightly\n");
}

#[test]
fn ui_is_found_on_the_path_or_reported_with_a_hint() {
    let sandbox = TestRepo::with_commit(env!("CARGO_BIN_EXE_runner"));
    let (folder, other) = (installed(&sandbox, "bin"), sandbox.outside().join("other"));
    fs::create_dir(&other).unwrap();
    write_runner_ui(&other, "path");
    let path = format!("{}:/usr/bin:/bin", other.display());
    let ran = run(sandbox.command(folder.join("runner")).arg("ui").env("PATH", path)).ok();
    assert_eq!(ran.stdout, "path --project-dir .\n");
    let output = run(sandbox.command(folder.join("runner")).arg("ui").env("PATH", "/nowhere")).refused(1);
    assert!(
        output.contains("neither beside `runner` nor on PATH") && output.contains("cargo install"),
        "{output}"
    );
}

#[test]
fn eval_runs_the_program_beside_the_runner_with_all_arguments() {
    let sandbox = TestRepo::with_commit(env!("CARGO_BIN_EXE_runner"));
    let folder = installed(&sandbox, "bin");
    let output =
        run(sandbox.command(folder.join("runner")).args(["eval", "list"]).env("PATH", "/usr/bin:/bin"));
    assert!(output.refused(1).contains("cargo install --locked --path crates/runner-eval"));
    write_program(&folder, "runner-eval", "eval");
    let ran =
        run(sandbox.command(folder.join("runner")).args(["--json", "-C", "x", "eval", "run", "--jobs", "2"]))
            .ok();
    assert_eq!(ran.stdout, "eval -C x --json run --jobs 2\n");
    let ran =
        run(sandbox.command(folder.join("runner")).args(["--color", "always", "-v", "eval", "list"])).ok();
    assert_eq!(ran.stdout, "eval -C . --verbose --color always list\n");
}
