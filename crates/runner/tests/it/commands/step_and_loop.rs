//! `runner step` and `runner loop` with ordinary agents.

use testkit::oracle::assert_sound;
use testkit::run_builder::{BRANCH, RunBuilder};
use testkit::test_repo::{RunOutput, TestRepo, run};

use crate::RUNNER;

/// A decomposition, a failed guard, a pass, a retry and another pass.
const STORY: &str = r#"
    case $RUNNER_NODE_ID-$(ls story 2> /dev/null | wc -l) in
        root-*) split; answer decomposed 'two parts' ;;
        a-0) mkdir story; touch story/1; answer done 'I think so' ;;
        a-1) touch story/2 ok; answer done 'now really' ;;
        b-2) touch story/3; answer retry 'not yet' ;;
        *) touch story/4; answer done ;;
    esac
"#;

pub(crate) fn story() -> TestRepo {
    RunBuilder::new(RUNNER).agent(STORY).guard("echo checked; test -f ok").start()
}

fn message(sandbox: &TestRepo, back: u32) -> String {
    sandbox.git(&["log", "-1", "--format=%B", &format!("{BRANCH}~{back}")])
}

fn sha256(sandbox: &TestRepo, path: &str) -> String {
    let output = run(sandbox.command("sha256sum").arg(path)).ok().stdout;
    output.split(' ').next().unwrap().to_owned()
}

fn events(ran: &RunOutput) -> Vec<&str> {
    let names = ran.stdout.lines().map(|line| line.strip_prefix("event=").unwrap());
    names.map(|rest| rest.split(' ').next().unwrap()).collect()
}

pub(crate) fn show(ran: &RunOutput) -> String {
    format!("{}{}", ran.stdout, ran.stderr)
}

#[test]
fn loop_runs_from_the_goal_to_complete() {
    let sandbox = story();
    let ran = sandbox.runner(&["loop"]).ok();
    assert_eq!(sandbox.outcomes(), ["decomposed", "guard_failed", "passed", "retry", "passed"]);
    let tree = sandbox.tree();
    assert_eq!(tree["root"]["passes"], true);
    assert_eq!(
        (&tree["root"]["children"][0]["attempts"], &tree["root"]["children"][1]["attempts"]),
        (&1.into(), &1.into())
    );
    let subjects: Vec<String> = sandbox.subjects(BRANCH).into_iter().rev().skip(2).collect();
    assert_eq!(
        subjects,
        [
            "chore(loop): run demo iter 0001 node root status=decomposed guard=skipped",
            "chore(loop): run demo iter 0002 node a status=done guard=fail",
            "chore(loop): run demo iter 0003 node a status=done guard=pass",
            "chore(loop): run demo iter 0004 node b status=retry guard=skipped",
            "chore(loop): run demo iter 0005 node b status=done guard=pass",
        ]
    );
    let iteration =
        ["planned", "sandbox_chosen", "guard_in_place", "agent_ended", "checked", "decided", "committed"];
    assert_eq!(events(&ran)[..7], iteration);
    assert_eq!(
        events(&ran)[7..14],
        ["planned", "agent_ended", "checked", "guard_started", "guard_ended", "decided", "committed"]
    );
    assert!(
        ran.stdout.ends_with("exit=0\n") && ran.stdout.contains("\nevent=end stop=complete"),
        "{}",
        ran.stdout
    );
    assert_sound(&sandbox);

    // The run is complete: no iteration, no commit.
    let tip = sandbox.git(&["rev-parse", BRANCH]);
    sandbox.runner(&["loop"]).ok();
    sandbox.runner(&["step"]).ok();
    assert_eq!(sandbox.git(&["rev-parse", BRANCH]), tip);
}

