//! `runner mcp`: commands of this program as tools of an MCP server.
//!
//! Tools, their descriptions and their arguments come from the command line's own definition, so that they cannot differ from it.

use std::ffi::OsString;
use std::path::Path;

use clap::{Arg, ArgAction, Command};
use runner_mcp::{McpServer, McpTool};
use runner_term::{CommandError, CommandExit, CommandOutput, KeyValueLine, Styler, Ui};
use serde_json::{Map, Value, json};

use crate::args::{self, McpArgs};

const READING: &[&[&str]] =
    &[&["status"], &["tree"], &["log"], &["show"], &["report"], &["questions"], &["checks"], &["verify"]];

const EDITING: &[&[&str]] = &[
    &["note"],
    &["answer"],
    &["node", "add"],
    &["node", "edit"],
    &["node", "split"],
    &["node", "move"],
    &["node", "allow"],
    &["node", "remove"],
];

/// Arguments that make no sense for a client: other formats than JSON, files and standard input, output that does not end, and
/// commands of the repository that would run for long.
const LEFT_OUT: &[&str] = &["follow", "from", "help", "html", "jobs", "markdown", "rerun"];

const INSTRUCTIONS: &str = "Reads runs of `runner`, which makes a coding agent finish a plan of tasks in this git repository. \
Start with `status`: it has the state of the run, why it stopped, and what to do next.";

/// A command that is a tool.
struct ToolCommand {
    path: &'static [&'static str],
    command: Command,
}

impl ToolCommand {
    fn find(path: &'static [&'static str]) -> Option<Self> {
        let program = args::command();
        let found = path.iter().try_fold(&program, |command, name| command.find_subcommand(name));
        found.map(|command| Self { path, command: command.clone() })
    }

    fn name(&self) -> String {
        self.path.join("_")
    }

    fn arguments(&self) -> impl Iterator<Item = &Arg> {
        let is_offered = |arg: &&Arg| !arg.is_global_set() && !LEFT_OUT.contains(&arg.get_id().as_str());
        self.command.get_arguments().filter(is_offered)
    }

    fn tool(&self, is_read_only: bool) -> McpTool {
        let mut properties = Map::new();
        for arg in self.arguments() {
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            let mut property = Map::new();
            property.insert("description".to_owned(), help.into());
            let kind = if is_flag(arg) {
                json!({ "type": "boolean" })
            } else if matches!(arg.get_action(), ArgAction::Append) {
                json!({ "type": "array", "items": { "type": "string" } })
            } else {
                json!({ "type": ["string", "integer"] })
            };
            property.extend(kind.as_object().cloned().unwrap_or_default());
            properties.insert(arg.get_id().to_string(), property.into());
        }
        let required: Vec<&str> =
            self.arguments().filter(|arg| arg.is_required_set()).map(|arg| arg.get_id().as_str()).collect();
        let schema = json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        });
        let about = self.command.get_long_about().or(self.command.get_about());
        McpTool {
            name: self.name(),
            description: about.map(ToString::to_string).unwrap_or_default(),
            input_schema: schema.as_object().cloned().unwrap_or_default(),
            is_read_only,
        }
    }

    /// The words of the command line. Values can never be taken for options: options are one word with their value, and the others
    /// come behind `--`.
    fn words(&self, given: &Map<String, Value>) -> Result<Vec<OsString>, CommandError> {
        if let Some(unknown) =
            given.keys().find(|name| self.arguments().all(|arg| arg.get_id() != name.as_str()))
        {
            return Err(invalid(format!("`{}` has no argument `{unknown}`", self.name())));
        }
        let mut words: Vec<OsString> = self.path.iter().map(Into::into).collect();
        let mut positionals = Vec::new();
        for arg in self.arguments() {
            let id = arg.get_id().as_str();
            let Some(value) = given.get(id) else { continue };
            let values = values(value).ok_or_else(|| invalid(format!("`{id}` is not of the right type")))?;
            for value in values {
                match arg.get_long() {
                    Some(long) if !is_flag(arg) => words.push(format!("--{long}={value}").into()),
                    Some(long) if value == "true" => words.push(format!("--{long}").into()),
                    Some(_) => {}
                    None => positionals.push(OsString::from(value)),
                }
            }
        }
        words.push("--".into());
        words.extend(positionals);
        Ok(words)
    }
}

