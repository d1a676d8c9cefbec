//! Node.js: the package manager, the script to run, and how dependencies are installed.

use serde_json::Value;

use super::{PackageCheck, RepoListing, Stack};

/// Scripts that check a package, best first.
const SCRIPTS: [&str; 4] = ["ci", "test", "check", "build"];
/// What `npm init` writes for a package without tests.
const NO_TEST: &str = "no test specified";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PackageManager {
    Npm,
    Pnpm,
    Yarn,
    /// Yarn 2 and newer, with other flags.
    YarnBerry,
    Bun,
}

/// Lock files, each with its package manager.
const LOCK_FILES: [(&str, PackageManager); 6] = [
    ("pnpm-lock.yaml", PackageManager::Pnpm),
    ("yarn.lock", PackageManager::Yarn),
    ("bun.lock", PackageManager::Bun),
    ("bun.lockb", PackageManager::Bun),
    ("package-lock.json", PackageManager::Npm),
    ("npm-shrinkwrap.json", PackageManager::Npm),
];

impl PackageManager {
    fn program(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pnpm => "pnpm",
            Self::Yarn | Self::YarnBerry => "yarn",
            Self::Bun => "bun",
        }
    }

    /// The command that installs exactly what the lock file names.
    fn install(self) -> &'static [&'static str] {
        match self {
            Self::Npm => &["npm", "ci"],
            Self::Pnpm => &["pnpm", "install", "--frozen-lockfile"],
            Self::Yarn => &["yarn", "install", "--frozen-lockfile"],
            Self::YarnBerry => &["yarn", "install", "--immutable"],
            Self::Bun => &["bun", "install", "--frozen-lockfile"],
        }
    }
}

/// The check of a folder with a package.json.
pub(super) fn check(listing: &RepoListing, folder: &str) -> Option<PackageCheck> {
    let package: Value = serde_json::from_str(listing.text(folder, "package.json")?).ok()?;
    let lock = LOCK_FILES.into_iter().find(|(name, _)| listing.has(folder, name));
    let manager = manager_of(listing, folder, &package, lock.map(|(_, manager)| manager));
    let program = manager.program();
    let source = format!("package.json, {program}");
    let command: Vec<&str> = match script(&package) {
        Some("test") if manager == PackageManager::Bun => vec![program, "run", "test"],
        Some("test") => vec![program, "test"],
        Some(script) => vec![program, "run", script],
        None => Vec::new(),
    };
    let mut check = PackageCheck::new(Stack::Node, source, &command);
    if !has_dependencies(&package) {
        return Some(check);
    }
    check = match lock {
        Some((lock, _)) => check.with_setup(manager.install(), &[lock, "package.json"]),
        None if listing.has_local(folder, "node_modules") => {
            check.keep.push("node_modules".to_owned());
            check
        }
        None => check.with_setup(&[program, "install"], &["package.json"]),
    };
    Some(check)
}

fn manager_of(
    listing: &RepoListing,
    folder: &str,
    package: &Value,
    by_lock: Option<PackageManager>,
) -> PackageManager {
    let named = package.get("packageManager").and_then(Value::as_str).unwrap_or_default();
    let (name, version) = named.split_once('@').unwrap_or((named, ""));
    let is_berry = |version: &str| !version.is_empty() && !version.starts_with("1.");
    let manager = match name {
        "npm" => Some(PackageManager::Npm),
        "pnpm" => Some(PackageManager::Pnpm),
        "yarn" if is_berry(version) => Some(PackageManager::YarnBerry),
        "yarn" => Some(PackageManager::Yarn),
        "bun" => Some(PackageManager::Bun),
        _ => by_lock,
    };
    match manager.unwrap_or(PackageManager::Npm) {
        PackageManager::Yarn if listing.has(folder, ".yarnrc.yml") => PackageManager::YarnBerry,
        manager @ (PackageManager::Npm
        | PackageManager::Pnpm
        | PackageManager::Yarn
        | PackageManager::YarnBerry
        | PackageManager::Bun) => manager,
    }
}

fn script(package: &Value) -> Option<&'static str> {
    let is_check = |name: &&str| {
        let text = package.pointer(&format!("/scripts/{name}")).and_then(Value::as_str);
        text.is_some_and(|text| !text.trim().is_empty() && !text.contains(NO_TEST))
    };
    SCRIPTS.into_iter().find(is_check)
}

fn has_dependencies(package: &Value) -> bool {
    ["dependencies", "devDependencies", "workspaces"]
        .iter()
        .any(|key| package.get(key).is_some_and(|list| list != &serde_json::json!({})))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::sample::listing;

    fn found(files: &[(&str, &str)]) -> (String, Option<String>) {
        let check = check(&listing(files), "").unwrap();
        (check.command.join(" "), check.setup.map(|setup| setup.join(" ")))
    }

    const PACKAGE: &str = r#"{"scripts": {"test": "vitest run"}, "devDependencies": {"vitest": "1"}}"#;

    #[test]
    fn the_lock_file_names_the_package_manager() {
        for (lock, test, install) in [
            ("package-lock.json", "npm test", "npm ci"),
            ("pnpm-lock.yaml", "pnpm test", "pnpm install --frozen-lockfile"),
            ("yarn.lock", "yarn test", "yarn install --frozen-lockfile"),
            ("bun.lock", "bun run test", "bun install --frozen-lockfile"),
        ] {
            let files = [("package.json", PACKAGE), (lock, "")];
            assert_eq!(found(&files), (test.to_owned(), Some(install.to_owned())), "{lock}");
        }
        let berry = [("package.json", PACKAGE), ("yarn.lock", ""), (".yarnrc.yml", "")];
        assert_eq!(found(&berry).1.as_deref(), Some("yarn install --immutable"));
    }

    #[test]
    fn the_package_manager_field_wins() {
        let package = PACKAGE.replacen('{', r#"{"packageManager": "pnpm@9.1.0", "#, 1);
        assert_eq!(found(&[("package.json", &package), ("package-lock.json", "")]).0, "pnpm test");
        let package = PACKAGE.replacen('{', r#"{"packageManager": "yarn@4.0.0", "#, 1);
        assert_eq!(
            found(&[("package.json", &package), ("yarn.lock", "")]).1.unwrap(),
            "yarn install --immutable"
        );
    }

    #[test]
    fn a_script_that_only_says_that_there_are_no_tests_is_none() {
        let package =
            r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1", "build": "tsc"}}"#;
        assert_eq!(found(&[("package.json", package)]), ("npm run build".to_owned(), None));
        assert_eq!(found(&[("package.json", "{}")]), (String::new(), None));
    }

    #[test]
    fn without_a_lock_file_installed_packages_are_kept() {
        let mut listing = listing(&[("package.json", PACKAGE)]);
        assert_eq!(check(&listing, "").unwrap().setup.unwrap(), ["npm", "install"]);
        listing.local_folders.insert("node_modules".to_owned());
        let check = check(&listing, "").unwrap();
        assert_eq!((check.keep, check.setup), (vec!["node_modules".to_owned()], None));
    }
}
