//! The audit of a bundle, in small steps, so that a page can draw between them.

use crate::bundle::Bundle;
use crate::object_audit::{AuditReport, ObjectAudit};

/// How many bytes one step hashes.
const INDEX_BYTES: usize = 1 << 20;

/// How far an audit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditProgress {
    pub done: usize,
    pub total: usize,
}

/// A bundle whose ids are computed first, and whose commits are checked then.
#[derive(Debug)]
pub struct BundleAudit {
    stage: AuditStage,
}

#[derive(Debug)]
enum AuditStage {
    Indexing(Box<Bundle>),
    Checking(Box<ObjectAudit<Bundle>>),
    Finished(Box<AuditReport>),
    /// While one stage becomes the next; never seen from outside.
    Changing,
}

impl BundleAudit {
    /// Opens a bundle; none if the bytes are not one.
    pub fn open(bytes: Vec<u8>) -> Option<Self> {
        Some(Self { stage: AuditStage::Indexing(Box::new(Bundle::open(bytes)?)) })
    }

    /// Continues; false when the report is there.
    pub fn step(&mut self) -> bool {
        self.stage = match std::mem::replace(&mut self.stage, AuditStage::Changing) {
            AuditStage::Indexing(mut bundle) => {
                if bundle.index_more(INDEX_BYTES) {
                    AuditStage::Indexing(bundle)
                } else {
                    let (run, tip) = (bundle.run().clone(), bundle.tip().clone());
                    AuditStage::Checking(Box::new(ObjectAudit::new(*bundle, &run, &tip)))
                }
            }
            AuditStage::Checking(mut audit) => {
                if audit.step() {
                    AuditStage::Checking(audit)
                } else {
                    AuditStage::Finished(Box::new(audit.finish().0))
                }
            }
            last @ (AuditStage::Finished(_) | AuditStage::Changing) => last,
        };
        self.report().is_none()
    }

    pub fn progress(&self) -> AuditProgress {
        match &self.stage {
            AuditStage::Indexing(bundle) => AuditProgress { done: bundle.indexed(), total: bundle.records() },
            AuditStage::Checking(audit) => AuditProgress { done: audit.checked(), total: audit.commits() },
            AuditStage::Finished(report) => AuditProgress { done: report.commits, total: report.commits },
            AuditStage::Changing => AuditProgress { done: 0, total: 0 },
        }
    }

    pub fn report(&self) -> Option<&AuditReport> {
        match &self.stage {
            AuditStage::Finished(report) => Some(report),
            AuditStage::Indexing(_) | AuditStage::Checking(_) | AuditStage::Changing => None,
        }
    }

    /// The report of the whole bundle at once.
    pub fn run(mut self) -> Option<AuditReport> {
        while self.step() {}
        match self.stage {
            AuditStage::Finished(report) => Some(*report),
            AuditStage::Indexing(_) | AuditStage::Checking(_) | AuditStage::Changing => None,
        }
    }
}
