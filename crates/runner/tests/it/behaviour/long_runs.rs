//! What keeps a long run small: logs that are removed by policy, copies of the plan, loose objects; and full disks.

use std::fs;
use std::path::Path;

use serde_json::json;
use testkit::run_builder::RunBuilder;
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;
use crate::fixtures::json as document;

fn names(sandbox: &TestRepo, iter: u32) -> Vec<String> {
    let entries = fs::read_dir(sandbox.path(&format!(".runner/iterations/demo/{iter:04}"))).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A complete run of twelve passes: every one splits off the next task. Iteration 2 fails its guard.
fn long_run() -> TestRepo {
    let agent = r#"
case "$RUNNER_ITER" in
0001) add_tasks 12 ;;
0002) echo bad > bad; answer done ;;
*) rm -f bad; echo "$RUNNER_ITER" > work.txt; answer done ;;
esac"#;
    let tasks = r#"
add_tasks() {
python3 - "$RUNNER_TREE" "$1" <<'PY'
import json, sys
path, count = sys.argv[1], int(sys.argv[2])
tree = json.load(open(path))
child = lambda n: dict(id=f"t{n}", order=n, title=f"t{n}", goal="g", acceptance=[], passes=False, attempts=0,
                       max_attempts=3, children=[])
tree["root"]["children"] = [child(n) for n in range(count)]
json.dump(tree, open(path, "w"))
PY
answer decomposed
}"#;
    let sandbox = RunBuilder::new(RUNNER)
        .agent(&format!("{tasks}\n{agent}"))
        .guard("test ! -e bad")
        .config_tables("[logs]\nkeep_iterations = 3\nkeep_failed_iterations = 1\n")
        .start();
    sandbox.runner(&["loop"]).ok();
    sandbox
}

#[test]
fn old_logs_are_removed_by_policy_and_every_command_reports_it() {
    let sandbox = long_run();
    let kept = ["logs-removed.json", "meta.json", "output.json", "session.json"];
    assert_eq!(names(&sandbox, 1), kept);
    assert_eq!(names(&sandbox, 5), kept);
    assert!(names(&sandbox, 2).contains(&"guard.log".to_owned()), "a failed iteration keeps its logs");
    assert!(names(&sandbox, 14).contains(&"executor.log".to_owned()));

    let removed = sandbox.runner(&["log", "5", "--guard"]).refused(2);
    assert!(
        removed.contains("logs of iteration 5 were removed by `keep_iterations` under [logs]"),
        "{removed}"
    );
    let log = document(&sandbox.runner(&["log", "5", "--json"]).ok());
    assert_eq!(log["logs_removed"], json!(true));
    let shown = sandbox.runner(&["show", "5"]).ok();
    assert!(shown.stdout.contains("removed by keep_iterations under [logs]"), "{}", shown.stdout);
    assert_eq!(document(&sandbox.runner(&["show", "13", "--json"]).ok())["logs_removed"], json!(false));

    // What stays is enough to replay the whole run.
    let replayed = document(&sandbox.runner(&["replay", "--json"]).ok());
    assert_eq!((&replayed["iterations"], &replayed["skipped"]), (&json!(14), &json!([])));
    sandbox.runner(&["verify"]).ok();
}

#[test]
fn only_the_newest_iterations_have_copies_of_the_plan() {
    let sandbox = long_run();
    let with_tree = |iter: u32| names(&sandbox, iter).contains(&"tree.after.json".to_owned());
    assert_eq!((with_tree(2), with_tree(3), with_tree(13), with_tree(14)), (false, false, true, true));
    assert_eq!(sandbox.iteration_file(14, "tree.after.json"), sandbox.read(".runner/state/tree.json"));
}

#[test]
fn a_link_planted_in_place_of_old_logs_is_not_followed() {
    let agent = r#"
case "$RUNNER_ITER" in
0003) rm -rf .runner/iterations/demo/0001; ln -s "$PRECIOUS" .runner/iterations/demo/0001; answer retry ;;
*) echo "$RUNNER_ITER" >> work.txt; answer retry ;;
esac"#;
    let precious = tempfile::tempdir().unwrap();
    fs::write(precious.path().join("prompt.md"), "mine").unwrap();
    let agent = agent.replace("$PRECIOUS", precious.path().to_str().unwrap());
    let sandbox = RunBuilder::new(RUNNER)
        .agent(&agent)
        .keys("max_attempts_default = 9\nmax_iterations = 8")
        .config_tables("[logs]\nkeep_iterations = 3\nkeep_failed_iterations = 0\n")
        .start();
    assert_eq!(sandbox.runner(&["loop"]).code, Some(4));
    assert_eq!(fs::read_to_string(precious.path().join("prompt.md")).unwrap(), "mine");
    assert!(names(&sandbox, 2).contains(&"logs-removed.json".to_owned()));
}

