//! The server as a program and as a thread: where it listens, what it logs, when it ends.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use testkit::processes::wait_for;

use crate::HELLO;
use crate::client::{ask, post};
use crate::playing;

#[test]
fn it_listens_on_the_loopback_interface_and_nowhere_else() {
    let model = playing(HELLO);
    let address = model.address();
    assert_eq!(address.ip(), IpAddr::V4(Ipv4Addr::LOCALHOST));
    // The kernel's own list: address and port of every listener, in hexadecimal.
    let port = format!(":{:04X}", address.port());
    let lists = ["/proc/self/net/tcp", "/proc/self/net/tcp6"]
        .map(|path| fs::read_to_string(path).unwrap_or_default());
    let listening: Vec<String> = lists
        .iter()
        .flat_map(|list| list.lines())
        .filter_map(|line| {
            let mut fields = line.split_whitespace().skip(1);
            let (local, state) = (fields.next()?, fields.nth(1)?);
            (local.ends_with(&port) && state == "0A").then(|| local.to_owned())
        })
        .collect();
    assert_eq!(listening, [format!("0100007F{port}")]);
}

#[test]
fn it_ends_when_it_is_dropped() {
    let model = playing(HELLO);
    let address = model.address();
    assert!(TcpStream::connect(address).is_ok());
    drop(model);
    assert!(TcpStream::connect(address).is_err());
    assert!(TcpListener::bind(address).is_ok(), "the port is free again");
}

#[test]
fn no_key_is_ever_written_down() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("requests.jsonl");
    let script = scripted_model::ModelScript::parse(HELLO).unwrap();
    let model = scripted_model::ScriptedModel::start_at(script, 0, Some(&log)).unwrap();
    let head = "POST /v1beta/models/m:generateContent?key=sk-secret&alt=sse HTTP/1.1\r\nauthorization: Bearer sk-secret\r\n\
        x-api-key: sk-secret\r\nX-Goog-Api-Key: sk-secret\r\nuser-agent: me\r\ncontent-length: 2\r\n";
    ask(model.address(), head, "{}");
    let text = fs::read_to_string(&log).unwrap();
    assert!(!text.contains("sk-secret"), "{text}");
    let entry: Value = serde_json::from_str(text.trim_end()).unwrap();
    assert_eq!(entry, serde_json::to_value(model.requests().pop().unwrap()).unwrap());
    assert_eq!(entry["path"], "/v1beta/models/m:generateContent?key=(hidden)&alt=sse");
    assert_eq!(
        (&entry["headers"]["x-api-key"], &entry["headers"]["user-agent"]),
        (&json!("(hidden)"), &json!("me"))
    );
    assert_eq!(
        (&entry["method"], &entry["kind"], &entry["wire"]),
        (&json!("POST"), &json!("aside"), &json!("gemini"))
    );
}

#[test]
fn the_program_says_where_it_listens_and_logs_what_it_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("script.toml"), HELLO).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_scripted-model"))
        .arg("--script")
        .arg(path("script.toml"))
        .arg("--port-file")
        .arg(path("port"))
        .arg("--log")
        .arg(path("log"))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("the port", || path("port").exists());
    let port: u16 = fs::read_to_string(path("port")).unwrap().parse().unwrap();
    let reply = post((Ipv4Addr::LOCALHOST, port).into(), "/v1/messages", &json!({ "messages": [] }));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(reply.status, Some(200));
    assert_eq!(fs::read_to_string(path("log")).unwrap().lines().count(), 1);
}

#[test]
fn the_program_says_what_is_wrong_with_its_arguments_or_its_script() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.toml");
    fs::write(&script, "part = []").unwrap();
    let script = script.display().to_string();
    for (args, fault) in [
        (&[][..], "usage: scripted-model --script FILE"),
        (&["--scrip", "x"], "`--scrip` is not known"),
        (&["--script"], "`--script` needs a value"),
        (&["--script", "/nowhere.toml"], "/nowhere.toml: No such file"),
        (&["--script", &script], "the script has no part"),
        (&["--script", &script, "--port", "x"], "`x` is no port"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_scripted-model")).args(args).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{told}");
        assert!(told.contains(fault), "{told}");
    }
}
