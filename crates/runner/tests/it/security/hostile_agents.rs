//! Hostile agents. After each: one new commit with exactly the agent's work, the runner's own files and the user's
//! branches unchanged, nothing planted was run, and the next iterations continue normally.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use testkit::oracle::{assert_sound, processes_of};
use testkit::processes::wait_for;
use testkit::run_builder::{BRANCH, RunBuilder};
use testkit::test_repo::{RunOutput, TestRepo, run};

use crate::{RUNNER, as_nobody, owned_by_nobody};

/// Wraps a vandal's script: the first session runs it and keeps a copy of its files, later sessions work normally.
/// The script creates commits with `mine`; `$TRAP` is a program that must never run.
const AROUND: &str = r#"
ROOT=$PWD; TRAP=$AROUND/trap
git() { command git -c user.name=Agent -c user.email=agent@localhost "$@"; }
mine() { command git rev-parse "${1:-HEAD}" >> $AROUND/mine; }
vandalise() {
SCRIPT
}
if test "$RUNNER_ITER" = 0001; then
    printf '#!/bin/sh\ntouch %s/sprung\ncat\n' "$AROUND" > $TRAP; chmod +x $TRAP
    (set -e; vandalise) || exit 77
    cp -a "$ROOT" "$AROUND/left"; rm -rf "$AROUND/left/.git" "$AROUND/left/.runner"
    find "$AROUND/left" -name .git -prune -exec rm -rf {} +
    touch $AROUND/did
    test -e $AROUND/mute || answer retry
else
    mkdir -p normal; echo $RUNNER_ITER > normal/$RUNNER_ITER
    answer done
fi
"#;

fn agent_of(script: &str) -> String {
    AROUND.replace("SCRIPT", script)
}

fn setup(script: &str) -> RunBuilder {
    RunBuilder::new(RUNNER)
        .agent(&agent_of(script))
        .file("src/lib.txt", "one\n")
        .file("src/deep/x.txt", "x\n")
}

/// A run in a repository with branches and a tag of the user.
fn started(setup: &RunBuilder) -> TestRepo {
    let sandbox = setup.start();
    sandbox.git(&["branch", "other", "main"]);
    sandbox.git(&["tag", "v1", "main"]);
    sandbox
}

fn user_refs(sandbox: &TestRepo) -> BTreeSet<String> {
    let listed =
        sandbox.git(&["for-each-ref", "--format=%(refname) %(objectname)", "refs/heads", "refs/tags"]);
    let runs = format!("refs/heads/{BRANCH} ");
    listed.lines().filter(|line| !line.starts_with(&runs)).map(str::to_owned).collect()
}

/// Runs git with the test's own index.
fn with_index(sandbox: &TestRepo, work_tree: &Path, args: &[&str]) -> String {
    let mut command: Command = sandbox.command("git");
    command.args(["-c", "core.hooksPath=/dev/null", "-c", "advice.addEmbeddedRepo=false"]).args(args);
    command.env("GIT_INDEX_FILE", sandbox.outside().join("index"));
    command.env("GIT_DIR", sandbox.path(".git")).env("GIT_WORK_TREE", work_tree).current_dir(work_tree);
    run(&mut command).ok().stdout.trim().to_owned()
}

/// The trees of a session's files and of a commit, both without `.runner/`.
fn left_and_committed(sandbox: &TestRepo) -> (String, String) {
    let left = sandbox.outside().join("left");
    with_index(sandbox, &left, &["read-tree", &format!("{BRANCH}^")]);
    with_index(sandbox, &left, &["add", "-A"]);
    let left = with_index(sandbox, &left, &["write-tree"]);
    with_index(sandbox, sandbox.root(), &["read-tree", BRANCH]);
    with_index(sandbox, sandbox.root(), &["rm", "-r", "-q", "--cached", ".runner"]);
    (left, with_index(sandbox, sandbox.root(), &["write-tree"]))
}