#[test]
fn commit_message_has_the_documented_form() {
    let sandbox = story();
    sandbox.runner(&["step"]).ok();
    let prompt = sha256(&sandbox, ".runner/iterations/demo/0001/prompt.md");
    let tree = sha256(&sandbox, ".runner/state/tree.json");
    let state = sha256(&sandbox, ".runner/state/run_state.json");
    let version = runner_core::prompt::template_version();
    assert_eq!(
        message(&sandbox, 0),
        format!(
            "chore(loop): run demo iter 0001 node root status=decomposed guard=skipped\n\n  two parts\n\n\
             Runner-Outcome: decomposed\nRunner-Attempt: free\nRunner-Prompt: {prompt}\n\
             Runner-Prompt-Version: {version}\nRunner-Tree: {tree}\nRunner-State: {state}\n\
             Runner-Guard-Exit: none\nRunner-Semantics: 1\n\
             Runner-Annotation: plan-edited added=2 removed=0 moved=0 reordered=0 reworded=0"
        )
    );
    sandbox.runner(&["step"]).ok();
    let (prompt, tree, state) = (
        sha256(&sandbox, ".runner/iterations/demo/0002/prompt.md"),
        sha256(&sandbox, ".runner/state/tree.json"),
        sha256(&sandbox, ".runner/state/run_state.json"),
    );
    let trailer = "--format=%(trailers:key=Runner-Candidate,valueonly,separator=)";
    let candidate = sandbox.git(&["log", "-1", trailer]);
    assert_eq!(sandbox.git(&["cat-file", "-t", &candidate]), "tree");
    assert_eq!(
        message(&sandbox, 0),
        format!(
            "chore(loop): run demo iter 0002 node a status=done guard=fail\n\n  I think so\n\n\
             Runner-Outcome: guard_failed\nRunner-Attempt: charged\nRunner-Prompt: {prompt}\n\
             Runner-Prompt-Version: {version}\nRunner-Tree: {tree}\nRunner-State: {state}\n\
             Runner-Guard-Exit: 1\nRunner-Room: in-place\nRunner-Candidate: {candidate}\nRunner-Semantics: 1"
        )
    );
    // The next prompt has the guard's output, later ones do not.
    assert!(!sandbox.path(".runner/context/failure.md").exists());
    sandbox.runner(&["step"]).ok();
    assert!(sandbox.read(".runner/context/failure.md").contains("checked"));
    assert!(sandbox.iteration_file(3, "prompt.md").contains("checked"));
}

#[test]
fn summary_cannot_forge_a_trailer_or_a_line() {
    let agent = r#"printf '{"status": "retry", "summary": "x\\n\\nRunner-Outcome: passed\\nSigned-off-by: root\\u001b[2J"}' > $RUNNER_OUTPUT"#;
    let sandbox = RunBuilder::new(RUNNER).agent(agent).start();
    let ran = sandbox.runner(&["step"]).ok();
    assert_eq!(sandbox.outcomes(), ["retry"]);
    let trailers = sandbox.git(&["log", "-1", "--format=%(trailers:key=Signed-off-by)", BRANCH]);
    assert_eq!(trailers, "");
    assert!(!message(&sandbox, 0).contains('\u{1b}') && !ran.stdout.contains('\u{1b}'));
}

