//! Imports results from machines without a shared folder: a copy of the results folder of each.

use std::fs;
use std::io;
use std::path::Path;

use crate::files;
use crate::result::run_folder::RunFolder;
use crate::result::stored_trial::read_result;

/// What came in from the folders of other machines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ImportedResults {
    pub(crate) imported: usize,
    /// Results with these names that are not signed with the key of the run.
    pub(crate) refused: Vec<String>,
}

/// Copies the results of a run that another results folder has and this one lacks. Only results with a valid signature count:
/// the run must have been planned once, and its folder in `_runs` copied to every machine.
pub(crate) fn import_results(run: &RunFolder, results: &Path, share: &Path) -> io::Result<ImportedResults> {
    let mut found = ImportedResults::default();
    for trial in &run.plan.scope.trials {
        for attempt in 1.. {
            let name = trial.eval_run_id(run.name(), attempt);
            let source = share.join(&trial.case).join(&name);
            if !source.exists() {
                break;
            }
            let target = results.join(&trial.case).join(&name);
            if target.exists() {
                continue;
            }
            if !read_result(&source).is_ok_and(|stored| run.key.verify(&stored)) {
                found.refused.push(source.display().to_string());
                continue;
            }
            let staging = target.with_file_name(format!(".{name}"));
            files::remove_any(&staging)?;
            fs::create_dir_all(results.join(&trial.case))?;
            files::copy_tree(&source, &staging)?;
            fs::rename(&staging, &target)?;
            if let Ok(stored) = read_result(&target) {
                run.record_spending(&stored.meta)?;
            }
            found.imported += 1;
        }
    }
    Ok(found)
}
