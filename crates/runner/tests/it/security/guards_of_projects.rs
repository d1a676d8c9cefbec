//! Guards of real projects work in the room unchanged, or the runner proposes the keys with which they do.
#![cfg(target_os = "linux")]

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;

use testkit::oracle::assert_sound;
use testkit::run_builder::{RUN, RunBuilder};
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;

const KEYS: &str = "room = \"require\"\nbaseline = true\nfinal_check = true";

fn project(guard: &str) -> RunBuilder {
    RunBuilder::new(RUNNER).guard(guard).guard_keys(KEYS)
}

/// Runs the loop to its end; every guard run must have succeeded in the room.
fn assert_completes(repo: &TestRepo) {
    let output = repo.runner(&["loop"]);
    let log = std::fs::read_to_string(repo.path(&format!(".runner/iterations/{RUN}/baseline.log")));
    assert_eq!(output.code, Some(0), "{}\n{}\n{log:?}", output.stdout, output.stderr);
    for event in ["baseline_ended guard=pass", "guard_ended iter=0001", "final_check_ended guard=pass"] {
        assert!(output.stdout.contains(event), "{event}: {}", output.stdout);
    }
    assert_eq!(repo.outcomes(), ["passed"]);
    assert_sound(repo);
}

/// Runs the loop, which proposes keys; with them it completes.
fn assert_completes_with_the_proposal(repo: &TestRepo, keys: &str) {
    let output = repo.runner(&["loop", "--max-iterations", "1"]).stdout;
    let proposal = format!("event=room_proposal keys=\"{}\"", keys.replace('"', "\\\""));
    assert!(output.contains(&proposal), "{output}");
    let config = repo.read(".runner/state/config.toml").replace("[guard]", &format!("[guard]\n{keys}"));
    repo.write(".runner/state/config.toml", config);
    repo.runner(&["start"]).ok();
    repo.runner(&["loop"]).ok();
    assert_sound(repo);
}

#[test]
fn cargo_workspace() {
    // The toolchain itself: rustup would need the home of the user.
    let programs = Path::new(env!("CARGO")).parent().expect("a folder").display();
    let manifest =
        |name: &str| format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
    let repo = project(&format!("PATH={programs}:$PATH; cargo test --offline --quiet"))
        .file("Cargo.toml", "[workspace]\nmembers = [\"a\", \"b\"]\nresolver = \"2\"\n")
        .file(".gitignore", "target\nCargo.lock\n")
        .file("a/Cargo.toml", manifest("a"))
        .file("a/src/lib.rs", "pub fn one() -> u32 { 1 }\n")
        .file("b/Cargo.toml", format!("{}[dependencies]\na = {{ path = \"../a\" }}\n", manifest("b")))
        .file("b/src/lib.rs", "#[test]\nfn works() { assert_eq!(a::one(), 1); }\n")
        .start();
    assert_completes(&repo);
}

/// A package that needs another one in an ignored `node_modules`.
fn node_project(guard: &str) -> TestRepo {
    let repo = project(guard)
        .file(".gitignore", "node_modules\n")
        .file(
            "package.json",
            "{\"name\": \"x\", \"version\": \"1.0.0\", \"scripts\": {\"test\": \"node test.js\"}}\n",
        )
        .file("test.js", "if (require('dep') !== 7) process.exit(1)\n")
        .unrepeatable("the installed modules are in no commit")
        .start();
    repo.write("node_modules/dep/package.json", "{\"name\": \"dep\", \"version\": \"1.0.0\"}\n");
    repo.write("node_modules/dep/index.js", "module.exports = 7\n");
    repo
}

#[test]
fn npm_with_installed_modules() {
    let repo = node_project("npm test --silent --offline");
    assert_completes_with_the_proposal(&repo, "keep = [\"node_modules\"]");
}

#[test]
fn python_in_a_virtual_environment() {
    let test = "import helper\nimport unittest\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(helper.VALUE, 7)\n";
    let repo = project(".venv/bin/python -m unittest -q test_it")
        .file(".gitignore", ".venv\n__pycache__\n")
        .file("test_it.py", test)
        .unrepeatable("the environment is in no commit")
        .start();
    run(repo.command("python3").args(["-m", "venv", "--without-pip", ".venv"])).ok();
    let packages =
        run(repo.command(".venv/bin/python").args(["-c", "import site; print(site.getsitepackages()[0])"]))
            .ok();
    std::fs::write(Path::new(packages.stdout.trim()).join("helper.py"), "VALUE = 7\n").expect("a package");
    assert_completes_with_the_proposal(&repo, "keep = [\".venv\"]");
}

