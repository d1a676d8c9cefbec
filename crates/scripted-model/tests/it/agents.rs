//! The real agents against the server: they write a file in a shell step and end with a structured answer.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use scripted_model::{RequestKind, ScriptedModel};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::agents;

use crate::HELLO;
use crate::start_model;

const SCHEMA: &str = r#"{"type":"object","properties":{"status":{"type":"string"},"summary":{"type":"string"}},"required":["status","summary"],"additionalProperties":false}"#;

/// Folders for one session: `home`, `tmp` (not a parent of `home`) and `work`.
struct SessionFolder {
    root: TempDir,
}

struct SessionOutput {
    code: Option<i32>,
    events: Vec<Value>,
    stderr: String,
}

impl SessionFolder {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for name in ["home", "tmp", "work"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        fs::write(root.path().join("schema.json"), SCHEMA).unwrap();
        Self { root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// An agent with nothing of the machine's environment but `PATH`.
    fn command(&self, agent: &str) -> Command {
        let mut command = Command::new(agents::program(agent));
        command
            .current_dir(self.path("work"))
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.path("home"))
            .env("TMPDIR", self.path("tmp"))
            .env("TERM", "dumb");
        command
    }

    fn run(&self, command: &mut Command) -> SessionOutput {
        fs::write(self.path("prompt"), "make hello.txt").unwrap();
        let prompt = fs::File::open(self.path("prompt")).unwrap();
        let output = command.stdin(Stdio::from(prompt)).output().unwrap();
        let lines = String::from_utf8_lossy(&output.stdout).into_owned();
        SessionOutput {
            code: output.status.code(),
            events: lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    fn codex(&self, model: &ScriptedModel, name: &str) -> SessionOutput {
        let provider = format!(
            "model_providers.scripted={{name=\"scripted\",base_url=\"{}/v1\",env_key=\"SCRIPTED_KEY\",wire_api=\"responses\",\
             request_max_retries=1,stream_max_retries=1}}",
            model.url()
        );
        let mut command = self.command("codex");
        command.env("CODEX_HOME", self.path("home")).env("SCRIPTED_KEY", "sk-dummy");
        command.args([
            "exec",
            "--json",
            "--ephemeral",
            "--skip-git-repo-check",
            "--ignore-user-config",
            "--ignore-rules",
        ]);
        command.args(["--color", "never", "-s", "workspace-write", "-m", name, "-C"]).arg(self.path("work"));
        command.args(["-c", "model_provider=scripted", "-c", &provider, "-c", "analytics.enabled=false"]);
        command.args([
            "--disable",
            "plugins",
            "--disable",
            "unbounded_connection_retries",
            "--output-schema",
        ]);
        command.arg(self.path("schema.json")).arg("-o").arg(self.path("last.json")).arg("-");
        self.run(&mut command)
    }

    fn claude(&self, model: &ScriptedModel) -> SessionOutput {
        let mut command = self.command("claude");
        command
            .env("CLAUDE_CONFIG_DIR", self.path("home"))
            .env("ANTHROPIC_API_KEY", "sk-dummy")
            .env("ANTHROPIC_BASE_URL", model.url())
            .env("IS_SANDBOX", "1")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
            .env("DISABLE_AUTO_COMPACT", "1")
            .env("CLAUDE_CODE_MAX_RETRIES", "2");
        command.args(["-p", "--output-format", "stream-json", "--verbose", "--model", "fake-model"]);
        command.args([
            "--permission-mode",
            "bypassPermissions",
            "--no-session-persistence",
            "--setting-sources",
            "user",
        ]);
        command.args(["--strict-mcp-config", "--max-turns", "50", "--json-schema", SCHEMA]);
        self.run(&mut command)
    }

    fn assert_file_written(&self, session: &SessionOutput) {
        assert_eq!(session.code, Some(0), "{}\n{:?}", session.stderr, session.events);
        let content = fs::read_to_string(self.path("work/hello.txt"));
        assert_eq!(content.ok().as_deref(), Some("hello\n"), "{}\n{:?}", session.stderr, session.events);
    }
}

fn chosen_steps(model: &ScriptedModel) -> Vec<Option<usize>> {
    let requests = model.requests().into_iter().filter(|request| request.kind == RequestKind::Step);
    requests.map(|request| request.step).collect()
}

/// The script with a cut of its first answer, once.
fn with_cut(script: &str) -> String {
    script.replacen(
        "[[part.step]]\ndo.final",
        "fault = [{ times = 1, what = 'cut' }]\n[[part.step]]\ndo.final",
        1,
    )
}

#[test]
fn codex_writes_a_file_and_ends_with_the_structured_answer() {
    let folder = SessionFolder::new();
    let model = start_model(HELLO);
    let session = folder.codex(&model, "gpt-5.5");
    folder.assert_file_written(&session);
    let last: Value = serde_json::from_str(&fs::read_to_string(folder.path("last.json")).unwrap()).unwrap();
    assert_eq!(last, json!({ "status": "done", "summary": "made it" }));
    let end = session.events.last().unwrap();
    assert_eq!(end["type"], "turn.completed");
    let usage = &end["usage"];
    assert_eq!((&usage["input_tokens"], &usage["cached_input_tokens"]), (&json!(6000), &json!(3200)));
    assert_eq!((&usage["output_tokens"], &usage["reasoning_output_tokens"]), (&json!(120), &json!(17)));
    assert_eq!(chosen_steps(&model), [Some(0), Some(1)]);
    let first = &model.requests()[0];
    assert_eq!(first.headers["authorization"], "(hidden)");
    assert_eq!(first.body["text"]["format"]["schema"], serde_json::from_str::<Value>(SCHEMA).unwrap());
}

#[test]
fn codex_writes_a_file_in_code_mode() {
    let folder = SessionFolder::new();
    let model = start_model(HELLO);
    folder.assert_file_written(&folder.codex(&model, "gpt-6-sol"));
    assert!(model.requests()[0].tools.contains(&"exec".to_owned()));
}

#[test]
fn codex_retries_after_an_http_error_and_a_cut_stream() {
    let fault = "fault = [{ times = 1, what.http.status = 500 }, { times = 1, what = 'cut' }]\n[[part.step]]\ndo.final";
    let folder = SessionFolder::new();
    let model = start_model(&HELLO.replacen("[[part.step]]\ndo.final", fault, 1));
    folder.assert_file_written(&folder.codex(&model, "gpt-5.5"));
    let faults: Vec<_> = model.requests().into_iter().map(|request| request.fault).collect();
    assert_eq!(faults, [Some("http 500".to_owned()), Some("cut".to_owned()), None, None]);
}

#[test]
fn claude_writes_a_file_and_ends_with_the_structured_answer() {
    let folder = SessionFolder::new();
    let model = start_model(HELLO);
    let session = folder.claude(&model);
    folder.assert_file_written(&session);
    let end = session.events.last().unwrap();
    assert_eq!((&end["type"], &end["is_error"]), (&json!("result"), &json!(false)));
    assert_eq!(end["structured_output"], json!({ "status": "done", "summary": "made it" }));
    let usage = &end["usage"];
    assert_eq!((&usage["input_tokens"], &usage["cache_read_input_tokens"]), (&json!(2800), &json!(3200)));
    assert_eq!(chosen_steps(&model), [Some(0), Some(1)]);
}

#[test]
fn claude_retries_after_a_cut_in_the_first_block() {
    let script = with_cut(&HELLO.replace("text = \"first a file\"\n", ""));
    let folder = SessionFolder::new();
    let model = start_model(&script);
    folder.assert_file_written(&folder.claude(&model));
    assert_eq!(chosen_steps(&model), [Some(0), Some(0), Some(1)]);
    let requests = model.requests();
    let step_requests = requests.iter().filter(|request| request.kind == RequestKind::Step);
    assert_eq!(
        step_requests.map(|request| request.body["stream"] == true).collect::<Vec<_>>(),
        [true, true, true]
    );
}

#[test]
fn claude_continues_after_a_cut_behind_a_complete_block() {
    let folder = SessionFolder::new();
    let model = start_model(&with_cut(HELLO));
    let session = folder.claude(&model);
    folder.assert_file_written(&session);
    let end = session.events.last().unwrap();
    assert_eq!((session.code, &end["is_error"]), (Some(0), &json!(false)), "{}", session.stderr);
}

#[test]
fn installed_agents_have_the_pinned_versions() {
    for agent in ["codex", "claude"] {
        let output = SessionFolder::new().command(agent).arg("--version").output().unwrap();
        let version = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(version.contains(&agents::pinned_version(agent)), "{agent}: {version}");
    }
}
