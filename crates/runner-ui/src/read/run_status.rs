//! How a run stands, why it does not go on, and what to type. Decided from what was read, and from nothing else.

use runner_core::config::Config;
use runner_core::layout::Doc;
use runner_core::model::tree::{Node, Selection, Tree, path_text, select};
use runner_core::text::one_line;
use serde_json::Value;

use crate::api::{IterationRow, NextCommand, StateWord};

/// How many marks a summary names.
const MARKS_MAX: usize = 5;

/// What is known of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RunFacts<'a> {
    pub(crate) branch: &'a str,
    pub(crate) tree: Option<&'a Tree>,
    pub(crate) config: Option<&'a Config>,
    pub(crate) rows: &'a [IterationRow],
    /// Whether a runner is at work on it.
    pub(crate) is_at_work: bool,
    /// Whether the user has paused it.
    pub(crate) is_paused: bool,
    /// Whether a runner began something here and did not finish it.
    pub(crate) is_unfinished: bool,
    /// The newest events of the newest iteration.
    pub(crate) events: &'a [Value],
}

/// How it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RunStanding {
    pub(crate) word: StateWord,
    pub(crate) headline: String,
    /// Why it does not go on; empty while it does.
    pub(crate) why: Vec<String>,
    pub(crate) next: Vec<(String, Option<String>)>,
}

impl RunStanding {
    fn new(word: StateWord, headline: impl Into<String>) -> Self {
        Self { word, headline: headline.into(), why: Vec::new(), next: Vec::new() }
    }

    fn why(mut self, why: impl Into<String>) -> Self {
        self.why.push(why.into());
        self
    }

    fn next(mut self, what: &str, command: Option<&str>) -> Self {
        self.next.push((what.to_owned(), command.map(str::to_owned)));
        self
    }

    pub(crate) fn advice(&self) -> Vec<NextCommand> {
        let advice = |(what, command): &(String, Option<String>)| NextCommand {
            what: what.clone(),
            command: command.clone(),
        };
        self.next.iter().map(advice).collect()
    }
}

/// Decides it.
pub(crate) fn standing(facts: &RunFacts<'_>) -> RunStanding {
    let Some(tree) = facts.tree else {
        return RunStanding::new(StateWord::Invalid, "the tree cannot be read")
            .why("tree.json is missing or breaks its rules; the faults are listed above")
            .next("see every fault", Some("runner validate"));
    };
    if facts.is_at_work {
        return at_work(facts);
    }
    if facts.is_unfinished {
        let iter = facts.rows.last().map(|row| format!(" in iteration {}", row.iter)).unwrap_or_default();
        return RunStanding::new(StateWord::Died, format!("the runner ended{iter} without finishing it"))
            .why("no runner is at work, and an iteration was begun; its work is still in the work tree")
            .next("take it up and go on", Some("runner loop"));
    }
    match select(tree) {
        Selection::Complete => complete(facts, tree),
        Selection::Stuck(choice) => stuck(&choice.path, choice.leaf, facts.rows),
        Selection::Leaf(choice) if facts.is_paused => paused(facts, &path_text(&choice.path)),
        Selection::Leaf(choice) => stopped(facts, &path_text(&choice.path)),
    }
}

/// The names of the runner's own events, and what they mean for how a run stands.
fn phase_of(name: &str) -> Option<(StateWord, &'static str)> {
    Some(match name {
        "planned" | "recovered" => (StateWord::Running, "the agent is at work"),
        "agent_ended" | "checked" => (StateWord::Committing, "the session is being judged"),
        "guard_started" => (StateWord::Guarding, "the guard is running"),
        "guard_ended" | "decided" => (StateWord::Committing, "the result is being committed"),
        "committed" => (StateWord::Running, "the next iteration begins"),
        "waiting" => (StateWord::Waiting, "waiting before the next iteration"),
        "paused" => (StateWord::Paused, "paused between two iterations"),
        "resumed" => (StateWord::Running, "the next iteration begins"),
        _ => return None,
    })
}

