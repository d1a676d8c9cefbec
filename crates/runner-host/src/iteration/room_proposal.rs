//! A guard that fails in the room and succeeds in the work tree needs something that is in no commit. This finds the
//! configuration with which it succeeds in the room too, by trying.

use std::path::Path;
use std::time::Duration;

use runner_core::config::{GuardConfig, IgnoredFiles};
use runner_core::step::{GuardExit, GuardJob, GuardRun};

use super::guard::{self, GuardInputs};
use super::program_runner::ProgramRunner;
use crate::agent::sandbox_argv::SERVICE_SOCKETS;
use crate::agent::user_sockets;
use crate::error::Error;
use crate::fs::atomic;
use crate::fs::tree_size::{fits, is_larger};
use crate::git::{Git, path_of};
use crate::ops::detect::detected_setup;
use crate::paths::is_runner_path;
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
/// The same for all ignored files together.
const WORKTREE_BYTES_MAX: u64 = 16 << 30;
/// How much longer than in the work tree a trial may take: a new room has no build cache.
const TRIAL_FACTOR: u32 = 4;
const TRIAL_SECS_MIN: u64 = 120;

/// What a configuration can add to a room.
#[derive(Clone, Debug, Default)]
struct Offers {
    /// The ignored files and folders of the work tree that can be kept.
    ignored: Vec<String>,
    /// Whether all ignored files can be copied for every run.
    can_copy_all: bool,
    /// A guard with a setup that was detected.
    setup: Option<GuardConfig>,
    /// The sockets of services that are here.
    sockets: Vec<String>,
}

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
    let longest = in_place.elapsed.unwrap_or(inputs.wall).saturating_mul(TRIAL_FACTOR);
    let wall = longest.max(Duration::from_secs(TRIAL_SECS_MIN)).min(inputs.wall);
    for config in candidates(&job.guard, &Offers::find(git)?) {
        let mut room = GuardRoom::trial(git, &job.run_id, &config, inputs.candidate)?;
        let trial = GuardInputs { guard: &config, wall, ..*inputs };
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

impl Offers {
    fn find(git: &Git) -> Result<Self, Error> {
        let mut paths = git.ignored_paths()?;
        paths.retain(|path| !is_runner_path(path));
        let names = paths.iter().filter_map(|path| str::from_utf8(path).ok());
        let names = names.map(|name| name.trim_end_matches('/'));
        let is_small = |name: &&str| !is_larger(&git.root().join(name), KEPT_BYTES_MAX);
        let mut left = WORKTREE_BYTES_MAX;
        Ok(Self {
            ignored: names.filter(is_small).map(str::to_owned).collect(),
            can_copy_all: !paths.is_empty()
                && paths.iter().all(|path| fits(&git.root().join(path_of(path)), &mut left)),
            setup: detected_setup(git)?,
            sockets: service_sockets(),
        })
    }
}

/// Sockets of services of the system, and of the user's container services.
fn service_sockets() -> Vec<String> {
    let of_system = SERVICE_SOCKETS.iter().filter(|path| Path::new(path).exists());
    let of_user = user_sockets::hidden(&[]).into_iter();
    let of_user = of_user.filter(|path| CONTAINER_SOCKETS.iter().any(|name| path.ends_with(name)));
    of_system.map(|path| (*path).to_owned()).chain(of_user.map(|path| path.display().to_string())).collect()
}

/// The configurations to try, the most likely one first, and those last that make a pass prove less.
fn candidates(guard: &GuardConfig, offers: &Offers) -> Vec<GuardConfig> {
    let is_one_of = |names: &[&str], path: &str| {
        Path::new(path).file_name().is_some_and(|name| names.iter().any(|known| name == *known))
    };
    let is_dependency = |path: &&String| is_one_of(&DEPENDENCIES, path);
    let is_source = |path: &&String| !is_one_of(&BUILD_OUTPUT, path);
    let ignored = || offers.ignored.iter();
    let keeping = |paths: Vec<&String>| {
        let added = paths.into_iter().filter(|path| !guard.keep.contains(path)).cloned();
        GuardConfig { keep: guard.keep.iter().cloned().chain(added).collect(), ..guard.clone() }
    };
    let mut candidates = vec![
        keeping(ignored().filter(is_dependency).collect()),
        keeping(ignored().filter(is_source).collect()),
        keeping(ignored().collect()),
    ];
    if let Some(detected) = offers.setup.as_ref().filter(|_| guard.setup.is_none()) {
        let others = keeping(ignored().filter(|path| is_source(path) && !is_dependency(path)).collect());
        for base in [guard.clone(), others] {
            let (setup, setup_inputs) = (detected.setup.clone(), detected.setup_inputs.clone());
            candidates.push(GuardConfig { setup, setup_inputs, ..base });
        }
    }
    if offers.can_copy_all {
        candidates.push(GuardConfig { ignored: IgnoredFiles::Worktree, ..guard.clone() });
    }
    for socket in offers.sockets.iter().filter(|socket| !guard.sockets.contains(socket)) {
        let sockets = guard.sockets.iter().chain([socket]).cloned().collect();
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
    if let Some(setup) = after.setup.as_ref().filter(|_| before.setup != after.setup) {
        keys.push(list("setup", setup.words()));
    }
    if before.setup_inputs != after.setup_inputs {
        keys.push(list("setup_inputs", &after.setup_inputs));
    }
    if before.ignored != after.ignored {
        keys.push(format!("ignored = \"{}\"", after.ignored));
    }
    if before.sockets != after.sockets {
        keys.push(list("sockets", &after.sockets));
    }
    keys
}

#[cfg(test)]
mod tests {
    use runner_core::config::CommandArgv;

    use super::*;

    fn offers(ignored: &[&str]) -> Offers {
        Offers { ignored: ignored.iter().map(|path| (*path).to_owned()).collect(), ..Offers::default() }
    }

    /// The keys of every candidate, in their order.
    fn proposed(offers: &Offers) -> Vec<String> {
        let guard = GuardConfig::default();
        candidates(&guard, offers).iter().map(|config| changed_keys(&guard, config).join("; ")).collect()
    }

    #[test]
    fn dependencies_are_tried_before_other_files_and_build_output_last() {
        let offers = offers(&["target", "node_modules", "local.cfg", "packages/a/node_modules"]);
        let expected = [
            r#"keep = ["node_modules", "packages/a/node_modules"]"#,
            r#"keep = ["node_modules", "local.cfg", "packages/a/node_modules"]"#,
            r#"keep = ["target", "node_modules", "local.cfg", "packages/a/node_modules"]"#,
        ];
        assert_eq!(proposed(&offers), expected);
    }

    #[test]
    fn a_setup_is_tried_before_the_files_of_the_work_tree_and_each_socket_alone() {
        let detected = GuardConfig {
            setup: CommandArgv::new(["npm", "ci"].map(str::to_owned).to_vec()),
            setup_inputs: vec!["package-lock.json".to_owned()],
            ..GuardConfig::default()
        };
        let offers = Offers {
            can_copy_all: true,
            setup: Some(detected),
            sockets: vec!["/run/a.sock".to_owned(), "/run/b.sock".to_owned()],
            ..offers(&["local.cfg"])
        };
        let setup = r#"setup = ["npm", "ci"]; setup_inputs = ["package-lock.json"]"#;
        let expected = [
            r#"keep = ["local.cfg"]"#.to_owned(),
            setup.to_owned(),
            format!(r#"keep = ["local.cfg"]; {setup}"#),
            r#"ignored = "worktree""#.to_owned(),
            r#"sockets = ["/run/a.sock"]"#.to_owned(),
            r#"sockets = ["/run/b.sock"]"#.to_owned(),
        ];
        assert_eq!(proposed(&offers), expected);
        assert_eq!(proposed(&Offers::default()), [""; 0]);
    }
}
