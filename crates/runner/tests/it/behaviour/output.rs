//! Output formats: JSON, `key=value` lines, terminals of several widths, closed pipes, help pages.

use std::process::Stdio;

use insta::assert_snapshot;
use testkit::test_repo::run;

use crate::fixtures::{json, on_terminal, ready, redacted, snapshot, started};

const PLAN: &str = include_str!("../plan.json");

#[test]
fn json_output_is_one_document_with_a_schema() {
    let sandbox = ready();
    for command in ["init", "start", "validate", "select", "status", "tree", "doctor", "man"] {
        let document = json(&sandbox.runner(&[command, "--json"]));
        assert_eq!(document["schema"], format!("runner.{command}/1"), "{document}");
    }
    sandbox.write("dirt", "x");
    assert_snapshot!("start_refused_json", snapshot(&sandbox, &sandbox.runner(&["start", "--json"])));
}

#[test]
fn output_without_a_terminal_is_key_values() {
    let sandbox = ready();
    for command in ["init", "start", "validate", "select", "tree"] {
        assert_snapshot!(format!("{command}_key_values"), snapshot(&sandbox, &sandbox.runner(&[command])));
    }
}

#[test]
fn quiet_prints_only_errors() {
    let sandbox = ready();
    for command in ["start", "validate", "status"] {
        assert_eq!(sandbox.runner(&[command, "-q"]).ok().stdout, "");
    }
    sandbox.write("dirt", "x");
    assert_snapshot!("start_refused", snapshot(&sandbox, &sandbox.runner(&["start", "--quiet"])));
}