/// The newest event that says how far an iteration is.
pub(crate) fn phase(events: &[Value]) -> Option<(&Value, StateWord, &'static str)> {
    events.iter().rev().find_map(|event| {
        let (word, says) = phase_of(event.get("event")?.as_str()?)?;
        Some((event, word, says))
    })
}

fn at_work(facts: &RunFacts<'_>) -> RunStanding {
    let (word, says) = phase(facts.events)
        .map_or((StateWord::Running, "a runner is at work"), |(_, word, says)| (word, says));
    if facts.is_paused && word != StateWord::Paused {
        return RunStanding::new(word, format!("{says}; the run pauses after this iteration"));
    }
    RunStanding::new(word, says)
}

/// A run that the user has paused. Whether a loop waits for its end is not known for sure: it holds no lock meanwhile.
fn paused(facts: &RunFacts<'_>, path: &str) -> RunStanding {
    let waits = matches!(phase(facts.events), Some((_, StateWord::Paused, _)));
    let (headline, then) = if waits {
        ("paused; a loop waits for it to go on", "if that loop was ended meanwhile")
    } else {
        ("paused; no loop is at work", "begin again")
    };
    RunStanding::new(StateWord::Paused, headline)
        .why(format!("someone typed `runner pause`; the next leaf is {path}"))
        .next("end the pause", Some("runner resume"))
        .next(then, Some("runner loop"))
}

fn complete(facts: &RunFacts<'_>, tree: &Tree) -> RunStanding {
    let leaves = tree.root().leaves().total;
    let headline =
        if leaves == 1 { "the one leaf passes".to_owned() } else { format!("all {leaves} leaves pass") };
    let (rows, charged) = (facts.rows, facts.rows.iter().filter(|row| row.is_charged).count());
    let made = if rows.len() == 1 { "1 iteration".to_owned() } else { format!("{} iterations", rows.len()) };
    let mut standing = RunStanding::new(StateWord::Complete, headline)
        .why(format!("{made}, {charged} that cost an attempt and did not pass"));
    let marks = rows.iter().flat_map(|row| row.marks.iter().map(move |mark| (row.iter, mark)));
    for (iter, mark) in marks.take(MARKS_MAX) {
        standing = standing.why(format!("#{iter}: {}", one_line(mark)));
    }
    standing
        .next("look at the commits", Some(&format!("git log --oneline {}", facts.branch)))
        .next("take them over", Some(&format!("git switch main && git merge --no-ff {}", facts.branch)))
}

fn stuck(path: &[&Node], leaf: &Node, rows: &[IterationRow]) -> RunStanding {
    let on_leaf: Vec<&IterationRow> =
        rows.iter().filter(|row| row.node.as_deref() == Some(leaf.id.as_str()) && row.is_charged).collect();
    let by_guard = on_leaf.iter().filter(|row| row.outcome.as_deref() == Some("guard_failed")).count();
    let headline = format!("{}: {} of {} attempts used", path_text(path), leaf.attempts, leaf.max_attempts);
    let mut standing = RunStanding::new(StateWord::Stuck, headline);
    if by_guard > 0 {
        let times = if by_guard == 1 { "once".to_owned() } else { format!("{by_guard} times") };
        standing = standing.why(format!("the guard failed {times} on this leaf"));
    }
    if let Some(last) = on_leaf.last() {
        let says = one_line(&last.summary);
        if !says.is_empty() {
            standing = standing.why(format!("the last session said: {says}"));
        }
        standing =
            last.findings.iter().take(3).fold(standing, |standing, found| standing.why(one_line(found)));
    }
    let id = &leaf.id;
    standing
        .next("allow it more attempts", Some(&format!("runner node allow {id}")))
        .next("or ask for something else", Some(&format!("runner node edit {id} --goal \"…\"")))
        .next("or divide it", Some(&format!("runner node split {id} --into \"…\" --into \"…\"")))
        .next("go on", Some("runner loop"))
}

/// The reason that was recorded when the loop ended, or that follows from the last iteration.
fn recorded_stop(events: &[Value]) -> Option<&Value> {
    let last = |name: &str| {
        events.iter().rev().find(|event| event.get("event").and_then(Value::as_str) == Some(name))
    };
    let stop = last("stopped").and_then(|event| event.get("stop"));
    stop.or_else(|| last("committed")?.get("next").filter(|next| next.get("reason").is_some()))
}

