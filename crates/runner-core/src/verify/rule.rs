//! The rules, by name.

use std::fmt;

use serde::Serialize;

/// One rule that every history of a run keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    StartMissing,
    StartScope,
    Parents,
    Message,
    Identity,
    Numbering,
    Selection,
    Stopped,
    Status,
    Guard,
    Outcome,
    Charge,
    Prompt,
    GuardExit,
    Semantics,
    Annotations,
    TreeDigest,
    StateDigest,
    TreeInvalid,
    TreeCanonical,
    Passes,
    PassedChanged,
    Attempts,
    MaxAttempts,
    PlanEdit,
    TreeRestored,
    RunStateInvalid,
    RunStateCanonical,
    RunState,
    PinnedFile,
    ProtectedFile,
    ConfigInvalid,
    EditScope,
    Baseline,
    ForeignCommit,
}

impl Rule {
    /// All of them.
    pub const ALL: [Self; 35] = [
        Self::StartMissing,
        Self::StartScope,
        Self::Parents,
        Self::Message,
        Self::Identity,
        Self::Numbering,
        Self::Selection,
        Self::Stopped,
        Self::Status,
        Self::Guard,
        Self::Outcome,
        Self::Charge,
        Self::Prompt,
        Self::GuardExit,
        Self::Semantics,
        Self::Annotations,
        Self::TreeDigest,
        Self::StateDigest,
        Self::TreeInvalid,
        Self::TreeCanonical,
        Self::Passes,
        Self::PassedChanged,
        Self::Attempts,
        Self::MaxAttempts,
        Self::PlanEdit,
        Self::TreeRestored,
        Self::RunStateInvalid,
        Self::RunStateCanonical,
        Self::RunState,
        Self::PinnedFile,
        Self::ProtectedFile,
        Self::ConfigInvalid,
        Self::EditScope,
        Self::Baseline,
        Self::ForeignCommit,
    ];

    /// The rule's name.
    pub fn as_str(self) -> &'static str {
        self.told().0
    }

    /// The rule in words.
    pub fn description(self) -> &'static str {
        self.told().1
    }

    fn told(self) -> (&'static str, &'static str) {
        match self {
            Self::StartMissing => ("start_missing", "a run begins with the commit of `runner start`"),
            Self::StartScope => (
                "start_scope",
                "a start changes the runner's own folder alone, and begins with a fresh state",
            ),
            Self::Parents => ("parents", "a commit has one parent, the commit before it"),
            Self::Message => ("message", "a commit's message is the one that its state and results give"),
            Self::Identity => ("identity", "message, goal and state name the same run"),
            Self::Numbering => ("numbering", "iterations are numbered from 1 without a gap"),
            Self::Selection => ("selection", "an iteration works on the node that its parent's tree selects"),
            Self::Stopped => ("stopped", "a run that is complete, stuck or at a limit makes no iteration"),
            Self::Status => ("status", "the subject's status goes with the outcome"),
            Self::Guard => ("guard", "the subject's guard result goes with the outcome"),
            Self::Outcome => ("outcome", "the outcome is one that this iteration can have"),
            Self::Charge => ("charge", "an attempt is charged by the table of outcomes"),
            Self::Prompt => ("prompt", "the prompt is the one that the parent's state gives"),
            Self::GuardExit => ("guard_exit", "the guard's exit goes with its result"),
            Self::Semantics => ("semantics", "a commit names the rules it was made by"),
            Self::Annotations => {
                ("annotations", "what should be seen of an iteration is marked, and nothing else")
            }
            Self::TreeDigest => ("tree_digest", "the message names the fingerprint of the tree"),
            Self::StateDigest => ("state_digest", "the message names the fingerprint of the run's state"),
            Self::TreeInvalid => ("tree_invalid", "a committed tree is valid"),
            Self::TreeCanonical => ("tree_canonical", "a tree is written in its one form"),
            Self::Passes => ("passes", "a node passes by a green guard on it, and by nothing else"),
            Self::PassedChanged => ("passed_changed", "a node that passed never changes again"),
            Self::Attempts => ("attempts", "attempts are those that were charged"),
            Self::MaxAttempts => {
                ("max_attempts", "`max_attempts` of a known node is the runner's and the user's")
            }
            Self::PlanEdit => ("plan_edit", "an edit of the plan is one that the rules allow"),
            Self::TreeRestored => {
                ("tree_restored", "an iteration that gained nothing leaves the plan as it was")
            }
            Self::RunStateInvalid => ("run_state_invalid", "a committed run state is valid"),
            Self::RunStateCanonical => ("run_state_canonical", "a run state is written in its one form"),
            Self::RunState => ("run_state", "the run's state follows from the one before and the results"),
            Self::PinnedFile => {
                ("pinned_file", "goal, configuration, schemas and prompts change by a start alone")
            }
            Self::ProtectedFile => {
                ("protected_file", "a protected file changes by the user's own commit alone")
            }
            Self::ConfigInvalid => ("config_invalid", "a committed configuration is valid"),
            Self::EditScope => ("edit_scope", "a recorded edit changes what it says, and nothing else"),
            Self::Baseline => (
                "baseline",
                "the guard's first word is recorded once, before the first iteration, and goes with its exit",
            ),
            Self::ForeignCommit => {
                ("foreign_commit", "a commit is the runner's, or one that its next commit took in")
            }
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_listed_once_under_its_name() {
        let mut sorted = Rule::ALL;
        sorted.sort_unstable();
        assert_eq!(sorted, Rule::ALL, "in the order of the type");
        for rule in Rule::ALL {
            assert_eq!(serde_json::to_value(rule).unwrap(), rule.as_str());
        }
    }
}
