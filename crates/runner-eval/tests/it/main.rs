//! Tests of the `runner-eval` binary on real cases, with the real runner.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that panics has failed"
)]

mod attribution;
mod cheating_agents;
mod clusters;
mod command_line;
mod compare_and_gate;
mod experiments;
mod formats;
mod generated;
mod isolation;
mod lost_work;
mod partitions;
mod real_agents;
mod report;
mod resume;
mod shipped_cases;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use testkit::test_repo::{RunOutput, TestRepo, run};

/// A folder with cases.
struct Suite {
    repo: TestRepo,
}

/// An agent's session that runs a shell script.
fn shell(script: &str) -> String {
    format!("[[session.do]]\nrun = {{ argv = [\"sh\", \"-c\", \'\'\'{script}\'\'\'] }}\n")
}

/// The cases of this repository.
fn shipped_cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../eval/cases")
}

/// Folders that the sandbox of a trial replaces as a whole. Codex's built-in sandbox replaces them too.
const REPLACED_FOLDERS: [&str; 3] = ["/tmp", "/dev/shm", "/var/tmp"];

/// A writable folder outside of the replaced ones, also for a clone that is in one of them.
fn disk_folder() -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let candidates = [Some(PathBuf::from(env!("CARGO_TARGET_TMPDIR"))), home, Some(PathBuf::from("/opt"))];
    let is_usable = |folder: &PathBuf| {
        let is_replaced = REPLACED_FOLDERS.iter().any(|replaced| folder.starts_with(replaced));
        !is_replaced && tempfile::tempdir_in(folder).is_ok()
    };
    let canonical = candidates.into_iter().flatten().filter_map(|folder| folder.canonicalize().ok());
    let mut usable = canonical.filter(is_usable);
    usable.next().unwrap_or_else(|| panic!("no writable folder outside of {REPLACED_FOLDERS:?}"))
}

fn runner() -> PathBuf {
    let path = Path::new(env!("CARGO_BIN_EXE_runner-eval")).with_file_name("runner");
    assert!(path.is_file(), "`{}` is missing: cargo build -p runner", path.display());
    path
}

impl Suite {
    fn new() -> Self {
        Self { repo: TestRepo::empty(env!("CARGO_BIN_EXE_runner-eval")) }
    }

    /// A suite in a folder that sandboxes do not replace as a whole, so that only what the evaluation itself hides is hidden.
    fn on_disk() -> Self {
        let folder = tempfile::tempdir_in(disk_folder()).unwrap();
        Self { repo: TestRepo::empty_in(env!("CARGO_BIN_EXE_runner-eval"), folder) }
    }

    /// A suite with cases of these names, all of which succeed.
    fn with_cases(names: &[&str]) -> Self {
        let suite = Self::new();
        for name in names {
            suite.add(name, "", "[[session.do]]\nwrite = { path = \"done.txt\", text = \"done\" }\n");
        }
        suite
    }

    /// Adds a case that needs a file `done.txt`. `extra_keys` go into its `[case]`, `actions` into its agent's session.
    fn add(&self, name: &str, extra_keys: &str, actions: &str) {
        self.repo.write(
            &format!("eval/cases/{name}/case.toml"),
            format!(
                "[case]\nid = \"{name}\"\ngoal = \"Write done.txt\"\nsolution = \"agent.toml\"\n{extra_keys}\n\
                 [config.executor]\nkind = \"script\"\nscenario = \"agent.toml\"\nsandbox = \"off\"\n\
                 [config.guard]\ncommand = [\"true\"]\n[[checks]]\ntype = \"file_exists\"\npath = \"done.txt\"\n"
            ),
        );
        let session = format!("[[session]]\nanswer = {{ status = \"done\", summary = \"done\" }}\n{actions}");
        self.repo.write(&format!("eval/cases/{name}/agent.toml"), session);
    }

    /// Adds a case whose agent writes this program as `answer.py`, which must print 42. A judge decides.
    fn add_judged(&self, name: &str, program: &str) {
        let text = Value::from(program).to_string();
        let write = format!("[[session.do]]\nwrite = {{ path = \"answer.py\", text = {text} }}\n");
        self.add(name, "hidden = \"hidden\"\nrequires = [\"python3\"]\n", &write);
        let judge = "from judging import equal, finish, run\n\
                     equal(\"prints 42\", run(\"python3\", \"answer.py\").stdout, \"42\\n\")\nfinish()\n";
        self.repo.write(&format!("eval/cases/{name}/hidden/judge.py"), judge);
        let file = format!("eval/cases/{name}/case.toml");
        let case = self.repo.read(&file);
        let check = "type = \"judge\"\ncommand = [\"python3\", \"judge.py\"]";
        self.repo.write(&file, case.replace("type = \"file_exists\"\npath = \"done.txt\"", check));
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.repo.runner_command(arguments);
        if matches!(arguments.first(), Some(&("run" | "lint" | "plan" | "regrade" | "submit"))) {
            command.arg("--runner").arg(runner());
        }
        command
    }

    fn eval(&self, arguments: &[&str]) -> RunOutput {
        run(&mut self.command(arguments))
    }

    /// The JSON that a command prints; the last line if it prints several.
    fn json(&self, arguments: &[&str]) -> Value {
        let output = self.eval(&[arguments, &["--json"]].concat());
        let text = output.stdout.trim_end();
        let last = text.lines().last().filter(|_| text.starts_with("{\"")).unwrap_or(text);
        serde_json::from_str(last)
            .unwrap_or_else(|error| panic!("{error}: {}{}", output.stdout, output.stderr))
    }

    /// Every recorded attempt.
    fn results(&self) -> Vec<RecordedAttempt> {
        let output = self.json(&["results"]);
        assert_eq!(output["unreadable"], serde_json::json!([]));
        let text = |value: &Value| value.as_str().unwrap_or("none").to_owned();
        let number = |value: &Value| value.as_u64().unwrap();
        let mut attempts = Vec::new();
        for result in output["results"].as_array().unwrap() {
            attempts.push(RecordedAttempt {
                case: text(&result["case_id"]),
                trial: number(&result["trial"]),
                attempt: number(&result["attempt"]),
                outcome: text(&result["outcome"]),
                cause: text(&result["cause"]),
            });
        }
        attempts
    }

    /// The case and the outcome of every recorded attempt: `case success`.
    fn outcomes(&self) -> Vec<String> {
        self.results().iter().map(|result| format!("{} {}", result.case, result.outcome)).collect()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct RecordedAttempt {
    case: String,
    trial: u64,
    attempt: u64,
    outcome: String,
    /// `none` for a success.
    cause: String,
}