/// A run with open leaves that nothing is at work on.
fn stopped(facts: &RunFacts<'_>, path: &str) -> RunStanding {
    let (config_path, rows) = (Doc::Config.path(), facts.rows);
    let made = u32::try_from(rows.len()).unwrap_or(u32::MAX);
    let max = facts.config.map(|config| config.max_iterations.as_u32());
    let edit = format!("${{EDITOR:-vi}} {config_path}");
    let stop = recorded_stop(facts.events);
    let reason = stop.and_then(|stop| stop.get("reason")).and_then(Value::as_str).unwrap_or_default();
    let word = |key: &str| {
        let value = stop.and_then(|stop| stop.get(key)).and_then(Value::as_str).unwrap_or("unknown");
        one_line(&value.replace('_', " "))
    };
    let go_on = |standing: RunStanding| standing.next("go on", Some("runner loop"));
    match reason {
        "max_iterations" => limit_of_iterations(max.unwrap_or(made), &edit),
        _ if max.is_some_and(|max| made >= max) => limit_of_iterations(max.unwrap_or(made), &edit),
        "time_limit" => go_on(
            RunStanding::new(StateWord::Limit, format!("an iteration ran out of time: {}", word("outcome")))
                .why(format!("the next leaf is {path}; what there was is committed")),
        )
        .next("if it was too short, raise the timeouts first", Some(&edit))
        .next("and take the change in", Some("runner start")),
        "budget" => go_on(
            RunStanding::new(StateWord::Limit, format!("the budget is spent: {}", word("limit")))
                .why(format!("the next leaf is {path}; what there was is committed"))
                .next("raise [budget]", Some(&edit))
                .next("take the change in", Some("runner start")),
        ),
        "needs_user" => {
            RunStanding::new(StateWord::Failed, format!("the agent cannot work: {}", word("outcome")))
                .why("no attempt was charged; the run waits for you")
                .next("see what is missing", Some("runner doctor"))
                .next("go on", Some("runner loop"))
        }
        "failures" => RunStanding::new(
            StateWord::Failed,
            format!("failures in a row, the last one: {}", word("outcome")),
        )
        .why("failures of the agent program or the guard cost no attempt; the run waits for you")
        .next("see what is missing", Some("runner doctor"))
        .next("go on", Some("runner loop")),
        "interrupted" | "user_stop" => go_on(
            RunStanding::new(StateWord::Interrupted, "stopped by hand; what there was is committed")
                .why(format!("the next leaf is {path}")),
        ),
        "loop_iterations" => go_on(
            RunStanding::new(StateWord::Idle, "the iterations that were asked for are made")
                .why(format!("the next leaf is {path}")),
        ),
        "" | "complete" | "stuck" if rows.is_empty() => {
            RunStanding::new(StateWord::Idle, "nothing has happened yet")
                .why(format!("the next leaf is {path}"))
                .next("begin", Some("runner loop"))
        }
        "" | "complete" | "stuck" => go_on(
            RunStanding::new(StateWord::Idle, "no runner is at work").why(format!("the next leaf is {path}")),
        ),
        // A newer runner knows more reasons; most of them are limits.
        other => go_on(
            RunStanding::new(StateWord::Limit, one_line(&other.replace('_', " ")))
                .why(format!("the next leaf is {path}")),
        ),
    }
}

