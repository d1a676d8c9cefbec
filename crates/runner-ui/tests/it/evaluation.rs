//! The results of an evaluation and the runs of its trials.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use testkit::processes::wait_for;
use testkit::test_repo::{TestRepo, run};

use crate::server::{Server, all_files, next_event, runner};

/// The `runner-eval` binary. It belongs to another crate, so it only exists if it was built before.
fn evaluator() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_runner-ui")).with_file_name("runner-eval");
    assert!(path.is_file(), "`{}` is not built: cargo build -p runner-eval", path.display());
    path
}

/// A folder with two cases: one that its agent solves, and one that it does not.
struct Suite {
    sandbox: TestRepo,
}

const WORKS: &str = "[[session.do]]\nwrite = { path = \"done.txt\", text = \"done\" }\n";

impl Suite {
    fn new() -> Self {
        let suite = Self { sandbox: TestRepo::empty(&evaluator().display().to_string()) };
        suite.add("solved", WORKS);
        suite.add("unsolved", "");
        suite
    }

    /// A case that requires a file `done.txt`.
    fn add(&self, name: &str, actions: &str) {
        self.sandbox.write(
            &format!("eval/cases/{name}/case.toml"),
            format!(
                "[case]\nid = \"{name}\"\ngoal = \"Write done.txt\"\nsolution = \"agent.toml\"\n\
                 [config.executor]\nkind = \"script\"\nscenario = \"agent.toml\"\nsandbox = \"off\"\n\
                 [config.guard]\ncommand = [\"sh\", \"-c\", \"echo checked\"]\n[[checks]]\ntype = \"file_exists\"\npath = \"done.txt\"\n"
            ),
        );
        let session = format!("[[session]]\nanswer = {{ status = \"done\", summary = \"done\" }}\n{actions}");
        self.sandbox.write(&format!("eval/cases/{name}/agent.toml"), session);
    }

    fn run_command(&self, name: &str, args: &[&str]) -> Command {
        let mut command = self.sandbox.runner_command(&["run", "--run", name]);
        command.arg("--runner").arg(runner()).args(args);
        command
    }

    fn run(&self, name: &str, args: &[&str]) {
        let ran = run(&mut self.run_command(name, args));
        assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    }

    fn eval(&self, args: &[&str]) -> Value {
        let ran = self.sandbox.runner(args);
        serde_json::from_str(&ran.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}{}", ran.stdout, ran.stderr))
    }

    fn server(&self) -> Server {
        Server::with(self.sandbox.root(), &["--eval"]).authorized()
    }
}

#[test]
fn results_need_the_token_because_trials_run_on_the_same_machine() {
    let suite = Suite::new();
    suite.run("monday", &["--agent", "nop"]);
    let server = Server::with(suite.sandbox.root(), &["--eval"]);
    let trial = "/trial/solved/monday.nop.t01.a1/api/iterations";
    for path in ["/api/eval?run=monday", "/api/snapshot", "/events", trial] {
        assert_eq!(server.get(path).status, 401, "{path}");
    }
    let server = server.authorized();
    assert_eq!(server.get("/api/eval?run=monday").status, 200);
}

#[test]
fn grid_has_every_trial_and_the_numbers_of_the_report() {
    let suite = Suite::new();
    suite.run("monday", &["--trials", "2", "--agent", "oracle", "--agent", "nop"]);
    let server = suite.server();
    assert_eq!(server.get("/api/snapshot").ok()["server"]["shows"], "evaluation");
    let view = server.get("/api/eval").ok();
    assert_eq!((&view["runs"][0]["run"], &view["runs"][0]["done"]), (&json!("monday"), &json!(8)));
    let grid = &view["grid"];
    let report = suite.eval(&["report", "table", "monday", "--json"]);
    for rows in ["agents", "cases"] {
        let shown = grid[rows].as_array().unwrap();
        let computed = report[rows].as_array().unwrap();
        assert_eq!(shown.len(), computed.len());
        for (shown, computed) in shown.iter().zip(computed) {
            for (key, report_key) in [
                ("rate", "pass_rate"),
                ("interval", "confidence_interval"),
                ("left_out", "unscored"),
                ("n", "n"),
            ] {
                assert_eq!(shown[key], computed[report_key], "{key}");
            }
        }
    }
    assert!(grid["cases"][0]["interval"]["high"].as_f64().unwrap() > 0.5);
    let trials = grid["trials"].as_array().unwrap();
    let find = |id: &str, case: &str| {
        trials.iter().find(|trial| trial["id"] == id && trial["case"] == case).unwrap()
    };
    let good = find("monday.oracle.t02.a1", "solved");
    assert_eq!(
        (&good["outcome"], &good["is_scored"], &good["cause"]),
        (&json!("success"), &json!(true), &json!(null))
    );
    let bad = find("monday.oracle.t01.a1", "unsolved");
    assert_eq!(
        (&bad["outcome"], &bad["cause"], &bad["checks"][0]["passed"]),
        (&json!("fail"), &json!("agent"), &json!(false))
    );
    assert_eq!(server.get("/api/eval?run=tuesday").status, 404);
    assert_eq!(server.get("/api/tree").status, 404, "an evaluation has no tree");
}

