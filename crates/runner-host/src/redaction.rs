//! Keys are replaced where output is first written: nothing of a key is in a log, a commit, a prompt, a page or an export.
//!
//! The values are those of this process's environment, from which agents, guards and hooks inherit theirs, and those that a session
//! gets from the configuration and from the files of its login.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{LazyLock, PoisonError, RwLock};

use runner_core::redact::{RedactedStream, Redactor, is_key_name};
use supervise::OutputFilter;

static KEYS: LazyLock<RwLock<KnownKeys>> = LazyLock::new(|| {
    let environment = std::env::vars_os().filter(|(name, value)| {
        // A variable such as GOOGLE_APPLICATION_CREDENTIALS has the path of a key, which is no secret.
        let path = Path::new(value);
        is_key_name(&name.to_string_lossy()) && !(path.is_absolute() && path.exists())
    });
    let values =
        environment.map(|(name, value)| (value.as_bytes().to_vec(), name.to_string_lossy().into_owned()));
    RwLock::new(KnownKeys::new(values.collect()))
});

struct KnownKeys {
    /// Where each value is from, by value.
    values: BTreeMap<Vec<u8>, String>,
    redactor: Redactor,
}

impl KnownKeys {
    fn new(values: BTreeMap<Vec<u8>, String>) -> Self {
        let redactor = Redactor::with_keys(values.iter().map(|(value, name)| (name, value)));
        Self { values, redactor }
    }
}

/// A key that a session gets.
#[derive(Clone, Debug)]
pub(crate) struct SessionKey {
    /// The variable or the file that has it.
    pub(crate) source: String,
    pub(crate) value: Vec<u8>,
}

/// Finds the keys of this process's environment and those that were added, and the known forms of keys.
pub fn redactor() -> Redactor {
    KEYS.read().unwrap_or_else(PoisonError::into_inner).redactor.clone()
}

/// Makes keys known that a session will have, before it starts.
pub(crate) fn add_keys(keys: Vec<SessionKey>) {
    let mut known = KEYS.write().unwrap_or_else(PoisonError::into_inner);
    let mut values = known.values.clone();
    for SessionKey { source, value } in keys {
        values.entry(value).or_insert(source);
    }
    if values.len() > known.values.len() {
        *known = KnownKeys::new(values);
    }
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
