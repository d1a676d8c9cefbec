//! Runs that are worked through in shares.

use crate::Suite;

#[test]
fn shares_of_a_plan_make_a_whole_run_and_merge_says_what_is_missing() {
    let suite = Suite::of(&["a", "b", "c"]);
    let planned = suite.eval(&["plan", "--run", "p", "--trials", "2"]).ok();
    assert!(planned.stdout.starts_with("run=p units=6"), "{}", planned.stdout);
    for part in ["1", "2"] {
        let share = format!("slice:{part}/3");
        let ran = suite.eval(&["run", "--continue", "--run", "p", "--partition", &share]).ok();
        assert!(ran.stdout.contains("units=2 had=0 results=2"), "{}", ran.stdout);
    }
    let merged = suite.eval(&["merge", "--run", "p"]);
    assert_eq!(merged.code, Some(1));
    assert!(
        merged.stdout.contains("results=4") && merged.stdout.contains("missing=c/case.t01"),
        "{}",
        merged.stdout
    );

    // What starts many of them says which one this is. A share that is done is not done again.
    let mut command = suite.command(&["run", "--continue", "--run", "p"]);
    command.env("SLURM_ARRAY_TASK_ID", "2").env("RUNNER_EVAL_SHARDS", "3");
    let ran = testkit::test_repo::run(&mut command).ok();
    assert!(ran.stdout.contains("partition=slice:3/3 units=2 had=0"), "{}", ran.stdout);
    let again = suite.eval(&["run", "--continue", "--run", "p", "--partition", "hash:1/2"]).ok();
    assert!(!again.stdout.contains("event=ended"), "{}", again.stdout);
    let merged = suite.json(&["merge", "--run", "p"]);
    assert_eq!((&merged["results"], &merged["missing"]), (&6.into(), &serde_json::json!([])));
    assert!(suite.sandbox.read("eval/results/_runs/p/summary.json").contains("\"results\": 6"));
}

#[test]
fn a_cluster_is_given_what_it_would_be_given() {
    let suite = Suite::of(&["a"]);
    let slurm = suite
        .eval(&[
            "submit",
            "slurm",
            "--run",
            "p",
            "--trials",
            "8",
            "--shards",
            "4",
            "--throttle",
            "2",
            "--dry-run",
        ])
        .ok();
    for part in [
        "#SBATCH --array=0-3%2\n",
        "export RUNNER_EVAL_SHARDS=4\n",
        " run --continue --run p ",
        " merge --run p\n",
    ] {
        assert!(slurm.stdout.contains(part), "{part}: {}", slurm.stdout);
    }
    let pods = suite
        .eval(&["submit", "k8s", "--run", "p", "--trials", "8", "--shards", "4", "--image", "x", "--dry-run"])
        .ok();
    for part in ["completionMode: Indexed", "completions: 4", "backoffLimitPerIndex: 3", "value: \"4\""] {
        assert!(pods.stdout.contains(part), "{part}: {}", pods.stdout);
    }
    let told = suite.eval(&["submit", "slurm", "--run", "p", "--trials", "9", "--dry-run"]).refused(2);
    assert!(told.contains("other cases, agents or trials"), "{told}");
}
