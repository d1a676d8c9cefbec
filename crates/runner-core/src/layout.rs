//! The files under `.runner/`: their names, and what they hold when they are new.

use crate::config::Config;
use crate::model::goal::TEMPLATE;
use crate::model::id::NodeId;
use crate::model::run_state::RunState;
use crate::schema::SchemaDocument;

/// The runner's folder in a repository.
pub const RUNNER_DIR: &str = ".runner";

/// A committed file under `.runner/` that the runner knows by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doc {
    Gitignore,
    Goal,
    Tree,
    TreeSchema,
    OutputSchema,
    ToolsSchema,
    Config,
    RunState,
    Assumptions,
    Questions,
    Feedback,
    Improvements,
}

impl Doc {
    /// All of them, in the order in which they are listed and written.
    pub const ALL: [Self; 12] = [
        Self::Gitignore,
        Self::Goal,
        Self::Tree,
        Self::TreeSchema,
        Self::OutputSchema,
        Self::ToolsSchema,
        Self::Config,
        Self::RunState,
        Self::Assumptions,
        Self::Questions,
        Self::Feedback,
        Self::Improvements,
    ];

    /// The file's path from the repository's root.
    pub fn path(self) -> &'static str {
        match self {
            Self::Gitignore => ".runner/.gitignore",
            Self::Goal => ".runner/GOAL.md",
            Self::Tree => ".runner/state/tree.json",
            Self::TreeSchema => ".runner/state/schema.json",
            Self::OutputSchema => ".runner/state/agent_output.schema.json",
            Self::ToolsSchema => ".runner/state/tools.schema.json",
            Self::Config => ".runner/state/config.toml",
            Self::RunState => ".runner/state/run_state.json",
            Self::Assumptions => ".runner/state/assumptions.md",
            Self::Questions => ".runner/state/questions.md",
            Self::Feedback => ".runner/state/feedback.md",
            Self::Improvements => ".runner/state/improvements.md",
        }
    }

    /// The document at a path from the repository's root.
    pub fn at(path: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|doc| doc.path().as_bytes() == path)
    }

    /// Who may change it.
    pub fn owner(self) -> DocOwner {
        match self {
            Self::Goal | Self::Config | Self::Gitignore => DocOwner::User,
            Self::Tree | Self::TreeSchema | Self::OutputSchema | Self::ToolsSchema | Self::RunState => {
                DocOwner::Runner
            }
            Self::Assumptions | Self::Questions | Self::Feedback | Self::Improvements => DocOwner::Memory,
        }
    }

    /// Whether an agent may write it.
    pub fn is_for_agents(self) -> bool {
        self == Self::Tree || self.owner() == DocOwner::Memory
    }

    /// What the file holds when it is new.
    pub fn scaffold(self) -> Vec<u8> {
        match self {
            Self::Gitignore => complete_gitignore(b""),
            Self::Goal => TEMPLATE.into(),
            Self::Tree => crate::runs::start::unseeded_tree().bytes().to_vec(),
            Self::TreeSchema => SchemaDocument::Tree.schema_bytes(),
            Self::OutputSchema => SchemaDocument::AgentOutput.schema_bytes(),
            Self::ToolsSchema => SchemaDocument::Tools.schema_bytes(),
            Self::Config => Config::documented_file().into(),
            Self::RunState => RunState::new(None).to_bytes(),
            Self::Assumptions => memory("Assumptions", "what agents took for granted in order to go on"),
            Self::Questions => memory("Questions", "what agents would have asked a person"),
            Self::Feedback => memory("Feedback", "mistakes made and what was learned from them"),
            Self::Improvements => memory("Improvements", "what would have made the work easier"),
        }
    }
}

/// The folder with the folders of nodes.
pub const NODES_DIR: &str = ".runner/nodes";

/// A node's folder of sidecars.
pub fn node_folder(node: &NodeId) -> String {
    format!("{NODES_DIR}/{node}")
}

/// The file that says what an agent may use on a node.
pub fn tools_path(node: &NodeId) -> String {
    format!("{}/{TOOLS_FILE}", node_folder(node))
}

/// Its name in the node's folder.
pub const TOOLS_FILE: &str = "tools.json";

/// Who a document belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocOwner {
    /// The user edits it; `runner start` takes the change in.
    User,
    /// The runner alone writes it.
    Runner,
    /// Agents append to it, people read it, nobody clears it.
    Memory,
}

fn memory(title: &str, what: &str) -> Vec<u8> {
    format!("# {title}\n\n<!-- Appended to by agents: {what}. -->\n").into()
}

/// What git must not see under `.runner/`: what every iteration rewrites, the logs, the lock, files half written.
const IGNORED: [&str; 5] = ["context/", "iterations/", "lock", "*.tmp", "*.bak"];

/// The user's `.runner/.gitignore` with the lines that the runner needs in it.
pub fn complete_gitignore(existing: &[u8]) -> Vec<u8> {
    let mut bytes = existing.to_vec();
    if bytes.is_empty() {
        bytes.extend(b"# What the runner keeps here for itself: not part of the repository.\n");
    }
    let text = String::from_utf8_lossy(existing);
    let ignores = |entry: &str| {
        text.lines().any(|line| {
            // `context` covers `context/`; `lock/` covers no file of that name.
            let line = line.trim_end().trim_start_matches('/');
            line == entry || line == entry.trim_end_matches('/')
        })
    };
    for entry in IGNORED.into_iter().filter(|entry| !ignores(entry)) {
        if !bytes.ends_with(b"\n") {
            bytes.push(b'\n');
        }
        bytes.extend(entry.as_bytes());
        bytes.push(b'\n');
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_document_is_found_by_its_path() {
        for doc in Doc::ALL {
            assert_eq!(Doc::at(doc.path().as_bytes()), Some(doc));
        }
        assert_eq!(Doc::at(b".runner/state"), None);
    }

    #[test]
    fn agents_write_the_tree_and_the_memory_and_nothing_else() {
        let open: Vec<Doc> = Doc::ALL.into_iter().filter(|doc| doc.is_for_agents()).collect();
        assert_eq!(open, [Doc::Tree, Doc::Assumptions, Doc::Questions, Doc::Feedback, Doc::Improvements]);
    }

    #[test]
    fn a_new_memory_file_says_what_belongs_into_it() {
        let text = String::from_utf8(Doc::Questions.scaffold()).unwrap();
        assert_eq!(
            text,
            "# Questions\n\n<!-- Appended to by agents: what agents would have asked a person. -->\n"
        );
    }

    #[test]
    fn a_gitignore_keeps_what_the_user_wrote_and_gets_what_is_missing() {
        let fresh = String::from_utf8(complete_gitignore(b"")).unwrap();
        assert!(fresh.ends_with("context/\niterations/\nlock\n*.tmp\n*.bak\n"), "{fresh}");
        assert_eq!(complete_gitignore(fresh.as_bytes()), fresh.as_bytes(), "complete stays as it is");
        let own = b"/context\nmine";
        assert_eq!(complete_gitignore(own), b"/context\nmine\niterations/\nlock\n*.tmp\n*.bak\n");
    }
}
