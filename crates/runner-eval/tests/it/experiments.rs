//! Arms, budgets, loop metrics, broken cases and other things that `run` must get right.

use crate::{Suite, shell};

#[test]
fn arms_are_compared_with_the_base_on_the_same_cases() {
    let names = ["a", "b", "c"];
    let suite = Suite::new();
    // The first attempt fails, so that one attempt is not enough.
    for name in names {
        suite.add(name, "", "");
        let scenario = "[[session]]\nwhen = { attempts = 0 }\nanswer = { status = \"retry\", summary = \"not yet\" }\n\
                        [[session]]\nanswer = { status = \"done\", summary = \"done\" }\n\
                        [[session.do]]\nwrite = { path = \"done.txt\", text = \"x\" }\n";
        suite.repo.write(&format!("eval/cases/{name}/agent.toml"), scenario);
    }
    suite.eval(&["run", "--run", "r", "--arm", "base", "--arm", "max_attempts_default=1"]).ok();
    let report = suite.json(&["report", "table", "r"]);
    let arm = &report["arms"][0];
    assert_eq!(arm["agent"], "case+max_attempts_default=1", "{report}");
    assert_eq!(arm["difference"]["mean"], -1.0, "{arm}");
    assert_eq!(arm["adjusted_p"], arm["difference"]["p_value"]);
    let comparison = suite.json(&["compare", "r@case", "r@case+max_attempts_default=1"]);
    assert_eq!(comparison["n"], 3, "{comparison}");
    assert_eq!(comparison["paired"]["changed"], serde_json::json!([]));
    let error = suite.eval(&["run", "--arm", "max_attempts_standard=1"]).refused(2);
    assert!(error.contains("max_attempts_standard"), "{error}");
    let loops = &report["loops"];
    assert_eq!(loops["case"]["sessions_per_passed_leaf"], 2.0, "{loops}");
    assert_eq!(loops["case"]["false_done_rate"], 0.0, "{loops}");
}

#[test]
fn grid_file_makes_an_arm_per_combination() {
    let suite = Suite::with_cases(&["a"]);
    suite.repo.write("grid.toml", "[[arm]]\nname = \"base\"\n[grid]\nmax_attempts_default = [1, 2]\n");
    suite.eval(&["run", "--run", "r", "--grid", "grid.toml"]).ok();
    assert_eq!(suite.results().len(), 3);
    let report = suite.json(&["report", "table", "r"]);
    assert_eq!(report["agents"].as_array().unwrap().len(), 3);
}

#[test]
fn budget_is_enforced_or_refused() {
    let suite = Suite::with_cases(&["a", "b", "c"]);
    let unknown = suite.eval(&["run", "--run", "unknown", "--budget-usd", "0.01"]);
    assert_eq!(unknown.code, Some(4), "{}", unknown.stdout);
    assert!(unknown.stdout.contains("stop_reason=unknown_spending"), "{}", unknown.stdout);
    assert_eq!(suite.results().len(), 1, "no trial starts once the cost is unknown");

    let suite = Suite::new();
    for name in ["a", "b", "c"] {
        let usage = "[[session.do]]\nreport = { input_tokens = 1000, output_tokens = 1, cost_microdollars = 1000000 }\n\
                     [[session.do]]\nwrite = { path = \"done.txt\", text = \"x\" }\n";
        suite.add(name, "", usage);
    }
    suite.eval(&["plan", "--run", "r"]).ok();
    let first =
        suite.eval(&["run", "--continue", "--run", "r", "--partition", "slice:1/3", "--budget-usd", "2"]);
    assert_eq!(first.code, Some(0), "{}", first.stdout);
    suite.eval(&["run", "--continue", "--run", "r", "--partition", "slice:2/3", "--budget-usd", "2"]).ok();
    let third =
        suite.eval(&["run", "--continue", "--run", "r", "--partition", "slice:3/3", "--budget-usd", "2"]);
    assert_eq!(third.code, Some(4), "the budget is that of the whole run: {}", third.stdout);
    assert_eq!(suite.results().len(), 2);
}

