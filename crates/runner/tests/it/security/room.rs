//! The room: the guard sees exactly the files to commit, and what it does reaches nothing else.
#![cfg(target_os = "linux")]

use std::fs;

use testkit::oracle::assert_sound;
use testkit::run_builder::{BRANCH, RunBuilder};
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;
use crate::fixtures::{as_nobody, owned_by_nobody};

const ROOM: &str = "room = \"require\"";

fn room(guard: &str) -> RunBuilder {
    RunBuilder::new(RUNNER).guard(guard).guard_keys(ROOM)
}

fn trailer(repo: &TestRepo, revision: &str, key: &str) -> String {
    let format = format!("--format=%(trailers:key={key},valueonly,separator=)");
    repo.git(&["log", "-1", &format, revision]).trim().to_owned()
}

/// Files that are in the work tree after a session, but in no commit.
#[test]
fn work_that_is_not_committed_does_not_pass() {
    let cases = [
        ("an ignored file", "echo x > ignored", "test -e ignored"),
        ("an empty folder", "mkdir -p out", "test -d out"),
        (
            "a folder that ignores itself",
            "mkdir s; echo '*' > s/.gitignore; echo x > s/code",
            "test -e s/code",
        ),
        (
            "the runner's own folder",
            "mkdir -p .runner/context; echo x > .runner/context/code",
            "test -e .runner/context/code",
        ),
        (
            "line ends",
            "printf 'a eol=lf\\n' > .gitattributes; printf 'x\\r\\n' > a",
            "grep -q \"$(printf '\\r')\" a",
        ),
        ("a mode that git does not store", "echo x > a; chmod 600 a", "test \"$(stat -c %a a)\" = 600"),
    ];
    for (name, work, check) in cases {
        let agent = format!("{work}; answer done");
        let repo = room(check).agent(&agent).keys("max_attempts_default = 1").start();
        assert_eq!(repo.runner(&["loop"]).code, Some(3), "{name}");
        assert_eq!(repo.outcomes(), ["guard_failed"], "{name}");
    }
}

/// Everything that a guard could do to turn a later result into a pass, or to harm the user.
#[test]
fn code_of_the_guard_changes_nothing_outside_the_room() {
    let guard = r#"
        { echo x > "$HOME/planted"; echo x > "$HOME/kept/planted"; echo x > ../agent.sh
        echo x > .git/hooks/pre-commit; git config core.fsmonitor ./evil; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x
        git update-ref refs/heads/main HEAD; git tag planted
        echo x > .runner/state/tree.json; echo x > "$(pwd)/planted"; echo x > README.md
        kill -9 $PPID; for pid in /proc/[0-9]*; do kill -9 "${pid#/proc/}"; done; } > /dev/null 2>&1
        true"#;
    let repo = room(guard).agent("echo work > work.txt; answer done").start();
    fs::create_dir(repo.outside().join("home/kept")).unwrap();
    let before = (
        repo.git(&["config", "--list", "--local"]),
        repo.git(&["for-each-ref", "refs/heads/main", "refs/tags"]),
    );
    let agent = fs::read(repo.outside().join("agent.sh")).unwrap();
    repo.runner(&["step"]);
    let after = (
        repo.git(&["config", "--list", "--local"]),
        repo.git(&["for-each-ref", "refs/heads/main", "refs/tags"]),
    );
    assert_eq!(before, after);
    assert_eq!(fs::read(repo.outside().join("agent.sh")).unwrap(), agent);
    for planted in ["home/planted", "home/kept/planted", "work/planted", "work/.git/hooks/pre-commit"] {
        assert!(!repo.outside().join(planted).exists(), "{planted}");
    }
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
    assert_eq!(repo.outcomes(), ["guard_failed"], "it killed its own shell");
    assert_sound(&repo);
}

#[test]
fn guard_that_changes_its_own_files_has_failed() {
    let guard = "mv lib away; mkdir lib; echo true > lib/check.sh; sh lib/check.sh";
    let repo = room(guard)
        .file("lib/check.sh", "false\n")
        .protected("lib/check.sh")
        .agent("echo x > work.txt; answer done")
        .keys("max_attempts_default = 1")
        .start();
    assert_eq!(repo.runner(&["loop"]).code, Some(3));
    assert_eq!(repo.outcomes(), ["guard_failed"]);
    assert!(
        repo.iteration_file(1, "guard.log").contains("changed protected files while it ran: lib/check.sh")
    );
}

