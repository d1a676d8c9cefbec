//! Wrong first steps: each is refused before any commit, with the command that fixes it.

use std::fs::File;
use std::process::Stdio;

use testkit::run_builder::{BRANCH, RunBuilder};
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;
use crate::fixtures::{on_terminal, started};

/// Asserts that a loop is refused, that nothing is committed, and that the refusal has this text and a hint.
fn assert_refused(sandbox: &TestRepo, args: &[&str], texts: &[&str]) {
    let before = sandbox.branches();
    let refused = sandbox.runner(args).refused(2);
    for text in texts {
        assert!(refused.contains(text), "{text}: {refused}");
    }
    assert!(refused.contains("hint: "), "{refused}");
    assert_eq!(sandbox.branches(), before, "no commit");
}

/// A started run with this `[executor]` table.
fn with_executor(keys: &str) -> TestRepo {
    RunBuilder::new(RUNNER).executor(keys).executor_keys("").start()
}

#[test]
fn template_as_the_goal_is_refused() {
    let sandbox = TestRepo::with_commit(RUNNER);
    sandbox.runner(&["start"]).ok();
    assert_refused(&sandbox, &["loop"], &["GOAL.md still holds the template", "runner start"]);
}

#[test]
fn missing_agents_are_refused_on_every_rung() {
    let sandbox = RunBuilder::new(RUNNER).missing_agent().start();
    assert_refused(&sandbox, &["loop"], &["`no-such-agent` is not on PATH", "executor.command"]);
    let ladder = "[[ladder]]\nafter_attempts = 1\nkind = \"command\"\ncommand = [\"no-such-rung\"]\n";
    let sandbox = RunBuilder::new(RUNNER).config_tables(ladder).start();
    assert_refused(&sandbox, &["loop"], &["`no-such-rung` is not on PATH"]);
}

#[test]
fn agent_without_a_login_is_refused() {
    let sandbox = with_executor("kind = \"codex\"");
    let bin = sandbox.outside().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let program = bin.join("codex");
    std::fs::write(&program, "#!/bin/sh\nexit 1\n").unwrap();
    run(sandbox.command("chmod").arg("755").arg(&program)).ok();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let before = sandbox.branches();
    let refused = run(sandbox.runner_command(&["loop"]).env("PATH", &path)).refused(2);
    assert!(refused.contains("`codex` is not logged in") && refused.contains("codex login"), "{refused}");
    assert_eq!(sandbox.branches(), before);
    // A key, or the file of a login, is enough.
    let with_key = run(sandbox.runner_command(&["loop"]).env("PATH", &path).env("CODEX_API_KEY", "k"));
    assert_ne!(with_key.code, Some(2), "{}", with_key.stderr);
}

#[test]
fn missing_guard_is_refused() {
    let sandbox = RunBuilder::new(RUNNER).start();
    sandbox.runner(&["config", "set", "guard.command", "no-such-guard"]).ok();
    sandbox.runner(&["start"]).ok();
    assert_refused(
        &sandbox,
        &["loop"],
        &["`no-such-guard` is not on PATH", "runner config set guard.command"],
    );
}

#[test]
fn several_problems_are_reported_together() {
    let sandbox = RunBuilder::new(RUNNER).missing_agent().start();
    sandbox.runner(&["config", "set", "guard.command", "no-such-guard"]).ok();
    sandbox.runner(&["start"]).ok();
    let texts =
        ["2 problems", "agent: `no-such-agent` is not on PATH", "guard: `no-such-guard` is not on PATH"];
    assert_refused(&sandbox, &["loop"], &texts);
}

#[test]
fn limit_that_nothing_can_measure_is_refused() {
    let sandbox = with_executor("kind = \"codex\"\nprogram = \"/bin/true\"");
    sandbox.runner(&["config", "set", "executor.model", "unpriced"]).ok();
    sandbox.runner(&["config", "set", "budget.run_usd", "5"]).ok();
    sandbox.runner(&["start"]).ok();
    assert_refused(&sandbox, &["loop"], &["budget.run_usd cannot be enforced", "[prices.\"unpriced\"]"]);
}

