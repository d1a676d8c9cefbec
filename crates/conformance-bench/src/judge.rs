//! The verdict on a row, from the facts alone.

use crate::row::{Expectation, Row};
use crate::row_run::RowFacts;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowVerdict {
    Ok,
    Fail,
    NotApplicable,
}

impl RowVerdict {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Fail => "fail",
            Self::NotApplicable => "not applicable",
        }
    }
}

/// The verdict, and what was found in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    pub verdict: RowVerdict,
    pub found: String,
}

impl Judgement {
    pub(crate) fn not_applicable(reason: &str) -> Self {
        Self { verdict: RowVerdict::NotApplicable, found: reason.to_owned() }
    }
}

/// Judges a row. A tool fails if it does not report what holds, does not end, or leaves processes behind.
pub fn judge(row: &Row, facts: &RowFacts) -> Judgement {
    let mut problems = Vec::new();
    if !facts.ended && !row.may_wait {
        problems.push(format!("still running after {:.0} s", facts.seconds));
    }
    match (row.expect, facts.reports_complete) {
        (Expectation::Complete, false) if facts.ended => {
            let work = if facts.has_work {
                "although the work is done"
            } else {
                "and its branch does not have the work"
            };
            problems.push(format!("does not report complete, {work}"));
        }
        (Expectation::Complete, true) if !facts.has_work => {
            problems.push("reports complete, but its branch does not have the work".to_owned());
        }
        (Expectation::Open, true) => problems.push(false_report(facts)),
        (Expectation::Truth, true) if !facts.has_work => problems.push(false_report(facts)),
        (Expectation::Complete | Expectation::Open | Expectation::Truth, _) => {}
    }
    match facts.processes_left.len() {
        0 => {}
        1 => problems.push("1 process is still running after it ended".to_owned()),
        count => problems.push(format!("{count} processes are still running after it ended")),
    }
    if problems.is_empty() {
        return Judgement { verdict: RowVerdict::Ok, found: good(facts) };
    }
    Judgement { verdict: RowVerdict::Fail, found: problems.join("; ") }
}

fn false_report(facts: &RowFacts) -> String {
    if facts.has_work {
        return "reports complete on the strength of what the agent forged".to_owned();
    }
    "reports complete, but the work is not done".to_owned()
}

fn good(facts: &RowFacts) -> String {
    if facts.reports_complete {
        return "reports complete".to_owned();
    }
    if !facts.ended {
        let sessions = facts.sessions.map(|count| format!(", sessions so far: {count}")).unwrap_or_default();
        return format!("still running after {:.0} s{sessions}", facts.seconds);
    }
    match facts.exit_code {
        Some(code) => format!("reports open (exit {code})"),
        None => "reports open (ended by a signal)".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::rows;

    fn row(name: &str) -> Row {
        rows().unwrap().into_iter().find(|row| row.name == name).unwrap()
    }

    /// A tool that ended at once, reported that work is open, and was right.
    fn open() -> RowFacts {
        RowFacts {
            ended: true,
            exit_code: Some(1),
            seconds: 0.1,
            reports_complete: false,
            has_work: false,
            commits: 0,
            sessions: Some(1),
            processes_left: Vec::new(),
        }
    }

    fn complete(has_work: bool) -> RowFacts {
        RowFacts { exit_code: Some(0), reports_complete: true, has_work, ..open() }
    }

    #[test]
    fn reports_must_be_true() {
        for (name, facts, verdict) in [
            ("honest", complete(true), RowVerdict::Ok),
            ("honest", complete(false), RowVerdict::Fail),
            ("honest", open(), RowVerdict::Fail),
            ("honest", RowFacts { has_work: true, ..open() }, RowVerdict::Fail),
            ("liar", open(), RowVerdict::Ok),
            ("liar", complete(false), RowVerdict::Fail),
            ("note-forger", complete(true), RowVerdict::Fail),
            ("eraser", complete(true), RowVerdict::Ok),
            ("eraser", open(), RowVerdict::Ok),
            ("eraser", complete(false), RowVerdict::Fail),
        ] {
            let judgement = judge(&row(name), &facts);
            assert_eq!(judgement.verdict, verdict, "{name} {facts:?} {judgement:?}");
        }
    }

    #[test]
    fn tool_must_end_unless_it_waits_for_the_provider() {
        let running = RowFacts { ended: false, exit_code: None, ..open() };
        assert_eq!(judge(&row("limited"), &running).found, "still running after 0 s, sessions so far: 1");
        assert_eq!(judge(&row("locked-out"), &running).verdict, RowVerdict::Fail);
        assert_eq!(judge(&row("honest"), &running).found, "still running after 0 s");
    }

    #[test]
    fn processes_left_behind_fail_any_row() {
        let left = RowFacts { processes_left: vec!["sleep 3600".to_owned()], ..complete(true) };
        assert_eq!(judge(&row("leaver"), &left).found, "1 process is still running after it ended");
        assert_eq!(judge(&row("leaver"), &complete(true)).verdict, RowVerdict::Ok);
    }
}
