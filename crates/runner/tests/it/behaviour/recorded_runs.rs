//! Recorded runs, one for each outcome, replayed by this version: a change of behaviour changes a stored file.
//!
//! `just record` records them again.

use std::fs;
use std::path::PathBuf;

use runner_core::replay::{Recording, replay};
use testkit::run_builder::RunBuilder;
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;
use crate::wasm_audit::{AuditCase, assert_same_audits};

/// A recorded run: its name and how to make it.
type Ending = (&'static str, fn() -> TestRepo);

const ENDINGS: &[Ending] = &[
    ("complete", || {
        let agent = r#"
case "$RUNNER_ITER" in
0001) split ;;
0002) sed -i 's/"title": "b"/"title": "the rest"/' "$RUNNER_TREE"; echo '- it is small' >> .runner/state/assumptions.md; answer done ;;
*) echo "$RUNNER_ITER" > ok; answer done "made it" ;;
esac"#;
        looped(&RunBuilder::new(RUNNER).agent(agent).guard("echo checked; test -e ok"))
    }),
    ("red_before", || {
        let agent = r#"[ "$RUNNER_ITER" = 0002 ] && echo 1 > ok; answer done"#;
        looped(
            &RunBuilder::new(RUNNER)
                .agent(agent)
                .guard("echo checked; test -e ok")
                .guard_keys("baseline = true"),
        )
    }),
    ("steered", || {
        let sandbox = RunBuilder::new(RUNNER).agent("answer done").start();
        sandbox.runner(&["node", "split", "root", "--into", "One", "--into", "Two"]).ok();
        sandbox.runner(&["loop", "--max-iterations", "1"]);
        sandbox.runner(&["note", "be quick"]).ok();
        sandbox.runner(&["loop"]).ok();
        sandbox
    }),
    ("stuck", || looped(&RunBuilder::new(RUNNER).agent("answer retry 'not yet'"))),
    ("limit", || looped(&RunBuilder::new(RUNNER).agent("answer retry").keys("max_iterations = 1"))),
    ("repaired", || {
        let agent = r#"case "$RUNNER_MODE" in repair) answer done ;; *) [ "$RUNNER_ITER" = 0001 ] && echo '{' > "$RUNNER_TREE"; answer done ;; esac"#;
        looped(&RunBuilder::new(RUNNER).agent(agent))
    }),
    ("repair_abandoned", || {
        let agent = r#"[ "$RUNNER_ITER" -lt 4 ] && printf '{"version": \377}' > "$RUNNER_TREE"; answer done"#;
        looped(&RunBuilder::new(RUNNER).agent(agent))
    }),
    ("rule_violation", || {
        let agent = r#"case "$RUNNER_ITER" in 0001) split ;; 0002) answer done ;; 0003) sed -i 's/"title": "a"/"title": "A"/' "$RUNNER_TREE"; answer done ;; *) answer done ;; esac"#;
        looped(&RunBuilder::new(RUNNER).agent(agent))
    }),
    ("guard_files", || {
        let agent = r#"[ "$RUNNER_ITER" = 0001 ] && echo exit 0 > guard.sh; answer done"#;
        looped(&RunBuilder::new(RUNNER).agent(agent).guard_keys("protect = \"reject\""))
    }),
    ("replanned", || {
        let agent = r#"case "$RUNNER_MODE" in replan) split ;; *) case "$RUNNER_NODE_ID" in root) answer retry ;; *) answer done ;; esac ;; esac"#;
        looped(&RunBuilder::new(RUNNER).agent(agent).keys("on_stuck = \"replan\""))
    }),
    ("unconfirmed", || looped(&RunBuilder::new(RUNNER).agent("answer done").config_tables("[accept]\n"))),
    ("stalled", || {
        let limits = "[limits]\nstall_iterations = 2\n";
        looped(&RunBuilder::new(RUNNER).agent("answer retry").config_tables(limits))
    }),
    ("too_large", || {
        let agent = r#"case "$RUNNER_MODE $RUNNER_NODE_ID" in split*) split ;; *root) echo '{"fault": {"fault": "context_full"}}' > "$RUNNER_REPORT" ;; *) answer done ;; esac"#;
        looped(&RunBuilder::new(RUNNER).agent(agent))
    }),
    ("skipped", || {
        let agent = r#"case "$RUNNER_NODE_ID" in root) split ;; a) answer retry ;; *) answer done ;; esac"#;
        looped(&RunBuilder::new(RUNNER).agent(agent).keys("on_stuck = \"skip\""))
    }),
    ("reviewed", || {
        let reviewer = r#"
case "$RUNNER_ITER" in
0001) exit 1 ;;
0002) printf '{"verdict": "refuse", "reasons": ["no test"]}' > "$RUNNER_OUTPUT" ;;
*) printf '{"verdict": "accept", "reasons": []}' > "$RUNNER_OUTPUT" ;;
esac"#;
        let table = "[review]\nkind = \"command\"\ncommand = [\"sh\", \"reviewer.sh\"]\nsandbox = \"off\"\n";
        let agent = r#"echo "$RUNNER_ITER" > out; answer done"#;
        looped(&RunBuilder::new(RUNNER).agent(agent).file("reviewer.sh", reviewer).config_tables(table))
    }),
    ("timed_out", || looped(&RunBuilder::new(RUNNER).agent("sleep 60").keys("iteration_timeout_secs = 1"))),
    ("failures", || looped(&RunBuilder::new(RUNNER).agent("exit 3"))),
    ("no_agent", || {
        let sandbox = RunBuilder::new(RUNNER).missing_agent().start();
        (0..3).for_each(|_| drop(sandbox.runner(&["step"])));
        sandbox
    }),
    ("planned", || {
        let sandbox = RunBuilder::new(RUNNER).agent(super::planning::PLANNER).start();
        (0..2).for_each(|_| drop(sandbox.runner(&["plan", "make"])));
        sandbox.runner(&["answer", "1", "the green one"]).ok();
        sandbox.runner(&["plan", "make"]).ok();
        sandbox.runner(&["plan", "approve"]).ok();
        sandbox.runner(&["loop"]).ok();
        sandbox
    }),
    ("interrupted", || {
        let sandbox =
            RunBuilder::new(RUNNER).agent("echo 1 > begun.txt; touch \"$AROUND/begun\"; sleep 60").start();
        sandbox.kill_when(&["loop"], "begun");
        sandbox.replace_agent("answer done");
        sandbox.runner(&["loop"]).ok();
        sandbox
    }),
];

