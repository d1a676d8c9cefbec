//! A run is followed live: states and events while it runs.

use std::fs;
use std::process::Stdio;

use serde_json::json;
use testkit::processes::wait_for;
use testkit::run_builder::{RUN, RunBuilder};

use crate::server::{Server, finished_run, next_event, runner};

/// An agent that waits until a file exists.
const WAITS: &str = "echo begun; touch $AROUND/begun; while ! [ -e $AROUND/go ]; do sleep 0.05; done; echo x > x; answer done";

#[test]
fn run_is_followed_from_its_first_session_to_its_end() {
    let sandbox = RunBuilder::new(&runner()).agent(WAITS).start();
    let server = Server::on(sandbox.root());
    let mut stream = server.listen(&[]);
    next_event(&mut stream, "hello");
    let snapshot = server.get("/api/snapshot").ok();
    assert_eq!((&snapshot["state"], &snapshot["headline"]), (&json!("stopped"), &json!("not run yet")));
    let mut child = sandbox.runner_command(&["loop"]).stdout(Stdio::null()).spawn().unwrap();
    let (added, _) = next_event(&mut stream, "iteration_added");
    assert_eq!((&added["run"], &added["iter"]), (&json!(RUN), &json!(1)));
    wait_for("the session", || sandbox.outside().join("begun").exists());
    wait_for("its output", || server.get("/api/iterations/demo/1/executor.log").text() == "begun\n");
    let snapshot = server.get("/api/snapshot").ok();
    assert_eq!((&snapshot["state"], &snapshot["phase"]), (&json!("running"), &json!("agent")));
    assert_eq!((&snapshot["stop"], &snapshot["next"]), (&json!(null), &json!([])));
    let current = &snapshot["current"];
    assert_eq!((&current["iter"], &current["node"]), (&json!(1), &json!("root")));
    assert_eq!(server.get("/api/iterations").ok()["iterations"][0]["outcome"], json!(null));
    fs::write(sandbox.outside().join("go"), "").unwrap();
    next_event(&mut stream, "iteration_changed");
    next_event(&mut stream, "tree_changed");
    assert!(child.wait().unwrap().success());
    wait_for("the end", || server.get("/api/snapshot").ok()["state"] == "complete");
    assert_eq!(server.get("/api/iterations").ok()["iterations"][0]["outcome"], "passed");
}

#[test]
fn pause_is_shown_with_the_command_that_ends_it() {
    let sandbox = RunBuilder::new(&runner()).agent(WAITS).start();
    let server = Server::on(sandbox.root());
    let mut stream = server.listen(&[]);
    next_event(&mut stream, "hello");
    sandbox.runner(&["pause"]).ok();
    next_event(&mut stream, "run_changed");
    let paused = || server.get("/api/snapshot").ok()["state"] == "paused";
    wait_for("the pause", paused);
    let snapshot = server.get("/api/snapshot").ok();
    assert_eq!(snapshot["next"][0]["command"], "runner resume");
    assert_eq!(snapshot["headline"], "no loop is running");
    let mut child = sandbox.runner_command(&["loop"]).stdout(Stdio::null()).spawn().unwrap();
    sandbox.runner(&["resume"]).ok();
    wait_for("the session", || sandbox.outside().join("begun").exists());
    wait_for("the state", || server.get("/api/snapshot").ok()["state"] == "running");
    // During an iteration, the run is still running.
    sandbox.runner(&["pause"]).ok();
    wait_for("the headline", || {
        let headline = server.get("/api/snapshot").ok()["headline"].as_str().unwrap_or_default().to_owned();
        headline.ends_with("; pauses after this iteration")
    });
    sandbox.runner(&["resume"]).ok();
    fs::write(sandbox.outside().join("go"), "").unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn killed_runner_is_shown_as_a_crash() {
    let sandbox = RunBuilder::new(&runner()).agent(WAITS).start();
    let server = Server::on(sandbox.root());
    sandbox.kill_when(&["loop"], "begun");
    wait_for("the crash to be noticed", || server.get("/api/snapshot").ok()["state"] == "crashed");
    let snapshot = server.get("/api/snapshot").ok();
    assert_eq!(snapshot["headline"], "the runner died in iteration 1");
    assert_eq!(snapshot["next"][0]["command"], "runner loop");
}

#[test]
fn folders_that_appear_later_are_watched() {
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
fn reconnecting_client_gets_what_it_missed_and_others_get_resync() {
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
    let mut reconnected = server.listen(&[("Last-Event-ID", &id)]);
    let (changed, next) = next_event(&mut reconnected, "iteration_changed");
    assert!(changed["files"].as_array().unwrap().iter().any(|file| file["bytes"] == 12), "{changed}");
    assert_ne!(next, id);
    let mut unknown = server.listen(&[("Last-Event-ID", "another.7")]);
    next_event(&mut unknown, "resync");
}

#[test]
fn polling_replaces_notifications_and_is_shown() {
    let sandbox = finished_run();
    let server = Server::with(sandbox.root(), &["--poll"]);
    let mut stream = server.listen(&[]);
    next_event(&mut stream, "hello");
    wait_for("polling", || server.get("/api/snapshot").ok()["server"]["watching"] == "polling");
    sandbox.write(&format!(".runner/iterations/{RUN}/0004/guard.log"), "more\n");
    next_event(&mut stream, "iteration_changed");
}

#[test]
fn link_is_followed_to_another_repository() {
    let first = finished_run();
    let second = RunBuilder::new(&runner()).agent("echo x > x; answer done").start();
    let link = first.outside().join("case_latest");
    std::os::unix::fs::symlink(first.root(), &link).unwrap();
    let server = Server::on(&link);
    let mut stream = server.listen(&[]);
    next_event(&mut stream, "hello");
    assert_eq!(server.get("/api/snapshot").ok()["state"], "complete");
    // A link that leads nowhere for a moment changes nothing.
    fs::remove_file(&link).unwrap();
    assert_eq!(server.get("/api/snapshot").ok()["state"], "complete");
    std::os::unix::fs::symlink(second.root(), &link).unwrap();
    next_event(&mut stream, "resync");
    assert_eq!(server.get("/api/snapshot").ok()["headline"], "not run yet");
    second.runner(&["loop"]).ok();
    next_event(&mut stream, "iteration_added");
    wait_for("the end", || server.get("/api/snapshot").ok()["state"] == "complete");
}
