//! What an agent may use on a node: `nodes/<node-id>/tools.json`, read strictly and inherited from ancestors.
//!
//! A file can only narrow what stands above it. Tools that are allowed are those that every file allows; tools that
//! are denied add up; the network is there unless a file takes it away; a folder is writable only within one that the
//! next list above names, and the topmost list is the user's own word. The model is no permission: the nearest file
//! that names one decides.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::agents::{AgentSpec, ToolControl};
use crate::config::{Config, Executor, ExecutorKind, SandboxMode};
use crate::layout::tools_path;
use crate::model::id::NodeId;
use crate::model::tree::Tree;
use crate::strict::{DocumentProblem, DocumentProblems, FieldReader, decode_utf8};

/// What an agent may use on a node and below it. A key that is absent says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(default)]
pub struct Tools {
    /// The only tools that the agent may use, by the names it gives them; absent: all that it has.
    #[schemars(with = "Vec<ToolName>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<ToolName>>,
    /// Tools that it may not use, whatever else is allowed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<ToolName>,
    /// Whether its commands and tools may use the network; absent: as the agent has it.
    #[schemars(with = "bool")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<bool>,
    /// Folders beside the repository that it may write to, as absolute paths.
    #[schemars(with = "Vec<OutsideFolder>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writable: Option<Vec<OutsideFolder>>,
    /// The model to ask for, in the place of that of `[executor]`.
    #[schemars(with = "String")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// The name of a tool, never empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct ToolName(#[schemars(length(min = 1))] String);

impl ToolName {
    /// The name as the agent knows it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for ToolName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let is_name = !name.trim().is_empty() && !name.chars().any(char::is_control);
        is_name.then_some(Self(name)).ok_or_else(|| serde::de::Error::custom("expected the name of a tool"))
    }
}

/// A folder outside of the repository: an absolute path that goes nowhere but down.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct OutsideFolder(#[schemars(regex(pattern = "^/."))] String);

impl OutsideFolder {
    /// The path.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn lies_within(&self, other: &Self) -> bool {
        Path::new(&self.0).starts_with(&other.0)
    }
}

impl<'de> Deserialize<'de> for OutsideFolder {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let path = String::deserialize(deserializer)?;
        let goes_down = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
        let plain = !path.split('/').any(|part| part == ".") && !path.contains('\0');
        let is_folder = Path::new(&path).is_absolute() && path.len() > 1 && plain;
        (is_folder && Path::new(&path).components().all(goes_down)).then_some(Self(path)).ok_or_else(|| {
            serde::de::Error::custom("expected an absolute path of a folder, without `.` and `..`")
        })
    }
}

/// Why a session cannot be given the tools that its node's files ask for. All of it is the user's to mend.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ToolsError {
    /// An invalid file.
    #[error("node `{node}`: `{}`: {problem}", tools_path(.node))]
    Invalid {
        /// The node.
        node: NodeId,
        /// The first thing that is wrong with it.
        problem: DocumentProblem,
    },
    /// A folder that no ancestor allows.
    #[error(
        "node `{node}`: `{}`: `writable` names `{folder}`, which lies in no folder that `{}` allows: remove it, or \
         add it there",
        tools_path(.node),
        tools_path(.above)
    )]
    Wider {
        /// The node.
        node: NodeId,
        /// What it asks for.
        folder: String,
        /// The node whose file sets the limit.
        above: NodeId,
    },
    /// A key that the agent cannot keep to.
    #[error("node `{node}`: `{}`: `{key}` cannot be honoured {obstacle}", tools_path(.node))]
    CannotHonour {
        /// The node whose file says it.
        node: NodeId,
        /// The key.
        key: &'static str,
        /// What is in the way.
        obstacle: UnsupportedKey,
    },
}

/// Why an agent cannot keep to a key.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum UnsupportedKey {
    /// Agents of this kind have nothing like it.
    #[error("by agents of kind \"{}\": remove the key, or choose an agent that can keep to it", .0.as_str())]
    Kind(ExecutorKind),
    /// A preset would lose its own provider with the network.
    #[error("by a preset, which needs the network itself: remove the key, or choose another agent")]
    Preset,
    /// What is not confined cannot be limited.
    #[error("with sandbox = \"off\" under [executor]: remove the key, or set sandbox = \"auto\"")]
    NoSandbox,
    /// A tool that the agent cannot switch off.
    #[error("by {title} for `{name}`: it can only deny {}", .deniable.join(", "))]
    Tool {
        /// The agent.
        title: &'static str,
        /// The tool's name.
        name: String,
        /// The tools that it can switch off.
        deniable: Vec<&'static str>,
    },
}

