//! `runner land`: what it makes, and that every refusal leaves everything as it was.

use testkit::run_builder::{RUN, RunBuilder};
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;
use crate::fixtures::{json, on_terminal, ready};

/// A complete run with two tasks, the second of which needed two attempts.
fn two_tasks() -> TestRepo {
    two_tasks_of(&RunBuilder::new(RUNNER))
}

fn two_tasks_of(builder: &RunBuilder) -> TestRepo {
    let agent = r#"case "$RUNNER_ITER" in
        0001) split ;;
        0002) echo a > a.txt; answer done "made a" ;;
        0003) echo bad > b.txt; answer retry "not yet" ;;
        *) echo b > b.txt; answer done "made b" ;;
    esac"#;
    let sandbox = builder.clone().agent(agent).start();
    sandbox.runner(&["loop"]).ok();
    sandbox
}

/// The same with a final check, which also runs on the user's own last commits.
fn two_checked_tasks() -> TestRepo {
    two_tasks_of(&RunBuilder::new(RUNNER).guard_keys("final_check = true"))
}

fn references(sandbox: &TestRepo) -> String {
    sandbox.git(&["for-each-ref", "--format=%(refname) %(objectname)"])
}

fn assert_refused(sandbox: &TestRepo, args: &[&str], text: &str) {
    let before = references(sandbox);
    let refused = sandbox.runner(&[&["land"], args].concat()).refused(2);
    assert!(refused.contains(text) && refused.contains("hint: "), "{text}: {refused}");
    assert_eq!(references(sandbox), before);
    assert_eq!(sandbox.git(&["worktree", "list"]).lines().count(), 1);
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
}

#[test]
fn every_passed_task_becomes_one_commit_without_the_runners_files() {
    let sandbox = two_tasks();
    let tip = sandbox.git(&["rev-parse", "runner/demo"]);
    let landed = sandbox.runner(&["land"]).ok();
    assert_eq!(landed.value("branch"), Some("land/demo"));
    assert_eq!(sandbox.subjects("main..land/demo"), ["b", "a"]);
    let body = sandbox.git(&["log", "-1", "--format=%b", "land/demo"]);
    assert!(
        body.contains(&format!("made b\n\nRunner-Run: {RUN}\nRunner-Iteration: 4\nRunner-Commit: {tip}")),
        "{body}"
    );
    assert_eq!(sandbox.git(&["diff", "--name-only", "main", "land/demo"]), "a.txt\nb.txt");
    assert_eq!(
        sandbox.git(&["show", "land/demo:b.txt"]),
        "b",
        "the failed attempt is not a commit of its own"
    );
    assert_eq!(sandbox.git(&["rev-parse", "runner/demo"]), tip, "the proof stays");
    assert_refused(&sandbox, &[], "run `demo` is already landed on branch `land/demo`");
    sandbox.runner(&["land", "--branch", "other", "--squash"]).ok();
    assert_eq!(sandbox.subjects("main..other"), ["Port it"]);
    assert_eq!(sandbox.git(&["rev-parse", "other^{tree}"]), sandbox.git(&["rev-parse", "land/demo^{tree}"]));
}

#[test]
fn base_branch_that_moved_is_rebased_onto() {
    let sandbox = two_tasks();
    sandbox.git(&["switch", "-q", "main"]);
    sandbox.write("theirs.txt", "theirs\n");
    sandbox.commit_all("their work");
    let landed = json(&sandbox.runner(&["land", "demo", "--json"]).ok());
    assert_eq!((landed["onto"].as_str(), landed["newer_commits"].as_u64()), (Some("main"), Some(1)));
    assert_eq!(sandbox.subjects("land/demo")[..3], ["b", "a", "their work"]);
    assert_eq!(sandbox.git(&["diff", "--name-only", "main", "land/demo"]), "a.txt\nb.txt");
    let author = sandbox.git(&["log", "-1", "--format=%an <%ae>", "land/demo"]);
    assert_eq!(author, sandbox.git(&["log", "-1", "--format=%an <%ae>", "runner/demo"]));
    assert_refused(&sandbox, &["demo", "--into", "main"], "branch `main` is checked out");
    sandbox.git(&["switch", "-q", "runner/demo"]);
    sandbox.runner(&["land", "--into", "main"]).ok();
    assert_eq!(sandbox.subjects("main")[..3], ["b", "a", "their work"]);
    assert_refused(&sandbox, &["--branch", "again"], "run `demo` is already landed on branch `main`");
}

