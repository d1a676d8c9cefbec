//! `runner plan edit`

use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use runner_core::config::Config;
use runner_core::runs::import::{BYTES_MAX, PlanError};
use runner_core::runs::plan_text::{plan_changes, plan_text, read_plan_text};
use runner_core::runs::start::PlanRewrite;
use runner_host::ops::start::{StartResult, rewrite_plan};
use runner_host::repo::readonly_repo::ReadonlyRepo;
use runner_host::view::inspect::inspect;
use runner_term::editor::{edit_file, editor_command};
use runner_term::format::counted;
use runner_term::{CommandError, CommandOutput, Glyph, KeyValueLine, Styler, TextRole, Ui};
use serde_json::{Value, json};

use super::tree::load;
use crate::args::PlanEditArgs;
use crate::render::short;

const WHAT: &str = "could not edit the plan";

pub(crate) struct PlanEditOutput {
    changes: Vec<String>,
    /// None without a change.
    started: Option<StartResult>,
}

pub(crate) fn run(dir: &Path, args: &PlanEditArgs, ui: &Ui) -> Result<PlanEditOutput, CommandError> {
    let before = load(dir, WHAT)?;
    let editor = match &args.file {
        Some(_) => None,
        None => Some(editor_command(ui.is_terminal()).ok_or_else(no_editor)?),
    };
    let file = match &args.file {
        Some(file) => EditedFile { path: file.clone(), is_ours: false },
        None => EditedFile::create(&plan_text(&before))?,
    };
    let after = loop {
        if let Some(editor) = &editor {
            edit_file(editor, &file.path).map_err(|error| file.kept(error.to_string()))?;
        }
        match read_plan_text(&file.read()?, &before, attempts(dir)?) {
            Ok(after) => break after,
            Err(errors) => {
                let error = file.refused(&errors);
                if editor.is_none() || !ui.can_ask() {
                    return Err(error);
                }
                ui.print_error(&error);
                if ui.confirm("Edit it again?") != Some(true) {
                    return Err(CommandError::refused("plan", "the plan is unchanged").hint(file.hint()));
                }
            }
        }
    };
    let changes = plan_changes(&before, &after);
    if after == before {
        file.remove();
        return Ok(PlanEditOutput { changes, started: None });
    }
    let started = rewrite_plan(dir, PlanRewrite { before, after })
        .map_err(|error| CommandError::from_host(WHAT, error).hint(file.hint()))?;
    file.remove();
    Ok(PlanEditOutput { changes, started: Some(started) })
}

fn no_editor() -> CommandError {
    CommandError::refused("no_editor", WHAT)
        .cause("there is no terminal, and neither VISUAL nor EDITOR is set")
        .hint("set EDITOR, for example: EDITOR='code --wait' runner plan edit")
}

/// How many attempts a new task has.
fn attempts(dir: &Path) -> Result<u32, CommandError> {
    let inspection = ReadonlyRepo::open(dir)
        .and_then(|repo| inspect(&repo))
        .map_err(|error| CommandError::from_host(WHAT, error))?;
    let default_config = Config::default();
    Ok(inspection.docs.config.valid().unwrap_or(&default_config).max_attempts_default.as_u32())
}

/// The text that the user edits.
struct EditedFile {
    path: PathBuf,
    /// Whether the runner created it, and removes it at the end.
    is_ours: bool,
}

impl EditedFile {
    fn create(text: &str) -> Result<Self, CommandError> {
        let folder = std::env::temp_dir();
        // An earlier text that was kept may have the same process id in its name.
        let mut paths = (0..100).map(|n| folder.join(format!("runner-plan-{}-{n}.md", std::process::id())));
        let path = paths.find(|path| path.symlink_metadata().is_err()).unwrap_or(folder);
        let mut options = std::fs::OpenOptions::new();
        let written = options.write(true).create_new(true).mode(0o600).open(&path);
        let written = written.and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()));
        match written {
            Ok(()) => Ok(Self { path, is_ours: true }),
            Err(error) => Err(CommandError::refused("plan_file", WHAT)
                .cause(format!("cannot write `{}`: {error}", path.display()))
                .hint("set TMPDIR to a writable directory")),
        }
    }

    fn read(&self) -> Result<String, CommandError> {
        let length = std::fs::metadata(&self.path).map(|metadata| metadata.len());
        match length {
            Ok(length) if length > BYTES_MAX as u64 => {
                Err(self.kept(format!("it has {length} bytes, at most {BYTES_MAX}")))
            }
            Ok(_) => std::fs::read_to_string(&self.path).map_err(|error| self.kept(error.to_string())),
            Err(error) => Err(self.kept(error.to_string())),
        }
    }

    fn hint(&self) -> String {
        format!("your text is in {0}; continue with 'runner plan edit --file {0}'", self.path.display())
    }

    fn kept(&self, cause: String) -> CommandError {
        CommandError::refused("plan_file", WHAT).cause(cause).hint(self.hint())
    }

    fn refused(&self, errors: &[PlanError]) -> CommandError {
        CommandError::refused("plan", WHAT)
            .cause(format!("the edited plan has {}", counted(errors.len(), "problem", "problems")))
            .details(errors.iter().map(|error| format!("line {}: {}", error.line, short(&error.reason))))
            .hint(self.hint())
    }

    fn remove(&self) {
        if self.is_ours {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl PlanEditOutput {
    fn commit(&self) -> Option<&str> {
        self.started.as_ref().map(|started| started.commit.as_str())
    }
}

impl CommandOutput for PlanEditOutput {
    fn json(&self) -> Value {
        json!({ "schema": "runner.plan_edit/1", "changes": self.changes, "commit": self.commit() })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut lines: Vec<KeyValueLine> =
            self.changes.iter().map(|change| KeyValueLine::new().with("change", change)).collect();
        let end = KeyValueLine::new().with("changes", self.changes.len());
        lines.push(match self.commit() {
            Some(commit) => end.with("commit", commit),
            None => end,
        });
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        let tick = styler.paint(TextRole::Good, styler.glyph(Glyph::Passed));
        let Some(commit) = self.commit() else { return "the plan is unchanged\n".to_owned() };
        let commit: String = commit.chars().take(8).collect();
        let changes: String = self.changes.iter().map(|change| format!("  {change}\n")).collect();
        format!("{changes}{tick} edited the plan, commit {commit}\n\nNext: runner plan lint\n")
    }
}
