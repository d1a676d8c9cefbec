//! The audit of a run from git objects alone: in a bundle inside an exported file, or read from a repository to write that
//! bundle.
//!
//! `runner verify` asks git for differences, matching paths and files of a commit. Here they are computed from the objects, so
//! that the audit runs wherever this crate does: compiled to WebAssembly, in a browser. The rules are those of
//! [`runner_core::verify`] in both cases.

#[cfg(target_arch = "wasm32")]
mod browser_interface;
mod bundle;
mod bundle_audit;
mod bundle_writer;
mod delta;
mod git_object;
mod object_audit;
mod object_source;
mod path_pattern;
mod recent_objects;
mod recording;
mod varint;

pub use bundle_audit::{AuditProgress, BundleAudit};
pub use object_audit::{AuditReport, AuditedIteration, ReportedFinding};
pub use object_source::ObjectError;
pub use recording::{ObjectStore, RecordedBundle, record};

/// The module that runs this audit in a browser: WebAssembly, compressed with gzip. `just wasm-build` builds it.
#[cfg(not(target_arch = "wasm32"))]
pub const WASM_MODULE: &[u8] = include_bytes!("../wasm/audit.wasm.gz");