#[test]
fn run_lands_on_the_branch_that_it_was_started_from() {
    let sandbox = ready();
    sandbox.git(&["switch", "-q", "-c", "feature"]);
    sandbox.write(
        "agent.sh",
        "echo a > a.txt; printf '{\"status\":\"done\",\"summary\":\"s\"}' > \"$RUNNER_OUTPUT\"\n",
    );
    sandbox.write("check.sh", "exit 0\n");
    sandbox.git(&["add", "agent.sh", "check.sh"]);
    sandbox.git(&["commit", "-q", "-m", "add scripts"]);
    sandbox.git(&["branch", "-f", "main", "feature"]);
    sandbox
        .runner(&["config", "set", "executor.kind=command", "executor.command=[\"sh\", \"agent.sh\"]"])
        .ok();
    sandbox.runner(&["config", "set", "guard.command", "sh", "check.sh"]).ok();
    sandbox.runner(&["start"]).ok();
    sandbox.runner(&["loop"]).ok();
    let landed = json(&sandbox.runner(&["land", "--json"]).ok());
    assert_eq!(landed["onto"], "feature");
}

#[test]
fn conflict_leaves_everything_as_it_was() {
    let sandbox = two_tasks();
    sandbox.git(&["switch", "-q", "main"]);
    sandbox.write("a.txt", "theirs\n");
    sandbox.commit_all("their a");
    assert_refused(&sandbox, &["demo"], "branch `main` changed the same lines as the run");
    let refused = sandbox.runner(&["land", "demo"]).stderr;
    assert!(refused.contains("  a.txt\n"), "{refused}");
    assert!(refused.contains("git switch runner/demo && git merge main"), "{refused}");
}

#[test]
fn conflict_that_was_resolved_on_the_runs_branch_is_landed() {
    let sandbox = two_checked_tasks();
    sandbox.git(&["switch", "-q", "main"]);
    sandbox.write("a.txt", "theirs\n");
    sandbox.commit_all("their a");
    sandbox.git(&["switch", "-q", "runner/demo"]);
    assert_eq!(sandbox.try_git(&["merge", "-q", "main"]).code, Some(1), "a conflict");
    sandbox.write("a.txt", "both\n");
    sandbox.git(&["add", "a.txt"]);
    sandbox.git(&["commit", "-q", "-m", "Merge main"]);
    assert_refused(&sandbox, &[], "the guard has not run on your own commits");
    sandbox.runner(&["loop"]).ok();
    sandbox.runner(&["land"]).ok();
    assert_eq!(sandbox.subjects("main..land/demo"), ["Port it"]);
    assert_eq!(sandbox.git(&["show", "land/demo:a.txt"]), "both");
    assert_eq!(sandbox.git(&["diff", "--name-only", "main", "land/demo"]), "a.txt\nb.txt");
}

#[test]
fn squash_has_the_users_own_last_commits() {
    let sandbox = two_checked_tasks();
    sandbox.write("mine.txt", "mine\n");
    sandbox.commit_all("my own file");
    sandbox.runner(&["loop"]).ok();
    sandbox.runner(&["land", "--squash"]).ok();
    assert_eq!(sandbox.git(&["diff", "--name-only", "main", "land/demo"]), "a.txt\nb.txt\nmine.txt");
}

