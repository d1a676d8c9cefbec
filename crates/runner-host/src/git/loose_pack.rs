//! Packs loose objects, so that a long run does not leave tens of thousands of files.
//!
//! Nothing is ever pruned: every loose object goes into the pack, reachable or not, and a loose file is removed only when
//! the verified pack that holds the same object is on the disk. A kill at any point leaves all objects readable.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::Git;
use crate::error::Error;
use crate::fs::atomic;

/// About how many loose objects are left alone.
const LOOSE_MAX: usize = 2_048;
/// The folders whose objects are counted. One alone may have half or twice as many as the others.
const SAMPLE: [&str; 8] = ["07", "17", "37", "57", "77", "97", "b7", "d7"];
/// The most objects of one pack, and about the most bytes of their files, which bounds the time and the memory that it takes.
const PACKED_MAX: usize = 10_000;
const PACKED_BYTES_MAX: u64 = 64 << 20;
/// How often a git process is checked for its end.
const POLL: Duration = Duration::from_millis(10);

/// A maintenance that is due: commands that are complete, so that another thread can run them.
#[derive(Debug)]
pub(crate) struct LoosePack {
    objects: PathBuf,
    /// A folder of this work tree's own, outside of what a session or a user looks at.
    scratch: PathBuf,
    id_digits: usize,
    pack_objects: Command,
    index_pack: Command,
    prune_packed: Command,
}

impl Git {
    /// The maintenance that is due, if there are many loose objects.
    pub(crate) fn due_loose_pack(&self) -> Option<LoosePack> {
        let objects = self.common_dir().join("objects");
        // Ids are evenly distributed, so a few of the 256 folders show about how many objects there are.
        let count = |folder: &&str| fs::read_dir(objects.join(folder)).map_or(0, Iterator::count);
        let sample: usize = SAMPLE.iter().map(count).sum();
        if sample <= LOOSE_MAX * SAMPLE.len() / 256 {
            return None;
        }
        let scratch = self.git_dir().join("runner-pack");
        let index = scratch.join("new.idx");
        let index_args: [&OsStr; 4] =
            ["index-pack".as_ref(), "-o".as_ref(), index.as_ref(), "new.pack".as_ref()];
        let limits = ["-c", "pack.threads=1", "-c", "pack.windowMemory=64m", "-c", "pack.deltaCacheSize=64m"];
        let pack_args = ["pack-objects", "--stdout", "--quiet", "--non-empty", "--incremental"];
        let mut index_pack = self.call(&index_args).command;
        index_pack.env("GIT_DIR", self.git_dir()).current_dir(&scratch);
        Some(LoosePack {
            pack_objects: self.call(&[limits.as_slice(), &pack_args].concat()).command,
            index_pack,
            prune_packed: self.call(&["prune-packed", "--quiet"]).command,
            id_digits: self.id_digits,
            objects,
            scratch,
        })
    }
}

impl LoosePack {
    /// Packs the loose objects and removes their files. Stops early if `cancelled` becomes true.
    pub(crate) fn run(mut self, cancelled: &AtomicBool) -> Result<(), Error> {
        atomic::ensure_folder(&self.scratch)?;
        self.finish_interrupted()?;
        let list = self.scratch.join("list");
        fs::write(&list, self.loose_ids()).map_err(Error::io("write", &list))?;
        let pack = self.scratch.join("new.pack");
        let input = File::open(&list).map_err(Error::io("open", &list))?;
        let output = File::create(&pack).map_err(Error::io("write", &pack))?;
        self.pack_objects.stdin(input).stdout(output);
        run(&mut self.pack_objects, cancelled)?;
        if fs::metadata(&pack).is_ok_and(|metadata| metadata.len() > 0) {
            let name = self.scratch.join("name");
            self.index_pack
                .stdin(Stdio::null())
                .stdout(File::create(&name).map_err(Error::io("write", &name))?);
            run(&mut self.index_pack, cancelled)?;
            self.publish(&pack, &fs::read_to_string(&name).unwrap_or_default())?;
        }
        self.prune_packed.stdin(Stdio::null()).stdout(Stdio::null());
        run(&mut self.prune_packed, cancelled)?;
        fs::remove_dir_all(&self.scratch).map_err(Error::io("remove", &self.scratch))
    }

