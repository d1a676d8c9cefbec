//! Checks: a task's own acceptance commands, red before the work and green after it.

use runner_core::verify::Rule;
use testkit::oracle::assert_sound;
use testkit::run_builder::RunBuilder;
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;
use crate::security::forged_runs::Forgery::{Append, Mended, Message, Remove, Trailer};
use crate::security::forged_runs::{Forgery, assert_found};

pub(super) const CHECKS: &str = ".runner/nodes/root/checks.toml";
const FROZEN: &str = ".runner/nodes/root/greet.sh";
const STATE: &str = ".runner/state/run_state.json";

pub(super) const GREETS: &str = "[[check]]\nname = \"greets\"\ncommand = [\"sh\", \"t/greet.sh\"]\n\
                      files = { \"t/greet.sh\" = \"greet.sh\" }\n";
const GREET: &str = "echo greeting; test \"$(cat out 2>/dev/null)\" = hello\n";

/// A run whose root has a check with a file.
pub(super) fn checked() -> RunBuilder {
    RunBuilder::new(RUNNER).file(CHECKS, GREETS).file(FROZEN, GREET)
}

/// The commit of an iteration.
fn commit_of(repo: &TestRepo, iter: u32) -> String {
    repo.git(&["log", "-1", "--format=%H", &format!("--grep=iter {iter:04} "), "HEAD"])
}

fn records(repo: &TestRepo, iter: u32) -> Vec<String> {
    let format = "--format=%(trailers:key=Runner-Check,valueonly)";
    let shown = repo.git(&["log", "-1", format, &commit_of(repo, iter)]);
    shown.lines().filter_map(|line| line.rsplit_once(' ')).map(|(record, _)| record.to_owned()).collect()
}

fn annotations(repo: &TestRepo, iter: u32) -> String {
    repo.git(&["log", "-1", "--format=%(trailers:key=Runner-Annotation,valueonly)", &commit_of(repo, iter)])
}

fn is_in(repo: &TestRepo, iter: u32, path: &str) -> bool {
    let files = repo.git(&["ls-tree", "-r", "--name-only", &commit_of(repo, iter)]);
    files.lines().any(|line| line == path)
}

#[test]
fn a_task_passes_when_its_checks_turn_from_red_to_green() {
    for room in ["room = \"in-place\"", "room = \"require\""] {
        let agent = r#"[ "$RUNNER_ITER" = 0002 ] && echo hello > out; answer done"#;
        let guard = "echo guarded; test -e t/greet.sh";
        let repo = checked().agent(agent).guard(guard).guard_keys(room).start();
        repo.runner(&["loop"]).ok();
        assert_eq!(repo.outcomes(), ["checks_failed", "passed"], "{room}");
        assert_eq!(records(&repo, 1), ["greets failed 1"], "{room}");
        assert_eq!(records(&repo, 2), ["greets failed 0"], "{room}");
        assert!(!is_in(&repo, 1, "t/greet.sh"), "an iteration that did not pass leaves the check out");
        assert!(is_in(&repo, 2, "t/greet.sh"), "a pass commits the check");
        let subject = repo.git(&["log", "-1", "--format=%s", &commit_of(&repo, 1)]);
        assert!(subject.ends_with("status=done guard=skipped"), "{subject}");
        let prompt = repo.iteration_file(2, "prompt.md");
        assert!(prompt.contains("Check `greets` (`sh t/greet.sh`) exited with code 1"), "{prompt}");
        assert!(prompt.contains("greets: sh t/greet.sh (all acceptance criteria)"), "{prompt}");
        assert_eq!(repo.iteration_file(2, "check-greets.log"), "greeting\n");
        let status = repo.runner(&["status"]).ok().stdout;
        assert!(status.contains("acceptance=\"1 of 1 points proven\""), "{status}");
        let verified = repo.runner(&["verify"]).ok().stdout;
        assert!(verified.contains("acceptance=\"1 of 1 points proven\""), "{verified}");
        assert_sound(&repo);
    }
}

/// The failpoint between a check and the guard.
pub(crate) const POINT: &str = "iter.check";

#[test]
fn an_iteration_that_crashes_after_its_checks_is_recovered() {
    let repo = checked().agent("echo hello > out; answer done").start();
    let ran = run(repo.runner_command(&["loop"]).env("RUNNER_TEST_CRASH_AT", POINT));
    assert_eq!(ran.code, None, "the point was not reached");
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.outcomes(), ["passed"]);
    assert_sound(&repo);
}

