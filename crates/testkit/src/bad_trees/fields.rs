//! Nodes with invalid, missing or unknown fields.

use super::{BadTree, bad, document, leaf, node, parent, single_node};

pub(super) fn entries() -> Vec<BadTree> {
    let wrong_types = WRONG_TYPES
        .iter()
        .map(|(name, field, value, message)| bad(name, single_node(&[(field, value)]), &[message]));
    let bad_ids = BAD_IDS.iter().map(|(name, id, message)| bad(name, single_node(&[("id", id)]), &[message]));
    let missing = MISSING.iter().map(|(name, field, message)| {
        let valid = node(&[]);
        let pair = valid.split(", ").find(|pair| pair.contains(&format!("\"{field}\""))).unwrap_or_default();
        let pair = pair.trim_start_matches('{').trim_end_matches('}');
        let rest = valid.replace(&format!("{pair}, "), "").replace(&format!(", {pair}"), "");
        bad(name, document(&rest), &[message])
    });
    wrong_types.chain(bad_ids).chain(missing).chain(unknown_and_repeated()).chain(among_children()).collect()
}

/// Name, field, value, expected message.
const WRONG_TYPES: [(&str, &str, &str, &str); 33] = [
    ("a number as id", "id", "1", "(root): `id` must be a string, found an integer"),
    ("null as id", "id", "null", "`id` must be a string, found null"),
    ("a list as id", "id", "[\"root\"]", "`id` must be a string, found an array"),
    ("a text as order", "order", "\"1\"", "root: `order` must be an integer, found a string"),
    ("null as order", "order", "null", "`order` must be an integer, found null"),
    ("a fraction as order", "order", "1.5", "`order` must be an integer, found a number"),
    ("true as order", "order", "true", "`order` must be an integer, found true or false"),
    ("an order of 2^53", "order", "9007199254740992", "`order` must be from -9007199254740991 to"),
    ("an order of -2^53", "order", "-9007199254740992", "`order` must be from -9007199254740991 to"),
    ("the smallest 64-bit order", "order", "-9223372036854775808", "found -9223372036854775808"),
    ("an order beyond 64 bits", "order", "99999999999999999999", "`order` must be from"),
    ("an order of 1e300", "order", "1e300", "`order` must be from"),
    ("a list as title", "title", "[]", "`title` must be a string, found an array"),
    ("null as title", "title", "null", "`title` must be a string, found null"),
    ("an object as goal", "goal", "{\"a\": [1]}", "`goal` must be a string, found an object"),
    ("a number as goal", "goal", "-1", "`goal` must be a string, found an integer"),
    ("a text as acceptance", "acceptance", "\"x\"", "`acceptance` must be an array, found a string"),
    ("an object as acceptance", "acceptance", "{\"a\": 1}", "`acceptance` must be an array, found an object"),
    ("null as acceptance", "acceptance", "null", "`acceptance` must be an array, found null"),
    ("a number within acceptance", "acceptance", "[\"a\", 2]", "`acceptance[1]` must be a string"),
    ("a text as passes", "passes", "\"true\"", "`passes` must be true or false, found a string"),
    ("0 as passes", "passes", "0", "`passes` must be true or false, found an integer"),
    ("null as passes", "passes", "null", "`passes` must be true or false, found null"),
    ("a text as attempts", "attempts", "\"0\"", "`attempts` must be an integer, found a string"),
    ("negative attempts", "attempts", "-1", "`attempts` must be from 0 to 1000000, found -1"),
    ("a fraction as attempts", "attempts", "0.5", "`attempts` must be an integer, found a number"),
    ("too many attempts", "attempts", "1000001", "`attempts` must be from 0 to 1000000, found 1000001"),
    ("no attempts allowed", "max_attempts", "0", "`max_attempts` must be from 1 to 1000000, found 0"),
    ("too many attempts allowed", "max_attempts", "4294967297", "`max_attempts` must be from 1 to 1000000"),
    ("null as max_attempts", "max_attempts", "null", "`max_attempts` must be an integer, found null"),
    ("null as children", "children", "null", "`children` must be an array, found null"),
    ("an object as children", "children", "{\"a\": {}}", "`children` must be an array, found an object"),
    (
        "a text as a child",
        "children",
        "[\"task\"]",
        "root/children[0]: `the node` must be an object, found a string",
    ),
];

