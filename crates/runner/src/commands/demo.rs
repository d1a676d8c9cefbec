//! `runner demo`

use std::path::{Path, PathBuf};

use runner_core::model::tree::Tree;
use runner_core::runs::start::StartOptions;
use runner_host::ops::demo_repo::{self, ScratchFile};
use runner_host::ops::start::start;
use runner_term::{CommandError, CommandExit, CommandOutput, KeyValueLine, Styler, TextRole, Ui};
use serde_json::{Value, json};

use super::run_loop::{LoopOutput, run_loop};
use super::tree::load;
use crate::args::{DemoArgs, LoopArgs};
use crate::render::tree::{TreeScope, draw};

const GUARD: &str = include_str!("../../demo/check");
const GOAL: &str = include_str!("../../demo/GOAL.md");
const SCENARIO: &str = include_str!("../../demo/agent.toml");

const WHAT: &str = "could not run the demo";

/// The run, when it is over.
pub(crate) struct DemoOutput {
    repository: PathBuf,
    tree: Tree,
    history: Vec<String>,
    done: LoopOutput,
}

pub(crate) fn run(args: &DemoArgs, out: &Ui) -> Result<DemoOutput, CommandError> {
    let place = args
        .dir
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join(format!("runner-demo-{}", std::process::id())));
    std::fs::create_dir(&place).map_err(|error| {
        CommandError::new("demo", CommandExit::REFUSED, WHAT)
            .cause(format!("the folder `{}` could not be made: {error}", place.display()))
            .hint("name a folder that does not exist yet: runner demo --dir DIR")
    })?;
    let repository = place.join("roman");
    prepare(&place, &repository)?;
    let done = run_loop(&repository, &LoopArgs { max_iterations: None }, out)?;
    let history =
        demo_repo::recent_commits(&repository, 20).map_err(|error| CommandError::from_host(WHAT, error))?;
    Ok(DemoOutput { tree: load(&repository, WHAT)?, repository, history, done })
}

/// The repository, the agent beside it, and the run's start.
fn prepare(place: &Path, repository: &Path) -> Result<(), CommandError> {
    let told = |error| CommandError::from_host(WHAT, error);
    let agent = place.join("agent.toml");
    std::fs::write(&agent, SCENARIO).map_err(|error| {
        CommandError::new("demo", CommandExit::FAILURE, WHAT).cause(format!("`{}`: {error}", agent.display()))
    })?;
    // In a sandbox the cheat could not even try to change its guard.
    let config = format!(
        "[executor]\nkind = \"script\"\nscenario = {}\nsandbox = \"off\"\n\n[guard]\ncommand = [\"./check\"]\nprotected = [\"check\"]\n",
        Value::from(agent.display().to_string())
    );
    demo_repo::create(repository, &[ScratchFile { path: "check", text: GUARD, executable: true }])
        .map_err(told)?;
    runner_host::ops::init::init(repository, runner_host::ops::init::ExistingFiles::Keep).map_err(told)?;
    let config_path = repository.join(runner_core::layout::Doc::Config.path());
    std::fs::write(&config_path, config).map_err(|error| {
        CommandError::new("demo", CommandExit::FAILURE, WHAT)
            .cause(format!("`{}`: {error}", config_path.display()))
    })?;
    start(repository, &StartOptions { goal: Some(GOAL.to_owned()), ..StartOptions::default() })
        .map_err(told)?;
    Ok(())
}

impl CommandOutput for DemoOutput {
    fn json(&self) -> Value {
        let mut end = self.done.json();
        if let Value::Object(end) = &mut end {
            end.insert("repository".to_owned(), json!(self.repository.display().to_string()));
            end.insert("history".to_owned(), json!(self.history));
        }
        end
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut lines = self.done.key_values();
        lines.push(KeyValueLine::new().with("repository", self.repository.display()));
        lines
    }

    fn human(&self, pen: &Styler) -> String {
        let title = |text: &str| format!("\n{}\n", pen.paint(TextRole::Strong, text));
        let mut text = self.done.human(pen);
        text.push_str(&title("The tree"));
        text.push_str(&draw(&self.tree, TreeScope { levels: usize::MAX, only_open: false }, pen));
        text.push_str(&title("git log --oneline"));
        for line in &self.history {
            text.push_str(&pen.fit(line, pen.width));
            text.push('\n');
        }
        text.push_str(&title("Look around"));
        let place = self.repository.display();
        for (command, what) in [
            (format!("cd {place}"), ""),
            ("sh roman 1994".to_owned(), "what the agent made"),
            ("runner status".to_owned(), "where the run stands"),
            ("git show HEAD".to_owned(), "an iteration: work, tree and verdict in one commit"),
            ("ls .runner/iterations/*/*".to_owned(), "prompts, answers, guard logs"),
        ] {
            text.push_str(&format!("  {command:32} {}\n", pen.paint(TextRole::Faint, what)));
        }
        text
    }

    fn exit(&self) -> CommandExit {
        self.done.exit()
    }
}
