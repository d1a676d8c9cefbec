//! A user who works in the repository while a session runs, or between a crash and the recovery.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use testkit::oracle::assert_no_processes_of;
use testkit::processes::wait_for;
use testkit::run_builder::{RUN, RunBuilder};
use testkit::test_repo::{TestRepo, run as run_command};

use crate::families::Family;
use crate::oracle::{judge_state, resume};
use crate::point::{PointSpec, PointVerdict};
use crate::pool::kill_processes_of;
use crate::scenarios::{WORK, Workspace};

/// What the user does, and a check that must succeed at the end. Both are shell commands in the folder around the repository:
/// `work` is the run's work tree, `side` a linked work tree on the branch `dev`.
struct UserAction {
    name: &'static str,
    action: &'static str,
    check: &'static str,
}

const fn action(name: &'static str, action: &'static str, check: &'static str) -> UserAction {
    UserAction { name, action, check }
}

/// `kept TEXT FILE`: the text is in the file, in a ref of the run, or in a file that the runner set aside. Without a sandbox,
/// what changes in `.git` may be the agent's, so setting it aside is enough there.
const PRELUDE: &str = r#"
set -eu
export GIT_AUTHOR_NAME=User GIT_AUTHOR_EMAIL=user@localhost GIT_COMMITTER_NAME=User GIT_COMMITTER_EMAIL=user@localhost
kept() {
    grep -qsF "$1" "$2" && return
    for ref in $(git -C work for-each-ref --format='%(refname)' refs/runner refs/heads/runner refs/stash); do
        for commit in $(git -C work rev-list "$ref"); do git -C work grep -qF "$1" "$commit" && return; done
    done
    grep -rqsF "$1" work/.git/runner
}
"#;

const ACTIONS: &[UserAction] = &[
    action(
        "commit",
        "echo mine > side/mine; git -C side add -A; git -C side commit -qm mine; git -C side rev-parse dev > tip",
        "test \"$(git -C work rev-parse dev)\" = \"$(cat tip)\"; test -e side/mine; test -z \"$(git -C side status --porcelain)\"",
    ),
    action(
        "branch-and-tag",
        "git -C side branch topic; git -C side tag v2; git -C side branch -f topic main",
        "git -C work rev-parse -q --verify topic; git -C work rev-parse -q --verify v2",
    ),
    action(
        "stash",
        "echo stashed > side/README.md; git -C side stash -q; git -C side rev-parse stash > tip",
        "test \"$(git -C work rev-parse stash)\" = \"$(cat tip)\"; test \"$(git -C work stash list | wc -l)\" = 1 || { git -C work stash list >&2; cat work/.git/logs/refs/stash >&2; false; }",
    ),
    action(
        "stash-twice",
        "for i in 1 2; do echo $i > side/README.md; git -C side stash -q; done",
        "test \"$(git -C work stash list | wc -l)\" = 2",
    ),
    action(
        "remote-ref",
        "git -C side update-ref refs/remotes/origin/main main",
        "git -C work rev-parse -q --verify refs/remotes/origin/main",
    ),
    action("config", "git -C side config user.colour blue", "kept 'colour = blue' work/.git/config"),
    action(
        "hook",
        "echo '# hook-by-user' > work/.git/hooks/pre-push",
        "kept hook-by-user work/.git/hooks/pre-push",
    ),
    action(
        "ignored-file",
        "mkdir -p work/ignored; echo KEY=1 > work/ignored/env",
        "grep -q KEY=1 work/ignored/env",
    ),
    action("tracked-file", "echo edited-by-user >> work/README.md", "kept edited-by-user work/README.md"),
    action("new-file", "echo new-by-user > work/notes.txt", "kept new-by-user work/notes.txt"),
    action("goal", "echo '- goal-by-user' >> work/.runner/GOAL.md", "kept goal-by-user work/.runner/GOAL.md"),
    action(
        "configuration",
        "echo '# config-by-user' >> work/.runner/state/config.toml",
        "kept config-by-user work/.runner/state/config.toml",
    ),
    action(
        "prompts",
        "mkdir -p work/.runner/prompts; echo prompt-by-user > work/.runner/prompts/mine.md",
        "kept prompt-by-user work/.runner/prompts/mine.md",
    ),
    action(
        "tools",
        "mkdir -p work/.runner/nodes/root; echo '{\"network\": true}' > work/.runner/nodes/root/tools.json",
        "kept '\"network\": true' work/.runner/nodes/root/tools.json",
    ),
    action(
        "commit-on-run",
        "echo on-run-by-user > work/on-run; git -C work add on-run; git -C work commit -qm 'by user' --no-verify",
        "kept on-run-by-user work/on-run",
    ),
    action(
        "switch",
        "git -C work stash -qu; git -C work checkout -q main; git -C work checkout -q runner/demo; git -C work stash pop -q",
        "true",
    ),
    action(
        "switch-and-commit",
        "git -C work checkout -q -b spare; echo spare-by-user > work/spare; git -C work add spare; git -C work commit -qm spare; git -C work rev-parse spare > tip",
        "test \"$(git -C work rev-parse spare)\" = \"$(cat tip)\"",
    ),
    action("gc", "git -C side gc -q --prune=now", "true"),
    action("pack-refs", "git -C side pack-refs --all", "true"),
    action(
        "worktree",
        "git -C side worktree add -q ../third -b third",
        "git -C third status; git -C work rev-parse third",
    ),
    // Both are queued while the runner works.
    action(
        "note",
        "\"$RUNNER\" -C work note note-by-user; \"$RUNNER\" -C work note second-by-user",
        "for text in note second; do test \"$(grep -c $text-by-user work/.runner/state/notes.json)\" = 1; done",
    ),
    action("delete-branch", "git -C side branch -q -D spare-branch", "true"),
];

