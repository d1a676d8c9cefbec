//! What a trial's agent was told, said and did, from the folders of its iterations.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::iterations;
use crate::result::stored_trial::StoredTrial;

/// No more of a file is taken into a report.
const BYTES_MAX: u64 = 16_000_000;

/// One session.
pub(crate) struct TranscriptSession {
    /// What the agent was told.
    pub(crate) prompt: String,
    /// What it did, in order.
    pub(crate) acts: Vec<AgentAction>,
    /// Its answer, as it gave it.
    pub(crate) answer: String,
    /// What came of it, in a line.
    pub(crate) outcome: String,
    /// Tokens and cost, as `meta.json` has them.
    pub(crate) usage: Value,
}

/// Something that an agent did.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum AgentAction {
    Said(String),
    Thought(String),
    Called { name: String, input: Value, output: Option<String> },
}

/// The sessions of a trial, in order.
pub(crate) fn sessions(trial: &StoredTrial) -> Vec<TranscriptSession> {
    iterations(&trial.folder).iter().map(|folder| session(folder)).collect()
}

/// What the whole trial was about: the goal of its tree.
pub(crate) fn goal(trial: &StoredTrial) -> Option<String> {
    let tree: Value = serde_json::from_str(&text(&trial.folder.join("tree.json"))?).ok()?;
    tree.pointer("/root/goal").and_then(Value::as_str).map(str::to_owned)
}

fn session(folder: &Path) -> TranscriptSession {
    let meta: Value =
        text(&folder.join("meta.json")).and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let word = |key: &str| meta.get(key).and_then(Value::as_str).unwrap_or("unknown");
    TranscriptSession {
        prompt: text(&folder.join("prompt.md")).unwrap_or_default(),
        acts: acts(&text(&folder.join("events.jsonl")).unwrap_or_default()),
        answer: text(&folder.join("output.json")).unwrap_or_default(),
        outcome: format!("outcome: {}; guard: {}", word("outcome"), word("guard")),
        usage: meta.get("usage").cloned().unwrap_or_default(),
    }
}

/// A file as text, if it is a file and not a link that an agent put there.
fn text(path: &Path) -> Option<String> {
    let found = fs::symlink_metadata(path).ok()?;
    let fits = found.is_file() && found.len() <= BYTES_MAX;
    fits.then(|| fs::read(path).ok()).flatten().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// The acts in a list of events. A later event about the same thing takes the place of the earlier one.
fn acts(events: &str) -> Vec<AgentAction> {
    let (mut acts, mut places): (Vec<AgentAction>, BTreeMap<String, usize>) = (Vec::new(), BTreeMap::new());
    for event in events.lines().filter_map(|line| serde_json::from_str::<Map<String, Value>>(line).ok()) {
        if event.get("event").and_then(Value::as_str) != Some("agent") {
            continue;
        }
        let Some(act) = act(&event) else { continue };
        let id = event.get("id").and_then(Value::as_str);
        match id.and_then(|id| places.get(id)).and_then(|at| acts.get_mut(*at)) {
            Some(earlier) => *earlier = act,
            None => {
                places.extend(id.map(|id| (id.to_owned(), acts.len())));
                acts.push(act);
            }
        }
    }
    acts
}

fn act(event: &Map<String, Value>) -> Option<AgentAction> {
    let word = |key: &str| event.get(key).and_then(Value::as_str).map(str::to_owned);
    let kind = word("kind")?;
    let called = |name: String, key: &str| {
        let input = json!({ key: event.get(key).cloned().unwrap_or_default() });
        Some(AgentAction::Called { name, input, output: word("output") })
    };
    match kind.as_str() {
        "message" => word("text").map(AgentAction::Said),
        "reasoning" => word("text").map(AgentAction::Thought),
        "command" => called(kind, "command"),
        "edit" => called(kind, "files"),
        "read" => called(kind, "path"),
        "search" | "web" => called(kind, "query"),
        "tool" => called(word("name")?, "input"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_ended_takes_the_place_of_the_one_that_began() {
        let events = r#"{"event":"planned","iter":1}
{"event":"agent","iter":1,"seq":1,"kind":"message","text":"hello"}
{"event":"agent","iter":1,"seq":2,"id":"c","kind":"command","command":"ls","state":"running","exit":null,"output":""}
{"event":"agent","iter":1,"seq":3,"kind":"reasoning","text":"hm"}
{"event":"agent","iter":1,"seq":4,"id":"c","kind":"command","command":"ls","state":"done","exit":0,"output":"a"}
not json
"#;
        let command = AgentAction::Called {
            name: "command".into(),
            input: json!({ "command": "ls" }),
            output: Some("a".into()),
        };
        assert_eq!(
            acts(events),
            [AgentAction::Said("hello".into()), command, AgentAction::Thought("hm".into())]
        );
    }
}
