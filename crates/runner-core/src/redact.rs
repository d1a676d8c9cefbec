//! Replaces keys in text: values of environment variables that are named like keys, and the known forms of keys of clouds, git
//! hosts, model providers and others.
//!
//! The host applies it where output is first written, so that no log, commit, prompt or page has a key. It finds what it
//! knows: a key that a program encrypts or prints in an order of its own is not found, and neither is a short or simple password.

mod encodings;
mod environment;
mod forms;
mod pieces;
mod stream;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Anchored, Input, MatchKind};

pub use environment::{is_key_name, keys_in_login_file};
pub use stream::RedactedStream;

use forms::{FORMS, KeyForm};

/// What a key is replaced by. It is valid inside of a JSON string.
pub const REDACTED: &str = "[redacted]";

/// Finds keys in text.
#[derive(Clone, Debug)]
pub struct Redactor {
    inner: Arc<KeyIndex>,
}

#[derive(Debug)]
struct KeyIndex {
    values: Vec<KeyValue>,
    /// The indexes of the values that begin with each byte, and of the forms.
    values_by_byte: Vec<Vec<usize>>,
    forms_by_byte: Vec<Vec<usize>>,
    /// Finds the beginning of every value and of every form. None only if it could not be built.
    automaton: Option<AhoCorasick>,
}

/// The value of an environment variable, in one of its spellings.
#[derive(Debug)]
struct KeyValue {
    name: String,
    bytes: Vec<u8>,
    /// Whether it is so long and mixed that other text cannot have it by chance.
    is_unmistakable: bool,
}

/// A key in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct FoundKey {
    start: usize,
    end: usize,
    kind: KeyKind,
}

/// How sure it is that a text is a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyKind {
    /// The value of the variable with this index.
    Value(usize),
    /// A form that keys have and other text does not.
    Form,
    /// A form that also examples and test data have.
    LikelyForm,
}

/// What the files of a session contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileKey {
    /// The value of this environment variable, which other text cannot have by chance.
    OfEnvironment { variable: String },
    /// Text that looks like a key.
    Likely,
}

/// Whether a key begins at one position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyMatch {
    No,
    Key {
        start: usize,
        end: usize,
    },
    /// Perhaps: the text ends too early.
    NeedsMore,
}

/// Where a search stops.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Search {
    Found(FoundKey),
    /// No key before this position; from there on, more text is needed.
    Clear(usize),
}

/// Whether more text may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TextEnd {
    Final,
    More,
}

impl Redactor {
    /// Finds the known forms, and the values of those of these variables that are named like keys.
    pub fn new<N: AsRef<str>, V: AsRef<[u8]>>(environment: impl IntoIterator<Item = (N, V)>) -> Self {
        Self::with_keys(environment.into_iter().filter(|(name, _)| is_key_name(name.as_ref())))
    }

