//! A power cut at every barrier: the run continues from a copy of the disk that was taken before the barrier.
//!
//! The repository is on ext4 on a loop device. What the kernel has not written to the device is not in the copy. Mounts need
//! root, so each point has a mount namespace of its own, and the copy is mounted at the same path as the original.

use std::cell::Cell;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use testkit::test_repo::{TestRepo, run as run_command, temporary_root};

use crate::families::{Family, calls_of};
use crate::injector::{CallClass, Fault, Injection, trace};
use crate::oracle::{Belongings, judge};
use crate::point::{PlannedPoint, PointSpec, PointVerdict};
use crate::scenarios::{FaultScenario, Workspace, find, populate};

const IMAGE_MEGABYTES: u64 = 40;
/// The kernel writes nothing by itself for ten minutes.
const MOUNT_OPTIONS: &str = "loop,commit=600";

pub(super) fn families() -> Vec<Family> {
    vec![
        Family {
            name: "power-cut",
            summary: "cut the power before each barrier, ext4 with default options",
            points: |workspace, scenarios| points("power-cut", workspace, scenarios),
            run: |workspace, point| {
                run(workspace, point, &PowerCut { options: "", is_journal_flushed: false })
            },
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
            run: |workspace, point| {
                run(workspace, point, &PowerCut { options: ",noauto_da_alloc", is_journal_flushed: false })
            },
        },
    ]
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

fn run(workspace: &Workspace, point: &PointSpec, cut: &PowerCut) -> PointVerdict {
    let Some(scenario) = find(&point.subject) else {
        return PointVerdict::Skipped(format!("no scenario `{}`", point.subject));
    };
    if scenario.name == "reftable" {
        return PointVerdict::Skipped("git syncs a reftable before it writes the end of it".to_owned());
    }
    let folder = tempfile::Builder::new().prefix("power-").tempdir_in(temporary_root());
    let folder = folder.expect("a temporary folder");
    let outside = folder.path().to_owned();
    let disk = outside.join("disk");
    fs::create_dir_all(&disk).expect("a mount point");
    if let Err(reason) = use_own_mounts() {
        return PointVerdict::Skipped(reason);
    }
    let filled = prepared_image(workspace, &scenario, &outside)
        .and_then(|image| copy_image(&image, &outside.join("disk.img")))
        .and_then(|()| mount_image(&outside.join("disk.img"), &disk, cut.options));
    if let Err(reason) = filled {
        return PointVerdict::Skipped(reason);
    }
    populate_beside_disk(&outside, &workspace.template(&scenario));
    let repo = TestRepo::open(&workspace.runner, folder).at(disk.join("work"));
    let repo = scenario.enter_work_tree(repo);
    rustix::fs::syncfs(File::open(&disk).expect("the disk")).expect("syncfs");
    let before = Belongings::read(&repo, scenario.runs);
    let is_promised = crash(&repo, &scenario, point.number(0), cut);
    umount2(&disk, MntFlags::MNT_DETACH).expect("umount");
    if let Err(reason) = mount_image(&cut_image(&repo), &disk, cut.options) {
        return PointVerdict::Bad(vec![reason]);
    }
    if let Err(reason) = change_boot_id(repo.outside()) {
        return PointVerdict::Skipped(reason);
    }
    if !is_promised {
        // Without a snapshot, the work of the session may be lost with the power.
        let _ = fs::remove_dir_all(repo.outside().join("home/ledger"));
    }
    let verdict = PointVerdict::of(judge(&repo, &scenario, &before));
    for mounted in [disk, repo.outside().join("proc")] {
        let _ = umount2(&mounted, MntFlags::MNT_DETACH);
    }
    verdict
}

fn cut_image(repo: &TestRepo) -> PathBuf {
    repo.outside().join("cut.img")
}

/// Runs the command, copies the disk at the barrier and kills everything. Returns whether the runner had promised that the
/// session's work is safe: it has started the guard, or committed the iteration.
fn crash(repo: &TestRepo, scenario: &FaultScenario, at: usize, cut: &PowerCut) -> bool {
    let image = repo.outside().join("disk.img");
    let target = cut_image(repo);
    let is_copied = Cell::new(false);
    let was_promised = Cell::new(false);
    let iterations =
        || repo.try_git(&["rev-list", "--count", "--grep=^chore(loop): run .* iter ", "HEAD"]).stdout;
    let start = iterations();
    let copy = || {
        was_promised.set(iterations() != start || has_guard_log(&repo.path(".runner/iterations")));
        if cut.is_journal_flushed {
            let other = File::create(repo.outside().join("disk/other")).expect("another file");
            other.sync_all().expect("fsync");
        }
        copy_image(&image, &target).expect("a copy of the disk");
        is_copied.set(true);
    };
    let mut observer = |number: usize, _: &_| {
        if number == at {
            copy();
        }
    };
    let root = repo.outside().join("disk");
    let injection = Injection {
        class: CallClass::Barriers,
        root: &root,
        at,
        fault: Some(Fault::KillAll),
        observer: Some(&mut observer),
    };
    trace(&repo.runner_command(scenario.command), injection);
    if !is_copied.get() {
        copy();
    }
    was_promised.get()
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

/// Moves this process into a mount namespace of its own.
fn use_own_mounts() -> Result<(), String> {
    unshare(CloneFlags::CLONE_NEWNS).map_err(|error| format!("no own mount namespace: {error}"))?;
    let flags = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, flags, None::<&str>)
        .map_err(|error| format!("private mounts: {error}"))
}

/// After a power cut the machine boots again: programs that ask whether it did must see another id.
fn change_boot_id(folder: &Path) -> Result<(), String> {
    let file = folder.join("boot_id");
    fs::write(&file, "00000000-0000-4000-8000-000000000000\n").expect("a boot id");
    let flags = MsFlags::MS_BIND;
    let target = "/proc/sys/kernel/random/boot_id";
    mount(Some(&file), target, None::<&str>, flags, None::<&str>)
        .map_err(|error| format!("boot id: {error}"))?;
    // A sandbox may mount a /proc of its own only where one without anything on top of it is visible.
    let plain = folder.join("proc");
    fs::create_dir_all(&plain).expect("a mount point");
    mount(Some("proc"), &plain, Some("proc"), MsFlags::empty(), None::<&str>)
        .map_err(|error| format!("/proc: {error}"))
}

/// Work trees, which are on the disk; everything else is beside it.
const WORK_TREES: [&str; 2] = ["work", "second"];

fn populate_beside_disk(outside: &Path, template: &Path) {
    for entry in fs::read_dir(template).expect("the template").flatten() {
        if !WORK_TREES.iter().any(|name| entry.file_name() == *name) {
            let output = run_command(Command::new("cp").arg("-a").arg(entry.path()).arg(outside));
            assert_eq!(output.code, Some(0), "cp: {}", output.stderr);
        }
    }
}

/// Copies an image without its holes.
fn copy_image(image: &Path, target: &Path) -> Result<(), String> {
    let output = run_command(Command::new("cp").arg("--sparse=always").arg(image).arg(target));
    if output.code == Some(0) { Ok(()) } else { Err(format!("cp: {}", output.stderr.trim_end())) }
}

/// An image with the scenario's work trees, made once for all points. The copies of it have the same inode numbers and times, so
/// that its index stays valid.
fn prepared_image(
    workspace: &Workspace,
    scenario: &FaultScenario,
    outside: &Path,
) -> Result<PathBuf, String> {
    let image = workspace.templates().join(format!("{}.img", scenario.name));
    if !image.exists() {
        let new = outside.join("new.img");
        let disk = outside.join("new-disk");
        fs::create_dir_all(&disk).expect("a mount point");
        fill_disk(&new, &disk, &workspace.template(scenario))?;
        umount2(&disk, MntFlags::empty()).map_err(|error| format!("umount: {error}"))?;
        // Two processes may prepare the same image: both are the same.
        let unique = image.with_extension(std::process::id().to_string());
        copy_image(&new, &unique)?;
        fs::rename(&unique, &image).expect("the image of the scenario");
    }
    Ok(image)
}

/// Formats a new image, mounts it and copies the work trees onto it.
fn fill_disk(image: &Path, disk: &Path, template: &Path) -> Result<(), String> {
    let file = File::create(image).expect("an image");
    file.set_len(IMAGE_MEGABYTES << 20).expect("the size of the image");
    let mut format = Command::new("mkfs.ext4");
    format.args(["-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0"]);
    let output = run_command(format.arg(image));
    if output.code != Some(0) {
        return Err(format!("mkfs.ext4: {}", output.stderr.trim_end()));
    }
    mount_image(image, disk, "")?;
    for name in WORK_TREES.into_iter().filter(|name| template.join(name).exists()) {
        fs::create_dir(disk.join(name)).expect("a work tree");
        populate(&disk.join(name), &template.join(name));
    }
    // The copies have other inode numbers and times than the index remembers.
    let mut refresh = Command::new("git");
    run_command(refresh.args(["update-index", "-q", "--refresh"]).current_dir(disk.join("work")));
    Ok(())
}

fn mount_image(image: &Path, disk: &Path, options: &str) -> Result<(), String> {
    let mut mount = Command::new("mount");
    mount.arg("-o").arg(format!("{MOUNT_OPTIONS}{options}")).arg(image).arg(disk);
    let output = run_command(&mut mount);
    if output.code == Some(0) { Ok(()) } else { Err(format!("loop mount: {}", output.stderr.trim_end())) }
}
