//! `runner eval clean`

use std::fs;
use std::path::{Path, PathBuf};

use runner_term::format::counted;
use runner_term::{CommandError, CommandOutput, KeyValueLine, Styler};
use serde_json::{Value, json};

use crate::args::{CleanArgs, EvalGlobalArgs};
use crate::files;
use crate::plan::run_name::EvalRunName;

pub(crate) struct CleanOutput(Vec<PathBuf>);

pub(crate) fn run(global: &EvalGlobalArgs, args: &CleanArgs) -> Result<CleanOutput, CommandError> {
    let mut folders = vec![global.workspaces()];
    if args.all {
        folders.push(global.results());
    }
    let mut removed = Vec::new();
    for folder in folders {
        match &args.run {
            None => remove_all(entries(&folder), &mut removed)?,
            Some(run) => remove_run(&folder, run, &mut removed)?,
        }
    }
    Ok(CleanOutput(removed))
}

/// Removes the results or workspaces of one run, whose names begin with the run's name.
fn remove_run(folder: &Path, run: &EvalRunName, removed: &mut Vec<PathBuf>) -> Result<(), CommandError> {
    let prefix = format!("{run}.");
    for case in entries(folder).into_iter().filter(|path| path.is_dir() && !path.is_symlink()) {
        let mut paths = entries(&case);
        paths.retain(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name == run.as_str() || name.trim_start_matches('.').starts_with(&prefix)
        });
        remove_all(paths, removed)?;
    }
    let mut dangling_links = entries(folder);
    dangling_links.retain(|path| path.is_symlink() && !path.exists());
    remove_all(dangling_links, removed)
}

fn remove_all(paths: Vec<PathBuf>, removed: &mut Vec<PathBuf>) -> Result<(), CommandError> {
    for path in paths {
        files::remove_any(&path).map_err(|error| CommandError::io("could not clean up", &path, &error))?;
        removed.push(path);
    }
    Ok(())
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
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
        if self.0.is_empty() {
            return "nothing to remove\n".to_owned();
        }
        format!("removed {}\n", counted(self.0.len(), "entry", "entries"))
    }
}