#[test]
fn a_lazy_agent_gets_stuck() {
    let repo = checked().keys("max_attempts_default = 2").start();
    assert_eq!(repo.runner(&["loop"]).code, Some(3));
    assert_eq!(repo.outcomes(), ["checks_failed", "checks_failed"]);
    assert!(!repo.path("t").exists(), "the check and its folder are gone");
    assert_sound(&repo);
}

#[test]
fn an_agent_cannot_change_its_checks() {
    for edit in [
        "echo true > t/greet.sh",
        "rm -r t",
        "echo true > .runner/nodes/root/greet.sh",
        "rm .runner/nodes/root/checks.toml",
        "printf '[[check]]\\nname = \"x\"\\ncommand = [\"true\"]\\n' > .runner/nodes/root/checks.toml",
    ] {
        let agent = format!("{edit}; answer done");
        let repo = checked().agent(&agent).keys("max_attempts_default = 1").start();
        assert_eq!(repo.runner(&["loop"]).code, Some(3), "{edit}");
        assert_eq!(repo.outcomes(), ["checks_failed"], "{edit}");
        assert_eq!(repo.read(CHECKS), GREETS, "{edit}");
        assert_eq!(repo.read(FROZEN), GREET, "{edit}");
        let annotations = annotations(&repo, 1);
        assert!(annotations.contains("check-file-restored "), "{edit}: {annotations}");
        assert_sound(&repo);
    }
}

/// The code of the candidate runs before the check reads its file.
#[test]
fn code_in_the_room_cannot_change_a_check() {
    let toml = GREETS.replace("[\"sh\", \"t/greet.sh\"]", "[\"sh\", \"-c\", \"sh build.sh; sh t/greet.sh\"]");
    let agent = "echo 'echo true > t/greet.sh' > build.sh; answer done";
    let repo = checked()
        .file(CHECKS, toml)
        .agent(agent)
        .guard_keys("room = \"require\"")
        .keys("max_attempts_default = 1")
        .start();
    assert_eq!(repo.runner(&["loop"]).code, Some(3));
    assert_eq!(repo.outcomes(), ["checks_failed"]);
    assert_sound(&repo);
}

#[test]
fn a_check_that_does_not_fail_first_proves_nothing() {
    let vacuous = "[[check]]\nname = \"always\"\ncommand = [\"true\"]\n";
    let repo = RunBuilder::new(RUNNER).file(CHECKS, vacuous).start();
    repo.runner(&["loop"]).ok();
    assert_eq!(records(&repo, 1), ["always green 0"]);
    let annotations = annotations(&repo, 1);
    assert!(annotations.contains("check-unproven always green"), "{annotations}");
    let status = repo.runner(&["status"]).ok().stdout;
    assert!(status.contains("acceptance=\"0 of 1 points proven, 1 unproven\""), "{status}");
    let listed = repo.runner(&["checks"]).ok().stdout;
    assert!(listed.contains("check=always task=root state=vacuous red=green"), "{listed}");
    assert_sound(&repo);

    let stopping =
        RunBuilder::new(RUNNER).file(CHECKS, vacuous).config_tables("[checks]\nvacuous = \"stop\"");
    let repo = stopping.start();
    let before = repo.git(&["rev-parse", "HEAD"]);
    let stopped = repo.runner(&["loop"]);
    assert_eq!(stopped.code, Some(1));
    assert!(stopped.stdout.contains("vacuous_checks"), "{}", stopped.stdout);
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), before);
}

#[test]
fn every_kind_of_red_is_recorded() {
    for (command, timeout, kind) in [
        ("[\"sh\", \"-c\", \"exit 1\"]", 9, "failed"),
        ("[\"sh\", \"-c\", \"exit 127\"]", 9, "absent"),
        ("[\"no-such-program\"]", 9, "broken"),
        ("[\"sh\", \"-c\", \"kill -9 $$\"]", 9, "broken"),
        ("[\"sleep\", \"60\"]", 1, "broken"),
        ("[\"sh\", \"-c\", \"echo '0 passed in 0.01s'\"]", 9, "broken"),
        ("[\"true\"]", 9, "green"),
    ] {
        let toml = format!("[[check]]\nname = \"x\"\ncommand = {command}\ntimeout_secs = {timeout}\n");
        let repo = RunBuilder::new(RUNNER).file(CHECKS, toml).agent("answer retry").start();
        repo.runner(&["step"]).ok();
        assert_eq!(records(&repo, 1), [format!("x {kind} none")], "{command}");
    }
}

