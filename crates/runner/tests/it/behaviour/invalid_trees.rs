//! `runner validate` on every invalid tree of the corpus.

use runner_core::model::tree::Tree;
use testkit::bad_trees::bad_trees;

use crate::started;

#[test]
fn every_problem_of_an_invalid_tree_is_listed_and_the_file_kept() {
    let sandbox = started();
    let trees = bad_trees();
    assert!(trees.len() >= 60, "{}", trees.len());
    for tree in trees {
        sandbox.write(".runner/state/tree.json", &tree.bytes);
        // A start sorts the children of a plan that is valid otherwise.
        let is_unsorted = Tree::decode_and_sort(&tree.bytes).is_ok();
        let commands = ["validate", "select", "start"]
            .into_iter()
            .filter(|command| !(is_unsorted && *command == "start"));
        for command in commands {
            let ran = sandbox.runner(&[command]);
            assert_eq!(ran.code, Some(2), "{} {command}: {}{}", tree.name, ran.stdout, ran.stderr);
            let output = format!("{}{}", ran.stdout, ran.stderr);
            assert!(!output.contains("panicked"), "{} {command}: {output}", tree.name);
            assert!(output.contains("tree") || output.contains("bytes"), "{} {command}: {output}", tree.name);
        }
        assert!(sandbox.read_bytes(".runner/state/tree.json") == tree.bytes, "{} was changed", tree.name);
    }
}