/// What holds on a node, with the node whose file says it, key by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EffectiveTools {
    /// What holds.
    pub tools: Tools,
    said_by: Vec<(&'static str, NodeId)>,
}

impl Tools {
    /// Reads a file strictly; every fault in it is told.
    pub fn decode(bytes: &[u8]) -> Result<Self, DocumentProblems> {
        let mut fields = FieldReader::of_json(decode_utf8(bytes)?)?;
        let tools = Self {
            allow: fields.optional("allow"),
            deny: fields.optional("deny").unwrap_or_default(),
            network: fields.optional("network"),
            writable: fields.optional("writable"),
            model: fields.optional("model"),
        };
        fields.finish_with(tools)
    }
}

impl EffectiveTools {
    /// What holds at the end of a path, given the files of the nodes on it, the root's first.
    pub fn along<'t>(path: impl IntoIterator<Item = (&'t NodeId, &'t Tools)>) -> Result<Self, ToolsError> {
        path.into_iter().try_fold(Self::default(), |held, (node, tools)| held.narrowed(node, tools))
    }

    fn narrowed(mut self, node: &NodeId, by: &Tools) -> Result<Self, ToolsError> {
        let held = &mut self.tools;
        if let Some(allow) = &by.allow {
            let above = held.allow.take();
            let is_allowed = |name: &&ToolName| above.as_ref().is_none_or(|above| above.contains(name));
            held.allow = Some(sorted(allow.iter().filter(is_allowed).cloned().collect()));
        }
        if !by.deny.is_empty() {
            held.deny = sorted(held.deny.iter().chain(&by.deny).cloned().collect());
        }
        held.network = match (held.network, by.network) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (above, below) => below.or(above),
        };
        if let Some(folders) = &by.writable {
            let above = self.said_by.iter().rev().find(|(key, _)| *key == "writable").map(|(_, node)| node);
            let limit = held.writable.as_deref().unwrap_or_default();
            let is_wider = |folder: &&OutsideFolder| !limit.iter().any(|wide| folder.lies_within(wide));
            if let (Some(above), Some(folder)) = (above, folders.iter().find(is_wider)) {
                let (node, above, folder) = (node.clone(), above.clone(), folder.as_str().to_owned());
                return Err(ToolsError::Wider { node, folder, above });
            }
            held.writable = Some(sorted(folders.clone()));
        }
        if by.model.is_some() {
            held.model.clone_from(&by.model);
        }
        let said = [
            ("allow", by.allow.is_some()),
            ("deny", !by.deny.is_empty()),
            ("network", by.network.is_some()),
            ("writable", by.writable.is_some()),
            ("model", by.model.is_some()),
        ];
        self.said_by.extend(said.into_iter().filter(|(_, says)| *says).map(|(key, _)| (key, node.clone())));
        Ok(self)
    }

    /// Refuses what the agent cannot keep to, rather than ignoring it.
    pub fn check(&self, agent: &Executor) -> Result<(), ToolsError> {
        for (key, node) in self.said_by.iter().rev() {
            if let Some(obstacle) = self.obstacle(key, agent) {
                return Err(ToolsError::CannotHonour { node: node.clone(), key, obstacle });
            }
        }
        Ok(())
    }

    fn obstacle(&self, key: &str, executor: &Executor) -> Option<UnsupportedKey> {
        let agent = executor.agent();
        let is_preset = agent.is_some_and(AgentSpec::is_preset);
        let needs_sandbox = (executor.sandbox == SandboxMode::Off).then_some(UnsupportedKey::NoSandbox);
        match key {
            "model" if agent.is_none() => Some(UnsupportedKey::Kind(executor.kind)),
            "allow" => match tool_control(executor) {
                Some((_, ToolControl::ByName)) => None,
                Some((_, ToolControl::Switches(_))) | None => Some(UnsupportedKey::Kind(executor.kind)),
            },
            "deny" => match tool_control(executor) {
                Some((_, ToolControl::ByName)) => None,
                Some((title, ToolControl::Switches(switches))) => {
                    let deniable: Vec<&str> = switches.iter().map(|switch| switch.tool).collect();
                    let other = self.tools.deny.iter().find(|name| !deniable.contains(&name.as_str()))?;
                    Some(UnsupportedKey::Tool { title, name: other.0.clone(), deniable })
                }
                None => Some(UnsupportedKey::Kind(executor.kind)),
            },
            "network" if self.tools.network == Some(true) => None,
            "network" if is_preset => Some(UnsupportedKey::Preset),
            "network" | "writable" => needs_sandbox,
            _ => None,
        }
    }
}

