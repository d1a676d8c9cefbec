//! What a session, a guard, a check and a hook can reach through sockets and inherited descriptors.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use testkit::run_builder::RunBuilder;
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;

/// Prints whether an abstract socket outside can be reached, and whether one of its own can.
const CONNECT: &str = r#"
python3 - "$0" <<'P'
import os, socket
def reach(name):
    try:
        socket.socket(socket.AF_UNIX).connect("\0" + name)
        return "reached"
    except OSError as error:
        return "refused"
own = socket.socket(socket.AF_UNIX)
own.bind("\0own-" + str(os.getpid()))
own.listen()
print("outside", reach("OUTSIDE"), "own", reach("own-" + str(os.getpid())))
P
"#;

/// Whether the kernel has Landlock scopes: without them, the loop and the doctor must name the gap.
fn has_scopes() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    let mut numbers =
        release.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap(), numbers.next().unwrap()) >= (6, 12)
}

/// A listening abstract socket, and the script that tries to reach it.
fn abstract_service(name: &str) -> (UnixListener, String) {
    let name = format!("{name}-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let listener = UnixListener::bind_addr(&address).unwrap();
    listener.set_nonblocking(true).unwrap();
    (listener, CONNECT.replace("OUTSIDE", &name))
}

#[test]
fn abstract_sockets_outside_are_out_of_reach_for_agent_and_guard() {
    let (service, script) = abstract_service("runner-reach");
    let repo = RunBuilder::new(RUNNER)
        .executor_keys("")
        .agent(&format!("({script}) > agent.txt 2>&1; answer done"))
        .guard(&format!("({script}) 2>&1"))
        .guard_keys("room = \"require\"")
        .start();
    let output = repo.runner(&["loop"]).ok().stdout;
    let doctor = repo.runner(&["doctor"]).stdout;
    let (agent, guard) = (repo.read("agent.txt"), repo.iteration_file(1, "guard.log"));
    if has_scopes() {
        assert_eq!(agent, "outside refused own reached\n");
        assert_eq!(guard, "outside refused own reached\n");
        assert_eq!(service.accept().map_err(|error| error.kind()).unwrap_err(), ErrorKind::WouldBlock);
        assert!(!output.contains("gap="), "{output}");
    } else {
        assert!(output.contains("gap=\"abstract sockets are reachable"), "{output}");
        assert!(doctor.contains("check=sandbox verdict=warning"), "{doctor}");
    }
}

#[test]
fn sockets_that_variables_name_are_hidden() {
    let repo = RunBuilder::new(RUNNER)
        .executor_keys("")
        .agent("if test -S \"${DOCKER_HOST#unix://}\"; then echo seen; else echo hidden; fi > seen.txt; answer done")
        .start();
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let path = folder.path().join("docker.sock");
    let _service = UnixListener::bind(&path).unwrap();
    run(repo.runner_command(&["step"]).env("DOCKER_HOST", format!("unix://{}", path.display()))).ok();
    assert_eq!(repo.read("seen.txt"), "hidden\n");
}

#[test]
fn sockets_outside_of_the_home_are_hidden() {
    let folders = [(); 2].map(|()| tempfile::tempdir_in("/var/tmp").unwrap());
    let [alone, beside] = folders.each_ref().map(|folder| folder.path().join("service"));
    fs::write(folders[1].path().join("file"), "").unwrap();
    let _services = [&alone, &beside].map(|path| UnixListener::bind(path).unwrap());
    let repo = RunBuilder::new(RUNNER)
        .executor_keys("sandbox = \"require\"")
        .agent(&format!(
            "for path in '{}' '{}'; do test -S $path && echo seen; done > seen.txt; test -e '{}' && echo file >> seen.txt; answer done",
            alone.display(),
            beside.display(),
            folders[1].path().join("file").display()
        ))
        .start();
    repo.runner(&["step"]).ok();
    assert_eq!(repo.read("seen.txt"), "file\n");
}

/// Prints the descriptors that a process has besides its standard streams and the one that lists them.
const LIST: &str =
    "for n in $(seq 3 30); do if (: <&$n) 2>/dev/null; then echo has $n; fi; done; echo listed";

#[test]
fn descriptors_of_the_shell_reach_no_program() {
    let check = format!("[[check]]\nname = \"c\"\ncommand = [\"bash\", \"-c\", \"{LIST}; test -e work\"]\n");
    for sandbox in ["", "sandbox = \"off\""] {
        let repo = RunBuilder::new(RUNNER)
            .executor_keys(sandbox)
            .agent(&format!("bash -c '{LIST}'; echo 1 > work; answer done"))
            .guard(&format!("bash -c '{LIST}'"))
            .file(".runner/nodes/root/checks.toml", &check)
            .start();
        let hook = repo.outside().join("hook.sh");
        fs::write(&hook, format!("bash -c '{LIST}' > \"$(dirname $0)/hook.txt\"\n")).unwrap();
        let config = repo.read(".runner/state/config.toml");
        let hooks = format!("[hooks]\non_pass = [\"sh\", \"{}\"]\n", hook.display());
        repo.write(".runner/state/config.toml", format!("{config}\n{hooks}"));
        repo.runner(&["start"]).ok();
        let secret = repo.outside().join("secret");
        fs::write(&secret, "secret").unwrap();
        let line = format!("exec 7<'{0}' 9<>'{0}' 23<'{0}'; exec '{RUNNER}' loop", secret.display());
        run(repo.command("bash").args(["-c", &line])).ok();
        assert_eq!(repo.outcomes(), ["passed"]);
        let hook = fs::read_to_string(repo.outside().join("hook.txt")).unwrap();
        let logs = [repo.iteration_file(1, "executor.log"), repo.iteration_file(1, "guard.log"), hook];
        assert_eq!(logs, ["listed\n"; 3], "{sandbox}");
        let checks = all_logs(&repo);
        assert!(checks.contains("listed") && !checks.contains("has "), "{checks}");
    }
}

/// Every log of the first iteration.
fn all_logs(repo: &TestRepo) -> String {
    let folder = repo.path(".runner/iterations/demo/0001");
    let files = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
    let logs = files.filter(|path| path.extension().is_some_and(|ending| ending == "log"));
    logs.map(|path| fs::read_to_string(path).unwrap()).collect()
}

/// A `podman` that writes down its arguments, and runs the command on this machine.
const PODMAN: &str = r#"#!/bin/sh
if [ "$1" = info ]; then exit 0; fi
if [ "$1" = --version ]; then echo "podman version 5.0.0"; exit 0; fi
printf '%s\n' "$@" > "$(dirname "$0")/args"
while [ "$1" != example/image ]; do shift; done
shift
exec "$@"
"#;

#[test]
fn an_agent_runs_in_a_container() {
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let podman = folder.path().join("podman");
    fs::write(&podman, PODMAN).unwrap();
    fs::set_permissions(&podman, fs::Permissions::from_mode(0o755)).unwrap();
    let repo = RunBuilder::new(RUNNER)
        .agent("cat > prompt-copy; echo 1 > work; answer done; exit 3")
        .executor_keys("sandbox = \"podman\"\nimage = \"example/image\"")
        .start();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    let with = |args: &[&str]| run(repo.runner_command(args).env("PATH", &path));
    let output = with(&["loop"]).ok().stdout;
    assert!(output.contains("sandbox=podman"), "{output}");
    assert_eq!(
        (repo.meta(1)["sandbox"].as_str(), repo.outcomes().concat()),
        (Some("podman"), "passed".to_owned())
    );
    assert!(repo.read("prompt-copy").contains("Port it"), "the prompt arrives on standard input");
    let args = fs::read_to_string(folder.path().join("args")).unwrap();
    let root = repo.root().display();
    for arg in [
        format!("--mount=type=bind,source={root},destination={root}"),
        format!("--mount=type=bind,source={root}/.git,destination={root}/.git,ro=true"),
        "--network=private".to_owned(),
        "--userns=keep-id".to_owned(),
        "RUNNER_OUTPUT".to_owned(),
    ] {
        assert!(args.lines().any(|line| line == arg), "{arg}: {args}");
    }
    assert!(with(&["doctor"]).stdout.contains("check=sandbox verdict=ok found=\"podman version 5.0.0, "));
    let refused = repo.runner(&["loop"]).refused(2);
    assert!(refused.contains("`podman` is not on PATH") && refused.contains("install podman"), "{refused}");
}

#[test]
fn a_container_needs_an_image_and_an_agent_that_fits_in() {
    for (keys, text) in [
        ("kind = \"command\"\ncommand = [\"x\"]\nsandbox = \"podman\"", "add `image`"),
        ("kind = \"claude\"\nsandbox = \"podman\"\nimage = \"x\"", "only valid for kind \\\"command\\\""),
        ("kind = \"codex\"\nimage = \"x\"", "needs `sandbox = \\\"podman\\\"`"),
    ] {
        let repo = RunBuilder::new(RUNNER).start();
        let config = repo.read(".runner/state/config.toml");
        let other = config.split("[executor]").next().unwrap();
        repo.write(".runner/state/config.toml", format!("{other}[executor]\n{keys}\n"));
        let problems = repo.runner(&["validate"]).stdout;
        assert!(problems.contains(text), "{text}: {problems}");
    }
}
