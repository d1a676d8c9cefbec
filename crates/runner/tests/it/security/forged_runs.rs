//! Forged histories: a valid run, changed in many ways, and the rule that `verify` must name for each.
#![expect(clippy::indexing_slicing, reason = "the history has as many commits as the agent's script makes")]

use std::fs;
use std::process::Stdio;

use runner_core::model::digest::Sha256;
use runner_core::verify::Rule;
use testkit::oracle::assert_sound;
use testkit::run_builder::RunBuilder;
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;
use crate::wasm_audit::{AuditCase, assert_same_audits};

/// Splits, fails the guard, passes, violates a rule, leaves no tree, repairs it, gives no answer, and changes the guard.
const AGENT: &str = r#"
case "$RUNNER_ITER" in
0001) split ;;
0002) echo true > guard.sh; answer done "not really" ;;
0003) echo 1 > ok; answer done ;;
0004) sed -i 's/"title": "a"/"title": "A"/' "$RUNNER_TREE"; answer done ;;
0005) echo '{' > "$RUNNER_TREE"; answer done ;;
0006) answer done ;;
0007) exit 3 ;;
0008) echo true > guard.sh; echo 2 > ok; answer done ;;
esac
"#;

pub(crate) const TREE: &str = ".runner/state/tree.json";
const STATE: &str = ".runner/state/run_state.json";
const CONFIG: &str = ".runner/state/config.toml";
const GOAL: &str = ".runner/GOAL.md";
const SCHEMA: &str = ".runner/state/schema.json";

fn good_run() -> TestRepo {
    let sandbox = RunBuilder::new(RUNNER).agent(AGENT).guard("echo looked; test -e ok").start();
    sandbox.runner(&["loop"]).ok();
    let outcomes = [
        "decomposed",
        "guard_failed",
        "passed",
        "rule_violation",
        "invalid_tree",
        "repaired",
        "no_answer",
        "passed",
    ];
    assert_eq!(sandbox.outcomes(), outcomes);
    assert_sound(&sandbox);
    sandbox
}

/// A commit of the forged history: index 0 is the start, index n is iteration n.
#[derive(Clone, Debug)]
struct Piece {
    tree: String,
    message: String,
    merged: Option<String>,
}