#[test]
fn python_in_an_activated_environment_outside() {
    let repo = project("python -c 'import helper; assert helper.VALUE == 7'")
        .file(".gitignore", "__pycache__\n")
        .unrepeatable("the environment is activated for the loop alone")
        .start();
    let environment = repo.outside().join("environment");
    run(repo.command("python3").args(["-m", "venv", "--without-pip"]).arg(&environment)).ok();
    let python = environment.join("bin/python");
    let packages =
        run(repo.command(&python).args(["-c", "import site; print(site.getsitepackages()[0])"])).ok();
    std::fs::write(Path::new(packages.stdout.trim()).join("helper.py"), "VALUE = 7\n").expect("a package");
    let path = std::env::var("PATH").expect("a path");
    let path = format!("{}:{path}", environment.join("bin").display());
    let output = run(repo.runner_command(&["loop"]).env("PATH", path).env("VIRTUAL_ENV", &environment)).ok();
    assert!(output.stdout.contains("final_check_ended guard=pass"), "{}", output.stdout);
    assert_sound(&repo);
}

#[test]
fn just_with_imports_and_modules() {
    let repo = project("just ci")
        .file("justfile", "import 'more.just'\nmod tools\n\nci: test\n    just tools::lint\n")
        .file("more.just", "test:\n    test -e README.md\n")
        .file("tools.just", "lint:\n    test -e README.md\n")
        .start();
    assert_completes(&repo);
}

#[test]
fn guard_that_asks_git() {
    let guard = "git describe --always > /dev/null && git ls-files --error-unmatch README.md && git diff --exit-code HEAD \
                 && test -z \"$(git status --porcelain)\" && git log -1 --format=%H | grep -q . && test \"$(git rev-parse --show-toplevel)\" = \"$PWD\"";
    assert_completes(&project(guard).start());
}

#[test]
fn guard_that_talks_to_a_server_on_localhost() {
    let server = "import http.server, threading, urllib.request\n\
        server = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler)\n\
        threading.Thread(target=server.serve_forever, daemon=True).start()\n\
        url = 'http://127.0.0.1:%d/README.md' % server.server_port\n\
        assert urllib.request.urlopen(url).read() == b'hello\\n'\n";
    assert_completes(&project("python3 check.py 2> /dev/null").file("check.py", server).start());
}

#[test]
fn guard_that_needs_docker_is_told_the_key_that_allows_it() {
    let guard = "echo 'Cannot connect to the Docker daemon at unix:///var/run/docker.sock.'; exit 1";
    let repo = project(guard).keys("max_attempts_default = 1").start();
    assert_eq!(repo.runner(&["loop", "--allow-red"]).code, Some(3));
    let log = repo.iteration_file(1, "guard.log");
    let hint = "runner: the room hides /run/docker.sock; to allow it, set sockets = [\"/run/docker.sock\"] under [guard]\n";
    assert!(log.ends_with(hint), "{log}");
    assert!(repo.runner(&["status"]).ok().stdout.contains("guard=\"runs in a room (bubblewrap)\""));
}

/// A service that answers like Docker's, for the clients of this test.
fn container_service(socket: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(socket.with_file_name(""))?;
    let service = UnixListener::bind(socket)?;
    std::thread::spawn(move || {
        for mut client in service.incoming().flatten() {
            let mut request = [0; 256];
            let _ = client.read(&mut request);
            let _ = client.write_all(b"HTTP/1.0 200 OK\r\n\r\nOK");
        }
    });
    Ok(())
}

