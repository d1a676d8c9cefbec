//! Arguments of `runner note`.

use clap::Args;

/// Leave a note for all later sessions
///
/// Appends it to .runner/state/notes.json, which is part of every prompt and which no agent can change, and commits it.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner note \"The database is read-only here: use the copy in testdata/\"")]
pub(crate) struct NoteArgs {
    /// Text of the note
    #[arg(value_name = "TEXT")]
    pub(crate) text: String,
}
