//! Tests the server over real connections, with raw requests and with the real agents.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "an error here is a failed test")]

mod agents;
mod client;
mod faults;
mod script;
mod server_program;
mod wire_formats;

use scripted_model::{ModelScript, ScriptedModel};

fn start_model(script: &str) -> ScriptedModel {
    ScriptedModel::start(ModelScript::parse(script).unwrap()).unwrap()
}

/// One shell step and a final answer.
const HELLO: &str = r#"
[[part]]
[[part.step]]
text = "first a file"
do.shell = "echo hello > hello.txt"
[[part.step]]
do.final = { status = "done", summary = "made it" }
usage = { input = 5000, cached = 3000, output = 70, reasoning = 7 }
"#;
