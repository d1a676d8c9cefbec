//! Scenarios: scripts for the scripted agent, session by session. The demo, the tests and the evaluation use them.
//!
//! A scenario may do anything that an agent can do, including what the rules forbid.

use serde::Deserialize;
use thiserror::Error;

use crate::model::agent_output::AgentStatus;
use crate::model::agent_report::AgentReport;
use crate::step::{ProviderError, Usage};

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// The sessions. The first whose condition holds is played.
    #[serde(default)]
    pub session: Vec<ScenarioSession>,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioSession {
    /// When it is played. Without a condition, always.
    #[serde(default)]
    pub when: Condition,
    /// What it does, in order.
    #[serde(default, rename = "do")]
    pub actions: Vec<ScenarioAction>,
    /// What it answers. Without this, it ends without an answer.
    pub answer: Option<ScenarioAnswer>,
}

/// A condition on the session. Every field that is set must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    pub iter: Option<u32>,
    pub node: Option<String>,
    /// How many attempts of the node are used.
    pub attempts: Option<u64>,
    /// `leaf`, `repair`, `replan`, `split` or `plan`.
    pub mode: Option<String>,
}

/// One action of the scripted agent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum ScenarioAction {
    Write {
        path: String,
        text: String,
    },
    /// Appends to a file.
    Append {
        path: String,
        text: String,
    },
    /// Removes a file or a folder.
    Delete {
        path: String,
    },
    Print {
        text: String,
    },
    Sleep {
        ms: u64,
    },
    /// Runs a program and waits for it.
    Run {
        argv: Vec<String>,
    },
    /// Adds children to a node. Missing fields get valid values.
    AddChildren {
        node: String,
        children: Vec<NewChild>,
    },
    /// Sets a field of a node, whether the rules allow it or not.
    SetField {
        node: String,
        field: String,
        json: String,
    },
    /// Removes a node from the tree.
    RemoveNode {
        node: String,
    },
    /// Reports usage and a failure of the provider, through `RUNNER_REPORT`.
    Report(Box<ReportedUsage>),
    /// Ends the session at once with this exit code.
    Exit {
        code: u8,
    },
}

/// The usage and the failure that a session reports.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReportedUsage {
    /// Input tokens, including cached ones.
    pub input_tokens: Option<u64>,
    /// Input tokens that came from a cache.
    pub cached_input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    /// Millionths of a dollar.
    pub cost_microdollars: Option<u64>,
    /// How the provider failed: `rate_limited`, `overloaded`, `disconnected`, `usage_limit`, `refused`,
    /// `not_logged_in`, `context_full` or `schema_violated`.
    pub fault: Option<String>,
    /// With `usage_limit` and `rate_limited`: the seconds until it ends.
    pub resets_in_secs: Option<u32>,
    pub why: Option<String>,
}

impl ReportedUsage {
    /// The report as an agent writes it at this time, or the value of `fault` if it is unknown.
    pub fn at(&self, now_unix_secs: u64) -> Result<AgentReport, String> {
        let why = || self.why.clone().unwrap_or_else(|| "the provider refused the request".to_owned());
        let fault = self.fault.as_deref().map(|word| {
            Ok(match word {
                "rate_limited" => ProviderError::RateLimited { retry_after_secs: self.resets_in_secs },
                "overloaded" => ProviderError::Overloaded,
                "disconnected" => ProviderError::Disconnected,
                "usage_limit" => ProviderError::UsageLimit {
                    resets_unix_secs: self.resets_in_secs.map(|secs| now_unix_secs + u64::from(secs)),
                },
                "refused" => ProviderError::Refused { why: why() },
                "not_logged_in" => ProviderError::NotLoggedIn { why: why() },
                "context_full" => ProviderError::ContextFull,
                "schema_violated" => ProviderError::SchemaViolated { why: why() },
                other => return Err(other.to_owned()),
            })
        });
        let usage = Usage {
            input_tokens: self.input_tokens,
            cached_input_tokens: self.cached_input_tokens,
            output_tokens: self.output_tokens,
            cost_microdollars: self.cost_microdollars,
            ..Usage::default()
        };
        Ok(AgentReport { usage, fault: fault.transpose()? })
    }
}

/// A node to add.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewChild {
    pub id: String,
    /// The title [default: the id].
    pub title: Option<String>,
    /// The goal [default: the title].
    pub goal: Option<String>,
    #[serde(default)]
    pub acceptance: Vec<String>,
}

/// The answer of a scripted session.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum ScenarioAnswer {
    Valid {
        status: AgentStatus,
        summary: String,
    },
    /// Any text instead of an answer.
    Raw {
        raw: String,
    },
}

/// An invalid scenario file.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("invalid scenario: {0}")]
pub struct ScenarioError(String);

