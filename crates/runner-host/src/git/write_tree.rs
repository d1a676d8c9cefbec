//! Trees that differ from another one in a few files: made from that one by gits that stay, without an index.

use super::Git;
use crate::error::Error;

/// An entry of a tree, as it is stored.
struct StoredEntry<'t> {
    mode: &'t str,
    name: &'t [u8],
    object: String,
}

/// The mode of a folder, and that of a plain file.
const FOLDER: &str = "40000";
const FILE: &str = "100644";

impl Git {
    /// The tree of a commit with other contents in plain files. Each is named by the folders on the way and its name, and
    /// has to be there already. Nothing where the tree is not like that.
    pub(crate) fn tree_with(&self, commit: &str, files: &[(&str, String)]) -> Result<Option<String>, Error> {
        let files: Vec<(Vec<&str>, &str)> =
            files.iter().map(|(path, object)| (path.split('/').collect(), object.as_str())).collect();
        self.planted(&format!("{commit}^{{tree}}"), &files)
    }

    fn planted(&self, tree: &str, files: &[(Vec<&str>, &str)]) -> Result<Option<String>, Error> {
        let bytes = self.reading.read(self, tree)?;
        let Some(mut entries) = entries(&bytes, self.name_digits / 2) else { return Ok(None) };
        let mut done = 0;
        for entry in &mut entries {
            let here: Vec<(Vec<&str>, &str)> = files
                .iter()
                .filter_map(|(path, object)| Some((path.split_first()?, *object)))
                .filter(|((first, _), _)| first.as_bytes() == entry.name)
                .map(|((_, rest), object)| (rest.to_vec(), object))
                .collect();
            match here.as_slice() {
                [] => continue,
                [(rest, object)] if rest.is_empty() && entry.mode == FILE => {
                    entry.object = (*object).to_owned();
                }
                deeper if entry.mode == FOLDER && deeper.iter().all(|(rest, _)| !rest.is_empty()) => {
                    let Some(tree) = self.planted(&entry.object, deeper)? else { return Ok(None) };
                    entry.object = tree;
                }
                _ => return Ok(None),
            }
            done += here.len();
        }
        if done != files.len() {
            return Ok(None);
        }
        let mut request: Vec<u8> = entries.iter().flat_map(StoredEntry::told).collect();
        request.push(0);
        Ok(self.planting.ask(self, &request, 1)?.into_iter().next())
    }
}

impl StoredEntry<'_> {
    /// As git takes it: mode, kind, object, name.
    fn told(&self) -> Vec<u8> {
        let kind = match self.mode {
            FOLDER => "tree",
            "160000" => "commit",
            _ => "blob",
        };
        [format!("{:0>6} {kind} {}\t", self.mode, self.object).as_bytes(), self.name, &[0]].concat()
    }
}

/// The entries of a stored tree; nothing where it cannot be understood.
fn entries(mut bytes: &[u8], name_bytes: usize) -> Option<Vec<StoredEntry<'_>>> {
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let end = bytes.iter().position(|byte| *byte == 0)?;
        let (head, rest) = (bytes.get(..end)?, bytes.get(end + 1..)?);
        let blank = head.iter().position(|byte| *byte == b' ')?;
        let mode = std::str::from_utf8(head.get(..blank)?).ok()?;
        let object = rest.get(..name_bytes)?.iter().map(|byte| format!("{byte:02x}")).collect();
        entries.push(StoredEntry { mode, name: head.get(blank + 1..)?, object });
        bytes = rest.get(name_bytes..)?;
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;

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
            fs::write(folder.path().join("a/b/one"), "new").unwrap();
            fs::write(folder.path().join("a/b/two"), "newer").unwrap();
            let objects = git.store_blobs(&[b"new", b"newer"]).unwrap();
            let names = ["a/b/one", "a/b/two"];
            let files: Vec<(&str, String)> = names.into_iter().zip(objects).collect();
            let made = git.tree_with("HEAD", &files).unwrap().unwrap();
            assert_eq!(made, sh(folder.path(), "git add -A; git write-tree"));
            assert_eq!(
                git.tree_with("HEAD", &[]).unwrap().unwrap(),
                sh(folder.path(), "git rev-parse HEAD^{tree}")
            );
            for odd in ["a/b", "a/none", "a/b/one/x", "a/z", "a/link", "none/x"] {
                let object = files.first().unwrap().1.clone();
                assert_eq!(git.tree_with("HEAD", &[(odd, object)]).unwrap(), None, "{odd}");
            }
            assert!(git.tree_with("no-such-commit", &[]).is_err());
        }
    }
}
