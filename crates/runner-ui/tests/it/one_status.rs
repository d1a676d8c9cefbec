//! `runner status`, `runner watch`, the page and the end of `runner loop` agree about a run, in every state and after every
//! stop. States and stop reasons come from their types, so a new one fails here until it has a scene.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use runner_core::run_status::{LifecycleState, RunPhase};
use runner_core::step::StopReason;
use schemars::{JsonSchema, schema_for};
use serde_json::Value;
use testkit::processes::wait_for;
use testkit::run_builder::RunBuilder;
use testkit::test_repo::{RunOutput, TestRepo, run};

use crate::pty::Pty;
use crate::server::{Server, runner};

/// The names of an enum's variants, from its schema. `tag` is the key that holds the name.
fn variants<T: JsonSchema>(tag: Option<&str>) -> Vec<String> {
    let schema = schema_for!(T).to_value();
    let alternatives = schema["oneOf"].as_array().cloned().unwrap_or_else(|| vec![schema.clone()]);
    let name = |value: &Value| value.as_str().unwrap().to_owned();
    let names = alternatives.iter().flat_map(|alternative| {
        let value = tag.map_or(alternative, |tag| &alternative["properties"][tag]);
        let listed = value["enum"].as_array().map(|names| names.iter().map(name).collect::<Vec<_>>());
        listed.unwrap_or_else(|| vec![name(&value["const"])])
    });
    names.collect()
}

fn watch(root: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_runner-ui"));
    command.arg("--project-dir").arg(root).arg("watch");
    command.env("HOME", root).env("GIT_CONFIG_NOSYSTEM", "1").env("LC_ALL", "C.UTF-8").env_remove("NO_COLOR");
    command
}

const KEYS: [&str; 5] = ["state", "phase", "stop", "headline", "next"];

fn status(sandbox: &TestRepo) -> Value {
    serde_json::from_str(&sandbox.runner(&["status", "--json"]).ok().stdout).unwrap()
}

/// Asserts that status, page and watch agree on this state, and returns the status.
fn assert_agreed(sandbox: &TestRepo, state: LifecycleState) -> Value {
    wait_for(state.as_str(), || status(sandbox)["state"] == state.as_str());
    let status = status(sandbox);
    let page = Server::on(sandbox.root()).get("/api/snapshot").ok();
    for key in KEYS {
        assert_eq!(page[key], status[key], "{state:?}: `{key}` on the page");
    }
    let headline = status["headline"].as_str().unwrap();
    let run = status["run_id"].as_str().unwrap_or_default();
    let shown = format!("{}  {run}  {headline}", state.label().text.to_uppercase());
    let mut screen = Pty::start(&watch(sandbox.root()), 160, 40);
    screen.wait_for(&shown);
    screen.press("q");
    assert_eq!(screen.exit_code(), 0);
    status
}

/// The same after a loop, whose last event must show it too.
fn assert_ended(sandbox: &TestRepo, output: &RunOutput, stop: &str) {
    let last = output.stdout.lines().last().unwrap_or_else(|| panic!("{stop}: {}", output.stderr));
    let end: Value = serde_json::from_str(last).unwrap();
    let state = if stop == "complete" { LifecycleState::Complete } else { LifecycleState::Stopped };
    let status = assert_agreed(sandbox, state);
    for key in KEYS {
        assert_eq!(end[key], status[key], "{stop}: `{key}` at the end of the loop");
    }
    assert_eq!(status["stop"]["reason"], stop);
    assert_eq!(end["exit"], output.code.unwrap());
}

fn ended(builder: &RunBuilder, args: &[&str], stop: &str) {
    let sandbox = builder.start();
    let output = sandbox.runner(&[&["loop", "--json"], args].concat());
    assert_ended(&sandbox, &output, stop);
}

fn builder(agent: &str) -> RunBuilder {
    RunBuilder::new(&runner()).agent(agent).keys("max_attempts_default = 1")
}

const WORKS: &str = "echo $RUNNER_ITER >> work; answer done";
const SPENDS: &str = r#"printf '{"usage": {"input_tokens": 9, "cost_microdollars": 9000000}}' > "$RUNNER_REPORT"
echo $RUNNER_ITER >> work; case $RUNNER_ITER in 0001) split ;; *) answer done ;; esac"#;
const SPLITS: &str = "case $RUNNER_ITER in 0001) split ;; *) echo $RUNNER_ITER >> work; answer done ;; esac";
const WAITS: &str =
    "touch $AROUND/begun; while ! [ -e $AROUND/go ]; do sleep 0.01; done; echo 1 > work; answer done";
const LIMITED: &str =
    r#"printf '{"fault": {"fault": "rate_limited", "retry_after_secs": 3600}}' > "$RUNNER_REPORT"; exit 1"#;
