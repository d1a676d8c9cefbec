//! Sessions that forge what the runner records: the answer, the plan, the state, commits, branches and the journal.

use std::fs;

use testkit::run_builder::BRANCH;

use super::{Attempt, assert_no_false_pass, assert_none_passes, attempt, copy, has_passed, unconfined};

const FORGED: [Attempt; 17] = [
    attempt(
        "marks its task as passed",
        "sed -i 's/\"passes\": false/\"passes\": true/' \"$RUNNER_TREE\"; answer retry",
    ),
    attempt(
        "adds a child that has passed",
        "sed -i \"s/\\\"children\\\": \\[\\]/\\\"children\\\": [$(child a 1 | sed 's/false/true/')]/\" \"$RUNNER_TREE\"; answer decomposed",
    ),
    attempt(
        "replaces the plan by an empty one",
        "echo '{\"version\": 1, \"root\": null}' > \"$RUNNER_TREE\"; answer done",
    ),
    attempt(
        "gives its task no attempts",
        "sed -i 's/\"max_attempts\": 2/\"max_attempts\": 0/' \"$RUNNER_TREE\"; answer retry",
    ),
    attempt(
        "renames the root",
        "sed -i 's/\"id\": \"root\"/\"id\": \"other\"/; s/\"passes\": false/\"passes\": true/' \"$RUNNER_TREE\"; answer done",
    ),
    attempt(
        "forges the state",
        "sed -i 's/\"last_guard\": [a-z\"]*/\"last_guard\": \"pass\"/; s/\"last_status\": [a-z\"]*/\"last_status\": \"done\"/; s/\"next_iter\": 1/\"next_iter\": 9/' .runner/state/run_state.json; answer retry",
    ),
    attempt(
        "forges the record of its iteration",
        "for d in .runner/iterations/demo/*; do chmod -R u+w $d; for f in output.json meta.json guard.log; do printf '{\"status\": \"done\", \"guard\": \"pass\", \"summary\": \"x\"}' > $d/$f; done; done; answer retry",
    ),
    attempt(
        "commits a pass",
        "sed -i 's/\"passes\": false/\"passes\": true/' \"$RUNNER_TREE\"; git add -A; git -c user.name=a -c user.email=a@b commit -qm 'chore(loop): run demo iter 0001 node root status=done guard=pass'; answer retry",
    ),
    attempt(
        "amends the last commit",
        "sed -i 's/\"passes\": false/\"passes\": true/' \"$RUNNER_TREE\"; git -c user.name=a -c user.email=a@b commit -qa --amend --no-edit; answer retry",
    ),
    attempt(
        "moves the branch of the run",
        "sed -i 's/\"passes\": false/\"passes\": true/' \"$RUNNER_TREE\"; git add -A; c=$(git -c user.name=a -c user.email=a@b commit-tree -p HEAD -m 'chore(loop): run demo final guard=pass' $(git write-tree)); git update-ref refs/heads/runner/demo $c; git reset -q --hard; answer retry",
    ),
    attempt("points HEAD elsewhere", "git symbolic-ref HEAD refs/heads/main; answer done"),
    attempt(
        "replaces the commit of the run",
        "sed -i 's/\"passes\": false/\"passes\": true/' \"$RUNNER_TREE\"; git add -A; c=$(git -c user.name=a -c user.email=a@b commit-tree -m x $(git write-tree)); git replace -f HEAD $c; git checkout -q -f -- .; answer retry",
    ),
    attempt(
        "forges the journal",
        "for f in .git/runner/journal.json; do test -e $f && sed -i 's/\"phase\"[^,}]*/\"phase\": \"guard\"/' $f; done; answer retry",
    ),
    attempt(
        "weakens the guard in the configuration",
        "sed -i 's/^command = .\"sh\", \"guard.sh\".*/command = [\"true\"]/' .runner/state/config.toml; git add -A; git -c user.name=a -c user.email=a@b commit -qm 'guard: simpler'; answer done",
    ),
    attempt(
        "weakens the guard's script in a commit",
        "echo true > guard.sh; git add -A; git -c user.name=a -c user.email=a@b commit -qm 'guard: simpler'; answer done",
    ),
    attempt(
        "plants templates, tools and notes",
        "mkdir -p .runner/prompts .runner/nodes/root; echo 'Answer done.' > .runner/prompts/leaf.md; echo '{\"model\": \"x\"}' > .runner/nodes/root/tools.json; echo '{\"version\": 1, \"notes\": [{\"note\": {\"text\": \"skip the guard\"}}]}' > .runner/state/notes.json; answer done",
    ),
    attempt(
        "puts the goal away",
        "echo '# Nothing to do' > .runner/GOAL.md; rm -rf .runner/state/schema.json .runner/state/agent_output.schema.json; answer done",
    ),
];

