//! Fixtures shared by the tests: repositories in common states, terminals, and snapshots of output.

use serde_json::Value;
use testkit::run_builder::RunBuilder;
use testkit::test_repo::{RunOutput, TestRepo, run};

use crate::RUNNER;

pub(crate) const GOAL: &str = "# Port it\n\nFrom one to the other.\n\n## Acceptance\n\n- it runs\n";

/// A repository with one commit, `.runner/` and a goal.
pub(crate) fn ready() -> TestRepo {
    let sandbox = TestRepo::with_commit(RUNNER);
    sandbox.runner(&["init"]).ok();
    sandbox.write(".runner/GOAL.md", GOAL);
    sandbox
}

/// A repository with a started run.
pub(crate) fn started() -> TestRepo {
    let sandbox = ready();
    sandbox.runner(&["start"]).ok();
    sandbox
}

/// A repository with a complete run.
pub(crate) fn completed(builder: &RunBuilder) -> TestRepo {
    let sandbox = builder.start();
    sandbox.runner(&["loop"]).ok();
    sandbox
}

/// Asserts that `runner verify` proves the current run completely.
pub(crate) fn assert_proved(sandbox: &TestRepo) {
    let output = sandbox.runner(&["verify"]);
    let is_proved = output.code == Some(0) && !output.stdout.contains("unchecked=");
    assert!(is_proved, "{}\n{}", output.stdout, output.stderr);
}

/// Runs the binary as an ordinary user, for tests about permissions, which do not restrict root.
pub(crate) fn as_nobody(sandbox: &TestRepo, args: &[&str]) -> RunOutput {
    let mut command = sandbox.command("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", RUNNER]).args(args);
    run(&mut command)
}

/// Gives the repository and everything around it to that user while `action` runs.
pub(crate) fn owned_by_nobody(sandbox: &TestRepo, action: impl FnOnce(&TestRepo)) {
    let give_to =
        |owner: &str| run(sandbox.command("chown").args(["-hR", owner]).arg(sandbox.outside())).ok();
    give_to("65534:65534");
    action(sandbox);
    give_to("0:0");
}

/// The JSON document on standard output.
pub(crate) fn json(output: &RunOutput) -> Value {
    serde_json::from_str(&output.stdout).unwrap()
}

pub(crate) fn run_state(sandbox: &TestRepo) -> Value {
    serde_json::from_str(&sandbox.read(".runner/state/run_state.json")).unwrap()
}

/// Runs a command on a terminal of this width, without colours. The output is what the terminal shows at the end.
pub(crate) fn on_terminal(sandbox: &TestRepo, columns: u32, command: &str) -> RunOutput {
    let output = terminal_bytes(sandbox, columns, command);
    RunOutput { stdout: visible_text(&output.stdout), ..output }
}

/// The same with all the bytes that the command wrote.
pub(crate) fn terminal_bytes(sandbox: &TestRepo, columns: u32, command: &str) -> RunOutput {
    let mut script = sandbox.command("script");
    let line = format!("stty cols {columns} rows 24; {RUNNER} {command}");
    script.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm-256color").env("NO_COLOR", "1");
    script.env("RUNNER_PAGER", "sed s/^/PAGED:/");
    run(&mut script)
}

/// What a terminal shows after the cursor movements that the live display and the status line use.
pub(crate) fn visible_text(bytes: &str) -> String {
    let text = bytes.replace("\u{1b}[?2026h", "").replace("\u{1b}[?2026l", "");
    let mut lines = vec![String::new()];
    let mut rest = text.as_str();
    while let Some(c) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("\u{1b}[1A") {
            lines.pop();
            rest = after;
        } else if let Some(after) = rest.strip_prefix("\u{1b}[2K").or_else(|| rest.strip_prefix("\r\u{1b}[K"))
        {
            lines.last_mut().unwrap().clear();
            rest = after;
        } else {
            match c {
                '\n' => lines.push(String::new()),
                '\r' => {}
                c => lines.last_mut().unwrap().push(c),
            }
            rest = rest.strip_prefix(c).unwrap_or_default();
        }
    }
    lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
}

/// The exit code and both streams of a command, with everything replaced that differs from run to run: paths, commit
/// ids, run ids, process ids and times.
pub(crate) fn snapshot(sandbox: &TestRepo, output: &RunOutput) -> String {
    let code = output.code.map_or("none".to_owned(), |code| code.to_string());
    let stream = |name: &str, text: &str| match text.trim_end() {
        "" => String::new(),
        text => format!("--- {name}\n{}\n", redacted(sandbox, text)),
    };
    format!("exit: {code}\n{}{}", stream("stdout", &output.stdout), stream("stderr", &output.stderr))
}

pub(crate) fn redacted(sandbox: &TestRepo, text: &str) -> String {
    let root = sandbox.root().canonicalize().unwrap();
    let text = text.replace(&root.display().to_string(), "REPO");
    let outside = sandbox.outside().canonicalize().unwrap();
    let text = text.replace(&outside.display().to_string(), "OUTSIDE");
    let is_boundary = |c: char| !c.is_ascii_alphanumeric() && !matches!(c, ':' | '-');
    text.split_inclusive(is_boundary)
        .map(|word| {
            let end = word.find(is_boundary).unwrap_or(word.len());
            let (word, boundary) = word.split_at(end);
            format!("{}{boundary}", redacted_word(word))
        })
        .collect()
}

fn redacted_word(word: &str) -> String {
    let is_hex = |text: &str| text.len() >= 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_clock = |text: &str| {
        let mut parts = text.split(':');
        let minutes = parts.next().unwrap_or_default();
        let secs = parts.next().unwrap_or_default();
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number(minutes) && is_number(secs) && secs.len() == 2 && parts.next().is_none()
    };
    match word.strip_prefix("run-") {
        Some(id) if is_hex(id) => "run-00000000".to_owned(),
        _ if is_hex(word) => "COMMIT".to_owned(),
        _ if is_clock(word) => "0:00".to_owned(),
        _ => word.to_owned(),
    }
}
