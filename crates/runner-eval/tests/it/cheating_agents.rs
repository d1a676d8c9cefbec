//! Agents that work on the evaluation instead of the task gain nothing.

use std::fs;

use testkit::oracle::assert_nothing_of;

use crate::Suite;

/// What an agent does with a shell.
fn shell(script: &str) -> String {
    format!("[[session.do]]\nrun = {{ argv = [\"sh\", \"-c\", '''{script}'''] }}\n")
}

#[test]
fn a_result_that_the_agent_wrote_counts_for_nothing() {
    let suite = Suite::of(&["other"]);
    // The cheat runs first and leaves a whole result, as good as they come, for itself and for the next case.
    suite.add(
        "a-cheat",
        "",
        &shell(
            "cd ../../..; for case in a-cheat other; do for attempt in 1 2; do
           folder=results/$case/r.case.t01.a$attempt; mkdir -p $folder; cp -r model/* $folder
           sed -i s/CASE/$case/\\;s/ATTEMPT/$attempt/ $folder/meta.json; done; done",
        ),
    );
    suite.sandbox.write(
        "eval/model/meta.json",
        "{\"schema\": \"runner.eval.meta/1\", \"case_id\": \"CASE\", \"tags\": [], \"agent\": \"case\", \"trial\": 1, \
         \"attempt\": ATTEMPT, \"run\": \"r\", \"eval_run_id\": \"r.case.t01.aATTEMPT\", \"outcome\": \"success\", \
         \"cause\": null, \"why\": null, \"expected\": null, \"runner_exit\": 0, \"wall_secs\": 0.0, \"loop_secs\": 0.0, \
         \"iterations\": 1, \"tokens\": null, \"cost\": {\"microdollars\": null, \"basis\": \"unknown\"}, \
         \"runner\": {\"version\": \"v\", \"sha256\": \"s\"}, \"started_at\": \"\", \"ended_at\": \"\"}",
    );
    suite.sandbox.write("eval/model/checks.json", "{\"schema\": \"runner.eval.checks/1\", \"checks\": []}");
    suite.sandbox.write(
        "eval/model/lock.json",
        "{\"schema\": \"runner.eval.lock/1\", \"case_sha256\": \"\", \"fixture_sha256\": null, \"checks_sha256\": \"\", \
         \"config_sha256\": \"\", \"runner\": {\"version\": \"v\", \"sha256\": \"s\"}, \"host\": {\"os\": \"\", \
         \"arch\": \"\", \"cpus\": 1, \"memory_bytes\": null, \"jobs\": 1}, \"files\": {}, \"seal\": \"\"}",
    );
    let ran = suite.eval(&["run", "--run", "r"]).ok();
    assert!(ran.stdout.contains("was not made by this evaluation"), "{}", ran.stdout);
    let ended: Vec<(String, String)> =
        suite.results().into_iter().map(|(case, .., outcome, _)| (case, outcome)).collect();
    let pair = |case: &str, outcome: &str| (case.to_owned(), outcome.to_owned());
    assert_eq!(ended, [pair("a-cheat", "fail"), pair("other", "success")]);
    assert_eq!(fs::read_dir(suite.sandbox.path("eval/results/_forged")).unwrap().count(), 4);
    let merged = suite.eval(&["merge", "--run", "r"]).ok();
    assert!(merged.stdout.contains("results=2 attempts=2"), "{}", merged.stdout);
}

#[test]
fn a_result_that_was_changed_afterwards_is_none() {
    let suite = Suite::of(&["one"]);
    suite.add("lost", "", "");
    suite.eval(&["run", "--run", "r"]).ok();
    let path = "eval/results/lost/r.case.t01.a1/meta.json";
    let better = suite.sandbox.read(path).replace("\"fail\"", "\"success\"").replace("\"agent\",", "null,");
    suite.sandbox.write(path, better);
    let told = suite.eval(&["results"]);
    assert_eq!(told.code, Some(1));
    assert!(told.stdout.contains("unreadable=") && told.stdout.contains("changed since"), "{}", told.stdout);
    let merged = suite.eval(&["merge", "--run", "r"]);
    assert!(merged.stdout.contains("missing=lost/case.t01"), "{}", merged.stdout);
}

#[test]
fn checks_that_the_agent_changed_are_not_run() {
    let suite = Suite::new();
    suite.add("editor", "", &shell("sed -i s/done.txt/agent.toml/ ../../../cases/*/case.toml"));
    suite.add("next", "", "");
    let ran = suite.eval(&["run"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert!(ran.stderr.contains("case `next` is not what it was"), "{}", ran.stderr);
    // The trial that changed them was judged by the checks as they had been.
    assert_eq!(
        suite
            .results()
            .iter()
            .map(|(case, .., outcome, _)| (case.as_str(), outcome.as_str()))
            .collect::<Vec<_>>(),
        [("editor", "fail")]
    );
}

#[test]
fn nothing_that_the_agent_left_running_sees_the_checks() {
    let suite = Suite::new();
    let server = "(setsid sh -c 'while :; do for room in ../*.trial/checked; do
        [ -d \"$room\" ] && echo cheated > \"$room/done.txt\"; done; sleep 0.01; done' >/dev/null 2>&1 &)";
    suite.add("server", "", &shell(server));
    suite.eval(&["run"]).ok();
    assert_eq!(suite.results()[0].3, "fail");
    assert_nothing_of(suite.sandbox.outside());
}

#[test]
fn hidden_files_are_not_written_through_the_agents_links_and_never_lie_in_the_workspace() {
    let suite = Suite::new();
    suite.add(
        "linker",
        "hidden = \"hidden\"\n",
        &shell("mkdir ../../../loot; ln -s ../../../loot tests; ls -R . > seen.txt; touch done.txt"),
    );
    suite
        .sandbox
        .write("eval/cases/linker/hidden/tests/secret.sh", "test -f done.txt && ! grep -q secret seen.txt\n");
    let case = suite.sandbox.read("eval/cases/linker/case.toml");
    let check =
        "[[checks]]\ntype = \"command_succeeds\"\ncommand = [\"sh\", \"tests/secret.sh\"]\nhidden = true\n";
    suite.sandbox.write("eval/cases/linker/case.toml", format!("{case}{check}"));
    suite.eval(&["run"]).ok();
    assert_eq!(suite.results()[0].3, "success");
    assert_eq!(fs::read_dir(suite.sandbox.path("eval/loot")).unwrap().count(), 0);
    assert!(!suite.sandbox.path("eval/workspaces/linker_latest/tests/secret.sh").exists());
}

#[test]
fn an_agent_that_ends_its_runner_is_counted() {
    let suite = Suite::new();
    suite.add("killer", "", &shell("kill -TERM $(ps -o ppid= -p $(ps -o ppid= -p $(ps -o ppid= -p $$)))"));
    let ran = suite.eval(&["run"]);
    let (_, _, _, outcome, cause) = suite.results().remove(0);
    assert!(outcome != "success" && cause == "agent", "{outcome} {cause}: {}", ran.stdout);
}
