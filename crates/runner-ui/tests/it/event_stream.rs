//! A run is followed while it is made.

use std::fs;
use std::process::Stdio;

use serde_json::json;
use testkit::processes::wait_for;
use testkit::run_builder::{RUN, RunBuilder};

use crate::server::{Server, finished_run, next_event, runner};

/// An agent that waits in its session until a file is there.
const WAITS: &str = "echo begun; touch $AROUND/begun; while ! [ -e $AROUND/go ]; do sleep 0.05; done; echo x > x; answer done";

#[test]
fn a_run_is_followed_from_its_first_session_to_its_end() {
    let sandbox = RunBuilder::new(&runner()).agent(WAITS).start();
    let server = Server::on(sandbox.root());
    let mut stream = server.listen(&[]);
    next_event(&mut stream, "hello");
    assert_eq!(server.get("/api/snapshot").ok()["state"], "idle");
    let mut child = sandbox.runner_command(&["loop"]).stdout(Stdio::null()).spawn().unwrap();
    let (added, _) = next_event(&mut stream, "iteration_added");
    assert_eq!((&added["run"], &added["iter"]), (&json!(RUN), &json!(1)));
    wait_for("the session", || sandbox.outside().join("begun").exists());
    wait_for("its output", || server.get("/api/iterations/demo/1/executor.log").text() == "begun\n");
    let snapshot = server.get("/api/snapshot").ok();
    assert_eq!((&snapshot["state"], &snapshot["stop"]), (&json!("running"), &json!(null)));
    let current = &snapshot["current"];
    assert_eq!(
        (&current["iter"], &current["node"], &current["phase"]),
        (&json!(1), &json!("root"), &json!("planned"))
    );
    assert_eq!(server.get("/api/iterations").ok()["iterations"][0]["outcome"], json!(null));
    fs::write(sandbox.outside().join("go"), "").unwrap();
    next_event(&mut stream, "iteration_changed");
    next_event(&mut stream, "tree_changed");
    assert!(child.wait().unwrap().success());
    wait_for("the end", || server.get("/api/snapshot").ok()["state"] == "complete");
    assert_eq!(server.get("/api/iterations").ok()["iterations"][0]["outcome"], "passed");
}

#[test]
fn a_pause_is_told_with_the_command_that_ends_it() {
    let sandbox = RunBuilder::new(&runner()).agent(WAITS).start();
    let server = Server::on(sandbox.root());
    let mut stream = server.listen(&[]);
    next_event(&mut stream, "hello");
    sandbox.runner(&["pause"]).ok();
    next_event(&mut stream, "run_changed");
    let paused = || server.get("/api/snapshot").ok()["state"] == "paused";
    wait_for("the pause", paused);
    let snapshot = server.get("/api/snapshot").ok();
    assert_eq!(snapshot["stop"]["next"][0]["command"], "runner resume");
    assert_eq!(snapshot["headline"], "paused; no loop is at work");
    let mut child = sandbox.runner_command(&["loop"]).stdout(Stdio::null()).spawn().unwrap();
    sandbox.runner(&["resume"]).ok();
    wait_for("the session", || sandbox.outside().join("begun").exists());
    wait_for("the state", || server.get("/api/snapshot").ok()["state"] == "running");
    // In the middle of an iteration, the pause is still to come.
    sandbox.runner(&["pause"]).ok();
    wait_for("the word", || {
        let headline = server.get("/api/snapshot").ok()["headline"].as_str().unwrap_or_default().to_owned();
        headline.ends_with("the run pauses after this iteration")
    });
    sandbox.runner(&["resume"]).ok();
    fs::write(sandbox.outside().join("go"), "").unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_runner_that_was_killed_has_died() {
    let sandbox = RunBuilder::new(&runner()).agent(WAITS).start();
    let server = Server::on(sandbox.root());
    sandbox.kill_when(&["loop"], "begun");
    wait_for("its death to be noticed", || server.get("/api/snapshot").ok()["state"] == "died");
    let snapshot = server.get("/api/snapshot").ok();
    assert_eq!(snapshot["stop"]["next"][0]["command"], "runner loop");
}

#[test]
fn folders_that_appear_later_are_seen() {
    let sandbox = testkit::test_repo::TestRepo::with_commit(&runner());
    let server = Server::on(sandbox.root());
    let mut stream = server.listen(&[]);
    next_event(&mut stream, "hello");
    sandbox.runner(&["init"]).ok();
    next_event(&mut stream, "tree_changed");
    sandbox.write(".runner/GOAL.md", "---\nid: demo\n---\n\n# G\n\nText.\n");
    sandbox.runner(&["start"]).ok();
    next_event(&mut stream, "resync");
    sandbox.write(".runner/iterations/demo/0001/events.jsonl", "{}\n");
    let (added, _) = next_event(&mut stream, "iteration_added");
    assert_eq!(added["iter"], 1);
    sandbox.write(".runner/iterations/demo/0001/guard.log", "one\n");
    let (changed, _) = next_event(&mut stream, "iteration_changed");
    assert_eq!(changed["run"], "demo");
}

#[test]
fn who_comes_back_hears_what_was_missed_and_strangers_read_anew() {
    let sandbox = finished_run();
    let server = Server::on(sandbox.root());
    let mut stream = server.listen(&[]);
    next_event(&mut stream, "hello");
    let log = format!(".runner/iterations/{RUN}/0004/guard.log");
    sandbox.write(&log, "one\n");
    let (_, id) = next_event(&mut stream, "iteration_changed");
    drop(stream);
    sandbox.write(&log, "one and two\n");
    wait_for("the change", || server.iteration(4, "/guard.log").text() == "one and two\n");
    let mut back = server.listen(&[("Last-Event-ID", &id)]);
    let (changed, next) = next_event(&mut back, "iteration_changed");
    assert!(changed["files"].as_array().unwrap().iter().any(|file| file["bytes"] == 12), "{changed}");
    assert_ne!(next, id);
    let mut stranger = server.listen(&[("Last-Event-ID", "another.7")]);
    next_event(&mut stranger, "resync");
}

#[test]
fn where_watching_fails_the_files_are_looked_at_and_that_is_said() {
    let sandbox = finished_run();
    let server = Server::with(sandbox.root(), &["--poll"]);
    let mut stream = server.listen(&[]);
    next_event(&mut stream, "hello");
    wait_for("the word for it", || server.get("/api/snapshot").ok()["server"]["watching"] == "polling");
    sandbox.write(&format!(".runner/iterations/{RUN}/0004/guard.log"), "more\n");
    next_event(&mut stream, "iteration_changed");
}
