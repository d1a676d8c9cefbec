//! A recorder between an agent and a provider that the tests play.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc;

use runner_core::config::Config;
use tempfile::TempDir;

use super::*;

/// A recorder in front of a provider at this port.
fn recorder(folder: &TempDir, port: u16) -> Recorder {
    let text =
        format!("[executor]\nkind = \"codex\"\nbase_url = \"http://127.0.0.1:{port}/v1\"\nrecord = true");
    let executor = Config::decode(text.as_bytes()).unwrap().executor;
    let places = RecorderPlaces {
        root: folder.path(),
        log: folder.path().join("requests.jsonl"),
        recording: None,
        folder: folder.path().join("bodies"),
        log_bytes_max: 1 << 20,
    };
    Recorder::start(&executor, &places).unwrap().unwrap()
}

fn connect(recorder: &Recorder, request: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", recorder.port)).unwrap();
    let path = recorder.url().split_once(&format!(":{}", recorder.port)).unwrap().1;
    stream.write_all(request.replace("PATH", path).as_bytes()).unwrap();
    stream
}

/// Reads until the text has arrived.
fn read_until(stream: &mut TcpStream, text: &str) -> String {
    let mut read = Vec::new();
    let mut byte = [0];
    while !String::from_utf8_lossy(&read).contains(text) {
        assert_eq!(stream.read(&mut byte).unwrap(), 1, "{}", String::from_utf8_lossy(&read));
        read.extend_from_slice(&byte);
    }
    String::from_utf8(read).unwrap()
}

const POST: &str =
    "POST PATH/responses HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer k\r\nContent-Length: 2\r\n\r\n{}";

#[test]
fn answer_arrives_while_the_provider_still_sends() {
    let provider = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let recorder = recorder(&folder, provider.local_addr().unwrap().port());
    let (has_arrived, arrived) = mpsc::channel();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = provider.accept().unwrap();
        let request = read_until(&mut stream, "{}");
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: one\n\n").unwrap();
        // The second event is sent once the first has arrived.
        arrived.recv().unwrap();
        stream.write_all(b"data: two\n\n").unwrap();
        request
    });
    let mut agent = connect(&recorder, POST);
    let first = read_until(&mut agent, "data: one");
    assert!(first.starts_with("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"), "{first}");
    has_arrived.send(()).unwrap();
    read_until(&mut agent, "data: two\n\n\r\n0\r\n\r\n");
    let request = server.join().unwrap().to_ascii_lowercase();
    assert!(request.starts_with("post /v1/responses http/1.1\r\n"), "{request}");
    assert!(request.contains("authorization: bearer k\r\n") && !request.contains("curl"), "{request}");
    assert_eq!(recorder.finish().count, 1);
    let log = std::fs::read_to_string(folder.path().join("requests.jsonl")).unwrap();
    assert!(log.contains("data: one\\n\\ndata: two") && !log.contains("Bearer k"), "{log}");
}

#[test]
fn requests_that_are_not_the_agents_are_refused_and_not_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = recorder(&folder, 9);
    let mut stranger = TcpStream::connect(("127.0.0.1", recorder.port)).unwrap();
    stranger.write_all(POST.replace("PATH", "/v1").as_bytes()).unwrap();
    read_until(&mut stranger, "HTTP/1.1 404 ");
    let upgrade =
        "GET PATH/responses HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
    read_until(&mut connect(&recorder, upgrade), "HTTP/1.1 426 ");
    assert_eq!(recorder.finish().count, 0);
}

#[test]
fn provider_that_cannot_be_reached_ends_the_connection() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let folder = tempfile::tempdir().unwrap();
    let recorder = recorder(&folder, free);
    let mut answer = String::new();
    connect(&recorder, POST).read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "");
    recorder.finish();
    let log = std::fs::read_to_string(folder.path().join("requests.jsonl")).unwrap();
    assert!(log.contains("\"status\":null") && log.contains("onnect"), "{log}");
}

#[test]
fn finished_recorder_ends_what_is_on_its_way() {
    let provider = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let recorder = recorder(&folder, provider.local_addr().unwrap().port());
    let mut agent = connect(&recorder, POST);
    let (mut stream, _) = provider.accept().unwrap();
    read_until(&mut stream, "{}");
    // A connection on which nothing is sent.
    let _idle = TcpStream::connect(("127.0.0.1", recorder.port)).unwrap();
    assert_eq!(recorder.finish().count, 1);
    let mut rest = Vec::new();
    agent.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"", "the agent has no answer");
    assert_eq!(stream.read_to_end(&mut rest).unwrap(), 0, "nobody waits for the provider");
    assert_eq!(std::fs::read_dir(folder.path().join("bodies")).unwrap().count(), 0, "no body is left");
}
