//! GOAL.md belongs to the user: setting the id changes nothing else in it.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use runner_core::model::goal::{Goal, GoalError};
use runner_core::model::id::RunId;

use crate::holds;

/// Files with and without front matter; the templates have `@` in place of the id.
fn files() -> impl Strategy<Value = String> {
    let keys = [
        "title: x",
        "# a comment: with a colon",
        "",
        "tags: [id, a]",
        "nested:\n  id: other",
        "note: |\n  id: other\n  ---",
        "ä: \"ü: #\"",
        "list:\n- id: 1\n- b",
        "? complex\n: id",
        "? [id]\n: id",
        "base: &b id",
        "*b : id",
        "'quoted key': 'it''s'",
        "empty:",
    ];
    let ids = ["id: @", "id:    @   # mine", "\"id\": @", "'id' : @", "id: \"@\"", "id: '@'"];
    let empty_ids = ["", "id:", "id: ~", "id: null # c", "id:\t# c"];
    let block = (
        vec(select(keys.to_vec()), 0..4),
        select([ids.to_vec(), empty_ids.to_vec()].concat()),
        any::<usize>(),
    )
        .prop_map(|(mut keys, id, at)| {
            // An alias needs its anchor before it.
            keys.sort_by_key(|key| (*key != "base: &b id", *key == "*b : id"));
            if keys.first() != Some(&"base: &b id") {
                keys.retain(|key| *key != "*b : id");
            }
            keys.dedup();
            let at = if keys.contains(&"*b : id") { 0 } else { at % (keys.len() + 1) };
            keys.insert(at, id);
            keys.join("\n") + "\n"
        });
    let indented = select(["  a: 1\n  b: 2\n", " # c\n    id: @\n    b: 1\n", "&top\na: 1\n"].to_vec());
    let braces = select(
        ["{a: 1}\n", "{}\n", "{ id: @, b: 2 }\n", "{\n  b: 2,\n  id: @\n}\n", "# c\n{a: {b: 1}}\n"].to_vec(),
    );
    let front = prop_oneof![
        4 => block.prop_map(|keys| format!("---\n{keys}---\n")),
        1 => indented.prop_map(|keys| format!("--- \n{keys}...\n")),
        1 => braces.prop_map(|keys| format!("---\n{keys}---\n")),
        1 => Just(String::new()),
    ];
    let body = select(["", "# Goal\n", "text without an end", "\n\nid: no\n---\n", "日本 id: @\n"].to_vec());
    let mark = select(["", "\u{feff}"].to_vec());
    (mark, front, body, select(["\n", "\r\n"].to_vec())).prop_map(|(mark, front, body, end)| {
        format!("{mark}{}{body}", front.replace('@', "old-1")).replace('\n', end)
    })
}

fn ids() -> impl Strategy<Value = RunId> {
    let odd =
        select(["null", "NULL", "-", "--", "---", "-x", "007", "1e3", "true", "y", "0x1F", "new"].to_vec());
    prop_oneof![odd.prop_map(str::to_owned), "[A-Za-z0-9_-][A-Za-z0-9_.-]{0,8}[A-Za-z0-9_-]"]
        .prop_filter_map("not a run id", |text| RunId::new(text).ok())
}

/// Both texts without their common prefix and suffix.
fn difference(before: &str, after: &str) -> (String, String) {
    let same = |pair: &(char, char)| pair.0 == pair.1;
    let head = before.chars().zip(after.chars()).take_while(same).count();
    let cut = |text: &str, from: usize| text.chars().skip(from).collect::<String>();
    let before = cut(before, head);
    let after = cut(after, head);
    let tail = before.chars().rev().zip(after.chars().rev()).take_while(same).count();
    let keep = |text: &str| text.chars().take(text.chars().count() - tail).collect();
    (keep(&before), keep(&after))
}

#[test]
fn setting_the_id_keeps_every_other_byte() {
    holds((files(), ids()), |(before, id)| {
        let goal =
            Goal::parse(before.as_bytes()).map_err(|e| TestCaseError::fail(format!("{e}: {before:?}")))?;
        let after = goal.with_id(&id);
        let again =
            Goal::parse(after.as_bytes()).map_err(|e| TestCaseError::fail(format!("{e}: {after:?}")))?;
        prop_assert_eq!(again.id(), Some(&id), "{:?}\n{:?}", before, after);
        prop_assert_eq!(again.with_id(&id), after.clone());
        prop_assert!(after.ends_with(goal.body()), "{:?}", after);
        prop_assert_eq!(again.body().trim_start(), goal.body().trim_start());
        let (removed, added) = difference(&before, &after);
        prop_assert!(
            ["\"old-1\"", "'old-1'", "~", "null"].iter().any(|old| old.contains(&removed)),
            "lost {:?}",
            removed
        );
        let syntax: String =
            added.replace(id.as_str(), "").chars().filter(|c| !"\r\n\t -\"':,id".contains(*c)).collect();
        prop_assert!(syntax.len() <= id.as_str().len(), "{:?} was added", added);
        Ok(())
    });
}

#[test]
fn setting_the_same_id_does_not_change_the_file() {
    for text in ["---\nid: \"x\"\n---\n", "---\n'id' :   x  # mine\n---\nbody", "---\n{b: 1, id: 'x'}\n---\n"]
    {
        let goal = Goal::parse(text.as_bytes()).unwrap();
        assert_eq!(goal.with_id(&RunId::new("x").unwrap()), text);
    }
}

#[test]
fn new_id_follows_the_layout_of_the_other_keys() {
    let id = RunId::new("new").unwrap();
    for (before, after) in [
        ("---\n  a: 1\n---\n", "---\n  id: new\n  a: 1\n---\n"),
        ("---\r\n\ta: 1\r\n---\r\n", "---\r\n\tid: new\r\n\ta: 1\r\n---\r\n"),
        ("---\n{a: 1}\n---\n", "---\n{id: new, a: 1}\n---\n"),
        ("---\n&x\na: 1\nb: *x\n---\n", "---\n&x\nid: new\na: 1\nb: *x\n---\n"),
        ("---\n# c\na: 1\n---\n", "---\n# c\nid: new\na: 1\n---\n"),
        ("---\n? [id]\n: id\nfoo: bar\n---\n", "---\nid: new\n? [id]\n: id\nfoo: bar\n---\n"),
    ] {
        assert_eq!(Goal::parse(before.as_bytes()).map(|goal| goal.with_id(&id)), Ok(after.to_owned()));
    }
}

#[test]
fn id_that_cannot_be_replaced_is_refused() {
    for (text, fault) in [
        ("---\n? id\nb: c\n---\n", GoalError::IdNotAWord(2)),
        ("---\nb: 1\nid: &a x\n---\n", GoalError::IdNotAWord(3)),
        ("---\nid: !!str x\n---\n", GoalError::IdNotAWord(2)),
        ("---\nid: >-\n  x\n---\n", GoalError::IdNotAWord(2)),
        ("---\nid: {a: b}\n---\n", GoalError::IdNotAWord(2)),
        ("---\n[]\n---\n", GoalError::NotAMapping),
        ("---\nid: x\nid:\n---\n", GoalError::TwoIds(3)),
    ] {
        assert_eq!(Goal::parse(text.as_bytes()).map(|goal| goal.id().cloned()), Err(fault), "{text:?}");
    }
    assert!(matches!(Goal::parse(b"---\n{id, b: 2}\n---\n"), Err(GoalError::BadId { line: 2, .. })));
}
