//! A git that fails at its k-th call: in the command itself, and in the recovery after a crash.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use testkit::test_repo::{RunOutput, TestRepo, run as run_command};

use crate::families::pairs::kill_at;
use crate::families::{Family, calls_of};
use crate::oracle::{Belongings, Untouched, judge};
use crate::point::{PlannedPoint, PointSpec, PointVerdict};
use crate::scenarios::{FaultScenario, Workspace, find};

/// The ways in which git fails, and the shell commands that do so.
const WAYS: &[(&str, &str)] = &[
    ("exit1", "exit 1"),
    ("exit128", "echo 'fatal: injected' >&2; exit 128"),
    ("killed", "kill -9 $$"),
    ("after", "$git \"$@\"; exit 1"),
    ("hangs", "sleep 2; exec $git \"$@\""),
];
/// How many crashes precede a failing git in the recovery, spread over the calls of the command.
const RECOVERY_CRASHES: usize = 7;
/// How many calls of git in a recovery fail.
const RECOVERY_CALLS: usize = 24;

pub(super) fn families() -> Vec<Family> {
    vec![
        Family { name: "git-fails", summary: "git fails at its k-th call, in five ways", points, run },
        Family {
            name: "git-fails-later",
            summary: "a crash, then git fails at its k-th call during the recovery",
            points: recovery_points,
            run: run_in_recovery,
        },
    ]
}

fn points(workspace: &Workspace, scenarios: &[FaultScenario]) -> Vec<PlannedPoint> {
    let mut points = Vec::new();
    for scenario in scenarios {
        let count = git_calls(workspace, scenario);
        for at in 1..=count {
            for (way, _) in WAYS {
                points.push(PointSpec::new("git-fails", scenario.name, &[&at.to_string(), *way]).into());
            }
        }
    }
    points
}

fn recovery_points(workspace: &Workspace, scenarios: &[FaultScenario]) -> Vec<PlannedPoint> {
    let mut points = Vec::new();
    for scenario in scenarios {
        let count = calls_of(workspace, scenario, "mutating").len();
        let crashes =
            (1..=RECOVERY_CRASHES).map(|nth| count * nth / (RECOVERY_CRASHES + 1)).filter(|at| *at > 0);
        for crash in crashes {
            for at in 1..=RECOVERY_CALLS {
                for (way, _) in WAYS.iter().filter(|(way, _)| *way != "hangs") {
                    let arguments = [crash.to_string(), at.to_string(), (*way).to_owned()];
                    points.push(PointSpec::new("git-fails-later", scenario.name, &arguments).into());
                }
            }
        }
    }
    points
}

/// The number of git processes that the command starts; 0 if it fails.
fn git_calls(workspace: &Workspace, scenario: &FaultScenario) -> usize {
    let cache = workspace.templates().join(format!("{}.gits", scenario.name));
    if !cache.exists() {
        let exe = std::env::current_exe().expect("the path of this program");
        let mut command = std::process::Command::new(exe);
        command.args([
            "point",
            &format!("git-fails/{}/0/exit1", scenario.name),
            "--runner",
            &workspace.runner,
        ]);
        command.arg("--templates").arg(workspace.templates());
        run_command(&mut command);
    }
    fs::read_to_string(cache).ok().and_then(|text| text.trim().parse().ok()).unwrap_or_default()
}

/// A folder with a `git` that counts its calls and fails at one of them. The runner clears the environment of git, so the
/// settings are in the script.
struct FailingGit {
    folder: PathBuf,
}

impl FailingGit {
    fn new(repo: &TestRepo, at: usize, way: &str) -> Self {
        let folder = repo.outside().join("bin");
        fs::create_dir_all(&folder).expect("a folder");
        let action = WAYS.iter().find(|(name, _)| *name == way).map_or("exit 1", |(_, action)| *action);
        let real = real_git();
        let script = format!(
            "#!/bin/sh\ngit={}\necho >> {count}\ncalls=0\nwhile read -r _; do calls=$((calls + 1)); done < {count}\n\
             if [ \"$calls\" -eq {at} ]; then {action}; fi\nexec $git \"$@\"\n",
            real.display(),
            count = folder.join("count").display(),
        );
        let path = folder.join("git");
        fs::write(&path, script).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
        Self { folder }
    }

    fn run(&self, repo: &TestRepo, args: &[&str]) -> RunOutput {
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{path}", self.folder.display());
        run_command(repo.runner_command(args).env("PATH", path))
    }

    fn calls(&self) -> usize {
        fs::read_to_string(self.folder.join("count")).map_or(0, |text| text.lines().count())
    }
}

fn real_git() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).map(|folder| folder.join("git")).find(|file| file.is_file());
    found.expect("git on the PATH")
}

fn run(workspace: &Workspace, point: &PointSpec) -> PointVerdict {
    let Some(scenario) = find(&point.subject) else {
        return PointVerdict::Skipped(format!("no scenario `{}`", point.subject));
    };
    let repo = workspace.copy(&scenario);
    let before = Belongings::read(&repo, scenario.runs);
    let git = FailingGit::new(&repo, point.number(0), point.word(1));
    let untouched = Untouched::read(&repo);
    let output = git.run(&repo, scenario.command);
    if point.number(0) == 0 {
        save_count(&workspace.templates().join(format!("{}.gits", scenario.name)), &output, git.calls());
        return PointVerdict::NotReached;
    }
    if git.calls() < point.number(0) {
        return PointVerdict::NotReached;
    }
    PointVerdict::of(judge_output(&output, untouched.judge(&repo, &scenario, &before)))
}

fn save_count(cache: &Path, output: &RunOutput, calls: usize) {
    let calls = if output.code == Some(0) { calls } else { 0 };
    fs::write(cache, calls.to_string()).expect("the number of calls");
}

/// A git that fails must not crash the runner.
fn judge_output(output: &RunOutput, mut violations: Vec<String>) -> Vec<String> {
    if output.code.is_none_or(|code| code == 101 || code == 134) {
        violations
            .insert(0, format!("the runner crashed: exit {:?}: {}", output.code, output.stderr.trim_end()));
    }
    violations
}

fn run_in_recovery(workspace: &Workspace, point: &PointSpec) -> PointVerdict {
    let Some(scenario) = find(&point.subject) else {
        return PointVerdict::Skipped(format!("no scenario `{}`", point.subject));
    };
    let repo = workspace.copy(&scenario);
    let before = Belongings::read(&repo, scenario.runs);
    if !kill_at(&repo, scenario.command, point.number(0)).was_injected {
        return PointVerdict::NotReached;
    }
    let git = FailingGit::new(&repo, point.number(1), point.word(2));
    let output = git.run(&repo, scenario.resume.first().copied().unwrap_or_default());
    if git.calls() < point.number(1) {
        return PointVerdict::NotReached;
    }
    PointVerdict::of(judge_output(&output, judge(&repo, &scenario, &before)))
}
