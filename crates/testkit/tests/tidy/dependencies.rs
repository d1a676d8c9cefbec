//! Which crate may depend on which. Development dependencies are not restricted.

use std::collections::{BTreeMap, BTreeSet};

use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

use crate::repository::{assert_none, files, root};

enum AllowedDependencies {
    Only(&'static [&'static str]),
    /// Anything but these, directly or through another crate of the workspace.
    AllBut(&'static [&'static str]),
}
use AllowedDependencies::{AllBut, Only};

/// Crate, allowed dependencies, reason.
const RULES: &[(&str, AllowedDependencies, &str)] = &[
    (
        "runner-core",
        Only(&[
            "aho-corasick",
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
        "the rules are pure: no files, processes, clock or threads",
    ),
    (
        "audit-bundle",
        Only(&["runner-core", "serde", "serde_json", "sha1", "thiserror"]),
        "it also runs in a browser: no files, processes, clock or threads",
    ),
    (
        "supervise",
        Only(&["landlock", "nix", "rustix", "serde", "serde_json", "signal-hook", "thiserror"]),
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
        "the host has no user interface: no command line, no colours, no async, no HTTP",
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
        "it is shared by all binaries, so it must not depend on one of them or on what only one needs",
    ),
    (
        "runner",
        Only(&[
            "clap",
            "clap_complete",
            "runner-term",
            "runner-core",
            "runner-eval",
            "runner-host",
            "runner-mcp",
            "runner-ui",
            "serde",
            "serde_json",
            "supervise",
            "thiserror",
            "unicode-width",
        ]),
        "it parses arguments and prints; anything else belongs in the core, the host, or the programs that it contains",
    ),
    (
        "runner-mcp",
        Only(&["rmcp", "serde_json", "tokio"]),
        "it speaks a protocol; tools and what they do come from its caller",
    ),
    ("runner-ui", AllBut(&["runner-eval", "runner"]), "it reads runs and never starts them"),
    (
        "runner-eval",
        AllBut(&["axum", "hyper", "runner", "runner-ui", "tokio"]),
        "it runs the binary as a user does; it shares only the types of the formats, and `supervise`",
    ),
    (
        "crash-campaign",
        Only(&["clap", "nix", "rustix", "seccompiler", "serde_json", "tempfile", "testkit"]),
        "it judges the runner from outside, with code that the runner does not share",
    ),
    (
        "conformance-bench",
        Only(&["clap", "scripted-model", "serde", "serde_json", "tempfile", "thiserror", "toml"]),
        "it judges the runner as one tool among others, with code that no judged tool shares",
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
        "it is the agents' provider, and must not know the runner",
    ),
    ("testkit", AllBut(&[]), "test support may use anything"),
];

const TEST_SUPPORT: &[&str] = &["conformance-bench", "crash-campaign", "scripted-model", "testkit"];

pub(crate) fn workspace() -> Metadata {
    let manifest = root().join("Cargo.toml");
    // Without `no_deps`, cargo would fetch the crates of other platforms.
    MetadataCommand::new().manifest_path(manifest).no_deps().exec().expect("cargo metadata")
}

/// The dependencies of every crate, without development dependencies.
fn product_dependencies(workspace: &Metadata) -> BTreeMap<&str, BTreeSet<&str>> {
    workspace.packages.iter().map(|package| (package.name.as_str(), dependencies_of(package))).collect()
}

fn dependencies_of(package: &Package) -> BTreeSet<&str> {
    let dependencies = package.dependencies.iter();
    dependencies
        .filter(|dependency| dependency.kind != DependencyKind::Development)
        .map(|dependency| dependency.name.as_str())
        .collect()
}

/// The dependencies of a crate, direct or through other crates of the workspace.
fn transitive_dependencies<'a>(
    name: &str,
    crates: &BTreeMap<&'a str, BTreeSet<&'a str>>,
) -> BTreeSet<&'a str> {
    let mut all = BTreeSet::new();
    let mut next: Vec<&str> = crates.get(name).into_iter().flatten().copied().collect();
    while let Some(used) = next.pop() {
        if all.insert(used) {
            next.extend(crates.get(used).into_iter().flatten());
        }
    }
    all
}

#[test]
fn crates_have_only_allowed_dependencies() {
    let workspace = workspace();
    let crates = product_dependencies(&workspace);
    let mut violations = Vec::new();
    for (name, allowed, why) in RULES {
        let forbidden: Vec<&str> = match allowed {
            Only(allowed) => crates
                .get(name)
                .into_iter()
                .flatten()
                .copied()
                .filter(|used| !allowed.contains(used))
                .collect(),
            AllBut(banned) => transitive_dependencies(name, &crates)
                .into_iter()
                .filter(|used| banned.contains(used))
                .collect(),
        };
        violations
            .extend(forbidden.iter().map(|used| format!("crates/{name} must not depend on `{used}`: {why}")));
    }
    assert_none(&violations);
}

#[test]
fn every_crate_has_a_rule() {
    let workspace = workspace();
    let has_no_rule = |name: &&str| RULES.iter().all(|(rule, ..)| rule != name);
    let violations: Vec<String> = product_dependencies(&workspace)
        .into_keys()
        .filter(has_no_rule)
        .map(|name| format!("`{name}` has no entry in `RULES`: add what it may depend on, and why"))
        .collect();
    assert_none(&violations);
}

/// The evaluation must not depend on the code that it measures. Of the host it may use the clock's format, the redaction of
/// keys, and the git commands that run no program which an agent's repository configures.
#[test]
fn evaluation_uses_only_clock_redaction_and_demo_repository_of_the_host() {
    let mut violations = Vec::new();
    for file in files().iter().filter(|file| file.path.starts_with("crates/runner-eval/src/")) {
        for line in file.text.lines().filter(|line| line.contains("runner_host::")) {
            let allowed = ["runner_host::clock", "runner_host::ops::demo_repo", "runner_host::redaction"];
            if !allowed.iter().any(|module| line.contains(module)) {
                violations.push(format!(
                    "{}: `{}`: the evaluation measures the host",
                    file.path,
                    line.trim()
                ));
            }
        }
    }
    assert_none(&violations);
}

#[test]
fn test_support_is_only_a_dev_dependency() {
    let workspace = workspace();
    let mut violations = Vec::new();
    let crates = product_dependencies(&workspace);
    for (name, used) in crates.into_iter().filter(|(name, _)| !TEST_SUPPORT.contains(name)) {
        let support = TEST_SUPPORT.iter().filter(|support| used.contains(*support));
        violations.extend(
            support.map(|support| format!("crates/{name} depends on `{support}`: make it a dev-dependency")),
        );
    }
    assert_none(&violations);
}

#[test]
fn every_crate_inherits_the_workspace_lints() {
    let mut violations = Vec::new();
    for file in files().iter().filter(|file| file.path.starts_with("crates/") && file.name() == "Cargo.toml")
    {
        let manifest: toml::Table = file.text.parse().expect("a valid manifest");
        let inherited = manifest.get("lints").and_then(|lints| lints.get("workspace"));
        if inherited.and_then(toml::Value::as_bool) != Some(true) {
            violations.push(format!("{}: add `[lints]` with `workspace = true`", file.path));
        }
    }
    assert_none(&violations);
}