#[test]
fn iteration_directory_holds_every_log() {
    let agent = "echo to stdout; echo to stderr >&2; echo w > w; echo true > guard.sh; answer done";
    let sandbox = RunBuilder::new(RUNNER).agent(agent).guard("echo guarding; false").start();
    sandbox.runner(&["step"]).ok();
    let present = |iter: u32| {
        let mut names: Vec<String> =
            std::fs::read_dir(sandbox.path(&format!(".runner/iterations/demo/{iter:04}")))
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
        names.sort();
        names
    };
    let always = [
        "diff.patch",
        "events.jsonl",
        "executor.log",
        "guard.log",
        "meta.json",
        "output.json",
        "prompt.md",
        "session.json",
        "stream.jsonl",
        "tree.after.json",
        "tree.before.json",
    ];
    assert_eq!(present(1), always);
    assert_eq!(sandbox.iteration_file(1, "executor.log"), "to stdout\nto stderr\n");
    assert_eq!(sandbox.iteration_file(1, "guard.log"), "guarding\n");
    assert!(sandbox.iteration_file(1, "diff.patch").contains("+++ b/w"));
    assert_eq!(sandbox.iteration_file(1, "tree.after.json"), sandbox.read(".runner/state/tree.json"));
    assert_ne!(sandbox.iteration_file(1, "tree.before.json"), sandbox.iteration_file(1, "tree.after.json"));
    let meta = sandbox.meta(1);
    assert_eq!(
        (&meta["mode"], &meta["outcome"], &meta["charge"]),
        (&"execute".into(), &"guard_failed".into(), &"charged".into())
    );
    assert_eq!(meta["exit"]["code"], 0);
    for line in sandbox.iteration_file(1, "events.jsonl").lines() {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(event["event"].is_string() && event["t_ms"].is_u64(), "{line}");
    }
    let output = sandbox.iteration_file(1, "events.jsonl");
    assert_eq!(output.lines().count(), 7);
    assert!(
        output.contains("\"event\":\"planned\"") && output.contains("\"event\":\"committed\""),
        "{output}"
    );

    // error.log has the violated rule, and a session without work outside `.runner/` is a `decompose`.
    sandbox.replace_agent("answer decomposed");
    sandbox.runner(&["step"]).ok();
    assert!(sandbox.iteration_file(2, "error.log").contains("has no children"));
    assert_eq!(sandbox.meta(2)["mode"], "decompose");
}

#[test]
fn agent_gets_its_prompt_and_environment() {
    let agent = r#"
        cat > $AROUND/stdin
        env | grep ^RUNNER_ | sort > $AROUND/env
        pwd > $AROUND/pwd
        cmp $AROUND/stdin $RUNNER_PROMPT && test -f $RUNNER_TREE && test ! -e $RUNNER_OUTPUT && exit_code=7
        answer retry
        exit ${exit_code:-1}
    "#;
    let sandbox = RunBuilder::new(RUNNER).agent(agent).start();
    let mut command = sandbox.runner_command(&["step"]);
    let nested = sandbox.path("deep/down");
    std::fs::create_dir_all(&nested).unwrap();
    command
        .current_dir(&nested)
        .env("RUNNER_FOREIGN", "1")
        .env("GIT_DIR", "/nowhere")
        .env("GIT_INDEX_FILE", "/nowhere");
    run(&mut command).ok();
    let root = sandbox.root().canonicalize().unwrap();
    let file_beside = |name: &str| std::fs::read_to_string(sandbox.outside().join(name)).unwrap();
    assert_eq!(file_beside("pwd"), format!("{}\n", root.display()));
    let root = root.display();
    assert_eq!(
        file_beside("env"),
        format!(
            "RUNNER_ITER=0001\nRUNNER_MODE=leaf\nRUNNER_NODE_ID=root\n\
             RUNNER_OUTPUT={root}/.git/runner/answers/0001.json\n\
             RUNNER_PROMPT={root}/.runner/iterations/demo/0001/prompt.md\n\
             RUNNER_REPORT={root}/.git/runner/answers/0001.report.json\nRUNNER_RUN_ID=demo\n\
             RUNNER_TREE={root}/.runner/state/tree.json\n"
        )
    );
    assert_eq!(sandbox.meta(1)["exit"]["code"], 7, "its exit code is recorded, its answer decides");
    assert_eq!(sandbox.outcomes(), ["retry"]);
    assert!(file_beside("stdin").contains("Port it"));
    assert_sound(&sandbox);
}

#[test]
fn task_without_attempts_left_is_stuck() {
    let sandbox = RunBuilder::new(RUNNER).agent("answer retry").keys("max_attempts_default = 2").start();
    let ran = sandbox.runner(&["loop"]);
    assert_eq!(ran.code, Some(3), "{}", show(&ran));
    assert!(ran.stdout.contains("event=stopped reason=stuck exit=3"), "{}", ran.stdout);
    assert_eq!(sandbox.outcomes(), ["retry"; 2]);
    assert_eq!(sandbox.runner(&["step"]).code, Some(3));
    assert_eq!(sandbox.runner(&["loop"]).code, Some(3));
    assert_eq!(sandbox.outcomes().len(), 2, "no iteration is made for it");
    assert_sound(&sandbox);
}

