//! Decodes the trees of `testkit`: valid ones are read and written unchanged, invalid ones are refused with the expected
//! messages.

use runner_core::model::tree::{BYTES_MAX, NODES_MAX, Tree};
use testkit::bad_trees::{BadTree, bad_trees};
use testkit::trees::good_tree;

use crate::messages;

/// How the decoder's problems differ from the expected ones.
fn difference(tree: &BadTree) -> Option<String> {
    let Err(problems) = Tree::decode(&tree.bytes) else { return Some("the decoder accepts it".to_owned()) };
    if Tree::decode(&tree.bytes) != Err(problems.clone()) {
        return Some("a second decoding gives other problems".to_owned());
    }
    let actual = messages(&problems);
    let is_expected = actual.len() == tree.expect.len()
        && actual.iter().zip(&tree.expect).all(|(problem, words)| problem.contains(words));
    let first: Vec<_> = actual.iter().take(20).collect();
    (!is_expected).then(|| format!("{} problems; the first are {first:#?}", actual.len()))
}

#[test]
fn every_invalid_tree_is_refused_with_all_problems_in_order() {
    let all = bad_trees();
    assert!(all.len() >= 60, "the corpus has {} entries", all.len());
    let differences: Vec<_> =
        all.iter().filter_map(|tree| Some(format!("{}: {}", tree.name, difference(tree)?))).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn names_of_invalid_trees_are_unique() {
    let mut names: Vec<_> = bad_trees().iter().map(|tree| tree.name).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn valid_tree_is_written_as_it_was_read() {
    for nodes in [1, 2, 9, 10, 74, 3_000] {
        let bytes = good_tree(nodes);
        let tree = Tree::decode(&bytes).unwrap_or_else(|problems| panic!("{:#?}", messages(&problems)));
        assert_eq!(tree.node_count(), nodes);
        assert!(tree.bytes() == bytes, "{nodes} nodes");
    }
}

#[test]
fn largest_valid_tree_is_within_the_limits() {
    let bytes = good_tree(NODES_MAX);
    assert!(bytes.len() < BYTES_MAX);
    assert!((500..=671).contains(&(bytes.len() / NODES_MAX)), "{} bytes per node", bytes.len() / NODES_MAX);
}
