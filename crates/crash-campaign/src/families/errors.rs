//! System calls that fail: a full disk, a broken disk, no file descriptors, no memory.

use nix::errno::Errno;

use crate::families::{Family, calls_of, counted_folder};
use crate::injector::{CallClass, Fault, Injection, trace};
use crate::oracle::{Belongings, Untouched};
use crate::point::{PlannedPoint, PointSpec, PointVerdict};
use crate::scenarios::{FaultScenario, Workspace, find};

/// Exit codes of a program that panicked or aborted instead of reporting an error.
const CRASH_CODES: [i32; 2] = [101, 134];

pub(super) fn families() -> Vec<Family> {
    vec![
        Family {
            name: "enospc",
            summary: "the disk is full from each mutating call on",
            points: |workspace, scenarios| points("enospc", "mutating", workspace, scenarios),
            run: |workspace, point| {
                run(workspace, point, CallClass::Mutating, Fault::FailAlways(Errno::ENOSPC))
            },
        },
        Family {
            name: "eio",
            summary: "each mutating call fails once with EIO",
            points: |workspace, scenarios| points("eio", "mutating", workspace, scenarios),
            run: |workspace, point| run(workspace, point, CallClass::Mutating, Fault::FailOnce(Errno::EIO)),
        },
        Family {
            name: "eio-read",
            summary: "each call that reads a file or a folder, or asks about it, fails once with EIO",
            points: |workspace, scenarios| points("eio-read", "reading", workspace, scenarios),
            run: |workspace, point| run(workspace, point, CallClass::Reading, Fault::FailOnce(Errno::EIO)),
        },
        Family {
            name: "emfile",
            summary: "each call that needs a file descriptor fails once with EMFILE",
            points: |workspace, scenarios| points("emfile", "opening", workspace, scenarios),
            run: |workspace, point| run(workspace, point, CallClass::Opening, Fault::FailOnce(Errno::EMFILE)),
        },
        Family {
            name: "emfile-always",
            summary: "no file descriptor is left from each opening call on",
            points: |workspace, scenarios| points("emfile-always", "opening", workspace, scenarios),
            run: |workspace, point| {
                run(workspace, point, CallClass::Opening, Fault::FailAlways(Errno::EMFILE))
            },
        },
        Family {
            name: "enomem",
            summary: "each call that starts a process or thread, or uses a file, fails once with ENOMEM",
            points: |workspace, scenarios| points("enomem", "any", workspace, scenarios),
            run: |workspace, point| run(workspace, point, CallClass::Any, Fault::FailOnce(Errno::ENOMEM)),
        },
    ]
}

fn points(
    family: &str,
    class: &str,
    workspace: &Workspace,
    scenarios: &[FaultScenario],
) -> Vec<PlannedPoint> {
    let mut points = Vec::new();
    for scenario in scenarios {
        let count = calls_of(workspace, scenario, class).len();
        points.extend((1..=count).map(|at| PointSpec::new(family, scenario.name, &[at]).into()));
    }
    points
}

fn run(workspace: &Workspace, point: &PointSpec, class: CallClass, fault: Fault) -> PointVerdict {
    let Some(scenario) = find(&point.subject) else {
        return PointVerdict::Skipped(format!("no scenario `{}`", point.subject));
    };
    let repo = workspace.copy(&scenario);
    let before = Belongings::read(&repo, scenario.runs);
    let untouched = Untouched::read(&repo);
    let injection = Injection {
        class,
        root: counted_folder(&repo),
        at: point.number(0),
        fault: Some(fault),
        observer: None,
    };
    let outcome = trace(&repo.runner_command(scenario.command), injection);
    if !outcome.was_injected {
        return PointVerdict::NotReached;
    }
    let mut violations = Vec::new();
    // A signal ends a program that aborts; the injector itself sends none here.
    if outcome.exit_code.is_none_or(|code| CRASH_CODES.contains(&code)) {
        violations
            .push(format!("the runner crashed instead of reporting the error: {:?}", outcome.exit_code));
    }
    violations.extend(untouched.judge(&repo, &scenario, &before));
    PointVerdict::of(violations)
}
