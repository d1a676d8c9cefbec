//! The front matter of GOAL.md: finds the id in the YAML, which is never rewritten as a whole.

use std::ops::Range;

use saphyr_parser::{Event as Yaml, Parser as YamlParser, ScalarStyle, Span};

use super::GoalError;
use crate::model::id::RunId;

/// A position where a key can be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeySlot {
    pub(super) at: usize,
    /// Whether the mapping is written in braces.
    pub(super) in_braces: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FrontMatterId {
    /// The position of the value in the file; empty if `id:` has none.
    pub(super) range: Range<usize>,
    pub(super) run: Option<RunId>,
}

/// Finds `id` among the keys, and where a key could be added.
pub(super) fn find_id(
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
        search.event(event, byte_range(keys, keys_at, span))?;
    }
    Ok((search.id, search.slot.unwrap_or(KeySlot { at: keys_at, in_braces: false })))
}

/// The state of the search.
struct IdSearch<'t> {
    text: &'t str,
    depth: usize,
    /// The key whose value comes next.
    key: Option<FrontMatterKey>,
    id: Option<FrontMatterId>,
    slot: Option<KeySlot>,
}

enum FrontMatterKey {
    /// A scalar, and its end in the file.
    Word(String, usize),
    /// A list, a mapping or an alias.
    Other,
}

impl IdSearch<'_> {
    fn line_of(&self, at: usize) -> usize {
        1 + self.text.bytes().take(at).filter(|byte| *byte == b'\n').count()
    }

    fn event(&mut self, event: Yaml<'_>, range: Range<usize>) -> Result<(), GoalError> {
        match event {
            Yaml::MappingStart(..) if self.depth == 0 => {
                let in_braces = self.text.get(..range.end).is_some_and(|before| before.ends_with('{'));
                self.slot.get_or_insert(KeySlot { at: range.end, in_braces });
                self.depth = 1;
            }
            Yaml::SequenceStart(..) | Yaml::Scalar(..) | Yaml::Alias(_) if self.depth == 0 => {
                return Err(GoalError::NotAMapping);
            }
            Yaml::MappingStart(..) | Yaml::SequenceStart(..) => {
                self.node(None, range)?;
                self.depth += 1;
            }
            Yaml::MappingEnd | Yaml::SequenceEnd => self.depth -= 1,
            Yaml::Scalar(word, style, anchor, tag) => {
                // A value with an anchor, a tag or block style cannot be replaced by a plain word.
                let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
                let is_word = self.key.is_none() || (anchor == 0 && tag.is_none() && !is_block);
                self.node(is_word.then_some(&word), range)?;
            }
            Yaml::Alias(_) => self.node(None, range)?,
            Yaml::Nothing
            | Yaml::StreamStart
            | Yaml::StreamEnd
            | Yaml::DocumentStart(_)
            | Yaml::DocumentEnd => {}
        }
        Ok(())
    }

    /// Handles the next key or value, in turn. Nested ones do not matter.
    fn node(&mut self, word: Option<&str>, range: Range<usize>) -> Result<(), GoalError> {
        if self.depth > 1 {
            return Ok(());
        }
        let Some(key) = self.key.take() else {
            self.key = Some(
                word.map_or(FrontMatterKey::Other, |word| FrontMatterKey::Word(word.to_owned(), range.end)),
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
        let word = word.ok_or(GoalError::IdNotAWord(line))?;
        self.id = Some(self.read_id(word, range, key_end, line)?);
        Ok(())
    }
}

impl IdSearch<'_> {
    /// The value of `id`. An empty one, `null` and `~` mean that there is no id yet.
    fn read_id(
        &self,
        word: &str,
        range: Range<usize>,
        key_end: usize,
        line: usize,
    ) -> Result<FrontMatterId, GoalError> {
        let value = self.text.get(range.clone()).unwrap_or_default().trim_end();
        if value.is_empty() {
            // The parser's position of an empty value varies, so find the colon.
            let rest = self.text.get(key_end..).unwrap_or_default();
            let after_colon = rest.trim_start_matches([' ', '\t']).strip_prefix(':');
            let after_colon = after_colon.ok_or(GoalError::IdNotAWord(line))?;
            let at = key_end + rest.len() - after_colon.len();
            return Ok(FrontMatterId { range: at..at, run: None });
        }
        let range = range.start..range.start + value.len();
        if matches!(value, "~" | "null" | "Null" | "NULL") {
            return Ok(FrontMatterId { range, run: None });
        }
        let run = RunId::new(word).map_err(|error| GoalError::BadId { line, id: word.to_owned(), error })?;
        Ok(FrontMatterId { range, run: Some(run) })
    }
}

/// The bytes of a span, which the parser counts in characters.
fn byte_range(keys: &str, keys_at: usize, span: Span) -> Range<usize> {
    let byte = |chars: usize| keys_at + keys.char_indices().nth(chars).map_or(keys.len(), |(at, _)| at);
    byte(span.start.index())..byte(span.end.index())
}
