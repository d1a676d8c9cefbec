//! Scenarios: what the scripted agent plays, session by session. Used by the demo, the tests and the evaluation.
//!
//! A scenario may do anything that an agent can do, lawful or not: that is what it is for.

use serde::Deserialize;
use thiserror::Error;

use crate::model::agent_output::AgentStatus;
use crate::model::agent_report::AgentReport;
use crate::step::{ProviderError, Usage};

/// A scenario file: the sessions that an agent may be asked for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Tried in order; the first that fits the situation is played.
    #[serde(default)]
    pub session: Vec<ScenarioSession>,
}

/// One session.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScenarioSession {
    /// In which situation it is played; what is not said does not matter.
    #[serde(default)]
    pub when: Condition,
    /// What it does, in order.
    #[serde(default, rename = "do")]
    pub acts: Vec<ScenarioAction>,
    /// What it answers; nothing if it says nothing.
    pub answer: Option<ScenarioAnswer>,
}

/// A situation. Every condition that is given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Condition {
    /// The iteration's number.
    pub iter: Option<u32>,
    /// The node's id.
    pub node: Option<String>,
    /// How many attempts at the node are spent.
    pub attempts: Option<u64>,
    /// `leaf`, `repair` or `replan`.
    pub mode: Option<String>,
}

/// One thing that an agent does.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
pub enum ScenarioAction {
    /// Writes a file.
    Write { path: String, text: String },
    /// Adds to a file.
    Append { path: String, text: String },
    /// Removes a file or a folder.
    Delete { path: String },
    /// Prints a line.
    Print { text: String },
    /// Waits.
    Sleep { ms: u64 },
    /// Runs a program and waits for it.
    Run { argv: Vec<String> },
    /// Gives a node children. Fields that are not said are filled in as a careful agent would.
    AddChildren { node: String, children: Vec<NewChild> },
    /// Sets a field of a node, lawfully or not.
    SetField { node: String, field: String, json: String },
    /// Removes a node from the tree.
    RemoveNode { node: String },
    /// Reports what the session used and how its provider failed it, as any agent may.
    Report(Box<ReportedUsage>),
    /// Ends the session at once with this exit code.
    Exit { code: u8 },
}

/// What a session reports of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReportedUsage {
    /// Tokens read, those from the cache among them.
    pub input_tokens: Option<u64>,
    /// Tokens of these that came from the cache.
    pub cached_input_tokens: Option<u64>,
    /// Tokens written.
    pub output_tokens: Option<u64>,
    /// Millionths of a dollar.
    pub cost_microdollars: Option<u64>,
    /// How the provider failed: `rate_limited`, `overloaded`, `disconnected`, `usage_limit`, `refused`,
    /// `not_logged_in`, `context_full` or `schema_violated`.
    pub fault: Option<String>,
    /// With `usage_limit` and `rate_limited`: how many seconds from now on it lasts.
    pub resets_in_secs: Option<u32>,
    /// What the provider said.
    pub why: Option<String>,
}

impl ReportedUsage {
    /// The report as an agent writes it at this moment, or the word that stands for no fault.
    pub fn at(&self, now_unix_secs: u64) -> Result<AgentReport, String> {
        let why = || self.why.clone().unwrap_or_else(|| "the provider said no".to_owned());
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

/// A new node.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewChild {
    /// Its id.
    pub id: String,
    /// Its title; the id if not said.
    pub title: Option<String>,
    /// Its goal; the title if not said.
    pub goal: Option<String>,
    /// Its acceptance.
    #[serde(default)]
    pub acceptance: Vec<String>,
}

/// What the session answers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum ScenarioAnswer {
    /// As the contract has it.
    Lawful {
        /// The claim.
        status: AgentStatus,
        /// What it says about it.
        summary: String,
    },
    /// Any text in the answer's place.
    Raw {
        /// Written as it is.
        raw: String,
    },
}

/// A scenario that cannot be read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the scenario cannot be read: {0}")]
pub struct ScenarioError(String);

/// What the agent is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionContext<'a> {
    /// The iteration's number.
    pub iter: u32,
    /// The node's id.
    pub node: &'a str,
    /// How many attempts at it are spent.
    pub attempts: u64,
    /// `leaf`, `repair` or `replan`.
    pub mode: &'a str,
}

impl Scenario {
    /// Reads a scenario strictly.
    pub fn decode(text: &str) -> Result<Self, ScenarioError> {
        toml::from_str(text).map_err(|error| ScenarioError(error.to_string()))
    }

    /// The session that is played in a situation.
    pub fn session_for(&self, situation: SessionContext<'_>) -> Option<&ScenarioSession> {
        self.session.iter().find(|session| session.when.holds(situation))
    }
}

impl Condition {
    fn holds(&self, situation: SessionContext<'_>) -> bool {
        self.iter.is_none_or(|iter| iter == situation.iter)
            && self.node.as_deref().is_none_or(|node| node == situation.node)
            && self.attempts.is_none_or(|attempts| attempts == situation.attempts)
            && self.mode.as_deref().is_none_or(|mode| mode == situation.mode)
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
    fn the_first_session_that_fits_is_played() {
        let scenario = Scenario::decode(TEXT).unwrap();
        let at = |iter, node, attempts| {
            let situation = SessionContext { iter, node, attempts, mode: "leaf" };
            let session = scenario.session_for(situation).unwrap();
            scenario.session.iter().position(|one| std::ptr::eq(one, session)).unwrap()
        };
        assert_eq!(at(1, "root", 0), 0);
        assert_eq!(at(2, "root", 1), 2);
        assert_eq!(at(7, "a", 0), 1);
        assert_eq!(at(8, "a", 0), 2);
    }

    #[test]
    fn a_wrong_word_is_told_with_its_line() {
        let fault = Scenario::decode("[[session]]\nanswr = 1\n").unwrap_err().to_string();
        assert!(fault.contains("line 2") && fault.contains("answr"), "{fault}");
        assert!(Scenario::decode("[[session]]\n[[session.do]]\nfly = 1\n").is_err());
    }

    #[test]
    fn a_report_says_what_was_used_and_how_the_provider_failed() {
        let reported = |fields: &str| {
            let text = format!("[[session]]\n[[session.do]]\nreport = {{ {fields} }}\n");
            match Scenario::decode(&text).unwrap().session[0].acts.as_slice() {
                [ScenarioAction::Report(report)] => report.at(1_000),
                acts => panic!("{acts:?}"),
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
        let no = || "the provider said no".to_owned();
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
            ("'not_logged_in'", ProviderError::NotLoggedIn { why: no() }),
            ("'context_full'", ProviderError::ContextFull),
            ("'schema_violated'", ProviderError::SchemaViolated { why: no() }),
        ] {
            let expected = AgentReport { usage: Usage::default(), fault: Some(fault) };
            assert_eq!(reported(&format!("fault = {fields}")), Ok(expected), "{fields}");
        }
        assert_eq!(reported("fault = 'tired'"), Err("tired".to_owned()));
    }
}
