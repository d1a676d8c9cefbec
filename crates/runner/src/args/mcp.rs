//! Arguments of `runner mcp`.

use clap::Args;

/// Serve this repository's runs to MCP clients
///
/// Speaks the Model Context Protocol on standard input and output. The tools are commands of this program: status, tree, log, show, report,
/// questions, checks and verify. Nothing can be changed unless you allow it.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  claude mcp add runner -- runner -C /path/to/repository mcp
  codex mcp add runner -- runner -C /path/to/repository mcp
  runner mcp --allow-edits   # also notes, answers and changes of the plan")]
pub(crate) struct McpArgs {
    /// Also offer note, answer and the commands of 'runner node'
    #[arg(long)]
    pub(crate) allow_edits: bool,
}