/// Every reference of the user's exists. One that moved keeps its new value, and its old one is kept beside it.
fn assert_no_ref_is_lost(sandbox: &TestRepo, before: &BTreeSet<String>) {
    let now = user_refs(sandbox);
    for line in before.difference(&now) {
        let (name, commit) = line.split_once(' ').unwrap();
        assert!(now.iter().any(|line| line.split(' ').next() == Some(name)), "{before:?} became {now:?}");
        let holders = sandbox.git(&["for-each-ref", "--contains", commit, name, "refs/runner/demo/moved"]);
        assert_ne!(holders, "", "{name} moved, and its old value is lost");
    }
}

/// The entries of the reflogs of HEAD and of all branches.
fn reflog_lines(sandbox: &TestRepo) -> BTreeSet<String> {
    let names = ["HEAD", "refs/heads/main", "refs/heads/other", "refs/heads/runner/demo"];
    let read = |name: &str| std::fs::read_to_string(sandbox.path(&format!(".git/logs/{name}")));
    let lines =
        |name: &str| read(name).unwrap_or_default().lines().map(|line| format!("{name} {line}")).collect();
    names.iter().flat_map(|name| -> Vec<String> { lines(name) }).collect()
}

/// Asserts everything that must hold after the vandal's iteration.
fn assert_unharmed(sandbox: &TestRepo, base: &str, refs: &BTreeSet<String>) {
    assert!(!sandbox.outside().join("sprung").exists(), "something planted was run");
    assert_eq!(sandbox.git(&["rev-parse", &format!("{BRANCH}^")]), base, "one commit on top of the last");
    assert_no_ref_is_lost(sandbox, refs);
    let (left, committed) = left_and_committed(sandbox);
    let difference = sandbox.git(&["diff", "--stat", &left, &committed]);
    assert_eq!(
        left, committed,
        "what it left and what was committed differ (-left +committed):\n{difference}"
    );
    let own = sandbox.git(&["diff", "--name-only", base, BRANCH, "--", ".runner"]);
    let lawful = [".runner/state/run_state.json", ".runner/state/tree.json"];
    assert!(own.lines().all(|path| lawful.contains(&path)), "{own}");
    for commit in std::fs::read_to_string(sandbox.outside().join("mine")).unwrap_or_default().lines() {
        assert_ne!(sandbox.git(&["for-each-ref", "--contains", commit]), "", "{commit} is lost");
    }
    assert_sound(sandbox);
}

fn show(ran: &RunOutput) -> String {
    format!("{}{}", ran.stdout, ran.stderr)
}

/// Runs a vandal and asserts that only its work remains.
fn let_loose(script: &str) -> TestRepo {
    let_loose_in(started(&setup(script)))
}

fn let_loose_in(sandbox: TestRepo) -> TestRepo {
    let base = sandbox.git(&["rev-parse", BRANCH]);
    let refs = user_refs(&sandbox);
    let reflogs = reflog_lines(&sandbox);
    let ran = sandbox.runner(&["step"]);
    assert_eq!(ran.code, Some(0), "{}", show(&ran));
    assert!(
        sandbox.outside().join("did").exists(),
        "it failed: {}",
        sandbox.iteration_file(1, "executor.log")
    );
    assert_unharmed(&sandbox, &base, &refs);
    let ran = sandbox.runner(&["loop"]);
    assert_eq!(ran.code, Some(0), "{}", show(&ran));
    assert!(!sandbox.outside().join("sprung").exists(), "something planted was run later");
    assert_no_ref_is_lost(&sandbox, &refs);
    let lost: Vec<String> = reflogs.difference(&reflog_lines(&sandbox)).cloned().collect();
    assert!(lost.is_empty() && reflogs.len() >= 4, "lost entries of reflogs: {lost:?}");
    assert_eq!(sandbox.outcomes().last().map(String::as_str), Some("passed"));
    assert_sound(&sandbox);
    sandbox
}

macro_rules! vandals {
    ($($name:ident: $script:literal)*) => {
        $(#[test]
        fn $name() {
            let_loose($script);
        })*

        /// The acceptance asks for at least this many.
        #[test]
        fn every_vandal_has_a_test() {
            assert!([$(stringify!($name)),*].len() >= 80);
        }
    };
}

