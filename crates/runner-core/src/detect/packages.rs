//! The packages of a repository, and the one command that checks them all.

use std::collections::BTreeSet;

use super::guard_words::quoted;
use super::{
    DEPTH_MAX, PackageCheck, RepoListing, Stack, join, node, python, split_path, task_runner, toolchain,
};

/// Files that mark the folder of a package.
const MARKERS: [&str; 18] = [
    "justfile",
    ".justfile",
    "Justfile",
    "GNUmakefile",
    "makefile",
    "Makefile",
    "Cargo.toml",
    "package.json",
    "pyproject.toml",
    "setup.py",
    "requirements.txt",
    "Pipfile",
    "go.mod",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "settings.gradle",
    "settings.gradle.kts",
];

/// Folders whose packages are not part of the project.
const SKIPPED: [&str; 12] = [
    "docs",
    "doc",
    "examples",
    "example",
    "fixtures",
    "testdata",
    "tests",
    "test",
    "vendor",
    "third_party",
    "node_modules",
    "benches",
];

/// The most packages in one guard.
const PACKAGES_MAX: usize = 8;

/// The guard of a repository, as its files suggest it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DetectedGuard {
    pub(super) command: Vec<String>,
    pub(super) setup: Option<Vec<String>>,
    pub(super) setup_inputs: Vec<String>,
    pub(super) keep: Vec<String>,
    /// Where the parts were found: `Cargo.toml`, `web/package.json, npm`.
    pub(super) sources: Vec<String>,
    pub(super) stacks: Vec<Stack>,
    /// What a reader should know: packages left out, programs that are missing.
    pub(super) notes: Vec<String>,
}

/// The checks of one folder.
struct Package {
    folder: String,
    /// The commands that check it.
    checks: Vec<PackageCheck>,
    /// Everything that was found, also packages without tests.
    found: Vec<PackageCheck>,
    notes: Vec<String>,
}

impl Package {
    /// The folder's task runner if it has a recipe for all checks, or else its tool chains.
    fn read(listing: &RepoListing, folder: &str) -> Self {
        let can_run = |check: &PackageCheck| {
            check.command.first().is_some_and(|program| listing.can_run(folder, program))
        };
        let mut found = toolchain::checks(listing, folder);
        found.extend(node::check(listing, folder));
        found.extend(python::check(listing, folder));
        let tested: Vec<PackageCheck> =
            found.iter().filter(|check| !check.command.is_empty()).cloned().collect();
        let runners = task_runner::checks(listing, folder);
        let (usable, missing): (Vec<_>, Vec<_>) = runners.into_iter().partition(can_run);
        let mut notes: Vec<String> = Vec::new();
        let checks = match (usable.into_iter().next(), missing.into_iter().next()) {
            (Some(runner), _) => vec![runner],
            (None, Some(runner)) if !tested.iter().any(can_run) => vec![runner],
            (None, missing) => {
                notes.extend(missing.map(|missing| {
                    format!(
                        "{}: not used, because `{}` is not on the PATH",
                        missing.source,
                        missing.stack.name()
                    )
                }));
                tested
            }
        };
        Self { folder: folder.to_owned(), checks, found, notes }
    }

    fn has_task_runner(&self) -> bool {
        self.checks.iter().any(|check| check.stack.is_task_runner())
    }

    fn stacks(&self) -> impl Iterator<Item = Stack> {
        self.found.iter().map(|check| check.stack)
    }
}