#[test]
fn commit_records_where_the_guard_ran_and_on_which_files() {
    let repo = room("test -e work.txt").agent("echo x > work.txt; answer done").start();
    repo.runner(&["loop"]).ok();
    assert_eq!(trailer(&repo, BRANCH, "Runner-Room"), "bubblewrap ignored=room");
    let candidate = trailer(&repo, BRANCH, "Runner-Candidate");
    let files = |tree: &str| repo.git(&["ls-tree", "-r", tree, "--", "work.txt", "README.md"]);
    assert_eq!(files(&candidate), files(BRANCH));
    let state = format!("{candidate}:.runner/state/tree.json");
    assert_eq!(
        repo.git(&["rev-parse", &state]),
        repo.git(&["rev-parse", "runner/demo~:.runner/state/tree.json"])
    );
    repo.runner(&["verify"]).ok();
    assert_eq!(repo.meta(1)["room"], "bubblewrap ignored=room");
    assert_sound(&repo);
}

#[test]
fn verify_names_a_forged_candidate_and_a_forged_room() {
    for (key, value, rule) in [
        ("Runner-Candidate", "4b825dc642cb6eb9a060e54bf8d69288fbee4904", "candidate"),
        ("Runner-Room", "in-place", "room"),
        ("Runner-Room", "bubblewrap ignored=none", "room"),
        ("Runner-Room", "a cellar", "room"),
    ] {
        let repo = room("test -e work.txt").agent("echo x > work.txt; answer done").start();
        repo.runner(&["loop"]).ok();
        let message = repo.git(&["log", "-1", "--format=%B", BRANCH]);
        let was = trailer(&repo, BRANCH, key);
        let message = message.replace(&format!("{key}: {was}"), &format!("{key}: {value}"));
        repo.git(&["commit", "-q", "--amend", "--no-verify", "-m", message.trim_end()]);
        let output = repo.runner(&["verify"]);
        let violation = format!("violation={rule} ");
        assert!(output.stdout.contains(&violation), "{key}: {value}: {}", output.stdout);
        assert_eq!(output.code, Some(1));
    }
}

/// The work of the session: the guard of the next iteration finds nothing that an earlier one left, but for ignored files.
#[test]
fn ignored_files_of_the_room_stay_and_all_others_are_removed() {
    let guard = "ls; test ! -e left && test ! -d folder && echo x > left && mkdir folder && echo x > folder/f && \
                 echo x > README.md && echo x >> ignored && test \"$(wc -l < ignored)\" = \"$(cat count)\"";
    let agent = "echo ${RUNNER_ITER#000} > count; answer done";
    for (policy, outcomes) in [
        ("room", ["passed", "passed"]),
        ("none", ["passed", "guard_failed"]),
        ("worktree", ["passed", "guard_failed"]),
    ] {
        let keys = format!("{ROOM}\nignored = \"{policy}\"");
        let split = format!(
            "if [ $RUNNER_ITER = 0001 ]; then split; else RUNNER_ITER=000$((${{RUNNER_ITER#000}} - 1)); {agent}; fi"
        );
        let repo = RunBuilder::new(RUNNER)
            .guard(guard)
            .guard_keys(&keys)
            .agent(&split)
            .keys("max_attempts_default = 1")
            .start();
        repo.runner(&["loop"]);
        assert_eq!(repo.outcomes()[1..], outcomes, "{policy}: {}", repo.iteration_file(3, "guard.log"));
        assert_eq!(repo.read("README.md"), "hello\n");
    }
}

