//! Planted keys: one in a variable, one in the form of a git host's token, wherever an agent, a guard, a check or a file can
//! have them. None is in any commit, log, message, report, export or answer of the server.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};

use testkit::processes::wait_for;
use testkit::run_builder::{RUN, RunBuilder};
use testkit::test_repo::{RunOutput, TestRepo, run};

use crate::server::{Server, addresses, runner};

/// A word that every planted key contains.
const CANARY: &str = "CANARY";
/// The value of a variable, which has no form of its own.
const SECRET: &str = "CANARY1wJalrXUtnFEMIK7MDENGbPxRfiCYzzzzz";

/// A key that no variable named like a key has.
fn token() -> String {
    format!("gh{}", "p_CANARY2a1B2c3D4e5F6g7H8i9J0k1L2m3N4")
}

/// Writes keys to everything that an agent can write to, and to files that git would and would not commit.
const AGENT: &str = r#"
echo "out $DEPLOY_SECRET $PLAIN"; echo "err $DEPLOY_SECRET $PLAIN" >&2
echo "- Is $PLAIN right? $DEPLOY_SECRET" >> .runner/state/questions.md
echo "assumed $DEPLOY_SECRET" >> .runner/state/assumptions.md
echo "key = $DEPLOY_SECRET" > leaked.txt
echo "key = $DEPLOY_SECRET" > .env
case $RUNNER_ITER in
0001) split; sed -i "s/\"title\": \"a\"/\"title\": \"a $DEPLOY_SECRET\"/" "$RUNNER_TREE" ;;
0002) echo bad > a; answer done "used $DEPLOY_SECRET and $PLAIN" ;;
0003) echo good > a; answer done "used $DEPLOY_SECRET and $PLAIN" ;;
*) echo b > b; answer done "again $DEPLOY_SECRET" ;;
esac
"#;

const GUARD: &str = "echo \"error: guard $DEPLOY_SECRET $PLAIN\"; ! grep -qs bad a";

/// A server that keeps every request.
fn receiver() -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, requests) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            stream.set_read_timeout(Some(std::time::Duration::from_millis(500))).unwrap();
            let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
            while !bytes.ends_with(b"}") {
                match stream.read(&mut buffer) {
                    Ok(count) if count > 0 => bytes.extend(&buffer[..count]),
                    _ => break,
                }
            }
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            let _ = sender.send(String::from_utf8_lossy(&bytes).into_owned());
        }
    });
    (port, requests)
}

fn with_keys(repo: &TestRepo, args: &[&str]) -> RunOutput {
    run(repo.runner_command(args).env("DEPLOY_SECRET", SECRET).env("PLAIN", token()))
}

fn leaks(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.contains(CANARY)).collect()
}

/// The files below a folder that contain a planted key, without a folder in which they may be.
fn files_with_keys(folder: &Path, without: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path == without || path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            found.extend(files_with_keys(&path, without));
        } else if fs::read(&path).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(CANARY)) {
            found.push(path.display().to_string());
        }
    }
    found
}

/// A detached loop with hooks, notifications, a check and keys everywhere.
fn leaking_run(port: u16) -> TestRepo {
    let check = "[[check]]\nname = \"made\"\ncommand = [\"sh\", \"-c\", \"echo check $DEPLOY_SECRET $PLAIN; test -e a\"]\n";
    let repo = RunBuilder::new(&runner())
        .agent(AGENT)
        .guard(GUARD)
        .keys("max_attempts_default = 4")
        .file(".gitignore", ".env*\n")
        .file(".runner/nodes/root/checks.toml", check)
        .config_tables(&format!(
            "[notify]\nwebhook = \"http://127.0.0.1:{port}/hook\"\nevents = [\"question\", \"complete\", \"stuck\", \"stopped\"]\n"
        ))
        .start();
    let hook = repo.outside().join("hook.sh");
    fs::write(&hook, "cat > \"$(dirname $0)/hook-$1-$$.json\"\n").unwrap();
    let hooks: String = ["on_pass", "on_question", "on_complete", "on_stop", "on_stuck"]
        .map(|name| format!("{name} = [\"sh\", \"{}\", \"{name}\"]\n", hook.display()))
        .concat();
    let config = repo.read(".runner/state/config.toml");
    repo.write(".runner/state/config.toml", format!("{config}\n[hooks]\n{hooks}"));
    with_keys(&repo, &["start"]).ok();
    // An ignored file of the user's, of which the runner would keep a copy.
    repo.write(".env.local", format!("KEY={SECRET}\n"));
    with_keys(&repo, &["loop", "--detach", "--allow-red"]).ok();
    let state = || repo.runner(&["status"]).ok().value("state").unwrap_or_default().to_owned();
    wait_for("the end of the loop", || repo.read(".git/runner/loop.log").contains("event=end"));
    wait_for("the end of its process", || state() != "running");
    repo
}

