//! Runs that make no progress, and what keeps them going: `done` without work, limits, time limits, skipped tasks, tasks that
//! are too large, and outages.

use testkit::oracle::assert_sound;
use testkit::run_builder::{BRANCH, RunBuilder};
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;
use crate::commands::step_and_loop::show;
use crate::fixtures::{json, run_state};

const LAZY: &str = "[[session]]\nanswer = { status = \"done\", summary = \"all there already\" }\n";

fn status(sandbox: &TestRepo) -> serde_json::Value {
    json(&sandbox.runner(&["status", "--json"]).ok())
}

fn commits(sandbox: &TestRepo) -> String {
    sandbox.git(&["rev-list", "--count", BRANCH])
}

fn annotations(sandbox: &TestRepo) -> String {
    sandbox.git(&["log", "-1", "--format=%(trailers:key=Runner-Annotation,valueonly,separator=%x2C)", BRANCH])
}

#[test]
fn a_lazy_agent_needs_two_sessions_and_its_pass_is_annotated() {
    let sandbox = RunBuilder::new(RUNNER).scenario(LAZY).guard("true").config_tables("[accept]\n").start();
    let ran = sandbox.runner(&["loop"]);
    assert_eq!(ran.code, Some(0), "{}", show(&ran));
    assert_eq!(sandbox.outcomes(), ["unconfirmed", "passed"]);
    assert_eq!(annotations(&sandbox).trim(), "nothing-changed,confirmed-unchanged,in-place");
    assert_eq!((&sandbox.meta(1)["charge"], &sandbox.meta(1)["guard"]), (&"free".into(), &"pass".into()));
    let prompt = sandbox.iteration_file(2, "prompt.md");
    assert!(
        prompt.contains("Iteration 0001 answered `done` for this node, and that alone does not count."),
        "{prompt}"
    );
    assert!(prompt.contains("all there already"), "the claim itself: {prompt}");
    assert!(!sandbox.iteration_file(1, "prompt.md").contains("answered `done` for this node"));
    let shown = sandbox.runner(&["show", "2"]).ok().stdout;
    assert!(shown.contains("confirmed-unchanged") || shown.contains("two independent sessions"), "{shown}");
    assert_sound(&sandbox);
}

#[test]
fn a_lazy_agent_that_touches_only_a_protected_file_is_not_believed() {
    let scenario =
        format!("{LAZY}[[session.do]]\nappend = {{ path = \"guard.sh\", text = \"# mine\\n\" }}\n");
    let sandbox = RunBuilder::new(RUNNER)
        .scenario(&scenario)
        .guard("true")
        .protected("guard.sh")
        .config_tables("[accept]\n")
        .start();
    sandbox.runner(&["loop"]).ok();
    assert_eq!(sandbox.outcomes(), ["unconfirmed", "passed"]);
    assert!(annotations(&sandbox).contains("confirmed-unchanged"));
    assert_sound(&sandbox);
}

#[test]
fn the_policy_can_refuse_done_without_work() {
    let tables = "[accept]\nunchanged = \"retry\"\n";
    let sandbox = RunBuilder::new(RUNNER).scenario(LAZY).guard("true").config_tables(tables).start();
    let ran = sandbox.runner(&["loop"]);
    assert_eq!(
        (ran.code, sandbox.outcomes()),
        (Some(3), vec!["unconfirmed".to_owned(); 3]),
        "{}",
        show(&ran)
    );
    assert_eq!(sandbox.meta(3)["charge"], "charged");
    assert_sound(&sandbox);
}

#[test]
fn a_run_without_progress_stops_and_can_be_continued() {
    let scenario = "[[session]]\nanswer = { status = \"retry\", summary = \"no idea\" }\n";
    let sandbox = RunBuilder::new(RUNNER)
        .scenario(scenario)
        .keys("max_attempts_default = 50")
        .config_tables("[limits]\nstall_iterations = 2\n")
        .start();
    let ran = sandbox.runner(&["loop"]);
    assert_eq!((ran.code, sandbox.outcomes().len()), (Some(4), 2), "{}", show(&ran));
    let headline = "headline=\"no task passed and no check turned green in 2 iterations (stall_iterations)\"";
    assert!(ran.stdout.contains("stop=stalled") && ran.stdout.contains(headline), "{}", ran.stdout);
    let stopped = status(&sandbox);
    assert_eq!((&stopped["state"], &stopped["stop"]["reason"]), (&"stopped".into(), &"stalled".into()));
    assert_eq!(stopped["next"][0]["command"], "runner log --errors");
    let again = sandbox.runner(&["loop"]);
    assert_eq!((again.code, sandbox.outcomes().len()), (Some(4), 4), "the next loop counts again");
    assert_sound(&sandbox);
}

