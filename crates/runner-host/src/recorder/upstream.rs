//! The way from the recorder to the provider. `curl` speaks HTTP there, as it does for notifications: it has TLS with the system's
//! certificates and proxies, and an HTTP client of our own would add a TLS library to every binary. Headers reach it on
//! standard input and the body in a private file, because other users can read a command line.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use supervise::parent_death;

use super::http_message::{AnswerHead, Request, is_hop_by_hop};

/// Headers that curl would add by itself.
const OF_CURL: [&str; 3] = ["accept", "content-type", "user-agent"];
/// How much of curl's message about a failure is kept.
const MESSAGE_BYTES_MAX: u64 = 4 << 10;

/// The program that speaks HTTP, and a folder for the bodies that it sends.
#[derive(Clone, Debug)]
pub(super) struct Upstream {
    pub(super) curl: PathBuf,
    pub(super) folder: PathBuf,
}

/// A running request, which others may end.
pub(super) type RunningRequest = Arc<Mutex<Child>>;

/// A request that was sent.
pub(super) struct SentRequest {
    child: RunningRequest,
    pub(super) output: BufReader<ChildStdout>,
    errors: ChildStderr,
    body: PathBuf,
}

impl Upstream {
    /// Sends a request. `number` names its file.
    pub(super) fn send(&self, request: &Request, url: &str, number: u64) -> io::Result<SentRequest> {
        let body = self.folder.join(format!("request-{number}"));
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&body)?;
        file.write_all(&request.body)?;
        let mut command = parent_death::command(&self.curl);
        command.args(["--disable", "--config", "-"]).current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ctrl-C is for the runner, which ends the session gracefully.
        command.process_group(0);
        let mut child = command.spawn()?;
        let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut input), Some(output), Some(errors)) = (input, output, errors) else {
            return Err(io::Error::other("a program without pipes"));
        };
        let child = Arc::new(Mutex::new(child));
        let sent = SentRequest { child, output: BufReader::new(output), errors, body: body.clone() };
        // A curl that ended at once has said why.
        let _ = input.write_all(config(request, url, &body).as_bytes());
        Ok(sent)
    }
}

impl SentRequest {
    pub(super) fn running(&self) -> RunningRequest {
        Arc::clone(&self.child)
    }

    /// Waits for the end; `Err` has why the answer is not whole.
    pub(super) fn finish(mut self) -> Result<(), String> {
        let mut message = String::new();
        let _ = (&mut self.errors).take(MESSAGE_BYTES_MAX).read_to_string(&mut message);
        let status = self.child.lock().unwrap_or_else(PoisonError::into_inner).wait();
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) if message.trim().is_empty() => Err(format!("curl ended with {status}")),
            Ok(_) => Err(message.trim().to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }
}

impl Drop for SentRequest {
    fn drop(&mut self) {
        end(&self.child);
        let _ = fs::remove_file(&self.body);
    }
}

/// Ends a request, if it has not ended.
pub(super) fn end(request: &RunningRequest) {
    let mut child = request.lock().unwrap_or_else(PoisonError::into_inner);
    let _ = child.kill();
    let _ = child.wait();
}

/// The arguments of curl, as its configuration file has them.
fn config(request: &Request, url: &str, body: &Path) -> String {
    let mut config = String::new();
    let mut option = |name: &str, value: &str| {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"");
        config.push_str(&format!("{name} = \"{value}\"\n"));
    };
    option("url", url);
    option("proto", "=http,https");
    for header in request.headers.iter().filter(|header| is_forwarded(&header.name)) {
        // Without a value, curl would leave the header out.
        let separator = if header.value.is_empty() { ";" } else { ": " };
        option("header", &format!("{}{separator}{}", header.name, header.value));
    }
    for name in OF_CURL.into_iter().filter(|name| request.header(name).is_none()).chain(["expect"]) {
        option("header", &format!("{name}:"));
    }
    match request.method.as_str() {
        "HEAD" => config.push_str("head\n"),
        method => {
            option("request", method);
            let has_body = !request.body.is_empty() || !matches!(method, "GET" | "DELETE" | "OPTIONS");
            if has_body {
                option("data-binary", &format!("@{}", body.display()));
            }
            config.push_str("include\n");
        }
    }
    config + "no-buffer\nsilent\nshow-error\ngloboff\npath-as-is\nsuppress-connect-headers\n"
}

/// Whether a header is passed on. Without `accept-encoding`, answers come as text.
fn is_forwarded(name: &str) -> bool {
    !is_hop_by_hop(name) && name != "accept-encoding"
}

/// Reads the head of the answer; `None` if there is none.
pub(super) fn read_head(sent: &mut SentRequest) -> Option<AnswerHead> {
    AnswerHead::read(&mut sent.output).ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::super::http_message::Header;
    use super::*;

    fn header(name: &str, value: &str) -> Header {
        Header { name: name.to_owned(), value: value.to_owned() }
    }

    #[test]
    fn nothing_in_a_request_ends_its_line() {
        let request = Request {
            method: "POST".to_owned(),
            target: "/v1/a".to_owned(),
            headers: vec![
                header("authorization", "Bearer a\"b\\"),
                header("accept-encoding", "zstd"),
                header("connection", "keep-alive"),
                header("x-empty", ""),
            ],
            body: b"{}".to_vec(),
        };
        let config = config(&request, "http://h/v1/a?b=\"c", Path::new("/a \"b"));
        assert!(config.starts_with("url = \"http://h/v1/a?b=\\\"c\"\n"), "{config}");
        assert!(
            config.contains("header = \"authorization: Bearer a\\\"b\\\\\"\nheader = \"x-empty;\"\n"),
            "{config}"
        );
        assert!(config.contains("data-binary = \"@/a \\\"b\"\n"), "{config}");
        assert!(!config.contains("zstd") && !config.contains("keep-alive"), "{config}");
        assert!(config.contains("header = \"user-agent:\"\n"), "curl's own is not sent: {config}");
    }

    #[test]
    fn requests_without_a_body_send_none() {
        let request = |method: &str| Request { method: method.to_owned(), ..Request::default() };
        assert!(!config(&request("GET"), "http://h/", Path::new("/b")).contains("data-binary"));
        let head = config(&request("HEAD"), "http://h/", Path::new("/b"));
        assert!(head.contains("head\n") && !head.contains("data-binary"), "{head}");
    }
}
