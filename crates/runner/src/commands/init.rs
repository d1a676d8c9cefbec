//! `runner init`

use std::path::Path;

use runner_core::layout::Doc;
use runner_host::ops::init::{ExistingFiles, InitAction, init};
use runner_term::{CommandError, CommandOutput, Glyph, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use crate::args::InitArgs;

pub(crate) struct InitOutput {
    files: Vec<(Doc, InitAction)>,
}

pub(crate) fn run(dir: &Path, args: &InitArgs) -> Result<InitOutput, CommandError> {
    let existing = if args.force { ExistingFiles::Replace } else { ExistingFiles::Keep };
    let files = init(dir, existing)
        .map_err(|error| CommandError::from_host("could not set up the repository", error))?;
    Ok(InitOutput { files })
}

fn word(action: InitAction) -> &'static str {
    match action {
        InitAction::Created => "created",
        InitAction::Kept => "kept",
        InitAction::Replaced => "replaced",
    }
}

impl CommandOutput for InitOutput {
    fn json(&self) -> Value {
        let files: Vec<Value> = self
            .files
            .iter()
            .map(|(doc, action)| json!({ "path": doc.path(), "action": word(*action) }))
            .collect();
        json!({ "schema": "runner.init/1", "files": files })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        self.files
            .iter()
            .map(|(doc, action)| KeyValueLine::new().with("file", doc.path()).with("action", word(*action)))
            .collect()
    }

    fn human(&self, styler: &Styler) -> String {
        let mut text = String::new();
        for (doc, action) in &self.files {
            let (glyph, role) = match action {
                InitAction::Created => (Glyph::Passed, TextRole::Good),
                InitAction::Kept if styler.verbose => (Glyph::Open, TextRole::Faint),
                InitAction::Kept => continue,
                InitAction::Replaced => (Glyph::Retried, TextRole::Warn),
            };
            let glyph = styler.paint(role, styler.glyph(glyph));
            text.push_str(&format!("{glyph} {:8}  {}\n", word(*action), doc.path()));
        }
        if text.is_empty() {
            text.push_str("Already set up: no file was changed.\n");
        }
        text + &format!(
            "\nNext: write your goal into {}, then run {}\n",
            styler.paint(TextRole::Strong, Doc::Goal.path()),
            styler.paint(TextRole::Strong, "runner start")
        )
    }
}