vandals! {
    one_that_only_works: "echo w > w; rm src/lib.txt; mkdir a; echo b > a/b"
    one_that_does_nothing: "true"

    // History and branches:
    one_that_commits: "echo w > w; git add -A; git commit -qm mine; mine"
    one_that_commits_and_works_on: "echo w > w; git add -A; git commit -qm 1; echo v > v; git add v; git commit -qm 2; mine; echo u > w"
    one_that_amends: "echo w > w; git add -A; git commit -q --amend -m amended; mine"
    one_that_resets_hard: "echo w > w; git add w; git commit -qm w; git reset -q --hard main"
    one_that_reverts: "git revert --no-edit HEAD > /dev/null; mine"
    one_that_stashes: "echo w >> README.md; git stash -q; mine stash@{0}"
    one_that_switches_branch: "git checkout -q other; echo w > w"
    one_that_makes_a_branch: "git checkout -q -b mine; echo w > w; git add w; git commit -qm w; mine"
    one_that_begins_anew: "git checkout -q --orphan lost; git rm -rfq --cached .; echo w > w; git add w; git commit -qm w; mine"
    one_that_detaches: "git checkout -q --detach; echo w > w; git add w; git commit -qm w; mine"
    one_that_deletes_the_runs_branch: "git checkout -q other; git branch -qD runner/demo; echo w > w"
    one_that_puts_a_branch_below_the_runs: "git checkout -q --detach; git branch -qD runner/demo; git branch runner/demo/x; echo w > w"
    one_that_puts_a_branch_above_the_runs: "git checkout -q --detach; git branch -qD runner/demo; git branch runner; echo w > w"
    one_that_makes_the_runs_branch_a_link: "git symbolic-ref refs/heads/runner/demo refs/heads/other; echo w > w"
    one_that_moves_what_is_the_users: "git branch -qf main HEAD; git branch -qD other; git tag -d v1 > /dev/null; echo w > w"
    one_that_adds_a_worktree: "git worktree add -q -b mine $AROUND/tree 2> /dev/null; echo w > $AROUND/tree/w; echo w > w"
    one_that_packs_the_refs: "git pack-refs --all; echo w > w"
    one_that_collects_garbage: "echo w > w; git add w; git commit -qm w; git reset -q HEAD~; git reflog expire --expire=now --all; git gc -q --prune=now"

    // Git operations left in progress:
    one_that_leaves_a_merge: "git checkout -q -b mine; echo 1 > README.md; git commit -qam 1; git checkout -q runner/demo; echo 2 > README.md; git commit -qam 2; mine; git merge -q mine > /dev/null || test -e .git/MERGE_HEAD"
    one_that_leaves_a_rebase: "git checkout -q -b mine; echo 1 > README.md; git commit -qam 1; git checkout -q runner/demo; echo 2 > README.md; git commit -qam 2; mine; git rebase -q mine > /dev/null 2>&1 || test -e .git/rebase-merge"
    one_that_leaves_a_cherry_pick: "git checkout -q -b mine; echo 1 > README.md; git commit -qam 1; git checkout -q runner/demo; echo 2 > README.md; git commit -qam 2; mine; git cherry-pick mine > /dev/null 2>&1 || test -e .git/CHERRY_PICK_HEAD"
    one_that_leaves_a_bisection: "git bisect start -q HEAD main > /dev/null || git bisect start > /dev/null; test -e .git/BISECT_LOG; echo w > w"
    one_that_leaves_locks: "touch .git/index.lock .git/HEAD.lock .git/config.lock .git/packed-refs.lock .git/refs/heads/main.lock .git/refs/heads/runner/demo.lock; echo w > w"

    // Hidden changes:
    one_that_assumes_files_unchanged: "git update-index --assume-unchanged README.md; echo changed > README.md"
    one_that_skips_files: "git update-index --skip-worktree README.md src/lib.txt; echo changed > README.md; rm src/lib.txt"
    one_that_forges_times: "touch -r README.md $AROUND/stamp; printf 'HELLO\n' > README.md; touch -r $AROUND/stamp README.md"
    one_that_excludes_everything: "echo '*' > .git/info/exclude; echo w > w"
    one_that_ignores_everything: "echo '*' > .gitignore; echo w > w; echo changed > README.md"
    one_that_checks_out_little: "git sparse-checkout set --no-cone src guard.sh > /dev/null; test ! -e README.md; echo w > w"
    one_that_replaces_objects: "git replace -f $(git rev-parse HEAD) $(git rev-parse main); echo w > w"
    one_that_breaks_the_index: "echo garbage > .git/index; echo w > w"
    one_that_makes_the_index_a_folder: "rm .git/index; mkdir .git/index; echo w > w"

    // Traps for the runner's git commands:
    one_that_plants_a_monitor: "git config core.fsmonitor $TRAP; git config core.untrackedCache true; echo w > w"
    one_that_plants_a_filter: "echo '* filter=odd diff=odd' > .gitattributes; git config filter.odd.clean $TRAP; git config filter.odd.smudge $TRAP; git config filter.odd.process $TRAP; git config filter.odd.required true; git config diff.odd.textconv $TRAP; git config diff.odd.command $TRAP; git config diff.external $TRAP; echo w > w"
    one_that_plants_attributes: "echo '* filter=odd' > .git/info/attributes; git config filter.odd.clean $TRAP; echo w > w"
    one_that_plants_hooks: "for hook in pre-commit commit-msg post-commit post-checkout post-merge post-index-change reference-transaction post-rewrite pre-auto-gc; do cp $TRAP .git/hooks/$hook; done; echo w > w"
    one_that_moves_the_hooks: "mkdir hooks; cp $TRAP hooks/post-index-change; cp $TRAP hooks/reference-transaction; git config core.hooksPath hooks; echo w > w"
    one_that_signs: "git config commit.gpgSign true; git config gpg.program $TRAP; git config core.editor $TRAP; git config core.pager $TRAP; echo w > w"
    one_that_includes: "printf '[core]\nfsmonitor = %s\n' $TRAP > $AROUND/evil; git config include.path $AROUND/evil; echo w > w"
    one_that_configures_the_work_tree: "git config extensions.worktreeConfig true; printf '[core]\nfsmonitor = %s\n' $TRAP > .git/config.worktree; echo w > w"
    one_that_configures_nonsense: "echo w > w; git config core.bare true; git config --file .git/config core.worktree /nowhere; git config --file .git/config core.repositoryformatversion 99; git config --file .git/config core.autocrlf true"
    one_that_breaks_the_configuration: "echo '[[[' > .git/config; echo w > w"
    one_that_links_the_configuration: "cp .git/config $AROUND/config; rm .git/config; ln -s $AROUND/config .git/config; echo w > w"
    one_that_grafts: "git rev-parse main > .git/shallow; mkdir -p .git/info; git rev-parse HEAD > .git/info/grafts; echo /nowhere > .git/objects/info/alternates; echo w > w"
    one_that_makes_head_a_folder: "rm .git/HEAD; mkdir .git/HEAD; echo w > w"
    one_that_breaks_the_references: "git rev-parse HEAD > /dev/null; echo garbage > .git/refs/heads/main; echo garbage > .git/refs/heads/runner/demo; rm .git/refs/tags/v1; mkdir -p .git/refs/tags/v1/x; echo w > w"
    one_that_deletes_the_references: "rm -rf .git/refs .git/packed-refs .git/logs; echo w > w"

    // Reflogs:
    one_that_deletes_the_reflogs: "rm -rf .git/logs; echo w > w"
    one_that_empties_the_reflogs: "find .git/logs -type f -exec truncate -s 0 {} +; echo w > w"
    one_that_expires_the_reflogs: "git reflog expire --expire=now --all; echo w > w"
    one_that_makes_a_reflog_a_folder: "rm .git/logs/refs/heads/runner/demo; mkdir .git/logs/refs/heads/runner/demo; echo x > .git/logs/refs/heads/runner/demo/x; echo w > w"
    one_that_makes_the_reflogs_a_file: "rm -r .git/logs/refs; echo x > .git/logs/refs; rm .git/logs/HEAD; mkfifo .git/logs/HEAD; echo w > w"
    one_that_locks_the_reflogs: "touch .git/logs/HEAD.lock .git/logs/refs/heads/main.lock; echo w > w"

    // The runner's own files:
    one_that_deletes_the_runners_folder: "rm -rf .runner; echo w > w"
    one_that_cleans_everything: "echo w > w; git add w; git clean -qfdx"
    one_that_links_the_runners_folder: "mv .runner $AROUND/away; ln -s $AROUND/away .runner; echo w > w"
    one_that_links_the_runners_state: "mv .runner/state $AROUND/away; ln -s $AROUND/away .runner/state; echo w > w"
    one_that_makes_the_runners_folder_a_file: "rm -rf .runner; echo x > .runner; echo w > w"
    one_that_makes_the_tree_a_pipe: "rm $RUNNER_TREE; mkfifo $RUNNER_TREE; echo w > w"
    one_that_makes_the_tree_endless: "rm $RUNNER_TREE; ln -s /dev/zero $RUNNER_TREE; echo w > w"
    one_that_makes_the_tree_a_folder: "rm $RUNNER_TREE; mkdir $RUNNER_TREE; echo x > $RUNNER_TREE/x; echo w > w"
    one_that_names_a_node_like_a_path: "sed -i 's/\"id\": \"root\"/\"id\": \"..\\/x\"/' $RUNNER_TREE; echo w > w"
    one_that_answers_by_a_pipe: "touch $AROUND/mute; mkfifo $RUNNER_OUTPUT; echo w > w"
    one_that_answers_by_a_folder: "touch $AROUND/mute; mkdir -p $RUNNER_OUTPUT/x; echo w > w"
    one_that_answers_by_a_link: "touch $AROUND/mute; ln -s /dev/zero $RUNNER_OUTPUT; echo w > w"
    one_that_rewrites_the_rules: "echo 'max_iterations = 1' > .runner/state/config.toml; echo nothing > .runner/GOAL.md; echo '{}' > .runner/state/schema.json; echo x > .runner/state/agent_output.schema.json; echo '{}' > .runner/state/run_state.json; rm .runner/.gitignore; mkdir -p .runner/prompts; echo evil > .runner/prompts/leaf.md; echo junk > .runner/junk; echo w > w"
    one_that_forgets: "rm .runner/state/questions.md; ln -s /etc/passwd .runner/nodes; rm .runner/state/feedback.md; ln -s /etc/passwd .runner/state/feedback.md; echo w > w"
    one_that_plants_in_the_log: "cd .runner/iterations/demo/0001; rm events.jsonl; mkfifo events.jsonl guard.log meta.json; ln $ROOT/README.md diff.patch; ln -s $ROOT/README.md tree.after.json; mkdir -p ../0002; mkfifo ../0002/executor.log ../0002/prompt.md; cd $ROOT; rm -r .runner/context; ln -s /etc .runner/context; echo w > w"
    one_that_links_the_log: "mkdir $AROUND/away; rm -r .runner/iterations; ln -s $AROUND/away .runner/iterations; echo w > w"
    one_that_forges_the_journal: "sed -i 's/[0-9]/7/g' .git/runner/journal.json; echo w > w"
    one_that_forges_the_private_index: "GIT_INDEX_FILE=.git/runner/work.index git update-index --assume-unchanged README.md; echo changed > README.md"
    one_that_plants_in_the_private_folder: "cd .git/runner; mkdir move.index look.index; ln -s /etc staging; mkfifo .journal.json.tmp; ln -s /etc aside; cd $ROOT; touch .git/index.lock; echo w > w"
    one_that_moves_the_private_folder: "touch $AROUND/mute; mv .git/runner $AROUND/away; ln -s $AROUND/away .git/runner; echo w > w"
    one_that_unlocks_the_runner: "rm .git/runner/lock; echo w > w"
    one_that_deletes_the_runners_private_folder: "touch $AROUND/mute; rm -rf .git/runner; echo w > w"

    // Files.
    one_with_odd_names: "touch -- '-rf' ' ' '*' ':(top)x' 'a\"b' \"new\nline\" \"$(printf 'caf\\351')\" 'back\\slash' 'tab\t'; mkdir -- '-d'; echo x > '-d/--x'"
    one_that_swaps_files_and_folders: "rm README.md; mkdir README.md; echo x > README.md/x; rm -r src; echo src > src"
    one_that_links_a_folder_away: "mv src $AROUND/away; ln -s $AROUND/away src; echo changed > src/lib.txt; echo new > src/new"
    one_that_makes_links: "ln -s /etc/passwd secret; ln -s . loop; ln -s nowhere broken; rm src/lib.txt; ln -s ../README.md src/lib.txt"
    one_that_changes_modes: "chmod +x README.md; echo w > w; chmod 000 w; mkdir locked; echo x > locked/x; chmod 000 locked"
    one_that_makes_pipes_and_sockets: "mkfifo pipe; echo w > w"
    one_that_makes_empty_folders: "mkdir -p empty/deep; echo w > w"
    one_with_a_repository_in_it: "git init -q nested; echo w > nested/w; (cd nested; git add w; git commit -qm w); git init -q empty"
    one_with_a_submodule: "git init -q $AROUND/module; (cd $AROUND/module; echo m > m; git add m; git commit -qm m); git -c protocol.file.allow=always submodule --quiet add $AROUND/module module"

    // Processes.
    one_that_leaves_processes: "setsid -f sleep 999; (trap '' TERM HUP; sleep 998 &) ; (setsid sh -c 'sleep 997 & sleep 996' &); echo w > w"
}

