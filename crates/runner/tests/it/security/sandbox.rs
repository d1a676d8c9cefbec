//! Sandboxed agents: what they can and cannot do, and that their processes end.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::symlink;

use testkit::oracle::{assert_sound, processes_of};
use testkit::processes::wait_for;
use testkit::run_builder::{BRANCH, RunBuilder};
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;

/// A shell function that records in `tried.txt` whether a command succeeded.
const TRY: &str = r#"
try() { what=$1; shift; if (eval "$*") 2>> "$ROOT/errors.txt"; then echo "could $what"; else echo "could not $what"; fi >> "$ROOT/tried.txt"; }
ROOT=$PWD
"#;

/// Everything a sandboxed agent must not be able to do.
const VANDAL: &str = r#"
try 'write to the home folder' 'echo x > $HOME/x'
try 'write to the system' 'echo x > /etc/runner-sandbox-test'
try 'write into .git' 'echo x > .git/x'
try 'change git configuration' 'git config user.name me'
try 'plant a hook' 'echo x > .git/hooks/pre-commit'
try 'commit' 'git -c user.name=a -c user.email=a@localhost commit -q --allow-empty -m x'
try 'move .git away' 'mv .git elsewhere'
try 'change the configuration' 'echo x >> .runner/state/config.toml'
try 'replace the configuration' 'echo x > x.toml; mv -f x.toml .runner/state/config.toml'
try 'change the schema' 'echo x > .runner/state/schema.json'
try 'remove the other schema' 'rm -f .runner/state/agent_output.schema.json'
try 'change the state of the run' 'echo x > .runner/state/run_state.json'
try 'change the goal' 'echo x > .runner/GOAL.md'
try 'move the state away' 'mv .runner/state .runner/away'
try 'change the guard' 'echo true > guard.sh'
try 'remove the guard' 'rm -f guard.sh'
try 'change a log' 'echo x > .runner/iterations/demo/0001/prompt.md'
try 'remount' 'mount -o remount,rw /'
try 'see the runner' 'read pid start < $HOME/pid && grep -qs " $start " /proc/$pid/stat'
rm -f x.toml
"#;

fn setup(script: &str) -> RunBuilder {
    let guard = "! grep -q '^could [^n]' tried.txt";
    RunBuilder::new(RUNNER).executor_keys("").agent(&format!("{TRY}{script}")).guard(guard)
}

fn not_done(tried: &str) -> Vec<&str> {
    tried.lines().filter(|line| !line.starts_with("could not ")).collect()
}

