//! Where two things that should be the same differ, in the words of a rule.

use serde_json::Value;

use super::record::MessageParts;
use super::rule::Rule;
use crate::model::run_state::RunState;
use crate::model::tree::index::NodeIndex;
use crate::model::tree::{Node, Tree};
use crate::runs::edit;
use crate::step::Violation;
use crate::text::{head, one_line};

/// A rule that does not hold, with what it asks for and what is there.
pub(super) type Difference = (Rule, String, String);

/// How much of a value is shown.
const SHOWN_BYTES_MAX: usize = 200;

/// A value for people: one line, not too long.
pub(super) fn shown(text: &str) -> String {
    let line = one_line(text);
    let short = head(&line, SHOWN_BYTES_MAX);
    if short.len() < line.len() { format!("{short}…") } else { line }
}

/// The first difference between two trees, by node.
pub(super) fn trees(before: &Tree, expected: &Tree, found: &Tree) -> Option<Difference> {
    if expected == found {
        return None;
    }
    let (old, want, have) =
        (NodeIndex::of(before.root()), NodeIndex::of(expected.root()), NodeIndex::of(found.root()));
    let passed = |id| old.get(id).is_some_and(|place| place.node.passes);
    let restored = |id| if passed(id) { Rule::PassedChanged } else { Rule::TreeRestored };
    for place in want.iter() {
        let id = &place.node.id;
        let path = want.path(id);
        let Some(is) = have.get(id) else {
            return Some((restored(id), format!("node {path}"), "no such node".to_owned()));
        };
        if let Some((field, expected, found)) = first_field(place.node, is.node) {
            let rule = match field {
                "passes" => Rule::Passes,
                "attempts" => Rule::Attempts,
                "max_attempts" => Rule::MaxAttempts,
                _ => restored(id),
            };
            let told = |value: String| format!("{path}: {field} {}", shown(&value));
            return Some((rule, told(expected), told(found)));
        }
        if is.parent != place.parent {
            return Some((restored(id), format!("node at {path}"), format!("node at {}", have.path(id))));
        }
    }
    let new = have.iter().find(|is| want.get(&is.node.id).is_none());
    let new = new.map(|is| have.path(&is.node.id)).unwrap_or_default();
    Some((Rule::TreeRestored, "no such node".to_owned(), format!("node {new}")))
}

fn first_field(expected: &Node, found: &Node) -> Option<(&'static str, String, String)> {
    let fields = [
        ("passes", expected.passes.to_string(), found.passes.to_string()),
        ("attempts", expected.attempts.to_string(), found.attempts.to_string()),
        ("max_attempts", expected.max_attempts.to_string(), found.max_attempts.to_string()),
        ("order", expected.order.to_string(), found.order.to_string()),
        ("title", expected.title.clone(), found.title.clone()),
        ("goal", expected.goal.clone(), found.goal.clone()),
        ("acceptance", expected.acceptance.join("; "), found.acceptance.join("; ")),
    ];
    fields.into_iter().find(|(_, expected, found)| expected != found)
}

/// The first key in which two states differ.
pub(super) fn states(expected: &RunState, found: &RunState) -> Option<Difference> {
    if expected == found {
        return None;
    }
    let value = |state: &RunState| serde_json::to_value(state).unwrap_or_default();
    let (expected, found) = (value(expected), value(found));
    let keys = [&expected, &found].into_iter().filter_map(Value::as_object).flatten().map(|(key, _)| key);
    let key = keys.into_iter().find(|key| expected.get(key) != found.get(key))?;
    let told =
        |value: &Value| format!("{key} {}", shown(&value.get(key).unwrap_or(&Value::Null).to_string()));
    Some((Rule::RunState, told(&expected), told(&found)))
}

