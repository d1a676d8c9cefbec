//! Reads the objects of a repository for an audit, and writes each one that the audit reads into a bundle. So the bundle has
//! what the audit needs, and nothing else.

use std::rc::Rc;

use runner_core::model::id::RunId;
use runner_core::model::object_id::CommitId;

use crate::bundle_writer::BundleWriter;
use crate::git_object::{ObjectKind, object_id};
use crate::object_audit::{AuditReport, ObjectAudit};
use crate::object_source::{ObjectError, ObjectReader};
use crate::recent_objects::RecentObjects;

/// The objects of a repository.
pub trait ObjectStore {
    /// The bytes of an object; none if the repository does not have it.
    fn fetch(&mut self, id: &str) -> Result<Option<Vec<u8>>, ObjectError>;

    /// Whether the bytes contain a key, which must not leave this machine.
    fn has_key(&self, bytes: &[u8]) -> bool;
}

/// The objects of a run, and what their audit came to.
#[derive(Debug)]
pub struct RecordedBundle {
    pub bytes: Vec<u8>,
    /// How many objects were left out because they contain a key.
    pub omitted: usize,
    pub report: AuditReport,
}

/// Audits a run and collects what that reads.
pub fn record<S: ObjectStore>(store: S, run: &RunId, tip: &CommitId) -> Result<RecordedBundle, ObjectError> {
    let reader = RecordingReader {
        store,
        writer: BundleWriter::new(run, tip),
        digits: tip.as_str().len(),
        recent: RecentObjects::default(),
    };
    let mut audit = ObjectAudit::new(reader, run, tip);
    while audit.step() {}
    if let Some(error) = audit.failure() {
        return Err(error.clone());
    }
    let (report, reader) = audit.finish();
    Ok(RecordedBundle { omitted: reader.writer.omitted(), bytes: reader.writer.finish(), report })
}

struct RecordingReader<S> {
    store: S,
    writer: BundleWriter,
    digits: usize,
    recent: RecentObjects<String>,
}

impl<S: ObjectStore> ObjectReader for RecordingReader<S> {
    fn read(&mut self, id: &str, kind: ObjectKind, path: &[u8]) -> Result<Option<Rc<Vec<u8>>>, ObjectError> {
        if let Some(known) = self.recent.get(&id.to_owned()) {
            return Ok(Some(known));
        }
        let Some(bytes) = self.store.fetch(id)? else { return Ok(None) };
        let bytes = self.recent.insert(id.to_owned(), bytes);
        if !self.writer.has(id) {
            if self.store.has_key(&bytes) {
                self.writer.omit(id);
            } else {
                self.writer.add(id, kind, path, Rc::clone(&bytes));
            }
        }
        Ok(Some(bytes))
    }

    fn is_intact(&mut self, id: &str) -> Result<bool, ObjectError> {
        let known = self.recent.get(&id.to_owned());
        let bytes = match known {
            Some(known) => Some(known),
            None => self.store.fetch(id)?.map(Rc::new),
        };
        let is_intact =
            bytes.is_none_or(|bytes| object_id(ObjectKind::Blob.as_str(), &bytes, self.digits) == id);
        if !is_intact {
            self.writer.add_damaged(id);
        }
        Ok(is_intact)
    }
}
