//! The scripted agent: this binary, started as a child process that plays a scenario.
//!
//! Like any other command agent, it gets everything through environment variables, and may do anything that an agent may do.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use runner_core::agents::scenario::{
    NewChild, Scenario, ScenarioAction, ScenarioAnswer, ScenarioSession, SessionContext,
};
use serde_json::{Value, json};
use thiserror::Error;

/// Why a scenario cannot be played. To the runner, the agent has failed.
#[derive(Debug, Error)]
enum ScenarioPlayError {
    #[error("`{0}` is not set")]
    Variable(&'static str),
    #[error("{}: {source}", .path.display())]
    File { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Scenario(#[from] runner_core::agents::scenario::ScenarioError),
    #[error(
        "no session of the scenario fits iteration {iter}, node {node}, {attempts} attempts, mode {mode}"
    )]
    NoSession { iter: u32, node: String, attempts: u64, mode: String },
    #[error("the tree has no node `{0}`")]
    NoNode(String),
    #[error("unknown provider error `{0}`")]
    NoFault(String),
    #[error("{0} is not JSON")]
    NotJson(String),
}

/// The scenario to play, if this process was started as the scripted agent. `main` checks this before anything else.
pub fn scenario_argument() -> Option<PathBuf> {
    let mut args = env::args_os().skip(1);
    (args.next()? == crate::agent::command::SCRIPTED_AGENT_ARG)
        .then(|| args.next())
        .flatten()
        .map(PathBuf::from)
}

/// The `main` of the scripted agent: plays the session of the scenario that matches the environment.
pub fn play(scenario: &Path) -> ExitCode {
    match ScenarioPlayer::load(scenario).and_then(|player| player.play()) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let _ = writeln!(io::stderr(), "script: {error}");
            ExitCode::from(70)
        }
    }
}

/// A scenario and the session to play, as the environment describes it.
struct ScenarioPlayer {
    scenario: Scenario,
    iter: u32,
    node: String,
    mode: String,
    tree: PathBuf,
    output: PathBuf,
    report: PathBuf,
}

fn variable(name: &'static str) -> Result<String, ScenarioPlayError> {
    env::var(name).map_err(|_| ScenarioPlayError::Variable(name))
}

fn path_variable(name: &'static str) -> Result<PathBuf, ScenarioPlayError> {
    env::var_os(name).map(|value: OsString| value.into()).ok_or(ScenarioPlayError::Variable(name))
}

fn with_path<T>(path: &Path, result: io::Result<T>) -> Result<T, ScenarioPlayError> {
    result.map_err(|error| ScenarioPlayError::File { path: path.to_owned(), source: error })
}

impl ScenarioPlayer {
    fn load(scenario: &Path) -> Result<Self, ScenarioPlayError> {
        let text = with_path(scenario, fs::read_to_string(scenario))?;
        let iter = variable("RUNNER_ITER")?;
        Ok(Self {
            scenario: Scenario::decode(&text)?,
            iter: iter.parse().map_err(|_| ScenarioPlayError::Variable("RUNNER_ITER"))?,
            node: variable("RUNNER_NODE_ID")?,
            mode: variable("RUNNER_MODE")?,
            tree: path_variable("RUNNER_TREE")?,
            output: path_variable("RUNNER_OUTPUT")?,
            report: path_variable("RUNNER_REPORT")?,
        })
    }

    fn play(&self) -> Result<u8, ScenarioPlayError> {
        let attempts = self.attempts();
        let context = SessionContext { iter: self.iter, node: &self.node, attempts, mode: &self.mode };
        let session = self.scenario.session_for(context).ok_or_else(|| ScenarioPlayError::NoSession {
            iter: self.iter,
            node: self.node.clone(),
            attempts,
            mode: self.mode.clone(),
        })?;
        self.run_session(session)
    }

    fn run_session(&self, session: &ScenarioSession) -> Result<u8, ScenarioPlayError> {
        for action in &session.actions {
            if let Some(code) = self.perform_action(action)? {
                return Ok(code);
            }
        }
        let answer = match &session.answer {
            Some(ScenarioAnswer::Valid { status, summary }) => {
                json!({ "status": status, "summary": summary }).to_string()
            }
            Some(ScenarioAnswer::Raw { raw }) => raw.clone(),
            None => return Ok(0),
        };
        with_path(&self.output, fs::write(&self.output, answer))?;
        Ok(0)
    }

