//! The home folder in the room: secrets are hidden, other files are readable, and package managers have caches of the room's own.
#![cfg(target_os = "linux")]

use std::fs;

use testkit::run_builder::RunBuilder;
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;

fn room(guard: &str) -> RunBuilder {
    RunBuilder::new(RUNNER).guard(guard).guard_keys("room = \"require\"")
}

#[test]
fn secrets_are_hidden_and_other_files_of_the_home_are_readable() {
    let guard = "cat $HOME/.ssh/id $HOME/.netrc $HOME/.config/gh/hosts; test -e $HOME/.config/tool && ls $HOME/.config";
    let repo = room(guard).agent("answer done").start();
    for file in [".ssh/id", ".netrc", ".config/gh/hosts", ".config/tool"] {
        let path = repo.outside().join("home").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "canary\n").unwrap();
    }
    repo.runner(&["loop"]).ok();
    let log = repo.iteration_file(1, "guard.log");
    assert!(!log.contains("canary") && log.contains("tool"), "{log}");
}

#[test]
fn logins_of_agents_and_passwords_of_package_managers_are_hidden() {
    let files = [
        ".npmrc",
        ".m2/settings.xml",
        ".gradle/gradle.properties",
        ".local/share/opencode/auth.json",
        ".qwen/oauth_creds.json",
        ".copilot/config.json",
        ".pi/agent/auth.json",
        ".local/share/kilo/auth.json",
        ".grok/auth.json",
    ];
    // Maven and Gradle have a cache of the room's own, which is a copy of these folders.
    let guard =
        format!("cd $HOME; cat {} $CODEX_HOME/auth.json; cat .m2/repository/kept; true", files.join(" "));
    let repo = room(&guard).file("pom.xml", "").agent("answer done").start();
    let home = repo.outside().join("home");
    let write = |name: &str, text: &str| {
        let path = home.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    files.iter().for_each(|file| write(file, "canary\n"));
    write(".m2/repository/kept", "a package\n");
    write("moved/auth.json", "canary\n");
    run(repo.runner_command(&["loop"]).env("CODEX_HOME", home.join("moved"))).ok();
    let log = repo.iteration_file(1, "guard.log");
    assert!(!log.contains("canary") && log.contains("a package"), "{log}");
    assert!(!log.contains("No such file"), "an empty file is in their place: {log}");
}

#[test]
fn secrets_behind_links_are_hidden() {
    let repo = room("cat $HOME/.ssh/id $HOME/.netrc $HOME/.config/gh/hosts; ls $HOME/dotfiles")
        .agent("answer done")
        .start();
    let home = repo.outside().join("home");
    let write = |name: &str| {
        let path = repo.outside().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "canary\n").unwrap();
    };
    ["disk/ssh/id", "home/dotfiles/netrc", "home/dotfiles/config/gh/hosts"]
        .iter()
        .for_each(|name| write(name));
    let link = |target: &str, name: &str| std::os::unix::fs::symlink(target, home.join(name)).unwrap();
    link("../disk/ssh", ".ssh");
    link("dotfiles/netrc", ".netrc");
    link("dotfiles/config", ".config");
    repo.runner(&["loop"]).ok();
    let log = repo.iteration_file(1, "guard.log");
    assert!(!log.contains("canary") && log.contains("config\n"), "{log}");
}

/// A cache that the user does not have yet, in a folder that exists.
#[test]
fn package_managers_can_write_to_caches_that_are_missing_or_elsewhere() {
    let guard = "set -e; ls $HOME/.cargo/bin; touch $HOME/.cargo/registry/x $HOME/.cargo/git/x; ! touch $HOME/.cargo/bin/x\n\
                 touch $GOMODCACHE/new; ls $GOMODCACHE; touch $CARGO_TARGET_DIR/x; ls $CARGO_TARGET_DIR";
    let repo = room(guard).file("Cargo.toml", "").file("go.mod", "").agent("answer done").start();
    for folder in ["home/.cargo/bin", "bin", "disk/modules", "disk/target"] {
        fs::create_dir_all(repo.outside().join(folder)).unwrap();
    }
    for (name, text) in [
        ("home/.cargo/bin/tool", ""),
        ("bin/cargo", "#!/bin/sh\n"),
        ("disk/modules/downloaded", ""),
        ("disk/target/of-a-session", ""),
    ] {
        fs::write(repo.outside().join(name), text).unwrap();
    }
    run(repo.command("chmod").arg("+x").arg(repo.outside().join("bin/cargo"))).ok();
    let path = format!("{}:{}", repo.outside().join("bin").display(), std::env::var("PATH").unwrap());
    let mut command = repo.runner_command(&["loop"]);
    command.env("PATH", path).env("GOMODCACHE", repo.outside().join("disk/modules"));
    command.env("CARGO_TARGET_DIR", repo.outside().join("disk/target"));
    run(&mut command).ok();
    let log = repo.iteration_file(1, "guard.log");
    assert!(log.starts_with("tool\n") && log.contains("downloaded\nnew\nx\n"), "{log}");
    for name in ["home/.cargo/registry", "disk/modules/new", "disk/target/x"] {
        assert!(!repo.outside().join(name).exists(), "{name}");
    }
}