#[test]
fn errors_name_the_failure_the_cause_and_a_hint() {
    let sandbox = started();
    for (name, args) in [
        ("unknown_iteration", &["show", "9"][..]),
        ("unknown_task", &["node", "allow", "rot"]),
        ("unknown_run", &["log", "--run", "nope"]),
        ("invalid_pattern", &["log", "--grep", "("]),
        ("nothing_to_change", &["node", "edit", "root", "--title", "Port it"]),
        ("demo_folder_exists", &["demo", "--dir", "."]),
    ] {
        assert_snapshot!(format!("error_{name}"), snapshot(&sandbox, &sandbox.runner(args)));
    }
    sandbox.runner(&["node", "add", "root", "--title", "Part"]).ok();
    let refused = sandbox.runner(&["start", "--goal", "Something else"]);
    assert_snapshot!("error_goal_exists", snapshot(&sandbox, &refused));
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
    for (name, args) in [
        ("misspelt_command", &["star"][..]),
        ("misspelt_option", &["start", "--gaol", "x"]),
        ("value_out_of_range", &["tree", "--depth", "0"]),
        ("conflicting_options", &["start", "--goal", "a", "--goal-file", "b"]),
    ] {
        assert_snapshot!(format!("usage_{name}"), snapshot(&sandbox, &sandbox.runner(args)));
    }
    let no_command = sandbox.runner(&[]);
    assert!(
        no_command.code == Some(2) && no_command.stderr.contains("Usage: runner"),
        "{}",
        no_command.stderr
    );
    assert_eq!(sandbox.runner(&["--version"]).ok().stdout, format!("runner {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn help_pages_show_usage_and_examples() {
    let sandbox = ready();
    for (name, command) in [
        ("help_runner", "--help"),
        ("help_loop", "loop --help"),
        ("help_log", "log -h"),
        ("help_node", "node --help"),
        ("help_node_add", "node add --help"),
    ] {
        assert_snapshot!(name, snapshot(&sandbox, &on_terminal(&sandbox, 80, command)));
    }
}

#[test]
fn completions_and_manual_pages_are_generated() {
    let sandbox = ready();
    for shell in ["powershell", "elvish"] {
        let script = sandbox.runner(&["completions", shell]).ok().stdout;
        assert!(
            script.contains("validate") && script.contains("no-pager") && script.ends_with('\n'),
            "{shell}"
        );
    }
    assert!(sandbox.runner(&["man"]).ok().stdout.contains(".TH runner 1"));
    let folder = sandbox.outside().join("man");
    assert!(sandbox.runner(&["man", "--dir", folder.to_str().unwrap()]).refused(1).contains("man"));
    std::fs::create_dir(&folder).unwrap();
    sandbox.runner(&["man", "--dir", folder.to_str().unwrap()]).ok();
    assert!(folder.join("runner-start.1").exists());
}

#[test]
fn tree_status_and_select_are_drawn_for_the_terminal_width() {
    let sandbox = started();
    sandbox.write(".runner/state/tree.json", PLAN);
    sandbox.commit_all("as after some iterations");
    let drawn = |columns, command: &str| redacted(&sandbox, &on_terminal(&sandbox, columns, command).stdout);
    assert_snapshot!("tree_80", drawn(80, "tree"));
    assert_snapshot!("tree_40", drawn(40, "tree"));
    assert_snapshot!("tree_verbose", drawn(80, "tree -v --depth 2"));
    assert_snapshot!("tree_open", drawn(80, "tree --open --depth 2"));
    assert_snapshot!("status_80", drawn(80, "status"));
    assert_snapshot!("status_48", drawn(48, "status"));
    assert_snapshot!("select_80", drawn(80, "select --explain"));
    assert_snapshot!("validate_80", drawn(80, "validate"));
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
    assert!(!frame.contains('├') && !frame.contains('✓') && drawn.contains("|- + sessions"), "{drawn}");
    assert!(!drawn.contains('\u{1b}'), "{drawn:?}");
}

#[test]
fn simple_terminal_gets_no_cursor_movements() {
    let agent = "echo 1 > made; answer done";
    let sandbox = testkit::run_builder::RunBuilder::new(crate::RUNNER).agent(agent).start();
    let mut script = sandbox.command("script");
    let line = format!("stty cols 80 rows 24; {0} loop; {0} verify; {0} land", crate::RUNNER);
    let drawn = run(script.args(["-qec", &line, "/dev/null"]).env("TERM", "dumb")).ok().stdout;
    assert!(drawn.contains("land/demo") && drawn.contains("#1"), "{drawn}");
    assert!(!drawn.contains('\u{1b}'), "{drawn:?}");
}

#[test]
fn hints_wrap_on_a_terminal_and_commands_stay_whole() {
    let sandbox = ready();
    sandbox.write("mine.txt", "x");
    for columns in [40, 80] {
        let shown = on_terminal(&sandbox, columns, "start").stdout;
        let width = usize::try_from(columns).unwrap();
        assert!(shown.lines().all(|line| line.chars().count() <= width), "{shown}");
        assert!(shown.contains("'git stash -u'"), "{shown}");
    }
}

/// The lines that are wider than the terminal.
fn too_wide(shown: &str, columns: usize) -> Vec<&str> {
    shown.lines().filter(|line| line.chars().count() > columns).collect()
}

#[test]
fn own_words_are_ascii_without_a_unicode_locale() {
    let sandbox =
        testkit::run_builder::RunBuilder::new(crate::RUNNER).agent("answer retry 'no idea'").start();
    let mut script = sandbox.command("script");
    let line = format!("stty cols 80 rows 24; {0} loop; {0} status; {0} node edit nothing", crate::RUNNER);
    script.args(["-qec", &line, "/dev/null"]).env("LANG", "C").env("TERM", "dumb");
    let drawn = run(&mut script).stdout;
    assert!(drawn.contains("runner node edit root --goal \"...\""), "{drawn}");
    assert!(drawn.is_ascii(), "{drawn}");
}

#[test]
fn start_wraps_what_it_prints() {
    let sandbox = testkit::test_repo::TestRepo::with_commit(crate::RUNNER);
    let names: Vec<String> = (1..=8).map(|n| format!("checks/a-rather-long-name-{n}.sh")).collect();
    for name in &names {
        sandbox.write(name, "exit 0\n");
    }
    sandbox.commit_all("checks");
    sandbox.runner(&["init"]).ok();
    let set: Vec<&str> =
        ["config", "set", "guard.protected"].into_iter().chain(names.iter().map(String::as_str)).collect();
    sandbox.runner(&set).ok();
    for columns in [60, 80] {
        let shown = on_terminal(&sandbox, columns, "start").ok().stdout;
        assert_eq!(too_wide(&shown, usize::try_from(columns).unwrap()), [""; 0], "{shown}");
        assert!(shown.contains("protected from agents:") && shown.contains("long-name-4.sh"), "{shown}");
        assert!(shown.contains("GOAL.md still holds") && shown.contains("'runner start'"), "{shown}");
    }
}

#[test]
fn doctor_keeps_commands_on_one_line() {
    let sandbox = ready();
    sandbox.runner(&["config", "set", "guard.command", "no-such-program"]).ok();
    for columns in [60, 80] {
        let shown = on_terminal(&sandbox, columns, "doctor").stdout;
        let command = "runner config set guard.command COMMAND && runner start";
        assert!(shown.lines().any(|line| line.trim() == command), "{columns}: {shown}");
    }
}

#[test]
fn prose_wraps_on_a_narrow_terminal() {
    let sandbox = started();
    for command in
        ["checks", "plan lint --no-pager", "validate", "config show --no-pager", "config show -v --no-pager"]
    {
        let shown = on_terminal(&sandbox, 60, command).stdout;
        let wide = too_wide(&shown, 60);
        assert!(wide.iter().all(|line| line.starts_with("Next: runner ")), "{command}: {wide:?}");
        assert!(shown.lines().count() > 2, "{command}: {shown}");
    }
}

#[test]
fn examples_stay_copyable_on_a_narrow_terminal() {
    let sandbox = ready();
    for command in ["--help", "loop --help", "log --help", "plan lint --help"] {
        let shown = on_terminal(&sandbox, 60, command).ok().stdout;
        let (_, rest) = shown.split_once("Examples:\n").unwrap();
        let examples: Vec<&str> = rest.lines().take_while(|line| !line.is_empty()).collect();
        assert!(
            examples.iter().all(|line| line.starts_with("  runner ") || line.starts_with("  # ")),
            "{command}: {examples:?}"
        );
        let wide = too_wide(&shown, 60);
        assert!(wide.iter().all(|line| line.starts_with("  runner ") && !line.contains('#')), "{wide:?}");
    }
}
