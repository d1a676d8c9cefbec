//! What an agent may use on a node: `nodes/<node-id>/tools.json`, decoded strictly and inherited from ancestors.
//!
//! A file can only restrict what its ancestors allow. `allow` lists are intersected and `deny` lists are joined;
//! `network: false` holds for all descendants; a writable folder must lie within one that the nearest ancestor with
//! `writable` lists, and the topmost list is not restricted. `model` is not a permission: the nearest file that has it
//! decides.

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

/// What an agent may use on a node and its descendants. An absent key changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
#[serde(default)]
pub struct Tools {
    /// The only tools that the agent may use, by the agent's names [default: all].
    #[schemars(with = "Vec<ToolName>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<ToolName>>,
    /// Tools that the agent may not use, even if `allow` lists them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<ToolName>,
    /// Whether its commands and tools may use the network [default: the agent's default].
    #[schemars(with = "bool")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<bool>,
    /// Folders outside the repository that it may write to, as absolute paths.
    #[schemars(with = "Vec<OutsideFolder>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writable: Option<Vec<OutsideFolder>>,
    /// Model; overrides `model` of `[executor]`.
    #[schemars(with = "String")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// The name of a tool; not empty.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct ToolName(#[schemars(length(min = 1))] String);

impl ToolName {
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

/// A folder outside the repository: an absolute path without `.` and `..`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct OutsideFolder(#[schemars(regex(pattern = "^/."))] String);

impl OutsideFolder {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn is_within(&self, other: &Self) -> bool {
        Path::new(&self.0).starts_with(&other.0)
    }
}

impl<'de> Deserialize<'de> for OutsideFolder {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let path = String::deserialize(deserializer)?;
        // `components()` drops `.`, so it is looked for in the text.
        let has_dot = path.split('/').any(|part| part == ".");
        let is_plain = !has_dot && !path.contains('\0') && path.len() > 1;
        let has_only_names = Path::new(&path)
            .components()
            .all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        if Path::new(&path).is_absolute() && is_plain && has_only_names {
            Ok(Self(path))
        } else {
            Err(serde::de::Error::custom("expected an absolute path of a folder, without `.` and `..`"))
        }
    }
}

/// Why the tools files of a node cannot be applied. Each is for the user to fix.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ToolsError {
    /// A file cannot be decoded.
    #[error("node `{node}`: `{}`: {problem}", tools_path(.node))]
    Invalid {
        node: NodeId,
        /// The first problem in the file.
        problem: DocumentProblem,
    },
    /// A writable folder that the ancestors do not allow.
    #[error(
        "node `{node}`: `{}`: `writable` has `{folder}`, which `{}` does not allow: remove it here, or add it there",
        tools_path(.node),
        tools_path(.ancestor)
    )]
    FolderNotAllowed {
        node: NodeId,
        folder: String,
        /// The node whose file sets the limit.
        ancestor: NodeId,
    },
    /// A key that the agent does not support.
    #[error("node `{node}`: `{}`: `{key}` is not supported {reason}", tools_path(.node))]
    Unsupported {
        /// The node whose file has the key.
        node: NodeId,
        key: &'static str,
        reason: UnsupportedKey,
    },
}

/// Why an agent does not support a key.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum UnsupportedKey {
    /// Agents of this kind have no such setting.
    #[error("by agents of kind \"{}\": remove the key, or use an agent that supports it", .0.as_str())]
    Kind(ExecutorKind),
    /// A preset without network could not reach its provider.
    #[error("by presets, which need the network for their provider: remove the key, or use another agent")]
    Preset,
    /// Only a sandbox can enforce the key.
    #[error("with sandbox = \"off\" under [executor]: remove the key, or set sandbox = \"auto\"")]
    NoSandbox,
    /// A tool that the agent cannot switch off.
    #[error("by {title} for `{tool}`: it can only deny {}", .deniable.join(", "))]
    Tool {
        /// The agent's product name.
        title: &'static str,
        tool: String,
        /// The tools that it can switch off.
        deniable: Vec<&'static str>,
    },
}

/// The tools of a node after inheritance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EffectiveTools {
    pub tools: Tools,
    /// Each key that a file on the path has, with that file's node.
    sources: Vec<(&'static str, NodeId)>,
}