/// When the user acts: in the session or in the guard, before or after a kill.
const MOMENTS: &[&str] = &["session", "session-then-kill", "session-after-kill", "guard", "guard-then-kill"];

pub(super) fn families() -> Vec<Family> {
    vec![Family {
        name: "user",
        summary: "a user commits, stashes, switches and edits during a session or after a crash",
        points: |_, _| {
            let of_action = |action: &'static UserAction| {
                MOMENTS.iter().map(|at| PointSpec::new("user", action.name, &[at]).into())
            };
            ACTIONS.iter().flat_map(of_action).collect()
        },
        run,
    }]
}

fn prepare(runner: &str) -> TestRepo {
    let wait = |stage: &str| {
        format!("touch \"$HOME/{stage}\"; while [ ! -e \"$HOME/{stage}-continue\" ]; do sleep 0.02; done")
    };
    let agent = format!("{WORK}\n{}\nanswer done", wait("session"));
    let run = RunBuilder::new(runner).agent(&agent).guard(&wait("guard")).file("old", "old\n").movable();
    let repo = run.start();
    repo.git(&["branch", "spare-branch", "main"]);
    repo.git(&["worktree", "add", "-q", "-b", "dev", "../side", "main"]);
    repo
}

fn run(workspace: &Workspace, point: &PointSpec) -> PointVerdict {
    let Some(action) = ACTIONS.iter().find(|action| action.name == point.subject) else {
        return PointVerdict::Skipped(format!("no action `{}`", point.subject));
    };
    let repo = prepare(&workspace.runner);
    let home = repo.outside().join("home");
    let allow = |stage: &str| fs::write(home.join(format!("{stage}-continue")), "").expect("a file");
    let moment = point.word(0);
    let stage = if moment.starts_with("guard") { "guard" } else { "session" };
    allow(if stage == "guard" { "session" } else { "guard" });
    let mut runner = start_loop(&repo);
    wait_for(stage, || home.join(stage).exists());
    if moment.ends_with("after-kill") {
        kill(&repo, &mut runner);
    }
    act(&repo, action.action);
    if moment.ends_with("then-kill") {
        kill(&repo, &mut runner);
    }
    allow(stage);
    let mut violations = Vec::new();
    let status = runner.wait().expect("the loop");
    if moment == stage && !is_refusal(status.code()) {
        let errors = fs::read_to_string(errors_of_loop(&repo)).unwrap_or_default();
        violations.push(format!("`runner loop` beside the user: {status}: {}", errors.trim_end()));
    }
    violations.extend(resume_beside_user(&repo));
    violations.extend(judge_state(&repo, &[RUN]));
    let output = run_command(
        repo.command("sh").args(["-c", &format!("{PRELUDE}{}", action.check)]).current_dir(repo.outside()),
    );
    if output.code != Some(0) {
        violations.push(format!(
            "the user's work is lost: `{}` fails: {}",
            action.check,
            output.stderr.trim_end()
        ));
    }
    PointVerdict::of(violations)
}

/// A loop that completes, or that stops and reports changes of the user.
fn is_refusal(code: Option<i32>) -> bool {
    matches!(code, Some(0 | 2))
}

/// The next loop completes. It may first ask for `runner start`, to commit what the user changed under `.runner/`.
fn resume_beside_user(repo: &TestRepo) -> Vec<String> {
    let output = repo.runner(&["loop"]);
    if output.code == Some(2) && output.stderr.contains("runner start") {
        return resume(repo, &[&["start"], &["loop"]]);
    }
    if output.code == Some(0) {
        Vec::new()
    } else {
        vec![format!("`runner loop`: {:?}: {}", output.code, output.stderr)]
    }
}

fn errors_of_loop(repo: &TestRepo) -> PathBuf {
    repo.outside().join("errors-of-loop")
}

fn start_loop(repo: &TestRepo) -> Child {
    let mut command = repo.runner_command(&["loop"]);
    let errors = fs::File::create(errors_of_loop(repo)).expect("a file for errors");
    command.stdout(Stdio::null()).stderr(errors).spawn().expect("the loop")
}

fn act(repo: &TestRepo, script: &str) {
    let script = format!("{PRELUDE}{script}");
    let mut shell = repo.command("sh");
    shell.args(["-c", &script]).env("RUNNER", repo.binary()).current_dir(repo.outside());
    let output = run_command(&mut shell);
    assert_eq!(output.code, Some(0), "the user's commands failed: {}", output.stderr);
}

/// Kills the runner and everything it started.
fn kill(repo: &TestRepo, runner: &mut Child) {
    let _ = runner.kill();
    kill_processes_of(repo.outside());
    let _ = runner.wait();
    assert_no_processes_of(repo.outside());
}
