//! Provider failures, waits, budgets, the ladder, and tools.json.

use std::process::Stdio;

use testkit::oracle::assert_sound;
use testkit::run_builder::{BRANCH, RunBuilder};
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;
use crate::commands::step_and_loop::show;
use crate::fixtures::{json, run_state};

/// A scenario whose first session reports this and whose other sessions answer `done`.
fn first_reports(report: &str) -> String {
    format!(
        "[[session]]\nwhen = {{ iter = 1 }}\n[[session.do]]\nreport = {{ {report} }}\n\
         [[session]]\nanswer = {{ status = \"done\", summary = \"did it\" }}\n"
    )
}

fn status(sandbox: &TestRepo) -> serde_json::Value {
    json(&sandbox.runner(&["status", "--json"]).ok())
}

#[test]
fn provider_failures_have_the_documented_consequences() {
    for (fault, outcome, code) in [
        ("not_logged_in", "not_logged_in", 1),
        ("refused", "provider_refused", 1),
        ("context_full", "context_full", 1),
        ("schema_violated", "no_answer", 1),
    ] {
        let scenario =
            format!("[[session]]\n[[session.do]]\nreport = {{ fault = \"{fault}\", why = \"so it is\" }}\n");
        let sandbox = RunBuilder::new(RUNNER).scenario(&scenario).start();
        let ran = sandbox.runner(&["loop"]);
        assert_eq!(ran.code, Some(code), "{fault}: {}", show(&ran));
        // A full context is no failure before the session that must split the task.
        let times = match fault {
            "not_logged_in" => 1,
            "context_full" => 4,
            _ => 3,
        };
        assert_eq!(sandbox.outcomes(), vec![outcome; times], "{fault}");
        assert_eq!(sandbox.tree()["root"]["attempts"], 0, "{fault} costs no attempt");
        assert!(ran.stdout.contains(" headline=\"") && ran.stdout.contains(" next=\""), "{}", ran.stdout);
        assert_sound(&sandbox);
    }
    // Transient failures are retried after a wait; the plan determines its length.
    for (fault, secs) in [("rate_limited", 5), ("overloaded", 5), ("disconnected", 5), ("usage_limit", 60)] {
        let sandbox =
            RunBuilder::new(RUNNER).scenario(&first_reports(&format!("fault = \"{fault}\""))).start();
        sandbox.runner(&["step"]).ok();
        let wait = &run_state(&sandbox)["wait"];
        assert_eq!((&wait["outcome"], &wait["secs"]), (&fault.into(), &secs.into()));
        assert_eq!(sandbox.meta(1)["charge"], "free");
    }
}

#[test]
fn run_waits_for_the_usage_limit_and_continues() {
    let report = "fault = \"usage_limit\", resets_in_secs = 2";
    let sandbox = RunBuilder::new(RUNNER).scenario(&first_reports(report)).start();
    let ran = sandbox.runner(&["loop"]).ok();
    assert_eq!(sandbox.outcomes(), ["usage_limit", "passed"]);
    let line = ran.stdout.lines().find(|line| line.starts_with("event=waiting ")).unwrap();
    let words: Vec<&str> = line.split(' ').map(|word| word.split('=').next().unwrap()).collect();
    assert_eq!(words, ["event", "reason", "agent", "until", "remaining"], "{line}");
    assert!(line.contains("reason=usage_limit agent=script:"), "{line}");
    assert_eq!(run_state(&sandbox)["wait"], serde_json::Value::Null);
    assert!(sandbox.iteration_file(1, "events.jsonl").contains("\"event\":\"waiting\""));
    let resets = sandbox.meta(1)["exit"]["fault"]["resets_unix_secs"].as_u64().unwrap();
    let began = sandbox.meta(2)["started_ms"].as_u64().unwrap();
    assert!(began >= resets * 1000, "the next session began at {began}, before {resets}");
    assert_sound(&sandbox);
}

