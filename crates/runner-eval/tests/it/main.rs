//! The shipped binary over real cases, with the real runner.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed"
)]

mod analysis;
mod cheating_agents;
mod command_line;
mod generated;
mod partitions;
mod real_agents;
mod resume;
mod shipped_cases;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use testkit::test_repo::{RunOutput, TestRepo, run};

/// A folder with cases, to be evaluated.
struct Suite {
    sandbox: TestRepo,
}

/// The cases of this repository.
fn shipped_cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../eval/cases")
}

fn runner() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_runner-eval")).with_file_name("runner");
    assert!(path.is_file(), "`{}` is missing: cargo build -p runner", path.display());
    path
}

impl Suite {
    fn new() -> Self {
        Self { sandbox: TestRepo::empty(env!("CARGO_BIN_EXE_runner-eval")) }
    }

    /// One on a disk: Codex's own sandbox hides what is in memory.
    fn on_disk() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        Self { sandbox: TestRepo::empty_in(env!("CARGO_BIN_EXE_runner-eval"), folder) }
    }

    /// A suite with cases of this name, all of which end well.
    fn of(names: &[&str]) -> Self {
        let suite = Self::new();
        for name in names {
            suite.add(name, "", "[[session.do]]\nwrite = { path = \"done.txt\", text = \"done\" }\n");
        }
        suite
    }

    /// Adds a case that wants a file `done.txt`; `more` goes into its `[case]`, `acts` are what its agent does.
    fn add(&self, name: &str, more: &str, acts: &str) {
        self.sandbox.write(
            &format!("eval/cases/{name}/case.toml"),
            format!(
                "[case]\nid = \"{name}\"\ngoal = \"Write done.txt\"\nsolution = \"agent.toml\"\n{more}\n\
                 [config.executor]\nkind = \"script\"\nscenario = \"agent.toml\"\nsandbox = \"off\"\n\
                 [config.guard]\ncommand = [\"true\"]\n[[checks]]\ntype = \"file_exists\"\npath = \"done.txt\"\n"
            ),
        );
        let session = format!("[[session]]\nanswer = {{ status = \"done\", summary = \"done\" }}\n{acts}");
        self.sandbox.write(&format!("eval/cases/{name}/agent.toml"), session);
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.sandbox.runner_command(words);
        if matches!(words.first(), Some(&("run" | "lint" | "plan" | "regrade")))
            || words.first() == Some(&"submit")
        {
            command.arg("--runner").arg(runner());
        }
        command
    }

    fn eval(&self, words: &[&str]) -> RunOutput {
        run(&mut self.command(words))
    }

    /// What a command answers in JSON; of many lines the last.
    fn json(&self, words: &[&str]) -> Value {
        let ran = self.eval(&[words, &["--json"]].concat());
        let text = ran.stdout.trim_end();
        let last = text.lines().last().filter(|_| text.starts_with("{\"")).unwrap_or(text);
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {}{}", ran.stdout, ran.stderr))
    }

    /// Every result on record: case, trial, attempt, outcome, cause.
    fn results(&self) -> Vec<(String, u64, u64, String, String)> {
        let told = self.json(&["results"]);
        assert_eq!(told["unreadable"], serde_json::json!([]));
        let text = |value: &Value| value.as_str().unwrap_or("none").to_owned();
        let number = |value: &Value| value.as_u64().unwrap();
        let list = told["results"].as_array().unwrap().iter();
        list.map(|one| {
            let (case, outcome, cause) = (text(&one["case_id"]), text(&one["outcome"]), text(&one["cause"]));
            (case, number(&one["trial"]), number(&one["attempt"]), outcome, cause)
        })
        .collect()
    }
}
