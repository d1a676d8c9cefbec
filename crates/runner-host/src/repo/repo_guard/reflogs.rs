//! Reflogs of HEAD and of branches: copied before a session. Lines that are missing after it are restored.
//!
//! The copies are in `.git/runner/reflogs/`. An iteration adds a line or two, which go into the journal: a copy is written
//! again, and synced, only if the journal would have to hold too much.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use runner_core::step::RestoreReport;
use serde::{Deserialize, Serialize};

use super::guarded_files::FileContent;
use super::{AsideFolder, name_in};
use crate::error::Error;
use crate::fs::atomic;
use crate::git::Git;

/// How many bytes of all logs the journal may hold.
const TAILS_BYTES_MAX: usize = 16 << 10;
/// A longer log is not copied.
const LOG_BYTES_MAX: u64 = 16 << 20;
/// The log of HEAD in a linked work tree. Its `HEAD` is that of the main work tree.
const LINKED_HEAD: &str = "linked/HEAD";
/// What is copied, below `logs`.
const LOGS: [&str; 2] = ["HEAD", "refs/heads"];

/// The reflogs before a session, together with their copies.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reflogs {
    /// By name of the log: its end, which the copy does not have yet.
    tails: BTreeMap<String, FileContent>,
}

/// A log that lost lines.
struct DamagedLog {
    before: Vec<u8>,
    now: Vec<u8>,
}

impl Reflogs {
    /// Copies what the journal will not hold. It is on the disk when this returns.
    pub(super) fn capture(git: &Git) -> Result<Self, Error> {
        let folder = git.paths().reflogs();
        atomic::create_folders(&git.git_dir(), &folder)?;
        let logs = list_logs(git)?;
        let copies = list_copies(&folder)?;
        for name in copies.keys().filter(|name| !logs.contains_key(*name)) {
            atomic::remove_any(&folder.join(name))?;
        }
        let mut tails = BTreeMap::new();
        let mut bytes_left = TAILS_BYTES_MAX;
        let mut has_new_copy = false;
        for (name, log) in &logs {
            if copies.get(name).is_some_and(|copy| is_same(copy, log)) {
                continue;
            }
            let Some(bytes) = read_log(&log_path(git, name))? else { continue };
            let copy = read_log(&folder.join(name))?.unwrap_or_default();
            match bytes.strip_prefix(copy.as_slice()) {
                Some([]) => {}
                Some(tail) if tail.len() <= bytes_left => {
                    bytes_left -= tail.len();
                    tails.insert(name.clone(), FileContent(tail.to_vec()));
                }
                Some(_) | None => {
                    write_copy(git, name, &bytes, log)?;
                    has_new_copy = true;
                }
            }
        }
        if has_new_copy {
            atomic::sync_file_system(&folder)?;
        }
        Ok(Self { tails })
    }

    /// Whether the journal needs nothing of this.
    pub(super) fn is_empty(&self) -> bool {
        self.tails.is_empty()
    }

    /// Moves whatever keeps git from appending to a log out of its way, before git updates a reference.
    pub(super) fn clear_way(
        &self,
        aside: &AsideFolder<'_>,
        refs: &BTreeMap<String, String>,
        report: &mut RestoreReport,
    ) -> Result<(), Error> {
        let git = aside.git;
        let has_ref_below = |name: &str| refs.keys().any(|other| other.starts_with(&format!("{name}/")));
        for name in self.names(git)? {
            let path = log_path(git, &name);
            let root = cleared_folder(git, &name);
            let parents = path.ancestors().skip(1).take_while(|folder| *folder != root);
            let is_in_way = |path: &&Path| path.symlink_metadata().is_ok_and(|found| !found.is_dir());
            for parent in parents.filter(is_in_way) {
                aside.take(parent, report)?;
            }
            let Some(found) = metadata(&path)? else { continue };
            // A folder may have the logs of branches below the name of one that is gone.
            if found.is_file() {
                make_writable(&path, found.permissions().mode());
            } else if !found.is_dir() || !has_ref_below(&name) {
                aside.take(&path, report)?;
            }
        }
        Ok(())
    }

    /// Adds every line again that is missing from a log, in front of the new ones. Lines that git would reject are left out.
    /// Called when the references are restored, because that adds lines.
    pub(super) fn restore(&self, git: &Git, report: &mut RestoreReport) -> Result<(), Error> {
        let mut damaged = self.damaged(git)?;
        if damaged.is_empty() {
            return Ok(());
        }
        let refs = git.all_refs()?;
        damaged.retain(|name, _| is_of_head(name) || refs.contains_key(name));
        let sound = git.sound_reflog_lines(damaged.values().flat_map(DamagedLog::missing).collect())?;
        for (name, log) in &damaged {
            let merged = log.merged(&sound);
            if merged != log.now {
                let path = log_path(git, name);
                atomic::replace_durably(&cleared_folder(git, name), &path, &merged)?;
                report.files.push(name_in(git, &path));
            }
        }
        Ok(())
    }

