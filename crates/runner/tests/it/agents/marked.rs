//! Marked sessions: whatever an agent could take into a session besides the prompt has a mark of its own, in the user's home,
//! in the repository and in the environment. A plain session of the real program sends every mark to the model, which shows
//! that they are in the right places; a session of the runner sends none.
#![expect(clippy::indexing_slicing, reason = "here a fault is a failed test")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use scripted_model::ScriptedModel;
use serde_json::Value;
use testkit::agents;
use testkit::oracle::assert_sound;
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;
use crate::agents::real::{BOTH, agent_folder, command, model_of, setup, setup_with};

/// The files of `marked_files.toml`.
pub(crate) struct MarkedFiles(Value);

const USER_VARIABLE: &str = "MARK-user-env";
/// The value of the key that [`command`] sets.
const KEY: &str = "sk-dummy";

impl MarkedFiles {
    pub(crate) fn all() -> Self {
        Self(toml::from_str(include_str!("marked_files.toml")).unwrap())
    }

    fn files(&self) -> &[Value] {
        self.0["file"].as_array().unwrap()
    }

    /// Writes the files.
    pub(crate) fn plant(&self, home: &Path, repo: &Path) {
        let (home, repo) = (home.to_str().unwrap(), repo.to_str().unwrap());
        let slug: String = repo.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let fill = |text: &str| text.replace("{home}", home).replace("{repo}", repo).replace("{slug}", &slug);
        for file in self.files() {
            let path = fill(file["path"].as_str().unwrap());
            fs::create_dir_all(Path::new(&path).parent().unwrap()).unwrap();
            fs::write(&path, fill(file["text"].as_str().unwrap()).trim_start()).unwrap();
            let mode = if file["is_program"] == true { 0o755 } else { 0o644 };
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        }
    }

    /// The marks that a plain session of this agent sends.
    fn of(&self, kind: &str) -> BTreeSet<String> {
        let all = self.files().iter().flat_map(|file| marks(file["text"].as_str().unwrap()));
        // Claude Code reads AGENTS.md only where there is no CLAUDE.md, and no skills of other agents.
        let is_shared = |mark: &String| mark.contains("-agents-") && kind == "codex";
        let is_own = |mark: &String| mark.contains(&format!("-{kind}-")) || is_shared(mark);
        all.filter(is_own).chain([USER_VARIABLE.to_owned()]).collect()
    }
}

/// The marks in a text.
pub(crate) fn marks(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let found = text.match_indices("MARK-").map(|(at, _)| text.get(at..).unwrap());
    found.map(|rest| rest.split(|c| !is_part(c)).next().unwrap().to_owned()).collect()
}

/// The marks in all requests.
pub(crate) fn sent_marks(model: &ScriptedModel) -> BTreeSet<String> {
    model.requests().iter().flat_map(|request| marks(&request.body.to_string())).collect()
}

/// A repository with marks in it and in the home folder, before its first commit.
pub(crate) fn marked_repo() -> TestRepo {
    let repo = TestRepo::empty_in(RUNNER, tempfile::tempdir_in(agent_folder()).unwrap());
    MarkedFiles::all().plant(&repo.outside().join("home"), repo.root());
    repo
}

/// Shows variables, functions and aliases of its commands to the model.
const LOOKS_AROUND: &str = "[[part]]\n[[part.step]]\ndo.shell = 'env; declare -f; alias'\n\
    [[part.step]]\ndo.final = { status = 'retry', summary = 'looked around' }\n";

#[test]
fn nothing_but_the_prompt_enters_a_session() {
    for (kind, model_name) in [("codex", "gpt-5.5"), ("codex", "gpt-6.1-sol"), ("claude", "scripted")] {
        for (without, shell) in [("none.md", "/bin/bash"), ("CLAUDE.md", "/bin/zsh"), ("none.md", "")] {
            let model = model_of(LOOKS_AROUND);
            let repo = marked_repo();
            fs::remove_file(repo.path(without)).unwrap_or_default();
            let setup = setup_with(kind, model_name, &model.url()).executor_keys("instructions = []");
            let repo = setup.start_in(repo);
            let step = run(marked_command(&repo, &["step"], shell).env("MARKED", USER_VARIABLE));
            let log = repo.iteration_file(1, "executor.log");
            assert_eq!(repo.outcomes(), ["retry"], "{kind} {model_name}: {}{log}", step.stderr);
            assert!(log.contains("RUNNER_PROMPT"), "{kind}: the environment was not looked at: {log}");
            assert_eq!(sent_marks(&model), BTreeSet::new(), "{kind} {model_name} {shell} without {without}");
            let sent =
                |text: &str| model.requests().iter().any(|request| request.body.to_string().contains(text));
            assert!(!sent(KEY), "{kind}: a key reached the model");
            assert_eq!(unwanted_tools(&model), [""; 0], "{kind} {model_name}");
            assert_sound(&repo);
        }
    }
}

/// The runner for a user with this shell, in whose environment shells read a marked file.
fn marked_command(repo: &TestRepo, args: &[&str], shell: &str) -> Command {
    let mut command = command(repo, args);
    let bash_env = repo.outside().join("home/bash-env");
    command.env("BASH_ENV", &bash_env).env("ENV", &bash_env);
    if !shell.is_empty() {
        command.env("SHELL", shell);
    }
    command
}

/// The offered tools beyond those for files, commands, the web, sub-agents in the same session, and the answer.
fn unwanted_tools(model: &ScriptedModel) -> Vec<String> {
    const CODEX: [&str; 7] =
        ["apply_patch", "exec", "exec_command", "view_image", "wait", "web_search", "write_stdin"];
    const CLAUDE: [&str; 10] = [
        "Agent",
        "Bash",
        "Edit",
        "NotebookEdit",
        "Read",
        "StructuredOutput",
        "TaskStop",
        "WebFetch",
        "WebSearch",
        "Write",
    ];
    let offered: BTreeSet<String> =
        model.requests().iter().flat_map(|request| request.tools.clone()).collect();
    offered.into_iter().filter(|tool| !CODEX.contains(&&**tool) && !CLAUDE.contains(&&**tool)).collect()
}

