//! The trees of the test kit: the good ones are read and written unchanged, the bad ones are refused with the
//! right words.

use runner_core::model::tree::{BYTES_MAX, NODES_MAX, Tree};
use testkit::bad_trees::{BadTree, bad_trees};
use testkit::trees::good_tree;

use crate::told;

/// What is not as expected with what is said of a bad tree.
fn amiss(tree: &BadTree) -> Option<String> {
    let Err(problems) = Tree::decode(&tree.bytes) else { return Some("it is accepted".to_owned()) };
    if Tree::decode(&tree.bytes) != Err(problems.clone()) {
        return Some("it is told differently the second time".to_owned());
    }
    let told = told(&problems);
    let as_expected = told.len() == tree.expect.len()
        && told.iter().zip(&tree.expect).all(|(problem, words)| problem.contains(words));
    let first: Vec<_> = told.iter().take(20).collect();
    (!as_expected).then(|| format!("{} problems, of which the first are {first:#?}", told.len()))
}

#[test]
fn every_bad_tree_is_refused_with_all_its_faults_in_order() {
    let all = bad_trees();
    assert!(all.len() >= 60, "the corpus has {} entries", all.len());
    let amiss: Vec<_> =
        all.iter().filter_map(|tree| Some(format!("{}: {}", tree.name, amiss(tree)?))).collect();
    assert!(amiss.is_empty(), "{}", amiss.join("\n"));
}

#[test]
fn no_two_bad_trees_have_one_name() {
    let mut names: Vec<_> = bad_trees().iter().map(|tree| tree.name).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all);
}

#[test]
fn a_good_tree_is_read_and_written_byte_for_byte() {
    for nodes in [1, 2, 9, 10, 74, 3_000] {
        let bytes = good_tree(nodes);
        let tree = Tree::decode(&bytes).unwrap_or_else(|problems| panic!("{:#?}", told(&problems)));
        assert_eq!(tree.node_count(), nodes);
        assert!(tree.bytes() == bytes, "{nodes} nodes");
    }
}

#[test]
fn the_largest_good_tree_is_within_the_limits() {
    let bytes = good_tree(NODES_MAX);
    assert!(bytes.len() < BYTES_MAX);
    assert!((500..=671).contains(&(bytes.len() / NODES_MAX)), "{} bytes per node", bytes.len() / NODES_MAX);
}
