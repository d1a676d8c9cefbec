//! The first screen needs one request and one stream, and the page states that a repository is gone.

use std::fs;

use serde_json::{Value, json};
use testkit::processes::wait_for;

use crate::server::{Server, finished_run, next_event};

/// The parts of the overview, in their order.
fn parts(server: &Server, path: &str) -> Vec<Value> {
    let response = server.get(path);
    assert_eq!(response.header("content-type"), Some("application/x-ndjson"), "{}", response.text());
    response.text().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The part that is not null.
fn name(part: &Value) -> &str {
    let named = part.as_object().unwrap().iter().find(|(_, value)| !value.is_null());
    named.map_or("", |(name, _)| name.as_str())
}

#[test]
fn overview_has_everything_that_the_first_screen_shows_in_the_order_of_its_need() {
    let sandbox = finished_run();
    let server = Server::on(sandbox.root());
    let all = parts(&server, "/api/overview");
    assert_eq!(all.iter().map(name).collect::<Vec<_>>(), ["snapshot", "iterations", "tree", "task", ""]);
    assert_eq!(all[0]["snapshot"]["state"], "complete");
    assert_eq!(all[1]["iterations"], server.get("/api/iterations").ok());
    assert_eq!(all[2]["tree"], server.get("/api/tree?slim=1").ok());
    assert_eq!(all[3]["task"], server.get("/api/tree/root").ok());
    let files = server.get("/api/files").ok();
    let again = parts(&server, "/api/overview?run=demo&node=a");
    assert_eq!((&again[3]["task"]["id"], &again[4]["files"]), (&json!("a"), &files));
    assert_eq!(server.get("/api/overview?run=other").json()["error"]["code"], "no_run");
}

#[test]
fn stream_continues_from_the_event_that_the_snapshot_names() {
    let sandbox = finished_run();
    let server = Server::on(sandbox.root());
    let id = server.get("/api/snapshot").ok()["server"]["event_id"].as_str().unwrap().to_owned();
    sandbox.runner(&["pause"]).ok();
    wait_for("the pause", || server.get("/api/snapshot").ok()["server"]["event_id"] != id.as_str());
    let mut stream = server.listen_at(&format!("/events?since={id}"), &[]);
    next_event(&mut stream, "hello");
    next_event(&mut stream, "run_changed");
    let mut stream = server.listen_at("/events?since=of-another-server.3", &[]);
    next_event(&mut stream, "resync");
}

#[test]
fn moved_repository_is_gone_until_it_is_back() {
    let sandbox = finished_run();
    let server = Server::on(sandbox.root());
    server.get("/api/snapshot").ok();
    let mut stream = server.listen(&[]);
    next_event(&mut stream, "hello");
    let away = sandbox.root().with_extension("away");
    fs::rename(sandbox.root(), &away).unwrap();
    next_event(&mut stream, "run_changed");
    for path in ["/api/snapshot", "/api/overview", "/api/tree", "/api/runs", "/api/iterations/demo/1"] {
        let gone = server.get(path);
        let error = &gone.json()["error"];
        assert_eq!((gone.status, &error["code"]), (503, &json!("repository_gone")), "{path}");
        let message = format!("The repository is no longer at {}", sandbox.root().display());
        assert_eq!(error["message"], message.as_str());
    }
    fs::rename(&away, sandbox.root()).unwrap();
    assert_eq!(server.get("/api/snapshot").ok()["state"], "complete");
    // Watching goes on, too.
    next_event(&mut stream, "run_changed");
}