impl Tools {
    /// Decodes a file strictly; reports every problem.
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
    /// The effective tools at the end of a path, from the files of its nodes, the root's first.
    pub fn along<'t>(path: impl IntoIterator<Item = (&'t NodeId, &'t Tools)>) -> Result<Self, ToolsError> {
        let mut effective = Self::default();
        for (node, tools) in path {
            effective.restrict(node, tools)?;
        }
        Ok(effective)
    }

    /// Applies the file of the next node on the path.
    fn restrict(&mut self, node: &NodeId, file: &Tools) -> Result<(), ToolsError> {
        let tools = &mut self.tools;
        if let Some(allow) = &file.allow {
            let above = tools.allow.take();
            let is_allowed = |name: &&ToolName| above.as_ref().is_none_or(|above| above.contains(name));
            tools.allow = Some(sorted(allow.iter().filter(is_allowed).cloned().collect()));
        }
        if !file.deny.is_empty() {
            tools.deny = sorted(tools.deny.iter().chain(&file.deny).cloned().collect());
        }
        tools.network = match (tools.network, file.network) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (above, below) => below.or(above),
        };
        if let Some(folders) = &file.writable {
            self.restrict_writable(node, folders)?;
        }
        if file.model.is_some() {
            self.tools.model.clone_from(&file.model);
        }
        let keys = [
            ("allow", file.allow.is_some()),
            ("deny", !file.deny.is_empty()),
            ("network", file.network.is_some()),
            ("writable", file.writable.is_some()),
            ("model", file.model.is_some()),
        ];
        let present = keys.into_iter().filter(|(_, is_present)| *is_present);
        self.sources.extend(present.map(|(key, _)| (key, node.clone())));
        Ok(())
    }

    fn restrict_writable(&mut self, node: &NodeId, folders: &[OutsideFolder]) -> Result<(), ToolsError> {
        let ancestor = self.sources.iter().rev().find(|(key, _)| *key == "writable").map(|(_, node)| node);
        if let Some(ancestor) = ancestor {
            let limit = self.tools.writable.as_deref().unwrap_or_default();
            let outside =
                folders.iter().find(|folder| !limit.iter().any(|allowed| folder.is_within(allowed)));
            if let Some(folder) = outside {
                return Err(ToolsError::FolderNotAllowed {
                    node: node.clone(),
                    folder: folder.as_str().to_owned(),
                    ancestor: ancestor.clone(),
                });
            }
        }
        self.tools.writable = Some(sorted(folders.to_vec()));
        Ok(())
    }

    /// Fails if the agent does not support a key, rather than ignoring it.
    pub fn check(&self, executor: &Executor) -> Result<(), ToolsError> {
        for (key, node) in self.sources.iter().rev() {
            if let Some(reason) = self.unsupported(key, executor) {
                return Err(ToolsError::Unsupported { node: node.clone(), key, reason });
            }
        }
        Ok(())
    }

    fn unsupported(&self, key: &str, executor: &Executor) -> Option<UnsupportedKey> {
        let agent = executor.agent();
        let is_preset = agent.is_some_and(AgentSpec::is_preset);
        let without_sandbox = (executor.sandbox == SandboxMode::Off).then_some(UnsupportedKey::NoSandbox);
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
                    Some(UnsupportedKey::Tool { title, tool: other.0.clone(), deniable })
                }
                None => Some(UnsupportedKey::Kind(executor.kind)),
            },
            "network" if self.tools.network == Some(true) => None,
            "network" if is_preset => Some(UnsupportedKey::Preset),
            "network" | "writable" => without_sandbox,
            _ => None,
        }
    }
}

/// How a native agent limits its tools, with its title.
fn tool_control(executor: &Executor) -> Option<(&'static str, ToolControl)> {
    let native = executor.agent()?.native()?;
    Some((native.title, native.features.tool_control))
}

