//! A pager for what is longer than a screen: the user's own, by git's rules.

use std::io::Write;
use std::process::{Command, Stdio};

/// Shows text through the pager; false where there is none, and the caller prints it.
pub fn show(text: &str) -> bool {
    let set = |name: &str| std::env::var(name).ok();
    let command = set("RUNNER_PAGER").or_else(|| set("PAGER")).unwrap_or_else(|| "less".to_owned());
    if command.trim().is_empty() || command.trim() == "cat" {
        return false;
    }
    let mut pager = Command::new("sh");
    pager.args(["-c", &command]).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        pager.env("LESS", "FRX");
    }
    let Ok(mut child) = pager.spawn() else { return false };
    if let Some(mut stdin) = child.stdin.take() {
        // Who has seen enough leaves; that is no error.
        let _ = stdin.write_all(text.as_bytes());
    }
    // A shell that finds no such program says so with this code.
    !child.wait().is_ok_and(|status| status.code() == Some(127))
}