#[test]
fn partly_unknown_cost_is_unknown() {
    let suite = Suite::new();
    suite.add("mixed", "", "");
    let scenario = "[[session]]\nwhen = { iter = 1 }\nanswer = { status = \"retry\", summary = \"x\" }\n\
                    [[session.do]]\nreport = { input_tokens = 1, output_tokens = 1, cost_microdollars = 1000000 }\n\
                    [[session]]\nanswer = { status = \"done\", summary = \"x\" }\n\
                    [[session.do]]\nwrite = { path = \"done.txt\", text = \"x\" }\n";
    suite.repo.write("eval/cases/mixed/agent.toml", scenario);
    suite.eval(&["run", "--run", "r"]).ok();
    let report = suite.json(&["report", "table", "r"]);
    assert_eq!(report["agents"][0]["usd_per_success"], serde_json::Value::Null, "{report}");
}

#[test]
fn machine_that_is_done_helps_with_the_other_partitions() {
    let suite = Suite::with_cases(&["a", "b", "c", "d"]);
    suite.eval(&["plan", "--run", "r"]).ok();
    suite.eval(&["run", "--continue", "--run", "r", "--partition", "slice:1/2", "--steal"]).ok();
    assert_eq!(suite.results().len(), 4);
    suite.eval(&["merge", "--run", "r"]).ok();
}

#[test]
fn setup_script_in_the_case_folder_runs() {
    let suite = Suite::new();
    let setup = "setup = [\"sh\", \"setup.sh\"]\n";
    suite.add("prepared", setup, &shell("test -e made-by-setup && touch done.txt"));
    suite.repo.write("eval/cases/prepared/setup.sh", "touch made-by-setup\n");
    suite.eval(&["run"]).ok();
    assert_eq!(suite.outcomes(), ["prepared success"]);
}

#[test]
fn run_without_a_score_fails() {
    let suite = Suite::new();
    suite.add("broken", "setup = [\"false\"]\n", "");
    let output = suite.eval(&["run", "--retries", "0"]);
    assert_eq!(output.code, Some(1), "{}", output.stdout);
}

#[test]
fn broken_case_does_not_stop_other_cases() {
    let suite = Suite::with_cases(&["good"]);
    suite.repo.write("eval/cases/bad/case.toml", "[case]\nid = \"bad\"\n");
    let list = suite.eval(&["list"]);
    assert_eq!(list.code, Some(1));
    assert!(list.stdout.contains("case=good") && list.stdout.contains("broken=bad"), "{}", list.stdout);
    suite.eval(&["run", "good"]).ok();
    assert!(suite.eval(&["run"]).refused(2).contains("bad/case.toml"), "the suite would be smaller");
}

#[test]
fn cases_larger_than_the_memory_can_be_listed() {
    let suite = Suite::with_cases(&["large"]);
    suite.repo.write("eval/cases/large/fixture/x", "");
    let case = suite.repo.read("eval/cases/large/case.toml");
    suite.repo.write("eval/cases/large/case.toml", case.replace("[case]", "[case]\nfixture = \"fixture\""));
    let file = std::fs::File::create(suite.repo.path("eval/cases/large/fixture/x")).unwrap();
    file.set_len(1 << 36).unwrap();
    let mut command = suite.repo.command("sh");
    let script = "ulimit -v 2000000; exec \"$0\" list";
    let output =
        testkit::test_repo::run(command.args(["-c", script, env!("CARGO_BIN_EXE_runner-eval")])).ok();
    assert!(output.stdout.contains("case=large"), "{}", output.stdout);
}

#[test]
fn dry_run_leaves_no_run_behind() {
    let suite = Suite::with_cases(&["good"]);
    suite.eval(&["run", "--run", "real"]).ok();
    suite.eval(&["submit", "slurm", "--run", "planned", "--dry-run"]).ok();
    suite.eval(&["submit", "k8s", "--run", "planned", "--image", "i", "--dry-run"]).ok();
    assert!(!suite.repo.path("eval/results/_runs/planned").exists());
    let report = suite.json(&["report"]);
    assert_eq!(report["results"], "real");
}

#[test]
fn changed_guard_or_setup_is_another_case() {
    for file in ["justfile", "setup.sh"] {
        let suite = Suite::new();
        suite.add(
            "a",
            "justfile = \"justfile\"\nsetup = [\"sh\", \"setup.sh\"]\n",
            "[[session.do]]\nwrite = { path = \"done.txt\", text = \"x\" }\n",
        );
        suite.repo.write("eval/cases/a/justfile", "ci:\n    true\n");
        suite.repo.write("eval/cases/a/setup.sh", "true\n");
        suite.eval(&["run", "--run", "one"]).ok();
        let text = suite.repo.read(&format!("eval/cases/a/{file}"));
        suite.repo.write(&format!("eval/cases/a/{file}"), format!("{text}# changed\n"));
        suite.eval(&["run", "--run", "two"]).ok();
        let gate = suite.eval(&["gate", "one", "two", "--min-cases", "1"]);
        assert_eq!(gate.code, Some(6), "{file}: {}", gate.stdout);
    }
}

