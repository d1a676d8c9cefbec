//! The home folder of a trial: a private folder in the place of the user's. The entries of the user's home are in it, readable.
//! Agents get copies of their login files and nothing else of their state, so that no trial reads what another one left.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::execution::configured_agents::{AgentState, LoginFile};

/// Files of the home folder that agents replace, so that they cannot be mounted: the trial gets a copy.
const COPIED_HOME_FILES: [&str; 1] = [".claude.json"];
/// A larger file is not a login.
const LOGIN_MAX_BYTES: u64 = 1 << 20;

#[derive(Clone, Debug)]
pub(crate) struct TrialHome {
    /// The user's home, which is also its path inside of the sandbox.
    pub(crate) path: PathBuf,
    /// The folder that is mounted there.
    pub(crate) private: PathBuf,
    state: AgentState,
}

impl TrialHome {
    /// Describes the home; creates nothing.
    pub(crate) fn new(path: PathBuf, private: PathBuf, state: AgentState) -> Self {
        Self { path, private, state }
    }

    pub(crate) fn create(&self) -> io::Result<()> {
        fs::create_dir_all(&self.private)?;
        for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            let target = self.private.join(entry.file_name());
            let kind = entry.file_type()?;
            let is_copied = COPIED_HOME_FILES.iter().any(|name| entry.file_name() == *name);
            if kind.is_symlink() && !self.has_state_at(Path::new(&entry.file_name())) {
                symlink(fs::read_link(entry.path())?, target)?;
            } else if kind.is_file() && is_copied {
                fs::copy(entry.path(), target)?;
            }
        }
        for folder in &self.state.folders {
            fs::create_dir_all(self.private.join(folder))?;
        }
        for LoginFile { path, .. } in &self.state.login_files {
            let source = self.path.join(path);
            let is_login = fs::metadata(&source)
                .is_ok_and(|metadata| metadata.is_file() && metadata.len() <= LOGIN_MAX_BYTES);
            if is_login {
                for home in [&self.private, &self.originals()] {
                    let target = home.join(path);
                    fs::create_dir_all(target.parent().unwrap_or(home))?;
                    fs::copy(&source, target)?;
                }
            }
        }
        Ok(())
    }

    fn has_state_at(&self, path: &Path) -> bool {
        self.state.folders.iter().any(|folder| folder.starts_with(path))
    }

    /// The entries of the user's home that are mounted.
    pub(crate) fn entries(&self) -> Vec<PathBuf> {
        let mut entries: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(&self.path).into_iter().flatten().flatten() {
            let is_mounted = entry.file_type().is_ok_and(|kind| kind.is_dir() || kind.is_file());
            if is_mounted && !self.private.join(entry.file_name()).is_file() {
                entries.push(entry.path());
            }
        }
        entries.sort();
        entries
    }

    /// The folders of agents' state that are mounted over those of the user.
    pub(crate) fn state_folders(&self) -> impl Iterator<Item = &PathBuf> {
        let is_covered = |folder: &&PathBuf| {
            fs::symlink_metadata(self.path.join(folder)).is_ok_and(|metadata| metadata.is_dir())
        };
        self.state.folders.iter().filter(is_covered)
    }

    /// The folder with the logins as they were copied, which the trial cannot see.
    fn originals(&self) -> PathBuf {
        self.private.with_extension("logins")
    }

    /// Copies logins that the agent's program renewed during the trial back to the user's home: the old ones may be invalid now.
    /// A file that another trial has replaced meanwhile stays, and so does one whose new content has other keys.
    pub(crate) fn keep_renewed_logins(&self) -> io::Result<()> {
        for LoginFile { path, .. } in self.state.login_files.iter().filter(|file| file.is_renewable) {
            let own = self.private.join(path);
            let Ok(original) = fs::read(self.originals().join(path)) else { continue };
            let is_file = fs::symlink_metadata(&own)
                .is_ok_and(|metadata| metadata.is_file() && metadata.len() <= LOGIN_MAX_BYTES);
            if !is_file || !is_renewal(&original, &fs::read(&own)?) {
                continue;
            }
            let users = self.path.join(path).canonicalize()?;
            if fs::read(&users)? == original {
                // No other user may read it, not even for a moment.
                fs::set_permissions(&own, fs::metadata(&users)?.permissions())?;
                let name = format!(".{}.{}", path.replace('/', "-"), std::process::id());
                let temporary = users.with_file_name(name);
                fs::copy(&own, &temporary)?;
                fs::rename(&temporary, &users)?;
            }
        }
        Ok(())
    }
}

/// Whether the content changed and both are JSON objects with the same keys.
fn is_renewal(before: &[u8], after: &[u8]) -> bool {
    let keys = |bytes: &[u8]| match serde_json::from_slice(bytes) {
        Ok(Value::Object(object)) => Some(object.keys().cloned().collect::<Vec<_>>()),
        _ => None,
    };
    before != after && keys(before).is_some() && keys(before) == keys(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGIN: &str = ".codex/auth.json";

    /// A home with a login and other state, and the trial's home.
    fn homes(folder: &Path, is_renewable: bool) -> TrialHome {
        let users = folder.join("users");
        fs::create_dir_all(users.join(".codex/memories")).unwrap();
        fs::write(users.join(LOGIN), "{\"token\": \"old\"}").unwrap();
        fs::write(users.join(".codex/memories/note"), "of another trial").unwrap();
        let state = AgentState {
            folders: vec![PathBuf::from(".codex")],
            login_files: vec![LoginFile { path: LOGIN.to_owned(), is_renewable }],
        };
        let home = TrialHome::new(users, folder.join("trial/home"), state);
        home.create().unwrap();
        home
    }

    #[test]
    fn only_the_login_is_copied() {
        let folder = tempfile::tempdir().unwrap();
        let home = homes(folder.path(), true);
        assert!(home.private.join(LOGIN).is_file());
        assert!(!home.private.join(".codex/memories").exists());
        assert_eq!(home.state_folders().collect::<Vec<_>>(), [&PathBuf::from(".codex")]);
    }

    #[test]
    fn only_a_renewed_login_is_copied_back() {
        for (is_renewable, written, expected) in [
            (true, "{\"token\": \"new\"}", "{\"token\": \"new\"}"),
            (false, "{\"token\": \"new\"}", "{\"token\": \"old\"}"),
            (true, "{\"token\": \"new\", \"note\": \"x\"}", "{\"token\": \"old\"}"),
            (true, "", "{\"token\": \"old\"}"),
        ] {
            let folder = tempfile::tempdir().unwrap();
            let home = homes(folder.path(), is_renewable);
            fs::write(home.private.join(LOGIN), written).unwrap();
            home.keep_renewed_logins().unwrap();
            assert_eq!(fs::read_to_string(home.path.join(LOGIN)).unwrap(), expected, "{written}");
        }
    }

    #[test]
    fn login_that_was_removed_or_renewed_elsewhere_stays() {
        let folder = tempfile::tempdir().unwrap();
        let home = homes(folder.path(), true);
        fs::remove_file(home.private.join(LOGIN)).unwrap();
        home.keep_renewed_logins().unwrap();
        assert!(home.path.join(LOGIN).is_file());
        fs::write(home.private.join(LOGIN), "{\"token\": \"mine\"}").unwrap();
        fs::write(home.path.join(LOGIN), "{\"token\": \"theirs\"}").unwrap();
        home.keep_renewed_logins().unwrap();
        assert_eq!(fs::read_to_string(home.path.join(LOGIN)).unwrap(), "{\"token\": \"theirs\"}");
    }
}
