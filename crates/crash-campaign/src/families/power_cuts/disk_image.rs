//! The disk of a power cut: ext4 in an image on a loop device, and what a restart of the machine changes.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use testkit::test_repo::run as run_command;

use crate::scenarios::{FaultScenario, Workspace, populate};

const IMAGE_MEGABYTES: u64 = 40;
/// The kernel writes nothing by itself for ten minutes.
const MOUNT_OPTIONS: &str = "loop,commit=600";

/// Moves this process into a mount namespace of its own.
pub(super) fn use_own_mounts() -> Result<(), String> {
    unshare(CloneFlags::CLONE_NEWNS).map_err(|error| format!("no own mount namespace: {error}"))?;
    let flags = MsFlags::MS_REC | MsFlags::MS_PRIVATE;
    mount(None::<&str>, "/", None::<&str>, flags, None::<&str>)
        .map_err(|error| format!("private mounts: {error}"))
}

/// After a power cut the machine boots again: programs that ask whether it did must see another id.
pub(super) fn change_boot_id(folder: &Path) -> Result<(), String> {
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

pub(super) fn populate_beside_disk(outside: &Path, template: &Path) {
    for entry in fs::read_dir(template).expect("the template").flatten() {
        if !WORK_TREES.iter().any(|name| entry.file_name() == *name) {
            let output = run_command(Command::new("cp").arg("-a").arg(entry.path()).arg(outside));
            assert_eq!(output.code, Some(0), "cp: {}", output.stderr);
        }
    }
}

/// Copies an image without its holes.
pub(super) fn copy_image(image: &Path, target: &Path) -> Result<(), String> {
    let output = run_command(Command::new("cp").arg("--sparse=always").arg(image).arg(target));
    if output.code == Some(0) { Ok(()) } else { Err(format!("cp: {}", output.stderr.trim_end())) }
}

/// An image with the scenario's work trees, made once for all points. The copies of it have the same inode numbers and times, so
/// that its index stays valid.
pub(super) fn prepared_image(
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

pub(super) fn mount_image(image: &Path, disk: &Path, options: &str) -> Result<(), String> {
    let mut mount = Command::new("mount");
    mount.arg("-o").arg(format!("{MOUNT_OPTIONS}{options}")).arg(image).arg(disk);
    let output = run_command(&mut mount);
    if output.code == Some(0) { Ok(()) } else { Err(format!("loop mount: {}", output.stderr.trim_end())) }
}
