//! `runner validate`

use std::path::Path;

use runner_core::detect::command_line;
use runner_core::layout::{Doc, NODES_DIR, RUNNER_DIR};
use runner_core::model::id::RunId;
use runner_host::repo::readonly_repo::ReadonlyRepo;
use runner_host::view::inspect::{Inspection, LoadedDoc, inspect_with_runs};
use runner_host::view::run_folder::other_worktree;
use runner_term::{CommandError, CommandExit, CommandOutput, Glyph, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use super::status::is_without_documents;
use crate::render::clean;

pub(crate) struct ValidateOutput {
    parts: Vec<ValidatedPart>,
    elsewhere: Option<RunElsewhere>,
}

/// A run that is not checked out here: this work tree need not have its files.
struct RunElsewhere {
    run: RunId,
    /// What to type to validate it.
    command: String,
}

/// One document or aspect of the repository, with every problem in it.
struct ValidatedPart {
    name: &'static str,
    file: &'static str,
    problems: Vec<String>,
}

pub(crate) fn run(dir: &Path) -> Result<ValidateOutput, CommandError> {
    read(dir).map_err(|error| CommandError::from_host("could not validate the repository", error))
}

fn read(dir: &Path) -> Result<ValidateOutput, runner_host::Error> {
    let repo = ReadonlyRepo::open(dir)?;
    let inspection = inspect_with_runs(&repo)?;
    let elsewhere = RunElsewhere::find(&repo, &inspection)?;
    let mut parts = parts(&inspection, elsewhere.is_some());
    if elsewhere.is_some() {
        // A configuration for later runs may be on any branch.
        let has_config = !inspection.docs.missing.contains(&Doc::Config);
        let is_config = |part: &ValidatedPart| part.file == Doc::Config.path();
        parts.retain(|part| !part.problems.is_empty() || (has_config && is_config(part)));
    }
    Ok(ValidateOutput { parts, elsewhere })
}

impl RunElsewhere {
    /// The newest run, if no branch of a run is checked out and the work tree has no files of one.
    fn find(repo: &ReadonlyRepo, inspection: &Inspection) -> Result<Option<Self>, runner_host::Error> {
        if !is_without_documents(inspection) || !inspection.identity_faults().is_empty() {
            return Ok(None);
        }
        let Some(newest) = repo.runs()?.into_iter().next() else { return Ok(None) };
        let command = match other_worktree(repo.root(), &newest.run) {
            Some(worktree) => {
                command_line(&["runner", "-C", &worktree.to_string_lossy(), "validate"].map(str::to_owned))
            }
            None => format!("runner switch {}", newest.run),
        };
        Ok(Some(Self { run: newest.run, command }))
    }
}

fn parts(inspection: &Inspection, is_elsewhere: bool) -> Vec<ValidatedPart> {
    let part = |name, file, problems: Vec<String>| {
        let problems = problems.iter().map(|problem| clean(problem)).collect();
        ValidatedPart { name, file, problems }
    };
    let mut parts = vec![
        part("layout", RUNNER_DIR, layout(inspection, is_elsewhere)),
        part("goal", Doc::Goal.path(), problems(&inspection.docs.goal, |error| vec![error.to_string()])),
        part("config", Doc::Config.path(), problems(&inspection.docs.config, |all| texts(all))),
        part("tree", Doc::Tree.path(), problems(&inspection.docs.tree, |all| texts(all))),
        part("state", Doc::RunState.path(), problems(&inspection.docs.state, |all| texts(all))),
        part("identity", "run", inspection.identity_faults().iter().map(ToString::to_string).collect()),
    ];
    // Most runs have no such files: leave the row out.
    if !inspection.docs.tools.is_empty() {
        parts.push(part("tools", NODES_DIR, inspection.docs.tools.clone()));
    }
    parts
}

fn texts<T: ToString>(problems: &[T]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

fn problems<T, P>(doc: &LoadedDoc<T, P>, to_texts: impl Fn(&P) -> Vec<String>) -> Vec<String> {
    match doc {
        LoadedDoc::Invalid(problems) => to_texts(problems),
        // A missing file is a problem of the layout.
        LoadedDoc::Missing | LoadedDoc::Valid(_) => Vec::new(),
    }
}

fn layout(inspection: &Inspection, is_elsewhere: bool) -> Vec<String> {
    let mut problems: Vec<String> = inspection.docs.refused.iter().map(ToString::to_string).collect();
    for path in inspection.docs.missing.iter().filter(|_| !is_elsewhere).map(|doc| doc.path()) {
        let is_reported = inspection.docs.refused.iter().any(|error| error.to_string().contains(path));
        if !is_reported {
            problems.push(format!("`{path}` is missing (run 'runner start')"));
        }
    }
    if inspection.interrupted {
        problems.push("a crash interrupted the last command (run 'runner start')".to_owned());
    }
    problems
}

impl ValidateOutput {
    fn count(&self) -> usize {
        self.parts.iter().map(|part| part.problems.len()).sum()
    }
}

impl CommandOutput for ValidateOutput {
    fn json(&self) -> Value {
        let mut problems: Vec<Value> = Vec::new();
        for part in &self.parts {
            for message in &part.problems {
                problems.push(json!({ "part": part.name, "file": part.file, "message": message }));
            }
        }
        json!({
            "schema": "runner.validate/1", "valid": problems.is_empty(), "problems": problems,
            "not_checked_out": self.elsewhere.as_ref().map(|elsewhere| &elsewhere.run),
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut lines = Vec::new();
        for part in &self.parts {
            for message in &part.problems {
                let line = KeyValueLine::new().with("problem", part.name).with("file", part.file);
                lines.push(line.with("message", message));
            }
        }
        if let Some(RunElsewhere { run, command }) = &self.elsewhere {
            lines.push(KeyValueLine::new().with("not_checked_out", run).with("next", command));
        }
        lines.push(KeyValueLine::new().with("valid", self.count() == 0).with("problems", self.count()));
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        let mut text = String::new();
        for part in &self.parts {
            let (glyph, role) = if part.problems.is_empty() {
                (Glyph::Passed, TextRole::Good)
            } else {
                (Glyph::Failed, TextRole::Bad)
            };
            text.push_str(&format!(
                "{} {:8}  {}\n",
                styler.paint(role, styler.glyph(glyph)),
                part.name,
                styler.paint(TextRole::Faint, part.file)
            ));
            for problem in &part.problems {
                text.push_str(&format!("    {}\n", styler.wrap_commands(problem, 4)));
            }
        }
        if let Some(RunElsewhere { run, command }) = &self.elsewhere {
            let command = styler.paint(TextRole::Strong, &clean(command));
            let gap = if text.is_empty() { "" } else { "\n" };
            text.push_str(&format!("{gap}run {run} is not checked out: {command}\n"));
        }
        let verdict = match self.count() {
            0 if self.elsewhere.is_some() => return text,
            0 => styler.paint(TextRole::Good, "valid"),
            1 => styler.paint(TextRole::Bad, "1 problem"),
            n => styler.paint(TextRole::Bad, &format!("{n} problems")),
        };
        text + &format!("\n{verdict}\n")
    }

    fn exit(&self) -> CommandExit {
        if self.count() == 0 { CommandExit::SUCCESS } else { CommandExit::REFUSED }
    }
}