#[test]
fn red_baseline_is_refused_without_a_commit_unless_allowed() {
    let builder = RunBuilder::new(RUNNER).guard_keys("baseline = true").agent("echo 1 > ok; answer done");
    let sandbox = builder.guard("echo the door is open; echo x > left; test -e ok").start();
    let texts =
        ["`sh guard.sh` already fails (exit 1), before any agent ran", "the door is open", "--allow-red"];
    let before = sandbox.branches();
    let refused = sandbox.runner(&["loop"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    for text in texts {
        assert!(refused.stderr.contains(text), "{text}: {}", refused.stderr);
    }
    assert_eq!(sandbox.branches(), before, "no commit");
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "", "what the guard wrote is removed");
    let allowed = sandbox.runner(&["loop", "--allow-red"]).ok();
    assert!(allowed.stdout.contains("event=baseline_ended guard=fail exit=1"), "{}", allowed.stdout);
    // Recorded once, it is no question any more.
    sandbox.runner(&["loop"]).ok();
    assert_eq!(sandbox.outcomes(), ["passed"]);
}

#[test]
fn red_baseline_is_a_question_on_a_terminal() {
    for (key, accepted) in [("y", true), ("n", false)] {
        let builder = RunBuilder::new(RUNNER).guard_keys("baseline = true").agent("echo 1 > ok; answer done");
        let sandbox = builder.guard("test -e ok").start();
        let mut command = sandbox.command("sh");
        let line = format!("(sleep 3; printf {key}; sleep 4) | script -qec \"{RUNNER} loop\" /dev/null");
        let output = run(command.args(["-c", &line]).env("TERM", "xterm-256color").env("NO_COLOR", "1"));
        assert!(output.stdout.contains("Start anyway"), "{}", output.stdout);
        let outcomes: &[&str] = if accepted { &["passed"] } else { &[] };
        assert_eq!(sandbox.outcomes(), outcomes, "{}", output.stdout);
    }
}

#[test]
fn file_behind_our_own_output_is_not_dirt() {
    let sandbox = RunBuilder::new(RUNNER).agent("echo 1 > made; answer done").start();
    for stream in ["night.log", "nohup.out", "logs [1]/x.log"] {
        std::fs::create_dir_all(sandbox.path(stream).parent().unwrap()).unwrap();
        let file = File::create(sandbox.path(stream)).unwrap();
        let mut command = sandbox.runner_command(&["loop"]);
        command.stdout(Stdio::from(file.try_clone().unwrap())).stderr(Stdio::from(file));
        assert_eq!(command.status().unwrap().code(), Some(0), "{}", sandbox.read(stream));
        assert!(sandbox.read(stream).contains("stop=complete"), "{}", sandbox.read(stream));
    }
    let committed = sandbox.git(&["ls-tree", "-r", "--name-only", BRANCH]);
    assert!(
        committed.contains("made") && !committed.contains("log") && !committed.contains("nohup"),
        "{committed}"
    );
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
    // Other files still are.
    sandbox.write("mine.txt", "x");
    assert_refused(&sandbox, &["loop"], &["uncommitted changes", "mine.txt"]);
}

#[test]
fn tracked_file_is_not_hidden_by_redirecting_into_it() {
    let sandbox = started();
    let file = File::create(sandbox.path("README.md")).unwrap();
    let output = run(sandbox.runner_command(&["start"]).stderr(Stdio::from(file)).stdout(Stdio::null()));
    assert_eq!(output.code, Some(2));
}

#[test]
fn id_and_goal_that_cannot_be_used_are_refused() {
    let goal = &["run", "Make it", "--yes", "--agent", "sh -c true", "--guard", "true"];
    let sandbox = TestRepo::with_commit(RUNNER);
    let texts = ["cannot be a run id", "letters, digits"];
    assert_refused(&sandbox, &[goal, &["--id", "a b"][..]].concat(), &texts);
    sandbox.runner(&["init"]).ok();
    sandbox.write(".runner/GOAL.md", "# My own goal\n");
    assert_refused(&sandbox, goal, &["GOAL.md already has a goal"]);
}

#[test]
fn refusals_fit_a_terminal() {
    let sandbox = RunBuilder::new(RUNNER).missing_agent().start();
    let output = on_terminal(&sandbox, 80, "loop");
    assert!(output.stdout.contains("error: cannot start the loop"), "{}", output.stdout);
}
