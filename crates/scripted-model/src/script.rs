//! The script that the server answers from: a TOML document, parsed strictly.
//!
//! ```toml
//! count = "results"       # choose the step by the tool results in the request, or by "requests" answered so far
//! requests_max = 1000     # refuse every request after these, so that no agent loops for ever
//! usage = { input = 1000, cached = 200, output = 50, reasoning = 10 }   # tokens to report for an answer
//!
//! [[part]]                                # the first part that matches the prompt answers
//! when = ["leaf one, attempt 1 of"]       # the prompt contains all of these [default: any prompt]
//! unless = ["Shortened to fit"]                 # the prompt contains none of these
//!
//! [[part.step]]                           # step 0: the request has no tool result yet
//! do.shell = "echo hi > hello.txt"        # call the shell tool that the request offers
//! text = "First, a file."                 # text before the call
//! delay_ms = 20                           # wait before the first byte
//! usage = { input = 2000 }                # overrides the script's values; the others stay
//! fault = [                               # injected in this order, before the step itself
//!     { times = 1, what.http = { status = 429, headers = { retry-after = "1" }, body = { error = {} } } },
//!     { times = 1, what.event = { code = "server_is_overloaded", message = "later" } },   # an error in the stream
//!     { times = 2, what = "drop" },       # no answer; "cut": half of the stream; "hang": headers, then nothing
//! ]
//!
//! [[part.step]]
//! do.tool = { name = "Write", arguments = { path = "a", text = "b" } }    # call exactly this tool
//! [[part.step]]
//! do.custom = { name = "apply_patch", input = "*** Begin Patch" }         # call a tool that takes free text
//! [[part.step]]
//! do.final = { status = "done", summary = "made it" }     # the structured answer if the request has a tool for it,
//!                                                         # otherwise this as text; a string is always text
//! ```
//!
//! With `count = "results"` the choice of a step is stateless: retries, parallel sessions and side requests cannot shift it.
//! Requests after the last step get the last step again. A fault without `times` repeats for ever, and its step needs no
//! `do`. Requests without tools (for a title, for example) get `ok`, and requests for a summary of the conversation get one;
//! neither counts as a step.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelScript {
    #[serde(default)]
    pub count: StepCounter,
    /// The server refuses every request after these.
    #[serde(default = "requests_max")]
    pub requests_max: usize,
    /// The tokens to report for an answer.
    #[serde(default)]
    pub usage: ScriptUsage,
    #[serde(rename = "part")]
    pub parts: Vec<ScriptPart>,
}

fn requests_max() -> usize {
    1000
}

/// What selects the step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepCounter {
    /// The number of tool results in the request.
    #[default]
    Results,
    /// The number of the session's requests answered so far: for agents that drop results from their history.
    Requests,
}

/// Token counts. A step's missing values come from the script, and the script's from the server's defaults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptUsage {
    /// All input tokens, including cached ones.
    pub input: Option<u64>,
    pub cached: Option<u64>,
    /// All output tokens, including reasoning.
    pub output: Option<u64>,
    pub reasoning: Option<u64>,
}

/// The steps for the prompts that match.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptPart {
    /// The prompt must contain all of these.
    #[serde(default)]
    pub when: Vec<String>,
    /// The prompt must contain none of these.
    #[serde(default)]
    pub unless: Vec<String>,
    #[serde(rename = "step")]
    pub steps: Vec<ScriptStep>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptStep {
    #[serde(rename = "do")]
    pub action: Option<ModelAction>,
    /// Text before the action.
    pub text: Option<String>,
    #[serde(default)]
    pub delay_ms: u64,
    #[serde(default)]
    pub usage: ScriptUsage,
    /// Injected before the step itself.
    #[serde(rename = "fault", default)]
    pub faults: Vec<ScriptFault>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum ModelAction {
    /// Run this command line with the shell tool that the request offers.
    Shell(String),
    Tool {
        name: String,
        arguments: Value,
    },
    /// Call this tool, which takes free text.
    Custom {
        name: String,
        input: String,
    },
    Final(Value),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptFault {
    /// How often to inject it; without a number, always.
    pub times: Option<u32>,
    pub what: InjectedFault,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum InjectedFault {
    Http(HttpError),
    /// Close the connection without an answer.
    Drop,
    /// Close the connection in the middle of the answer.
    Cut,
    /// Send the headers, then nothing.
    Hang,
    /// Send this error in the stream instead of an answer.
    Event(Value),
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpError {
    pub status: u16,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Without one, the wire format's body for the status.
    pub body: Option<Value>,
}

impl InjectedFault {
    /// The name in the request log.
    pub fn name(&self) -> String {
        match self {
            Self::Http(http) => format!("http {}", http.status),
            Self::Drop => "drop".to_owned(),
            Self::Cut => "cut".to_owned(),
            Self::Hang => "hang".to_owned(),
            Self::Event(_) => "event".to_owned(),
        }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    #[error("cannot parse the script: {0}")]
    Format(#[from] toml::de::Error),
    #[error("the script has no part: add a `[[part]]` table")]
    NoPart,
    #[error("part {part} of the script has no step: add a `[[part.step]]` table")]
    NoStep {
        /// Counted from 1.
        part: usize,
    },
    #[error("step {step} of part {part} has no action: add `do`, or a fault without `times`")]
    NoAction {
        /// Counted from 1.
        part: usize,
        /// Counted from 0, as steps are.
        step: usize,
    },
    #[error("step {step} of part {part} has HTTP status {status}: use a status from 200 to 599")]
    Status {
        /// Counted from 1.
        part: usize,
        /// Counted from 0.
        step: usize,
        status: u16,
    },
}

impl ModelScript {
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let script: Self = toml::from_str(text)?;
        if script.parts.is_empty() {
            return Err(ScriptError::NoPart);
        }
        for (index, part) in script.parts.iter().enumerate() {
            part.check(index + 1)?;
        }
        Ok(script)
    }
}

impl ScriptPart {
    fn check(&self, part: usize) -> Result<(), ScriptError> {
        if self.steps.is_empty() {
            return Err(ScriptError::NoStep { part });
        }
        for (step, script_step) in self.steps.iter().enumerate() {
            if script_step.action.is_none() && script_step.faults.iter().all(|fault| fault.times.is_some()) {
                return Err(ScriptError::NoAction { part, step });
            }
            for fault in &script_step.faults {
                if let InjectedFault::Http(HttpError { status, .. }) = fault.what
                    && !(200..=599).contains(&status)
                {
                    return Err(ScriptError::Status { part, step, status });
                }
            }
        }
        Ok(())
    }

    pub fn matches(&self, prompt: &str) -> bool {
        self.when.iter().all(|text| prompt.contains(text))
            && !self.unless.iter().any(|text| prompt.contains(text))
    }
}

impl ScriptUsage {
    /// These counts, with those of `other` where one is missing.
    pub fn or(self, other: Self) -> Self {
        Self {
            input: self.input.or(other.input),
            cached: self.cached.or(other.cached),
            output: self.output.or(other.output),
            reasoning: self.reasoning.or(other.reasoning),
        }
    }
}
