//! What the results of a task's checks mean: the kind of a failure before the work, and how much of the acceptance is proven.

pub mod coverage;
mod reader;
mod redirects;

use crate::model::checks::{Check, CheckExit, RedFacts, RedKind};
use crate::text::lines;
use reader::TestReport;
pub use redirects::redirects;

/// One run of a check that ended.
pub struct EndedCheck<'a> {
    pub check: &'a Check,
    pub exit: CheckExit,
    /// What it printed.
    pub output: &'a [u8],
    /// The JUnit report that it wrote.
    pub junit: Option<&'a [u8]>,
    /// What can change what runs in the place of its files, as [`redirects`] finds it.
    pub redirects: Vec<String>,
}

/// What a run of a check comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckVerdict {
    pub exit: CheckExit,
    /// What that means before the work.
    pub red: RedKind,
    pub facts: RedFacts,
    /// Why an exit code of 0 is no success, if not all tests ran.
    pub why: Option<String>,
}

impl EndedCheck<'_> {
    /// Decides what the run comes to. Code under test can end the test program early, skip its tests or put others in their
    /// place, so that a success counts only with the tests that ran before the work, as far as `before` has them.
    pub fn verdict(self, before: Option<&RedFacts>) -> CheckVerdict {
        let Self { check, exit, output, junit, redirects } = self;
        let text = lines(&String::from_utf8_lossy(output));
        let report = reader::read(check, &text, junit);
        let counts = report.and_then(|report| report.tests);
        let facts = RedFacts {
            ran: counts.map(|tests| tests.ran),
            skipped: counts.and_then(|tests| tests.skipped),
            redirects,
        };
        let mut exit = effective_exit(exit, report, reader::is_expected(check));
        let mut why = None;
        if exit == CheckExit::Code(0) {
            why = reader::unreported(check, &text).or_else(|| before.and_then(|before| lost(before, &facts)));
        }
        if why.is_some() {
            exit = CheckExit::TestsMissing;
        }
        CheckVerdict { exit, red: red_kind(exit, report), facts, why }
    }
}

/// What ran before the work and does not run now.
fn lost(before: &RedFacts, now: &RedFacts) -> Option<String> {
    let pair = |was: Option<u64>, is: Option<u64>| was.zip(is);
    if let Some((was, is)) = pair(before.ran, now.ran).filter(|(was, is)| is < was) {
        return Some(format!("fewer tests ran than before the work: {is} instead of {was}"));
    }
    if let Some((was, is)) = pair(before.skipped, now.skipped).filter(|(was, is)| is > was) {
        return Some(format!("more tests were skipped than before the work: {is} instead of {was}"));
    }
    let new = now.redirects.iter().find(|redirect| !before.redirects.contains(redirect))?;
    Some(format!("`{new}` is new and can put other tests in the place of the check's: remove it"))
}

/// What a check's end before the work means.
fn red_kind(exit: CheckExit, report: Option<TestReport>) -> RedKind {
    match (exit, report) {
        (
            CheckExit::NotStarted
            | CheckExit::TimedOut
            | CheckExit::Signal(_)
            | CheckExit::NoTests
            | CheckExit::TestsMissing,
            _,
        ) => RedKind::Broken,
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
fn effective_exit(exit: CheckExit, report: Option<TestReport>, is_report_expected: bool) -> CheckExit {
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
        Some(TestReport { passed, failed, is_missing, tests: None })
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

    fn check(toml: &str) -> Check {
        crate::model::checks::decode(toml.as_bytes()).unwrap().remove(0)
    }

    fn verdict(command: &str, output: &str, redirects: &[&str], before: Option<&RedFacts>) -> CheckVerdict {
        let words: Vec<String> = command.split(' ').map(|word| format!("\"{word}\"")).collect();
        let files = "{ \"t/test_p.py\" = \"n\" }";
        let toml = format!("[[check]]\nname = \"c\"\ncommand = [{}]\nfiles = {files}\n", words.join(", "));
        let ended = EndedCheck {
            check: &check(&toml),
            exit: CheckExit::Code(0),
            output: output.as_bytes(),
            junit: None,
            redirects: redirects.iter().map(|text| (*text).to_owned()).collect(),
        };
        ended.verdict(before)
    }

    #[test]
    fn a_success_is_compared_with_what_ran_before_the_work() {
        const UNITTEST: &str = "python3 -m unittest t.test_p";
        let before = verdict(UNITTEST, "Ran 2 tests in 0.001s\n\nFAILED (failures=1)\n", &[], None).facts;
        assert_eq!((before.ran, before.skipped), (Some(2), Some(0)));
        let ended = |output: &str, redirects: &[&str]| verdict(UNITTEST, output, redirects, Some(&before));
        assert_eq!(ended("Ran 2 tests in 0.001s\n\nOK\n", &[]).exit, CheckExit::Code(0));
        assert_eq!(ended("Ran 3 tests in 0.001s\n\nOK\n", &[]).exit, CheckExit::Code(0));
        for (output, redirects, part) in [
            ("Ran 1 test in 0.001s\n\nOK\n", &[][..], "fewer tests ran than before the work: 1 instead of 2"),
            ("Ran 2 tests in 0.001s\n\nOK (skipped=1)\n", &[], "fewer tests ran"),
            ("Ran 3 tests in 0.001s\n\nOK (skipped=1)\n", &[], "more tests were skipped"),
            ("Ran 2 tests in 0.001s\n\nOK\n", &["t/__init__.py"], "`t/__init__.py` is new"),
        ] {
            let verdict = ended(output, redirects);
            assert_eq!((verdict.exit, verdict.red), (CheckExit::TestsMissing, RedKind::Broken), "{output}");
            assert!(verdict.why.as_deref().unwrap_or_default().contains(part), "{:?}", verdict.why);
        }
        let known = RedFacts { redirects: vec!["t/__init__.py".to_owned()], ..before.clone() };
        let same = verdict(UNITTEST, "Ran 2 tests in 0.001s\n\nOK\n", &["t/__init__.py"], Some(&known));
        assert_eq!(same.exit, CheckExit::Code(0), "what was there before the work may stay");
        let unknown = verdict("sh t.sh", "done\n", &[], Some(&before));
        assert_eq!(unknown.exit, CheckExit::Code(0), "without counts there is nothing to compare");
    }
}