#[test]
fn comparison_is_that_of_runner_eval() {
    let suite = Suite::new();
    suite.run("monday", &["--agent", "nop"]);
    suite.run("tuesday", &["--agent", "oracle"]);
    let server = suite.server();
    let comparison = server.get("/api/eval/compare?base=monday&new=tuesday").ok();
    let expected = suite.eval(&["compare", "monday", "tuesday", "--json"]);
    assert_eq!(
        (&comparison["difference"], &comparison["words"]),
        (&expected["difference"], &expected["summary"])
    );
    assert_eq!(comparison["paired"]["cases"], expected["paired"]["cases"]);
    assert!(comparison["words"].as_str().unwrap().contains("neither a difference"));
    for query in
        ["base=monday", "base=--help&new=monday", "base=/etc&new=monday", "base=monday@codex&new=tuesday"]
    {
        assert_eq!(server.get(&format!("/api/eval/compare?{query}")).status, 404, "{query}");
    }
}

#[test]
fn run_of_a_trial_is_shown_like_any_other_and_nothing_is_written() {
    let suite = Suite::new();
    suite.run("monday", &["--agent", "oracle"]);
    let before = all_files(&suite.sandbox.path("eval"));
    let server = suite.server();
    for id in ["monday.oracle.t01.a1", "latest"] {
        let at = |rest: &str| server.get(&format!("/trial/solved/{id}/api/{rest}"));
        let snapshot = at("snapshot").ok();
        assert_eq!(
            (&snapshot["state"], &snapshot["server"]["shows"]),
            (&json!("complete"), &json!("repository"))
        );
        assert_eq!(snapshot["server"]["project"], "monday.oracle.t01.a1");
        let run = snapshot["run"]["id"].as_str().unwrap().to_owned();
        assert_eq!(at("iterations").ok()["iterations"][0]["outcome"], "passed");
        assert_eq!(at("tree").ok()["root"]["passes"], true);
        assert_eq!(at(&format!("iterations/{run}/1/guard.log")).text(), "checked\n");
        assert_eq!(at(&format!("iterations/{run}/1/log/guard?count=5")).ok()["total"], 1);
        let files = at(&format!("iterations/{run}/1/diff")).ok()["files"].clone();
        assert_eq!(files[0]["path"], "done.txt");
        assert_eq!(at(&format!("iterations/{run}/1/diff/file?path=done.txt")).ok()["path"], "done.txt");
        assert_eq!(at("verify").ok()["verdict"], "verified");
    }
    server.get("/api/eval").ok();
    drop(server);
    assert_eq!(all_files(&suite.sandbox.path("eval")), before);
}

#[test]
fn trial_without_a_workspace_is_shown_from_its_result() {
    let suite = Suite::new();
    suite.run("monday", &["--agent", "oracle"]);
    let server = suite.server();
    let at = |rest: &str| server.get(&format!("/trial/solved/monday.oracle.t01.a1/api/{rest}"));
    let run = at("snapshot").ok()["run"]["id"].as_str().unwrap().to_owned();
    assert_eq!(suite.sandbox.runner(&["clean"]).code, Some(0));
    let snapshot = at("snapshot").ok();
    assert_eq!((&snapshot["state"], &snapshot["server"]["shows"]), (&json!("complete"), &json!("record")));
    assert_eq!(at(&format!("iterations/{run}/1/guard.log")).text(), "checked\n");
    assert_eq!(at("tree").ok()["root"]["passes"], true);
    assert_eq!(at(&format!("iterations/{run}/1/diff")).status, 404);
    assert_eq!(at("verify").ok()["verdict"], "unknown");
    assert_eq!(server.get("/trial/solved/latest/api/snapshot").status, 404);
}

