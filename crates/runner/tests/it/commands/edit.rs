//! `runner node`, `answer` and `note`: one commit per edit, refused if a rule forbids it, and verified.
#![expect(clippy::indexing_slicing, reason = "a tree has the fields of its schema")]

use testkit::oracle::assert_sound;
use testkit::processes::wait_for;
use testkit::run_builder::RunBuilder;
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;

/// Splits the root into a and b, asks two questions, and answers `done` to every leaf.
pub(crate) const AGENT: &str = r#"
case "$RUNNER_NODE_ID" in
root) printf '\nWhich port?\n\n- Tabs or spaces?\n' >> .runner/state/questions.md; split ;;
*) echo "$RUNNER_ITER" > work; answer done ;;
esac
"#;

/// The failpoints of an edit.
pub(crate) const POINTS: [&str; 7] = [
    "edit.commit",
    "publish.journal",
    "publish.branch",
    "publish.files",
    "publish.documents",
    "publish.head",
    "publish.index",
];

/// A run in which `a` passed and `b` is open.
pub(crate) fn half_done() -> TestRepo {
    let sandbox = RunBuilder::new(RUNNER).agent(AGENT).start();
    sandbox.runner(&["loop", "--max-iterations", "2"]);
    assert_eq!(sandbox.outcomes(), ["decomposed", "passed"]);
    sandbox
}

