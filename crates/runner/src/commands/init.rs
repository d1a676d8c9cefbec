//! `runner init`

use std::path::Path;

use runner_core::detect::ConfigRequest;
use runner_core::layout::{Doc, RUNNER_DIR};
use runner_host::ops::detect::{SetupProposal, propose};
use runner_host::ops::init::{ExistingFiles, InitAction, init_with_config};
use runner_term::format::counted;
use runner_term::{CommandError, CommandOutput, Glyph, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use crate::args::InitArgs;
use crate::render::setup::{draw_notes, draw_rows, setup_rows};

const WHAT: &str = "could not set up the repository";

pub(crate) struct InitOutput {
    files: Vec<(Doc, InitAction)>,
    setup: SetupProposal,
}

pub(crate) fn run(dir: &Path, args: &InitArgs) -> Result<InitOutput, CommandError> {
    let failed = |error| CommandError::from_host(WHAT, error);
    let existing = if args.force { ExistingFiles::Replace } else { ExistingFiles::Keep };
    let setup = propose(dir, existing, &ConfigRequest::default()).map_err(failed)?;
    let files = init_with_config(dir, existing, Some(&setup.proposed.text)).map_err(failed)?;
    Ok(InitOutput { files, setup })
}

fn word(action: InitAction) -> &'static str {
    match action {
        InitAction::Created => "created",
        InitAction::Kept => "kept",
        InitAction::Replaced => "replaced",
    }
}

impl InitOutput {
    fn count(&self, action: InitAction) -> usize {
        self.files.iter().filter(|(_, done)| *done == action).count()
    }

    /// One line for new files, and one for each that was replaced.
    fn file_lines(&self, styler: &Styler) -> String {
        let mut text = String::new();
        let tick = styler.paint(TextRole::Good, styler.glyph(Glyph::Passed));
        match self.count(InitAction::Created) {
            0 => {}
            created => {
                let files = counted(created, "file", "files");
                text.push_str(&format!("{tick} created {files} in {RUNNER_DIR}/\n"));
            }
        }
        for (doc, action) in &self.files {
            let (glyph, role) = match action {
                InitAction::Created | InitAction::Kept if !styler.verbose => continue,
                InitAction::Created => (Glyph::Passed, TextRole::Good),
                InitAction::Kept => (Glyph::Open, TextRole::Faint),
                InitAction::Replaced => (Glyph::Retried, TextRole::Warn),
            };
            let glyph = styler.paint(role, styler.glyph(glyph));
            text.push_str(&format!("{glyph} {:8}  {}\n", word(*action), doc.path()));
        }
        if text.is_empty() { "Already set up: no file was changed.\n".to_owned() } else { text }
    }
}

impl CommandOutput for InitOutput {
    fn json(&self) -> Value {
        let files: Vec<Value> = self
            .files
            .iter()
            .map(|(doc, action)| json!({ "path": doc.path(), "action": word(*action) }))
            .collect();
        let setup: serde_json::Map<String, Value> =
            setup_rows(&self.setup).into_iter().map(|row| (row.name.to_owned(), json!(row.value))).collect();
        json!({
            "schema": "runner.init/1",
            "files": files,
            "setup": setup,
            "notes": self.setup.proposed.notes,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let file = |doc: &Doc, action: &InitAction| {
            KeyValueLine::new().with("file", doc.path()).with("action", word(*action))
        };
        let mut lines: Vec<KeyValueLine> = self.files.iter().map(|(doc, action)| file(doc, action)).collect();
        lines
            .extend(setup_rows(&self.setup).iter().map(|row| KeyValueLine::new().with(row.name, &row.value)));
        lines.extend(self.setup.proposed.notes.iter().map(|note| KeyValueLine::new().with("note", note)));
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        let mut text = self.file_lines(styler);
        text.push('\n');
        text.push_str(&draw_rows(&setup_rows(&self.setup), styler));
        text.push_str(&draw_notes(&self.setup.proposed.notes, styler));
        text.push_str("\nTo change it: runner config set guard.command npm test\n");
        text + &format!(
            "Next: write your goal into {}, then run {}\n",
            styler.paint(TextRole::Strong, Doc::Goal.path()),
            styler.paint(TextRole::Strong, "runner start")
        )
    }
}
