//! Sends notifications and traces: on this desktop, and with POST to the addresses of the configuration. Bounded in time, and
//! without effect on the run.
//!
//! `curl` speaks HTTP: it is everywhere, has TLS with the system's certificates and proxies, and runs in a process that is
//! killed when its time is over. An HTTP client of our own would add a TLS library and a certificate store to every
//! binary for a message at the end of a night. Addresses are often secret, so they reach it in a file and not in arguments.

use std::path::Path;
use std::time::Duration;

use runner_core::config::{CommandArgv, NotifyConfig, NotifyEvent, NotifyUrl, is_address};
use runner_core::step::Occasion;
use runner_core::strict::canonical_json;
use runner_core::text::one_line;
use serde_json::Value;
use supervise::{ExitReason, OutputTarget, ProcessSpec, TimeLimits, executables};

use super::hooks::{self, home};
use super::program_runner::ProgramRunner;
use crate::agent::command::PreparedCommand;
use crate::clock;
use crate::fs::atomic;
use crate::paths::RepoPaths;

const OUTPUT_BYTES_MAX: u64 = 16 << 10;
/// How long a program may take beyond its own time limit.
const GRACE: Duration = Duration::from_secs(1);

/// How a notification went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Delivery {
    /// The key of `[notify]`.
    pub(super) to: &'static str,
    pub(super) fault: Option<String>,
}

/// One notification, and what it takes to send it.
pub(super) struct Notifier<'a> {
    pub(super) config: &'a NotifyConfig,
    pub(super) paths: &'a RepoPaths,
    pub(super) programs: &'a ProgramRunner,
}

impl Notifier<'_> {
    /// Tells everyone who is configured, one after the other.
    pub(super) fn send(&self, occasion: &Occasion, event: NotifyEvent) -> Vec<Delivery> {
        let text = MessageText::of(occasion, event, self.paths.root());
        let mut deliveries = Vec::new();
        let mut deliver = |to, result: Result<(), String>| {
            deliveries.push(Delivery { to, fault: result.err() });
        };
        if self.config.desktop {
            deliver("desktop", self.show(&text, event));
        }
        if let Some(url) = &self.config.webhook {
            let mut document = occasion.notification(event);
            if let Value::Object(document) = &mut document {
                document.insert("repository".to_owned(), self.paths.root().display().to_string().into());
                document.insert("text".to_owned(), text.body.clone().into());
            }
            let headers = ["Content-Type: application/json".to_owned()];
            deliver("webhook", self.post(url, &headers, &canonical_json(&document)));
        }
        if let Some(url) = &self.config.ntfy {
            let priority = if event == NotifyEvent::Waiting { "default" } else { "high" };
            let headers = [
                "Content-Type: text/plain; charset=utf-8".to_owned(),
                format!("Title: {}", text.title),
                format!("Priority: {priority}"),
            ];
            deliver("ntfy", self.post(url, &headers, text.body.as_bytes()));
        }
        deliveries
    }

    /// Shows a notification on the desktop of this session.
    fn show(&self, text: &MessageText, event: NotifyEvent) -> Result<(), String> {
        let root = self.paths.root();
        let words = desktop_words(text, event, |program| executables::find(program, Some(root)).is_some())
            .ok_or("neither notify-send nor osascript is on PATH")?;
        self.run(words, None)
    }

    fn post(&self, url: &NotifyUrl, headers: &[String], body: &[u8]) -> Result<(), String> {
        self.program().post(&address(url)?, headers, body)
    }

    fn run(&self, words: Vec<String>, input: Option<&Path>) -> Result<(), String> {
        self.program().run(words, input)
    }

    fn program(&self) -> NotifyProgram<'_> {
        NotifyProgram {
            timeout_secs: self.config.timeout_secs.as_u64(),
            paths: self.paths,
            programs: self.programs,
        }
    }
}