    /// Finds the known forms, and these values, whatever their names are.
    pub fn with_keys<N: AsRef<str>, V: AsRef<[u8]>>(keys: impl IntoIterator<Item = (N, V)>) -> Self {
        let mut values: Vec<KeyValue> = Vec::new();
        for (name, value) in keys {
            values.extend(environment::spellings(name.as_ref(), value.as_ref()));
        }
        let beginnings = values.iter().map(|value| head_of(&value.bytes));
        let beginnings = beginnings.chain(FORMS.iter().map(|form| head_of(form.prefix.as_bytes())));
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostFirst)
            .kind(Some(AhoCorasickKind::DFA))
            .build(beginnings.collect::<BTreeSet<_>>());
        let values_by_byte = by_first_byte(values.iter().map(|value| value.bytes.as_slice()));
        let forms_by_byte = by_first_byte(FORMS.iter().map(|form| form.prefix.as_bytes()));
        let index = KeyIndex { values, values_by_byte, forms_by_byte, automaton: automaton.ok() };
        Self { inner: Arc::new(index) }
    }

    /// A text without its keys.
    pub fn redact<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        self.redact_new(text, &[])
    }

    /// A text without its keys, except for those that `known` has too: they are no secret any more.
    pub fn redact_new<'t>(&self, text: &'t [u8], known: &[u8]) -> Cow<'t, [u8]> {
        let mut redacted: Option<Vec<u8>> = None;
        let mut copied = 0;
        for key in self.keys(text) {
            let bytes = text.get(key.start..key.end).unwrap_or_default();
            if contains(known, bytes) {
                continue;
            }
            let out = redacted.get_or_insert_default();
            out.extend_from_slice(text.get(copied..key.start).unwrap_or_default());
            out.extend_from_slice(REDACTED.as_bytes());
            copied = key.end;
        }
        match redacted {
            None => Cow::Borrowed(text),
            Some(mut out) => {
                out.extend_from_slice(text.get(copied..).unwrap_or_default());
                Cow::Owned(out)
            }
        }
    }

    /// A text without its keys.
    pub fn redact_text(&self, text: &str) -> String {
        String::from_utf8_lossy(&self.redact(text.as_bytes())).into_owned()
    }

    /// The surest key in the content of a file that `known`, its earlier content, does not have. Also in UTF-16, as far as the
    /// key has only ASCII characters.
    pub fn key_in_file(&self, content: &[u8], known: impl Fn() -> Vec<u8>) -> Option<FileKey> {
        let narrow = |content: &[u8]| content.iter().copied().filter(|byte| *byte != 0).collect::<Vec<u8>>();
        let is_wide = content.iter().filter(|byte| **byte == 0).count() > content.len() / 4;
        let wide = || is_wide.then(|| self.key_in_text(&narrow(content), || narrow(&known()))).flatten();
        match self.key_in_text(content, &known) {
            key @ Some(FileKey::OfEnvironment { .. }) => key,
            key @ (Some(FileKey::Likely) | None) => wide().or(key),
        }
    }

    fn key_in_text(&self, content: &[u8], known: impl FnOnce() -> Vec<u8>) -> Option<FileKey> {
        let mut keys = self.keys(content).filter(|key| key.kind != KeyKind::LikelyForm).peekable();
        keys.peek()?;
        let known = known();
        let mut result = None;
        for key in keys {
            let bytes = content.get(key.start..key.end).unwrap_or_default();
            if contains(&known, bytes) {
                continue;
            }
            if let KeyKind::Value(index) = key.kind
                && let Some(value) = self.inner.values.get(index).filter(|value| value.is_unmistakable)
            {
                return Some(FileKey::OfEnvironment { variable: value.name.clone() });
            }
            result = Some(FileKey::Likely);
        }
        result
    }

    /// Redacts output that arrives in pieces.
    pub fn stream(&self) -> RedactedStream {
        RedactedStream::new(self.clone())
    }

    /// All keys of a whole text.
    fn keys<'t>(&'t self, text: &'t [u8]) -> impl Iterator<Item = FoundKey> + 't {
        let mut at = 0;
        std::iter::from_fn(move || match self.next_key(text, at, TextEnd::Final) {
            Search::Found(key) => {
                at = key.end;
                Some(key)
            }
            Search::Clear(_) => None,
        })
    }

    /// The first key from a position on.
    fn next_key(&self, text: &[u8], from: usize, end: TextEnd) -> Search {
        let mut at = from;
        while let Some(start) = self.candidate(text, at) {
            let (look, kind) = self.look_at(text, start, end);
            match look {
                KeyMatch::Key { start, end } => return Search::Found(FoundKey { start, end, kind }),
                KeyMatch::NeedsMore => return Search::Clear(start),
                KeyMatch::No => at = start + 1,
            }
        }
        match end {
            TextEnd::Final => Search::Clear(text.len()),
            TextEnd::More => Search::Clear(self.unfinished(text, at)),
        }
    }

    /// The next position at which a value or a form begins.
    fn candidate(&self, text: &[u8], from: usize) -> Option<usize> {
        let automaton = self.inner.automaton.as_ref()?;
        let input = Input::new(text).anchored(Anchored::No).range(from.min(text.len())..);
        automaton.find(input).map(|found| found.start())
    }

    /// The longest key that begins at a position.
    fn look_at(&self, text: &[u8], at: usize, end: TextEnd) -> (KeyMatch, KeyKind) {
        let rest = text.get(at..).unwrap_or_default();
        let mut longest: Option<FoundKey> = None;
        let mut add = |key: FoundKey| {
            if longest.as_ref().is_none_or(|before| key.end > before.end) {
                longest = Some(key);
            }
        };
        let first = rest.first().map_or(0, |byte| usize::from(*byte));
        for index in self.inner.values_by_byte.get(first).into_iter().flatten().copied() {
            let kind = KeyKind::Value(index);
            let Some(value) = self.inner.values.get(index) else { continue };
            if rest.starts_with(&value.bytes) {
                add(FoundKey { start: at, end: at + value.bytes.len(), kind });
            } else if end == TextEnd::More && value.bytes.starts_with(rest) {
                return (KeyMatch::NeedsMore, kind);
            }
        }
        let forms = self.inner.forms_by_byte.get(first).into_iter().flatten();
        let forms = forms.filter_map(|index| FORMS.get(*index));
        for form in forms {
            let prefix = form.prefix.as_bytes();
            let kind = if form.is_certain { KeyKind::Form } else { KeyKind::LikelyForm };
            if !rest.starts_with(prefix) {
                if end == TextEnd::More && prefix.starts_with(rest) {
                    return (KeyMatch::NeedsMore, kind);
                }
                continue;
            }
            match form.look(text, at, end) {
                KeyMatch::Key { start, end } => add(FoundKey { start, end, kind }),
                KeyMatch::NeedsMore => return (KeyMatch::NeedsMore, kind),
                KeyMatch::No => {}
            }
        }
        match longest {
            Some(FoundKey { start, end, kind }) => (KeyMatch::Key { start, end }, kind),
            None => (KeyMatch::No, KeyKind::Form),
        }
    }

    /// Where the end of a text begins that could be the beginning of a value or of a form.
    fn unfinished(&self, text: &[u8], from: usize) -> usize {
        let available = text.len().saturating_sub(from);
        let values = self.inner.values.iter().map(|value| value.bytes.as_slice());
        let patterns = values.chain(FORMS.iter().map(|form: &KeyForm| form.prefix.as_bytes()));
        let overlap = |pattern: &[u8]| {
            let longest = pattern.len().saturating_sub(1).min(available);
            let is_overlap = |length: &usize| pattern.get(..*length).is_some_and(|head| text.ends_with(head));
            (1..=longest).rev().find(is_overlap).unwrap_or(0)
        };
        text.len() - patterns.map(overlap).max().unwrap_or(0)
    }
}

/// The first bytes of a value or of a prefix, which are enough to look closer. The automaton stays small with them.
fn head_of(pattern: &[u8]) -> &[u8] {
    const HEAD_BYTES: usize = 4;
    pattern.get(..HEAD_BYTES).unwrap_or(pattern)
}

/// The indexes of patterns, by their first byte.
fn by_first_byte<'p>(patterns: impl Iterator<Item = &'p [u8]>) -> Vec<Vec<usize>> {
    let mut indexes = vec![Vec::new(); 256];
    for (index, pattern) in patterns.enumerate() {
        let first = pattern.first().map(|byte| usize::from(*byte));
        if let Some(list) = first.and_then(|first| indexes.get_mut(first)) {
            list.push(index);
        }
    }
    indexes
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    !part.is_empty() && text.len() >= part.len() && text.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests;
