//! The runner runs and follows nothing that a repository's configuration or files plant.

use std::os::unix::fs::PermissionsExt;

use testkit::run_builder::RunBuilder;
use testkit::test_repo::TestRepo;

use crate::GOAL;
use crate::RUNNER;
use crate::ready;
use crate::started;

/// A program that creates a file when it runs, and that file.
fn trap(sandbox: &TestRepo, name: &str) -> (String, std::path::PathBuf) {
    let (program, mark) = (sandbox.outside().join(name), sandbox.outside().join(format!("{name}.sprung")));
    std::fs::write(&program, format!("#!/bin/sh\ntouch '{}'\ncat\n", mark.display())).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    (program.to_str().unwrap().to_owned(), mark)
}

fn use_everything(sandbox: &TestRepo) {
    for command in
        [&["validate"][..], &["status"], &["tree"], &["select"], &["start"], &["start"], &["doctor"]]
    {
        sandbox.runner(command);
    }
}

#[test]
fn git_hooks_monitors_pagers_and_signers_are_never_run() {
    let sandbox = ready();
    let (program, mark) = trap(&sandbox, "trap");
    for hook in [
        "pre-commit",
        "commit-msg",
        "post-commit",
        "post-checkout",
        "reference-transaction",
        "post-index-change",
    ] {
        std::fs::copy(&program, sandbox.path(".git/hooks").join(hook)).unwrap();
    }
    for (key, value) in [
        ("core.fsmonitor", program.as_str()),
        ("core.pager", &program),
        ("core.editor", &program),
        ("core.sshCommand", &program),
        ("core.askPass", &program),
        ("gpg.program", &program),
        ("commit.gpgSign", "true"),
        ("diff.external", &program),
        ("hook.x.command", &program),
        ("hook.x.event", "reference-transaction"),
    ] {
        sandbox.git(&["config", key, value]);
    }
    let _ = std::fs::remove_file(&mark);
    use_everything(&sandbox);
    assert!(!mark.exists(), "something was run");
    sandbox.git(&["config", "--unset", "core.fsmonitor"]);
    assert!(sandbox.git(&["log", "-1", "--format=%s", "HEAD"]).starts_with("chore(loop): start run"));
}

#[test]
fn filter_defined_by_the_repository_needs_permission() {
    let sandbox = ready();
    let (program, mark) = trap(&sandbox, "filter");
    sandbox.git(&["config", "filter.odd.clean", &program]);
    sandbox.git(&["config", "filter.odd.smudge", &program]);
    sandbox.runner(&["validate"]).ok();

    // A defined filter is harmless; a used one is refused until the user allows it.
    sandbox.write(".gitattributes", "*.bin filter=odd\n");
    sandbox.write("a.bin", "data\n");
    sandbox.commit_all("filtered");
    std::fs::remove_file(&mark).unwrap();
    let refused = sandbox.runner(&["start"]).refused(2);
    assert!(refused.contains("filter `odd`") && refused.contains("[git]"), "{refused}");
    assert!(!mark.exists(), "the filter was run without leave");

    let config = sandbox.read(".runner/state/config.toml").replace("filters = []", "filters = [\"odd\"]");
    sandbox.write(".runner/state/config.toml", config);
    sandbox.runner(&["start"]).ok();
    assert_eq!(sandbox.runner(&["validate"]).ok().value("valid"), Some("true problems=0"));
}

#[test]
fn filter_from_the_users_configuration_runs() {
    let sandbox = ready();
    let home = sandbox.outside().join("home/.gitconfig");
    std::fs::write(home, "[filter \"up\"]\nclean = tr a-z A-Z\nsmudge = tr A-Z a-z\n").unwrap();
    sandbox.write(".gitattributes", "*.up filter=up\n");
    sandbox.write("x.up", "hello\n");
    sandbox.write(".runner/GOAL.md", format!("---\nid: mine\n---\n{GOAL}"));
    sandbox.commit_all("filtered");
    sandbox.runner(&["start"]).ok();
    sandbox.write("x.up", "changed\n");
    sandbox.commit_all("run's work");
    sandbox.git(&["checkout", "-q", "main"]);
    sandbox.runner(&["start"]).ok();
    assert_eq!(sandbox.read("x.up"), "changed\n", "smudged on the way into the work tree");
    assert_eq!(sandbox.git(&["show", "HEAD:x.up"]), "CHANGED");
}

#[test]
fn git_program_inside_the_repository_is_not_used() {
    let sandbox = ready();
    let (program, mark) = trap(&sandbox, "fake");
    sandbox.write("bin/git", std::fs::read(&program).unwrap());
    std::fs::set_permissions(sandbox.path("bin/git"), std::fs::Permissions::from_mode(0o755)).unwrap();
    sandbox.commit_all("a git of its own");
    let path = format!(".:bin:{}", std::env::var("PATH").unwrap());
    testkit::test_repo::run(sandbox.runner_command(&["start"]).env("PATH", path)).ok();
    assert!(!mark.exists());
}