    /// Returns an exit code if the action ends the session.
    fn perform_action(&self, action: &ScenarioAction) -> Result<Option<u8>, ScenarioPlayError> {
        match action {
            ScenarioAction::Write { path, text } => write_file(Path::new(path), text.as_bytes())?,
            ScenarioAction::Append { path, text } => {
                let mut bytes = fs::read(path).unwrap_or_default();
                bytes.extend(text.as_bytes());
                write_file(Path::new(path), &bytes)?;
            }
            ScenarioAction::Delete { path } => {
                let path = Path::new(path);
                with_path(
                    path,
                    if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) },
                )?;
            }
            ScenarioAction::Print { text } => drop(writeln!(io::stdout(), "{text}")),
            ScenarioAction::Sleep { ms } => std::thread::sleep(Duration::from_millis(*ms)),
            ScenarioAction::Run { argv } => {
                let (program, arguments) = argv.split_first().ok_or(ScenarioPlayError::Variable("argv"))?;
                with_path(Path::new(program), Command::new(program).args(arguments).status())?;
            }
            ScenarioAction::AddChildren { node, children } => {
                self.edit_node(node, |node| add_children(node, children))?;
            }
            ScenarioAction::SetField { node, field, json } => {
                let value: Value =
                    serde_json::from_str(json).map_err(|_| ScenarioPlayError::NotJson(json.clone()))?;
                self.edit_node(node, |node| {
                    node.insert(field.clone(), value);
                })?;
            }
            ScenarioAction::RemoveNode { node } => self.edit_tree(|root| remove_node(root, node))?,
            ScenarioAction::Report(report) => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                let report = report.at(since.as_secs()).map_err(ScenarioPlayError::NoFault)?;
                with_path(&self.report, fs::write(&self.report, report.to_bytes()))?;
            }
            ScenarioAction::Exit { code } => return Ok(Some(*code)),
        }
        Ok(None)
    }

    fn attempts(&self) -> u64 {
        let mut tree = self.read_tree().unwrap_or_default();
        let node = tree.pointer_mut("/root").and_then(|root| find_node(root, &self.node));
        node.and_then(|node| node.get("attempts")?.as_u64()).unwrap_or_default()
    }

    fn read_tree(&self) -> Result<Value, ScenarioPlayError> {
        let text = with_path(&self.tree, fs::read_to_string(&self.tree))?;
        serde_json::from_str(&text).map_err(|_| ScenarioPlayError::NotJson(self.tree.display().to_string()))
    }

    fn edit_tree(&self, edit: impl FnOnce(&mut Value) -> bool) -> Result<(), ScenarioPlayError> {
        let mut tree = self.read_tree()?;
        let edited = tree.pointer_mut("/root").is_some_and(edit);
        if !edited {
            return Err(ScenarioPlayError::NoNode(self.node.clone()));
        }
        with_path(&self.tree, fs::write(&self.tree, format!("{tree:#}\n")))
    }

    fn edit_node(
        &self,
        id: &str,
        edit: impl FnOnce(&mut serde_json::Map<String, Value>),
    ) -> Result<(), ScenarioPlayError> {
        self.edit_tree(|root| find_node(root, id).and_then(Value::as_object_mut).map(edit).is_some())
    }
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), ScenarioPlayError> {
    if let Some(folder) = path.parent() {
        with_path(folder, fs::create_dir_all(folder))?;
    }
    with_path(path, fs::write(path, bytes))
}

/// Finds a node by id in a subtree.
fn find_node<'v>(node: &'v mut Value, id: &str) -> Option<&'v mut Value> {
    if node.get("id").and_then(Value::as_str) == Some(id) {
        return Some(node);
    }
    node.get_mut("children")?.as_array_mut()?.iter_mut().find_map(|child| find_node(child, id))
}

/// Removes a node from its parent; returns whether it was found.
fn remove_node(node: &mut Value, id: &str) -> bool {
    let Some(children) = node.get_mut("children").and_then(Value::as_array_mut) else { return false };
    let before = children.len();
    children.retain(|child| child.get("id").and_then(Value::as_str) != Some(id));
    children.len() < before || children.iter_mut().any(|child| remove_node(child, id))
}

fn add_children(node: &mut serde_json::Map<String, Value>, children: &[NewChild]) {
    let max_attempts = node.get("max_attempts").cloned().unwrap_or(json!(3));
    let Some(list) = node.get_mut("children").and_then(Value::as_array_mut) else { return };
    for child in children {
        let title = child.title.clone().unwrap_or_else(|| child.id.clone());
        list.push(json!({
            "id": child.id,
            "order": list.len() + 1,
            "title": title,
            "goal": child.goal.clone().unwrap_or(title),
            "acceptance": child.acceptance,
            "passes": false,
            "attempts": 0,
            "max_attempts": max_attempts,
            "children": [],
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Value {
        let mut root = json!({ "id": "root", "max_attempts": 2, "children": [] });
        let children = [
            NewChild { id: "a".to_owned(), title: None, goal: None, acceptance: vec!["x".to_owned()] },
            NewChild { id: "b".to_owned(), title: Some("B".to_owned()), goal: None, acceptance: Vec::new() },
        ];
        add_children(root.as_object_mut().unwrap(), &children);
        root
    }

    #[test]
    fn new_nodes_have_all_fields() {
        let mut root = tree();
        let a = find_node(&mut root, "a").unwrap();
        assert_eq!((&a["order"], &a["goal"], &a["max_attempts"]), (&json!(1), &json!("a"), &json!(2)));
        assert_eq!(find_node(&mut root, "b").unwrap()["title"], "B");
        assert!(find_node(&mut root, "c").is_none());
    }

    #[test]
    fn a_node_is_removed_at_any_depth() {
        let mut root = tree();
        let child = [NewChild { id: "deep".to_owned(), title: None, goal: None, acceptance: Vec::new() }];
        add_children(find_node(&mut root, "b").unwrap().as_object_mut().unwrap(), &child);
        assert!(remove_node(&mut root, "deep"));
        assert!(!remove_node(&mut root, "deep"));
        assert!(remove_node(&mut root, "a") && find_node(&mut root, "a").is_none());
    }
}
