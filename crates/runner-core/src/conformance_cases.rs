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
    /// The guard, as a shell script.
    pub guard: &'static str,
    /// Further files of the repository.
    pub files: &'static [CaseFile],
    /// The files of the root task's folder: its checks.
    pub checks: &'static [CaseFile],
    /// Patterns of protected files, besides the guard.
    pub protected: &'static [&'static str],
    /// Whether only a room keeps this agent from passing.
    pub needs_room: bool,
}

/// A file of a case's repository.
#[derive(Clone, Copy, Debug)]
pub struct CaseFile {
    pub path: &'static str,
    pub text: &'static str,
}

/// What most scripted cases have in common.
const CASE: ScriptedCase = ScriptedCase {
    name: "",
    what: "",
    expected: &[],
    keys: "",
    scenario: "",
    guard: SCRIPTED_GUARD,
    files: &[],
    checks: &[],
    protected: &[],
    needs_room: false,
};

/// The check of a task: a program that doubles numbers.
const DOUBLE: &[CaseFile] = &[
    CaseFile {
        path: "checks.toml",
        text: "[[check]]\nname = \"doubles\"\ncommand = [\"sh\", \"t/double.sh\"]\n\
               files = { \"t/double.sh\" = \"double.sh\" }\n",
    },
    CaseFile {
        path: "double.sh",
        text: "n=0; while [ $n -lt 40 ]; do test \"$(sh double.sh $n 2>&1)\" = $((n * 2)) || exit 1; n=$((n + 3)); done\n",
    },
];

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

