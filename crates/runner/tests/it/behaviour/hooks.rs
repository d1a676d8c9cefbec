//! Hooks: the user's notification commands, which cannot change a run.

use testkit::oracle::{assert_idle, assert_sound};
use testkit::run_builder::RunBuilder;
use testkit::test_repo::TestRepo;

use crate::RUNNER;

/// A run in which each hook runs a script that writes its input beside the work tree.
fn run_with_hooks(agent: &str, hooks: &[&str], script: &str) -> TestRepo {
    let sandbox = RunBuilder::new(RUNNER).agent(agent).keys("max_attempts_default = 1").start();
    let path = sandbox.outside().join("hook.sh");
    std::fs::write(&path, script).unwrap();
    let hooks: String =
        hooks.iter().map(|hook| format!("{hook} = [\"sh\", \"{}\", \"{hook}\"]\n", path.display())).collect();
    let config = sandbox.read(".runner/state/config.toml");
    sandbox.write(".runner/state/config.toml", format!("{config}\n[hooks]\ntimeout_secs = 1\n{hooks}"));
    sandbox.runner(&["start"]).ok();
    sandbox
}

const WRITES: &str =
    "cat > \"$(dirname $0)/$1.json\"; pwd > \"$(dirname $0)/$1.pwd\"; env > \"$(dirname $0)/$1.env\"";
const ALL: [&str; 4] = ["on_pass", "on_stuck", "on_complete", "on_stop"];

fn hook_input(sandbox: &TestRepo, hook: &str) -> Option<serde_json::Value> {
    let text = std::fs::read_to_string(sandbox.outside().join(format!("{hook}.json"))).ok()?;
    Some(serde_json::from_str(&text).unwrap())
}

#[test]
fn pass_and_complete_hooks_run_outside_the_repository() {
    let sandbox = run_with_hooks("answer done", &ALL, WRITES);
    let output = sandbox.runner(&["loop"]).ok().stdout;
    assert!(output.contains("event=hook_ran hook=on_pass ok=true"), "{output}");
    let pass = hook_input(&sandbox, "on_pass").unwrap();
    let commit = sandbox.git(&["rev-parse", "HEAD"]);
    assert_eq!(pass.get("commit").unwrap(), commit.as_str());
    assert_eq!((pass.get("node").unwrap(), pass.get("outcome").unwrap()), (&"root".into(), &"passed".into()));
    assert_eq!(pass.get("repository").unwrap(), sandbox.root().to_str().unwrap());
    let complete = hook_input(&sandbox, "on_complete").unwrap();
    assert_eq!((complete.get("exit_code").unwrap(), complete.get("iter").unwrap()), (&0.into(), &1.into()));
    assert_eq!(
        (hook_input(&sandbox, "on_stop"), hook_input(&sandbox, "on_stuck")),
        (None, None),
        "an end is reported once"
    );
    let folder = std::fs::read_to_string(sandbox.outside().join("on_pass.pwd")).unwrap();
    assert!(!folder.trim().starts_with(sandbox.root().to_str().unwrap()), "{folder}");
    assert_sound(&sandbox);
}

#[test]
fn stuck_and_stop_hooks_run() {
    let sandbox = run_with_hooks("answer retry", &ALL, WRITES);
    assert_eq!(sandbox.runner(&["loop"]).code, Some(3));
    assert_eq!(hook_input(&sandbox, "on_stuck").unwrap().pointer("/stop/reason").unwrap(), "stuck");
    let sandbox = run_with_hooks("answer retry", &["on_stop"], WRITES);
    assert_eq!(sandbox.runner(&["loop"]).code, Some(3));
    assert_eq!(hook_input(&sandbox, "on_stop").unwrap().get("hook").unwrap(), "on_stop");
}

#[test]
fn failing_hanging_or_missing_hook_changes_nothing() {
    let hang = "sleep 60 & trap '' TERM INT; sleep 60";
    for (script, why) in [("exit 3", "exited with code 3"), (hang, "longer than 1 seconds")] {
        let sandbox = run_with_hooks("answer done", &["on_pass"], script);
        let output = sandbox.runner(&["loop"]).ok().stdout;
        assert!(output.contains("hook=on_pass ok=false error=\"it ") && output.contains(why), "{output}");
        assert_idle(&sandbox);
        assert_sound(&sandbox);
    }
}

#[test]
fn hook_inside_the_repository_is_not_run() {
    let sandbox = RunBuilder::new(RUNNER).file("hook.sh", "#!/bin/sh\ntouch $(dirname $HOME)/ran\n").start();
    let config = sandbox.read(".runner/state/config.toml");
    let inside = sandbox.path("hook.sh").display().to_string();
    for (program, why) in [
        (inside.as_str(), "is inside the repository"),
        ("./hook.sh", "is not an absolute path"),
        ("no-such-program", "is not on PATH"),
    ] {
        sandbox.write(
            ".runner/state/config.toml",
            format!("{config}\n[hooks]\non_complete = [\"{program}\"]\n"),
        );
        sandbox.runner(&["start"]).ok();
        let output = sandbox.runner(&["loop"]).ok().stdout;
        assert!(output.contains(why), "{program}: {output}");
        assert!(!sandbox.outside().join("ran").exists());
    }
}
