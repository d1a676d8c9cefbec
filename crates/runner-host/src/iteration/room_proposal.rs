//! A guard that fails in the room and succeeds in the work tree needs something that is in no commit. This finds the
//! configuration with which it succeeds in the room too, by trying.

use std::path::Path;

use runner_core::config::GuardConfig;
use runner_core::step::{GuardExit, GuardJob, GuardRun};

use super::guard::{self, GuardInputs};
use super::program_runner::ProgramRunner;
use crate::agent::sandbox_argv::SERVICE_SOCKETS;
use crate::agent::user_sockets;
use crate::error::Error;
use crate::fs::atomic;
use crate::fs::tree_size::is_larger;
use crate::git::Git;
use crate::repo::paths::is_runner_path;
use crate::room::GuardRoom;

/// Folders and files with what a project depends on: they are tried first, because a copy of them stays valid.
const DEPENDENCIES: [&str; 10] =
    ["node_modules", ".venv", "venv", "env", ".env", "vendor", "bower_components", "Pods", ".bundle", "deps"];
/// What a build or a test run makes again.
const BUILD_OUTPUT: [&str; 14] = [
    "target",
    "build",
    "dist",
    "out",
    "coverage",
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    ".next",
    ".turbo",
    ".gradle",
    ".cache",
    "tmp",
];
/// Sockets of the user's own container services, in the home or in a folder that a variable names.
const CONTAINER_SOCKETS: [&str; 2] = ["docker.sock", "podman.sock"];
/// A larger folder is not tried: each trial copies it.
const KEPT_BYTES_MAX: u64 = 4 << 30;

/// The keys for `[guard]` with which a guard that failed in the room succeeds. `None` if it fails in the work tree too, or if
/// the user interrupted the search.
pub(super) fn propose(
    git: &Git,
    programs: &ProgramRunner,
    job: &GuardJob,
    inputs: &GuardInputs<'_>,
) -> Result<Option<Vec<String>>, Error> {
    let log = inputs.log.with_extension("trial.log");
    let inputs = GuardInputs { log: &log, ..*inputs };
    let keys = find(git, programs, job, &inputs);
    atomic::remove_any(&log)?;
    atomic::remove_any(&git.paths().fresh_room())?;
    keys
}

fn find(
    git: &Git,
    programs: &ProgramRunner,
    job: &GuardJob,
    inputs: &GuardInputs<'_>,
) -> Result<Option<Vec<String>>, Error> {
    let in_place = guard::run(git, programs, &mut GuardRoom::InPlace { why: None }, inputs)?;
    if !has_succeeded(&in_place.run) {
        return Ok(None);
    }
    for config in candidates(&job.guard, &ignored_names(git)?) {
        let mut room = GuardRoom::trial(git, &job.run_id, &config, inputs.candidate)?;
        let trial = GuardInputs { guard: &config, ..*inputs };
        let result = guard::run(git, programs, &mut room, &trial)?;
        if has_succeeded(&result.run) {
            return Ok(Some(changed_keys(&job.guard, &config)));
        }
        if programs.interruption().is_some() {
            return Ok(None);
        }
    }
    Ok(Some(vec!["room = \"in-place\"".to_owned()]))
}

fn has_succeeded(guard: &GuardRun) -> bool {
    matches!(guard, GuardRun::Ended { exit: GuardExit::Code(0), .. })
}

/// The ignored files and folders of the work tree that can be copied.
fn ignored_names(git: &Git) -> Result<Vec<String>, Error> {
    let paths = git.ignored_paths()?.into_iter().filter(|path| !is_runner_path(path));
    let names = paths.filter_map(|path| String::from_utf8(path).ok());
    let names = names.map(|name| name.trim_end_matches('/').to_owned());
    Ok(names.filter(|name| !is_larger(&git.root().join(name), KEPT_BYTES_MAX)).collect())
}

/// The configurations to try, the most likely one first.
fn candidates(guard: &GuardConfig, ignored: &[String]) -> Vec<GuardConfig> {
    let is_one_of = |names: &[&str], path: &str| {
        Path::new(path).file_name().is_some_and(|name| names.iter().any(|known| name == *known))
    };
    let dependencies = ignored.iter().filter(|path| is_one_of(&DEPENDENCIES, path));
    let sources = ignored.iter().filter(|path| !is_one_of(&BUILD_OUTPUT, path));
    let keeping = |paths: Vec<&String>| {
        let added = paths.into_iter().filter(|path| !guard.keep.contains(path)).cloned();
        GuardConfig { keep: guard.keep.iter().cloned().chain(added).collect(), ..guard.clone() }
    };
    let mut candidates =
        vec![keeping(dependencies.collect()), keeping(sources.collect()), keeping(ignored.iter().collect())];
    let of_system = SERVICE_SOCKETS.iter().filter(|path| Path::new(path).exists());
    let of_user = user_sockets::hidden(&guard.sockets).into_iter();
    let of_user = of_user.filter(|path| CONTAINER_SOCKETS.iter().any(|name| path.ends_with(name)));
    let sockets: Vec<String> = of_system
        .map(|path| (*path).to_owned())
        .chain(of_user.map(|path| path.display().to_string()))
        .collect();
    if !sockets.is_empty() {
        candidates.push(GuardConfig { sockets, ..guard.clone() });
    }
    candidates.retain(|candidate| candidate != guard);
    candidates.dedup();
    candidates
}

/// The lines that a configuration has and the other has not.
fn changed_keys(before: &GuardConfig, after: &GuardConfig) -> Vec<String> {
    let list = |key: &str, values: &[String]| {
        let values: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
        format!("{key} = [{}]", values.join(", "))
    };
    let mut keys = Vec::new();
    if before.keep != after.keep {
        keys.push(list("keep", &after.keep));
    }
    if before.sockets != after.sockets {
        keys.push(list("sockets", &after.sockets));
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_tried_before_other_files_and_build_output_last() {
        let guard = GuardConfig::default();
        let ignored = ["target", "node_modules", "local.cfg", "packages/a/node_modules"].map(str::to_owned);
        let kept: Vec<Vec<String>> = candidates(&guard, &ignored)
            .into_iter()
            .map(|config| config.keep)
            .filter(|keep| !keep.is_empty())
            .collect();
        let modules = ["node_modules", "packages/a/node_modules"];
        assert_eq!(kept[0], modules);
        assert_eq!(kept[1], ["node_modules", "local.cfg", "packages/a/node_modules"]);
        assert_eq!(kept[2], ignored);
        let after = GuardConfig { keep: vec![".venv".to_owned()], ..guard.clone() };
        assert_eq!(changed_keys(&guard, &after), ["keep = [\".venv\"]"]);
    }

    #[test]
    fn without_ignored_files_there_is_nothing_to_keep() {
        let tried = candidates(&GuardConfig::default(), &[]);
        assert!(tried.iter().all(|config| config.keep.is_empty() && !config.sockets.is_empty()), "{tried:?}");
    }
}
