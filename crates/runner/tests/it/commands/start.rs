//! `runner init` and `runner start`: identity, branches, commits and refusals.

use testkit::test_repo::TestRepo;

use crate::GOAL;
use crate::RUNNER;
use crate::ready;
use crate::started;

fn short_head(sandbox: &TestRepo) -> String {
    sandbox.git(&["rev-parse", "--short=8", "HEAD"])
}

#[test]
fn run_starts_resumes_and_restarts_by_the_contract() {
    let sandbox = ready();
    let first = format!("run-{}", short_head(&sandbox));

    let started = sandbox.runner(&["start"]).ok();
    assert_eq!(started.value("run_id"), Some(first.as_str()));
    assert_eq!(started.value("branch"), Some(format!("runner/{first}").as_str()));
    assert_eq!(sandbox.git(&["branch", "--show-current"]), format!("runner/{first}"));
    assert_eq!(sandbox.subjects("HEAD"), [format!("chore(loop): start run {first}"), "root".to_owned()]);
    assert_eq!(sandbox.read(".runner/GOAL.md"), format!("---\nid: {first}\n---\n\n{GOAL}"));
    assert_eq!(sandbox.git(&["status", "--porcelain", "-uall"]), "");

    let before = sandbox.branches();
    let again = sandbox.runner(&["start"]).ok();
    assert_eq!(again.value("kind"), Some("resumed"));
    assert_eq!(sandbox.branches(), before, "no empty commit");

    // main has no goal: `start` begins a new run from main's commit.
    sandbox.git(&["checkout", "-q", "main"]);
    let second = sandbox.runner(&["start"]).ok();
    assert_eq!(second.value("run_id"), Some(format!("{first}-2").as_str()));
    assert_eq!(second.value("goal_written"), Some("false"));

    // A goal without an id begins another run from the current commit.
    let third = format!("run-{}", short_head(&sandbox));
    let goal = sandbox.read(".runner/GOAL.md");
    sandbox.write(".runner/GOAL.md", goal.replace(&format!("id: {first}-2\n"), ""));
    assert_eq!(sandbox.runner(&["start"]).ok().value("run_id"), Some(third.as_str()));
    assert_eq!(sandbox.read(".runner/GOAL.md"), goal.replace(&format!("{first}-2"), &third));
    for branch in before {
        assert!(sandbox.branches().contains(&branch), "{branch} was touched");
    }
}

#[test]
fn goal_on_main_resumes_its_run() {
    let sandbox = ready();
    sandbox.write(".runner/GOAL.md", format!("---\nid: mine\n---\n{GOAL}"));
    sandbox.commit_all("set up on main");
    sandbox.runner(&["start"]).ok();
    // The run and main diverge.
    sandbox.write("work.txt", "by the run\n");
    sandbox.write("README.md", "changed by the run\n");
    sandbox.commit_all("run's work");
    let tip = sandbox.git(&["rev-parse", "HEAD"]);
    sandbox.git(&["checkout", "-q", "main"]);
    sandbox.write("other.txt", "by a person\n");
    sandbox.commit_all("main's work");

    let resumed = sandbox.runner(&["start"]).ok();
    assert_eq!(resumed.value("kind"), Some("updated"), "the commit by hand is taken in");
    assert_eq!(sandbox.git(&["rev-parse", "HEAD^"]), tip);
    assert_eq!(sandbox.git(&["branch", "--show-current"]), "runner/mine");
    assert_eq!(sandbox.git(&["status", "--porcelain", "-uall"]), "");
    assert_eq!(sandbox.read("README.md"), "changed by the run\n");
    assert!(sandbox.path("work.txt").exists() && !sandbox.path("other.txt").exists());
}

#[test]
fn another_id_in_the_goal_switches_to_that_run_and_keeps_its_goal() {
    let sandbox = ready();
    sandbox.write(".runner/GOAL.md", "---\nid: one\n---\n# One\n");
    sandbox.runner(&["start"]).ok();
    sandbox.write(".runner/GOAL.md", "---\nid: two\n---\n# Two\n");
    sandbox.runner(&["start"]).ok();
    let tips = sandbox.branches();
    // Only the id changes: the goal text belongs to the run that is left.
    sandbox.write(".runner/GOAL.md", "---\nid: one\n---\n# Two\n");
    assert_eq!(sandbox.runner(&["start"]).ok().value("kind"), Some("resumed"));
    assert_eq!(
        (sandbox.read(".runner/GOAL.md").as_str(), sandbox.branches()),
        ("---\nid: one\n---\n# One\n", tips)
    );
    // A changed goal text moves to the other run.
    sandbox.write(".runner/GOAL.md", "---\nid: two\n---\n# Two and more\n");
    assert_eq!(sandbox.runner(&["start"]).ok().value("kind"), Some("updated"));
    assert_eq!(sandbox.git(&["show", "runner/two:.runner/GOAL.md"]), "---\nid: two\n---\n# Two and more");
    assert!(sandbox.runner(&["select"]).ok().stdout.contains("title=\"Two and more\""));
}

