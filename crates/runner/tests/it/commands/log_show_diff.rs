//! `runner log`, `show`, `diff`: what happened, with the run's logs and without.

use std::fs::File;

use testkit::processes::wait_for;
use testkit::run_builder::{RUN, RunBuilder};
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;

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
    let sandbox = RunBuilder::new(RUNNER).agent(AGENT).guard("echo 'error: no ok'; test -e ok").start();
    sandbox.runner(&["loop"]).ok();
    sandbox
}

/// The same run in a clone, where no log is.
fn cloned(sandbox: TestRepo) -> TestRepo {
    let place = sandbox.outside().join("clone");
    sandbox.git(&["clone", "-q", &sandbox.root().display().to_string(), place.to_str().unwrap()]);
    sandbox.at(place)
}

/// What a command draws on a terminal, after asserting its exit code.
pub(crate) fn on_terminal(sandbox: &TestRepo, command: &str, code: i32) -> String {
    let mut script = sandbox.command("script");
    let line = format!("stty cols 90 rows 24; {RUNNER} {command}");
    script.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm-256color").env("NO_COLOR", "1");
    script.env("RUNNER_PAGER", "sed s/^/PAGED:/");
    let ran = run(&mut script);
    assert_eq!(ran.code, Some(code), "{}", ran.stdout);
    let drawn = ran.stdout.replace("\r\n", "\n");
    // The names of commits are others every time.
    let is_hex = |word: &str| word.len() >= 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    drawn
        .split_inclusive([' ', '\n'])
        .map(
            |word| {
                if is_hex(word.trim_end()) {
                    word.replace(word.trim_end(), "COMMIT")
                } else {
                    word.to_owned()
                }
            },
        )
        .collect()
}

#[test]
fn log_lists_iterations_without_times_if_there_are_no_logs() {
    let sandbox = complete();
    let told = sandbox.runner(&["log"]).ok().stdout;
    assert_eq!(told.lines().count(), 5);
    assert!(told.starts_with("iter=1 outcome=decomposed node=root files=0 commit="), "{told}");
    assert!(told.contains("guard_ms="), "{told}");
    assert_eq!(sandbox.runner(&["log", "--grep", "half of"]).ok().stdout.lines().count(), 1);
    let clone = cloned(sandbox);
    let told = clone.runner(&["log"]).ok().stdout;
    assert!(told.lines().count() == 5 && !told.contains("_ms="), "{told}");
    assert_eq!(clone.runner(&["log", "2"]).ok().stdout, "half of it\nerror: no ok\n");
    assert!(clone.runner(&["log", "2", "--prompt"]).refused(2).contains("not in this clone"));
}

#[test]
fn log_prints_parts_without_control_sequences() {
    let sandbox = complete();
    let told = |args: &str| sandbox.runner(&args.split(' ').collect::<Vec<_>>()).ok().stdout;
    assert_eq!(told("log 2"), "thinking hard\nerror: no ok\n");
    assert_eq!(told("log #2 --guard"), "error: no ok\n");
    assert_eq!(told("log @-3 --agent"), "thinking hard\n");
    assert_eq!(told("log 2 --grep ^err"), "error: no ok\n");
    assert!(told("log a --prompt").contains("# "), "the last iteration on a node");
    assert!(told("log 4 --errors").contains("passed and may not be changed"));
    assert!(told("log 2 --raw").contains("thinking"));
    assert!(sandbox.runner(&["log", "--grep", "("]).refused(2).contains("no regular expression"));
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
        ("root/", "could be 2 nodes"),
        ("zzz", "see 'runner tree'"),
    ] {
        let told = sandbox.runner(&["show", bad]).refused(2);
        assert!(told.contains(why), "{bad}: {told}");
    }
    let node: serde_json::Value =
        serde_json::from_str(&sandbox.runner(&["show", "b", "--json"]).ok().stdout).unwrap();
    assert_eq!((&node["node"]["state"], node["iterations"].as_array().unwrap().len()), (&"passed".into(), 2));
    let iter: serde_json::Value =
        serde_json::from_str(&sandbox.runner(&["show", "3", "--json"]).ok().stdout).unwrap();
    assert_eq!((&iter["summary"], &iter["files"][0]["path"]), (&"all of it".into(), &"ok".into()));
}

#[test]
fn diff_shows_the_work_and_any_path_on_request() {
    let sandbox = complete();
    let told = sandbox.runner(&["diff", "3"]).ok().stdout;
    assert!(told.contains("+++ b/ok") && !told.contains(".runner"), "{told}");
    assert!(
        sandbox.runner(&["diff", "3", "--", ".runner"]).ok().stdout.contains("b/.runner/state/tree.json")
    );
    assert_eq!(sandbox.runner(&["diff", "2"]).ok().stdout, "");
}

#[test]
fn log_uses_columns_and_a_pager_on_a_terminal() {
    let sandbox = cloned(complete());
    assert!(on_terminal(&sandbox, "log", 0).starts_with("PAGED:"));
    assert!(!on_terminal(&sandbox, "log --json", 0).contains("PAGED:"));
    insta::assert_snapshot!("log_90", on_terminal(&sandbox, "log -v --no-pager", 0));
    insta::assert_snapshot!("show_iteration_90", on_terminal(&sandbox, "show 4 --no-pager", 0));
    insta::assert_snapshot!("show_node_90", on_terminal(&sandbox, "show a --no-pager", 0));
    insta::assert_snapshot!("diff_90", on_terminal(&sandbox, "diff 3 --no-pager", 0));
    insta::assert_snapshot!("verify_90", on_terminal(&sandbox, "verify", 0));
}

#[test]
fn replay_reports_its_result_on_a_terminal() {
    let sandbox = complete();
    insta::assert_snapshot!("replay_90", on_terminal(&sandbox, "replay", 0));
    let prompt = sandbox.path(&format!(".runner/iterations/{RUN}/0003/prompt.md"));
    let text = std::fs::read_to_string(&prompt).unwrap();
    std::fs::write(&prompt, text.replacen("Port it", "Port that", 1)).unwrap();
    insta::assert_snapshot!("replay_other_90", on_terminal(&sandbox, "replay", 1));
}

#[test]
fn log_follows_the_current_iteration() {
    let agent = "echo hello; touch \"$AROUND/begun\"; while [ ! -e \"$AROUND/go\" ]; do sleep 0.05; done; answer done";
    let sandbox = RunBuilder::new(RUNNER).agent(agent).start();
    let mut looping = sandbox.runner_command(&["loop", "-q"]).spawn().unwrap();
    wait_for("the session", || sandbox.outside().join("begun").exists());
    let seen = sandbox.outside().join("seen");
    let mut following =
        sandbox.runner_command(&["log", "@", "-f"]).stdout(File::create(&seen).unwrap()).spawn().unwrap();
    wait_for("what is followed", || std::fs::read_to_string(&seen).unwrap().contains("hello"));
    std::fs::write(sandbox.outside().join("go"), "").unwrap();
    assert!(looping.wait().unwrap().success() && following.wait().unwrap().success());
    assert_eq!(
        sandbox.runner(&["log", "-f", "--run", RUN]).ok().stdout.lines().count(),
        1,
        "nobody works any more"
    );
}
