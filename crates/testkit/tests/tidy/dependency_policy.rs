//! What the dependencies may be, as `deny.toml` says: licences, versions and sources.
//!
//! `cargo deny` reads the same file. Building it takes longer than compiling this workspace, so the nightly workflow runs it,
//! also for security advisories, and these tests apply the rules to every change.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use cargo_metadata::Source;
use serde::Deserialize;
use spdx::{Expression, ParseMode};

use crate::dependencies::workspace;
use crate::repository::{assert_none, root};

/// The keys of `deny.toml` that are applied here. An unknown one would not be.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DenyFile {
    graph: Graph,
    licenses: Licenses,
    bans: Bans,
    sources: Sources,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Graph {
    targets: Vec<String>,
    all_features: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Licenses {
    version: u32,
    allow: BTreeSet<String>,
    include_dev: bool,
    unused_allowed_license: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Bans {
    multiple_versions: String,
    wildcards: String,
    skip: Vec<Skip>,
    allow_wildcard_paths: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Skip {
    #[serde(rename = "crate")]
    package: String,
    reason: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Sources {
    unknown_registry: String,
    unknown_git: String,
}

#[derive(Deserialize)]
struct LockFile {
    package: Vec<LockedPackage>,
}

#[derive(Deserialize)]
struct LockedPackage {
    name: String,
    source: Option<Source>,
}

impl Skip {
    /// Whether this is the package: `name@VERSION` means each version that begins so.
    fn is(&self, package: &Dependency) -> bool {
        let (name, version) = self.package.split_once('@').unwrap_or((&self.package, ""));
        let is_version = package.version == version || package.version.starts_with(&format!("{version}."));
        package.name == name && (version.is_empty() || is_version)
    }
}

fn deny_file() -> DenyFile {
    let text = std::fs::read_to_string(root().join("deny.toml")).expect("deny.toml");
    toml::from_str(&text).expect("a key of deny.toml is not applied: add it here, or remove it there")
}

/// A crate of the graph.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Dependency {
    name: String,
    version: String,
    licence: String,
}

/// The dependencies of these kinds on the targets of `deny.toml`.
fn dependencies(deny: &DenyFile, kinds: &str) -> BTreeSet<Dependency> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["tree", "--locked", "--offline", "--workspace", "--all-features", "--prefix=none"]);
    command.args(["--format={p} {l}", "--edges", kinds]).current_dir(root());
    for target in &deny.graph.targets {
        command.args(["--target", target]);
    }
    let output = command.output().expect("cargo tree");
    let why = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{why}\nif crates of another platform are missing, run: cargo fetch --locked"
    );
    String::from_utf8_lossy(&output.stdout).lines().filter_map(dependency).collect()
}

/// Parses `name v1.0.0 (proc-macro) MIT OR Apache-2.0 (*)`.
fn dependency(line: &str) -> Option<Dependency> {
    let (name, rest) = line.split_once(" v")?;
    let (version, licence) = rest.split_once(' ')?;
    let licence = licence.trim_end_matches(" (*)");
    // A path or `(proc-macro)` may stand before the licence, which can begin with a parenthesis of its own.
    let is_place = |group: &str| group == "proc-macro" || group.contains('/') && !group.contains(" OR ");
    let place = licence.strip_prefix('(').and_then(|rest| rest.split_once(") "));
    let licence = place.filter(|(group, _)| is_place(group)).map_or(licence, |(_, licence)| licence);
    Some(Dependency { name: name.to_owned(), version: version.to_owned(), licence: licence.to_owned() })
}

/// Every licence of an expression, and whether the allowed ones are enough.
fn licences(expression: &str, allowed: &BTreeSet<String>) -> Option<(Vec<String>, bool)> {
    // Older crates write `MIT/Apache-2.0`.
    let parsed = Expression::parse_mode(expression, ParseMode::LAX).ok()?;
    let all = parsed.requirements().map(|requirement| requirement.req.to_string()).collect();
    Some((all, parsed.evaluate(|requirement| allowed.contains(&requirement.to_string()))))
}

