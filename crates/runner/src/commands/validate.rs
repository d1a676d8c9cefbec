//! `runner validate`

use std::path::Path;

use runner_core::layout::{Doc, NODES_DIR, RUNNER_DIR};
use runner_host::view::inspect::{Inspection, LoadedDoc, inspect};
use runner_term::{CommandError, CommandExit, CommandOutput, Glyph, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use crate::render::clean;

pub(crate) struct ValidateOutput {
    parts: Vec<ValidatedPart>,
}

/// One thing that was checked, with every problem in it.
struct ValidatedPart {
    name: &'static str,
    /// What to look at or change.
    file: &'static str,
    problems: Vec<String>,
}

pub(crate) fn run(dir: &Path) -> Result<ValidateOutput, CommandError> {
    let found =
        inspect(dir).map_err(|error| CommandError::from_host("could not validate the repository", error))?;
    Ok(ValidateOutput { parts: parts(&found) })
}

fn parts(found: &Inspection) -> Vec<ValidatedPart> {
    let told = |texts: Vec<String>| texts.iter().map(|text| clean(text)).collect();
    let part = |name, file, problems| ValidatedPart { name, file, problems: told(problems) };
    let mut parts = vec![
        part("layout", RUNNER_DIR, layout(found)),
        part("goal", Doc::Goal.path(), faults(&found.goal, |fault| vec![fault.to_string()])),
        part("config", Doc::Config.path(), faults(&found.config, |all| texts(all))),
        part("tree", Doc::Tree.path(), faults(&found.tree, |all| texts(all))),
        part("state", Doc::RunState.path(), faults(&found.state, |all| texts(all))),
        part("identity", "run", found.identity_faults().iter().map(ToString::to_string).collect()),
    ];
    // Few have such files; who has none need not read about them.
    if !found.tools.is_empty() {
        parts.push(part("tools", NODES_DIR, found.tools.clone()));
    }
    parts
}

fn texts<T: ToString>(problems: &[T]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

fn faults<T, P>(read: &LoadedDoc<T, P>, tell: impl Fn(&P) -> Vec<String>) -> Vec<String> {
    match read {
        LoadedDoc::Invalid(problems) => tell(problems),
        // What is missing or no file is a matter of the layout.
        LoadedDoc::Missing | LoadedDoc::Valid(_) => Vec::new(),
    }
}

fn layout(found: &Inspection) -> Vec<String> {
    let mut problems: Vec<String> = found.refused.iter().map(ToString::to_string).collect();
    let is_told = |path: &str| found.refused.iter().any(|refusal| refusal.to_string().contains(path));
    problems.extend(
        found
            .missing
            .iter()
            .map(|doc| doc.path())
            .filter(|path| !is_told(path))
            .map(|path| format!("`{path}` is missing (run 'runner start')")),
    );
    if found.interrupted {
        problems.push("a start was interrupted and is not finished (run 'runner start')".to_owned());
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
        let problems: Vec<Value> = self
            .parts
            .iter()
            .flat_map(|part| {
                part.problems
                    .iter()
                    .map(|text| json!({ "part": part.name, "file": part.file, "message": text }))
            })
            .collect();
        json!({ "schema": "runner.validate/1", "valid": problems.is_empty(), "problems": problems })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut lines: Vec<KeyValueLine> = self
            .parts
            .iter()
            .flat_map(|part| {
                part.problems.iter().map(|text| {
                    KeyValueLine::new()
                        .with("problem", part.name)
                        .with("file", part.file)
                        .with("message", text)
                })
            })
            .collect();
        lines.push(KeyValueLine::new().with("valid", self.count() == 0).with("problems", self.count()));
        lines
    }

    fn human(&self, pen: &Styler) -> String {
        let mut text = String::new();
        for part in &self.parts {
            let (glyph, ink) = if part.problems.is_empty() {
                (Glyph::Passed, TextRole::Good)
            } else {
                (Glyph::Failed, TextRole::Bad)
            };
            text.push_str(&format!(
                "{} {:8}  {}\n",
                pen.paint(ink, pen.glyph(glyph)),
                part.name,
                pen.paint(TextRole::Faint, part.file)
            ));
            for problem in &part.problems {
                text.push_str(&format!("    {problem}\n"));
            }
        }
        let verdict = match self.count() {
            0 => pen.paint(TextRole::Good, "valid"),
            1 => pen.paint(TextRole::Bad, "1 problem"),
            n => pen.paint(TextRole::Bad, &format!("{n} problems")),
        };
        text + &format!("\n{verdict}\n")
    }

    fn exit(&self) -> CommandExit {
        if self.count() == 0 { CommandExit::SUCCESS } else { CommandExit::REFUSED }
    }
}
