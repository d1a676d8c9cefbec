//! What `runner conformance` checks a backend with: sessions that are honest and sessions that misbehave, and what each
//! of them must come to.

use crate::step::Outcome;

/// A session, or a few, that the scripted agent plays.
#[derive(Clone, Copy, Debug)]
pub struct ScriptedCase {
    /// Its name.
    pub name: &'static str,
    /// What the agent does, in a few words.
    pub what: &'static str,
    /// How its iterations must end.
    pub expected: &'static [Outcome],
    /// Keys at the top of the configuration.
    pub keys: &'static str,
    /// The scenario.
    pub scenario: &'static str,
}

/// A small task that a real agent is asked for.
#[derive(Clone, Copy, Debug)]
pub struct LiveCase {
    /// Its name.
    pub name: &'static str,
    /// What is asked for, in a few words.
    pub what: &'static str,
    /// The goal.
    pub goal: &'static str,
    /// The guard, as a shell script.
    pub guard: &'static str,
    /// How it must end.
    pub expected: Outcome,
}

/// The guard of the played sessions: green once the work is there.
pub const PLAYED_GUARD: &str = "test -f ok\n";

/// The goal of the played sessions.
pub const PLAYED_GOAL: &str = "# Make the file ok\n\nThe guard is green once it is there.\n";

/// What a real agent is asked for. The last task never ends by itself.
pub const TASKS: [LiveCase; 3] = [
    LiveCase {
        name: "work",
        what: "write one file and say so",
        goal: "# Write one file\n\nMake the file `hello.txt` in the root of this repository. It holds exactly one line: \
               `hello`.\nNothing else is to be done, and nothing is to be split.\n\n## Acceptance\n\n- hello.txt holds \
               the line hello\n",
        guard: "grep -qx hello hello.txt\n",
        expected: Outcome::Passed,
    },
    LiveCase {
        name: "split",
        what: "split a goal in two",
        goal: "# Split this goal\n\nThis goal is to be split and not to be worked on: give the root two children with the \
               ids `first` and `second`,\nanswer `decomposed`, and change nothing else.\n",
        guard: "true\n",
        expected: Outcome::Decomposed,
    },
    LiveCase {
        name: "stop",
        what: "end when time is up, with everything it started",
        goal: "# Wait for a command\n\nRun the command `sleep 600` in a shell, in the foreground, and wait for its end. \
               Do nothing else, and do\nnot answer before it has ended.\n",
        guard: "true\n",
        expected: Outcome::TimedOut,
    },
];

