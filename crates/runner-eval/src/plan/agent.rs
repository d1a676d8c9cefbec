//! The agent of a trial, as `--agent` names it, and the runner configuration that follows from it.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use runner_core::agents::scenario::{Scenario, ScenarioAction};
use runner_core::agents::{AGENTS, agent_named};
use toml::{Table, Value};

use super::arm::merge_tables;
use crate::case::{Case, inline, toml_text};

/// The scenario of an agent that answers "done" and changes nothing.
pub(crate) const NOP_SCENARIO: &str =
    "[[session]]\nanswer = { status = \"done\", summary = \"nothing was done, on purpose\" }\n";

/// Agents that are not programs: the case's own, its solution, one that does nothing, one whose programs exit with 0, and
/// the case's cheats.
const BUILT_IN: [&str; 5] = ["case", "oracle", "nop", "exit0", "cheat"];

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EvalAgent {
    /// The agent in the case's own configuration.
    Case,
    /// Plays the case's solution.
    Oracle,
    /// Answers "done" and does nothing.
    Nop,
    /// Writes the files of the solution, but with programs that print a success and exit with 0 at once.
    ExitZero,
    /// Plays one of the case's cheats, counted from 1.
    Cheat(usize),
    /// An agent program, with or without a model.
    Real { kind: String, model: Option<String> },
}

/// Every value of `--agent`, without models.
pub(crate) fn agent_names() -> Vec<&'static str> {
    AGENTS.into_iter().map(|agent| agent.name).chain(BUILT_IN).collect()
}

impl FromStr for EvalAgent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, model) = match text.split_once(':') {
            Some((_, "")) => return Err("the model after the colon is missing".to_owned()),
            Some((kind, model)) => (kind, Some(model.to_owned())),
            None => (text, None),
        };
        match (kind, &model) {
            ("case", None) => Ok(Self::Case),
            ("oracle", None) => Ok(Self::Oracle),
            ("nop", None) => Ok(Self::Nop),
            ("exit0", None) => Ok(Self::ExitZero),
            (cheat, None) if cheat.starts_with("cheat") => match cheat.trim_start_matches("cheat") {
                "" => Ok(Self::Cheat(1)),
                number => match number.parse() {
                    Ok(number) if number > 1 => Ok(Self::Cheat(number)),
                    _ => Err("the cheats are cheat, cheat2, cheat3, …".to_owned()),
                },
            },
            _ if agent_named(kind).is_some() => Ok(Self::Real { kind: kind.to_owned(), model }),
            _ => Err(format!("the agents are {}", agent_names().join(", "))),
        }
    }
}

impl fmt::Display for EvalAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Case => f.write_str("case"),
            Self::Oracle => f.write_str("oracle"),
            Self::Nop => f.write_str("nop"),
            Self::ExitZero => f.write_str("exit0"),
            Self::Cheat(1) => f.write_str("cheat"),
            Self::Cheat(number) => write!(f, "cheat{number}"),
            Self::Real { kind, model: None } => f.write_str(kind),
            Self::Real { kind, model: Some(model) } => write!(f, "{kind}:{model}"),
        }
    }
}

