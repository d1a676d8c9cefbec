//! Broken set-ups: `runner doctor` names each with its fix, and exits with 1 where a loop would not work. It is never greener
//! than the truth.

use testkit::test_repo::{RunOutput, TestRepo, run};

use crate::RUNNER;
use crate::fixtures::owned_by_nobody;

/// One thing that is wrong, in a repository that is otherwise ready to run.
struct BrokenSetup {
    name: &'static str,
    /// A shell script that breaks it, and ends with the doctor. It knows `$GUARD` and `$AGENT`, tables of a working
    /// configuration, and `conf`, which writes one.
    script: &'static str,
    /// The beginning of the line that reports it.
    line: &'static str,
    /// What the line contains: the fault, and what to do.
    texts: &'static [&'static str],
    exit: i32,
}

const PRELUDE: &str = r#"
GUARD='[guard]\ncommand = ["make", "test"]\n'
AGENT='[executor]\nkind = "command"\ncommand = ["sh", "agent.sh"]\n'
conf() { printf '%b' "$1" > .runner/state/config.toml; }
"#;

const fn problem(
    name: &'static str,
    script: &'static str,
    line: &'static str,
    texts: &'static [&'static str],
) -> BrokenSetup {
    BrokenSetup { name, script, line, texts, exit: 1 }
}

const fn warning(
    name: &'static str,
    script: &'static str,
    line: &'static str,
    texts: &'static [&'static str],
) -> BrokenSetup {
    BrokenSetup { name, script, line, texts, exit: 0 }
}

