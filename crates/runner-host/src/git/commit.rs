//! Storing commits: this module writes the object's text; a long-lived git process checks and stores it.

use std::os::unix::ffi::OsStrExt;

use runner_core::model::object_id::{CommitId, TreeId};

use super::{Git, lossy};
use crate::clock;
use crate::error::Error;
use crate::fs::atomic;

impl Git {
    /// Stores a commit that no reference points to yet; without a parent, the first of a history.
    pub(crate) fn store_commit<'c>(
        &self,
        tree: &TreeId,
        parent: impl Into<Option<&'c CommitId>>,
        message: &str,
    ) -> Result<CommitId, Error> {
        let [author, committer] = self.settings().author_and_committer();
        let now = clock::stamp();
        let parent = parent.into().map(|parent| format!("parent {parent}\n")).unwrap_or_default();
        let text =
            format!("tree {tree}\n{parent}author {author} {now}\ncommitter {committer} {now}\n\n{message}");
        let path = self.paths().new_commit();
        atomic::overwrite(&path, text.as_bytes())?;
        let request = [quoted(path.as_os_str().as_bytes()), b"\n".to_vec()].concat();
        let id = self.processes.hash_object.ask(self, &request, 1)?.into_iter().next().unwrap_or_default();
        atomic::remove_any(&path)?;
        CommitId::new(id).map_err(|_| Error::GitOutput { command: "hash-object -t commit".to_owned() })
    }
}

impl Git {
    /// The text of an annotated tag, if it exists.
    pub(crate) fn tag_text(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let tag = format!("refs/tags/{name}^{{tag}}");
        let id = self.call(&["rev-parse", "--verify", "--quiet", "--end-of-options", &tag]).query()?;
        id.map(|id| self.call(&["cat-file", "tag", &lossy(&id)]).run()).transpose()
    }

    /// Stores a signed tag on a commit, and points a reference at it. `sign` gets the text of the tag.
    pub(crate) fn store_signed_tag(
        &self,
        name: &str,
        commit: &CommitId,
        message: &str,
        sign: impl FnOnce(&[u8]) -> Result<Vec<u8>, Error>,
    ) -> Result<(), Error> {
        let [_, tagger] = self.settings().author_and_committer();
        let now = clock::stamp();
        let text = format!("object {commit}\ntype commit\ntag {name}\ntagger {tagger} {now}\n\n{message}\n");
        let signature = sign(text.as_bytes())?;
        let path = self.paths().new_commit();
        atomic::overwrite(&path, &[text.as_bytes(), &signature].concat())?;
        let file = path.to_string_lossy().into_owned();
        let stored = self.call(&["hash-object", "-t", "tag", "-w", "--no-filters", &file]).run();
        atomic::remove_any(&path)?;
        let object = lossy(&stored?);
        self.set_ref(&format!("refs/tags/{name}"), object.trim())
    }
}

/// A path as git reads it from a line: quoted and escaped if it would end the line early.
fn quoted(path: &[u8]) -> Vec<u8> {
    if !path.starts_with(b"\"") && !path.contains(&b'\n') {
        return path.to_vec();
    }
    let escaped = path.iter().flat_map(|byte| match byte {
        b'"' => b"\\\"".to_vec(),
        b'\\' => b"\\\\".to_vec(),
        b'\n' => b"\\n".to_vec(),
        _ => vec![*byte],
    });
    [b'"'].into_iter().chain(escaped).chain([b'"']).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::git::lossy;

    #[test]
    fn a_stored_commit_equals_one_of_git_commit_tree() {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::create(folder.path()).unwrap();
        atomic::ensure_folder(&git.paths().private()).unwrap();
        fs::write(folder.path().join("a"), "a").unwrap();
        git.commit_everything("a").unwrap();
        let parent = git.resolve("HEAD").unwrap().unwrap();
        let tree = git.tree_of(&parent).unwrap();
        let message = "chore(loop): é\n\nRunner-Outcome: passed\n";
        let ours = git.store_commit(&tree, &parent, message).unwrap();
        let call = git.call(&["commit-tree", "-p", parent.as_str(), "-F", "-", tree.as_str()]);
        let theirs = CommitId::new(lossy(&call.input(message.as_bytes()).run().unwrap())).unwrap();
        let fields = |commit: &CommitId| {
            let format = "--format=%an|%ae|%cn|%ce|%T|%P|%B";
            lossy(&git.call(&["log", "-1", format, commit.as_str()]).run().unwrap())
        };
        assert_eq!(fields(&ours), fields(&theirs));
        let when = lossy(&git.call(&["log", "-1", "--format=%at %ct", ours.as_str()]).run().unwrap());
        let (author, committer) = when.split_once(' ').unwrap();
        assert_eq!(author, committer);
        assert!(clock::now_ms() / 1000 - author.parse::<u64>().unwrap() < 100);
        git.call(&["fsck", "--strict", ours.as_str()]).run().unwrap();
    }
}
