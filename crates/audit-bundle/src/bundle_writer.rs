//! Writes the objects of a run into a bundle, each once, as a difference from the version before where that is smaller.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use runner_core::model::id::RunId;
use runner_core::model::object_id::CommitId;

use crate::delta::delta;
use crate::git_object::{ObjectKind, id_bytes};
use crate::varint;

pub(crate) const MAGIC: &[u8] = b"runner.objects/1\n";

/// The kind of a record.
pub(crate) const COMMIT: u8 = 1;
pub(crate) const TREE: u8 = 2;
pub(crate) const BLOB: u8 = 3;
/// An object that was left out because it contains a key.
pub(crate) const OMITTED: u8 = 4;
/// A blob whose bytes were not those of its id.
pub(crate) const DAMAGED: u8 = 5;

/// After so many differences, a version is stored in full: reading one must not take time linear in the run.
const DELTAS_MAX: usize = 100;

/// A bundle that is being written.
#[derive(Debug)]
pub(crate) struct BundleWriter {
    out: Vec<u8>,
    records: usize,
    known: BTreeSet<String>,
    latest: BTreeMap<LatestKey, LatestVersion>,
    omitted: usize,
}

/// Versions at the same path are alike.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LatestKey {
    kind: ObjectKind,
    path: Vec<u8>,
}

#[derive(Debug)]
struct LatestVersion {
    record: usize,
    bytes: Rc<Vec<u8>>,
    /// How many differences lead to it.
    deltas: usize,
}

impl BundleWriter {
    pub(crate) fn new(run: &RunId, tip: &CommitId) -> Self {
        let mut out = MAGIC.to_vec();
        let tip = id_bytes(tip.as_str());
        varint::write(&mut out, tip.len());
        out.extend(tip);
        varint::write(&mut out, run.as_str().len());
        out.extend_from_slice(run.as_str().as_bytes());
        Self { out, records: 0, known: BTreeSet::new(), latest: BTreeMap::new(), omitted: 0 }
    }

    /// Whether the object is in the bundle, or was left out of it.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.known.contains(id)
    }

    /// Adds an object, which is at `path` of a commit.
    pub(crate) fn add(&mut self, id: &str, kind: ObjectKind, path: &[u8], bytes: Rc<Vec<u8>>) {
        if !self.known.insert(id.to_owned()) {
            return;
        }
        let code = match kind {
            ObjectKind::Commit => COMMIT,
            ObjectKind::Tree => TREE,
            ObjectKind::Blob => BLOB,
        };
        let key = LatestKey { kind, path: path.to_vec() };
        let base = self.latest.get(&key).filter(|base| base.deltas < DELTAS_MAX);
        let steps = base.map(|base| delta(&base.bytes, &bytes));
        let (distance, deltas, payload) = match (base, &steps) {
            (Some(base), Some(steps)) if steps.len() < bytes.len() / 2 => {
                (self.records - base.record, base.deltas + 1, steps.as_slice())
            }
            _ => (0, 0, bytes.as_slice()),
        };
        write_record(&mut self.out, code, distance, payload);
        self.latest.insert(key, LatestVersion { record: self.records, bytes, deltas });
        self.records += 1;
    }

    /// Notes that an object is left out because it contains a key.
    pub(crate) fn omit(&mut self, id: &str) {
        if self.known.insert(id.to_owned()) {
            self.add_note(OMITTED, id);
            self.omitted += 1;
        }
    }

    /// Notes that the bytes of a blob are not those of its id.
    pub(crate) fn add_damaged(&mut self, id: &str) {
        self.add_note(DAMAGED, id);
    }

    fn add_note(&mut self, code: u8, id: &str) {
        write_record(&mut self.out, code, 0, &id_bytes(id));
        self.records += 1;
    }

    /// How many objects were left out.
    pub(crate) fn omitted(&self) -> usize {
        self.omitted
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.out
    }
}

fn write_record(out: &mut Vec<u8>, code: u8, distance: usize, payload: &[u8]) {
    out.push(code);
    varint::write(out, distance);
    varint::write(out, payload.len());
    out.extend_from_slice(payload);
}
