//! Planning sessions and the approval of plans.

use runner_core::verify::Rule;
use testkit::oracle::assert_sound;
use testkit::run_builder::RunBuilder;
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;
use crate::assert_proved;
use crate::security::forged_runs::Forgery::{Append, Drop, Mended, Message, Twice};
use crate::security::forged_runs::{Forgery, TREE, assert_found};

const STATE: &str = ".runner/state/run_state.json";
const QUESTIONS: &str = ".runner/state/questions.md";

/// Asks a question first, leaves an invalid tree then, and writes a plan with a check at last.
pub(crate) const PLANNER: &str = r#"
case "$RUNNER_MODE" in
plan)
  echo mess >> README.md; echo new > stray.txt; rm -f guard.sh
  if ! grep -q '^- Which' .runner/state/questions.md; then
    echo '- Which one?' >> .runner/state/questions.md; answer retry 'need to know'
  elif grep -q '"id": "a"' "$RUNNER_TREE"; then answer done
  elif [ "$RUNNER_ITER" = 0002 ]; then echo '{' > "$RUNNER_TREE"; answer decomposed broken
  else
    mkdir -p .runner/nodes/a
    printf '[[check]]\nname = "made"\ncommand = ["sh", "t/a.sh"]\nfiles = { "t/a.sh" = "a.sh" }\n' > .runner/nodes/a/checks.toml
    echo 'test -e out' > .runner/nodes/a/a.sh
    split
  fi ;;
*) echo 1 > out; answer done ;;
esac"#;

const REQUIRED: &str = "[plan]\napproval = \"required\"\n";

/// A run whose planning session asked, was rejected, and then wrote a plan.
fn planned(tables: &str) -> TestRepo {
    let repo = RunBuilder::new(RUNNER).agent(PLANNER).config_tables(tables).start();
    let asked = repo.runner(&["plan", "make"]);
    assert_eq!(asked.code, Some(3), "{}{}", asked.stdout, asked.stderr);
    assert!(asked.stdout.contains("question=1 text=\"Which one?\""), "{}", asked.stdout);
    assert!(asked.stdout.contains("outcome=plan_questions tasks=1 stop=none exit=3"), "{}", asked.stdout);
    repo.runner(&["answer", "1", "the green one"]).ok();
    let made = repo.runner(&["plan", "make"]).ok().stdout;
    assert!(made.contains("outcome=planned tasks=3 stop=none exit=0"), "{made}");
    assert_eq!(repo.outcomes(), ["plan_questions", "plan_rejected", "planned"]);
    repo
}

#[test]
fn a_planning_session_asks_and_then_writes_the_plan_and_nothing_else() {
    let repo = planned("");
    let subjects = repo.git(&["log", "--format=%s", "--grep=iter"]);
    assert_eq!(
        subjects.lines().collect::<Vec<_>>(),
        [
            "chore(loop): run demo iter 0003 plan status=decomposed guard=skipped",
            "chore(loop): run demo iter 0002 plan status=retry guard=skipped",
            "chore(loop): run demo iter 0001 plan status=retry guard=skipped",
        ]
    );
    assert_eq!(
        repo.git(&["log", "--format=", "--name-only", "--", ":!.runner"])
            .lines()
            .filter(|line| line.contains("stray"))
            .count(),
        0
    );
    assert!(!repo.path("stray.txt").exists() && repo.path("guard.sh").exists(), "nothing else is kept");
    assert!(!repo.read("README.md").contains("mess"));
    assert_eq!(repo.git(&["status", "--porcelain", "-uall"]), "");
    let prompt = repo.iteration_file(3, "prompt.md");
    assert!(prompt.contains("the green one"), "{prompt}");
    assert!(prompt.contains("tree.json: "), "the next session sees why the plan was rejected: {prompt}");
    assert_eq!(repo.read(".runner/nodes/a/a.sh"), "test -e out\n");
    assert_eq!(repo.tree()["root"]["attempts"], 0, "planning costs no attempt");
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.outcomes().last().map(String::as_str), Some("passed"));
    let replayed = repo.runner(&["replay"]).ok().stdout;
    assert!(replayed.contains("identical=true"), "{replayed}");
    assert_proved(&repo);
    assert_sound(&repo);
}

