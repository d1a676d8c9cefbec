//! Fitting the sections into the budget: they shrink, then drop, in a fixed order, and it is said.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::PromptSection;
use crate::text::{head, tail};

/// A section that is shrunk keeps at least this much of its text; with less it would say nothing.
const SHRUNK_BYTES_MIN: usize = 256;
/// Room for the line that says how much is missing.
const MARK_BYTES_MAX: usize = 48;

/// Sections that shrink and then drop, the first first.
const DROPPED: [PromptSection; 9] = [
    PromptSection::Outline,
    PromptSection::Artifacts,
    PromptSection::Assumptions,
    PromptSection::Questions,
    PromptSection::Improvements,
    PromptSection::Feedback,
    PromptSection::History,
    PromptSection::Failure,
    PromptSection::Context,
];
/// Sections that are never dropped, and shrink only when all of the above is gone.
const SHRUNK: [PromptSection; 6] = [
    PromptSection::Rejected,
    PromptSection::Errors,
    PromptSection::Node,
    PromptSection::Project,
    PromptSection::Goal,
    PromptSection::Path,
];

/// What was cut from one section.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SectionCut {
    /// The section.
    pub section: PromptSection,
    /// How many bytes of its text are missing.
    pub bytes: usize,
    /// Whether the section is gone altogether.
    pub dropped: bool,
}

impl fmt::Display for SectionCut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.section.name();
        match self.dropped {
            true => write!(f, "{name}: left out, {} bytes", self.bytes),
            false => write!(f, "{name}: {} bytes left out", self.bytes),
        }
    }
}

/// A section on its way into the prompt.
pub(super) struct SectionText {
    pub(super) section: PromptSection,
    /// The text that may be cut; none for what is fixed.
    pub(super) text: Option<String>,
    pub(super) rendered: String,
    pub(super) cut: Option<SectionCut>,
}

/// Cuts parts until all of them, with a note about the cuts, fit into the budget. Gives the bytes that are too
/// many even so.
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
    // Room for the longest note there can be, so that cutting never has to be done twice.
    let longest = parts.iter().filter_map(|part| {
        let bytes = part.text.as_ref()?.len();
        Some(SectionCut { section: part.section, bytes, dropped: true })
    });
    let note_bytes = note(&longest.collect::<Vec<_>>())?.len();
    for section in DROPPED.into_iter().chain(SHRUNK) {
        let over = (total(parts) + note_bytes).saturating_sub(budget);
        let part = parts.iter_mut().find(|part| part.section == section);
        if let Some(part) = part.filter(|_| over > 0) {
            cut(part, over, &render)?;
        }
    }
    Ok((total(parts) + note_bytes).saturating_sub(budget))
}

/// Takes `over` bytes from a part, or as many as it can give.
fn cut<E>(
    part: &mut SectionText,
    over: usize,
    render: &impl Fn(PromptSection, &str) -> Result<String, E>,
) -> Result<(), E> {
    let Some(text) = part.text.as_deref() else { return Ok(()) };
    let may_drop = DROPPED.contains(&part.section);
    let room = text.len().saturating_sub(over + MARK_BYTES_MAX);
    if may_drop && room < SHRUNK_BYTES_MIN {
        part.cut = Some(SectionCut { section: part.section, bytes: text.len(), dropped: true });
        part.rendered.clear();
        return Ok(());
    }
    let room = room.max(SHRUNK_BYTES_MIN);
    if text.len() <= room + MARK_BYTES_MAX {
        return Ok(());
    }
    let (shrunk, bytes) = shrink(part.section, text, room);
    part.rendered = render(part.section, &shrunk)?;
    part.cut = Some(SectionCut { section: part.section, bytes, dropped: false });
    Ok(())
}

