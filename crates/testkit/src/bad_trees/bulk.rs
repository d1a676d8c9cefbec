//! Trees that are too deep, have too many nodes or are too large.

use super::{BadTree, bad, document, leaf, parent, single_node};

pub(super) fn entries() -> Vec<BadTree> {
    [deep(), many(), large()].into_iter().flatten().collect()
}

fn deep() -> Vec<BadTree> {
    let too_deep = "is on level 33: at most 32 levels are allowed";
    let brackets = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let braces = format!("{}1{}", "{\"a\":".repeat(10_000), "}".repeat(10_000));
    let with_brackets = |field: &str| single_node(&[(field, &brackets)]);
    vec![
        bad("33 levels", document(&chain(33)), &[too_deep]),
        bad("40 levels", document(&chain(40)), &[too_deep]),
        bad("60 levels", document(&chain(60)), &[too_deep]),
        bad("10,000 brackets as the document", brackets.clone(), &["must be an object, found an array"]),
        bad(
            "10,000 brackets as the title",
            with_brackets("title"),
            &["`title` must be a string, found an array"],
        ),
        bad(
            "10,000 brackets as the acceptance",
            with_brackets("acceptance"),
            &["`acceptance[0]` must be a string"],
        ),
        bad(
            "10,000 brackets as the children",
            with_brackets("children"),
            &["root/children[0]: `the node` must be"],
        ),
        bad(
            "10,000 braces as the goal",
            single_node(&[("goal", &braces)]),
            &["`goal` must be a string, found an object"],
        ),
        bad("10,000 brackets never closed", "[".repeat(10_000), &["EOF while parsing a list"]),
    ]
}

fn many() -> Vec<BadTree> {
    let nulls = format!("[null{}]", ",null".repeat(2_000_000));
    let unknown = format!("{{{}", "\"k\": 1, ".repeat(20_000));
    let root = leaf("root", 0);
    let mut null_problems = vec!["more than 100000 nodes"];
    null_problems.extend(vec!["`the node` must be an object, found null"; 10_000]);
    null_problems.push("and 89999 more");
    let mut unknown_problems = vec!["`k` is not a field here"; 10_000];
    unknown_problems.push("and 10000 more");
    vec![
        bad("millions of nulls as children", single_node(&[("children", &nulls)]), &null_problems),
        bad("100,001 nodes", wide(100_001), &["more than 100000 nodes"]),
        bad("200,000 nodes", wide(200_000), &["more than 100000 nodes"]),
        bad("20,000 unknown fields", document(&root.replace('{', &unknown)), &unknown_problems),
        bad(
            "20,000 unknown keys around the tree",
            document(&root).replacen('{', &unknown, 1),
            &unknown_problems,
        ),
    ]
}

fn large() -> Vec<BadTree> {
    let root = leaf("root", 0);
    let key = format!("{{\"{}\": 1, ", "k".repeat(1_000_000));
    let text = format!("\"{}\"", "x".repeat(64 << 20));
    let spaces = format!("{}{}", document(&root), " ".repeat(64 << 20));
    // The acceptance list comes to 27 MB and the title to 41 MB, but the title to half of that without the backslashes.
    let escaped = many_criteria(200_000).replacen(
        "\"title\": \"",
        &format!("\"title\": \"{}", "\\n".repeat(20_500_000)),
        1,
    );
    let limit = "at most 67108864 are allowed";
    vec![
        bad(
            "an unknown key of a million letters",
            document(&root).replacen('{', &key, 1),
            &["not a field here: remove it"],
        ),
        bad("more than 64 MiB of text", single_node(&[("title", &text)]), &[limit]),
        bad("more than 64 MiB of white space", spaces, &[limit]),
        bad("more than 64 MiB in canonical form", document(&many_criteria(600_000)), &[limit]),
        bad("more than 64 MiB in canonical form with escapes", document(&escaped), &[limit]),
    ]
}

/// A tree with one node on every level.
fn chain(levels: usize) -> String {
    (0..levels).rev().fold(String::new(), |below, level| {
        let children = if below.is_empty() { Vec::new() } else { vec![below] };
        parent(&format!("n{level}"), &children)
    })
}

/// A root that has only leaves as children.
fn wide(nodes: usize) -> String {
    let leaf = leaf("@", 0);
    let (before, after) = leaf.split_once('@').unwrap_or_default();
    let leaves: Vec<String> = (1..nodes).map(|nth| format!("{before}n{nth:06}{after}")).collect();
    document(&parent("root", &leaves))
}

/// A chain whose deepest node has this many empty acceptance criteria: short here, and long in the canonical form, where
/// each has a line of its own.
fn many_criteria(count: usize) -> String {
    let criteria = format!("[\"\"{}]", ",\"\"".repeat(count));
    let chain = chain(32);
    let (before, after) = chain.rsplit_once("\"acceptance\": []").unwrap_or_default();
    format!("{before}\"acceptance\": {criteria}{after}")
}