/// The command that checks every package, if any package has tests.
pub(super) fn detect_guard(listing: &RepoListing) -> Option<DetectedGuard> {
    let root = Package::read(listing, "");
    let below: Vec<Package> = folders(listing).iter().map(|folder| Package::read(listing, folder)).collect();
    let is_root_enough = root.has_task_runner();
    let mut selected: Vec<&Package> = vec![&root];
    let mut left_out = 0;
    for package in below.iter().filter(|package| !is_root_enough && !package.checks.is_empty()) {
        let is_covered = selected.iter().any(|parent| {
            let is_inside =
                parent.folder.is_empty() || package.folder.starts_with(&format!("{}/", parent.folder));
            let covers = |stack| parent.has_task_runner() || parent.stacks().any(|other| other == stack);
            is_inside && package.checks.iter().all(|check| covers(check.stack))
        });
        if is_covered {
            continue;
        }
        if selected.len() > PACKAGES_MAX { left_out += 1 } else { selected.push(package) }
    }
    let checked: Vec<Part<'_>> = selected
        .iter()
        .flat_map(|package| package.checks.iter().map(|check| Part { folder: &package.folder, check }))
        .collect();
    if checked.is_empty() {
        return None;
    }
    // A task runner may use every package, so all of them are set up.
    let needed: Vec<&Package> = if is_root_enough {
        std::iter::once(&root).chain(&below).take(PACKAGES_MAX).collect()
    } else {
        selected
    };
    let needed_parts: Vec<Part<'_>> = needed
        .iter()
        .flat_map(|package| package.found.iter().map(|check| Part { folder: &package.folder, check }))
        .collect();
    let mut guard = combined(&checked, &needed_parts)?;
    guard.notes.extend(needed.iter().flat_map(|package| package.notes.iter().cloned()));
    guard.notes.extend(missing_programs(listing, &checked));
    if left_out > 0 {
        guard.notes.push(format!("{left_out} more packages are not in the guard"));
    }
    Some(guard)
}

#[derive(Clone, Copy)]
struct Part<'p> {
    folder: &'p str,
    check: &'p PackageCheck,
}

fn combined(checked: &[Part<'_>], needed: &[Part<'_>]) -> Option<DetectedGuard> {
    let commands: Vec<InFolder<'_>> =
        checked.iter().map(|part| InFolder { folder: part.folder, words: &part.check.command }).collect();
    let setups: Vec<InFolder<'_>> = needed
        .iter()
        .filter_map(|part| Some(InFolder { folder: part.folder, words: part.check.setup.as_ref()? }))
        .collect();
    let paths = |names: fn(&PackageCheck) -> &Vec<String>| -> Vec<String> {
        let all = needed.iter().flat_map(|part| names(part.check).iter().map(|name| join(part.folder, name)));
        all.collect::<BTreeSet<_>>().into_iter().collect()
    };
    let stacks: BTreeSet<Stack> = checked.iter().chain(needed).map(|part| part.check.stack).collect();
    Some(DetectedGuard {
        command: one_command(&commands)?,
        setup: one_command(&setups),
        setup_inputs: paths(|check| &check.setup_inputs),
        keep: paths(|check| &check.keep),
        sources: checked.iter().map(|part| join(part.folder, &part.check.source)).collect(),
        stacks: stacks.into_iter().collect(),
        notes: Vec::new(),
    })
}

/// A command to run in a folder of the repository.
struct InFolder<'p> {
    folder: &'p str,
    words: &'p [String],
}

/// One command at the root as it is; others through a shell, each in its folder, until one fails.
fn one_command(commands: &[InFolder<'_>]) -> Option<Vec<String>> {
    if let [InFolder { folder: "", words }] = commands {
        return Some(words.to_vec());
    }
    let line = |command: &InFolder<'_>| {
        let words: Vec<String> = command.words.iter().map(|word| quoted(word)).collect();
        match command.folder {
            "" => words.join(" "),
            folder => format!("(cd {} && {})", quoted(folder), words.join(" ")),
        }
    };
    let lines: Vec<String> = commands.iter().map(line).collect();
    (!lines.is_empty()).then(|| vec!["sh".to_owned(), "-c".to_owned(), lines.join(" && ")])
}