/// Starts the program with its default settings, so that it takes in all there is.
fn plain_session(kind: &str, repo: &TestRepo, url: &str) -> Command {
    let mut command = marked_command(repo, &[], "/bin/bash");
    let mut plain = Command::new(agents::program(kind));
    plain.current_dir(repo.root()).env_clear();
    command.env("MARKED", USER_VARIABLE);
    plain.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    // Codex runs no commands if its home is below the folder for temporary files.
    let temporary = repo.outside().join("tmp");
    fs::create_dir_all(&temporary).unwrap();
    plain.env("TMPDIR", temporary);
    if kind == "codex" {
        let provider = format!(
            "model_providers.own={{name=\"own\",base_url=\"{url}/v1\",env_key=\"OWN_KEY\",wire_api=\"responses\"}}"
        );
        plain.args(["exec", "--json", "--dangerously-bypass-hook-trust", "--model", "gpt-5.5"]);
        plain.args(["--sandbox", "danger-full-access"]);
        // With plugins, it would look for more of them elsewhere.
        plain.env("HTTPS_PROXY", "http://127.0.0.1:9").env("NO_PROXY", "127.0.0.1");
        plain.args([
            "-c",
            "analytics.enabled=false",
            "-c",
            "model_provider=own",
            "-c",
            &provider,
            "look around",
        ]);
    } else {
        plain.env("ANTHROPIC_BASE_URL", url).env("ANTHROPIC_API_KEY", KEY);
        plain.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1").env("IS_SANDBOX", "1");
        plain.args(["--print", "--output-format", "stream-json", "--verbose", "--model", "scripted"]);
        plain.args(["--permission-mode", "bypassPermissions", "look around"]);
    }
    plain.stdin(std::process::Stdio::null());
    plain
}

#[test]
fn plain_sessions_send_every_mark() {
    for kind in BOTH {
        let repo = marked_repo();
        repo.git(&["init", "-q", "-b", "main"]);
        repo.commit_all("root");
        // The servers' tools are offered once they are listed.
        let listed = format!("{}/listed-*-{kind}-mcp", repo.outside().join("home").display());
        let model = model_of(&format!(
            "[[part]]\n[[part.step]]\ndo.shell = 'env; declare -f; alias; until [ $(ls -d {listed} | wc -l) = 2 ]; do sleep 0.1; done'\n\
             [[part.step]]\ndo.shell = 'true'\n[[part.step]]\ndo.final = 'looked around'\n"
        ));
        let session = run(&mut plain_session(kind, &repo, &model.url()));
        // Which start-up files a shell reads depends on how it was built and started.
        let (of_shell, others): (BTreeSet<String>, BTreeSet<String>) =
            sent_marks(&model).into_iter().partition(|mark| mark.contains("-shell-"));
        assert_eq!(others, MarkedFiles::all().of(kind), "{kind}: {}{}", session.stdout, session.stderr);
        assert!(!of_shell.is_empty(), "{kind}: {}{}", session.stdout, session.stderr);
    }
}

#[test]
fn instructions_of_the_repository_are_part_of_the_prompt_by_default() {
    for kind in BOTH {
        let model = model_of(LOOKS_AROUND);
        let repo = setup(kind, &model.url()).start_in(marked_repo());
        let started = repo.runner(&["start", "--json"]).ok().stdout;
        let started: Value = serde_json::from_str(&started).unwrap();
        assert_eq!(started["instructions"]["file"], "AGENTS.md");
        // What an agent changes takes effect with the next start.
        repo.write("AGENTS.md", "MARK-later-instructions\n");
        repo.commit_all("by hand");
        run(command(&repo, &["step"]).env("MARKED", USER_VARIABLE)).ok();
        assert_eq!(
            sent_marks(&model),
            BTreeSet::from(["MARK-repo-agents-instructions".to_owned()]),
            "{kind}"
        );
        let prompt = repo.iteration_file(1, "prompt.md");
        assert!(prompt.contains("# The repository's instructions\n\nFrom `AGENTS.md`"), "{prompt}");
        repo.runner(&["start"]).ok();
        run(&mut command(&repo, &["step"])).ok();
        assert!(repo.iteration_file(2, "prompt.md").contains("MARK-later-instructions"), "{kind}");
        assert_sound(&repo);
    }
}

#[test]
fn only_configured_mcp_servers_are_offered() {
    for kind in BOTH {
        let repo = marked_repo();
        let server = repo.outside().join("home/mcp-server");
        let listed = repo.outside().join("home/listed-MARK-chosen-mcp");
        let model = model_of(&format!(
            "[[part]]\n[[part.step]]\ndo.shell = 'for i in $(seq 100); do test -e {} && break; sleep 0.1; done'\n\
             [[part.step]]\ndo.shell = 'true'\n\
             [[part.step]]\ndo.final = {{ status = 'retry', summary = 'looked around' }}\n",
            listed.display()
        ));
        let keys = format!("instructions = []\nmcp = [\"chosen={} MARK-chosen-mcp\"]", server.display());
        let repo = setup(kind, &model.url()).executor_keys(&keys).start_in(repo);
        run(&mut command(&repo, &["step"])).ok();
        let log = repo.iteration_file(1, "executor.log");
        assert_eq!(sent_marks(&model), BTreeSet::from(["MARK-chosen-mcp".to_owned()]), "{kind}: {log}");
    }
}