#[test]
fn loose_objects_are_packed_while_a_session_runs() {
    // The session waits until the maintenance is done, so that the test does not depend on its speed.
    let agent = "i=0; while [ $i -lt 600 ] && ! ls .git/objects/pack/*.idx >/dev/null 2>&1 || [ -d .git/runner-pack ]; do \
        i=$((i + 1)); sleep 0.1; done; echo x > work.txt; answer done";
    let sandbox = RunBuilder::new(RUNNER).agent(agent).start();
    let unreachable = add_loose_objects(&sandbox);
    sandbox.runner(&["loop"]).ok();
    let loose = loose_objects(&sandbox);
    assert!(loose < 100, "{loose} loose objects are left");
    assert_eq!(sandbox.git(&["cat-file", "-t", &unreachable]), "blob", "nothing is pruned");
    assert_eq!(sandbox.git(&["fsck", "--strict", "--no-dangling"]), "");
    sandbox.runner(&["verify"]).ok();
}

#[test]
fn loose_objects_are_packed_however_short_the_sessions_are() {
    let sandbox = RunBuilder::new(RUNNER).agent("echo x >> work.txt; answer retry").start();
    add_loose_objects(&sandbox);
    sandbox.runner(&["step"]).ok();
    let loose = loose_objects(&sandbox);
    assert!(loose < 100, "{loose} loose objects are left");
    assert!(!sandbox.path(".git/runner-pack").exists());
}

/// Adds so many objects that packing them is due; returns one of them.
fn add_loose_objects(sandbox: &TestRepo) -> String {
    let folder = sandbox.outside().join("many");
    fs::create_dir(&folder).unwrap();
    let mut paths = String::new();
    for number in 0..4_000 {
        let path = folder.join(number.to_string());
        fs::write(&path, format!("content {number}")).unwrap();
        paths.push_str(&format!("{}\n", path.display()));
    }
    fs::write(sandbox.outside().join("list"), paths).unwrap();
    let script = format!("git hash-object -w --stdin-paths < {}", sandbox.outside().join("list").display());
    let ids = run(sandbox.command("sh").args(["-c", &script])).ok().stdout;
    ids.lines().next().unwrap().to_owned()
}

fn loose_objects(sandbox: &TestRepo) -> usize {
    sandbox.git(&["count-objects"]).split(' ').next().and_then(|count| count.parse().ok()).unwrap()
}

/// Runs the runner with a small file system at a path.
fn with_small_disk(
    sandbox: &TestRepo,
    path: &Path,
    bytes: u32,
    script: &str,
) -> testkit::test_repo::RunOutput {
    let mut command = sandbox.command("bwrap");
    command.args(["--dev-bind", "/", "/", "--size", &bytes.to_string(), "--tmpfs"]).arg(path);
    command.args(["--chdir"]).arg(sandbox.root()).args(["sh", "-c", script]);
    run(&mut command)
}

#[test]
fn a_full_disk_that_only_hits_logs_does_not_stop_the_run() {
    let agent = "head -c 300000 /dev/urandom | base64 > work.txt; answer done";
    let sandbox = RunBuilder::new(RUNNER).agent(agent).start();
    fs::create_dir_all(sandbox.path(".runner/iterations")).unwrap();
    let script = format!("{RUNNER} loop && cat .runner/iterations/demo/0001/meta.json");
    let output = with_small_disk(&sandbox, &sandbox.path(".runner/iterations"), 131_072, &script).ok();
    assert!(output.stdout.contains("\"logs_dropped\""), "{}", output.stdout);
    assert!(output.stdout.contains("diff.patch: No space left on device"), "{}", output.stdout);
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
    sandbox.runner(&["verify"]).ok();
}

#[test]
fn a_session_does_not_begin_on_a_full_disk() {
    let sandbox = TestRepo::empty(RUNNER);
    let script = format!(
        "cd small && git init -q && git -c user.name=U -c user.email=u@localhost commit -q --allow-empty -m root && {RUNNER} init && \
         {RUNNER} start --goal 'Do it' && {RUNNER} loop; echo \"code $?\""
    );
    let small = sandbox.path("small");
    fs::create_dir(&small).unwrap();
    let output = with_small_disk(&sandbox, &small, 6 << 20, &script);
    assert!(output.stdout.contains("code 1\n"), "{}\n{}", output.stdout, output.stderr);
    assert!(output.stderr.contains("KiB left"), "{}", output.stderr);
    assert!(output.stderr.contains("free some space (an iteration needs 8 MiB)"), "{}", output.stderr);
}