#[test]
fn wait_survives_a_restart_is_shown_and_can_be_interrupted() {
    let report = "fault = \"usage_limit\", resets_in_secs = 3000";
    let sandbox = RunBuilder::new(RUNNER).scenario(&first_reports(report)).start();
    let waits = || {
        let mut child = sandbox.runner_command(&["loop"]).stdout(Stdio::piped()).spawn().unwrap();
        let out = std::io::BufReader::new(child.stdout.take().unwrap());
        let mut lines = std::io::BufRead::lines(out).map_while(Result::ok);
        let line = lines.find(|line| line.starts_with("event=waiting ")).expect("a wait");
        (child, line)
    };
    // Killed twice while it waits: nothing is left behind, and the wait ends at the same time.
    let until = |line: &str| line.split(" until=").nth(1).unwrap().split(' ').next().unwrap().to_owned();
    let (mut child, first) = waits();
    child.kill().unwrap();
    child.wait().unwrap();
    let tip = sandbox.git(&["rev-parse", BRANCH]);
    let output = status(&sandbox);
    assert_eq!((&output["state"], &output["wait"]["outcome"]), (&"waiting".into(), &"usage_limit".into()));
    assert!((1..=3_000_000).contains(&output["wait"]["left_ms"].as_u64().unwrap()), "{output}");
    let (mut child, second) = waits();
    assert_eq!(until(&first), until(&second));
    assert!(second.contains(" remaining=0:4") || second.contains(" remaining=0:50:00"), "{second}");
    // A signal ends the wait without an iteration.
    run(sandbox.command("kill").args(["-INT".to_owned(), child.id().to_string()])).ok();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(sandbox.git(&["rev-parse", BRANCH]), tip);
    assert_eq!(sandbox.outcomes(), ["usage_limit"]);
    // A clock set back does not extend the wait: it is never longer than the configured maximum.
    assert_eq!(run_state(&sandbox)["wait"]["secs_max"], 604_800);
    // `runner step` and another agent do not wait.
    sandbox.runner(&["step"]).ok();
    assert_eq!(sandbox.outcomes(), ["usage_limit", "passed"]);
    assert_sound(&sandbox);
}

#[test]
fn switching_agents_cancels_the_wait() {
    let report = "fault = \"usage_limit\", resets_in_secs = 3000";
    let sandbox = RunBuilder::new(RUNNER).scenario(&first_reports(report)).start();
    sandbox.runner(&["step"]).ok();
    let config = sandbox.read(".runner/state/config.toml");
    let other = sandbox.outside().join("other.toml");
    std::fs::copy(sandbox.outside().join("play.toml"), &other).unwrap();
    sandbox.write(".runner/state/config.toml", config.replace("play.toml", "other.toml"));
    sandbox.runner(&["start"]).ok();
    assert_eq!(status(&sandbox)["state"], "stopped");
    sandbox.runner(&["loop"]).ok();
    assert_eq!(sandbox.outcomes(), ["usage_limit", "passed"]);
}

const SPENDER: &str = "[[session]]\nanswer = { status = \"retry\", summary = \"more\" }\n[[session.do]]\n\
    report = { input_tokens = 1000, cached_input_tokens = 200, output_tokens = 100, COST }\n";

#[test]
fn budget_stops_the_run_until_it_is_raised() {
    for (limit, spent, max) in [
        ("run_tokens = 2000", "2200 tokens", "2000 tokens"),
        ("run_usd = 0.4", "$0.50", "$0.40"),
        ("leaf_tokens = 2200", "2200 tokens", "2200 tokens"),
        ("leaf_usd = 0.5", "$0.50", "$0.50"),
    ] {
        let scenario = SPENDER.replace("COST", "cost_microdollars = 250000");
        let sandbox =
            RunBuilder::new(RUNNER).scenario(&scenario).config_tables(&format!("[budget]\n{limit}")).start();
        let ran = sandbox.runner(&["loop"]);
        assert_eq!((ran.code, sandbox.outcomes().len()), (Some(4), 2), "{limit}: {}", show(&ran));
        let key = limit.split(' ').next().unwrap();
        let task = if key.starts_with("leaf") { " on `root`" } else { "" };
        let used = if key.ends_with("usd") { "spent" } else { "used" };
        let headline = format!("headline=\"reached {key}: {spent} of {max} {used}{task}\"");
        let next =
            "next=\"${EDITOR:-vi} .runner/state/config.toml\" next=\"runner start\" next=\"runner loop\"";
        assert!(ran.stdout.contains(&headline) && ran.stdout.contains(next), "{}", ran.stdout);
        assert_eq!(sandbox.runner(&["loop"]).code, Some(4), "asking again changes nothing");
        let stopped = status(&sandbox);
        assert_eq!((&stopped["state"], &stopped["stop"]["reason"]), (&"stopped".into(), &"budget".into()));
        assert_eq!(stopped["next"][0]["what"], format!("raise {key} under [budget]"));
        let config = sandbox.read(".runner/state/config.toml").replace(limit, &format!("{key} = 100000"));
        sandbox.write(".runner/state/config.toml", config);
        sandbox.runner(&["start"]).ok();
        assert_eq!(sandbox.runner(&["loop"]).code, Some(3), "then the attempts are spent");
        assert_eq!(run_state(&sandbox)["spent"]["tokens"], 3300, "what was spent stays");
        assert_sound(&sandbox);
    }
}

