//! Who does the work in a trial, and the configuration that follows.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::LazyLock;

use runner_core::agents::{AGENTS, AgentSpec, agent_named};
use toml::{Table, Value};

use crate::case::{Case, toml_text};

/// A scenario for an agent that says that it is done and does nothing.
pub(crate) const NOP: &str =
    "[[session]]\nanswer = { status = \"done\", summary = \"nothing was done, on purpose\" }\n";

/// Agents of the evaluation itself, besides those of the runner's registry.
const EVAL_AGENTS: [&str; 4] = ["case", "oracle", "nop", "cheat"];

/// An agent as people ask for it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EvalAgent {
    /// The one that the case's own configuration names.
    Case,
    /// Plays the case's solution.
    Oracle,
    /// Says that it is done, and does nothing.
    Nop,
    /// Plays the case's cheat.
    Cheat,
    /// An agent of the runner's registry, with or without a model.
    Real { name: String, model: Option<String> },
}

/// The names of the agents in the runner's registry.
fn agent_names() -> impl Iterator<Item = &'static str> {
    AGENTS.into_iter().map(|agent| agent.name)
}

/// The help text of `--agent`.
pub(crate) static AGENT_HELP: LazyLock<String> = LazyLock::new(|| {
    format!(
        "Agent to measure, repeatable: {}, each with an optional model; oracle, nop or cheat; or case, the agent that \
         each case configures [default: case]",
        agent_names().collect::<Vec<_>>().join(", ")
    )
});

impl FromStr for EvalAgent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, model) = match text.split_once(':') {
            Some((name, model)) if !model.is_empty() => (name, Some(model.to_owned())),
            Some((_, _)) => return Err("no model behind the colon".to_owned()),
            None => (text, None),
        };
        let agent = match (name, &model) {
            ("case", None) => Self::Case,
            ("oracle", None) => Self::Oracle,
            ("nop", None) => Self::Nop,
            ("cheat", None) => Self::Cheat,
            _ if agent_named(name).is_some() => Self::Real { name: name.to_owned(), model },
            _ => {
                return Err(format!(
                    "use one of {}",
                    agent_names().chain(EVAL_AGENTS).collect::<Vec<_>>().join(", ")
                ));
            }
        };
        Ok(agent)
    }
}

impl fmt::Display for EvalAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Case => f.write_str("case"),
            Self::Oracle => f.write_str("oracle"),
            Self::Nop => f.write_str("nop"),
            Self::Cheat => f.write_str("cheat"),
            Self::Real { name, model: None } => f.write_str(name),
            Self::Real { name, model: Some(model) } => write!(f, "{name}:{model}"),
        }
    }
}

impl EvalAgent {
    /// The name in file names: a model's may hold anything.
    pub(crate) fn slug(&self) -> String {
        let name = self.to_string();
        name.chars()
            .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-') { c } else { '_' })
            .collect()
    }

    /// The scenario that it plays, by the case's own name for it; none if it plays none, or the case has none.
    pub(crate) fn scenario<'c>(&self, case: &'c Case) -> Option<&'c str> {
        match self {
            Self::Case => case.config.scenario(),
            Self::Oracle => case.solution.as_deref(),
            Self::Cheat => case.cheat.as_deref(),
            Self::Nop | Self::Real { .. } => None,
        }
    }

    /// Whether a case can be given to it.
    pub(crate) fn fits(&self, case: &Case) -> bool {
        match self {
            Self::Oracle => case.solution.is_some(),
            Self::Cheat => case.cheat.is_some(),
            Self::Case => case.config.kind().is_some(),
            Self::Nop | Self::Real { .. } => true,
        }
    }

    /// The configuration of a trial: the case's own, its limits, and this agent. `scenario` is where the scenario that
    /// it plays lies.
    pub(crate) fn configuration(&self, case: &Case, scenario: Option<PathBuf>) -> String {
        let mut config = case.config.table().clone();
        if let Some(iterations) = case.limits.iterations {
            config.insert("max_iterations".to_owned(), Value::Integer(iterations));
        }
        let mut budget = table_of(&config, "budget");
        if let Some(tokens) = case.limits.tokens {
            budget.insert("run_tokens".to_owned(), Value::Integer(tokens));
        }
        if let Some(usd) = case.limits.usd {
            budget.insert("run_usd".to_owned(), Value::Float(usd));
        }
        if !budget.is_empty() {
            config.insert("budget".to_owned(), Value::Table(budget));
        }
        config.insert("executor".to_owned(), Value::Table(self.executor(case, scenario)));
        if *self != Self::Case {
            // Further agents would do what this one is measured by.
            config.remove("ladder");
        }
        toml_text(&config)
    }

    fn executor(&self, case: &Case, scenario: Option<PathBuf>) -> Table {
        let own = table_of(case.config.table(), "executor");
        let text = |text: &str| Value::String(text.to_owned());
        let own_kind = own.get("kind").and_then(Value::as_str);
        let is_own = matches!(self, Self::Real { name, .. } if own_kind == Some(name));
        // What a case says of an agent holds for that agent by name, too: its program, its provider.
        let mut executor = if *self == Self::Case || is_own {
            own
        } else {
            own.into_iter().filter(|(key, _)| matches!(key.as_str(), "sandbox" | "writable")).collect()
        };
        if let Self::Real { name, model } = self {
            if agent_named(name).is_some_and(AgentSpec::is_preset) {
                executor.insert("kind".to_owned(), text("command"));
                executor.insert("preset".to_owned(), text(name));
            } else {
                executor.insert("kind".to_owned(), text(name));
                executor.remove("sandbox");
                executor.remove("writable");
            }
            if let Some(model) = model {
                executor.insert("model".to_owned(), text(model));
            }
        }
        if let Some(scenario) = scenario {
            executor.insert("kind".to_owned(), text("script"));
            executor.insert("scenario".to_owned(), text(&scenario.to_string_lossy()));
        }
        executor
    }
}