#[test]
fn result_with_a_failing_guard_is_not_landed() {
    let agent = "echo 1 > a.txt; answer done";
    let sandbox = RunBuilder::new(RUNNER).agent(agent).guard("echo looked; test ! -e theirs.txt").start();
    sandbox.runner(&["loop"]).ok();
    sandbox.git(&["switch", "-q", "main"]);
    sandbox.write("theirs.txt", "theirs\n");
    sandbox.commit_all("their work");
    assert_refused(&sandbox, &["demo"], "`sh guard.sh` does not succeed on the result: exit 1");
}

#[test]
fn forged_and_empty_runs_are_not_landed() {
    let sandbox = two_tasks();
    sandbox.git(&[
        "commit",
        "-q",
        "--amend",
        "--allow-empty",
        "-m",
        "chore(loop): run demo iter 0004 node a status=done guard=pass",
    ]);
    assert_refused(&sandbox, &[], "is not verified");
    let open = RunBuilder::new(RUNNER).agent("answer retry").start();
    open.runner(&["loop"]);
    assert_refused(&open, &[], "has no passed task with changes");
    assert_refused(&open, &["--onto", "nowhere"], "there is no branch `nowhere`");
    assert_refused(&open, &["--branch", "a..b"], "is not a valid branch name");
}

#[test]
fn unfinished_run_lands_what_passed() {
    let agent = r#"case "$RUNNER_NODE_ID" in
        root) split ;;
        a) echo a > a.txt; answer done "made a" ;;
        *) echo bad > b.txt; answer retry "not yet" ;;
    esac"#;
    let sandbox = RunBuilder::new(RUNNER).agent(agent).start();
    assert_eq!(sandbox.runner(&["loop"]).code, Some(3));
    let landed = json(&sandbox.runner(&["land", "--json"]).ok());
    assert_eq!(landed["complete"], false);
    assert_eq!(sandbox.git(&["diff", "--name-only", "main", "land/demo"]), "a.txt");
}

#[test]
fn pull_request_text_has_tasks_and_evidence() {
    let sandbox = two_tasks();
    let landed = json(&sandbox.runner(&["land", "--pr", "--json"]).ok());
    let request = &landed["pull_request"];
    assert_eq!(request["title"], "Port it");
    let body = request["body"].as_str().unwrap();
    for text in [
        "- **a**: made a",
        "- **b**: made b",
        "verified, all tasks passed",
        "`sh guard.sh` succeeds",
        "runner verify demo",
    ] {
        assert!(body.contains(text), "{text}: {body}");
    }
}

#[test]
fn screen_fits_80_columns() {
    let sandbox = two_tasks();
    let output = on_terminal(&sandbox, 80, "land");
    assert!(output.stdout.contains("git merge --ff-only land/demo"), "{}", output.stdout);
    assert!(output.stdout.lines().all(|line| line.chars().count() <= 80), "{}", output.stdout);
}

/// Programs that record how they are called; `gh` and `glab` print an address.
fn with_review_program(sandbox: &TestRepo, program: &str) -> String {
    let bin = sandbox.outside().join("bin");
    std::fs::create_dir_all(&bin).unwrap();
    let script = format!(
        "#!/bin/sh\n{{ echo \"$@\"; cat; }} > {}/called\necho Creating...\necho https://host.example/pull/7\n",
        sandbox.outside().display()
    );
    std::fs::write(bin.join(program), script).unwrap();
    run(sandbox.command("chmod").arg("755").arg(bin.join(program))).ok();
    format!("{}:{}", bin.display(), std::env::var("PATH").unwrap())
}

/// A folder with git, a shell and the sandbox, and nothing else, whatever this machine has.
fn with_few_programs(sandbox: &TestRepo) -> std::path::PathBuf {
    let folder = sandbox.outside().join("few-programs");
    std::fs::create_dir(&folder).unwrap();
    for program in ["git", "sh", "bwrap"] {
        let found =
            run(sandbox.command("sh").args(["-c", &format!("command -v {program} || true")])).ok().stdout;
        if !found.trim().is_empty() {
            std::os::unix::fs::symlink(found.trim(), folder.join(program)).unwrap();
        }
    }
    folder
}

