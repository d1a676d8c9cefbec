//! The tree that a guard must have seen, derived from the commit of its iteration. Nothing is written.

use runner_core::layout::Doc;
use runner_core::model::object_id::{CommitId, TreeId};

use super::{CatFileBatch, Git};
use crate::error::Error;

/// The documents that the runner changes after the guard.
const DOCS: [Doc; 2] = [Doc::Tree, Doc::RunState];

/// An entry of a tree object, as it is stored.
#[derive(Clone)]
struct RawEntry {
    name: Vec<u8>,
    is_folder: bool,
    /// Mode, name and object.
    bytes: Vec<u8>,
}

impl Git {
    /// The tree of a commit with the runner's documents of its parent. None if the repository does not have both.
    pub(crate) fn candidate_of(
        &self,
        batch: &mut CatFileBatch,
        commit: &CommitId,
        parent: &CommitId,
    ) -> Result<Option<TreeId>, Error> {
        let mut folders: Vec<&str> = DOCS[0].path().split('/').collect();
        folders.pop();
        let mut levels = Vec::new();
        for depth in 0..=folders.len() {
            let folder = folders.get(..depth).unwrap_or_default().join("/");
            let Some(entries) = self.tree_entries(batch, commit, &folder)? else { return Ok(None) };
            levels.push(entries);
        }
        let Some(before) = self.tree_entries(batch, parent, &folders.join("/"))? else { return Ok(None) };
        let is_doc = |entry: &RawEntry| {
            DOCS.iter()
                .any(|doc| doc.path().rsplit('/').next().is_some_and(|name| entry.name == name.as_bytes()))
        };
        let mut entries = levels.pop().unwrap_or_default();
        entries.retain(|entry| !is_doc(entry));
        entries.extend(before.into_iter().filter(is_doc));
        for folder in folders.iter().rev() {
            let bytes = self.tree_entry(folder, &entries);
            entries = levels.pop().unwrap_or_default();
            entries.retain(|entry| entry.name != folder.as_bytes());
            entries.push(RawEntry { name: folder.as_bytes().to_vec(), is_folder: true, bytes });
        }
        Ok(TreeId::new(self.tree_id(&entries)).ok())
    }

    fn tree_entries(
        &self,
        batch: &mut CatFileBatch,
        commit: &CommitId,
        folder: &str,
    ) -> Result<Option<Vec<RawEntry>>, Error> {
        Ok(batch
            .object(&format!("{commit}:{folder}"))?
            .and_then(|bytes| raw_entries(&bytes, self.id_digits / 2)))
    }

    /// The id of a tree with these entries, in any order.
    fn tree_id(&self, entries: &[RawEntry]) -> String {
        let mut sorted: Vec<&RawEntry> = entries.iter().collect();
        sorted.sort_by_key(|entry| {
            let end: &[u8] = if entry.is_folder { b"/" } else { b"" };
            [&entry.name, end].concat()
        });
        let content: Vec<u8> = sorted.iter().flat_map(|entry| entry.bytes.iter().copied()).collect();
        self.id_of([format!("tree {}\0", content.len()).as_bytes(), &content])
    }

    /// The entry of a folder with these entries, as its parent stores it.
    fn tree_entry(&self, name: &str, entries: &[RawEntry]) -> Vec<u8> {
        let id = self.tree_id(entries);
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let object = id.as_bytes().chunks_exact(2).filter_map(byte);
        format!("40000 {name}\0").into_bytes().into_iter().chain(object).collect()
    }
}

/// The entries of a tree object; none if it cannot be parsed.
fn raw_entries(mut bytes: &[u8], id_bytes: usize) -> Option<Vec<RawEntry>> {
    let mut entries = Vec::new();
    while !bytes.is_empty() {
        let end = bytes.iter().position(|byte| *byte == 0)? + 1 + id_bytes;
        let entry = bytes.get(..end)?;
        let head = entry.get(..end - 1 - id_bytes)?;
        let blank = head.iter().position(|byte| *byte == b' ')?;
        entries.push(RawEntry {
            name: head.get(blank + 1..)?.to_vec(),
            is_folder: head.starts_with(b"40000 "),
            bytes: entry.to_vec(),
        });
        bytes = bytes.get(end..)?;
    }
    Some(entries)
}