fn table_of(table: &Table, key: &str) -> Table {
    table.get(key).and_then(Value::as_table).cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_core::config::{Config, ExecutorKind, Usd};

    fn case() -> Case {
        let text = "[case]\nid = \"a\"\ngoal = \"g\"\nsolution = \"s.toml\"\n[limits]\niterations = 4\nusd = 1.5\n\
                    [config.executor]\nkind = \"script\"\nscenario = \"a.toml\"\nsandbox = \"off\"\n\
                    [[config.ladder]]\nkind = \"claude\"\nafter_attempts = 1\n[[checks]]\ntype = \"git_clean\"\n";
        Case::decode(text.as_bytes()).unwrap()
    }

    #[test]
    fn an_agent_is_named_as_it_was_asked_for() {
        for name in ["case", "oracle", "nop", "cheat", "codex", "claude:opus-5", "opencode:x/y"] {
            assert_eq!(name.parse::<EvalAgent>().unwrap().to_string(), name);
        }
        for wrong in ["oracle:x", "codex:", "script", ""] {
            assert!(wrong.parse::<EvalAgent>().is_err(), "{wrong}");
        }
        assert_eq!("opencode:x/y".parse::<EvalAgent>().unwrap().slug(), "opencode_x_y");
    }

    #[test]
    fn what_a_case_says_of_an_agent_holds_for_that_agent_alone() {
        let text = "[case]\nid = \"a\"\ngoal = \"g\"\n[config.executor]\nkind = \"codex\"\nmodel = \"m\"\n\
                    base_url = \"http://127.0.0.1:1/v1\"\n[[checks]]\ntype = \"git_clean\"\n";
        let case = Case::decode(text.as_bytes()).unwrap();
        let of = |name: &str| {
            let text = name.parse::<EvalAgent>().unwrap().configuration(&case, None);
            let executor = Config::decode(text.as_bytes()).unwrap().executor;
            (executor.base_url.is_some(), executor.model)
        };
        assert_eq!(of("codex"), (true, Some("m".to_owned())));
        assert_eq!(of("codex:other"), (true, Some("other".to_owned())));
        assert_eq!(of("claude"), (false, None));
    }

    #[test]
    fn every_agent_gets_a_configuration_that_the_runner_takes() {
        for (name, kind) in [
            ("case", ExecutorKind::Script),
            ("oracle", ExecutorKind::Script),
            ("nop", ExecutorKind::Script),
            ("claude:opus-5", ExecutorKind::Claude),
            ("qwen", ExecutorKind::Command),
        ] {
            let agent: EvalAgent = name.parse().unwrap();
            let plays = !matches!(agent, EvalAgent::Real { .. });
            let text = agent.configuration(&case(), plays.then(|| "/x/scenario.toml".into()));
            let config =
                Config::decode(text.as_bytes()).unwrap_or_else(|faults| panic!("{name}: {faults:?}"));
            assert_eq!(config.executor.kind, kind, "{name}");
            assert_eq!(config.max_iterations.get(), 4);
            assert_eq!(config.budget.run_usd.map(Usd::microdollars), Some(1_500_000));
            assert_eq!(config.ladder.len(), usize::from(name == "case"));
        }
    }
}
