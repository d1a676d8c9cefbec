//! What the results of a task's checks mean: the kind of a failure before the work, and how much of the acceptance is proven.

pub mod coverage;
pub mod reader;

use crate::model::checks::{CheckExit, RedKind};
use reader::TestReport;

/// What a check's end before the work means.
pub fn red_kind(exit: CheckExit, report: Option<TestReport>) -> RedKind {
    match (exit, report) {
        (CheckExit::NotStarted | CheckExit::TimedOut | CheckExit::Signal(_) | CheckExit::NoTests, _) => {
            RedKind::Broken
        }
        (CheckExit::Code(0), Some(report)) if report.runs_nothing() => RedKind::Broken,
        (CheckExit::Code(0), _) => RedKind::Green,
        (CheckExit::Code(_), Some(report)) if report.is_missing => RedKind::Absent,
        (CheckExit::Code(_), Some(report)) if report.runs_nothing() => RedKind::Broken,
        (CheckExit::Code(_), Some(_)) => RedKind::Failed,
        // What shells exit with for a program that is not executable, and for one that does not exist.
        (CheckExit::Code(126), None) => RedKind::Broken,
        (CheckExit::Code(127), None) => RedKind::Absent,
        (CheckExit::Code(_), None) => RedKind::Failed,
    }
}

/// How a check ended, by its exit and by the tests that it reports: a success without a test is none.
pub fn effective_exit(exit: CheckExit, report: Option<TestReport>) -> CheckExit {
    match (exit, report) {
        (CheckExit::Code(0), Some(report)) if report.runs_nothing() => CheckExit::NoTests,
        (exit, _) => exit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(passed: u64, failed: u64, is_missing: bool) -> Option<TestReport> {
        Some(TestReport { passed, failed, is_missing })
    }

    #[test]
    fn the_kind_follows_from_exit_and_report() {
        for (exit, report, kind) in [
            (CheckExit::Code(0), None, RedKind::Green),
            (CheckExit::Code(0), report(2, 0, false), RedKind::Green),
            (CheckExit::Code(0), report(0, 0, false), RedKind::Broken),
            (CheckExit::Code(1), None, RedKind::Failed),
            (CheckExit::Code(126), None, RedKind::Broken),
            (CheckExit::Code(127), None, RedKind::Absent),
            (CheckExit::Code(101), report(3, 1, false), RedKind::Failed),
            (CheckExit::Code(101), report(0, 0, true), RedKind::Absent),
            (CheckExit::Code(5), report(0, 0, false), RedKind::Broken),
            (CheckExit::Signal(9), report(0, 1, false), RedKind::Broken),
            (CheckExit::TimedOut, None, RedKind::Broken),
            (CheckExit::NotStarted, None, RedKind::Broken),
        ] {
            assert_eq!(red_kind(exit, report), kind, "{exit} {report:?}");
        }
    }

    #[test]
    fn a_success_without_a_test_is_none() {
        assert_eq!(effective_exit(CheckExit::Code(0), report(0, 0, false)), CheckExit::NoTests);
        assert_eq!(effective_exit(CheckExit::Code(0), report(1, 0, false)), CheckExit::Code(0));
        assert_eq!(effective_exit(CheckExit::Code(0), None), CheckExit::Code(0));
        assert_eq!(effective_exit(CheckExit::Code(1), report(0, 0, false)), CheckExit::Code(1));
    }
}
