//! `runner validate`, `select`, `status`, `tree` and `doctor`, which change nothing.

use std::process::Stdio;

use testkit::processes::wait_for;
use testkit::run_builder::RunBuilder;
use testkit::test_repo::TestRepo;

use crate::RUNNER;
use crate::fixtures::on_terminal;
use crate::ready;
use crate::started;

#[test]
fn repository_is_valid_before_the_first_start() {
    let sandbox = ready();
    assert_eq!(sandbox.runner(&["validate"]).ok().value("valid"), Some("true problems=0"));
    assert_eq!(sandbox.runner(&["status"]).ok().value("next"), Some("\"runner start\""));
}

#[test]
fn validate_lists_every_problem_at_once() {
    let sandbox = started();
    sandbox.write(".runner/state/config.toml", "max_iterations = 0\n[executor]\nkind = \"kodex\"\n");
    sandbox.write(".runner/state/run_state.json", "{}");
    sandbox.write(".runner/state/tree.json", "{\"version\": 2, \"root\": null}");
    std::fs::remove_file(sandbox.path(".runner/.gitignore")).unwrap();
    let output = sandbox.runner(&["validate"]);
    assert_eq!(output.code, Some(2));
    let problems: Vec<&str> = output.stdout.lines().filter(|line| line.starts_with("problem=")).collect();
    let of =
        |part: &str| problems.iter().filter(|line| line.starts_with(&format!("problem={part} "))).count();
    assert_eq!((of("layout"), of("config"), of("tree"), of("state")), (1, 2, 2, 19), "{problems:#?}");
    assert!(of("identity") >= 1, "{problems:#?}");
    assert_eq!(output.value("valid"), Some(format!("false problems={}", problems.len()).as_str()));
}

#[test]
fn identity_problems_name_the_fix() {
    let sandbox = started();
    sandbox.git(&["checkout", "-q", "-b", "elsewhere"]);
    let output = sandbox.runner(&["validate"]);
    assert_eq!(output.code, Some(2));
    assert!(output.stdout.contains("(run 'runner start')"), "{}", output.stdout);
    let status = sandbox.runner(&["status"]).ok();
    assert_eq!((status.value("state"), status.value("branch")), (Some("stopped"), Some("elsewhere")));
    assert!(status.stdout.contains("next=\"runner switch "), "{}", status.stdout);
}

#[test]
fn run_that_is_not_checked_out_is_named_and_valid() {
    let sandbox = RunBuilder::new(RUNNER).start();
    sandbox.runner(&["loop"]).ok();
    sandbox.git(&["switch", "-q", "main"]);
    let expected = "not_checked_out=demo next=\"runner switch demo\"\nvalid=true problems=0\n";
    assert_eq!(sandbox.runner(&["validate"]).ok().stdout, expected);
    let human = on_terminal(&sandbox, 80, "validate");
    assert!(human.stdout.contains("run demo is not checked out: runner switch demo"), "{}", human.stdout);
    assert!(!human.stdout.contains("valid") && !human.stdout.contains("missing"), "{}", human.stdout);
    sandbox.git(&["switch", "-q", "runner/demo"]);
    std::fs::remove_dir_all(sandbox.path(".runner")).unwrap();
    let lost = sandbox.runner(&["validate"]);
    assert!(lost.code == Some(2) && lost.stdout.contains("GOAL.md` is missing"), "{}", lost.stdout);
}

#[test]
fn session_in_progress_is_no_crash() {
    let agent = r#"touch "$AROUND/begun"; while [ ! -e "$AROUND/go" ]; do sleep 0.05; done; answer done"#;
    let sandbox = RunBuilder::new(RUNNER).agent(agent).start();
    let mut child = sandbox.runner_command(&["step"]).stdout(Stdio::null()).spawn().unwrap();
    wait_for("the agent", || sandbox.outside().join("begun").exists());
    let during = sandbox.runner(&["validate"]);
    std::fs::write(sandbox.outside().join("go"), "").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(during.ok().value("valid"), Some("true problems=0"));
}