const SETUPS: &[BrokenSetup] = &[
    problem(
        "no login",
        r#"conf "[executor]\nkind = \"codex\"\n$GUARD"; runner doctor"#,
        "check=agent verdict=problem",
        &["no login found", "codex login", "CODEX_API_KEY"],
    ),
    problem(
        "a login file that is no JSON",
        r#"conf "[executor]\nkind = \"codex\"\n$GUARD"; mkdir "$HOME/.codex"; echo garbage > "$HOME/.codex/auth.json"; runner doctor"#,
        "check=agent verdict=problem",
        &["no login found", "auth.json holds none that works", "codex login"],
    ),
    problem(
        "an empty login file of Codex",
        r#"conf "[executor]\nkind = \"codex\"\n$GUARD"; mkdir "$HOME/.codex"; echo '{}' > "$HOME/.codex/auth.json"; runner doctor"#,
        "check=agent verdict=problem",
        &["no login found", "auth.json holds none that works", "codex login"],
    ),
    problem(
        "an empty login file of Claude Code",
        r#"conf "[executor]\nkind = \"claude\"\n$GUARD"; mkdir "$HOME/.claude"; echo '{}' > "$HOME/.claude/.credentials.json"; runner doctor"#,
        "check=agent verdict=problem",
        &["no login found", ".credentials.json holds none that works", "log in with"],
    ),
    problem(
        "an expired login of Claude Code",
        r#"conf "[executor]\nkind = \"claude\"\n$GUARD"; mkdir "$HOME/.claude"
            echo '{"claudeAiOauth":{"accessToken":"x","refreshToken":"","expiresAt":1}}' > "$HOME/.claude/.credentials.json"; runner doctor"#,
        "check=agent verdict=problem",
        &["no login found", ".credentials.json holds none that works", "log in with"],
    ),
    warning(
        "an MCP server that does not exist",
        r#"conf "[executor]\nkind = \"codex\"\nmcp = [\"docs=no-such-server --stdio\"]\n$GUARD"; CODEX_API_KEY=k runner doctor"#,
        "check=mcp verdict=warning",
        &["docs: `no-such-server` does not exist", "[executor] mcp"],
    ),
    warning(
        "a writable folder that does not exist",
        r#"conf "${AGENT}writable = [\"~/none\"]\n$GUARD"; runner doctor"#,
        "check=writable verdict=warning",
        &["~/none: does not exist", "mkdir -p ~/none"],
    ),
    warning(
        "instructions that do not exist",
        r#"conf "[executor]\nkind = \"codex\"\ninstructions = [\"NONE.md\"]\n$GUARD"; CODEX_API_KEY=k runner doctor"#,
        "check=instructions verdict=warning",
        &["there is no NONE.md", "[executor] instructions"],
    ),
    problem(
        "a wrong HOME",
        "HOME=/no/such/home runner doctor",
        "check=home verdict=problem",
        &["/no/such/home", "set HOME"],
    ),
    problem(
        "a required sandbox that the kernel refuses",
        r#"conf "${AGENT}sandbox = \"require\"\n$GUARD"; PATH="$REFUSED:$PATH" runner doctor"#,
        "check=sandbox verdict=problem",
        &["No permissions to create new namespace", "allow user namespaces"],
    ),
    problem(
        "a sandbox of Codex that the kernel refuses",
        r#"conf "[executor]\nkind = \"codex\"\n$GUARD"; mkdir "$HOME/.codex"; CODEX_API_KEY=k PATH="$REFUSED:$PATH" runner doctor"#,
        "check=sandbox verdict=problem",
        &["Codex's built-in sandbox does not work", "Creating new namespace failed", "allow user namespaces"],
    ),
    warning(
        "user namespaces that the kernel refuses",
        r#"PATH="$REFUSED:$PATH" runner doctor"#,
        "check=sandbox verdict=warning",
        &["the agent can write wherever you can", "allow user namespaces"],
    ),
    warning(
        "no bubblewrap",
        r#"PATH="$WITHOUT" runner doctor"#,
        "check=sandbox verdict=warning",
        &["`bwrap` is not on PATH", "apt-get install bubblewrap"],
    ),
    problem(
        "a required room without bubblewrap",
        r#"conf "$AGENT${GUARD}room = \"require\"\n"; PATH="$WITHOUT" runner doctor"#,
        "check=room verdict=problem",
        &["`bwrap` is not on PATH", "apt-get install bubblewrap"],
    ),
    problem(
        "no podman",
        r#"conf "${AGENT}sandbox = \"podman\"\nimage = \"dev\"\n$GUARD"; PATH="$WITHOUT" runner doctor"#,
        "check=sandbox verdict=problem",
        &["`podman` is not on PATH", "install podman"],
    ),
    problem(
        "a missing agent",
        r#"conf "[executor]\nkind = \"command\"\ncommand = [\"no-such-agent\"]\n$GUARD"; runner doctor"#,
        "check=agent verdict=problem",
        &["`no-such-agent` is not on PATH", "[executor] command"],
    ),
    problem(
        "a missing agent on the ladder",
        r#"conf "$AGENT$GUARD[[ladder]]\nafter_attempts = 1\nkind = \"command\"\ncommand = [\"no-such-rung\"]\n"; runner doctor"#,
        "check=agent verdict=problem",
        &["`no-such-rung` is not on PATH", "[executor] command"],
    ),
    problem(
        "a missing reviewer",
        r#"conf "$AGENT$GUARD[review]\nkind = \"command\"\ncommand = [\"no-such-reviewer\"]\n"; runner doctor"#,
        "check=reviewer verdict=problem",
        &["`no-such-reviewer` is not on PATH"],
    ),
    warning(
        "a newer CLI",
        r#"conf "[executor]\nkind = \"claude\"\n$GUARD"; ANTHROPIC_API_KEY=k runner doctor"#,
        "check=agent verdict=warning",
        &["9.9.9 (Claude Code)", "tested with", "npm install -g @anthropic-ai/claude-code@"],
    ),
    problem(
        "no commit",
        "rm -rf .git; git init -q -b main; runner doctor",
        "check=branch verdict=problem",
        &["no commit yet", "git commit --allow-empty -m root"],
    ),
    problem(
        "a test command in one word",
        r#"conf "$AGENT[guard]\ncommand = [\"make test\"]\n"; runner doctor"#,
        "check=guard verdict=problem",
        &["`make test` is one word", "runner config set guard.command make test"],
    ),
    problem(
        "a missing guard program",
        r#"conf "$AGENT[guard]\ncommand = [\"no-such-guard\"]\n"; runner doctor"#,
        "check=guard verdict=problem",
        &["`no-such-guard` is not on PATH", "runner config set guard.command"],
    ),
    problem(
        "a guard that is not executable",
        r#"conf "$AGENT[guard]\ncommand = [\"./agent.sh\"]\n"; runner doctor"#,
        "check=guard verdict=problem",
        &["`./agent.sh` is not executable", "chmod +x ./agent.sh"],
    ),
    warning(
        "a guard that does not exist",
        r#"conf "$AGENT[guard]\ncommand = [\"./none.sh\"]\n"; runner doctor"#,
        "check=guard verdict=warning",
        &["there is no `./none.sh`", "create and commit it"],
    ),
    problem(
        "a .git that may not be written",
        "bwrap --dev-bind / / --ro-bind \"$PWD/.git\" \"$PWD/.git\" runner doctor",
        "check=repository verdict=problem",
        &["you may not write to", "chmod u+w"],
    ),
    problem(
        "a full disk",
        r#"mkdir ../small; bwrap --dev-bind / / --size 4000000 --tmpfs "$PWD/../small" sh -c 'cp -a . ../small/work && cd ../small/work && runner doctor'"#,
        "check=disk verdict=problem",
        &["KiB left", "free at least 1 GiB"],
    ),
    warning(
        "a missing hook program",
        r#"conf "$AGENT$GUARD[hooks]\non_stop = [\"no-such-hook\"]\n"; runner doctor"#,
        "check=hook verdict=warning",
        &["on_stop: `no-such-hook` is not on PATH", "[hooks] on_stop"],
    ),
    warning(
        "a missing program for notifications",
        r#"conf "$AGENT$GUARD[notify]\nwebhook = \"http://127.0.0.1:1/x\"\n"; PATH="$WITHOUT" runner doctor"#,
        "check=notify verdict=warning",
        &["webhook: curl is not on PATH", "install curl"],
    ),
    problem(
        "a limit without a price",
        r#"conf "[executor]\nkind = \"codex\"\nmodel = \"unpriced\"\n$GUARD[budget]\nrun_usd = 5\n"; CODEX_API_KEY=k runner doctor"#,
        "check=limits verdict=problem",
        &["budget.run_usd cannot be enforced", "[prices."],
    ),
    problem(
        "a variable without the key of a provider",
        r#"conf "[executor]\nkind = \"codex\"\nbase_url = \"http://127.0.0.1:1/v1\"\nkey_env = \"NO_SUCH_KEY\"\n$GUARD"; runner doctor"#,
        "check=agent verdict=problem",
        &["the variable NO_SUCH_KEY for its key is not set", "export NO_SUCH_KEY=KEY"],
    ),
    problem(
        "a detached HEAD on no branch",
        "git checkout -q --detach; git commit -q --allow-empty -m lost; runner doctor",
        "check=branch verdict=problem",
        &["HEAD is detached", "git switch -c NAME"],
    ),
    warning(
        "a detached HEAD",
        "git branch keep; git checkout -q --detach; runner doctor",
        "check=branch verdict=warning",
        &["HEAD is detached", "runner switch RUN"],
    ),
    problem(
        "an unwritable TMPDIR",
        "TMPDIR=/no/such/tmp runner doctor",
        "check=temporary verdict=problem",
        &["/no/such/tmp", "unset TMPDIR"],
    ),
    problem(
        "an invalid configuration",
        r#"conf "nonsense = 1\n"; runner doctor"#,
        "check=setup verdict=problem",
        &["the configuration is invalid", "runner validate"],
    ),
    problem(
        "a goal that is the template",
        "rm -rf .runner; runner init; conf \"$AGENT$GUARD\"; runner doctor",
        "check=goal verdict=problem",
        &["GOAL.md still holds the template", "runner start --goal"],
    ),
    problem(
        "a missing scenario",
        r#"conf "[executor]\nkind = \"script\"\nscenario = \"none.toml\"\n$GUARD"; runner doctor"#,
        "check=agent verdict=problem",
        &["there is no scenario `none.toml`", "runner config set executor.scenario"],
    ),
    problem(
        "no repository",
        "rm -rf .git; runner doctor",
        "check=repository verdict=problem",
        &["not in a git repository", "git init"],
    ),
    problem(
        "a bare repository",
        "git clone -q --bare . ../bare.git; runner -C ../bare.git doctor",
        "check=repository verdict=problem",
        &["is a bare repository", "git clone REPOSITORY"],
    ),
    problem(
        "a Node that is too old for the agent",
        r#"conf "[executor]\nkind = \"command\"\npreset = \"pi\"\n$GUARD"; runner doctor"#,
        "check=agent verdict=problem",
        &["pi needs Node 22, and `node` is v20.1.0", "install Node 22"],
    ),
    warning(
        "an agent that loads more than the prompt without a sandbox",
        r#"conf "[executor]\nkind = \"command\"\npreset = \"kilo\"\nsandbox = \"off\"\n$GUARD"; runner doctor"#,
        "check=sandbox verdict=warning",
        &["kilo also loads .kilo, .kilocode in your home, and", ".kilocoderules", "executor.sandbox auto"],
    ),
    warning(
        "a preset of another version",
        r#"conf "[executor]\nkind = \"command\"\npreset = \"kilo\"\n$GUARD"; runner doctor"#,
        "check=agent verdict=warning",
        &["9.9.9", "(tested with", "npm install -g @kilocode/cli@"],
    ),
    problem(
        "a recorder without curl",
        r#"conf "[executor]\nkind = \"codex\"\nrecord = true\n$GUARD"; ln -s ../bin/codex ../without/codex
            CODEX_API_KEY=k PATH="$WITHOUT" runner doctor"#,
        "check=agent verdict=problem",
        &["needs `curl`", "install curl"],
    ),
    problem(
        "a recording that is not there",
        r#"conf "[executor]\nkind = \"codex\"\nreplay = \"no-such-run\"\n$GUARD"; CODEX_API_KEY=k runner doctor"#,
        "check=agent verdict=problem",
        &["no recorded run in `no-such-run`", "executor.replay FOLDER"],
    ),
    warning(
        "a run that is not checked out",
        "git switch -q main; runner doctor",
        "check=setup verdict=warning",
        &["is not checked out; a new run would use its configuration", "runner run", "runner runs"],
    ),
    warning(
        "no run yet",
        "git clone -q -b main --single-branch . ../fresh; CODEX_API_KEY=k runner -C ../fresh doctor",
        "check=setup verdict=warning",
        &["there is no run yet", "start one: runner run"],
    ),
    problem(
        "no test command for a new run",
        "git clone -q -b main --single-branch . ../fresh; cd ../fresh; git rm -q Makefile; git commit -qm none; runner doctor",
        "check=guard verdict=problem",
        &["no test command found", "runner run", "--guard"],
    ),
    problem(
        "no agent for a new run",
        r#"git clone -q -b main --single-branch . ../fresh; PATH="$WITHOUT" runner -C ../fresh doctor"#,
        "check=agent verdict=problem",
        &["`codex` is not on PATH", "npm install -g @openai/codex", "--agent COMMAND"],
    ),
    problem(
        "no git",
        r#"PATH="$NO_GIT" runner doctor"#,
        "check=git verdict=problem",
        &["not found", "install git"],
    ),
];

