//! The cases of `runner conformance`: scripted sessions, honest and misbehaving, and small tasks for a real agent, each with
//! its expected outcome.

use crate::step::Outcome;

/// One or more sessions of the scripted agent.
#[derive(Clone, Copy, Debug)]
pub struct ScriptedCase {
    pub name: &'static str,
    /// What the agent does.
    pub what: &'static str,
    /// The outcome of each iteration.
    pub expected: &'static [Outcome],
    /// Top-level keys of the configuration.
    pub keys: &'static str,
    pub scenario: &'static str,
}

/// A small task for a real agent.
#[derive(Clone, Copy, Debug)]
pub struct LiveCase {
    pub name: &'static str,
    /// What the agent must do.
    pub what: &'static str,
    pub goal: &'static str,
    /// The guard, as a shell script.
    pub guard: &'static str,
    pub expected: Outcome,
}

/// The guard of the scripted cases: it succeeds once the work is done.
pub const SCRIPTED_GUARD: &str = "test -f ok\n";

/// The goal of the scripted cases.
pub const SCRIPTED_GOAL: &str = "# Create the file ok\n\nThe guard succeeds once the file exists.\n";

/// The tasks for a real agent. The last one never ends by itself.
pub const LIVE_CASES: [LiveCase; 3] = [
    LiveCase {
        name: "work",
        what: "writes one file and answers done",
        goal: "# Write one file\n\nCreate the file `hello.txt` in the root of this repository, with exactly one line: \
               `hello`.\nDo nothing else, and do not split the task.\n\n## Acceptance\n\n- hello.txt contains the \
               line hello\n",
        guard: "grep -qx hello hello.txt\n",
        expected: Outcome::Passed,
    },
    LiveCase {
        name: "split",
        what: "splits a goal in two",
        goal: "# Split this goal\n\nDo not work on this goal, only split it: give the root two children with the ids `first` and \
               `second`,\nanswer `decomposed`, and change nothing else.\n",
        guard: "true\n",
        expected: Outcome::Decomposed,
    },
    LiveCase {
        name: "stop",
        what: "ends at the time limit, with everything it started",
        goal: "# Wait for a command\n\nRun the command `sleep 600` in a shell, in the foreground, and wait until it ends. Do \
               nothing else, and do\nnot answer before it has ended.\n",
        guard: "true\n",
        expected: Outcome::TimedOut,
    },
];

