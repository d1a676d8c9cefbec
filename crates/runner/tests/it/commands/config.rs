//! `runner config`

use testkit::run_builder::RunBuilder;
use testkit::test_repo::TestRepo;

use crate::RUNNER;
use crate::fixtures::{json, on_terminal};

const CONFIG: &str = ".runner/state/config.toml";

#[test]
fn every_key_has_value_default_and_source() {
    let sandbox = TestRepo::with_commit(RUNNER);
    sandbox.runner(&["init"]).ok();
    sandbox.runner(&["config", "set", "max_iterations", "7"]).ok();
    let shown = sandbox.runner(&["config", "show"]).ok().stdout;
    assert!(shown.contains("key=max_iterations value=7 default=200 source=config.toml\n"), "{shown}");
    assert!(
        shown.contains("key=executor.model value=\"(not set)\" default=none source=default\n"),
        "{shown}"
    );
    let document = json(&sandbox.runner(&["config", "show", "--json"]).ok());
    let keys = document["keys"].as_array().unwrap();
    assert!(keys.len() > 30 && keys.iter().all(|key| !key["meaning"].as_str().unwrap().is_empty()));
    let table = sandbox.runner(&["config", "show", "guard"]).ok().stdout;
    assert!(table.lines().all(|line| line.starts_with("key=guard.")) && table.lines().count() > 5, "{table}");
}

#[test]
fn set_keeps_comments_and_takes_effect_with_the_next_start() {
    let sandbox = RunBuilder::new(RUNNER).keys("# few are enough\nmax_iterations = 5 # for now").start();
    let before = sandbox.read(CONFIG);
    let set = sandbox.runner(&["config", "set", "max_iterations", "6"]).ok();
    assert_eq!(set.stdout, "key=max_iterations value=6\n");
    assert_eq!(sandbox.read(CONFIG), before.replace("= 5 # for now", "= 6 # for now"));
    let refused = sandbox.runner(&["loop"]).refused(2);
    assert!(refused.contains("runner start"), "{refused}");
    sandbox.runner(&["start"]).ok();
    sandbox.runner(&["loop"]).ok();
    let human = on_terminal(&sandbox, 80, "config set guard.command sh guard.sh");
    assert!(human.stdout.contains("guard.command = [\"sh\", \"guard.sh\"]"), "{}", human.stdout);
    assert!(human.stdout.contains("Next: runner start"), "{}", human.stdout);
}

#[test]
fn invalid_edits_change_nothing() {
    let sandbox = RunBuilder::new(RUNNER).start();
    let before = sandbox.read(CONFIG);
    for (args, text) in [
        (&["max_iterations", "0"][..], "`max_iterations` is invalid"),
        (&["guard.comand", "x"], "did you mean `guard.command`?"),
        (&["model", "x"], "did you mean `executor.model`?"),
        (&["agent", "claude"], "did you mean `executor.kind`?"),
        (&["ladder", "x"], "edit .runner/state/config.toml"),
        (&["max_iterations", "1", "2"], "takes exactly one word"),
        (&["executor.kind=command", "executor.preset=nothing"], "unknown preset"),
    ] {
        let refused = sandbox.runner(&[&["config", "set"], args].concat()).refused(2);
        assert!(refused.contains(text), "{args:?}: {refused}");
        assert_eq!(sandbox.read(CONFIG), before);
    }
    let refused = TestRepo::with_commit(RUNNER).runner(&["config", "set", "max_iterations", "1"]).refused(2);
    assert!(refused.contains("runner init"), "{refused}");
}

#[test]
fn agent_is_changed_by_removing_the_keys_of_the_old_one() {
    let sandbox = RunBuilder::new(RUNNER).start();
    let refused = sandbox.runner(&["config", "set", "executor.kind=codex"]).refused(2);
    assert!(refused.contains("`executor.command`"), "{refused}");
    assert!(refused.contains("an empty value removes one"), "{refused}");
    let set = sandbox.runner(&["config", "set", "executor.kind=codex", "executor.command="]).ok().stdout;
    assert!(set.ends_with("key=executor.command value=\"(not set)\"\n"), "{set}");
    assert_eq!(sandbox.runner(&["config", "get", "executor.kind"]).ok().stdout, "codex\n");
    assert_eq!(sandbox.runner(&["config", "get", "executor.command"]).ok().stdout, "");
}

#[test]
fn get_prints_the_bare_value_and_schema_is_json() {
    let sandbox = TestRepo::with_commit(RUNNER);
    assert_eq!(sandbox.runner(&["config", "get", "on_stuck"]).ok().stdout, "stop\n");
    assert_eq!(sandbox.runner(&["config", "get", "executor.model"]).ok().stdout, "");
    let schema = json(&sandbox.runner(&["config", "schema"]).ok());
    assert!(schema["properties"]["guard"].is_object(), "{schema}");
}