/// A repository with a started run that works, and programs to break it with.
fn ready_repo() -> TestRepo {
    let repo = TestRepo::empty(RUNNER);
    repo.git(&["init", "-q", "-b", "main"]);
    repo.write("Makefile", "test:\n\ttrue\n");
    repo.write("agent.sh", "exit 1\n");
    repo.commit_all("root");
    let tools = r#"
        mkdir bin refused without no-git
        ln -s "$RUNNER_BINARY" bin/runner; ln -s "$RUNNER_BINARY" without/runner; ln -s "$RUNNER_BINARY" no-git/runner
        printf '#!/bin/sh\necho "codex-cli 0.169.0"\n' > bin/codex
        printf '#!/bin/sh\necho "9.9.9 (Claude Code)"\n' > bin/claude
        printf '#!/bin/sh\necho "bwrap: No permissions to create new namespace" >&2\nexit 1\n' > refused/bwrap
        printf '#!/bin/sh\n[ "$1" = sandbox ] || exec %s/bin/codex "$@"\necho "bwrap: Creating new namespace failed" >&2\nexit 1\n' "$PWD" > refused/codex
        printf '#!/bin/sh\necho 9.9.9\n' > bin/kilo; printf '#!/bin/sh\necho 0.87.1\n' > bin/pi
        printf '#!/bin/sh\necho v20.1.0\n' > bin/node
        chmod +x bin/kilo bin/pi bin/node bin/codex bin/claude refused/bwrap refused/codex
        for name in git sh make true; do ln -s "$(which $name)" without/$name; done"#;
    run(repo.command("sh").args(["-ec", tools]).current_dir(repo.outside()).env("RUNNER_BINARY", RUNNER))
        .ok();
    let started = shell(&repo, "runner start --goal 'Make it' >&2; conf \"$AGENT$GUARD\"; runner start");
    assert_eq!(started.code, Some(0), "{}", started.stderr);
    repo
}

