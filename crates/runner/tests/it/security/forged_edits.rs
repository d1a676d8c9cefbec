//! Forged edits: a run with user edits, changed in many ways, and the rule that `verify` must name for each.

use runner_core::verify::Rule;
use testkit::oracle::assert_sound;
use testkit::test_repo::TestRepo;

use crate::commands::edit::half_done;
use crate::security::forged_runs::Forgery::{
    Append, Drop, File, Insert, Mended, Merge, Message, Remove, Swap, Trailer, Twice,
};
use crate::security::forged_runs::{Forgery, TREE, assert_found};

const STATE: &str = ".runner/state/run_state.json";
const QUESTIONS: &str = ".runner/state/questions.md";
const NOTES: &str = ".runner/state/notes.json";
const FEEDBACK: &str = ".runner/state/feedback.md";

/// Index 0 is the start, 1 and 2 are iterations, 3 to 11 are edits of every kind, and 12 is an iteration.
fn steered() -> TestRepo {
    let sandbox = half_done();
    let edits: &[&[&str]] = &[
        &["node", "add", "root", "--title", "New", "--goal", "Be new"],
        &["node", "edit", "b", "--title", "Better", "--acceptance", "it is"],
        &["node", "split", "b", "--into", "One", "--into", "Two"],
        &["node", "move", "new", "--under", "b"],
        &["node", "allow", "one", "2"],
        &["node", "remove", "two"],
        &["answer", "1", "8080"],
        &["note", "be quick"],
        &["node", "add", "root", "--title", "Last"],
    ];
    edits.iter().for_each(|edit| drop(sandbox.runner(edit).ok()));
    sandbox.runner(&["loop"]).ok();
    assert_sound(&sandbox);
    sandbox
}

const FORGERIES: &[(Forgery, Rule, u32)] = &[
    // The tree must be the result of the edit.
    (
        Mended(
            3,
            TREE,
            "\"passes\": false,\n        \"attempts\": 0,\n        \"max_attempts\": 3,\n        \"children\": []\n      },\n      {\n        \"id\": \"new\"",
            "\"passes\": true,\n        \"attempts\": 0,\n        \"max_attempts\": 3,\n        \"children\": []\n      },\n      {\n        \"id\": \"new\"",
        ),
        Rule::Passes,
        0,
    ),
    (Mended(4, TREE, "\"title\": \"a\"", "\"title\": \"A\""), Rule::PassedChanged, 0),
    (Mended(4, TREE, "\"title\": \"Better\"", "\"title\": \"Worse\""), Rule::EditScope, 0),
    (Mended(4, TREE, "\"title\": \"New\"", "\"title\": \"Old\""), Rule::EditScope, 0),
    (Mended(4, TREE, "\"passes\": true", "\"passes\": false"), Rule::Passes, 0),
    (Mended(7, TREE, "\"max_attempts\": 5", "\"max_attempts\": 6"), Rule::MaxAttempts, 0),
    (Mended(7, TREE, "\"max_attempts\": 5", "\"max_attempts\": 3"), Rule::MaxAttempts, 0),
    (Mended(7, TREE, "\"attempts\": 0", "\"attempts\": 1"), Rule::Attempts, 0),
    (Mended(5, TREE, "\"id\": \"two\"", "\"id\": \"too\""), Rule::EditScope, 0),
    (Mended(4, TREE, "  \"version\"", " \"version\""), Rule::TreeCanonical, 0),
    (File(4, TREE, "\"title\": \"Better\"", "\"title\": \"Worse\""), Rule::EditScope, 0),
    (Remove(4, TREE), Rule::TreeInvalid, 0),
    // An edit changes nothing else.
    (Append(4, "work", "more\n"), Rule::EditScope, 0),
    (Append(4, "guard.sh", "true\n"), Rule::EditScope, 0),
    (Append(4, ".runner/state/config.toml", "\n# other\n"), Rule::EditScope, 0),
    (Append(4, FEEDBACK, "\nNote from the user: nothing\n"), Rule::EditScope, 0),
    (Mended(4, STATE, "\"next_iter\": 3", "\"next_iter\": 4"), Rule::EditScope, 0),
    (Append(9, QUESTIONS, "> and more\n"), Rule::EditScope, 0),
    (File(9, NOTES, "8080", "8081"), Rule::EditScope, 0),
    (File(10, NOTES, "be quick", "be slow"), Rule::EditScope, 0),
    (Mended(10, TREE, "\"title\": \"One\"", "\"title\": \"1\""), Rule::EditScope, 0),
    // The message must describe the edit.
    (Message(3, "edit node add new", "edit node add other"), Rule::Message, 0),
    (Message(4, "edit node edit b", "edit node allow b"), Rule::Message, 0),
    (Message(4, "edit node edit b", "edit node pass b"), Rule::Message, 0),
    (Message(9, "edit answer 1", "edit answer 2"), Rule::Message, 0),
    (Message(3, "run demo", "run other"), Rule::Identity, 0),
    (Message(3, "\"title\":\"New\"", "\"title\":\"Newer\""), Rule::EditScope, 0),
    (Message(3, "\"under\":\"root\"", "\"under\":\"a\""), Rule::PassedChanged, 0),
    (Message(4, "\"node\":\"b\"", "\"node\":\"a\""), Rule::PassedChanged, 0),
    (Message(4, "\"do\":\"edit\"", "\"do\":\"pass\""), Rule::Message, 0),
    (Message(4, "{\"do\"", "{ \"do\""), Rule::Message, 0),
    (Message(4, "Runner-Edit: ", "Runner-Edits: "), Rule::Message, 0),
    (Message(7, "\"more\":2", "\"more\":3"), Rule::MaxAttempts, 0),
    (Message(8, "\"node\":\"two\"", "\"node\":\"a\""), Rule::PassedChanged, 0),
    (Message(9, "\"text\":\"8080\"", "\"text\":\"80\""), Rule::EditScope, 0),
    (Message(10, "  be quick\n", "  be slow\n"), Rule::Message, 0),
    (Message(3, "Runner-Tree: ", "Runner-Tree: 0"), Rule::TreeDigest, 0),
    (Message(3, "Runner-State: ", "Runner-State: 0"), Rule::StateDigest, 0),
    (Message(3, "Semantics: 1", "Semantics: 2"), Rule::Semantics, 0),
    (Trailer(3, "Runner-User-Commits: 1"), Rule::ForeignCommit, 0),
    (Trailer(3, "Signed-off-by: someone"), Rule::Message, 0),
    // The order of edits matters.
    (Drop(3), Rule::EditScope, 0),
    (Drop(5), Rule::EditScope, 0),
    (Drop(10), Rule::EditScope, 0),
    (Twice(3), Rule::PlanEdit, 0),
    (Swap(3, 4), Rule::EditScope, 0),
    (Merge(4), Rule::Parents, 0),
    (Insert(4, "chore(loop): run demo edit note", FEEDBACK, "mine\n"), Rule::Message, 0),
    (Insert(4, "chore(loop): run demo edit", FEEDBACK, "mine\n"), Rule::Message, 0),
];

#[test]
fn verify_names_the_rule_that_a_forged_edit_violates() {
    assert_found(&steered(), FORGERIES);
}