#[test]
fn licences_are_allowed_and_every_allowed_one_is_needed() {
    let deny = deny_file();
    let allowed = &deny.licenses.allow;
    assert!(deny.graph.all_features && deny.licenses.include_dev && deny.licenses.version == 2);
    assert_eq!(deny.licenses.unused_allowed_license, "deny");
    let mut unused = allowed.clone();
    let mut violations = Vec::new();
    let all = dependencies(&deny, "normal,build,dev");
    assert!(all.len() > 100, "{}", all.len());
    for Dependency { name, version, licence } in all {
        match licences(&licence, allowed) {
            Some((all, true)) => unused.retain(|allowed| !all.contains(allowed)),
            Some((_, false)) | None => violations.push(format!("{name} {version}: licence `{licence}`")),
        }
    }
    violations
        .extend(unused.iter().map(|licence| format!("deny.toml allows `{licence}`, which no crate has")));
    assert_none(&violations);
}

#[test]
fn shipped_crates_have_one_version() {
    let deny = deny_file();
    assert_eq!(deny.bans.multiple_versions, "deny");
    let packages = dependencies(&deny, "normal,build");
    let mut versions: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for package in &packages {
        if !deny.bans.skip.iter().any(|skip| skip.is(package)) {
            versions.entry(&package.name).or_default().push(&package.version);
        }
    }
    let repeated = versions.iter().filter(|(_, versions)| versions.len() > 1);
    let mut violations: Vec<String> = repeated
        .map(|(name, versions)| format!("{name} has the versions {}", versions.join(" and ")))
        .collect();
    for skip in &deny.bans.skip {
        if skip.reason.is_empty() || !packages.iter().any(|package| skip.is(package)) {
            violations
                .push(format!("deny.toml skips `{}`, which has no reason or is not there", skip.package));
        }
    }
    assert_none(&violations);
}

#[test]
fn crates_come_from_the_registry_with_a_version() {
    let deny = deny_file();
    assert_eq!((deny.sources.unknown_registry.as_str(), deny.sources.unknown_git.as_str()), ("deny", "deny"));
    assert!(deny.bans.wildcards == "deny" && deny.bans.allow_wildcard_paths);
    let text = std::fs::read_to_string(root().join("Cargo.lock")).expect("Cargo.lock");
    let lock: LockFile = toml::from_str(&text).expect("a lock file");
    let workspace = workspace();
    let is_member = |name: &str| workspace.packages.iter().any(|member| *member.name == name);
    let mut violations = Vec::new();
    for LockedPackage { name, source } in lock.package {
        let is_known = source.as_ref().map_or_else(|| is_member(&name), Source::is_crates_io);
        if !is_known {
            let source = source.map_or_else(|| "a folder".to_owned(), |source| source.repr);
            violations.push(format!("{name} comes from {source}"));
        }
    }
    for member in &workspace.packages {
        let is_wildcard =
            |one: &&cargo_metadata::Dependency| one.path.is_none() && one.req.comparators.is_empty();
        let wildcards = member.dependencies.iter().filter(is_wildcard);
        violations.extend(wildcards.map(|one| format!("{} needs any version of {}", member.name, one.name)));
    }
    assert_none(&violations);
}

#[test]
fn lines_of_the_graph_are_read() {
    for (line, licence) in [
        ("serde v1.0.2 MIT OR Apache-2.0", "MIT OR Apache-2.0"),
        ("serde v1.0.2 MIT/Apache-2.0 (*)", "MIT/Apache-2.0"),
        ("serde v1.0.2 (proc-macro) MIT", "MIT"),
        ("serde v1.0.2 (/work/serde) MIT", "MIT"),
        ("serde v1.0.2 (MIT OR Apache-2.0) AND Unicode-3.0", "(MIT OR Apache-2.0) AND Unicode-3.0"),
        ("serde v1.0.2 ", ""),
    ] {
        let read = dependency(line).expect(line);
        assert_eq!(
            (read.name.as_str(), read.version.as_str(), read.licence.as_str()),
            ("serde", "1.0.2", licence)
        );
    }
}

#[test]
fn expressions_of_licences_are_evaluated() {
    let allowed: BTreeSet<String> = ["MIT", "Apache-2.0"].map(str::to_owned).into();
    for (expression, is_allowed) in [
        ("MIT", true),
        ("MIT/Apache-2.0", true),
        ("GPL-3.0-only OR MIT", true),
        ("GPL-3.0-only AND MIT", false),
        ("(MIT OR ISC) AND Unicode-3.0", false),
        ("Apache-2.0 WITH LLVM-exception", false),
    ] {
        assert_eq!(licences(expression, &allowed).map(|(_, fits)| fits), Some(is_allowed), "{expression}");
    }
    assert!(licences("", &allowed).is_none());
}
