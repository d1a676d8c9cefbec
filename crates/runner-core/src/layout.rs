//! The files under `.runner/`: their paths, owners and initial content.

use crate::config::Config;
use crate::model::goal::TEMPLATE;
use crate::model::id::NodeId;
use crate::model::run_state::RunState;
use crate::model::user_notes::UserNotes;
use crate::schema::SchemaDocument;

/// The runner's folder in a repository.
pub const RUNNER_DIR: &str = ".runner";
/// The output of the final check, in the folder with the logs of a run.
pub const FINAL_LOG: &str = "final.log";

/// A committed file under `.runner/` that the runner knows by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Doc {
    Gitignore,
    Gitattributes,
    Goal,
    Tree,
    TreeSchema,
    OutputSchema,
    ToolsSchema,
    Config,
    RunState,
    Notes,
    Assumptions,
    Questions,
    Feedback,
    Improvements,
}

impl Doc {
    /// Every document, in the order in which they are listed and written.
    pub const ALL: [Self; 14] = [
        Self::Gitignore,
        Self::Gitattributes,
        Self::Goal,
        Self::Tree,
        Self::TreeSchema,
        Self::OutputSchema,
        Self::ToolsSchema,
        Self::Config,
        Self::RunState,
        Self::Notes,
        Self::Assumptions,
        Self::Questions,
        Self::Feedback,
        Self::Improvements,
    ];

    /// The path, relative to the repository's root.
    pub fn path(self) -> &'static str {
        match self {
            Self::Gitignore => ".runner/.gitignore",
            Self::Gitattributes => ".runner/.gitattributes",
            Self::Goal => ".runner/GOAL.md",
            Self::Tree => ".runner/state/tree.json",
            Self::TreeSchema => ".runner/state/schema.json",
            Self::OutputSchema => ".runner/state/agent_output.schema.json",
            Self::ToolsSchema => ".runner/state/tools.schema.json",
            Self::Config => ".runner/state/config.toml",
            Self::RunState => ".runner/state/run_state.json",
            Self::Notes => ".runner/state/notes.json",
            Self::Assumptions => ".runner/state/assumptions.md",
            Self::Questions => ".runner/state/questions.md",
            Self::Feedback => ".runner/state/feedback.md",
            Self::Improvements => ".runner/state/improvements.md",
        }
    }

    /// The document at a path.
    pub fn at(path: &[u8]) -> Option<Self> {
        Self::ALL.into_iter().find(|doc| doc.path().as_bytes() == path)
    }

    pub fn owner(self) -> DocOwner {
        match self {
            Self::Goal | Self::Config | Self::Gitignore => DocOwner::User,
            Self::Gitattributes
            | Self::Tree
            | Self::TreeSchema
            | Self::OutputSchema
            | Self::ToolsSchema
            | Self::RunState
            | Self::Notes => DocOwner::Runner,
            Self::Assumptions | Self::Questions | Self::Feedback | Self::Improvements => DocOwner::Memory,
        }
    }

    /// Whether its content depends on nothing but the runner's version.
    pub fn is_fixed(self) -> bool {
        matches!(self, Self::Gitattributes | Self::TreeSchema | Self::OutputSchema | Self::ToolsSchema)
    }

    /// Whether an agent may write it.
    pub fn is_for_agents(self) -> bool {
        self == Self::Tree || self.owner() == DocOwner::Memory
    }

    /// The content of a new file.
    pub fn scaffold(self) -> Vec<u8> {
        match self {
            Self::Gitignore => complete_gitignore(b""),
            Self::Gitattributes => ATTRIBUTES.into(),
            Self::Goal => TEMPLATE.into(),
            Self::Tree => crate::runs::start::unseeded_tree().bytes().to_vec(),
            Self::TreeSchema => SchemaDocument::Tree.schema_bytes(),
            Self::OutputSchema => SchemaDocument::AgentOutput.schema_bytes(),
            Self::ToolsSchema => SchemaDocument::Tools.schema_bytes(),
            Self::Config => Config::documented_file().into(),
            Self::RunState => RunState::new(None).to_bytes(),
            Self::Notes => UserNotes::default().to_bytes(),
            Self::Assumptions => memory("Assumptions", "what they assumed in order to continue"),
            Self::Questions => memory("Questions", "what they would have asked a person"),
            Self::Feedback => memory("Feedback", "mistakes and what they learned from them"),
            Self::Improvements => memory("Improvements", "what would make the work easier"),
        }
    }
}

