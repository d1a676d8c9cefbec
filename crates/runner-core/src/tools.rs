//! What an agent may use on a node: `nodes/<node-id>/tools.json`, read strictly and inherited from ancestors.
//!
//! A file can only narrow what stands above it. Tools that are allowed are those that every file allows; tools that
//! are denied add up; the network is there unless a file takes it away; a folder is writable only within one that the
//! next list above names, and the topmost list is the user's own word. The model is no permission: the nearest file
//! that names one decides.

use std::path::{Component, Path};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::config::{Executor, ExecutorKind};
use crate::document::{Fields, Problem, text_of};
use crate::id::NodeId;
use crate::layout::tools_path;

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
    /// Whether its commands may use the network; absent: as the agent has it.
    #[schemars(with = "bool")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<bool>,
    /// Folders beside the repository that it may write to, as absolute paths.
    #[schemars(with = "Vec<Folder>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writable: Option<Vec<Folder>>,
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
pub struct Folder(#[schemars(regex(pattern = "^/."))] String);

impl Folder {
    /// The path.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn lies_within(&self, other: &Self) -> bool {
        Path::new(&self.0).starts_with(&other.0)
    }
}

impl<'de> Deserialize<'de> for Folder {
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
pub enum ToolsFault {
    /// A file that cannot be read.
    #[error("node `{node}`: `{}`: {problem}", tools_path(.node))]
    Unreadable {
        /// The node.
        node: NodeId,
        /// The first thing that is wrong with it.
        problem: Problem,
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
    #[error(
        "node `{node}`: `{}`: `{key}` cannot be honoured by agents of kind \"{}\": remove the key, or choose an agent \
         that can keep to it",
        tools_path(.node),
        .kind.as_str()
    )]
    CannotHonour {
        /// The node whose file says it.
        node: NodeId,
        /// The key.
        key: &'static str,
        /// The agent's kind.
        kind: ExecutorKind,
    },
}

/// What holds on a node, with the node whose file says it, key by key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// What holds.
    pub tools: Tools,
    said_by: Vec<(&'static str, NodeId)>,
}

impl Tools {
    /// Reads a file strictly; every fault in it is told.
    pub fn decode(bytes: &[u8]) -> Result<Self, Vec<Problem>> {
        let text = text_of(bytes).map_err(|problem| vec![problem])?;
        let mut fields = Fields::of_json(text).map_err(|problem| vec![problem])?;
        let tools = Self {
            allow: fields.optional("allow"),
            deny: fields.optional("deny").unwrap_or_default(),
            network: fields.optional("network"),
            writable: fields.optional("writable"),
            model: fields.optional("model"),
        };
        let problems = fields.finish();
        if problems.is_empty() { Ok(tools) } else { Err(problems) }
    }
}

impl Held {
    /// What holds at the end of a path, given the files of the nodes on it, the root's first.
    pub fn along<'t>(path: impl IntoIterator<Item = (&'t NodeId, &'t Tools)>) -> Result<Self, ToolsFault> {
        path.into_iter().try_fold(Self::default(), |held, (node, tools)| held.narrowed(node, tools))
    }

    fn narrowed(mut self, node: &NodeId, by: &Tools) -> Result<Self, ToolsFault> {
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
            let is_wider = |folder: &&Folder| !limit.iter().any(|wide| folder.lies_within(wide));
            if let (Some(above), Some(folder)) = (above, folders.iter().find(is_wider)) {
                let (node, above, folder) = (node.clone(), above.clone(), folder.as_str().to_owned());
                return Err(ToolsFault::Wider { node, folder, above });
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

    /// Refuses what the agent cannot keep to, rather than ignoring it. So far agents can be asked for a model; the
    /// other keys are handed over to their adapters, and none of those keeps to them yet.
    pub fn check(&self, agent: &Executor) -> Result<(), ToolsFault> {
        let asks_for_models = match agent.kind {
            ExecutorKind::Codex | ExecutorKind::Claude => true,
            ExecutorKind::Command => agent.preset.is_some(),
            ExecutorKind::Script => false,
        };
        let unkept = self.said_by.iter().rev().find(|(key, _)| *key != "model" || !asks_for_models);
        match unkept {
            Some((key, node)) => Err(ToolsFault::CannotHonour { node: node.clone(), key, kind: agent.kind }),
            None => Ok(()),
        }
    }
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

    fn held(files: &[(&str, &str)]) -> Result<Held, ToolsFault> {
        let files: Vec<(NodeId, Tools)> =
            files.iter().map(|(node, text)| (id(node), Tools::decode(text.as_bytes()).unwrap())).collect();
        Held::along(files.iter().map(|(node, tools)| (node, tools)))
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
        assert_eq!(self::held(&[]).unwrap(), Held::default());
    }

    #[test]
    fn a_folder_is_writable_only_within_one_of_the_list_above() {
        let root = r#"{"writable": ["/var/cache/a"]}"#;
        let narrowed = held(&[("root", root), ("x", "{}"), ("y", r#"{"writable": ["/var/cache/a/b"]}"#)]);
        let folders = narrowed.unwrap().tools.writable.unwrap();
        assert_eq!(folders.iter().map(Folder::as_str).collect::<Vec<_>>(), ["/var/cache/a/b"]);
        let wider = held(&[("root", root), ("y", r#"{"writable": ["/var/cache/ab"]}"#)]).unwrap_err();
        assert_eq!(
            wider.to_string(),
            "node `y`: `.runner/nodes/y/tools.json`: `writable` names `/var/cache/ab`, which lies in no folder that \
             `.runner/nodes/root/tools.json` allows: remove it, or add it there"
        );
        assert!(held(&[("root", r#"{"writable": []}"#), ("y", root)]).is_err(), "none allows none");
    }

    #[test]
    fn what_cannot_be_honoured_is_refused_by_node_file_and_key() {
        let held = held(&[("root", r#"{"deny": ["Web"]}"#), ("x", r#"{"network": false}"#)]).unwrap();
        let of = |kind| Executor { kind, ..Executor::default() };
        assert_eq!(
            held.check(&of(ExecutorKind::Script)).unwrap_err().to_string(),
            "node `x`: `.runner/nodes/x/tools.json`: `network` cannot be honoured by agents of kind \"script\": \
             remove the key, or choose an agent that can keep to it"
        );
        assert!(held.check(&of(ExecutorKind::Claude)).is_err());
        let model = self::held(&[("root", r#"{"model": "m"}"#)]).unwrap();
        assert_eq!(model.check(&of(ExecutorKind::Claude)), Ok(()));
        assert!(model.check(&of(ExecutorKind::Command)).is_err());
        assert_eq!(Held::default().check(&of(ExecutorKind::Command)), Ok(()));
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