const SPLIT: &str = r#"
case "$RUNNER_ITER" in
0001) split
  for id in a b; do mkdir -p .runner/nodes/$id; done
  printf '[[check]]\nname = "made"\ncommand = ["sh", "t/a.sh"]\nfiles = { "t/a.sh" = "a.sh" }\n' > .runner/nodes/a/checks.toml
  echo 'test -e made' > .runner/nodes/a/a.sh ;;
0002) test -e t/a.sh && echo 1 > made; answer done ;;
*) answer done ;;
esac
"#;

#[test]
fn the_session_that_creates_a_task_writes_its_checks() {
    let repo = RunBuilder::new(RUNNER).agent(SPLIT).start();
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.outcomes(), ["decomposed", "passed", "passed"]);
    assert!(!is_in(&repo, 1, "t/a.sh"), "held back until the task's turn");
    assert_eq!(records(&repo, 2), ["made failed 0"]);
    assert_sound(&repo);
}

#[test]
fn invalid_checks_of_a_new_task_are_a_violation() {
    for (name, toml) in [
        ("an unknown key", "[[check]]\nname = \"x\"\ncommand = [\"true\"]\ncover = [1]\n"),
        ("a point that does not exist", "[[check]]\nname = \"x\"\ncommand = [\"true\"]\ncovers = [1]\n"),
        ("a missing file", "[[check]]\nname = \"x\"\ncommand = [\"true\"]\nfiles = { \"t\" = \"gone\" }\n"),
        (
            "a protected file",
            "[[check]]\nname = \"x\"\ncommand = [\"true\"]\nfiles = { \"guard.sh\" = \"g.sh\" }\n",
        ),
        (
            "a file that exists",
            "[[check]]\nname = \"x\"\ncommand = [\"true\"]\nfiles = { \"README.md\" = \"g.sh\" }\n",
        ),
        (
            "a path outside",
            "[[check]]\nname = \"x\"\ncommand = [\"true\"]\nfiles = { \"../x\" = \"g.sh\" }\n",
        ),
    ] {
        let agent = format!(
            "split; mkdir -p .runner/nodes/a; echo true > .runner/nodes/a/g.sh\ncat > .runner/nodes/a/checks.toml <<'END'\n{toml}END\n"
        );
        let repo = RunBuilder::new(RUNNER).agent(&agent).keys("max_attempts_default = 1").start();
        repo.runner(&["step"]);
        assert_eq!(repo.outcomes(), ["rule_violation"], "{name}");
        assert!(!is_in(&repo, 1, ".runner/nodes/a/checks.toml"), "{name}");
        assert_sound(&repo);
    }
}

#[test]
fn start_refuses_invalid_checks() {
    let repo = RunBuilder::new(RUNNER).start();
    repo.write(FROZEN, GREET);
    for (toml, problem) in [
        ("[[check]]\nname = \"x\"\n", "`check.command` is missing"),
        ("[[check]]\nname = \"x\"\ncommand = [\"true\"]\ncovers = [7]\n", "`covers` has 7"),
        (
            "[[check]]\nname = \"x\"\ncommand = [\"true\"]\nfiles = { \"README.md\" = \"greet.sh\" }\n",
            "exists already",
        ),
        (
            "[[check]]\nname = \"x\"\ncommand = [\"true\"]\nfiles = { \"guard.sh\" = \"greet.sh\" }\n",
            "is protected",
        ),
        (
            "[[check]]\nname = \"x\"\ncommand = [\"true\"]\nfiles = { \"t\" = \"gone\" }\n",
            "is not beside checks.toml",
        ),
    ] {
        repo.write(CHECKS, toml);
        let refused = repo.runner(&["start"]).refused(2);
        assert!(refused.contains(problem), "{problem}: {refused}");
    }
    repo.write(CHECKS, GREETS);
    repo.runner(&["start"]).ok();
    assert_sound(&repo);
}