/// The parent of all node folders.
pub const NODES_DIR: &str = ".runner/nodes";

/// The folder with a node's files.
pub fn node_folder(node: &NodeId) -> String {
    format!("{NODES_DIR}/{node}")
}

/// The tools file of a node.
pub fn tools_path(node: &NodeId) -> String {
    format!("{}/{TOOLS_FILE}", node_folder(node))
}

/// The checks file of a node.
pub fn checks_path(node: &NodeId) -> String {
    format!("{}/{CHECKS_FILE}", node_folder(node))
}

/// The name of the checks file.
pub const CHECKS_FILE: &str = "checks.toml";

/// The name of the tools file.
pub const TOOLS_FILE: &str = "tools.json";

/// Who may change a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocOwner {
    /// The user edits it; `runner start` commits the change.
    User,
    /// Only the runner writes it.
    Runner,
    /// Agents append to it and people read it; it is never cleared.
    Memory,
}

fn memory(title: &str, what: &str) -> Vec<u8> {
    format!("# {title}\n\n<!-- Agents append here: {what}. -->\n").into()
}

/// Git must check the runner's files out byte for byte, in every clone, whatever attributes the rest of the repository
/// sets. Git rejects `-working-tree-encoding`, so that attribute is made unspecified instead.
const ATTRIBUTES: &str = "# Git must not convert the runner's files, whatever other attribute files contain.
* -text -ident -filter !working-tree-encoding
";

/// What git must ignore under `.runner/`: files that every iteration rewrites, logs, the lock, and temporary files.
const IGNORED: [&str; 5] = ["context/", "iterations/", "lock", "*.tmp", "*.bak"];

/// The user's `.runner/.gitignore` with the lines that the runner needs added.
pub fn complete_gitignore(existing: &[u8]) -> Vec<u8> {
    let mut bytes = existing.to_vec();
    if bytes.is_empty() {
        bytes.extend(b"# Files of the runner that are not part of the repository.\n");
    }
    let text = String::from_utf8_lossy(existing);
    let ignores = |entry: &str| {
        text.lines().any(|line| {
            // `context` also ignores `context/`, but `lock/` does not ignore a file of that name.
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
    fn agents_may_write_only_the_tree_and_the_memory() {
        let writable: Vec<Doc> = Doc::ALL.into_iter().filter(|doc| doc.is_for_agents()).collect();
        assert_eq!(writable, [Doc::Tree, Doc::Assumptions, Doc::Questions, Doc::Feedback, Doc::Improvements]);
    }

    #[test]
    fn a_new_memory_file_explains_its_purpose() {
        let text = String::from_utf8(Doc::Questions.scaffold()).unwrap();
        assert_eq!(
            text,
            "# Questions\n\n<!-- Agents append here: what they would have asked a person. -->\n"
        );
    }

    #[test]
    fn a_gitignore_keeps_the_users_lines_and_gets_missing_ones() {
        let fresh = String::from_utf8(complete_gitignore(b"")).unwrap();
        assert!(fresh.ends_with("context/\niterations/\nlock\n*.tmp\n*.bak\n"), "{fresh}");
        assert_eq!(complete_gitignore(fresh.as_bytes()), fresh.as_bytes(), "a complete file is unchanged");
        let own = b"/context\nmine";
        assert_eq!(complete_gitignore(own), b"/context\nmine\niterations/\nlock\n*.tmp\n*.bak\n");
    }
}
