//! Agents that damage the repository in their first session, without a sandbox, each also under kills at random calls.

use testkit::run_builder::{RUN, RunBuilder};
use testkit::test_repo::TestRepo;

use crate::families::{Family, counted_folder};
use crate::injector::{CallClass, Fault, Injection, trace};
use crate::oracle::{Belongings, judge_state, resume};
use crate::point::{PlannedPoint, PointSpec, PointVerdict};
use crate::random::Random;
use crate::scenarios::{WORK, Workspace};

/// How many kills each agent gets, besides one session without any.
const KILLS_PER_AGENT: usize = 4;
/// The calls of a step, roughly: a kill beyond the last one does not happen.
const CALLS_MAX: usize = 220;

/// Name and shell commands. `g` is git without hooks.
const AGENTS: &[(&str, &str)] = &[
    ("commit", "g add -A; g commit -m mine"),
    ("amend", "g add -A; g commit --amend -m mine"),
    ("reset", "g reset --hard HEAD~1; mkdir -p src; cp \"$HOME\"/ledger/* src/"),
    ("switch", "g checkout -b other"),
    ("detach", "g checkout --detach"),
    ("orphan", "g checkout --orphan fresh"),
    ("delete-branch", "g checkout --detach; g branch -D runner/demo"),
    ("move-branch", "g update-ref refs/heads/runner/demo main"),
    ("branch-below", "g checkout --detach; g branch -D runner/demo; g branch runner/demo/sub"),
    (
        "merge-in-progress",
        "g checkout -b side; echo a > README.md; g commit -am a; g checkout -; echo b > README.md; g commit -am b; g merge side",
    ),
    (
        "rebase-in-progress",
        "g checkout -b side; echo a > README.md; g commit -am a; g checkout -; echo b > README.md; g commit -am b; g rebase side",
    ),
    ("bisect", "g bisect start; g bisect bad"),
    ("remove-state", "rm -rf .runner"),
    ("remove-tree", "rm -f .runner/state/tree.json"),
    ("fifo-tree", "rm -f \"$RUNNER_TREE\"; mkfifo \"$RUNNER_TREE\""),
    ("link-state", "mv .runner/state away; ln -s ../away .runner/state"),
    ("folder-tree", "rm -f \"$RUNNER_TREE\"; mkdir \"$RUNNER_TREE\""),
    ("index-lock", "touch .git/index.lock"),
    ("index-lock-folder", "mkdir .git/index.lock"),
    ("head-lock", "touch .git/HEAD.lock; touch .git/refs/heads/runner/demo.lock"),
    ("packed-refs-lock", "touch .git/packed-refs.lock"),
    ("config-lock", "touch .git/config.lock"),
    ("remove-index", "rm -f .git/index"),
    ("empty-index", ": > .git/index"),
    ("remove-head", "rm -f .git/HEAD"),
    ("remove-logs", "rm -rf .git/logs; touch .git/logs"),
    ("remove-reflogs", "rm -rf .git/logs"),
    ("empty-reflogs", "find .git/logs -type f -exec truncate -s 0 {} +"),
    ("expire-reflogs", "g reflog expire --expire=now --all; g gc --prune=now -q"),
    ("remove-refs", "rm -rf .git/refs/heads/runner"),
    ("assume-unchanged", "g update-index --assume-unchanged README.md; echo changed > README.md"),
    ("skip-worktree", "g update-index --skip-worktree README.md; echo changed > README.md"),
    (
        "fsmonitor",
        "printf '#!/bin/sh\\ntouch %s/planted\\n' \"$HOME\" > \"$HOME/planted.sh\"; chmod +x \"$HOME/planted.sh\"; g config core.fsmonitor \"$HOME/planted.sh\"",
    ),
    (
        "hooks",
        "printf '#!/bin/sh\\ntouch %s/planted\\n' \"$HOME\" > .git/hooks/reference-transaction; chmod +x .git/hooks/reference-transaction",
    ),
    ("filter", "g config filter.x.clean \"touch $HOME/planted; cat\"; echo '* filter=x' > .gitattributes"),
    (
        "include",
        "g config include.path ../planted.config; printf '[core]\\nfsmonitor = touch %s/planted\\n' \"$HOME\" > planted.config",
    ),
    ("signing", "g config commit.gpgSign true; g config gpg.program false"),
    ("bare", "g config core.bare true"),
    ("worktree-setting", "g config core.worktree /tmp"),
    ("split-index", "g config core.splitIndex true; g update-index --split-index"),
    (
        "nested-repository",
        "mkdir nested; cd nested; git init -q .; echo x > x; g add -A; g commit -m x; cd ..",
    ),
    ("nested-git-file", "mkdir nested; echo 'gitdir: ../.git' > nested/.git; echo x > nested/x"),
    ("fifo", "mkfifo pipe"),
    ("fifo-ignore", "mkdir -p sub; mkfifo sub/.gitignore"),
    ("fifo-attributes", "mkdir -p sub; mkfifo sub/.gitattributes"),
    ("socket", "perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Type=>1,Local=>\"sock\",Listen=>1)'"),
    ("encoding", "echo '*.txt working-tree-encoding=UTF-16' > .gitattributes; echo x > a.txt"),
    (
        "required-filter",
        "g config filter.y.clean false; g config filter.y.required true; echo '*.bin filter=y' > .gitattributes; echo x > a.bin",
    ),
    (
        "safecrlf",
        "g config core.safecrlf true; g config core.autocrlf input; printf 'a\\r\\nb\\n' > crlf.txt",
    ),
    ("read-only-folder", "mkdir -p locked/deep; echo x > locked/deep/file; chmod -R a-w locked"),
    ("read-only-git", "chmod -R a-w .git"),
    ("unreadable", "mkdir closed; echo x > closed/x; chmod 000 closed closed/x"),
    ("odd-names", "touch \"$(printf 'a\\nb')\" \"$(printf 'bad\\377')\" ' lead' -- -dash"),
    ("long-path", "d=$(printf 'a%.0s' $(seq 200)); mkdir -p $d/$d/$d; echo x > $d/$d/$d/file"),
    ("case-git", "mkdir .GIT; echo x > .GIT/config"),
    ("ignore-own-files", "echo 'secret*' >> .gitignore; echo x > src/secret"),
    ("replace-refs", "g replace HEAD HEAD~1"),
    ("grafts", "g rev-parse HEAD > .git/info/grafts"),
    ("shallow-file", "g rev-parse HEAD > .git/shallow"),
    ("gc", "g gc --prune=now -q"),
    ("pack-refs", "g pack-refs --all"),
    ("alternates", "echo /nonexistent > .git/objects/info/alternates"),
    ("big-file", "head -c 60000000 /dev/zero > big"),
    ("thousand-files", "mkdir many; cd many; for i in $(seq 1000); do echo $i > f$i; done; cd .."),
    ("link-out", "ln -s /etc out; ln -s / everything"),
    ("file-becomes-folder", "rm README.md; mkdir README.md; echo x > README.md/x"),
    ("folder-becomes-link", "mv src src2; ln -s src2 src"),
    ("journal", "echo '{' > .git/runner/journal.json"),
    ("remove-journal", "rm -rf .git/runner"),
    ("lock-file", "rm -f .git/runner/lock"),
    ("background", "(setsid sleep 30 > /dev/null 2>&1 &)"),
    ("kill-runner", "kill -9 $PPID"),
    ("no-answer", "rm -f \"$RUNNER_OUTPUT\"; exit 0"),
    ("garbage-answer", "head -c 100000 /dev/urandom > \"$RUNNER_OUTPUT\"; exit 0"),
    ("answer-folder", "rm -f \"$RUNNER_OUTPUT\"; mkdir -p \"$RUNNER_OUTPUT\"; exit 0"),
];

