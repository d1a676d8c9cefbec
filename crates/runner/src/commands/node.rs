//! `runner node`

use std::io::Read;
use std::path::Path;

use runner_core::model::id::NodeId;
use runner_core::model::slug::fresh_id;
use runner_core::model::tree::{Node, Tree, path_text};
use runner_core::runs::edit::{
    NewNode, NodeChanges, SiblingPosition, SplitPart, UserEdit, clean_text, parse_split_file,
};
use runner_core::text::one_line;
use runner_host::ops::edit::{CommittedEdit, EditSession};
use runner_term::progress::bar;
use runner_term::{CommandError, CommandOutput, Glyph, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use crate::args::{AddArgs, EditArgs, MoveArgs, NodeEditCommand, PositionArgs, SplitArgs};
use crate::render::clean;
use crate::target_arg::resolve_node;

const WHAT: &str = "could not edit the plan";

pub(crate) struct NodeEditOutput {
    edit: UserEdit,
    committed: CommittedEdit,
    /// The node's path after the edit, or before it if the node was removed.
    path: String,
}

pub(crate) fn run(dir: &Path, command: &NodeEditCommand) -> Result<NodeEditOutput, CommandError> {
    let failed = |error| CommandError::from_host(WHAT, error);
    // Read the file before taking the lock: standard input may be a person who types.
    let steps = match command {
        NodeEditCommand::Split(args) => read_steps(args)?,
        NodeEditCommand::Add(_)
        | NodeEditCommand::Edit(_)
        | NodeEditCommand::Remove(_)
        | NodeEditCommand::Move(_)
        | NodeEditCommand::Allow(_) => Vec::new(),
    };
    let run = EditSession::open(dir).map_err(failed)?;
    let edit = NodeEditRequest { run: &run, steps }.edit(command)?;
    let before = edit.node().and_then(|id| path_of(run.tree(), id));
    let committed = run.commit(&edit).map_err(failed)?;
    let after = edit.node().and_then(|id| path_of(&committed.after.tree, id));
    Ok(NodeEditOutput { edit, committed, path: after.or(before).unwrap_or_default() })
}

fn path_of(tree: &Tree, id: &NodeId) -> Option<String> {
    tree.path_to(id).map(|path| path_text(&path))
}

/// Turns the arguments of one command into an edit of a run.
struct NodeEditRequest<'r> {
    run: &'r EditSession,
    steps: Vec<SplitPart>,
}

impl NodeEditRequest<'_> {
    fn edit(&self, command: &NodeEditCommand) -> Result<UserEdit, CommandError> {
        Ok(match command {
            NodeEditCommand::Add(args) => self.add(args)?,
            NodeEditCommand::Edit(args) => self.reword(args)?,
            NodeEditCommand::Split(args) => {
                UserEdit::Split { node: self.node(&args.node)?, into: self.parts() }
            }
            NodeEditCommand::Remove(args) => UserEdit::Remove { node: self.node(&args.node)? },
            NodeEditCommand::Move(args) => self.move_node(args)?,
            NodeEditCommand::Allow(args) => {
                UserEdit::Allow { node: self.node(&args.node)?, more: args.more.unwrap_or(self.attempts()) }
            }
        })
    }

    fn node(&self, text: &str) -> Result<NodeId, CommandError> {
        resolve_node(text, self.run.tree(), WHAT)
    }

    /// The number of attempts of a new node.
    fn attempts(&self) -> u32 {
        self.run.config().max_attempts_default.as_u32()
    }

    fn add(&self, args: &AddArgs) -> Result<UserEdit, CommandError> {
        let under = self.node(&args.parent)?;
        let id = match &args.id {
            Some(id) => NodeId::new(id.as_str()).map_err(|error| {
                CommandError::refused("node_id", WHAT)
                    .cause(error.to_string())
                    .hint("omit --id to derive one from the title")
            })?,
            None => fresh_id(&args.title, |id| self.run.tree().path_to(id).is_some()),
        };
        let attempts = args.max_attempts.unwrap_or(self.attempts());
        let node = NewNode::new(id, &args.title, args.goal.as_deref(), &args.acceptance, attempts);
        Ok(UserEdit::Add { under, node, place: self.position(&args.position)? })
    }

    fn reword(&self, args: &EditArgs) -> Result<UserEdit, CommandError> {
        let criteria: Vec<String> = args.acceptance.iter().map(|criterion| clean_text(criterion)).collect();
        let changes = NodeChanges {
            title: args.title.as_deref().map(one_line),
            goal: args.goal.as_deref().map(clean_text),
            acceptance: (args.no_acceptance || !criteria.is_empty()).then_some(criteria),
            max_attempts: args.max_attempts,
        };
        Ok(UserEdit::Edit { node: self.node(&args.node)?, to: changes })
    }

    /// The steps as nodes, each with an unused id.
    fn parts(&self) -> Vec<NewNode> {
        let mut nodes: Vec<NewNode> = Vec::new();
        for SplitPart { title, goal, acceptance } in &self.steps {
            let is_taken = |id: &NodeId| {
                self.run.tree().path_to(id).is_some() || nodes.iter().any(|node| node.id == *id)
            };
            let id = fresh_id(title, is_taken);
            nodes.push(NewNode::new(id, title, goal.as_deref(), acceptance, self.attempts()));
        }
        nodes
    }

    fn move_node(&self, args: &MoveArgs) -> Result<UserEdit, CommandError> {
        let id = self.node(&args.node)?;
        let path = self.run.tree().path_to(&id).unwrap_or_default();
        let parent = path.iter().rev().nth(1).map_or(&id, |parent| &parent.id);
        let under = args.under.as_deref().map_or_else(|| Ok(parent.clone()), |under| self.node(under))?;
        Ok(UserEdit::Move { node: id, under, place: self.position(&args.position)? })
    }

    fn position(&self, args: &PositionArgs) -> Result<SiblingPosition, CommandError> {
        Ok(match (&args.before, &args.after, args.order) {
            (Some(before), _, _) => SiblingPosition::Before(self.node(before)?),
            (_, Some(after), _) => SiblingPosition::After(self.node(after)?),
            (_, _, Some(order)) => SiblingPosition::Order(order),
            (None, None, None) => SiblingPosition::Last,
        })
    }
}