/// Every difference between two messages. `edition` says whether the prompt can be derived here.
pub(super) fn messages(expected: &str, found: &str, prompt_is_known: bool) -> Vec<Difference> {
    if expected == found {
        return Vec::new();
    }
    let (want, have) = (MessageParts::of(expected), MessageParts::of(found));
    let mut differences = subjects(want.subject, have.subject);
    for (key, rule) in TRAILERS {
        if !prompt_is_known && matches!(key, "Runner-Prompt" | "Runner-Prompt-Edition") {
            continue;
        }
        let of = |parts: &MessageParts<'_>| parts.values(key).collect::<Vec<_>>().join(", ");
        let (want, have) = (of(&want), of(&have));
        if want != have {
            let told =
                |value: &str| if value.is_empty() { format!("no {key}") } else { format!("{key}: {value}") };
            differences.push((rule, told(&want), told(&have)));
        }
    }
    if want.body != have.body {
        differences.push((Rule::Message, shown(want.body), shown(have.body)));
    }
    let keys = |parts: &MessageParts<'_>| {
        parts.trailers.iter().map(|(key, _)| (*key).to_owned()).collect::<Vec<_>>()
    };
    if differences.is_empty() && (prompt_is_known || keys(&want) != keys(&have)) {
        let told = |parts: &MessageParts<'_>| format!("trailers {}", keys(parts).join(", "));
        let same = keys(&want) == keys(&have);
        let found = if same { "the same with other white space".to_owned() } else { told(&have) };
        differences.push((Rule::Message, told(&want), found));
    }
    differences
}

/// The trailers of a message, each with its rule.
const TRAILERS: [(&str, Rule); 13] = [
    (edit::EDIT, Rule::Message),
    ("Runner-Outcome", Rule::Outcome),
    ("Runner-Attempt", Rule::Charge),
    ("Runner-Prompt", Rule::Prompt),
    ("Runner-Prompt-Edition", Rule::Prompt),
    ("Runner-Tree", Rule::TreeDigest),
    ("Runner-State", Rule::StateDigest),
    ("Runner-Guard-Exit", Rule::GuardExit),
    ("Runner-Semantics", Rule::Semantics),
    ("Runner-Taken-In", Rule::ForeignCommit),
    ("Runner-Guard-Mark", Rule::Annotations),
    ("Runner-Plan-Mark", Rule::Annotations),
    ("Runner-Work-Mark", Rule::Annotations),
];

/// The words of two subjects of iterations differ in status or guard; the rest was compared before.
fn subjects(expected: &str, found: &str) -> Vec<Difference> {
    let words = expected.split(' ').zip(found.split(' '));
    words
        .filter(|(expected, found)| expected != found)
        .map(|(expected, found)| {
            let rule = match expected.split_once('=') {
                Some(("status", _)) => Rule::Status,
                Some(("guard", _)) => Rule::Guard,
                _ => Rule::Message,
            };
            (rule, expected.to_owned(), found.to_owned())
        })
        .collect()
}

/// A rule for agents that a committed plan breaks.
pub(super) fn violation(violation: &Violation) -> Difference {
    let rule = match violation {
        Violation::PassedRemoved { .. }
        | Violation::PassedMoved { .. }
        | Violation::PassedChanged { .. }
        | Violation::PassedGained { .. } => Rule::PassedChanged,
        Violation::Protected { .. } => Rule::ProtectedFile,
        Violation::OpenRemoved { .. }
        | Violation::RootReplaced { .. }
        | Violation::SelectedRemoved { .. }
        | Violation::Gained { .. }
        | Violation::NotGained { .. }
        | Violation::Told { .. } => Rule::PlanEdit,
    };
    (rule, "a plan that the rules for agents allow".to_owned(), shown(&violation.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_is_shown_by_its_beginning() {
        let full = "x".repeat(SHOWN_BYTES_MAX);
        assert_eq!(shown(&full), full);
        assert_eq!(shown(&format!("{full}y")), format!("{full}…"));
    }

    #[test]
    fn messages_of_the_same_words_differ_only_where_every_byte_is_known() {
        let message = "chore(loop): x\n\nRunner-Outcome: retry\nRunner-Attempt: free\n";
        let (spaced, turned) =
            (format!("{message}\n"), "chore(loop): x\n\nRunner-Attempt: free\nRunner-Outcome: retry\n");
        assert_eq!(messages(message, message, true), []);
        let found = |text: &str, is_known| {
            let found = messages(message, text, is_known);
            found.into_iter().map(|(rule, _, found)| (rule, found)).collect::<Vec<_>>()
        };
        let other_space = "the same with other white space".to_owned();
        assert_eq!(found(&spaced, true), [(Rule::Message, other_space)]);
        assert_eq!(found(&spaced, false), []);
        for is_known in [true, false] {
            let order = "trailers Runner-Attempt, Runner-Outcome".to_owned();
            assert_eq!(found(turned, is_known), [(Rule::Message, order)]);
        }
    }
}
