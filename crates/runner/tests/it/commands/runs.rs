//! `runner runs`, `switch`, `stop` and `clean`

use std::process::Stdio;

use testkit::processes::wait_for;
use testkit::run_builder::{RUN, RunBuilder};
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;
use crate::fixtures::{json, on_terminal};

fn completed() -> TestRepo {
    let sandbox = RunBuilder::new(RUNNER).agent("echo 1 > made; answer done").start();
    sandbox.runner(&["loop"]).ok();
    sandbox
}

fn first_run(sandbox: &TestRepo) -> serde_json::Value {
    json(&sandbox.runner(&["runs", "--json"]).ok()).pointer("/runs/0").unwrap().clone()
}

#[test]
fn runs_are_listed_with_state_size_and_where_their_work_is() {
    let none = TestRepo::with_commit(RUNNER);
    assert_eq!(none.runner(&["runs"]).ok().stdout, "");
    let sandbox = completed();
    let run = first_run(&sandbox);
    assert_eq!((run["run_id"].as_str(), run["state"].as_str()), (Some(RUN), Some("complete")));
    assert_eq!((run["iterations"].as_u64(), run["work"].as_str()), (Some(1), Some("not_landed")));
    assert!(run["log_bytes"].as_u64().unwrap() > 100);
    sandbox.runner(&["land"]).ok();
    assert_eq!(first_run(&sandbox)["work"], "landed");
    sandbox.git(&["switch", "-q", "main"]);
    sandbox.git(&["merge", "-q", "runner/demo"]);
    assert_eq!(first_run(&sandbox)["work"], "merged");
    let shown = on_terminal(&sandbox, 80, "runs --no-pager").stdout;
    assert!(shown.contains("1/1 tasks, 1 iteration") && shown.contains("merged into"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
}

#[test]
fn switch_checks_a_run_out_and_keeps_the_users_work() {
    let sandbox = completed();
    sandbox.git(&["switch", "-q", "main"]);
    sandbox.write("mine.txt", "x");
    assert!(sandbox.runner(&["switch", RUN]).refused(2).contains("uncommitted changes"));
    std::fs::remove_file(sandbox.path("mine.txt")).unwrap();
    assert_eq!(sandbox.runner(&["switch", RUN]).ok().value("run_id"), Some(RUN));
    assert_eq!(sandbox.git(&["branch", "--show-current"]), "runner/demo");
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
    sandbox.runner(&["switch", "runner/demo"]).ok();
    assert!(sandbox.runner(&["switch", "other"]).refused(2).contains("no such run"));
}

#[test]
fn clean_removes_a_landed_run_and_refuses_everything_else() {
    let sandbox = completed();
    assert!(sandbox.runner(&["clean", RUN, "--yes"]).refused(2).contains("is checked out"));
    sandbox.git(&["switch", "-q", "main"]);
    let refused = sandbox.runner(&["clean", RUN, "--yes"]).refused(2);
    assert!(refused.contains("on no other branch") && refused.contains("runner land demo"), "{refused}");
    sandbox.runner(&["land", RUN]).ok();
    let refused = sandbox.runner(&["clean", RUN]).refused(2);
    assert!(refused.contains("--yes"), "{refused}");
    assert!(sandbox.path(".runner/iterations/demo").exists());
    sandbox.runner(&["clean", RUN, "--yes"]).ok();
    assert!(!sandbox.path(".runner/iterations/demo").exists());
    let references = sandbox.git(&["for-each-ref", "--format=%(refname)"]);
    assert!(
        !references.contains("runner/demo") && references.contains("refs/heads/land/demo"),
        "{references}"
    );
    assert_eq!(sandbox.runner(&["runs"]).ok().stdout, "");
}

#[test]
fn clean_with_force_removes_work_that_is_nowhere_else() {
    let sandbox = completed();
    sandbox.git(&["switch", "-q", "main"]);
    sandbox.runner(&["clean", RUN, "--force", "--yes"]).ok();
    assert!(!sandbox.git(&["branch", "--list"]).contains("runner/demo"));
}

#[test]
fn stop_ends_a_loop_after_its_iteration_or_at_once() {
    let agent = r#"touch "$AROUND/begun"; while [ ! -e "$AROUND/go" ]; do sleep 0.05; done; answer retry"#;
    for args in [&["stop"][..], &["stop", "--now"]] {
        let sandbox = RunBuilder::new(RUNNER).agent(agent).start();
        let mut child = sandbox.runner_command(&["loop"]).stdout(Stdio::null()).spawn().unwrap();
        wait_for("the agent", || sandbox.outside().join("begun").exists());
        let stopped = sandbox.runner(args).ok();
        assert_eq!(stopped.value("pid"), Some(child.id().to_string().as_str()));
        if args.len() == 1 {
            let status = sandbox.runner(&["status"]).ok().stdout;
            assert!(status.contains("; stopping after this iteration\"\n"), "{status}");
            std::fs::write(sandbox.outside().join("go"), "").unwrap();
        }
        assert_eq!(child.wait().unwrap().code(), Some(130), "{args:?}");
        let outcome = if args.len() == 1 { "retry" } else { "interrupted" };
        assert_eq!(sandbox.outcomes(), [outcome], "{args:?}");
        assert!(!sandbox.path(".git/runner/stop").exists(), "the request ended with the loop: {args:?}");
        assert!(sandbox.runner(&["stop"]).refused(2).contains("no loop is running"));
        // An old request does not stop the next loop.
        sandbox.replace_agent("answer done");
        sandbox.runner(&["loop"]).ok();
    }
}

#[test]
fn runs_have_the_state_of_runner_status() {
    let sandbox = RunBuilder::new(RUNNER).agent("answer retry").keys("max_attempts_default = 1").start();
    assert_eq!(sandbox.runner(&["loop"]).code, Some(3));
    let status = json(&sandbox.runner(&["status", "--json"]).ok());
    let here = first_run(&sandbox);
    sandbox.git(&["switch", "-q", "main"]);
    for run in [here, first_run(&sandbox)] {
        for key in ["state", "stop", "headline"] {
            assert_eq!(run[key], status[key], "{key}: {run}");
        }
    }
    let other = json(&sandbox.runner(&["status", "--json"]).ok());
    for key in ["run_id", "state", "stop", "headline", "leaves"] {
        assert_eq!(other[key], status[key], "{key}");
    }
    assert_eq!(
        (&other["branch"], &other["next"][0]["command"]),
        (&"main".into(), &"runner switch demo".into())
    );
}

#[test]
fn run_is_not_removed_by_pressing_enter() {
    let sandbox = completed();
    sandbox.runner(&["land"]).ok();
    sandbox.git(&["switch", "-q", "main"]);
    for (keys, is_removed) in [("", false), ("y", true)] {
        let line =
            format!("(sleep 1; printf '{keys}\\n'; sleep 1) | script -qec \"{RUNNER} clean demo\" /dev/null");
        let output = run(sandbox.command("sh").args(["-c", &line]).env("TERM", "xterm"));
        assert!(output.stdout.contains("[y/N]"), "{}", output.stdout);
        let is_there = sandbox.branches().iter().any(|branch| branch.starts_with("runner/demo "));
        assert_eq!(is_there, !is_removed, "{}", output.stdout);
    }
}
