//! The paths in which two trees differ, found with the running `git cat-file`: only folders that differ are read.

use std::collections::BTreeMap;

use runner_core::model::object_id::TreeId;

use super::Git;
use super::write_tree::{StoredEntry, parse_tree};
use crate::error::Error;

/// The entries of the old and the new folder with one name.
type EntryPair<'t> = [Option<StoredEntry<'t>>; 2];

impl Git {
    /// The files that are in only one of two trees, or differ, with a NUL after each.
    pub(crate) fn tree_differences(&self, old: &TreeId, new: &TreeId) -> Result<Vec<u8>, Error> {
        let mut paths = Vec::new();
        self.add_differences([Some(old.to_string()), Some(new.to_string())], b"", &mut paths)?;
        Ok(paths)
    }

    fn add_differences(
        &self,
        folders: [Option<String>; 2],
        prefix: &[u8],
        paths: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let [old, new] = folders;
        let [old, new] = [self.tree_bytes(old)?, self.tree_bytes(new)?];
        for (name, pair) in self.entry_pairs(&old, &new)? {
            let [old, new] = pair;
            if old == new {
                continue;
            }
            let path = [prefix, name].concat();
            if pair.iter().flatten().any(|entry| !entry.is_folder()) {
                paths.extend_from_slice(&path);
                paths.push(0);
            }
            let folders = pair.map(|entry| entry.filter(StoredEntry::is_folder).map(|entry| entry.object()));
            if folders.iter().any(Option::is_some) {
                self.add_differences(folders, &[&path, b"/".as_slice()].concat(), paths)?;
            }
        }
        Ok(())
    }

    fn tree_bytes(&self, tree: Option<String>) -> Result<Vec<u8>, Error> {
        tree.map_or(Ok(Vec::new()), |tree| self.processes.cat_file.read(self, &tree))
    }

    /// The entries of two tree objects by name.
    fn entry_pairs<'t>(
        &self,
        old: &'t [u8],
        new: &'t [u8],
    ) -> Result<BTreeMap<&'t [u8], EntryPair<'t>>, Error> {
        let entries = |bytes: &'t [u8]| {
            let parsed = parse_tree(bytes, self.id_digits / 2);
            parsed.ok_or_else(|| Error::GitOutput { command: "cat-file --batch".to_owned() })
        };
        let mut pairs = BTreeMap::<&[u8], EntryPair<'_>>::new();
        for entry in entries(old)? {
            pairs.entry(entry.name).or_default()[0] = Some(entry);
        }
        for entry in entries(new)? {
            pairs.entry(entry.name).or_default()[1] = Some(entry);
        }
        Ok(pairs)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::git::{Git, nul_separated};

    #[test]
    fn the_paths_are_those_of_diff_tree() {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::create(folder.path()).unwrap();
        let at = |name: &str| folder.path().join(name);
        let write = |name: &str, text: &str| {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), text).unwrap();
        };
        let tree = || {
            git.call(&["add", "-f", "--all"]).run().unwrap();
            git.write_tree(&git.paths().index()).unwrap()
        };
        for name in ["a", "same/b", "gone/c/d", "gone/e", "file", "folder/f", "folder/g/h", "mode", "a.txt"] {
            write(name, "first\n");
        }
        let old = tree();
        assert_eq!(git.tree_differences(&old, &old).unwrap(), b"");
        fs::remove_dir_all(at("gone")).unwrap();
        fs::remove_dir_all(at("folder")).unwrap();
        fs::remove_file(at("file")).unwrap();
        write("folder", "now a file\n");
        write("file/inside/deep", "now a folder\n");
        write("a", "second\n");
        write("new/b\u{e9}", "new\n");
        fs::set_permissions(at("mode"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let new = tree();
        let sorted = |bytes: &[u8]| {
            let mut paths: Vec<Vec<u8>> = nul_separated(bytes).map(<[u8]>::to_vec).collect();
            paths.sort();
            paths
        };
        for (from, to) in [(&old, &new), (&new, &old)] {
            let args = ["diff-tree", "-r", "-z", "--name-only", from.as_str(), to.as_str()];
            let expected = sorted(&git.call(&args).run().unwrap());
            assert_eq!(expected.len(), 10);
            assert_eq!(sorted(&git.tree_differences(from, to).unwrap()), expected);
        }
    }
}