#[test]
fn time_limits_are_retried_three_times_on_a_task() {
    let scenario = "[[session]]\n[[session.do]]\nsleep = { ms = 600000 }\n";
    let keys = "iteration_timeout_secs = 1\non_timeout = \"retry\"";
    let sandbox = RunBuilder::new(RUNNER).scenario(scenario).keys(keys).start();
    let ran = sandbox.runner(&["loop"]);
    assert_eq!((ran.code, sandbox.outcomes()), (Some(4), vec!["timed_out".to_owned(); 3]), "{}", show(&ran));
    assert_eq!(sandbox.tree()["root"]["attempts"], 0);
    assert!(sandbox.iteration_file(2, "prompt.md").contains("The session ran out of time"));
    assert_sound(&sandbox);
}

#[test]
fn stuck_tasks_are_skipped_until_nothing_else_is_left() {
    let scenario = "[[session]]\nwhen = { node = \"root\" }\nanswer = { status = \"decomposed\", summary = \"three\" }\n\
        [[session.do]]\nadd_children = { node = \"root\", children = [{ id = \"a\" }, { id = \"b\" }, { id = \"c\" }] }\n\
        [[session]]\nwhen = { node = \"b\" }\nanswer = { status = \"done\", summary = \"did b\" }\n\
        [[session.do]]\nappend = { path = \"b.txt\", text = \"b\" }\n\
        [[session]]\nanswer = { status = \"retry\", summary = \"cannot\" }\n";
    let keys = "on_stuck = \"skip\"\nmax_attempts_default = 1";
    let sandbox = RunBuilder::new(RUNNER).scenario(scenario).guard("true").keys(keys).start();
    sandbox.runner(&["step"]).ok();
    sandbox.runner(&["step"]).ok();
    let explained = sandbox.runner(&["select", "--explain"]).ok();
    assert_eq!(explained.value("id"), Some("b"), "{}", explained.stdout);
    assert!(explained.stdout.contains("1 skipped without attempts left"), "{}", explained.stdout);
    let ran = sandbox.runner(&["loop"]);
    assert_eq!(ran.code, Some(3), "{}", show(&ran));
    assert_eq!(sandbox.outcomes(), ["decomposed", "retry", "passed", "retry"]);
    let stopped = status(&sandbox);
    assert_eq!(stopped["stop"], serde_json::json!({ "reason": "stuck", "node": "a" }));
    let details = stopped["details"].to_string();
    assert!(details.contains("2 skipped tasks have no attempts left: `a`, `c`"), "{details}");
    assert_eq!(sandbox.runner(&["select"]).code, Some(3));
    assert_sound(&sandbox);
}

#[test]
fn a_task_that_fills_the_context_is_split_and_done() {
    let scenario = "[[session]]\nwhen = { iter = 1 }\n[[session.do]]\nreport = { fault = \"context_full\" }\n\
        [[session]]\nwhen = { mode = \"split\" }\nanswer = { status = \"decomposed\", summary = \"two\" }\n\
        [[session.do]]\nadd_children = { node = \"root\", children = [{ id = \"a\" }, { id = \"b\" }] }\n\
        [[session]]\nanswer = { status = \"done\", summary = \"did it\" }\n";
    let sandbox = RunBuilder::new(RUNNER).scenario(scenario).guard("true").start();
    let ran = sandbox.runner(&["loop"]);
    assert_eq!(ran.code, Some(0), "{}", show(&ran));
    assert_eq!(sandbox.outcomes(), ["context_full", "decomposed", "passed", "passed"]);
    assert!(sandbox.iteration_file(2, "prompt.md").contains("did not fit into one session"));
    assert_sound(&sandbox);
}

/// An agent whose provider fails in its first sessions.
fn failing_provider(sessions: u32, before_the_failure: &str) -> RunBuilder {
    RunBuilder::new(RUNNER)
        .agent(&format!(
            "echo >> $AROUND/sessions; nth=$(wc -l < $AROUND/sessions)\n\
             if [ $nth -le {sessions} ]; then {before_the_failure}\n\
             echo '{{\"fault\": {{\"fault\": \"overloaded\"}}}}' > \"$RUNNER_REPORT\"; exit 1; fi\n\
             echo work > work; answer done"
        ))
        .guard("true")
}

