//! A client that sees what is on the wire: status, headers, every event, and whether the answer came to its end.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// An answer.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Reply {
    /// None if the connection was closed without a word.
    pub(crate) status: Option<u16>,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
    /// Whether the body came to its end.
    pub(crate) is_whole: bool,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The events of a stream: their names and their data, where that is JSON.
    pub(crate) fn events(&self) -> Vec<(String, Value)> {
        assert_eq!(self.headers["content-type"], "text/event-stream", "{}", self.body);
        let event = |block: &str| {
            let field = |name: &str| {
                block.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_owned()
            };
            let data = field("data: ");
            (field("event: "), serde_json::from_str(&data).unwrap_or(Value::String(data)))
        };
        self.body.split_terminator("\n\n").map(event).collect()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.events().into_iter().map(|(name, _)| name).collect()
    }
}

pub(crate) fn post(address: SocketAddr, path: &str, body: &Value) -> Reply {
    let body = body.to_string();
    let head = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    ask(address, &format!("POST {path} HTTP/1.1\r\n{head}"), &body)
}

/// Sends a request whose head has neither its host nor its end yet.
pub(crate) fn ask(address: SocketAddr, head: &str, body: &str) -> Reply {
    let mut stream = open(address);
    write!(stream, "{head}host: localhost\r\nconnection: close\r\n\r\n{body}").unwrap();
    read(&mut stream)
}

pub(crate) fn open(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

fn read(stream: &mut TcpStream) -> Reply {
    let mut bytes = Vec::new();
    // A connection that is reset is closed all the same.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8(bytes).unwrap();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return Reply::default() };
    let mut lines = head.lines();
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|code| code.parse().ok());
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let is_chunked = headers.get("transfer-encoding").is_some_and(|coding| coding == "chunked");
    let (body, is_whole) = if is_chunked { joined(body) } else { (body.to_owned(), true) };
    Reply { status, headers, body, is_whole }
}

/// The chunks of a body, and whether the last one is there.
fn joined(mut rest: &str) -> (String, bool) {
    let mut body = String::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return (body, true);
        }
        let (chunk, after) = after.split_at(size);
        body.push_str(chunk);
        rest = after.strip_prefix("\r\n").unwrap_or_default();
    }
    (body, false)
}
