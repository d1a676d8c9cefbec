//! `--max-usd` and `--max-tokens`: limits of one loop.

use testkit::oracle::assert_sound;
use testkit::run_builder::RunBuilder;
use testkit::test_repo::TestRepo;

use crate::RUNNER;

const SPENDS: &str = r#"
printf '{"usage": {"input_tokens": 600, "output_tokens": 400, "cost_microdollars": 250000}}' > "$RUNNER_REPORT"
echo "$RUNNER_ITER" > work
answer done
"#;

fn four_tasks(agent: &str) -> TestRepo {
    let sandbox = RunBuilder::new(RUNNER).agent(agent).start();
    let split =
        ["node", "split", "root", "--into", "A", "--into", "B", "--into", "C", "--into", "D", "--into", "E"];
    sandbox.runner(&split).ok();
    sandbox
}

#[test]
fn limit_counts_what_this_loop_spends() {
    let sandbox = four_tasks(SPENDS);
    let stopped = sandbox.runner(&["loop", "--max-usd", "0.50"]);
    assert_eq!(stopped.code, Some(4), "{}", stopped.stderr);
    let text = "reached --max-usd: $0.50 of $0.50 spent by this loop";
    assert!(stopped.stdout.contains("event=end stop=loop_budget") && stopped.stdout.contains(text));
    let status = sandbox.runner(&["status"]).ok();
    assert_eq!(
        (status.value("stop"), status.value("headline")),
        (Some("loop_budget"), Some(&*format!("{text:?}")))
    );
    assert_eq!(sandbox.outcomes().len(), 2);
    // The next loop begins at zero.
    assert_eq!(sandbox.runner(&["loop", "--max-tokens", "1500"]).code, Some(4));
    assert_eq!(sandbox.outcomes().len(), 4);
    sandbox.runner(&["loop", "--max-usd", "1"]).ok();
    assert_sound(&sandbox);
}

#[test]
fn limit_that_cannot_be_measured_stops_the_loop() {
    let sandbox = four_tasks("echo $RUNNER_ITER > work; answer done");
    let stopped = sandbox.runner(&["loop", "--max-usd", "5"]);
    assert_eq!((stopped.code, sandbox.outcomes().len()), (Some(4), 1));
    assert!(stopped.stdout.contains("--max-usd) cannot be enforced"), "{}", stopped.stdout);
}

#[test]
fn configured_limit_that_cannot_be_measured_stops_the_loop_at_the_second_session() {
    for limit in ["run_usd = 5", "leaf_usd = 5", "run_tokens = 5000"] {
        let sandbox = RunBuilder::new(RUNNER)
            .agent("echo $RUNNER_ITER > work; answer done")
            .config_tables(&format!("[budget]\n{limit}"))
            .start();
        sandbox.runner(&["node", "split", "root", "--into", "A", "--into", "B", "--into", "C"]).ok();
        let stopped = sandbox.runner(&["loop"]);
        assert_eq!((stopped.code, sandbox.outcomes().len()), (Some(4), 2), "{limit}: {}", stopped.stdout);
        assert!(stopped.stdout.contains("([budget] or --max-"), "{limit}: {}", stopped.stdout);
        assert!(stopped.stdout.contains("event=end stop=loop_budget"), "{limit}: {}", stopped.stdout);
        assert_sound(&sandbox);
    }
}

#[test]
fn limit_on_what_copilot_does_not_report_is_refused_by_its_own_name() {
    let sandbox = RunBuilder::new(RUNNER)
        .executor("kind = \"command\"\npreset = \"copilot\"\nprogram = \"/bin/true\"")
        .executor_keys("")
        .start();
    for (arguments, limit) in [(["--max-tokens", "5000"], "--max-tokens"), (["--max-usd", "5"], "--max-usd")]
    {
        let refused = sandbox.runner(&[&["loop"], &arguments[..]].concat()).refused(2);
        let found = format!("{limit} cannot be enforced: command:copilot reports neither tokens nor cost");
        assert!(refused.contains(&found) && !refused.contains("[prices"), "{refused}");
        assert!(refused.contains("--max-iterations"), "{refused}");
    }
    let config = sandbox.read(".runner/state/config.toml");
    sandbox.write(".runner/state/config.toml", format!("{config}\n[budget]\nrun_tokens = 5\nrun_usd = 5\n"));
    let refused = sandbox.runner(&["loop"]).refused(2);
    let found = "budget.run_tokens and budget.run_usd cannot be enforced: command:copilot reports neither tokens nor cost";
    assert!(refused.contains(found), "{refused}");
}

#[test]
fn limit_on_the_cost_of_an_agent_without_prices_is_refused() {
    let sandbox = RunBuilder::new(RUNNER)
        .executor("kind = \"codex\"\nmodel = \"without-a-price\"\nprogram = \"/bin/true\"")
        .executor_keys("")
        .start();
    let before = sandbox.branches();
    let refused = sandbox.runner(&["loop", "--max-usd", "5"]).refused(2);
    assert!(
        refused.contains("--max-usd cannot be enforced") && refused.contains("--max-tokens"),
        "{refused}"
    );
    assert_eq!(sandbox.branches(), before);
    for bad in [["--max-usd", "0"], ["--max-usd", "x"], ["--max-tokens", "-1"]] {
        let mut args = vec!["loop"];
        args.extend(bad);
        sandbox.runner(&args).refused(2);
    }
}