/// Task `a` gets a check that task `b` breaks.
const BREAKS: &str = r#"
if [ "$RUNNER_NODE_ID" = root ]; then
  mkdir -p .runner/nodes/a
  printf '[[check]]\nname = "greets"\ncommand = ["grep", "hello", "out"]\n' > .runner/nodes/a/checks.toml
  split; exit
fi
case "$RUNNER_NODE_ID" in a) echo hello > out ;; *) echo broken > out ;; esac
answer done"#;
/// Fails once in every new room, because of a file that git ignores.
const NEEDS_IGNORED_FILE: &str = "test -e ignored && exit 0; touch ignored; exit 1";
/// Task `a` gets a check that never fails.
const PROVES_NOTHING: &str = r#"
mkdir -p .runner/nodes/a
printf '[[check]]\nname = "always"\ncommand = ["true"]\n' > .runner/nodes/a/checks.toml
split"#;

fn reports(fault: &str) -> String {
    format!("printf '{{\"fault\": {{\"fault\": \"{fault}\", \"why\": \"w\"}}}}' > \"$RUNNER_REPORT\"; exit 1")
}

/// Ends a loop for this reason, and compares.
fn stop_with(reason: &str) {
    let ends = |builder: RunBuilder| ended(&builder, &[], reason);
    match reason {
        "complete" => ends(builder(WORKS)),
        "stuck" => ends(builder("answer retry")),
        "not_reproducible" => {
            let keys = "baseline = true\nfinal_check = true\nroom = \"require\"";
            let setup = RunBuilder::new(&runner()).agent(WORKS).guard_keys(keys).guard(NEEDS_IGNORED_FILE);
            ended(&setup, &["--allow-red"], reason);
        }
        "regressed" => ends(builder(BREAKS).config_tables("[checks]\nregression_tasks = 0")),
        "max_iterations" => ends(builder(SPLITS).keys("max_iterations = 1")),
        "loop_iterations" => ended(&builder(SPLITS), &["--max-iterations", "1"], reason),
        "loop_budget" => ended(&builder(SPENDS), &["--max-usd", "5"], reason),
        "loop_until" => until(),
        "budget" => ends(builder(SPENDS).config_tables("[budget]\nrun_usd = 5")),
        "stalled" => {
            let keys = "max_attempts_default = 9";
            ends(builder("answer retry").keys(keys).config_tables("[limits]\nstall_iterations = 2"));
        }
        "time_limit" => ends(builder("sleep 60").keys("iteration_timeout_secs = 1")),
        "failures" => ends(builder("exit 1")),
        "needs_user" => ends(builder(&reports("not_logged_in"))),
        "vacuous_checks" => ends(builder(PROVES_NOTHING).config_tables("[checks]\nvacuous = \"stop\"")),
        "not_approved" => ends(builder(WORKS).config_tables("[plan]\napproval = \"required\"")),
        "interrupted" => interrupted(),
        "user_stop" => user_stop(),
        other => panic!("the stop reason `{other}` has no scene"),
    }
}

