//! What a commit's message says, read strictly: the subject that makes it the runner's, and the trailers.

use serde::Serialize;

use crate::model::agent_output::AgentStatus;
use crate::model::id::{IterationNumber, NodeId, RunId};
use crate::model::run_state::GuardResult;

/// What a commit is, by its subject.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum CommitKind {
    /// `runner start` made it.
    Start { run_id: RunId },
    /// An iteration.
    Iteration {
        run_id: RunId,
        iter: IterationNumber,
        #[serde(flatten)]
        target: IterationTarget,
        status: AgentStatus,
        guard: GuardResult,
    },
    /// What the guard said before the first session.
    Baseline { run_id: RunId, guard: GuardResult },
    /// An edit of the user's, made by a command.
    Edit {
        run_id: RunId,
        /// The words behind `edit`: `node add login`.
        edit: String,
    },
    /// It begins like a commit of the runner's and goes on otherwise.
    Malformed { subject: String },
    /// The user's own.
    User { subject: String },
}

/// What an iteration was about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "target", content = "node", rename_all = "snake_case")]
pub enum IterationTarget {
    /// A node.
    Node(NodeId),
    /// A rejected tree.
    Repair,
}

const PREFIX: &str = "chore(loop): ";

/// What the commit with this message is.
pub fn kind(message: &[u8]) -> CommitKind {
    let text = String::from_utf8_lossy(message);
    let subject = text.lines().next().unwrap_or_default();
    let own = || CommitKind::User { subject: subject.to_owned() };
    let Some(rest) = subject.strip_prefix(PREFIX) else { return own() };
    let words: Vec<&str> = rest.split(' ').collect();
    match words.as_slice() {
        ["start", "run", run] => RunId::new(*run).ok().map(|run_id| CommitKind::Start { run_id }),
        ["run", run, "iter", iter, "node", node, status, guard] => {
            let target = NodeId::new(*node).ok().map(IterationTarget::Node);
            iteration(run, iter, target, status, guard)
        }
        ["run", run, "iter", iter, "repair", status, guard] => {
            iteration(run, iter, Some(IterationTarget::Repair), status, guard)
        }
        ["run", run, "baseline", guard] => {
            let guard = guard.strip_prefix("guard=").and_then(guard_result);
            RunId::new(*run).ok().zip(guard).map(|(run_id, guard)| CommitKind::Baseline { run_id, guard })
        }
        ["run", run, "edit", edit @ ..] if is_edit(edit) => {
            RunId::new(*run).ok().map(|run_id| CommitKind::Edit { run_id, edit: edit.join(" ") })
        }
        ["run" | "start", ..] => None,
        _ => return own(),
    }
    .unwrap_or_else(|| CommitKind::Malformed { subject: subject.to_owned() })
}

/// The words that name an edit; whether they are the right ones, its message says.
fn is_edit(words: &[&str]) -> bool {
    let verbs = ["add", "edit", "split", "remove", "move", "allow"];
    match words {
        ["node", verb, node] => verbs.contains(verb) && NodeId::new(*node).is_ok(),
        ["answer", number] => number.parse::<usize>().is_ok(),
        words => *words == ["note"],
    }
}

fn iteration(
    run: &str,
    iter: &str,
    target: Option<IterationTarget>,
    status: &str,
    guard: &str,
) -> Option<CommitKind> {
    let number: IterationNumber = iter.parse().ok()?;
    let statuses = [AgentStatus::Done, AgentStatus::Retry, AgentStatus::Decomposed];
    let (status, guard) = (status.strip_prefix("status=")?, guard.strip_prefix("guard=")?);
    Some(CommitKind::Iteration {
        run_id: RunId::new(run).ok()?,
        iter: (number.to_string() == iter).then_some(number)?,
        target: target?,
        status: statuses.into_iter().find(|known| known.as_str() == status)?,
        guard: guard_result(guard)?,
    })
}

fn guard_result(word: &str) -> Option<GuardResult> {
    let guards = [GuardResult::Pass, GuardResult::Fail, GuardResult::Skipped];
    guards.into_iter().find(|known| known.as_str() == word)
}

