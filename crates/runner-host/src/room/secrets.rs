//! The user's keys, logins and passwords, which a room hides.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use runner_core::agents::AGENTS;
use runner_core::detect::login_places;

use super::home::{Mount, home};
use crate::agent::sandbox_argv::HIDDEN_FOLDERS;
use crate::error::Error;
use crate::fs::atomic;

/// Where programs keep keys, logins and passwords, relative to the home folder. The logins of agents are not listed: the registry
/// knows them.
const SECRETS: [&str; 32] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".oci",
    ".password-store",
    ".netrc",
    ".git-credentials",
    ".pypirc",
    ".npmrc",
    ".yarnrc.yml",
    ".vault-token",
    ".pgpass",
    ".my.cnf",
    ".boto",
    ".s3cfg",
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".docker/config.json",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".config/gcloud",
    ".config/gh",
    ".config/glab-cli",
    ".config/op",
    ".local/share/keyrings",
];

/// Variables with another place of a secret, and what is below it.
const MOVED_SECRETS: [(&str, &str); 6] = [
    ("CARGO_HOME", "credentials"),
    ("CARGO_HOME", "credentials.toml"),
    ("GNUPGHOME", ""),
    ("DOCKER_CONFIG", "config.json"),
    ("AWS_SHARED_CREDENTIALS_FILE", ""),
    ("NPM_CONFIG_USERCONFIG", ""),
];

/// The mounts that hide the user's secrets. They come after all other mounts of the home.
pub(super) fn mounts(root: &Path) -> Vec<Mount> {
    let Some(home) = home(root) else { return Vec::new() };
    let paths = places(&home, &|name| std::env::var_os(name));
    let mut mounts: Vec<Mount> = paths.iter().filter_map(|path| hidden(path, &home, root)).collect();
    mounts.dedup();
    mounts
}

/// Every place of a secret, whether it is there or not.
fn places(home: &Path, variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = SECRETS.iter().map(|path| home.join(path)).collect();
    let moved = |name: &str, below: &str| variable(name).map(|folder| Path::new(&folder).join(below));
    places.extend(MOVED_SECRETS.iter().filter_map(|(name, below)| moved(name, below)));
    for login in AGENTS.into_iter().map(login_places) {
        places.extend(login.files.iter().map(|file| home.join(file)));
        places.extend(login.moved.and_then(|login| moved(login.folder_variable, login.file)));
    }
    places.retain(|place| place.is_absolute());
    places.sort();
    // What is in a folder that is hidden is hidden.
    places.dedup_by(|place, above| place.starts_with(above));
    places
}

/// The mount that hides what is at a path; none if nothing is there. Behind a link, its target is hidden: the link alone would
/// still lead there.
fn hidden(path: &Path, home: &Path, root: &Path) -> Option<Mount> {
    let real = path.canonicalize().ok()?;
    let is_covered = HIDDEN_FOLDERS.iter().any(|folder| real.starts_with(folder)) && !real.starts_with(home);
    // Neither the repository nor the home is a secret as a whole.
    let is_too_much = root.starts_with(&real) || home.starts_with(&real);
    if is_covered || is_too_much || real.starts_with(root) {
        return None;
    }
    let kind = real.symlink_metadata().ok()?.file_type();
    match (kind.is_dir(), kind.is_file()) {
        (true, _) => Some(Mount::EmptyFolder(real)),
        (_, true) => Some(Mount::EmptyFile(real)),
        (false, false) => None,
    }
}

/// Removes secrets from a copy of a folder of the home.
pub(super) fn remove_from_copy(folder: &str, copy: &Path) -> Result<(), Error> {
    let below = SECRETS.iter().filter_map(|secret| Path::new(secret).strip_prefix(folder).ok());
    below.map(|path| copy.join(path)).try_for_each(|path| atomic::remove_any(&path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logins_of_all_agents_are_places_of_secrets() {
        let home = Path::new("/h");
        let moved = |name: &str| (name == "CODEX_HOME").then(|| OsString::from("/moved"));
        let places = places(home, &moved);
        let is_hidden = |path: &Path| places.iter().any(|place| path.starts_with(place));
        for agent in AGENTS {
            for file in login_places(agent).files {
                assert!(is_hidden(&home.join(&file)), "{}: {file}", agent.name);
            }
        }
        assert!(is_hidden(Path::new("/moved/auth.json")));
        assert!(is_hidden(&home.join(".ssh/id")) && !is_hidden(&home.join(".sshrc")));
    }

    #[test]
    fn what_a_link_leads_to_is_hidden() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["home", "work", "home/keys"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        let link = |target: &str, name: &str| std::os::unix::fs::symlink(at(target), at(name)).unwrap();
        link("home/keys", "home/.ssh");
        link("home", "home/.aws");
        link("work", "home/.kube");
        link("nothing", "home/.netrc");
        let hide = |name: &str| hidden(&at("home").join(name), &at("home"), &at("work"));
        assert_eq!(hide(".ssh"), Some(Mount::EmptyFolder(at("home/keys"))));
        for name in [".aws", ".kube", ".netrc", ".gnupg"] {
            assert_eq!(hide(name), None, "{name}");
        }
    }

    #[test]
    fn a_copy_of_a_cache_has_no_passwords() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["settings.xml", "other.xml"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        remove_from_copy(".m2", folder.path()).unwrap();
        assert!(!folder.path().join("settings.xml").exists() && folder.path().join("other.xml").exists());
    }
}
