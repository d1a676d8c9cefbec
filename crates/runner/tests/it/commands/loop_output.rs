//! What `runner step` and `runner loop` tell, refuse, and do when they are told to stop.

use std::process::Stdio;

use testkit::oracle::assert_sound;
use testkit::processes::wait_for;
use testkit::run_builder::{BRANCH, RunBuilder};
use testkit::test_repo::run;

use crate::RUNNER;
use crate::commands::step_and_loop::{show, story};

#[test]
fn step_is_refused_in_the_documented_order() {
    let sandbox = RunBuilder::new(RUNNER).start();
    let refused = |why: &str| {
        let told = sandbox.runner(&["step"]).refused(2);
        assert!(
            told.starts_with("error: could not make an iteration\n") && told.contains(why),
            "{why}: {told}"
        );
        assert_eq!(sandbox.runner(&["loop"]).refused(2), told, "a loop refuses the same");
    };
    let state = ".runner/state/run_state.json";
    let with_state = |edit: &dyn Fn(&str) -> String| {
        let text = edit(&sandbox.read(state));
        sandbox.write(state, text);
    };
    let (goal, ignore) = (sandbox.read(".runner/GOAL.md"), sandbox.read(".runner/.gitignore"));
    // Everything is wrong at once; what comes first is told first, and mended.
    sandbox.write("dirty", "x");
    sandbox.git(&["checkout", "-q", "main"]);
    refused("the current branch is `main`: the runner works on branches of its own (run 'runner start')");
    sandbox.git(&["checkout", "-q", "-b", "elsewhere", BRANCH]);
    std::fs::remove_file(sandbox.path(".runner/.gitignore")).unwrap();
    sandbox.write(".runner/GOAL.md", goal.replace("id: demo", "id: another"));
    with_state(&|text| text.replace("\"run_id\": \"demo\"", "\"run_id\": null"));
    refused("dirty");
    std::fs::remove_file(sandbox.path("dirty")).unwrap();
    refused("`.runner/.gitignore` is missing (run 'runner start')");
    sandbox.write(".runner/.gitignore", ignore);
    refused("no run has been started: run_state.json holds no run id (run 'runner start')");
    with_state(&|text| text.replace("\"run_id\": null", "\"run_id\": \"demo\""));
    refused("run_state.json belongs to run `demo`, GOAL.md names run `another` (run 'runner start')");
    sandbox.write(".runner/GOAL.md", goal);
    refused(
        "run `demo` lives on branch `runner/demo`, the current branch is `elsewhere` (run 'runner start')",
    );
    sandbox.git(&["checkout", "-q", BRANCH]);
    sandbox.write(".runner/prompts/x.md", "x");
    refused(".runner/prompts");
    std::fs::remove_dir_all(sandbox.path(".runner/prompts")).unwrap();
    sandbox.runner(&["loop"]).ok();
    assert_sound(&sandbox);
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
    let settled = events.iter().find(|event| event["event"] == "decided").unwrap();
    assert_eq!((&settled["outcome"], &settled["leaves"]["total"]), (&"decomposed".into(), &2.into()));
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
        sandbox.new_agent("answer done");
        sandbox.runner(&["loop"]).ok();
    }
}