#[test]
fn gate_refuses_the_same_results_and_records_its_looks() {
    let suite = Suite::with_cases(&["a"]);
    suite.eval(&["run", "--run", "one"]).ok();
    suite.eval(&["run", "--run", "two"]).ok();
    let error = suite.eval(&["gate", "one", "one"]).refused(2);
    assert!(error.contains("the same results"), "{error}");
    suite.eval(&["gate", "one", "two", "--min-cases", "0"]).refused(2);
    suite.eval(&["gate", "one", "two"]);
    suite.eval(&["gate", "one", "two"]);
    let looks = suite.repo.read("eval/results/_runs/looks.jsonl");
    assert_eq!(looks.lines().count(), 1, "the same data again is not another look: {looks}");
    // Another run of the same agent asks the same question again.
    suite.eval(&["run", "--run", "three"]).ok();
    let gate = suite.json(&["gate", "one", "three"]);
    assert_eq!(gate["earlier_looks"], 1, "{gate}");
    let other = suite.eval(&["run", "--run", "nop", "--agent", "nop"]);
    assert_eq!(other.code, Some(0), "{}", other.stdout);
    assert_eq!(suite.json(&["gate", "one", "nop"])["earlier_looks"], 0, "another agent is another question");
}

#[test]
fn changed_configuration_of_an_arm_is_reported() {
    let suite = Suite::with_cases(&["a"]);
    for (run, attempts) in [("one", 1), ("two", 2)] {
        suite.repo.write(
            "grid.toml",
            format!("[[arm]]\nname = \"x\"\nset = {{ max_attempts_default = {attempts} }}\n"),
        );
        suite.eval(&["run", "--run", run, "--grid", "grid.toml"]).ok();
    }
    suite.eval(&["run", "--run", "three", "--grid", "grid.toml", "--isolation", "off"]).ok();
    let conditions = |base, new| suite.json(&["compare", base, new])["paired"]["conditions"].clone();
    assert_eq!(conditions("one", "two"), serde_json::json!(["configuration (a)"]));
    assert_eq!(conditions("two", "three"), serde_json::json!(["isolation (bubblewrap / none)"]));
}

#[test]
fn lost_trials_are_not_free() {
    let suite = Suite::new();
    for number in 0..10 {
        suite.add(
            &format!("c{number}"),
            "",
            "[[session.do]]\nwrite = { path = \"done.txt\", text = \"x\" }\n",
        );
    }
    suite.eval(&["run", "--run", "one"]).ok();
    // In the new run, one case loses its trial to the provider.
    let report = "[[session]]\n[[session.do]]\nreport = { fault = \"refused\" }\n[[session.do]]\nexit = { code = 1 }\n";
    suite.repo.write("eval/cases/c0/solution.toml", report);
    let case = suite.repo.read("eval/cases/c0/case.toml");
    suite.repo.write("eval/cases/c0/agent.toml", report);
    suite.repo.write("eval/cases/c0/case.toml", case);
    suite.eval(&["run", "--run", "two", "--retries", "0", "--provider-check", "false"]);
    let gate = suite.eval(&["gate", "one", "two", "--margin", "1"]);
    assert_eq!(gate.code, Some(6), "{}", gate.stdout);
    assert!(gate.stdout.contains("1 of 10 trials of `two` have no score"), "{}", gate.stdout);
}

#[test]
fn case_without_a_score_in_the_base_makes_a_comparison_incomplete() {
    let suite = Suite::new();
    for number in 0..3 {
        suite.add(&format!("c{number}"), "", &shell("touch done.txt"));
    }
    suite.eval(&["run", "--run", "one"]).ok();
    suite.eval(&["run", "c1", "c2", "--run", "few"]);
    let incomplete = suite.json(&["gate", "few", "one", "--min-cases", "1", "--margin", "1"]);
    assert_eq!(incomplete["verdict"], "incomplete", "{incomplete}");
    assert!(incomplete["why"].as_str().unwrap().contains("no score in the base results: c0"), "{incomplete}");
}

