//! Arguments of `runner config`.

use clap::{Args, Subcommand};

/// Show or change the configuration
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner config show                            # every key with its value
  runner config show guard.command              # what it means and allows
  runner config set guard.command npm test
  runner config set executor.kind=command executor.preset=gemini")]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    Show(ConfigShowArgs),
    Get(ConfigGetArgs),
    Set(ConfigSetArgs),
    Schema(ConfigSchemaArgs),
}

/// Show every key with its value, default and source
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner config show
  runner config show -v            # with the meaning of each key
  runner config show budget.run_usd")]
pub(crate) struct ConfigShowArgs {
    /// Show only this key, or the keys of this table
    #[arg(value_name = "KEY")]
    pub(crate) key: Option<String>,
}

/// Print the value of one key
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner config get guard.command
  runner config get max_iterations --json")]
pub(crate) struct ConfigGetArgs {
    /// The key, with its table: guard.command
    #[arg(value_name = "KEY")]
    pub(crate) key: String,
}

/// Set keys in config.toml, keeping comments and order
///
/// An empty value removes the key, which then has its default. The new file is checked before it is written. The change
/// takes effect with the next `runner start`, which commits it.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner config set max_iterations 50
  runner config set guard.command npm test
  runner config set guard.protected '[\"ci.sh\"]'
  runner config set executor.kind=command executor.preset=gemini
  runner config set executor.kind=codex executor.preset=   # removes the preset")]
pub(crate) struct ConfigSetArgs {
    /// A key and its value, or any number of KEY=VALUE
    #[arg(value_name = "KEY VALUE", required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<String>,
}

/// Print the JSON Schema of config.toml
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner config schema > config.schema.json")]
pub(crate) struct ConfigSchemaArgs {}