/// What people and programs read about the run.
fn outputs(repo: &TestRepo) -> Vec<(String, String)> {
    let mut outputs = Vec::new();
    let commands: &[&[&str]] = &[
        &["status"],
        &["tree"],
        &["log"],
        &["log", "--errors"],
        &["log", "2"],
        &["show", "1"],
        &["show", "2"],
        &["show", "a"],
        &["diff", "2"],
        &["report"],
        &["attest"],
        &["verify"],
        &["questions"],
        &["checks"],
        &["runs"],
        &["select", "--explain"],
        &["config", "show"],
        &["doctor"],
        &["plan", "export"],
    ];
    for args in commands {
        let json = [args, &["--json"][..]].concat();
        for args in [args.to_vec(), json] {
            let output = with_keys(repo, &args);
            outputs.push((args.join(" "), output.stdout + &output.stderr));
        }
    }
    let mut export = Command::new(env!("CARGO_BIN_EXE_runner-ui"));
    let exported = export.arg("-C").arg(repo.root()).args(["export", "json"]).output().unwrap();
    outputs.push(("runner-ui export json".to_owned(), String::from_utf8(exported.stdout).unwrap()));
    let server = Server::on(repo.root());
    for iter in 1..=4 {
        for address in addresses() {
            let address = address.replace("/0002", &format!("/{iter:04}"));
            // A stream of events does not end.
            if address.starts_with("/events") {
                continue;
            }
            let text = server.get(&address).text();
            outputs.push((address, text));
        }
    }
    for log in [
        "executor.log",
        "executor.err.log",
        "stream.jsonl",
        "events.jsonl",
        "prompt.md",
        "session.json",
        "meta.json",
    ] {
        outputs.push((log.to_owned(), server.get(&format!("/api/iterations/{RUN}/0002/{log}")).text()));
    }
    outputs
}

#[test]
fn no_planted_key_is_anywhere() {
    let (port, requests) = receiver();
    let repo = leaking_run(port);
    let log = repo.read(".git/runner/loop.log");
    assert!(repo.outcomes().contains(&"guard_failed".to_owned()), "{:?} {log}", repo.outcomes());
    assert!(repo.outcomes().contains(&"passed".to_owned()), "{:?} {log}", repo.outcomes());

    // Every object that a reference leads to, the runner's own references included.
    let objects =
        "git rev-list --all --objects | cut -d' ' -f1 | git cat-file --batch; git log --all --format=%B";
    let objects = run(repo.command("sh").args(["-c", objects])).ok().stdout;
    assert!(objects.contains("[redacted]"));
    assert_eq!(leaks(&objects), [""; 0], "commits");

    // The file with the key stays with the user: in the work tree where git ignores it, with a private copy, and set aside
    // otherwise.
    let aside = repo.path(".git/runner/aside");
    assert!(!files_with_keys(&aside, Path::new("")).is_empty());
    let copies = repo.path(".git/runner/ignored").display().to_string();
    let (copied, mut kept): (Vec<String>, Vec<String>) =
        files_with_keys(repo.root(), &aside).into_iter().partition(|path| path.starts_with(&copies));
    for copy in &copied {
        assert_eq!(fs::metadata(copy).unwrap().permissions().mode() & 0o777, 0o600, "{copy}");
    }
    kept.sort();
    assert_eq!(kept, [".env", ".env.local"].map(|name| repo.path(name).display().to_string()));

    let hooks: Vec<String> = fs::read_dir(repo.outside())
        .unwrap()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("hook-"))
        .map(|entry| fs::read_to_string(entry.path()).unwrap())
        .collect();
    assert!(hooks.len() >= 3, "{hooks:?}");
    assert_eq!(leaks(&hooks.join("\n")), [""; 0], "hooks");
    let messages: Vec<String> = requests.try_iter().collect();
    assert!(messages.iter().any(|message| message.contains("[redacted]")), "{messages:?}");
    assert_eq!(leaks(&messages.join("\n")), [""; 0], "notifications");

    for (what, text) in outputs(&repo) {
        assert_eq!(leaks(&text), [""; 0], "{what}");
    }
}