/// The scripted cases. Their scenarios are the files in `conformance_cases/`.
pub const SCRIPTED_CASES: [ScriptedCase; 22] = [
    ScriptedCase {
        name: "honest",
        what: "does the work and answers done",
        expected: &[Outcome::Passed],
        keys: "",
        scenario: include_str!("conformance_cases/honest.toml"),
    },
    ScriptedCase {
        name: "splitter",
        what: "splits the goal and does the parts",
        expected: &[Outcome::Decomposed, Outcome::Passed, Outcome::Passed],
        keys: "",
        scenario: include_str!("conformance_cases/splitter.toml"),
    },
    ScriptedCase {
        name: "quitter",
        what: "answers retry",
        expected: &[Outcome::Retry],
        keys: "",
        scenario: include_str!("conformance_cases/quitter.toml"),
    },
    ScriptedCase {
        name: "liar",
        what: "answers done although the guard fails",
        expected: &[Outcome::GuardFailed],
        keys: "",
        scenario: include_str!("conformance_cases/liar.toml"),
    },
    ScriptedCase {
        name: "lazy",
        what: "answers done without changing anything: a second session must confirm it",
        expected: &[Outcome::Retry, Outcome::Unconfirmed, Outcome::Passed],
        keys: "",
        scenario: include_str!("conformance_cases/lazy.toml"),
    },
    ScriptedCase {
        name: "splitter-for-ever",
        what: "splits every task, beyond the limit",
        expected: &[
            Outcome::Decomposed,
            Outcome::Decomposed,
            Outcome::RuleViolation,
            Outcome::RuleViolation,
            Outcome::RuleViolation,
        ],
        keys: "limits = { max_depth = 3 }\n",
        scenario: include_str!("conformance_cases/splitter-for-ever.toml"),
    },
    ScriptedCase {
        name: "slow-but-busy",
        what: "prints nothing for longer than the idle limit, but uses the CPU",
        expected: &[Outcome::Passed],
        keys: "idle_timeout_secs = 1\n",
        scenario: include_str!("conformance_cases/slow-but-busy.toml"),
    },
    ScriptedCase {
        name: "self-marker",
        what: "marks its own task as passed",
        expected: &[Outcome::GuardFailed],
        keys: "",
        scenario: include_str!("conformance_cases/self-marker.toml"),
    },
    ScriptedCase {
        name: "vandal",
        what: "replaces the guard by one that always succeeds",
        expected: &[Outcome::GuardFailed],
        keys: "",
        scenario: include_str!("conformance_cases/vandal.toml"),
    },
    ScriptedCase {
        name: "rewriter",
        what: "rewrites the configuration and the goal",
        expected: &[Outcome::GuardFailed],
        keys: "",
        scenario: include_str!("conformance_cases/rewriter.toml"),
    },
    ScriptedCase {
        name: "committer",
        what: "commits on a branch of its own",
        expected: &[Outcome::Passed],
        keys: "",
        scenario: include_str!("conformance_cases/committer.toml"),
    },
    ScriptedCase {
        name: "eraser",
        what: "removes open tasks",
        expected: &[Outcome::Decomposed, Outcome::RuleViolation],
        keys: "",
        scenario: include_str!("conformance_cases/eraser.toml"),
    },
    ScriptedCase {
        name: "tree-breaker",
        what: "leaves a tree that is not JSON",
        expected: &[Outcome::InvalidTree],
        keys: "",
        scenario: include_str!("conformance_cases/tree-breaker.toml"),
    },
    ScriptedCase {
        name: "mute",
        what: "ends without an answer",
        expected: &[Outcome::NoAnswer],
        keys: "",
        scenario: include_str!("conformance_cases/mute.toml"),
    },
    ScriptedCase {
        name: "babbler",
        what: "answers with prose",
        expected: &[Outcome::NoAnswer],
        keys: "",
        scenario: include_str!("conformance_cases/babbler.toml"),
    },
    ScriptedCase {
        name: "crasher",
        what: "is killed in the middle of its work",
        expected: &[Outcome::AgentCrashed],
        keys: "",
        scenario: include_str!("conformance_cases/crasher.toml"),
    },
    ScriptedCase {
        name: "hanger",
        what: "prints nothing and never ends",
        expected: &[Outcome::IdleTimeout],
        keys: "idle_timeout_secs = 1\n",
        scenario: include_str!("conformance_cases/hanger.toml"),
    },
    ScriptedCase {
        name: "runaway",
        what: "prints forever, with a child process in its own session",
        expected: &[Outcome::TimedOut],
        keys: "iteration_timeout_secs = 1\n",
        scenario: include_str!("conformance_cases/runaway.toml"),
    },
    ScriptedCase {
        name: "leaver",
        what: "leaves processes behind",
        expected: &[Outcome::Passed],
        keys: "",
        scenario: include_str!("conformance_cases/leaver.toml"),
    },
    ScriptedCase {
        name: "flooder",
        what: "prints more than the log keeps",
        expected: &[Outcome::Passed],
        keys: "executor_output_limit_bytes = 65536\n",
        scenario: include_str!("conformance_cases/flooder.toml"),
    },
    ScriptedCase {
        name: "limited",
        what: "reports a usage limit",
        expected: &[Outcome::UsageLimit],
        keys: "",
        scenario: include_str!("conformance_cases/limited.toml"),
    },
    ScriptedCase {
        name: "locked-out",
        what: "reports that it is not logged in",
        expected: &[Outcome::NotLoggedIn],
        keys: "",
        scenario: include_str!("conformance_cases/locked-out.toml"),
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::agents::scenario::Scenario;
    use crate::config::Config;
    use crate::model::goal::Goal;

    #[test]
    fn names_are_unique_and_scenarios_valid() {
        let names: BTreeSet<&str> =
            SCRIPTED_CASES.iter().map(|case| case.name).chain(LIVE_CASES.map(|case| case.name)).collect();
        assert_eq!(names.len(), SCRIPTED_CASES.len() + LIVE_CASES.len());
        for case in SCRIPTED_CASES {
            assert!(Scenario::decode(case.scenario).is_ok(), "{}", case.name);
            assert!(Config::decode(case.keys.as_bytes()).is_ok(), "{}", case.name);
            assert!(!case.expected.is_empty(), "{}", case.name);
        }
    }

    #[test]
    fn every_goal_is_written() {
        for goal in LIVE_CASES.map(|case| case.goal).into_iter().chain([SCRIPTED_GOAL]) {
            assert!(Goal::parse(goal.as_bytes()).unwrap().is_written(), "{goal}");
        }
    }
}