#[test]
fn cost_source_is_recorded_and_an_unenforceable_budget_warns() {
    let prices = "[budget]\nrun_usd = 5\n[prices.script]\ninput = 1.0\ncached_input = 0.5\noutput = 10.0";
    let estimated =
        RunBuilder::new(RUNNER).scenario(&SPENDER.replace(", COST", "")).config_tables(prices).start();
    let ran = estimated.runner(&["step"]).ok();
    let meta = estimated.meta(1);
    assert_eq!((&meta["cost"]["basis"], &meta["cost"]["microdollars"]), (&"estimated".into(), &1900.into()));
    assert!(!ran.stdout.contains("budget_unenforceable"), "{}", ran.stdout);

    let unknown = RunBuilder::new(RUNNER)
        .scenario(&SPENDER.replace(", COST", ""))
        .config_tables("[budget]\nrun_usd = 5")
        .start();
    let ran = unknown.runner(&["step"]).ok();
    assert_eq!(unknown.meta(1)["cost"]["basis"], "unknown");
    let warning = "run_usd cannot be enforced: script:";
    assert!(
        ran.stdout.contains(&format!("event=budget_unenforceable warning=\"{warning}")),
        "{}",
        ran.stdout
    );
    assert!(status(&unknown)["warning"].as_str().unwrap().starts_with(warning));
    let again = unknown.runner(&["loop"]);
    assert!(again.stdout.starts_with("event=budget_unenforceable "), "{}", again.stdout);
}

