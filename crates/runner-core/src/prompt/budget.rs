//! Fits the sections into the budget: all are shortened, then some dropped, in a fixed order, and each cut is recorded.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PromptSection;
use crate::text::{head, tail};

/// A shortened section keeps at least this many bytes; with less it would be useless.
const SHRUNK_BYTES_MIN: usize = 256;
/// Room for the line that counts the missing bytes.
const NOTE_BYTES_MAX: usize = 48;

/// Sections that are shortened and then dropped, in this order.
const DROPPED: [PromptSection; 10] = [
    PromptSection::Outline,
    PromptSection::Artifacts,
    PromptSection::Assumptions,
    PromptSection::Questions,
    PromptSection::Improvements,
    PromptSection::Feedback,
    PromptSection::History,
    PromptSection::Failure,
    PromptSection::Context,
    PromptSection::Instructions,
];
/// Sections that are never dropped, and are shortened only if all of the above are gone.
const SHRUNK: [PromptSection; 7] = [
    PromptSection::Rejected,
    PromptSection::Errors,
    PromptSection::Notes,
    PromptSection::Node,
    PromptSection::Project,
    PromptSection::Goal,
    PromptSection::Path,
];

/// What was cut from one section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SectionCut {
    pub section: PromptSection,
    /// The missing bytes of its text.
    pub bytes: usize,
    /// Whether the whole section is missing.
    pub dropped: bool,
}

impl fmt::Display for SectionCut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.section.name();
        if self.dropped {
            write!(f, "{name}: omitted, {} bytes", self.bytes)
        } else {
            write!(f, "{name}: {} bytes omitted", self.bytes)
        }
    }
}

/// A section before the prompt is assembled.
pub(super) struct SectionText {
    pub(super) section: PromptSection,
    /// The text that may be cut; none for a fixed section.
    pub(super) text: Option<String>,
    pub(super) rendered: String,
    pub(super) cut: Option<SectionCut>,
}

/// Cuts sections until all of them, with a note about the cuts, fit into the budget. Returns the bytes by which they still exceed
/// it.
pub(super) fn fit<E>(
    parts: &mut [SectionText],
    budget: usize,
    note: impl Fn(&[SectionCut]) -> Result<String, E>,
    render: impl Fn(PromptSection, &str) -> Result<String, E>,
) -> Result<usize, E> {
    let total = |parts: &[SectionText]| parts.iter().map(|part| part.rendered.len()).sum::<usize>();
    if total(parts) <= budget {
        return Ok(0);
    }
    // Reserve room for the longest possible note, so that one pass is enough.
    let longest = parts.iter().filter_map(|part| {
        let bytes = part.text.as_ref()?.len();
        Some(SectionCut { section: part.section, bytes, dropped: true })
    });
    let note_bytes = note(&longest.collect::<Vec<_>>())?.len();
    let shorten = DROPPED.into_iter().map(|section| (section, CutKind::Shorten));
    let drop = DROPPED.into_iter().map(|section| (section, CutKind::Drop));
    let last = SHRUNK.into_iter().map(|section| (section, CutKind::Shorten));
    for (section, kind) in shorten.chain(drop).chain(last) {
        let excess = (total(parts) + note_bytes).saturating_sub(budget);
        let part = parts.iter_mut().find(|part| part.section == section);
        if let Some(part) = part.filter(|_| excess > 0) {
            match kind {
                CutKind::Shorten => cut(part, excess, &render)?,
                CutKind::Drop => part.drop(),
            }
        }
    }
    Ok((total(parts) + note_bytes).saturating_sub(budget))
}

/// A section is shortened before any is dropped: a short one that says much must not go for the sake of a long one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CutKind {
    Shorten,
    Drop,
}

impl SectionText {
    fn drop(&mut self) {
        let bytes = self.text.as_ref().map_or(0, String::len);
        if bytes > 0 {
            self.cut = Some(SectionCut { section: self.section, bytes, dropped: true });
            self.rendered.clear();
        }
    }
}

/// Cuts `excess` bytes from a section, or as many as possible without dropping it.
fn cut<E>(
    part: &mut SectionText,
    excess: usize,
    render: &impl Fn(PromptSection, &str) -> Result<String, E>,
) -> Result<(), E> {
    let Some(text) = part.text.as_deref() else { return Ok(()) };
    let room = text.len().saturating_sub(excess + NOTE_BYTES_MAX).max(SHRUNK_BYTES_MIN);
    if text.len() <= room + NOTE_BYTES_MAX {
        return Ok(());
    }
    let (shortened, bytes) = shorten(part.section, text, room);
    part.rendered = render(part.section, &shortened)?;
    part.cut = Some(SectionCut { section: part.section, bytes, dropped: false });
    Ok(())
}