/// A change of the history.
pub(crate) enum Forgery {
    /// Replaces text in a message.
    Message(usize, &'static str, &'static str),
    /// Replaces text in a file and keeps the message.
    File(usize, &'static str, &'static str, &'static str),
    /// The same, and updates the digests in the message.
    Mended(usize, &'static str, &'static str, &'static str),
    /// Appends to a file, which it creates if necessary.
    Append(usize, &'static str, &'static str),
    /// Removes a file.
    Remove(usize, &'static str),
    /// Appends a line to a message.
    Trailer(usize, &'static str),
    /// Drops a commit.
    Drop(usize),
    /// Duplicates a commit.
    Twice(usize),
    /// Swaps two commits.
    Swap(usize, usize),
    /// Inserts a user commit that changes a file.
    Insert(usize, &'static str, &'static str, &'static str),
    /// Adds a second parent to a commit.
    Merge(usize),
    /// Appends a copy of a commit with text replaced in its message.
    GoOn(usize, &'static str, &'static str),
    /// Copies a file from one commit to another, and updates the digests in its message.
    Copied(usize, usize, &'static str),
    /// Makes an approval name another plan, in its commit and all later ones.
    OtherPlan(usize),
}

use Forgery::{
    Append, Copied, Drop, File, GoOn, Insert, Mended, Merge, Message, OtherPlan, Remove, Swap, Trailer, Twice,
};

/// Every forgery, the first rule that it violates, and the iteration of the named commit (0: none).
const FORGERIES: &[(Forgery, Rule, u32)] = &[
    (Message(3, "status=done", "status=retry"), Rule::Status, 3),
    (Message(3, "guard=pass", "guard=fail"), Rule::Guard, 3),
    (Message(2, "guard=fail", "guard=pass"), Rule::Guard, 2),
    (Message(3, "iter 0003", "iter 0004"), Rule::Numbering, 4),
    (Message(3, "iter 0003", "iter 3"), Rule::Message, 0),
    (Message(3, "node a", "node b"), Rule::Selection, 3),
    (Message(3, "node a", "repair"), Rule::Selection, 3),
    (Message(6, "repair", "node b"), Rule::Selection, 6),
    (Message(3, "run demo", "run other"), Rule::Identity, 3),
    (Message(3, "Outcome: passed", "Outcome: guard_failed"), Rule::Outcome, 3),
    (Message(3, "Outcome: passed", "Outcome: fine"), Rule::Outcome, 3),
    (Message(4, "Outcome: rule_violation", "Outcome: retry"), Rule::RunState, 4),
    (Message(7, "Outcome: no_answer", "Outcome: retry"), Rule::Attempts, 7),
    (Message(2, "Attempt: charged", "Attempt: free"), Rule::Charge, 2),
    (Message(3, "Attempt: free", "Attempt: charged"), Rule::Charge, 3),
    (Message(3, "Runner-Prompt: ", "Runner-Prompt: 0"), Rule::Prompt, 3),
    (Message(3, "Runner-Tree: ", "Runner-Tree: 0"), Rule::TreeDigest, 3),
    (Message(3, "Runner-State: ", "Runner-State: 0"), Rule::StateDigest, 3),
    (Message(3, "Guard-Exit: 0", "Guard-Exit: 1"), Rule::GuardExit, 3),
    (Message(2, "Guard-Exit: 1", "Guard-Exit: 0"), Rule::Outcome, 2),
    (Message(3, "Semantics: 1", "Semantics: 2"), Rule::Semantics, 3),
    (Message(2, "  not really", "  really"), Rule::Message, 2),
    (Message(2, "Runner-Annotation: guard-file-restored guard.sh\n", ""), Rule::RunState, 2),
    (Message(8, "restored guard.sh", "changed guard.sh"), Rule::Annotations, 8),
    (Trailer(3, "Runner-Annotation: nothing-changed"), Rule::Annotations, 3),
    (Trailer(3, "Runner-Annotation: guard-file-created guard.sh"), Rule::Annotations, 3),
    (Message(3, "\nRunner-Annotation: in-place", ""), Rule::Annotations, 3),
    (Message(3, "Annotation: in-place", "Annotation: ignored-worktree"), Rule::Annotations, 3),
    (Trailer(2, "Runner-Annotation: in-place"), Rule::Annotations, 2),
    (Trailer(3, "Runner-User-Commits: 1"), Rule::ForeignCommit, 3),
    (Trailer(3, "Signed-off-by: someone"), Rule::Outcome, 3),
    (Mended(2, TREE, "\"attempts\": 1", "\"attempts\": 0"), Rule::Attempts, 2),
    (Mended(4, TREE, "\"passes\": true", "\"passes\": false"), Rule::Passes, 4),
    (Mended(2, TREE, PASSES_OF_A, PASSED_A), Rule::Passes, 2),
    (Mended(3, TREE, MAX_OF_B, MORE_OF_B), Rule::MaxAttempts, 3),
    (Mended(7, TREE, ATTEMPTS_OF_B, NO_ATTEMPTS_OF_B), Rule::Attempts, 7),
    (Mended(8, TREE, "\"title\": \"a\"", "\"title\": \"other\""), Rule::PassedChanged, 8),
    (Mended(8, TREE, "\"order\": 1", "\"order\": -1"), Rule::PassedChanged, 8),
    (Mended(7, TREE, "\"title\": \"b\"", "\"title\": \"other\""), Rule::TreeRestored, 7),
    (Mended(3, TREE, "\"title\": \"b\"", "\"title\": \"other\""), Rule::Annotations, 3),
    (File(3, TREE, "\"title\": \"b\"", "\"title\": \"other\""), Rule::TreeDigest, 3),
    (Mended(3, TREE, "\"id\": \"b\"", "\"id\": \"c\""), Rule::PlanEdit, 3),
    (Mended(3, TREE, "  \"version\"", " \"version\""), Rule::TreeCanonical, 3),
    (Mended(3, TREE, "\"version\": 1", "\"version\": 2"), Rule::TreeInvalid, 3),
    (Mended(3, TREE, "\"id\": \"b\"", "\"id\": \"a\""), Rule::TreeInvalid, 3),
    (Remove(3, TREE), Rule::TreeInvalid, 3),
    (Mended(3, STATE, "\"next_iter\": 4", "\"next_iter\": 5"), Rule::RunState, 3),
    (Mended(3, STATE, "\"last_guard\": \"pass\"", "\"last_guard\": \"fail\""), Rule::RunState, 3),
    (Mended(3, STATE, "\"last_outcome\": \"passed\"", "\"last_outcome\": \"retry\""), Rule::RunState, 3),
    (Mended(7, STATE, "\"failures_in_row\": 1", "\"failures_in_row\": 0"), Rule::RunState, 7),
    (Mended(3, STATE, "\"run_id\": \"demo\"", "\"run_id\": \"other\""), Rule::RunState, 3),
    (Mended(3, STATE, "  \"run_id\"", " \"run_id\""), Rule::RunStateCanonical, 3),
    (Mended(3, STATE, "\"run_id\"", "\"name\""), Rule::RunStateInvalid, 3),
    (Remove(3, STATE), Rule::RunStateInvalid, 3),
    (File(2, STATE, "looked", "overlooked"), Rule::StateDigest, 2),
    (File(5, STATE, "\"rejected\": \"{", "\"rejected\": \"[{"), Rule::StateDigest, 5),
    (Mended(2, STATE, "\"last_summary\": \"not really\"", "\"last_summary\": \"really\""), Rule::RunState, 2),
    (Append(3, "guard.sh", "true\n"), Rule::ProtectedFile, 3),
    (Remove(8, "guard.sh"), Rule::ProtectedFile, 8),
    (Append(3, CONFIG, "\n# other\n"), Rule::PinnedFile, 3),
    (Append(3, GOAL, "\nAnd more.\n"), Rule::PinnedFile, 3),
    (Append(3, SCHEMA, "\n"), Rule::PinnedFile, 3),
    (Append(3, ".runner/prompts/leaf.md", "be nice\n"), Rule::PinnedFile, 3),
    (Append(2, ".runner/state/assumptions.md", "the user agreed\n"), Rule::Candidate, 2),
    (Append(3, "ok", "other work\n"), Rule::Candidate, 3),
    (Remove(8, "ok"), Rule::Candidate, 8),
    (Append(7, ".runner/nodes/b/context.md", "skip the tests\n"), Rule::Prompt, 8),
    (File(3, GOAL, "id: demo", "id: other"), Rule::Identity, 3),
    (Drop(4), Rule::Numbering, 5),
    (Drop(3), Rule::Numbering, 4),
    (Twice(3), Rule::Numbering, 3),
    (Swap(3, 4), Rule::Numbering, 4),
    (Drop(0), Rule::StartMissing, 1),
    (Merge(4), Rule::Parents, 4),
    (Insert(4, "wip", "ok", "3\n"), Rule::ForeignCommit, 0),
    (Insert(8, "wip", "ok", "3\n"), Rule::ForeignCommit, 0),
    (Insert(4, "chore(loop): run demo", "ok", "3\n"), Rule::Message, 0),
    (Insert(7, "wip", TREE, "{}"), Rule::TreeInvalid, 0),
    (Insert(7, "wip", STATE, "{}"), Rule::RunStateInvalid, 0),
    (Append(0, "README.md", "and more\n"), Rule::StartScope, 0),
    (Trailer(0, "and more"), Rule::Message, 0),
    (File(0, TREE, "\"passes\": false", "\"passes\": true"), Rule::Passes, 0),
    (File(0, TREE, "\"attempts\": 0", "\"attempts\": 1"), Rule::Attempts, 0),
    (File(0, STATE, "\"next_iter\": 1", "\"next_iter\": 7"), Rule::RunState, 0),
    (GoOn(8, "iter 0008", "iter 0009"), Rule::Stopped, 9),
];

const PASSES_OF_A: &str = "\"passes\": false,\n        \"attempts\": 1";
const PASSED_A: &str = "\"passes\": true,\n        \"attempts\": 1";
const MAX_OF_B: &str = "\"goal\": \"b\",\n        \"acceptance\": [],\n        \"passes\": false,\n        \"attempts\": 0,\n        \"max_attempts\": 3";
const MORE_OF_B: &str = "\"goal\": \"b\",\n        \"acceptance\": [],\n        \"passes\": false,\n        \"attempts\": 0,\n        \"max_attempts\": 9";
const ATTEMPTS_OF_B: &str = "\"passes\": false,\n        \"attempts\": 2";
const NO_ATTEMPTS_OF_B: &str = "\"passes\": false,\n        \"attempts\": 0";

/// The run's commits from its start on.
fn pieces(sandbox: &TestRepo) -> Vec<Piece> {
    let commits = sandbox.git(&["rev-list", "--reverse", "main..HEAD"]);
    commits
        .lines()
        .map(|commit| {
            let whole = run(sandbox.command("git").args(["cat-file", "commit", commit])).ok().stdout;
            let message = whole.split_once("\n\n").unwrap().1.to_owned();
            Piece { tree: sandbox.git(&["rev-parse", &format!("{commit}^{{tree}}")]), message, merged: None }
        })
        .collect()
}

/// A tree with one changed file.
fn with_file(sandbox: &TestRepo, tree: &str, path: &str, bytes: Option<&str>) -> String {
    let index = sandbox.outside().join("forged.index");
    let git = |args: &[&str]| {
        run(sandbox.command("git").args(args).env("GIT_INDEX_FILE", &index)).ok().stdout.trim().to_owned()
    };
    git(&["read-tree", tree]);
    match bytes {
        Some(bytes) => {
            let file = sandbox.outside().join("forged.file");
            fs::write(&file, bytes).unwrap();
            let blob = git(&["hash-object", "-w", "--no-filters", file.to_str().unwrap()]);
            git(&["update-index", "--add", "--cacheinfo", &format!("100644,{blob},{path}")]);
        }
        None => drop(git(&["update-index", "--force-remove", path])),
    }
    git(&["write-tree"])
}

fn file_in(sandbox: &TestRepo, tree: &str, path: &str) -> Option<String> {
    let shown = run(sandbox.command("git").args(["cat-file", "blob", &format!("{tree}:{path}")]));
    (shown.code == Some(0)).then_some(shown.stdout)
}

fn replaced(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "nothing to forge: {from}\n{text}");
    text.replacen(from, to, 1)
}

/// The message with digests of the tree's current files.
fn with_current_digests(sandbox: &TestRepo, piece: &Piece) -> String {
    let digest = |path: &str| Sha256::of(file_in(sandbox, &piece.tree, path).unwrap_or_default().as_bytes());
    let line = |line: &str| match line.split_once(": ") {
        Some(("Runner-Tree", _)) => format!("Runner-Tree: {}\n", digest(TREE)),
        Some(("Runner-State", _)) => format!("Runner-State: {}\n", digest(STATE)),
        _ => format!("{line}\n"),
    };
    piece.message.lines().map(line).collect()
}

fn forge(sandbox: &TestRepo, mut pieces: Vec<Piece>, forgery: &Forgery) -> Vec<Piece> {
    let edit = |piece: &mut Piece, path: &str, change: &dyn Fn(Option<String>) -> Option<String>| {
        let now = change(file_in(sandbox, &piece.tree, path));
        piece.tree = with_file(sandbox, &piece.tree, path, now.as_deref());
    };
    match *forgery {
        Message(at, from, to) => pieces[at].message = replaced(&pieces[at].message, from, to),
        File(at, path, from, to) => {
            edit(&mut pieces[at], path, &|text| Some(replaced(&text.unwrap(), from, to)));
        }
        Mended(at, path, from, to) => {
            edit(&mut pieces[at], path, &|text| Some(replaced(&text.unwrap(), from, to)));
            pieces[at].message = with_current_digests(sandbox, &pieces[at]);
        }
        Append(at, path, more) => edit(&mut pieces[at], path, &|text| Some(text.unwrap_or_default() + more)),
        Remove(at, path) => edit(&mut pieces[at], path, &|_| None),
        Trailer(at, line) => pieces[at].message.push_str(&format!("{line}\n")),
        Drop(at) => drop(pieces.remove(at)),
        Twice(at) => pieces.insert(at, pieces[at].clone()),
        Swap(one, other) => pieces.swap(one, other),
        Insert(behind, message, path, text) => {
            let tree = with_file(sandbox, &pieces[behind].tree, path, Some(text));
            pieces.insert(behind + 1, Piece { tree, message: format!("{message}\n"), merged: None });
        }
        Merge(at) => pieces[at].merged = Some(sandbox.git(&["rev-parse", "main"])),
        GoOn(at, from, to) => {
            let message = replaced(&pieces[at].message, from, to);
            pieces.push(Piece { message, ..pieces[at].clone() });
        }
        Copied(from, to, path) => {
            let text = file_in(sandbox, &pieces[from].tree, path);
            edit(&mut pieces[to], path, &|_| text.clone());
            pieces[to].message = with_current_digests(sandbox, &pieces[to]);
        }
        OtherPlan(at) => {
            let message = pieces[at].message.clone();
            let digest = message.split("\"plan\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
            let other = Sha256::of(b"another plan").to_string();
            for piece in pieces.iter_mut().skip(at) {
                edit(piece, STATE, &|text| Some(text.unwrap().replace(digest, &other)));
                piece.message = with_current_digests(sandbox, piece).replace(digest, &other);
            }
        }
    }
    pieces
}

/// Creates the commits and returns the last one.
fn commit(sandbox: &TestRepo, pieces: &[Piece]) -> String {
    let mut parent = sandbox.git(&["rev-parse", "main"]);
    for piece in pieces {
        let mut command = sandbox.command("git");
        command.args(["-c", "user.name=F", "-c", "user.email=f@localhost", "commit-tree", "-p", &parent]);
        command.args(piece.merged.iter().flat_map(|merged| ["-p", merged]));
        command.args([piece.tree.as_str(), "-F"]).arg(sandbox.outside().join("message")).stdin(Stdio::null());
        fs::write(sandbox.outside().join("message"), &piece.message).unwrap();
        parent = run(&mut command).ok().stdout.trim().to_owned();
    }
    parent
}

fn verify(sandbox: &TestRepo, commit: &str) -> (Option<i32>, serde_json::Value) {
    let ran = sandbox.runner(&["verify", commit, "--json"]);
    (ran.code, serde_json::from_str(&ran.stdout).unwrap())
}

/// Asserts for every forgery of the run that the first finding names the rule and the iteration.
pub(crate) fn assert_found(sandbox: &TestRepo, forgeries: &[(Forgery, Rule, u32)]) {
    let good = pieces(sandbox);
    let (code, output) = verify(sandbox, &commit(sandbox, &good));
    assert_eq!(
        (code, &output["verdict"]),
        (Some(0), &"verified".into()),
        "the same pieces again: {output:#}"
    );
    let mut wrong = Vec::new();
    let mut cases = vec![AuditCase::new(sandbox, "the same pieces again", output)];
    for (nth, (forgery, rule, iter)) in forgeries.iter().enumerate() {
        let forged = commit(sandbox, &forge(sandbox, good.clone(), forgery));
        let (code, output) = verify(sandbox, &forged);
        let first = &output["first_divergence"];
        let named = (first["rule"].as_str(), first["iter"].as_u64().unwrap_or_default());
        if code != Some(1) || named != (Some(rule.as_str()), u64::from(*iter)) {
            wrong.push(format!("{nth}: {rule} in {iter} expected, {code:?} found {first:#}"));
        }
        cases.push(AuditCase::new(sandbox, &format!("{nth}: {rule} in {iter}"), output));
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), forgeries.len(), wrong.join("\n"));
    assert_same_audits(&cases);
}

#[test]
fn verify_names_the_rule_that_a_forgery_violates() {
    assert!(FORGERIES.len() >= 40);
    assert_found(&good_run(), FORGERIES);
}