#[test]
fn a_planning_session_asks_at_most_five_questions_and_retries_only_with_one() {
    for (ask, found) in [
        ("for n in 1 2 3 4 5 6; do echo \"- Q$n?\" >> .runner/state/questions.md; done;", "at most 5"),
        ("", "got no question"),
    ] {
        let repo = RunBuilder::new(RUNNER).agent(&format!("{ask} answer retry")).start();
        let made = repo.runner(&["plan", "make"]);
        assert_eq!(made.code, Some(1), "{}", made.stdout);
        assert_eq!(repo.outcomes(), ["plan_rejected"; 3], "{found}");
        assert!(repo.iteration_file(2, "prompt.md").contains(found), "{found}");
        assert_proved(&repo);
    }
}

#[test]
fn a_plan_may_add_checks_to_open_tasks_without_any_and_changes_no_others() {
    let agent = r#"for n in a b; do mkdir -p .runner/nodes/$n
printf '[[check]]\nname = "new"\ncommand = ["false"]\n' > .runner/nodes/$n/checks.toml; done; answer done"#;
    let repo = RunBuilder::new(RUNNER).agent(agent).start();
    repo.runner(&["node", "split", "root", "--into", "a", "--into", "b"]).ok();
    repo.runner(&["node", "check", "add", "b", "--name", "old", "--command", "false"]).ok();
    repo.runner(&["plan", "make"]).ok();
    assert!(repo.read(".runner/nodes/a/checks.toml").contains("\"new\""));
    assert!(repo.read(".runner/nodes/b/checks.toml").contains("\"old\""), "frozen checks stay");
    assert_proved(&repo);
    assert_sound(&repo);
}

#[test]
fn a_planning_session_that_a_crash_interrupts_is_recovered_as_one() {
    for point in ["iter.begun", "iter.ended", "iter.stored", "iter.commit"] {
        let repo = RunBuilder::new(RUNNER)
            .agent("echo x > stray.txt; grep -q '\"id\": \"a\"' \"$RUNNER_TREE\" && answer done || split")
            .start();
        let ran = run(repo.runner_command(&["plan", "make"]).env("RUNNER_TEST_CRASH_AT", point));
        assert_eq!(ran.code, None, "{point} was not reached");
        repo.runner(&["status"]);
        repo.runner(&["plan", "make"]).ok();
        assert!(repo.git(&["log", "--format=%s"]).contains("iter 0001 plan "), "{point}");
        assert!(!repo.path("stray.txt").exists(), "{point}");
        assert_proved(&repo);
        assert_sound(&repo);
    }
}

#[test]
fn a_loop_waits_for_the_approval_and_a_change_of_the_plan_needs_another() {
    let repo = planned(REQUIRED);
    let refused = |command: &[&str]| {
        let before = repo.git(&["rev-parse", "HEAD"]);
        let output = repo.runner(command);
        assert_eq!(output.code, Some(2), "{command:?}: {}{}", output.stdout, output.stderr);
        assert!(output.stdout.contains("stop=not_approved"), "{}", output.stdout);
        assert!(output.stdout.contains("runner plan approve"), "{}", output.stdout);
        assert_eq!(repo.git(&["rev-parse", "HEAD"]), before, "no commit");
    };
    refused(&["loop"]);
    refused(&["step"]);
    assert!(repo.runner(&["status"]).ok().stdout.contains("runner plan approve"));
    repo.runner(&["plan", "approve"]).ok();
    let tip = repo.git(&["rev-parse", "HEAD"]);
    repo.runner(&["plan", "approve"]).ok();
    assert_eq!(repo.git(&["rev-parse", "HEAD"]), tip, "a second approval makes no commit");
    // Neither a start without a change nor more attempts, notes and answers change the plan.
    repo.runner(&["start"]).ok();
    repo.runner(&["note", "quick"]).ok();
    repo.runner(&["node", "allow", "b", "1"]).ok();
    repo.runner(&["step"]).ok();
    for change in [
        &["node", "edit", "b", "--title", "Better"][..],
        &["node", "add", "root", "--title", "More"],
        &["node", "check", "add", "b", "--name", "b", "--command", "false"],
        &["plan", "make"],
    ] {
        repo.runner(&["plan", "approve"]).ok();
        repo.runner(change).ok();
        refused(&["loop"]);
    }
    repo.runner(&["plan", "approve"]).ok();
    repo.write(".runner/nodes/b/checks.toml", "[[check]]\nname = \"b\"\ncommand = [\"true\"]\n");
    repo.git(&["commit", "-qam", "my own commit"]);
    repo.runner(&["start"]).ok();
    refused(&["loop"]);
    assert_proved(&repo);
    assert_sound(&repo);
}

