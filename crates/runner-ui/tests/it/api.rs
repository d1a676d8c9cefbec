//! The responses of every address: for a finished run, a clone without logs, and a repository without a run.

use serde_json::json;
use testkit::run_builder::{BRANCH, RUN};
use testkit::test_repo::TestRepo;

use crate::server::{Server, addresses, all_files, finished_run, runner};

#[test]
fn endpoints_of_the_contract_show_a_finished_run() {
    let sandbox = finished_run();
    let server = Server::on(&sandbox.path(".runner/state"));
    let tree = server.get("/api/tree");
    assert_eq!(tree.body, sandbox.read_bytes(".runner/state/tree.json"));
    assert_eq!(server.get("/api/run-state").ok()["run_id"], RUN);
    let list = server.get("/api/iterations").ok();
    let outcomes: Vec<_> =
        list["iterations"].as_array().unwrap().iter().map(|row| row["outcome"].clone()).collect();
    assert_eq!(outcomes, ["decomposed", "guard_failed", "passed", "passed"]);
    let detail = server.iteration(2, "").ok();
    assert_eq!(detail["row"]["summary"], "a is there");
    assert_eq!(detail["meta"]["outcome"], "guard_failed");
    assert_eq!((&detail["previous"], &detail["next"]), (&json!(1), &json!(3)));
    let log = server.iteration(2, "/guard.log");
    assert_eq!((log.status, log.text().as_str()), (200, "checking\nerror: a is bad\n"));
    assert_eq!(log.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(server.get("/api/iterations/demo/2").ok(), detail);
}

#[test]
fn first_screen_is_one_request() {
    let sandbox = finished_run();
    let server = Server::on(sandbox.root());
    let snapshot = server.get("/api/snapshot").ok();
    assert_eq!((&snapshot["state"], &snapshot["run"]["id"]), (&json!("complete"), &json!(RUN)));
    assert_eq!((&snapshot["run"]["branch"], &snapshot["run"]["is_here"]), (&json!(BRANCH), &json!(true)));
    let progress = &snapshot["progress"];
    assert_eq!((&progress["leaves_passed"], &progress["leaves_total"]), (&json!(2), &json!(2)));
    assert_eq!(progress["iterations"], 4);
    assert!(progress["busy_ms"].as_u64() > Some(0));
    assert_eq!(
        (&snapshot["headline"], &snapshot["stop"]["reason"]),
        (&json!("all 2 tasks passed"), &json!("complete"))
    );
    assert_eq!(snapshot["details"][0], "4 iterations, 1 failed attempt");
    assert_eq!(snapshot["next"][0]["command"], "runner report");
}

#[test]
fn tree_nodes_and_searches_are_sent() {
    let sandbox = finished_run();
    let server = Server::on(sandbox.root());
    let columns = server.get("/api/tree?slim=1").ok();
    assert_eq!((&columns["id"], &columns["parent"]), (&json!(["root", "a", "b"]), &json!([-1, 0, 0])));
    assert_eq!(
        (&columns["leaves"], &columns["passed"], &columns["flags"]),
        (&json!([2, 1, 1]), &json!([2, 1, 1]), &json!([1, 3, 3]))
    );
    assert_eq!(columns["state"], json!(["passed", "passed", "passed"]));
    let node = server.get("/api/tree/a").ok();
    assert_eq!(node["state"], "passed");
    assert_eq!((&node["iterations"], &node["passes"]), (&json!([2, 3]), &json!(true)));
    assert_eq!(node["path"].as_array().map(Vec::len), Some(2));
    assert_eq!(server.get("/api/tree/none").status, 404);
    let results = server.get("/api/search?q=GOOD%20now").ok();
    assert_eq!((&results["iterations_total"], &results["iterations"][0]["iter"]), (&json!(1), &json!(3)));
    assert_eq!(server.get("/api/iterations?after=2&limit=1").ok()["iterations"][0]["iter"], 3);
}

#[test]
fn logs_are_sent_in_pages_and_searched() {
    let sandbox = finished_run();
    let lines: String = (0..3_000).map(|line| format!("line {line}\n")).collect();
    sandbox.write(&format!(".runner/iterations/{RUN}/0002/guard.log"), lines + "error: at last\n");
    let server = Server::on(sandbox.root());
    let page = server.iteration(2, "/log/guard?line=2999&count=5").ok();
    assert_eq!((&page["total"], &page["lines"]), (&json!(3_001), &json!(["line 2999", "error: at last"])));
    let hits = server.iteration(2, "/log/guard/search?q=LINE%2029").ok();
    assert_eq!((&hits["total"], &hits["hits"][1]["line"]), (&json!(111), &json!(290)));
    let errors = server.iteration(2, "/log/guard/errors").ok();
    assert_eq!((&errors["total"], &errors["hits"][0]["line"]), (&json!(1), &json!(3_000)));
    assert_eq!(server.iteration(2, "/log/agent").ok()["lines"], json!(["thinking <b>hard</b>"]));
    let events = server.iteration(2, "/log/events").ok();
    assert!(events["lines"][0].as_str().unwrap().contains("\"event\":\"planned\""));
    let piece =
        server.request("GET", &format!("/api/iterations/{RUN}/2/guard.log"), &[("Range", "bytes=5-8")]);
    assert_eq!((piece.status, piece.text().as_str()), (206, "0\nli"));
    assert_eq!(piece.header("content-range"), Some("bytes 5-8/28905"));
    for file in [
        "prompt.md",
        "output.json",
        "meta.json",
        "events.jsonl",
        "stream.jsonl",
        "tree.after.json",
        "diff.patch",
    ] {
        assert_eq!(server.iteration(2, &format!("/{file}")).status, 200, "{file}");
    }
    std::fs::remove_file(sandbox.path(&format!(".runner/iterations/{RUN}/0002/stream.jsonl"))).unwrap();
    assert_eq!(server.iteration(2, "/log/stream").ok()["lines"], json!([]), "not written yet");
    assert_eq!(server.iteration(2, "/log/error").status, 404);
    assert_eq!(server.iteration(99, "/log/stream").status, 404);
}

#[test]
fn diff_lists_files_and_nodes() {
    let sandbox = finished_run();
    let server = Server::on(sandbox.root());
    let diff = server.iteration(3, "/diff").ok();
    assert_eq!((&diff["files"][0]["path"], &diff["files"][0]["added"]), (&json!("a"), &json!(1)));
    assert_eq!(diff["files"][1]["is_runner_file"], true);
    assert_eq!((&diff["tree"][0]["id"], &diff["tree"][0]["what"]), (&json!("a"), &json!("passed")));
    let net = server.iteration(4, "/diff?since=run").ok();
    assert_eq!((&net["files"][0]["path"], &net["files"][1]["path"]), (&json!("a"), &json!("b")));
    let patch = server.iteration(4, "/diff/file?path=a&since=run").ok();
    assert_eq!(patch["lines"].as_array().unwrap().last().unwrap()["kind"], "added", "nothing was removed");
    assert_eq!(server.iteration(4, "/diff/file?path=a").status, 404, "this iteration left it alone");
    let patch = server.iteration(3, "/diff/file?path=a").ok();
    let kinds: Vec<_> = patch["lines"].as_array().unwrap().iter().map(|line| line["kind"].clone()).collect();
    assert_eq!(kinds[kinds.len() - 2..], ["removed", "added"]);
    for bad in ["", "..%2f..%2fetc%2fpasswd", "%3A(glob)**", "-x", "a%00b"] {
        assert!(matches!(server.iteration(3, &format!("/diff/file?path={bad}")).status, 400 | 404), "{bad}");
    }
}

#[test]
fn running_iteration_has_the_diff_of_the_work_tree_and_no_filter_runs() {
    let sandbox = finished_run();
    let planned = json!({
        "t_ms": 1, "event": "planned", "run_id": RUN, "iter": 5, "mode": "leaf", "node": "a", "path": "root/a",
        "title": "a", "attempt": {"nth": 1, "of": 3}, "agent": "codex", "rung": {"nth": 1, "of": 1}, "budget": {},
        "spent": {"tokens": 0, "microdollars": 0, "estimated_microdollars": 0, "sessions_without_tokens": 0,
            "sessions_without_cost": 0},
        "prompt_bytes": 1, "prompt_sha256": "0".repeat(64),
    });
    sandbox.write(&format!(".runner/iterations/{RUN}/0005/events.jsonl"), format!("{planned}\n"));
    let trap = sandbox.outside().join("trap");
    sandbox.git(&["config", "filter.trap.clean", &format!("touch {}; cat", trap.display())]);
    sandbox.write(".gitattributes", "* filter=trap\n");
    sandbox.write("a", "one\ntwo\n");
    sandbox.write("folder/new", "new\n");
    let server = Server::on(sandbox.root());
    let diff = server.iteration(5, "/diff").ok();
    assert_eq!(diff["to"], json!(null));
    let files: Vec<_> = diff["files"].as_array().unwrap().iter().map(|file| file["path"].clone()).collect();
    assert_eq!(files, [".gitattributes", "a", "folder/new"]);
    assert_eq!((&diff["files"][1]["added"], &diff["files"][1]["removed"]), (&json!(2), &json!(1)));
    let patch = server.iteration(5, "/diff/file?path=folder/new").ok();
    let last = patch["lines"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["kind"], &last["text"], &last["new"]), (&json!("added"), &json!("new"), &json!(1)));
    assert_eq!(server.iteration(5, "/diff/file?path=b").status, 404, "it is unchanged");
    assert_eq!(server.iteration(5, "/diff/file?path=.git/config").status, 404);
    assert!(!trap.exists(), "a filter of the repository ran");
}

