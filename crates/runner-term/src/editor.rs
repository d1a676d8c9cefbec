//! The user's editor, from `$VISUAL` or `$EDITOR`.

use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

/// Opens a file in the editor and waits until it is closed. An editor that fails is an error: its text may be half written.
pub fn edit_file(path: &Path) -> io::Result<()> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let editor = variable("VISUAL").or_else(|| variable("EDITOR")).unwrap_or_else(|| "vi".to_owned());
    // The variable may hold arguments, as git and crontab allow it.
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{editor} \"$1\""), "editor"]).arg(path);
    let status = command.stdin(Stdio::inherit()).stdout(Stdio::inherit()).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("`{editor}` ended with {status}"))) }
}
