//! Storing blobs as loose objects: compressed, in a file named after the hash, as git does.
//!
//! `git hash-object` reads a document of some megabytes three times and takes five times as long.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::SystemTime;

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use runner_core::model::digest::Sha256;
use sha1::{Digest, Sha1};

use super::{Git, lossy};
use crate::error::Error;
use crate::fs::lookup;

/// About the size of git's default level in the time of its fastest one.
const LEVEL: u32 = 2;

impl Git {
    /// Stores contents as blobs, byte for byte, and returns their ids in the same order.
    pub(crate) fn store_blobs(&self, contents: &[&[u8]]) -> Result<Vec<String>, Error> {
        contents.iter().map(|bytes| self.store_blob(bytes)).collect()
    }

    pub(crate) fn store_blob(&self, bytes: &[u8]) -> Result<String, Error> {
        if self.settings().has_unknown_extension() {
            let call = self.call(&["hash-object", "-w", "--no-filters", "--stdin"]);
            return call.input(bytes).run().map(|id| lossy(&id));
        }
        let head = format!("blob {}\0", bytes.len());
        let id = self.id_of([head.as_bytes(), bytes]);
        let (folder, file) = id.split_at(2);
        let objects = self.common_dir().join("objects");
        let folder = objects.join(folder);
        let path = folder.join(file);
        // A sound object stays: the copy that would replace it is not on the disk yet, and commits may need the object.
        if holds_object(&path, [head.as_bytes(), bytes]) {
            return Ok(id);
        }
        let written = write_object(&objects, &folder, &path, [head.as_bytes(), bytes]);
        written.map_err(Error::io("write", &path))?;
        Ok(id)
    }

    /// Whether bytes are those of the object with this id. Git does not check that when it reads a loose object.
    pub(crate) fn is_object(&self, kind: &str, id: &str, bytes: &[u8]) -> bool {
        self.settings().has_unknown_extension() || self.object_id(kind, bytes) == id
    }

    /// The id that git gives to an object of this kind with these bytes.
    pub(crate) fn object_id(&self, kind: &str, bytes: &[u8]) -> String {
        self.id_of([format!("{kind} {}\0", bytes.len()).as_bytes(), bytes])
    }

    fn id_of(&self, parts: [&[u8]; 2]) -> String {
        if self.id_digits == 64 {
            return Sha256::of(&parts.concat()).to_string();
        }
        let hash = parts.iter().fold(Sha1::new(), Digest::chain_update).finalize();
        hash.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Whether a regular file holds this object. An agent may have planted another one, however large, under the same name.
fn holds_object(path: &Path, parts: [&[u8]; 2]) -> bool {
    let is_file = path.symlink_metadata().is_ok_and(|found| found.is_file());
    let Some(file) = is_file.then(|| fs::File::open(path).ok()).flatten() else { return false };
    let expected = parts.concat();
    let mut content = Vec::new();
    let read =
        ZlibDecoder::new(io::BufReader::new(file)).take(expected.len() as u64 + 1).read_to_end(&mut content);
    read.is_ok() && content == expected
}

/// Writes an object and replaces whatever is at its path: an agent may have computed the name beforehand. The file
/// gets the read permissions of the object folder.
fn write_object(objects: &Path, folder: &Path, path: &Path, parts: [&[u8]; 2]) -> io::Result<()> {
    let mode = fs::metadata(objects)?.permissions().mode();
    if !folder.is_dir() {
        fs::create_dir(folder).or_else(|error| if folder.is_dir() { Ok(()) } else { Err(error) })?;
        fs::set_permissions(folder, fs::Permissions::from_mode(mode))?;
    }
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::new(LEVEL));
    parts.iter().try_for_each(|part| packed.write_all(part))?;
    let packed = packed.finish()?;
    // Git removes stale files with this prefix. The process id keeps two runners in one repository apart.
    let temporary = folder.join(format!("tmp_obj_{}", std::process::id()));
    let written = write_new(&temporary, &packed, mode & 0o444).and_then(|()| fs::rename(&temporary, path));
    written.inspect_err(|_| drop(fs::remove_file(&temporary)))
}

fn write_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    // A file from an earlier process with the same id is stale.
    fs::remove_file(path)
        .or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })?;
    let mut file = fs::File::options().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.set_permissions(fs::Permissions::from_mode(mode))
}

