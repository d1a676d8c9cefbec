//! An HTTP client that reports what is on the wire: status, headers, every event, and whether the body is complete.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Reply {
    /// None if the server closed the connection without a response.
    pub(crate) status: Option<u16>,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
    pub(crate) is_complete: bool,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The events of a stream: name and data (parsed if it is JSON).
    pub(crate) fn events(&self) -> Vec<(String, Value)> {
        assert_eq!(self.headers["content-type"], "text/event-stream", "{}", self.body);
        let parse_event = |block: &str| {
            let field = |name: &str| {
                block.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().to_owned()
            };
            let data = field("data: ");
            (field("event: "), serde_json::from_str(&data).unwrap_or(Value::String(data)))
        };
        self.body.split_terminator("\n\n").map(parse_event).collect()
    }

    pub(crate) fn event_names(&self) -> Vec<String> {
        self.events().into_iter().map(|(name, _)| name).collect()
    }
}

pub(crate) fn post(address: SocketAddr, path: &str, body: &Value) -> Reply {
    let body = body.to_string();
    let head = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
    send(address, &format!("POST {path} HTTP/1.1\r\n{head}"), &body)
}

/// Sends a request; `head` lacks the `host` header and the final empty line.
pub(crate) fn send(address: SocketAddr, head: &str, body: &str) -> Reply {
    let mut stream = connect(address);
    write!(stream, "{head}host: localhost\r\nconnection: close\r\n\r\n{body}").unwrap();
    read_reply(&mut stream)
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

fn read_reply(stream: &mut TcpStream) -> Reply {
    let mut bytes = Vec::new();
    // A reset connection counts as closed.
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
    let (body, is_complete) = if is_chunked { join_chunks(body) } else { (body.to_owned(), true) };
    Reply { status, headers, body, is_complete }
}

/// The content of a chunked body, and whether the final chunk arrived.
fn join_chunks(mut rest: &str) -> (String, bool) {
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