/// The errors of valid files: folders that the ancestors do not allow, and keys that one of the configured agents does not
/// support. Files of nodes that are not in the tree have no effect yet.
pub fn tools_errors(tree: &Tree, files: &BTreeMap<NodeId, Tools>, config: &Config) -> Vec<ToolsError> {
    let agents: Vec<&Executor> =
        std::iter::once(&config.executor).chain(config.ladder.iter().map(|rung| &rung.executor)).collect();
    let mut errors: Vec<ToolsError> = Vec::new();
    for node in files.keys() {
        let path = tree.path_to(node).unwrap_or_default();
        let on_path = path.iter().filter_map(|node| Some((&node.id, files.get(&node.id)?)));
        let node_errors: Vec<ToolsError> = match EffectiveTools::along(on_path) {
            Ok(effective) => agents.iter().filter_map(|agent| effective.check(agent).err()).collect(),
            Err(error) => vec![error],
        };
        for error in node_errors {
            if !errors.contains(&error) {
                errors.push(error);
            }
        }
    }
    errors
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

    fn effective(files: &[(&str, &str)]) -> Result<EffectiveTools, ToolsError> {
        let files: Vec<(NodeId, Tools)> =
            files.iter().map(|(node, text)| (id(node), Tools::decode(text.as_bytes()).unwrap())).collect();
        EffectiveTools::along(files.iter().map(|(node, tools)| (node, tools)))
    }

    fn names(names: Option<&[ToolName]>) -> Vec<&str> {
        names.unwrap_or_default().iter().map(ToolName::as_str).collect()
    }

    #[test]
    fn a_child_can_only_restrict_what_its_ancestors_allow() {
        let effective_tools = effective(&[
            (
                "root",
                r#"{"allow": ["Read", "Edit", "Bash"], "deny": ["Web"], "network": false, "model": "a"}"#,
            ),
            ("api", r#"{"allow": ["Edit", "Web", "Read"], "deny": ["Task"], "network": true, "model": "b"}"#),
        ])
        .unwrap();
        assert_eq!(names(effective_tools.tools.allow.as_deref()), ["Edit", "Read"]);
        assert_eq!(names(Some(&effective_tools.tools.deny)), ["Task", "Web"]);
        assert_eq!(
            (effective_tools.tools.network, effective_tools.tools.model.as_deref()),
            (Some(false), Some("b"))
        );
        assert_eq!(effective(&[]).unwrap(), EffectiveTools::default());
    }

    #[test]
    fn a_writable_folder_lies_within_one_of_the_nearest_ancestor() {
        let root = r#"{"writable": ["/var/cache/a"]}"#;
        let restricted =
            effective(&[("root", root), ("x", "{}"), ("y", r#"{"writable": ["/var/cache/a/b"]}"#)]);
        let folders = restricted.unwrap().tools.writable.unwrap();
        assert_eq!(folders.iter().map(OutsideFolder::as_str).collect::<Vec<_>>(), ["/var/cache/a/b"]);
        let outside = effective(&[("root", root), ("y", r#"{"writable": ["/var/cache/ab"]}"#)]).unwrap_err();
        assert_eq!(
            outside.to_string(),
            "node `y`: `.runner/nodes/y/tools.json`: `writable` has `/var/cache/ab`, which \
             `.runner/nodes/root/tools.json` does not allow: remove it here, or add it there"
        );
        assert!(
            effective(&[("root", r#"{"writable": []}"#), ("y", root)]).is_err(),
            "an empty list allows none"
        );
    }

    fn check_error(text: &str, executor: &str) -> String {
        let config = Config::decode(format!("[executor]\n{executor}").as_bytes()).unwrap();
        let effective = effective(&[("root", "{}"), ("x", text)]).unwrap();
        effective.check(&config.executor).err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn unsupported_keys_are_reported_with_node_file_and_key() {
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
                "by Codex for `apply_patch`: it can only deny shell, web_search",
            ),
            (r#"{"network": false}"#, PRESET, "by presets, which need the network"),
            (r#"{"network": false}"#, "sandbox = \"off\"", "with sandbox = \"off\""),
            (r#"{"writable": []}"#, "kind = \"claude\"\nsandbox = \"off\"", "with sandbox = \"off\""),
        ] {
            let error = check_error(text, executor);
            assert!(
                error.starts_with("node `x`: `.runner/nodes/x/tools.json`: `"),
                "{text} {executor}: {error}"
            );
            assert!(error.contains(&format!("is not supported {why}")), "{text} {executor}: {error}");
        }
    }

    #[test]
    fn supported_keys_are_accepted() {
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
            assert_eq!(check_error(text, executor), "", "{text} {executor}");
        }
    }

    #[test]
    fn the_files_of_a_tree_are_checked_for_every_agent() {
        let tree = crate::runs::start::unseeded_tree();
        let errors = |files: &[(&str, &str)], config: &str| {
            let files = files
                .iter()
                .map(|(node, text)| (id(node), Tools::decode(text.as_bytes()).unwrap()))
                .collect();
            let config = Config::decode(config.as_bytes()).unwrap();
            tools_errors(&tree, &files, &config).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let root = tree.root().id.to_string();
        let allow = (root.as_str(), r#"{"allow": ["Read"]}"#);
        let claude = "[executor]\nkind = \"claude\"\n";
        assert_eq!(errors(&[allow, ("elsewhere", r#"{"allow": []}"#)], claude), [""; 0]);
        let with_codex = errors(&[allow], &format!("{claude}[[ladder]]\nkind = \"codex\"\n"));
        assert!(
            with_codex.len() == 1 && with_codex[0].contains("by agents of kind \"codex\""),
            "{with_codex:?}"
        );
    }

    #[test]
    fn files_are_decoded_strictly() {
        let problems = |text: &str| {
            Tools::decode(text.as_bytes()).unwrap_err().iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(Tools::decode(b"{}"), Ok(Tools::default()));
        assert_eq!(
            problems("{\n\"alow\": []}"),
            ["line 2: `alow` is not a known key; did you mean `allow`?"]
        );
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
            assert_eq!(problems(bad).len(), 1, "{bad}");
        }
    }
}
