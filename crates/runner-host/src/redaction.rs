//! Keys are replaced where output is first written: nothing of a key is in a log, a commit, a prompt, a page or an export.
//!
//! The values are those of this process's environment, from which agents, guards and hooks inherit theirs.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::LazyLock;

use runner_core::redact::{RedactedStream, Redactor};
use supervise::OutputFilter;

static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| {
    let environment = std::env::vars_os().filter(|(_, value)| {
        // A variable such as GOOGLE_APPLICATION_CREDENTIALS has the path of a key, which is no secret.
        let path = Path::new(value);
        !(path.is_absolute() && path.exists())
    });
    let pairs =
        environment.map(|(name, value)| (name.to_string_lossy().into_owned(), value.as_bytes().to_vec()));
    Redactor::new(pairs.collect::<Vec<_>>())
});

/// Finds the keys of this process's environment, and the known forms of keys.
pub fn redactor() -> &'static Redactor {
    &REDACTOR
}

struct KeyFilter(RedactedStream);

impl OutputFilter for KeyFilter {
    fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.0.push(bytes, out);
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        self.0.finish(out);
    }
}

/// The filter for the output of every program that is not the runner's own.
pub fn output_filter() -> Box<dyn OutputFilter> {
    Box::new(KeyFilter(redactor().stream()))
}