#[test]
fn select_exits_with_three_if_stuck() {
    let sandbox = started();
    let tree = sandbox.read(".runner/state/tree.json");
    sandbox.write(".runner/state/tree.json", tree.replace("\"attempts\": 0", "\"attempts\": 3"));
    let stuck = sandbox.runner(&["select", "--explain"]);
    assert_eq!((stuck.code, stuck.value("state")), (Some(3), Some("stuck")));
    assert!(stuck.stdout.contains("3 of 3 attempts used: stuck"), "{}", stuck.stdout);
    sandbox.write(".runner/state/tree.json", tree.replace("\"passes\": false", "\"passes\": true"));
    assert_eq!(sandbox.runner(&["select"]).ok().stdout, "state=complete\n");
    let status = sandbox.runner(&["status"]).ok();
    assert_eq!(status.value("state"), Some("stopped"), "the final check has not run");
}

#[test]
fn every_command_that_needs_the_tree_reports_its_problems() {
    let sandbox = started();
    let broken = "{\"version\": 1, \"root\": {\"id\": \"root\"}}\n";
    sandbox.write(".runner/state/tree.json", broken);
    for command in ["select", "tree"] {
        let refused = sandbox.runner(&[command]).refused(2);
        assert!(
            refused.contains("has 8 problems") && refused.contains("root: `order` is missing"),
            "{refused}"
        );
    }
    assert_eq!(sandbox.runner(&["status"]).ok().value("state"), Some("invalid"));
    assert_eq!(sandbox.read(".runner/state/tree.json"), broken);
    std::fs::remove_file(sandbox.path(".runner/state/tree.json")).unwrap();
    assert!(sandbox.runner(&["tree"]).refused(2).contains("tree.json` is missing"));
}

#[test]
fn missing_runner_directory_is_reported_with_a_hint() {
    let sandbox = TestRepo::with_commit(RUNNER);
    for command in ["validate", "select", "status", "tree"] {
        assert!(sandbox.runner(&[command]).refused(2).contains("runner init"), "{command}");
    }
    let doctor = sandbox.runner(&["doctor"]);
    assert!(doctor.stdout.contains("check=setup verdict=warning"), "{}", doctor.stdout);
}

#[test]
fn doctor_reports_missing_programs_with_a_fix() {
    let sandbox = started();
    let config = sandbox.read(".runner/state/config.toml");
    let config = config.replace("[\"just\", \"ci\"]", "[\"no-such-guard\"]").replacen(
        "kind = \"codex\"",
        "kind = \"command\"\ncommand = [\"sh\"]",
        1,
    );
    sandbox.write(".runner/state/config.toml", config);
    let output = sandbox.runner(&["doctor"]);
    assert_eq!(output.code, Some(1));
    assert!(
        output.stdout.contains("check=guard verdict=problem found=\"`no-such-guard` is not on PATH\""),
        "{}",
        output.stdout
    );
    assert!(output.stdout.contains("check=agent verdict=ok"), "{}", output.stdout);
    assert!(output.stdout.contains("check=author verdict=warning"), "{}", output.stdout);
    let fresh = started();
    // Only git is on the PATH, whatever this machine has.
    let tools = fresh.outside().join("tools");
    std::fs::create_dir(&tools).unwrap();
    let git = testkit::test_repo::run(fresh.command("sh").args(["-c", "command -v git"])).ok().stdout;
    std::os::unix::fs::symlink(git.trim(), tools.join("git")).unwrap();
    let fresh = testkit::test_repo::run(fresh.runner_command(&["doctor"]).env("PATH", &tools));
    let found = "check=agent verdict=problem found=\"`codex` is not on PATH\" fix=\"install it with 'npm install -g @openai/codex'";
    assert!(fresh.code == Some(1) && fresh.stdout.contains(found), "{}", fresh.stdout);
    assert!(fresh.stdout.contains("'codex login'"), "{}", fresh.stdout);
    let nowhere = TestRepo::empty(RUNNER).runner(&["doctor"]);
    assert!(
        nowhere.code == Some(1) && nowhere.stdout.contains("check=repository verdict=problem"),
        "{}",
        nowhere.stdout
    );
}