#[test]
fn ignored_files_of_the_work_tree_are_copied_where_the_configuration_asks_for_it() {
    let agent = "mkdir -p cache; echo x > cache/f; echo x > ignored; answer done";
    let guard = "test -e ignored && test -e cache/f && rm -r cache";
    let keys = format!("{ROOM}\nignored = \"worktree\"");
    let repo = RunBuilder::new(RUNNER)
        .file(".gitignore", "ignored\ncache/\n")
        .guard(guard)
        .guard_keys(&keys)
        .agent(agent)
        .start();
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.outcomes(), ["passed"]);
    assert!(repo.path("cache/f").exists(), "the guard got a copy");
    repo.runner(&["verify"]).ok();
}

#[test]
fn kept_folder_is_the_one_from_before_the_first_session() {
    let keys = format!("{ROOM}\nkeep = [\"env\"]");
    let repo = RunBuilder::new(RUNNER)
        .file(".gitignore", "ignored\nenv/\n")
        .guard("test \"$(cat env/bin/tool)\" = mine")
        .guard_keys(&keys)
        .agent("echo theirs > env/bin/tool; answer done");
    let repo = repo.start();
    repo.write("env/bin/tool", "mine\n");
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.outcomes(), ["passed"]);
}

#[test]
fn keep_outside_of_the_repository_is_refused() {
    let keys = format!("{ROOM}\nkeep = [\"../home\"]");
    let repo = RunBuilder::new(RUNNER).guard_keys(&keys).start();
    let refused = repo.runner(&["loop"]);
    assert!(refused.stderr.contains("`guard.keep` names `../home`"), "{}", refused.stderr);
    assert_eq!(refused.code, Some(2));
    assert_eq!(repo.outcomes(), [""; 0]);
}

/// Once in a new room, and again when a lock file changes.
#[test]
fn setup_runs_once_and_again_when_its_inputs_change() {
    let keys = format!("{ROOM}\nsetup = [\"sh\", \"setup.sh\"]");
    let agent = "case $RUNNER_ITER in 0001) split ;; 0002) answer done ;; *) echo 2 > requirements.txt; answer done ;; esac";
    let repo = RunBuilder::new(RUNNER)
        .file("requirements.txt", "1\n")
        .file("setup.sh", "echo run >> ignored\n")
        .guard("cat ignored")
        .guard_keys(&keys)
        .agent(agent)
        .start();
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.iteration_file(2, "guard.log"), "run\n");
    assert_eq!(repo.iteration_file(3, "guard.log"), "run\nrun\n");
}

#[test]
fn failed_setup_fails_the_guard_with_its_output() {
    let keys = format!("{ROOM}\nsetup = [\"sh\", \"-c\", \"echo no network; exit 7\"]");
    let repo = RunBuilder::new(RUNNER).guard_keys(&keys).agent("answer done").start();
    repo.runner(&["step"]).ok();
    assert_eq!(repo.outcomes(), ["guard_failed"]);
    assert_eq!(repo.iteration_file(1, "setup.log"), "no network\n");
}

#[test]
fn guard_that_asks_git_gets_right_answers() {
    let guard = "git status --porcelain; git ls-files; git describe --tags; git diff --exit-code && git log -1 --format=%T";
    let repo = room(guard).agent("echo x > work.txt; answer done").start();
    repo.git(&["tag", "-a", "-m", "one", "v1", "main"]);
    repo.runner(&["loop"]).ok();
    let log = repo.iteration_file(1, "guard.log");
    assert!(log.contains("work.txt\n") && log.contains("v1-"), "{log}");
    assert!(log.ends_with(&format!("{}\n", trailer(&repo, BRANCH, "Runner-Candidate"))), "{log}");
}

/// In a container it may be the root folder; elsewhere the folder of caches may be a link to another disk.
#[test]
fn guard_runs_whatever_the_home_folder_is() {
    let repo = room("true").agent("if [ $RUNNER_ITER = 0001 ]; then split; else answer done; fi").start();
    repo.runner(&["step"]).ok();
    fs::create_dir(repo.outside().join("disk")).unwrap();
    std::os::unix::fs::symlink(repo.outside().join("disk"), repo.outside().join("home/.cache")).unwrap();
    repo.runner(&["step"]).ok();
    run(repo.runner_command(&["step"]).env("HOME", "/")).ok();
    assert_eq!(repo.outcomes(), ["decomposed", "passed", "passed"]);
}

