//! Trees that are wrong, each in its own way, with what must be said about it.
//!
//! Every entry is refused by the decoder and makes the command exit with 2.

mod bulk;
mod fields;
mod rules;
mod text;

/// A document that is no tree.
pub struct BadTree {
    /// What is wrong with it.
    pub name: &'static str,
    /// The document.
    pub bytes: Vec<u8>,
    /// One entry for each problem that must be reported, in that order: words that it must contain.
    pub expect: Vec<&'static str>,
}

/// All of them.
pub fn bad_trees() -> Vec<BadTree> {
    [text::entries(), fields::entries(), rules::entries(), bulk::entries()].into_iter().flatten().collect()
}

fn bad(name: &'static str, document: impl Into<Vec<u8>>, expect: &[&'static str]) -> BadTree {
    BadTree { name, bytes: document.into(), expect: expect.to_vec() }
}

const GOOD: [(&str, &str); 9] = [
    ("id", "\"root\""),
    ("order", "0"),
    ("title", "\"T\""),
    ("goal", "\"G\""),
    ("acceptance", "[]"),
    ("passes", "false"),
    ("attempts", "0"),
    ("max_attempts", "3"),
    ("children", "[]"),
];

/// A good leaf but for these fields; values are written as JSON.
fn node(changes: &[(&str, &str)]) -> String {
    let value = |(field, usual)| {
        let change = changes.iter().find(|(changed, _)| *changed == field);
        format!("\"{field}\": {}", change.map_or(usual, |(_, value)| *value))
    };
    format!("{{{}}}", GOOD.map(value).join(", "))
}

/// A good leaf with this id and order.
fn leaf(id: &str, order: i64) -> String {
    node(&[("id", &format!("\"{id}\"")), ("order", &order.to_string())])
}

/// A node with these children.
fn parent(id: &str, children: &[String]) -> String {
    node(&[("id", &format!("\"{id}\"")), ("children", &format!("[{}]", children.join(", ")))])
}

fn document(root: &str) -> String {
    format!("{{\"version\": 1, \"root\": {root}}}\n")
}

/// A tree of one node that is good but for these fields.
fn alone(changes: &[(&str, &str)]) -> String {
    document(&node(changes))
}
