//! Builds a test run: a repository, a guard, and an agent that is a shell script or a scenario.

use std::fs;
use std::process::Stdio;

use crate::processes::wait_for;
use crate::test_repo::TestRepo;

pub const RUN: &str = "demo";
pub const BRANCH: &str = "runner/demo";
/// A file beside the work tree of a run whose passes cannot be repeated, with the reason.
pub(crate) const UNREPEATABLE: &str = "unrepeatable";

/// Shell functions for agents' scripts. `$AROUND` is the parent folder of the work tree.
const PRELUDE: &str = r#"
AROUND=$(dirname "$HOME")
answer() { printf '{"status": "%s", "summary": "%s"}' "$1" "${2:-$1}" > "$RUNNER_OUTPUT"; }
child() { printf '{"id": "%s", "order": %s, "title": "%s", "goal": "%s", "acceptance": [], "passes": false, "attempts": 0, "max_attempts": 3, "children": []}' "$1" "$2" "$1" "$1"; }
split() { sed -i "s/\"children\": \[\]/\"children\": [$(child a 1), $(child b 2)]/" "$RUNNER_TREE"; answer decomposed; }
"#;

/// A run to start; every default is the simplest value.
#[derive(Clone, Debug)]
pub struct RunBuilder {
    binary: String,
    executor: TestExecutor,
    guard: String,
    keys: String,
    guard_keys: String,
    protected: String,
    config_tables: String,
    goal: String,
    files: Vec<(String, Vec<u8>)>,
    /// Keys of the table `[executor]`.
    executor_keys: String,
    /// Whether the configuration finds the agent's script through `HOME`.
    is_movable: bool,
    /// Why the passes cannot be repeated.
    unrepeatable: Option<String>,
}

#[derive(Clone, Debug)]
enum TestExecutor {
    Shell(String),
    Scenario(String),
    Missing,
    Keys(String),
}

impl RunBuilder {
    /// A run of this binary with a guard that always succeeds and an agent that answers `done` at once.
    pub fn new(binary: &str) -> Self {
        Self {
            binary: binary.to_owned(),
            executor: TestExecutor::Shell("answer done".to_owned()),
            guard: "true".to_owned(),
            keys: String::new(),
            guard_keys: String::new(),
            protected: "guard.sh".to_owned(),
            config_tables: String::new(),
            goal: "# Port it\n\nFrom one to the other.\n\n## Acceptance\n\n- it runs\n".to_owned(),
            files: Vec::new(),
            executor_keys: "sandbox = \"off\"".to_owned(),
            is_movable: false,
            unrepeatable: None,
        }
    }

    /// Uses this shell script as the agent.
    pub fn agent(mut self, script: &str) -> Self {
        self.executor = TestExecutor::Shell(script.to_owned());
        self
    }

    /// Uses the scripted agent with this scenario.
    pub fn scenario(mut self, text: &str) -> Self {
        self.executor = TestExecutor::Scenario(text.to_owned());
        self
    }

    /// Uses a command that does not exist as the agent.
    pub fn missing_agent(mut self) -> Self {
        self.executor = TestExecutor::Missing;
        self
    }

    /// Defines the agent with these keys of `[executor]`.
    pub fn executor(mut self, keys: &str) -> Self {
        self.executor = TestExecutor::Keys(keys.to_owned());
        self
    }

    /// Uses this shell script as the guard; it becomes `guard.sh` in the repository, a protected file.
    pub fn guard(mut self, script: &str) -> Self {
        self.guard = script.to_owned();
        self
    }

    /// Top-level keys of the configuration.
    pub fn keys(mut self, keys: &str) -> Self {
        self.keys = keys.to_owned();
        self
    }

    /// Keys of the table `[guard]`.
    pub fn guard_keys(mut self, keys: &str) -> Self {
        self.guard_keys = keys.to_owned();
        self
    }

    /// Keys of the table `[executor]` besides its kind. The default turns the sandbox off, because most tests check what the
    /// runner itself withstands.
    pub fn executor_keys(mut self, keys: &str) -> Self {
        self.executor_keys = keys.to_owned();
        self
    }

    /// The only protected path, instead of `guard.sh`.
    pub fn protected(mut self, path: &str) -> Self {
        self.protected = path.to_owned();
        self
    }

    /// Lists no protected files: they follow from the guard.
    pub fn derive_protection(mut self) -> Self {
        self.protected = String::new();
        self
    }

    /// Further tables of the configuration.
    pub fn config_tables(mut self, tables: &str) -> Self {
        self.config_tables = tables.to_owned();
        self
    }

    /// Keeps the path of the folder out of the repository, so that a copy of the folder works too.
    pub fn movable(mut self) -> Self {
        self.is_movable = true;
        self
    }

    /// Excuses the run from being repeated in a fresh clone, because its guard or its checks depend on more than the commit.
    pub fn unrepeatable(mut self, why: &str) -> Self {
        self.unrepeatable = Some(why.to_owned());
        self
    }

