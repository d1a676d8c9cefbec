//! The front matter of GOAL.md: YAML that is looked through and never written anew.

use std::ops::Range;

use saphyr_parser::{Event as Yaml, Parser as YamlParser, ScalarStyle, Span};

use super::GoalError;
use crate::model::id::{IdError, RunId};

/// A place for another key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeySlot {
    pub(super) at: usize,
    /// Whether the keys stand in braces and not on lines of their own.
    pub(super) in_braces: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FrontMatterId {
    /// The value's place in the file; empty where `id:` stands without one.
    pub(super) place: Range<usize>,
    pub(super) run: Option<RunId>,
}

/// Looks through the front matter's keys for `id`: where it stands, and where a key could be added.
pub(super) fn search(
    text: &str,
    keys: &str,
    keys_at: usize,
) -> Result<(Option<FrontMatterId>, KeySlot), GoalError> {
    let mut search = IdSearch { text, depth: 0, key: None, id: None, slot: None };
    for event in YamlParser::new_from_str(keys) {
        let (event, span) = event.map_err(|error| GoalError::Yaml {
            line: search.line_of(keys_at) + error.marker().line().saturating_sub(1),
            what: error.info().to_owned(),
        })?;
        search.take(event, bytes_of(keys, keys_at, span))?;
    }
    Ok((search.id, search.slot.unwrap_or(KeySlot { at: keys_at, in_braces: false })))
}

/// A search for `id` among the front matter's keys, event by event.
struct IdSearch<'t> {
    text: &'t str,
    depth: usize,
    /// The key whose value comes next.
    key: Option<FrontMatterKey>,
    id: Option<FrontMatterId>,
    slot: Option<KeySlot>,
}

enum FrontMatterKey {
    /// A word, and where it ends.
    Word(String, usize),
    /// A list or a mapping, or a word given elsewhere.
    Other,
}

impl IdSearch<'_> {
    fn line_of(&self, at: usize) -> usize {
        1 + self.text.bytes().take(at).filter(|byte| *byte == b'\n').count()
    }

    fn take(&mut self, event: Yaml<'_>, place: Range<usize>) -> Result<(), GoalError> {
        match event {
            Yaml::MappingStart(..) if self.depth == 0 => {
                let in_braces = self.text.get(..place.end).is_some_and(|before| before.ends_with('{'));
                self.slot.get_or_insert(KeySlot { at: place.end, in_braces });
                self.depth = 1;
            }
            Yaml::SequenceStart(..) | Yaml::Scalar(..) | Yaml::Alias(_) if self.depth == 0 => {
                return Err(GoalError::NotAMapping);
            }
            Yaml::MappingStart(..) | Yaml::SequenceStart(..) => {
                self.node(None, place)?;
                self.depth += 1;
            }
            Yaml::MappingEnd | Yaml::SequenceEnd => self.depth -= 1,
            Yaml::Scalar(word, style, anchor, tag) => {
                // A value that is more than its word cannot be exchanged for another word.
                let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                let is_word = self.key.is_none() || (anchor == 0 && tag.is_none() && !is_block);
                self.node(is_word.then_some(&word), place)?;
            }
            Yaml::Alias(_) => self.node(None, place)?,
            Yaml::Nothing
            | Yaml::StreamStart
            | Yaml::StreamEnd
            | Yaml::DocumentStart(_)
            | Yaml::DocumentEnd => {}
        }
        Ok(())
    }

    /// Takes a key or a value, in turn; below the top level there is nothing to look for.
    fn node(&mut self, word: Option<&str>, place: Range<usize>) -> Result<(), GoalError> {
        if self.depth > 1 {
            return Ok(());
        }
        let Some(key) = self.key.take() else {
            self.key = Some(
                word.map_or(FrontMatterKey::Other, |word| FrontMatterKey::Word(word.to_owned(), place.end)),
            );
            return Ok(());
        };
        let FrontMatterKey::Word(name, key_end) = key else { return Ok(()) };
        if name != "id" {
            return Ok(());
        }
        let line = self.line_of(key_end);
        if self.id.is_some() {
            return Err(GoalError::TwoIds(line));
        }
        self.id = Some(read_id(self.text, word, place, key_end).map_err(|fault| match fault {
            Some((id, fault)) => GoalError::BadId { line, id, fault },
            None => GoalError::IdNotAWord(line),
        })?);
        Ok(())
    }
}

/// The parser counts characters; files are cut by bytes.
fn bytes_of(keys: &str, keys_at: usize, span: Span) -> Range<usize> {
    let byte = |chars: usize| keys_at + keys.char_indices().nth(chars).map_or(keys.len(), |(at, _)| at);
    byte(span.start.index())..byte(span.end.index())
}

/// An id's value: nothing, `null` and `~` mean that there is none yet. What is no word has no fault of its own.
fn read_id(
    text: &str,
    word: Option<&str>,
    place: Range<usize>,
    key_end: usize,
) -> Result<FrontMatterId, Option<(String, IdError)>> {
    let word = word.ok_or(None)?;
    let written = text.get(place.clone()).unwrap_or_default().trim_end();
    if written.is_empty() {
        // Right after the colon, wherever the parser puts a value that is not there.
        let behind = text.get(key_end..).unwrap_or_default();
        let value = behind.trim_start_matches([' ', '\t']).strip_prefix(':').ok_or(None)?;
        let colon = key_end + behind.len() - value.len();
        return Ok(FrontMatterId { place: colon..colon, run: None });
    }
    let place = place.start..place.start + written.len();
    if matches!(written, "~" | "null" | "Null" | "NULL") {
        return Ok(FrontMatterId { place, run: None });
    }
    let run = RunId::new(word).map_err(|fault| Some((word.to_owned(), fault)))?;
    Ok(FrontMatterId { place, run: Some(run) })
}
