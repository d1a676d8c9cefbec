//! A power cut at every barrier: the run continues from a copy of the disk that was taken before the barrier.
//!
//! The repository is on ext4 on a loop device. What the kernel has not written to the device is not in the copy. Mounts need
//! root, so each point has a mount namespace of its own, and the copy is mounted at the same path as the original.

mod cut_sweep;
mod disk_image;

use std::cell::Cell;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use nix::mount::{MntFlags, umount2};
use testkit::test_repo::{TestRepo, temporary_root};

use crate::families::{Family, Sweep, calls_of};
use crate::injector::{CallClass, Fault, Injection, trace};
use crate::oracle::{Belongings, judge};
use crate::point::{PlannedPoint, PointSpec, PointVerdict};
use crate::scenarios::{FaultScenario, Workspace, find};
use cut_sweep::CutSweep;
pub(crate) use cut_sweep::{CutArgs, judge_cut};
use disk_image::{
    change_boot_id, copy_image, mount_image, populate_beside_disk, prepared_image, use_own_mounts,
};

pub(super) fn families() -> Vec<Family> {
    vec![
        Family {
            name: "power-cut",
            summary: "cut the power before each barrier, ext4 with default options",
            points: |workspace, scenarios| points("power-cut", workspace, scenarios),
            run: |workspace, point| run(workspace, point, &PLAIN),
        },
        Family {
            name: "power-cut-synced",
            summary: "the same, after another program flushed the file system's journal",
            points: |workspace, scenarios| points("power-cut-synced", workspace, scenarios),
            run: |workspace, point| {
                run(workspace, point, &PowerCut { options: "", is_journal_flushed: true })
            },
        },
        Family {
            name: "power-cut-noalloc",
            summary: "the same with noauto_da_alloc: a rename flushes nothing",
            points: |workspace, scenarios| points("power-cut-noalloc", workspace, scenarios),
            run: |workspace, point| run(workspace, point, &NO_ALLOCATION),
        },
    ]
}

const PLAIN: PowerCut = PowerCut { options: "", is_journal_flushed: false };
const NO_ALLOCATION: PowerCut = PowerCut { options: ",noauto_da_alloc", is_journal_flushed: false };

/// The sweep of a family that has one. Another program's fsync changes every later copy, so that family has none.
pub(super) fn sweep_of(family: &str) -> Option<Sweep> {
    match family {
        "power-cut" => Some(|workspace, scenario, every| {
            CutSweep { workspace, family: "power-cut", scenario, cut: &PLAIN, every }.run();
        }),
        "power-cut-noalloc" => Some(|workspace, scenario, every| {
            CutSweep { workspace, family: "power-cut-noalloc", scenario, cut: &NO_ALLOCATION, every }.run();
        }),
        _ => None,
    }
}

/// How the disk behaves.
struct PowerCut {
    options: &'static str,
    /// Whether another program's fsync has flushed the journal of the file system just before.
    is_journal_flushed: bool,
}

/// One point per barrier, and one after the command's end.
fn points(family: &str, workspace: &Workspace, scenarios: &[FaultScenario]) -> Vec<PlannedPoint> {
    let mut points = Vec::new();
    for scenario in scenarios {
        let count = calls_of(workspace, scenario, "barriers").len();
        let last = if count == 0 { 0 } else { count + 1 };
        points.extend((1..=last).map(|at| PointSpec::new(family, scenario.name, &[at]).into()));
    }
    points
}

/// Why a scenario has no power cuts.
fn skip_reason(scenario: &FaultScenario) -> Option<String> {
    let is_unsafe = scenario.name == "reftable";
    is_unsafe.then(|| "git syncs a reftable before it writes the end of it".to_owned())
}

/// A scenario whose work trees are on a disk of their own.
struct MountedScenario {
    repo: TestRepo,
    before: Belongings,
    image: PathBuf,
    disk: PathBuf,
}

impl MountedScenario {
    /// Mounts the disk for this process only. Fails where mounts are not allowed.
    fn prepare(workspace: &Workspace, scenario: &FaultScenario, cut: &PowerCut) -> Result<Self, String> {
        let folder = tempfile::Builder::new().prefix("power-").tempdir_in(temporary_root());
        let folder = folder.expect("a temporary folder");
        let outside = folder.path().to_owned();
        let disk = outside.join("disk");
        fs::create_dir_all(&disk).expect("a mount point");
        use_own_mounts()?;
        let image = outside.join("disk.img");
        copy_image(&prepared_image(workspace, scenario, &outside)?, &image)?;
        mount_image(&image, &disk, cut.options)?;
        populate_beside_disk(&outside, &workspace.template(scenario));
        let repo = TestRepo::open(&workspace.runner, folder).at(disk.join("work"));
        let repo = scenario.enter_work_tree(repo);
        rustix::fs::syncfs(File::open(&disk).expect("the disk")).expect("syncfs");
        let before = Belongings::read(&repo, scenario.runs);
        Ok(Self { repo, before, image, disk })
    }
}

