//! The signature of a failure: a digest of what stays the same when the same thing fails again.
//!
//! Times, durations, addresses, process ids and temporary paths are removed, and the lines are sorted, because test runners
//! print them in the order in which parallel tests end.

use std::collections::BTreeSet;

use crate::model::digest::Sha256;

/// The signature of a text.
pub(super) fn signature(text: &str) -> Sha256 {
    let lines: BTreeSet<String> = text.lines().map(normalised).filter(|line| !line.is_empty()).collect();
    Sha256::of(lines.into_iter().collect::<Vec<_>>().join("\n").as_bytes())
}

/// The line with a placeholder for every word that differs from run to run.
fn normalised(line: &str) -> String {
    let mut words: Vec<&str> = Vec::new();
    for word in line.split_ascii_whitespace() {
        let core = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '/' && c != '-' && c != '+');
        let previous = words.last().copied().unwrap_or_default();
        let is_id = is_number(core) && matches!(previous.trim_end_matches(':'), "pid" | "PID" | "process");
        if is_unit(core) && (previous == VARIES || is_number(previous)) {
            words.pop();
            words.push(VARIES);
            continue;
        }
        words.push(if is_id || varies(core) { VARIES } else { word });
    }
    words.join(" ")
}

const VARIES: &str = "<varies>";

fn varies(word: &str) -> bool {
    is_address(word) || is_temporary_path(word) || is_duration(word) || is_time(word) || is_thread_id(word)
}

fn is_address(word: &str) -> bool {
    word.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| {
        part.strip_prefix("0x")
            .is_some_and(|digits| digits.len() >= 4 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
    })
}

fn is_temporary_path(word: &str) -> bool {
    ["/tmp/", "/var/tmp/", "/var/folders/", "/private/var/", "/dev/shm/"]
        .iter()
        .any(|folder| word.contains(folder))
}

/// `12ms`, `0.03s`, `1m2.5s`; also a number with a decimal point, which most tools print for times only.
fn is_duration(word: &str) -> bool {
    let starts_with_digit = word.starts_with(|c: char| c.is_ascii_digit());
    let letters: String = word.chars().filter(|c| c.is_alphabetic()).collect();
    let rest_is_number = word.chars().all(|c| c.is_ascii_digit() || c == '.' || c.is_alphabetic());
    let has_unit = matches!(
        letters.as_str(),
        "s" | "ms" | "us" | "µs" | "μs" | "ns" | "m" | "h" | "sec" | "secs" | "min" | "mins" | "hms" | "hm"
    );
    starts_with_digit && rest_is_number && (has_unit || letters.is_empty() && word.contains('.'))
}

fn is_unit(word: &str) -> bool {
    matches!(
        word,
        "s" | "ms"
            | "us"
            | "µs"
            | "μs"
            | "ns"
            | "sec"
            | "secs"
            | "second"
            | "seconds"
            | "minutes"
            | "milliseconds"
    )
}

/// `06:50:20`, `2026-11-17`, `2026-11-17T06:50:20.123Z`.
fn is_time(word: &str) -> bool {
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let separators = word.bytes().filter(|byte| matches!(byte, b':' | b'-')).count();
    let is_plain = word
        .bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'-' | b'.' | b',' | b'+' | b'T' | b'Z'));
    is_plain && digits >= 4 && separators >= 2
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_thread_id(word: &str) -> bool {
    word.starts_with("ThreadId(")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_has_the_same_signature_whenever_and_wherever_it_occurs() {
        let first = "running 2 tests\ntest a ... ok\ntest b ... FAILED (12ms)\n\
            2026-11-17T06:50:20.123Z panicked at /tmp/x1/lib.rs: 0x7ffe12ab at pid 4711\nfinished in 0.03s\n";
        let later = "running 2 tests\ntest b ... FAILED (301ms)\ntest a ... ok\n\
            2026-11-18T01:02:03.999Z panicked at /tmp/y2/lib.rs: 0x55aa00ff at pid 12\nfinished in 1.20s\n\n";
        assert_eq!(signature(first), signature(later));
        let words = |text: &str| normalised(text);
        assert_eq!(words("Done in 4.2 seconds."), "Done in <varies>");
        assert_eq!(
            (words("took 35 ms"), words("35 failed")),
            ("took <varies>".to_owned(), "35 failed".to_owned())
        );
    }

    #[test]
    fn other_failures_have_other_signatures() {
        let base = signature("assertion failed: left 1, right 2\n");
        for other in [
            "assertion failed: left 1, right 3\n",
            "assertion failed: left 1, right 2\nand another\n",
            "error: could not compile\n",
            "",
        ] {
            assert_ne!(signature(other), base, "{other:?}");
        }
    }
}