/// A repository with these programs of its own on the path, and a command that finds them.
fn with_programs(repo: &TestRepo, programs: &[(&str, &str)], args: &[&str]) -> std::process::Command {
    let bin = repo.outside().join("bin");
    fs::create_dir_all(&bin).unwrap();
    for (name, text) in programs {
        fs::write(bin.join(name), text).unwrap();
        run(repo.command("chmod").arg("+x").arg(bin.join(name))).ok();
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let mut command = repo.runner_command(args);
    command.env("PATH", path);
    command
}

/// After a red baseline the guard runs once in the work tree, where package managers create their folders.
#[test]
fn a_cache_that_appears_during_a_loop_does_not_stop_the_guard() {
    let guard = "mkdir -p $HOME/.cargo/bin $HOME/go $HOME/.cache; touch $HOME/.cargo/registry/x; test -e ok";
    let keys = "room = \"require\"\nbaseline = true";
    let builder = RunBuilder::new(RUNNER).guard(guard).guard_keys(keys);
    let repo = builder.file("Cargo.toml", "").file("go.mod", "").agent("touch ok; answer done").start();
    let programs = [("cargo", "#!/bin/sh\n"), ("go", "#!/bin/sh\n")];
    run(&mut with_programs(&repo, &programs, &["loop", "--allow-red"])).ok();
    assert!(repo.outside().join("home/.cargo/bin").exists(), "the try in the work tree made it");
    assert_eq!(repo.outcomes(), ["passed"], "{}", repo.iteration_file(1, "guard.log"));
}

/// A bubblewrap that works until the session is over.
const BREAKING: &str = "#!/bin/sh\n\
    if test -e broken; then echo \"bwrap: Can't mkdir /x: Read-only file system\" >&2; exit 1; fi\nexec /usr/bin/bwrap \"$@\"\n";

#[test]
fn a_room_that_cannot_be_set_up_is_not_a_failure_of_the_guard() {
    let repo = room("true").agent("touch broken; answer done").start();
    let output = run(&mut with_programs(&repo, &[("bwrap", BREAKING)], &["loop", "--max-iterations", "1"]));
    assert_eq!(repo.outcomes(), ["guard_not_started"], "{}{}", output.stdout, output.stderr);
    assert_eq!(repo.tree()["root"]["attempts"], 0);
    let state = repo.git(&["show", "HEAD:.runner/state/run_state.json"]);
    assert!(state.contains("the room could not be set up: bwrap: Can't mkdir /x"), "{state}");
    // The same words from the guard itself are the guard's.
    let repo = room("echo 'bwrap: nothing works' >&2; exit 1").agent("touch x; answer done").start();
    repo.runner(&["loop", "--max-iterations", "1", "--allow-red"]);
    assert_eq!(repo.outcomes(), ["guard_failed"]);
}

#[test]
fn a_room_that_cannot_be_set_up_is_not_a_failure_of_a_check() {
    let check = "[[check]]\nname = \"c\"\ncommand = [\"test\", \"-e\", \"done\"]\n";
    let repo = room("true").agent("touch broken done; answer done").start();
    fs::create_dir_all(repo.path(".runner/nodes/root")).unwrap();
    fs::write(repo.path(".runner/nodes/root/checks.toml"), check).unwrap();
    repo.runner(&["start"]).ok();
    let output = run(&mut with_programs(&repo, &[("bwrap", BREAKING)], &["loop"]));
    assert!(
        output.stderr.contains("a check could not run: the room could not be set up"),
        "{}{}",
        output.stdout,
        output.stderr
    );
    // The next loop finishes the iteration, with the work of its session.
    fs::remove_file(repo.path("broken")).unwrap();
    repo.runner(&["loop"]).ok();
    assert_eq!(repo.outcomes(), ["passed"]);
    assert_eq!(repo.tree()["root"]["attempts"], 0);
}
