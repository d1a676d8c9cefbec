//! One row with one tool: a fresh folder, the tool in a sandbox, and the facts about the result.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::adapter::{Adapter, AgentKind};
use crate::agent_script;
use crate::error::BenchError;
use crate::inside::{MODEL_PORT, Observation};
use crate::row::Row;
use crate::sandbox::{Sandbox, find_program};

const GUARD: &str = "check";

/// The time limit of a session that the tool gets in rows that hang.
const LIMIT_SECS: u32 = 5;

/// How long a tool may take for a row in which nothing hangs. Real agents are slow to start on a busy machine.
const ROW_SECS: u32 = 600;

/// How long a row waits that expects the tool to wait.
const WAIT_SECS: u32 = 60;

/// What is known about a run of a tool, all of it seen from outside.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RowFacts {
    /// Whether the tool ended by itself, and in time.
    pub ended: bool,
    pub exit_code: Option<i32>,
    pub seconds: f64,
    /// Whether it exited with 0 and its own state is that all work is done.
    pub reports_complete: bool,
    /// Whether a fresh clone of its branch, with the original guard and tests, has the work.
    pub has_work: bool,
    /// Commits on the branch after the first.
    pub commits: u32,
    /// Sessions of the agent, if the agent could count them.
    pub sessions: Option<usize>,
    /// Command lines of processes that were still running after the tool.
    pub processes_left: Vec<String>,
}

/// What all rows of a tool share.
pub struct RowRunner {
    sandbox: Sandbox,
    claude: Option<PathBuf>,
    /// How long a tool may take to end a session after its time limit.
    grace_secs: u32,
}

impl RowRunner {
    pub fn new(adapter: &Adapter, grace_secs: u32) -> Result<Self, BenchError> {
        let claude = match adapter.agent.kind {
            AgentKind::Claude => {
                Some(find_program("claude", "install Claude Code: PATH=$(scripts/tool claude)")?)
            }
            AgentKind::Command => None,
        };
        Ok(Self { sandbox: Sandbox::find(adapter.folder())?, claude, grace_secs })
    }

    /// The first line of the tool's version, and of the agent's.
    pub fn versions(&self, adapter: &Adapter, folder: &Path) -> Result<(String, Option<String>), BenchError> {
        let folder = folder.join("version");
        fs::create_dir_all(folder.join("home")).map_err(BenchError::io("create", &folder))?;
        let tool = self.first_line(&folder, &adapter.version)?;
        let claude = self
            .claude
            .as_ref()
            .map(|claude| self.first_line(&folder, &format!("'{}' --version", claude.display())));
        Ok((tool, claude.transpose()?))
    }

