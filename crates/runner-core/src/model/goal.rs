//! GOAL.md: the user's goal, with the run's id in its front matter.
//!
//! The file belongs to the user. The runner only ever changes the value of `id`, and no other byte.

mod front_matter;

use pulldown_cmark::{Event, Parser, Tag, TagEnd};
use thiserror::Error;

use self::front_matter::{FrontMatterId, KeySlot};
use crate::model::id::{IdError, RunId};
use crate::text::{head, one_line, shortened};

/// The template that `runner init` writes.
pub const TEMPLATE: &str = "\
# Goal

Describe what you want, in your own words: what should exist or work when the run is complete, what must not
change, and what you already know about how to get there.

## Acceptance

- A criterion that a person can check, or better, a test.
- Another one.
";

/// An error in GOAL.md.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum GoalError {
    #[error("the file is not UTF-8: save it as UTF-8")]
    NotUtf8,
    #[error("line 1: the front matter has no end: close it with a line `---`")]
    Unclosed,
    #[error("line {line}: the front matter is not valid YAML: {what}")]
    Yaml { line: usize, what: String },
    #[error("the front matter must have lines of the form `key: value`")]
    NotAMapping,
    #[error("line {0}: `id` is a duplicate: remove one of the two")]
    TwoIds(usize),
    /// The id is a list, a mapping or an alias.
    #[error("line {0}: `id` must be a single word")]
    IdNotAWord(usize),
    #[error("line {line}: `id` {id:?} {error}")]
    BadId { line: usize, id: String, error: IdError },
}

/// A parsed goal file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Goal<'t> {
    text: &'t str,
    /// Where a key can be added to the front matter, if the file has one.
    slot: Option<KeySlot>,
    body_at: usize,
    id: Option<FrontMatterId>,
}

impl<'t> Goal<'t> {
    pub fn parse(bytes: &'t [u8]) -> Result<Self, GoalError> {
        let text = std::str::from_utf8(bytes).map_err(|_| GoalError::NotUtf8)?;
        let start = text.len() - text.trim_start_matches('\u{feff}').len();
        let Some(keys_at) = front_matter_start(text, start) else {
            return Ok(Self { text, slot: None, body_at: start, id: None });
        };
        let (keys_end, body_at) = front_matter_end(text, keys_at).ok_or(GoalError::Unclosed)?;
        let keys = text.get(keys_at..keys_end).unwrap_or_default();
        let (id, slot) = front_matter::find_id(text, keys, keys_at)?;
        Ok(Self { text, slot: Some(slot), body_at, id })
    }

    /// The run's id, if the front matter has one.
    pub fn id(&self) -> Option<&RunId> {
        self.id.as_ref().and_then(|id| id.run.as_ref())
    }

    /// The file with this id, and every other byte unchanged.
    pub fn with_id(&self, id: &RunId) -> String {
        let mut text = self.text.to_owned();
        if self.id() == Some(id) {
            return text;
        }
        let id = yaml_word(id);
        let eol = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let (range, insert) = match (&self.id, self.slot) {
            (Some(FrontMatterId { range, .. }), _) if range.is_empty() => (range.clone(), format!(" {id}")),
            (Some(FrontMatterId { range, .. }), _) => (range.clone(), id),
            (None, Some(KeySlot { at, in_braces: true })) => (at..at, format!("id: {id}, ")),
            (None, Some(KeySlot { at, in_braces: false })) => {
                (at..at, format!("id: {id}{eol}{}", indent_before(&text, at)))
            }
            (None, None) => (self.body_at..self.body_at, format!("---{eol}id: {id}{eol}---{eol}{eol}")),
        };
        text.replace_range(range, &insert);
        text
    }

    /// The text after the front matter.
    pub fn body(&self) -> &'t str {
        self.text.get(self.body_at..).unwrap_or_default()
    }

    /// Whether the user has written a goal: the file is neither empty nor the template.
    pub fn is_written(&self) -> bool {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let body = words(self.body());
        !body.is_empty() && body != words(TEMPLATE)
    }

    /// The content of a new tree's root.
    pub fn summary(&self) -> GoalSummary {
        GoalSummary::of(self.body())
    }
}

fn front_matter_start(text: &str, at: usize) -> Option<usize> {
    let line = text.get(at..)?.split_inclusive('\n').next()?;
    (line.trim_end() == "---" && line.ends_with('\n')).then_some(at + line.len())
}

/// The end of the keys, and the start of the body.
fn front_matter_end(text: &str, keys_at: usize) -> Option<(usize, usize)> {
    let mut at = keys_at;
    for line in text.get(keys_at..)?.split_inclusive('\n') {
        if matches!(line.trim_end(), "---" | "...") {
            return Some((at, at + line.len()));
        }
        at += line.len();
    }
    None
}

