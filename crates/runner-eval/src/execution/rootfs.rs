//! A root file system of a case's own, such as the exported file system of a container image. Programs of the trial see its
//! files instead of those of this machine.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Where programs are looked up in a root file system.
const PROGRAM_FOLDERS: [&str; 6] = ["usr/local/sbin", "usr/local/bin", "usr/sbin", "usr/bin", "sbin", "bin"];
/// The search path of programs in it.
pub(crate) const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// The home folder of programs in it. It exists in no image, so that it can always be mounted.
pub(crate) const HOME: &str = "/trial-home";
/// Folders that the sandbox provides itself.
const PROVIDED: [&str; 3] = ["dev", "proc", "tmp"];

/// What `runner` and the sandbox need inside of a root file system.
const REQUIRED: [&str; 4] = ["sh", "git", "unshare", "prlimit"];

/// The absolute path that a program has inside of a root file system.
pub(crate) fn find_program(rootfs: &Path, name: &str) -> Option<PathBuf> {
    PROGRAM_FOLDERS.iter().find_map(|folder| {
        let inside = Path::new(folder).join(name);
        // A link may be absolute, which leads somewhere else outside; that it exists is enough.
        fs::symlink_metadata(rootfs.join(&inside)).is_ok().then(|| Path::new("/").join(inside))
    })
}

/// Whether a root file system has something at an absolute path.
pub(crate) fn contains(rootfs: &Path, path: &Path) -> bool {
    path.strip_prefix("/").is_ok_and(|inside| fs::symlink_metadata(rootfs.join(inside)).is_ok())
}

/// The first program that a trial needs and the root file system lacks.
pub(crate) fn missing_program(rootfs: &Path) -> Option<&'static str> {
    REQUIRED.into_iter().find(|name| find_program(rootfs, name).is_none())
}

/// The arguments of bubblewrap that mount the root file system read-only. `mounted` are the paths that will be mounted
/// into it: their parents are created in memory, because nothing can be created in a read-only folder.
pub(crate) fn mounts(rootfs: &Path, mounted: &[PathBuf]) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec!["--tmpfs".into(), "/".into()];
    add_mounts(rootfs, Path::new("/"), mounted, &mut arguments);
    arguments
}

fn add_mounts(source: &Path, target: &Path, mounted: &[PathBuf], arguments: &mut Vec<OsString>) {
    let mut entries: Vec<_> = fs::read_dir(source).into_iter().flatten().flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let inside = target.join(entry.file_name());
        let is_provided = PROVIDED.iter().any(|name| inside == Path::new("/").join(name));
        let Ok(kind) = entry.file_type() else { continue };
        let is_parent = mounted.iter().any(|path| path.starts_with(&inside) && *path != inside);
        if is_provided {
            continue;
        }
        if kind.is_symlink() {
            if let Ok(link) = fs::read_link(entry.path()) {
                arguments.extend(["--symlink".into(), link.into(), inside.into()]);
            }
        } else if kind.is_dir() && is_parent {
            arguments.extend(["--dir".into(), inside.clone().into()]);
            add_mounts(&entry.path(), &inside, mounted, arguments);
        } else if kind.is_dir() || kind.is_file() {
            arguments.extend(["--ro-bind".into(), entry.path().into(), inside.into()]);
        }
    }
}

/// The path inside of the root file system for a path of this machine: what is in the user's home is in [`HOME`].
pub(crate) fn path_inside(path: &Path, home: Option<&Path>) -> PathBuf {
    match home.and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) => Path::new(HOME).join(rest),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parents_of_mounted_paths_are_created_in_memory() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["usr/bin", "home/someone", "dev"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        std::os::unix::fs::symlink("usr/bin", folder.path().join("bin")).unwrap();
        let words = mounts(folder.path(), &[PathBuf::from("/home/me/work")]);
        let text: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let root = folder.path().display();
        let expected = format!(
            "--tmpfs / --symlink usr/bin /bin --dir /home --ro-bind {root}/home/someone /home/someone --ro-bind {root}/usr /usr"
        );
        assert_eq!(text.join(" "), expected);
    }

    #[test]
    fn programs_are_found_inside() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("usr/bin")).unwrap();
        fs::write(folder.path().join("usr/bin/git"), "").unwrap();
        assert_eq!(find_program(folder.path(), "git"), Some(PathBuf::from("/usr/bin/git")));
        assert_eq!(missing_program(folder.path()), Some("sh"));
        assert_eq!(
            path_inside(Path::new("/root/.codex"), Some(Path::new("/root"))),
            Path::new("/trial-home/.codex")
        );
    }
}
