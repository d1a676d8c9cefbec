//! How answers look: JSON, plain lines, a terminal, a reader that goes away.

use std::process::Stdio;

use testkit::test_repo::run;

use crate::ready;
use crate::started;

#[test]
fn json_output_is_one_document_with_a_schema() {
    let sandbox = ready();
    for command in ["init", "start", "validate", "select", "status", "tree", "doctor", "man"] {
        let told = sandbox.runner(&[command, "--json"]).stdout;
        let document: serde_json::Value = serde_json::from_str(&told).unwrap();
        assert_eq!(document["schema"], format!("runner.{command}/1"), "{told}");
    }
    sandbox.write("dirt", "x");
    let refused = sandbox.runner(&["start", "--json"]);
    let error: serde_json::Value = serde_json::from_str(&refused.stderr).unwrap();
    assert_eq!((&error["code"], &error["exit"], refused.code), (&"dirty".into(), &2.into(), Some(2)));
    assert_eq!(error["details"], serde_json::json!(["dirt"]));
}

#[test]
fn quiet_prints_only_errors() {
    let sandbox = ready();
    for command in ["start", "validate", "status"] {
        assert_eq!(sandbox.runner(&[command, "-q"]).ok().stdout, "");
    }
    sandbox.write("dirt", "x");
    assert!(sandbox.runner(&["start", "--quiet"]).refused(2).starts_with("error: could not start the run\n"));
}

#[test]
fn colour_is_used_on_terminals_or_on_request() {
    let sandbox = ready();
    sandbox.write("dirt", "x");
    let escapes = |command: &mut std::process::Command| run(command).stderr.contains('\u{1b}');
    assert!(!escapes(&mut sandbox.runner_command(&["start"])));
    assert!(escapes(&mut sandbox.runner_command(&["start", "--color", "always"])));
    assert!(escapes(sandbox.runner_command(&["start"]).env("CLICOLOR_FORCE", "1")));
    assert!(!escapes(sandbox.runner_command(&["start"]).env("CLICOLOR_FORCE", "1").env("NO_COLOR", "1")));
}

#[test]
fn closed_pipe_is_not_an_error() {
    let sandbox = started();
    for command in ["tree", "validate", "status", "completions bash", "--help"] {
        let args: Vec<&str> = command.split(' ').collect();
        let mut child =
            sandbox.runner_command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), b"".as_slice()), "{command}");
    }
}

#[test]
fn usage_error_exits_with_two_and_shows_the_usage() {
    let sandbox = ready();
    for args in [
        &["star"][..],
        &["start", "--gaol", "x"],
        &[],
        &["tree", "--depth", "0"],
        &["start", "--goal", "a", "--goal-file", "b"],
    ] {
        let told = sandbox.runner(args);
        assert_eq!(told.code, Some(2), "{args:?}");
        assert!(told.stderr.contains("Usage") || told.stderr.contains("--help"), "{}", told.stderr);
    }
    assert!(sandbox.runner(&["star"]).stderr.contains("start"));
    assert_eq!(sandbox.runner(&["--version"]).ok().stdout, format!("runner {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn help_pages_show_usage_and_examples() {
    let sandbox = ready();
    for command in ["init", "start", "validate", "select", "status", "tree", "doctor", "completions", "man"] {
        let help = sandbox.runner(&[command, "--help"]).ok().stdout;
        assert!(
            help.contains("Examples:") && help.contains(&format!("runner {command}")) || command == "status",
            "{help}"
        );
    }
}

#[test]
fn completions_and_manual_pages_are_generated() {
    let sandbox = ready();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = sandbox.runner(&["completions", shell]).ok().stdout;
        assert!(script.contains("validate") && script.ends_with('\n'), "{shell}");
    }
    assert!(sandbox.runner(&["man"]).ok().stdout.contains(".TH runner 1"));
    let folder = sandbox.outside().join("man");
    assert!(sandbox.runner(&["man", "--dir", folder.to_str().unwrap()]).refused(1).contains("man"));
    std::fs::create_dir(&folder).unwrap();
    sandbox.runner(&["man", "--dir", folder.to_str().unwrap()]).ok();
    assert!(folder.join("runner-start.1").exists());
}

/// What a terminal of a given width shows.
fn on_terminal(sandbox: &testkit::test_repo::TestRepo, columns: u32, command: &str) -> String {
    let mut script = sandbox.command("script");
    let line = format!("stty cols {columns} rows 24; {} {command}", crate::RUNNER);
    script.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm-256color").env("NO_COLOR", "1");
    run(&mut script).ok().stdout.replace("\r\n", "\n")
}

const PLAN: &str = include_str!("../plan.json");

#[test]
fn tree_status_and_select_are_drawn_for_the_terminal_width() {
    let sandbox = started();
    sandbox.write(".runner/state/tree.json", PLAN);
    sandbox.commit_all("as if some iterations had been");
    insta::assert_snapshot!("tree_80", on_terminal(&sandbox, 80, "tree"));
    insta::assert_snapshot!("tree_40", on_terminal(&sandbox, 40, "tree"));
    insta::assert_snapshot!("tree_verbose", on_terminal(&sandbox, 80, "tree -v --depth 2"));
    insta::assert_snapshot!("tree_open", on_terminal(&sandbox, 80, "tree --open --depth 2"));
    let hidden = |text: String| {
        let branch = sandbox.git(&["branch", "--show-current"]).replace("runner/", "");
        text.replace(&branch, "run-00000000")
            .replace(&sandbox.git(&["rev-parse", "--short=8", "HEAD"]), "11111111")
    };
    insta::assert_snapshot!("status_80", hidden(on_terminal(&sandbox, 80, "status")));
    insta::assert_snapshot!("status_48", hidden(on_terminal(&sandbox, 48, "status")));
    insta::assert_snapshot!("select_80", on_terminal(&sandbox, 80, "select --explain"));
    insta::assert_snapshot!("validate_80", on_terminal(&sandbox, 80, "validate"));
}

#[test]
fn tree_is_drawn_in_ascii_without_a_unicode_locale() {
    let sandbox = started();
    sandbox.write(".runner/state/tree.json", PLAN);
    let mut script = sandbox.command("script");
    let line = format!("stty cols 80 rows 24; {} tree", crate::RUNNER);
    script.args(["-qec", &line, "/dev/null"]).env("LANG", "C").env("TERM", "dumb");
    let drawn = run(&mut script).ok().stdout;
    let frame: String = drawn.chars().filter(|c| !c.is_alphanumeric()).collect();
    assert!(!frame.contains('├') && !frame.contains('✓') && drawn.contains("|- x sessions"), "{drawn}");
    assert!(!drawn.contains('\u{1b}'), "{drawn:?}");
}