/// The runner does not write to files that a vandal moved out of the repository.
#[test]
fn runner_writes_nothing_through_a_link() {
    for (what, script) in [
        ("folder", "mv .runner $AROUND/away; ln -s $AROUND/away .runner"),
        ("state", "mv .runner/state $AROUND/away; ln -s $AROUND/away .runner/state"),
        ("log", "mkdir $AROUND/away; rm -r .runner/iterations; ln -s $AROUND/away .runner/iterations"),
    ] {
        let script = format!("{script}; cp -a $AROUND/away $AROUND/copy");
        let sandbox = let_loose(&script);
        let mut compare = sandbox.command("diff");
        compare.arg("-r").args(["away", "copy"].map(|name| sandbox.outside().join(name)));
        assert_eq!(run(&mut compare).ok().stdout, "", "{what}");
    }
}

/// The file is too large for a commit; everything else is committed.
#[test]
fn large_file_is_set_aside() {
    let sandbox = started(&setup("truncate -s 60M big; echo w > w"));
    let base = sandbox.git(&["rev-parse", BRANCH]);
    sandbox.runner(&["step"]).ok();
    std::fs::remove_file(sandbox.outside().join("left/big")).unwrap();
    assert_unharmed(&sandbox, &base, &user_refs(&sandbox));
    assert_eq!(sandbox.meta(1)["file_notices"][0]["path"], "big");
    assert_eq!(std::fs::metadata(sandbox.path(".git/runner/aside/0001/1-big")).unwrap().len(), 60 << 20);
    assert!(!sandbox.path("big").exists());
    sandbox.runner(&["loop"]).ok();
}

