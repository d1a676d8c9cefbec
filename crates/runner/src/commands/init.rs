//! `runner init`

use std::path::Path;

use runner_core::layout::Doc;
use runner_host::ops::init::{ExistingFiles, InitAction, init};
use runner_term::{CommandError, CommandOutput, Glyph, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use crate::args::InitArgs;

pub(crate) struct InitOutput {
    fates: Vec<(Doc, InitAction)>,
}

pub(crate) fn run(dir: &Path, args: &InitArgs) -> Result<InitOutput, CommandError> {
    let existing = if args.force { ExistingFiles::Replace } else { ExistingFiles::Keep };
    let fates = init(dir, existing)
        .map_err(|error| CommandError::from_host("could not set the repository up", error))?;
    Ok(InitOutput { fates })
}

fn word(fate: InitAction) -> &'static str {
    match fate {
        InitAction::Created => "created",
        InitAction::Kept => "kept",
        InitAction::Replaced => "replaced",
    }
}

impl CommandOutput for InitOutput {
    fn json(&self) -> Value {
        let files: Vec<Value> =
            self.fates.iter().map(|(doc, fate)| json!({ "path": doc.path(), "fate": word(*fate) })).collect();
        json!({ "schema": "runner.init/1", "files": files })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        self.fates
            .iter()
            .map(|(doc, fate)| KeyValueLine::new().with("file", doc.path()).with("fate", word(*fate)))
            .collect()
    }

    fn human(&self, pen: &Styler) -> String {
        let mut text = String::new();
        for (doc, fate) in &self.fates {
            let (glyph, ink) = match fate {
                InitAction::Created => (Glyph::Passed, TextRole::Good),
                InitAction::Kept if pen.verbose => (Glyph::Open, TextRole::Faint),
                InitAction::Kept => continue,
                InitAction::Replaced => (Glyph::Retried, TextRole::Warn),
            };
            let line = format!("{} {:8}  {}\n", pen.paint(ink, pen.glyph(glyph)), word(*fate), doc.path());
            text.push_str(&line);
        }
        if text.is_empty() {
            text.push_str("everything is there already: nothing was changed\n");
        }
        text + &format!(
            "\nNext: write your goal into {}, then run {}\n",
            pen.paint(TextRole::Strong, Doc::Goal.path()),
            pen.paint(TextRole::Strong, "runner start")
        )
    }
}