    /// Whether no log lost a line. What cannot be read counts as lost.
    pub(super) fn are_complete(&self, git: &Git) -> bool {
        self.damaged(git).is_ok_and(|damaged| damaged.is_empty())
    }

    fn damaged(&self, git: &Git) -> Result<BTreeMap<String, DamagedLog>, Error> {
        let mut damaged = BTreeMap::new();
        for name in self.names(git)? {
            let before = self.before(git, &name)?;
            let now = read_log(&log_path(git, &name))?.unwrap_or_default();
            let log = DamagedLog { before, now };
            if !log.missing().is_empty() {
                damaged.insert(name, log);
            }
        }
        Ok(damaged)
    }

    /// The logs that existed before the session.
    fn names(&self, git: &Git) -> Result<BTreeSet<String>, Error> {
        let mut names: BTreeSet<String> = list_copies(&git.paths().reflogs())?.into_keys().collect();
        names.extend(self.tails.keys().cloned());
        Ok(names)
    }

    /// A log before the session. The copy may have the journal's lines already, if a review began since.
    fn before(&self, git: &Git, name: &str) -> Result<Vec<u8>, Error> {
        let copy = read_log(&git.paths().reflogs().join(name))?.unwrap_or_default();
        let tail = self.tails.get(name).map_or(&[][..], |tail| tail.0.as_slice());
        let known: BTreeSet<&[u8]> = lines(&copy).collect();
        let rest: Vec<u8> = lines(tail).filter(|line| !known.contains(line)).flatten().copied().collect();
        Ok([copy, rest].concat())
    }
}

impl DamagedLog {
    fn missing(&self) -> Vec<&[u8]> {
        if self.now.starts_with(&self.before) {
            return Vec::new();
        }
        let now: BTreeSet<&[u8]> = lines(&self.now).collect();
        lines(&self.before).filter(|line| !now.contains(line)).collect()
    }

    /// The old lines that are sound or still there, and the new ones after them.
    fn merged(&self, sound: &BTreeSet<&[u8]>) -> Vec<u8> {
        let before: BTreeSet<&[u8]> = lines(&self.before).collect();
        let now: BTreeSet<&[u8]> = lines(&self.now).collect();
        let old = lines(&self.before).filter(|line| now.contains(line) || sound.contains(line));
        let new = lines(&self.now).filter(|line| !before.contains(line));
        old.chain(new).flatten().copied().collect()
    }
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n')
}

fn is_of_head(name: &str) -> bool {
    name == "HEAD" || name == LINKED_HEAD
}

/// The git directory that has a log.
fn root_of(git: &Git, name: &str) -> PathBuf {
    if name == LINKED_HEAD { git.git_dir() } else { git.common_dir().to_owned() }
}

/// The folder of logs. A link in its place is the user's: one that the session made is set aside already.
fn logs_folder(git: &Git, name: &str) -> PathBuf {
    let folder = root_of(git, name).join("logs");
    let resolved = if folder.is_symlink() { folder.canonicalize().ok() } else { None };
    resolved.filter(|resolved| resolved.is_dir()).unwrap_or(folder)
}

/// The folder below which whatever is in the way of a log is removed.
fn cleared_folder(git: &Git, name: &str) -> PathBuf {
    let (root, logs) = (root_of(git, name), logs_folder(git, name));
    if logs == root.join("logs") { root } else { logs }
}

fn log_path(git: &Git, name: &str) -> PathBuf {
    let file = if name == LINKED_HEAD { "HEAD" } else { name };
    logs_folder(git, name).join(file)
}

/// The logs that can be copied, by name.
fn list_logs(git: &Git) -> Result<BTreeMap<String, fs::Metadata>, Error> {
    let mut logs = BTreeMap::new();
    for name in LOGS {
        collect_files(&git.common_dir().join("logs"), name, &mut logs)?;
    }
    if git.git_dir() != git.common_dir()
        && let Some(head) = metadata(&log_path(git, LINKED_HEAD))?.filter(fs::Metadata::is_file)
    {
        logs.insert(LINKED_HEAD.to_owned(), head);
    }
    let is_unfinished = |name: &str| {
        let file = name.rsplit('/').next().unwrap_or(name);
        file.ends_with(".lock") || atomic::is_temporary_name(file.as_ref())
    };
    logs.retain(|name, log| log.len() <= LOG_BYTES_MAX && !is_unfinished(name));
    Ok(logs)
}

fn list_copies(folder: &Path) -> Result<BTreeMap<String, fs::Metadata>, Error> {
    let mut copies = BTreeMap::new();
    for name in LOGS.into_iter().chain([LINKED_HEAD]) {
        collect_files(folder, name, &mut copies)?;
    }
    Ok(copies)
}

