//! Eight scenarios in which other runners fail.

use std::process::Stdio;

use testkit::oracle::{assert_idle, assert_sound};
use testkit::processes::wait_for;
use testkit::run_builder::{BRANCH, RunBuilder};
use testkit::test_repo::TestRepo;

use crate::RUNNER;

/// A guard that fails until the file `ok` exists.
const NEEDS_OK: &str = "test -f ok";

fn trailers(sandbox: &TestRepo, revision: &str, key: &str) -> String {
    sandbox.git(&["log", "-1", &format!("--format=%(trailers:key={key},valueonly,separator=|)"), revision])
}

#[test]
fn false_done_claims_only_use_attempts() {
    let sandbox =
        RunBuilder::new(RUNNER).agent("echo lie >> claims; answer done 'all green'").guard(NEEDS_OK).start();
    let main = sandbox.git(&["rev-parse", "main"]);
    let ran = sandbox.runner(&["loop"]);
    assert_eq!(ran.code, Some(3), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(sandbox.outcomes(), ["guard_failed"; 3]);
    assert_eq!(
        (&sandbox.tree()["root"]["passes"], &sandbox.tree()["root"]["attempts"]),
        (&false.into(), &3.into())
    );
    assert_eq!(sandbox.read("claims"), "lie\nlie\nlie\n", "its work is kept all the same");
    assert_eq!(sandbox.git(&["rev-parse", "main"]), main);
    assert_sound(&sandbox);
}

#[test]
fn agent_cannot_mark_its_own_task_as_passed() {
    let mark = r#"sed -i 's/"passes": false/"passes": true/; s/"max_attempts": 3/"max_attempts": 99/; s/"attempts": [0-9]*/"attempts": 0/' "$RUNNER_TREE""#;
    let sandbox = RunBuilder::new(RUNNER).agent(&format!("{mark}\nanswer done")).guard(NEEDS_OK).start();
    assert_eq!(sandbox.runner(&["loop"]).code, Some(3));
    let root = &sandbox.tree()["root"];
    assert_eq!(
        (&root["passes"], &root["attempts"], &root["max_attempts"]),
        (&false.into(), &3.into(), &3.into())
    );
    assert_sound(&sandbox);

    // New nodes that claim to have passed are open like any others.
    let sandbox = RunBuilder::new(RUNNER)
        .agent(&format!("split\n{}", mark.replace("false/", "false/g; s/\"passes\": false/")))
        .start();
    sandbox.runner(&["step"]).ok();
    let tree = sandbox.tree();
    assert_eq!(tree["root"]["children"].as_array().unwrap().len(), 2);
    assert!(!tree.to_string().contains("\"passes\":true"), "{tree}");
    assert_sound(&sandbox);
}

#[test]
fn changed_guard_is_restored_before_it_runs() {
    let sandbox = RunBuilder::new(RUNNER)
        .agent("echo true > guard.sh; echo x > work; answer done")
        .guard(NEEDS_OK)
        .start();
    sandbox.runner(&["step"]).ok();
    assert_eq!(sandbox.outcomes(), ["guard_failed"]);
    assert_eq!(sandbox.read("guard.sh"), "test -f ok\n");
    assert_eq!(trailers(&sandbox, BRANCH, "Runner-Annotation"), "guard-file-restored guard.sh");
    assert_eq!(sandbox.git(&["show", "--format=", "--name-only", BRANCH, "--", ":!.runner"]), "work");
    assert_sound(&sandbox);

    // The next prompt mentions it.
    sandbox.replace_agent("rm guard.sh; ln -s /bin/true guard.sh; answer done");
    sandbox.runner(&["step"]).ok();
    assert!(sandbox.iteration_file(2, "prompt.md").contains("`guard.sh` is protected"));
    assert_eq!(sandbox.read("guard.sh"), "test -f ok\n");
    assert_eq!(sandbox.outcomes(), ["guard_failed"; 2]);
    assert_sound(&sandbox);
}

#[test]
fn changed_guard_rejects_the_answer_under_policy_reject() {
    let agent = "echo true > guard.sh; echo x > work; answer done";
    let setup = RunBuilder::new(RUNNER).agent(agent).guard(NEEDS_OK).guard_keys("protect = \"reject\"");
    let sandbox = setup.start();
    let ran = sandbox.runner(&["step"]).ok();
    assert!(ran.stdout.contains("`guard.sh`: is protected and was restored"), "{}", ran.stdout);
    assert_eq!(sandbox.outcomes(), ["rule_violation"]);
    assert_eq!(sandbox.read("guard.sh"), "test -f ok\n");
    assert!(sandbox.path("work").exists());
    assert!(!sandbox.path(".runner/iterations/demo/0001/guard.log").exists(), "the guard was not asked");
    assert_sound(&sandbox);
}

#[test]
fn changed_guard_is_annotated_under_policy_flag() {
    let agent = "echo true > guard.sh; answer done";
    let setup = RunBuilder::new(RUNNER).agent(agent).guard(NEEDS_OK).guard_keys("protect = \"flag\"");
    let sandbox = setup.start();
    assert_eq!(sandbox.runner(&["loop"]).ok().code, Some(0));
    assert_eq!(sandbox.outcomes(), ["passed"]);
    assert_eq!(sandbox.read("guard.sh"), "true\n");
    assert_eq!(trailers(&sandbox, BRANCH, "Runner-Annotation"), "guard-file-changed guard.sh|in-place");
    assert_sound(&sandbox);
}

#[test]
fn removing_tasks_completes_nothing() {
    let scenario = r#"
        [[session]]
        when = { node = "root" }
        answer = { status = "decomposed", summary = "two" }
        [[session.do]]
        add_children = { node = "root", children = [{ id = "a" }, { id = "b" }] }
        [[session]]
        when = { attempts = 0 }
        answer = { status = "done", summary = "nothing else to do" }
        [[session.do]]
        remove_node = { node = "b" }
        [[session]]
        answer = { status = "done", summary = "honestly" }
    "#;
    let sandbox = RunBuilder::new(RUNNER).scenario(scenario).start();
    sandbox.runner(&["step"]).ok();
    let ran = sandbox.runner(&["step"]).ok();
    assert!(ran.stdout.contains("root/b: is open and must not be removed"), "{}", ran.stdout);
    assert_eq!(sandbox.tree()["root"]["children"].as_array().unwrap().len(), 2);
    // An honest agent then finishes both tasks.
    sandbox.runner(&["loop"]).ok();
    assert_eq!(sandbox.outcomes(), ["decomposed", "rule_violation", "passed", "rule_violation", "passed"]);
    assert_sound(&sandbox);
}

#[test]
fn hanging_agent_is_killed_in_time_with_all_its_processes() {
    let agent = "echo half > work; (trap '' TERM; setsid sleep 2999) & setsid -f sleep 2998; sleep 2997";
    let sandbox = RunBuilder::new(RUNNER).agent(agent).keys("iteration_timeout_secs = 3").start();
    let ran = sandbox.runner(&["loop"]);
    assert_idle(&sandbox);
    assert_eq!(ran.code, Some(4), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(sandbox.outcomes(), ["timed_out"]);
    assert_eq!(sandbox.git(&["show", &format!("{BRANCH}:work")]), "half");
    assert_eq!(sandbox.tree()["root"]["attempts"], 0);
    assert!(sandbox.meta(1)["processes_left"].as_u64() >= Some(2), "those that tried to stay");
    assert_sound(&sandbox);
    sandbox.replace_agent("answer done");
    sandbox.runner(&["loop"]).ok();
}

#[test]
fn agent_dies_with_the_runner_and_its_work_is_kept() {
    let agent = "echo half > work; setsid -f sleep 998; answer done; touch $AROUND/begun; sleep 999";
    let sandbox = RunBuilder::new(RUNNER).agent(agent).start();
    sandbox.kill_when(&["loop"], "begun");
    wait_for("the agent's death", || testkit::oracle::processes_of(sandbox.outside()).is_empty());
    sandbox.replace_agent("cat work > seen; answer done");
    let ran = sandbox.runner(&["loop"]).ok();
    assert!(ran.stdout.contains("event=recovered iter=0001"), "{}", ran.stdout);
    assert_eq!(sandbox.outcomes(), ["interrupted", "passed"]);
    assert_eq!(sandbox.git(&["show", &format!("{BRANCH}~1:work")]), "half");
    assert_eq!(sandbox.read("seen"), "half\n");
    assert_eq!(sandbox.tree()["root"]["attempts"], 0);
    assert_sound(&sandbox);
}

#[test]
fn flooding_agents_log_is_cut_between_characters() {
    let agent = "echo beginning; yes 'aä€🦀' | head -c 3000001; echo end; echo err >&2; answer done";
    let sandbox = RunBuilder::new(RUNNER).agent(agent).keys("executor_output_limit_bytes = 65536").start();
    sandbox.runner(&["loop"]).ok();
    let log = sandbox.read_bytes(".runner/iterations/demo/0001/executor.log");
    assert!(log.len() <= 65536, "{}", log.len());
    let log = String::from_utf8(log[..log.len() - 20].to_vec()).expect("whole characters");
    assert!(log.starts_with("beginning\n") && log.contains("bytes dropped here]"), "{log}");
    assert!(sandbox.iteration_file(1, "executor.log").contains("end\nerr\n"));
    assert!(sandbox.read_bytes(".runner/iterations/demo/0001/stream.jsonl").len() <= 65536);
    assert_sound(&sandbox);
}

#[test]
fn one_of_many_concurrent_runners_works_and_the_others_report_the_lock() {
    let agent = "echo $$ >> $AROUND/sessions; while ! test -e $AROUND/go; do sleep 0.01; done; echo x >> work; answer done";
    let sandbox = RunBuilder::new(RUNNER).agent(agent).start();
    let spawn = || {
        let mut command = sandbox.runner_command(&["step"]);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let mut running: Vec<_> = (0..8).map(|_| spawn()).collect();
    let mut ended = Vec::new();
    wait_for("all but one to give up", || {
        let is_over = |child: &mut std::process::Child| child.try_wait().unwrap().is_some();
        ended.extend(running.extract_if(.., is_over).map(|child| child.wait_with_output().unwrap()));
        running.len() == 1
    });
    std::fs::write(sandbox.outside().join("go"), "").unwrap();
    for refused in ended {
        let stderr = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains("another runner"), "{stderr}");
    }
    let winner = running.pop().unwrap().wait_with_output().unwrap();
    assert!(winner.status.success(), "{}", String::from_utf8_lossy(&winner.stderr));
    assert_eq!(sandbox.outcomes(), ["passed"]);
    assert_eq!(sandbox.read("work"), "x\n");
    let sessions = std::fs::read_to_string(sandbox.outside().join("sessions")).unwrap();
    assert_eq!(sessions.lines().count(), 1);
    assert_sound(&sandbox);
}