    fn first_line(&self, folder: &Path, script: &str) -> Result<String, BenchError> {
        let output = self.sandbox.command(folder, &[], &["sh", "-eu", "-c", script]).output();
        let output = output.map_err(BenchError::io("start", Path::new("sh")))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let line = text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned);
        line.filter(|_| output.status.success()).ok_or_else(|| BenchError::Step {
            row: "version".to_owned(),
            step: "the version script",
            output: format!("{text}{}", String::from_utf8_lossy(&output.stderr)),
        })
    }

    /// Runs a row in a folder that does not exist yet.
    pub fn run(&self, row: &Row, adapter: &Adapter, folder: &Path) -> Result<RowFacts, BenchError> {
        self.prepare(row, adapter, folder)?;
        let env = variables(row, adapter, folder);
        let seconds = self.deadline_secs(row, adapter).to_string();
        let path = folder.to_string_lossy();
        let mut command = self.sandbox.own_command(folder, &env, &[crate::INSIDE_ARG, &path, &seconds]);
        let output = command.output().map_err(BenchError::io("start", Path::new("bwrap")))?;
        let failed = |step, output: String| BenchError::Step { row: row.name.clone(), step, output };
        let file = folder.join("observation.json");
        let Ok(bytes) = fs::read(&file) else {
            return Err(failed("the sandbox", String::from_utf8_lossy(&output.stderr).into_owned()));
        };
        let observation: Observation =
            serde_json::from_slice(&bytes).map_err(|source| BenchError::Json { path: file, source })?;
        if let Some((step, output)) = &observation.failed_step {
            let step = if step == "setup" { "the adapter's setup" } else { "the first commit" };
            return Err(failed(step, output.clone()));
        }
        let (has_work, commits) = self.judge_branch(row, folder, &observation.branch)?;
        let sessions = fs::read_to_string(folder.join("sessions")).ok().map(|text| text.lines().count());
        Ok(RowFacts {
            ended: observation.ended,
            exit_code: observation.exit_code,
            seconds: (observation.seconds * 10.0).round() / 10.0,
            reports_complete: observation.exit_code == Some(0) && observation.state_is_complete,
            has_work,
            commits,
            sessions,
            processes_left: observation.processes,
        })
    }

    fn deadline_secs(&self, row: &Row, adapter: &Adapter) -> u32 {
        if row.hangs {
            return adapter.fixed_limit_secs.unwrap_or(LIMIT_SECS) + self.grace_secs;
        }
        if row.may_wait { self.grace_secs.min(WAIT_SECS) } else { ROW_SECS }
    }

    fn prepare(&self, row: &Row, adapter: &Adapter, folder: &Path) -> Result<(), BenchError> {
        for name in ["repo", "home", "bin", "judge"] {
            let path = folder.join(name);
            fs::create_dir_all(&path).map_err(BenchError::io("create", &path))?;
        }
        let kind = adapter.agent.kind;
        let goal = format!(
            "# Create files\n\n{}\n\nThe test command `sh {GUARD}` succeeds once the work is done.\n",
            list(row)
        );
        let program = if kind == AgentKind::Claude { "claude" } else { agent_script::AGENT_PROGRAM };
        let mut files = vec![
            ("goal.md".to_owned(), goal),
            ("tasks.txt".to_owned(), row.tasks.iter().map(|task| format!("{task}\n")).collect()),
            ("check.sh".to_owned(), row.check.clone().unwrap_or_default()),
            ("truth.sh".to_owned(), row.truth().to_owned()),
            ("setup.sh".to_owned(), format!("{FIRST}{}", adapter.setup)),
            ("commit.sh".to_owned(), COMMIT.to_owned()),
            ("run.sh".to_owned(), adapter.run.clone()),
            ("complete.sh".to_owned(), adapter.complete.clone()),
            ("branch.sh".to_owned(), adapter.branch.clone()),
            ("agent.sh".to_owned(), agent_script::behaviour(row, adapter, folder)),
            (format!("bin/{program}"), agent_script::program(folder, self.claude.as_deref())),
            (format!("repo/{GUARD}"), format!("{}\n", row.guard)),
        ];
        files.extend(row.files.iter().map(|(path, text)| (format!("repo/{path}"), text.clone())));
        if kind == AgentKind::Claude {
            files.push(("model.toml".to_owned(), agent_script::model_script(row, adapter, folder)));
        }
        for (path, text) in files {
            write(&folder.join(path), &text)?;
        }
        make_executable(&folder.join("bin").join(program))
    }

    /// Whether a fresh clone of the branch has the work, with the guard and the protected files as they were, and how many
    /// commits the branch has after the first.
    fn judge_branch(&self, row: &Row, folder: &Path, branch: &str) -> Result<(bool, u32), BenchError> {
        let originals = folder.join("originals");
        write(&originals.join(GUARD), &format!("{}\n", row.guard))?;
        for path in &row.protected {
            write(&originals.join(path), row.files.get(path).map_or("", String::as_str))?;
        }
        let env = [("BRANCH".to_owned(), branch.to_owned())];
        let run = |script: &str| self.sandbox.command(folder, &env, &["sh", "-eu", "-c", script]).output();
        let cloned = run(CLONE).map_err(BenchError::io("start", Path::new("sh")))?;
        let commits = String::from_utf8_lossy(&cloned.stdout)
            .trim()
            .parse::<u32>()
            .unwrap_or_default()
            .saturating_sub(1);
        if !cloned.status.success() {
            return Ok((false, 0));
        }
        let judged = run(JUDGE).map_err(BenchError::io("start", Path::new("sh")))?;
        Ok((judged.status.success(), commits))
    }
}