#[test]
fn start_commits_the_users_changes_under_runner() {
    let sandbox = started();
    let config = sandbox.read(".runner/state/config.toml").replace("= 200", "= 50");
    sandbox.write(".runner/state/config.toml", &config);
    sandbox.write(".runner/nodes/root/context.md", "read this first\n");
    sandbox.write(".runner/prompts/contract.md", "mine\n");
    let updated = sandbox.runner(&["start"]).ok();
    assert_eq!(updated.value("kind"), Some("updated"));
    assert_eq!(sandbox.git(&["status", "--porcelain", "-uall"]), "");
    assert_eq!(sandbox.git(&["show", "HEAD:.runner/nodes/root/context.md"]), "read this first");
    assert_eq!(sandbox.git(&["show", "HEAD:.runner/state/config.toml"]), config.trim_end());

    std::fs::remove_file(sandbox.path(".runner/prompts/contract.md")).unwrap();
    sandbox.runner(&["start"]).ok();
    assert_ne!(sandbox.try_git(&["cat-file", "-e", "HEAD:.runner/prompts/contract.md"]).code, Some(0));
}

#[test]
fn logs_and_context_are_never_committed() {
    let sandbox = started();
    sandbox.write(".runner/iterations/x/0001/guard.log", "log\n");
    sandbox.write(".runner/context/goal.md", "context\n");
    assert_eq!(sandbox.runner(&["start"]).ok().value("kind"), Some("resumed"));
    // On a branch without the .gitignore they are untracked files; `start` does not touch them.
    sandbox.git(&["checkout", "-q", "main"]);
    assert!(sandbox.path(".runner/iterations/x/0001/guard.log").exists());
    sandbox.runner(&["start"]).ok();
    let committed = sandbox.git(&["ls-tree", "-r", "--name-only", "HEAD"]);
    assert!(!committed.contains("iterations") && !committed.contains("context"), "{committed}");
    assert_eq!(sandbox.read(".runner/iterations/x/0001/guard.log"), "log\n");
}

#[test]
fn new_run_gets_a_new_tree_or_keeps_the_open_tasks() {
    let sandbox = started();
    let tree = sandbox.read(".runner/state/tree.json");
    assert!(tree.contains("\"title\": \"Port it\"") && tree.contains("\"it runs\""), "{tree}");
    let child = r#"{"id": "ID", "order": 1, "title": "t", "goal": "g", "acceptance": [], "passes": PASSES,
        "attempts": 2, "max_attempts": 3, "children": []}"#;
    let children = format!(
        "[{}, {}]",
        child.replace("ID", "a").replace("PASSES", "true"),
        child.replace("ID", "b").replace("PASSES", "false")
    );
    sandbox.write(
        ".runner/state/tree.json",
        tree.replace("\"children\": []", &format!("\"children\": {children}")),
    );
    sandbox.commit_all("as if two iterations had been");

    let goal = sandbox.read(".runner/GOAL.md");
    let without_id: String =
        goal.lines().filter(|line| !line.starts_with("id:")).map(|line| format!("{line}\n")).collect();
    sandbox.write(".runner/GOAL.md", &without_id);
    sandbox.runner(&["start", "--keep-plan"]).ok();
    let kept = sandbox.runner(&["tree"]).ok().stdout;
    assert_eq!(
        kept,
        "level=1 id=root state=open attempts=0/3 leaves=0/1 title=\"Port it\"\n\
         level=2 id=b state=next attempts=0/3 leaves=0/1 title=t\n"
    );

    sandbox.write(".runner/GOAL.md", without_id);
    sandbox.runner(&["start"]).ok();
    let fresh = sandbox.runner(&["tree"]).ok().stdout;
    assert_eq!(fresh, "level=1 id=root state=next attempts=0/3 leaves=0/1 title=\"Port it\"\n");
}

