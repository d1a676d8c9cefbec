//! Agents that attack the evaluation instead of doing the task.

use std::fs;

use testkit::oracle::assert_no_processes_of;

use crate::{Suite, shell};

#[test]
fn forged_results_do_not_count() {
    let suite = Suite::with_cases(&["other"]);
    // The cheat runs first and writes complete, successful results for itself and for the next case.
    suite.add(
        "a-cheat",
        "",
        &shell(
            "cd ../../..; for case in a-cheat other; do for attempt in 1 2; do
           folder=results/$case/r.case.t01.a$attempt; mkdir -p $folder; cp -r model/* $folder
           sed -i s/CASE/$case/\\;s/ATTEMPT/$attempt/ $folder/meta.json; done; done",
        ),
    );
    suite.repo.write(
        "eval/model/meta.json",
        "{\"schema\": \"runner.eval.meta/1\", \"case_id\": \"CASE\", \"tags\": [], \"agent\": \"case\", \"trial\": 1, \
         \"attempt\": ATTEMPT, \"run\": \"r\", \"eval_run_id\": \"r.case.t01.aATTEMPT\", \"outcome\": \"success\", \
         \"cause\": null, \"why\": null, \"expected\": null, \"runner_exit\": 0, \"wall_secs\": 0.0, \"loop_secs\": 0.0, \
         \"iterations\": 1, \"tokens\": null, \"cost\": {\"microdollars\": null, \"source\": \"unknown\"}, \"metrics\": null, \
         \"runner\": {\"version\": \"v\", \"sha256\": \"s\"}, \"started_at\": \"\", \"ended_at\": \"\"}",
    );
    suite.repo.write("eval/model/checks.json", "{\"schema\": \"runner.eval.checks/1\", \"checks\": []}");
    suite.repo.write(
        "eval/model/inputs.json",
        "{\"schema\": \"runner.eval.inputs/1\", \"case_sha256\": \"\", \"fixture_sha256\": null, \"checks_sha256\": \"\", \
         \"config_sha256\": \"\", \"runner\": {\"version\": \"v\", \"sha256\": \"s\"}, \"evaluator\": \"\", \"agent_version\": null, \"model\": null, \"isolation\": \"none\", \"host\": {\"os\": \"\", \"hostname\": \"\", \"kernel\": \"\", \
         \"arch\": \"\", \"cpus\": 1, \"memory_bytes\": null, \"jobs\": 1}, \"files\": {}, \"signature\": \"\"}",
    );
    let output = suite.eval(&["run", "--run", "r", "--isolation", "off"]).ok();
    assert!(output.stdout.contains("was not created by this evaluation"), "{}", output.stdout);
    assert_eq!(suite.outcomes(), ["a-cheat fail", "other success"]);
    assert_eq!(fs::read_dir(suite.repo.path("eval/results/_forged")).unwrap().count(), 4);
    let merge = suite.eval(&["merge", "--run", "r"]).ok();
    assert!(merge.stdout.contains("results=2 attempts=2"), "{}", merge.stdout);
}

#[test]
fn changed_result_has_no_valid_signature() {
    let suite = Suite::with_cases(&["one"]);
    suite.add("failed", "", "");
    suite.eval(&["run", "--run", "r"]).ok();
    let path = "eval/results/failed/r.case.t01.a1/meta.json";
    let success = suite.repo.read(path).replace("\"fail\"", "\"success\"").replace("\"agent\",", "null,");
    suite.repo.write(path, success);
    let results = suite.eval(&["results"]);
    assert_eq!(results.code, Some(1));
    assert!(results.stdout.contains("unreadable="), "{}", results.stdout);
    assert!(results.stdout.contains("the signature is not valid"), "{}", results.stdout);
    let merge = suite.eval(&["merge", "--run", "r"]);
    assert!(merge.stdout.contains("missing=failed/case.t01"), "{}", merge.stdout);
}

#[test]
fn checks_that_an_agent_changed_are_not_run() {
    let suite = Suite::new();
    suite.add("editor", "", &shell("sed -i s/done.txt/agent.toml/ ../../../cases/*/case.toml"));
    suite.add("next", "", "");
    let output = suite.eval(&["run", "--isolation", "off"]);
    assert_eq!(output.code, Some(1), "{}", output.stdout);
    assert!(output.stderr.contains("case `next` has changed since the run started"), "{}", output.stderr);
    // The trial that changed the checks ran with the original ones.
    assert_eq!(suite.outcomes(), ["editor fail"]);
}

#[test]
fn process_left_by_an_agent_is_dead_before_the_checks() {
    let suite = Suite::new();
    let server = "(setsid sh -c 'while :; do for copy in ../*.trial/checked; do
        [ -d \"$copy\" ] && echo cheated > \"$copy/done.txt\"; done; sleep 0.01; done' >/dev/null 2>&1 &)";
    suite.add("server", "", &shell(server));
    suite.eval(&["run", "--isolation", "off"]).ok();
    assert_eq!(suite.outcomes(), ["server fail"]);
    assert_no_processes_of(suite.repo.outside());
}

#[test]
fn hidden_files_are_not_written_through_links_nor_into_the_workspace() {
    let suite = Suite::new();
    suite.add(
        "linker",
        "hidden = \"hidden\"\n",
        &shell("mkdir ../../../loot; ln -s ../../../loot tests; ls -R . > seen.txt; touch done.txt"),
    );
    suite
        .repo
        .write("eval/cases/linker/hidden/tests/secret.sh", "test -f done.txt && ! grep -q secret seen.txt\n");
    let case = suite.repo.read("eval/cases/linker/case.toml");
    let check =
        "[[checks]]\ntype = \"command_succeeds\"\ncommand = [\"sh\", \"tests/secret.sh\"]\nhidden = true\n";
    suite.repo.write("eval/cases/linker/case.toml", format!("{case}{check}"));
    suite.eval(&["run", "--isolation", "off"]).ok();
    assert_eq!(suite.outcomes(), ["linker success"]);
    assert_eq!(fs::read_dir(suite.repo.path("eval/loot")).unwrap().count(), 0);
    assert!(!suite.repo.path("eval/workspaces/linker_latest/tests/secret.sh").exists());
}

#[test]
fn agent_that_kills_its_runner_is_scored() {
    let suite = Suite::new();
    suite.add("killer", "", &shell("kill -TERM $(ps -o ppid= -p $(ps -o ppid= -p $(ps -o ppid= -p $$)))"));
    let output = suite.eval(&["run", "--isolation", "off"]);
    let result = suite.results().remove(0);
    assert_ne!(result.outcome, "success", "{}", output.stdout);
    assert_eq!(result.cause, "agent", "{}", output.stdout);
}
