//! Reads the JSON lines that `runner --json loop` prints: the events of the loop, its final summary, and the error that it may
//! end with. The runner under test may be of another version, so only the needed keys are read.

use runner_core::step::Outcome as IterationOutcome;
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
fn count_iterations(lines: &[u8]) -> usize {
    lines.split(|byte| *byte == b'\n').filter(|line| is_event(line, "decided")).count()
}

/// What the loop reported about its iterations. The evaluation reads this from the loop's own output, because the documents
/// in the workspace are within the agent's reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LoopProgress {
    /// Whether a session was planned, so that code of the agent may have run.
    pub(crate) has_session: bool,
    /// The outcomes of the decided iterations, in order. An outcome that this version does not know is left out.
    pub(crate) outcomes: Vec<IterationOutcome>,
    /// Whether a model used a tool, so that its commands may have run.
    pub(crate) has_activity: bool,
}

/// Events of a session that show nothing but the way to the provider and words of the model. Any other may be the use of a tool.
const PASSIVE_EVENTS: [&str; 8] =
    ["session", "message", "reasoning", "retry", "warning", "rate_limit", "usage", "failed"];

impl LoopProgress {
    pub(crate) fn read(log: &[u8]) -> Self {
        #[derive(Deserialize)]
        struct DecidedLine {
            outcome: IterationOutcome,
        }
        #[derive(Deserialize)]
        struct KindLine {
            kind: String,
        }
        let mut progress = Self::default();
        for line in log.split(|byte| *byte == b'\n') {
            if is_event(line, "planned") {
                progress.has_session = true;
            } else if is_event(line, "decided")
                && let Ok(DecidedLine { outcome }) = serde_json::from_slice(line)
            {
                progress.outcomes.push(outcome);
            } else if is_event(line, "agent") {
                let event = serde_json::from_slice::<KindLine>(line);
                let is_passive = event.is_ok_and(|line| PASSIVE_EVENTS.contains(&line.kind.as_str()));
                progress.has_activity |= !is_passive;
            }
        }
        progress
    }
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

/// Counts iterations in the output of the loop, which arrives in arbitrary pieces.
#[derive(Default)]
pub(crate) struct LoopCounter {
    partial_line: Vec<u8>,
    iterations: u32,
    /// Whether a session was planned.
    pub(crate) has_session: bool,
}

impl LoopCounter {
    /// The new number of iterations, if it changed.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> Option<u32> {
        self.partial_line.extend_from_slice(bytes);
        let complete = self.partial_line.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        let rest = self.partial_line.split_off(complete);
        let lines = std::mem::replace(&mut self.partial_line, rest);
        self.has_session |= lines.split(|byte| *byte == b'\n').any(|line| is_event(line, "planned"));
        let decided = count_iterations(&lines);
        self.iterations += u32::try_from(decided).unwrap_or_default();
        (decided > 0).then_some(self.iterations)
    }
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
    fn progress_lists_the_decided_outcomes() {
        let log =
            b"{\"event\":\"planned\"}\n{\"event\":\"decided\",\"outcome\":\"passed\"}\n{\"event\":\"x\"}\n";
        let progress = LoopProgress::read(log);
        assert_eq!((progress.has_session, progress.outcomes), (true, vec![IterationOutcome::Passed]));
        assert_eq!(LoopProgress::read(b"error"), LoopProgress::default());
    }

    #[test]
    fn any_tool_is_activity_and_words_are_not() {
        let read = |kind: &str| {
            LoopProgress::read(format!("{{\"event\":\"agent\",\"kind\":\"{kind}\"}}\n").as_bytes())
        };
        assert!(PASSIVE_EVENTS.iter().all(|kind| !read(kind).has_activity));
        assert!(
            ["command", "edit", "tool", "unknown", "new_in_a_later_version"]
                .iter()
                .all(|kind| read(kind).has_activity)
        );
    }

    #[test]
    fn iterations_are_counted_across_pieces_of_output() {
        let mut counter = LoopCounter::default();
        assert_eq!(counter.add(b"{\"event\":\"dec"), None);
        assert_eq!(counter.add(b"ided\"}\n{\"event\":\"decided\"}\n{\"ev"), Some(2));
        assert_eq!(counter.add(b"ent\":\"agent\"}\n{\"event\":\"planned"), None);
        assert!(!counter.has_session);
        assert_eq!(counter.add(b"\"}\n"), None);
        assert!(counter.has_session);
    }

    #[test]
    fn only_complete_decided_events_are_counted() {
        assert_eq!(count_iterations(b"{\"event\":\"decided\"}\n{\"event\":\"agent\"}\n{\"event\":\"deci"), 1);
    }
}
