//! `runner node`: the user's own edits of the plan

use std::io::Read;
use std::path::Path;

use runner_core::model::id::NodeId;
use runner_core::model::slug::fresh_id;
use runner_core::model::tree::{Node, Tree, path_text};
use runner_core::runs::edit::{NewNode, NodeChanges, SiblingPosition, SplitPart, UserEdit, parts, text_of};
use runner_core::text::one_line;
use runner_host::ops::edit::{CommittedEdit, EditSession};
use runner_term::progress::bar;
use runner_term::{CommandError, CommandExit, CommandOutput, Glyph, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use crate::args::{AddArgs, EditArgs, MoveArgs, NodeArgs, NodeCommand, PositionArgs, SplitArgs};
use crate::render::clean;
use crate::target_arg::node;

const WHAT: &str = "could not edit the plan";

/// An edit that was made.
pub(crate) struct NodeEditOutput {
    edit: UserEdit,
    edited: CommittedEdit,
    /// Where the node is, or was.
    path: String,
}

pub(crate) fn run(dir: &Path, args: &NodeArgs) -> Result<NodeEditOutput, CommandError> {
    let told = |error| CommandError::from_host(WHAT, error);
    // What stands in a file is read before the lock is taken: standard input may be a person.
    let steps = match &args.command {
        NodeCommand::Split(args) => steps(args)?,
        NodeCommand::Add(_)
        | NodeCommand::Edit(_)
        | NodeCommand::Remove(_)
        | NodeCommand::Move(_)
        | NodeCommand::Allow(_) => Vec::new(),
    };
    let run = EditSession::open(dir).map_err(told)?;
    let edit = NodeEditRequest { run: &run, steps }.edit(&args.command)?;
    let before = edit.node().and_then(|id| path_of(run.tree(), id));
    let edited = run.commit(&edit).map_err(told)?;
    let after = edit.node().and_then(|id| path_of(&edited.after.tree, id));
    Ok(NodeEditOutput { edit, edited, path: after.or(before).unwrap_or_default() })
}

fn path_of(tree: &Tree, id: &NodeId) -> Option<String> {
    tree.path_to(id).map(|path| path_text(&path))
}

/// What was typed, on its way to an edit of this run.
struct NodeEditRequest<'r> {
    run: &'r EditSession,
    steps: Vec<SplitPart>,
}

impl NodeEditRequest<'_> {
    fn edit(&self, command: &NodeCommand) -> Result<UserEdit, CommandError> {
        Ok(match command {
            NodeCommand::Add(args) => self.add(args)?,
            NodeCommand::Edit(args) => self.reword(args)?,
            NodeCommand::Split(args) => UserEdit::Split { node: self.node(&args.node)?, into: self.parts() },
            NodeCommand::Remove(args) => UserEdit::Remove { node: self.node(&args.node)? },
            NodeCommand::Move(args) => self.relocate(args)?,
            NodeCommand::Allow(args) => {
                UserEdit::Allow { node: self.node(&args.node)?, more: args.more.unwrap_or(self.attempts()) }
            }
        })
    }

    fn node(&self, text: &str) -> Result<NodeId, CommandError> {
        node(text, self.run.tree(), WHAT)
    }

    /// How many attempts a new node has.
    fn attempts(&self) -> u32 {
        self.run.config().max_attempts_default.as_u32()
    }

    fn add(&self, args: &AddArgs) -> Result<UserEdit, CommandError> {
        let under = self.node(&args.parent)?;
        let id = match &args.id {
            Some(id) => NodeId::new(id.as_str()).map_err(|fault| {
                let report =
                    CommandError::new("node_id", CommandExit::REFUSED, WHAT).cause(fault.to_string());
                report.hint("leave --id out, and one is made from the title")
            })?,
            None => fresh_id(&args.title, |id| self.run.tree().path_to(id).is_some()),
        };
        let attempts = args.max_attempts.unwrap_or(self.attempts());
        let node = NewNode::new(id, &args.title, args.goal.as_deref(), &args.acceptance, attempts);
        Ok(UserEdit::Add { under, node, place: self.place(&args.place)? })
    }

    fn reword(&self, args: &EditArgs) -> Result<UserEdit, CommandError> {
        let points: Vec<String> = args.acceptance.iter().map(|point| text_of(point)).collect();
        let to = NodeChanges {
            title: args.title.as_deref().map(one_line),
            goal: args.goal.as_deref().map(text_of),
            acceptance: (args.no_acceptance || !points.is_empty()).then_some(points),
            max_attempts: args.max_attempts,
        };
        Ok(UserEdit::Edit { node: self.node(&args.node)?, to })
    }

    /// The steps as nodes, each with an id that is new.
    fn parts(&self) -> Vec<NewNode> {
        let mut made: Vec<NewNode> = Vec::new();
        for SplitPart { title, goal, acceptance } in &self.steps {
            let is_taken =
                |id: &NodeId| self.run.tree().path_to(id).is_some() || made.iter().any(|node| node.id == *id);
            let id = fresh_id(title, is_taken);
            made.push(NewNode::new(id, title, goal.as_deref(), acceptance, self.attempts()));
        }
        made
    }

    fn relocate(&self, args: &MoveArgs) -> Result<UserEdit, CommandError> {
        let id = self.node(&args.node)?;
        let path = self.run.tree().path_to(&id).unwrap_or_default();
        let parent = path.iter().rev().nth(1).map_or(&id, |parent| &parent.id);
        let under = args.under.as_deref().map_or_else(|| Ok(parent.clone()), |under| self.node(under))?;
        Ok(UserEdit::Move { node: id, under, place: self.place(&args.place)? })
    }

    fn place(&self, args: &PositionArgs) -> Result<SiblingPosition, CommandError> {
        Ok(match (&args.before, &args.after, args.order) {
            (Some(before), _, _) => SiblingPosition::Before(self.node(before)?),
            (_, Some(after), _) => SiblingPosition::After(self.node(after)?),
            (_, _, Some(order)) => SiblingPosition::Order(order),
            (None, None, None) => SiblingPosition::Last,
        })
    }
}

