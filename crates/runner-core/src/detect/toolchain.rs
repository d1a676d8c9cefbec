//! Tool chains whose own command runs all tests: Cargo, Go, Maven and Gradle.

use super::{PackageCheck, RepoListing, Stack};

pub(super) fn checks(listing: &RepoListing, folder: &str) -> Vec<PackageCheck> {
    [cargo(listing, folder), go(listing, folder), maven(listing, folder), gradle(listing, folder)]
        .into_iter()
        .flatten()
        .collect()
}

fn cargo(listing: &RepoListing, folder: &str) -> Option<PackageCheck> {
    let manifest = listing.text(folder, "Cargo.toml")?;
    let is_workspace = manifest.lines().any(|line| line.trim() == "[workspace]");
    let uses_nextest = listing.has(folder, ".config/nextest.toml") && listing.has_program("cargo-nextest");
    let mut command = if uses_nextest { vec!["cargo", "nextest", "run"] } else { vec!["cargo", "test"] };
    command.extend(is_workspace.then_some("--workspace"));
    let source = if is_workspace { "Cargo.toml, a workspace" } else { "Cargo.toml" };
    Some(PackageCheck::new(Stack::Cargo, source, &command))
}

fn go(listing: &RepoListing, folder: &str) -> Option<PackageCheck> {
    let is_module = listing.has(folder, "go.mod");
    is_module.then(|| PackageCheck::new(Stack::Go, "go.mod", &["go", "test", "./..."]))
}

fn maven(listing: &RepoListing, folder: &str) -> Option<PackageCheck> {
    let program = if listing.has(folder, "mvnw") { "./mvnw" } else { "mvn" };
    let is_project = listing.has(folder, "pom.xml");
    is_project.then(|| PackageCheck::new(Stack::Maven, "pom.xml", &[program, "-B", "-q", "verify"]))
}

fn gradle(listing: &RepoListing, folder: &str) -> Option<PackageCheck> {
    let files = ["build.gradle.kts", "build.gradle", "settings.gradle.kts", "settings.gradle"];
    let file = files.into_iter().find(|name| listing.has(folder, name))?;
    let program = if listing.has(folder, "gradlew") { "./gradlew" } else { "gradle" };
    // The daemon would outlive the guard.
    Some(PackageCheck::new(Stack::Gradle, file, &[program, "--no-daemon", "check"]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::sample::listing;

    #[test]
    fn each_tool_chain_has_its_command() {
        for (files, command) in [
            (&[("Cargo.toml", "[package]\n")][..], "cargo test"),
            (&[("Cargo.toml", "[workspace]\nmembers = []\n")], "cargo test --workspace"),
            (&[("Cargo.toml", ""), (".config/nextest.toml", "")], "cargo nextest run"),
            (&[("go.mod", "module x\n")], "go test ./..."),
            (&[("pom.xml", "")], "mvn -B -q verify"),
            (&[("pom.xml", ""), ("mvnw", "")], "./mvnw -B -q verify"),
            (&[("build.gradle.kts", ""), ("gradlew", "")], "./gradlew --no-daemon check"),
            (&[("settings.gradle", "")], "gradle --no-daemon check"),
        ] {
            let found = checks(&listing(files), "");
            assert_eq!(found.iter().map(|check| check.command.join(" ")).collect::<Vec<_>>(), [command]);
        }
        let mut listing = listing(&[("Cargo.toml", ""), (".config/nextest.toml", "")]);
        listing.programs.remove("cargo-nextest");
        assert_eq!(checks(&listing, "").first().unwrap().command, ["cargo", "test"]);
    }
}
