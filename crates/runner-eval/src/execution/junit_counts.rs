//! Counts the tests of a JUnit report. It looks only at `testcase` elements and their content.

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct JunitCounts {
    pub(crate) tests: u64,
    pub(crate) failed: u64,
    pub(crate) skipped: u64,
}

/// Counts the tests. The totals in the report's attributes are ignored: an agent's program may have written them.
pub(crate) fn count(text: &str) -> Result<JunitCounts, String> {
    let mut counts = JunitCounts::default();
    let mut rest = text;
    let mut has_suite = false;
    let mut is_in_test = false;
    while let Some((_, markup)) = rest.split_once('<') {
        if let Some(after) = skip_non_element(markup) {
            rest = after;
            continue;
        }
        let Some((tag, after)) = split_tag(markup) else {
            return Err("the report ends inside a tag".to_owned());
        };
        let name = tag.trim_start_matches('/').split([' ', '\t', '\r', '\n', '/']).next().unwrap_or_default();
        let is_closing = tag.starts_with('/');
        let is_empty = tag.ends_with('/');
        match name {
            "testsuites" | "testsuite" => has_suite = true,
            "testcase" => {
                counts.tests += u64::from(!is_closing);
                is_in_test = !is_closing && !is_empty;
            }
            "failure" | "error" if is_in_test && !is_closing => counts.failed += 1,
            "skipped" if is_in_test && !is_closing => counts.skipped += 1,
            _ => {}
        }
        rest = after;
    }
    if has_suite { Ok(counts) } else { Err("the report contains no test suite".to_owned()) }
}

/// The text after a comment, a CDATA section or a declaration, if `markup` begins with one.
fn skip_non_element(markup: &str) -> Option<&str> {
    for (begin, end) in [("!--", "-->"), ("![CDATA[", "]]>"), ("?", "?>")] {
        if let Some(inner) = markup.strip_prefix(begin) {
            return Some(inner.split_once(end).map_or("", |(_, after)| after));
        }
    }
    None
}

/// The tag and the text after it. A `>` in an attribute's value does not end the tag.
fn split_tag(markup: &str) -> Option<(&str, &str)> {
    let mut quote = None;
    for (position, c) in markup.char_indices() {
        match (quote, c) {
            (None, '>') => return Some((markup.get(..position)?, markup.get(position + 1..)?)),
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
    fn tests_are_counted_by_their_content_and_not_by_the_totals() {
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
    fn text_that_is_not_a_report_is_an_error() {
        assert!(count("").is_err());
        assert!(count("all good").is_err());
        assert!(count("<testsuite><testcase").is_err());
        assert_eq!(count("<testsuite/>"), Ok(JunitCounts::default()));
    }
}