#[test]
fn no_address_of_a_trial_leads_out_of_it() {
    let suite = Suite::new();
    suite.run("monday", &["--agent", "oracle"]);
    let workspace = |name: &str| suite.sandbox.path(&format!("eval/workspaces/{name}"));
    fs::create_dir_all(suite.sandbox.outside().join("other/r.x.t01.a1")).unwrap();
    symlink(suite.sandbox.outside().join("other"), workspace("linked")).unwrap();
    symlink(workspace("solved/monday.oracle.t01.a1"), workspace("solved/linked")).unwrap();
    symlink("/etc", workspace("evil_latest")).unwrap();
    // A folder in a repository is not a repository, and the one around it is not a trial.
    fs::create_dir_all(workspace("solved/plain")).unwrap();
    let server = suite.server();
    for (path, status) in [
        ("linked/r.x.t01.a1/api/snapshot", 404),
        ("solved/linked/api/snapshot", 404),
        ("evil/latest/api/snapshot", 404),
        ("solved/plain/api/snapshot", 404),
        ("solved/none/api/snapshot", 404),
        ("_runs/monday/api/snapshot", 400),
        ("..%2f..%2f/x/api/snapshot", 400),
        ("solved/%2e%2e/api/snapshot", 400),
        ("solved/monday.oracle.t01.a1/../../../etc/passwd", 404),
        ("solved/monday.oracle.t01.a1/api/iterations/..%2f..%2fx/1/guard.log", 400),
        ("solved/monday.oracle.t01.a1/assets/app.js", 404),
    ] {
        let response = server.get(&format!("/trial/{path}"));
        assert_eq!(response.status, status, "{path}: {}", response.text());
        assert!(response.header("content-security-policy").is_some(), "{path}");
    }
    let snapshot = "/trial/solved/latest/api/snapshot";
    assert_eq!(server.request("HEAD", snapshot, &[]).status, 200);
    assert_eq!(server.request("POST", snapshot, &[]).status, 405);
    assert_eq!(server.request("POST", "/api/eval", &[]).status, 405);
    assert_eq!(server.request("GET", snapshot, &[("Host", "evil.example")]).status, 403);
    assert_eq!(server.request("GET", "/api/eval", &[("Origin", "http://evil.example")]).status, 403);
}

#[test]
fn results_and_the_newest_trial_are_followed_live() {
    let suite = Suite::new();
    let server = suite.server();
    let mut stream = server.listen(&[]);
    next_event(&mut stream, "hello");
    assert_eq!(server.get("/api/eval").ok()["grid"], json!(null));
    let mut command = suite.run_command("monday", &["--trials", "2", "--agent", "oracle", "solved"]);
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let mut latest = Vec::new();
    while !latest.contains(&"monday.oracle.t02.a1".to_owned()) {
        let (event, _) = next_event(&mut stream, "trial_changed");
        assert_eq!(event["case"], "solved");
        // The previous trial may still be finishing.
        if event["is_latest"] == true {
            latest.push(event["id"].as_str().unwrap().to_owned());
        }
        server.get("/trial/solved/latest/api/snapshot").ok();
    }
    next_event(&mut stream, "results_changed");
    assert!(child.wait().unwrap().success());
    wait_for("the results", || server.get("/api/eval").ok()["runs"][0]["done"] == 2);
    assert_eq!(server.get("/api/eval").ok()["grid"]["missing"], json!([]));
}

#[test]
fn folder_without_results_is_refused_with_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(Command::new(env!("CARGO_BIN_EXE_runner-ui")).arg("--eval").arg(folder.path()));
    assert!(ran.refused(2).contains("hint: pass the folder of its results"));
}
