//! The recorder between the real Codex and Claude Code and their provider, and whole runs that they repeat offline from recorded
//! answers.
#![expect(clippy::indexing_slicing, reason = "here a fault is a failed test")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use testkit::oracle::{assert_sound, processes_of};
use testkit::processes::wait_for;
use testkit::run_builder::RunBuilder;
use testkit::test_repo::{TestRepo, run};

use crate::agents::real::{BOTH, WHOLE_RUN, command, model_of, ran, setup, started};

/// The outcomes of the scripted run.
const OUTCOMES: [&str; 4] = ["decomposed", "passed", "guard_failed", "passed"];

/// An address where nothing listens: a port for tests that no service has.
const NOWHERE: &str = "http://127.0.0.1:9";

/// Where the recorded run of an agent is. With UPDATE_RECORDED=1 it is recorded again.
fn fixture(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded_requests").join(kind)
}

fn recorded(kind: &str, url: &str) -> RunBuilder {
    setup(kind, url).executor_keys("record = true")
}

fn lines(repo: &TestRepo, iter: u32) -> Vec<Value> {
    let text = repo.iteration_file(iter, "requests.jsonl");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Stores what a replay needs of a recorded run: no headers of requests, and no bodies.
fn store(kind: &str, repo: &TestRepo) {
    for iter in 1..=OUTCOMES.len() {
        let folder = fixture(kind).join(format!("{iter:04}"));
        fs::create_dir_all(&folder).unwrap();
        let mut text = String::new();
        for mut line in lines(repo, u32::try_from(iter).unwrap()) {
            if line["kind"] == "request" {
                line["body"] = Value::Null;
                line["headers"] = Value::Object(serde_json::Map::new());
            }
            text.push_str(&format!("{line}\n"));
        }
        fs::write(folder.join("requests.jsonl"), text).unwrap();
    }
}

#[test]
fn every_request_is_on_record_without_keys() {
    for kind in BOTH {
        let model = model_of(WHOLE_RUN);
        let repo = started(&recorded(kind, &model.url()));
        let ended = ran(&repo, &["loop"]);
        let log = repo.iteration_file(1, "executor.log");
        assert_eq!(ended.code, Some(0), "{kind}: {}{}{log}", ended.stdout, ended.stderr);
        assert_eq!(repo.outcomes(), OUTCOMES, "{kind}");
        let mut sent: Vec<Value> = Vec::new();
        for iter in 1..=4 {
            let lines = lines(&repo, iter);
            let text = repo.iteration_file(iter, "requests.jsonl");
            assert!(!text.contains("sk-dummy"), "{kind}: a key is on record");
            assert!(
                text.contains("[redacted]"),
                "{kind}: the key's header is there without its value: {text}"
            );
            let requests: Vec<&Value> = lines.iter().filter(|line| line["kind"] == "request").collect();
            let answers = lines.iter().filter(|line| line["kind"] == "answer");
            assert!(answers.clone().all(|answer| answer["error"].is_null()), "{kind}: {text}");
            assert_eq!(answers.count(), requests.len(), "{kind}");
            let meta = &repo.meta(iter)["requests"];
            assert_eq!(meta["count"], requests.len(), "{kind}");
            assert_eq!(meta["sha256"].as_str().map(str::len), Some(64), "{kind}");
            sent.extend(requests.iter().map(|request| request["body"].clone()).filter(Value::is_object));
        }
        let mut received: Vec<Value> = model.requests().iter().map(|request| request.body.clone()).collect();
        received.retain(Value::is_object);
        assert_eq!(sent.len(), received.len(), "{kind}");
        for (sent, mut received) in sent.into_iter().zip(received) {
            received.sort_all_objects();
            assert_eq!(sent, received, "{kind}: what is on record is what the provider got");
        }
        assert_eq!(processes_of(repo.outside()), [""; 0], "{kind}");
        assert!(!repo.path(".git/runner/recorder").exists(), "{kind}: no body is left");
        let shown = repo.runner(&["log", "2", "--requests"]).ok().stdout;
        assert_eq!(shown.trim_end(), repo.iteration_file(2, "requests.jsonl").trim_end(), "{kind}");
        assert_sound(&repo);
        if std::env::var_os("UPDATE_RECORDED").is_some() {
            store(kind, &repo);
        }
    }
}

#[test]
fn recorded_answers_repeat_a_whole_run_offline() {
    for kind in BOTH {
        let keys = format!("record = true\nreplay = \"{}\"", fixture(kind).display());
        let repo = started(&setup(kind, NOWHERE).executor_keys(&keys));
        let ended = ran(&repo, &["loop"]);
        let log = repo.iteration_file(1, "executor.log");
        assert_eq!(ended.code, Some(0), "{kind}: {}{}{log}", ended.stdout, ended.stderr);
        assert_eq!(repo.outcomes(), OUTCOMES, "{kind}");
        assert_eq!(repo.read("two.txt"), "right\n", "{kind}");
        for iter in 1..=4 {
            let requests = &repo.meta(iter)["requests"];
            assert_eq!(requests["replay"]["missing"], 0, "{kind}: {requests}");
            let answered = requests["replay"]["same"].as_u64().unwrap()
                + requests["replay"]["similar"].as_u64().unwrap();
            assert_eq!(requests["count"], answered, "{kind}: {requests}");
        }
        assert_sound(&repo);
    }
}

/// Without `base_url` the agents talk to their own providers, with their own keys. The recorder is in between there too.
#[test]
fn own_providers_of_the_agents_are_behind_the_recorder() {
    for (kind, key) in [("codex", "CODEX_API_KEY"), ("claude", "ANTHROPIC_API_KEY")] {
        let program = testkit::agents::program(kind);
        let model = if kind == "codex" { "gpt-5.5" } else { "scripted" };
        let keys = format!("kind = \"{kind}\"\nprogram = \"{}\"\nmodel = \"{model}\"", program.display());
        let recorder = format!("record = true\nreplay = \"{}\"", fixture(kind).display());
        let setup = setup(kind, NOWHERE).executor(&keys).executor_keys(&recorder);
        let repo = started(&setup);
        let ended = run(command(&repo, &["loop"]).env(key, "sk-dummy-of-the-agents-own"));
        let log = repo.iteration_file(1, "executor.log");
        assert_eq!(repo.outcomes(), OUTCOMES, "{kind}: {}{}{log}", ended.stdout, ended.stderr);
        let text = repo.iteration_file(1, "requests.jsonl");
        assert!(!text.contains("of-the-agents-own") && text.contains("[redacted]"), "{kind}: {text}");
        assert_sound(&repo);
    }
}

#[test]
fn session_without_its_recording_does_not_start() {
    for kind in BOTH {
        // A folder without a recording of the iteration.
        let repo = started(&setup(kind, NOWHERE).executor_keys("replay = \".runner\""));
        let step = ran(&repo, &["step"]);
        assert_eq!(repo.outcomes(), ["agent_not_started"], "{kind}: {}{}", step.stdout, step.stderr);
        let exit = repo.meta(1)["exit"].to_string();
        assert!(exit.contains(".runner/0001/requests.jsonl") && exit.contains("is no recording"), "{exit}");
        let config = repo.read(".runner/state/config.toml").replace("\".runner\"", "\"no-such-run\"");
        repo.write(".runner/state/config.toml", config);
        repo.runner(&["start"]).ok();
        let refused = ran(&repo, &["loop"]).refused(2);
        assert!(refused.contains("there is no recorded run in `no-such-run`"), "{refused}");
    }
}

/// The classes of failures are those without a recorder.
#[test]
fn failures_of_the_provider_pass_through_the_recorder() {
    for (kind, fault, class) in [
        ("codex", "{ what.http.status = 401 }", "not_logged_in"),
        ("claude", "{ what.http.status = 401 }", "not_logged_in"),
        ("codex", "{ what.http.status = 429 }", "rate_limited"),
        ("claude", "{ what.http.status = 529 }", "overloaded"),
        ("codex", "{ what = 'drop' }", "disconnected"),
        ("claude", "{ what = 'drop' }", "disconnected"),
    ] {
        let model = model_of(&format!("[[part]]\n[[part.step]]\nfault = [{fault}]\n"));
        let repo = started(&recorded(kind, &model.url()));
        let step = ran(&repo, &["step"]);
        assert_eq!(repo.outcomes(), [class], "{kind} {fault}: {}{}", step.stdout, step.stderr);
        assert!(lines(&repo, 1).len() >= 2, "{kind} {fault}");
        assert_sound(&repo);
    }
}

#[test]
fn unreachable_provider_is_a_lost_connection() {
    for kind in BOTH {
        let repo = started(&recorded(kind, NOWHERE));
        ran(&repo, &["step"]);
        assert_eq!(repo.outcomes(), ["disconnected"], "{kind}: {}", repo.iteration_file(1, "executor.log"));
        let lines = lines(&repo, 1);
        let answer = lines.iter().find(|line| line["kind"] == "answer").unwrap();
        assert!(
            answer["status"].is_null() && answer["error"].as_str().unwrap().contains("onnect"),
            "{answer}"
        );
        assert_sound(&repo);
    }
}

#[test]
fn killed_runner_leaves_no_request_behind() {
    let model = model_of("[[part]]\n[[part.step]]\nfault = [{ what = 'hang' }]\n");
    let repo = started(&recorded("codex", &model.url()));
    let curl_of = |parent: u32| {
        let threads = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
        let children = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
        let pids: Vec<String> = children
            .flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
            .collect();
        let is_curl =
            |pid: &String| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "curl\n");
        pids.into_iter().filter(is_curl).collect::<Vec<_>>()
    };
    let mut child = command(&repo, &["loop"]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for("the request", || !curl_of(child.id()).is_empty());
    let requests = curl_of(child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("the end of the request", || {
        requests.iter().all(|pid| !Path::new(&format!("/proc/{pid}/fd")).exists())
    });
    wait_for("the session's end", || processes_of(repo.outside()).is_empty());
    repo.runner(&["start"]).ok();
    assert!(!repo.path(".git/runner/recorder").exists(), "recovery removes bodies");
    assert_sound(&repo);
}

#[test]
fn recording_needs_curl() {
    let model = model_of(WHOLE_RUN);
    let repo = started(&recorded("codex", &model.url()));
    let folder = repo.outside().join("few-programs");
    fs::create_dir(&folder).unwrap();
    for program in ["git", "sh", "true", "bwrap"] {
        let found = std::env::split_paths(&std::env::var_os("PATH").unwrap())
            .map(|folder| folder.join(program))
            .find(|path| path.exists());
        if let Some(found) = found {
            std::os::unix::fs::symlink(found, folder.join(program)).unwrap();
        }
    }
    let doctor = run(command(&repo, &["doctor"]).env("PATH", &folder));
    assert!(doctor.stdout.contains("curl"), "{}", doctor.stdout);
    let step = run(command(&repo, &["step"]).env("PATH", &folder));
    let text = format!("{}{}", step.stdout, step.stderr);
    assert!(text.contains("curl"), "{text}");
}