#[test]
fn goal_written_after_the_first_start_becomes_the_root() {
    let sandbox = TestRepo::with_commit(RUNNER);
    assert_eq!(sandbox.runner(&["start"]).ok().value("goal_written"), Some("false"));
    let goal = sandbox.read(".runner/GOAL.md").replace("# Goal", "# Fly to the moon");
    sandbox.write(".runner/GOAL.md", goal);
    let updated = sandbox.runner(&["start"]).ok();
    assert_eq!((updated.value("kind"), updated.value("goal_written")), (Some("updated"), Some("true")));
    assert!(sandbox.runner(&["select"]).ok().stdout.contains("Fly to the moon"));
}

#[test]
fn goal_can_be_passed_as_an_argument() {
    let sandbox = TestRepo::with_commit(RUNNER);
    sandbox.runner(&["start", "--goal", "Make it fast"]).ok();
    assert!(sandbox.read(".runner/GOAL.md").ends_with("---\n\nMake it fast\n"));
    sandbox.runner(&["start", "--goal", "Make it fast"]).ok();
    // The root is still the whole plan.
    sandbox.runner(&["start", "--goal", "Make it faster"]).ok();
    assert!(sandbox.runner(&["select"]).ok().stdout.contains("title=\"Make it faster\""));
    sandbox.runner(&["node", "add", "root", "--title", "Part"]).ok();
    let refused = sandbox.runner(&["start", "--goal", "Make it slow"]).refused(2);
    assert!(refused.contains("GOAL.md already has a goal") && refused.contains("hint:"), "{refused}");
    assert!(sandbox.runner(&["start", "--goal", " "]).refused(2).contains("empty"));

    let other = TestRepo::with_commit(RUNNER);
    let file = other.outside().join("plan.md");
    std::fs::write(&file, "# Plan\n\nBuild it.\n").unwrap();
    other.runner(&["start", "--goal-file", file.to_str().unwrap()]).ok();
    assert!(other.runner(&["select"]).ok().stdout.contains("title=Plan"));
    assert!(other.runner(&["start", "--goal-file", "nowhere"]).refused(2).contains("nowhere"));
}

#[test]
fn repository_without_a_commit_gets_a_hint() {
    let sandbox = TestRepo::empty(RUNNER);
    sandbox.git(&["init", "-q", "-b", "main"]);
    sandbox.runner(&["init"]).ok();
    let refused = sandbox.runner(&["start"]).refused(2);
    assert!(refused.contains("no commit yet") && refused.contains("git commit --allow-empty"), "{refused}");
    assert_eq!(sandbox.runner(&["status"]).ok().value("state"), Some("no_run"));
    sandbox.git(&["commit", "-q", "--allow-empty", "-m", "root"]);
    sandbox.runner(&["start"]).ok();
}

#[test]
fn run_starts_from_a_detached_head() {
    let sandbox = ready();
    sandbox.git(&["checkout", "-q", "--detach"]);
    sandbox.runner(&["start"]).ok();
    assert!(sandbox.git(&["branch", "--show-current"]).starts_with("runner/run-"));
}

#[test]
fn git_operation_in_progress_is_refused_and_not_touched() {
    let sandbox = ready();
    sandbox.git(&["checkout", "-q", "-b", "side"]);
    sandbox.write("README.md", "side\n");
    sandbox.git(&["commit", "-q", "-am", "side"]);
    sandbox.git(&["checkout", "-q", "main"]);
    sandbox.write("README.md", "main\n");
    sandbox.git(&["commit", "-q", "-am", "main"]);
    for (begin, word, abort) in [
        (&["merge", "side"][..], "merge", "git merge --abort"),
        (&["rebase", "side"], "rebase", "git rebase --abort"),
        (&["cherry-pick", "side"], "cherry-pick", "git cherry-pick --abort"),
        (&["revert", "--no-edit", "side"], "revert", "git revert --abort"),
    ] {
        sandbox.try_git(begin);
        let before = (sandbox.branches(), sandbox.git(&["status", "--porcelain"]));
        let refused = sandbox.runner(&["start"]).refused(2);
        assert!(
            refused.contains(&format!("a {word} is in progress")) && refused.contains(abort),
            "{refused}"
        );
        assert_eq!(before, (sandbox.branches(), sandbox.git(&["status", "--porcelain"])));
        let words: Vec<&str> = abort.split(' ').skip(1).collect();
        sandbox.git(&words);
    }
    sandbox.git(&["bisect", "start"]);
    assert!(sandbox.runner(&["start"]).refused(2).contains("git bisect reset"));
}

