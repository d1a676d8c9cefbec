//! Reads what a judge prints: a line `ok NAME` or `not ok NAME` per test, and `1..N` at the end.

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JudgeReport {
    pub(crate) tests: u64,
    /// The names of the failed tests, with their reasons.
    pub(crate) failed: Vec<String>,
}

/// None if the judge did not reach its end: the line with the number of tests is missing or has another number.
pub(crate) fn read(stdout: &str) -> Option<JudgeReport> {
    let mut report = JudgeReport { tests: 0, failed: Vec::new() };
    let mut planned = None;
    for line in stdout.lines() {
        if line.starts_with("ok ") {
            report.tests += 1;
        } else if let Some(name) = line.strip_prefix("not ok ") {
            report.tests += 1;
            report.failed.push(name.to_owned());
        } else if let Some(count) = line.strip_prefix("1..") {
            planned = count.trim().parse().ok();
        }
    }
    (planned == Some(report.tests)).then_some(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_count_only_with_their_number_at_the_end() {
        let report = read("ok a\nnot ok b: why\n1..2\n").unwrap();
        assert_eq!((report.tests, report.failed), (2, vec!["b: why".to_owned()]));
        assert_eq!(read("ok a\nok b\n"), None);
        assert_eq!(read("ok a\n1..2\n"), None);
        assert_eq!(read(""), None);
    }
}
