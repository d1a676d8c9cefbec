//! Completion of command lines, in real shells.

use std::path::Path;

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

/// A PATH on which the three programs are found by name.
fn programs_path(sandbox: &TestRepo) -> String {
    let folder = sandbox.outside().join("bin");
    std::fs::create_dir(&folder).unwrap();
    for name in ["runner", "runner-ui", "runner-eval"] {
        let program = Path::new(RUNNER).with_file_name(name);
        assert!(program.is_file(), "`{}` is not built: cargo build --workspace", program.display());
        std::os::unix::fs::symlink(program, folder.join(name)).unwrap();
    }
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap())
}

/// Whether a shell is installed. CI installs all of them; elsewhere the test says what it left out.
#[expect(clippy::print_stderr, reason = "a test that left something out must say so")]
fn is_installed(sandbox: &TestRepo, shell: &str) -> bool {
    let found = run(sandbox.command("sh").args(["-c", &format!("command -v {shell}")])).code == Some(0);
    if !found {
        eprintln!("SKIPPED: completion in {shell}, which is not installed (apt-get install {shell})");
    }
    found
}

/// What is typed, and a candidate for it, for each program. The script of each program is loaded first.
const TYPED: [(&str, &str, &str); 5] = [
    ("runner", "runner node allow ro", "root"),
    ("runner", "runner ui --pol", "--poll"),
    ("runner-ui", "runner-ui exp", "export"),
    ("runner-ui", "runner-ui export html de", "demo"),
    ("runner-eval", "runner-eval compa", "compare"),
];

#[test]
fn fish_completes_all_programs() {
    let sandbox = repository();
    if !is_installed(&sandbox, "fish") {
        return;
    }
    let path = programs_path(&sandbox);
    let complete = |program: &str, line: &str| {
        let script =
            format!("runner completions fish | source; {program} --version >/dev/null; complete -C '{line}'");
        run(sandbox.command("fish").args(["--no-config", "-c", &script]).env("PATH", &path)).ok().stdout
    };
    let nodes = complete("runner", "runner node allow ");
    assert_eq!(nodes.lines().collect::<Vec<_>>(), ["root\tPort it", "a\ta", "b\tb"]);
    for (program, line, found) in TYPED {
        let shown = complete(program, line);
        assert!(shown.lines().any(|line| line.split('\t').next() == Some(found)), "{line}: {shown}");
    }
}

/// Types a line and Tab into an interactive shell, and waits until the shell has completed it.
#[test]
fn zsh_completes_all_programs_as_one_types() {
    let sandbox = repository();
    if !is_installed(&sandbox, "zsh") {
        return;
    }
    let path = programs_path(&sandbox);
    for (_, line, found) in TYPED {
        // What was typed is shown too, so only a completed word followed by more input counts.
        let script = format!(
            "zmodload zsh/zpty; zpty shell zsh -f -i
             zpty -w shell 'PS1=; autoload -U compinit; compinit -u -D; source <(runner completions zsh); echo re''ady'
             zpty -r shell seen '*ready*'
             zpty -n -w shell $'{line}\\t:end'
             zpty -r shell seen '*{found}*:end*'; print -r -- $seen"
        );
        let mut command = sandbox.command("timeout");
        command.args(["--kill-after=1", "60", "zsh", "-fc", &script]).env("PATH", &path).env("TERM", "dumb");
        let output = run(&mut command);
        assert_eq!(output.code, Some(0), "{line}: {}{}", output.stdout, output.stderr);
        assert!(output.stdout.contains(found), "{line}: {}", output.stdout);
    }
}

#[test]
fn bash_completes_all_programs_as_one_types() {
    let sandbox = repository();
    let path = programs_path(&sandbox);
    for (program, line, found) in TYPED {
        let words: Vec<&str> = line.split(' ').collect();
        let current = words.len() - 1;
        let script = format!(
            "source <(runner completions bash); COMP_WORDS=({line}) COMP_CWORD={current}
             function=$(complete -p {program} | sed 's/.*-F \\([^ ]*\\).*/\\1/')
             $function {program} {} {}; printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            words[current],
            words[current - 1]
        );
        let output = run(sandbox.command("bash").args(["--norc", "-c", &script]).env("PATH", &path)).ok();
        assert!(output.stdout.lines().any(|word| word == found), "{line}: {}", output.stdout);
    }
}

#[test]
fn scripts_name_their_program_and_no_placeholder() {
    let sandbox = TestRepo::empty(RUNNER);
    for shell in ["bash", "zsh", "fish"] {
        let script = sandbox.runner(&["completions", shell]).ok().stdout;
        assert!(script.contains("__complete") && !script.contains("PROGRAM"), "{script}");
    }
}

/// bash and fish load the script of a program from a file with the name of the program.
#[test]
fn examples_in_the_help_make_a_script_for_every_program() {
    let sandbox = TestRepo::empty(RUNNER);
    let help = sandbox.runner(&["completions", "--help"]).ok().stdout;
    let examples = help.lines().filter_map(|line| line.strip_prefix("  "));
    let commands: Vec<&str> =
        examples.filter(|line| line.starts_with("runner completions") || line.starts_with("ln -s")).collect();
    assert_eq!(commands.len(), 7, "{help}");
    let script = format!(
        "set -e; runner() {{ {RUNNER} \"$@\"; }}; bash=~/.local/share/bash-completion/completions
         mkdir -p $bash ~/.config/fish/completions ~/.zfunc
         {}
         for program in runner runner-ui runner-eval; do
             (source $bash/$program; complete -p $program >&2)
             grep -q \"complete -c $program \" ~/.config/fish/completions/$program.fish
         done; echo all",
        commands.join("\n")
    );
    assert_eq!(run(sandbox.command("bash").args(["--norc", "-c", &script])).ok().stdout, "all\n");
}
