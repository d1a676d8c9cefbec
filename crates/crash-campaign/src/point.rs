//! One point of the campaign: a fault at one place of one scenario, as text that repeats it.

use std::fmt;

/// Written as `family/scenario/argument/…`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PointSpec {
    pub(crate) family: String,
    /// The scenario, or for families with a list of their own the entry of that list.
    pub(crate) subject: String,
    pub(crate) arguments: Vec<String>,
}

impl PointSpec {
    pub(crate) fn new<T: ToString>(family: &str, subject: &str, arguments: &[T]) -> Self {
        let arguments = arguments.iter().map(ToString::to_string).collect();
        Self { family: family.to_owned(), subject: subject.to_owned(), arguments }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('/').map(str::to_owned);
        Some(Self { family: parts.next()?, subject: parts.next()?, arguments: parts.collect() })
    }

    /// An argument as a number; a point without it has the first call.
    pub(crate) fn number(&self, at: usize) -> usize {
        self.arguments.get(at).and_then(|text| text.parse().ok()).unwrap_or(1)
    }

    pub(crate) fn word(&self, at: usize) -> &str {
        self.arguments.get(at).map_or("", String::as_str)
    }
}

impl fmt::Display for PointSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.family, self.subject)?;
        self.arguments.iter().try_for_each(|argument| write!(f, "/{argument}"))
    }
}

/// A point of a family's enumeration.
#[derive(Clone, Debug)]
pub(crate) struct PlannedPoint {
    pub(crate) spec: PointSpec,
    /// An earlier point that leaves the same files and processes behind, so that this one need not run.
    pub(crate) same_as: Option<PointSpec>,
}

impl From<PointSpec> for PlannedPoint {
    fn from(spec: PointSpec) -> Self {
        Self { spec, same_as: None }
    }
}

/// What a point showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PointVerdict {
    Sound,
    /// Everything that did not hold.
    Bad(Vec<String>),
    /// Not run, because this point of the same build leaves the same files.
    Same(PointSpec),
    /// The program ended before the fault, so that the point proves nothing.
    NotReached,
    /// This machine cannot run the point; with the reason.
    Skipped(String),
}

impl PointVerdict {
    pub(crate) fn of(violations: Vec<String>) -> Self {
        if violations.is_empty() { Self::Sound } else { Self::Bad(violations) }
    }

    /// The text that a point's process prints.
    pub(crate) fn to_text(&self) -> String {
        match self {
            Self::Sound => "sound\n".to_owned(),
            Self::Bad(violations) => format!("bad\n{}\n", violations.join("\n")),
            Self::Same(point) => format!("same\n{point}\n"),
            Self::NotReached => "not-reached\n".to_owned(),
            Self::Skipped(reason) => format!("skipped\n{reason}\n"),
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once('\n')?;
        match kind {
            "sound" => Some(Self::Sound),
            "bad" => Some(Self::Bad(rest.lines().map(str::to_owned).collect())),
            "same" => PointSpec::parse(rest.trim_end()).map(Self::Same),
            "not-reached" => Some(Self::NotReached),
            "skipped" => Some(Self::Skipped(rest.trim_end().to_owned())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PointSpec, PointVerdict};

    #[test]
    fn a_point_survives_its_text() {
        let point = PointSpec::new("pairs", "step", &[3, 14]);
        assert_eq!(point.to_string(), "pairs/step/3/14");
        assert_eq!(PointSpec::parse("pairs/step/3/14"), Some(point.clone()));
        assert_eq!((point.number(1), point.word(0), point.word(9)), (14, "3", ""));
        assert_eq!(PointSpec::parse("pairs"), None);
    }

    #[test]
    fn a_verdict_survives_its_text() {
        let bad = PointVerdict::of(vec!["one".to_owned(), "two".to_owned()]);
        let same = PointVerdict::Same(PointSpec::new("kill-all", "step", &[3]));
        let skipped = PointVerdict::Skipped("no root".to_owned());
        for verdict in [PointVerdict::Sound, bad, same, PointVerdict::NotReached, skipped] {
            assert_eq!(PointVerdict::parse(&verdict.to_text()), Some(verdict));
        }
        assert_eq!(PointVerdict::parse("thread panicked\n"), None);
    }
}
