//! Keys of the user's environment, and texts in the form of keys, planted wherever an agent or a guard can write.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use runner_core::verify::Rule;
use testkit::oracle::assert_sound;
use testkit::run_builder::RunBuilder;
use testkit::test_repo::{RunOutput, TestRepo, run};

use crate::RUNNER;
use crate::agents::real::{BOTH, command, model_of, setup, started as agent_run};
use crate::security::forged_runs::Forgery::{Message, Trailer};
use crate::security::forged_runs::assert_found;

/// The value of a variable, which has no form of its own.
const SECRET: &str = "CANARY1wJalrXUtnFEMIK7MDENGbPxRfiCYzzzzz";
/// A word that every planted key contains.
const CANARY: &str = "CANARY";

/// A key that no variable has, in the form of a git host's.
fn token() -> String {
    format!("gh{}", "p_CANARY2a1B2c3D4e5F6g7H8i9J0k1L2m3N4")
}

fn with_keys(repo: &TestRepo, args: &[&str]) -> RunOutput {
    let mut command = repo.runner_command(args);
    run(command.env("DEPLOY_SECRET", SECRET).env("PLAIN", token()))
}

/// All files below a folder that contain a planted key.
fn files_with_keys(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(files_with_keys(&path));
        } else if fs::read(&path).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(CANARY)) {
            found.push(path.display().to_string());
        }
    }
    found
}

fn annotations(repo: &TestRepo) -> Vec<String> {
    let message = repo.git(&["log", "-1", "--format=%B"]);
    let lines = message.lines().filter_map(|line| line.strip_prefix("Runner-Annotation: "));
    lines.map(str::to_owned).collect()
}

/// Prints keys, one of them in two pieces, and writes them everywhere that an agent can.
const LEAKING_AGENT: &str = r#"
printf 'out %.9s' "$PLAIN"; printf '%s\n' "${PLAIN#?????????}"
echo "err $DEPLOY_SECRET" >&2
echo "- Is $PLAIN right? $DEPLOY_SECRET" >> .runner/state/questions.md
echo "key = $DEPLOY_SECRET" > leaked.txt
answer done "used $DEPLOY_SECRET and $PLAIN"
"#;

#[test]
fn keys_reach_no_commit_log_or_prompt() {
    let repo = RunBuilder::new(RUNNER)
        .agent(LEAKING_AGENT)
        .guard("echo \"env: $DEPLOY_SECRET $PLAIN\"; exit 1")
        .keys("max_attempts_default = 2")
        .start();
    let output = with_keys(&repo, &["loop", "--allow-red"]);
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    assert!(!format!("{}{}", output.stdout, output.stderr).contains(CANARY), "{}", output.stdout);
    assert_eq!(repo.outcomes(), ["guard_failed", "guard_failed"]);

    let history = repo.git(&["log", "-p", "--all", "--format=%B"]);
    let lines: Vec<&str> = history.lines().filter(|line| line.contains(CANARY)).collect();
    assert_eq!(lines, [""; 0]);
    assert!(history.contains("used [redacted] and [redacted]"), "{history}");
    assert_eq!(files_with_keys(&repo.path(".runner/iterations")), [""; 0]);
    let log = repo.iteration_file(1, "executor.log");
    assert!(log.contains("out [redacted]\n") && log.contains("err [redacted]\n"), "{log}");
    assert!(repo.read(".runner/state/questions.md").contains("- Is [redacted] right? [redacted]"));
    assert_eq!(annotations(&repo), ["key-redacted .runner/state/questions.md", "nothing-changed"]);

    // The file with the key is kept for the user, outside of every commit.
    assert!(!repo.root().join("leaked.txt").exists());
    assert!(output.stdout.contains("it contains a key of your environment"), "{}", output.stdout);
    assert_eq!(files_with_keys(&repo.path(".git/runner/aside")).len(), 2);

    assert_sound(&repo);
    repo.runner(&["verify"]).ok();
    repo.runner(&["replay"]).ok();
}

#[test]
fn a_committed_file_that_looks_like_a_key_is_annotated_and_told_at_once() {
    let agent = format!("echo 'token = \"{}\"' > app.toml; echo 1 > ok; answer done", token());
    let repo = RunBuilder::new(RUNNER).agent(&agent).guard("test -e ok").start();
    let output = repo.runner(&["loop"]);
    assert_eq!(output.code, Some(0), "{}", output.stderr);
    assert!(output.stdout.contains("git log -p -- app.toml"), "{}", output.stdout);
    assert!(repo.read("app.toml").contains(&token()), "the file is the user's work");
    assert_eq!(annotations(&repo), ["key-committed app.toml", "in-place"]);
    assert!(!repo.iteration_file(1, "diff.patch").contains(CANARY));
    assert_sound(&repo);
    repo.runner(&["verify"]).ok();
    repo.runner(&["replay"]).ok();
    assert_found(
        &repo,
        &[
            (Message(1, "key-committed app.toml", "key-committed other.toml"), Rule::Annotations, 1),
            (Message(1, "key-committed app.toml", "key-redacted app.toml"), Rule::Annotations, 1),
            (Trailer(1, "Runner-Annotation: key-committed README"), Rule::Annotations, 1),
        ],
    );
}

#[test]
fn only_the_user_may_look_into_the_folders_of_the_runner() {
    let repo = RunBuilder::new(RUNNER).agent("stat -c %a .git/runner/journal.json; answer done").start();
    repo.runner(&["step"]).ok();
    let mode = |path: &str| fs::metadata(repo.path(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(".runner/iterations"), mode(".git/runner")), (0o700, 0o700));
    assert_eq!(repo.iteration_file(1, "executor.log"), "600\n");
}

#[test]
fn events_of_the_real_agents_have_no_keys() {
    let script = "[[part]]\n[[part.step]]\ntext = 'Looking.'\ndo.shell = 'echo \"env: $DEPLOY_SECRET $PLAIN\"; echo 1 > work'\n\
                  [[part.step]]\ndo.final = { status = 'done', summary = 'looked' }\n";
    for kind in BOTH {
        let model = model_of(script);
        let keys = "env_inherit = [\"DEPLOY_SECRET\", \"PLAIN\"]";
        let repo = agent_run(&setup(kind, &model.url()).guard("true").executor_keys(keys));
        let mut step = command(&repo, &["step"]);
        run(step.env("DEPLOY_SECRET", SECRET).env("PLAIN", token())).ok();
        let events = repo.iteration_file(1, "events.jsonl");
        assert!(events.contains("env: [redacted] [redacted]"), "{kind}: {events}");
        assert_eq!(files_with_keys(&repo.path(".runner")), [""; 0], "{kind}");
        assert!(!repo.git(&["log", "-p", "--all", "--format=%B"]).contains(CANARY), "{kind}");
    }
}
