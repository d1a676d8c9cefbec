//! The same run in another environment is identical, byte for byte.

use testkit::oracle::assert_sound;
use testkit::run_builder::{BRANCH, RunBuilder};
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;

/// A run with many outcomes: a decomposition, a rule violation, a failed guard, an invalid tree, a repair, passes.
const SCENARIO: &str = r#"
    [[session]]
    when = { node = "root" }
    answer = { status = "decomposed", summary = "three, ä€🦀" }
    [[session.do]]
    add_children = { node = "root", children = [{ id = "b" }, { id = "a" }, { id = "C", title = "Zuletzt", acceptance = ["grün"] }] }
    [[session.do]]
    append = { path = ".runner/state/assumptions.md", text = "- it is so\n" }

    [[session]]
    when = { node = "b", attempts = 0 }
    answer = { status = "done", summary = "too early" }
    [[session.do]]
    write = { path = "b/one.txt", text = "1\n" }
    [[session]]
    when = { node = "b", attempts = 1 }
    answer = { status = "done", summary = "erased" }
    [[session.do]]
    remove_node = { node = "a" }
    [[session]]
    when = { node = "b" }
    answer = { status = "done", summary = "now" }
    [[session.do]]
    write = { path = "ok", text = "ok\n" }
    [[session.do]]
    run = { argv = ["sh", "-c", "echo '#!/bin/sh' > tool; chmod 755 tool; ln -s tool link"] }

    [[session]]
    when = { mode = "repair" }
    answer = { status = "done", summary = "fixed" }
    [[session]]
    when = { node = "a", attempts = 0 }
    answer = { status = "done", summary = "broken" }
    [[session.do]]
    set_field = { node = "a", field = "id", json = "\"../x\"" }
    [[session]]
    answer = { status = "done", summary = "done" }
    [[session.do]]
    append = { path = "log.txt", text = "more\n" }
"#;

const OUTCOMES: [&str; 8] = [
    "decomposed",
    "guard_failed",
    "rule_violation",
    "passed",
    "invalid_tree",
    "repaired",
    "passed",
    "passed",
];

/// The environment of a run.
struct Surroundings {
    zone: &'static str,
    locale: &'static str,
    umask: &'static str,
    folder: &'static str,
    hour: &'static str,
}

/// Everything that must be identical: the tree, the message and the files of each commit.
fn history_of(sandbox: &TestRepo) -> Vec<String> {
    let commits = sandbox.git(&["log", "--reverse", "-9", "--format=%T%n%B%n--", BRANCH]);
    let prompts = (1..=8).map(|iter| sandbox.iteration_file(iter, "prompt.md"));
    let files = ["tree.json", "run_state.json"].map(|name| sandbox.read(&format!(".runner/state/{name}")));
    std::iter::once(commits).chain(prompts).chain(files).collect()
}

fn run_in(surroundings: &Surroundings) -> (TestRepo, Vec<String>) {
    let setup = RunBuilder::new(RUNNER)
        .scenario(SCENARIO)
        .guard("date > ignored/date; pwd > /dev/null; echo red; test -f ok");
    // The agent's path is part of the configuration, so it must be the same for all.
    let sandbox = setup.keys("max_iterations = 50").start();
    let play = sandbox.outside().join("play.toml");
    let config =
        sandbox.read(".runner/state/config.toml").replace(play.to_str().unwrap(), "ignored/play.toml");
    sandbox.write(".gitignore", "ignored\n");
    let _ = std::fs::remove_file(sandbox.path("ignored"));
    std::fs::create_dir_all(sandbox.path("ignored")).unwrap();
    std::fs::copy(play, sandbox.path("ignored/play.toml")).unwrap();
    sandbox.write(".runner/state/config.toml", config);
    sandbox.runner(&["start"]).ok();
    let folder = sandbox.path(surroundings.folder);
    std::fs::create_dir_all(&folder).unwrap();
    let mut shell = sandbox.command("sh");
    let Surroundings { zone, locale, umask, hour, .. } = surroundings;
    shell.args(["-c", &format!("umask {umask}; exec {RUNNER} loop")]).current_dir(&folder);
    shell.env("TZ", zone).env("LANG", locale).env("LC_ALL", locale);
    shell
        .env("GIT_AUTHOR_DATE", hour)
        .env("GIT_COMMITTER_DATE", hour)
        .env("COLUMNS", "40")
        .env("NO_COLOR", "1");
    let ran = run(&mut shell);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(sandbox.outcomes(), OUTCOMES);
    assert_sound(&sandbox);
    let history = history_of(&sandbox);
    (sandbox, history)
}

#[test]
fn run_is_identical_in_another_environment() {
    let [here, there, elsewhere] = [
        Surroundings {
            zone: "UTC",
            locale: "C.UTF-8",
            umask: "022",
            folder: ".",
            hour: "2001-01-01T00:00:00Z",
        },
        Surroundings {
            zone: "Pacific/Kiritimati",
            locale: "C",
            umask: "077",
            folder: "ignored/deep",
            hour: "2038-01-20T00:00:00Z",
        },
        Surroundings {
            zone: "America/St_Johns",
            locale: "tr_TR.UTF-8",
            umask: "002",
            folder: ".runner/state",
            hour: "1999-12-31T23:59:59-0330",
        },
    ];
    let (_first, expected) = run_in(&here);
    for surroundings in [there, elsewhere] {
        let (_sandbox, history) = run_in(&surroundings);
        for (one, other) in expected.iter().zip(&history) {
            assert_eq!(one, other, "{}", surroundings.zone);
        }
    }
}
