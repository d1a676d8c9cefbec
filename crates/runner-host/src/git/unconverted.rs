//! Git calls that convert no file: no filter, no encoding, no line endings, whatever the attributes in the work tree ask for.
//!
//! No option turns attributes off, but `info/attributes` overrules every `.gitattributes`. Such a call therefore runs with a
//! git directory of its own, which has that file, and with the objects, the index and the work tree of the repository.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fs, thread};

use super::command::GitCommand;
use super::{Git, lossy};
use crate::error::Error;
use crate::fs::atomic;

/// A bare `-` would be an invalid value for an encoding.
const ATTRIBUTES: &[u8] = b"* -text -ident !eol !filter !working-tree-encoding\n";

/// Compares all files with the index, and writes it even if nothing changed.
const REWRITE: [&str; 4] = ["update-index", "-q", "--force-write-index", "--refresh"];

const FILE_BYTES_MAX: u64 = 16 << 20;

/// Held while the files of the git directory are written.
static PREPARING: Mutex<()> = Mutex::new(());

impl Git {
    /// A git command that converts no file. It knows index, work tree and objects, but no commits and references.
    pub(super) fn call_unconverted<S: AsRef<OsStr>>(&self, args: &[S]) -> Result<GitCommand<'_>, Error> {
        self.has_unconverted.store(true, Ordering::Relaxed);
        let folder = self.paths().unconverted();
        // Such calls also run at the same time, for the index and for the scan of an iteration's end.
        let _preparing = PREPARING.lock().unwrap_or_else(PoisonError::into_inner);
        atomic::create_folders(self.paths().git_dir(), &folder.join("refs"))?;
        atomic::create_folders(self.paths().git_dir(), &folder.join("info"))?;
        let exclude = atomic::read(&self.common_dir().join("info/exclude"), FILE_BYTES_MAX).ok().flatten();
        let files = [
            ("HEAD", b"ref: refs/heads/none\n".to_vec()),
            ("config", self.unconverted_config().into_bytes()),
            ("info/attributes", ATTRIBUTES.to_vec()),
            ("info/exclude", exclude.unwrap_or_default()),
        ];
        for (name, bytes) in files {
            let path = folder.join(name);
            // Another call may be reading it.
            if atomic::read(&path, FILE_BYTES_MAX).ok().flatten().as_ref() == Some(&bytes) {
                continue;
            }
            atomic::remove_any(&path)?;
            fs::write(&path, bytes).map_err(Error::io("write", &path))?;
        }
        let call = self.call(args).variable("GIT_DIR", folder).variable("GIT_WORK_TREE", self.root());
        Ok(call.variable("GIT_OBJECT_DIRECTORY", self.common_dir().join("objects")))
    }

    /// Makes sure that plain git need not read files that it cannot convert. Git reads a file again if it changed in the second
    /// in which the index was written, so the index is written once more in a later one.
    pub(crate) fn settle_index(&self, index: &Path) -> Result<(), Error> {
        if !self.has_unconverted.swap(false, Ordering::Relaxed) {
            return Ok(());
        }
        let since_second = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().subsec_nanos();
        thread::sleep(Duration::from_secs(1) - Duration::from_nanos(since_second.into()));
        let settled = self.call_unconverted(&REWRITE)?.index(index).output().map(drop);
        self.has_unconverted.store(false, Ordering::Relaxed);
        settled
    }

    /// Git reads the object format from this file itself, and not from one that it includes.
    fn unconverted_config(&self) -> String {
        let format = if self.id_digits == 64 { "[extensions]\n\tobjectFormat = sha256\n" } else { "" };
        let original = lossy(self.common_dir().join("config").as_os_str().as_encoded_bytes());
        let original = original.replace('\\', "\\\\").replace('"', "\\\"");
        format!(
            "[core]\n\trepositoryFormatVersion = 1\n\tbare = false\n{format}[include]\n\tpath = \"{original}\"\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn calls_at_the_same_time_do_not_disturb_each_other() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Command::new("git").args(["init", "-q"]).arg(folder.path()).status().unwrap().success());
        let git = Git::open(folder.path()).unwrap();
        atomic::create_folders(git.paths().git_dir(), &git.paths().private()).unwrap();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        git.call_unconverted(&["ls-files"]).unwrap().run().unwrap();
                    }
                });
            }
        });
    }
}
