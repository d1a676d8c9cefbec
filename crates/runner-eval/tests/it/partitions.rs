//! Evaluation runs that are executed in partitions.

use testkit::test_repo::run;

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
    let output = run(&mut command).ok();
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
    let k8s = [
        "submit",
        "k8s",
        "--image",
        "x",
        "--secret",
        "keys",
        "--cpu",
        "2",
        "--memory",
        "4Gi",
        "--deadline-secs",
        "600",
    ];
    let k8s = suite.json(&[&k8s[..], &common[..]].concat());
    let jobs: serde_json::Value = serde_json::from_str(k8s["files"][0]["text"].as_str().unwrap()).unwrap();
    let job = &jobs["items"][0];
    assert_eq!(job["spec"]["completionMode"], "Indexed");
    assert_eq!(job["spec"]["completions"], 4);
    assert_eq!(job["spec"]["activeDeadlineSeconds"], 600);
    assert_eq!(job["metadata"]["generateName"], "eval-p-");
    let container = &job["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["envFrom"][0]["secretRef"]["name"], "keys");
    assert_eq!(container["resources"]["limits"]["memory"], "4Gi");
    assert_eq!(container["env"][0]["value"], "4");
    assert_eq!(jobs["items"][1]["metadata"]["generateName"], "eval-merge-p-");
}

#[test]
fn shares_of_machines_without_a_shared_folder_are_merged() {
    let suite = Suite::with_cases(&["a", "b"]);
    suite.eval(&["plan", "--run", "p"]).ok();
    for number in ["1", "2"] {
        let share = format!("share-{number}");
        std::fs::create_dir_all(suite.repo.path(&share)).unwrap();
        let copied = run(suite.repo.command("cp").args(["-r", "eval/results/_runs", &share])).ok();
        assert_eq!(copied.stderr, "");
        let partition = format!("slice:{number}/2");
        let mut arguments = vec!["run", "--continue", "--run", "p", "--partition", &partition];
        arguments.extend(["--results", &share]);
        suite.eval(&arguments).ok();
    }
    let merge = suite.eval(&["merge", "--run", "p", "--from", "share-1", "--from", "share-2"]).ok();
    assert!(merge.stdout.contains("results=2") && merge.stdout.contains("missing=0"), "{}", merge.stdout);
    assert_eq!(suite.outcomes(), ["a success", "b success"]);
}

#[test]
fn workflow_runs_a_matrix_and_merges() {
    let suite = Suite::with_cases(&["a"]);
    suite
        .eval(&["submit", "actions", "--run", "p", "--partitions", "3", "--arm", "max_attempts_default=1"])
        .ok();
    let workflow = suite.repo.read(".github/workflows/eval.yml");
    for part in [
        "partition: [1, 2, 3]",
        "runner eval plan --run p --arm max_attempts_default=1 --trials 1",
        "--partition slice:${{ matrix.partition }}/3",
        "runner eval merge --run p",
    ] {
        assert!(workflow.contains(part), "{part}: {workflow}");
    }
    assert!(!suite.repo.path("eval/results/_runs").exists(), "the workflow plans the run");
}
