//! `runner eval clean`

use std::fs;
use std::path::{Path, PathBuf};

use runner_term::{CommandError, CommandOutput, KeyValueLine, Styler};
use serde_json::{Value, json};

use crate::args::{CleanArgs, EvalGlobalArgs};
use crate::files;

/// What was removed.
pub(crate) struct CleanOutput(Vec<PathBuf>);

pub(crate) fn run(global: &EvalGlobalArgs, args: &CleanArgs) -> Result<CleanOutput, CommandError> {
    let mut removed = Vec::new();
    clean(&global.workspaces(), args.run.as_deref(), &mut removed)?;
    if args.all {
        clean(&global.results(), args.run.as_deref(), &mut removed)?;
    }
    Ok(CleanOutput(removed))
}

/// Removes everything in a folder, or what belongs to one run: its results and workspaces are named after it.
fn clean(folder: &Path, run: Option<&str>, removed: &mut Vec<PathBuf>) -> Result<(), CommandError> {
    let Some(run) = run else {
        for path in entries(folder) {
            remove(path, removed)?;
        }
        return Ok(());
    };
    let belongs = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name == run || name.trim_start_matches('.').starts_with(&format!("{run}."))
    };
    for case in entries(folder).into_iter().filter(|path| path.is_dir() && !path.is_symlink()) {
        for path in entries(&case).into_iter().filter(belongs) {
            remove(path, removed)?;
        }
    }
    // A link to a workspace that is gone leads nowhere.
    for link in entries(folder).into_iter().filter(|path| path.is_symlink() && !path.exists()) {
        remove(link, removed)?;
    }
    Ok(())
}

fn remove(path: PathBuf, removed: &mut Vec<PathBuf>) -> Result<(), CommandError> {
    files::clear(&path).map_err(|error| CommandError::io("could not clean up", &path, &error))?;
    removed.push(path);
    Ok(())
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    found.sort();
    found
}

impl CommandOutput for CleanOutput {
    fn json(&self) -> Value {
        let paths: Vec<String> = self.0.iter().map(|path| path.display().to_string()).collect();
        json!({ "schema": "runner.eval.clean/1", "removed": paths })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        self.0.iter().map(|path| KeyValueLine::new().with("removed", path.display())).collect()
    }

    fn human(&self, _: &Styler) -> String {
        match self.0.len() {
            0 => "nothing to remove\n".to_owned(),
            1 => "1 thing removed\n".to_owned(),
            many => format!("{many} things removed\n"),
        }
    }
}
