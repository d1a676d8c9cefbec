//! Trees that are too deep, too many or too large.

use super::{BadTree, alone, bad, document, leaf, parent};

pub(super) fn entries() -> Vec<BadTree> {
    let brackets = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let objects = format!("{}1{}", "{\"a\":".repeat(10_000), "}".repeat(10_000));
    let nulls = format!("[null{}]", ",null".repeat(2_000_000));
    let unknown_keys = "\"k\": 1, ".repeat(100_000);
    let too_deep = "lies on level 33: at most 32 levels are allowed";
    let mut told_nulls = vec!["more than 100000 nodes"];
    told_nulls.extend(vec!["`the node` must be an object, found null"; 10_000]);
    told_nulls.push("and 89999 more");
    let mut told_keys = vec!["`k` is not a field here"; 10_000];
    told_keys.push("and 90000 more");
    vec![
        bad("33 levels", document(&chain(33)), &[too_deep]),
        bad("40 levels", document(&chain(40)), &[too_deep]),
        bad("60 levels", document(&chain(60)), &[too_deep]),
        bad("10,000 brackets as the document", brackets.clone(), &["must be an object, found an array"]),
        bad(
            "10,000 brackets as the title",
            alone(&[("title", &brackets)]),
            &["`title` must be a string, found an array"],
        ),
        bad(
            "10,000 brackets as the acceptance",
            alone(&[("acceptance", &brackets)]),
            &["`acceptance[0]` must be a string"],
        ),
        bad(
            "10,000 brackets as the children",
            alone(&[("children", &brackets)]),
            &["root/children[0]: `the node` must be an object"],
        ),
        bad(
            "10,000 braces as the goal",
            alone(&[("goal", &objects)]),
            &["`goal` must be a string, found an object"],
        ),
        bad("10,000 brackets never closed", "[".repeat(10_000), &["EOF while parsing a list"]),
        bad("millions of nulls as children", alone(&[("children", &nulls)]), &told_nulls),
        bad("100,001 nodes", wide(100_001), &["more than 100000 nodes"]),
        bad("200,000 nodes", wide(200_000), &["more than 100000 nodes"]),
        bad(
            "100,000 unknown fields",
            document(&leaf("root", 0).replace('{', &format!("{{{unknown_keys}"))),
            &told_keys,
        ),
        bad(
            "100,000 unknown keys around the tree",
            document(&leaf("root", 0)).replacen('{', &format!("{{{unknown_keys}"), 1),
            &told_keys,
        ),
        bad(
            "an unknown key of a million letters",
            document(&leaf("root", 0)).replacen('{', &format!("{{\"{}\": 1, ", "k".repeat(1_000_000)), 1),
            &["is not a field here: remove it"],
        ),
        bad(
            "more than 64 MiB of text",
            alone(&[("title", &format!("\"{}\"", "x".repeat(64 << 20)))]),
            &["at most 67108864 are allowed"],
        ),
        bad(
            "more than 64 MiB of white space",
            format!("{}{}", document(&leaf("root", 0)), " ".repeat(64 << 20)),
            &["at most 67108864 are allowed"],
        ),
        bad(
            "more than 64 MiB once it is written out",
            document(&swelling()),
            &["at most 67108864 are allowed"],
        ),
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
    let leaves: Vec<String> = (1..nodes).map(|nth| leaf(&format!("n{nth:06}"), 0)).collect();
    document(&parent("root", &leaves))
}

/// A chain whose deepest node has empty points without number: short here, and long where each has its line.
fn swelling() -> String {
    let points = format!("[\"\"{}]", ",\"\"".repeat(600_000));
    let chain = chain(32);
    let (before, after) = chain.rsplit_once("\"acceptance\": []").unwrap_or_default();
    format!("{before}\"acceptance\": {points}{after}")
}
