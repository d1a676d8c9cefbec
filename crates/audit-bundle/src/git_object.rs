//! Git objects: their ids, and what commits and folders contain.

use runner_core::model::digest::Sha256;
use runner_core::model::object_id::CommitId;
use sha1::{Digest, Sha1};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ObjectKind {
    Commit,
    Tree,
    Blob,
}

impl ObjectKind {
    /// The name that git hashes with the bytes.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Tree => "tree",
            Self::Blob => "blob",
        }
    }
}

/// The id that git gives to an object. `digits` is 40, or 64 in a repository with SHA-256.
pub(crate) fn object_id(kind: &str, bytes: &[u8], digits: usize) -> String {
    let head = format!("{kind} {}\0", bytes.len());
    if digits == 64 {
        return Sha256::of(&[head.as_bytes(), bytes].concat()).to_string();
    }
    hex(&Sha1::new().chain_update(head).chain_update(bytes).finalize())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The bytes of an id.
pub(crate) fn id_bytes(id: &str) -> Vec<u8> {
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    id.as_bytes().chunks_exact(2).filter_map(byte).collect()
}

/// The parts of a commit that an audit reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CommitContent {
    pub(crate) tree: String,
    pub(crate) parents: Vec<CommitId>,
    pub(crate) message: Vec<u8>,
}

impl CommitContent {
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(2).position(|pair| pair == b"\n\n").unwrap_or(bytes.len());
        let (head, rest) = bytes.split_at_checked(end).unwrap_or((bytes, &[]));
        let mut commit = Self { message: rest.get(2..).unwrap_or_default().to_vec(), ..Self::default() };
        for line in String::from_utf8_lossy(head).lines() {
            if let Some(parent) = line.strip_prefix("parent ") {
                commit.parents.extend(CommitId::new(parent).ok());
            } else if let Some(tree) = line.strip_prefix("tree ") {
                tree.clone_into(&mut commit.tree);
            }
        }
        commit
    }
}

/// What an entry of a folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryKind {
    Folder,
    File,
    Executable,
    Link,
    Submodule,
}

impl EntryKind {
    /// As git reads modes: whatever else a mode of a file says, it is executable or not.
    fn of_mode(mode: &[u8]) -> Option<Self> {
        let bits = u32::from_str_radix(std::str::from_utf8(mode).ok()?, 8).ok()?;
        Some(match bits & 0o170_000 {
            0o040_000 => Self::Folder,
            0o100_000 if bits & 0o100 != 0 => Self::Executable,
            0o100_000 => Self::File,
            0o120_000 => Self::Link,
            _ => Self::Submodule,
        })
    }

    /// The mode as git prints it.
    pub(crate) fn mode(self) -> &'static str {
        match self {
            Self::Folder => "040000",
            Self::File => "100644",
            Self::Executable => "100755",
            Self::Link => "120000",
            Self::Submodule => "160000",
        }
    }

    pub(crate) fn is_regular(self) -> bool {
        matches!(self, Self::File | Self::Executable)
    }
}

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FolderEntry {
    pub(crate) kind: EntryKind,
    pub(crate) name: Vec<u8>,
    pub(crate) object: String,
}

impl FolderEntry {
    /// What folders are sorted by.
    pub(crate) fn sort_key(&self) -> Vec<u8> {
        let end: &[u8] = if self.kind == EntryKind::Folder { b"/" } else { b"" };
        [&self.name, end].concat()
    }
}

/// The entries of a folder; none if it cannot be parsed.
pub(crate) fn folder_entries(mut bytes: &[u8], id_len: usize) -> Option<Vec<FolderEntry>> {
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let end = bytes.iter().position(|byte| *byte == 0)?;
        let (head, rest) = bytes.split_at_checked(end)?;
        let (object, rest) = rest.get(1..)?.split_at_checked(id_len)?;
        let blank = head.iter().position(|byte| *byte == b' ')?;
        let (mode, name) = head.split_at_checked(blank)?;
        entries.push(FolderEntry {
            kind: EntryKind::of_mode(mode)?,
            name: name.get(1..)?.to_vec(),
            object: hex(object),
        });
        bytes = rest;
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_git() {
        assert_eq!(object_id("blob", b"", 40), "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
        assert_eq!(object_id("tree", b"", 40), "4b825dc642cb6eb9a060e54bf8d69288fbee4904");
        let long = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321";
        assert_eq!(object_id("tree", b"", 64), long);
        assert_eq!(id_bytes("00ff10"), [0, 255, 16]);
    }

    #[test]
    fn a_folder_is_parsed() {
        let object = [7_u8; 20];
        let bytes: Vec<u8> =
            [&b"100664 a\0"[..], &object, b"40000 b\0", &object, b"120000 c\0", &object].concat();
        let entries = folder_entries(&bytes, 20).unwrap();
        let kinds: Vec<EntryKind> = entries.iter().map(|entry| entry.kind).collect();
        assert_eq!(kinds, [EntryKind::File, EntryKind::Folder, EntryKind::Link]);
        assert_eq!(entries.first().unwrap().object, "07".repeat(20));
        assert_eq!(folder_entries(bytes.get(..30).unwrap(), 20), None);
    }

    #[test]
    fn a_commit_is_parsed() {
        let parent = "2".repeat(40);
        let text = format!("tree abc\nparent {parent}\nauthor A <a> 1 +0000\n\ns\n\nb\n");
        let commit = CommitContent::parse(text.as_bytes());
        assert_eq!((commit.tree.as_str(), commit.message.as_slice()), ("abc", &b"s\n\nb\n"[..]));
        assert_eq!(commit.parents, [CommitId::new(parent).unwrap()]);
    }
}
