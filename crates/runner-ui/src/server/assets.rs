//! The built page, embedded in the binary.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::OnceLock;

/// The name and the bytes of every file.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page.rs"));

const INDEX: &str = "index.html";

/// The response in place of the page, if the binary was built without it.
pub(crate) const NO_PAGE: &str = "This binary was built without its page; the API under /api/ works.\n\
    To build it, run `just ui-build` in the source tree, then build runner-ui again.\n";

/// A file of the page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PageFile {
    pub(crate) name: &'static str,
    pub(crate) bytes: &'static [u8],
    pub(crate) kind: &'static str,
}

/// The file at a path. Names are looked up in the table and never used as paths.
pub(crate) fn file(path: &str) -> Option<PageFile> {
    let name = path.strip_prefix('/').unwrap_or(path);
    let name = if name.is_empty() { INDEX } else { name };
    let (name, bytes) = FILES.iter().find(|(known, _)| *known == name)?;
    Some(PageFile { name, bytes, kind: content_type(name) })
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "json" => "application/json",
        "webmanifest" => "application/manifest+json",
        _ => "application/octet-stream",
    }
}

/// A fingerprint of the page, by which an open tab notices a newer build.
pub(crate) fn build() -> &'static str {
    static BUILD: OnceLock<String> = OnceLock::new();
    BUILD.get_or_init(|| {
        let mut hasher = DefaultHasher::new();
        FILES.hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    })
}