/// What the runner asks of the session: the values that conditions compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionContext<'a> {
    pub iter: u32,
    pub node: &'a str,
    /// How many of its attempts are used.
    pub attempts: u64,
    /// `leaf`, `repair`, `replan`, `split` or `plan`.
    pub mode: &'a str,
}

impl Scenario {
    /// Decodes a scenario file; unknown keys are errors.
    pub fn decode(text: &str) -> Result<Self, ScenarioError> {
        toml::from_str(text).map_err(|error| ScenarioError(error.to_string()))
    }

    /// The first session whose condition holds.
    pub fn session_for(&self, context: SessionContext<'_>) -> Option<&ScenarioSession> {
        self.session.iter().find(|session| session.when.holds(context))
    }
}

impl Condition {
    fn holds(&self, context: SessionContext<'_>) -> bool {
        self.iter.is_none_or(|iter| iter == context.iter)
            && self.node.as_deref().is_none_or(|node| node == context.node)
            && self.attempts.is_none_or(|attempts| attempts == context.attempts)
            && self.mode.as_deref().is_none_or(|mode| mode == context.mode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        [[session]]
        when = { node = "root", attempts = 0 }
        answer = { status = "decomposed", summary = "split" }
        [[session.do]]
        add_children = { node = "root", children = [{ id = "a" }, { id = "b", title = "B" }] }

        [[session]]
        when = { iter = 7 }
        answer = { raw = "not json" }

        [[session]]
        [[session.do]]
        write = { path = "x", text = "y" }
        [[session.do]]
        exit = { code = 3 }
    "#;

    #[test]
    fn the_first_matching_session_is_played() {
        let scenario = Scenario::decode(TEXT).unwrap();
        let at = |iter, node, attempts| {
            let context = SessionContext { iter, node, attempts, mode: "leaf" };
            let session = scenario.session_for(context).unwrap();
            scenario.session.iter().position(|one| std::ptr::eq(one, session)).unwrap()
        };
        assert_eq!(at(1, "root", 0), 0);
        assert_eq!(at(2, "root", 1), 2);
        assert_eq!(at(7, "a", 0), 1);
        assert_eq!(at(8, "a", 0), 2);
    }

    #[test]
    fn an_unknown_key_is_reported_with_its_line() {
        let error = Scenario::decode("[[session]]\nanswr = 1\n").unwrap_err().to_string();
        assert!(error.contains("line 2") && error.contains("answr"), "{error}");
        assert!(Scenario::decode("[[session]]\n[[session.do]]\nfly = 1\n").is_err());
    }

    #[test]
    fn reports_have_usage_and_the_providers_failure() {
        let reported = |fields: &str| {
            let text = format!("[[session]]\n[[session.do]]\nreport = {{ {fields} }}\n");
            match Scenario::decode(&text).unwrap().session[0].actions.as_slice() {
                [ScenarioAction::Report(report)] => report.at(1_000),
                actions => panic!("{actions:?}"),
            }
        };
        let usage = Usage {
            input_tokens: Some(50),
            cached_input_tokens: Some(40),
            output_tokens: Some(7),
            cost_microdollars: Some(300),
            ..Usage::default()
        };
        let used = "input_tokens = 50, cached_input_tokens = 40, output_tokens = 7, cost_microdollars = 300";
        assert_eq!(reported(used), Ok(AgentReport { usage, fault: None }));
        let default_reason = || "the provider refused the request".to_owned();
        let why = || "no money".to_owned();
        for (fields, fault) in [
            ("'rate_limited'", ProviderError::RateLimited { retry_after_secs: None }),
            ("'rate_limited', resets_in_secs = 9", ProviderError::RateLimited { retry_after_secs: Some(9) }),
            ("'overloaded'", ProviderError::Overloaded),
            ("'disconnected'", ProviderError::Disconnected),
            ("'usage_limit'", ProviderError::UsageLimit { resets_unix_secs: None }),
            (
                "'usage_limit', resets_in_secs = 60",
                ProviderError::UsageLimit { resets_unix_secs: Some(1_060) },
            ),
            ("'refused', why = 'no money'", ProviderError::Refused { why: why() }),
            ("'not_logged_in'", ProviderError::NotLoggedIn { why: default_reason() }),
            ("'context_full'", ProviderError::ContextFull),
            ("'schema_violated'", ProviderError::SchemaViolated { why: default_reason() }),
        ] {
            let expected = AgentReport { usage: Usage::default(), fault: Some(fault) };
            assert_eq!(reported(&format!("fault = {fields}")), Ok(expected), "{fields}");
        }
        assert_eq!(reported("fault = 'tired'"), Err("tired".to_owned()));
    }
}
