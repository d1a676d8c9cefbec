//! Reads the JSON lines that `runner --json loop` prints: the events of the loop, its final summary, and the error that it may
//! end with. The runner under test may be of another version, so only the needed keys are read.

use serde::Deserialize;

#[derive(Deserialize)]
struct LoopLine {
    event: String,
    /// Only in the final summary, whose event is `end`.
    headline: Option<String>,
}

#[derive(Deserialize)]
struct LoopError {
    message: String,
    #[serde(default)]
    causes: Vec<String>,
}

/// How many iterations were decided in these lines.
pub(crate) fn count_iterations(lines: &[u8]) -> usize {
    lines.split(|byte| *byte == b'\n').filter(|line| is_event(line, "decided")).count()
}

fn is_event(line: &[u8], name: &str) -> bool {
    serde_json::from_slice::<LoopLine>(line).is_ok_and(|line| line.event == name)
}

/// Why the loop stopped: from its summary, or from its error.
pub(crate) fn stop_reason(log: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(log);
    for line in text.lines().rev() {
        match serde_json::from_str::<LoopLine>(line) {
            Ok(LoopLine { event, headline }) if event == "end" => return headline,
            _ => {}
        }
    }
    let start = text.rfind("{\n")?;
    let LoopError { message, causes } = serde_json::from_str(text.get(start..)?).ok()?;
    let mut parts = vec![message];
    parts.extend(causes);
    Some(parts.join(": "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_reason_is_in_the_last_event_or_in_the_error() {
        let log = b"{\"event\":\"decided\"}\n{\"event\":\"end\",\"headline\":\"no attempts left\"}\n";
        assert_eq!(stop_reason(log).as_deref(), Some("no attempts left"));
        let log = b"{\"event\":\"x\"}\n{\n  \"message\": \"could not\",\n  \"causes\": [\"why\"]\n}\n";
        assert_eq!(stop_reason(log).as_deref(), Some("could not: why"));
        assert_eq!(stop_reason(b"killed"), None);
    }

    #[test]
    fn only_complete_decided_events_are_counted() {
        assert_eq!(count_iterations(b"{\"event\":\"decided\"}\n{\"event\":\"agent\"}\n{\"event\":\"deci"), 1);
    }
}
