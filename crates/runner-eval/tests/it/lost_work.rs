//! Agents whose leavings cannot be copied or kept: folders deeper than any path, and a full disk. Their trials are scored, once, and
//! no other trial suffers.

use testkit::test_repo::run;

use crate::{Suite, runner, shell};

/// Nests folders so deep that no path can name the last one.
const NEST_FOLDERS: &str = "python3 -c '
import os
for _ in range(30):
    os.mkdir(\"d\" * 200)
    os.chdir(\"d\" * 200)
'";

const KILL_EVERYTHING: &str = "for pid in $(ps -A -o pid=); do kill -KILL $pid; done 2>/dev/null; exit 1";

/// Runs a case and one after it, twice, and requires one scored result of each.
fn assert_scored_once(script: &str) {
    let suite = Suite::new();
    suite.add("a-nester", "", &shell(script));
    suite.add("next", "", "[[session.do]]\nwrite = { path = \"done.txt\", text = \"x\" }\n");
    for _ in 0..2 {
        let output = suite.eval(&["run", "--run", "r", "--retry-wait", "0"]);
        assert_eq!(output.code, Some(0), "{}{}", output.stdout, output.stderr);
        let results = suite.results();
        assert_eq!(results.len(), 2, "{results:?}");
        assert_eq!((results[1].case.as_str(), results[1].outcome.as_str()), ("next", "success"));
        let scored = ["none", "agent", "guard", "limit", "runner"];
        assert!(scored.contains(&results[0].cause.as_str()), "{results:?}");
    }
    suite.eval(&["clean", "--all"]).ok();
    assert!(!suite.repo.path("eval/workspaces/a-nester").exists());
}

#[test]
fn deep_folders_do_not_excuse_a_trial_or_stop_the_evaluation() {
    assert_scored_once(&format!("{NEST_FOLDERS}; touch done.txt"));
}

#[test]
fn deep_folders_and_a_killed_runner_do_not_excuse_a_trial() {
    assert_scored_once(&format!("{NEST_FOLDERS}; {KILL_EVERYTHING}"));
}

/// Fills the disk with files that are not larger than a trial may write.
const FILL_DISK: &str = "i=0; while head -c 8000000 /dev/zero > fill$i; do i=$((i + 1)); done 2>/dev/null; \
    dd if=/dev/zero of=rest bs=4k 2>/dev/null; exit 1";

/// The suite is on a small disk of its own, which only the evaluation's processes see.
#[test]
fn full_disk_is_a_scored_result_and_leaves_room_for_other_trials() {
    let suite = Suite::on_disk();
    suite.add("a-filler", "", &shell(FILL_DISK));
    suite.add("next", "", "[[session.do]]\nwrite = { path = \"done.txt\", text = \"x\" }\n");
    let script = "set -e; mkdir disk; mount -t tmpfs -o size=160m tmpfs disk; cp -r eval disk/; cd disk\n\
        for turn in 1 2; do \"$0\" run --run r --retry-wait 0 --runner \"$1\" 1>&2 || true; done; \"$0\" results --json\n";
    let mut command = suite.repo.command("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]);
    let output = run(command.arg(env!("CARGO_BIN_EXE_runner-eval")).arg(runner())).ok();
    let results: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    let mut causes = Vec::new();
    for result in results["results"].as_array().unwrap() {
        causes.push((result["case_id"].as_str().unwrap(), result["cause"].as_str().unwrap_or("none")));
    }
    assert_eq!(causes, [("a-filler", "limit"), ("next", "none")], "{}", output.stderr);
}