fn shell(repo: &TestRepo, script: &str) -> RunOutput {
    let outside = |name: &str| repo.outside().join(name).display().to_string();
    let mut command = repo.command("sh");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "Test").env(format!("GIT_{who}_EMAIL"), "test@localhost");
    }
    command.env("PATH", format!("{}:{}", outside("bin"), std::env::var("PATH").unwrap()));
    command
        .env("REFUSED", outside("refused"))
        .env("WITHOUT", outside("without"))
        .env("NO_GIT", outside("no-git"));
    run(command.args(["-c", &format!("{PRELUDE}{script}")]))
}

/// Whether a report has a line that starts like this and contains the texts.
fn reports(output: &RunOutput, setup: &BrokenSetup) -> bool {
    let mut lines = output.stdout.lines().filter(|line| line.starts_with(setup.line));
    lines.any(|line| line.contains(" fix=") && setup.texts.iter().all(|text| line.contains(text)))
}

fn assert_reported(setup: &BrokenSetup) {
    let repo = ready_repo();
    let output = shell(&repo, setup.script);
    let context = format!("{}:\n{}\n{}", setup.name, output.stdout, output.stderr);
    assert!(reports(&output, setup), "{context}");
    assert_eq!(output.code, Some(setup.exit), "{context}");
}

