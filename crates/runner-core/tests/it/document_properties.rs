//! Generates valid documents, and documents with random changes, for the property tests.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};
use runner_core::model::tree::Tree;
use serde_json::{Map, Value, json};

/// A change to one value of a document.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Replace(Value),
    Remove,
    AddKey(&'static str, Value),
    /// Replaces a string with an object that has it as key: serde's other encoding of an enum.
    Wrap(Value),
    Repeat,
}

/// A document with up to three changes.
pub(crate) fn changed(good: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    (good, vec((any::<Index>(), change()), 0..=3)).prop_map(|(mut document, changes)| {
        for (position, change) in &changes {
            let pointers = pointers(&document);
            apply(&mut document, &pointers[position.index(pointers.len())], change);
        }
        document
    })
}

fn change() -> impl Strategy<Value = Change> {
    let keys = ["note", "idd", "Title", "goals", "children", "id", "status", "kind", "", "max_iteration"];
    prop_oneof![
        6 => junk().prop_map(Change::Replace),
        2 => Just(Change::Remove),
        2 => (select(keys.to_vec()), junk()).prop_map(|(key, value)| Change::AddKey(key, value)),
        1 => select(vec![json!(null), json!({}), json!([])]).prop_map(Change::Wrap),
        1 => Just(Change::Repeat),
    ]
}

fn junk() -> impl Strategy<Value = Value> {
    let whole = [
        0,
        1,
        -1,
        2,
        3,
        100,
        4_095,
        4_096,
        604_800,
        604_801,
        1_000_000,
        1_000_001,
        4_294_967_295,
        4_294_967_296,
        10_737_418_240,
        10_737_418_241,
        9_007_199_254_740_991,
        9_007_199_254_740_992,
        -9_007_199_254_740_991,
        -9_007_199_254_740_992,
        i64::MAX,
        i64::MIN,
    ];
    let floats =
        [0.0, -0.0, 1.0, 1e2, 5000.0, 1.5, -1.0, 0.1, 1e15, 9_007_199_254_740_992.0, 1e19, 1e300, -1e300];
    let texts = [
        "", ".", "..", "...", "a", "a b", "a/b", "../x", "größe", "a\n", "x.lock", ".x", "x.", "a..b", "-",
        "done", "retry", "Done", "codex", "command", "stop", "pass", "null", "true", "1",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        select(whole.to_vec()).prop_map(Value::from),
        Just(json!(u64::MAX)),
        select(floats.to_vec()).prop_map(Value::from),
        select(texts.to_vec()).prop_map(Value::from),
        (1..140_usize).prop_map(|length| Value::from("x".repeat(length))),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            vec((select(&["a", "id", "done"][..]), inner), 0..3).prop_map(|pairs| {
                Value::Object(pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            }),
        ]
    })
}

