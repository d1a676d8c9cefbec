//! Writes checks.toml: appends a check, or removes one.

use super::{Check, CheckName, RedRule, decode};

/// checks.toml with a check added at its end.
pub fn with_check(toml: &str, check: &Check) -> String {
    let before = toml.trim_end();
    let gap = if before.is_empty() { "" } else { "\n\n" };
    format!("{before}{gap}{}", block(check))
}

/// checks.toml without a check; empty if it was the only one, and `None` if there is no such check.
pub fn without_check(toml: &[u8], name: &CheckName) -> Option<String> {
    let checks = decode(toml).ok()?;
    let kept: Vec<String> = checks.iter().filter(|check| check.name != *name).map(block).collect();
    (kept.len() < checks.len()).then(|| kept.join("\n"))
}

fn block(check: &Check) -> String {
    // A JSON text is a TOML text too.
    let text = |value: &str| serde_json::Value::from(value).to_string();
    let command: Vec<String> = check.command.words().iter().map(|word| text(word)).collect();
    let mut block =
        format!("[[check]]\nname = {}\ncommand = [{}]\n", text(check.name.as_str()), command.join(", "));
    if !check.covers.is_empty() {
        let points: Vec<String> = check.covers.iter().map(|point| point.get().to_string()).collect();
        block.push_str(&format!("covers = [{}]\n", points.join(", ")));
    }
    if !check.files.is_empty() {
        let pair = |(to, from): (&super::CheckPath, &super::CheckFileName)| {
            format!("{} = {}", text(to.as_str()), text(from.as_str()))
        };
        let files: Vec<String> = check.files.iter().map(pair).collect();
        block.push_str(&format!("files = {{ {} }}\n", files.join(", ")));
    }
    block.push_str(&format!("timeout_secs = {}\n", check.timeout_secs.get()));
    if check.red == RedRule::Any {
        block.push_str("red = \"any\"\n");
    }
    if let Some(junit) = &check.junit {
        block.push_str(&format!("junit = {}\n", text(junit.as_str())));
    }
    block
}