/// The id as YAML, quoted if YAML would take it for null or for a list.
fn yaml_word(id: &RunId) -> String {
    let special = id.as_str().starts_with('-') || id.as_str().eq_ignore_ascii_case("null");
    if special { format!("\"{id}\"") } else { id.to_string() }
}

/// The text of a line before a position.
fn indent_before(text: &str, at: usize) -> &str {
    text.get(..at).and_then(|before| before.rsplit('\n').next()).unwrap_or_default()
}

/// The part of the goal that goes into a new tree's root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoalSummary {
    /// The first heading, or else the first line.
    pub title: String,
    pub goal: String,
    /// The list items under a heading such as `Acceptance`.
    pub acceptance: Vec<String>,
}

const TITLE_BYTES_MAX: usize = 120;
const GOAL_BYTES_MAX: usize = 2_000;
const ACCEPTANCE_HEADINGS: [&str; 4] =
    ["acceptance", "acceptance criteria", "done when", "definition of done"];

impl GoalSummary {
    pub(crate) fn of(body: &str) -> Self {
        let body = body.trim();
        let first_line = || body.lines().map(one_line).find(|line| !line.is_empty()).unwrap_or_default();
        let outline = GoalOutline::of(body);
        let title = outline.title.filter(|title| !title.is_empty()).unwrap_or_else(first_line);
        let goal = if body.len() <= GOAL_BYTES_MAX {
            body.to_owned()
        } else {
            format!("{} […]\n\nThe full goal is in .runner/GOAL.md.", head(body, GOAL_BYTES_MAX).trim_end())
        };
        Self { title: shortened(&title, TITLE_BYTES_MAX), goal, acceptance: outline.acceptance }
    }
}

/// Title and acceptance criteria of a goal.
#[derive(Default)]
struct GoalOutline {
    title: Option<String>,
    acceptance: Vec<String>,
}

