//! Scenarios that interrupt an iteration.

use std::process::Stdio;

use testkit::run_builder::RunBuilder;
use testkit::test_repo::TestRepo;

use super::FaultScenario;
use super::workspace::add_belongings;

/// What every agent does first: write a file with unique content, copy it to the ledger in the home folder, and delete a
/// file. `$n` is the number of the session; a session that is killed before its file is in the ledger does not count.
pub(crate) const WORK: &str = r#"
mkdir -p "$HOME/ledger"
n=$(( $(ls "$HOME/ledger" | wc -l) + 1 ))
mkdir -p src
printf 'work of session %s\n' "$n" > "src/work-$n"
rm -f old
cp "src/work-$n" "$HOME/ledger/work-$n"
"#;

/// A run whose agent does [`WORK`] and then this.
pub(super) fn builder(runner: &str, agent: &str) -> RunBuilder {
    RunBuilder::new(runner).agent(&format!("{WORK}\n{agent}")).file("old", "old\n").movable()
}

pub(super) fn with_belongings(repo: TestRepo) -> TestRepo {
    add_belongings(&repo);
    repo
}

const GUARD_FAILS: &str = "[ \"$n\" -gt 1 ] && touch ok; answer done";
const SPLITS: &str = "case $RUNNER_NODE_ID in root) split ;; *) answer done ;; esac";
const INVALID: &str = r#"case "$RUNNER_MODE" in
    repair) sed -i 's/"title": "[^"]*"/"title": "Repaired"/' "$RUNNER_TREE"; answer retry ;;
    *) [ "$RUNNER_ITER" = 0001 ] && echo '{' > "$RUNNER_TREE"; answer done ;;
esac"#;
const COMMITS: &str = r#"
g() { git -c user.name=Agent -c user.email=agent@localhost -c core.hooksPath=/dev/null "$@" > /dev/null 2>&1; }
if [ "$n" = 1 ]; then
    g add -A; g commit -m "of the agent"; g checkout -b elsewhere; echo more > more; g add -A; g commit -m more
    cp more "$HOME/ledger/more"
fi
answer done"#;

pub(super) fn scenarios() -> Vec<FaultScenario> {
    let step = |name, prepare| FaultScenario::new(name, prepare, &["step"]);
    vec![
        step("step", |runner| {
            with_belongings(builder(runner, "answer done").guard_keys("baseline = true").start())
        }),
        step("next-step", |runner| {
            let repo = builder(runner, GUARD_FAILS).guard("test -e ok").start();
            repo.runner(&["step"]).ok();
            with_belongings(repo)
        }),
        step("guard-fails", |runner| {
            with_belongings(builder(runner, GUARD_FAILS).guard("test -e ok").start())
        }),
        step("final-check", |runner| {
            let repo = builder(runner, "answer done").guard_keys("final_check = true").start();
            repo.runner(&["step"]).ok();
            with_belongings(repo)
        }),
        step("decompose", |runner| with_belongings(builder(runner, SPLITS).start())),
        step("invalid", |runner| with_belongings(builder(runner, INVALID).start())),
        step("repair", |runner| {
            let repo = builder(runner, INVALID).start();
            repo.runner(&["step"]).ok();
            with_belongings(repo)
        }),
        step("commits", |runner| with_belongings(builder(runner, COMMITS).start())),
        step("protected", |runner| {
            let agent = "echo exit 0 > guard.sh; rm -f guarded/*; echo 1 > guarded/new; answer done";
            let run = builder(runner, agent).protected("guarded/**").file("guarded/check", "check\n");
            with_belongings(run.guard("test -e guarded/check && test ! -e guarded/new").start())
        }),
        step("bubblewrap", |runner| {
            with_belongings(
                builder(runner, "answer done")
                    .executor_keys("sandbox = \"require\"\nwritable = [\"~/ledger\"]")
                    .start(),
            )
        }),
        // The files that the guard changed are written again after the last sync of objects.
        step("guard-writes", |runner| {
            let guard = "echo by the guard > README.md; echo by the guard > of-guard";
            with_belongings(builder(runner, "answer done").guard(guard).start())
        }),
        FaultScenario::new("recovery", interrupted, &["loop"]),
        FaultScenario::new(
            "detach",
            |runner| with_belongings(builder(runner, "answer done").start()),
            &["loop", "--detach"],
        ),
        FaultScenario {
            check: "test \"$(grep -c 'Use tabs' .runner/state/notes.json)\" = 1",
            ..FaultScenario::new("queued-notes", with_queued_notes, &["step"])
        },
    ]
}

/// A run whose runner was killed in a session, with a note and an answer that the user left meanwhile.
fn with_queued_notes(runner: &str) -> TestRepo {
    let agent = "[ \"$n\" = 1 ] && { echo '- Which port?' >> .runner/state/questions.md; touch $HOME/../asked; exec sleep 600; }
        answer done";
    let repo = builder(runner, agent).start();
    add_belongings(&repo);
    let mut runner = repo.runner_command(&["loop"]);
    let mut runner = runner.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the loop");
    testkit::processes::wait_for("a session", || repo.outside().join("asked").exists());
    repo.runner(&["note", "Use tabs"]).ok();
    repo.runner(&["answer", "1", "Port 8080"]).ok();
    runner.kill().expect("the loop");
    let _ = runner.wait();
    testkit::oracle::assert_no_processes_of(repo.outside());
    repo
}

/// A run whose runner was killed while the guard ran, after the session's work was complete.
fn interrupted(runner: &str) -> TestRepo {
    let guard = "test -e $HOME/../guarded || { touch $HOME/../guarded; exec sleep 600; }";
    let repo = builder(runner, "answer done").guard(guard).start();
    add_belongings(&repo);
    repo.kill_when(&["step"], "guarded");
    testkit::oracle::assert_no_processes_of(repo.outside());
    repo
}
