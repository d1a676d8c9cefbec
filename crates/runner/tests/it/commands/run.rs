//! `runner init` and `runner run`: what they detect, show, ask and start.

use testkit::test_repo::{RunOutput, TestRepo, run};

use crate::RUNNER;
use crate::fixtures::{json, on_terminal};

/// A repository with these files in its first commit.
fn repository(files: &[(&str, &str)]) -> TestRepo {
    let sandbox = TestRepo::empty(RUNNER);
    sandbox.git(&["init", "-q", "-b", "main"]);
    sandbox.write("README.md", "hello\n");
    files.iter().for_each(|(name, text)| sandbox.write(name, text));
    sandbox.commit_all("root");
    sandbox
}

/// An agent that runs this script in the repository and answers `done`.
fn agent(sandbox: &TestRepo, script: &str) -> String {
    let path = sandbox.outside().join("agent.sh");
    let answer = r#"printf '{"status": "done", "summary": "%s"}' "did it" > "$RUNNER_OUTPUT""#;
    std::fs::write(&path, format!("{script}\n{answer}\n")).unwrap();
    format!("sh {}", path.display())
}

fn run_goal(sandbox: &TestRepo, goal: &str, agent: &str, more: &[&str]) -> RunOutput {
    let args = [&["run", goal, "--yes", "--agent", agent][..], more].concat();
    sandbox.runner(&args)
}

#[test]
fn init_shows_and_writes_what_it_detected() {
    let sandbox = repository(&[("Makefile", "check:\n\ttrue\n")]);
    let output = sandbox.runner(&["init"]).ok();
    assert_eq!(output.value("guard"), Some("\"make check\""));
    assert_eq!(output.value("stack"), Some("\"make (Makefile, target `check`)\""));
    assert_eq!(output.value("protected"), Some("\"GNUmakefile, Makefile, check, makefile\""));
    assert_eq!(sandbox.runner(&["config", "get", "guard.command"]).ok().stdout, "[\"make\", \"check\"]\n");
    // A configuration that exists is kept, and shown.
    sandbox.runner(&["config", "set", "guard.command", "make", "other"]).ok();
    let again = sandbox.runner(&["init"]).ok();
    assert_eq!(again.value("config"), Some("\"your config.toml\""));
    assert_eq!(again.value("guard"), Some("\"make other\""));
    let forced = sandbox.runner(&["init", "--force"]).ok();
    assert_eq!(forced.value("guard"), Some("\"make check\""));
}