/// Paths that git refuses are set aside, however many there are; everything else is committed.
#[test]
fn names_that_git_rejects_are_set_aside() {
    let script =
        "mkdir .GIT sub; echo x > .GIT/x; echo y > .GIT/y; mkdir sub/.Git; echo z > sub/.Git/z; echo w > w";
    let sandbox = started(&setup(script));
    sandbox.runner(&["step"]).ok();
    let aside = sandbox.meta(1)["file_notices"].as_array().cloned().unwrap();
    let names: BTreeSet<&str> = aside.iter().map(|one| one["path"].as_str().unwrap()).collect();
    assert_eq!(names, BTreeSet::from([".GIT/x", ".GIT/y", "sub/.Git/z"]));
    assert_eq!(sandbox.git(&["show", &format!("{BRANCH}:w")]), "w");
    sandbox.runner(&["loop"]).ok();
    assert_sound(&sandbox);
}

/// Changes inside a submodule cannot be committed from outside. They stay, nothing planted there runs, and the run
/// continues.
#[test]
fn changes_inside_a_submodule_do_not_stop_the_run() {
    let sandbox = TestRepo::empty(RUNNER);
    let module = sandbox.outside().join("module");
    let make = "git init -q -b main $0 && cd $0 && echo m > m && git add m && git -c user.name=x -c user.email=x commit -qm m";
    run(sandbox.command("sh").arg("-c").arg(make).arg(&module)).ok();
    sandbox.git(&["init", "-q", "-b", "main"]);
    let from = module.to_str().unwrap();
    sandbox.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", from, "sub"]);
    let script = "echo changed > sub/m; echo new > sub/new; echo '* filter=odd' > .git/modules/sub/info/attributes; \
                  git -C sub config filter.odd.clean $TRAP; git -C sub config core.fsmonitor $TRAP; echo w > w";
    let sandbox = setup(script).start_in(sandbox);
    sandbox.runner(&["loop"]).ok();
    assert_eq!(sandbox.outcomes(), ["retry", "passed"]);
    assert!(!sandbox.outside().join("sprung").exists(), "something planted was run");
    assert_eq!(
        (sandbox.read("sub/m"), sandbox.read("sub/new")),
        ("changed\n".to_owned(), "new\n".to_owned())
    );
}

