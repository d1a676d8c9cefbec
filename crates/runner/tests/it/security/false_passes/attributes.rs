//! Attributes that convert the guard's and the checks' files when they are checked out.

use testkit::oracle::assert_sound;
use testkit::run_builder::RunBuilder;

use super::{ROOM, assert_no_false_pass, has_passed};
use crate::RUNNER;

/// With carriage returns, bash reports errors and goes on to the last line.
const SCRIPT: &str = "set -e\ntest -e ok\necho done\n";

fn builder(session: &str) -> RunBuilder {
    RunBuilder::new(RUNNER)
        .guard_keys(ROOM)
        .keys("max_attempts_default = 1")
        .executor_keys("")
        .derive_protection()
        .agent(session)
}

#[test]
fn attributes_do_not_change_the_files_of_the_guard() {
    for session in [
        "echo 'ci.sh text eol=crlf' > .gitattributes; answer done",
        "echo '* text=auto eol=crlf' > .gitattributes; answer done",
        "echo 'ci.sh working-tree-encoding=UTF-16LE' > .gitattributes; answer done",
    ] {
        let repo = builder(session).guard("bash ci.sh").file("ci.sh", SCRIPT).start();
        let output = repo.runner(&["loop"]);
        assert!(!has_passed(&repo), "{session}: {:?}", repo.outcomes());
        assert_no_false_pass(&repo, session, &output);
    }
}

#[test]
fn attributes_do_not_change_the_files_of_a_check() {
    let toml = "[[check]]\nname = \"c\"\ncommand = [\"bash\", \"t/c.sh\"]\nfiles = { \"t/c.sh\" = \"n\" }\n";
    for session in [
        "echo 't/c.sh text eol=crlf' > .gitattributes; answer done",
        "mkdir -p t; echo '* text eol=crlf' > t/.gitattributes; answer done",
    ] {
        let repo = builder(session)
            .file(".runner/nodes/root/checks.toml", toml)
            .file(".runner/nodes/root/n", SCRIPT)
            .start();
        let output = repo.runner(&["loop"]);
        assert!(!has_passed(&repo), "{session}: {:?}", repo.outcomes());
        assert_no_false_pass(&repo, session, &output);
    }
}

#[test]
fn attributes_of_the_users_do_no_harm() {
    let repo = builder("echo 1 > ok; answer done")
        .guard("git diff --exit-code && bash ci.sh && sh crlf.sh")
        .file(".gitattributes", "crlf.sh text eol=crlf\n* text=auto\n")
        .file("crlf.sh", "true\n")
        .file("ci.sh", SCRIPT)
        .start();
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.outcomes(), ["passed"]);
    repo.runner(&["verify", "--rerun", "all"]).ok();
    assert_sound(&repo);
}