pub(super) fn families() -> Vec<Family> {
    vec![Family {
        name: "hostile",
        summary: "agents that damage the repository, also under kills at random calls",
        points: |_, _| points(),
        run,
    }]
}

fn points() -> Vec<PlannedPoint> {
    let mut random = Random::new(7);
    let mut points = Vec::new();
    for (name, _) in AGENTS {
        points.push(PointSpec::new("hostile", name, &[0]).into());
        for _ in 0..KILLS_PER_AGENT {
            points.push(PointSpec::new("hostile", name, &[1 + random.below(CALLS_MAX)]).into());
        }
    }
    points
}

/// The repository of a run whose first session does this.
fn prepare(runner: &str, script: &str) -> TestRepo {
    let agent = format!(
        "{WORK}\ng() {{ git -c user.name=A -c user.email=a@localhost -c core.hooksPath=/dev/null \"$@\" > /dev/null 2>&1; }}\n\
         if [ ! -e \"$HOME/attacked\" ]; then touch \"$HOME/attacked\"; {script}\nfi\nanswer done"
    );
    // A kill inside the session repeats it, so more interrupted sessions than usual are normal here.
    let repo = RunBuilder::new(runner).agent(&agent).file("old", "old\n").movable().start();
    repo.git(&["branch", "dev", "main"]);
    repo
}

fn run(workspace: &Workspace, point: &PointSpec) -> PointVerdict {
    let Some((_, script)) = AGENTS.iter().find(|(name, _)| *name == point.subject) else {
        return PointVerdict::Skipped(format!("no agent `{}`", point.subject));
    };
    let repo = prepare(&workspace.runner, script);
    let before = Belongings::read(&repo, &[RUN]);
    let loop_command: &[&str] = &["loop"];
    if point.number(0) > 0 {
        let injection = Injection {
            class: CallClass::Mutating,
            root: counted_folder(&repo),
            at: point.number(0),
            fault: Some(Fault::KillAll),
            observer: None,
        };
        trace(&repo.runner_command(&["step"]), injection);
    } else {
        // Its exit code depends on the agent: one that kills the runner ends it.
        repo.runner(loop_command);
    }
    let mut violations = resume(&repo, &[loop_command]);
    violations.extend(judge_state(&repo, &[RUN]));
    // Branches that the agent moved stay where they are.
    Belongings::read(&repo, &[RUN]).lost_reflog_entries(&before, &mut violations);
    if repo.outside().join("home/planted").exists() {
        violations.push("the runner ran a program that the agent planted".to_owned());
    }
    PointVerdict::of(violations)
}
