//! Storing commits: written out here, and checked and stored by a git that stays.

use std::os::unix::ffi::OsStrExt;

use super::Git;
use crate::clock;
use crate::error::Error;
use crate::fs::atomic;

impl Git {
    /// Stores a commit. Nothing points to it yet.
    pub(crate) fn store_commit(&self, tree: &str, parent: &str, message: &str) -> Result<String, Error> {
        let [author, committer] = self.settings.people();
        let now = clock::stamp();
        let text = format!(
            "tree {tree}\nparent {parent}\nauthor {author} {now}\ncommitter {committer} {now}\n\n{message}"
        );
        let path = self.paths().new_commit();
        atomic::overwrite(&path, text.as_bytes())?;
        let request = [quoted(path.as_os_str().as_bytes()), b"\n".to_vec()].concat();
        let stored = self.committing.ask(self, &request, 1)?.into_iter().next();
        atomic::remove_any(&path)?;
        stored.ok_or_else(|| Error::GitOutput { command: "hash-object -t commit".to_owned() })
    }
}

/// A path as git reads it from a line of its own: with marks and escapes where it would end the line.
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
    fn a_commit_is_one_that_git_itself_would_make() {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::create(folder.path()).unwrap();
        atomic::ensure_folder(&git.paths().private()).unwrap();
        fs::write(folder.path().join("a"), "a").unwrap();
        git.commit_everything("a").unwrap();
        let parent = git.resolve("HEAD").unwrap().unwrap();
        let tree = git.tree_of(&parent).unwrap();
        let message = "chore(loop): é\n\nRunner-Outcome: passed\n";
        let ours = git.store_commit(&tree, &parent, message).unwrap();
        let call = git.call(&["commit-tree", "-p", &parent, "-F", "-", &tree]);
        let theirs = lossy(&call.input(message.as_bytes()).run().unwrap());
        let told = |commit: &str| {
            let format = "--format=%an|%ae|%cn|%ce|%T|%P|%B";
            lossy(&git.call(&["log", "-1", format, commit]).run().unwrap())
        };
        assert_eq!(told(&ours), told(&theirs));
        let when = lossy(&git.call(&["log", "-1", "--format=%at %ct", &ours]).run().unwrap());
        let (author, committer) = when.split_once(' ').unwrap();
        assert_eq!(author, committer);
        assert!(crate::iteration::iteration_dir::now_ms() / 1000 - author.parse::<u64>().unwrap() < 100);
        git.call(&["fsck", "--strict", &ours]).run().unwrap();
    }
}
