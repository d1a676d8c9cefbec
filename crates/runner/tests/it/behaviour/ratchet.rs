//! The ratchet: checks of passed tasks run again, and one that fails becomes a task or stops the run.

use runner_core::verify::Rule;
use testkit::oracle::assert_sound;
use testkit::run_builder::RunBuilder;
use testkit::test_repo::{TestRepo, run};

use super::baseline::POINTS;
use crate::RUNNER;
use crate::security::forged_runs::Forgery::{Append, Mended, Message, Remove, Trailer};
use crate::security::forged_runs::{Forgery, assert_found};

/// The failpoint before a check runs again.
pub(crate) const POINT: &str = "recheck.run";

const STATE: &str = ".runner/state/run_state.json";
const ROOT_CHECKS: &str = ".runner/nodes/root/checks.toml";
const TREE: &str = ".runner/state/tree.json";

/// Writes checks of task `a` while the root is split: `out` must be hello.
const SPLIT: &str = r#"
if [ "$RUNNER_NODE_ID" = root ]; then
  mkdir -p .runner/nodes/a
  printf '[[check]]\nname = "greets"\ncommand = ["sh", "t/greet.sh"]\nfiles = { "t/greet.sh" = "greet.sh" }\n' > .runner/nodes/a/checks.toml
  echo 'echo looked; test "$(cat out 2>/dev/null)" = hello' > .runner/nodes/a/greet.sh
  split; exit
fi
"#;

/// Task `a` writes `out`, task `b` breaks it, and a regression task does this.
fn broken_by_b(repair: &str, keys: &str) -> RunBuilder {
    let agent = format!(
        r#"{SPLIT}
case "$RUNNER_NODE_ID" in
  a) echo hello > out;;
  b) echo broken > out;;
  *) {repair};;
esac
answer done"#
    );
    RunBuilder::new(RUNNER).agent(&agent).guard_keys(keys)
}

fn subjects(repo: &TestRepo) -> Vec<String> {
    let subject = |line: &String| line.replace("chore(loop): run demo ", "");
    repo.subjects("HEAD").iter().rev().map(subject).collect()
}

fn rechecks(repo: &TestRepo, commit: &str) -> Vec<String> {
    let format = "--format=%(trailers:key=Runner-Recheck,valueonly)";
    let shown = repo.git(&["log", "-1", format, commit]);
    let word = |line: &str| line.split(' ').filter(|word| word.len() != 64).collect::<Vec<_>>().join(" ");
    shown.lines().filter(|line| !line.is_empty()).map(word).collect()
}

#[test]
fn a_later_task_that_breaks_a_check_adds_a_task_with_that_check() {
    for keys in ["final_check = true\nroom = \"require\"", "final_check = true", ""] {
        let repo = broken_by_b("echo hello > out", keys).start();
        repo.runner(&["loop"]).ok();
        let kind = if keys.is_empty() { "milestone checks=fail" } else { "final guard=pass" };
        let all = subjects(&repo);
        let at = all.iter().position(|subject| subject == kind).unwrap_or_else(|| panic!("{all:?}"));
        assert!(all[at + 1].contains("node regression-1 status=done guard=pass"), "{all:?}");
        let failed = format!("HEAD~{}", all.len() - 1 - at);
        let by = if keys.contains("require") { " broken-by=0003" } else { "" };
        assert_eq!(rechecks(&repo, &failed), [format!("a/greets 1{by}")], "{keys}");
        let again = ["regression-1/greets 0", "a/greets 0"];
        assert_eq!(rechecks(&repo, "HEAD"), again, "{keys}");
        let toml = repo.read(".runner/nodes/regression-1/checks.toml");
        assert!(toml.contains("\"t/greet.sh\" = \"a-greet.sh\""), "{toml}");
        assert_eq!(repo.outcomes(), ["decomposed", "passed", "passed", "passed"], "{keys}");
        assert!(repo.runner(&["verify"]).ok().stdout.contains("complete=true"), "{keys}");
        assert_sound(&repo);
    }
}

#[test]
fn a_session_that_weakens_a_passed_check_file_does_not_weaken_the_check() {
    let agent = format!(
        r#"{SPLIT}
case "$RUNNER_NODE_ID" in
  a) echo hello > out;;
  b) echo broken > out; echo true > t/greet.sh;;
  *) answer retry; exit;;
esac
answer done"#
    );
    let builder = RunBuilder::new(RUNNER).agent(&agent).guard_keys("final_check = true\nroom = \"require\"");
    let repo = builder.keys("max_attempts_default = 1").start();
    assert_eq!(repo.runner(&["loop"]).code, Some(3));
    assert_eq!(rechecks(&repo, "HEAD~1"), ["a/greets 1 broken-by=0003"]);
    assert!(repo.runner(&["status"]).ok().stdout.contains("stop=stuck"));
    assert_sound(&repo);
}

#[test]
fn a_run_stops_when_no_further_task_may_be_added() {
    for keys in ["final_check = true\nroom = \"require\"", ""] {
        let repo = broken_by_b("true", keys).config_tables("[checks]\nregression_tasks = 0").start();
        let ran = repo.runner(&["loop"]);
        assert_eq!(ran.code, Some(3), "{}", ran.stdout);
        assert!(ran.stdout.contains("stop=regressed"), "{}", ran.stdout);
        let status = repo.runner(&["status"]).ok().stdout;
        assert!(status.contains("stop=regressed"), "{status}");
        assert!(repo.runner(&["verify"]).ok().stdout.contains("complete=false"), "{keys}");
        assert_sound(&repo);
        // The user repairs it; the next loop runs the check again.
        repo.write("out", "hello\n");
        repo.git(&["commit", "-q", "-am", "repair it"]);
        if !keys.is_empty() {
            repo.runner(&["loop"]).ok();
            assert!(repo.runner(&["verify"]).ok().stdout.contains("complete=true"), "{keys}");
            assert_sound(&repo);
        }
    }
}

