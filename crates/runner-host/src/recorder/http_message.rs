//! HTTP/1.1 between an agent and the recorder: one request per connection, and an answer that is passed on as it arrives.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// The most bytes of a request's head, and of its body.
const HEAD_BYTES_MAX: u64 = 256 << 10;
const BODY_BYTES_MAX: u64 = 256 << 20;

/// Headers that belong to one connection. The recorder's connections have their own.
const HOP_BY_HOP: [&str; 12] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The name and the value of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// In lower case.
    pub(super) name: String,
    pub(super) value: String,
}

/// A request of an agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) method: String,
    /// The path with its query, as the agent sent it.
    pub(super) target: String,
    pub(super) headers: Vec<Header>,
    pub(super) body: Vec<u8>,
}

/// The head of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct AnswerHead {
    pub(super) status: u16,
    pub(super) headers: Vec<Header>,
}

impl Request {
    /// Reads a request; `None` if the connection was closed before one.
    pub(super) fn read(stream: &TcpStream) -> io::Result<Option<Self>> {
        let mut reader = BufReader::new(stream);
        let mut head = (&mut reader).take(HEAD_BYTES_MAX);
        let Some(first) = read_line(&mut head)? else { return Ok(None) };
        let mut words = first.split(' ');
        let (Some(method), Some(target), Some(_)) = (words.next(), words.next(), words.next()) else {
            return Err(invalid("not a request"));
        };
        let (method, target) = (method.to_owned(), target.to_owned());
        let headers = read_headers(&mut head)?;
        let mut request = Self { method, target, headers, body: Vec::new() };
        request.body = request.read_body(stream, reader)?;
        Ok(Some(request))
    }

    fn read_body(&self, mut stream: &TcpStream, mut reader: BufReader<&TcpStream>) -> io::Result<Vec<u8>> {
        if self.header("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue")) {
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        if self.header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
            return read_chunks(&mut reader);
        }
        let bytes = match self.header("content-length") {
            Some(length) => length.parse::<u64>().map_err(|_| invalid("content-length"))?,
            None => 0,
        };
        if bytes > BODY_BYTES_MAX {
            return Err(invalid("the body is too large"));
        }
        let mut body = Vec::new();
        reader.take(bytes).read_to_end(&mut body)?;
        if body.len() as u64 != bytes {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(body)
    }

    /// The value of a header.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|header| header.name == name).map(|header| header.value.as_str())
    }

    /// Whether the agent wants another protocol on this connection, such as a WebSocket.
    pub(super) fn wants_upgrade(&self) -> bool {
        self.header("upgrade").is_some()
    }
}

impl AnswerHead {
    pub(super) fn new(status: u16, content_type: &str) -> Self {
        let header = Header { name: "content-type".to_owned(), value: content_type.to_owned() };
        Self { status, headers: vec![header] }
    }

    /// Reads the head of an answer, after those that only announce it.
    pub(super) fn read(reader: &mut impl BufRead) -> io::Result<Option<Self>> {
        loop {
            let mut head = reader.take(HEAD_BYTES_MAX);
            let Some(first) = read_line(&mut head)? else { return Ok(None) };
            let status = first.split(' ').nth(1).and_then(|status| status.parse::<u16>().ok());
            let status = status.ok_or_else(|| invalid("not an answer"))?;
            let headers = read_headers(&mut head)?;
            if !(100..200).contains(&status) {
                return Ok(Some(Self { status, headers }));
            }
        }
    }

    /// Whether an answer to this method has a body.
    pub(super) fn has_body(&self, method: &str) -> bool {
        method != "HEAD" && self.status != 204 && self.status != 304
    }

    /// Writes the head of an answer whose body comes in pieces.
    pub(super) fn write(&self, stream: &mut impl Write, method: &str) -> io::Result<()> {
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, reason(self.status));
        for Header { name, value } in self.headers.iter().filter(|header| !is_hop_by_hop(&header.name)) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if self.has_body(method) {
            head.push_str("transfer-encoding: chunked\r\n");
        }
        head.push_str("connection: close\r\n\r\n");
        stream.write_all(head.as_bytes())?;
        stream.flush()
    }
}

/// Whether a header belongs to one connection.
pub(super) fn is_hop_by_hop(name: &str) -> bool {
    HOP_BY_HOP.contains(&name)
}