/// A protected file is also changed if its folder becomes a link to another folder.
#[test]
fn link_replacing_a_protected_folder_is_detected() {
    for target in ["$AROUND/away", "moved"] {
        let script = format!("mv src {target}; ln -s {target} src; echo changed > {target}/lib.txt");
        let sandbox = started(&setup(&script).protected("src/lib.txt"));
        sandbox.runner(&["step"]).ok();
        let marks = sandbox.meta(1)["annotations"].to_string();
        assert!(marks.contains("src/lib.txt"), "{marks}");
        assert_eq!(sandbox.read("src/lib.txt"), "one\n", "{target}");
        assert_eq!(sandbox.git(&["show", &format!("{BRANCH}:src/lib.txt")]), "one");
        let moved = target.replace("$AROUND", &sandbox.outside().display().to_string());
        assert_eq!(std::fs::read_to_string(sandbox.path(&moved).join("lib.txt")).unwrap(), "changed\n");
        assert_sound(&sandbox);
    }
}

/// The configuration at the session's start counts, even for the session that rewrites it.
#[test]
fn configuration_written_by_an_agent_does_not_count() {
    let script = "printf '[guard]\\ncommand = [\"true\"]\\n' > .runner/state/config.toml; touch $AROUND/mute; answer done";
    let setup = setup(script).guard("test -e never").keys("max_attempts_default = 1");
    let sandbox = started(&setup);
    assert_eq!(sandbox.runner(&["loop"]).code, Some(3));
    assert_eq!(sandbox.outcomes(), ["guard_failed"]);
    assert_sound(&sandbox);
}