#[test]
fn checks_that_run_again_survive_a_crash() {
    let points = [POINT].into_iter().chain(POINTS);
    for point in points {
        for keys in ["final_check = true", "final_check = true\nroom = \"require\""] {
            let repo = broken_by_b("echo hello > out", keys).start();
            let ran = run(repo.runner_command(&["loop"]).env("RUNNER_TEST_CRASH_AT", point));
            assert_eq!(ran.code, None, "{point} was not reached");
            repo.runner(&["loop"]).ok();
            assert_eq!(repo.outcomes(), ["decomposed", "passed", "passed", "passed"], "{point}");
            let finals = subjects(&repo).iter().filter(|subject| subject.starts_with("final")).count();
            assert_eq!(finals, 2, "{point}");
            assert!(!repo.path(".git/runner/fresh-room").exists());
            assert_sound(&repo);
        }
    }
}

#[test]
fn a_milestone_runs_the_checks_of_passed_tasks_again() {
    let agent = format!(
        r#"{SPLIT}
case "$RUNNER_NODE_ID" in
  c) true;;
  d) echo broken > out;;
  *) echo hello > out;;
esac
answer done"#
    );
    let repo = RunBuilder::new(RUNNER).agent(&agent).guard_keys("final_check = true").start();
    repo.runner(&["step"]).ok();
    repo.runner(&["node", "split", "b", "--into", "c", "--into", "d"]).ok();
    repo.runner(&["loop"]).ok();
    let all = subjects(&repo);
    let last = |count: usize| all.get(all.len() - count..).unwrap_or_default().to_vec();
    let task = |subject: &String| subject.split(" status").next().unwrap_or_default().to_owned();
    let found: Vec<String> = last(4).iter().map(task).collect();
    assert_eq!(
        found,
        ["iter 0004 node d", "milestone checks=fail", "iter 0005 node regression-1", "final guard=pass"]
            .map(str::to_owned)
    );
    assert_sound(&repo);
}

#[test]
fn checks_of_a_task_with_parts_run_when_its_last_part_passed() {
    // The check of the root needs both parts.
    let toml = "[[check]]\nname = \"both\"\ncommand = [\"sh\", \"-c\", \"cat one two\"]\n";
    let agent = r#"
case "$RUNNER_NODE_ID" in
  root) split; exit;;
  a) echo 1 > one;;
  regression-1) echo 2 > two;;
esac
answer done"#;
    for keys in ["final_check = true", ""] {
        let repo = RunBuilder::new(RUNNER).agent(agent).guard_keys(keys).file(ROOT_CHECKS, toml).start();
        repo.runner(&["loop"]).ok();
        assert_eq!(repo.outcomes(), ["decomposed", "passed", "passed", "passed"], "{keys}");
        assert_eq!(rechecks(&repo, "HEAD"), ["root/both 0", "regression-1/both 0"], "{keys}");
        assert!(repo.runner(&["verify"]).ok().stdout.contains("complete=true"), "{keys}");
        assert_sound(&repo);
    }
}

/// Index 0 is the start, 1 to 3 the iterations, 4 the final check that adds a task, 5 its iteration, 6 the last final check.
const FORGERIES: &[(Forgery, Rule, u32)] = &[
    (Message(4, "Runner-Recheck: a/greets 1", "Runner-Recheck: a/greets 0"), Rule::Recheck, 0),
    (Message(4, "Runner-Recheck: a/greets 1", "Runner-Recheck: a/other 1"), Rule::Recheck, 0),
    (Message(4, "broken-by=0003", "broken-by=0001"), Rule::Recheck, 0),
    (Message(4, "broken-by=0003", "broken-by=0009"), Rule::Recheck, 0),
    (Message(4, "Runner-Tree: ", "Runner-Tree: 0"), Rule::TreeDigest, 0),
    (Mended(4, STATE, "\"tasks\": 1", "\"tasks\": 2"), Rule::RunState, 0),
    (Mended(4, TREE, "Check `greets` of task `a` succeeds", "Nothing"), Rule::Regression, 0),
    (Append(4, ".runner/nodes/regression-1/checks.toml", "# weaker\n"), Rule::Regression, 0),
    (Append(4, ".runner/nodes/regression-1/a-greet.sh", "true\n"), Rule::Regression, 0),
    (Remove(4, ".runner/nodes/regression-1/checks.toml"), Rule::Regression, 0),
    (Append(4, "README.md", "more\n"), Rule::EditScope, 0),
    (Trailer(6, "Runner-Recheck: a/greets 0"), Rule::Recheck, 0),
    (Message(6, "Runner-Recheck: a/greets 0", "Runner-Recheck: a/greets 1"), Rule::Regression, 0),
];

#[test]
fn verify_names_the_rule_that_a_forged_regression_violates() {
    let repo = broken_by_b("echo hello > out", "final_check = true\nroom = \"require\"").start();
    repo.runner(&["loop"]).ok();
    assert_found(&repo, FORGERIES);
}