#[test]
fn without_the_network_the_guard_reaches_no_server() {
    let keys = format!("{ROOM}\nnetwork = false");
    let guard =
        "test \"$(ls /sys/class/net 2>/dev/null | wc -l)\" -ge 0; test \"$(wc -l < /proc/net/dev)\" = 3";
    let repo = RunBuilder::new(RUNNER).guard(guard).guard_keys(&keys).agent("answer done").start();
    repo.runner(&["loop"]).ok();
}

/// A room that cannot be built is no reason to trust less than the configuration demands.
#[test]
fn without_bubblewrap_the_guard_runs_in_place_and_says_so_or_refuses() {
    let tools = |repo: &TestRepo| {
        let folder = repo.outside().join("bin");
        fs::create_dir(&folder).unwrap();
        for tool in ["git", "sh", "env", "dirname", "printf", "cat", "sed", "cp", "true"] {
            let path = run(repo.command("sh").args(["-c", &format!("command -v {tool}")])).ok().stdout;
            std::os::unix::fs::symlink(path.trim(), folder.join(tool)).unwrap();
        }
        folder
    };
    let auto = RunBuilder::new(RUNNER).guard_keys("room = \"auto\"").agent("answer done").start();
    let output = run(auto.runner_command(&["loop"]).env("PATH", tools(&auto))).ok();
    assert!(output.stdout.contains("event=guard_in_place"), "{}", output.stdout);
    assert_eq!(trailer(&auto, BRANCH, "Runner-Room"), "in-place");
    auto.runner(&["verify"]).ok();
    let required = RunBuilder::new(RUNNER).guard_keys(ROOM).agent("answer done").start();
    let refused = run(required.runner_command(&["loop"]).env("PATH", tools(&required)));
    assert_eq!(refused.code, Some(2));
    for part in ["the guard must run in a room", "apt-get install bubblewrap"] {
        assert!(refused.stderr.contains(part), "{}", refused.stderr);
    }
    assert_eq!(required.outcomes(), [""; 0]);
    let configured = RunBuilder::new(RUNNER).guard_keys("room = \"in-place\"").agent("answer done").start();
    let output = configured.runner(&["loop"]).ok().stdout;
    let why =
        "the guard runs in the work tree, without a sandbox: the configuration has room = \\\"in-place\\\"";
    assert_eq!(output.matches(why).count(), 1, "{output}");
}

#[test]
fn damaged_room_is_built_again() {
    let repo = room("test -e work.txt")
        .agent("if [ $RUNNER_ITER = 0001 ]; then split; else echo $RUNNER_ITER > work.txt; answer done; fi")
        .start();
    repo.runner(&["step"]).ok();
    repo.runner(&["step"]).ok();
    let folder = repo.path(".git/runner/room");
    fs::write(folder.join("index"), "garbage").unwrap();
    fs::remove_dir_all(folder.join("tree")).unwrap();
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.outcomes(), ["decomposed", "passed", "passed"]);
}

/// In place, code of the guard runs beside the runner, as the same user.
#[test]
fn guard_in_place_can_inspect_neither_the_supervisor_nor_the_runner() {
    let guard = "out=$(dirname \"$HOME\"); runner=$(cut -d ' ' -f 4 /proc/$PPID/stat)\n\
                 for process in $PPID $runner; do\n\
                 cat /proc/$process/environ > /dev/null 2>&1 && touch \"$out/readable\"\n\
                 ls /proc/$process/fd > /dev/null 2>&1 && touch \"$out/listed\"\n\
                 cat /proc/$process/comm >> \"$out/ran\"\n\
                 done; tr '\\0' ' ' < /proc/$runner/cmdline >> \"$out/ran\"";
    let repo = RunBuilder::new(RUNNER).guard(guard).guard_keys("room = \"in-place\"").start();
    owned_by_nobody(&repo, |repo| {
        as_nobody(repo, &["loop"]).ok();
    });
    let ran = fs::read_to_string(repo.outside().join("ran")).unwrap();
    assert_eq!(ran, format!("supervise\nrunner\n{RUNNER} loop "), "the supervisor and the runner");
    let exist = ["readable", "listed"].map(|name| repo.outside().join(name).exists());
    assert_eq!(exist, [false, false]);
    assert_eq!(repo.outcomes(), ["passed"]);
}

