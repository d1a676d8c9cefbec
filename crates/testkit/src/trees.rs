//! Generates valid trees of any size in canonical form, without the code under test.

/// The number of children of a parent.
const FAN_OUT: usize = 8;

/// The canonical bytes of a tree with `nodes` nodes (at least one): eight children per parent, realistic texts, some nodes
/// passed. The same number gives the same bytes.
pub fn good_tree(nodes: usize) -> Vec<u8> {
    let mut tree = TreeWriter { out: String::with_capacity(nodes * 640), passes: passes(nodes) };
    tree.out.push_str("{\n  \"version\": 1,\n  \"root\": ");
    tree.node(0, 0, 1);
    tree.out.push_str("\n}\n");
    tree.out.into_bytes()
}

/// The children's numbers: nodes are numbered level by level.
fn children(nth: usize, nodes: usize) -> std::ops::Range<usize> {
    let first = nth * FAN_OUT + 1;
    first.min(nodes)..(first + FAN_OUT).min(nodes)
}

/// Which nodes pass: leaves by their number, parents when all their children do.
fn passes(nodes: usize) -> Vec<bool> {
    let mut passes = vec![false; nodes];
    for nth in (0..nodes).rev() {
        let child_range = children(nth, nodes);
        let pass = if child_range.is_empty() {
            nth % 16 < 11
        } else {
            passes.get(child_range).is_some_and(|passes| passes.iter().all(|pass| *pass))
        };
        if let Some(slot) = passes.get_mut(nth) {
            *slot = pass;
        }
    }
    passes
}

const TITLES: [&str; 5] = [
    "Read the configuration file",
    "Refuse a request without a token",
    "Draw the table on a narrow screen",
    "Schlüssel prüfen – auch leere",
    "Print \\\"done\\\" only once",
];
const GOALS: [&str; 4] = [
    "The command ends with exit code 2 and names the line.",
    "Old sessions continue to work;\\nnew ones need the second factor.",
    "Every row is at most 80 columns wide.",
    "It also holds for C:\\\\temp.",
];
const CRITERIA: [&str; 3] = ["a test covers it", "the manual describes it", "no warning remains"];

struct TreeWriter {
    out: String,
    passes: Vec<bool>,
}

impl TreeWriter {
    fn node(&mut self, nth: usize, order: usize, level: usize) {
        let text = |texts: &[&'static str]| texts.get(nth % texts.len()).copied().unwrap_or_default();
        let pass = self.passes.get(nth).copied().unwrap_or_default();
        self.out.push('{');
        self.field(level, "id", &format!("\"task-{nth}\""), ",");
        self.field(level, "order", &order.to_string(), ",");
        self.field(level, "title", &format!("\"{} ({nth})\"", text(&TITLES)), ",");
        self.field(level, "goal", &format!("\"{}\"", text(&GOALS)), ",");
        self.acceptance(nth, level);
        self.field(level, "passes", if pass { "true" } else { "false" }, ",");
        self.field(level, "attempts", &(nth % 3).to_string(), ",");
        self.field(level, "max_attempts", "3", ",");
        self.children(nth, level);
        self.line(4 * level - 2, "}");
    }

    fn acceptance(&mut self, nth: usize, level: usize) {
        let criteria = CRITERIA.get(..nth % 3).unwrap_or_default();
        if criteria.is_empty() {
            return self.field(level, "acceptance", "[]", ",");
        }
        self.field(level, "acceptance", "[", "");
        for (index, criterion) in criteria.iter().enumerate() {
            let comma = if index + 1 < criteria.len() { "," } else { "" };
            self.line(4 * level + 2, &format!("\"{criterion}\"{comma}"));
        }
        self.line(4 * level, "],");
    }

    fn children(&mut self, nth: usize, level: usize) {
        let child_range = children(nth, self.passes.len());
        if child_range.is_empty() {
            return self.field(level, "children", "[]", "");
        }
        self.field(level, "children", "[", "");
        for (order, child) in child_range.clone().enumerate() {
            self.line(4 * level + 2, "");
            self.node(child, order, level + 1);
            if child + 1 < child_range.end {
                self.out.push(',');
            }
        }
        self.line(4 * level, "]");
    }

    fn field(&mut self, level: usize, name: &str, value: &str, comma: &str) {
        self.line(4 * level, &format!("\"{name}\": {value}{comma}"));
    }

    fn line(&mut self, indent: usize, text: &str) {
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n(' ', indent));
        self.out.push_str(text);
    }
}
