//! One command that `runner verify --rerun` repeats, and what it came to.

use runner_core::checks::{CheckVerdict, EndedCheck};
use runner_core::model::checks::{Check, CheckExit, RedFacts, RedKind};
use runner_core::step::GuardExit;

use super::guard_rerun::GuardRerunOutcome;

/// One command that is repeated for a pass, and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RerunStep {
    /// What was repeated: `guard`, `check x`, `check x before the work`.
    pub name: String,
    pub expected: RerunExpectation,
    pub place: RerunPlace,
    pub outcome: GuardRerunOutcome,
    /// The last lines of its output.
    pub output: Vec<String>,
}

/// What a repeated command must come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RerunExpectation {
    Success,
    /// A check before the work: the kind on record, and the kind that it had now.
    Red {
        recorded: RedKind,
        now: RedKind,
    },
}

impl RerunStep {
    /// Whether the result is what the commit records.
    pub fn is_repeated(&self) -> bool {
        match self.expected {
            RerunExpectation::Success => self.outcome == GuardRerunOutcome::Ended(GuardExit::Code(0)),
            // Whether a symbol is missing or wrong may depend on the machine; whether the check fails may not.
            RerunExpectation::Red { recorded, now } => match recorded {
                RedKind::Failed | RedKind::Absent => now.is_proof(),
                RedKind::Broken => true,
                RedKind::Green => matches!(now, RedKind::Green | RedKind::Broken),
            },
        }
    }
}

/// One run of a check on a past commit.
#[derive(Clone, Debug)]
pub(super) struct CheckRerun {
    pub(super) place: RerunPlace,
    pub(super) outcome: GuardRerunOutcome,
    pub(super) output: Vec<u8>,
    pub(super) report: Option<Vec<u8>>,
    /// What can change what runs in the place of the check's files.
    pub(super) redirects: Vec<String>,
}

impl CheckRerun {
    /// A run in a room that ended before the check's files were there.
    pub(super) fn without_files(outcome: GuardRerunOutcome, output: Vec<u8>) -> Self {
        Self { place: RerunPlace::Room, outcome, output, report: None, redirects: Vec::new() }
    }

    /// What the run comes to, compared with what the check showed before the work; none if the user stopped it.
    fn verdict(&self, check: &Check, before: Option<&RedFacts>) -> Option<CheckVerdict> {
        let ended = EndedCheck {
            check,
            exit: self.exit()?,
            output: &self.output,
            junit: self.report.as_deref(),
            redirects: self.redirects.clone(),
        };
        Some(ended.verdict(before))
    }

    /// What a run before the work shows, for the one after it.
    pub(super) fn facts(&self, check: &Check) -> Option<RedFacts> {
        self.verdict(check, None).map(|verdict| verdict.facts)
    }

    /// How the check ended; none if the user stopped it.
    fn exit(&self) -> Option<CheckExit> {
        Some(match &self.outcome {
            GuardRerunOutcome::Ended(GuardExit::Code(code)) => CheckExit::Code(*code),
            GuardRerunOutcome::Ended(GuardExit::Signal(signal)) => CheckExit::Signal(*signal),
            GuardRerunOutcome::TimedOut => CheckExit::TimedOut,
            GuardRerunOutcome::NotStarted(_) | GuardRerunOutcome::Rejected(_) => CheckExit::NotStarted,
            GuardRerunOutcome::Stopped(_) => return None,
        })
    }

    /// The same, failed if it changed files that it must not change.
    pub(super) fn without_changes(mut self, changed: &[String]) -> Self {
        if changed.is_empty() || !matches!(self.outcome, GuardRerunOutcome::Ended(_)) {
            return self;
        }
        let line = format!("the check changed protected files while it ran: {}\n", changed.join(", "));
        self.output.extend(line.as_bytes());
        self.report = None;
        self.outcome = GuardRerunOutcome::Ended(GuardExit::Code(1));
        self
    }

    /// The step that repeats a check before the work.
    pub(super) fn red_step(self, check: &Check, recorded: RedKind) -> RerunStep {
        let now = self.verdict(check, None).map_or(RedKind::Broken, |verdict| verdict.red);
        RerunStep {
            name: format!("check {} before the work", check.name),
            expected: RerunExpectation::Red { recorded, now },
            place: self.place,
            output: last_lines(&self.output),
            outcome: self.outcome,
        }
    }

    /// The step that repeats a check after the work. A success without a test, or without those that ran before the work, is
    /// none.
    pub(super) fn green_step(self, check: &Check, before: Option<&RedFacts>) -> RerunStep {
        let outcome = match self.verdict(check, before) {
            Some(CheckVerdict { exit: CheckExit::NoTests, .. }) => {
                GuardRerunOutcome::Rejected("it ran no test".to_owned())
            }
            Some(CheckVerdict { exit: CheckExit::TestsFailed, .. }) => {
                GuardRerunOutcome::Rejected("it reports failed tests".to_owned())
            }
            Some(CheckVerdict { exit: CheckExit::TestsMissing, why, .. }) => {
                GuardRerunOutcome::Rejected(why.unwrap_or_default())
            }
            Some(_) | None => self.outcome,
        };
        RerunStep {
            name: format!("check {}", check.name),
            expected: RerunExpectation::Success,
            place: self.place,
            outcome,
            output: last_lines(&self.output),
        }
    }
}

/// Where a command was repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RerunPlace {
    /// In a fresh room.
    Room,
    /// In a temporary clone, without a sandbox.
    Clone,
}

impl RerunPlace {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Room => "room",
            Self::Clone => "clone",
        }
    }
}

/// How many lines of a guard's output are shown.
const LINES_MAX: usize = 10;

pub(super) fn last_lines(output: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    let mut lines: Vec<String> =
        text.lines().map(runner_core::text::one_line).filter(|line| !line.is_empty()).collect();
    lines.split_off(lines.len().saturating_sub(LINES_MAX))
}
