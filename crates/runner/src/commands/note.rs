//! `runner note`

use std::path::Path;

use runner_core::runs::edit::{UserEdit, clean_text};
use runner_term::CommandError;

use super::questions::{MemoryEditOutput, commit_memory_edit};
use crate::args::NoteArgs;

pub(crate) fn run(dir: &Path, args: &NoteArgs) -> Result<MemoryEditOutput, CommandError> {
    let edit = UserEdit::Note { text: clean_text(&args.text) };
    commit_memory_edit(dir, "could not record the note", edit)
}
