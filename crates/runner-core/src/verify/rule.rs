//! The rules that `runner verify` checks, with name and description.

use std::fmt;

use serde::Serialize;

/// A rule for the history of a run.
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
    Confirmation,
    Charge,
    Prompt,
    GuardExit,
    Room,
    Candidate,
    Checks,
    ChecksGreen,
    ChecksRed,
    ChecksFrozen,
    ChecksInvalid,
    CheckFile,
    Heldout,
    HeldoutGreen,
    HeldoutRed,
    HeldoutFrozen,
    Environment,
    Review,
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
    UnstartedChange,
    ProtectedFile,
    Protection,
    Instructions,
    MemoryRewritten,
    ConfigInvalid,
    EditScope,
    Approval,
    PlanScope,
    Baseline,
    FinalCheck,
    Recheck,
    Regression,
    ForeignCommit,
    Object,
}

impl Rule {
    pub const ALL: [Self; 60] = [
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
        Self::Confirmation,
        Self::Charge,
        Self::Prompt,
        Self::GuardExit,
        Self::Room,
        Self::Candidate,
        Self::Checks,
        Self::ChecksGreen,
        Self::ChecksRed,
        Self::ChecksFrozen,
        Self::ChecksInvalid,
        Self::CheckFile,
        Self::Heldout,
        Self::HeldoutGreen,
        Self::HeldoutRed,
        Self::HeldoutFrozen,
        Self::Environment,
        Self::Review,
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
        Self::UnstartedChange,
        Self::ProtectedFile,
        Self::Protection,
        Self::Instructions,
        Self::MemoryRewritten,
        Self::ConfigInvalid,
        Self::EditScope,
        Self::Approval,
        Self::PlanScope,
        Self::Baseline,
        Self::FinalCheck,
        Self::Recheck,
        Self::Regression,
        Self::ForeignCommit,
        Self::Object,
    ];

