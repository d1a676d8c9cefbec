//! `runner log`, `show`, `diff` and `replay`, with the run's logs and without.

use std::fs::File;

use testkit::processes::wait_for;
use testkit::run_builder::{RUN, RunBuilder};
use testkit::test_repo::TestRepo;

use crate::RUNNER;
use crate::fixtures::{completed, json, on_terminal, redacted};

const AGENT: &str = r#"
printf 'thinking \033]0;evil\007\033[31mhard\033[0m\n'
case "$RUNNER_ITER" in
0001) split ;;
0002) answer done "half of it" ;;
0003) echo 1 > ok; answer done "all of it" ;;
0004) sed -i 's/"title": "a"/"title": "A"/' "$RUNNER_TREE"; answer done ;;
*) echo 2 > ok; answer done ;;
esac
"#;

fn complete() -> TestRepo {
    completed(&RunBuilder::new(RUNNER).agent(AGENT).guard("echo 'error: no ok'; test -e ok"))
}

/// The same run in a clone without logs.
fn cloned(sandbox: TestRepo) -> TestRepo {
    let place = sandbox.outside().join("clone");
    sandbox.git(&["clone", "-q", &sandbox.root().display().to_string(), place.to_str().unwrap()]);
    sandbox.at(place)
}

/// The output of a command on a terminal of 90 columns; asserts its exit code.
pub(crate) fn on_wide_terminal(sandbox: &TestRepo, command: &str, code: i32) -> String {
    let output = on_terminal(sandbox, 90, command);
    assert_eq!(output.code, Some(code), "{}", output.stdout);
    redacted(sandbox, &output.stdout)
}

#[test]
fn log_lists_iterations_without_times_if_there_are_no_logs() {
    let sandbox = complete();
    let output = sandbox.runner(&["log"]).ok().stdout;
    assert_eq!(output.lines().count(), 5);
    assert!(output.starts_with("iter=1 outcome=decomposed node=root files=0 commit="), "{output}");
    assert!(output.contains("guard_ms="), "{output}");
    assert_eq!(sandbox.runner(&["log", "--grep", "half of"]).ok().stdout.lines().count(), 1);
    let last_two: Vec<&str> = output.lines().skip(3).collect();
    assert_eq!(sandbox.runner(&["log", "-n", "2"]).ok().stdout.lines().collect::<Vec<_>>(), last_two);
    assert_eq!(sandbox.runner(&["log", "-f", "--limit", "2"]).ok().stdout.lines().count(), 2);
    assert_eq!(sandbox.runner(&["log", "5", "-n", "2"]).code, Some(2), "a limit is for the list");
    let clone = cloned(sandbox);
    let output = clone.runner(&["log"]).ok().stdout;
    assert!(output.lines().count() == 5 && !output.contains("_ms="), "{output}");
    assert_eq!(clone.runner(&["log", "2"]).ok().stdout, "half of it\nerror: no ok\n");
    assert!(clone.runner(&["log", "2", "--prompt"]).refused(2).contains("not in this clone"));
}

#[test]
fn log_prints_parts_without_control_sequences() {
    let sandbox = complete();
    let output_of = |args: &str| sandbox.runner(&args.split(' ').collect::<Vec<_>>()).ok().stdout;
    assert_eq!(output_of("log 2"), "thinking hard\nerror: no ok\n");
    assert_eq!(output_of("log #2 --guard"), "error: no ok\n");
    assert_eq!(output_of("log @-3 --agent"), "thinking hard\n");
    assert_eq!(output_of("log 2 --grep ^err"), "error: no ok\n");
    assert!(output_of("log a --prompt").contains("# "), "the last iteration on a node");
    assert!(output_of("log 4 --errors").contains("has passed and must not change"));
    assert!(output_of("log 2 --raw").contains("thinking"));
    assert!(sandbox.runner(&["log", "--grep", "("]).refused(2).contains("is not a regular expression"));
    assert_eq!(sandbox.runner(&["log", "2", "--guard", "--agent"]).code, Some(2));
}