/// A guard that fails leaves files where a later one finds them, unless the runner removes them.
#[test]
fn what_a_failed_guard_left_does_not_make_a_later_one_succeed() {
    let places = ["cache/ok", "$HOME/.cache/ok", "target/debug/deps/ok"];
    for place in places {
        let tests = format!(
            "test -e \"{place}\" && exit 0; mkdir -p \"$(dirname \"{place}\")\"; echo x > \"{place}\"; exit 1"
        );
        let agent =
            format!("printf 'cache\\ntarget\\n' > .gitignore; echo '{tests}' > tests.sh; answer done");
        for command in ["loop", "step"] {
            let repo = room("sh tests.sh").agent(&agent).keys("max_attempts_default = 3").start();
            fs::create_dir_all(repo.outside().join("home/.cache")).unwrap();
            for _ in 0..3 {
                repo.runner(&[command]);
            }
            assert_eq!(repo.outcomes(), ["guard_failed"; 3], "{place} {command}");
        }
    }
}

/// The same by a check of the candidate that runs before the guard, and by the checks before the work.
#[test]
fn what_a_check_left_does_not_make_the_guard_succeed() {
    let checks = "[[check]]\nname = \"c\"\ncommand = [\"sh\", \"-c\", \"mkdir -p cache; touch cache/ok; test -e done\"]\n";
    let repo = room("test -e cache/ok")
        .file(".gitignore", "cache\n")
        .file(".runner/nodes/root/checks.toml", checks)
        .agent("touch done; answer done")
        .keys("max_attempts_default = 1")
        .start();
    assert_eq!(repo.runner(&["loop"]).code, Some(3));
    assert_eq!(repo.outcomes(), ["guard_failed"]);
}

/// What a successful guard built is there for the next one: builds stay fast.
#[test]
fn a_successful_guard_keeps_its_caches_and_a_failed_one_does_not_spoil_them() {
    let guard = "mkdir -p cache; ls cache; cat work >> cache/built; ! grep -q bad work";
    let agent = r#"[ "$RUNNER_NODE_ID" = root ] && { split; exit; }
        case $RUNNER_ITER in 0002) echo one > work;; 0003) echo bad > work;; *) echo two > work;; esac; answer done"#;
    let repo = room(guard).file(".gitignore", "cache\n").agent(agent).start();
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.outcomes(), ["decomposed", "passed", "guard_failed", "passed"]);
    assert_eq!(repo.iteration_file(2, "guard.log"), "");
    assert_eq!(repo.iteration_file(3, "guard.log"), "built\n", "kept after a success");
    // The failed guard changed the file: it is gone, and can be built again.
    assert_eq!(repo.iteration_file(4, "guard.log"), "");
}

/// A descriptor that the shell of the user left open does not reach guard, checks or agent.
#[test]
fn nothing_inherits_descriptors_of_the_user() {
    for keys in [ROOM, "room = \"in-place\""] {
        // A shell ends where a descriptor does not exist.
        let write = "(echo x >&9) 2>/dev/null; (cat <&8) 2>/dev/null; true";
        let repo = RunBuilder::new(RUNNER)
            .guard(write)
            .guard_keys(keys)
            .agent(&format!("echo 1 > work; {write} > seen; answer done"))
            .start();
        let secret = repo.outside().join("secret");
        let open = repo.outside().join("open");
        fs::write(&secret, "secret").unwrap();
        let script = format!("exec 9>>'{}' 8<'{}'; exec '{RUNNER}' loop", open.display(), secret.display());
        run(repo.command("sh").args(["-c", &script])).ok();
        assert_eq!(repo.outcomes(), ["passed"], "{keys}");
        assert_eq!(fs::read_to_string(&open).unwrap(), "", "{keys}");
        assert_eq!(repo.read("seen"), "", "{keys}");
        assert_eq!(repo.iteration_file(1, "guard.log"), "", "{keys}");
    }
}