fn children(sandbox: &TestRepo, of: &str) -> String {
    fn find(node: &serde_json::Value, id: &str) -> Option<serde_json::Value> {
        let children = node["children"].as_array().unwrap();
        if node["id"] == id { Some(node.clone()) } else { children.iter().find_map(|child| find(child, id)) }
    }
    let node = find(&sandbox.tree()["root"], of).unwrap();
    let output = node["children"].as_array().unwrap().iter();
    output
        .map(|child| format!("{}{}", child["id"].as_str().unwrap(), child["order"]))
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn each_edit_is_one_commit_and_the_edited_run_verifies() {
    let sandbox = half_done();
    let edits: &[(&[&str], &str)] = &[
        (
            &["add", "root", "--title", "Write the manual!", "--acceptance", "it is read", "--before", "b"],
            "node add write-the-manual",
        ),
        (
            &["add", "b", "--title", "Part", "--goal", "First\nof all", "--id", "p.1", "--max-attempts", "9"],
            "node add p.1",
        ),
        (
            &["edit", "write", "--title", "The manual", "--no-acceptance", "--goal", "Write it"],
            "node edit write-the-manual",
        ),
        (&["split", "root/b/p.1", "--into", "One thing", "--into", "One thing"], "node split p.1"),
        (&["move", "one-thing-2", "--under", "root", "--after", "write"], "node move one-thing-2"),
        (&["move", "one-thing-2", "--order", "-7"], "node move one-thing-2"),
        (&["allow", "one-thing-2"], "node allow one-thing-2"),
        (&["allow", "one-thing-2", "2"], "node allow one-thing-2"),
        (&["remove", "one-thing"], "node remove one-thing"),
    ];
    for (args, subject) in edits {
        // `one-thing` is both an id and a prefix of another one.
        let output = sandbox.runner(&[&["node"], *args].concat()).ok();
        assert_eq!(sandbox.subjects("HEAD").first(), Some(&format!("chore(loop): run demo edit {subject}")));
        assert_eq!(sandbox.git(&["diff", "--name-only", "HEAD~1"]), ".runner/state/tree.json", "{args:?}");
        assert_eq!(sandbox.git(&["status", "--porcelain"]), "", "{args:?}");
        assert!(output.stdout.contains(" commit="), "{}", output.stdout);
    }
    assert_eq!(children(&sandbox, "root"), "one-thing-2-7 a1 write-the-manual2 b4");
    assert_eq!(children(&sandbox, "b"), "p.11");
    let tree = sandbox.tree();
    assert_eq!(tree["root"]["children"][0]["max_attempts"], 8);
    assert_eq!(tree["root"]["children"][2]["goal"], "Write it");
    assert_eq!(tree["root"]["children"][3]["children"][0]["children"], serde_json::json!([]));
    sandbox.runner(&["loop"]).ok();
    assert_eq!(sandbox.outcomes().len(), 5, "three leaves more");
    assert_sound(&sandbox);
    let output = sandbox.runner(&["verify"]).ok().stdout;
    assert_eq!(output.matches("kind=edit").count(), 9, "{output}");
}

#[test]
fn complete_run_continues_with_a_further_task() {
    let sandbox = RunBuilder::new(RUNNER).agent(AGENT).guard_keys("final_check = true").start();
    sandbox.runner(&["loop"]).ok();
    assert_eq!(sandbox.runner(&["status"]).ok().value("state"), Some("complete"));
    sandbox.runner(&["node", "add", "root", "--title", "One more", "--id", "c"]).ok();
    assert_eq!(sandbox.runner(&["status"]).ok().value("state"), Some("stopped"));
    let last = sandbox.runner(&["loop"]).ok();
    assert!(last.stdout.contains("event=final_check_ended guard=pass"), "{}", last.stdout);
    assert_eq!(sandbox.runner(&["status"]).ok().value("state"), Some("complete"));
    sandbox.runner(&["verify"]).ok();
    assert_sound(&sandbox);
    // A root that passed itself has no parts whose pass could be derived again.
    let single = RunBuilder::new(RUNNER).agent("echo 1 > work; answer done").start();
    single.runner(&["loop"]).ok();
    let edits: [&[&str]; 4] = [
        &["add", "root", "--title", "One more"],
        &["edit", "root", "--title", "More"],
        &["split", "root", "--into", "x", "--into", "y"],
        &["allow", "root"],
    ];
    for edit in edits {
        let refused = single.runner(&[&["node"], edit].concat()).refused(2);
        let is_clear = refused.contains("`root` has passed") && refused.contains("runner run \"GOAL\"");
        assert!(is_clear && !refused.contains("node add"), "{edit:?}: {refused}");
    }
}

#[test]
fn forbidden_edit_is_refused_and_changes_nothing() {
    let sandbox = half_done();
    let tip = sandbox.git(&["rev-parse", "HEAD"]);
    let refused: &[(&[&str], &str, &str)] = &[
        (&["edit", "a", "--title", "A"], "`root/a` has passed", "runner node add PARENT"),
        (&["remove", "a"], "`root/a` has passed", "hint:"),
        (&["remove", "root"], "`root` is the root", "runner node edit"),
        (&["split", "a", "--into", "x", "--into", "y"], "`root/a` has passed", "hint:"),
        (&["split", "root", "--into", "x", "--into", "y"], "`root` already has children", "runner node add"),
        (&["split", "b", "--into", "x"], "split into at least two parts", "--into at least twice"),
        (&["move", "a", "--under", "b"], "`root/a` has passed", "hint:"),
        (
            &["move", "b", "--under", "a"],
            "`root/a` has passed and cannot get new children",
            "runner tree --open",
        ),
        (&["move", "b", "--under", "b"], "`root/b` cannot be moved below itself", "hint:"),
        (&["move", "root", "--under", "b"], "`root` is the root", "hint:"),
        (&["allow", "a"], "`root/a` has passed", "hint:"),
        (&["allow", "root", "1"], "`root` already has children", "hint:"),
        (&["add", "a", "--title", "x"], "cannot get new children", "hint:"),
        (&["add", "root", "--title", " "], "a title is empty", "hint:"),
        (&["add", "root", "--title", "x", "--id", "a"], "a task with the id `a` already exists", "--id ID"),
        (&["add", "root", "--title", "x", "--id", "../x"], "could not edit the plan", "omit --id"),
        (&["add", "root", "--title", "x", "--before", "root"], "`root` is not a child of `root`", "hint:"),
        (
            &["add", "root", "--title", "x", "--max-attempts", "2000000"],
            "the tree would be invalid",
            "max_attempts",
        ),
        (&["edit", "b", "--title", "b"], "the edit changes nothing", "runner show"),
        (&["edit", "zz", "--title", "b"], "there is no task `zz`", "hint:"),
    ];
    for (args, why, hint) in refused {
        let output = sandbox.runner(&[&["node"], *args].concat()).refused(2);
        assert!(output.starts_with("error: could not edit the plan\n"), "{args:?}: {output}");
        assert!(output.contains(why) && output.contains(hint), "{args:?}: {output}");
    }
    sandbox.runner(&["node", "edit", "b"]).refused(2);
    assert_eq!(sandbox.git(&["rev-parse", "HEAD"]), tip);
    assert_sound(&sandbox);
}

#[test]
fn task_with_a_passed_descendant_is_not_removed() {
    let sandbox = half_done();
    sandbox.runner(&["node", "split", "b", "--into", "c", "--into", "d"]).ok();
    sandbox.runner(&["step"]).ok();
    let output = sandbox.runner(&["node", "remove", "b"]).refused(2);
    assert!(output.contains("`root/b` cannot be removed: `root/b/c` below it has passed"), "{output}");
    let output = sandbox.runner(&["node", "remove", "d", "--json"]).ok().stdout;
    let output: serde_json::Value = serde_json::from_str(&output).unwrap();
    assert_eq!(output["notes"][0], "every task has passed: the run is complete", "{output}");
    assert_eq!((&output["node"], &output["edit"]["do"]), (&"root/b/d".into(), &"remove".into()));
    assert_eq!(sandbox.runner(&["loop"]).ok().value("event"), Some("stopped reason=complete exit=0"));
    assert_sound(&sandbox);
}

#[test]
fn stuck_run_names_the_command_that_continues_it() {
    let sandbox = RunBuilder::new(RUNNER).agent("answer retry").keys("max_attempts_default = 1").start();
    let stuck = sandbox.runner(&["loop"]);
    assert_eq!(stuck.code, Some(3));
    assert!(stuck.stdout.contains("next=\"runner node allow root\""), "{}", stuck.stdout);
    assert!(sandbox.runner(&["status"]).ok().stdout.contains("runner node allow root"));
    let output = sandbox.runner(&["node", "edit", "root", "--goal", "Less"]).ok().stdout;
    assert!(output.contains("runner node allow root"), "still stuck, and output so: {output}");
    sandbox.runner(&["node", "allow", "root"]).ok();
    sandbox.replace_agent("answer done");
    sandbox.runner(&["loop"]).ok();
    assert!(sandbox.iteration_file(2, "prompt.md").contains("Less"));
    assert_sound(&sandbox);
}

#[test]
fn split_reads_steps_from_a_file() {
    let sandbox = half_done();
    let file = sandbox.outside().join("steps");
    std::fs::write(&file, "- Read it\n  All of it.\n  - no byte lost\nWrite it\n").unwrap();
    sandbox.runner(&["node", "split", "b", "--from", file.to_str().unwrap()]).ok();
    let node = &sandbox.tree()["root"]["children"][1]["children"][0];
    assert_eq!((&node["id"], &node["goal"]), (&"read-it".into(), &"All of it.".into()));
    assert_eq!(node["acceptance"], serde_json::json!(["no byte lost"]));
    std::fs::write(&file, "  lost\n").unwrap();
    let output = sandbox.runner(&["node", "split", "write-it", "--from", file.to_str().unwrap()]).refused(2);
    assert!(output.contains("line 1 is indented"), "{output}");
}

#[test]
fn edit_is_refused_with_uncommitted_changes() {
    let sandbox = half_done();
    sandbox.write("dirty", "x");
    assert!(sandbox.runner(&["node", "allow", "b"]).refused(2).contains("dirty"));
    std::fs::remove_file(sandbox.path("dirty")).unwrap();
    sandbox.write(".runner/GOAL.md", sandbox.read(".runner/GOAL.md") + "more\n");
    let output = sandbox.runner(&["note", "x"]).refused(2);
    assert!(output.contains("GOAL.md") && output.contains("'runner start'"), "{output}");
    sandbox.git(&["checkout", "-q", "--", "."]);
    sandbox.write("mine", "1");
    sandbox.commit_all("mine");
    sandbox.runner(&["node", "allow", "b"]).ok();
    assert!(sandbox.git(&["log", "-1", "--format=%B"]).contains("Runner-User-Commits: 1"));
    assert_sound(&sandbox);
}

#[test]
fn edit_during_an_iteration_is_refused_with_a_hint() {
    let sandbox = RunBuilder::new(RUNNER)
        .agent("touch $AROUND/begun; while [ ! -e $AROUND/go ]; do sleep 0.01; done; answer done")
        .start();
    let mut child = sandbox.runner_command(&["step"]).stdout(std::process::Stdio::null()).spawn().unwrap();
    wait_for("the session", || sandbox.outside().join("begun").exists());
    let output = sandbox.runner(&["node", "allow", "root"]).refused(1);
    assert!(
        output.contains("another runner is running") && output.contains("'runner pause --wait'"),
        "{output}"
    );
    std::fs::write(sandbox.outside().join("go"), "").unwrap();
    assert!(child.wait().unwrap().success());
    assert_sound(&sandbox);
}

#[test]
fn questions_and_answers_are_listed_and_shown_in_the_next_prompt() {
    let sandbox = half_done();
    let output = sandbox.runner(&["questions"]).ok().stdout;
    assert_eq!(output, "question=1 text=\"Which port?\"\nquestion=2 text=\"Tabs or spaces?\"\n");
    sandbox.runner(&["answer", "2", "Tabs.\nAlways."]).ok();
    sandbox.runner(&["note", "The server is off at night"]).ok();
    let subjects = sandbox.subjects("HEAD");
    assert_eq!(subjects[..2], ["chore(loop): run demo edit note", "chore(loop): run demo edit answer 2"]);
    let output: serde_json::Value =
        serde_json::from_str(&sandbox.runner(&["questions", "--json"]).ok().stdout).unwrap();
    assert_eq!(output["questions"][1]["answers"], serde_json::json!(["Tabs.\nAlways."]));
    let open = sandbox.runner(&["questions", "--open"]).ok().stdout;
    assert_eq!(open.lines().count(), 1, "{open}");
    sandbox.runner(&["step"]).ok();
    let prompt = sandbox.iteration_file(3, "prompt.md");
    for text in [
        "Question 2: Tabs or spaces?\nAnswer from the user: Tabs.\nAlways.",
        "Note from the user: The server is off",
    ] {
        assert!(prompt.contains(text), "{text}: {prompt}");
    }
    let output = sandbox.runner(&["answer", "3", "x"]).refused(2);
    assert!(output.contains("no such question: 3") && output.contains("'runner questions'"), "{output}");
    assert!(sandbox.runner(&["note", " "]).refused(2).contains("the text is empty"));
    assert_sound(&sandbox);
}

#[test]
fn questions_of_a_run_are_listed_from_another_branch() {
    let sandbox = half_done();
    sandbox.runner(&["answer", "2", "Tabs."]).ok();
    let here = sandbox.runner(&["questions"]).ok().stdout;
    sandbox.git(&["switch", "-q", "main"]);
    assert_eq!(sandbox.runner(&["questions"]).ok().stdout, here);
    let status = sandbox.runner(&["status"]).ok();
    assert!(status.stdout.contains("1 open question: runner questions --open"), "{}", status.stdout);
}

#[test]
fn next_command_finishes_an_edit_killed_at_any_point() {
    for point in POINTS {
        let sandbox = half_done();
        let ran = run(sandbox.runner_command(&["node", "allow", "b"]).env("RUNNER_TEST_CRASH_AT", point));
        assert_eq!(ran.code, None, "{point} was not reached");
        sandbox.runner(&["note", "go on"]).ok();
        let edits = sandbox.subjects("HEAD").iter().filter(|subject| subject.contains(" edit ")).count();
        assert_eq!(edits, if point == "edit.commit" { 1 } else { 2 }, "{point}");
        assert_sound(&sandbox);
    }
}