/// What is newest is worth most: files that grow at the end keep their end, everything else its beginning.
fn shrink(section: PromptSection, text: &str, room: usize) -> (String, usize) {
    let (keeps_end, kept) = match section {
        PromptSection::Assumptions
        | PromptSection::Questions
        | PromptSection::Feedback
        | PromptSection::Improvements
        | PromptSection::Failure => (true, tail(text, room)),
        PromptSection::Contract
        | PromptSection::Project
        | PromptSection::Goal
        | PromptSection::History
        | PromptSection::Path
        | PromptSection::Node
        | PromptSection::Errors
        | PromptSection::Rejected
        | PromptSection::Outline
        | PromptSection::Context
        | PromptSection::Artifacts
        | PromptSection::Output => (false, head(text, room)),
    };
    let bytes = text.len() - kept.len();
    let mark = format!("[{bytes} bytes left out]");
    (if keeps_end { format!("{mark}\n{kept}") } else { format!("{kept}\n{mark}") }, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(section: PromptSection, bytes: usize) -> SectionText {
        let text = "x".repeat(bytes);
        SectionText { section, text: Some(text.clone()), rendered: text, cut: None }
    }

    /// Fits parts whose templates add nothing, with a note of so many bytes.
    fn fitted(parts: &mut [SectionText], budget: usize, note: usize) -> usize {
        let render = |_: PromptSection, text: &str| Ok::<_, ()>(text.to_owned());
        fit(parts, budget, |_| Ok("n".repeat(note)), render).unwrap()
    }

    /// How a part is cut that should give so many bytes.
    fn cut_by(section: PromptSection, bytes: usize, over: usize) -> Option<SectionCut> {
        let mut part = part(section, bytes);
        cut(&mut part, over, &|_, text: &str| Ok::<_, ()>(text.to_owned())).unwrap();
        part.cut
    }

    #[test]
    fn what_is_newest_is_kept() {
        let text = "a".repeat(500) + &"z".repeat(500);
        let (end, beginning) = ("z".repeat(400), "a".repeat(400));
        let cases = [
            (PromptSection::Feedback, format!("[600 bytes left out]\n{end}")),
            (PromptSection::Failure, format!("[600 bytes left out]\n{end}")),
            (PromptSection::Goal, format!("{beginning}\n[600 bytes left out]")),
            (PromptSection::History, format!("{beginning}\n[600 bytes left out]")),
        ];
        for (section, shrunk) in cases {
            assert_eq!(shrink(section, &text, 400), (shrunk, 600), "{section:?}");
        }
    }

    #[test]
    fn there_is_room_for_the_note_of_what_was_cut() {
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
    fn what_is_too_many_even_so_is_counted() {
        let mut parts = [part(PromptSection::Outline, 1000), part(PromptSection::Goal, 300)];
        assert_eq!(fitted(&mut parts, 350, 100), 50);
        assert!(matches!(parts[0].cut, Some(SectionCut { dropped: true, bytes: 1000, .. })));
        assert_eq!(parts[1].rendered.len(), 300);
    }

    #[test]
    fn a_section_drops_where_too_little_of_it_would_be_left() {
        let most = 1000 - MARK_BYTES_MAX - SHRUNK_BYTES_MIN;
        let outline = |bytes, dropped| Some(SectionCut { section: PromptSection::Outline, bytes, dropped });
        assert_eq!(cut_by(PromptSection::Outline, 1000, most), outline(1000 - SHRUNK_BYTES_MIN, false));
        assert_eq!(cut_by(PromptSection::Outline, 1000, most + 1), outline(1000, true));
    }

    #[test]
    fn a_section_that_stays_is_not_cut_for_less_than_the_mark_takes() {
        let least = SHRUNK_BYTES_MIN + MARK_BYTES_MAX;
        assert_eq!(cut_by(PromptSection::Goal, least, 5000), None);
        let goal = SectionCut { section: PromptSection::Goal, bytes: MARK_BYTES_MAX + 1, dropped: false };
        assert_eq!(cut_by(PromptSection::Goal, least + 1, 5000), Some(goal));
    }
}
