//! The places of a run: repository, branch, disk, home and temporary files.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use runner_core::text::one_line;

use super::DoctorCheck;
use crate::error::{Error, UserError};
use crate::fs::free_space::{refuse_full_disk, refuse_read_only};
use crate::git::{Git, Head};
use crate::ops::new_run::refuse_lost_head;

/// Why there is no repository that a run could work in.
pub(super) fn missing_repository(dir: &Path, error: &Error) -> DoctorCheck {
    let problem = |found: String, fix: String| DoctorCheck::problem("repository", found, fix);
    match error {
        Error::Refused(UserError::NoRepository { stderr, .. }) if stderr.contains("dubious ownership") => {
            let dir = std::path::absolute(dir).unwrap_or_else(|_| dir.to_owned());
            let found = format!("`{}` belongs to another user, and git refuses it", dir.display());
            let fix = format!(
                "trust it: git config --global --add safe.directory {0}, or take it over: sudo chown -R \"$USER\" {0}",
                dir.display()
            );
            problem(found, fix)
        }
        Error::Refused(UserError::Bare(_)) => {
            problem(error.to_string(), "work in a clone of it: git clone REPOSITORY".to_owned())
        }
        Error::Refused(UserError::NoRepository { .. }) => {
            let fix = "change to a repository, or create one: git init && git commit --allow-empty -m root";
            problem(error.to_string(), fix.to_owned())
        }
        Error::Refused(_)
        | Error::Locked { .. }
        | Error::Io { .. }
        | Error::Git { .. }
        | Error::GitOutput { .. }
        | Error::Journal { .. }
        | Error::LowDisk { .. }
        | Error::Internal(_) => {
            let fix = "run 'git status' here to see what git reports, then fix that";
            problem(one_line(&error.to_string()), fix.to_owned())
        }
    }
}

/// The checks of all places, in an open repository.
pub(super) fn checks(git: &Git) -> Vec<DoctorCheck> {
    vec![branch_check(git), write_check(git), disk_check(git), home_check(), temporary_check()]
}

/// The commit that a run would start from.
fn branch_check(git: &Git) -> DoctorCheck {
    let problem = |found: String, fix: &str| DoctorCheck::problem("branch", found, fix);
    match git.head() {
        Ok(Head::Branch { name, .. }) => DoctorCheck::ok("branch", name.to_string()),
        Ok(Head::Unborn) => {
            let fix = "create a commit: git add -A && git commit --allow-empty -m root";
            problem("the repository has no commit yet".to_owned(), fix)
        }
        Ok(head @ Head::Detached { .. }) => match refuse_lost_head(git, &head) {
            Err(error) => {
                let fix = "create a branch here: git switch -c NAME, or go back to a run: runner switch RUN";
                problem(error.to_string(), fix)
            }
            Ok(()) => {
                let found = "HEAD is detached: a loop needs the branch of its run";
                let fix = "switch to a branch: runner switch RUN, or git switch BRANCH";
                DoctorCheck::warning("branch", found, fix)
            }
        },
        Err(error) => problem(one_line(&error.to_string()), "run 'git status' to see what is wrong"),
    }
}

fn write_check(git: &Git) -> DoctorCheck {
    let folders = [git.root(), git.common_dir()];
    match refuse_read_only(&folders) {
        Ok(()) => DoctorCheck::ok("repository", git.root().display().to_string()),
        Err(error) => {
            let closed = if let Error::Refused(UserError::ReadOnly(path)) = &error {
                path.as_path()
            } else {
                git.root()
            };
            let place = closed.display();
            let fix =
                format!("allow it: chmod u+w {place}, or take it over: sudo chown -R \"$USER\" {place}");
            DoctorCheck::problem("repository", error.to_string(), fix)
        }
    }
}

/// Enough for a run's commits and logs.
const FREE_BYTES_MIN: u64 = 1 << 30;

fn disk_check(git: &Git) -> DoctorCheck {
    if let Err(error) = refuse_full_disk(&[git.root(), git.common_dir()]) {
        let fix = "free at least 1 GiB for commits and logs: no iteration begins before";
        return DoctorCheck::problem("disk", error.to_string(), fix);
    }
    match rustix::fs::statvfs(git.root()) {
        Ok(stat) => {
            let free = stat.f_bavail.saturating_mul(stat.f_frsize);
            let found = format!("{} MiB free", free >> 20);
            if free >= FREE_BYTES_MIN {
                return DoctorCheck::ok("disk", found);
            }
            DoctorCheck::warning("disk", found, "free at least 1 GiB for commits and logs")
        }
        Err(error) => DoctorCheck::warning("disk", error.to_string(), "check the file system"),
    }
}

/// Agents keep their login and their state in the home folder, and git reads the author there.
fn home_check() -> DoctorCheck {
    let problem = |found: String| {
        DoctorCheck::problem("home", found, "set HOME to your home folder: export HOME=~USER")
    };
    match folder_variable("HOME") {
        None => problem("HOME is not set".to_owned()),
        Some(home) if !home.is_dir() => {
            problem(format!("HOME is `{}`, which is not a folder", home.display()))
        }
        Some(home) if !is_writable(&home) => {
            let found = format!("you may not write to `{}`: agents cannot keep their login", home.display());
            DoctorCheck::warning(
                "home",
                found,
                "set HOME to a folder of yours, or allow it: chmod u+w \"$HOME\"",
            )
        }
        Some(home) => DoctorCheck::ok("home", home.display().to_string()),
    }
}

/// Programs fail in many ways where they cannot write temporary files.
fn temporary_check() -> DoctorCheck {
    let is_named = folder_variable("TMPDIR").is_some();
    let folder = folder_variable("TMPDIR").unwrap_or_else(|| PathBuf::from("/tmp"));
    if folder.is_dir() && is_writable(&folder) {
        return DoctorCheck::ok("temporary", folder.display().to_string());
    }
    let fix = if is_named { "unset TMPDIR, or create the folder" } else { "chmod 1777 /tmp" };
    let found = format!("temporary files cannot be written to `{}`", folder.display());
    DoctorCheck::problem("temporary", found, fix)
}

fn folder_variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| value != OsStr::new("")).map(PathBuf::from)
}

fn is_writable(folder: &Path) -> bool {
    rustix::fs::access(folder, rustix::fs::Access::WRITE_OK).is_ok()
}