fn is_flag(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::SetTrue)
}

/// A value, or the elements of a list, as words.
fn values(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::Null => Some(Vec::new()),
        Value::String(text) => Some(vec![text.clone()]),
        Value::Bool(_) | Value::Number(_) => Some(vec![value.to_string()]),
        Value::Array(elements) => {
            elements.iter().map(|element| element.as_str().map(str::to_owned)).collect()
        }
        Value::Object(_) => None,
    }
}

fn invalid(why: String) -> CommandError {
    CommandError::refused("mcp_arguments", why).hint("the tool's input schema lists its arguments")
}

/// Serves until the client closes the connection.
pub(crate) fn run(dir: &Path, args: &McpArgs) -> Result<McpOutput, CommandError> {
    let editing = if args.allow_edits { EDITING } else { &[] };
    let commands = |paths: &[&'static [&'static str]]| -> Vec<ToolCommand> {
        paths.iter().copied().filter_map(ToolCommand::find).collect()
    };
    let (reading, editing) = (commands(READING), commands(editing));
    let tools = reading.iter().map(|command| command.tool(true));
    let tools = tools.chain(editing.iter().map(|command| command.tool(false))).collect();
    let offered: Vec<ToolCommand> = reading.into_iter().chain(editing).collect();
    let dir = dir.to_owned();
    let server = McpServer {
        instructions: INSTRUCTIONS.to_owned(),
        tools,
        call: Box::new(move |name, given| {
            let command = offered.iter().find(|command| command.name() == name);
            let called = command.map(|command| call(&dir, command, given));
            called
                .unwrap_or_else(|| Err(invalid(format!("there is no tool `{name}`"))))
                .map_err(|error| error.json())
        }),
    };
    server.serve().map_err(|error| {
        CommandError::new("mcp", CommandExit::FAILURE, "the MCP server ended").cause(error.to_string())
    })?;
    Ok(McpOutput)
}

/// Runs a command without any output of its own: standard output belongs to the protocol.
fn call(dir: &Path, command: &ToolCommand, given: &Map<String, Value>) -> Result<Value, CommandError> {
    let mut words: Vec<OsString> = vec!["runner".into(), "--quiet".into(), "-C".into(), dir.into()];
    words.extend(command.words(given)?);
    let cli = args::parse(&words).map_err(|error| {
        let text = error.to_string();
        invalid(text.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned())
    })?;
    let output = super::run(&cli, &Ui::new(&cli.global))?;
    Ok(output.json())
}

/// The server printed everything already.
pub(crate) struct McpOutput;

impl CommandOutput for McpOutput {
    fn json(&self) -> Value {
        json!({ "schema": "runner.mcp/1" })
    }

    fn key_values(&self) -> Vec<KeyValueLine> {
        Vec::new()
    }

    fn human(&self, _: &Styler) -> String {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_is_a_command() {
        for path in READING.iter().chain(EDITING) {
            assert!(ToolCommand::find(path).is_some(), "{path:?}");
        }
    }

    #[test]
    fn values_are_never_options() {
        let note = ToolCommand::find(&["note"]).unwrap();
        let given = json!({ "text": "--help" });
        let words = note.words(given.as_object().unwrap()).unwrap();
        assert_eq!(words, ["note", "--", "--help"]);
        let add = ToolCommand::find(&["node", "add"]).unwrap();
        let given = json!({ "parent": "root", "title": "-v", "acceptance": ["a", "--b"], "max_attempts": 2 });
        let words = add.words(given.as_object().unwrap()).unwrap();
        let expected = [
            "node",
            "add",
            "--title=-v",
            "--acceptance=a",
            "--acceptance=--b",
            "--max-attempts=2",
            "--",
            "root",
        ];
        assert_eq!(words, expected);
    }

    #[test]
    fn unknown_and_left_out_arguments_are_refused() {
        let log = ToolCommand::find(&["log"]).unwrap();
        for name in ["follow", "nothing", "help"] {
            let given = json!({ name: true });
            assert!(log.words(given.as_object().unwrap()).is_err(), "{name}");
        }
    }
}