fn limit_of_iterations(max: u32, edit: &str) -> RunStanding {
    RunStanding::new(StateWord::Limit, format!("the run has made its {max} iterations"))
        .next("raise max_iterations", Some(edit))
        .next("take the change in", Some("runner start"))
        .next("go on", Some("runner loop"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tree(attempts: u32, passes: bool) -> Tree {
        let root = json!({ "version": 1, "root": { "id": "root", "order": 0, "title": "T", "goal": "", "acceptance": [],
            "passes": passes, "attempts": attempts, "max_attempts": 3, "children": [] } });
        Tree::decode(root.to_string().as_bytes()).unwrap()
    }

    fn of(tree: &Tree, rows: &[IterationRow], is_at_work: bool, events: &[Value]) -> RunStanding {
        let facts = RunFacts {
            branch: "runner/x",
            tree: Some(tree),
            config: None,
            rows,
            is_at_work,
            is_paused: false,
            is_unfinished: false,
            events,
        };
        standing(&facts)
    }

    #[test]
    fn a_run_at_work_stands_where_its_newest_event_says() {
        let tree = tree(0, false);
        for (name, word) in [
            ("planned", StateWord::Running),
            ("agent_ended", StateWord::Committing),
            ("guard_started", StateWord::Guarding),
            ("decided", StateWord::Committing),
            ("waiting", StateWord::Waiting),
        ] {
            let events =
                [json!({ "event": "planned" }), json!({ "event": name }), json!({ "event": "unheard_of" })];
            assert_eq!(of(&tree, &[], true, &events).word, word, "{name}");
        }
        assert_eq!(of(&tree, &[], true, &[]).word, StateWord::Running);
    }

    #[test]
    fn every_end_says_what_to_type() {
        let (open, spent, done) = (tree(0, false), tree(3, false), tree(0, true));
        let row = IterationRow { iter: 1, ..IterationRow::default() };
        let rows = std::slice::from_ref(&row);
        let stop = |reason: &str| {
            vec![json!({ "event": "stopped", "stop": { "reason": reason, "outcome": "idle_timeout" } })]
        };
        let next = |reason: &str| {
            vec![json!({ "event": "committed", "next": { "then": "stop", "reason": reason } })]
        };
        for (tree, events, word) in [
            (&done, vec![], StateWord::Complete),
            (&spent, vec![], StateWord::Stuck),
            (&open, vec![], StateWord::Idle),
            (&open, stop("time_limit"), StateWord::Limit),
            (&open, next("max_iterations"), StateWord::Limit),
            (&open, stop("budget"), StateWord::Limit),
            (&open, stop("needs_user"), StateWord::Failed),
            (&open, stop("unheard_of"), StateWord::Limit),
            (&open, stop("failures"), StateWord::Failed),
            (&open, next("interrupted"), StateWord::Interrupted),
            (&open, stop("loop_iterations"), StateWord::Idle),
        ] {
            let standing = of(tree, rows, false, &events);
            assert_eq!(standing.word, word, "{events:?}");
            assert!(standing.next.iter().any(|(_, command)| command.is_some()), "{events:?}");
        }
    }

    #[test]
    fn a_runner_that_is_gone_in_the_middle_has_died() {
        let tree = tree(0, false);
        let facts = RunFacts {
            branch: "runner/x",
            tree: Some(&tree),
            config: None,
            rows: &[],
            is_at_work: false,
            is_paused: false,
            is_unfinished: true,
            events: &[],
        };
        assert_eq!(standing(&facts).word, StateWord::Died);
        assert_eq!(standing(&RunFacts { tree: None, ..facts }).word, StateWord::Invalid);
    }

    #[test]
    fn a_paused_run_says_how_it_goes_on() {
        let tree = tree(0, false);
        let facts = RunFacts {
            branch: "runner/x",
            tree: Some(&tree),
            config: None,
            rows: &[],
            is_at_work: false,
            is_paused: true,
            is_unfinished: false,
            events: &[],
        };
        let commands = |facts: &RunFacts<'_>| {
            let found = standing(facts);
            assert_eq!(found.word, StateWord::Paused);
            found.next.into_iter().filter_map(|(_, command)| command).collect::<Vec<_>>()
        };
        assert_eq!(commands(&facts), ["runner resume", "runner loop"]);
        let waits = [json!({ "event": "committed" }), json!({ "event": "paused" })];
        assert_eq!(commands(&RunFacts { events: &waits, ..facts }), ["runner resume", "runner loop"]);
        let working = standing(&RunFacts { is_at_work: true, ..facts });
        assert_eq!(working.word, StateWord::Running);
        assert!(working.headline.ends_with("pauses after this iteration"), "{}", working.headline);
    }
}
