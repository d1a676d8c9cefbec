//! Documents that are not JSON, or whose top level is not a tree.

use super::{BadTree, bad, document, leaf, node};

pub(super) fn entries() -> Vec<BadTree> {
    let good = document(&node(&[]));
    let utf16 = |to_bytes: fn(u16) -> [u8; 2], mark: &[u8]| {
        mark.iter().copied().chain(good.encode_utf16().flat_map(to_bytes)).collect::<Vec<u8>>()
    };
    let truncated = |at: usize| good.bytes().take(at).collect::<Vec<u8>>();
    let changed = |from: &str, to: &str| good.replace(from, to);
    let mut invalid_utf8 = changed("\"T\"", "\"?\"").into_bytes();
    invalid_utf8.iter_mut().filter(|byte| **byte == b'?').for_each(|byte| *byte = 0xC3);
    let mut all = vec![
        bad("a byte order mark", format!("\u{feff}{good}"), &["byte order mark"]),
        bad("UTF-16, little-endian", utf16(u16::to_le_bytes, b"\xFF\xFE"), &["UTF-16"]),
        bad("UTF-16, big-endian", utf16(u16::to_be_bytes, b"\xFE\xFF"), &["UTF-16"]),
        bad("bytes that are not UTF-8", invalid_utf8, &["not UTF-8"]),
        bad("an empty file", "", &["line 1, column 0: EOF"]),
        bad("only white space", " \n\t\n", &["EOF"]),
        bad("a NUL byte", "\0", &["expected value"]),
        bad("cut off after the first brace", truncated(1), &["EOF while parsing an object"]),
        bad("cut off in a key", truncated(5), &["EOF while parsing a string"]),
        bad("cut off in the root", truncated(40), &["EOF"]),
        bad("cut off before the last brace", truncated(good.len() - 2), &["EOF while parsing an object"]),
        bad("a second document after it", format!("{good}{good}"), &["trailing characters"]),
        bad("a word after it", format!("{good}end"), &["line 2, column 1: trailing characters"]),
        bad("a comment", format!("// the plan\n{good}"), &["line 1, column 1: expected value"]),
        bad("a comment inside", changed("\"order\"", "/* first */ \"order\""), &["key must be a string"]),
        bad("a comma after the last field", changed("[]}", "[],}"), &["trailing comma"]),
        bad(
            "a comma in the empty list of children",
            changed("\"children\": []", "\"children\": [,]"),
            &["expected value"],
        ),
        bad("single quotes", changed("\"", "'"), &["key must be a string"]),
        bad("NaN", changed("\"order\": 0", "\"order\": NaN"), &["expected value"]),
        bad("Infinity", changed("\"order\": 0", "\"order\": Infinity"), &["expected value"]),
        bad("a number out of range", changed("\"order\": 0", "\"order\": 1e999"), &["number out of range"]),
        bad("a number that begins with 0", changed("\"order\": 0", "\"order\": 01"), &["invalid number"]),
        bad("a line break in a text", changed("\"T\"", "\"a\nb\""), &["control character"]),
        bad("an unpaired surrogate", changed("\"T\"", "\"\\ud800\""), &["escape"]),
    ];
    all.extend(top_level());
    all
}

/// Mistakes at the top level.
fn top_level() -> Vec<BadTree> {
    let root = node(&[]);
    vec![
        bad("null as the document", "null", &["the document` must be an object, found null"]),
        bad("a list as the document", "[1, [2], {}]", &["the document` must be an object, found an array"]),
        bad("a text as the document", "\"tree\"", &["the document` must be an object, found a string"]),
        bad("a number as the document", "1", &["the document` must be an object, found an integer"]),
        bad("an empty document", "{}", &["`version` is missing", "`root` is missing"]),
        bad(
            "version 2",
            format!("{{\"version\": 2, \"root\": {root}}}"),
            &["`version` must be from 1 to 1, found 2"],
        ),
        bad(
            "a version as text",
            format!("{{\"version\": \"1\", \"root\": {root}}}"),
            &["`version` must be an integer, found a string"],
        ),
        bad(
            "a version with a fraction",
            format!("{{\"version\": 1.5, \"root\": {root}}}"),
            &["`version` must be an integer, found a number"],
        ),
        bad("no version", format!("{{\"root\": {root}}}"), &["`version` is missing"]),
        bad("no root", "{\"version\": 1}", &["`root` is missing"]),
        bad(
            "null as the root",
            "{\"version\": 1, \"root\": null}",
            &["(root): `the node` must be an object"],
        ),
        bad(
            "a list as the root",
            "{\"version\": 1, \"root\": [1]}",
            &["(root): `the node` must be an object"],
        ),
        bad(
            "a root that is misspelt",
            format!("{{\"version\": 1, \"rot\": {root}}}"),
            &["`rot` is not a field here; did you mean `root`?", "`root` is missing"],
        ),
        bad(
            "a field beside the root",
            format!("{{\"version\": 1, \"note\": {{}}, \"root\": {root}}}"),
            &["`note` is not a field here: remove it"],
        ),
        bad(
            "two versions",
            format!("{{\"version\": 1, \"version\": 1, \"root\": {root}}}"),
            &["`version` is a duplicate"],
        ),
        bad(
            "two roots",
            format!("{{\"version\": 1, \"root\": {root}, \"root\": {}}}", leaf("other", 0)),
            &["`root` is a duplicate"],
        ),
    ]
}