/// Adds a remote with this address, to which pushes go into a folder. Returns the folder.
fn with_remote(sandbox: &TestRepo, address: &str) -> String {
    let folder = sandbox.outside().join("remote.git").to_str().unwrap().to_owned();
    run(sandbox.command("git").args(["init", "-q", "--bare", &folder])).ok();
    sandbox.git(&["remote", "add", "origin", address]);
    sandbox.git(&["remote", "set-url", "--push", "origin", &folder]);
    folder
}

#[test]
fn pull_request_is_opened_with_the_program_of_the_server() {
    for (remote, program, call) in [
        (
            "git@github.com:me/gitlab-tools.git",
            "gh",
            "pr create --head land/demo --base main --title Port it --body-file -\n### Tasks",
        ),
        (
            "https://gitlab.com/me/github-tools.git",
            "glab",
            "mr create --yes --source-branch land/demo --target-branch main --title Port it --description ### Tasks",
        ),
    ] {
        let sandbox = two_tasks();
        let folder = with_remote(&sandbox, remote);
        with_review_program(&sandbox, "gh");
        let path = with_review_program(&sandbox, program);
        let landed = run(sandbox.runner_command(&["land", "--open"]).env("PATH", &path)).ok();
        assert_eq!(landed.value("pull_request"), Some("https://host.example/pull/7"), "{}", landed.stdout);
        let called = std::fs::read_to_string(sandbox.outside().join("called")).unwrap();
        assert!(called.starts_with(call), "{called}");
        let pushed = sandbox.git(&["ls-remote", &folder, "refs/heads/land/demo"]);
        assert!(pushed.starts_with(&sandbox.git(&["rev-parse", "land/demo"])), "{pushed}");
    }
}

#[test]
fn pull_request_that_cannot_be_opened_is_refused_before_anything_is_landed() {
    let sandbox = two_tasks();
    assert_refused(&sandbox, &["--open"], "the repository has no remote to push to");
    with_remote(&sandbox, "https://github.com/me/a.git");
    let without = run(sandbox.runner_command(&["land", "--open"]).env("PATH", with_few_programs(&sandbox)));
    assert_eq!(without.code, Some(2), "{}", without.stderr);
    assert!(without.stderr.contains("`gh` is not on PATH"), "{}", without.stderr);
    assert!(!references(&sandbox).contains("land/demo"));
    // A server that refuses: the branch is there, and the rest can be done by hand.
    let path = with_review_program(&sandbox, "gh");
    std::fs::write(sandbox.outside().join("bin/gh"), "#!/bin/sh\necho 'not logged in' >&2; exit 4\n")
        .unwrap();
    let failed = run(sandbox.runner_command(&["land", "--open"]).env("PATH", &path));
    assert_eq!(failed.code, Some(1), "{}", failed.stderr);
    for text in [
        "the branch land/demo is created",
        "not logged in",
        "runner land demo --open",
        "git push origin land/demo && gh pr create --head land/demo --base main --title 'Port it'",
        "runner land demo --pr",
    ] {
        assert!(failed.stderr.contains(text), "{text}: {}", failed.stderr);
    }
}

#[test]
fn pull_request_is_opened_after_landing() {
    let sandbox = two_tasks();
    with_remote(&sandbox, "https://github.com/me/a.git");
    let path = with_review_program(&sandbox, "gh");
    sandbox.runner(&["land"]).ok();
    let tip = sandbox.git(&["rev-parse", "land/demo"]);
    sandbox.git(&["switch", "-q", "main"]);
    sandbox.write("theirs.txt", "theirs\n");
    sandbox.commit_all("their work");
    let text = json(&sandbox.runner(&["land", "demo", "--pr", "--json"]).ok());
    assert_eq!((text["commit"].as_str(), text["newer_commits"].as_u64()), (Some(tip.as_str()), Some(0)));
    assert!(text["pull_request"]["body"].as_str().unwrap().contains("- **b**: made b"), "{text}");
    let opened = run(sandbox.runner_command(&["land", "demo", "--open"]).env("PATH", &path)).ok();
    assert_eq!(opened.value("pull_request"), Some("https://host.example/pull/7"), "{}", opened.stdout);
    assert_eq!(sandbox.git(&["rev-parse", "land/demo"]), tip, "the branch stays as it is");
    assert_refused(&sandbox, &["demo"], "run `demo` is already landed on branch `land/demo`");
    // A branch with something else, and work that is merged.
    sandbox.git(&["branch", "other", "main"]);
    assert_refused(&sandbox, &["demo", "--pr", "--branch", "other"], "branch `other` already exists");
    sandbox.git(&["merge", "-q", "--no-edit", "land/demo"]);
    assert_refused(&sandbox, &["demo", "--pr"], "run `demo` is already landed on branch `main`");
}