/// Sends a trace to the collector at this address.
pub(super) fn send_trace(
    program: &NotifyProgram<'_>,
    endpoint: &NotifyUrl,
    trace: &Value,
) -> Result<(), String> {
    let url = format!("{}/v1/traces", address(endpoint)?.trim_end_matches('/'));
    let mut headers = vec!["Content-Type: application/json".to_owned()];
    let more = std::env::var("OTEL_EXPORTER_OTLP_HEADERS").unwrap_or_default();
    let pairs = more.split(',').filter_map(|pair| pair.split_once('='));
    headers.extend(pairs.map(|(name, value)| one_line(&format!("{}: {}", name.trim(), value.trim()))));
    program.post(&url, &headers, &canonical_json(trace))
}

/// How a program that delivers something runs: for a short time, outside of the repository.
pub(super) struct NotifyProgram<'a> {
    pub(super) timeout_secs: u64,
    pub(super) paths: &'a RepoPaths,
    pub(super) programs: &'a ProgramRunner,
}

impl NotifyProgram<'_> {
    fn post(&self, url: &str, headers: &[String], body: &[u8]) -> Result<(), String> {
        let (request, body_file) = (self.paths.notify_request(), self.paths.notify_body());
        let write =
            |file: &Path, bytes: &[u8]| atomic::write_private(file, bytes).map_err(|error| error.to_string());
        write(&body_file, body)?;
        let config = curl_config(url, headers, &body_file, self.timeout_secs);
        write(&request, config.as_bytes())?;
        let words = ["curl", "--disable", "--config", "-"].map(str::to_owned).to_vec();
        let sent = self.run(words, Some(&request));
        let _ = atomic::remove_any(&request).and_then(|()| atomic::remove_any(&body_file));
        sent
    }

    fn run(&self, words: Vec<String>, input: Option<&Path>) -> Result<(), String> {
        let argv = CommandArgv::new(words).ok_or("there is no program to run")?;
        let PreparedCommand { argv, environment, .. } = hooks::program(&argv, self.paths.root())?;
        let wall = Duration::from_secs(self.timeout_secs).saturating_add(GRACE);
        let output = OutputTarget::combined(self.paths.notify_log(), OUTPUT_BYTES_MAX);
        let mut spec =
            ProcessSpec::new(argv, home(), output).env(environment).time_limits(TimeLimits::wall(wall));
        if let Some(input) = input {
            spec = spec.stdin_file(input.to_owned());
        }
        // A user who stops the run still wants the message.
        let result = self.programs.run_uncancelled(spec).map_err(|error| error.to_string())?;
        if result.exit.is_success() {
            return Ok(());
        }
        if matches!(result.exit, ExitReason::TimedOut) {
            return Err(format!("it took longer than {} seconds", self.timeout_secs));
        }
        let printed = atomic::read(&self.paths.notify_log(), OUTPUT_BYTES_MAX).ok().flatten();
        let printed = String::from_utf8_lossy(&printed.unwrap_or_default()).into_owned();
        match printed.lines().rfind(|line| !line.trim().is_empty()) {
            Some(line) => Err(line.trim().to_owned()),
            None => Err(format!("it {}", result.exit)),
        }
    }
}

/// The address, which may be in the environment.
fn address(url: &NotifyUrl) -> Result<String, String> {
    let Some(variable) = url.variable() else { return Ok(url.as_str().to_owned()) };
    match std::env::var(variable) {
        Ok(url) if is_address(&url) => Ok(url),
        Ok(_) => Err(format!("{variable} holds no address with http:// or https://")),
        Err(_) => Err(format!("{variable} is not set")),
    }
}

/// The arguments of curl, as its configuration file has them.
fn curl_config(url: &str, headers: &[String], body: &Path, secs: u64) -> String {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let mut config = format!("url = \"{}\"\nmax-time = {secs}\n", quoted(url));
    config.push_str("proto = \"=http,https\"\nsilent\nshow-error\nfail\noutput = \"/dev/null\"\n");
    for header in headers {
        config.push_str(&format!("header = \"{}\"\n", quoted(header)));
    }
    config + &format!("data-binary = \"@{}\"\n", quoted(&body.display().to_string()))
}

