//! Trees that are too deep, too many or too large.

use super::{BadTree, alone, bad, document, leaf, parent};

pub(super) fn entries() -> Vec<BadTree> {
    [deep(), many(), large()].into_iter().flatten().collect()
}

fn deep() -> Vec<BadTree> {
    let too_deep = "is on level 33: at most 32 levels are allowed";
    let brackets = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let braces = format!("{}1{}", "{\"a\":".repeat(10_000), "}".repeat(10_000));
    let within = |field: &str| alone(&[(field, &brackets)]);
    vec![
        bad("33 levels", document(&chain(33)), &[too_deep]),
        bad("40 levels", document(&chain(40)), &[too_deep]),
        bad("60 levels", document(&chain(60)), &[too_deep]),
        bad("10,000 brackets as the document", brackets.clone(), &["must be an object, found an array"]),
        bad("10,000 brackets as the title", within("title"), &["`title` must be a string, found an array"]),
        bad("10,000 brackets as the acceptance", within("acceptance"), &["`acceptance[0]` must be a string"]),
        bad("10,000 brackets as the children", within("children"), &["root/children[0]: `the node` must be"]),
        bad(
            "10,000 braces as the goal",
            alone(&[("goal", &braces)]),
            &["`goal` must be a string, found an object"],
        ),
        bad("10,000 brackets never closed", "[".repeat(10_000), &["EOF while parsing a list"]),
    ]
}

fn many() -> Vec<BadTree> {
    let nulls = format!("[null{}]", ",null".repeat(2_000_000));
    let unknown = format!("{{{}", "\"k\": 1, ".repeat(20_000));
    let root = leaf("root", 0);
    let mut told_nulls = vec!["more than 100000 nodes"];
    told_nulls.extend(vec!["`the node` must be an object, found null"; 10_000]);
    told_nulls.push("and 89999 more");
    let mut told_unknown = vec!["`k` is not a field here"; 10_000];
    told_unknown.push("and 10000 more");
    vec![
        bad("millions of nulls as children", alone(&[("children", &nulls)]), &told_nulls),
        bad("100,001 nodes", wide(100_001), &["more than 100000 nodes"]),
        bad("200,000 nodes", wide(200_000), &["more than 100000 nodes"]),
        bad("20,000 unknown fields", document(&root.replace('{', &unknown)), &told_unknown),
        bad("20,000 unknown keys around the tree", document(&root).replacen('{', &unknown, 1), &told_unknown),
    ]
}

fn large() -> Vec<BadTree> {
    let root = leaf("root", 0);
    let key = format!("{{\"{}\": 1, ", "k".repeat(1_000_000));
    let text = format!("\"{}\"", "x".repeat(64 << 20));
    let spaces = format!("{}{}", document(&root), " ".repeat(64 << 20));
    // The points come to 27 MB and the text to 41 MB, but to half of that without the backslashes.
    let lines =
        swelling(200_000).replacen("\"title\": \"", &format!("\"title\": \"{}", "\\n".repeat(20_500_000)), 1);
    let limit = "at most 67108864 are allowed";
    vec![
        bad(
            "an unknown key of a million letters",
            document(&root).replacen('{', &key, 1),
            &["not a field here: remove it"],
        ),
        bad("more than 64 MiB of text", alone(&[("title", &text)]), &[limit]),
        bad("more than 64 MiB of white space", spaces, &[limit]),
        bad("more than 64 MiB once it is written out", document(&swelling(600_000)), &[limit]),
        bad("more than 64 MiB once it is written out with its escapes", document(&lines), &[limit]),
    ]
}

/// A tree with one node on every level.
fn chain(levels: usize) -> String {
    (0..levels).rev().fold(String::new(), |below, level| {
        let children = if below.is_empty() { Vec::new() } else { vec![below] };
        parent(&format!("n{level}"), &children)
    })
}

/// A root with nothing but leaves below it.
fn wide(nodes: usize) -> String {
    let leaf = leaf("@", 0);
    let (before, after) = leaf.split_once('@').unwrap_or_default();
    let leaves: Vec<String> = (1..nodes).map(|nth| format!("{before}n{nth:06}{after}")).collect();
    document(&parent("root", &leaves))
}

/// A chain whose deepest node has empty points without number: short here, and long where each has its line.
fn swelling(points: usize) -> String {
    let points = format!("[\"\"{}]", ",\"\"".repeat(points));
    let chain = chain(32);
    let (before, after) = chain.rsplit_once("\"acceptance\": []").unwrap_or_default();
    format!("{before}\"acceptance\": {points}{after}")
}