#[test]
fn spending_survives_a_kill() {
    let agent = r#"printf '{"usage": {"input_tokens": 70, "output_tokens": 7}}' > "$RUNNER_REPORT"
        touch $AROUND/begun; sleep 999"#;
    let sandbox = RunBuilder::new(RUNNER).agent(agent).config_tables("[budget]\nrun_tokens = 100").start();
    sandbox.kill_when(&["loop"], "begun");
    sandbox.replace_agent(r#"printf '{"usage": {"input_tokens": 50}}' > "$RUNNER_REPORT"; answer retry"#);
    let ran = sandbox.runner(&["loop"]);
    assert_eq!(ran.code, Some(4), "{}", show(&ran));
    assert_eq!(sandbox.outcomes(), ["interrupted", "retry"]);
    assert_eq!(run_state(&sandbox)["spent"]["tokens"], 127);
    assert_eq!(
        sandbox
            .git(&["show", &format!("{BRANCH}~1:.runner/state/run_state.json")])
            .matches("\"tokens\": 77")
            .count(),
        2
    );
    assert_sound(&sandbox);
}

/// A ladder of two shell scripts: the first fails like this, the second answers `done`.
fn ladder(first: &str, keys: &str, rung: &str) -> TestRepo {
    let sandbox = RunBuilder::new(RUNNER).agent(first).keys(keys).start();
    let second = sandbox.outside().join("second.sh");
    let answer = r#"printf '{"status": "done", "summary": "second"}' > "$RUNNER_OUTPUT""#;
    std::fs::write(&second, format!("echo second >> work; {answer}\n")).unwrap();
    let config = sandbox.read(".runner/state/config.toml");
    let rung = format!(
        "{config}\n[[ladder]]\n{rung}\nkind = \"command\"\ncommand = [\"sh\", \"{}\"]\n",
        second.display()
    );
    sandbox.write(".runner/state/config.toml", rung);
    sandbox.runner(&["start"]).ok();
    sandbox
}

#[test]
fn failing_task_climbs_the_ladder() {
    let sandbox = ladder("answer retry", "", "after_attempts = 2");
    let ran = sandbox.runner(&["loop"]).ok();
    assert_eq!(sandbox.outcomes(), ["retry", "retry", "passed"]);
    assert_eq!((&sandbox.meta(2)["rung"]["nth"], &sandbox.meta(3)["rung"]["nth"]), (&1.into(), &2.into()));
    assert!(sandbox.meta(3)["agent"].as_str().unwrap().ends_with("second.sh"));
    assert!(ran.stdout.contains(" rung=2/2 agent="), "{}", ran.stdout);
    assert_sound(&sandbox);
}

#[test]
fn agent_at_its_usage_limit_is_replaced_by_the_next_rung() {
    let used_up =
        r#"printf '{"fault": {"fault": "usage_limit", "resets_unix_secs": 4102444800}}' > "$RUNNER_REPORT""#;
    let sandbox = ladder(used_up, "on_usage_limit = \"next\"", "");
    sandbox.runner(&["step"]).ok();
    assert_eq!(status(&sandbox)["agent"]["rung"]["nth"], 2);
    sandbox.runner(&["loop"]).ok();
    assert_eq!(sandbox.outcomes(), ["usage_limit", "passed"]);
    assert_sound(&sandbox);
    let waits = ladder(used_up, "", "");
    waits.runner(&["step"]).ok();
    assert_eq!(status(&waits)["state"], "waiting", "without the wish, the first one is waited for");
}

#[test]
fn agent_tools_follow_the_users_tools_json() {
    let tools = ".runner/nodes/root/tools.json";
    let sandbox = RunBuilder::new(RUNNER).agent("answer done").start();
    sandbox.write(tools, "{\"network\": true}");
    let refused = sandbox.runner(&["step"]).refused(2);
    assert!(refused.contains("runner start"), "{refused}");
    for (text, why) in [
        (r#"{"deny": ["Bash"]}"#, "`deny` is not supported by agents of kind \"command\""),
        (r#"{"networks": false}"#, "`networks` is not a known key; did you mean `network`?"),
    ] {
        sandbox.write(tools, text);
        let refused = sandbox.runner(&["start"]).refused(2);
        assert!(refused.contains(tools) && refused.contains(why), "{refused}");
        let validated = sandbox.runner(&["validate"]);
        assert_eq!(validated.code, Some(2));
        assert!(validated.stdout.contains("nodes/root/tools.json"), "{}", show(&validated));
    }
    std::fs::remove_file(sandbox.path(tools)).unwrap();
    sandbox.runner(&["start"]).ok();
    sandbox.runner(&["loop"]).ok();
    assert_sound(&sandbox);
}

#[test]
fn tools_json_limits_network_and_adds_folders_in_the_sandbox() {
    let script = r#"if test "$RUNNER_NODE_ID" = root; then split; exit; fi
        {
            bash -c 'exec 3<>/dev/tcp/127.0.0.1/$(cat $HOME/port)' 2> /dev/null && echo net || echo no net
            (echo x > $AROUND/cache/x) 2> /dev/null && echo cache || echo no cache
        } > seen-$RUNNER_NODE_ID.txt
        answer done"#;
    let sandbox = RunBuilder::new(RUNNER).executor_keys("").agent(script).start();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    std::fs::write(sandbox.outside().join("home/port"), listener.local_addr().unwrap().port().to_string())
        .unwrap();
    let cache = sandbox.outside().join("cache");
    std::fs::create_dir(&cache).unwrap();
    sandbox.write(
        ".runner/nodes/a/tools.json",
        format!("{{\"network\": false, \"writable\": [\"{}\"]}}", cache.display()),
    );
    sandbox.runner(&["start"]).ok();
    sandbox.runner(&["loop"]).ok();
    assert_eq!(sandbox.read("seen-a.txt"), "no net\ncache\n");
    assert_eq!(sandbox.read("seen-b.txt"), "net\nno cache\n");
    assert_sound(&sandbox);
}

#[test]
fn tools_json_written_by_an_agent_is_restored() {
    let agent = r#"mkdir -p .runner/nodes/root/artifacts .runner/nodes/b
        echo '{"network": true}' > .runner/nodes/root/tools.json
        echo '{"model": "largest"}' > .runner/nodes/b/tools.json
        echo kept > .runner/nodes/root/artifacts/log.txt; echo note > .runner/nodes/root/context.md
        answer retry"#;
    let sandbox = RunBuilder::new(RUNNER).agent(agent).start();
    sandbox.runner(&["step"]).ok();
    let committed = sandbox.git(&["ls-tree", "-r", "--name-only", BRANCH, "--", ".runner/nodes"]);
    assert_eq!(committed, ".runner/nodes/root/artifacts/log.txt\n.runner/nodes/root/context.md");
    assert_sound(&sandbox);
    sandbox.replace_agent("answer done");
    sandbox.runner(&["loop"]).ok();
    let prompt = sandbox.iteration_file(2, "prompt.md");
    assert!(prompt.contains(".runner/nodes/root/artifacts/log.txt (5 bytes)"), "{prompt}");
    assert!(prompt.contains("# Notes on the node") && prompt.contains("note"), "{prompt}");
}