/// The steps of a split, from the arguments or from a file.
fn read_steps(args: &SplitArgs) -> Result<Vec<SplitPart>, CommandError> {
    let Some(path) = &args.from else {
        return Ok(args
            .into
            .iter()
            .map(|title| SplitPart { title: title.clone(), ..SplitPart::default() })
            .collect());
    };
    let name = path.display().to_string();
    let unreadable = |cause: String| {
        CommandError::refused("steps_file", format!("could not read the steps from `{name}`")).cause(cause)
    };
    let text = if name == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    let text = text.map_err(|error| unreadable(error.to_string()).hint("pass a UTF-8 text file"))?;
    parse_split_file(&text).map_err(|line| {
        unreadable(format!("line {line} is indented, but no title precedes it"))
            .hint("start each step with an unindented title")
    })
}

impl NodeEditOutput {
    fn verb(&self) -> &'static str {
        match &self.edit {
            UserEdit::Add { .. } => "added",
            UserEdit::Edit { .. } => "edited",
            UserEdit::Split { .. } => "split",
            UserEdit::Remove { .. } => "removed",
            UserEdit::Move { .. } => "moved",
            UserEdit::Allow { .. } => "allowed",
            UserEdit::Answer { .. } => "answered",
            UserEdit::Note { .. } => "noted",
            UserEdit::Approve { .. } => "approved",
        }
    }

    /// The node after the edit.
    fn node(&self) -> Option<&Node> {
        self.committed.after.tree.path_to(self.edit.node()?).and_then(|path| path.last().copied())
    }

    /// Consequences of the edit that the user should know.
    fn notes(&self) -> Vec<String> {
        let tree = &self.committed.after.tree;
        let mut notes = Vec::new();
        if let Some(node) = self.node().filter(|node| node.is_leaf() && node.is_exhausted()) {
            notes.push(format!("it has no attempts left: allow more with 'runner node allow {}'", node.id));
        }
        if tree.root().passes {
            notes.push("every task has passed: the run is complete".to_owned());
        }
        notes
    }
}

impl CommandOutput for NodeEditOutput {
    fn json(&self) -> Value {
        json!({
            "schema": "runner.edit/1",
            "run_id": self.committed.run,
            "edit": self.edit,
            "node": self.path,
            "commit": self.committed.commit,
            "leaves": self.committed.after.tree.root().leaves(),
            "notes": self.notes(),
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let line = KeyValueLine::new().with("edit", self.verb()).with("node", &self.path);
        let line = line.with("commit", &self.committed.commit);
        let mut lines = vec![line];
        lines.extend(self.notes().iter().map(|note| KeyValueLine::new().with("note", note)));
        lines
    }

    fn human(&self, styler: &Styler) -> String {
        let tick = styler.paint(TextRole::Good, styler.glyph(Glyph::Passed));
        let mut text = format!("{tick} {} {}\n", self.verb(), styler.paint(TextRole::Strong, &self.path));
        let mut row =
            |row: &str| text.push_str(&format!("  {}\n", styler.fit(row, styler.width.saturating_sub(2))));
        match (&self.edit, self.node()) {
            (UserEdit::Split { .. }, Some(node)) => {
                node.children.iter().for_each(|child| row(&format!("{}  {}", child.id, clean(&child.title))));
            }
            (UserEdit::Allow { .. }, Some(node)) => {
                row(&format!("{} of {} attempts left", node.max_attempts - node.attempts, node.max_attempts));
            }
            (_, Some(node)) => row(&clean(&node.title)),
            (_, None) => {}
        }
        for note in self.notes() {
            row(&note);
        }
        let leaves = self.committed.after.tree.root().leaves();
        text + &format!("\n  {}\n", bar(leaves, styler.width.saturating_sub(4), styler))
    }
}
