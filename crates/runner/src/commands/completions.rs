//! `runner completions`

use clap::CommandFactory;
use clap_complete::generate;
use runner_cli::{Line, Pen, Reply};
use serde_json::{Value, json};

use crate::cli::{Cli, CompletionsArgs};

/// A text that is the same for everyone who asks.
pub(crate) struct Script {
    name: &'static str,
    text: String,
}

impl Script {
    pub(crate) fn new(name: &'static str, bytes: &[u8]) -> Self {
        Self { name, text: String::from_utf8_lossy(bytes).into_owned() }
    }
}

pub(crate) fn run(args: &CompletionsArgs) -> Script {
    let mut bytes = Vec::new();
    generate(args.shell, &mut Cli::command(), "runner", &mut bytes);
    Script::new("completions", &bytes)
}

impl Reply for Script {
    fn json(&self) -> Value {
        json!({ "schema": format!("runner.{}/1", self.name), "text": self.text })
    }

    fn plain(&self) -> Vec<Line> {
        self.text.lines().map(Line::verbatim).collect()
    }

    fn drawn(&self, _: &Pen) -> String {
        self.text.clone()
    }
}