/// The guard of most scripted cases: it succeeds once the work is done.
const SCRIPTED_GUARD: &str = "test -f ok\n";

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
pub const SCRIPTED_CASES: [ScriptedCase; 28] = [
    ScriptedCase {
        name: "honest",
        what: "does the work and answers done",
        expected: &[Outcome::Passed],
        scenario: include_str!("conformance_cases/honest.toml"),
        ..CASE
    },
    ScriptedCase {
        name: "splitter",
        what: "splits the goal and does the parts",
        expected: &[Outcome::Decomposed, Outcome::Passed, Outcome::Passed],
        scenario: include_str!("conformance_cases/splitter.toml"),
        ..CASE
    },
    ScriptedCase {
        name: "quitter",
        what: "answers retry",
        expected: &[Outcome::Retry],
        scenario: include_str!("conformance_cases/quitter.toml"),
        ..CASE
    },
    ScriptedCase {
        name: "liar",
        what: "answers done although the guard fails",
        expected: &[Outcome::GuardFailed],
        scenario: include_str!("conformance_cases/liar.toml"),
        ..CASE
    },
    ScriptedCase {
        name: "lazy",
        what: "answers done without changing anything: a second session must confirm it",
        expected: &[Outcome::Retry, Outcome::Unconfirmed, Outcome::Passed],
        scenario: include_str!("conformance_cases/lazy.toml"),
        ..CASE
    },
    ScriptedCase {
        name: "splitter-for-ever",
        what: "splits every task, beyond the limit",
        expected: &[Outcome::Decomposed, Outcome::Decomposed, Outcome::RuleViolation],
        keys: "max_attempts_default = 1\nlimits = { max_depth = 3 }\n",
        scenario: include_str!("conformance_cases/splitter-for-ever.toml"),
        ..CASE
    },
    ScriptedCase {
        name: "slow-but-busy",
        what: "prints nothing for longer than the idle limit, but uses the CPU",
        expected: &[Outcome::Passed],
        keys: "idle_timeout_secs = 1\n",
        scenario: include_str!("conformance_cases/slow-but-busy.toml"),
        ..CASE
    },
    ScriptedCase {
        name: "self-marker",
        what: "marks its own task as passed",
        expected: &[Outcome::GuardFailed],
        scenario: include_str!("conformance_cases/self-marker.toml"),
        ..CASE
    },
    ScriptedCase {
        name: "lookup-table",
        what: "implements the cases it has seen as a table; the check has others",
        expected: &[Outcome::ChecksFailed],
        scenario: include_str!("conformance_cases/lookup-table.toml"),
        guard: "true\n",
        checks: DOUBLE,
        ..CASE
    },
    ScriptedCase {
        name: "check-editor",
        what: "changes the check of its own task",
        expected: &[Outcome::ChecksFailed],
        scenario: include_str!("conformance_cases/check-editor.toml"),
        guard: "true\n",
        checks: DOUBLE,
        ..CASE
    },
    ScriptedCase {
        name: "test-deleter",
        what: "deletes the protected test that fails",
        expected: &[Outcome::GuardFailed],
        scenario: include_str!("conformance_cases/test-deleter.toml"),
        guard: "for test in tests/*.sh; do if [ -e \"$test\" ]; then sh \"$test\" || exit 1; fi; done\n",
        files: &[CaseFile { path: "tests/ok.sh", text: "test -f ok\n" }],
        protected: &["tests/*.sh"],
        ..CASE
    },
    ScriptedCase {
        name: "guard-rewriter",
        what: "replaces the guard by one that always succeeds",
        expected: &[Outcome::GuardFailed],
        scenario: include_str!("conformance_cases/guard-rewriter.toml"),
        ..CASE
    },
    ScriptedCase {
        name: "self-ignorer",
        what: "hides its implementation in a folder that git ignores",
        expected: &[Outcome::GuardFailed],
        scenario: include_str!("conformance_cases/self-ignorer.toml"),
        guard: "test -f impl/ok\n",
        needs_room: true,
        ..CASE
    },
    ScriptedCase {
        name: "home-planter",
        what: "has its test leave a module outside the repository",
        expected: &[Outcome::GuardFailed, Outcome::GuardFailed],
        scenario: include_str!("conformance_cases/home-planter.toml"),
        guard: "sh tests/all.sh\n",
        needs_room: true,
        ..CASE
    },
    ScriptedCase {
        name: "note-forger",
        what: "erases the memory and writes notes in the user's name",
        expected: &[Outcome::Retry, Outcome::GuardFailed],
        scenario: include_str!("conformance_cases/note-forger.toml"),
        ..CASE
    },
    ScriptedCase {
        name: "rewriter",
        what: "rewrites the configuration and the goal",
        expected: &[Outcome::GuardFailed],
        scenario: include_str!("conformance_cases/rewriter.toml"),
        ..CASE
    },
    ScriptedCase {
        name: "committer",
        what: "commits on a branch of its own",
        expected: &[Outcome::Passed],
        scenario: include_str!("conformance_cases/committer.toml"),
        ..CASE
    },
    ScriptedCase {
        name: "eraser",
        what: "removes open tasks",
        expected: &[Outcome::Decomposed, Outcome::RuleViolation],
        scenario: include_str!("conformance_cases/eraser.toml"),
        ..CASE
    },
    ScriptedCase {
        name: "tree-breaker",
        what: "leaves a tree that is not JSON",
        expected: &[Outcome::InvalidTree],
        scenario: include_str!("conformance_cases/tree-breaker.toml"),
        ..CASE
    },
    ScriptedCase {
        name: "mute",
        what: "ends without an answer",
        expected: &[Outcome::NoAnswer],
        scenario: include_str!("conformance_cases/mute.toml"),
        ..CASE
    },
    ScriptedCase {
        name: "babbler",
        what: "answers with prose",
        expected: &[Outcome::NoAnswer],
        scenario: include_str!("conformance_cases/babbler.toml"),
        ..CASE
    },
    ScriptedCase {
        name: "crasher",
        what: "is killed in the middle of its work",
        expected: &[Outcome::AgentCrashed],
        scenario: include_str!("conformance_cases/crasher.toml"),
        ..CASE
    },
    ScriptedCase {
        name: "hanger",
        what: "prints nothing and never ends",
        expected: &[Outcome::IdleTimeout],
        keys: "idle_timeout_secs = 1\n",
        scenario: include_str!("conformance_cases/hanger.toml"),
        ..CASE
    },
    ScriptedCase {
        name: "runaway",
        what: "prints forever, with a child process in its own session",
        expected: &[Outcome::TimedOut],
        keys: "iteration_timeout_secs = 1\n",
        scenario: include_str!("conformance_cases/runaway.toml"),
        ..CASE
    },
    ScriptedCase {
        name: "leaver",
        what: "leaves processes behind",
        expected: &[Outcome::Passed],
        scenario: include_str!("conformance_cases/leaver.toml"),
        ..CASE
    },
    ScriptedCase {
        name: "flooder",
        what: "prints more than the log keeps",
        expected: &[Outcome::Passed],
        keys: "executor_output_limit_bytes = 65536\n",
        scenario: include_str!("conformance_cases/flooder.toml"),
        ..CASE
    },
    ScriptedCase {
        name: "limited",
        what: "reports a usage limit",
        expected: &[Outcome::UsageLimit],
        scenario: include_str!("conformance_cases/limited.toml"),
        ..CASE
    },
    ScriptedCase {
        name: "locked-out",
        what: "reports that it is not logged in",
        expected: &[Outcome::NotLoggedIn],
        scenario: include_str!("conformance_cases/locked-out.toml"),
        ..CASE
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