#[test]
fn iteration_limits_stop_a_run_that_can_continue() {
    let sandbox = RunBuilder::new(RUNNER).agent("answer retry").keys("max_iterations = 2").start();
    assert_eq!(sandbox.runner(&["loop", "--max-iterations", "1"]).code, Some(4));
    assert_eq!(sandbox.outcomes().len(), 1);
    assert_eq!(sandbox.runner(&["run"]).code, Some(4));
    assert_eq!(sandbox.runner(&["step"]).code, Some(4));
    assert_eq!(sandbox.outcomes().len(), 2);
    assert_sound(&sandbox);
    let config =
        sandbox.read(".runner/state/config.toml").replace("max_iterations = 2", "max_iterations = 3");
    sandbox.write(".runner/state/config.toml", config);
    let refused = sandbox.runner(&["step"]).refused(2);
    assert!(refused.contains(".runner/state/config.toml") && refused.contains("runner start"), "{refused}");
    sandbox.runner(&["start"]).ok();
    sandbox.replace_agent("answer done");
    sandbox.runner(&["loop"]).ok();
    assert_sound(&sandbox);
    // The last allowed iteration may complete the run.
    let sandbox = RunBuilder::new(RUNNER).start();
    sandbox.runner(&["loop", "--max-iterations", "1"]).ok();
}

#[test]
fn agent_that_cannot_start_stops_the_loop_and_uses_no_attempt() {
    // A loop would refuse to begin; an agent can also vanish later.
    let sandbox = RunBuilder::new(RUNNER).missing_agent().start();
    let runs: Vec<_> = (0..3).map(|_| sandbox.runner(&["step"])).collect();
    assert_eq!(runs.iter().map(|ran| ran.code).collect::<Vec<_>>(), [Some(0), Some(0), Some(1)]);
    assert!(
        runs.iter().all(|ran| ran.stdout.contains("`no-such-agent` is not on PATH")),
        "{}",
        show(&runs[0])
    );
    assert_eq!(sandbox.outcomes(), ["agent_not_started"; 3]);
    assert_eq!(sandbox.tree()["root"]["attempts"], 0);
    assert_sound(&sandbox);
    // A session with an answer resets the count.
    let agent = "case $RUNNER_ITER in 0003|0004) answer retry ;; 0007) answer done ;; esac";
    let sandbox = RunBuilder::new(RUNNER).agent(agent).start();
    sandbox.runner(&["loop"]).ok();
    assert_eq!(
        sandbox.outcomes(),
        ["no_answer", "no_answer", "retry", "retry", "no_answer", "no_answer", "passed"]
    );
    assert_sound(&sandbox);
}

#[test]
fn guard_that_cannot_start_uses_no_attempt() {
    let sandbox = RunBuilder::new(RUNNER).start();
    let config =
        sandbox.read(".runner/state/config.toml").replace("\"sh\", \"guard.sh\"", "\"no-such-guard\"");
    sandbox.write(".runner/state/config.toml", config);
    sandbox.runner(&["start"]).ok();
    (0..3).for_each(|_| drop(sandbox.runner(&["step"])));
    assert_eq!(sandbox.outcomes(), ["guard_not_started"; 3]);
    assert_eq!(sandbox.tree()["root"]["attempts"], 0);
    assert_sound(&sandbox);
}