/// A client of a container service in the user's home, as Docker Desktop has it. It really connects.
#[test]
fn guard_that_connects_to_a_container_service_needs_the_key_that_allows_it() {
    let client = "import os, socket, sys\n\
        path = os.path.expanduser('~/.docker/run/docker.sock')\n\
        client = socket.socket(socket.AF_UNIX)\n\
        try:\n    client.connect(path)\n\
        except OSError as error:\n    sys.exit(f'Cannot connect to the Docker daemon at unix://{path}: {error}')\n\
        client.sendall(b'GET /_ping HTTP/1.0\\r\\n\\r\\n')\n\
        assert client.recv(256).endswith(b'OK')\n";
    let repo = project("python3 client.py").file("client.py", client).start();
    let socket = repo.outside().canonicalize().expect("a folder").join("home/.docker/run/docker.sock");
    container_service(&socket).expect("a service");
    let output = repo.runner(&["loop", "--max-iterations", "1"]).stdout;
    assert!(output.contains("event=room_proposal keys=\"sockets = ["), "{output}");
    assert!(output.contains(&format!("\\\"{}\\\"", socket.display())), "{output}");
    let log = repo.read(&format!(".runner/iterations/{RUN}/baseline.log"));
    let path = socket.display();
    let hint =
        format!("runner: the room hides {path}; to allow it, set sockets = [\"{path}\"] under [guard]\n");
    assert!(log.contains("Cannot connect to the Docker daemon") && log.ends_with(&hint), "{log}");

    let config = repo.read(".runner/state/config.toml");
    let config = config.replace("[guard]", &format!("[guard]\nsockets = [\"{path}\"]"));
    repo.write(".runner/state/config.toml", config);
    repo.runner(&["start"]).ok();
    let output = repo.runner(&["loop"]).ok().stdout;
    assert!(output.contains("final_check_ended guard=pass"), "{output}");
    assert_sound(&repo);
}

/// The proposal that a loop prints.
fn proposal(repo: &TestRepo) -> String {
    let output = repo.runner(&["loop", "--max-iterations", "1"]).stdout;
    let keys = output.split("event=room_proposal keys=\"").nth(1).and_then(|rest| rest.lines().next());
    let keys = keys.and_then(|keys| keys.strip_suffix('"'));
    keys.unwrap_or(&output).replace("\\\"", "\"")
}

/// In the room nothing is installed, and no ignored file of the work tree helps.
#[test]
fn npm_without_modules_is_proposed_its_setup() {
    let manifest = r#"{"name": "x", "version": "1.0.0", "scripts": {"test": "node test.js"}, "dependencies": {"dep": "file:./dep"}}"#;
    let lock = r#"{"name": "x", "version": "1.0.0", "lockfileVersion": 3, "packages": {
        "": {"name": "x", "version": "1.0.0", "dependencies": {"dep": "file:./dep"}},
        "dep": {"version": "1.0.0"}, "node_modules/dep": {"resolved": "dep", "link": true}}}"#;
    let repo = project("test -w $HOME/installed || npm test --silent --offline")
        .file(".gitignore", "node_modules\n")
        .file("package.json", manifest)
        .file("package-lock.json", lock)
        .file("dep/package.json", "{\"name\": \"dep\", \"version\": \"1.0.0\"}\n")
        .file("dep/index.js", "module.exports = 7\n")
        .file("test.js", "if (require('dep') !== 7) process.exit(1)\n")
        .start();
    std::fs::write(repo.outside().join("home/installed"), "").expect("a file in the home");
    let keys = r#"setup = ["npm", "ci"]; setup_inputs = ["package-lock.json", "package.json"]"#;
    assert_eq!(proposal(&repo), keys);
}

/// The configuration cannot name this file.
#[test]
fn guard_that_needs_a_file_that_cannot_be_kept_is_proposed_all_ignored_files() {
    use std::os::unix::ffi::OsStrExt;
    let repo = project("ls needed*").file(".gitignore", "needed*\n").start();
    let name = std::ffi::OsStr::from_bytes(b"needed\xff");
    std::fs::write(repo.path(".").join(name), "").expect("a file");
    assert_eq!(proposal(&repo), "ignored = \"worktree\"");
}

#[test]
fn guard_that_hangs_in_the_room_gets_a_proposal() {
    let guard = "until test -e env/ok; do sleep 1; done";
    let repo = project(guard).file(".gitignore", "env\n").keys("iteration_timeout_secs = 10").start();
    repo.write("env/ok", "");
    assert_eq!(proposal(&repo), "keep = [\"env\"]");
}

#[test]
fn guard_that_no_file_helps_is_proposed_to_run_in_place() {
    let repo = project("test -w \"$HOME/state\"").start();
    std::fs::write(repo.outside().join("home/state"), "").expect("a file in the home");
    let output = repo.runner(&["loop", "--max-iterations", "1"]).stdout;
    assert!(output.contains("event=room_proposal keys=\"room = \\\"in-place\\\"\""), "{output}");
}

#[test]
fn guard_that_fails_everywhere_gets_no_proposal() {
    let repo = project("exit 1").start();
    let output = repo.runner(&["loop", "--allow-red", "--max-iterations", "1"]).stdout;
    assert!(output.contains("baseline_ended guard=fail") && !output.contains("room_proposal"), "{output}");
}