/// Writes a piece of a body; an empty one would end it.
pub(super) fn write_chunk(stream: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
    chunk.extend_from_slice(bytes);
    chunk.extend_from_slice(b"\r\n");
    stream.write_all(&chunk)?;
    stream.flush()
}

/// Ends a body. Without this, the agent sees that it was cut.
pub(super) fn end_chunks(stream: &mut impl Write) -> io::Result<()> {
    stream.write_all(b"0\r\n\r\n")?;
    stream.flush()
}

/// A line without its end; `None` at the end of the stream.
fn read_line(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    if reader.read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.pop() != Some(b'\n') {
        return Err(invalid("the head is too long or was cut"));
    }
    let line = line.strip_suffix(b"\r").unwrap_or(&line);
    Ok(Some(String::from_utf8_lossy(line).into_owned()))
}

fn read_headers(reader: &mut impl BufRead) -> io::Result<Vec<Header>> {
    let mut headers = Vec::new();
    loop {
        let line = read_line(reader)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        if line.is_empty() {
            return Ok(headers);
        }
        let (name, value) = line.split_once(':').ok_or_else(|| invalid("a header without a value"))?;
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty()
            || !name.bytes().all(is_token)
            || value.contains(|c: char| c.is_control() && c != '\t')
        {
            return Err(invalid("a header that is not one"));
        }
        headers.push(Header { name: name.to_ascii_lowercase(), value: value.trim().to_owned() });
    }
}

fn read_chunks(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = read_line(&mut reader.take(HEAD_BYTES_MAX))?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(size, 16).map_err(|_| invalid("the size of a chunk"))?;
        if size == 0 {
            // Headers after the body, and the empty line.
            read_headers(&mut reader.take(HEAD_BYTES_MAX))?;
            return Ok(body);
        }
        if size.saturating_add(body.len() as u64) > BODY_BYTES_MAX {
            return Err(invalid("the body is too large"));
        }
        let read = reader.take(size).read_to_end(&mut body)?;
        let end = read_line(&mut reader.take(2))?;
        if read as u64 != size || end.as_deref() != Some("") {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_owned())
}

/// The words of a status line that clients show in messages.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        426 => "Upgrade Required",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        529 => "Overloaded",
        _ => "Status",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// What the recorder reads from a client that sends these bytes.
    fn read(bytes: &[u8]) -> io::Result<Option<Request>> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (server, _) = listener.accept().unwrap();
        client.write_all(bytes).unwrap();
        client.shutdown(std::net::Shutdown::Write).unwrap();
        Request::read(&server)
    }

    #[test]
    fn bodies_are_read_by_length_and_by_chunks() {
        let by_length = read(b"POST /v1/a?b=c HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabcd").unwrap();
        let request = by_length.unwrap();
        assert_eq!((request.method.as_str(), request.target.as_str()), ("POST", "/v1/a?b=c"));
        assert_eq!((request.body.as_slice(), request.header("host")), (&b"abc"[..], Some("x")));
        let chunked =
            read(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;x=y\r\nc\r\n0\r\nA: b\r\n\r\n");
        assert_eq!(chunked.unwrap().unwrap().body, b"abc");
        assert_eq!(read(b"").unwrap(), None);
    }

    #[test]
    fn requests_that_are_none_are_refused() {
        for bytes in [
            &b"nonsense\r\n\r\n"[..],
            b"GET / HTTP/1.1\r\nno header\r\n\r\n",
            b"GET / HTTP/1.1\r\nA: b\r\n",
            b"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nabc",
            b"POST / HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
            b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        ] {
            assert!(read(bytes).is_err(), "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn an_answer_is_passed_on_without_the_headers_of_its_connection() {
        let bytes = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/2 429 \r\nRetry-After: 1\r\nTransfer-Encoding: chunked\r\n\r\nrest";
        let mut reader = BufReader::new(&bytes[..]);
        let head = AnswerHead::read(&mut reader).unwrap().unwrap();
        assert_eq!(head.status, 429);
        let mut written = Vec::new();
        head.write(&mut written, "POST").unwrap();
        write_chunk(&mut written, b"").unwrap();
        write_chunk(&mut written, b"0123456789abcdef").unwrap();
        end_chunks(&mut written).unwrap();
        let expected = "HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\ntransfer-encoding: chunked\r\n\
             connection: close\r\n\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n";
        assert_eq!(String::from_utf8(written).unwrap(), expected);
        assert!(!AnswerHead { status: 204, headers: Vec::new() }.has_body("GET") && !head.has_body("HEAD"));
    }
}
