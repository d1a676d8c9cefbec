//! Redacts output that arrives in pieces. A key that is cut anywhere between two pieces is found: the end of a piece that could
//! be the beginning of a key waits for the next one.

use super::{REDACTED, Redactor, Search, TextEnd};

/// The most that waits for more output. Of a longer text that could still be a key, the beginning is passed on.
const WAITING_BYTES_MAX: usize = 128 << 10;

/// One stream of output.
#[derive(Debug)]
pub struct RedactedStream {
    redactor: Redactor,
    /// The end of the output so far, which could be the beginning of a key.
    waiting: Vec<u8>,
    /// The bytes before `waiting`, for forms that begin at a word.
    context: Vec<u8>,
}

/// The most bytes before a key that decide whether a word begins there.
const CONTEXT_BYTES: usize = 16;

impl RedactedStream {
    pub(super) fn new(redactor: Redactor) -> Self {
        Self { redactor, waiting: Vec::new(), context: Vec::new() }
    }

    /// Adds a piece of output, and appends what is certain by now to `out`.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.scan(bytes, TextEnd::More, out);
    }

    /// Appends what was still waiting to `out`: the output has ended.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        self.scan(&[], TextEnd::Final, out);
    }

    #[cfg(test)]
    pub(super) fn waiting_bytes(&self) -> usize {
        self.waiting.len()
    }

    fn scan(&mut self, bytes: &[u8], end: TextEnd, out: &mut Vec<u8>) {
        let before = self.context.len();
        let mut text = std::mem::take(&mut self.context);
        text.append(&mut self.waiting);
        text.extend_from_slice(bytes);
        let mut at = before;
        let clear = loop {
            match self.redactor.next_key(&text, at, end) {
                Search::Found(key) => {
                    out.extend_from_slice(text.get(at..key.start).unwrap_or_default());
                    out.extend_from_slice(REDACTED.as_bytes());
                    at = key.end;
                }
                Search::Clear(clear) => break clear.max(at),
            }
        };
        let clear = clear.max(text.len().saturating_sub(WAITING_BYTES_MAX)).max(at);
        out.extend_from_slice(text.get(at..clear).unwrap_or_default());
        self.waiting = text.split_off(clear);
        self.context = text.split_off(clear.saturating_sub(CONTEXT_BYTES));
    }
}