fn run(workspace: &Workspace, point: &PointSpec, cut: &PowerCut) -> PointVerdict {
    let Some(scenario) = find(&point.subject) else {
        return PointVerdict::Skipped(format!("no scenario `{}`", point.subject));
    };
    if let Some(reason) = skip_reason(&scenario) {
        return PointVerdict::Skipped(reason);
    }
    let mounted = match MountedScenario::prepare(workspace, &scenario, cut) {
        Ok(mounted) => mounted,
        Err(reason) => return PointVerdict::Skipped(reason),
    };
    let MountedScenario { repo, before, disk, .. } = &mounted;
    let is_promised = crash(&mounted, &scenario, point.number(0), cut);
    umount2(disk, MntFlags::MNT_DETACH).expect("umount");
    let verdict = continue_from(repo, &cut_image(repo), cut.options, is_promised).map_or_else(
        |reason| PointVerdict::Bad(vec![reason]),
        |()| PointVerdict::of(judge(repo, &scenario, before)),
    );
    for mounted in [disk, &repo.outside().join("proc")] {
        let _ = umount2(mounted, MntFlags::MNT_DETACH);
    }
    verdict
}

/// The machine starts again with this image as its disk.
fn continue_from(repo: &TestRepo, image: &Path, options: &str, is_promised: bool) -> Result<(), String> {
    mount_image(image, &repo.outside().join("disk"), options)?;
    change_boot_id(repo.outside())?;
    if !is_promised {
        // Without a snapshot, the work of the session may be lost with the power.
        let _ = fs::remove_dir_all(repo.outside().join("home/ledger"));
    }
    Ok(())
}

fn cut_image(repo: &TestRepo) -> PathBuf {
    repo.outside().join("cut.img")
}

/// Runs the command, copies the disk at the barrier and kills everything. Returns whether the work was promised to be safe.
fn crash(mounted: &MountedScenario, scenario: &FaultScenario, at: usize, cut: &PowerCut) -> bool {
    let MountedScenario { repo, image, disk, .. } = mounted;
    let target = cut_image(repo);
    let copied = Cell::new(None);
    let promise = WorkPromise::new(repo);
    let copy = || {
        copied.set(Some(promise.is_made()));
        if cut.is_journal_flushed {
            let other = File::create(disk.join("other")).expect("another file");
            other.sync_all().expect("fsync");
        }
        copy_image(image, &target).expect("a copy of the disk");
    };
    let mut observer = |number: usize, _: &_| {
        if number == at {
            copy();
        }
    };
    let injection = Injection {
        class: CallClass::Barriers,
        root: disk,
        at,
        fault: Some(Fault::KillAll),
        observer: Some(&mut observer),
    };
    trace(&repo.runner_command(scenario.command), injection);
    if copied.get().is_none() {
        copy();
    }
    copied.get().unwrap_or_default()
}

/// Whether the runner has promised that the session's work is safe: it has started the guard, or committed the iteration.
struct WorkPromise<'a> {
    repo: &'a TestRepo,
    /// The iterations before the command.
    start: String,
}

impl<'a> WorkPromise<'a> {
    fn new(repo: &'a TestRepo) -> Self {
        Self { repo, start: iterations_of(repo) }
    }

    fn is_made(&self) -> bool {
        iterations_of(self.repo) != self.start || has_guard_log(&self.repo.path(".runner/iterations"))
    }
}

/// The number of iterations on the branch that is checked out.
fn iterations_of(repo: &TestRepo) -> String {
    repo.try_git(&["rev-list", "--count", "--grep=^chore(loop): run .* iter ", "HEAD"]).stdout
}

/// Whether an iteration's folder has the log of a guard.
fn has_guard_log(iterations: &Path) -> bool {
    let entries =
        |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries(iterations).flat_map(|run| entries(&run).collect::<Vec<_>>()).any(|folder| {
        let is_latest = !folder.join("meta.json").exists();
        is_latest && folder.join("guard.log").exists()
    })
}
