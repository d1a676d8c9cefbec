//! Agents whose leavings cannot be copied or kept, such as folders deeper than any path. Their trials are scored, once, and no other
//! trial suffers.

use crate::{Suite, shell};

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