#[test]
fn target_argument_is_resolved_or_refused_with_a_suggestion() {
    let sandbox = complete();
    for good in ["5", "#5", "@", "0005", "b", "root/b", "roo", "@-0"] {
        sandbox.runner(&["show", good]).ok();
    }
    for (bad, why) in [
        ("9", "there is no iteration 9"),
        ("#0", "there is no iteration 0"),
        ("@-5", "there is no iteration 5 before the last"),
        ("roto", "did you mean `root`?"),
        ("root/", "matches 2 tasks"),
        ("zzz", "run 'runner tree'"),
    ] {
        let output = sandbox.runner(&["show", bad]).refused(2);
        assert!(output.contains(why), "{bad}: {output}");
    }
    let node = json(&sandbox.runner(&["show", "b", "--json"]).ok());
    assert_eq!((&node["node"]["state"], node["iterations"].as_array().unwrap().len()), (&"passed".into(), 2));
    let iter = json(&sandbox.runner(&["show", "3", "--json"]).ok());
    assert_eq!((&iter["summary"], &iter["files"][0]["path"]), (&"all of it".into(), &"ok".into()));
}

#[test]
fn diff_shows_the_work_and_any_path_on_request() {
    let sandbox = complete();
    let output = sandbox.runner(&["diff", "3"]).ok().stdout;
    assert!(output.contains("+++ b/ok") && !output.contains(".runner"), "{output}");
    assert!(
        sandbox.runner(&["diff", "3", "--", ".runner"]).ok().stdout.contains("b/.runner/state/tree.json")
    );
    assert_eq!(sandbox.runner(&["diff", "2"]).ok().stdout, "");
}

#[test]
fn log_uses_columns_and_a_pager_on_a_terminal() {
    let sandbox = cloned(complete());
    assert!(on_wide_terminal(&sandbox, "log", 0).starts_with("PAGED:"));
    assert!(!on_wide_terminal(&sandbox, "log --json", 0).contains("PAGED:"));
    insta::assert_snapshot!("log_90", on_wide_terminal(&sandbox, "log -v --no-pager", 0));
    insta::assert_snapshot!("show_iteration_90", on_wide_terminal(&sandbox, "show 4 --no-pager", 0));
    insta::assert_snapshot!("show_node_90", on_wide_terminal(&sandbox, "show a --no-pager", 0));
    insta::assert_snapshot!("diff_90", on_wide_terminal(&sandbox, "diff 3 --no-pager", 0));
    insta::assert_snapshot!("verify_90", on_wide_terminal(&sandbox, "verify", 0));
}

#[test]
fn replay_reports_its_result_on_a_terminal() {
    let sandbox = complete();
    insta::assert_snapshot!("replay_90", on_wide_terminal(&sandbox, "replay", 0));
    let prompt = sandbox.path(&format!(".runner/iterations/{RUN}/0003/prompt.md"));
    let text = std::fs::read_to_string(&prompt).unwrap();
    std::fs::write(&prompt, text.replacen("Port it", "Port that", 1)).unwrap();
    insta::assert_snapshot!("replay_other_90", on_wide_terminal(&sandbox, "replay", 1));
}

#[test]
fn log_follows_the_current_iteration() {
    let agent = "echo hello; touch \"$AROUND/begun\"; while [ ! -e \"$AROUND/go\" ]; do sleep 0.05; done; answer done";
    let sandbox = RunBuilder::new(RUNNER).agent(agent).start();
    let mut looping = sandbox.runner_command(&["loop", "-q"]).spawn().unwrap();
    wait_for("the session", || sandbox.outside().join("begun").exists());
    let shown = sandbox.runner(&["show", "@"]).ok().stdout;
    assert!(shown.starts_with("iter=1 state=running phase=agent task=root"), "{shown}");
    assert!(shown.contains("next=\"runner log @ -f\""), "{shown}");
    assert!(sandbox.runner(&["diff", "@"]).refused(2).contains("iteration 1 is still running"));
    let seen = sandbox.outside().join("seen");
    let mut following =
        sandbox.runner_command(&["log", "@", "-f"]).stdout(File::create(&seen).unwrap()).spawn().unwrap();
    wait_for("what is followed", || std::fs::read_to_string(&seen).unwrap().contains("hello"));
    std::fs::write(sandbox.outside().join("go"), "").unwrap();
    assert!(looping.wait().unwrap().success() && following.wait().unwrap().success());
    assert_eq!(
        sandbox.runner(&["log", "-f", "--run", RUN]).ok().stdout.lines().count(),
        1,
        "no runner works on the run"
    );
}
