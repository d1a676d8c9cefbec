//! `runner fork`: a new run from an iteration of another run.

use testkit::run_builder::RunBuilder;
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;
use crate::assert_proved;
use crate::commands::log_show_diff::on_wide_terminal;
use crate::fixtures::{completed, run_state};

const AGENT: &str = r#"
case "$RUNNER_NODE_ID" in
root) split ;;
*) echo "$RUNNER_RUN_ID $RUNNER_ITER" > work-$RUNNER_NODE_ID; echo "$RUNNER_RUN_ID made it"; answer done ;;
esac
"#;

fn complete() -> TestRepo {
    completed(&RunBuilder::new(RUNNER).agent(AGENT))
}

#[test]
fn fork_continues_from_its_iteration_and_verifies_the_whole_chain() {
    let sandbox = complete();
    let (branches, old_state) =
        (sandbox.branches(), sandbox.git(&["show", "HEAD~1:.runner/state/run_state.json"]));
    let output = sandbox.runner(&["fork", "2"]).ok();
    assert_eq!((output.value("run_id"), output.value("passed")), (Some("demo-2"), Some("1")));
    assert!(branches.iter().all(|branch| sandbox.branches().contains(branch)), "old branches stay");
    assert_eq!(sandbox.git(&["branch", "--show-current"]), "runner/demo-2");
    assert_eq!(
        sandbox.git(&["log", "-1", "--format=%B"]),
        "chore(loop): start run demo-2\n\nRunner-Fork: demo 0002"
    );
    assert_eq!(sandbox.git(&["rev-parse", "HEAD~1"]), sandbox.git(&["rev-parse", "runner/demo~1"]));
    let changed = sandbox.git(&["diff", "--name-only", "HEAD~1"]);
    assert_eq!(changed, ".runner/GOAL.md\n.runner/state/run_state.json");
    assert_eq!(
        sandbox.read(".runner/state/run_state.json").trim_end(),
        old_state.replace("\"run_id\": \"demo\"", "\"run_id\": \"demo-2\""),
        "all but the name goes on: numbers, attempts, what was spent"
    );
    assert_eq!(sandbox.git(&["status", "--porcelain", "-uall"]), "");
    assert!(!sandbox.path("work-b").exists(), "the work tree is that of the iteration");
    assert_proved(&sandbox);

    sandbox.runner(&["loop"]).ok();
    assert_eq!(sandbox.read("work-b"), "demo-2 0003\n", "iterations are numbered on");
    assert_eq!(sandbox.read("work-a"), "demo 0002\n", "what passed stays");
    let output = sandbox.runner(&["verify"]).ok().stdout;
    assert!(output.ends_with("commits=5 iterations=3 passed=2 complete=true violations=0\n"), "{output}");
    let part = sandbox.runner(&["verify", "HEAD~3.."]).ok().stdout;
    assert!(part.contains("commits=3 iterations=2"), "a part across the fork: {part}");
    assert!(sandbox.runner(&["verify", "demo"]).ok().stdout.contains("commits=4 iterations=3"));
    let log = sandbox.runner(&["log"]).ok().stdout;
    assert_eq!(log.matches("agent_ms=").count(), 3, "the logs of both runs are found: {log}");
    assert!(sandbox.runner(&["log", "2"]).ok().stdout.contains("demo made it"));
    assert!(sandbox.runner(&["replay"]).ok().stdout.contains("identical=true run_id=demo-2 iterations=3"));
}

#[test]
fn any_iteration_can_be_forked_with_any_free_id() {
    let sandbox = complete();
    insta::assert_snapshot!("fork_90", on_wide_terminal(&sandbox, "fork @-1 --id second", 0));
    sandbox.runner(&["fork", "demo/1"]).ok();
    assert_eq!(sandbox.git(&["branch", "--show-current"]), "runner/demo-1");
    let again = sandbox.runner(&["fork", "demo/1"]).ok();
    assert_eq!(again.value("run_id"), Some("demo-1-2"));
    let of_node = sandbox.runner(&["fork", "b", "--run", "demo"]).ok();
    assert_eq!((of_node.value("from_iter"), of_node.value("passed")), (Some("3"), Some("2")));
    // A fork of a fork.
    sandbox.git(&["switch", "-q", "runner/second"]);
    sandbox.runner(&["step"]).ok();
    let third = sandbox.runner(&["fork", "3", "--id", "third"]).ok();
    assert_eq!(third.value("from_run"), Some("second"));
    assert_proved(&sandbox);
    // A user's change in a fork is committed as in any run.
    sandbox.git(&["switch", "-q", "runner/demo-1"]);
    let config = sandbox.read(".runner/state/config.toml");
    sandbox.write(".runner/state/config.toml", format!("{config}\n# mine\n"));
    sandbox.runner(&["start"]).ok();
    sandbox.runner(&["loop"]).ok();
    assert_proved(&sandbox);
    let clone = sandbox.outside().join("clone");
    let url = format!("file://{}", sandbox.root().display());
    sandbox.git(&["clone", "-q", &url, clone.to_str().unwrap()]);
    let clone = sandbox.at(clone);
    assert!(clone.runner(&["verify", "third"]).ok().stdout.contains("verdict=verified"));
}

