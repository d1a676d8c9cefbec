//! Arguments of `runner conformance`.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use runner_core::agents::{AGENTS, AgentSpec, agent_named};

/// Test an agent, or the runner itself, against scripted scenarios
///
/// Compares expected with actual outcomes. The scripted agent plays honest and misbehaving sessions, which tests the
/// runner on this machine. A real agent gets three small tasks: the test checks that it is installed and logged in,
/// answers correctly, splits a goal, reports its usage, and stops in time with all its processes. That uses your login
/// and costs a few thousand tokens, so it needs --yes.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner conformance                        # the agent in this configuration
  runner conformance --agent script         # scripted sessions, free of charge
  runner conformance --agent claude --yes   # three sessions with your login
  runner conformance --json | jq '.checks[] | select(.verdict == \"problem\")'")]
pub(crate) struct ConformanceArgs {
    /// Agent to test [default: the configured one, or else script]
    #[arg(long, value_name = "AGENT", value_parser = ConformanceAgent::parser())]
    pub(crate) agent: Option<ConformanceAgent>,
    /// Run a real agent, with your login and at your cost
    #[arg(long)]
    pub(crate) yes: bool,
    /// Time limit in seconds for the session that hangs on purpose
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) timeout_secs: u32,
}

/// An agent that `runner conformance` can test.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ConformanceAgent {
    Script,
    /// The program in the configuration, or else the runner itself, started as a program.
    Command,
    /// An agent of the registry.
    Known(&'static AgentSpec),
}

impl ConformanceAgent {
    /// A parser that accepts the names of all agents.
    fn parser() -> impl TypedValueParser<Value = Self> {
        let names = ["script", "command"].into_iter().chain(AGENTS.into_iter().map(|agent| agent.name));
        PossibleValuesParser::new(names).map(|name| match name.as_str() {
            "script" => Self::Script,
            name => agent_named(name).map_or(Self::Command, Self::Known),
        })
    }
}
