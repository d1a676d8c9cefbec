//! This machine, and the runner under test.

use std::path::{Path, PathBuf};
use std::time::Duration;

use runner_core::model::digest::Sha256;
use runner_core::text::one_line;
use runner_term::{CommandError, CommandExit};
use supervise::TimeLimits;
use supervise::executables;

use crate::process::{CommandRunner, CommandSpec};
use crate::result::{MachineInfo, RunnerVersion};

/// The runner under test.
#[derive(Clone, Debug)]
pub(crate) struct RunnerUnderTest {
    pub(crate) path: PathBuf,
    pub(crate) id: RunnerVersion,
}

/// How long cargo may take.
const BUILD_WITHIN: Duration = Duration::from_secs(3_600);

impl RunnerUnderTest {
    /// The one that was named, or the one beside this program; that one is built first where this program was built,
    /// so that what is measured is what the sources say.
    pub(crate) fn find(named: Option<&Path>, launcher: &CommandRunner) -> Result<Self, CommandError> {
        let what = "could not find the runner to be tested";
        let path = match named {
            Some(path) => std::path::absolute(path).map_err(|error| CommandError::io(what, path, &error))?,
            None => {
                build(launcher)?;
                executables::sibling_binary("runner").ok_or_else(|| {
                    CommandError::refused("no_runner", what)
                        .cause("it is neither beside `runner-eval` nor on the PATH")
                        .hint("name it: --runner PATH")
                })?
            }
        };
        let bytes = std::fs::read(&path)
            .map_err(|error| CommandError::io(what, &path, &error).hint("--runner PATH"))?;
        let version = executables::version_of(&path).map(|version| one_line(&version)).ok_or_else(|| {
            CommandError::refused("no_runner", what)
                .cause(format!("`{} --version` says nothing", path.display()))
                .hint("name another: --runner PATH")
        })?;
        Ok(Self { path, id: RunnerVersion { version, sha256: Sha256::of(&bytes).to_string() } })
    }
}

/// Builds the runner beside this program, if this program lies in the target folder of this repository.
fn build(launcher: &CommandRunner) -> Result<(), CommandError> {
    let Ok(own) = std::env::current_exe() else { return Ok(()) };
    let (Some(profile), Some(root)) = (own.parent(), own.ancestors().nth(3)) else { return Ok(()) };
    let is_release = profile.file_name().is_some_and(|name| name == "release");
    let is_ours =
        root.join("crates/runner/Cargo.toml").is_file() && profile.parent() == Some(&root.join("target"));
    let Some(cargo) = executables::find("cargo", None).filter(|_| is_ours) else { return Ok(()) };
    let mut argv = vec![cargo.into()];
    argv.extend(["build", "--quiet", "--locked", "-p", "runner"].map(Into::into));
    argv.extend(is_release.then(|| "--release".into()));
    let limits = TimeLimits::wall(BUILD_WITHIN);
    let errand = CommandSpec { argv, folder: root.to_owned(), limits, ..CommandSpec::default() };
    let ended = launcher
        .run(&errand)
        .map_err(|error| CommandError::from_host("could not build the runner", error))?;
    if ended.is_success() {
        return Ok(());
    }
    Err(CommandError::new("build", CommandExit::FAILURE, "could not build the runner")
        .cause(one_line(&ended.tail()))
        .hint("build it yourself: cargo build -p runner; or name another: --runner PATH"))
}

/// What this machine allows.
pub(crate) fn host(jobs: u32) -> MachineInfo {
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let memory = std::fs::read_to_string("/proc/meminfo").ok();
    let memory_kib = memory.as_deref().and_then(|text| {
        let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    MachineInfo {
        os: std::env::consts::OS.to_owned(),
        arch: std::env::consts::ARCH.to_owned(),
        cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
        memory_bytes: memory_kib.map(|kib| kib * 1024),
        jobs,
    }
}