/// The steps that a leaf is divided into, as they were typed or stand in a file.
fn steps(args: &SplitArgs) -> Result<Vec<SplitPart>, CommandError> {
    let Some(path) = &args.from else {
        return Ok(args
            .into
            .iter()
            .map(|title| SplitPart { title: title.clone(), ..SplitPart::default() })
            .collect());
    };
    let name = path.display().to_string();
    let unreadable = |why: String| {
        CommandError::new(
            "steps_file",
            CommandExit::REFUSED,
            format!("could not read the steps from `{name}`"),
        )
        .cause(why)
    };
    let text = if name == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    let text = text.map_err(|error| unreadable(error.to_string()).hint("name a text file in UTF-8"))?;
    parts(&text).map_err(|line| {
        unreadable(format!("line {line} is indented, and no title stands before it"))
            .hint("begin every step with its title, at the margin")
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
            UserEdit::Answer { .. } | UserEdit::Note { .. } => "said",
        }
    }

    /// The node as it is now.
    fn node(&self) -> Option<&Node> {
        self.edited.after.tree.path_to(self.edit.node()?).and_then(|path| path.last().copied())
    }

    /// What the edit came to, beside itself.
    fn notes(&self) -> Vec<String> {
        let tree = &self.edited.after.tree;
        let mut notes = Vec::new();
        if let Some(node) = self.node().filter(|node| node.is_leaf() && node.is_exhausted()) {
            notes.push(format!("its attempts are spent: 'runner node allow {}' gives it more", node.id));
        }
        if tree.root().passes {
            notes.push("every leaf passes now: the run is complete".to_owned());
        }
        notes
    }
}

impl CommandOutput for NodeEditOutput {
    fn json(&self) -> Value {
        json!({
            "schema": "runner.edit/1",
            "run_id": self.edited.run,
            "edit": self.edit,
            "node": self.path,
            "commit": self.edited.commit,
            "leaves": self.edited.after.tree.root().leaves(),
            "notes": self.notes(),
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let line = KeyValueLine::new().with("edit", self.verb()).with("node", &self.path);
        let line = line.with("commit", &self.edited.commit);
        let lines = [line].into_iter();
        lines.chain(self.notes().iter().map(|note| KeyValueLine::new().with("note", note))).collect()
    }

    fn human(&self, pen: &Styler) -> String {
        let tick = pen.paint(TextRole::Good, pen.glyph(Glyph::Passed));
        let mut text = format!("{tick} {} {}\n", self.verb(), pen.paint(TextRole::Strong, &self.path));
        let mut row =
            |says: &str| text.push_str(&format!("  {}\n", pen.fit(says, pen.width.saturating_sub(2))));
        match (&self.edit, self.node()) {
            (UserEdit::Split { .. }, Some(node)) => {
                node.children.iter().for_each(|child| row(&format!("{}  {}", child.id, clean(&child.title))));
            }
            (UserEdit::Allow { .. }, Some(node)) => {
                row(&format!(
                    "{} of {} attempts are left",
                    node.max_attempts - node.attempts,
                    node.max_attempts
                ));
            }
            (_, Some(node)) => row(&clean(&node.title)),
            (_, None) => {}
        }
        self.notes().iter().for_each(|note| row(note));
        let leaves = self.edited.after.tree.root().leaves();
        text + &format!("\n  {}\n", bar(leaves, pen.width.saturating_sub(4), pen))
    }
}
