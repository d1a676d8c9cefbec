//! The built page, carried in the binary.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;

/// Name and bytes of every file.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page.rs"));

const INDEX: &str = "index.html";

/// What is shown where a page should be, if the binary was built without one.
pub(crate) const WITHOUT: &str = "This binary was built without its page; the API under /api/ works.\n\
    To get the page, run `just ui-build` in the sources and build again.\n";

/// A file of the page and its type. Only names in the table are found: no name is ever a path.
pub(crate) fn file(path: &str) -> Option<(&'static [u8], &'static str)> {
    let name = path.strip_prefix('/').unwrap_or(path);
    let name = if name.is_empty() { INDEX } else { name };
    let (name, bytes) = FILES.iter().find(|(known, _)| *known == name)?;
    Some((bytes, type_of(name)))
}

fn type_of(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "json" | "webmanifest" => "application/json",
        _ => "application/octet-stream",
    }
}

/// A fingerprint of the page, so that a tab with another one can tell.
pub(crate) fn build() -> &'static str {
    static BUILD: OnceLock<String> = OnceLock::new();
    BUILD.get_or_init(|| {
        let mut hasher = DefaultHasher::new();
        FILES.hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    })
}