/// How a native agent limits its tools, with its title.
fn tool_control(executor: &Executor) -> Option<(&'static str, ToolControl)> {
    let native = executor.agent()?.native()?;
    Some((native.title, native.features.tool_control))
}

/// What is wrong with files that can be read: what a node asks for beyond its ancestors, and what one of the agents
/// cannot keep to. Files of nodes that are not in the tree hold nothing yet.
pub fn faults(tree: &Tree, files: &BTreeMap<NodeId, Tools>, config: &Config) -> Vec<ToolsError> {
    let agents: Vec<&Executor> =
        std::iter::once(&config.executor).chain(config.ladder.iter().map(|rung| &rung.executor)).collect();
    let mut faults = Vec::new();
    for node in files.keys() {
        let path = tree.path_to(node).unwrap_or_default();
        let on_path = path.iter().filter_map(|node| Some((&node.id, files.get(&node.id)?)));
        match EffectiveTools::along(on_path) {
            Ok(held) => faults.extend(agents.iter().filter_map(|agent| held.check(agent).err())),
            Err(fault) => faults.push(fault),
        }
    }
    let mut told: Vec<ToolsError> = Vec::new();
    for fault in faults {
        if !told.contains(&fault) {
            told.push(fault);
        }
    }
    told
}

fn sorted<T: Ord>(mut all: Vec<T>) -> Vec<T> {
    all.sort();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> NodeId {
        NodeId::new(text).unwrap()
    }

    fn held(files: &[(&str, &str)]) -> Result<EffectiveTools, ToolsError> {
        let files: Vec<(NodeId, Tools)> =
            files.iter().map(|(node, text)| (id(node), Tools::decode(text.as_bytes()).unwrap())).collect();
        EffectiveTools::along(files.iter().map(|(node, tools)| (node, tools)))
    }

    fn names(names: Option<&[ToolName]>) -> Vec<&str> {
        names.unwrap_or_default().iter().map(ToolName::as_str).collect()
    }

    #[test]
    fn a_child_narrows_what_its_ancestors_allow_and_gains_nothing() {
        let held = held(&[
            (
                "root",
                r#"{"allow": ["Read", "Edit", "Bash"], "deny": ["Web"], "network": false, "model": "a"}"#,
            ),
            ("api", r#"{"allow": ["Edit", "Web", "Read"], "deny": ["Task"], "network": true, "model": "b"}"#),
        ])
        .unwrap();
        assert_eq!(names(held.tools.allow.as_deref()), ["Edit", "Read"]);
        assert_eq!(names(Some(&held.tools.deny)), ["Task", "Web"]);
        assert_eq!((held.tools.network, held.tools.model.as_deref()), (Some(false), Some("b")));
        assert_eq!(self::held(&[]).unwrap(), EffectiveTools::default());
    }

    #[test]
    fn a_folder_is_writable_only_within_one_of_the_list_above() {
        let root = r#"{"writable": ["/var/cache/a"]}"#;
        let narrowed = held(&[("root", root), ("x", "{}"), ("y", r#"{"writable": ["/var/cache/a/b"]}"#)]);
        let folders = narrowed.unwrap().tools.writable.unwrap();
        assert_eq!(folders.iter().map(OutsideFolder::as_str).collect::<Vec<_>>(), ["/var/cache/a/b"]);
        let wider = held(&[("root", root), ("y", r#"{"writable": ["/var/cache/ab"]}"#)]).unwrap_err();
        assert_eq!(
            wider.to_string(),
            "node `y`: `.runner/nodes/y/tools.json`: `writable` names `/var/cache/ab`, which lies in no folder that \
             `.runner/nodes/root/tools.json` allows: remove it, or add it there"
        );
        assert!(held(&[("root", r#"{"writable": []}"#), ("y", root)]).is_err(), "none allows none");
    }

    fn refused(text: &str, executor: &str) -> String {
        let config = Config::decode(format!("[executor]\n{executor}").as_bytes()).unwrap();
        let held = held(&[("root", "{}"), ("x", text)]).unwrap();
        held.check(&config.executor).err().map(|fault| fault.to_string()).unwrap_or_default()
    }

    #[test]
    fn what_cannot_be_honoured_is_refused_by_node_file_and_key() {
        const COMMAND: &str = "kind = \"command\"\ncommand = [\"a\"]";
        const PRESET: &str = "kind = \"command\"\npreset = \"qwen\"";
        for (text, executor, why) in [
            (r#"{"model": "m"}"#, COMMAND, "by agents of kind \"command\""),
            (r#"{"allow": ["Read"]}"#, COMMAND, "by agents of kind \"command\""),
            (r#"{"allow": ["Read"]}"#, "", "by agents of kind \"codex\""),
            (r#"{"deny": ["Read"]}"#, COMMAND, "by agents of kind \"command\""),
            (
                r#"{"deny": ["shell", "apply_patch"]}"#,
                "",
                "by Codex for `apply_patch`: the tools that can be denied",
            ),
            (r#"{"network": false}"#, PRESET, "by a preset, which needs the network itself"),
            (r#"{"network": false}"#, "sandbox = \"off\"", "with sandbox = \"off\""),
            (r#"{"writable": []}"#, "kind = \"claude\"\nsandbox = \"off\"", "with sandbox = \"off\""),
        ] {
            let told = refused(text, executor);
            assert!(
                told.starts_with("node `x`: `.runner/nodes/x/tools.json`: `"),
                "{text} {executor}: {told}"
            );
            assert!(told.contains(&format!("cannot be honoured {why}")), "{text} {executor}: {told}");
        }
    }

    #[test]
    fn what_an_agent_can_keep_to_is_not_refused() {
        let script = "kind = \"script\"\nscenario = \"s\"";
        for (text, executor) in [
            (
                r#"{"allow": ["Read"], "deny": ["Bash"], "network": false, "writable": ["/a"]}"#,
                "kind = \"claude\"",
            ),
            (r#"{"deny": ["web_search"], "network": false, "writable": [], "model": "m"}"#, ""),
            (r#"{"network": true}"#, "sandbox = \"off\""),
            (
                r#"{"model": "m", "network": true, "writable": ["/a"]}"#,
                "kind = \"command\"\npreset = \"qwen\"",
            ),
            (r#"{"network": false, "writable": ["/a"]}"#, script),
        ] {
            assert_eq!(refused(text, executor), "", "{text} {executor}");
        }
    }

    #[test]
    fn the_files_of_a_tree_are_held_against_every_agent() {
        let tree = crate::runs::start::unseeded_tree();
        let of = |files: &[(&str, &str)], config: &str| {
            let files = files
                .iter()
                .map(|(node, text)| (id(node), Tools::decode(text.as_bytes()).unwrap()))
                .collect();
            let config = Config::decode(config.as_bytes()).unwrap();
            faults(&tree, &files, &config).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let root = tree.root().id.to_string();
        let allow = (root.as_str(), r#"{"allow": ["Read"]}"#);
        let claude = "[executor]\nkind = \"claude\"\n";
        assert_eq!(of(&[allow, ("elsewhere", r#"{"allow": []}"#)], claude), [""; 0]);
        let told = of(&[allow], &format!("{claude}[[ladder]]\nkind = \"codex\"\n"));
        assert!(told.len() == 1 && told[0].contains("by agents of kind \"codex\""), "{told:?}");
    }

    #[test]
    fn a_file_is_read_strictly() {
        let told = |text: &str| {
            Tools::decode(text.as_bytes()).unwrap_err().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(Tools::decode(b"{}"), Ok(Tools::default()));
        assert_eq!(told("{\n\"alow\": []}"), ["line 2: `alow` is not a known key; did you mean `allow`?"]);
        for bad in [
            r#"{"allow": [""]}"#,
            r#"{"allow": "Read"}"#,
            r#"{"network": "no"}"#,
            r#"{"network": null}"#,
            r#"{"writable": ["relative"]}"#,
            r#"{"writable": ["/a/../b"]}"#,
            r#"{"writable": ["/a/./b"]}"#,
            r#"{"writable": ["/"]}"#,
            "[]",
        ] {
            assert_eq!(told(bad).len(), 1, "{bad}");
        }
    }
}