fn looped(setup: &RunBuilder) -> TestRepo {
    let sandbox = setup.start();
    sandbox.runner(&["loop", "--allow-red"]);
    sandbox
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/recorded").join(format!("{name}.json"))
}

#[test]
fn recorded_runs_replay_identically() {
    for (name, _) in ENDINGS {
        let path = file(name);
        let bytes =
            fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}; run: just record", path.display()));
        let recording = Recording::decode(&bytes).unwrap();
        let replayed = replay(&recording);
        assert_eq!(replayed.difference, None, "{name}: if this is meant, run: just record");
        assert!(replayed.iterations > 0 && replayed.skipped.is_empty(), "{name}: {replayed:?}");
    }
    let stored = fs::read_dir(file("x").parent().unwrap()).unwrap().count();
    assert_eq!(stored, ENDINGS.len(), "no recording without its making");
}

/// Makes, records and replays each run; with UPDATE_RECORDED=1 also stores the recordings.
#[test]
fn every_outcome_can_be_recorded_replayed_and_exported() {
    let mut cases = Vec::new();
    for (name, make) in ENDINGS {
        let sandbox = make();
        let exported = sandbox.outside().join("run.json");
        let output = sandbox.runner(&["replay", "--out", exported.to_str().unwrap()]).ok();
        assert!(output.stdout.contains("identical=true"), "{name}: {}", output.stdout);
        let again =
            run(sandbox.runner_command(&["replay", exported.to_str().unwrap()]).current_dir("/")).ok();
        assert_eq!(again.stdout, output.stdout, "a recording needs no repository");
        let verified = serde_json::from_str(&sandbox.runner(&["verify", "--json"]).stdout).unwrap();
        cases.push(AuditCase::new(&sandbox, name, verified));
        if std::env::var_os("UPDATE_RECORDED").is_some() {
            let text = fs::read_to_string(&exported).unwrap();
            let text = text.replace(sandbox.outside().to_str().unwrap(), "/somewhere");
            fs::create_dir_all(file(name).parent().unwrap()).unwrap();
            fs::write(file(name), text).unwrap();
        }
    }
    assert_same_audits(&cases);
}

#[test]
fn replay_names_the_differing_line() {
    let sandbox = looped(&RunBuilder::new(RUNNER).agent("answer retry"));
    let exported = sandbox.outside().join("run.json");
    sandbox.runner(&["replay", "--out", exported.to_str().unwrap()]).ok();
    let forged =
        fs::read_to_string(&exported).unwrap().replace("Runner-Attempt: charged", "Runner-Attempt: free");
    fs::write(&exported, forged).unwrap();
    let output = sandbox.runner(&["replay", exported.to_str().unwrap()]);
    assert_eq!(output.code, Some(1));
    assert!(output.stdout.starts_with("difference=message iter=1 line="), "{}", output.stdout);
    assert!(
        output.stdout.contains("recorded=\"Runner-Attempt: free\" now=\"Runner-Attempt: charged\""),
        "{}",
        output.stdout
    );
    fs::remove_dir_all(sandbox.path(".runner/iterations")).unwrap();
    assert!(sandbox.runner(&["replay"]).refused(2).contains("no session of run `demo` is recorded here"));
    fs::write(&exported, "{}").unwrap();
    assert!(
        sandbox.runner(&["replay", exported.to_str().unwrap()]).refused(2).contains("is not a recording")
    );
}
