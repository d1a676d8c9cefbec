//! Which crate may use which. Only what ships counts: development dependencies are free.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

use crate::repository::{assert_none, files, root};

enum MayUse {
    Only(&'static [&'static str]),
    /// Anything but these, directly or through another crate of the workspace.
    AllBut(&'static [&'static str]),
}
use MayUse::{AllBut, Only};

/// Crate, what it may use, and why. A crate that does not exist yet may have its row already.
const EDGES: &[(&str, MayUse, &str)] = &[
    (
        "runner-core",
        Only(&[
            "minijinja",
            "pulldown-cmark",
            "saphyr-parser",
            "schemars",
            "serde",
            "serde_json",
            "sha2",
            "strsim",
            "thiserror",
            "toml",
        ]),
        "the rules are pure: nothing that knows files, processes, time or threads",
    ),
    (
        "supervise",
        Only(&["rustix", "serde", "serde_json", "signal-hook", "thiserror"]),
        "running programs needs neither git nor runs nor a terminal",
    ),
    (
        "runner-host",
        AllBut(&[
            "anstyle",
            "axum",
            "clap",
            "runner-eval",
            "hyper",
            "runner",
            "runner-term",
            "runner-ui",
            "tokio",
        ]),
        "the host does what it is told: no command line, no colours, no async, no HTTP",
    ),
    (
        "runner-term",
        Only(&[
            "anstyle",
            "clap",
            "clap_complete",
            "clap_mangen",
            "runner-core",
            "runner-host",
            "rustix",
            "serde_json",
            "unicode-width",
        ]),
        "what the commands share at a terminal knows none of them, and brings nothing that only one needs",
    ),
    (
        "runner",
        Only(&[
            "clap",
            "clap_complete",
            "runner-term",
            "runner-core",
            "runner-host",
            "serde",
            "serde_json",
            "supervise",
            "thiserror",
            "unicode-width",
        ]),
        "the command reads its arguments and prints; what needs more belongs in the core or the host",
    ),
    ("runner-ui", AllBut(&["runner-eval", "runner"]), "the pages read runs; they start none"),
    (
        "runner-eval",
        AllBut(&["axum", "hyper", "runner", "runner-ui", "tokio"]),
        "the evaluation starts `runner` as a user would; it shares the types of documents and `supervise`",
    ),
    (
        "scripted-model",
        AllBut(&[
            "runner",
            "runner-core",
            "runner-eval",
            "runner-host",
            "runner-term",
            "runner-ui",
            "supervise",
        ]),
        "the model stands on the other side of the agents: it knows nothing of the runner",
    ),
    ("testkit", AllBut(&[]), "tests may use anything"),
];

const TEST_SUPPORT: &[&str] = &["scripted-model", "testkit"];

fn workspace() -> Metadata {
    let manifest = root().join("Cargo.toml");
    // The manifests alone say who uses whom; resolving them would ask the network for crates of other platforms.
    MetadataCommand::new().manifest_path(manifest).no_deps().exec().expect("cargo reads the workspace")
}

/// Every crate with what it ships with.
fn shipped_dependencies(workspace: &Metadata) -> BTreeMap<&str, BTreeSet<&str>> {
    workspace.packages.iter().map(|package| (package.name.as_str(), shipped_with(package))).collect()
}

fn shipped_with(package: &Package) -> BTreeSet<&str> {
    let ships = |kind: DependencyKind| kind != DependencyKind::Development;
    package.dependencies.iter().filter(|used| ships(used.kind)).map(|used| used.name.as_str()).collect()
}

/// What a crate ships with, itself or through other crates of the workspace.
fn reached<'a>(name: &str, crates: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&str> = crates.get(name).into_iter().flatten().copied().collect();
    while let Some(used) = next.pop() {
        if found.insert(used) {
            next.extend(crates.get(used).into_iter().flatten());
        }
    }
    found
}

#[test]
fn every_crate_uses_only_what_its_row_allows() {
    let workspace = workspace();
    let crates = shipped_dependencies(&workspace);
    let mut broken = Vec::new();
    for (name, may_use, why) in EDGES {
        let forbidden: Vec<&str> = match may_use {
            Only(allowed) => crates
                .get(name)
                .into_iter()
                .flatten()
                .copied()
                .filter(|used| !allowed.contains(used))
                .collect(),
            AllBut(banned) => {
                reached(name, &crates).into_iter().filter(|used| banned.contains(used)).collect()
            }
        };
        broken.extend(forbidden.iter().map(|used| format!("crates/{name} must not use `{used}`: {why}")));
    }
    assert_none(&broken);
}

#[test]
fn every_crate_has_its_row() {
    let workspace = workspace();
    let unknown = |name: &&str| EDGES.iter().all(|(row, ..)| row != name);
    let broken: Vec<String> = shipped_dependencies(&workspace)
        .into_keys()
        .filter(unknown)
        .map(|name| format!("`{name}` has no row in `EDGES`: what may it use that no other crate may?"))
        .collect();
    assert_none(&broken);
}

/// The evaluation must not depend on the code that it measures. Of the host it may use the clock's format, and the git
/// commands that run no program which an agent's repository configures.
#[test]
fn evaluation_uses_only_the_clock_and_the_demo_repository_of_the_host() {
    let mut broken = Vec::new();
    for file in files().iter().filter(|file| file.path.starts_with("crates/runner-eval/src/")) {
        for line in file.text.lines().filter(|line| line.contains("runner_host::")) {
            let allowed = ["runner_host::clock", "runner_host::ops::demo_repo"];
            if !allowed.iter().any(|module| line.contains(module)) {
                broken.push(format!("{}: `{}`: the evaluation measures the host", file.path, line.trim()));
            }
        }
    }
    assert_none(&broken);
}

#[test]
fn only_tests_use_the_test_support() {
    let workspace = workspace();
    let mut broken = Vec::new();
    for (name, used) in shipped_dependencies(&workspace) {
        let support = TEST_SUPPORT.iter().filter(|support| used.contains(*support));
        broken.extend(
            support.map(|support| format!("crates/{name} ships with `{support}`: make it a dev-dependency")),
        );
    }
    assert_none(&broken);
}

#[test]
fn every_crate_obeys_the_lints_of_the_workspace() {
    let mut broken = Vec::new();
    for file in files().iter().filter(|file| file.path.starts_with("crates/") && file.name() == "Cargo.toml")
    {
        let manifest: toml::Table = file.text.parse().expect("cargo has read it too");
        let inherited = manifest.get("lints").and_then(|lints| lints.get("workspace"));
        if inherited.and_then(toml::Value::as_bool) != Some(true) {
            broken.push(format!("{}: add `[lints]` with `workspace = true`", file.path));
        }
    }
    assert_none(&broken);
}