/// The JSON pointers of all values in a document.
fn pointers(document: &Value) -> Vec<String> {
    fn collect(value: &Value, pointer: &str, all: &mut Vec<String>) {
        all.push(pointer.to_owned());
        match value {
            Value::Array(items) => {
                items
                    .iter()
                    .enumerate()
                    .for_each(|(key, item)| collect(item, &format!("{pointer}/{key}"), all));
            }
            Value::Object(pairs) => {
                pairs.iter().for_each(|(key, item)| collect(item, &format!("{pointer}/{key}"), all));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut all = Vec::new();
    collect(document, "", &mut all);
    all
}

fn apply(document: &mut Value, pointer: &str, change: &Change) {
    let Some(value) = document.pointer_mut(pointer) else { return };
    match change {
        Change::Replace(junk) => *value = junk.clone(),
        Change::AddKey(key, junk) => {
            if let Value::Object(pairs) = value {
                pairs.insert((*key).to_owned(), junk.clone());
            }
        }
        Change::Wrap(inner) => {
            if let Value::String(text) = value {
                *value = json!({ text.as_str(): inner });
            }
        }
        Change::Repeat => {
            if let Value::Array(items) = value {
                items.extend(items.first().cloned());
            }
        }
        Change::Remove => {
            let Some((parent, key)) = pointer.rsplit_once('/') else { return };
            match (document.pointer_mut(parent), key.parse::<usize>()) {
                (Some(Value::Object(pairs)), _) => drop(pairs.shift_remove(key)),
                (Some(Value::Array(items)), Ok(index)) => drop(items.remove(index)),
                _ => {}
            }
        }
    }
}

/// A well-formed tree; rules between nodes may be violated.
pub(crate) fn tree() -> impl Strategy<Value = Value> {
    let node = (
        "[A-Za-z0-9_-][A-Za-z0-9._-]{0,5}",
        -3..4_i64,
        (".{0,6}", ".{0,6}", vec(".{0,4}", 0..3)),
        any::<bool>(),
        (0..5_i64, 1..5_i64),
    );
    let leaf = node.prop_map(|(id, order, (title, goal, acceptance), passes, (attempts, max))| {
        json!({
            "id": id, "order": order, "title": title, "goal": goal, "acceptance": acceptance, "passes": passes,
            "attempts": attempts, "max_attempts": max, "children": [],
        })
    });
    let nodes = leaf.prop_recursive(3, 12, 4, |inner| {
        (inner.clone(), vec(inner, 1..4)).prop_map(|(mut node, children)| {
            node["children"] = children.into();
            node
        })
    });
    nodes.prop_map(|root| json!({ "version": 1, "root": root }))
}

pub(crate) fn agent_output() -> impl Strategy<Value = Value> {
    (select(&["done", "retry", "decomposed"][..]), ".{0,8}")
        .prop_map(|(status, summary)| json!({ "status": status, "summary": summary }))
}

pub(crate) fn run_state() -> impl Strategy<Value = Value> {
    let or_null =
        |words: &'static [&'static str]| prop_oneof![Just(Value::Null), select(words).prop_map(Value::from)];
    (
        or_null(&["x", "run-1", "v1.2", "-"]),
        1..=u32::MAX,
        or_null(&["done", "retry", "decomposed"]),
        or_null(&["", "half done\n"]),
        or_null(&["pass", "fail", "skipped"]),
    )
        .prop_map(|(run_id, next, status, summary, guard)| {
            json!({
                "run_id": run_id, "next_iter": next, "last_status": status, "last_summary": summary,
                "last_guard": guard, "last_node": null, "last_outcome": null, "failures_in_row": 0,
                "transients_in_row": 0, "node_history": [], "repair": null, "replanned": [], "pinned": [],
                "wait": {
                    "agent": "codex", "outcome": "overloaded", "secs": 5, "until_unix_secs": null,
                    "secs_max": 60,
                },
                "usage_limits": [{ "agent": "codex", "node": "a", "resets_unix_secs": 7 }],
                "spent": {
                    "tokens": 1, "microdollars": 0, "estimated_microdollars": 0, "sessions_without_tokens": 0,
                    "sessions_without_cost": 0,
                },
                "spent_by_leaf": [{ "node": "a", "tokens": 1, "microdollars": 0 }],
                "semantics": 1,
            })
        })
}

/// Some keys of a configuration, each with a valid value.
pub(crate) fn config() -> impl Strategy<Value = Value> {
    let top = vec![
        ("max_iterations", json!(5)),
        ("max_attempts_default", json!(1)),
        ("iteration_timeout_secs", json!(604_800)),
        ("idle_timeout_secs", json!(0)),
        ("prompt_budget_bytes", json!(4_096)),
        ("executor_output_limit_bytes", json!(10_737_418_240_i64)),
        ("guard_output_limit_bytes", json!(4_096.0)),
        ("on_stuck", json!("replan")),
        ("on_usage_limit", json!("next")),
        ("usage_wait_max_secs", json!(60)),
        ("budget", json!({ "run_tokens": 5, "run_usd": 0.5 })),
        ("ladder", json!([{ "after_attempts": 1, "model": "m" }, { "kind": "claude" }])),
        ("prices", json!({ "gpt-5.5": { "input": 1.25, "output": 10 } })),
    ];
    let executor = vec![
        ("kind", json!("command")),
        ("model", json!("gpt-5.5")),
        ("command", json!(["my-agent", ""])),
        ("scenario", json!("demo.toml")),
    ];
    let guard =
        vec![("command", json!(["just"])), ("protected", json!(["justfile"])), ("protect", json!("flag"))];
    let subset = |pairs: Vec<(&'static str, Value)>| {
        let all = pairs.len();
        subsequence(pairs, 0..=all).prop_map(|pairs| {
            pairs.into_iter().map(|(key, value)| (key.to_owned(), value)).collect::<Map<String, Value>>()
        })
    };
    let tables = (
        subset(executor),
        subset(guard),
        subset(vec![("removal", json!("record"))]),
        subset(vec![("filters", json!(["lfs"]))]),
    );
    (subset(top), tables, any::<bool>()).prop_map(|(mut file, (executor, guard, plan, git), with_tables)| {
        for (name, table) in [("executor", executor), ("guard", guard), ("plan", plan), ("git", git)] {
            if with_tables {
                file.insert(name.to_owned(), table.into());
            }
        }
        Value::Object(file)
    })
}

/// The same document in TOML, which has no null, with inline tables or table headers.
pub(crate) fn toml_of(document: &Map<String, Value>, with_headers: bool) -> String {
    let (tables, keys): (Vec<_>, Vec<_>) =
        document.iter().partition(|(_, value)| with_headers && value.is_object());
    let line = |(key, value): (&String, &Value)| format!("{} = {}\n", json!(key), toml_value(value));
    let mut text: String = keys.into_iter().map(line).collect();
    for (name, table) in tables {
        text.extend(["[", &json!(name).to_string(), "]\n"]);
        text.extend(table.as_object().into_iter().flatten().map(line));
    }
    text
}

fn toml_value(value: &Value) -> String {
    let joined = |parts: Vec<String>| parts.join(", ");
    match value {
        Value::Array(items) => format!("[{}]", joined(items.iter().map(toml_value).collect())),
        Value::Object(pairs) => {
            let pair = |(key, value): (&String, &Value)| format!("{} = {}", json!(key), toml_value(value));
            format!("{{{}}}", joined(pairs.iter().map(pair).collect()))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.to_string(),
    }
}

/// Removes every null, because TOML has none.
pub(crate) fn without_null(value: Value) -> Value {
    match value {
        Value::Array(items) => {
            items.into_iter().filter(|item| !item.is_null()).map(without_null).collect::<Vec<_>>().into()
        }
        Value::Object(pairs) => {
            let kept = pairs.into_iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(key, value)| (key, without_null(value))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

/// A tree that satisfies every rule.
pub(crate) fn valid_tree() -> impl Strategy<Value = Tree> {
    tree().prop_map(|mut document| {
        make_valid(&mut document["root"], &mut 0);
        Tree::decode(document.to_string().as_bytes()).expect("a valid tree")
    })
}

/// Makes ids unique, sorts siblings, and sets attempts and passes as the rules require.
fn make_valid(node: &mut Value, count: &mut usize) {
    *count += 1;
    node["id"] = format!("{}-{count}", node["id"].as_str().unwrap_or_default()).into();
    node["attempts"] = node["attempts"].as_i64().min(node["max_attempts"].as_i64()).into();
    let Some(children) = node["children"].as_array_mut().filter(|children| !children.is_empty()) else {
        return;
    };
    children.iter_mut().for_each(|child| make_valid(child, count));
    let key = |child: &Value| (child["order"].as_i64(), child["id"].as_str().map(str::to_owned));
    children.sort_by_key(key);
    let pass = children.iter().all(|child| child["passes"] == true);
    node["passes"] = pass.into();
}
