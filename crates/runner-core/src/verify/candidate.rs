//! The tree that a guard must have seen, derived from the commit of its iteration. Nothing is written.

use std::collections::BTreeMap;

use super::FrozenFile;
use super::audit_source::AuditSource;
use crate::layout::Doc;
use crate::model::object_id::{CommitId, TreeId};

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

/// Mode and object of a file.
#[derive(Clone)]
struct Leaf {
    mode: Vec<u8>,
    object: Vec<u8>,
}

impl Leaf {
    fn named(&self, name: &[u8]) -> RawEntry {
        let bytes = [&self.mode, b" ".as_slice(), name, b"\0", &self.object].concat();
        RawEntry { name: name.to_vec(), is_folder: false, bytes }
    }
}

/// A file to put into a tree, or to remove from it.
#[derive(Clone)]
struct TreeEdit {
    path: Vec<u8>,
    entry: Option<Leaf>,
}

/// The tree of a commit with the runner's documents of its parent, and with these files of its parent at their
/// destinations. None if the source does not have both.
pub(super) fn candidate_of<S: AuditSource>(
    source: &mut S,
    commit: &CommitId,
    parent: &CommitId,
    laid: &[FrozenFile],
) -> Result<Option<TreeId>, S::Error> {
    let mut edits = Vec::new();
    for doc in DOCS {
        let entry = leaf_at(source, parent, doc.path().as_bytes())?;
        edits.push(TreeEdit { path: doc.path().into(), entry });
    }
    for FrozenFile { destination, source: path } in laid {
        let Some(entry) = leaf_at(source, parent, path)? else { return Ok(None) };
        edits.push(TreeEdit { path: destination.clone(), entry: Some(entry) });
    }
    if folder_entries(source, commit, "")?.is_none() {
        return Ok(None);
    }
    let entries = edited(source, commit, "", &edits)?;
    Ok(TreeId::new(tree_id(source, &entries)).ok())
}

/// Mode and object of a file of a commit.
fn leaf_at<S: AuditSource>(source: &mut S, commit: &CommitId, path: &[u8]) -> Result<Option<Leaf>, S::Error> {
    let path = String::from_utf8_lossy(path);
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let entries = folder_entries(source, commit, folder)?.unwrap_or_default();
    let entry = entries.into_iter().find(|entry| entry.name == name.as_bytes() && !entry.is_folder);
    Ok(entry.map(|entry| {
        let id_bytes = commit.as_str().len() / 2;
        let mode = entry.bytes.split(|byte| *byte == b' ').next().unwrap_or_default().to_vec();
        let object = entry.bytes.get(entry.bytes.len() - id_bytes..).unwrap_or_default().to_vec();
        Leaf { mode, object }
    }))
}

/// The entries of a folder of a commit after edits of files below it.
fn edited<S: AuditSource>(
    source: &mut S,
    commit: &CommitId,
    folder: &str,
    edits: &[TreeEdit],
) -> Result<Vec<RawEntry>, S::Error> {
    let mut entries = folder_entries(source, commit, folder)?.unwrap_or_default();
    let mut below: BTreeMap<Vec<u8>, Vec<TreeEdit>> = BTreeMap::new();
    for edit in edits {
        let at = edit.path.iter().position(|byte| *byte == b'/');
        let name = edit.path.get(..at.unwrap_or(edit.path.len())).unwrap_or_default().to_vec();
        match at {
            Some(at) => below.entry(name).or_default().push(TreeEdit {
                path: edit.path.get(at + 1..).unwrap_or_default().to_vec(),
                entry: edit.entry.clone(),
            }),
            None => {
                entries.retain(|entry| entry.name != name);
                entries.extend(edit.entry.as_ref().map(|leaf| leaf.named(&name)));
            }
        }
    }
    for (name, edits) in below {
        let text = String::from_utf8_lossy(&name);
        let path = if folder.is_empty() { text.to_string() } else { format!("{folder}/{text}") };
        let inner = edited(source, commit, &path, &edits)?;
        let bytes = folder_entry(source, &text, &inner);
        entries.retain(|entry| entry.name != name);
        entries.push(RawEntry { name, is_folder: true, bytes });
    }
    Ok(entries)
}

fn folder_entries<S: AuditSource>(
    source: &mut S,
    commit: &CommitId,
    folder: &str,
) -> Result<Option<Vec<RawEntry>>, S::Error> {
    let id_bytes = commit.as_str().len() / 2;
    Ok(source.folder(commit, folder)?.and_then(|bytes| raw_entries(&bytes, id_bytes)))
}

/// The id of a tree with these entries, in any order.
fn tree_id<S: AuditSource>(source: &S, entries: &[RawEntry]) -> String {
    let mut sorted: Vec<&RawEntry> = entries.iter().collect();
    sorted.sort_by_key(|entry| {
        let end: &[u8] = if entry.is_folder { b"/" } else { b"" };
        [&entry.name, end].concat()
    });
    let content: Vec<u8> = sorted.iter().flat_map(|entry| entry.bytes.iter().copied()).collect();
    source.object_id("tree", &content)
}

/// The entry of a folder with these entries, as its parent stores it.
fn folder_entry<S: AuditSource>(source: &S, name: &str, entries: &[RawEntry]) -> Vec<u8> {
    let id = tree_id(source, entries);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let object = id.as_bytes().chunks_exact(2).filter_map(byte);
    format!("40000 {name}\0").into_bytes().into_iter().chain(object).collect()
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