#[test]
fn every_branch_with_the_landing_is_named() {
    let sandbox = two_tasks();
    for branch in ["a-copy", "land/demo", "z-copy"] {
        sandbox.runner(&["land", "--branch", branch]).ok();
    }
    for branch in ["a-copy", "land/demo", "z-copy"] {
        let text = format!("run `demo` is already landed on branch `{branch}`");
        assert_refused(&sandbox, &["--branch", branch], &text);
    }
}

#[test]
fn landing_whose_last_task_changed_nothing_is_found() {
    let agent = r#"case "$RUNNER_ITER" in
        0001) split ;;
        0002) echo a > a.txt; answer done "made a" ;;
        *) answer done "b was there" ;;
    esac"#;
    let sandbox = RunBuilder::new(RUNNER).agent(agent).start();
    sandbox.runner(&["loop"]).ok();
    sandbox.runner(&["land"]).ok();
    assert_refused(&sandbox, &[], "run `demo` is already landed on branch `land/demo`");
    sandbox.runner(&["land", "--pr"]).ok();
}

#[test]
fn next_step_after_opening_a_pull_request_is_its_review() {
    let sandbox = two_tasks();
    with_remote(&sandbox, "https://github.com/me/a.git");
    let path = with_review_program(&sandbox, "gh");
    let command = format!("stty cols 80; {RUNNER} land --open");
    let mut script = sandbox.command("script");
    script.args(["-qec", &command, "/dev/null"]).env("TERM", "xterm-256color").env("NO_COLOR", "1");
    let shown = run(script.env("PATH", path)).ok().stdout;
    assert!(shown.contains("Next: review and merge the pull request"), "{shown}");
    assert!(!shown.contains("--ff-only"), "{shown}");
}

#[test]
fn configuration_can_be_landed_so_that_later_runs_start_from_it() {
    let sandbox = two_tasks();
    let shown = on_terminal(&sandbox, 80, "land --branch without").stdout;
    assert!(shown.contains("--with-config"), "{shown}");
    sandbox.runner(&["land", "--with-config"]).ok();
    assert_eq!(sandbox.subjects("main..land/demo"), ["Configure runner", "b", "a"]);
    let config = ".runner/state/config.toml";
    let files = sandbox.git(&["diff", "--name-only", "main", "land/demo"]);
    assert_eq!(files.lines().collect::<Vec<_>>(), [config, "a.txt", "b.txt"]);
    let of = |branch: &str| sandbox.git(&["show", &format!("{branch}:{config}")]);
    assert_eq!(of("land/demo"), of("runner/demo"));
    sandbox.git(&["switch", "-q", "main"]);
    sandbox.git(&["merge", "-q", "--ff-only", "land/demo"]);
    sandbox.runner(&["clean", "demo", "--yes"]).ok();
    let output = sandbox.runner(&["run", "Two", "--yes", "--max-iterations", "1"]);
    assert!(output.stdout.contains("config=\"your config.toml\""), "{}", output.stdout);
    // A base branch that has it is offered nothing.
    let shown = on_terminal(&sandbox, 80, "land").stdout;
    assert!(!shown.contains("--with-config"), "{shown}");
}