/// A loop that waits for a provider reaches `--until`: the next full minute that is at least 20 seconds away.
fn until() {
    let sandbox = builder(LIMITED).start();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let minute = (now + 20) / 60 + 1;
    let time = format!("{:02}:{:02}", minute / 60 % 24, minute % 60);
    let mut command = sandbox.runner_command(&["loop", "--json", "--until", &time]);
    let output = run(command.env("TZ", "UTC"));
    assert_eq!(output.code, Some(4), "{}", output.stderr);
    let end: Value = serde_json::from_str(output.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(end["headline"], format!("reached --until {time}"));
    assert_ended(&sandbox, &output, "loop_until");
}

fn interrupted() {
    let scene = RunScene::working(&builder(WAITS), &["loop", "--json"]);
    scene.signal("-INT");
    let RunScene { sandbox, child } = scene;
    assert_ended(&sandbox, &end(child), "interrupted");
}

fn user_stop() {
    let RunScene { sandbox, child } = RunScene::working(&builder(WAITS), &["loop", "--json"]);
    sandbox.runner(&["stop"]).ok();
    sandbox.replace_agent(WORKS);
    std::fs::write(sandbox.outside().join("go"), "").unwrap();
    assert_ended(&sandbox, &end(child), "user_stop");
}

#[test]
fn every_stop_is_the_same_everywhere() {
    let reasons = variants::<StopReason>(Some("reason"));
    assert!(reasons.len() > 10, "{reasons:?}");
    // Few at a time: each starts several processes.
    for some in reasons.chunks(4) {
        std::thread::scope(|scope| some.iter().for_each(|reason| _ = scope.spawn(|| stop_with(reason))));
    }
}

/// A loop that is interrupted in the baseline, before the first iteration has a log.
#[test]
fn stop_before_the_first_session_is_the_same_everywhere() {
    let setup = builder(WORKS).guard_keys("baseline = true").guard(WAITS_IN_GUARD);
    let scene = RunScene::working(&setup, &["loop", "--json"]);
    scene.signal("-INT");
    let RunScene { sandbox, child } = scene;
    assert_ended(&sandbox, &end(child), "interrupted");
}

/// A repository, and a loop that runs in it.
struct RunScene {
    sandbox: TestRepo,
    child: Option<Child>,
}

impl RunScene {
    fn idle(sandbox: TestRepo) -> Self {
        Self { sandbox, child: None }
    }

    fn running(sandbox: TestRepo, args: &[&str]) -> Self {
        let child = sandbox.runner_command(args).stdout(Stdio::piped()).spawn().unwrap();
        Self { sandbox, child: Some(child) }
    }

    /// A loop in the middle of a session or of the guard.
    fn working(builder: &RunBuilder, args: &[&str]) -> Self {
        let sandbox = builder.start();
        sandbox.runner(&["node", "split", "root", "--into", "A", "--into", "B"]).ok();
        let scene = Self::running(sandbox, args);
        wait_for("a session", || scene.sandbox.outside().join("begun").exists());
        scene
    }

    fn signal(&self, signal: &str) {
        let id = self.child.as_ref().unwrap().id().to_string();
        run(self.sandbox.command("kill").args([signal.to_owned(), id])).ok();
    }

    fn kill(&mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

fn end(child: Option<Child>) -> RunOutput {
    let output = child.unwrap().wait_with_output().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    RunOutput { code: output.status.code(), stdout, stderr: String::new() }
}

/// A run in this state.
fn scene(state: LifecycleState) -> RunScene {
    match state {
        LifecycleState::NoRun => {
            let sandbox = TestRepo::with_commit(&runner());
            sandbox.runner(&["init"]).ok();
            RunScene::idle(sandbox)
        }
        LifecycleState::Invalid => {
            let sandbox = builder(WORKS).start();
            sandbox.write(".runner/state/tree.json", "{");
            RunScene::idle(sandbox)
        }
        LifecycleState::Running => RunScene::working(&builder(WAITS), &["loop"]),
        LifecycleState::Waiting => RunScene::running(builder(LIMITED).start(), &["loop"]),
        LifecycleState::Paused => {
            let sandbox = builder(WORKS).start();
            sandbox.runner(&["pause"]).ok();
            RunScene::running(sandbox, &["loop"])
        }
        LifecycleState::Stopped => RunScene::idle(builder(WORKS).start()),
        LifecycleState::Complete => {
            let sandbox = builder(WORKS).start();
            sandbox.runner(&["loop"]).ok();
            RunScene::idle(sandbox)
        }
        LifecycleState::Crashed => {
            let mut scene = RunScene::working(&builder(WAITS), &["loop"]);
            scene.kill();
            scene
        }
    }
}

#[test]
fn every_state_is_the_same_everywhere() {
    assert_eq!(variants::<LifecycleState>(None), LifecycleState::ALL.map(LifecycleState::as_str));
    for state in LifecycleState::ALL {
        let mut scene = scene(state);
        let status = assert_agreed(&scene.sandbox, state);
        assert_eq!(status["until_ms"].is_u64(), state == LifecycleState::Waiting, "{status}");
        if scene.child.is_some() {
            scene.kill();
        }
    }
}

/// On another branch, the run is shown as its own branch has it; a goal that was not started yet comes first.
#[test]
fn run_that_is_not_checked_out_is_the_same_everywhere() {
    for (state, from) in [(LifecycleState::Stopped, "main"), (LifecycleState::Complete, "runner/demo")] {
        let RunScene { sandbox, .. } = scene(state);
        sandbox.git(&["switch", "-q", "-c", "elsewhere", from]);
        let status = assert_agreed(&sandbox, state);
        let is_switched = status["next"][0]["command"] == "runner switch demo";
        assert_eq!(is_switched, state == LifecycleState::Stopped, "{status}");
    }
    let RunScene { sandbox, .. } = scene(LifecycleState::Complete);
    sandbox.git(&["switch", "-q", "main"]);
    sandbox.runner(&["init"]).ok();
    assert_agreed(&sandbox, LifecycleState::NoRun);
}

#[test]
fn wait_without_a_loop_is_the_same_everywhere() {
    let mut scene = scene(LifecycleState::Waiting);
    assert_agreed(&scene.sandbox, LifecycleState::Waiting);
    scene.kill();
    assert_agreed(&scene.sandbox, LifecycleState::Waiting);
}

#[test]
fn phases_of_a_running_iteration_are_the_same_everywhere() {
    for (phase, agent, guard) in [(RunPhase::Agent, WAITS, "true"), (RunPhase::Guard, WORKS, WAITS_IN_GUARD)]
    {
        let mut scene = RunScene::working(&builder(agent).guard(guard), &["loop"]);
        let status = assert_agreed(&scene.sandbox, LifecycleState::Running);
        assert_eq!(status["phase"], phase.as_str());
        scene.kill();
    }
}

const WAITS_IN_GUARD: &str = "touch ../begun; while ! [ -e ../go ]; do sleep 0.01; done";
