//! The user's editor, from `$VISUAL` or `$EDITOR`.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// The user's editor command; `vi` only where a terminal can show it.
pub fn editor_command(has_terminal: bool) -> Option<String> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let default = has_terminal.then(|| "vi".to_owned());
    variable("VISUAL").or_else(|| variable("EDITOR")).or(default)
}

/// Opens a file in an editor and waits until it is closed. An editor that fails is an error: its text may be half written.
pub fn edit_file(editor: &str, path: &Path) -> io::Result<()> {
    // The command may hold arguments, as git and crontab allow it.
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{editor} \"$1\""), "editor"]).arg(path);
    let status = command.stdin(Stdio::inherit()).stdout(Stdio::inherit()).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("`{editor}` ended with {status}"))) }
}