    /// The ids of the loose objects, one per line.
    fn loose_ids(&self) -> String {
        let mut ids = String::new();
        let mut count = 0;
        let mut bytes = 0;
        for folder in 0..=255_u8 {
            let prefix = format!("{folder:02x}");
            for entry in fs::read_dir(self.objects.join(&prefix)).into_iter().flatten().flatten() {
                let name = entry.file_name();
                let Some(name) = name.to_str().filter(|name| self.is_object_name(name)) else { continue };
                if count == PACKED_MAX || bytes >= PACKED_BYTES_MAX {
                    return ids;
                }
                ids.extend([&prefix, name, "\n"]);
                count += 1;
                bytes += entry.metadata().map_or(0, |metadata| metadata.len());
            }
        }
        ids
    }

    fn is_object_name(&self, name: &str) -> bool {
        name.len() + 2 == self.id_digits && name.bytes().all(|byte| byte.is_ascii_hexdigit())
    }

    /// Moves the pack to git's own. Its index comes last, because git finds a pack by that.
    fn publish(&self, pack: &Path, hash: &str) -> Result<(), Error> {
        let hash = hash.trim();
        if hash.len() != self.id_digits {
            return Err(Error::GitOutput { command: "index-pack".to_owned() });
        }
        let index = self.scratch.join(format!("pack-{hash}.idx"));
        let new_index = self.scratch.join("new.idx");
        fs::rename(&new_index, &index).map_err(Error::io("move", &new_index))?;
        for file in [pack, &index] {
            let read_only = fs::Permissions::from_mode(0o444);
            let opened = File::open(file).and_then(|opened| opened.sync_all().map(|()| opened));
            opened.and_then(|opened| opened.set_permissions(read_only)).map_err(Error::io("write", file))?;
        }
        let folder = self.objects.join("pack");
        let target = folder.join(format!("pack-{hash}.pack"));
        fs::rename(pack, &target).map_err(Error::io("move", pack))?;
        self.move_index(&index)?;
        // The loose files may be removed only when the names of the pack are on the disk.
        File::open(&folder).and_then(|folder| folder.sync_all()).map_err(Error::io("write", &folder))
    }

    fn move_index(&self, index: &Path) -> Result<(), Error> {
        let target = self.objects.join("pack").join(index.file_name().unwrap_or_default());
        fs::rename(index, target).map_err(Error::io("move", index))
    }

    /// Moves the index of a pack that a killed maintenance had moved already, and removes what else it left.
    fn finish_interrupted(&self) -> Result<(), Error> {
        for entry in fs::read_dir(&self.scratch).map_err(Error::io("look at", &self.scratch))?.flatten() {
            let path = entry.path();
            let pack = self.objects.join("pack").join(Path::new(&entry.file_name()).with_extension("pack"));
            if path.extension() == Some(OsStr::new("idx")) && pack.exists() {
                self.move_index(&path)?;
            } else {
                atomic::remove_any(&path)?;
            }
        }
        Ok(())
    }
}

/// Runs git to its end, or kills it when the maintenance is cancelled.
fn run(command: &mut Command, cancelled: &AtomicBool) -> Result<(), Error> {
    let name = || command_name(command);
    let failed = Error::Git { command: name(), stderr: String::new() };
    let mut child = command.stderr(Stdio::null()).spawn().map_err(Error::io("run", "git"))?;
    let status = wait(&mut child, cancelled).map_err(Error::io("run", "git"))?;
    if status { Ok(()) } else { Err(failed) }
}