/// A server that the agent left running cannot make the guard succeed.
#[test]
fn session_processes_are_gone_when_the_guard_runs() {
    let script = "(while true; do date > $AROUND/alive; sleep 0.01; done) & answer done";
    let guard = "rm -f $HOME/../alive; sleep 0.2; test ! -e $HOME/../alive";
    let sandbox = RunBuilder::new(RUNNER).agent(script).guard(guard).start();
    sandbox.runner(&["loop"]).ok();
    assert_eq!(sandbox.outcomes(), ["passed"]);
    assert_sound(&sandbox);
}

#[test]
fn agent_that_kills_its_supervisor_has_crashed() {
    let sandbox = started(&setup("echo w > w; setsid -f sleep 999; kill -9 $PPID; sleep 998"));
    sandbox.runner(&["step"]).ok();
    assert_eq!(sandbox.outcomes(), ["agent_crashed"]);
    assert_eq!(sandbox.read("w"), "w\n");
    assert_sound(&sandbox);
    sandbox.runner(&["loop"]).ok();
    assert_sound(&sandbox);
}

#[test]
fn agent_that_kills_the_runner_counts_as_a_crash() {
    let script = "echo w > w; runner=$(cut -d' ' -f4 /proc/$PPID/stat); kill -9 $runner; sleep 998";
    let sandbox = started(&setup(script));
    assert_eq!(sandbox.runner(&["step"]).code, None);
    sandbox.runner(&["loop"]).ok();
    assert_eq!(sandbox.outcomes(), ["interrupted", "passed"]);
    assert_eq!(sandbox.git(&["show", &format!("{BRANCH}~1:w")]), "w");
    assert_sound(&sandbox);
}

