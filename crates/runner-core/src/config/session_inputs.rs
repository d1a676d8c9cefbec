//! What enters a session besides the prompt, by choice: the network and MCP servers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Executor, ExecutorKind, SandboxMode};

/// What the commands of an agent may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum NetworkAccess {
    /// No address but those of this machine's own sandbox.
    None,
    /// Everything, for package managers only, as the prompt says. The agent's web tools are off.
    Registries,
    Full,
}

impl NetworkAccess {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Registries => "registries",
            Self::Full => "full",
        }
    }

    /// Whether package managers can install something, and may write to their caches for it.
    pub fn can_install(self) -> bool {
        matches!(self, Self::Registries | Self::Full)
    }
}

impl Executor {
    /// What the agent's commands can reach. Without a setting it is the agent's own default: Codex's sandbox has no network.
    pub fn effective_network(&self) -> NetworkAccess {
        let is_closed = self.kind == ExecutorKind::Codex && self.sandbox != SandboxMode::Off;
        self.network.unwrap_or(if is_closed { NetworkAccess::None } else { NetworkAccess::Full })
    }

    /// What that means for the agent's commands.
    pub fn network_note(&self) -> &'static str {
        let can_install = self.sandbox == SandboxMode::Off || self.network.is_some();
        match self.effective_network() {
            NetworkAccess::None => "none: commands can download nothing",
            NetworkAccess::Registries => {
                "registries: package managers can install; the agent is told to use it for nothing else"
            }
            NetworkAccess::Full if can_install => "full: package managers can install",
            NetworkAccess::Full => "full, but caches of package managers are read-only",
        }
    }
}

/// An entry of `mcp`: `NAME=PROGRAM ARGUMENT…`, or `NAME=URL`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpServer<'e> {
    pub name: &'e str,
    pub transport: McpTransport<'e>,
}

/// How to reach an MCP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum McpTransport<'e> {
    /// A program that speaks the protocol on standard input and output.
    Program {
        program: &'e str,
        arguments: Vec<&'e str>,
    },
    Url(&'e str),
}

impl<'e> McpServer<'e> {
    /// The server of an entry; none if the entry has another form.
    pub fn parse(entry: &'e str) -> Option<Self> {
        let (name, rest) = entry.split_once('=')?;
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        if name.is_empty() || !name.bytes().all(is_part) {
            return None;
        }
        if rest.starts_with("http://") || rest.starts_with("https://") {
            return Some(Self { name, transport: McpTransport::Url(rest) });
        }
        let mut words = rest.split_whitespace();
        let program = words.next()?;
        Some(Self { name, transport: McpTransport::Program { program, arguments: words.collect() } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_names_a_program_or_a_url() {
        let program = McpTransport::Program { program: "docs-server", arguments: vec!["--stdio", "-v"] };
        assert_eq!(
            McpServer::parse("docs=docs-server --stdio  -v"),
            Some(McpServer { name: "docs", transport: program })
        );
        assert_eq!(
            McpServer::parse("db=http://127.0.0.1:9/mcp?a=b"),
            Some(McpServer { name: "db", transport: McpTransport::Url("http://127.0.0.1:9/mcp?a=b") })
        );
        for bad in ["docs", "=x", "a b=x", "a.b=x", "docs=", "docs= "] {
            assert_eq!(McpServer::parse(bad), None, "{bad}");
        }
    }
}
