//! Extended regular expressions for `git log --extended-regexp --grep`.

use super::landed::LANDED_COMMIT;
use super::{SUBJECT_PREFIX, Trailer};

/// The commits of `runner start` and `runner fork` for a run.
pub fn start_of(run: &str) -> String {
    format!("^{}start run {}$", escaped(SUBJECT_PREFIX), escaped(run))
}

/// Every commit that the runner made for a run.
pub fn any_of(run: &str) -> String {
    let run = escaped(run);
    format!("^{}(start run {run}$|run {run} )", escaped(SUBJECT_PREFIX))
}

/// The iterations of any run in which a task passed.
pub fn passed() -> String {
    format!("^{}: passed$", Trailer::Outcome)
}

/// The commits that `runner land` made of an iteration's commit.
pub fn landed_from(commit: &str) -> String {
    format!("^{LANDED_COMMIT}: {commit}$")
}

/// The iterations of any run.
pub fn any_iteration() -> String {
    format!("^{}run [^ ]+ iter ", escaped(SUBJECT_PREFIX))
}

/// The only special characters of the prefix and of run ids are parentheses and dots.
fn escaped(text: &str) -> String {
    text.replace('.', "\\.").replace('(', "\\(").replace(')', "\\)")
}