#[test]
fn silent_agent_runs_into_the_idle_timeout() {
    let sandbox =
        RunBuilder::new(RUNNER).agent("echo half > work; sleep 999").keys("idle_timeout_secs = 1").start();
    let ran = sandbox.runner(&["loop"]);
    assert_eq!(ran.code, Some(4), "{}", show(&ran));
    assert_eq!(sandbox.outcomes(), ["idle_timeout"]);
    assert_eq!(sandbox.read("work"), "half\n");
    assert_sound(&sandbox);
    // A silent agent that changes files is not idle.
    sandbox.replace_agent("for n in 1 2 3 4 5 6 7 8; do echo $n >> work; sleep 0.3; done; answer done");
    sandbox.runner(&["loop"]).ok();
    assert_eq!(sandbox.outcomes(), ["idle_timeout", "passed"]);
}

#[test]
fn hanging_guard_is_killed_in_time() {
    let sandbox =
        RunBuilder::new(RUNNER).guard("setsid sleep 999").keys("iteration_timeout_secs = 1").start();
    assert_eq!(sandbox.runner(&["loop"]).code, Some(4));
    assert_eq!(sandbox.outcomes(), ["guard_timed_out"]);
    assert_eq!(sandbox.tree()["root"]["attempts"], 0);
    assert_sound(&sandbox);
}

#[test]
fn invalid_answer_uses_no_attempt_and_names_the_reason() {
    let answers: [&[u8]; 18] = [
        b"",
        b"done",
        b"null",
        b"[]",
        b"{}",
        b"{\"status\": \"done\"",
        b"{\"status\": \"done\"}",
        b"{\"summary\": \"x\"}",
        b"{\"status\": \"passed\", \"summary\": \"x\"}",
        b"{\"status\": \"DONE\", \"summary\": \"x\"}",
        b"{\"status\": 1, \"summary\": \"x\"}",
        b"{\"status\": \"done\", \"summary\": null}",
        b"{\"status\": \"done\", \"summary\": \"x\", \"passes\": true}",
        b"{\"status\": \"retry\", \"status\": \"done\", \"summary\": \"x\"}",
        b"{\"status\": \"done\", \"summary\": \"x\"} {\"status\": \"done\", \"summary\": \"x\"}",
        b"{\"status\": \"done\", \"summary\": \"\xff\"}",
        b"{\"status\": \"done\", \"summary\": \"\\ud800\"}",
        &[b' '; (1 << 20) + 1],
    ];
    let sandbox = RunBuilder::new(RUNNER)
        .agent("cp $AROUND/$RUNNER_ITER $RUNNER_OUTPUT")
        .keys("max_iterations = 999")
        .config_tables("[limits]\nstall_iterations = 0\n")
        .start();
    let tree = sandbox.read(".runner/state/tree.json");
    for (nth, answer) in (1_u32..).zip(answers) {
        std::fs::write(sandbox.outside().join(format!("{nth:04}")), answer).unwrap();
        let ran = sandbox.runner(&["step"]);
        // Three failures in a row stop the loop.
        assert_eq!(ran.code, Some(i32::from(nth % 3 == 0)), "{nth}: {}", show(&ran));
        assert!(ran.stdout.contains("the answer"), "{nth}: {}", ran.stdout);
        assert_eq!(sandbox.meta(nth)["outcome"], "no_answer", "{nth}");
        assert!(!sandbox.meta(nth)["findings"].as_array().unwrap().is_empty(), "{nth}");
    }
    assert_eq!(sandbox.read(".runner/state/tree.json"), tree);
    assert_sound(&sandbox);
}

#[test]
fn invalid_tree_is_rejected_and_repaired() {
    let agent = r#"
        echo $RUNNER_ITER >> work
        case $RUNNER_MODE-$RUNNER_NODE_ID in
            leaf-root) echo '{"version": 1, "root": {"id": "root", "extra": 1}}' > $RUNNER_TREE; answer done ;;
            repair-) split ;;
            *) answer done ;;
        esac
    "#;
    let sandbox = RunBuilder::new(RUNNER).agent(agent).start();
    sandbox.runner(&["step"]).ok();
    assert_eq!(sandbox.outcomes(), ["invalid_tree"]);
    assert!(sandbox.iteration_file(1, "error.log").contains("extra"));
    sandbox.runner(&["step"]).ok();
    let prompt = sandbox.iteration_file(2, "prompt.md");
    assert!(prompt.contains("\"extra\": 1") && prompt.contains("extra"), "{prompt}");
    assert_eq!(
        sandbox.subjects(BRANCH)[0],
        "chore(loop): run demo iter 0002 repair status=decomposed guard=skipped"
    );
    sandbox.runner(&["loop"]).ok();
    assert_eq!(sandbox.outcomes(), ["invalid_tree", "repaired", "passed", "passed"]);
    assert_eq!(sandbox.read("work"), "0001\n0002\n0003\n0004\n");
    assert_sound(&sandbox);
}

