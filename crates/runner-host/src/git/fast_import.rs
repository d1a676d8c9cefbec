//! Storing many files as one commit in one call, byte for byte, with one flush to the disk.

use runner_core::model::object_id::CommitId;

use super::Git;
use crate::clock;
use crate::error::Error;

/// A file of a commit.
pub(crate) struct ImportedFile {
    /// Relative to the root, as git prints it.
    pub(crate) path: Vec<u8>,
    pub(crate) is_executable: bool,
    pub(crate) bytes: Vec<u8>,
}

impl Git {
    /// Adds files to the commit that a reference points to, or begins with an empty one, and moves the reference to the new
    /// commit. It needs no index and no work tree.
    pub(crate) fn import_files(
        &self,
        reference: &str,
        parent: Option<&CommitId>,
        message: &[u8],
        files: &[ImportedFile],
    ) -> Result<(), Error> {
        let [_, committer] = self.settings().author_and_committer();
        let mut stream =
            format!("commit {reference}\ncommitter {committer} {}\n", clock::stamp()).into_bytes();
        push_data(&mut stream, message);
        if let Some(parent) = parent {
            stream.extend(format!("from {parent}\n").bytes());
        }
        for file in files {
            let mode = if file.is_executable { "100755" } else { "100644" };
            stream.extend(format!("M {mode} inline ").bytes());
            stream.extend(quoted(&file.path));
            stream.push(b'\n');
            push_data(&mut stream, &file.bytes);
        }
        stream.extend(b"done\n");
        self.call(&["fast-import", "--quiet", "--done"]).input(&stream).run().map(drop)
    }
}

fn push_data(stream: &mut Vec<u8>, bytes: &[u8]) {
    stream.extend(format!("data {}\n", bytes.len()).bytes());
    stream.extend(bytes);
    stream.push(b'\n');
}

/// A path in quotes, with every byte escaped that is not plain text.
fn quoted(path: &[u8]) -> Vec<u8> {
    let escaped = path.iter().flat_map(|byte| match byte {
        b'"' | b'\\' => vec![b'\\', *byte],
        0..=0x1f | 0x7f.. => format!("\\{byte:03o}").into_bytes(),
        _ => vec![*byte],
    });
    [b'"'].into_iter().chain(escaped).chain([b'"']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::lossy;

    #[test]
    fn files_are_stored_byte_for_byte_and_added_to_the_commit_before() {
        let folder = tempfile::tempdir().unwrap();
        let git = Git::create(folder.path()).unwrap();
        let file = |path: &[u8], bytes: &[u8]| ImportedFile {
            path: path.to_vec(),
            is_executable: false,
            bytes: bytes.to_vec(),
        };
        let odd = b"a \"b\"\\\n\xff\xc3\xa9";
        git.import_files("refs/runner/x/ignored", None, b"one", &[file(odd, b"a\r\n\0"), file(b"c", b"")])
            .unwrap();
        let first = git.resolve("refs/runner/x/ignored").unwrap().unwrap();
        git.import_files("refs/runner/x/ignored", Some(&first), b"two", &[file(b"c", b"c")]).unwrap();
        let second = git.resolve("refs/runner/x/ignored").unwrap().unwrap();
        let paths: Vec<Vec<u8>> =
            git.files_of(&second, ".").unwrap().into_iter().map(|file| file.path).collect();
        assert_eq!(paths, [odd.to_vec(), b"c".to_vec()]);
        assert_eq!(git.call(&["show", &format!("{second}:c")]).run().unwrap(), b"c");
        assert_eq!(lossy(&git.call(&["log", "--format=%s", second.as_str()]).run().unwrap()), "two\none");
        assert_eq!(lossy(&git.call(&["fsck", "--strict", "--no-dangling"]).run().unwrap()), "");
    }
}
