//! Arguments of `runner questions` and `runner answer`.

use clap::Args;

/// List the agents' questions and your answers
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner questions
  runner questions --open   # only questions without an answer
  runner questions --json | jq -r '.questions[].text'")]
pub(crate) struct QuestionsArgs {
    /// Only open questions (not answered yet)
    #[arg(long)]
    pub(crate) open: bool,
}

/// Answer a question; the next session sees your answer
///
/// Agents never wait for an answer: they continue with an assumption. Commits .runner/state/notes.json.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner questions   # lists the numbers
  runner answer 2 \"Port 8080, as in the old server\"")]
pub(crate) struct AnswerArgs {
    /// Number of the question
    #[arg(value_name = "N")]
    pub(crate) number: usize,
    /// Text of the answer
    #[arg(value_name = "TEXT")]
    pub(crate) text: String,
}