#[test]
fn screens_of_init_and_run_fit_80_columns() {
    let sandbox = repository(&[
        ("api/go.mod", "module x\n"),
        ("web/package.json", r#"{"scripts": {"test": "t"}, "dependencies": {"a": "1"}}"#),
        ("web/package-lock.json", "{}"),
    ]);
    let agent = agent(&sandbox, "true");
    for command in [
        "init".to_owned(),
        format!(
            "run 'A goal with quite a few words in it, more than fit' --agent '{agent}' --guard true --yes --allow-red --max-iterations 1"
        ),
    ] {
        let output = on_terminal(&sandbox, 80, &command);
        let wide: Vec<&str> = output.stdout.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(wide.iter().all(|line| !line.trim().contains(' ')), "only a long path may be cut: {wide:#?}");
        assert!(output.stdout.lines().take(24).any(|line| line.contains("agent")), "{}", output.stdout);
    }
}

#[test]
fn nothing_is_written_without_consent() {
    let sandbox = repository(&[("Makefile", "test:\n\ttrue\n")]);
    let agent = agent(&sandbox, "true");
    let before = sandbox.branches();
    let output = sandbox.runner(&["run", "Make it", "--agent", &agent]);
    assert_eq!(output.code, Some(2));
    assert!(output.stdout.contains("guard=\"make test"), "{}", output.stdout);
    assert!(output.stderr.contains("add --yes"), "{}", output.stderr);
    assert_eq!((sandbox.branches(), sandbox.path(".runner").exists()), (before, false));
    let answered = on_terminal_with(&sandbox, "n", &format!("run 'Make it' --agent '{agent}'"));
    assert!(
        answered.stdout.contains("Start? [Y/n]") && answered.stdout.contains("not started"),
        "{}",
        answered.stdout
    );
    assert!(!sandbox.path(".runner").exists());
    let answered =
        on_terminal_with(&sandbox, "", &format!("run 'Make it' --agent '{agent}' --max-iterations 1"));
    assert!(sandbox.path(".runner/GOAL.md").exists(), "{}", answered.stdout);
}

/// Types one line on a terminal.
fn on_terminal_with(sandbox: &TestRepo, line: &str, command: &str) -> RunOutput {
    let mut script = sandbox.command("sh");
    let typed = format!(
        "(sleep 0.5; echo '{line}'; sleep 3) | script -qec \"stty cols 80; {RUNNER} {command}\" /dev/null"
    );
    script.args(["-c", &typed]).env("TERM", "xterm-256color").env("NO_COLOR", "1");
    run(&mut script)
}

#[test]
fn run_ids_come_from_the_goal_and_are_unique() {
    let sandbox = repository(&[("Makefile", "test:\n\ttrue\n")]);
    let agent = agent(&sandbox, "date +%N >> made");
    for id in ["add-oauth-login", "add-oauth-login-2"] {
        run_goal(&sandbox, "Add OAuth login!", &agent, &[]).ok();
        assert_eq!(sandbox.git(&["branch", "--show-current"]), format!("runner/{id}"));
        sandbox.git(&["switch", "-q", "main"]);
    }
    run_goal(&sandbox, "Füge einen Login hinzu", &agent, &[]).ok();
    assert_eq!(sandbox.git(&["branch", "--show-current"]), "runner/fuge-einen-login-hinzu");
    sandbox.git(&["switch", "-q", "main"]);
    run_goal(&sandbox, "Add OAuth login!", &agent, &["--id", "mine"]).ok();
    let refused = run_goal(&sandbox, "Another goal", &agent, &[]).refused(2);
    assert!(refused.contains("the branch of run `mine` is checked out"), "{refused}");
    assert!(refused.contains("git switch main"), "{refused}");
}

#[test]
fn goal_that_is_the_name_of_a_file_is_refused() {
    let sandbox = repository(&[("Makefile", "test:\n\ttrue\n"), ("PLAN.md", "- [ ] Make it\n")]);
    let agent = agent(&sandbox, "echo 1 > made");
    let refused = run_goal(&sandbox, "PLAN.md", &agent, &[]).refused(2);
    for text in
        ["only the name of a file: `PLAN.md`", "runner plan import PLAN.md", "runner run \"$(cat PLAN.md)\""]
    {
        assert!(refused.contains(text), "{text}: {refused}");
    }
    assert!(!sandbox.path(".runner").exists());
    run_goal(&sandbox, "Do PLAN.md", &agent, &[]).ok();
}

#[test]
fn second_run_uses_the_configuration_of_the_first() {
    let sandbox = repository(&[("Makefile", "test:\n\ttrue\n")]);
    let agent = agent(&sandbox, "date +%N >> made");
    run_goal(&sandbox, "One", &agent, &["--guard", "make test"]).ok();
    sandbox.runner(&["config", "set", "max_iterations", "7"]).ok();
    sandbox.runner(&["start"]).ok();
    sandbox.git(&["switch", "-q", "main"]);
    let output = sandbox.runner(&["run", "Two", "--yes"]).ok();
    assert!(output.stdout.contains("config=\"from run one\""), "{}", output.stdout);
    assert!(sandbox.read(".runner/state/config.toml").contains("max_iterations = 7\n"));
    // `runner start` alone does the same.
    sandbox.git(&["switch", "-q", "main"]);
    sandbox.runner(&["start", "--goal", "Three"]).ok();
    assert!(sandbox.read(".runner/state/config.toml").contains("max_iterations = 7\n"));
}

#[test]
fn run_can_work_in_a_linked_work_tree() {
    let sandbox = repository(&[("Makefile", "test:\n\ttrue\n")]);
    let agent = agent(&sandbox, "echo 1 > made");
    let output = run_goal(&sandbox, "Make it", &agent, &["--worktree"]).ok();
    let linked = sandbox.outside().join("work-make-it");
    assert!(output.stdout.contains("stop=complete") && linked.join("made").exists(), "{}", output.stdout);
    assert_eq!(sandbox.git(&["branch", "--show-current"]), "main");
    assert!(!sandbox.path("made").exists() && !sandbox.path(".runner").exists());
    assert_eq!(sandbox.runner(&["land", "make-it"]).ok().value("branch"), Some("land/make-it"));
    let refused = run_goal(&sandbox, "Other", &agent, &["--worktree", "../work-make-it"]).refused(2);
    assert!(refused.contains("already exists"), "{refused}");
}

#[test]
fn run_without_a_goal_continues_like_loop() {
    let sandbox = repository(&[("Makefile", "test:\n\ttrue\n")]);
    let refused = sandbox.runner(&["run"]).refused(2);
    assert!(refused.contains("hint:"), "{refused}");
    let agent = agent(&sandbox, "echo 1 > made");
    sandbox.runner(&["init"]).ok();
    sandbox.write(".runner/GOAL.md", "# Make it\n");
    let words: Vec<&str> = agent.split(' ').collect();
    sandbox
        .runner(
            &[
                &["config", "set", "executor.kind=command"][..],
                &[&format!("executor.command=[\"{}\", \"{}\"]", words[0], words[1])],
            ]
            .concat(),
        )
        .ok();
    sandbox.runner(&["start"]).ok();
    assert!(sandbox.runner(&["run"]).ok().stdout.contains("stop=complete"));
}

#[test]
fn setup_is_one_json_line_before_the_events() {
    let sandbox = repository(&[("Makefile", "test:\n\ttrue\n")]);
    let agent = agent(&sandbox, "echo 1 > made");
    let output = run_goal(&sandbox, "Make it", &agent, &["--json"]).ok();
    let first = RunOutput { stdout: output.stdout.lines().next().unwrap().to_owned(), ..output.clone() };
    let setup = json(&first);
    assert_eq!((setup["event"].as_str(), setup["run_id"].as_str()), (Some("setup"), Some("make-it")));
    assert!(setup["setup"]["guard"].as_str().unwrap().starts_with("make test"));
}
