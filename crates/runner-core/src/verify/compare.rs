//! Compares expected and actual trees, states and messages, and names the rule that a difference violates.

use serde_json::Value;

use super::rule::Rule;
use crate::commit_message::{MessageParts, Trailer};
use crate::model::run_state::RunState;
use crate::model::tree::index::NodeIndex;
use crate::model::tree::{Node, Tree};
use crate::step::Violation;
use crate::text::{head, one_line};

/// A violated rule, with what it requires and what the commit holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) rule: Rule,
    pub(super) expected: String,
    pub(super) found: String,
}

impl Difference {
    pub(super) fn new(rule: Rule, expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self { rule, expected: expected.into(), found: found.into() }
    }
}

/// The most bytes of a value in a report.
const SHOWN_BYTES_MAX: usize = 200;

/// A value for a report: one line, shortened.
pub(super) fn shown(text: &str) -> String {
    let line = one_line(text);
    let short = head(&line, SHOWN_BYTES_MAX);
    if short.len() < line.len() { format!("{short}…") } else { line }
}

/// The first difference between two trees, in the order of the nodes.
pub(super) fn trees(before: &Tree, expected: &Tree, found: &Tree) -> Option<Difference> {
    if expected == found {
        return None;
    }
    let before = NodeIndex::of(before.root());
    let wanted = NodeIndex::of(expected.root());
    let actual = NodeIndex::of(found.root());
    let unchanged_rule = |id| {
        let had_passed = before.get(id).is_some_and(|entry| entry.node.passes);
        if had_passed { Rule::PassedChanged } else { Rule::TreeRestored }
    };
    for entry in wanted.iter() {
        let id = &entry.node.id;
        let path = wanted.path(id);
        let Some(is) = actual.get(id) else {
            return Some(Difference::new(unchanged_rule(id), format!("node {path}"), "no such node"));
        };
        if let Some(field) = first_changed_field(entry.node, is.node) {
            let rule = match field.name {
                "passes" => Rule::Passes,
                "attempts" => Rule::Attempts,
                "max_attempts" => Rule::MaxAttempts,
                _ => unchanged_rule(id),
            };
            let value = |value: &str| format!("{path}: {} {}", field.name, shown(value));
            return Some(Difference::new(rule, value(&field.expected), value(&field.found)));
        }
        if is.parent != entry.parent {
            let found = format!("node at {}", actual.path(id));
            return Some(Difference::new(unchanged_rule(id), format!("node at {path}"), found));
        }
    }
    let added = actual.iter().find(|is| wanted.get(&is.node.id).is_none());
    let added = added.map(|is| actual.path(&is.node.id)).unwrap_or_default();
    Some(Difference::new(Rule::TreeRestored, "no such node", format!("node {added}")))
}

/// A field in which two nodes differ.
struct ChangedField {
    name: &'static str,
    expected: String,
    found: String,
}

fn first_changed_field(expected: &Node, found: &Node) -> Option<ChangedField> {
    let field = |name, expected: String, found: String| ChangedField { name, expected, found };
    let fields = [
        field("passes", expected.passes.to_string(), found.passes.to_string()),
        field("attempts", expected.attempts.to_string(), found.attempts.to_string()),
        field("max_attempts", expected.max_attempts.to_string(), found.max_attempts.to_string()),
        field("order", expected.order.to_string(), found.order.to_string()),
        field("title", expected.title.clone(), found.title.clone()),
        field("goal", expected.goal.clone(), found.goal.clone()),
        field("acceptance", expected.acceptance.join("; "), found.acceptance.join("; ")),
    ];
    fields.into_iter().find(|field| field.expected != field.found)
}

/// The first key in which two states differ.
pub(super) fn states(expected: &RunState, found: &RunState) -> Option<Difference> {
    if expected == found {
        return None;
    }
    let expected = serde_json::to_value(expected).unwrap_or_default();
    let found = serde_json::to_value(found).unwrap_or_default();
    let keys = [&expected, &found].into_iter().filter_map(Value::as_object).flatten().map(|(key, _)| key);
    let key = keys.into_iter().find(|key| expected.get(key) != found.get(key))?;
    let value = |state: &Value| {
        let value = state.get(key).unwrap_or(&Value::Null);
        format!("{key} {}", shown(&value.to_string()))
    };
    let rule = match key.as_str() {
        "plan_approval" => Rule::Approval,
        "heldout" => Rule::HeldoutFrozen,
        "environment" => Rule::Environment,
        _ => Rule::RunState,
    };
    Some(Difference::new(rule, value(&expected), value(&found)))
}

/// Whether this version can derive the prompt of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PromptCheck {
    /// The commit names this version's templates.
    Derivable,
    /// The prompt was made from templates that this version does not have.
    OtherTemplates,
}