#[test]
fn doctor_of_a_working_setup_has_no_problem() {
    let output = shell(&ready_repo(), "runner doctor");
    assert_eq!(output.code, Some(0), "{}", output.stdout);
    assert!(!output.stdout.contains("verdict=problem"), "{}", output.stdout);
}

#[test]
fn doctor_does_not_claim_to_have_tried_a_provider() {
    let script = r#"conf "[executor]\nkind = \"codex\"\nbase_url = \"http://127.0.0.1:1/v1\"\nkey_env = \"MYK\"\n$GUARD"; MYK=k runner doctor"#;
    let output = shell(&ready_repo(), script);
    let line = "check=provider verdict=ok found=\"http://127.0.0.1:1/v1: not tried\"";
    assert!(output.stdout.contains(line), "{}", output.stdout);
}

#[test]
fn doctor_names_every_broken_setup_with_its_fix() {
    let names: std::collections::BTreeSet<&str> = SETUPS.iter().map(|setup| setup.name).collect();
    assert!(names.len() == SETUPS.len() && SETUPS.len() >= 20, "{}", SETUPS.len());
    let (one, other) = SETUPS.split_at(SETUPS.len() / 2);
    std::thread::scope(|scope| {
        scope.spawn(|| one.iter().for_each(assert_reported));
        other.iter().for_each(assert_reported);
    });
}

#[test]
fn doctor_names_a_foreign_owner() {
    owned_by_nobody(&ready_repo(), |repo| {
        let output = shell(repo, "runner doctor");
        let setup = problem("", "", "check=repository verdict=problem", &["another user", "safe.directory"]);
        assert!(output.code == Some(1) && reports(&output, &setup), "{}{}", output.stdout, output.stderr);
    });
}