impl Git {
    /// Removes loose objects that a power cut damaged: their names are on the disk, their content is not. Git takes an
    /// object whose file exists for stored, and would never write it again. Looks at objects since `since` only.
    pub(crate) fn remove_damaged_objects(&self, since: SystemTime) -> Result<(), Error> {
        let objects = self.common_dir().join("objects");
        for folder in lookup::entries(&objects)? {
            let name = folder.file_name().into_string().unwrap_or_default();
            if name.len() != 2 || !name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                continue;
            }
            for entry in lookup::entries(&folder.path())? {
                let Ok(rest) = entry.file_name().into_string() else { continue };
                let is_recent = |metadata: fs::Metadata| metadata.modified().is_ok_and(|time| time >= since);
                let is_object = rest.len() + 2 == self.id_digits;
                if is_object
                    && entry.metadata().is_ok_and(is_recent)
                    && self.is_damaged(&entry.path(), &format!("{name}{rest}"))
                {
                    fs::remove_file(entry.path()).map_err(Error::io("remove", entry.path()))?;
                }
            }
        }
        Ok(())
    }

    fn is_damaged(&self, path: &Path, id: &str) -> bool {
        let Ok(file) = fs::File::open(path) else { return false };
        let mut content = Vec::new();
        let read = ZlibDecoder::new(io::BufReader::new(file)).read_to_end(&mut content);
        read.is_err() || self.id_of([&content, b""]) != id
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn sh(folder: &Path, script: &str) -> String {
        let out = Command::new("sh").arg("-ec").arg(script).current_dir(folder).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    }

    fn mode_of(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    /// Empty, text, incompressible, and large.
    fn contents() -> Vec<Vec<u8>> {
        let noise = (0..1_000_u32).flat_map(|n| Sha256::of(&n.to_le_bytes()).to_string().into_bytes());
        vec![Vec::new(), b"hello\n".to_vec(), noise.collect(), b"a long document\r\n".repeat(100_000)]
    }

    #[test]
    fn a_blob_equals_the_one_that_git_stores() {
        for more in ["--object-format=sha1", "--object-format=sha256", "--shared=group"] {
            let folder = tempfile::tempdir().unwrap();
            sh(folder.path(), &format!("umask 077; git init -q {more} -b main"));
            let git = Git::open(folder.path()).unwrap();
            let contents = contents();
            let names = git.store_blobs(&contents.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap();
            for (name, bytes) in names.iter().zip(&contents) {
                fs::write(folder.path().join("x"), bytes).unwrap();
                assert_eq!(*name, sh(folder.path(), "git hash-object --no-filters x"), "{more}");
                sh(folder.path(), &format!("git cat-file blob {name} | cmp - x"));
            }
            assert_eq!(sh(folder.path(), "git fsck --strict --no-dangling"), "", "{more}");
            assert_eq!(sh(folder.path(), "find .git/objects -name 'tmp*'"), "", "{more}");
            assert_eq!(
                git.store_blobs(&[b"hello\n"]).unwrap().first(),
                names.get(1),
                "a blob that exists already"
            );
        }
    }

    #[test]
    fn a_new_object_has_the_permissions_of_the_repository() {
        for (more, of_folder, of_file) in
            [("", 0o700, 0o400), ("--shared=group", 0o2770, 0o440), ("--shared=all", 0o2775, 0o444)]
        {
            let folder = tempfile::tempdir().unwrap();
            sh(folder.path(), &format!("umask 077; git init -q {more} -b main"));
            let ours = Git::open(folder.path()).unwrap().store_blobs(&[b"ours"]).unwrap().remove(0);
            let theirs = sh(folder.path(), "umask 077; printf theirs | git hash-object -w --stdin");
            for name in [ours, theirs] {
                let place = folder.path().join(".git/objects").join(name.get(..2).unwrap());
                assert_eq!(mode_of(&place), of_folder, "{more}");
                assert_eq!(mode_of(&place.join(name.get(2..).unwrap())), of_file, "{more}");
            }
        }
    }

    #[test]
    fn a_file_planted_at_the_objects_path_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::create(folder.path()).unwrap();
        let name = git.store_blobs(&[b"hello\n"]).unwrap().remove(0);
        let path =
            folder.path().join(".git/objects").join(name.get(..2).unwrap()).join(name.get(2..).unwrap());
        fs::remove_file(&path).unwrap();
        fs::write(&path, "something else").unwrap();
        assert_eq!(git.store_blobs(&[b"hello\n"]).unwrap(), [name.as_str()]);
        assert_eq!(sh(folder.path(), &format!("git cat-file blob {name}")), "hello");
    }

    #[test]
    fn an_object_that_is_stored_already_is_not_written_again() {
        use std::os::unix::fs::MetadataExt;
        let folder = tempfile::tempdir().unwrap();
        let git = Git::create(folder.path()).unwrap();
        for bytes in contents() {
            let name = git.store_blobs(&[&bytes]).unwrap().remove(0);
            let path =
                folder.path().join(".git/objects").join(name.get(..2).unwrap()).join(name.get(2..).unwrap());
            let inode = fs::metadata(&path).unwrap().ino();
            git.store_blobs(&[&bytes]).unwrap();
            assert_eq!(
                fs::metadata(&path).unwrap().ino(),
                inode,
                "a copy that is not synced replaced {name}"
            );
        }
    }

    #[test]
    fn git_stores_objects_if_the_format_may_differ() {
        let folder = tempfile::tempdir().unwrap();
        sh(
            folder.path(),
            "git init -q -b main; git config core.repositoryFormatVersion 1; git config extensions.noop-v1 1",
        );
        let git = Git::open(folder.path()).unwrap();
        assert!(git.settings().has_unknown_extension());
        for bytes in contents() {
            let name = git.store_blobs(&[&bytes]).unwrap().remove(0);
            fs::write(folder.path().join("x"), &bytes).unwrap();
            sh(folder.path(), &format!("git cat-file blob {name} | cmp - x"));
        }
    }

    #[test]
    fn a_failed_write_is_an_error_and_leaves_no_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::create(folder.path()).unwrap();
        let name = git.store_blobs(&[b"hello\n"]).unwrap().remove(0);
        let place = folder.path().join(".git/objects").join(name.get(..2).unwrap());
        fs::remove_file(place.join(name.get(2..).unwrap())).unwrap();
        fs::create_dir(place.join(name.get(2..).unwrap())).unwrap();
        let error = git.store_blobs(&[b"hello\n"]).unwrap_err();
        assert!(matches!(&error, Error::Io { action: "write", .. }), "{error:?}");
        assert_eq!(fs::read_dir(&place).unwrap().count(), 1);
    }

    #[test]
    fn damaged_objects_are_removed_and_sound_ones_stay() {
        for format in ["sha1", "sha256"] {
            let folder = tempfile::tempdir().unwrap();
            sh(folder.path(), &format!("git init -q --object-format={format} -b main"));
            let git = Git::open(folder.path()).unwrap();
            let ids = git.store_blobs(&[b"one", b"two", b"three", b"four"]).unwrap();
            let path = |id: &str| {
                folder.path().join(".git/objects").join(id.get(..2).unwrap()).join(id.get(2..).unwrap())
            };
            for (id, damage) in
                [(&ids[1], Vec::new()), (&ids[2], fs::read(path(&ids[2])).unwrap()[..5].to_vec())]
            {
                fs::remove_file(path(id)).unwrap();
                fs::write(path(id), damage).unwrap();
            }
            git.remove_damaged_objects(SystemTime::now() + std::time::Duration::from_secs(60)).unwrap();
            assert!(ids.iter().all(|id| path(id).exists()), "older ones are not read");
            git.remove_damaged_objects(SystemTime::UNIX_EPOCH).unwrap();
            let left: Vec<bool> = ids.iter().map(|id| path(id).exists()).collect();
            assert_eq!(left, [true, false, false, true], "{format}");
            assert_eq!(git.store_blobs(&[b"two"]).unwrap(), [ids[1].as_str()]);
            assert_eq!(sh(folder.path(), "git fsck --strict --no-dangling"), "");
        }
    }
}
