//! Repositories that are unusual but valid: a run works in each of them, or `start` refuses it and changes nothing.

mod shape_list;

use std::fs;

use testkit::run_builder::RUN;
use testkit::test_repo::{RunOutput, TestRepo, run as run_command};

use crate::families::Family;
use crate::oracle::{judge_state, resume};
use crate::point::{PointSpec, PointVerdict};
use crate::scenarios::{WORK, Workspace};
use shape_list::SHAPES;

/// What the runner does in a repository of this shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ShapeResult {
    Works,
    /// `start` exits with 1 or 2 and changes nothing outside of `.runner/`.
    Refuses,
    /// Either of them, because it depends on the version of git.
    Either,
}

struct RepositoryShape {
    name: &'static str,
    /// Shell commands in the work tree, after its first commit. They may write a further check to `../check`.
    script: &'static str,
    result: ShapeResult,
}

const SCRIPT_PRELUDE: &str = r#"
set -eu
export GIT_AUTHOR_NAME=User GIT_AUTHOR_EMAIL=user@localhost GIT_COMMITTER_NAME=User GIT_COMMITTER_EMAIL=user@localhost
c() { git add -A; git commit -q --allow-empty -m "${1:-shape}"; }
restart() { rm -rf .git; git init -q -b main "$@"; c root; }
"#;

const AGENT_PRELUDE: &str = r#"
answer() { printf '{"status": "%s", "summary": "%s"}' "$1" "$1" > "$RUNNER_OUTPUT"; }
"#;

/// The guard fails in the first session, so that two iterations change files.
const CONFIG: &str = r#"
[executor]
kind = "command"
command = ["sh", "-c", ". \"$HOME/agent.sh\""]
sandbox = "off"

[guard]
command = ["sh", "-c", "test -e src/work-2"]
protected = []
baseline = false
"#;

pub(super) fn families() -> Vec<Family> {
    vec![Family {
        name: "shapes",
        summary: "unusual repositories: a run works, or start refuses and changes nothing",
        points: |_, _| {
            let none: &[usize] = &[];
            SHAPES.iter().map(|shape| PointSpec::new("shapes", shape.name, none).into()).collect()
        },
        run,
    }]
}

/// A repository with one commit, changed by the shape's script. Some shapes name another work tree in the file `root`.
fn prepare(runner: &str, shape: &RepositoryShape) -> TestRepo {
    let repo = TestRepo::empty(runner);
    repo.git(&["init", "-q", "-b", "main"]);
    repo.write("README.md", "hello\n");
    repo.write(".gitignore", "ignored\n");
    repo.write("old", "old\n");
    repo.commit_all("root");
    fs::create_dir_all(repo.outside().join("home/ledger")).expect("a ledger");
    fs::write(repo.outside().join("home/agent.sh"), format!("{AGENT_PRELUDE}{WORK}\nanswer done\n"))
        .expect("an agent");
    let script = format!("{SCRIPT_PRELUDE}{}", shape.script);
    let output = run_command(repo.command("sh").args(["-c", &script]));
    assert_eq!(output.code, Some(0), "the shape's script: {}{}", output.stdout, output.stderr);
    match fs::read_to_string(repo.outside().join("root")) {
        Ok(root) => {
            let root = repo.outside().join(root.trim_end());
            repo.at(root)
        }
        Err(_) => repo,
    }
}

/// The refs and files that a refused start must leave as they are.
fn state_of(repo: &TestRepo) -> [String; 3] {
    let output = |args: &[&str]| repo.try_git(args).stdout;
    [
        output(&["for-each-ref"]),
        output(&["ls-files", "-s"]),
        output(&["status", "--porcelain", "--untracked-files=no", "--", ".", ":(exclude).runner"]),
    ]
}

fn run(workspace: &Workspace, point: &PointSpec) -> PointVerdict {
    let Some(shape) = SHAPES.iter().find(|shape| shape.name == point.subject) else {
        return PointVerdict::Skipped(format!("no shape `{}`", point.subject));
    };
    let repo = prepare(&workspace.runner, shape);
    let tracked = repo.try_git(&["ls-files", "-z"]).stdout;
    let before = state_of(&repo);
    let started = start(&repo);
    let has_started = started.code == Some(0);
    let is_refused = matches!(started.code, Some(1 | 2)) && started.stderr.starts_with("error: ");
    let is_expected = match shape.result {
        ShapeResult::Works => has_started,
        ShapeResult::Refuses => is_refused,
        ShapeResult::Either => has_started || is_refused,
    };
    if !is_expected {
        let stderr = started.stderr.trim_end();
        return PointVerdict::Bad(vec![format!(
            "start: exit {:?}, expected {:?}: {stderr}",
            started.code, shape.result
        )]);
    }
    if !has_started {
        let after = state_of(&repo);
        let changed = format!("a refused start changed the repository: {before:?} became {after:?}");
        return PointVerdict::of(if before == after { Vec::new() } else { vec![changed] });
    }
    let mut violations = resume(&repo, &[&["loop"]]);
    violations.extend(judge_state(&repo, &[RUN]));
    let kept = repo.try_git(&["ls-files", "-z"]).stdout;
    let lost: Vec<&str> = tracked.split('\0').filter(|file| !kept.contains(file) && *file != "old").collect();
    if !lost.is_empty() {
        violations.push(format!("tracked files are gone: {lost:?}"));
    }
    if let Ok(check) = fs::read_to_string(repo.outside().join("check")) {
        let output = run_command(repo.command("sh").args(["-c", &check]));
        if output.code != Some(0) {
            violations.push(format!("`{}` fails: {}", check.trim_end(), output.stderr));
        }
    }
    PointVerdict::of(violations)
}

fn start(repo: &TestRepo) -> RunOutput {
    let output = repo.runner(&["init"]);
    if output.code != Some(0) {
        return output;
    }
    repo.write(".runner/state/config.toml", CONFIG);
    repo.write(".runner/GOAL.md", format!("---\nid: {RUN}\n---\n\n# Goal\n\nDo it.\n"));
    repo.runner(&["start"])
}