#[test]
fn patch_has_as_much_context_as_requested_and_images_are_images() {
    let sandbox = finished_run();
    let server = Server::on(sandbox.root());
    let lines = |query: &str| {
        let patch = server.iteration(3, &format!("/diff/file?path=a{query}")).ok();
        patch["lines"].as_array().map(Vec::len)
    };
    assert!(lines("&context=0") <= lines(""));
    assert_eq!(server.iteration(3, "/diff/image?path=a").status, 404, "it is text");
    assert_eq!(server.iteration(3, "/diff/file?path=a&context=x").status, 400);
    let document = server.get("/api/openapi.json").ok();
    assert_eq!(document["openapi"], "3.1.0");
}

#[test]
fn clone_without_logs_shows_tree_and_history() {
    let sandbox = finished_run();
    let clone = sandbox.outside().join("clone");
    sandbox.git(&["switch", "-q", "main"]);
    sandbox.git(&["clone", "-q", ".", clone.to_str().unwrap()]);
    let server = Server::on(&clone);
    let snapshot = server.get("/api/snapshot").ok();
    assert_eq!(
        (&snapshot["state"], &snapshot["run"]["branch"]),
        (&json!("complete"), &json!("origin/runner/demo"))
    );
    let list = server.get("/api/iterations").ok();
    let rows = list["iterations"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    assert_eq!(
        (&rows[1]["outcome"], &rows[1]["is_charged"], &rows[1]["has_logs"]),
        (&json!("guard_failed"), &json!(true), &json!(false))
    );
    assert_eq!((&rows[1]["summary"], &rows[1]["guard_exit"]), (&json!("a is there"), &json!("exit 1")));
    assert_eq!(server.get("/api/tree").status, 200);
    assert_eq!(server.iteration(3, "/diff").ok()["files"][0]["path"], "a");
    let missing = server.iteration(3, "/guard.log");
    assert_eq!((missing.status, missing.json()["error"]["code"].as_str()), (404, Some("no_logs")));
    let runs = server.get("/api/runs").ok();
    assert_eq!(
        (&runs["runs"][0]["head"]["id"], &runs["runs"][0]["progress"]["iterations"]),
        (&json!(RUN), &json!(4))
    );
}

#[test]
fn repository_without_a_run_shows_how_to_start() {
    let sandbox = TestRepo::with_commit("unused");
    let server = Server::on(sandbox.root());
    let snapshot = server.get("/api/snapshot").ok();
    assert_eq!((&snapshot["state"], &snapshot["run"]), (&json!("no_run"), &json!(null)));
    assert_eq!(snapshot["next"][0]["command"], "runner run \"GOAL\"");
    assert_eq!(server.get("/api/iterations").ok()["iterations"], json!([]));
    assert_eq!(server.get("/api/tree").status, 404);
    assert_eq!(server.get("/api/runs").ok()["runs"], json!([]));
}

#[test]
fn unwritten_goal_is_edited_before_the_start() {
    let sandbox = TestRepo::with_commit(&runner());
    assert_eq!(sandbox.runner(&["init"]).code, Some(0));
    let snapshot = Server::on(sandbox.root()).get("/api/snapshot").ok();
    let commands: Vec<_> =
        snapshot["next"].as_array().unwrap().iter().map(|next| next["command"].clone()).collect();
    assert_eq!(commands, ["${EDITOR:-vi} .runner/GOAL.md", "runner start"]);
}

#[test]
fn forged_run_is_untrusted_and_not_to_be_merged() {
    let sandbox = finished_run();
    let server = Server::on(sandbox.root());
    assert_eq!(server.get("/api/snapshot").ok()["trust"], json!(null));
    let verified = server.get("/api/verify").ok();
    assert_eq!((&verified["verdict"], &verified["violations"]), (&json!("verified"), &json!(0)));
    assert!(verified["commits"].as_u64() >= Some(5), "{verified}");
    assert_eq!(server.get("/api/snapshot").ok()["trust"]["verdict"], "verified");
    let tree = sandbox.read(".runner/state/tree.json").replace("\"title\": \"a\"", "\"title\": \"forged\"");
    sandbox.write(".runner/state/tree.json", tree);
    sandbox.git(&["commit", "-qam", "sneaky"]);
    let server = Server::on(sandbox.root());
    let violated = server.get("/api/verify").ok();
    assert_eq!(violated["verdict"], "violated", "{violated}");
    assert!(violated["findings"][0]["requirement"].as_str().is_some_and(|text| !text.is_empty()));
    let snapshot = server.get("/api/snapshot").ok();
    assert_eq!(snapshot["trust"]["verdict"], "violated");
    let next = snapshot["next"].to_string();
    assert!(next.contains("runner verify") && !next.contains("merge"), "{next}");
    let runs = server.get("/api/runs").ok();
    assert_eq!(
        (&runs["runs"][0]["state"], &runs["runs"][0]["trust"]),
        (&json!("complete"), &json!("violated"))
    );
    assert!(runs["runs"][0]["headline"].as_str().is_some_and(|text| text.starts_with("verification failed")));
    assert_eq!(Server::on(sandbox.root()).get("/api/runs").ok()["runs"][0]["trust"], json!(null));
}

#[test]
fn questions_and_errors_of_agents_are_sent() {
    let sandbox = finished_run();
    sandbox.write(".runner/state/questions.md", "# Questions\n\nWhich port?\n\nTabs?\n");
    let answer = json!({"kind": "answer", "question": 1, "asked": "Which port?", "text": "80"});
    sandbox.write(".runner/state/notes.json", json!({"notes": [answer]}).to_string());
    sandbox.write(
        &format!(".runner/iterations/{RUN}/0002/executor.err.log"),
        "thread 'main' panicked at a.rs:1:1\n",
    );
    let server = Server::on(sandbox.root());
    let snapshot = server.get("/api/snapshot").ok();
    assert_eq!(snapshot["questions"][0]["answers"], json!(["80"]));
    assert_eq!(
        (&snapshot["questions"][1]["number"], &snapshot["questions"][1]["answers"]),
        (&json!(2), &json!([]))
    );
    assert_eq!(server.iteration(2, "/executor.err.log").status, 200);
    assert_eq!(server.iteration(2, "/log/stderr").ok()["total"], 1);
    let files = server.iteration(2, "").ok()["files"].to_string();
    assert!(files.contains("executor.err.log"), "{files}");
}

#[test]
fn files_have_their_history_and_logs_are_searched() {
    let sandbox = finished_run();
    let server = Server::on(sandbox.root());
    let files = server.get("/api/files").ok();
    assert_eq!(files["unknown"], 0);
    // Iteration 2 writes one line and iteration 3 replaces it: the run adds two lines, not three.
    assert_eq!(files["net"], json!({ "files": 2, "added": 2, "removed": 0 }));
    let paths: Vec<_> = files["files"].as_array().unwrap().iter().map(|file| file["path"].clone()).collect();
    assert_eq!(paths, ["a", "b"]);
    let iterations: Vec<_> =
        files["files"][0]["touches"].as_array().unwrap().iter().map(|touch| touch["iter"].clone()).collect();
    assert_eq!(iterations, [2, 3]);
    assert_eq!(server.get("/api/search").status, 400);
    assert_eq!(server.get("/api/search?q=b").ok()["files"][0]["path"], "b");
    let found = server.get("/api/search?q=A%20IS%20BAD&logs=1").ok();
    assert_eq!((&found["logs"][0]["iter"], &found["logs"][0]["log"]), (&json!(2), &json!("guard")));
    assert_eq!(server.get("/api/search?q=a%20is%20bad").ok()["logs"], json!([]));
}

#[test]
fn responses_are_compressed_and_tagged() {
    let sandbox = finished_run();
    let server = Server::on(sandbox.root());
    let plain = server.get("/api/iterations");
    assert_eq!((plain.header("content-encoding"), plain.header("vary")), (None, Some("accept-encoding")));
    let packed = server.request("GET", "/api/iterations", &[("Accept-Encoding", "gzip, br")]);
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert!(packed.body.len() < plain.body.len() / 2, "{} of {}", packed.body.len(), plain.body.len());
    let tag = plain.header("etag").unwrap().to_owned();
    let strong = tag.strip_prefix("W/").unwrap().to_owned();
    for known in [tag.clone(), strong, "*".to_owned(), format!("\"x\", {tag}")] {
        let again = server.request("GET", "/api/iterations", &[("If-None-Match", &known)]);
        assert_eq!(again.status, 304, "{known}");
    }
    assert_eq!(server.request("GET", "/api/iterations", &[("If-None-Match", "\"x\"")]).status, 200);
}

#[test]
fn export_is_sent_while_it_is_made() {
    let sandbox = finished_run();
    let server = Server::on(sandbox.root());
    let export = server.get("/api/export");
    assert_eq!((export.status, export.header("x-iterations")), (200, Some("4")));
    assert_eq!(export.header("content-disposition"), Some("attachment; filename=\"demo.html\""));
    let text = export.text();
    for iter in 1..=4 {
        assert!(text.contains(&format!("id=\"iteration-{iter}\"")), "{iter}");
    }
    assert!(text.contains("id=\"run\"") && text.contains("</html>"));
    assert_eq!(server.get("/api/export?run=none").status, 404);
}

#[test]
fn invalid_tree_is_reported_and_nothing_else_fails() {
    let sandbox = finished_run();
    sandbox.write(".runner/state/tree.json", "{\"version\": 1, \"root\": {}}");
    let server = Server::on(sandbox.root());
    let tree = server.get("/api/tree");
    assert_eq!((tree.status, tree.json()["error"]["code"].as_str()), (422, Some("invalid_tree")));
    let snapshot = server.get("/api/snapshot").ok();
    assert_eq!(snapshot["state"], "invalid");
    assert!(!snapshot["problems"].as_array().unwrap().is_empty());
    assert_eq!(server.get("/api/iterations").ok()["iterations"].as_array().unwrap().len(), 4);
}

#[test]
fn run_is_verified_by_the_runner() {
    let sandbox = finished_run();
    let server = Server::on(sandbox.root());
    let result = server.get("/api/verify").ok();
    assert!(["verified", "unknown"].contains(&result["verdict"].as_str().unwrap()), "{result}");
    assert_eq!(result["command"], "runner verify demo");
}

#[test]
fn unchanged_document_is_not_sent_again() {
    let sandbox = finished_run();
    let server = Server::on(sandbox.root());
    let first = server.get("/api/tree");
    let tag = first.header("etag").unwrap();
    let again = server.request("GET", "/api/tree", &[("If-None-Match", tag)]);
    assert_eq!((again.status, again.body.len()), (304, 0));
    let head = server.request("HEAD", "/api/tree", &[]);
    assert_eq!((head.status, head.body.len()), (200, 0));
}

#[test]
fn requests_do_not_change_the_repository() {
    let sandbox = finished_run();
    let before = all_files(sandbox.root());
    let server = Server::on(sandbox.root());
    let own = ["/", "/healthz"].map(str::to_owned);
    for address in own.into_iter().chain(addresses()) {
        // The run has no image.
        let expected = if address.contains("/diff/image") { 404 } else { 200 };
        assert_eq!(server.get(&address).status, expected, "{address}");
    }
    assert!(all_files(sandbox.root()) == before, "a file was changed, created or removed");
}

#[test]
fn folder_outside_a_repository_is_refused_with_a_hint() {
    let sandbox = TestRepo::empty("unused");
    let ran = testkit::test_repo::run(
        std::process::Command::new(env!("CARGO_BIN_EXE_runner-ui")).arg("--project-dir").arg(sandbox.root()),
    );
    let error = ran.refused(2);
    assert!(error.contains("is not in a git repository") && error.contains("--project-dir DIR"), "{error}");
}