/// Every difference between two messages.
pub(super) fn messages(expected: &str, found: &str, prompt: PromptCheck) -> Vec<Difference> {
    if expected == found {
        return Vec::new();
    }
    let wanted = MessageParts::parse(expected);
    let actual = MessageParts::parse(found);
    let mut differences = subjects(wanted.subject, actual.subject);
    for trailer in Trailer::ALL {
        let is_of_prompt = matches!(trailer, Trailer::Prompt | Trailer::PromptVersion);
        if is_of_prompt && prompt == PromptCheck::OtherTemplates {
            continue;
        }
        let values = |parts: &MessageParts<'_>| parts.values(trailer).collect::<Vec<_>>().join(", ");
        let wanted = values(&wanted);
        let actual = values(&actual);
        if wanted != actual {
            let line = |value: &str| match value {
                "" => format!("no {trailer}"),
                value => format!("{trailer}: {value}"),
            };
            differences.push(Difference::new(rule_of(trailer), line(&wanted), line(&actual)));
        }
    }
    if wanted.body != actual.body {
        differences.push(Difference::new(Rule::Message, shown(wanted.body), shown(actual.body)));
    }
    let keys = |parts: &MessageParts<'_>| {
        let keys: Vec<&str> = parts.trailers.iter().map(|(key, _)| *key).collect();
        format!("trailers {}", keys.join(", "))
    };
    let has_same_keys = keys(&wanted) == keys(&actual);
    if differences.is_empty() && (prompt == PromptCheck::Derivable || !has_same_keys) {
        let found = if has_same_keys { "the same with other white space".to_owned() } else { keys(&actual) };
        differences.push(Difference::new(Rule::Message, keys(&wanted), found));
    }
    differences
}

/// The rule that a wrong trailer violates.
fn rule_of(trailer: Trailer) -> Rule {
    match trailer {
        Trailer::Edit | Trailer::Fork | Trailer::PlanImport | Trailer::Base => Rule::Message,
        Trailer::Outcome => Rule::Outcome,
        Trailer::Attempt => Rule::Charge,
        Trailer::Prompt | Trailer::PromptVersion => Rule::Prompt,
        Trailer::Tree => Rule::TreeDigest,
        Trailer::State => Rule::StateDigest,
        Trailer::GuardExit => Rule::GuardExit,
        Trailer::Room => Rule::Room,
        Trailer::Candidate => Rule::Candidate,
        Trailer::Check => Rule::Checks,
        Trailer::Red => Rule::ChecksRed,
        Trailer::Heldout => Rule::Heldout,
        Trailer::Recheck => Rule::Recheck,
        Trailer::Review => Rule::Review,
        Trailer::Semantics => Rule::Semantics,
        Trailer::UserCommits => Rule::ForeignCommit,
        Trailer::Annotation => Rule::Annotations,
    }
}

/// The words in which two subjects of iterations differ; all but status and guard were compared before.
fn subjects(expected: &str, found: &str) -> Vec<Difference> {
    let mut differences = Vec::new();
    for (expected, found) in expected.split(' ').zip(found.split(' ')) {
        if expected == found {
            continue;
        }
        let rule = match expected.split_once('=') {
            Some(("status", _)) => Rule::Status,
            Some(("guard", _)) => Rule::Guard,
            Some(("checks", _)) => Rule::Recheck,
            _ => Rule::Message,
        };
        differences.push(Difference::new(rule, expected, found));
    }
    differences
}

/// A rule for agents that a committed plan violates.
pub(super) fn violation(violation: &Violation) -> Difference {
    let rule = match violation {
        Violation::PassedRemoved { .. }
        | Violation::PassedMoved { .. }
        | Violation::PassedChanged { .. }
        | Violation::PassedGained { .. } => Rule::PassedChanged,
        Violation::Protected { .. } => Rule::ProtectedFile,
        Violation::InvalidChecks { .. } => Rule::ChecksInvalid,
        Violation::TooManyQuestions { .. } | Violation::MissingQuestions => Rule::PlanScope,
        Violation::OpenRemoved { .. }
        | Violation::RootReplaced { .. }
        | Violation::SelectedRemoved { .. }
        | Violation::UnexpectedChildren { .. }
        | Violation::MissingChildren { .. }
        | Violation::TooDeep { .. }
        | Violation::TooManyChildren { .. }
        | Violation::TooManyNodes { .. } => Rule::PlanEdit,
    };
    Difference::new(rule, "a plan that violates no rule for agents", shown(&violation.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_value_is_shortened() {
        let full = "x".repeat(SHOWN_BYTES_MAX);
        assert_eq!(shown(&full), full);
        assert_eq!(shown(&format!("{full}y")), format!("{full}…"));
    }

    #[test]
    fn white_space_counts_only_where_every_byte_can_be_derived() {
        let message = "chore(loop): x\n\nRunner-Outcome: retry\nRunner-Attempt: free\n";
        let spaced = format!("{message}\n");
        let reordered = "chore(loop): x\n\nRunner-Attempt: free\nRunner-Outcome: retry\n";
        assert_eq!(messages(message, message, PromptCheck::Derivable), []);
        let found = |text: &str, prompt| {
            let found = messages(message, text, prompt);
            found.into_iter().map(|difference| (difference.rule, difference.found)).collect::<Vec<_>>()
        };
        let other_space = "the same with other white space".to_owned();
        assert_eq!(found(&spaced, PromptCheck::Derivable), [(Rule::Message, other_space)]);
        assert_eq!(found(&spaced, PromptCheck::OtherTemplates), []);
        for prompt in [PromptCheck::Derivable, PromptCheck::OtherTemplates] {
            let order = "trailers Runner-Attempt, Runner-Outcome".to_owned();
            assert_eq!(found(reordered, prompt), [(Rule::Message, order)]);
        }
    }
}