impl EvalAgent {
    /// The scenario file that the agent plays, if it plays one and the case has it.
    pub(crate) fn scenario<'c>(&self, case: &'c Case) -> Option<&'c str> {
        match self {
            Self::Case => case.config.scenario(),
            Self::Oracle => case.solution.as_deref(),
            Self::Cheat(number) => case.cheats.get(number.saturating_sub(1)).map(String::as_str),
            Self::Nop | Self::ExitZero | Self::Real { .. } => None,
        }
    }

    /// Whether the case has what this agent needs.
    pub(crate) fn can_run(&self, case: &Case) -> bool {
        match self {
            Self::Oracle | Self::ExitZero => case.solution.is_some(),
            Self::Cheat(_) => self.scenario(case).is_some(),
            Self::Case => case.config.kind().is_some(),
            Self::Nop | Self::Real { .. } => true,
        }
    }

    /// The runner's configuration for a trial: the case's own, its limits, this agent, and the overrides of an arm.
    /// `scenario` is the path of the scenario that the agent plays.
    pub(crate) fn configuration(&self, case: &Case, scenario: Option<PathBuf>, overrides: &Table) -> String {
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
            // Only this agent is measured: the ladder would bring in others.
            config.remove("ladder");
        }
        merge_tables(&mut config, overrides);
        toml_text(&config)
    }

    fn executor(&self, case: &Case, scenario: Option<PathBuf>) -> Table {
        let case_executor = table_of(case.config.table(), "executor");
        let text = |text: &str| Value::String(text.to_owned());
        let case_kind = case_executor.get("kind").and_then(Value::as_str);
        let is_case_agent = match self {
            Self::Case => true,
            Self::Real { kind, .. } => case_kind == Some(kind),
            Self::Oracle | Self::Nop | Self::ExitZero | Self::Cheat(_) => false,
        };
        // The case's settings for an agent (its program, its provider) also apply if `--agent` names that agent.
        let mut executor = case_executor;
        if !is_case_agent {
            executor.retain(|key, _| matches!(key, "sandbox" | "writable"));
        }
        if let Self::Real { kind, model } = self {
            if agent_named(kind).is_some_and(|agent| !agent.is_preset()) {
                executor.insert("kind".to_owned(), text(kind));
                executor.remove("sandbox");
                executor.remove("writable");
            } else {
                executor.insert("kind".to_owned(), text("command"));
                executor.insert("preset".to_owned(), text(kind));
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

/// The scenario of an agent that writes the files of a solution with programs that only exit with 0.
pub(crate) fn exit_zero_scenario(solution: &str) -> String {
    let mut actions = String::new();
    let sessions = Scenario::decode(solution).map(|scenario| scenario.session).unwrap_or_default();
    let written: Vec<ScenarioAction> = sessions.into_iter().flat_map(|session| session.actions).collect();
    let is_program = |action: &ScenarioAction| matches!(action, ScenarioAction::Write { path, .. } if exit_zero_program(path).is_some());
    if !written.iter().any(is_program) {
        // The solution has no programs, so its files would be the solution.
        return NOP_SCENARIO.to_owned();
    }
    for action in written {
        if let ScenarioAction::Write { path, text } = action {
            let text = exit_zero_program(&path).map_or(text, str::to_owned);
            let [path, text] = [path, text].map(|text| inline(&Value::String(text)));
            actions.push_str(&format!("[[session.do]]\nwrite = {{ path = {path}, text = {text} }}\n"));
        }
    }
    format!("[[session]]\nanswer = {{ status = \"done\", summary = \"done\" }}\n{actions}")
}

/// A program that exits with 0 and looks like a passed test run; none for a file that is not a program.
fn exit_zero_program(path: &str) -> Option<&'static str> {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("py") => Some("import os\nos.write(1, b\"OK\\n\")\nos._exit(0)\n"),
        Some("js" | "mjs" | "cjs") => Some("console.log(\"ok\");\nprocess.exit(0);\n"),
        Some("rs") => {
            Some("fn main() {\n    println!(\"test result: ok\");\n    std::process::exit(0);\n}\n")
        }
        Some("sh") => Some("#!/bin/sh\necho ok\nexit 0\n"),
        Some(_) | None => None,
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
    fn agent_name_round_trips() {
        for name in
            ["case", "oracle", "nop", "exit0", "cheat", "cheat2", "codex", "claude:opus-5", "opencode:x/y"]
        {
            assert_eq!(name.parse::<EvalAgent>().unwrap().to_string(), name);
        }
        for invalid in ["oracle:x", "codex:", "script", "", "cheat1", "cheatx"] {
            assert!(invalid.parse::<EvalAgent>().is_err(), "{invalid}");
        }
    }

    #[test]
    fn agents_of_the_registry_are_known() {
        assert_eq!(
            agent_names(),
            [
                "codex", "claude", "opencode", "gemini", "qwen", "copilot", "pi", "kilo", "grok", "case",
                "oracle", "nop", "exit0", "cheat"
            ]
        );
    }

    #[test]
    fn executor_settings_of_a_case_apply_only_to_the_same_agent() {
        let text = "[case]\nid = \"a\"\ngoal = \"g\"\n[config.executor]\nkind = \"codex\"\nmodel = \"m\"\n\
                    base_url = \"http://127.0.0.1:1/v1\"\n[[checks]]\ntype = \"git_clean\"\n";
        let case = Case::decode(text.as_bytes()).unwrap();
        let executor_of = |name: &str| {
            let text = name.parse::<EvalAgent>().unwrap().configuration(&case, None, &Table::new());
            let executor = Config::decode(text.as_bytes()).unwrap().executor;
            (executor.base_url.is_some(), executor.model)
        };
        assert_eq!(executor_of("codex"), (true, Some("m".to_owned())));
        assert_eq!(executor_of("codex:other"), (true, Some("other".to_owned())));
        assert_eq!(executor_of("claude"), (false, None));
    }

    #[test]
    fn exit_zero_agent_writes_the_files_of_the_solution() {
        let solution = "[[session]]\nanswer = { status = \"done\", summary = \"d\" }\n[[session.do]]\n\
                        write = { path = \"a/b.py\", text = \"print(1)\" }\n[[session.do]]\n\
                        write = { path = \"c.json\", text = \"{}\" }\n";
        let scenario = Scenario::decode(&exit_zero_scenario(solution)).unwrap();
        let actions = &scenario.session[0].actions;
        assert!(
            matches!(&actions[0], ScenarioAction::Write { path, text } if path == "a/b.py" && text.contains("_exit(0)"))
        );
        assert!(matches!(&actions[1], ScenarioAction::Write { text, .. } if text == "{}"));
        assert_eq!(exit_zero_scenario(&solution.replace("b.py", "b.md")), NOP_SCENARIO);
    }

    #[test]
    fn configuration_of_every_agent_is_valid() {
        for (name, kind) in [
            ("case", ExecutorKind::Script),
            ("oracle", ExecutorKind::Script),
            ("nop", ExecutorKind::Script),
            ("claude:opus-5", ExecutorKind::Claude),
            ("qwen", ExecutorKind::Command),
        ] {
            let agent: EvalAgent = name.parse().unwrap();
            let has_scenario = !matches!(agent, EvalAgent::Real { .. });
            let text =
                agent.configuration(&case(), has_scenario.then(|| "/x/scenario.toml".into()), &Table::new());
            let config =
                Config::decode(text.as_bytes()).unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
            assert_eq!(config.executor.kind, kind, "{name}");
            assert_eq!(config.max_iterations.get(), 4);
            assert_eq!(config.budget.run_usd.map(Usd::microdollars), Some(1_500_000));
            assert_eq!(config.ladder.len(), usize::from(name == "case"));
        }
    }
}
