//! Starts a server on a test repository and sends it requests over raw sockets.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use testkit::run_builder::{RUN, RunBuilder};
use testkit::test_repo::TestRepo;

/// The `runner` binary. It belongs to another crate, so it only exists if it was built before.
pub(crate) fn runner() -> String {
    let path = Path::new(env!("CARGO_BIN_EXE_runner-ui")).with_file_name("runner");
    assert!(path.is_file(), "`{}` is not built: cargo build -p runner", path.display());
    path.display().to_string()
}

/// A run with two tasks: the guard fails once, then both pass.
pub(crate) fn finished_run() -> TestRepo {
    let sandbox = RunBuilder::new(&runner())
        .agent(
            "case $RUNNER_ITER in\n\
             0001) split ;;\n\
             0002) echo 'thinking <b>hard</b>'; echo bad > a; answer done 'a is there' ;;\n\
             0003) echo good > a; answer done 'a is good now' ;;\n\
             *) echo b > b; answer done 'b too' ;;\nesac",
        )
        .guard("echo checking; grep -q bad a 2>/dev/null && { echo 'error: a is bad'; exit 1; }; exit 0")
        .start();
    let ran = sandbox.runner(&["loop"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    sandbox
}

/// A running server; dropping it kills the process.
pub(crate) struct Server {
    child: Child,
    pub(crate) port: u16,
    pub(crate) url: String,
    /// A line of a request's head; empty unless [`Self::authorized`].
    authorization: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Debug)]
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl HttpResponse {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head
            .lines()
            .filter_map(|line| line.split_once(": "))
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value)
    }

    /// The JSON body of a successful response.
    pub(crate) fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{} {}", self.head, self.text());
        self.json()
    }
}

impl Server {
    pub(crate) fn on(root: &Path) -> Self {
        Self::with(root, &[])
    }

    pub(crate) fn with(root: &Path, args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_runner-ui"));
        command.args(["--port", "0", "--project-dir"]).arg(root).args(args);
        Self::start(command, root)
    }

    /// A server that another program, such as `strace`, starts.
    pub(crate) fn under(program: &str, args: &[String], root: &Path) -> Self {
        let mut command = Command::new(program);
        command.args(args).arg(env!("CARGO_BIN_EXE_runner-ui"));
        command.args(["--port", "0", "--project-dir"]).arg(root);
        Self::start(command, root)
    }

    fn start(mut command: Command, root: &Path) -> Self {
        command.env("HOME", root).env("GIT_CONFIG_NOSYSTEM", "1").stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the server starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line
            .split_whitespace()
            .find_map(|word| word.strip_prefix("url="))
            .unwrap_or_else(|| panic!("{line}"));
        let port = url.rsplit(':').next().unwrap().split('/').next().unwrap().parse().unwrap();
        Self { child, port, url: url.to_owned(), authorization: String::new() }
    }

    /// Sends the token of its address with every request.
    pub(crate) fn authorized(mut self) -> Self {
        let token = self.url.split("?token=").nth(1).expect("a token in the address");
        self.authorization = format!("Authorization: Bearer {token}\r\n");
        self
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
        stream
    }

    /// Sends these bytes and reads the response to its end.
    pub(crate) fn raw(&self, request: &str) -> HttpResponse {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        let _ = stream.read_to_end(&mut bytes);
        let end = bytes.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap_or(bytes.len());
        let head = String::from_utf8_lossy(&bytes[..end]).replace("\r\n", "\n");
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or_default();
        let body = bytes.get(end + 4..).unwrap_or_default().to_vec();
        let body = if head.contains("transfer-encoding: chunked") { unchunked(&body) } else { body };
        HttpResponse { status, head, body }
    }

    pub(crate) fn request(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> HttpResponse {
        let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        if headers.iter().all(|(name, _)| *name != "Host") {
            request.push_str(&format!("Host: 127.0.0.1:{}\r\n", self.port));
        }
        request.push_str(&self.authorization);
        headers.iter().for_each(|(name, value)| request.push_str(&format!("{name}: {value}\r\n")));
        self.raw(&(request + "\r\n"))
    }

    pub(crate) fn get(&self, path: &str) -> HttpResponse {
        self.request("GET", path, &[])
    }

    /// Requests a part of an iteration of the run that [`RunBuilder`] starts.
    pub(crate) fn iteration(&self, iter: u32, rest: &str) -> HttpResponse {
        self.get(&format!("/api/iterations/{RUN}/{iter:04}{rest}"))
    }

    /// The event stream, after the head of the response.
    pub(crate) fn listen(&self, headers: &[(&str, &str)]) -> BufReader<TcpStream> {
        self.listen_at("/events", headers)
    }

    pub(crate) fn listen_at(&self, path: &str, headers: &[(&str, &str)]) -> BufReader<TcpStream> {
        let mut stream = self.connect();
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let authorization = &self.authorization;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n{authorization}{headers}\r\n").unwrap();
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            assert_ne!(reader.read_line(&mut line).expect("a head"), 0, "the stream ended in its head");
        }
        reader
    }
}

/// The content of a chunked body.
fn unchunked(body: &[u8]) -> Vec<u8> {
    let mut rest = body;
    let mut content = Vec::new();
    while let Some(end) = rest.windows(2).position(|bytes| bytes == b"\r\n") {
        let size = usize::from_str_radix(&String::from_utf8_lossy(&rest[..end]), 16).unwrap_or_default();
        if size == 0 || rest.len() < end + 2 + size {
            break;
        }
        content.extend(&rest[end + 2..end + 2 + size]);
        rest = rest.get(end + 2 + size + 2..).unwrap_or_default();
    }
    content
}

/// Reads the stream up to the next event of this name. Returns its data and its id.
pub(crate) fn next_event(stream: &mut BufReader<TcpStream>, name: &str) -> (Value, String) {
    let mut id = String::new();
    let mut event = String::new();
    let mut line = String::new();
    loop {
        line.clear();
        assert_ne!(stream.read_line(&mut line).expect("an event in time"), 0, "the stream ended");
        let text = line.trim_end();
        if let Some(text) = text.strip_prefix("id: ") {
            id = text.to_owned();
        } else if let Some(text) = text.strip_prefix("event: ") {
            event = text.to_owned();
        } else if let Some(data) = text.strip_prefix("data: ")
            && event == name
        {
            return (serde_json::from_str(data).unwrap(), id);
        }
    }
}

/// Every address of a repository, with the parameters of [`finished_run`].
pub(crate) fn addresses() -> Vec<String> {
    let address = |route: &&str| {
        let address = route.replace("{node}", "a").replace("{run}", RUN).replace("{iter}", "0002");
        let address = address.replace("{log}", "guard").replace("{file}", "guard.log");
        let query = match *route {
            route if route.ends_with("/search") => "?q=a",
            route if route.ends_with("/diff/file") || route.ends_with("/diff/image") => "?path=a",
            _ => "",
        };
        address + query
    };
    runner_ui::ROUTES.iter().map(address).collect()
}

/// Every file below a folder with its content and modification time.
pub(crate) fn all_files(folder: &Path) -> Vec<(PathBuf, Vec<u8>, std::time::SystemTime)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let metadata = entry.metadata().unwrap();
        if metadata.is_dir() {
            files.extend(all_files(&entry.path()));
        } else if metadata.is_file() {
            files.push((entry.path(), fs::read(entry.path()).unwrap(), metadata.modified().unwrap()));
        }
    }
    files.sort();
    files
}
