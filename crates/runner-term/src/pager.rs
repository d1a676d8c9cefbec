//! The user's pager for output longer than a screen, chosen by git's rules.

use std::io::Write;
use std::process::{Command, Stdio};

/// The exit code of a shell that does not find the program.
const COMMAND_NOT_FOUND: i32 = 127;

/// Shows text in the pager. Returns false if there is none; the caller then prints the text itself.
pub fn show(text: &str) -> bool {
    let variable = |name: &str| std::env::var(name).ok();
    let command = variable("RUNNER_PAGER").or_else(|| variable("PAGER")).unwrap_or_else(|| "less".to_owned());
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
        // EPIPE: the user quit the pager.
        let _ = stdin.write_all(text.as_bytes());
    }
    !child.wait().is_ok_and(|status| status.code() == Some(COMMAND_NOT_FOUND))
}