#[test]
fn dirty_work_tree_is_refused_with_its_paths() {
    let sandbox = ready();
    sandbox.write("README.md", "edited\n");
    for n in 0..12 {
        sandbox.write(&format!("new-{n:02}.txt"), "x");
    }
    let refused = sandbox.runner(&["start"]).refused(2);
    assert!(refused.contains("  README.md\n  new-00.txt\n"), "{refused}");
    assert!(refused.contains("and 3 more") && refused.contains("git stash -u"), "{refused}");
    assert_eq!(sandbox.branches().len(), 1);
    assert_eq!(sandbox.read(".runner/GOAL.md"), GOAL, "nothing was changed");
}

#[test]
fn branch_called_runner_is_refused() {
    let sandbox = ready();
    sandbox.git(&["branch", "runner"]);
    let refused = sandbox.runner(&["start"]).refused(2);
    assert!(refused.contains("git branch -m runner"), "{refused}");
    assert_eq!(sandbox.read(".runner/GOAL.md"), GOAL);
    sandbox.git(&["branch", "-m", "runner", "old-runner"]);
    sandbox.runner(&["start"]).ok();
}

#[test]
fn branch_checked_out_elsewhere_is_refused_with_its_path() {
    let sandbox = started();
    let branch = sandbox.git(&["branch", "--show-current"]);
    let goal = sandbox.read(".runner/GOAL.md");
    sandbox.git(&["checkout", "-q", "main"]);
    let elsewhere = sandbox.outside().join("elsewhere");
    sandbox.git(&["worktree", "add", "-q", elsewhere.to_str().unwrap(), &branch]);
    sandbox.write(".runner/GOAL.md", &goal);
    let refused = sandbox.runner(&["start"]).refused(2);
    assert!(refused.contains(&format!("branch `{branch}` is checked out")), "{refused}");
    assert!(refused.contains(elsewhere.to_str().unwrap()), "{refused}");
    assert_eq!(sandbox.git(&["branch", "--show-current"]), "main");
    sandbox.at(elsewhere).runner(&["start"]).ok();
}

#[test]
fn commits_have_the_runner_as_author_without_a_git_identity() {
    let sandbox = started();
    assert_eq!(sandbox.git(&["log", "-1", "--format=%an <%ae> %cn"]), "runner <runner@localhost> runner");
    std::fs::write(sandbox.outside().join("home/.gitconfig"), "[user]\nname = Ann\nemail = ann@x\n").unwrap();
    sandbox.write(".runner/nodes/root/context.md", "x\n");
    sandbox.runner(&["start"]).ok();
    assert_eq!(sandbox.git(&["log", "-1", "--format=%an <%ae>"]), "Ann <ann@x>");
}

#[test]
fn invalid_goal_id_or_configuration_changes_nothing() {
    let sandbox = ready();
    for (file, text, word) in [
        (".runner/GOAL.md", "---\nid: a b\n---\nx\n", "line 2: `id` \"a b\" contains ' '"),
        (".runner/GOAL.md", "---\nid: a.lock\n---\nx\n", "ends with `.lock`"),
        (".runner/GOAL.md", "---\nid: x\n", "close it with a line `---`"),
        (".runner/state/config.toml", "max_iteration = 3\n", "did you mean `max_iterations`?"),
        (".runner/state/tree.json", "{\"version\": 1}\n", "`root` is missing"),
    ] {
        let kept = sandbox.read_bytes(file);
        sandbox.write(file, text);
        let refused = sandbox.runner(&["start"]).refused(2);
        assert!(refused.contains(word) && refused.contains("hint:"), "{refused}");
        assert_eq!((sandbox.read(file).as_str(), sandbox.branches().len()), (text, 1));
        sandbox.write(file, kept);
    }
    sandbox.runner(&["start"]).ok();
}