#[test]
fn loop_continues_when_repairs_run_out() {
    let agent = "case $RUNNER_ITER in 0001|0002|0003) echo broken > $RUNNER_TREE ;; esac; answer done";
    let sandbox = RunBuilder::new(RUNNER).agent(agent).start();
    sandbox.runner(&["loop"]).ok();
    assert_eq!(sandbox.outcomes(), ["invalid_tree", "repair_failed", "repair_abandoned", "passed"]);
    assert!(message(&sandbox, 1).contains("Runner-Annotation: repair-abandoned"));
    assert_sound(&sandbox);
}

#[test]
fn stuck_task_is_replanned_if_configured() {
    let agent = r#"
        case $RUNNER_MODE-$RUNNER_ITER in
            replan-*) sed -i 's/"goal": "[^"]*"/"goal": "something easier"/' $RUNNER_TREE; answer done ;;
            leaf-0001) answer retry ;;
            *) answer done ;;
        esac
    "#;
    let keys = "max_attempts_default = 1\non_stuck = \"replan\"";
    let sandbox = RunBuilder::new(RUNNER).agent(agent).keys(keys).start();
    sandbox.runner(&["loop"]).ok();
    assert_eq!(sandbox.outcomes(), ["retry", "replanned", "passed"]);
    assert_eq!(sandbox.tree()["root"]["goal"], "something easier");
    assert_sound(&sandbox);

    let sandbox = RunBuilder::new(RUNNER).agent("answer retry").keys(keys).start();
    assert_eq!(sandbox.runner(&["loop"]).code, Some(3));
    assert_eq!(sandbox.runner(&["loop"]).code, Some(3));
    assert_eq!(sandbox.outcomes(), ["retry", "replan_refused"], "one chance, and only one");
    assert_sound(&sandbox);
}

#[test]
fn agents_plan_edits_are_annotated() {
    let scenario = r#"
        [[session]]
        when = { node = "root" }
        answer = { status = "decomposed", summary = "two" }
        [[session.do]]
        add_children = { node = "root", children = [{ id = "a" }, { id = "b" }] }
        [[session]]
        when = { node = "a", attempts = 0 }
        answer = { status = "retry", summary = "edited" }
        [[session.do]]
        set_field = { node = "b", field = "goal", json = "\"another goal\"" }
        [[session.do]]
        set_field = { node = "b", field = "order", json = "0" }
        [[session]]
        when = { attempts = 1 }
        answer = { status = "retry", summary = "removed" }
        [[session.do]]
        remove_node = { node = "a" }
        [[session]]
        answer = { status = "done", summary = "done" }
    "#;
    let sandbox =
        RunBuilder::new(RUNNER).scenario(scenario).config_tables("[plan]\nremoval = \"record\"").start();
    sandbox.runner(&["loop"]).ok();
    assert_eq!(sandbox.outcomes(), ["decomposed", "retry", "passed", "rule_violation", "passed"]);
    let edits = |iter: u32| sandbox.meta(iter)["plan_edits"].to_string();
    assert!(
        edits(1).contains("added") && edits(2).contains("goal") && edits(2).contains("reordered"),
        "{}",
        edits(2)
    );
    assert!(
        message(&sandbox, 3)
            .contains("Runner-Annotation: plan-edited added=0 removed=0 moved=0 reordered=1 reworded=1")
    );
    assert_sound(&sandbox);
}
