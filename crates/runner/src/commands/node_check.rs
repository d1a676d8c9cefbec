//! `runner node check`

use std::collections::BTreeMap;
use std::path::Path;

use runner_core::config::{CommandArgv, Seconds};
use runner_core::detect::guard_words;
use runner_core::model::checks::{Check, CheckFileName, CheckName, CheckPath, PointNumber, RedRule};
use runner_core::model::id::NodeId;
use runner_core::strict::BoundedInt;
use runner_host::ops::checks::{NewCheckFile, add_check, remove_check};
use runner_host::ops::start::StartResult;
use runner_term::{CommandError, CommandOutput, Glyph, KeyValueLine, Styler, TextRole};
use serde_json::{Value, json};

use super::tree::load;
use crate::args::{CheckAddArgs, CheckRemoveArgs};
use crate::target_arg::resolve_node;

const WHAT: &str = "could not change the checks";

pub(crate) struct NodeCheckOutput {
    verb: &'static str,
    node: NodeId,
    check: CheckName,
    started: StartResult,
}

fn refused(cause: impl Into<String>, hint: &'static str) -> CommandError {
    CommandError::refused("checks", WHAT).cause(cause).hint(hint)
}

pub(super) fn name_of(text: &str) -> Result<CheckName, CommandError> {
    CheckName::new(text).ok_or_else(|| {
        refused(format!("`{text}` is not the name of a check"), "use letters, digits, `.`, `_` and `-`")
    })
}

/// The check of the arguments, and its files.
struct RequestedCheck {
    check: Check,
    files: Vec<NewCheckFile>,
}

pub(crate) fn add(dir: &Path, args: &CheckAddArgs) -> Result<NodeCheckOutput, CommandError> {
    let tree = load(dir, WHAT)?;
    let node = resolve_node(&args.node, &tree, WHAT)?;
    let RequestedCheck { check, files } = requested(args)?;
    let started =
        add_check(dir, &tree, &node, &check, &files).map_err(|error| CommandError::from_host(WHAT, error))?;
    Ok(NodeCheckOutput { verb: "added", node, check: check.name, started })
}

pub(crate) fn remove(dir: &Path, args: &CheckRemoveArgs) -> Result<NodeCheckOutput, CommandError> {
    let tree = load(dir, WHAT)?;
    let node = resolve_node(&args.node, &tree, WHAT)?;
    let check = name_of(&args.name)?;
    let started =
        remove_check(dir, &tree, &node, &check).map_err(|error| CommandError::from_host(WHAT, error))?;
    Ok(NodeCheckOutput { verb: "removed", node, check, started })
}

fn requested(args: &CheckAddArgs) -> Result<RequestedCheck, CommandError> {
    let name = name_of(&args.name)?;
    let command = CommandArgv::new(guard_words(&args.command))
        .ok_or_else(|| refused("the command is empty", "pass a program and its arguments"))?;
    let mut covers = Vec::new();
    for point in &args.covers {
        covers.push(PointNumber::new(*point).ok_or_else(|| {
            refused(format!("{point} is not an acceptance criterion"), "criteria are numbered from 1")
        })?);
    }
    let timeout_secs = match args.timeout {
        None => BoundedInt::fixed::<600>(),
        Some(secs) => Seconds::new(secs)
            .ok_or_else(|| refused(format!("{secs} seconds is not a time limit"), "use 1 to 604800"))?,
    };
    let mut paths = BTreeMap::new();
    let mut files = Vec::new();
    for pair in &args.file {
        let (to, file) = check_file(&name, pair)?;
        paths.insert(to, file.name.clone());
        files.push(file);
    }
    let red = if args.red == "any" { RedRule::Any } else { RedRule::Required };
    let check = Check { name, command, covers, files: paths, timeout_secs, red, junit: None };
    Ok(RequestedCheck { check, files })
}

/// `DEST=PATH`, with the content of the file.
fn check_file(check: &CheckName, pair: &str) -> Result<(CheckPath, NewCheckFile), CommandError> {
    let hint = "write --file DESTINATION=FILE";
    let (to, from) = pair.split_once('=').ok_or_else(|| refused(format!("`{pair}` has no `=`"), hint))?;
    let to_path = CheckPath::new(to).map_err(|why| refused(format!("`{to}`: {why}"), hint))?;
    let bytes = std::fs::read(from).map_err(|error| refused(format!("`{from}`: {error}"), hint))?;
    let base = to.rsplit('/').next().unwrap_or(to);
    let name = CheckFileName::new(&format!("{check}-{base}"))
        .map_err(|why| refused(format!("`{to}`: {why}"), hint))?;
    Ok((to_path, NewCheckFile { name, bytes }))
}

impl CommandOutput for NodeCheckOutput {
    fn json(&self) -> Value {
        json!({
            "schema": "runner.node_check/1",
            "edit": self.verb,
            "node": self.node,
            "check": self.check,
            "commit": self.started.commit,
        })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        let line = KeyValueLine::new().with("edit", self.verb).with("node", &self.node);
        vec![line.with("check", &self.check).with("commit", &self.started.commit)]
    }

    fn human(&self, styler: &Styler) -> String {
        let tick = styler.paint(TextRole::Good, styler.glyph(Glyph::Passed));
        let check = styler.paint(TextRole::Strong, self.check.as_str());
        format!("{tick} {} check {check} of {}\n", self.verb, self.node)
    }
}