#[test]
fn sandboxed_agent_cannot_write_outside() {
    let sandbox = setup(&format!("{VANDAL}echo work > work.txt; answer done")).start();
    // The pid alone may be reused inside the sandbox; the start time is not.
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let start = stat.rsplit(')').next().unwrap().split_ascii_whitespace().nth(19).unwrap();
    fs::write(sandbox.outside().join("home/pid"), format!("{} {start}\n", std::process::id())).unwrap();
    let before = sandbox.git(&["for-each-ref"]);
    sandbox.runner(&["step"]).ok();
    let tried = sandbox.read("tried.txt");
    assert_eq!(tried.lines().count(), VANDAL.lines().filter(|line| line.starts_with("try")).count());
    assert_eq!(not_done(&tried), [""; 0], "{}", sandbox.read("errors.txt"));
    assert_eq!(sandbox.outcomes(), ["passed"]);
    let meta = sandbox.meta(1);
    assert_eq!(
        (&meta["sandbox"], &meta["status"], &meta["guard"]),
        (&"bubblewrap".into(), &"done".into(), &"pass".into())
    );
    assert_eq!(sandbox.git(&["show", &format!("{BRANCH}:work.txt")]), "work");
    let refs = |listed: &str| {
        listed.lines().filter(|line| !line.contains(BRANCH)).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(refs(&sandbox.git(&["for-each-ref"])), refs(&before));
    assert!(!sandbox.outside().join("home/x").exists());
    assert_sound(&sandbox);
}

#[test]
fn sandboxed_agent_can_split_take_notes_and_work() {
    let script = r#"
        if test "$RUNNER_NODE_ID" = root; then split; exit; fi
        mkdir -p src; echo $RUNNER_NODE_ID > src/$RUNNER_NODE_ID.txt; ln -s src link-$RUNNER_NODE_ID; chmod +x src
        echo "taken for granted by $RUNNER_NODE_ID" >> .runner/state/assumptions.md
        echo x > /tmp/x; echo x > "${TMPDIR:-/tmp}/y"; test -s /tmp/x && test -z "$(cat /dev/null)" && echo x > /dev/shm/x
        echo $? > scratch-$RUNNER_NODE_ID.txt
        git status --short > seen-$RUNNER_NODE_ID.txt
        answer done"#;
    let sandbox = setup(script).guard("true").start();
    sandbox.runner(&["loop"]).ok();
    assert_eq!(sandbox.outcomes(), ["decomposed", "passed", "passed"]);
    for node in ["a", "b"] {
        assert_eq!(sandbox.read(&format!("src/{node}.txt")), format!("{node}\n"));
        assert_eq!(sandbox.read(&format!("scratch-{node}.txt")), "0\n");
        assert!(sandbox.read(&format!("seen-{node}.txt")).contains(&format!("link-{node}")));
        assert!(
            sandbox.read(".runner/state/assumptions.md").contains(&format!("taken for granted by {node}"))
        );
    }
    assert!(!sandbox.path(".git/runner/tmp").exists(), "temporary files go with the session");
    assert_sound(&sandbox);
}

#[test]
fn agent_without_a_sandbox_can_write_outside() {
    let sandbox = setup("echo x > $AROUND/outside.txt; answer done")
        .guard("true")
        .executor_keys("sandbox = \"off\"")
        .start();
    sandbox.runner(&["step"]).ok();
    assert!(sandbox.outside().join("outside.txt").exists());
    assert_eq!(sandbox.meta(1)["sandbox"], "none");
}

#[test]
fn configured_folders_are_writable_in_the_sandbox() {
    let script = "try own 'echo x > $HOME/.agent/x'; try other 'echo x > $HOME/x'; answer done";
    let keys = "sandbox = \"require\"\nwritable = [\"~/.agent\", \"~/.not-there\"]";
    let sandbox = setup(script).guard("true").executor_keys(keys).start();
    fs::create_dir(sandbox.outside().join("home/.agent")).unwrap();
    sandbox.runner(&["step"]).ok();
    assert_eq!(sandbox.read("tried.txt"), "could own\ncould not other\n", "{}", sandbox.read("errors.txt"));
    assert_eq!(fs::read_to_string(sandbox.outside().join("home/.agent/x")).unwrap(), "x\n");
}

#[test]
fn guard_files_are_writable_under_policy_flag() {
    let script = "try guard 'echo true > guard.sh'; answer done";
    let sandbox = setup(script).guard("true # as it was").guard_keys("protect = \"flag\"").start();
    sandbox.runner(&["step"]).ok();
    assert_eq!(sandbox.read("tried.txt"), "could guard\n");
}

#[test]
fn sandboxed_session_leaves_no_processes() {
    let script = "setsid -f sleep 999; (trap '' TERM HUP; sleep 998 &); (setsid sh -c 'sleep 997 & sleep 996' &); answer done";
    let sandbox = setup(script).guard("true").start();
    sandbox.runner(&["step"]).ok();
    assert_eq!(processes_of(sandbox.outside()), [""; 0]);
    assert_eq!(sandbox.outcomes(), ["passed"]);
}

#[test]
fn sandboxed_processes_end_with_a_killed_runner() {
    // Files that the agent creates outside are invisible to other processes, so it reports through the work tree.
    let script = "setsid -f sleep 999; touch begun; sleep 998";
    let sandbox = setup(script).guard("true").start();
    sandbox.kill_when(&["step"], "work/begun");
    wait_for("the end of the session", || processes_of(sandbox.outside()).is_empty());
    sandbox.replace_agent("answer done");
    sandbox.runner(&["loop"]).ok();
    assert_eq!(sandbox.outcomes(), ["interrupted", "passed"]);
    assert_eq!(
        (&sandbox.meta(1)["sandbox"], &sandbox.meta(2)["sandbox"]),
        (&"bubblewrap".into(), &"bubblewrap".into())
    );
    assert_sound(&sandbox);
}

#[test]
fn sandboxed_agent_gets_sigterm_before_it_is_killed() {
    let script =
        "trap 'echo saved > saved.txt; exit 0' TERM; setsid -f sleep 999; while :; do sleep 0.05; done";
    let sandbox = setup(script).guard("true").keys("iteration_timeout_secs = 1").start();
    assert_eq!(sandbox.runner(&["step"]).code, Some(4));
    assert_eq!(sandbox.git(&["show", &format!("{BRANCH}:saved.txt")]), "saved");
    assert_eq!(sandbox.outcomes(), ["timed_out"]);
    assert_eq!(processes_of(sandbox.outside()), [""; 0]);
}

#[test]
fn sandboxed_agent_killed_by_a_signal_has_crashed() {
    let sandbox = setup("kill -9 $$").guard("true").start();
    sandbox.runner(&["step"]);
    assert_eq!(sandbox.outcomes(), ["agent_crashed"]);
    assert_eq!(sandbox.meta(1)["exit"], serde_json::json!({ "kind": "killed", "signal": 9 }));
}

#[test]
fn scripted_agent_runs_in_the_sandbox() {
    let scenario = "[[session]]\nanswer = { status = \"done\", summary = \"x\" }\n[[session.do]]\n\
        run = { argv = [\"sh\", \"-c\", \"echo x > .git/x; echo y > y.txt\"] }\n";
    let sandbox = RunBuilder::new(RUNNER).executor_keys("").scenario(scenario).start();
    sandbox.runner(&["step"]).ok();
    assert_eq!((sandbox.read("y.txt"), sandbox.path(".git/x").exists()), ("y\n".to_owned(), false));
    assert_eq!(sandbox.meta(1)["sandbox"], "bubblewrap");
}

#[test]
fn git_folder_of_a_linked_work_tree_is_read_only() {
    let script = "try common 'echo x > $AROUND/work/.git/x'; try own 'echo x >> .git'; try gitdir 'echo x > $(git rev-parse --git-dir)/x'; answer done";
    let sandbox = setup(script).guard("true").start();
    let linked = sandbox.outside().join("linked");
    sandbox.git(&["worktree", "add", "-q", "-b", "other", linked.to_str().unwrap(), BRANCH]);
    let sandbox = sandbox.at(linked);
    sandbox.write(".runner/GOAL.md", sandbox.read(".runner/GOAL.md").replace("id: demo", "id: second"));
    sandbox.runner(&["start"]).ok();
    sandbox.runner(&["step"]).ok();
    assert_eq!(not_done(&sandbox.read("tried.txt")), [""; 0]);
    assert_eq!(sandbox.read("tried.txt").lines().count(), 3);
}

/// A PATH folder with the programs that a step needs, without bubblewrap.
fn path_without_bubblewrap(sandbox: &TestRepo) -> String {
    let folder = sandbox.outside().join("bin");
    fs::create_dir(&folder).unwrap();
    for name in ["git", "sh", "true", "dirname"] {
        let paths = std::env::var("PATH").unwrap();
        let found =
            paths.split(':').map(|place| format!("{place}/{name}")).find(|path| fs::metadata(path).is_ok());
        symlink(found.unwrap(), folder.join(name)).unwrap();
    }
    folder.display().to_string()
}

#[test]
fn missing_required_sandbox_refuses_the_step() {
    let sandbox = setup("answer done").guard("true").executor_keys("sandbox = \"require\"").start();
    let path = path_without_bubblewrap(&sandbox);
    let without = |args: &[&str]| run(sandbox.runner_command(args).env("PATH", &path));
    let head = sandbox.git(&["rev-parse", "HEAD"]);
    let output = without(&["step"]);
    assert_eq!(output.code, Some(2), "{}", output.stderr);
    for words in ["none can be used", "`bwrap` is not on PATH", "apt-get install bubblewrap"] {
        assert!(output.stderr.contains(words), "{}", output.stderr);
    }
    assert_eq!(
        (sandbox.git(&["rev-parse", "HEAD"]), sandbox.git(&["status", "--short"])),
        (head, String::new())
    );
    let doctor = without(&["doctor"]);
    assert!(
        doctor.code == Some(1) && doctor.stdout.contains("check=sandbox verdict=problem"),
        "{}",
        doctor.stdout
    );
}

#[test]
fn auto_sandbox_without_bubblewrap_runs_and_warns() {
    let sandbox = setup("answer done").guard("true").start();
    let path = path_without_bubblewrap(&sandbox);
    let without = |args: &[&str]| run(sandbox.runner_command(args).env("PATH", &path));
    without(&["step"]).ok();
    assert_eq!(sandbox.meta(1)["sandbox"], "none");
    let doctor = without(&["doctor"]);
    assert!(doctor.stdout.contains("check=sandbox verdict=warning"), "{}", doctor.stdout);
    assert!(sandbox.runner(&["doctor"]).stdout.contains("check=sandbox verdict=ok found=\"bubblewrap "));
    sandbox.runner(&["config", "set", "guard.command", "no-such-guard"]).ok();
    sandbox.runner(&["start"]).ok();
    let refused = without(&["loop"]).refused(2);
    for words in ["guard: `no-such-guard` is not on PATH", "the agent would run without a sandbox: `bwrap`"] {
        assert!(refused.contains(words), "{refused}");
    }
}

#[test]
fn record_shows_if_claudes_commands_are_not_sandboxed() {
    let odd = TestRepo::empty(RUNNER);
    let root = odd.outside().join("a -b");
    fs::create_dir(&root).unwrap();
    let odd = RunBuilder::new(RUNNER)
        .executor("kind = \"claude\"\nprogram = \"/bin/true\"")
        .executor_keys("sandbox = \"auto\"")
        .start_in(odd.at(root));
    let doctor = odd.runner(&["doctor"]);
    assert!(
        doctor.stdout.contains("check=sandbox verdict=warning found=\"none (Claude"),
        "{}",
        doctor.stdout
    );
    odd.runner(&["step"]).ok();
    assert_eq!(odd.meta(1)["sandbox"], "none");
    let config = odd.read(".runner/state/config.toml").replace("\"auto\"", "\"require\"");
    odd.write(".runner/state/config.toml", config);
    odd.runner(&["start"]).ok();
    let output = odd.runner(&["step"]);
    assert_eq!(output.code, Some(2));
    assert!(
        output.stderr.contains("Claude Code cannot run commands through a path that contains ` -`"),
        "{}",
        output.stderr
    );
    assert!(
        output.stderr.contains("hint: move the repository to a path without ` -`, in UTF-8"),
        "{}",
        output.stderr
    );
}

#[test]
fn services_kernel_settings_and_the_prompt_are_out_of_reach() {
    let script = r#"
        try 'see a service' 'test -S $HOME/.docker/run/docker.sock'
        try 'set what the kernel runs' 'cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern'
        (echo FORGED > /proc/self/fd/0)
        answer done"#;
    let sandbox = setup(script).start();
    let run_folder = sandbox.outside().join("home/.docker/run");
    fs::create_dir_all(&run_folder).unwrap();
    let _service = std::os::unix::net::UnixListener::bind(run_folder.join("docker.sock")).unwrap();
    let output = sandbox.runner(&["step"]);
    assert_eq!(not_done(&sandbox.read("tried.txt")), [""; 0], "{}", sandbox.read("errors.txt"));
    assert!(!sandbox.iteration_file(1, "prompt.md").contains("FORGED"));
    assert!(output.stdout.contains("sandbox=bubblewrap"), "{}", output.stdout);
}

#[test]
fn a_loop_without_a_sandbox_says_so() {
    let sandbox = setup("answer done").guard("true").executor_keys("sandbox = \"off\"").start();
    let output = sandbox.runner(&["step"]);
    assert!(output.stdout.contains("the agent runs without a sandbox"), "{}", output.stdout);
}
