//! The kinds of faults. Each family lists its points and runs one of them.

mod enumeration;
mod errors;
mod failing_git;
mod hostile_agents;
mod pairs;
mod power_cuts;
mod repository_shapes;
mod two_worktrees;
mod user_work;

use std::fs;
use std::process::Command;

use crate::point::{PointSpec, PointVerdict};
use crate::scenarios::{FaultScenario, Workspace};

/// One kind of fault.
pub(crate) struct Family {
    pub(crate) name: &'static str,
    /// What the family does, for the list of families.
    pub(crate) summary: &'static str,
    /// The points for these scenarios.
    pub(crate) points: fn(&Workspace, &[FaultScenario]) -> Vec<PointSpec>,
    pub(crate) run: fn(&Workspace, &PointSpec) -> PointVerdict,
}

pub(crate) fn all() -> Vec<Family> {
    let mut all = enumeration::families();
    all.extend(errors::families());
    all.extend(pairs::families());
    all.extend(power_cuts::families());
    all.extend(failing_git::families());
    all.extend(repository_shapes::families());
    all.extend(hostile_agents::families());
    all.extend(user_work::families());
    all.extend(two_worktrees::families());
    all
}

/// A counted call of a scenario's command, as `crash-campaign calls` prints it.
#[derive(Clone, Debug)]
pub(crate) struct ListedCall {
    pub(crate) program: String,
}

/// The counted calls of a scenario's command without a fault; none if it fails, which the family `no-fault` reports. Another
/// process counts them once per campaign, because a tracer waits for all its children.
pub(crate) fn calls_of(workspace: &Workspace, scenario: &FaultScenario, class: &str) -> Vec<ListedCall> {
    let cache = workspace.templates().join(format!("{}.{class}", scenario.name));
    if !cache.exists() {
        let exe = std::env::current_exe().expect("the path of this program");
        let mut command = Command::new(exe);
        command.args(["calls", scenario.name, class, "--runner", &workspace.runner]);
        command.arg("--templates").arg(workspace.templates());
        let output = testkit::test_repo::run(&mut command);
        let is_complete = output.code == Some(0);
        let calls = if is_complete { output.stdout } else { String::new() };
        fs::write(&cache, calls).expect("the list of calls");
    }
    let text = fs::read_to_string(cache).expect("the list of calls");
    text.lines()
        .map(|line| ListedCall { program: line.split(' ').next().unwrap_or_default().to_owned() })
        .collect()
}