    pub fn goal(mut self, text: &str) -> Self {
        self.goal = text.to_owned();
        self
    }

    /// Adds a file to the repository.
    pub fn file(mut self, name: &str, bytes: impl AsRef<[u8]>) -> Self {
        self.files.push((name.to_owned(), bytes.as_ref().to_owned()));
        self
    }

    /// Creates the repository and starts the run.
    pub fn start(&self) -> TestRepo {
        self.start_in(TestRepo::empty(&self.binary))
    }

    /// Starts the run in an empty folder.
    pub fn start_in(&self, repo: TestRepo) -> TestRepo {
        if let Some(why) = &self.unrepeatable {
            fs::write(repo.outside().join(UNREPEATABLE), why).expect("a file");
        }
        repo.git(&["init", "-q", "-b", "main"]);
        repo.write("README.md", "hello\n");
        repo.write(".gitignore", "ignored\n");
        repo.write("guard.sh", format!("{}\n", self.guard));
        self.files.iter().for_each(|(name, bytes)| repo.write(name, bytes));
        repo.commit_all("root");
        repo.runner(&["init"]).ok();
        repo.write(".runner/GOAL.md", format!("---\nid: {RUN}\n---\n\n{}", self.goal));
        repo.write(".runner/state/config.toml", self.config(&repo));
        repo.runner(&["start"]).ok();
        repo
    }

    /// Writes the agent's script outside the work tree and returns the configuration.
    fn config(&self, repo: &TestRepo) -> String {
        let write_outside = |name: &str, text: String| {
            let path = repo.outside().join(name);
            fs::write(&path, text).expect("a file");
            path.display().to_string()
        };
        let executor = match &self.executor {
            TestExecutor::Shell(script) => {
                let name = if self.is_movable { "home/agent.sh" } else { "agent.sh" };
                let path = write_outside(name, format!("{PRELUDE}\n{script}\n"));
                let movable = r#""-c", ". \"$HOME/agent.sh\"""#.to_owned();
                let script = if self.is_movable { movable } else { format!("\"{path}\"") };
                format!("kind = \"command\"\ncommand = [\"sh\", {script}]")
            }
            TestExecutor::Scenario(text) => {
                format!("kind = \"script\"\nscenario = \"{}\"", write_outside("play.toml", text.clone()))
            }
            TestExecutor::Keys(keys) => keys.clone(),
            TestExecutor::Missing => "kind = \"command\"\ncommand = [\"no-such-agent\"]".to_owned(),
        };
        let Self { keys, guard_keys, protected, config_tables, executor_keys, .. } = self;
        // Few tests are about the baseline and the final check, and many count the guard's runs.
        let baseline = if guard_keys.contains("baseline") { "" } else { "baseline = false\n" };
        let final_check = if guard_keys.contains("final_check") { "" } else { "final_check = false\n" };
        // Many guards of tests write outside of the repository, which only works in place.
        let room = if guard_keys.contains("room =") { "" } else { "room = \"in-place\"\n" };
        // Few tests are about `done` without work, and many agents of tests do none.
        let accept = if config_tables.contains("[accept]") { "" } else { "[accept]\nunchanged = \"pass\"\n" };
        let protected = match protected.as_str() {
            "" => String::new(),
            path => format!("protected = [\"{path}\"]\n"),
        };
        format!(
            "{keys}\n[executor]\n{executor}\n{executor_keys}\n{accept}[guard]\ncommand = [\"sh\", \"guard.sh\"]\n\
             {protected}{baseline}{final_check}{room}{guard_keys}\n{config_tables}\n"
        )
    }
}

impl TestRepo {
    /// Replaces the agent's script from the next session on.
    pub fn replace_agent(&self, script: &str) {
        fs::write(self.outside().join("agent.sh"), format!("{PRELUDE}\n{script}\n")).expect("a script");
    }

    /// Starts the binary, waits for a file outside the work tree, and kills only the binary.
    pub fn kill_when(&self, args: &[&str], file: &str) {
        let mut command = self.runner_command(args);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the binary");
        wait_for(file, || self.outside().join(file).exists());
        child.kill().expect("a process");
        let _ = child.wait();
    }

    /// tree.json in the work tree.
    pub fn tree(&self) -> serde_json::Value {
        serde_json::from_str(&self.read(".runner/state/tree.json")).expect("a tree")
    }

    /// Reads a file of an iteration's folder.
    pub fn iteration_file(&self, iter: u32, name: &str) -> String {
        String::from_utf8_lossy(&self.read_bytes(&format!(".runner/iterations/{RUN}/{iter:04}/{name}")))
            .into_owned()
    }

    pub fn meta(&self, iter: u32) -> serde_json::Value {
        serde_json::from_str(&self.iteration_file(iter, "meta.json")).expect("json")
    }

    /// The outcomes of all committed iterations, oldest first.
    pub fn outcomes(&self) -> Vec<String> {
        let format = "--format=%(trailers:key=Runner-Outcome,valueonly,separator=)";
        let output = self.git(&["log", "--reverse", format, BRANCH]);
        output.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }
}
