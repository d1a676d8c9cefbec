//! Reads a bundle. The id of an object is not stored: it is the hash of its bytes, so an object that was changed is another one.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;

use runner_core::model::id::RunId;
use runner_core::model::object_id::CommitId;

use crate::bundle_writer::{BLOB, COMMIT, DAMAGED, MAGIC, OMITTED, TREE};
use crate::delta::apply;
use crate::git_object::{ObjectKind, hex, object_id};
use crate::object_source::{ObjectError, ObjectReader};
use crate::recent_objects::RecentObjects;
use crate::varint;

/// More differences than a writer makes in a row.
const DELTAS_MAX: usize = 1_000;

/// The objects in a file.
#[derive(Debug)]
pub(crate) struct Bundle {
    bytes: Vec<u8>,
    run: RunId,
    tip: CommitId,
    records: Vec<BundleRecord>,
    /// How many records have an id already.
    indexed: usize,
    ids: BTreeMap<String, usize>,
    omitted: BTreeSet<String>,
    damaged: BTreeSet<String>,
    recent: RecentObjects<usize>,
}

#[derive(Clone, Debug)]
struct BundleRecord {
    kind: Option<ObjectKind>,
    /// The record of the version from which this one differs.
    base: Option<usize>,
    payload: Range<usize>,
}

impl Bundle {
    /// Opens a bundle; none if the bytes are not one.
    pub(crate) fn open(bytes: Vec<u8>) -> Option<Self> {
        let mut rest = bytes.strip_prefix(MAGIC)?;
        let tip = CommitId::new(hex(take(&mut rest)?)).ok()?;
        let run = RunId::new(std::str::from_utf8(take(&mut rest)?).ok()?).ok()?;
        let (mut records, mut omitted, mut damaged) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
        while let Some((code, after)) = rest.split_first() {
            rest = after;
            let distance = varint::read(&mut rest)?;
            let payload = take(&mut rest)?;
            let end = bytes.len() - rest.len();
            let kind = match *code {
                COMMIT => Some(ObjectKind::Commit),
                TREE => Some(ObjectKind::Tree),
                BLOB => Some(ObjectKind::Blob),
                OMITTED => {
                    omitted.insert(hex(payload));
                    None
                }
                DAMAGED => {
                    damaged.insert(hex(payload));
                    None
                }
                _ => return None,
            };
            let base = match distance {
                0 => None,
                distance => Some(records.len().checked_sub(distance)?),
            };
            records.push(BundleRecord { kind, base, payload: end - payload.len()..end });
        }
        let recent = RecentObjects::default();
        Some(Self { run, tip, records, indexed: 0, ids: BTreeMap::new(), omitted, damaged, recent, bytes })
    }

    pub(crate) fn run(&self) -> &RunId {
        &self.run
    }

    /// The newest commit of the run, as the file names it.
    pub(crate) fn tip(&self) -> &CommitId {
        &self.tip
    }

    pub(crate) fn digits(&self) -> usize {
        self.tip.as_str().len()
    }

    pub(crate) fn records(&self) -> usize {
        self.records.len()
    }

    pub(crate) fn indexed(&self) -> usize {
        self.indexed
    }

    /// Computes ids until about `bytes_max` bytes are hashed; false when all are known.
    pub(crate) fn index_more(&mut self, bytes_max: usize) -> bool {
        let mut hashed = 0;
        while hashed < bytes_max {
            let Some(record) = self.records.get(self.indexed) else { return false };
            if let (Some(kind), Some(bytes)) = (record.kind, self.content(self.indexed)) {
                hashed += bytes.len() + 1_000;
                let id = object_id(kind.as_str(), &bytes, self.digits());
                self.ids.insert(id, self.indexed);
            }
            self.indexed += 1;
        }
        true
    }

    /// The bytes of a record; none if its differences do not fit.
    fn content(&mut self, index: usize) -> Option<Rc<Vec<u8>>> {
        let mut chain = vec![index];
        let mut content = loop {
            let at = *chain.last()?;
            if let Some(known) = self.recent.get(&at) {
                chain.pop();
                break known;
            }
            let record = self.records.get(at)?;
            match record.base {
                Some(base) if chain.len() < DELTAS_MAX && base < at => chain.push(base),
                Some(_) => return None,
                None => {
                    chain.pop();
                    let bytes = self.bytes.get(record.payload.clone())?;
                    break self.recent.insert(at, bytes.to_vec());
                }
            }
        };
        while let Some(at) = chain.pop() {
            let steps = self.bytes.get(self.records.get(at)?.payload.clone())?;
            content = self.recent.insert(at, apply(&content, steps)?);
        }
        Some(content)
    }
}

/// A part with its length before it.
fn take<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let len = varint::read(rest)?;
    let (part, after) = rest.split_at_checked(len)?;
    *rest = after;
    Some(part)
}

impl ObjectReader for Bundle {
    fn read(&mut self, id: &str, kind: ObjectKind, _path: &[u8]) -> Result<Option<Rc<Vec<u8>>>, ObjectError> {
        if self.omitted.contains(id) {
            return Err(ObjectError::Omitted { id: id.to_owned() });
        }
        let Some(index) = self.ids.get(id).copied() else { return Ok(None) };
        if self.records.get(index).and_then(|record| record.kind) != Some(kind) {
            return Err(ObjectError::Invalid { id: id.to_owned(), kind: kind.as_str() });
        }
        Ok(self.content(index))
    }

    fn is_intact(&mut self, id: &str) -> Result<bool, ObjectError> {
        Ok(!self.damaged.contains(id))
    }
}