#[test]
fn agent_that_kills_runner_and_supervisor_counts_as_a_crash() {
    let script = "echo w > w; runner=$(cut -d' ' -f4 /proc/$PPID/stat); kill -9 $runner $PPID; exit";
    let sandbox = started(&setup(script));
    assert_eq!(sandbox.runner(&["step"]).code, None);
    wait_for("the agent's end", || processes_of(sandbox.outside()).is_empty());
    sandbox.runner(&["loop"]).ok();
    assert_eq!(sandbox.outcomes(), ["interrupted", "passed"]);
    assert_sound(&sandbox);
}

/// Recovery kills the session's processes before it reads its files. The supervisor is stopped first: otherwise it may see the
/// runner's death and kill the session before it is killed itself.
#[test]
fn next_command_kills_processes_that_outlived_runner_and_supervisor() {
    let script = "echo w > w; setsid -f sh -c 'while true; do date >> w; sleep 0.01; done'; \
                  runner=$(cut -d' ' -f4 /proc/$PPID/stat); kill -STOP $PPID; kill -9 $runner $PPID; exit";
    let sandbox = started(&setup(script));
    assert_eq!(sandbox.runner(&["step"]).code, None);
    // A process in the middle of an exec has no name for a moment.
    wait_for("the agent's end", || (1..=2).contains(&processes_of(sandbox.outside()).len()));
    let stdout = sandbox.runner(&["loop"]).ok().stdout;
    assert!(stdout.contains("recovered"), "{stdout}");
    assert_eq!(processes_of(sandbox.outside()), Vec::<String>::new());
    assert_eq!(sandbox.outcomes(), ["interrupted", "passed"]);
    assert_sound(&sandbox);
    let status = sandbox.runner(&["status"]).ok();
    assert_eq!(
        status.value("recovered"),
        Some("\"iteration 0001 after a crash: interrupted, nothing lost\"")
    );
}

/// A second runner is refused although the first one's session removes the lock file.
#[test]
fn lock_removed_by_an_agent_still_holds() {
    let script =
        "rm -r .git/runner/lock; touch $AROUND/begun; while ! test -e $AROUND/go; do sleep 0.01; done";
    let sandbox = started(&setup(script));
    let mut first = sandbox.runner_command(&["step"]).stdout(Stdio::null()).spawn().unwrap();
    wait_for("the session", || sandbox.outside().join("begun").exists());
    assert!(sandbox.runner(&["step"]).refused(1).contains("another runner"));
    std::fs::write(sandbox.outside().join("go"), "").unwrap();
    assert!(first.wait().unwrap().success());
    assert_eq!(sandbox.outcomes(), ["retry"]);
    assert_sound(&sandbox);
}

#[test]
fn removed_repository_is_reported() {
    for script in ["rm -rf .git", "mv .git $AROUND/away; ln -s $AROUND/away .git"] {
        let sandbox = started(&setup(&format!("touch $AROUND/mute; {script}")));
        let ran = sandbox.runner(&["step"]);
        assert_eq!(ran.code, Some(1), "{}", show(&ran));
        assert!(ran.stderr.contains(".git") && !ran.stderr.contains("panicked"), "{}", ran.stderr);
    }
}

/// Unreadable files exist only for users other than root.
#[test]
fn unreadable_file_does_not_stop_the_run() {
    let script = "echo w > w; echo x > x; chmod 000 x; mkdir locked; echo y > locked/y; chmod 000 locked";
    let sandbox = started(&setup(script));
    owned_by_nobody(&sandbox, |sandbox| {
        for command in ["step", "loop"] {
            let ran = as_nobody(sandbox, &[command]);
            assert_eq!(ran.code, Some(0), "{}", show(&ran));
        }
    });
    for (name, text) in [("w", "w\n"), ("x", "x\n"), ("locked/y", "y\n")] {
        assert_eq!(sandbox.read(name), text);
    }
    assert_sound(&sandbox);
}
