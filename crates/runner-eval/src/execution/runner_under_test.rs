//! Finds the runner under test, builds it inside this repository, and describes the machine.

use std::path::{Path, PathBuf};
use std::time::Duration;

use runner_core::model::digest::Sha256;
use runner_core::text::one_line;
use runner_term::{CommandError, CommandExit};
use supervise::executables;

use crate::execution::process::{CommandRunner, CommandSpec};
use crate::result::{MachineInfo, RunnerVersion};

#[derive(Clone, Debug)]
pub(crate) struct RunnerUnderTest {
    pub(crate) path: PathBuf,
    pub(crate) version: RunnerVersion,
}

const BUILD_TIMEOUT: Duration = Duration::from_secs(3_600);

impl RunnerUnderTest {
    /// The runner at `path`, or the one beside this binary. Inside this repository the latter is built first, so that
    /// the evaluation measures the current sources.
    pub(crate) fn find(path: Option<&Path>, commands: &CommandRunner) -> Result<Self, CommandError> {
        let what = "could not find the runner under test";
        let path = match path {
            Some(path) => std::path::absolute(path).map_err(|error| CommandError::io(what, path, &error))?,
            None => {
                build(commands)?;
                executables::sibling_binary("runner").ok_or_else(|| {
                    CommandError::refused("no_runner", what)
                        .cause("`runner` is neither beside `runner-eval` nor on the PATH")
                        .hint("name it: --runner PATH")
                })?
            }
        };
        let bytes = std::fs::read(&path).map_err(|error| {
            CommandError::io(what, &path, &error).hint("name an existing binary: --runner PATH")
        })?;
        let version = executables::version_of(&path).ok_or_else(|| {
            CommandError::refused("no_runner", what)
                .cause(format!("`{} --version` prints nothing", path.display()))
                .hint("name another: --runner PATH")
        })?;
        let sha256 = Sha256::of(&bytes).to_string();
        Ok(Self { path, version: RunnerVersion { version: one_line(&version), sha256 } })
    }
}

/// Builds the runner, if this binary is in the target folder of this repository.
fn build(commands: &CommandRunner) -> Result<(), CommandError> {
    let Ok(own) = std::env::current_exe() else { return Ok(()) };
    let (Some(profile), Some(root)) = (own.parent(), own.ancestors().nth(3)) else { return Ok(()) };
    let is_in_target = profile.parent() == Some(&root.join("target"));
    if !is_in_target || !root.join("crates/runner/Cargo.toml").is_file() {
        return Ok(());
    }
    let Some(cargo) = executables::find("cargo", None) else { return Ok(()) };
    let mut argv = vec![cargo.into_os_string()];
    argv.extend(["build", "--quiet", "--locked", "-p", "runner"].map(Into::into));
    if profile.file_name().is_some_and(|name| name == "release") {
        argv.push("--release".into());
    }
    let spec = CommandSpec { folder: root.to_owned(), timeout: BUILD_TIMEOUT, ..CommandSpec::new(argv) };
    let what = "could not build the runner";
    let result = commands.run(&spec).map_err(|error| CommandError::from_host(what, error))?;
    if result.is_success() {
        return Ok(());
    }
    Err(CommandError::new("build", CommandExit::FAILURE, what)
        .cause(one_line(&result.tail()))
        .hint("build it yourself with `cargo build -p runner`, or name another: --runner PATH"))
}

pub(crate) fn machine_info(jobs: u32) -> MachineInfo {
    let system = rustix::system::uname();
    let cpus = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    MachineInfo {
        os: std::env::consts::OS.to_owned(),
        arch: std::env::consts::ARCH.to_owned(),
        hostname: system.nodename().to_string_lossy().into_owned(),
        kernel: system.release().to_string_lossy().into_owned(),
        cpus: u32::try_from(cpus).unwrap_or(u32::MAX),
        memory_bytes: memory_bytes(),
        jobs,
    }
}

fn memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = total.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