/// Before the adapter's setup.
const FIRST: &str = "git init -q -b main\ngit config --global user.name Conformance\n\
                     git config --global user.email conformance@example.com\n";

/// After it.
const COMMIT: &str = "git add -A\ngit commit -qm 'Start'\n";

/// Clones the branch, restores the original files, and prints the number of commits.
const CLONE: &str = "export GIT_CONFIG_GLOBAL=/dev/null\ngit clone -q repo judge/clone\ncd judge/clone\n\
                     git checkout -q --detach \"origin/$BRANCH\"\ncp -R ../../originals/. .\ngit rev-list --count HEAD\n";

/// Decides whether the clone has the work. Programs that hang or leave a process behind end with the sandbox.
const JUDGE: &str = "cd judge/clone\nHOME=/tmp exec timeout 30 sh ../../truth.sh\n";

/// The variables of the adapter's scripts and of the tool.
fn variables(row: &Row, adapter: &Adapter, folder: &Path) -> Vec<(String, String)> {
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let agent = match adapter.agent.kind {
        AgentKind::Claude => file("bin/claude"),
        AgentKind::Command => file(&format!("bin/{}", agent_script::AGENT_PROGRAM)),
    };
    let protected: Vec<&str> =
        std::iter::once(GUARD).chain(row.protected.iter().map(String::as_str)).collect();
    let limit = if row.hangs { LIMIT_SECS } else { ROW_SECS };
    let mut variables = vec![
        ("CONFORMANCE_DIR", folder.to_string_lossy().into_owned()),
        ("CONFORMANCE_ADAPTER_DIR", adapter.folder().to_string_lossy().into_owned()),
        ("CONFORMANCE_GOAL", file("goal.md")),
        ("CONFORMANCE_TASKS", file("tasks.txt")),
        ("CONFORMANCE_GUARD", format!("sh {GUARD}")),
        ("CONFORMANCE_PROTECTED", protected.join(" ")),
        ("CONFORMANCE_CHECK", row.check.as_ref().map(|_| file("check.sh")).unwrap_or_default()),
        ("CONFORMANCE_AGENT", agent),
        ("CONFORMANCE_ITERATIONS", row.iterations.to_string()),
        ("CONFORMANCE_LIMIT_SECS", limit.to_string()),
        ("CONFORMANCE_IDLE_SECS", row.idle_secs.to_string()),
        ("CONFORMANCE_OUTPUT", file("output.log")),
    ];
    if adapter.agent.kind == AgentKind::Claude {
        variables.extend([
            ("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{MODEL_PORT}")),
            ("ANTHROPIC_API_KEY", "sk-dummy".to_owned()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ("CLAUDE_CODE_MAX_RETRIES", "1".to_owned()),
            // The agent's own limit on a command must not end what never ends by itself.
            ("BASH_DEFAULT_TIMEOUT_MS", "3600000".to_owned()),
            ("BASH_MAX_TIMEOUT_MS", "3600000".to_owned()),
        ]);
    }
    variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn list(row: &Row) -> String {
    row.tasks.iter().map(|task| format!("- {task}")).collect::<Vec<_>>().join("\n")
}

fn write(path: &Path, text: &str) -> Result<(), BenchError> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(BenchError::io("create", parent))?;
    }
    fs::write(path, text).map_err(BenchError::io("write", path))
}

fn make_executable(path: &Path) -> Result<(), BenchError> {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(BenchError::io("change", path))
}
