//! Evaluation runs that are executed in partitions.

use crate::Suite;

#[test]
fn partitions_make_a_complete_run_and_merge_lists_what_is_missing() {
    let suite = Suite::with_cases(&["a", "b", "c"]);
    let plan = suite.eval(&["plan", "--run", "p", "--trials", "2"]).ok();
    assert!(plan.stdout.starts_with("run=p trials=6"), "{}", plan.stdout);
    for partition in ["slice:1/3", "slice:2/3"] {
        let output = suite.eval(&["run", "--continue", "--run", "p", "--partition", partition]).ok();
        assert!(output.stdout.contains("trials=2 already_done=0 results=2"), "{}", output.stdout);
    }
    let merge = suite.eval(&["merge", "--run", "p"]);
    assert_eq!(merge.code, Some(1));
    assert!(merge.stdout.contains("results=4"), "{}", merge.stdout);
    assert!(merge.stdout.contains("missing=c/case.t01"), "{}", merge.stdout);

    // The engine's environment selects the partition. Trials with a result are not repeated.
    let mut command = suite.command(&["run", "--continue", "--run", "p"]);
    command.env("SLURM_ARRAY_TASK_ID", "2").env("RUNNER_EVAL_PARTITIONS", "3");
    let output = testkit::test_repo::run(&mut command).ok();
    assert!(output.stdout.contains("partition=slice:3/3 trials=2 already_done=0"), "{}", output.stdout);
    let again = suite.eval(&["run", "--continue", "--run", "p", "--partition", "hash:1/2"]).ok();
    assert!(!again.stdout.contains("event=trial"), "{}", again.stdout);
    let merge = suite.json(&["merge", "--run", "p"]);
    assert_eq!(merge["results"], 6);
    assert_eq!(merge["missing"], serde_json::json!([]));
    assert!(suite.repo.read("eval/results/_runs/p/summary.json").contains("\"results\": 6"));
}

#[test]
fn dry_run_prints_the_jobs_of_slurm_and_kubernetes() {
    let suite = Suite::with_cases(&["a"]);
    let common = ["--run", "p", "--trials", "8", "--partitions", "4", "--dry-run"];
    let slurm = suite.eval(&[&["submit", "slurm", "--throttle", "2"], &common[..]].concat()).ok();
    for part in [
        "#SBATCH --array=0-3%2\n",
        "export RUNNER_EVAL_PARTITIONS=4\n",
        " run --continue --run p ",
        " merge --run p\n",
    ] {
        assert!(slurm.stdout.contains(part), "{part}: {}", slurm.stdout);
    }
    let k8s = suite.eval(&[&["submit", "k8s", "--image", "x"], &common[..]].concat()).ok();
    for part in ["completionMode: Indexed", "completions: 4", "backoffLimitPerIndex: 3", "value: \"4\""] {
        assert!(k8s.stdout.contains(part), "{part}: {}", k8s.stdout);
    }
    let error = suite.eval(&["submit", "slurm", "--run", "p", "--trials", "9", "--dry-run"]).refused(2);
    assert!(error.contains("other cases, agents or trials"), "{error}");
}