/// Files that grow at the end keep their end, because the newest entries matter most; all others keep their beginning.
fn shorten(section: PromptSection, text: &str, room: usize) -> (String, usize) {
    let (keeps_end, kept) = match section {
        PromptSection::Notes
        | PromptSection::Assumptions
        | PromptSection::Questions
        | PromptSection::Feedback
        | PromptSection::Improvements
        | PromptSection::Failure => (true, tail(text, room)),
        PromptSection::Contract
        | PromptSection::Project
        | PromptSection::Instructions
        | PromptSection::Goal
        | PromptSection::History
        | PromptSection::Path
        | PromptSection::Node
        | PromptSection::Checks
        | PromptSection::Errors
        | PromptSection::Rejected
        | PromptSection::Outline
        | PromptSection::Context
        | PromptSection::Artifacts
        | PromptSection::Output => (false, head(text, room)),
    };
    let bytes = text.len() - kept.len();
    let note = format!("[{bytes} bytes omitted]");
    (if keeps_end { format!("{note}\n{kept}") } else { format!("{kept}\n{note}") }, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(section: PromptSection, bytes: usize) -> SectionText {
        let text = "x".repeat(bytes);
        SectionText { section, text: Some(text.clone()), rendered: text, cut: None }
    }

    /// Fits parts whose templates add nothing, with a note of `note` bytes.
    fn fitted(parts: &mut [SectionText], budget: usize, note: usize) -> usize {
        let render = |_: PromptSection, text: &str| Ok::<_, ()>(text.to_owned());
        fit(parts, budget, |_| Ok("n".repeat(note)), render).unwrap()
    }

    /// The cut of a section that should lose `over` bytes.
    fn cut_by(section: PromptSection, bytes: usize, over: usize) -> Option<SectionCut> {
        let mut part = part(section, bytes);
        cut(&mut part, over, &|_, text: &str| Ok::<_, ()>(text.to_owned())).unwrap();
        part.cut
    }

    #[test]
    fn the_newest_text_is_kept() {
        let text = "a".repeat(500) + &"z".repeat(500);
        let end = "z".repeat(400);
        let beginning = "a".repeat(400);
        let cases = [
            (PromptSection::Feedback, format!("[600 bytes omitted]\n{end}")),
            (PromptSection::Failure, format!("[600 bytes omitted]\n{end}")),
            (PromptSection::Goal, format!("{beginning}\n[600 bytes omitted]")),
            (PromptSection::History, format!("{beginning}\n[600 bytes omitted]")),
        ];
        for (section, shortened) in cases {
            assert_eq!(shorten(section, &text, 400), (shortened, 600), "{section:?}");
        }
    }

    #[test]
    fn room_is_reserved_for_the_note() {
        let mut parts = [part(PromptSection::Outline, 1000), part(PromptSection::Goal, 1000)];
        assert_eq!(fitted(&mut parts, 1500, 100), 0);
        let [outline, goal] = &parts;
        assert_eq!(
            outline.cut,
            Some(SectionCut { section: PromptSection::Outline, bytes: 648, dropped: false })
        );
        assert_eq!((goal.cut, goal.rendered.len()), (None, 1000));
    }

    #[test]
    fn the_remaining_excess_is_returned() {
        let mut parts = [part(PromptSection::Outline, 1000), part(PromptSection::Goal, 300)];
        assert_eq!(fitted(&mut parts, 350, 100), 50);
        assert!(matches!(parts[0].cut, Some(SectionCut { dropped: true, bytes: 1000, .. })));
        assert_eq!(parts[1].rendered.len(), 300);
    }

    #[test]
    fn sections_are_dropped_only_if_shortening_all_of_them_is_not_enough() {
        let outline = |bytes, dropped| Some(SectionCut { section: PromptSection::Outline, bytes, dropped });
        let parts = || [part(PromptSection::Outline, 1000), part(PromptSection::Feedback, 1000)];
        let least = 2 * (SHRUNK_BYTES_MIN + NOTE_BYTES_MAX);
        let mut shortened = parts();
        assert_eq!(fitted(&mut shortened, least, 0), 0);
        assert_eq!(shortened[0].cut, outline(1000 - SHRUNK_BYTES_MIN, false));
        let mut dropped = parts();
        assert_eq!(fitted(&mut dropped, SHRUNK_BYTES_MIN + NOTE_BYTES_MAX, 0), 0);
        assert_eq!(dropped[0].cut, outline(1000, true));
        assert!(dropped[1].cut.is_some_and(|cut| !cut.dropped));
    }

    #[test]
    fn a_section_is_not_cut_by_less_than_its_note_takes() {
        let least = SHRUNK_BYTES_MIN + NOTE_BYTES_MAX;
        assert_eq!(cut_by(PromptSection::Goal, least, 5000), None);
        let goal = SectionCut { section: PromptSection::Goal, bytes: NOTE_BYTES_MAX + 1, dropped: false };
        assert_eq!(cut_by(PromptSection::Goal, least + 1, 5000), Some(goal));
    }
}
