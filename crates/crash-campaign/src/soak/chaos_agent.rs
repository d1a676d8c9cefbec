//! The agent of the soak: what it does depends only on the number of the iteration.

use std::env;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::random::Random;

/// Nodes deeper than this are not divided further.
const DEPTH_MAX: usize = 8;

/// Runs one session in the current folder. Returns whether it exits with success.
pub(crate) fn run_chaos_agent() -> bool {
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let iteration = variable("RUNNER_ITER");
    let mut random = Random::from_text(&iteration);
    fs::create_dir_all("src").expect("a folder");
    let file = format!("src/file-{}.txt", random.below(200));
    fs::write(file, format!("iteration {iteration}\n").repeat(1 + random.below(100))).expect("a file");
    let _ = fs::remove_file("red");
    if variable("RUNNER_MODE") == "repair" {
        edit_tree(|root| root["title"] = json!(format!("Repaired in {iteration}")));
        answer("retry");
        return true;
    }
    let node = variable("RUNNER_NODE_ID");
    match random.below(100) {
        0..=9 => answer("retry"),
        10..=13 => {
            fs::write("red", "the guard fails\n").expect("a file");
            answer("done");
        }
        14..=17 => {
            let was_split = edit_tree(|root| split(root, &node, &iteration, 0));
            answer(if was_split { "decomposed" } else { "done" });
        }
        18..=20 => {
            fs::write(variable("RUNNER_TREE"), "{ not json").expect("the tree");
            answer("done");
        }
        21 => return false,
        _ => answer("done"),
    }
    true
}

fn answer(status: &str) {
    let path = PathBuf::from(env::var_os("RUNNER_OUTPUT").expect("RUNNER_OUTPUT"));
    let text = json!({"status": status, "summary": format!("chaos: {status}")}).to_string();
    fs::write(path, text).expect("the answer");
}

/// Changes the root of the tree; returns what the change returns.
fn edit_tree<T>(change: impl FnOnce(&mut Value) -> T) -> T {
    let path = PathBuf::from(env::var_os("RUNNER_TREE").expect("RUNNER_TREE"));
    let mut tree: Value = serde_json::from_slice(&fs::read(&path).expect("the tree")).expect("a tree");
    let result = change(tree.get_mut("root").expect("a root"));
    fs::write(&path, tree.to_string()).expect("the tree");
    result
}

/// Gives a node two children; returns whether it was found.
fn split(node: &mut Value, id: &str, iteration: &str, depth: usize) -> bool {
    if node["id"] == id {
        if depth >= DEPTH_MAX {
            return false;
        }
        let children = (1..=2).map(|order| new_node(&format!("{id}.{iteration}.{order}"), order));
        node["children"] = children.collect();
        return true;
    }
    let children = node["children"].as_array_mut().into_iter().flatten();
    children.into_iter().any(|child| split(child, id, iteration, depth + 1))
}

fn new_node(id: &str, order: usize) -> Value {
    json!({
        "id": id, "order": order, "title": id, "goal": id, "acceptance": [],
        "passes": false, "attempts": 0, "max_attempts": 1000, "children": []
    })
}