/// The command that shows a notification, if there is one. Texts are arguments, so that nothing in them is run.
fn desktop_words(
    text: &MessageText,
    event: NotifyEvent,
    is_there: impl Fn(&str) -> bool,
) -> Option<Vec<String>> {
    let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect());
    if is_there("notify-send") {
        let urgency = if event == NotifyEvent::Waiting { "--urgency=normal" } else { "--urgency=critical" };
        // The body is markup, with escape sequences as in C.
        let body =
            text.body.replace('\\', "\\\\").replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        return words(&["notify-send", "--app-name=runner", urgency, "--", &text.title, &body]);
    }
    if is_there("osascript") {
        let show = "display notification (item 2 of argv) with title (item 1 of argv)";
        let script = ["-e", "on run argv", "-e", show, "-e", "end run"];
        return words(&[&["osascript"], &script[..], &[&text.title, &text.body]].concat());
    }
    None
}

/// A notification as text.
#[derive(Clone, Debug, PartialEq, Eq)]
struct MessageText {
    /// One line of ASCII, because it becomes a header.
    title: String,
    /// Why, where, and what to type next.
    body: String,
}

impl MessageText {
    fn of(occasion: &Occasion, event: NotifyEvent, root: &Path) -> Self {
        let run = occasion.run_id.as_ref().map(|run| format!(" {run}")).unwrap_or_default();
        let mut body = occasion.why.clone();
        if let Some(until) = occasion.until_unix_ms.and_then(clock::local) {
            body.push_str(&format!(", until {until}"));
        }
        body.push_str(&format!("\n{}\n", root.display()));
        for next in &occasion.next {
            body.push_str(&format!("\n{}  # {}", next.command, next.what));
        }
        Self { title: format!("runner{run}: {}", event.as_str()), body }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_core::step::{Event, HookTrigger, StopReason};

    fn stop_text() -> MessageText {
        let event = Event::Stopped { stop: StopReason::UserStop, exit_code: 130 };
        let occasion = HookTrigger::default().note(&event).unwrap();
        MessageText::of(&occasion, NotifyEvent::Stopped, Path::new("/home/me/<p>"))
    }

    #[test]
    fn a_message_says_why_where_and_what_to_type() {
        let text = stop_text();
        assert_eq!(text.title, "runner: stopped");
        assert_eq!(text.body, "requested by the user\n/home/me/<p>\n\nrunner loop  # continue");
    }

    #[test]
    fn texts_reach_the_desktop_as_arguments() {
        let text = stop_text();
        let words = desktop_words(&text, NotifyEvent::Stopped, |program| program == "notify-send").unwrap();
        assert_eq!(words.get(3).map(String::as_str), Some("--"));
        assert!(words.last().unwrap().contains("/home/me/&lt;p&gt;"), "{words:?}");
        let words = desktop_words(&text, NotifyEvent::Stopped, |program| program == "osascript").unwrap();
        assert!(words.last().unwrap().contains("/home/me/<p>"), "{words:?}");
        assert_eq!(desktop_words(&text, NotifyEvent::Stopped, |_| false), None);
    }

    #[test]
    fn backslashes_reach_the_desktop_as_they_are() {
        let text = MessageText { title: "t".to_owned(), body: r"\d+ or C:\new".to_owned() };
        let body = |shown_by: &str| {
            let words = desktop_words(&text, NotifyEvent::Waiting, |program| program == shown_by);
            words.unwrap().last().cloned().unwrap()
        };
        assert_eq!(body("notify-send"), r"\\d+ or C:\\new", "notify-send reads escape sequences");
        assert_eq!(body("osascript"), r"\d+ or C:\new");
    }

    #[test]
    fn nothing_in_a_request_ends_its_line() {
        let config = curl_config("http://h/a", &["Title: a\"b\\".to_owned()], Path::new("/a \"b"), 5);
        assert!(config.contains("header = \"Title: a\\\"b\\\\\"\n"), "{config}");
        assert!(config.ends_with("data-binary = \"@/a \\\"b\"\n"), "{config}");
    }
}