#[test]
fn the_user_adds_and_removes_checks_by_command() {
    let repo = RunBuilder::new(RUNNER).start();
    std::fs::write(repo.outside().join("greet.sh"), GREET).unwrap();
    let file = format!("t/greet.sh={}", repo.outside().join("greet.sh").display());
    let add = |name: &str, file: &str| {
        repo.runner(&[
            "node",
            "check",
            "add",
            "root",
            "--name",
            name,
            "--command",
            "sh t/greet.sh",
            "--file",
            file,
        ])
    };
    add("greets", &file).ok();
    assert_eq!(repo.read(".runner/nodes/root/greets-greet.sh"), GREET);
    let before = repo.git(&["rev-parse", "HEAD"]);
    let toml = repo.read(CHECKS);
    for (name, file) in
        [("greets", file.as_str()), ("other", "README.md=/dev/null"), ("other", "../x=/dev/null")]
    {
        add(name, file).refused(2);
        assert_eq!((repo.git(&["rev-parse", "HEAD"]), repo.read(CHECKS)), (before.clone(), toml.clone()));
        assert_eq!(repo.git(&["status", "--porcelain"]), "");
    }
    repo.runner(&["node", "check", "remove", "root", "gone"]).refused(2);
    repo.runner(&["node", "check", "remove", "root", "greets"]).ok();
    assert!(!repo.path(CHECKS).exists() && !repo.path(".runner/nodes/root/greets-greet.sh").exists());
    repo.runner(&["loop"]).ok();
    assert_sound(&repo);
}

#[test]
fn a_crash_in_a_session_leaves_no_check_behind() {
    let agent = "touch \"$AROUND/begun\"; sleep 60";
    let repo = checked().agent(agent).start();
    repo.kill_when(&["step"], "begun");
    repo.replace_agent("echo hello > out; answer done");
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.outcomes(), ["interrupted", "passed"]);
    assert_eq!(records(&repo, 1), ["greets failed none"], "red survives the crash");
    assert!(!is_in(&repo, 1, "t/greet.sh"));
    assert_sound(&repo);
}

/// Fails its check, gives up once, passes.
const FORGED_AGENT: &str = r#"
case "$RUNNER_ITER" in
0001) answer done ;;
0002) answer retry ;;
*) echo hello > out; answer done ;;
esac
"#;

const TWO: &str = "[[check]]\nname = \"greets\"\ncommand = [\"sh\", \"t/greet.sh\"]\n\
                   files = { \"t/greet.sh\" = \"greet.sh\" }\n\
                   [[check]]\nname = \"runs\"\ncommand = [\"true\"]\nred = \"any\"\n";

const FORGERIES: &[(Forgery, Rule, u32)] = &[
    (Message(3, "greets failed 0", "greets failed 1"), Rule::ChecksGreen, 3),
    (Message(3, "greets failed 0", "greets failed timed-out"), Rule::ChecksGreen, 3),
    (Message(1, "Outcome: checks_failed", "Outcome: passed"), Rule::ChecksGreen, 1),
    (Message(1, "greets failed 1", "greets failed 0"), Rule::Outcome, 1),
    (Message(1, "greets failed", "greets absent"), Rule::RunState, 1),
    (Message(3, "greets failed", "greets absent"), Rule::Checks, 3),
    (Message(3, "runs green", "runs failed"), Rule::Checks, 3),
    (Message(1, "Runner-Check: greets", "Runner-Other: greets"), Rule::ChecksRed, 1),
    (Message(3, "Runner-Check: greets", "Runner-Other: greets"), Rule::Checks, 3),
    (Trailer(2, "Runner-Check: greets failed 0 x"), Rule::Checks, 2),
    (Append(1, "t/greet.sh", "true\n"), Rule::CheckFile, 1),
    (Append(3, "t/greet.sh", "true\n"), Rule::CheckFile, 3),
    (Remove(3, "t/greet.sh"), Rule::CheckFile, 3),
    (Message(3, "Outcome: passed", "Outcome: checks_failed"), Rule::CheckFile, 3),
    (Append(2, FROZEN, "true\n"), Rule::ChecksFrozen, 2),
    (Append(1, CHECKS, "# other\n"), Rule::ChecksFrozen, 1),
    (Remove(3, CHECKS), Rule::ChecksFrozen, 3),
    (
        Append(2, ".runner/nodes/ghost/checks.toml", "[[check]]\nname = \"x\"\ncommand = [\"x\"]\n"),
        Rule::ChecksFrozen,
        2,
    ),
    (Append(0, CHECKS, "[[check]]\nname = \"greets\"\n"), Rule::ChecksInvalid, 0),
    (Mended(1, STATE, "\"red\": \"failed\"", "\"red\": \"absent\""), Rule::RunState, 1),
    (Mended(3, STATE, "\"red\": \"failed\"", "\"red\": \"absent\""), Rule::RunState, 3),
    (Message(1, "Runner-Candidate: ", "Runner-Candidate: 0"), Rule::Candidate, 1),
    (Append(1, "other", "work\n"), Rule::Candidate, 1),
    (Trailer(3, "Runner-Annotation: check-unproven greets green"), Rule::Annotations, 3),
];

