//! The script: a TOML document, read strictly.
//!
//! ```toml
//! count = "results"       # a step is chosen by the tool results in the request, or by "requests" answered so far
//! requests_max = 1000     # every request beyond is refused, so that no agent can ask for ever
//! usage = { input = 1000, cached = 200, output = 50, reasoning = 10 }   # what an answer is said to have cost
//!
//! [[part]]                                # the first part that fits the prompt is played
//! when = ["leaf one, attempt 1 of"]       # all of these stand in the prompt; without it, any prompt fits
//! unless = ["Cut to fit"]                 # none of these does
//!
//! [[part.step]]                           # step 0: the request holds no tool result yet
//! do.shell = "echo hi > hello.txt"        # call whatever shell tool the request offers
//! say = "First, a file."                  # text in front of the call
//! delay_ms = 20                           # wait before the first byte
//! usage = { input = 2000 }                # instead of the script's; what is not named stays
//! fault = [                               # played in this order, before the step itself
//!     { times = 1, what.http = { status = 429, headers = { retry-after = "1" }, body = { error = {} } } },
//!     { times = 1, what.event = { code = "server_is_overloaded", message = "later" } },   # an error in the stream
//!     { times = 2, what = "drop" },       # no answer; "cut": half of the stream; "hang": nothing, for ever
//! ]
//!
//! [[part.step]]
//! do.tool = { name = "Write", arguments = { path = "a", text = "b" } }    # exactly this tool
//! [[part.step]]
//! do.custom = { name = "apply_patch", input = "*** Begin Patch" }         # a tool that takes free text
//! [[part.step]]
//! do.final = { status = "done", summary = "made it" }     # the structured answer, where the request has a tool for
//!                                                         # it, else this as text; a string is always text
//! ```
//!
//! Steps are chosen without memory: retries, parallel sessions and side requests cannot put a script out of step.
//! Requests beyond the last step get the last step again. A fault without `times` is played for ever, and its step
//! needs no `do`. Requests that offer no tools (for titles, say) get `ok`, and those that ask for a summary of the
//! conversation get one; neither is a step.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// What the server answers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelScript {
    /// What chooses the step.
    #[serde(default)]
    pub count: StepCounter,
    /// How many requests are answered.
    #[serde(default = "requests_max")]
    pub requests_max: usize,
    /// What an answer is said to have cost.
    #[serde(default)]
    pub usage: ScriptUsage,
    /// The parts, by prompt.
    #[serde(rename = "part")]
    pub parts: Vec<ScriptPart>,
}

fn requests_max() -> usize {
    1000
}

/// What chooses the step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StepCounter {
    /// The number of tool results in the request.
    #[default]
    Results,
    /// The number of requests of the session that were answered: for agents that drop results from their history.
    Requests,
}

/// Numbers of tokens. What is not named is the script's, and in the script the server's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptUsage {
    /// All tokens read, cached ones included.
    pub input: Option<u64>,
    /// Those of them that came from a cache.
    pub cached: Option<u64>,
    /// All tokens written, thoughts included.
    pub output: Option<u64>,
    /// Those of them that were thoughts.
    pub reasoning: Option<u64>,
}

/// What is played for some prompts.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptPart {
    /// All of these stand in the prompt.
    #[serde(default)]
    pub when: Vec<String>,
    /// None of these does.
    #[serde(default)]
    pub unless: Vec<String>,
    /// One answer each.
    #[serde(rename = "step")]
    pub steps: Vec<ScriptStep>,
}

/// One answer.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptStep {
    /// What the model does.
    #[serde(rename = "do")]
    pub action: Option<ModelAction>,
    /// What it says first.
    pub say: Option<String>,
    /// How long it takes.
    #[serde(default)]
    pub delay_ms: u64,
    /// What it costs.
    #[serde(default)]
    pub usage: ScriptUsage,
    /// What goes wrong before.
    #[serde(rename = "fault", default)]
    pub faults: Vec<ScriptFault>,
}

/// What a model can do.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum ModelAction {
    /// Run this in whatever shell it is offered.
    Shell(String),
    /// Call this tool.
    Tool {
        /// Its name.
        name: String,
        /// What it gets.
        arguments: Value,
    },
    /// Call this tool, which takes text.
    Custom {
        /// Its name.
        name: String,
        /// What it gets.
        input: String,
    },
    /// Give the answer.
    Final(Value),
}

/// What goes wrong, and how often.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptFault {
    /// Without a number, always.
    pub times: Option<u32>,
    /// What.
    pub what: InjectedFault,
}

/// What can go wrong.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum InjectedFault {
    /// An answer that is an error.
    Http(HttpError),
    /// The connection is closed without an answer.
    Drop,
    /// The connection is closed in the middle of the answer.
    Cut,
    /// The answer begins and never goes on.
    Hang,
    /// The stream holds this error instead of an answer.
    Event(Value),
}

/// An error over HTTP.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HttpError {
    /// Its status.
    pub status: u16,
    /// More headers.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Its body; without it, what the wire format has for the status.
    pub body: Option<Value>,
}

impl InjectedFault {
    /// How the log calls it.
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

/// Why a script cannot be played.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// It is not what the format says.
    #[error("the script cannot be read: {0}")]
    Format(#[from] toml::de::Error),
    /// There is nothing to play.
    #[error("the script has no part: add one, as `[[part]]`")]
    NoPart,
    /// A part has nothing to play.
    #[error("part {part} of the script has no step: add one, as `[[part.step]]`")]
    NoStep {
        /// Counted from 1.
        part: usize,
    },
    /// A step would come to its end without an answer.
    #[error("step {step} of part {part} does nothing: give it `do`, or a fault without `times`")]
    NoAction {
        /// Counted from 1.
        part: usize,
        /// Counted from 0, as steps are.
        step: usize,
    },
    /// A status that HTTP does not have.
    #[error("step {step} of part {part} answers with HTTP status {status}, which there is not")]
    Status {
        /// Counted from 1.
        part: usize,
        /// Counted from 0.
        step: usize,
        /// What was written.
        status: u16,
    },
}

impl ModelScript {
    /// Reads a script strictly.
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
        for (step, played) in self.steps.iter().enumerate() {
            if played.action.is_none() && played.faults.iter().all(|fault| fault.times.is_some()) {
                return Err(ScriptError::NoAction { part, step });
            }
            for fault in &played.faults {
                if let InjectedFault::Http(HttpError { status, .. }) = fault.what
                    && !(200..=599).contains(&status)
                {
                    return Err(ScriptError::Status { part, step, status });
                }
            }
        }
        Ok(())
    }

    /// Whether it is played for this prompt.
    pub fn fits(&self, prompt: &str) -> bool {
        self.when.iter().all(|text| prompt.contains(text))
            && !self.unless.iter().any(|text| prompt.contains(text))
    }
}

impl ScriptUsage {
    /// These numbers, and those of `other` for what is not named here.
    pub fn or(self, other: Self) -> Self {
        Self {
            input: self.input.or(other.input),
            cached: self.cached.or(other.cached),
            output: self.output.or(other.output),
            reasoning: self.reasoning.or(other.reasoning),
        }
    }
}
