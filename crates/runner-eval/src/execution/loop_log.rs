//! Reads the JSON lines that `runner --json loop` prints: the events of the loop, and the error that it may end with.

use serde_json::Value;

/// How many iterations were decided in these lines.
pub(crate) fn count_iterations(lines: &[u8]) -> usize {
    lines.split(|byte| *byte == b'\n').filter(|line| is_event(line, "decided")).count()
}

/// Why the loop stopped: from its last event, or from its error.
pub(crate) fn stop_reason(log: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(log);
    if let Some(line) = text.lines().rev().find(|line| is_event(line.as_bytes(), "end")) {
        let end: Value = serde_json::from_str(line).ok()?;
        return end.get("why").and_then(Value::as_str).map(str::to_owned);
    }
    let start = text.rfind("{\n")?;
    let error: Value = serde_json::from_str(text.get(start..)?).ok()?;
    let mut parts = vec![error.get("message")?.as_str()?];
    let causes = error.get("causes").and_then(Value::as_array).into_iter().flatten();
    parts.extend(causes.filter_map(Value::as_str));
    Some(parts.join(": "))
}

fn is_event(line: &[u8], name: &str) -> bool {
    let event: Option<Value> = serde_json::from_slice(line).ok();
    event.is_some_and(|event| event.get("event").and_then(Value::as_str) == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_reason_is_in_the_last_event_or_in_the_error() {
        let log = b"{\"event\":\"decided\"}\n{\"event\":\"end\",\"why\":\"no attempts left\"}\n";
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
