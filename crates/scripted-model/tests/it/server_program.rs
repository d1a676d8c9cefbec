//! The server as a program and as a thread: its address, its log, its end.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use testkit::processes::wait_for;

use crate::HELLO;
use crate::client::{post, send};
use crate::start_model;

#[test]
fn server_listens_on_the_loopback_interface_only() {
    let model = start_model(HELLO);
    let address = model.address();
    assert_eq!(address.ip(), IpAddr::V4(Ipv4Addr::LOCALHOST));
    // The kernel's list: address and port of every listener, in hexadecimal.
    let port = format!(":{:04X}", address.port());
    let lists = ["/proc/self/net/tcp", "/proc/self/net/tcp6"]
        .map(|path| fs::read_to_string(path).unwrap_or_default());
    let listening: Vec<String> = lists
        .iter()
        .flat_map(|list| list.lines())
        .filter_map(|line| {
            let mut fields = line.split_whitespace().skip(1);
            let local = fields.next()?;
            let state = fields.nth(1)?;
            (local.ends_with(&port) && state == "0A").then(|| local.to_owned())
        })
        .collect();
    assert_eq!(listening, [format!("0100007F{port}")]);
}

#[test]
fn dropping_the_server_stops_it() {
    let model = start_model(HELLO);
    let address = model.address();
    assert!(TcpStream::connect(address).is_ok());
    drop(model);
    assert!(TcpStream::connect(address).is_err());
    assert!(TcpListener::bind(address).is_ok(), "the port is free again");
}

#[test]
fn api_keys_are_redacted_in_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("requests.jsonl");
    let script = scripted_model::ModelScript::parse(HELLO).unwrap();
    let model = scripted_model::ScriptedModel::start_at(script, 0, Some(&log)).unwrap();
    let head = "POST /v1beta/models/m:generateContent?key=sk-secret&alt=sse HTTP/1.1\r\nauthorization: Bearer sk-secret\r\n\
        x-api-key: sk-secret\r\nX-Goog-Api-Key: sk-secret\r\nuser-agent: me\r\ncontent-length: 2\r\n";
    send(model.address(), head, "{}");
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
        (&json!("POST"), &json!("side"), &json!("gemini"))
    );
}

#[test]
fn program_writes_its_port_and_logs_requests() {
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
    wait_for("the port file", || path("port").exists());
    let port: u16 = fs::read_to_string(path("port")).unwrap().parse().unwrap();
    let reply = post((Ipv4Addr::LOCALHOST, port).into(), "/v1/messages", &json!({ "messages": [] }));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(reply.status, Some(200));
    assert_eq!(fs::read_to_string(path("log")).unwrap().lines().count(), 1);
}

#[test]
fn program_reports_invalid_arguments_and_scripts() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script.toml");
    fs::write(&script, "part = []").unwrap();
    let script = script.display().to_string();
    for (args, error) in [
        (&[][..], "usage: scripted-model --script FILE"),
        (&["--scrip", "x"], "unknown option `--scrip`"),
        (&["--script"], "`--script` needs a value"),
        (&["--script", "/nowhere.toml"], "/nowhere.toml: No such file"),
        (&["--script", &script], "the script has no part"),
        (&["--script", &script, "--port", "x"], "`x` is not a port number"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_scripted-model")).args(args).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{stderr}");
        assert!(stderr.contains(error), "{stderr}");
    }
}
