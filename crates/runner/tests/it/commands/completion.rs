//! Completion of command lines, in real shells.

use testkit::run_builder::RunBuilder;
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;
use crate::fixtures::completed;

fn repository() -> TestRepo {
    let agent = r#"case "$RUNNER_ITER" in 0001) split ;; *) echo 1 > "$RUNNER_NODE_ID"; answer done ;; esac"#;
    completed(&RunBuilder::new(RUNNER).agent(agent))
}

/// The candidates for the last of these words.
fn candidates(sandbox: &TestRepo, words: &[&str]) -> Vec<String> {
    let output = sandbox.runner(&[&["__complete"], words].concat()).ok().stdout;
    output.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

#[test]
fn names_of_the_repository_are_completed() {
    let sandbox = repository();
    for (words, found) in [
        (&["sta"][..], &["start", "status"][..]),
        (&["log", ""], &["3", "2", "1", "root", "a", "b"]),
        (&["show", "r"], &["root"]),
        (&["node", "allow", ""], &["root", "a", "b"]),
        (&["node", "move", "a", "--under", "r"], &["root"]),
        (&["land", ""], &["demo"]),
        (&["log", "--run", ""], &["demo"]),
        (&["verify", "d"], &["demo"]),
        (&["blame", "--from", "1"], &["1"]),
        (&["config", "get", "guard.co"], &["guard.command"]),
        (&["run", "x", "--agent", "cl"], &["claude"]),
        (&["completions", "z"], &["zsh"]),
        (&["loop", "--unt"], &["--until"]),
        (&["note", ""], &[]),
    ] {
        assert_eq!(candidates(&sandbox, words), found, "{words:?}");
    }
    // Elsewhere there is nothing to name, and no error.
    let outside = TestRepo::empty(RUNNER);
    assert_eq!(candidates(&outside, &["log", ""]), [""; 0]);
    let folder = sandbox.root().to_str().unwrap();
    assert_eq!(candidates(&outside, &["-C", folder, "switch", ""]), ["demo"]);
}

#[test]
fn bash_completes_with_the_script() {
    let sandbox = repository();
    let script = format!(
        "source <({RUNNER} completions bash)
         complete -p runner runner-ui runner-eval | wc -l
         COMP_WORDS=({RUNNER} node allow '') COMP_CWORD=3; _runner {RUNNER} '' allow; echo \"${{COMPREPLY[*]}}\"
         COMP_WORDS=({RUNNER} log --run = de) COMP_CWORD=4; _runner {RUNNER} de =; echo \"${{COMPREPLY[*]}}\"
         COMP_WORDS=({RUNNER} sta) COMP_CWORD=1; _runner {RUNNER} sta {RUNNER}; echo \"${{COMPREPLY[*]}}\""
    );
    let output = run(sandbox.command("bash").args(["-c", &script])).ok().stdout;
    assert_eq!(output, "3\nroot a b\ndemo\nstart status\n");
}

#[test]
fn zsh_and_fish_complete_with_the_script_if_they_are_installed() {
    let sandbox = repository();
    let is_installed = |program: &str| {
        run(sandbox.command("sh").args(["-c", &format!("command -v {program}")])).code == Some(0)
    };
    let folder = sandbox.outside().join("bin");
    std::fs::create_dir(&folder).unwrap();
    std::os::unix::fs::symlink(RUNNER, folder.join("runner")).unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    if is_installed("fish") {
        let script = "runner completions fish | source; complete -C 'runner node allow '";
        let output = run(sandbox.command("fish").args(["-c", script]).env("PATH", &path)).ok().stdout;
        assert_eq!(output.lines().collect::<Vec<_>>(), ["root\tPort it", "a\ta", "b\tb"]);
    }
    if is_installed("zsh") {
        // Completion works in an editor only, so the functions that it calls are replaced.
        let script = "compdef() { :; }; _describe() { print -l -- ${(P)3}; }; source <(runner completions zsh); \
            words=(runner node allow ''); CURRENT=4; _runner";
        let output = run(sandbox.command("zsh").args(["-fc", script]).env("PATH", &path)).ok().stdout;
        assert_eq!(output.lines().collect::<Vec<_>>(), ["root:Port it", "a:a", "b:b"]);
    }
    for shell in ["bash", "zsh", "fish"] {
        let script = sandbox.runner(&["completions", shell]).ok().stdout;
        assert!(script.contains("__complete") && !script.contains("PROGRAM"), "{script}");
    }
}
