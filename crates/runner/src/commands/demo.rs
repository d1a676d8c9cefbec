//! `runner demo`

use std::path::{Path, PathBuf};

use runner_core::config::OnStuck;
use runner_core::model::tree::Tree;
use runner_core::runs::start::StartOptions;
use runner_host::ops::demo_repo::{self, ScratchFile};
use runner_host::ops::start::start;
use runner_term::{CommandError, CommandExit, CommandOutput, KeyValueLine, Styler, TextRole, Ui};
use serde_json::{Value, json};

use super::run_loop::{self, LoopOutput};
use super::tree::load;
use crate::args::{DemoArgs, LoopOptions};
use crate::render::tree::{TreeScope, draw};

const GUARD: &str = include_str!("../../demo/check");
const GOAL: &str = include_str!("../../demo/GOAL.md");
const SCENARIO: &str = include_str!("../../demo/agent.toml");

const WHAT: &str = "could not run the demo";

pub(crate) struct DemoOutput {
    repository: PathBuf,
    tree: Tree,
    history: Vec<String>,
    end: LoopOutput,
}

pub(crate) fn run(args: &DemoArgs, ui: &Ui) -> Result<DemoOutput, CommandError> {
    let folder = args
        .dir
        .clone()
        .unwrap_or_else(|| std::env::temp_dir().join(format!("runner-demo-{}", std::process::id())));
    std::fs::create_dir(&folder).map_err(|error| {
        CommandError::refused("demo", WHAT)
            .cause(format!("cannot create `{}`: {error}", folder.display()))
            .hint("pass a folder that does not exist yet: runner demo --dir DIR")
    })?;
    let repository = folder.join("roman");
    prepare(&folder, &repository)?;
    let end = run_loop::run(&repository, &LoopOptions { allow_red: true, ..LoopOptions::default() }, ui)?;
    let history =
        demo_repo::recent_commits(&repository, 20).map_err(|error| CommandError::from_host(WHAT, error))?;
    Ok(DemoOutput { tree: load(&repository, WHAT)?, repository, history, end })
}

/// Creates the repository and the agent's scenario beside it, and starts the run.
fn prepare(folder: &Path, repository: &Path) -> Result<(), CommandError> {
    let failed = |error| CommandError::from_host(WHAT, error);
    let agent = folder.join("agent.toml");
    std::fs::write(&agent, SCENARIO).map_err(|error| {
        CommandError::new("demo", CommandExit::FAILURE, WHAT).cause(format!("`{}`: {error}", agent.display()))
    })?;
    // In a sandbox the scripted agent could not even try to change the guard.
    let config = format!(
        "[executor]\nkind = \"script\"\nscenario = {}\nsandbox = \"off\"\n\n[guard]\ncommand = [\"./check\"]\nprotected = [\"check\"]\n",
        Value::from(agent.display().to_string())
    );
    demo_repo::create(repository, &[ScratchFile { path: "check", text: GUARD, executable: true }])
        .map_err(failed)?;
    runner_host::ops::init::init(repository, runner_host::ops::init::ExistingFiles::Keep).map_err(failed)?;
    let config_path = repository.join(runner_core::layout::Doc::Config.path());
    std::fs::write(&config_path, config).map_err(|error| {
        CommandError::new("demo", CommandExit::FAILURE, WHAT)
            .cause(format!("`{}`: {error}", config_path.display()))
    })?;
    start(repository, &StartOptions { goal: Some(GOAL.to_owned()), ..StartOptions::default() })
        .map_err(failed)?;
    Ok(())
}

impl CommandOutput for DemoOutput {
    fn json(&self) -> Value {
        let mut end = self.end.json();
        if let Value::Object(end) = &mut end {
            end.insert("repository".to_owned(), json!(self.repository.display().to_string()));
            end.insert("history".to_owned(), json!(self.history));
        }
        end
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut lines = self.end.key_values();
        lines.push(KeyValueLine::new().with("repository", self.repository.display()));
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        let title = |text: &str| format!("\n{}\n", styler.paint(TextRole::Strong, text));
        let mut text = self.end.human(styler);
        text.push_str(&title("Task tree"));
        text.push_str(&draw(
            &self.tree,
            OnStuck::Stop,
            TreeScope { levels: usize::MAX, only_open: false },
            styler,
        ));
        text.push_str(&title("git log --oneline"));
        for line in &self.history {
            text.push_str(&styler.fit(line, styler.width));
            text.push('\n');
        }
        text.push_str(&title("Try"));
        text.push_str(&format!("  cd {}\n", self.repository.display()));
        for (command, comment) in [
            ("sh roman 1994", "# the program that the agent wrote"),
            ("runner status", "# the run's status"),
            ("runner log", "# its iterations"),
            ("git show HEAD", "# one iteration: work and plan in one commit"),
            ("ls .runner/iterations/*/*", "# prompts, answers and guard logs"),
        ] {
            text.push_str(&format!("  {command:27} {}\n", styler.paint(TextRole::Faint, comment)));
        }
        text
    }

    fn exit(&self) -> CommandExit {
        self.end.exit()
    }
}
