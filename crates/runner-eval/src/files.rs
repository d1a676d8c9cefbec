//! Files: whole or not at all, copied without following links, and as fingerprints.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use runner_core::model::digest::Sha256;

/// A file of a folder, in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FixtureFile {
    /// From the folder.
    pub(crate) path: PathBuf,
    pub(crate) what: PathKind,
}

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PathKind {
    File { bytes: Vec<u8>, is_program: bool },
    Link(PathBuf),
}

/// Everything in a folder, ordered by path; or the file itself, if it is one.
pub(crate) fn hold(root: &Path) -> io::Result<Vec<FixtureFile>> {
    let mut held = Vec::new();
    if fs::symlink_metadata(root)?.is_dir() {
        hold_folder(root, Path::new(""), &mut held)?;
    } else {
        held.push(FixtureFile { path: PathBuf::new(), what: hold_file(root)? });
    }
    Ok(held)
}

fn hold_folder(root: &Path, below: &Path, held: &mut Vec<FixtureFile>) -> io::Result<()> {
    let mut names: Vec<_> = fs::read_dir(root.join(below))?.collect::<Result<_, _>>()?;
    names.sort_by_key(fs::DirEntry::file_name);
    for entry in names {
        let path = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            hold_folder(root, &path, held)?;
        } else {
            held.push(FixtureFile { what: hold_file(&root.join(&path))?, path });
        }
    }
    Ok(())
}

fn hold_file(path: &Path) -> io::Result<PathKind> {
    let found = fs::symlink_metadata(path)?;
    if found.is_symlink() {
        return Ok(PathKind::Link(fs::read_link(path)?));
    }
    if !found.is_file() {
        return Err(io::Error::other("is neither a file nor a folder nor a link"));
    }
    Ok(PathKind::File { bytes: fs::read(path)?, is_program: found.permissions().mode() & 0o111 != 0 })
}

/// One fingerprint of all of it: names, contents, and which are programs.
pub(crate) fn digest(held: &[FixtureFile]) -> Sha256 {
    let mut all = Vec::new();
    for FixtureFile { path, what } in held {
        let (kind, content) = match what {
            PathKind::File { bytes, is_program: false } => ("file", Sha256::of(bytes)),
            PathKind::File { bytes, is_program: true } => ("program", Sha256::of(bytes)),
            PathKind::Link(to) => ("link", Sha256::of(to.as_os_str().as_encoded_bytes())),
        };
        let name = Sha256::of(path.as_os_str().as_encoded_bytes());
        all.extend(format!("{kind} {name} {content}\n").bytes());
    }
    Sha256::of(&all)
}

/// Puts what is held into a folder, in the place of whatever is there. Nothing is written through a link, whoever made
/// it: a link on the way is replaced by a folder.
pub(crate) fn lay_out(held: &[FixtureFile], folder: &Path) -> io::Result<()> {
    for FixtureFile { path, what } in held {
        let mut place = folder.to_owned();
        for part in path.parent().into_iter().flat_map(Path::components) {
            place.push(part);
            if !fs::symlink_metadata(&place).is_ok_and(|found| found.is_dir()) {
                clear(&place)?;
                fs::create_dir(&place)?;
            }
        }
        let path = folder.join(path);
        clear(&path)?;
        match what {
            PathKind::Link(to) => symlink(to, &path)?,
            PathKind::File { bytes, is_program } => {
                fs::write(&path, bytes)?;
                let mode = if *is_program { 0o755 } else { 0o644 };
                fs::set_permissions(&path, fs::Permissions::from_mode(mode))?;
            }
        }
    }
    Ok(())
}

/// Takes away whatever is at a path. Folders that do not let themselves be emptied are opened first.
pub(crate) fn clear(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(found) if found.is_dir() => fs::remove_dir_all(path).or_else(|_| {
            open_folders(path)?;
            fs::remove_dir_all(path)
        }),
        Ok(_) => fs::remove_file(path),
    }
}

fn open_folders(path: &Path) -> io::Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755))?;
    for entry in fs::read_dir(path)?.flatten() {
        if entry.file_type()?.is_dir() {
            open_folders(&entry.path())?;
        }
    }
    Ok(())
}

/// Copies a folder with everything in it but what is neither file nor folder nor link. Links stay links. What cannot be
/// read is passed over: an agent may have locked it.
pub(crate) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    let Ok(entries) = fs::read_dir(from) else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy(&entry.path(), &target)?;
        } else if kind.is_symlink() {
            symlink(fs::read_link(entry.path())?, &target)?;
        } else if kind.is_file() {
            match fs::copy(entry.path(), &target) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                copied => drop(copied?),
            }
        }
    }
    Ok(())
}

/// Writes a file so that every reader sees the old bytes or the new.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = beside(path);
    let mut file = fs::File::create(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&temporary, path)
}

/// Writes a file that must not be there yet; false if it is.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let temporary = beside(path);
    fs::write(&temporary, bytes)?;
    let linked = fs::hard_link(&temporary, path);
    fs::remove_file(&temporary)?;
    match linked {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        linked => linked.map(|()| true),
    }
}

/// Makes a link, in the place of one that is there.
pub(crate) fn link(target: &Path, path: &Path) -> io::Result<()> {
    let temporary = beside(path);
    clear(&temporary)?;
    symlink(target, &temporary)?;
    fs::rename(&temporary, path)
}

/// A name of this process's own in the same folder.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_laid_out_again_and_has_one_fingerprint() {
        let place = tempfile::tempdir().unwrap();
        let (from, to) = (place.path().join("from"), place.path().join("to"));
        fs::create_dir_all(from.join("a")).unwrap();
        fs::write(from.join("a/x"), "1").unwrap();
        fs::set_permissions(from.join("a/x"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("a/x", from.join("l")).unwrap();
        let held = hold(&from).unwrap();
        fs::create_dir(&to).unwrap();
        lay_out(&held, &to).unwrap();
        assert_eq!(hold(&to).unwrap(), held);
        fs::write(to.join("a/x"), "2").unwrap();
        assert_ne!(digest(&hold(&to).unwrap()), digest(&held));
    }

    #[test]
    fn nothing_is_laid_out_through_a_link() {
        let place = tempfile::tempdir().unwrap();
        let (outside, room) = (place.path().join("outside"), place.path().join("room"));
        fs::create_dir(&outside).unwrap();
        fs::create_dir(&room).unwrap();
        symlink(&outside, room.join("tests")).unwrap();
        let file = PathKind::File { bytes: b"check".to_vec(), is_program: false };
        lay_out(&[FixtureFile { path: "tests/t".into(), what: file }], &room).unwrap();
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
        assert_eq!(fs::read(room.join("tests/t")).unwrap(), b"check");
    }

    #[test]
    fn a_new_file_is_written_once() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("plan");
        assert!(write_new(&path, b"one").unwrap());
        assert!(!write_new(&path, b"two").unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"one");
        write(&path, b"three").unwrap();
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }
}
