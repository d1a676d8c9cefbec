//! Trees whose nodes are well formed each but violate the rules between nodes.

use super::{BadTree, bad, document, leaf, node, parent, single_node};

pub(super) fn entries() -> Vec<BadTree> {
    let tree = |children: &[String]| document(&parent("root", children));
    let passed = |id: &str| node(&[("id", &format!("\"{id}\"")), ("passes", "true")]);
    let with_passes = |passes: &str, children: &[String]| {
        document(&node(&[("passes", passes), ("children", &format!("[{}]", children.join(",")))]))
    };
    let mut all = vec![
        bad(
            "attempts over max_attempts",
            single_node(&[("attempts", "4")]),
            &["root: `attempts` is 4, above `max_attempts` 3"],
        ),
        bad(
            "children out of order",
            tree(&[leaf("a", 2), leaf("b", 1)]),
            &["root: `children` are out of order: `b` belongs before `a`"],
        ),
        bad(
            "children of one order, ids out of order",
            tree(&[leaf("b", 1), leaf("a", 1)]),
            &["`a` belongs before `b`"],
        ),
        bad(
            "ids sorted without regard to case",
            tree(&[leaf("a", 1), leaf("B", 1)]),
            &["`B` belongs before `a`"],
        ),
        bad(
            "children with numeric orders out of order",
            tree(&[leaf("a", 10), leaf("b", 9)]),
            &["`b` belongs before `a`"],
        ),
        bad(
            "a parent that passes although a child is open",
            with_passes("true", &[passed("a"), leaf("b", 1)]),
            &["root: `passes` is true although its child `b` is open"],
        ),
        bad(
            "a parent that does not pass although all children do",
            with_passes("false", &[passed("a")]),
            &["root: `passes` is false although all its children pass"],
        ),
        bad(
            "an unreadable child before an open one",
            with_passes("true", &[node(&[("id", "\"a\""), ("passes", "1")]), leaf("b", 1)]),
            &[
                "root: `passes` is true although its child `b` is open",
                "root/a: `passes` must be true or false",
            ],
        ),
        several(),
    ];
    all.extend(duplicates());
    all
}

fn duplicates() -> Vec<BadTree> {
    let tree = |children: &[String]| document(&parent("root", children));
    vec![
        bad(
            "siblings with one id",
            tree(&[leaf("a", 0), leaf("a", 1)]),
            &["root/a: `id` is also the id of root/a"],
        ),
        bad(
            "a child with its parent's id",
            tree(&[leaf("root", 0)]),
            &["root/root: `id` is also the id of root:"],
        ),
        bad(
            "one id in distant nodes",
            tree(&[parent("a", &[leaf("x", 0)]), parent("b", &[parent("c", &[leaf("x", 0)])])]),
            &["root/b/c/x: `id` is also the id of root/a/x"],
        ),
        bad(
            "one id in three nodes",
            tree(&[leaf("x", 0), parent("y", &[leaf("x", 0)]), parent("z", &[leaf("x", 0)])]),
            &["root/y/x: `id` is also the id of root/x", "root/z/x: `id` is also the id of root/x"],
        ),
    ]
}

/// Every problem is reported, from the document inwards and node by node.
fn several() -> BadTree {
    let a = node(&[("id", "\"a\""), ("order", "5"), ("attempts", "9"), ("title", "7")]);
    let b = node(&[("id", "\"b c\""), ("order", "\"1\""), ("children", "[null]")]);
    let d = node(&[
        ("id", "\"d\""),
        ("order", "4"),
        ("passes", "true"),
        ("children", &format!("[{}]", leaf("a", 0))),
    ]);
    let e = node(&[("id", "\"e\""), ("order", "3")]).replace("\"goal\"", "\"gaol\"");
    let root = parent("root", &[a, b, d, e]);
    bad(
        "several problems at once",
        format!("{{\"root\": {root}, \"verison\": 1}}"),
        &[
            "`verison` is not a field here; did you mean `version`?",
            "`version` is missing",
            "root: `children` are out of order: `e` belongs before `d`",
            "root/a: `title` must be a string, found an integer",
            "root/a: `attempts` is 9, above `max_attempts` 3",
            "root/children[1]: `id` \"b c\" contains ' '",
            "root/children[1]: `order` must be an integer, found a string",
            "root/children[1]/children[0]: `the node` must be an object, found null",
            "root/d: `passes` is true although its child `a` is open",
            "root/d/a: `id` is also the id of root/a",
            "root/e: `goal` is missing",
            "root/e: `gaol` is not a field here; did you mean `goal`?",
        ],
    )
}
