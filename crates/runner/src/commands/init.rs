//! `runner init`

use std::path::Path;

use runner_cli::{Glyph, Ink, Line, Pen, Reply, Report};
use runner_core::layout::Doc;
use runner_host::init::{Existing, Fate, init};
use serde_json::{Value, json};

use crate::cli::InitArgs;

pub(crate) struct Done {
    fates: Vec<(Doc, Fate)>,
}

pub(crate) fn run(dir: &Path, args: &InitArgs) -> Result<Done, Report> {
    let existing = if args.force { Existing::Replace } else { Existing::Keep };
    let fates = init(dir, existing).map_err(|error| Report::of("could not set the repository up", &error))?;
    Ok(Done { fates })
}

fn word(fate: Fate) -> &'static str {
    match fate {
        Fate::Created => "created",
        Fate::Kept => "kept",
        Fate::Replaced => "replaced",
    }
}

impl Reply for Done {
    fn json(&self) -> Value {
        let files: Vec<Value> =
            self.fates.iter().map(|(doc, fate)| json!({ "path": doc.path(), "fate": word(*fate) })).collect();
        json!({ "schema": "runner.init/1", "files": files })
    }

    fn plain(&self) -> Vec<Line> {
        self.fates
            .iter()
            .map(|(doc, fate)| Line::new().with("file", doc.path()).with("fate", word(*fate)))
            .collect()
    }

    fn drawn(&self, pen: &Pen) -> String {
        let mut text = String::new();
        for (doc, fate) in &self.fates {
            let (glyph, ink) = match fate {
                Fate::Created => (Glyph::Passed, Ink::Good),
                Fate::Kept if pen.verbose => (Glyph::Open, Ink::Faint),
                Fate::Kept => continue,
                Fate::Replaced => (Glyph::Retried, Ink::Warn),
            };
            let line = format!("{} {:8}  {}\n", pen.ink(ink, pen.glyph(glyph)), word(*fate), doc.path());
            text.push_str(&line);
        }
        if text.is_empty() {
            text.push_str("everything is there already: nothing was changed\n");
        }
        text + &format!(
            "\nNext: write your goal into {}, then run {}\n",
            pen.ink(Ink::Strong, Doc::Goal.path()),
            pen.ink(Ink::Strong, "runner start")
        )
    }
}