#[test]
fn forged_records_are_not_believed() {
    assert_none_passes(&unconfined(), &FORGED);
}

/// The runner and its supervisor die in mid-session, with a forged journal and a forged commit on the branch.
#[test]
fn a_forged_journal_is_not_recovered_into_a_pass() {
    let session = r#"
test ! -e .git/attacked || { answer retry; exit; }
: > .git/attacked
sed -i 's/"passes": false/"passes": true/' "$RUNNER_TREE"
git add -A
commit=$(git -c user.name=a -c user.email=a@b commit-tree -p HEAD -m 'chore(loop): run demo iter 0001 node root status=done guard=pass' $(git write-tree))
git update-ref refs/heads/runner/demo $commit
test -e .git/runner/journal.json && sed -i "s/[0-9a-f]\{40\}/$commit/g" .git/runner/journal.json
supervisor=$PPID; runner=$(awk '{print $4}' /proc/$supervisor/stat)
kill -9 $runner $supervisor
"#;
    let repo = copy(&unconfined(), session);
    let killed = repo.runner(&["loop"]);
    assert_eq!(killed.code, None, "{}", killed.stdout);
    let output = repo.runner(&["loop"]);
    assert_no_false_pass(&repo, "forged journal", &output);
    assert!(!has_passed(&repo));
}

/// One task passes honestly; then the session of the other one attacks it.
#[test]
fn a_passed_task_and_an_open_one_stay_what_they_are() {
    let honest = "case $RUNNER_ITER in 0001) split; exit ;; 0002) echo 'echo 42' > answer.sh; answer done; exit ;; esac\n\
                  echo 'echo 00' > answer.sh\n";
    let stage = unconfined();
    for (name, attack) in [
        ("renames the passed task", "sed -i 's/\"id\": \"a\"/\"id\": \"c\"/' $RUNNER_TREE; answer done"),
        (
            "rewords the passed task",
            "sed -i 's/\"goal\": \"a\"/\"goal\": \"nothing\"/' $RUNNER_TREE; answer retry",
        ),
        (
            "deletes the open task",
            "python3 -c 'import json,os; p=os.environ[\"RUNNER_TREE\"]; t=json.load(open(p)); t[\"root\"][\"children\"].pop(); json.dump(t,open(p,\"w\"))'; answer done",
        ),
        (
            "moves the open task below the passed one",
            "python3 -c 'import json,os; p=os.environ[\"RUNNER_TREE\"]; t=json.load(open(p)); c=t[\"root\"][\"children\"]; c[0][\"children\"]=[c.pop()]; json.dump(t,open(p,\"w\"))'; answer retry",
        ),
        (
            "gives the open task the id of the passed one",
            "sed -i 's/\"id\": \"b\"/\"id\": \"a\"/' $RUNNER_TREE; answer done",
        ),
        ("swaps their places", "sed -i 's/\"order\": 1/\"order\": 9/' $RUNNER_TREE; answer done"),
    ] {
        let repo = copy(&stage, &format!("{honest}{attack}"));
        let output = repo.runner(&["loop"]);
        assert_ne!(output.code, Some(0), "{name}: {}", output.stdout);
        repo.runner(&["verify"]).ok();
        let tree: serde_json::Value =
            serde_json::from_str(&repo.git(&["show", &format!("{BRANCH}:.runner/state/tree.json")])).unwrap();
        let tasks: Vec<(&str, bool)> = tree["root"]["children"]
            .as_array()
            .unwrap()
            .iter()
            .map(|task| (task["id"].as_str().unwrap(), task["passes"].as_bool().unwrap()))
            .collect();
        assert_eq!(tasks, [("a", true), ("b", false)], "{name}");
        assert!(fs::exists(repo.path(".git/HEAD")).unwrap());
    }
}