/// Name, id as JSON, expected message.
const BAD_IDS: [(&str, &str, &str); 13] = [
    ("an empty id", "\"\"", "`id` \"\" is empty"),
    ("one dot as id", "\".\"", "must not be `.` or `..`"),
    ("two dots as id", "\"..\"", "must not be `.` or `..`"),
    ("an id that leaves the folder", "\"../x\"", "contains '/'"),
    ("a slash in an id", "\"a/b\"", "contains '/'"),
    ("a backslash in an id", "\"a\\\\b\"", "contains '\\\\'"),
    ("a space in an id", "\"a b\"", "contains ' '"),
    ("a letter outside ASCII in an id", "\"größe\"", "contains 'ö'"),
    ("an escaped letter outside ASCII in an id", "\"gr\\u00f6\"", "contains 'ö'"),
    ("a line break in an id", "\"a\\n\"", "contains '\\n'"),
    ("a NUL in an id", "\"a\\u0000\"", "contains '\\0'"),
    ("a terminal escape sequence in an id", "\"\\u001b[31m\"", "contains '\\u{1b}'"),
    (
        "an id of 129 characters",
        "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"",
        "is 129 bytes long, more than 128",
    ),
];

/// Name, field, expected message.
const MISSING: [(&str, &str, &str); 9] = [
    ("no id", "id", "(root): `id` is missing"),
    ("no order", "order", "root: `order` is missing"),
    ("no title", "title", "root: `title` is missing"),
    ("no goal", "goal", "root: `goal` is missing"),
    ("no acceptance", "acceptance", "root: `acceptance` is missing"),
    ("no passes", "passes", "root: `passes` is missing"),
    ("no attempts", "attempts", "root: `attempts` is missing"),
    ("no max_attempts", "max_attempts", "root: `max_attempts` is missing"),
    ("no children", "children", "root: `children` is missing"),
];

fn unknown_and_repeated() -> Vec<BadTree> {
    let with_field = |field: &str| node(&[]).replace("{\"id\"", &format!("{{{field}, \"id\""));
    vec![
        bad(
            "an empty node",
            document("{}"),
            &[
                "(root): `id` is missing",
                "order",
                "title",
                "goal",
                "acceptance",
                "passes",
                "attempts",
                "max_attempts",
                "children",
            ],
        ),
        bad(
            "an unknown field similar to a known one",
            document(&with_field("\"tittle\": 1")),
            &["root: `tittle` is not a field here; did you mean `title`?"],
        ),
        bad(
            "an unknown field similar to none",
            document(&with_field("\"priority\": {\"a\": []}")),
            &["root: `priority` is not a field here: remove it"],
        ),
        bad(
            "a field in capitals",
            document(&node(&[]).replace("\"goal\"", "\"Goal\"")),
            &["`goal` is missing", "`Goal` is not a field here; did you mean `goal`?"],
        ),
        bad(
            "the same field twice",
            document(&with_field("\"title\": \"first\"")),
            &["root: `title` is a duplicate"],
        ),
        bad(
            "the same field three times",
            document(&with_field("\"order\": 1, \"order\": \"x\"")),
            &["root: `order` is a duplicate", "root: `order` is a duplicate"],
        ),
        bad(
            "a repeated field, first with the wrong type",
            document(&with_field("\"passes\": 1")),
            &["`passes` must be true or false", "`passes` is a duplicate"],
        ),
    ]
}

fn among_children() -> Vec<BadTree> {
    vec![
        bad(
            "an order that cannot be compared",
            document(&parent("root", &[leaf("b", 1), node(&[("id", "\"c\""), ("order", "\"2\"")])])),
            &["root/c: `order` must be an integer"],
        ),
        bad(
            "an id that cannot be compared",
            document(&parent("root", &[leaf("b", 1), node(&[("id", "7"), ("order", "1")])])),
            &["root/children[1]: `id` must be a string"],
        ),
        bad(
            "a child that is null among good ones",
            document(&parent("root", &[leaf("a", 0), "null".to_owned(), leaf("b", 1)])),
            &["root/children[1]: `the node` must be an object, found null"],
        ),
        bad(
            "an invalid node below a node with an unreadable id",
            document(&parent(
                "root",
                &[leaf("a", 0), node(&[("id", "7"), ("order", "1"), ("children", "[{}]")])],
            )),
            &[
                "root/children[1]: `id` must be a string",
                "root/children[1]/children[0]: `id` is missing",
                "order",
                "title",
                "goal",
                "acceptance",
                "passes",
                "attempts",
                "max_attempts",
                "children",
            ],
        ),
    ]
}
