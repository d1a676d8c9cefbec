//! Output, refusals and interruption of `runner step` and `runner loop`.

use std::process::Stdio;

use insta::assert_snapshot;
use testkit::oracle::assert_sound;
use testkit::processes::wait_for;
use testkit::run_builder::{BRANCH, RunBuilder};
use testkit::test_repo::run;

use crate::RUNNER;
use crate::commands::step_and_loop::{show, story};
use crate::fixtures::{json, on_terminal, snapshot};

#[test]
fn step_is_refused_in_the_documented_order() {
    let sandbox = RunBuilder::new(RUNNER).start();
    let assert_refused = |name: &str| {
        let refused = sandbox.runner(&["step"]);
        assert_snapshot!(format!("refused_{name}"), snapshot(&sandbox, &refused));
        assert_eq!(sandbox.runner(&["loop"]).refused(2), refused.stderr, "a loop is refused like a step");
    };
    let state = ".runner/state/run_state.json";
    let edit_state = |edit: &dyn Fn(&str) -> String| {
        let text = edit(&sandbox.read(state));
        sandbox.write(state, text);
    };
    let goal = sandbox.read(".runner/GOAL.md");
    let ignore = sandbox.read(".runner/.gitignore");
    // Everything is wrong at once. Fix the reported problem each time.
    sandbox.write("dirty", "x");
    sandbox.git(&["checkout", "-q", "main"]);
    assert_refused("1_protected_branch");
    sandbox.git(&["checkout", "-q", "-b", "elsewhere", BRANCH]);
    std::fs::remove_file(sandbox.path(".runner/.gitignore")).unwrap();
    sandbox.write(".runner/GOAL.md", goal.replace("id: demo", "id: another"));
    edit_state(&|text| text.replace("\"run_id\": \"demo\"", "\"run_id\": null"));
    assert_refused("2_dirty");
    std::fs::remove_file(sandbox.path("dirty")).unwrap();
    assert_refused("3_no_gitignore");
    sandbox.write(".runner/.gitignore", ignore);
    assert_refused("4_not_started");
    edit_state(&|text| text.replace("\"run_id\": null", "\"run_id\": \"demo\""));
    assert_refused("5_other_goal");
    sandbox.write(".runner/GOAL.md", goal);
    assert_refused("6_other_branch");
    sandbox.git(&["checkout", "-q", BRANCH]);
    sandbox.write(".runner/prompts/x.md", "x");
    assert_refused("7_runner_files_changed");
    std::fs::remove_dir_all(sandbox.path(".runner/prompts")).unwrap();
    sandbox.runner(&["loop"]).ok();
    assert_sound(&sandbox);
}

#[test]
fn loop_prints_one_key_value_line_per_event() {
    let sandbox = story();
    assert_snapshot!("loop_key_values", snapshot(&sandbox, &sandbox.runner(&["loop"])));
}

#[test]
fn loop_on_a_terminal_prints_iterations_and_a_summary() {
    let sandbox = story();
    assert_snapshot!("loop_complete_80", snapshot(&sandbox, &on_terminal(&sandbox, 80, "loop")));
}

#[test]
fn stuck_loop_names_the_commands_that_help() {
    let sandbox = RunBuilder::new(RUNNER).agent("answer retry 'no idea'").start();
    assert_snapshot!("loop_stuck_80", snapshot(&sandbox, &on_terminal(&sandbox, 80, "loop")));
    assert_snapshot!("loop_stuck_again", snapshot(&sandbox, &sandbox.runner(&["loop"])));
}

#[test]
fn failing_baseline_is_a_warning_on_a_terminal() {
    let builder = RunBuilder::new(RUNNER).agent("touch ok; answer done").guard("test -e ok");
    let sandbox = builder.guard_keys("baseline = true").start();
    let shown = on_terminal(&sandbox, 80, "loop --allow-red");
    assert_snapshot!("loop_baseline_80", snapshot(&sandbox, &shown));
}

#[test]
fn restored_guard_and_edited_plan_are_notes_on_a_terminal() {
    let agent = "case $RUNNER_NODE_ID in root) split; answer decomposed ;; *) echo 'exit 0' > guard.sh; answer done ;; esac";
    let sandbox = RunBuilder::new(RUNNER).agent(agent).protected("guard.sh").start();
    assert_snapshot!("loop_notes_80", snapshot(&sandbox, &on_terminal(&sandbox, 80, "loop")));
}

#[test]
fn json_loop_prints_one_line_per_event() {
    let sandbox = story();
    let ran = sandbox.runner(&["loop", "--json"]).ok();
    let events: Vec<serde_json::Value> =
        ran.stdout.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let names: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
    assert_eq!(names.iter().filter(|name| **name == "committed").count(), 5);
    assert_eq!(names.last().copied(), Some("end"));
    assert_eq!(events.last().unwrap()["stop"]["reason"], "complete");
    let decided = events.iter().find(|event| event["event"] == "decided").unwrap();
    assert_eq!((&decided["outcome"], &decided["leaves"]["total"]), (&"decomposed".into(), &2.into()));
}

#[test]
fn quiet_loop_prints_only_errors() {
    let sandbox = RunBuilder::new(RUNNER).agent("echo loud; answer retry").start();
    let ran = sandbox.runner(&["loop", "-q"]);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (Some(3), "", ""));
    sandbox.write("dirty", "x");
    assert!(sandbox.runner(&["step", "-q"]).refused(2).contains("dirty"));
}

#[test]
fn closed_pipe_does_not_stop_the_loop() {
    let sandbox = story();
    let mut shell = sandbox.command("bash");
    shell.args(["-c", &format!("set -o pipefail; {RUNNER} loop | head -1; echo ${{PIPESTATUS[0]}}")]);
    let ran = run(&mut shell);
    assert!(ran.stdout.ends_with("\n0\n"), "{}", show(&ran));
    assert_eq!(sandbox.outcomes().len(), 5);
    assert_sound(&sandbox);
}

#[test]
fn signal_stops_gracefully_and_commits_the_work() {
    for (signal, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        let agent = "trap 'echo asked >> work; exit' TERM; echo half > work; touch $AROUND/begun; while true; do sleep 0.01; done";
        let sandbox = RunBuilder::new(RUNNER).agent(agent).start();
        let mut child = sandbox.runner_command(&["loop"]).stdout(Stdio::null()).spawn().unwrap();
        wait_for("the session", || sandbox.outside().join("begun").exists());
        run(sandbox.command("kill").args([format!("-{signal}"), child.id().to_string()])).ok();
        assert_eq!(child.wait().unwrap().code(), Some(code), "{signal}");
        assert_eq!(sandbox.outcomes(), ["interrupted"]);
        assert_eq!(sandbox.read("work"), "half\nasked\n", "{signal}");
        assert_eq!(sandbox.tree()["root"]["attempts"], 0);
        assert_sound(&sandbox);
        sandbox.replace_agent("answer done");
        sandbox.runner(&["loop"]).ok();
    }
}

#[test]
fn step_prints_one_json_document_and_reports_a_run_that_is_stuck() {
    let sandbox = RunBuilder::new(RUNNER).agent("answer retry").keys("max_attempts_default = 1").start();
    let output = sandbox.runner(&["step", "--json"]);
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    let document = json(&output);
    assert_eq!(document["schema"], "runner.step/1");
    assert!(document["events"].as_array().is_some_and(|events| events.len() > 2), "{document}");
}