impl CommitKind {
    /// The iteration, if it is one.
    pub fn iter(&self) -> Option<IterationNumber> {
        match self {
            Self::Iteration { iter, .. } => Some(*iter),
            Self::Start { .. }
            | Self::Baseline { .. }
            | Self::Edit { .. }
            | Self::Malformed { .. }
            | Self::User { .. } => None,
        }
    }
}

/// A message in its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MessageParts<'m> {
    pub(super) subject: &'m str,
    pub(super) body: &'m str,
    pub(super) trailers: Vec<(&'m str, &'m str)>,
}

impl<'m> MessageParts<'m> {
    /// Subject, text, and the trailers that are its last paragraph.
    pub(super) fn of(message: &'m str) -> Self {
        let (subject, rest) = message.split_once('\n').unwrap_or((message, ""));
        let rest = rest.trim_end_matches('\n');
        let (body, last) = rest.rsplit_once("\n\n").unwrap_or(("", rest.trim_start_matches('\n')));
        let trailers: Option<Vec<(&str, &str)>> = last
            .lines()
            .map(|line| line.split_once(": ").filter(|(key, _)| key.starts_with("Runner-")))
            .collect();
        match trailers {
            Some(trailers) => Self { subject, body: body.trim_matches('\n'), trailers },
            None => Self { subject, body: rest.trim_matches('\n'), trailers: Vec::new() },
        }
    }

    /// The value of a trailer that is there once.
    pub(super) fn value(&self, key: &str) -> Option<&'m str> {
        self.trailers.iter().find(|(known, _)| *known == key).map(|(_, value)| *value)
    }

    /// The values of a trailer that may be there more than once.
    pub(super) fn values(&self, key: &str) -> impl Iterator<Item = &'m str> {
        self.trailers.iter().filter(move |(known, _)| *known == key).map(|(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_says_what_a_commit_is() {
        let word = |message: &str| serde_json::to_value(kind(message.as_bytes())).unwrap()["kind"].clone();
        assert_eq!(word("chore(loop): start run a\n"), "start");
        for good in [
            "chore(loop): run a iter 0001 node b status=done guard=pass\n\nx\n",
            "chore(loop): run a iter 12345 repair status=retry guard=skipped",
        ] {
            assert_eq!(word(good), "iteration", "{good}");
        }
        assert_eq!(word("chore(loop): run a baseline guard=fail\n"), "baseline");
        assert_eq!(word("chore(loop): run a baseline guard=red\n"), "malformed");
        for good in ["node add b", "node allow b.c", "answer 12", "note"] {
            assert_eq!(word(&format!("chore(loop): run a edit {good}\n")), "edit", "{good}");
        }
        for bad in [
            "chore(loop): run a edit",
            "chore(loop): run a edit node pass b",
            "chore(loop): run a edit answer x",
            "chore(loop): run a iter 1 node b status=done guard=pass",
            "chore(loop): run a iter 0001 node b status=done guard=green",
            "chore(loop): run a iter 0001 node b status=done guard=pass ",
            "chore(loop): run a iter 0000 repair status=done guard=pass",
            "chore(loop): start run a b",
        ] {
            assert_eq!(word(bad), "malformed", "{bad}");
        }
        for own in ["fix: it", "", "chore(loop): tidy", " chore(loop): start run a"] {
            assert_eq!(word(own), "user", "{own}");
        }
    }

    #[test]
    fn the_last_paragraph_is_the_trailers() {
        let parts = MessageParts::of("s\n\n  a\n\n  Runner-X: 1\n\nRunner-A: 1\nRunner-B: 2\n");
        assert_eq!((parts.subject, parts.body), ("s", "  a\n\n  Runner-X: 1"));
        assert_eq!(parts.trailers, [("Runner-A", "1"), ("Runner-B", "2")]);
        assert_eq!(MessageParts::of("s\n\nRunner-A: 1\n").trailers, [("Runner-A", "1")]);
        assert_eq!(
            MessageParts::of("s\n\nwords\n"),
            MessageParts { subject: "s", body: "words", trailers: Vec::new() }
        );
    }
}
