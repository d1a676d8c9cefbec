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
        (CheckExit::TestsFailed, _) => RedKind::Failed,
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

/// How a check ended, by its exit and by the tests that it reports. Code under test can end the test program with exit code 0, so
/// that a success without a test, without the report that the program always prints, or with failed tests is none.
pub fn effective_exit(exit: CheckExit, report: Option<TestReport>, is_report_expected: bool) -> CheckExit {
    match (exit, report) {
        (CheckExit::Code(0), Some(report)) if report.runs_nothing() => CheckExit::NoTests,
        (CheckExit::Code(0), Some(report)) if report.failed > 0 => CheckExit::TestsFailed,
        (CheckExit::Code(0), None) if is_report_expected => CheckExit::NoTests,
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
            (CheckExit::NoTests, None, RedKind::Broken),
            (CheckExit::TestsFailed, report(1, 1, false), RedKind::Failed),
        ] {
            assert_eq!(red_kind(exit, report), kind, "{exit} {report:?}");
        }
    }

    #[test]
    fn a_success_without_a_test_is_none() {
        for (exit, report, is_report_expected, effective) in [
            (CheckExit::Code(0), report(0, 0, false), false, CheckExit::NoTests),
            (CheckExit::Code(0), report(1, 0, false), true, CheckExit::Code(0)),
            (CheckExit::Code(0), report(1, 1, false), false, CheckExit::TestsFailed),
            (CheckExit::Code(0), None, false, CheckExit::Code(0)),
            (CheckExit::Code(0), None, true, CheckExit::NoTests),
            (CheckExit::Code(1), None, true, CheckExit::Code(1)),
            (CheckExit::Code(1), report(0, 0, false), true, CheckExit::Code(1)),
        ] {
            assert_eq!(effective_exit(exit, report, is_report_expected), effective, "{exit} {report:?}");
        }
    }
}