#[test]
fn start_commits_tree_edits_except_runner_owned_fields() {
    let sandbox = started();
    let tree = sandbox.read(".runner/state/tree.json");
    sandbox.write(".runner/state/tree.json", tree.replace("\"max_attempts\": 3", "\"max_attempts\": 9"));
    assert_eq!(sandbox.runner(&["start"]).ok().value("kind"), Some("updated"));
    let tree = sandbox.read(".runner/state/tree.json");
    for (from, to, word) in [
        ("\"passes\": false", "\"passes\": true", "only the runner can set `passes`"),
        ("\"attempts\": 0", "\"attempts\": 1", "only the runner can set `attempts`"),
    ] {
        sandbox.write(".runner/state/tree.json", tree.replace(from, to));
        let refused = sandbox.runner(&["start"]).refused(2);
        assert!(refused.contains(word), "{refused}");
        sandbox.write(".runner/state/tree.json", &tree);
    }
    // Users cannot change run_state.json: the branch's version counts.
    let state = sandbox.read(".runner/state/run_state.json");
    sandbox.write(".runner/state/run_state.json", state.replace("\"next_iter\": 1", "\"next_iter\": 7"));
    sandbox.runner(&["start"]).ok();
    assert_eq!(sandbox.read(".runner/state/run_state.json"), state);
}

#[test]
fn switch_that_would_lose_changes_is_refused() {
    let sandbox = ready();
    sandbox.write(".runner/GOAL.md", format!("---\nid: mine\n---\n{GOAL}"));
    sandbox.commit_all("set up on main");
    sandbox.runner(&["start"]).ok();
    sandbox.write(".runner/state/questions.md", "asked by the run\n");
    sandbox.commit_all("run's work");
    sandbox.git(&["checkout", "-q", "main"]);
    sandbox.write(".runner/state/questions.md", "asked on main\n");
    let refused = sandbox.runner(&["start"]).refused(2);
    assert!(refused.contains(".runner/state/questions.md") && refused.contains("overwritten"), "{refused}");
    assert_eq!(sandbox.read(".runner/state/questions.md"), "asked on main\n");
    assert_eq!(sandbox.git(&["branch", "--show-current"]), "main");

    // An ignored file at the path of a tracked one is not overwritten either.
    sandbox.git(&["checkout", "-q", "--", ".runner"]);
    sandbox.git(&["checkout", "-q", "runner/mine"]);
    sandbox.write("build/out", "tracked in the run\n");
    sandbox.commit_all("tracks build/out");
    sandbox.git(&["checkout", "-q", "main"]);
    std::fs::write(sandbox.path(".git/info/exclude"), "build/\n").unwrap();
    sandbox.write("build/out", "precious\n");
    let refused = sandbox.runner(&["start"]).refused(2);
    assert!(refused.contains("build/out"), "{refused}");
    assert_eq!((sandbox.read("build/out").as_str(), sandbox.branches().len()), ("precious\n", 2));
}

#[test]
fn init_creates_missing_files_and_keeps_existing_ones() {
    let sandbox = TestRepo::with_commit(RUNNER);
    sandbox.write(".runner/GOAL.md", GOAL);
    let first = sandbox.runner(&["init"]).ok().stdout;
    assert!(
        first.contains("file=.runner/GOAL.md action=kept") && first.contains("tree.json action=created"),
        "{first}"
    );
    let again = sandbox.runner(&["init"]).ok().stdout;
    assert!(again.lines().filter(|line| line.starts_with("file=")).all(|line| line.ends_with("action=kept")));

    let forced = sandbox.runner(&["init", "--force"]).ok().stdout;
    assert!(forced.contains("file=.runner/GOAL.md action=replaced"), "{forced}");
    assert_eq!(sandbox.read(".runner/GOAL.md.bak"), GOAL);
    assert_ne!(sandbox.read(".runner/GOAL.md"), GOAL);

    sandbox.runner(&["start"]).ok();
    let refused = sandbox.runner(&["init", "--force"]).refused(2);
    assert!(refused.contains("is not finished"), "{refused}");
}

#[test]
fn concurrent_starts_do_not_interfere() {
    let sandbox = ready();
    let lock = sandbox.path(".git/runner/lock");
    std::fs::create_dir_all(lock.parent().unwrap()).unwrap();
    let held = std::fs::File::create(&lock).unwrap();
    held.lock().unwrap();
    std::fs::write(&lock, "pid 12345\n").unwrap();
    for command in ["start", "init"] {
        let refused = sandbox.runner(&[command]).refused(1);
        assert!(refused.contains("another runner is running") && refused.contains("pid 12345"), "{refused}");
    }
    assert_eq!(sandbox.runner(&["status"]).ok().value("state"), Some("running"), "looking needs no lock");
    drop(held);
    sandbox.runner(&["start"]).ok();
}