#[test]
fn case_is_made_from_a_commit() {
    let suite = Suite::new();
    suite.repo.git(&["init", "-q", "-b", "main"]);
    suite.repo.write("add.sh", "echo $(($1 - $2))\n");
    suite.repo.commit_all("first");
    suite.repo.write("add.sh", "echo $(($1 + $2))\n");
    suite.repo.write("tests/add.sh", "test \"$(sh add.sh 2 3)\" = 5\n");
    suite.repo.commit_all("Add instead of subtracting");
    let new = suite.eval(&["new", "adds", "--commit", "HEAD", "--check", "sh tests/add.sh"]).ok();
    assert!(new.stdout.contains("changed=2 hidden=1"), "{}", new.stdout);
    let lint = suite.eval(&["lint", "--trials", "1"]).ok();
    assert!(lint.stdout.contains("case=adds ok=true"), "{}", lint.stdout);
    assert!(
        suite.eval(&["new", "adds", "--commit", "HEAD", "--check", "true"]).refused(2).contains("exists")
    );
}

#[test]
fn case_from_a_commit_keeps_names_bytes_modes_and_links() {
    let suite = Suite::new();
    suite.repo.git(&["init", "-q", "-b", "main"]);
    suite.repo.write("data.bin", "old");
    suite.repo.commit_all("first");
    suite.repo.write("data.bin", [0_u8, 255, 10, 13, 200]);
    suite.repo.write("grüße \"x\".txt", "hallo\n");
    suite.repo.write("tool", "#!/bin/sh\necho tool\n");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(suite.repo.path("tool"), executable).unwrap();
    std::os::unix::fs::symlink("tool", suite.repo.path("link")).unwrap();
    let test = "test \"$(od -An -tu1 data.bin | tr -s ' ')\" = ' 0 255 10 13 200' && test \"$(cat grü*)\" = hallo && test \"$(./link)\" = tool\n";
    suite.repo.write("tests/prüfung.sh", test);
    suite.repo.commit_all("Add a tool");
    let new = suite.eval(&["new", "tool", "--commit", "HEAD", "--check", "sh tests/prüfung.sh"]).ok();
    assert!(new.stdout.contains("changed=5 hidden=1"), "{}", new.stdout);
    let lint = suite.eval(&["lint", "--trials", "1"]);
    assert!(lint.stdout.contains("case=tool ok=true"), "{}", lint.stdout);
}

#[test]
fn tasks_of_other_frameworks_become_cases() {
    let suite = Suite::new();
    for (path, text) in [
        ("hello/task.toml", "schema_version = \"1.4\"\n[agent]\ntimeout_sec = 120.0\n"),
        ("hello/instruction.md", "Write hello.txt with the word hello.\n"),
        ("hello/environment/Dockerfile", "FROM debian\n"),
        ("hello/environment/readme.txt", "x\n"),
        ("hello/tests/test.sh", "grep -q hello /app/hello.txt && echo 1 > /logs/verifier/reward.txt\n"),
        ("hello/solution/solve.sh", "echo hello > hello.txt\n"),
        ("steps/task.toml", "[[steps]]\nname = \"one\"\nmin_reward = 0.5\n[[steps]]\nname = \"two\"\n"),
        ("steps/steps/one/instruction.md", "Write one.txt.\n"),
        ("steps/steps/one/tests/test.sh", "test -e /app/one.txt && echo 0.7 > /logs/verifier/reward.txt\n"),
        ("steps/steps/two/instruction.md", "Write two.txt.\n"),
        ("steps/steps/two/tests/test.sh", "test -e /app/two.txt\n"),
        ("steps/solution/solve.sh", "touch one.txt two.txt\n"),
        ("bench/task.yaml", "instruction: |-\n  Write done.txt.\nauthor: x\n"),
        ("bench/run-tests.sh", "sh $TEST_DIR/check.sh\n"),
        ("bench/tests/check.sh", "test -e /app/done.txt\n"),
        ("bench/solution.sh", "touch done.txt\n"),
    ] {
        suite.repo.write(&format!("tasks/{path}"), text);
    }
    std::fs::create_dir_all(suite.repo.path("eval/cases")).unwrap();
    suite.eval(&["import", "harbor", "tasks/hello", "tasks/steps"]).ok();
    suite.eval(&["import", "terminal-bench", "tasks/bench"]).ok();
    assert!(suite.repo.read("eval/cases/steps/plan/plan.json").contains("\"id\": \"two\""));
    assert!(!suite.repo.path("eval/cases/hello/fixture/Dockerfile").exists());
    let lint = suite.eval(&["lint", "--trials", "1", "--jobs", "2"]);
    assert_eq!(lint.code, Some(0), "{}", lint.stdout);
}