fn command_name(command: &Command) -> String {
    command.get_args().map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

/// Whether the process succeeded.
fn wait(child: &mut Child, cancelled: &AtomicBool) -> std::io::Result<bool> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status.success());
        }
        if cancelled.load(Ordering::Relaxed) {
            child.kill()?;
            return child.wait().map(|_| false);
        }
        std::thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(folder: &Path, script: &str) -> String {
        let out = Command::new("sh").arg("-ec").arg(script).current_dir(folder).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    }

    /// A repository with more loose objects than are left alone. Most of them are unreachable.
    fn repository() -> (tempfile::TempDir, Git) {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::create(folder.path()).unwrap();
        let contents: Vec<String> = (0..4_000).map(|number| format!("content {number}")).collect();
        let contents: Vec<&[u8]> = contents.iter().map(String::as_bytes).collect();
        git.store_blobs(&contents).unwrap();
        git.commit_everything("root").unwrap();
        (folder, git)
    }

    const ALL: &str = "git cat-file --batch-all-objects --batch-check | sort";
    const LOOSE: &str = "git count-objects";
    const FSCK: &str = "git fsck --strict --no-dangling";

    #[test]
    fn loose_objects_are_packed_without_losing_one() {
        let (folder, git) = repository();
        let before = sh(folder.path(), ALL);
        git.due_loose_pack().unwrap().run(&AtomicBool::new(false)).unwrap();
        assert_eq!(sh(folder.path(), LOOSE), "0 objects, 0 kilobytes");
        assert_eq!(sh(folder.path(), ALL), before, "every object is still there");
        assert_eq!(sh(folder.path(), FSCK), "");
        assert!(git.due_loose_pack().is_none());
        assert!(!git.git_dir().join("runner-pack").exists());
    }

    #[test]
    fn a_maintenance_that_was_killed_is_finished_or_begun_again() {
        let (folder, git) = repository();
        let before = sh(folder.path(), ALL);
        let cancelled = git.due_loose_pack().unwrap().run(&AtomicBool::new(true));
        assert!(cancelled.is_err());
        assert_eq!(sh(folder.path(), ALL), before);
        // Between the two renames: git does not see a pack without its index.
        let scratch = git.git_dir().join("runner-pack");
        git.due_loose_pack().unwrap().run(&AtomicBool::new(false)).unwrap();
        fs::create_dir(&scratch).unwrap();
        sh(folder.path(), "mv .git/objects/pack/*.idx .git/runner-pack/; echo x > .git/runner-pack/new.pack");
        let pack = LoosePack { scratch: scratch.clone(), ..unchecked(&git) };
        pack.finish_interrupted().unwrap();
        assert_eq!(sh(folder.path(), ALL), before);
        assert_eq!(fs::read_dir(&scratch).unwrap().count(), 0);
    }

    fn unchecked(git: &Git) -> LoosePack {
        let command = || Command::new("false");
        LoosePack {
            objects: git.common_dir().join("objects"),
            scratch: PathBuf::new(),
            id_digits: git.id_digits,
            pack_objects: command(),
            index_pack: command(),
            prune_packed: command(),
        }
    }

    #[test]
    fn an_object_with_the_wrong_content_stays_where_it_is() {
        let (folder, git) = repository();
        // The file is named after another content.
        let poison = "id=$(echo wanted | git hash-object --stdin); other=$(echo evil | git hash-object -w --stdin); \
            mkdir -p .git/objects/${id%??????????????????????????????????????}; \
            cp .git/objects/$(echo $other | sed 's,^..,&/,') .git/objects/$(echo $id | sed 's,^..,&/,'); echo $id";
        let id = sh(folder.path(), poison);
        let _ = git.due_loose_pack().unwrap().run(&AtomicBool::new(false));
        let file = git.common_dir().join("objects").join(id.get(..2).unwrap()).join(id.get(2..).unwrap());
        assert!(file.exists(), "a pack must not hide what fsck finds");
    }
}
