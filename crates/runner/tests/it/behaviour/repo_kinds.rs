//! Kinds of repositories: work trees, submodules, object formats, clones, sparse checkouts.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use testkit::test_repo::{TestRepo, run};

use crate::GOAL;
use crate::RUNNER;
use crate::ready;

/// Starts twice and runs the read-only commands, from the root and from a folder below it.
fn works_here(sandbox: &TestRepo) {
    sandbox.runner(&["init"]).ok();
    sandbox.write(".runner/GOAL.md", GOAL);
    let started = sandbox.runner(&["start"]).ok();
    assert_eq!(started.value("kind"), Some("started"));
    std::fs::create_dir_all(sandbox.path("deep/er")).unwrap();
    let below = run(sandbox.runner_command(&["start"]).current_dir(sandbox.path("deep/er"))).ok();
    assert_eq!((below.value("kind"), below.value("commit")), (Some("resumed"), started.value("commit")));
    assert_eq!(sandbox.runner(&["validate"]).ok().value("valid"), Some("true problems=0"));
    assert_eq!(sandbox.runner(&["status"]).ok().value("state"), Some("stopped"));
    assert_eq!(sandbox.git(&["status", "--porcelain", "-uall"]), "");
    assert_eq!(sandbox.git(&["fsck", "--strict"]), "");
}

#[test]
fn path_with_spaces_and_invalid_utf8_works() {
    let sandbox = TestRepo::empty(RUNNER);
    let odd = sandbox.outside().join(OsStr::from_bytes(b"a b\xff'\"$x"));
    std::fs::create_dir(&odd).unwrap();
    let sandbox = sandbox.at(odd);
    sandbox.git(&["init", "-q", "-b", "main"]);
    std::fs::write(sandbox.root().join(OsStr::from_bytes(b"odd \xfe\nname")), "x").unwrap();
    sandbox.commit_all("root");
    works_here(&sandbox);
}

#[test]
fn linked_work_tree_works() {
    let sandbox = TestRepo::with_commit(RUNNER);
    let linked = sandbox.outside().join("linked tree");
    sandbox.git(&["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
    works_here(&sandbox.at(linked));
}

#[test]
fn submodule_as_the_root_works() {
    let library = TestRepo::with_commit(RUNNER);
    let sandbox = TestRepo::with_commit(RUNNER);
    let from = library.root().to_str().unwrap();
    sandbox.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", from, "lib"]);
    sandbox.commit_all("with a library");
    let inner = sandbox.path("lib");
    works_here(&sandbox.at(inner));
}

#[test]
fn sha256_repository_works() {
    let sandbox = TestRepo::empty(RUNNER);
    sandbox.git(&["init", "-q", "-b", "main", "--object-format=sha256"]);
    sandbox.commit_all("root");
    works_here(&sandbox);
}

#[test]
fn reftable_repository_works() {
    let sandbox = TestRepo::empty(RUNNER);
    sandbox.git(&["init", "-q", "-b", "main", "--ref-format=reftable"]);
    sandbox.commit_all("root");
    works_here(&sandbox);
}

#[test]
fn shallow_clone_works() {
    let origin = TestRepo::with_commit(RUNNER);
    origin.commit_all("second");
    let sandbox = TestRepo::empty(RUNNER);
    let url = format!("file://{}", origin.root().display());
    sandbox.git(&["clone", "-q", "--depth=1", &url, "clone"]);
    let clone = sandbox.path("clone");
    works_here(&sandbox.at(clone));
}

#[test]
fn sparse_checkout_with_sparse_index_works() {
    let sandbox = TestRepo::with_commit(RUNNER);
    sandbox.write("in/a", "a");
    sandbox.write("out/b", "b");
    sandbox.commit_all("folders");
    sandbox.git(&["sparse-checkout", "set", "--cone", "in"]);
    sandbox.git(&["update-index", "--index-version", "4"]);
    works_here(&sandbox);
    assert!(!sandbox.path("out").exists(), "what is outside the cone stays outside");
    assert_eq!(sandbox.git(&["show", "HEAD:out/b"]), "b", "and is still in the commit");
}

#[test]
fn converted_line_endings_work() {
    let sandbox = TestRepo::with_commit(RUNNER);
    sandbox.git(&["config", "core.autocrlf", "true"]);
    sandbox.write(".gitattributes", "* text=auto eol=crlf\n");
    sandbox.commit_all("attributes");
    sandbox.runner(&["init"]).ok();
    sandbox.write(".runner/GOAL.md", GOAL);
    sandbox.runner(&["start"]).ok();
    let committed = sandbox.git(&["cat-file", "blob", "HEAD:.runner/state/tree.json"]) + "\n";
    assert_eq!(committed, sandbox.read(".runner/state/tree.json"), "the bytes are the runner's own");
    assert_eq!(sandbox.runner(&["start"]).ok().value("kind"), Some("resumed"));
}

#[test]
fn git_variables_in_the_environment_are_ignored() {
    let other = TestRepo::with_commit(RUNNER);
    let sandbox = ready();
    let before = other.branches();
    let mut command = sandbox.runner_command(&["start"]);
    command
        .env("GIT_DIR", other.path(".git"))
        .env("GIT_WORK_TREE", other.root())
        .env("GIT_INDEX_FILE", other.path(".git/index"))
        .env("GIT_OBJECT_DIRECTORY", other.path(".git/objects"))
        .env("GIT_COMMON_DIR", other.path(".git"))
        .env("GIT_NAMESPACE", "x")
        .env("GIT_PREFIX", "y/")
        .env("GIT_CONFIG_COUNT", "1")
        .env("GIT_CONFIG_KEY_0", "core.bare")
        .env("GIT_CONFIG_VALUE_0", "true")
        .env("GIT_EXTERNAL_DIFF", "false")
        .env("GIT_TRACE", "1");
    run(&mut command).ok();
    assert!(sandbox.git(&["branch", "--show-current"]).starts_with("runner/"));
    assert_eq!(other.branches(), before);
}

#[test]
fn fresh_clone_of_a_run_works() {
    let origin = ready();
    origin.runner(&["start"]).ok();
    let branch = origin.git(&["branch", "--show-current"]);
    let sandbox = TestRepo::empty(RUNNER);
    sandbox.git(&["clone", "-q", origin.root().to_str().unwrap(), "clone"]);
    let clone = sandbox.path("clone");
    let sandbox = sandbox.at(clone);
    assert_eq!(sandbox.runner(&["status"]).ok().value("state"), Some("stopped"));
    assert_eq!(sandbox.runner(&["start"]).ok().value("branch"), Some(branch.as_str()));
    assert_eq!(sandbox.git(&["status", "--porcelain", "-uall"]), "");
}

#[test]
fn missing_and_bare_repositories_are_refused() {
    let sandbox = TestRepo::empty(RUNNER);
    for command in ["init", "start", "validate", "select", "status", "tree"] {
        let refused = sandbox.runner(&[command]).refused(2);
        assert!(refused.contains("is not in a git repository") && refused.contains("git init"), "{refused}");
    }
    sandbox.git(&["init", "-q", "--bare"]);
    assert!(sandbox.runner(&["start"]).refused(2).contains("bare repository"));
    assert!(sandbox.runner(&["-C", "nowhere", "status"]).refused(1).contains("nowhere"));
}