#[test]
fn refused_fork_changes_nothing() {
    let sandbox = complete();
    let before = sandbox.branches();
    assert!(sandbox.runner(&["fork", "9"]).refused(2).contains("there is no iteration 9"));
    assert!(sandbox.runner(&["fork", "none/1"]).refused(2).contains("none/1"));
    let taken = sandbox.runner(&["fork", "1", "--id", "demo"]).refused(2);
    assert!(taken.contains("run `demo` already exists") && taken.contains("--id"), "{taken}");
    assert_eq!(sandbox.runner(&["fork", "1", "--id", "a b"]).code, Some(2));
    for path in ["work-a", ".runner/GOAL.md", "new.txt"] {
        let text = sandbox.try_git(&["show", &format!("HEAD:{path}")]).stdout;
        sandbox.write(path, format!("{text}\nmine\n"));
        let dirty = sandbox.runner(&["fork", "1"]).refused(2);
        assert!(
            dirty.contains("uncommitted changes") && dirty.contains(path) && dirty.contains("git stash -u"),
            "{dirty}"
        );
        if path == "new.txt" {
            std::fs::remove_file(sandbox.path(path)).unwrap();
        } else {
            sandbox.git(&["checkout", "-q", "--", path]);
        }
    }
    assert_eq!(sandbox.branches(), before);
}

/// The failpoints of a fork, followed by those of a publish.
pub(crate) const POINTS: [&str; 1] = ["fork.commit"];

#[test]
fn fork_survives_a_crash_at_every_point() {
    let of_the_move = [
        "publish.journal",
        "publish.branch",
        "publish.files",
        "publish.documents",
        "publish.head",
        "publish.index-lock",
        "publish.index",
    ];
    for point in POINTS.into_iter().chain(of_the_move) {
        let sandbox = complete();
        let old = sandbox.git(&["rev-parse", "runner/demo"]);
        let ran =
            run(sandbox.runner_command(&["fork", "1", "--id", "new"]).env("RUNNER_TEST_CRASH_AT", point));
        assert_eq!((ran.code, ran.stdout.as_str()), (None, ""), "{point} was not reached");
        if sandbox.runner(&["start"]).ok().value("run_id") != Some("new") {
            sandbox.runner(&["fork", "1", "--id", "new"]).ok();
        }
        assert_eq!(sandbox.git(&["rev-parse", "runner/demo"]), old, "{point}");
        assert_eq!(sandbox.git(&["branch", "--show-current"]), "runner/new", "{point}");
        assert_eq!(sandbox.git(&["status", "--porcelain", "-uall"]), "", "{point}");
        assert_eq!(run_state(&sandbox)["run_id"], "new", "{point}");
        sandbox.runner(&["loop"]).ok();
        assert_proved(&sandbox);
    }
}

/// Amends the last commit after a change of the work tree.
fn amended(sandbox: &TestRepo, message: &str) -> String {
    sandbox.git(&["add", "-A"]);
    sandbox.git(&["commit", "-q", "--amend", "-m", message]);
    let output = sandbox.runner(&["verify"]);
    assert_eq!(output.code, Some(1), "{}", output.stdout);
    output.stdout
}

#[test]
fn forged_fork_is_detected() {
    let message = "chore(loop): start run new\n\nRunner-Fork: demo 0002";
    let forged = |message: &str, forge: &dyn Fn(&TestRepo)| {
        let sandbox = complete();
        sandbox.runner(&["fork", "2", "--id", "new"]).ok();
        forge(&sandbox);
        amended(&sandbox, message)
    };
    let rewritten = |path: &'static str, from: &'static str, to: &'static str| {
        move |sandbox: &TestRepo| sandbox.write(path, sandbox.read(path).replacen(from, to, 1))
    };
    let none = |_: &TestRepo| {};
    let tree = rewritten(".runner/state/tree.json", "\"passes\": false", "\"passes\": true");
    assert!(forged(message, &tree).contains("violation=edit_scope"));
    assert!(
        forged(message, &rewritten(".runner/state/run_state.json", "\"next_iter\": 3", "\"next_iter\": 1"))
            .contains("violation=run_state")
    );
    assert!(
        forged(message, &rewritten(".runner/GOAL.md", "From one", "From two"))
            .contains("violation=edit_scope")
    );
    assert!(forged(message, &|sandbox| sandbox.write("work-a", "more")).contains("violation=edit_scope"));
    assert!(
        forged("chore(loop): start run new\n\nRunner-Fork: demo 0001", &none).contains("violation=message")
    );
    assert!(forged("chore(loop): start run new\n\nRunner-Fork: other 0002", &none).contains("violation="));
    assert!(
        forged("chore(loop): start run new", &none).contains("violation="),
        "without saying so it is a new run"
    );

    // On top of a commit that is not an iteration.
    let sandbox = complete();
    sandbox.runner(&["fork", "2", "--id", "new"]).ok();
    let tree = sandbox.git(&["rev-parse", "HEAD^{tree}"]);
    let mine = sandbox.git(&[
        "commit-tree",
        &sandbox.git(&["rev-parse", "HEAD~1^{tree}"]),
        "-p",
        "HEAD~1",
        "-m",
        "mine",
    ]);
    let fork = sandbox.git(&["commit-tree", &tree, "-p", &mine, "-m", message]);
    sandbox.git(&["reset", "-q", "--hard", &fork]);
    let output = sandbox.runner(&["verify"]);
    assert_eq!(output.code, Some(1));
    assert!(output.stdout.contains("violation=parents"), "{}", output.stdout);
}
