//! Blobs, stored the way git stores a new object: compressed, in a file of its own that has the name of its hash.
//!
//! Git's own command reads a document of some megabytes three times to do so, and takes five times as long.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use flate2::Compression;
use flate2::write::ZlibEncoder;
use runner_core::model::digest::Sha256;
use sha1::{Digest, Sha1};

use super::{Git, lossy};
use crate::error::Error;

/// As small as git would make it, within the time that its quickest level takes.
const LEVEL: u32 = 2;

impl Git {
    /// Stores contents as blobs, byte for byte, and gives their names in the same order.
    pub(crate) fn store_blobs(&self, contents: &[&[u8]]) -> Result<Vec<String>, Error> {
        contents.iter().map(|bytes| self.store_blob(bytes)).collect()
    }

    fn store_blob(&self, bytes: &[u8]) -> Result<String, Error> {
        if self.settings.has_unknown_extension() {
            let call = self.call(&["hash-object", "-w", "--no-filters", "--stdin"]);
            return call.input(bytes).run().map(|name| lossy(&name));
        }
        let head = format!("blob {}\0", bytes.len());
        let name = self.name_of([head.as_bytes(), bytes]);
        let (folder, file) = name.split_at(2);
        let objects = self.common_dir().join("objects");
        let folder = objects.join(folder);
        let path = folder.join(file);
        let stored = put(&objects, &folder, &path, [head.as_bytes(), bytes]);
        stored.map_err(Error::io("write", &path))?;
        Ok(name)
    }

    /// The name that git gives to an object.
    fn name_of(&self, parts: [&[u8]; 2]) -> String {
        if self.name_digits == 64 {
            return Sha256::of(&parts.concat()).to_string();
        }
        let hash = parts.iter().fold(Sha1::new(), Digest::chain_update).finalize();
        hash.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Puts an object in its place, durably, and whatever else stands there goes: an agent may know the name beforehand. Who
/// may read the folder of all objects may read it, too.
fn put(objects: &Path, folder: &Path, path: &Path, parts: [&[u8]; 2]) -> io::Result<()> {
    let mode = fs::metadata(objects)?.permissions().mode();
    if !folder.is_dir() {
        fs::create_dir(folder).or_else(|error| if folder.is_dir() { Ok(()) } else { Err(error) })?;
        fs::set_permissions(folder, fs::Permissions::from_mode(mode))?;
    }
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::new(LEVEL));
    parts.iter().try_for_each(|part| packed.write_all(part))?;
    let packed = packed.finish()?;
    // Git clears away what is called so and was left behind. Two runners may be at work in one repository.
    let temporary = folder.join(format!("tmp_obj_{}", std::process::id()));
    let written = write_new(&temporary, &packed, mode & 0o444).and_then(|()| fs::rename(&temporary, path));
    written.inspect_err(|_| drop(fs::remove_file(&temporary)))
}

fn write_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    // One that a process of the same number left behind is nobody's any more.
    fs::remove_file(path)
        .or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })?;
    let mut file = fs::File::options().write(true).create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.sync_all()
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

    /// Nothing, text, what does not get smaller, and a lot.
    fn contents() -> Vec<Vec<u8>> {
        let noise = (0..1_000_u32).flat_map(|n| Sha256::of(&n.to_le_bytes()).to_string().into_bytes());
        vec![Vec::new(), b"hello\n".to_vec(), noise.collect(), b"a long document\r\n".repeat(100_000)]
    }

    #[test]
    fn a_blob_is_the_one_that_git_would_store() {
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
            assert_eq!(git.store_blobs(&[b"hello\n"]).unwrap().first(), names.get(1), "it may be there");
        }
    }

    #[test]
    fn who_may_read_a_repository_may_read_a_new_object() {
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
    fn what_was_put_in_its_place_beforehand_goes() {
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
    fn where_the_store_may_be_another_git_is_asked() {
        let folder = tempfile::tempdir().unwrap();
        sh(
            folder.path(),
            "git init -q -b main; git config core.repositoryFormatVersion 1; git config extensions.noop-v1 1",
        );
        let git = Git::open(folder.path()).unwrap();
        assert!(git.settings.has_unknown_extension());
        for bytes in contents() {
            let name = git.store_blobs(&[&bytes]).unwrap().remove(0);
            fs::write(folder.path().join("x"), &bytes).unwrap();
            sh(folder.path(), &format!("git cat-file blob {name} | cmp - x"));
        }
    }

    #[test]
    fn what_cannot_be_stored_is_an_error_and_leaves_nothing() {
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
}