fn missing_programs(listing: &RepoListing, checked: &[Part<'_>]) -> Vec<String> {
    let programs: BTreeSet<&str> = checked
        .iter()
        .filter_map(|part| {
            let program = part.check.command.first()?;
            (!listing.can_run(part.folder, program)).then_some(program.as_str())
        })
        .collect();
    programs.into_iter().map(|program| format!("`{program}` is not on the PATH")).collect()
}

/// The folders below the root that look like packages.
fn folders(listing: &RepoListing) -> Vec<String> {
    let folders: BTreeSet<&str> = listing
        .paths
        .iter()
        .filter_map(|path| {
            let (folder, name) = split_path(path);
            let parts: Vec<&str> = folder.split('/').collect();
            let is_project = !folder.is_empty()
                && parts.len() <= DEPTH_MAX
                && !parts.iter().any(|part| SKIPPED.contains(part) || part.starts_with('.'));
            (is_project && MARKERS.contains(&name)).then_some(folder)
        })
        .collect();
    folders.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::sample::listing;

    const NODE: &str = r#"{"scripts": {"test": "node --test"}}"#;
    const NODE_WITH_DEPENDENCIES: &str = r#"{"scripts": {"test": "vitest run"}, "dependencies": {"a": "1"}}"#;

    fn command(files: &[(&str, &str)]) -> String {
        detect_guard(&listing(files)).unwrap().command.join(" ")
    }

    #[test]
    fn a_single_package_keeps_its_command() {
        assert_eq!(command(&[("Cargo.toml", "[package]\n")]), "cargo test");
        assert_eq!(
            command(&[("Cargo.toml", "[workspace]\n"), ("a/Cargo.toml", "")]),
            "cargo test --workspace"
        );
        assert_eq!(detect_guard(&listing(&[("README.md", "")])), None);
        assert_eq!(detect_guard(&listing(&[("package.json", "{}")])), None);
    }

    #[test]
    fn every_stack_of_the_root_is_checked() {
        let files = [("Cargo.toml", "[package]\n"), ("package.json", NODE)];
        assert_eq!(command(&files), "sh -c cargo test && npm test");
    }

    #[test]
    fn packages_of_a_monorepo_are_checked_in_their_folders() {
        let files = [
            ("api/go.mod", "module x\n"),
            ("apps/my web/package.json", NODE_WITH_DEPENDENCIES),
            ("apps/my web/package-lock.json", "{}"),
            ("apps/my web/nested/package.json", NODE),
            ("examples/a/package.json", NODE),
        ];
        let guard = detect_guard(&listing(&files)).unwrap();
        assert_eq!(
            guard.command.join(" "),
            "sh -c (cd api && go test ./...) && (cd 'apps/my web' && npm test)"
        );
        assert_eq!(guard.setup.unwrap().join(" "), "sh -c (cd 'apps/my web' && npm ci)");
        assert_eq!(guard.setup_inputs, ["apps/my web/package-lock.json", "apps/my web/package.json"]);
        assert_eq!(guard.sources, ["api/go.mod", "apps/my web/package.json, npm"]);
    }

    #[test]
    fn a_task_runner_at_the_root_covers_everything_below() {
        let files = [
            ("Makefile", "test:\n\tcd web && npm test\n"),
            ("web/package.json", NODE_WITH_DEPENDENCIES),
            ("web/package-lock.json", "{}"),
        ];
        let guard = detect_guard(&listing(&files)).unwrap();
        assert_eq!(guard.command, ["make", "test"]);
        assert_eq!(guard.setup.unwrap(), ["sh", "-c", "(cd web && npm ci)"]);
        assert_eq!(guard.stacks, [Stack::Make, Stack::Node]);
    }

    #[test]
    fn a_missing_task_runner_falls_back_to_the_tool_chain_and_says_so() {
        let files = [("justfile", "ci:\n  cargo test\n"), ("Cargo.toml", "")];
        let mut listing = listing(&files);
        assert_eq!(detect_guard(&listing).unwrap().command, ["just", "ci"]);
        listing.programs.remove("just");
        let guard = detect_guard(&listing).unwrap();
        assert_eq!(guard.command, ["cargo", "test"]);
        assert_eq!(guard.notes, ["justfile, recipe `ci`: not used, because `just` is not on the PATH"]);
        listing.programs.remove("cargo");
        let guard = detect_guard(&listing).unwrap();
        assert_eq!(
            (guard.command.join(" "), guard.notes),
            ("just ci".to_owned(), vec!["`just` is not on the PATH".to_owned()])
        );
    }
}
