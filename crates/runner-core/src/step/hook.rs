//! What a program of the user's is told when a node passed or the loop stops.

use serde_json::{Value, json};

use super::event::Event;
use super::outcome::{Outcome, Stop};
use crate::config::{Argv, Hooks};
use crate::id::{Iteration, RunId};
use crate::tree::Leaves;

/// Listens to a loop, and knows when somebody is to be told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Telling {
    run_id: Option<RunId>,
    iter: Option<Iteration>,
    node: String,
    title: String,
    outcome: Option<Outcome>,
    leaves: Option<Leaves>,
}

/// Something to be told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The key of the configuration.
    pub hook: &'static str,
    /// The program.
    pub argv: Argv,
    /// What it is told.
    pub says: Value,
}

impl Telling {
    /// Takes an event in, and gives what is to be told because of it.
    pub fn note(&mut self, event: &Event, hooks: &Hooks) -> Option<Word> {
        if let Event::Planned { run_id, iter, path, title, .. } = event {
            (self.run_id, self.iter) = (Some(run_id.clone()), Some(*iter));
            (self.node, self.title, self.outcome) = (path.clone(), title.clone(), None);
        }
        if let Event::Settled { iter, outcome, leaves, .. } = event {
            (self.iter, self.outcome, self.leaves) = (Some(*iter), Some(*outcome), Some(*leaves));
        }
        if let Event::Committed { commit, .. } = event {
            let argv = hooks.on_pass.as_ref().filter(|_| self.outcome == Some(Outcome::Passed))?;
            return Some(self.word("on_pass", argv, json!({ "commit": commit })));
        }
        if let Event::Stopped { stop, exit_code } = event {
            let (hook, argv) = of_stop(stop, hooks)?;
            return Some(self.word(hook, argv, json!({ "stop": stop, "exit_code": exit_code })));
        }
        None
    }

    fn word(&self, hook: &'static str, argv: &Argv, more: Value) -> Word {
        let mut says = json!({
            "schema": "runner.hook/1",
            "hook": hook,
            "run_id": self.run_id,
            "iter": self.iter,
            "node": self.node,
            "title": self.title,
            "outcome": self.outcome,
            "leaves": self.leaves,
        });
        if let (Value::Object(says), Value::Object(more)) = (&mut says, more) {
            says.extend(more);
        }
        Word { hook, argv: argv.clone(), says }
    }
}

/// The hook for an end: the one for it, or else the one for every end.
fn of_stop<'h>(stop: &Stop, hooks: &'h Hooks) -> Option<(&'static str, &'h Argv)> {
    let own = match stop {
        Stop::Complete => ("on_complete", hooks.on_complete.as_ref()),
        Stop::Stuck { .. } => ("on_stuck", hooks.on_stuck.as_ref()),
        Stop::MaxIterations { .. }
        | Stop::LoopIterations { .. }
        | Stop::Budget { .. }
        | Stop::Time { .. }
        | Stop::Failures { .. }
        | Stop::Barred { .. }
        | Stop::Interrupted { .. }
        | Stop::Asked => ("on_stop", None),
    };
    [own, ("on_stop", hooks.on_stop.as_ref())].into_iter().find_map(|(hook, argv)| Some((hook, argv?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::NodeId;

    #[test]
    fn an_end_is_told_once_by_the_hook_that_is_nearest_to_it() {
        let argv = |name: &str| Argv::new(vec![name.to_owned()]);
        let all =
            Hooks { on_complete: argv("c"), on_stuck: argv("k"), on_stop: argv("s"), ..Hooks::default() };
        let stop = Hooks { on_stop: argv("s"), ..Hooks::default() };
        let stuck = Stop::Stuck { node: NodeId::root() };
        let told = |hooks: &Hooks, stop: &Stop| of_stop(stop, hooks).map(|(hook, _)| hook);
        assert_eq!(told(&all, &Stop::Complete), Some("on_complete"));
        assert_eq!(told(&all, &stuck), Some("on_stuck"));
        assert_eq!(told(&all, &Stop::Asked), Some("on_stop"));
        assert_eq!(told(&stop, &stuck), Some("on_stop"));
        assert_eq!(told(&Hooks { on_stop: None, ..all }, &Stop::Asked), None);
    }
}
