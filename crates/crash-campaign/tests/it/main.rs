//! The campaign itself: its injector reaches what it counts, and its oracle reports damage.
#![expect(clippy::expect_used, reason = "an error here is a failed test")]

use std::process::{Command, Output};

fn campaign(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_crash-campaign")).args(args).output().expect("the campaign")
}

fn stdout(args: &[&str]) -> String {
    let output = campaign(args);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{args:?}: {}{stderr}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn calls_of_the_runner_and_of_git_are_counted_and_those_of_the_agent_are_not() {
    let calls = stdout(&["calls", "step", "mutating"]);
    assert!(calls.lines().count() > 50, "{calls}");
    for expected in ["runner rename", "git write", "git rename", "runner fsync"] {
        assert!(calls.lines().any(|line| line.starts_with(expected)), "no `{expected}` in:\n{calls}");
    }
    assert!(!calls.contains("home/ledger"), "{calls}");
    assert!(calls.lines().all(|line| line.starts_with("runner ") || line.starts_with("git ")), "{calls}");
}

#[test]
fn reads_of_the_runner_and_of_git_are_counted_too() {
    let calls = stdout(&["calls", "note", "reading"]);
    for expected in ["runner read ", "git read ", "runner getdents64", "git openat"] {
        assert!(calls.lines().any(|line| line.starts_with(expected)), "no `{expected}` in:\n{calls}");
    }
    assert!(!calls.lines().any(|line| line.contains(" write ")), "{calls}");
    let opening = stdout(&["calls", "note", "opening"]);
    for expected in ["runner socketpair", "runner pipe2"] {
        assert!(opening.lines().any(|line| line.starts_with(expected)), "no `{expected}` in:\n{opening}");
    }
}

#[test]
fn a_read_that_fails_is_survived() {
    assert_eq!(stdout(&["point", "eio-read/note/40"]), "sound\n");
    assert_eq!(stdout(&["point", "enomem/note/60"]), "sound\n");
}

#[test]
fn a_kill_is_injected_and_survived() {
    assert_eq!(stdout(&["point", "kill-all/step/20"]), "sound\n");
    assert_eq!(stdout(&["point", "kill-runner/guard-fails/60"]), "sound\n");
}

#[test]
fn a_sweep_judges_the_states_before_all_calls() {
    let printed = stdout(&["sweep", "kill-all", "note", "--every", "30"]);
    if printed.starts_with("sweep SKIPPED: ") {
        return;
    }
    let count = |text: &str| printed.lines().filter(|line| line.contains(text)).count();
    let [sound, same, left_out] = ["\"sound\\n\"", "\"same\\n", "\"not-reached\\n\""].map(count);
    assert!(sound >= 3 && same > 10 && left_out > 50, "{printed}");
    assert!(printed.ends_with(&format!("{{\"complete\":{}}}\n", sound + same + left_out)), "{printed}");
}

#[test]
fn a_fault_beyond_the_last_call_is_not_counted_as_survived() {
    assert_eq!(stdout(&["point", "kill-all/note/100000"]), "not-reached\n");
}

#[test]
fn a_short_soak_is_sound_and_prints_its_figures() {
    let printed = stdout(&["soak", "12"]);
    for expected in ["soak: 12 iterations", "at 12 / at 10: own time", "loose objects", "verify", "replay"] {
        assert!(printed.contains(expected), "no `{expected}` in:\n{printed}");
    }
}

#[test]
fn every_mutant_can_be_made() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let script = std::fs::read_to_string(format!("{root}/scripts/crash-mutants")).expect("a script");
    let patches = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/mutants")).expect("a folder");
    for patch in patches.map(|entry| entry.expect("a file").path()) {
        let output = Command::new("git").args(["apply", "--check"]).arg(&patch).current_dir(root).output();
        let output = output.expect("git");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let name = patch.file_stem().expect("a name").to_string_lossy().into_owned();
        assert!(script.contains(&format!("        {name}) echo \"")), "nothing finds {name}");
    }
}