/// Every session that is played.
pub const PLAYED: [ScriptedCase; 19] = [
    ScriptedCase {
        name: "honest",
        what: "does the work and says so",
        expected: &[Outcome::Passed],
        keys: "",
        scenario: r#"
[[session]]
answer = { status = "done", summary = "made it" }
[[session.do]]
write = { path = "ok", text = "yes\n" }
"#,
    },
    ScriptedCase {
        name: "splitter",
        what: "splits the goal and does the parts",
        expected: &[Outcome::Decomposed, Outcome::Passed, Outcome::Passed],
        keys: "",
        scenario: r#"
[[session]]
when = { node = "root" }
answer = { status = "decomposed", summary = "two" }
[[session.do]]
add_children = { node = "root", children = [{ id = "a" }, { id = "b" }] }
[[session]]
answer = { status = "done", summary = "made it" }
[[session.do]]
append = { path = "ok", text = "yes\n" }
"#,
    },
    ScriptedCase {
        name: "quitter",
        what: "asks for another attempt",
        expected: &[Outcome::Retry],
        keys: "",
        scenario: "[[session]]\nanswer = { status = \"retry\", summary = \"not yet\" }\n",
    },
    ScriptedCase {
        name: "liar",
        what: "says done, and the guard is red",
        expected: &[Outcome::GuardFailed],
        keys: "",
        scenario: "[[session]]\nanswer = { status = \"done\", summary = \"all green\" }\n",
    },
    ScriptedCase {
        name: "self-marker",
        what: "marks its own node as passed",
        expected: &[Outcome::GuardFailed],
        keys: "",
        scenario: r#"
[[session]]
answer = { status = "done", summary = "passed by myself" }
[[session.do]]
set_field = { node = "root", field = "passes", json = "true" }
"#,
    },
    ScriptedCase {
        name: "vandal",
        what: "turns the guard into one that is always green",
        expected: &[Outcome::GuardFailed],
        keys: "",
        scenario: r#"
[[session]]
answer = { status = "done", summary = "green" }
[[session.do]]
run = { argv = ["sh", "-c", "echo true > check || rm -f check"] }
"#,
    },
    ScriptedCase {
        name: "rewriter",
        what: "rewrites the configuration and the goal",
        expected: &[Outcome::GuardFailed],
        keys: "",
        scenario: r#"
[[session]]
answer = { status = "done", summary = "easier now" }
[[session.do]]
run = { argv = ["sh", "-c", "state=$(dirname $RUNNER_TREE); echo '[guard]' > $state/config.toml; echo easy > $state/../GOAL.md"] }
"#,
    },
    ScriptedCase {
        name: "committer",
        what: "commits by itself, on a branch of its own",
        expected: &[Outcome::Passed],
        keys: "",
        scenario: r#"
[[session]]
answer = { status = "done", summary = "committed" }
[[session.do]]
write = { path = "ok", text = "yes\n" }
[[session.do]]
run = { argv = ["sh", "-c", "git checkout -q -b mine; git add -A; git -c user.name=a -c user.email=a@b commit -qm mine"] }
"#,
    },
    ScriptedCase {
        name: "eraser",
        what: "removes what is still to be done",
        expected: &[Outcome::Decomposed, Outcome::RuleViolation],
        keys: "",
        scenario: r#"
[[session]]
when = { node = "root" }
answer = { status = "decomposed", summary = "two" }
[[session.do]]
add_children = { node = "root", children = [{ id = "a" }, { id = "b" }] }
[[session]]
answer = { status = "done", summary = "nothing else to do" }
[[session.do]]
remove_node = { node = "b" }
"#,
    },
    ScriptedCase {
        name: "tree-breaker",
        what: "leaves a tree that is no JSON",
        expected: &[Outcome::InvalidTree],
        keys: "",
        scenario: r#"
[[session]]
answer = { status = "decomposed", summary = "half written" }
[[session.do]]
run = { argv = ["sh", "-c", "echo '{\"version\": 1, \"root\": {' > $RUNNER_TREE"] }
"#,
    },
    ScriptedCase {
        name: "mute",
        what: "ends without an answer",
        expected: &[Outcome::NoAnswer],
        keys: "",
        scenario: "[[session]]\n",
    },
    ScriptedCase {
        name: "babbler",
        what: "answers something else",
        expected: &[Outcome::NoAnswer],
        keys: "",
        scenario: "[[session]]\nanswer = { raw = \"Sure! I have done it.\" }\n",
    },
    ScriptedCase {
        name: "crasher",
        what: "dies in the middle of its work",
        expected: &[Outcome::AgentCrashed],
        keys: "",
        scenario: "[[session]]\n[[session.do]]\nrun = { argv = [\"sh\", \"-c\", \"echo half > half; kill -9 $PPID\"] }\n",
    },
    ScriptedCase {
        name: "hanger",
        what: "falls silent for ever",
        expected: &[Outcome::IdleTimeout],
        keys: "idle_timeout_secs = 1\n",
        scenario: "[[session]]\n[[session.do]]\nsleep = { ms = 600000 }\n",
    },
    ScriptedCase {
        name: "runaway",
        what: "talks for ever, with a child in a session of its own",
        expected: &[Outcome::TimedOut],
        keys: "iteration_timeout_secs = 1\n",
        scenario: "[[session]]\n[[session.do]]\nrun = { argv = [\"sh\", \"-c\", \"setsid sleep 600 & while :; do echo on; sleep 0.1; done\"] }\n",
    },
    ScriptedCase {
        name: "leaver",
        what: "leaves processes behind",
        expected: &[Outcome::Passed],
        keys: "",
        scenario: r#"
[[session]]
answer = { status = "done", summary = "a server is running" }
[[session.do]]
write = { path = "ok", text = "yes\n" }
[[session.do]]
run = { argv = ["sh", "-c", "setsid sleep 600 > /dev/null 2>&1 & (trap '' HUP TERM; sleep 601 > /dev/null 2>&1 &)"] }
"#,
    },
    ScriptedCase {
        name: "flooder",
        what: "prints more than is kept",
        expected: &[Outcome::Passed],
        keys: "executor_output_limit_bytes = 65536\n",
        scenario: r#"
[[session]]
answer = { status = "done", summary = "loud" }
[[session.do]]
write = { path = "ok", text = "yes\n" }
[[session.do]]
run = { argv = ["sh", "-c", "yes ü | head -c 8000000"] }
"#,
    },
    ScriptedCase {
        name: "limited",
        what: "reports a usage limit",
        expected: &[Outcome::UsageLimit],
        keys: "",
        scenario: "[[session]]\n[[session.do]]\nreport = { fault = \"usage_limit\", resets_in_secs = 3600 }\n",
    },
    ScriptedCase {
        name: "locked-out",
        what: "reports that it is not logged in",
        expected: &[Outcome::NotLoggedIn],
        keys: "",
        scenario: "[[session]]\n[[session.do]]\nreport = { fault = \"not_logged_in\", why = \"no key\" }\n",
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
    fn every_session_can_be_played_and_has_a_name_of_its_own() {
        let names: BTreeSet<&str> =
            PLAYED.iter().map(|played| played.name).chain(TASKS.map(|task| task.name)).collect();
        assert_eq!(names.len(), PLAYED.len() + TASKS.len());
        for played in PLAYED {
            assert!(Scenario::decode(played.scenario).is_ok(), "{}", played.name);
            assert!(Config::decode(played.keys.as_bytes()).is_ok(), "{}", played.name);
            assert!(!played.expected.is_empty(), "{}", played.name);
        }
    }

    #[test]
    fn every_goal_is_one() {
        for goal in TASKS.map(|task| task.goal).into_iter().chain([PLAYED_GOAL]) {
            assert!(Goal::parse(goal.as_bytes()).unwrap().is_written(), "{goal}");
        }
    }
}