#[test]
fn links_and_pipes_under_runner_are_refused() {
    let outside = TestRepo::empty(RUNNER);
    let sandbox = TestRepo::with_commit(RUNNER);
    std::os::unix::fs::symlink(outside.root(), sandbox.path(".runner")).unwrap();
    for command in ["init", "start", "select", "tree"] {
        let refused = sandbox.runner(&[command]).refused(2);
        assert!(refused.contains("is a symbolic link"), "{command}: {refused}");
    }
    assert_eq!(sandbox.runner(&["validate"]).code, Some(2));
    assert_eq!(std::fs::read_dir(outside.root()).unwrap().count(), 0, "something was written outside");

    let sandbox = started();
    let tree = sandbox.path(".runner/state/tree.json");
    std::fs::remove_file(&tree).unwrap();
    sandbox.command("mkfifo").arg(&tree).status().unwrap();
    for command in ["start", "select", "tree"] {
        assert!(sandbox.runner(&[command]).refused(2).contains("a named pipe"), "{command}");
    }
    let output = sandbox.runner(&["validate"]);
    assert_eq!(output.code, Some(2));
    assert!(output.stdout.contains("a named pipe"), "{}", output.stdout);

    std::fs::remove_file(&tree).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &tree).unwrap();
    assert!(sandbox.runner(&["select"]).refused(2).contains("a symbolic link"));
    std::fs::remove_file(&tree).unwrap();
    sandbox.git(&["checkout", "-q", "--", ".runner"]);
    std::os::unix::fs::symlink("/etc/passwd", sandbox.path(".runner/prompts")).unwrap();
    assert!(sandbox.runner(&["start"]).refused(2).contains("a symbolic link"));
}

#[test]
fn title_cannot_control_the_terminal() {
    let sandbox = started();
    let tree = sandbox.read(".runner/state/tree.json");
    sandbox.write(
        ".runner/state/tree.json",
        tree.replace("Port it", "\\u001b]0;x\\u0007\\u001b[2JPort\\u202eit"),
    );
    for command in [&["tree"][..], &["select"], &["status"]] {
        let output = sandbox.runner(command).ok().stdout;
        assert!(!output.contains('\u{1b}') && !output.contains('\u{202e}'), "{output:?}");
    }
}

#[test]
fn change_with_the_same_size_and_time_is_detected() {
    let agent =
        "touch -r word.txt $AROUND/time; echo bad > word.txt; touch -r $AROUND/time word.txt; answer done";
    let sandbox = RunBuilder::new(RUNNER).agent(agent).file("word.txt", "old\n").start();
    // A setting that backup programs and network drives require.
    for (key, value) in
        [("core.trustctime", "false"), ("core.checkStat", "minimal"), ("core.ignoreStat", "true")]
    {
        sandbox.git(&["config", key, value]);
    }
    // Old enough for git to consider it unchanged without reading it.
    std::thread::sleep(std::time::Duration::from_millis(1100));
    sandbox.git(&["update-index", "--refresh"]);
    sandbox.runner(&["step"]).ok();
    assert_eq!(sandbox.outcomes(), ["passed"]);
    assert_eq!(sandbox.git(&["show", "HEAD:word.txt"]), "bad");
}

const INCLUDED: &str = "[alias]\n\tst = status\n";

/// A run in a repository whose configuration includes a tracked file, with an agent that appends to that file.
fn with_included_file(sandbox: &str, agent: &str) -> TestRepo {
    let repo = RunBuilder::new(RUNNER)
        .executor_keys(&format!("sandbox = \"{sandbox}\""))
        .agent(agent)
        .file(".gitconfig", INCLUDED)
        .start();
    repo.git(&["config", "--local", "include.path", "../.gitconfig"]);
    repo
}

#[test]
fn filter_in_an_included_file_that_an_agent_writes_does_not_run() {
    let agent = r#"printf '[filter "e"]\n\tclean = touch %s/ran-$PPID; cat\n' "$AROUND" >> .gitconfig
        echo '*.txt filter=e' > .gitattributes; echo x > x.txt; answer done"#;
    for sandbox in ["auto", "off"] {
        let repo = with_included_file(sandbox, agent);
        repo.runner(&["loop"]).ok();
        let files = std::fs::read_dir(repo.outside()).unwrap().flatten();
        let ran = files.filter(|file| file.file_name().to_string_lossy().starts_with("ran")).count();
        assert_eq!(ran, 0, "{sandbox}: the filter ran");
        assert_eq!(repo.git(&["show", "HEAD:x.txt"]), "x");
        assert_eq!(repo.read(".gitconfig"), INCLUDED, "{sandbox}");
        testkit::oracle::assert_sound(&repo);
    }
}

#[test]
fn included_file_that_git_cannot_read_does_not_block_a_run() {
    for sandbox in ["auto", "off"] {
        let repo = with_included_file(sandbox, "echo '[core' >> .gitconfig; echo x > x; answer done");
        repo.runner(&["loop"]).ok();
        assert_eq!(
            (repo.read(".gitconfig").as_str(), repo.git(&["show", "HEAD:x"]).as_str()),
            (INCLUDED, "x")
        );
        testkit::oracle::assert_sound(&repo);
    }
    // The same with a runner that dies in the session.
    let agent = "[ -e \"$AROUND/there\" ] && { echo x > x; answer done; exit; }
        echo '[core' >> .gitconfig; touch \"$AROUND/there\"; sleep 60";
    let repo = with_included_file("off", agent);
    repo.kill_when(&["loop"], "there");
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.read(".gitconfig"), INCLUDED);
    testkit::oracle::assert_sound(&repo);
}