impl GoalOutline {
    fn of(body: &str) -> Self {
        let mut outline = Self::default();
        // The text since the start of the last heading or list item.
        let mut text = String::new();
        let mut in_acceptance = None;
        let mut item_depth = 0_usize;
        for event in Parser::new(body) {
            #[expect(clippy::wildcard_enum_match_arm, reason = "only these few of Markdown's events matter")]
            match event {
                Event::Start(Tag::Heading { .. }) => text.clear(),
                Event::End(TagEnd::Heading(level)) => {
                    let heading = one_line(&text);
                    if in_acceptance.is_none_or(|current| level <= current) {
                        let is_acceptance = ACCEPTANCE_HEADINGS.contains(&heading.to_lowercase().as_str());
                        in_acceptance = is_acceptance.then_some(level);
                    }
                    outline.title.get_or_insert(heading);
                }
                Event::Start(Tag::Item) => {
                    if item_depth == 0 {
                        text.clear();
                    }
                    text.push(' ');
                    item_depth += 1;
                }
                Event::End(TagEnd::Item) => {
                    item_depth -= 1;
                    if item_depth == 0 && in_acceptance.is_some() {
                        outline.acceptance.push(one_line(&text));
                    }
                }
                Event::Text(part) | Event::Code(part) => text.push_str(&part),
                Event::SoftBreak | Event::HardBreak | Event::End(TagEnd::Paragraph) => text.push(' '),
                _ => {}
            }
        }
        outline.acceptance.retain(|criterion| !criterion.is_empty());
        outline
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id_of(text: &str) -> Result<Option<String>, GoalError> {
        Goal::parse(text.as_bytes()).map(|goal| goal.id().map(ToString::to_string))
    }

    fn with(text: &str, id: &str) -> String {
        Goal::parse(text.as_bytes()).unwrap().with_id(&RunId::new(id).unwrap())
    }

    #[test]
    fn the_id_is_found_in_any_yaml_notation() {
        for text in [
            "---\nid: run-1\n---\n# Goal\n",
            "---\r\nid: run-1\r\n---\r\n# Goal\r\n",
            "\u{feff}---\nid: run-1\n---\n",
            "--- \nid:    run-1   # mine\n--- \n",
            "---\n# first\ntitle: x\nid: \"run-1\"\n---\n",
            "---\ntags: [id, a]\nnested:\n  id: other\nid: 'run-1'\n---\n",
            "---\nnote: |\n  id: other\n\"id\": run-1\n...\nbody",
            "---\n{id: run-1, b: 2}\n---\n",
            "---\nä: ü\nid: run-1\n---\n",
        ] {
            assert_eq!(id_of(text), Ok(Some("run-1".to_owned())), "{text:?}");
        }
    }

    #[test]
    fn a_file_may_have_no_id() {
        for text in [
            "",
            "# Goal\n",
            "---\n---\n",
            "---\n# only a comment\n---\n",
            "---\n\n  # another\n \n---\n",
            "---\nid:\n---\n",
            "---\nid: ~\n---\n",
            "---\nid: null\ntitle: x\n---\n",
            "---\ntitle: id\n---\n",
            "text\n---\nid: x\n---\n",
            "----\nid: x\n",
        ] {
            assert_eq!(id_of(text), Ok(None), "{text:?}");
        }
    }

    #[test]
    fn a_numeric_id_keeps_its_digits() {
        assert_eq!(id_of("---\nid: 007\n---\n"), Ok(Some("007".to_owned())));
    }

    #[test]
    fn an_invalid_front_matter_is_reported_with_its_line() {
        assert_eq!(id_of("---\nid: x\n"), Err(GoalError::Unclosed));
        assert_eq!(id_of("---\nid: x\nid: y\n---\n"), Err(GoalError::TwoIds(3)));
        assert_eq!(id_of("---\nid: [x]\n---\n"), Err(GoalError::IdNotAWord(2)));
        assert_eq!(id_of("---\na: &a x\nid: *a\n---\n"), Err(GoalError::IdNotAWord(3)));
        assert_eq!(id_of("---\n- id\n---\n"), Err(GoalError::NotAMapping));
        assert_eq!(id_of("---\njust words\n---\n"), Err(GoalError::NotAMapping));
        assert!(matches!(id_of("---\ntitle: x\nid: a b\n---\n"), Err(GoalError::BadId { line: 3, .. })));
        assert!(matches!(id_of("---\na: 1\nb: }\n---\n"), Err(GoalError::Yaml { line: 3, .. })));
        assert_eq!(Goal::parse(b"\xff"), Err(GoalError::NotUtf8));
    }

    #[test]
    fn only_the_id_changes() {
        for (before, after) in [
            ("# Goal\n", "---\nid: new\n---\n\n# Goal\n"),
            ("", "---\nid: new\n---\n\n"),
            ("\u{feff}# Goal\r\n", "\u{feff}---\r\nid: new\r\n---\r\n\r\n# Goal\r\n"),
            ("---\n---\nx", "---\nid: new\n---\nx"),
            ("---\r\ntitle: t # c\r\n---\r\nx", "---\r\nid: new\r\ntitle: t # c\r\n---\r\nx"),
            ("---\nid: old # c\n---\nx", "---\nid: new # c\n---\nx"),
            ("---\nid: \"old\"\nb: 1\n---\n", "---\nid: new\nb: 1\n---\n"),
            ("---\nid:\n---\n", "---\nid: new\n---\n"),
            ("---\nid: # c\nb: 1\n---\n", "---\nid: new # c\nb: 1\n---\n"),
            ("---\nid: ~\n---\n", "---\nid: new\n---\n"),
            ("---\nä: ü\nid: old\n---\né", "---\nä: ü\nid: new\n---\né"),
            ("---\n{id: old, b: 2}\n---\n", "---\n{id: new, b: 2}\n---\n"),
        ] {
            assert_eq!(with(before, "new"), after, "{before:?}");
            assert_eq!(id_of(after), Ok(Some("new".to_owned())));
            assert_eq!(with(after, "new"), after, "setting the same id changes nothing");
        }
    }

    #[test]
    fn the_template_is_not_a_written_goal() {
        let written = |text: &str| Goal::parse(text.as_bytes()).unwrap().is_written();
        assert!(!written(TEMPLATE));
        assert!(!written(&with(TEMPLATE, "x")));
        assert!(!written("---\nid: x\n---\n\n  \n"));
        assert!(written("Make it fast.\n"));
    }

    #[test]
    fn the_summary_has_heading_text_and_acceptance() {
        let goal = "---\nid: x\n---\n# Rewrite `auth`\n\nAll of it.\n\n## Acceptance\n\n- tests pass\n- no `unwrap`\n  - inner\n\n### Sub\n- also this\n\n## Notes\n- not this\n\n```\n# no heading\n- no item\n```\n";
        let summary = Goal::parse(goal.as_bytes()).unwrap().summary();
        assert_eq!(summary.title, "Rewrite auth");
        assert_eq!(summary.acceptance, ["tests pass", "no unwrap inner", "also this"]);
        assert!(summary.goal.starts_with("# Rewrite `auth`") && summary.goal.ends_with("```"));

        let plain = Goal::parse("\n  Make it\u{1b}[31m fast.  \nNow.\n".as_bytes()).unwrap().summary();
        assert_eq!((plain.title.as_str(), plain.acceptance.len()), ("Make it fast.", 0));
    }

    #[test]
    fn a_long_goal_is_shortened_and_refers_to_the_file() {
        let text = "é".repeat(3_000);
        let summary = Goal::parse(text.as_bytes()).unwrap().summary();
        assert!(summary.goal.len() < 2_100 && summary.goal.ends_with("GOAL.md."));
        assert!(summary.title.len() <= 120 && summary.title.ends_with('…'), "{}", summary.title);
    }
}