#[test]
fn doctor_checks_hook_programs() {
    let sandbox = started();
    let inside = sandbox.path("hook");
    sandbox.write("hook", "");
    let config = sandbox.read(".runner/state/config.toml");
    let hooks = format!(
        "[hooks]\non_pass = [\"true\"]\non_stuck = [\"/no/such\"]\non_complete = [\"no-such\"]\non_stop = [\"{}\"]\n",
        inside.display(),
    );
    sandbox.write(".runner/state/config.toml", config.replace("[hooks]\n", &hooks));
    let output = sandbox.runner(&["doctor"]).stdout;
    for found in [
        "check=hook verdict=ok found=\"on_pass: /",
        "check=hook verdict=warning found=\"on_stuck: `/no/such` is missing or not executable\"",
        "check=hook verdict=warning found=\"on_complete: `no-such` is not on PATH\" fix=\"check [hooks] on_complete in",
    ] {
        assert!(output.contains(found), "{output}");
    }
    assert!(output.contains("/hook` is inside the repository, where agents can change it\""), "{output}");
}

#[test]
fn doctor_checks_agent_versions() {
    let sandbox = started();
    let config = sandbox.read(".runner/state/config.toml").replace("[\"just\", \"ci\"]", "[\"true\"]");
    for (kind, package, version, verdict) in [
        ("codex", "@openai/codex", "codex-cli 0.169.0", "ok"),
        ("codex", "@openai/codex", "codex-cli 9.0.0", "warning"),
        ("claude", "@anthropic-ai/claude-code", "2.1.326 (Claude Code)", "ok"),
        ("claude", "@anthropic-ai/claude-code", "3.0.0 (Claude Code)", "warning"),
    ] {
        let program = crate::agents::emulated::program(&sandbox, &format!("echo '{version}'"));
        let line = format!("kind = \"{kind}\"\nprogram = \"{program}\"");
        sandbox.write(".runner/state/config.toml", config.replacen("kind = \"codex\"", &line, 1));
        let unknown = sandbox.runner(&["doctor"]).ok();
        assert!(unknown.stdout.contains("no login found"), "{}", unknown.stdout);
        let both = unknown.stdout.contains("(tested with") && unknown.stdout.contains("npm install -g");
        assert_eq!(both, verdict == "warning", "both doubts are shown: {}", unknown.stdout);
        let mut doctor = sandbox.runner_command(&["doctor"]);
        let output =
            testkit::test_repo::run(doctor.env("CODEX_API_KEY", "sk").env("ANTHROPIC_API_KEY", "sk")).ok();
        let expected = format!("check=agent verdict={verdict} found=\"{version}");
        assert!(output.stdout.contains(&expected), "{}", output.stdout);
        let warns = output.stdout.contains(&format!("npm install -g {package}@"));
        assert_eq!(warns, verdict == "warning", "{}", output.stdout);
    }
}

#[test]
fn read_only_commands_change_nothing() {
    let sandbox = started();
    let stamp = |sandbox: &TestRepo| {
        let listing = run_find(sandbox);
        (listing, sandbox.branches())
    };
    let before = stamp(&sandbox);
    for command in ["validate", "select", "status", "tree", "doctor"] {
        sandbox.runner(&[command]);
        sandbox.runner(&[command, "--json"]);
    }
    assert_eq!(stamp(&sandbox), before);
}

/// Every file with its size, change time and inode, including `.git`.
fn run_find(sandbox: &TestRepo) -> String {
    let mut find = sandbox.command("find");
    find.args([".", "-printf", "%p %s %C@ %i\n"]);
    testkit::test_repo::run(&mut find).ok().stdout
}