#[test]
fn verify_names_the_rule_that_a_forged_check_violates() {
    let repo = checked().file(CHECKS, TWO).agent(FORGED_AGENT).start();
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.outcomes(), ["checks_failed", "retry", "passed"]);
    assert_sound(&repo);
    assert!(FORGERIES.len() >= 20);
    assert_found(&repo, FORGERIES);
}

/// A task with parts: its checks fail before the first session below it, and succeed at its milestone.
#[test]
fn checks_of_a_task_with_parts_are_red_before_the_first_session_below_it() {
    let agent = r#"[ "$RUNNER_NODE_ID" = root ] && { split; exit; }
        echo hello > out; echo $RUNNER_NODE_ID > f$RUNNER_NODE_ID; answer done"#;
    let builder = checked().agent(agent).guard_keys("final_check = true\nroom = \"require\"");
    let repo = builder.start();
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.outcomes(), ["decomposed", "passed", "passed"]);
    // The root was a leaf when its first session split it.
    assert_eq!(records(&repo, 1), ["greets failed none"]);
    let status = repo.runner(&["status"]).ok().stdout;
    assert!(status.contains("1 of 1 points proven") || status.contains("1 of 3 points proven"), "{status}");
    assert_sound(&repo);

    // Checks that the user adds after the split run before the next session below.
    let builder = RunBuilder::new(RUNNER).agent(agent).guard_keys("final_check = true\nroom = \"require\"");
    let repo = builder.start();
    repo.runner(&["step"]).ok();
    repo.write(CHECKS, GREETS);
    repo.write(FROZEN, GREET);
    repo.runner(&["start"]).ok();
    repo.runner(&["loop"]).ok();
    let format = "--format=%(trailers:key=Runner-Red,valueonly)";
    let red = repo.git(&["log", "-1", format, &commit_of(&repo, 2)]);
    assert!(red.starts_with("root/greets failed "), "{red}");
    assert_eq!(repo.git(&["log", "-1", format, &commit_of(&repo, 3)]).trim(), "", "once");
    assert_sound(&repo);
    // Index 0 is the start, 1 the split, 2 the user's start, 3 and 4 the iterations.
    let forgeries: &[(Forgery, Rule, u32)] = &[
        (Message(3, "root/greets failed", "root/greets absent"), Rule::RunState, 2),
        (Message(3, "root/greets failed", "root/other failed"), Rule::ChecksRed, 2),
        (Message(3, "Runner-Red: root/greets", "Runner-Ret: root/greets"), Rule::ChecksRed, 2),
        (Trailer(4, "Runner-Red: root/greets failed 00"), Rule::ChecksRed, 3),
    ];
    assert_found(&repo, forgeries);
}

/// A session must not decide what its own work is measured by.
#[test]
fn a_session_keeps_the_acceptance_criteria_of_its_own_task() {
    let agent = r#"case "$RUNNER_ITER" in
        0001) sed -i 's/"it works"/"other"/' "$RUNNER_TREE"; answer retry ;;
        0002) sed -i '/"it is documented"/d; s/"it is secure",/"it is secure"/' "$RUNNER_TREE"; echo x > f; answer done ;;
        esac"#;
    let goal = "# Goal\n\nMake it.\n\n## Acceptance\n\n- it works\n- it is secure\n- it is documented\n";
    let check = "[[check]]\nname = \"c\"\ncommand = [\"test\", \"-e\", \"f\"]\ncovers = [1]\n";
    let repo = RunBuilder::new(RUNNER).goal(goal).file(CHECKS, check).agent(agent).start();
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.outcomes(), ["retry", "passed"]);
    let acceptance = serde_json::json!(["it works", "it is secure", "it is documented"]);
    assert_eq!(repo.tree()["root"]["acceptance"], acceptance);
    let status = repo.runner(&["status"]).ok().stdout;
    assert!(status.contains("acceptance=\"1 of 3 points proven, 2 in prose\""), "{status}");
    assert_sound(&repo);
    const TREE: &str = ".runner/state/tree.json";
    assert_found(
        &repo,
        &[
            (Mended(1, TREE, "\"it works\"", "\"it runs\""), Rule::TreeRestored, 1),
            (Mended(2, TREE, "\"it is secure\"", "\"x\""), Rule::TreeRestored, 2),
            (Mended(2, TREE, "\"it works\",\n      ", ""), Rule::TreeRestored, 2),
            (
                Mended(2, TREE, "\"it is secure\",\n      \"it is documented\"", "\"it is secure\""),
                Rule::TreeRestored,
                2,
            ),
        ],
    );
}
