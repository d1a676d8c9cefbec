//! The digest of a root file system, by content. The digests of its files are kept in the user's cache folder, because reading a
//! whole system for every trial would take longer than the trial.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use runner_core::model::digest::Sha256;
use serde::{Deserialize, Serialize};

use super::write_atomic;

/// What shows that a file has not changed: programs can set a file's time of modification, but not its time of change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct FileStamp {
    size: u64,
    inode: u64,
    ctime: i64,
    ctime_ns: i64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct CachedFile {
    stamp: FileStamp,
    sha256: String,
}

/// The digests of files, by the digest of their path.
type FileDigests = BTreeMap<String, CachedFile>;

/// One digest of the names, modes, links and contents below a folder.
pub(crate) fn digest_rootfs(root: &Path) -> io::Result<Sha256> {
    digest_with_cache(root, cache_file(root).as_deref())
}

fn cache_file(root: &Path) -> Option<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let folder = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home)?;
    let name = Sha256::of(super::absolute(root).as_os_str().as_encoded_bytes());
    Some(folder.join("runner-eval").join(format!("rootfs-{name}.json")))
}

fn digest_with_cache(root: &Path, cache: Option<&Path>) -> io::Result<Sha256> {
    let known = cache.and_then(|path| fs::read(path).ok());
    let known: FileDigests = known.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    let mut listing =
        RootfsListing { known, current: FileDigests::new(), text: String::new(), has_news: false };
    listing.add(root, Path::new(""))?;
    if let Some(path) = cache.filter(|_| listing.has_news || listing.current.len() != listing.known.len()) {
        // Without the cache, the next digest takes longer.
        let _ = path.parent().map(fs::create_dir_all);
        let _ = write_atomic(path, &serde_json::to_vec(&listing.current)?);
    }
    Ok(Sha256::of(listing.text.as_bytes()))
}

struct RootfsListing {
    known: FileDigests,
    current: FileDigests,
    text: String,
    /// Whether a file was read.
    has_news: bool,
}

impl RootfsListing {
    fn add(&mut self, root: &Path, relative: &Path) -> io::Result<()> {
        let Ok(entries) = fs::read_dir(root.join(relative)) else { return Ok(()) };
        let mut found: Vec<_> = entries.collect::<Result<_, _>>()?;
        found.sort_by_key(fs::DirEntry::file_name);
        for entry in found {
            let path = relative.join(entry.file_name());
            let metadata = fs::symlink_metadata(entry.path())?;
            let name = Sha256::of(path.as_os_str().as_encoded_bytes()).to_string();
            let content = if metadata.is_symlink() {
                Sha256::of(fs::read_link(entry.path())?.as_os_str().as_encoded_bytes()).to_string()
            } else if metadata.is_file() {
                self.file_digest(&entry.path(), &name, &metadata)
            } else {
                String::new()
            };
            self.text.push_str(&format!("{name} {:o} {content}\n", metadata.mode()));
            if metadata.is_dir() {
                self.add(root, &path)?;
            }
        }
        Ok(())
    }

    /// The digest of a file's content; `unreadable` for one that only its owner may read.
    fn file_digest(&mut self, path: &Path, name: &str, metadata: &fs::Metadata) -> String {
        let stamp = FileStamp {
            size: metadata.len(),
            inode: metadata.ino(),
            ctime: metadata.ctime(),
            ctime_ns: metadata.ctime_nsec(),
        };
        let cached = match self.known.get(name) {
            Some(cached) if cached.stamp == stamp => cached.clone(),
            _ => {
                let Ok(bytes) = fs::read(path) else { return "unreadable".to_owned() };
                self.has_news = true;
                CachedFile { stamp, sha256: Sha256::of(&bytes).to_string() }
            }
        };
        let sha256 = cached.sha256.clone();
        self.current.insert(name.to_owned(), cached);
        sha256
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_of_the_same_size_changes_the_digest_and_unchanged_files_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let (root, cache) = (folder.path().join("root"), folder.path().join("cache/x.json"));
        fs::create_dir_all(root.join("bin")).unwrap();
        fs::write(root.join("bin/tool"), "one").unwrap();
        fs::write(root.join("other"), "x").unwrap();
        let digest = || digest_with_cache(&root, Some(&cache)).unwrap();
        let first = digest();
        assert_eq!(digest(), first);
        fs::write(root.join("bin/tool"), "two").unwrap();
        assert_ne!(digest(), first);
        fs::write(root.join("bin/tool"), "one").unwrap();
        assert_eq!((digest(), digest_with_cache(&root, None).unwrap()), (first, first));
        // What the cache has of an unchanged file counts.
        let text = fs::read_to_string(&cache).unwrap();
        let sha256 = Sha256::of(b"x").to_string();
        assert!(text.contains(&sha256));
        fs::write(&cache, text.replace(&sha256, &Sha256::of(b"y").to_string())).unwrap();
        assert_ne!(digest(), first);
    }
}
