//! `[notify]`: messages over HTTP, which cannot change a run.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

use testkit::oracle::{assert_idle, assert_sound};
use testkit::run_builder::RunBuilder;
use testkit::test_repo::{TestRepo, run};

use crate::RUNNER;

/// A server that accepts every request and keeps it. It ends with the test.
pub(super) fn server() -> (u16, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let (sender, requests) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = sender.send(request(stream.unwrap()));
        }
    });
    (port, requests)
}

fn request(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")).unwrap_or("0");
            if body.len() >= length.parse::<usize>().unwrap() {
                let _ =
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
                return text;
            }
        }
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "an incomplete request: {text}");
        bytes.extend(buffer.iter().take(count));
    }
}

fn run_with(agent: &str, notify: &str) -> TestRepo {
    RunBuilder::new(RUNNER)
        .agent(agent)
        .keys("max_attempts_default = 1")
        .config_tables(&format!("[notify]\n{notify}"))
        .start()
}

#[test]
fn webhook_gets_the_question_and_the_end_as_json() {
    let (port, requests) = server();
    let agent = "echo '- Which port?' >> .runner/state/questions.md; answer done";
    let sandbox = run_with(agent, &format!("webhook = \"http://127.0.0.1:{port}/hook?key=s\""));
    let output = sandbox.runner(&["loop"]).ok().stdout;
    assert!(output.contains("event=asked iter=0001 question=1 text=\"Which port?\""), "{output}");
    assert!(output.contains("event=notified to=webhook ok=true"), "{output}");
    let document = |request: String| -> serde_json::Value {
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("POST /hook?key=s HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("Content-Type: application/json"), "{head}");
        serde_json::from_str(body).unwrap()
    };
    let question = document(requests.try_recv().unwrap());
    assert_eq!((&question["event"], &question["question"]["number"]), (&"question".into(), &1.into()));
    assert_eq!(question["next"][0]["command"], "runner answer 1 \"…\"");
    let end = document(requests.try_recv().unwrap());
    assert_eq!((&end["event"], &end["why"]), (&"complete".into(), &"the task passed".into()));
    assert_eq!(end["next"][1]["command"], "runner land");
    assert_eq!(end["repository"], sandbox.root().to_str().unwrap());
    assert!(requests.try_recv().is_err(), "a pass is not reported by itself");
    assert!(!sandbox.path(".git/runner/notify.curl").exists(), "the address stays nowhere");
    assert_sound(&sandbox);
}

#[test]
fn ntfy_gets_text_with_a_title_from_an_address_in_the_environment() {
    let (port, requests) = server();
    let sandbox = run_with("answer retry", "ntfy = \"$TOPIC\"\nevents = [\"stuck\"]");
    let url = format!("http://127.0.0.1:{port}/topic");
    let output = run(sandbox.runner_command(&["loop"]).env("TOPIC", url));
    assert_eq!(output.code, Some(3), "{}", output.stderr);
    let request = requests.try_recv().unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("\r\nTitle: runner demo: stuck\r\n"), "{head}");
    assert!(head.contains("\r\nPriority: high\r\n"), "{head}");
    assert!(body.starts_with("`root` failed 1 of 1 attempts\n"), "{body}");
    assert!(body.contains("\nrunner node allow root  # allow more attempts"), "{body}");
}

#[test]
fn notification_that_cannot_be_delivered_changes_nothing() {
    // Accepts connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    for (notify, why) in [
        (format!("webhook = \"http://127.0.0.1:{port}/\"\ntimeout_secs = 1"), "to=webhook ok=false"),
        ("ntfy = \"$NO_SUCH_VARIABLE\"".to_owned(), "NO_SUCH_VARIABLE is not set"),
        ("webhook = \"http://127.0.0.1:1/\"".to_owned(), "to=webhook ok=false error=\"curl: "),
    ] {
        let sandbox = run_with("answer done", &notify);
        let output = sandbox.runner(&["loop"]).ok().stdout;
        assert!(output.contains(why), "{why}: {output}");
        assert_idle(&sandbox);
        assert_sound(&sandbox);
    }
}

#[test]
fn wait_and_question_have_hooks() {
    let agent = r#"
echo '- Why?' >> .runner/state/questions.md
printf '{"fault": {"fault": "usage_limit"}}' > "$RUNNER_REPORT"; exit 1"#;
    let sandbox = RunBuilder::new(RUNNER).agent(agent).start();
    let script = sandbox.outside().join("hook.sh");
    std::fs::write(&script, "cat > \"$(dirname $0)/$1.json\"").unwrap();
    let hook = |name: &str| format!("{name} = [\"sh\", \"{}\", \"{name}\"]\n", script.display());
    let config = sandbox.read(".runner/state/config.toml");
    let hooks = format!("{config}\n[hooks]\n{}{}", hook("on_wait"), hook("on_question"));
    sandbox.write(".runner/state/config.toml", hooks);
    sandbox.runner(&["start"]).ok();
    let mut child = sandbox.runner_command(&["loop"]).stdout(std::process::Stdio::null()).spawn().unwrap();
    let read = |name: &str| -> Option<serde_json::Value> {
        serde_json::from_slice(&std::fs::read(sandbox.outside().join(name)).ok()?).ok()
    };
    testkit::processes::wait_for("the wait", || read("on_wait.json").is_some());
    run(sandbox.command("kill").args(["-TERM".to_owned(), child.id().to_string()])).ok();
    child.wait().unwrap();
    let wait = read("on_wait.json").unwrap();
    assert_eq!((&wait["hook"], &wait["wait"]["outcome"]), (&"on_wait".into(), &"usage_limit".into()));
    assert!(wait["until_unix_ms"].as_u64() > Some(0), "{wait}");
    assert_eq!(read("on_question.json").unwrap()["question"]["text"], "Why?");
}
