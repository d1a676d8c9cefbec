//! Scenarios that interrupt what accepts a session's work: checks, review, the room, milestones and the final check.

use testkit::run_builder::RunBuilder;
use testkit::test_repo::TestRepo;

use super::FaultScenario;
use super::iterations::{builder, with_belongings};

const ROOM: &str = "room = \"require\"";

/// Task `a` writes `out` and has a check of it, task `b` breaks it, and a regression task repairs it.
const BROKEN_BY_B: &str = r#"
case "$RUNNER_NODE_ID" in
    root)
        mkdir -p .runner/nodes/a
        printf '[[check]]\nname = "greets"\ncommand = ["sh", "t/greet.sh"]\nfiles = { "t/greet.sh" = "greet.sh" }\n' > .runner/nodes/a/checks.toml
        echo 'test "$(cat out 2>/dev/null)" = hello' > .runner/nodes/a/greet.sh
        split; exit ;;
    b) echo broken > out ;;
    *) echo hello > out ;;
esac
answer done"#;

/// Refuses the first work and accepts the second. A review that a crash repeated refuses again.
const REVIEWER: &str = r#"verdict=accept; reasons=
[ "$RUNNER_ITER" = 0001 ] && { verdict=refuse; reasons='"no test of the empty case"'; }
printf '{"verdict": "%s", "reasons": [%s]}' "$verdict" "$reasons" > "$RUNNER_OUTPUT""#;

const CHECKS: &str = "[[check]]\nname = \"works\"\ncommand = [\"sh\", \"t/works.sh\"]\nfiles = { \"t/works.sh\" = \"works.sh\" }\n";

fn reviewed(runner: &str) -> RunBuilder {
    let table = "[review]\nkind = \"command\"\ncommand = [\"sh\", \"reviewer.sh\"]\nsandbox = \"off\"\n";
    builder(runner, "answer done").file("reviewer.sh", REVIEWER).config_tables(table)
}

fn checked(runner: &str) -> RunBuilder {
    builder(runner, "answer done")
        .file(".runner/nodes/root/checks.toml", CHECKS)
        .file(".runner/nodes/root/works.sh", "test -e src/work-1\n")
}

/// A run after this many iterations of [`BROKEN_BY_B`].
fn after_iterations(runner: &str, keys: &str, count: usize) -> TestRepo {
    let repo = builder(runner, BROKEN_BY_B).guard_keys(keys).start();
    for _ in 0..count {
        repo.runner(&["step"]).ok();
    }
    with_belongings(repo)
}

pub(super) fn scenarios() -> Vec<FaultScenario> {
    let step = |name, prepare| FaultScenario::new(name, prepare, &["step"]);
    let until_complete = |name, prepare| FaultScenario::new(name, prepare, &["loop"]);
    vec![
        step("review-refuses", |runner| with_belongings(reviewed(runner).start())),
        step("review-accepts", |runner| {
            let repo = reviewed(runner).start();
            repo.runner(&["step"]).ok();
            with_belongings(repo)
        }),
        step("checks", |runner| with_belongings(checked(runner).start())),
        step("room", |runner| with_belongings(checked(runner).guard_keys(ROOM).start())),
        // The room has the files of the iteration before.
        step("room-update", |runner| {
            let agent = "[ \"$n\" -gt 1 ] && touch ok; answer done";
            let repo = builder(runner, agent).guard("test -e ok").guard_keys(ROOM).start();
            repo.runner(&["step"]).ok();
            with_belongings(repo)
        }),
        // The guard needs copies of the user's ignored files, and ignored files of its own.
        step("room-keep", |runner| {
            let guard = "grep -q KEY ignored/user.env && grep -q KEY ignored/z/z.env";
            let keys = "room = \"require\"\nkeep = [\"ignored\"]";
            let repo = builder(runner, "answer done").guard(guard).guard_keys(keys).start();
            repo.write("ignored/z/z.env", "KEY=2\n");
            with_belongings(repo)
        }),
        step("room-cache", |runner| {
            let guard = "mkdir -p ignored; test -e ignored/cache || echo built > ignored/cache; test \"$(cat ignored/cache)\" = built";
            with_belongings(builder(runner, "answer done").guard(guard).guard_keys(ROOM).start())
        }),
        // The last task, the checks that run again, a task for the one that fails, and the checks once more.
        until_complete("milestone", |runner| after_iterations(runner, "", 2)),
        until_complete("final-recheck", |runner| after_iterations(runner, "final_check = true", 3)),
        until_complete("baseline-in-room", |runner| {
            let keys = "baseline = true\nroom = \"require\"";
            with_belongings(builder(runner, "answer done").guard_keys(keys).start())
        }),
    ]
}
