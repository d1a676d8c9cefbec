//! Invalid trees, each with the problems that must be reported for it.
//!
//! The decoder refuses every entry, and `runner validate` exits with 2.

mod bulk;
mod fields;
mod rules;
mod text;

pub struct BadTree {
    pub name: &'static str,
    pub bytes: Vec<u8>,
    /// One text for each problem, in the order of the report: the problem's message must contain it.
    pub expect: Vec<&'static str>,
}

pub fn bad_trees() -> Vec<BadTree> {
    [text::entries(), fields::entries(), rules::entries(), bulk::entries()].into_iter().flatten().collect()
}

fn bad(name: &'static str, document: impl Into<Vec<u8>>, expect: &[&'static str]) -> BadTree {
    BadTree { name, bytes: document.into(), expect: expect.to_vec() }
}

const VALID_FIELDS: [(&str, &str); 9] = [
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

/// A valid leaf except for these fields; values are JSON text.
fn node(changes: &[(&str, &str)]) -> String {
    let field_text = |(field, valid)| {
        let change = changes.iter().find(|(changed, _)| *changed == field);
        format!("\"{field}\": {}", change.map_or(valid, |(_, value)| *value))
    };
    format!("{{{}}}", VALID_FIELDS.map(field_text).join(", "))
}

/// A valid leaf with this id and order.
fn leaf(id: &str, order: i64) -> String {
    node(&[("id", &format!("\"{id}\"")), ("order", &order.to_string())])
}

fn parent(id: &str, children: &[String]) -> String {
    node(&[("id", &format!("\"{id}\"")), ("children", &format!("[{}]", children.join(", ")))])
}

fn document(root: &str) -> String {
    format!("{{\"version\": 1, \"root\": {root}}}\n")
}

/// A tree of one node that is valid except for these fields.
fn single_node(changes: &[(&str, &str)]) -> String {
    document(&node(changes))
}
