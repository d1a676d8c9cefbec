//! Trees that differ from an existing one in a few files: built with long-lived git processes, without an index.

use runner_core::model::object_id::TreeId;

use super::Git;
use super::objects::Treeish;
use crate::error::Error;

/// An entry of a tree object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StoredEntry<'t> {
    mode: &'t str,
    pub(super) name: &'t [u8],
    id: &'t [u8],
}

/// An entry of a new tree.
struct NewEntry<'t> {
    mode: &'t str,
    name: &'t [u8],
    object: String,
}

const FOLDER_MODE: &str = "40000";
const FILE_MODE: &str = "100644";
const SUBMODULE_MODE: &str = "160000";

/// A regular file that gets another content.
#[derive(Clone, Debug)]
pub(crate) struct ReplacedFile<'a> {
    /// Relative to the root, separated by `/`.
    pub(crate) path: &'a str,
    /// The blob with the new content.
    pub(crate) blob: String,
}

/// A replaced file below a folder: the rest of its path, name by name.
#[derive(Clone)]
struct Replacement<'a> {
    path: &'a [&'a str],
    blob: &'a str,
}

impl Git {
    /// A tree with some regular files replaced. None if any of them is not a regular file in that tree.
    pub(crate) fn tree_with(
        &self,
        tree: &impl Treeish,
        files: &[ReplacedFile<'_>],
    ) -> Result<Option<TreeId>, Error> {
        let paths: Vec<Vec<&str>> = files.iter().map(|file| file.path.split('/').collect()).collect();
        let replacements: Vec<Replacement<'_>> =
            paths.iter().zip(files).map(|(path, file)| Replacement { path, blob: &file.blob }).collect();
        self.replace_in_tree(&format!("{}^{{tree}}", tree.treeish()), &replacements)
    }

    fn replace_in_tree(&self, tree: &str, files: &[Replacement<'_>]) -> Result<Option<TreeId>, Error> {
        let bytes = self.processes.cat_file.read(self, tree)?;
        let Some(entries) = parse_tree(&bytes, self.id_digits / 2) else { return Ok(None) };
        let mut entries: Vec<NewEntry<'_>> = entries.into_iter().map(NewEntry::from).collect();
        let mut replaced = 0;
        for entry in &mut entries {
            let below: Vec<Replacement<'_>> =
                files.iter().filter_map(|file| file.below(entry.name)).collect();
            match below.as_slice() {
                [] => continue,
                [file] if file.path.is_empty() && entry.mode == FILE_MODE => {
                    entry.object = file.blob.to_owned();
                }
                deeper if entry.mode == FOLDER_MODE && deeper.iter().all(|file| !file.path.is_empty()) => {
                    let Some(tree) = self.replace_in_tree(&entry.object, deeper)? else { return Ok(None) };
                    entry.object = tree.to_string();
                }
                _ => return Ok(None),
            }
            replaced += below.len();
        }
        if replaced != files.len() {
            return Ok(None);
        }
        let mut request: Vec<u8> = entries.iter().flat_map(NewEntry::mktree_line).collect();
        request.push(0);
        let id = self.processes.mktree.ask(self, &request, 1)?.into_iter().next().unwrap_or_default();
        TreeId::new(id).map(Some).map_err(|_| Error::GitOutput { command: "mktree --batch".to_owned() })
    }
}

impl<'a> Replacement<'a> {
    /// The replacement as seen from inside `folder`, if it is there.
    fn below(&self, folder: &[u8]) -> Option<Self> {
        let (first, rest) = self.path.split_first()?;
        (first.as_bytes() == folder).then_some(Self { path: rest, blob: self.blob })
    }
}

impl StoredEntry<'_> {
    pub(super) fn is_folder(&self) -> bool {
        self.mode == FOLDER_MODE
    }

    /// The name of its object.
    pub(super) fn object(&self) -> String {
        self.id.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl<'t> From<StoredEntry<'t>> for NewEntry<'t> {
    fn from(entry: StoredEntry<'t>) -> Self {
        Self { mode: entry.mode, name: entry.name, object: entry.object() }
    }
}

impl NewEntry<'_> {
    /// The entry as `git mktree -z` reads it: mode, kind, object, name.
    fn mktree_line(&self) -> Vec<u8> {
        let kind = match self.mode {
            FOLDER_MODE => "tree",
            SUBMODULE_MODE => "commit",
            _ => "blob",
        };
        [format!("{:0>6} {kind} {}\t", self.mode, self.object).as_bytes(), self.name, &[0]].concat()
    }
}

/// The entries of a tree object; none if it cannot be parsed.
pub(super) fn parse_tree(mut bytes: &[u8], id_bytes: usize) -> Option<Vec<StoredEntry<'_>>> {
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let end = bytes.iter().position(|byte| *byte == 0)?;
        let head = bytes.get(..end)?;
        let rest = bytes.get(end + 1..)?;
        let blank = head.iter().position(|byte| *byte == b' ')?;
        let mode = std::str::from_utf8(head.get(..blank)?).ok()?;
        entries.push(StoredEntry { mode, name: head.get(blank + 1..)?, id: rest.get(..id_bytes)? });
        bytes = rest.get(id_bytes..)?;
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use runner_core::model::object_id::CommitId;

    use super::*;

    fn sh(folder: &Path, script: &str) -> String {
        let out = Command::new("sh").arg("-ec").arg(script).current_dir(folder).output().unwrap();
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    }

    const MAKE: &str = "export GIT_CONFIG_GLOBAL=/dev/null; git config user.name x; git config user.email x; \
        mkdir -p a/b a.d; echo 1 > a/b/one; echo 2 > a/b/two; echo 3 > a.d/x; echo 4 > a/z; chmod +x a/z; ln -s z a/link; \
        printf x > \"$(printf 'odd\\377name')\"; git add -A; git commit -qm x";

    #[test]
    fn a_tree_is_the_one_that_an_index_would_give() {
        for format in ["sha1", "sha256"] {
            let folder = tempfile::tempdir().unwrap();
            sh(folder.path(), &format!("git init -q --object-format={format} -b main; {MAKE}"));
            let git = Git::open(folder.path()).unwrap();
            let head = git.resolve("HEAD").unwrap().unwrap();
            fs::write(folder.path().join("a/b/one"), "new").unwrap();
            fs::write(folder.path().join("a/b/two"), "newer").unwrap();
            let blobs = git.store_blobs(&[b"new", b"newer"]).unwrap();
            let files: Vec<ReplacedFile<'_>> = ["a/b/one", "a/b/two"]
                .into_iter()
                .zip(blobs)
                .map(|(path, blob)| ReplacedFile { path, blob })
                .collect();
            let tree = git.tree_with(&head, &files).unwrap().unwrap();
            assert_eq!(tree.as_str(), sh(folder.path(), "git add -A; git write-tree"));
            assert_eq!(
                git.tree_with(&head, &[]).unwrap().unwrap().as_str(),
                sh(folder.path(), "git rev-parse HEAD^{tree}")
            );
            for path in ["a/b", "a/none", "a/b/one/x", "a/z", "a/link", "none/x"] {
                let blob = files.first().unwrap().blob.clone();
                assert_eq!(git.tree_with(&head, &[ReplacedFile { path, blob }]).unwrap(), None, "{path}");
            }
            let unknown = CommitId::new("1".repeat(head.as_str().len())).unwrap();
            assert!(git.tree_with(&unknown, &[]).is_err());
        }
    }
}