#[test]
fn an_outage_shares_one_commit_and_counts_as_no_iteration() {
    let sandbox = failing_provider(4, "true").keys("max_iterations = 1").start();
    sandbox.runner(&["step"]).ok();
    let (tip, count) = (sandbox.git(&["rev-parse", BRANCH]), commits(&sandbox));
    for _ in 0..3 {
        let ran = sandbox.runner(&["step"]).ok();
        assert!(ran.stdout.contains("event=outage_continues iter=0002 outcome=overloaded"), "{}", ran.stdout);
        assert_eq!((sandbox.git(&["rev-parse", BRANCH]), commits(&sandbox)), (tip.clone(), count.clone()));
        assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
        assert_sound(&sandbox);
    }
    assert_eq!(run_state(&sandbox)["wait"]["outcome"], "overloaded", "the wait stays on record");
    sandbox.runner(&["step"]).ok();
    assert_eq!(sandbox.outcomes(), ["overloaded", "passed"], "within a limit of one iteration");
    assert_eq!(run_state(&sandbox)["progress"]["outages"], 1);
    let shown = status(&sandbox);
    assert_eq!(shown["state"], "complete", "{shown}");
    assert_sound(&sandbox);
}

#[test]
fn what_a_session_did_before_its_provider_failed_is_never_lost() {
    let sandbox = failing_provider(3, "echo $nth > half-$nth").start();
    for _ in 0..4 {
        sandbox.runner(&["step"]).ok();
        assert_sound(&sandbox);
    }
    assert_eq!(sandbox.outcomes(), ["overloaded", "overloaded", "overloaded", "passed"]);
    for nth in 1..=3 {
        assert_eq!(sandbox.read(&format!("half-{nth}")), format!("{nth}\n"));
    }
    assert_eq!(run_state(&sandbox)["progress"]["outages"], 0, "sessions that worked count");
}

#[test]
fn a_tree_that_an_outage_left_changed_is_restored() {
    let sandbox = failing_provider(2, "echo broken > .runner/state/tree.json").start();
    sandbox.runner(&["step"]).ok();
    let ran = sandbox.runner(&["step"]).ok();
    assert!(ran.stdout.contains("event=outage_continues"), "{}", ran.stdout);
    assert_eq!(sandbox.tree()["root"]["id"], "root");
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
    sandbox.runner(&["step"]).ok();
    assert_eq!(sandbox.outcomes(), ["overloaded", "passed"]);
    assert_sound(&sandbox);
}

#[test]
fn a_crash_in_an_outage_loses_nothing() {
    for point in ["iter.begun", "iter.ended", "iter.stored", "iter.discarded"] {
        let sandbox = failing_provider(2, "true").start();
        sandbox.runner(&["step"]).ok();
        let crashed = run(sandbox.runner_command(&["step"]).env("RUNNER_TEST_CRASH_AT", point));
        assert_eq!(crashed.code, None, "{point} was not reached: {}{}", crashed.stdout, crashed.stderr);
        sandbox.runner(&["step"]).ok();
        // A session that the crash kept from starting fails in the next step.
        let outcomes: &[&str] = if point == "iter.begun" {
            sandbox.runner(&["step"]).ok();
            &["overloaded", "interrupted", "overloaded", "passed"]
        } else {
            &["overloaded", "overloaded", "passed"]
        };
        assert_eq!(sandbox.outcomes(), outcomes, "{point}: recovery leaves a record");
        assert_sound(&sandbox);
    }
}

#[test]
fn a_silent_agent_that_uses_the_cpu_is_not_idle() {
    let burn = "end=$(($(date +%s) + 4)); while [ $(date +%s) -lt $end ]; do :; done";
    let sandbox = RunBuilder::new(RUNNER)
        .agent(&format!("sh -c '{burn}' & wait; echo work > work; answer done"))
        .guard("true")
        .keys("idle_timeout_secs = 1")
        .start();
    let ran = sandbox.runner(&["step"]);
    assert_eq!((ran.code, sandbox.outcomes()), (Some(0), vec!["passed".to_owned()]), "{}", show(&ran));
    let sleeping = RunBuilder::new(RUNNER).agent("sleep 600").keys("idle_timeout_secs = 1").start();
    assert_eq!(sleeping.runner(&["step"]).code, Some(4));
    assert_eq!(sleeping.outcomes(), ["idle_timeout"]);
}