#[test]
fn what_agents_add_while_they_work_needs_no_approval() {
    let agent = r#"case "$RUNNER_MODE $RUNNER_NODE_ID" in *root) split ;; *) echo "$RUNNER_NODE_ID" > out; answer done ;; esac"#;
    let repo = RunBuilder::new(RUNNER).agent(agent).config_tables(REQUIRED).start();
    repo.runner(&["plan", "approve"]).ok();
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.outcomes(), ["decomposed", "passed", "passed"]);
    assert_proved(&repo);
}

/// Index 0 is the start, 1 to 3 are planning sessions with an answer between the first two, 5 is the approval, and 6 and 7 are
/// iterations.
const FORGERIES: &[(Forgery, Rule, u32)] = &[
    (Append(1, "work", "x\n"), Rule::PlanScope, 1),
    (Append(4, "src/new.rs", "x\n"), Rule::PlanScope, 3),
    (Append(1, QUESTIONS, "\n- 2?\n\n- 3?\n\n- 4?\n\n- 5?\n\n- 6?\n"), Rule::PlanScope, 1),
    (
        Append(1, ".runner/nodes/root/checks.toml", "[[check]]\nname = \"x\"\ncommand = [\"true\"]\n"),
        Rule::ChecksFrozen,
        1,
    ),
    (Message(4, "Runner-Outcome: planned", "Runner-Outcome: plan_questions"), Rule::PlanScope, 3),
    (Message(4, "0003 plan", "0003 node root"), Rule::Stopped, 3),
    (Mended(4, TREE, "\"passes\": false", "\"passes\": true"), Rule::Passes, 3),
    (Mended(5, STATE, "\"plan_approval\": \"", "\"plan_approval\": \"0"), Rule::RunStateInvalid, 0),
    (Message(5, "{\"do\":\"approve\",\"plan\":\"", "{\"do\":\"approve\",\"plan\":\"0"), Rule::Message, 0),
    (Append(5, ".runner/nodes/a/a.sh", "true\n"), Rule::EditScope, 0),
    (Append(5, "work", "x\n"), Rule::EditScope, 0),
    (Drop(5), Rule::Stopped, 4),
    (Twice(5), Rule::PlanEdit, 0),
];

#[test]
fn verify_names_the_rule_that_a_forged_plan_violates() {
    let repo = planned(REQUIRED);
    repo.runner(&["plan", "approve"]).ok();
    repo.runner(&["loop"]).ok();
    assert_sound(&repo);
    assert_found(&repo, FORGERIES);
}

#[test]
fn a_changed_goal_changes_the_root_or_says_how() {
    let repo = RunBuilder::new(RUNNER).agent("answer retry").start();
    repo.runner(&["step"]).ok();
    let change = |title: &str| {
        let goal = repo.read(".runner/GOAL.md");
        let (front, _) = goal.split_once("# ").unwrap();
        repo.write(".runner/GOAL.md", format!("{front}# {title}\n\nFrom one to the other.\n"));
    };
    change("Port more");
    let started = repo.runner(&["start"]).ok().stdout;
    assert!(!started.contains("warning"), "{started}");
    assert_eq!(repo.tree()["root"]["title"], "Port more");
    assert_eq!(repo.tree()["root"]["attempts"], 1);
    repo.runner(&["node", "split", "root", "--into", "a", "--into", "b"]).ok();
    change("Port all");
    let started = repo.runner(&["start"]).ok().stdout;
    assert!(
        started.contains("warning=\"the goal changed, but the plan still holds the old one\""),
        "{started}"
    );
    assert!(started.contains("runner node edit root"), "{started}");
    assert_eq!(repo.tree()["root"]["title"], "Port more");
    repo.runner(&["node", "edit", "root", "--title", "Port all"]).ok();
    assert!(!repo.runner(&["start"]).ok().stdout.contains("warning"));
    assert_proved(&repo);
}

#[test]
fn another_goal_on_a_complete_run_names_the_command_for_a_new_one() {
    let repo = RunBuilder::new(RUNNER).agent("echo 1 > out; answer done").start();
    repo.runner(&["loop"]).ok();
    let refused = repo.runner(&["start", "--goal", "Do more"]).refused(2);
    assert!(refused.contains("runner run \"Do more\""), "{refused}");
}
