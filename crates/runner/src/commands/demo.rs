//! `runner demo`

use std::path::{Path, PathBuf};

use runner_core::config::OnStuck;
use runner_core::model::tree::Tree;
use runner_core::runs::start::StartOptions;
use runner_host::ops::demo_repo::{self, ScratchFile};
use runner_host::ops::start::start;
use runner_term::{CommandError, CommandExit, CommandOutput, KeyValueLine, Styler, TextRole, Ui};
use serde_json::{Value, json};

use super::run_loop;
use super::tree::load;
use super::verify::{self, VerifyOutput};
use crate::args::{DemoArgs, LoopOptions, PassSelection, RunArg, VerifyArgs};
use crate::render::tree::{TreeScope, draw};

const GUARD: &str = include_str!("../../demo/check");
const GOAL: &str = include_str!("../../demo/GOAL.md");
const SCENARIO: &str = include_str!("../../demo/agent.toml");

const WHAT: &str = "could not run the demo";

/// What the demo shows, in order: the iterations, and what each is about.
const STORY: [DemoScene; 7] = [
    DemoScene { when: "#1", what: "the plan: three tasks, each with checks that fail now (red)" },
    DemoScene { when: "#2", what: "honest work: the check turns green, and the task passes" },
    DemoScene { when: "#3", what: "a table of known answers instead of work: the check fails" },
    DemoScene { when: "#4", what: "a fresh session reads why, and does the work" },
    DemoScene { when: "#5", what: "a cheat: it rewrites guard and checks; the runner restores them" },
    DemoScene { when: "#6", what: "the real work" },
    DemoScene { when: "then", what: "the guard in a clean checkout, the proof from git, and a re-run" },
];

struct DemoScene {
    when: &'static str,
    what: &'static str,
}

pub(crate) struct DemoOutput {
    repository: PathBuf,
    tree: Tree,
    end: Box<dyn CommandOutput>,
    /// None if the run did not complete.
    proof: Option<VerifyOutput>,
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
    ui.print_unless_json(&DemoIntroduction);
    let end = run_loop::run(&repository, &LoopOptions::default(), ui)?;
    if end.exit() != CommandExit::SUCCESS {
        return Ok(DemoOutput { tree: load(&repository, WHAT)?, repository, end, proof: None });
    }
    ui.print_unless_json(end.as_ref());
    ui.print_unless_json(&DemoHeading("Proof from git, and every pass repeated: runner verify --rerun"));
    let rerun = VerifyArgs { target: None, rerun: Some(PassSelection::All), jobs: 2, run: RunArg::default() };
    let proof = verify::run(&repository, &rerun, ui)?;
    Ok(DemoOutput { tree: load(&repository, WHAT)?, repository, end, proof: Some(proof) })
}

/// What there is to see, before it begins.
struct DemoIntroduction;

impl CommandOutput for DemoIntroduction {
    fn json(&self) -> Value {
        Value::Null
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        STORY
            .iter()
            .map(|scene| KeyValueLine::new().with("scene", scene.when).with("what", scene.what))
            .collect()
    }

    fn human(&self, styler: &Styler) -> String {
        let mut text = styler.wrap(
            "A scripted agent builds a small program. Everything else is real: git, the plan, the checks, the guard. You \
             will see:",
            0,
        );
        text.push_str("\n\n");
        for scene in STORY {
            let what = styler.wrap(scene.what, 8);
            text.push_str(&format!("  {:5} {what}\n", scene.when));
        }
        text.push('\n');
        text
    }
}

/// A title between two parts of the output.
struct DemoHeading(&'static str);

impl CommandOutput for DemoHeading {
    fn json(&self) -> Value {
        Value::Null
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        Vec::new()
    }

    fn human(&self, styler: &Styler) -> String {
        format!("\n{}\n", styler.paint(TextRole::Strong, self.0))
    }
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
            end.insert("verify".to_owned(), self.proof.as_ref().map_or(Value::Null, CommandOutput::json));
        }
        end
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut lines = self.proof.as_ref().map_or_else(|| self.end.key_values(), CommandOutput::key_values);
        lines.push(KeyValueLine::new().with("repository", self.repository.display()));
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        let mut text =
            self.proof.as_ref().map_or_else(|| self.end.human(styler), |proof| proof.human(styler));
        text.push_str(&DemoHeading("The plan").human(styler));
        text.push_str(&draw(
            &self.tree,
            OnStuck::Stop,
            TreeScope { levels: usize::MAX, only_open: false },
            styler,
        ));
        text.push_str(&DemoHeading("Try").human(styler));
        text.push_str(&format!("  cd {}\n", self.repository.display()));
        for (command, comment) in [
            ("sh roman 1994", "# the program that the agent wrote"),
            ("runner checks", "# the checks: red before, green after"),
            ("runner log", "# the iterations"),
            ("runner show 5", "# the cheat"),
            ("git log", "# one commit per iteration: work and plan"),
        ] {
            text.push_str(&format!("  {command:14} {}\n", styler.paint(TextRole::Faint, comment)));
        }
        text
    }

    fn exit(&self) -> CommandExit {
        self.proof.as_ref().map_or_else(|| self.end.exit(), CommandOutput::exit)
    }
}
