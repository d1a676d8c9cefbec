//! What an agent's program would load from home and repository and has no switch for: a sandbox hides it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use runner_core::agents::SHELL_STARTUP_FILES;
use runner_core::step::Job;

use super::command::PreparedCommand;
use super::sandbox::canonical;
use crate::error::Error;
use crate::fs::atomic;
use crate::git::Git;

/// A file or folder that a program inside must not load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HiddenPath {
    pub(crate) path: PathBuf,
    /// The file that is there instead; without one, it looks empty.
    pub(crate) replacement: Option<PathBuf>,
}

/// The paths that a job's agent must not load, as far as they exist. A link that leads to the whole repository or home hides
/// nothing.
pub(super) fn of_job(git: &Git, job: &Job) -> Vec<HiddenPath> {
    let Some(agent) = job.agent.executor.agent() else { return Vec::new() };
    let (root, home) = (git.root(), std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default());
    let startup = git.paths().session().join("shell-startup");
    let replacement = |name: &str| SHELL_STARTUP_FILES.contains(&name).then(|| startup.clone());
    let in_home = agent.surroundings.hidden_in_home.iter().map(|name| (home.join(name), replacement(name)));
    let in_repository = agent.surroundings.hidden_in_repository.iter().map(|name| (root.join(name), None));
    let (root, home) = (canonical(root), canonical(&home));
    let hidden = in_home.chain(in_repository).filter_map(|(path, replacement)| {
        let path = path.canonicalize().ok()?;
        let holds_all = root.starts_with(&path) || home.starts_with(&path);
        (!holds_all).then_some(HiddenPath { path, replacement })
    });
    hidden.collect()
}

/// Writes what shells read in the place of the user's start-up files. A login shell has lost the session's PATH by then:
/// `/etc/profile` sets another.
pub(super) fn write_replacements(hidden: &[HiddenPath], command: &PreparedCommand) -> Result<(), Error> {
    let Some(file) = hidden.iter().find_map(|hidden| hidden.replacement.as_deref()) else { return Ok(()) };
    let path = command.environment.iter().find(|(name, _)| name == "PATH");
    let text = path.map(|(_, path)| [b"PATH=", single_quoted(path).as_slice(), b"\n"].concat());
    atomic::write_no_sync(file, &text.unwrap_or_default())
}

/// A value as a word of a shell script.
fn single_quoted(value: &OsStr) -> Vec<u8> {
    let mut word = vec![b'\''];
    for byte in value.as_bytes() {
        match byte {
            b'\'' => word.extend(br"'\''"),
            _ => word.push(*byte),
        }
    }
    word.push(b'\'');
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_with_quotes_is_one_word_of_a_script() {
        assert_eq!(single_quoted(OsStr::new("/it's/$HOME")), br"'/it'\''s/$HOME'");
    }
}
