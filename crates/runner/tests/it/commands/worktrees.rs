//! Runs in linked work trees: the user's checkout stays free, and every command finds the run from there.

use std::process::Stdio;

use testkit::processes::wait_for;
use testkit::test_repo::TestRepo;

use crate::RUNNER;
use crate::fixtures::json;

/// A repository with a makefile, on `main`, and the path of an agent that makes one file.
fn repository() -> (TestRepo, String) {
    let sandbox = TestRepo::empty(RUNNER);
    sandbox.git(&["init", "-q", "-b", "main"]);
    sandbox.write("Makefile", "test:\n\ttrue\n");
    sandbox.commit_all("root");
    let agent = sandbox.outside().join("agent.sh");
    let script =
        "echo 1 > made; printf '{\"status\": \"done\", \"summary\": \"did it\"}' > \"$RUNNER_OUTPUT\"\n";
    std::fs::write(&agent, script).unwrap();
    let agent = format!("sh {}", agent.display());
    (sandbox, agent)
}

#[test]
fn commands_find_the_run_of_a_linked_work_tree() {
    let (sandbox, agent) = repository();
    sandbox.runner(&["run", "Make it", "--yes", "--worktree", "--agent", &agent]).ok();
    let before = sandbox.branches();
    for args in [
        &["status"][..],
        &["report"],
        &["tree"],
        &["log"],
        &["log", "1"],
        &["show", "1"],
        &["diff", "1"],
        &["checks"],
        &["questions"],
        &["verify"],
        &["validate"],
        &["doctor"],
        &["replay"],
        &["config", "show"],
        &["pause"],
        &["resume"],
        &["loop"],
        &["report", "make-it"],
        &["log", "--run", "make-it"],
    ] {
        sandbox.runner(args).ok();
    }
    assert_eq!(sandbox.runner(&["status"]).ok().value("state"), Some("complete"));
    assert!(sandbox.runner(&["show", "1"]).ok().stdout.contains("did it"));
    assert_eq!(sandbox.branches(), before);
    assert!(!sandbox.path(".runner").exists(), "the checkout stays free");
    sandbox.runner(&["note", "Use the copy in testdata/"]).ok();
    assert!(sandbox.outside().join("work-make-it/.runner/state/notes.json").exists());
    assert_eq!(sandbox.runner(&["land"]).ok().value("branch"), Some("land/make-it"));
    // From the work tree itself, and from a folder below it.
    let linked = sandbox.outside().join("work-make-it");
    let folder = linked.join("below");
    std::fs::create_dir(&folder).unwrap();
    assert_eq!(
        sandbox.runner(&["-C", folder.to_str().unwrap(), "status"]).ok().value("state"),
        Some("complete")
    );
}

#[test]
fn several_linked_runs_are_told_apart_by_name() {
    let (sandbox, agent) = repository();
    for goal in ["One", "Two"] {
        sandbox.runner(&["run", goal, "--yes", "--worktree", "--agent", &agent]).ok();
    }
    assert!(sandbox.runner(&["report", "one"]).ok().stdout.contains("goal=One"));
    assert!(sandbox.runner(&["report", "two"]).ok().stdout.contains("goal=Two"));
    let refused = sandbox.runner(&["report"]).refused(2);
    assert!(refused.contains("2 runs") && refused.contains("one"), "{refused}");
    let runs = json(&sandbox.runner(&["runs", "--json"]).ok());
    let worktree = runs.pointer("/runs/0/worktree").unwrap().as_str().unwrap();
    assert!(worktree.ends_with("work-two") || worktree.ends_with("work-one"), "{worktree}");
}

/// The session of run `one` waits for a file in its work tree.
#[test]
fn of_several_linked_runs_the_one_with_a_runner_is_meant() {
    let (sandbox, agent) = repository();
    let script = "case $PWD in *-one) while [ ! -e go ]; do sleep 0.05; done; rm go;; esac\n";
    let file = sandbox.outside().join("agent.sh");
    let works = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, format!("{script}{works}")).unwrap();
    let run = |goal: &'static str| ["run", goal, "--yes", "--worktree", "--agent", agent.as_str()];
    let mut child = sandbox.runner_command(&run("One")).stdout(Stdio::null()).spawn().unwrap();
    wait_for("the session", || sandbox.runner(&["runs", "--json"]).stdout.contains("the agent is working"));
    sandbox.runner(&run("Two")).ok();
    let status = sandbox.runner(&["status"]).ok();
    assert_eq!((status.value("run_id"), status.value("state")), (Some("one"), Some("running")));
    assert!(sandbox.runner(&["note", "Use the copy"]).ok().stdout.contains("queued=true"));
    std::fs::write(sandbox.outside().join("work-one/go"), "").unwrap();
    assert!(child.wait().unwrap().success());

    // Without a runner, a command that changes a run asks for its work tree, and one that shows a run shows the newest.
    let newest = json(&sandbox.runner(&["runs", "--json"]).ok());
    let at = |key: &str| newest.pointer(&format!("/runs/0/{key}")).unwrap().as_str().unwrap().to_owned();
    for args in [&["loop"][..], &["note", "Use the copy"]] {
        let refused = sandbox.runner(args).refused(2);
        assert!(refused.contains(&format!("runner -C {} loop", at("worktree"))), "{refused}");
        assert!(!refused.contains("runner switch"), "{refused}");
    }
    let status = sandbox.runner(&["status"]).ok();
    assert_eq!(status.value("run_id"), Some(at("run_id").as_str()));
    // What it advises is not refused.
    let there = format!("\"runner -C {} ", at("worktree"));
    assert!(status.value("next").is_some_and(|next| next.starts_with(&there)), "{}", status.stdout);
    sandbox.runner(&["questions"]).ok();
}

#[test]
fn start_can_put_a_run_into_a_linked_work_tree() {
    let (sandbox, _) = repository();
    sandbox.runner(&["init"]).ok();
    sandbox.write(".runner/GOAL.md", "---\nid: mine\n---\n\n# Make it\n");
    let started = sandbox.runner(&["start", "--worktree"]).ok();
    let linked = sandbox.outside().canonicalize().unwrap().join("work-mine");
    assert_eq!(started.value("worktree"), Some(linked.to_str().unwrap()));
    assert_eq!(sandbox.git(&["branch", "--show-current"]), "main");
    assert_eq!(sandbox.read(".runner/GOAL.md"), "---\nid: mine\n---\n\n# Make it\n", "it stays here too");
    assert!(std::fs::read_to_string(linked.join(".runner/GOAL.md")).unwrap().contains("# Make it"));
    assert_eq!(sandbox.runner(&["status"]).ok().value("run_id"), Some("mine"));
    let refused = sandbox.runner(&["start", "--worktree", "../elsewhere"]).refused(2);
    assert!(refused.contains("checked out in another work tree"), "{refused}");
    assert!(!sandbox.outside().join("elsewhere").exists());
    let refused = sandbox.runner(&["start", "--worktree", "../work-mine", "--goal", "x"]).refused(2);
    assert!(refused.contains("hint: "), "{refused}");
}
