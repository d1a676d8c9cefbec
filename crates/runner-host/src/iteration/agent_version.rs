//! The version of an agent whose output does not contain it, read once per program.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use runner_core::agents::AgentSpec;
use runner_core::text::one_line;
use supervise::executables;

#[derive(Debug, Default)]
pub(super) struct AgentVersion {
    known: Option<KnownVersion>,
}

#[derive(Debug)]
struct KnownVersion {
    program: PathBuf,
    version: Option<String>,
}

impl AgentVersion {
    /// Runs `program --version`, unless it is the program of the last call, or one that prints its version in its output.
    pub(super) fn of(&mut self, agent: &AgentSpec, program: &OsStr) -> Option<String> {
        if agent.native().is_none_or(|native| native.features.reports_version) {
            return None;
        }
        let program = Path::new(program);
        let known = match self.known.take().filter(|known| known.program == program) {
            Some(known) => known,
            None => KnownVersion { program: program.to_owned(), version: read_version(program) },
        };
        self.known.insert(known).version.clone()
    }
}

/// The last word that `program --version` prints.
fn read_version(program: &Path) -> Option<String> {
    let output = one_line(&executables::version_of(program)?);
    output.split_whitespace().last().map(str::to_owned)
}
