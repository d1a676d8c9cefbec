//! A JUnit report, as far as counting its tests needs it: which `testcase` elements there are and what is in them.

/// What a report says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct JunitCounts {
    pub(crate) tests: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

/// Counts the tests. The totals that a report states about itself are not believed.
pub(crate) fn count(text: &str) -> Result<JunitCounts, String> {
    let mut counts = JunitCounts::default();
    let (mut rest, mut is_report, mut within) = (text, false, false);
    while let Some((_, from)) = rest.split_once('<') {
        if let Some(after) = skipped_part(from) {
            rest = after;
            continue;
        }
        let Some((tag, after)) = end_of_tag(from) else {
            return Err("the report ends inside a tag".to_owned());
        };
        let name = tag.trim_start_matches('/').split([' ', '\t', '\r', '\n', '/']).next().unwrap_or_default();
        let (closes, is_empty) = (tag.starts_with('/'), tag.ends_with('/'));
        match name {
            "testsuites" | "testsuite" => is_report = true,
            "testcase" => {
                counts.tests += u64::from(!closes);
                within = !closes && !is_empty;
            }
            "failure" | "error" if within && !closes => counts.failed += 1,
            "skipped" if within && !closes => counts.skipped += 1,
            _ => {}
        }
        rest = after;
    }
    if is_report { Ok(counts) } else { Err("there is no test suite in the report".to_owned()) }
}

/// What follows a comment, a declaration or literal text that begins here, if one does.
fn skipped_part(from: &str) -> Option<&str> {
    let ends = [("!--", "-->"), ("![CDATA[", "]]>"), ("?", "?>")];
    let (begin, end) = ends.into_iter().find(|(begin, _)| from.starts_with(begin))?;
    let inner = from.strip_prefix(begin)?;
    Some(inner.split_once(end).map_or("", |(_, after)| after))
}

/// The tag up to its end, which is not a `>` within a value, and what follows.
fn end_of_tag(from: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    for (at, c) in from.char_indices() {
        match (quote, c) {
            (None, '>') => return Some((from.get(..at)?, from.get(at + 1..)?)),
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_counted_by_what_is_in_them() {
        let text = r#"<?xml version="1.0"?><!-- <testcase/> -->
            <testsuites tests="99"><testsuite name="a > b">
            <testcase name="one"/>
            <testcase name="two"><failure message="x > y"><![CDATA[<testcase/>]]></failure></testcase>
            <testcase name="three"><skipped/></testcase>
            <testcase name="four"><system-out>fine</system-out></testcase>
            </testsuite></testsuites>"#;
        assert_eq!(count(text), Ok(JunitCounts { tests: 4, failed: 1, skipped: 1 }));
    }

    #[test]
    fn what_is_no_report_is_no_pass() {
        assert!(count("").is_err());
        assert!(count("all good").is_err());
        assert!(count("<testsuite><testcase").is_err());
        assert_eq!(count("<testsuite/>"), Ok(JunitCounts::default()));
    }
}