    pub fn as_str(self) -> &'static str {
        self.name_and_description().0
    }

    pub fn description(self) -> &'static str {
        self.name_and_description().1
    }

    /// The table for docs/reference/verify-rules.md.
    pub fn table() -> String {
        let mut table = String::from("| rule | what it requires |\n| --- | --- |\n");
        for rule in Self::ALL {
            table.push_str(&format!("| `{rule}` | {} |\n", rule.description()));
        }
        table
    }

    #[expect(clippy::too_many_lines, reason = "a table with one row per rule")]
    fn name_and_description(self) -> (&'static str, &'static str) {
        match self {
            Self::StartMissing => ("start_missing", "a run begins with the commit of `runner start`"),
            Self::StartScope => (
                "start_scope",
                "a start changes only files under `.runner/`, and a new run begins with a fresh state",
            ),
            Self::Parents => ("parents", "a commit has one parent, the commit before it"),
            Self::Message => {
                ("message", "a commit's message is exactly the one that follows from its state and results")
            }
            Self::Identity => ("identity", "message, goal and state name the same run"),
            Self::Numbering => ("numbering", "iterations are numbered from 1 without a gap"),
            Self::Selection => {
                ("selection", "an iteration works on the node that the tree before it selects")
            }
            Self::Stopped => {
                ("stopped", "a run that is complete, stuck or at a limit has no further iteration")
            }
            Self::Status => ("status", "the status in the subject matches the outcome"),
            Self::Guard => ("guard", "the guard's result in the subject matches the outcome"),
            Self::Outcome => ("outcome", "the outcome is one that this iteration can have"),
            Self::Confirmation => (
                "confirmation",
                "a task that passes without a change to files was confirmed by a second session, or the configuration \
                 accepts the first one",
            ),
            Self::Charge => ("charge", "an attempt is charged exactly where the outcome requires it"),
            Self::Prompt => ("prompt", "the prompt is the one that the state before gives"),
            Self::GuardExit => ("guard_exit", "the guard's exit matches its result"),
            Self::Room => ("room", "the guard ran at a level of separation that the configuration allows"),
            Self::Candidate => {
                ("candidate", "the guard ran on the committed files, with the runner's documents as before")
            }
            Self::Checks => (
                "checks",
                "a commit records each check of its task that ran, with its results and the digest",
            ),
            Self::ChecksGreen => ("checks_green", "a task passes only if all of its checks succeeded"),
            Self::ChecksRed => (
                "checks_red",
                "how the checks of a task ended before the work is recorded with the first session on it",
            ),
            Self::ChecksFrozen => (
                "checks_frozen",
                "only the user changes the checks of a task; only the session that creates it writes them",
            ),
            Self::ChecksInvalid => ("checks_invalid", "committed checks are valid"),
            Self::CheckFile => (
                "check_file",
                "a pass commits the task's check files as they are frozen; other iterations leave them out",
            ),
            Self::Heldout => (
                "heldout",
                "a commit records each held-out check that ran, with its results and the digest of the last start",
            ),
            Self::HeldoutGreen => {
                ("heldout_green", "a task passes only if all of its held-out checks ran and succeeded")
            }
            Self::HeldoutRed => (
                "heldout_red",
                "how held-out checks ended before the work is recorded with the first session on the task or below it",
            ),
            Self::HeldoutFrozen => {
                ("heldout_frozen", "only a start changes which held-out checks there are, and their digests")
            }
            Self::Environment => ("environment", "only a start records another environment"),
            Self::Review => (
                "review",
                "where a reviewer is configured, a task passes only if it accepted, or after it refused as often as it may",
            ),
            Self::Semantics => ("semantics", "a commit names the version of the rules that decided it"),
            Self::Annotations => {
                ("annotations", "a commit has exactly the annotations that follow from its changes")
            }
            Self::TreeDigest => ("tree_digest", "the message has the SHA-256 of the committed tree"),
            Self::StateDigest => ("state_digest", "the message has the SHA-256 of the committed run state"),
            Self::TreeInvalid => ("tree_invalid", "a committed tree is valid"),
            Self::TreeCanonical => ("tree_canonical", "a committed tree is in canonical form"),
            Self::Passes => ("passes", "a node passes only by a successful guard run on it"),
            Self::PassedChanged => ("passed_changed", "a node that passed never changes again"),
            Self::Attempts => ("attempts", "the attempts of a node are those that were charged"),
            Self::MaxAttempts => {
                ("max_attempts", "only the runner and the user change `max_attempts` of an existing node")
            }
            Self::PlanEdit => ("plan_edit", "an edit of the plan is one that the rules allow"),
            Self::TreeRestored => (
                "tree_restored",
                "an iteration whose plan was not accepted leaves the plan as it was, and a session only adds to the acceptance \
                 criteria of its own task",
            ),
            Self::RunStateInvalid => ("run_state_invalid", "a committed run state is valid"),
            Self::RunStateCanonical => ("run_state_canonical", "a committed run state is in canonical form"),
            Self::RunState => ("run_state", "the run state follows from the one before and the results"),
            Self::PinnedFile => {
                ("pinned_file", "only `runner start` changes goal, configuration, schemas and prompts")
            }
            Self::UnstartedChange => (
                "unstarted_change",
                "what the user's own commits change under `.runner/` or in protected files takes effect with a start alone",
            ),
            Self::ProtectedFile => ("protected_file", "only the user changes a protected file"),
            Self::Protection => (
                "protection",
                "a start protects what the configuration lists, or what the guard's command and setup depend on; the next commit of a session or of the guard adds what checks depend on",
            ),
            Self::Instructions => (
                "instructions",
                "a start pins the instructions that the configuration names, as the commit has them",
            ),
            Self::MemoryRewritten => {
                ("memory_rewritten", "an iteration only adds text at the end of memory files")
            }
            Self::ConfigInvalid => ("config_invalid", "a committed configuration is valid"),
            Self::EditScope => ("edit_scope", "an edit changes what its message names, and nothing else"),
            Self::Approval => (
                "approval",
                "an approval names the plan that it follows, and ends with a change of the plan that is not an agent's",
            ),
            Self::PlanScope => (
                "plan_scope",
                "a planning session changes nothing outside `.runner/`, and asks at most five questions",
            ),
            Self::Baseline => (
                "baseline",
                "the guard's baseline result is recorded once per guard, before the next iteration, and matches its exit",
            ),
            Self::Object => ("object", "a committed file has the content that its object id names"),
            Self::FinalCheck => (
                "final_check",
                "the result of the final check is recorded after all tasks passed, on the files of the commit before, and \
                 matches its exit",
            ),
            Self::Recheck => (
                "recheck",
                "the checks of all passed tasks run again after a task with parts passed and in the final check, and all of them \
                 are recorded",
            ),
            Self::Regression => (
                "regression",
                "a check of a passed task that fails again becomes a task with that check, as often as the configuration allows; \
                 nothing else changes the plan then",
            ),
            Self::ForeignCommit => {
                ("foreign_commit", "every commit is the runner's, or the runner's next commit counts it")
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
