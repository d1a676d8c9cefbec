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

/// One document or aspect of the repository, with every problem in it.
struct ValidatedPart {
    name: &'static str,
    file: &'static str,
    problems: Vec<String>,
}

pub(crate) fn run(dir: &Path) -> Result<ValidateOutput, CommandError> {
    let inspection =
        inspect(dir).map_err(|error| CommandError::from_host("could not validate the repository", error))?;
    Ok(ValidateOutput { parts: parts(&inspection) })
}

fn parts(inspection: &Inspection) -> Vec<ValidatedPart> {
    let part = |name, file, problems: Vec<String>| {
        let problems = problems.iter().map(|problem| clean(problem)).collect();
        ValidatedPart { name, file, problems }
    };
    let mut parts = vec![
        part("layout", RUNNER_DIR, layout(inspection)),
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

fn layout(inspection: &Inspection) -> Vec<String> {
    let mut problems: Vec<String> = inspection.docs.refused.iter().map(ToString::to_string).collect();
    for path in inspection.docs.missing.iter().map(|doc| doc.path()) {
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
        json!({ "schema": "runner.validate/1", "valid": problems.is_empty(), "problems": problems })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let mut lines = Vec::new();
        for part in &self.parts {
            for message in &part.problems {
                let line = KeyValueLine::new().with("problem", part.name).with("file", part.file);
                lines.push(line.with("message", message));
            }
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
                text.push_str(&format!("    {problem}\n"));
            }
        }
        let verdict = match self.count() {
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