/// Collects the regular files at and below a path. A name that is not text is left out.
fn collect_files(root: &Path, name: &str, files: &mut BTreeMap<String, fs::Metadata>) -> Result<(), Error> {
    let path = root.join(name);
    let Some(found) = metadata(&path)? else { return Ok(()) };
    if found.is_file() {
        files.insert(name.to_owned(), found);
    } else if found.is_dir() {
        for entry in fs::read_dir(&path).map_err(Error::io("read", &path))? {
            let entry = entry.map_err(Error::io("read", &path))?;
            if let Some(entry_name) = entry.file_name().to_str() {
                collect_files(root, &format!("{name}/{entry_name}"), files)?;
            }
        }
    }
    Ok(())
}

fn metadata(path: &Path) -> Result<Option<fs::Metadata>, Error> {
    match path.symlink_metadata() {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(Error::io("read", path)(error)),
    }
}

/// The content of a log; none if it does not exist, is no file, or belongs to another user.
fn read_log(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match atomic::read(path, LOG_BYTES_MAX) {
        Err(Error::Refused(_)) => Ok(None),
        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => Ok(None),
        result => result,
    }
}

/// Gives the owner access to a log. If that fails, git reports it.
fn make_writable(path: &Path, mode: u32) {
    if mode & 0o600 != 0o600 {
        let _ = fs::set_permissions(path, fs::Permissions::from_mode(mode | 0o600));
    }
}

/// Whether a copy is as long and as new as its log.
fn is_same(copy: &fs::Metadata, log: &fs::Metadata) -> bool {
    copy.len() == log.len() && copy.modified().ok() == log.modified().ok()
}

/// Replaces a copy by one rename. It gets the time of its log, so that an unchanged one is not read again.
fn write_copy(git: &Git, name: &str, bytes: &[u8], log: &fs::Metadata) -> Result<(), Error> {
    let copy = git.paths().reflogs().join(name);
    // Beside the journal, where the next runner removes it if this one dies.
    let temporary = git.paths().private().join(".reflog.tmp");
    atomic::overwrite(&temporary, bytes)?;
    copy.parent().map_or(Ok(()), |folder| atomic::create_folders(&git.git_dir(), folder))?;
    if copy.is_dir() {
        atomic::remove_any(&copy)?;
    }
    let times = log.modified().map(|modified| fs::FileTimes::new().set_modified(modified));
    let written = times.and_then(|times| fs::File::options().write(true).open(&temporary)?.set_times(times));
    written.and_then(|()| fs::rename(&temporary, &copy)).map_err(Error::io("write", copy))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_copy_is_written_only_if_the_journal_cannot_hold_the_rest() {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::create(folder.path()).unwrap();
        let log = git.common_dir().join("logs/refs/heads/topic/part");
        let copy = git.paths().reflogs().join("refs/heads/topic/part");
        fs::create_dir_all(log.parent().unwrap()).unwrap();
        let (short, long) = (vec![b'x'; 100], vec![b'x'; 3 * TAILS_BYTES_MAX]);
        fs::write(&log, &short).unwrap();
        let tail = |reflogs: &Reflogs| reflogs.tails.get("refs/heads/topic/part").map(|tail| tail.0.clone());
        assert_eq!(tail(&Reflogs::capture(&git).unwrap()), Some(short));
        assert!(!copy.exists(), "the journal holds it");

        fs::write(&log, &long).unwrap();
        assert!(Reflogs::capture(&git).unwrap().is_empty());
        assert_eq!(fs::read(&copy).unwrap(), long);
        let inode = fs::metadata(&copy).unwrap().ino();
        fs::write(&log, [long.as_slice(), b"new\n"].concat()).unwrap();
        let reflogs = Reflogs::capture(&git).unwrap();
        assert_eq!(tail(&reflogs), Some(b"new\n".to_vec()));
        assert_eq!(fs::metadata(&copy).unwrap().ino(), inode, "an iteration's line costs no copy");
        assert_eq!(reflogs.before(&git, "refs/heads/topic/part").unwrap(), fs::read(&log).unwrap());

        // A log that was rewritten.
        fs::write(&log, "other\n").unwrap();
        Reflogs::capture(&git).unwrap();
        assert_eq!(fs::read(&copy).unwrap(), b"other\n");
        // A branch `topic` in the place of `topic/part`.
        fs::remove_dir_all(log.parent().unwrap()).unwrap();
        fs::write(log.parent().unwrap(), &long).unwrap();
        Reflogs::capture(&git).unwrap();
        assert_eq!(fs::read(copy.parent().unwrap()).unwrap(), long);
        fs::remove_file(log.parent().unwrap()).unwrap();
        Reflogs::capture(&git).unwrap();
        assert!(!copy.parent().unwrap().exists());
        assert!(!git.paths().private().join(".reflog.tmp").exists());
    }
}
