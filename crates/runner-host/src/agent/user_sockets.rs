//! Sockets of services of the user: what connects to one could start a program outside of a sandbox.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::agent::sandbox::canonical;

/// The kernel's list of sockets.
const SOCKETS: &str = "/proc/net/unix";
/// More than any user has services.
const SOCKETS_MAX: usize = 500;

/// Variables that name the socket of a service, by its path or by an address.
const VARIABLES: [&str; 4] = ["DOCKER_HOST", "CONTAINER_HOST", "SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS"];
/// What comes before the path in an address.
const SCHEMES: [&str; 2] = ["unix://", "unix:path="];

/// The sockets that the user's variables name, such as DOCKER_HOST.
pub(super) fn of_variables(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    let values = VARIABLES.iter().filter_map(|name| variable(name)?.into_string().ok());
    let paths = values.map(|value| {
        let path = SCHEMES.iter().find_map(|scheme| value.strip_prefix(scheme)).unwrap_or(&value);
        // An address of D-Bus may have options behind its path.
        PathBuf::from(path.split([',', ';']).next().unwrap_or_default())
    });
    paths.filter(|path| path.is_absolute() && is_socket(path)).collect()
}

/// The sockets of services outside of the repository.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct UserSockets {
    /// Their folders, as far as all of a folder can be hidden: in the home, and where a folder has nothing but sockets.
    pub(super) folders: Vec<PathBuf>,
    /// Those in folders that have other files too.
    pub(super) files: Vec<PathBuf>,
}

/// The sockets that a sandbox hides: those that the user's variables name, and all with a path that the kernel lists.
pub(crate) fn hidden(allowed: &[String]) -> Vec<PathBuf> {
    let named = of_variables(|name| std::env::var_os(name)).into_iter().map(|path| canonical(&path));
    let mut sockets = listed(allowed);
    sockets.extend(named.filter(|path| !is_allowed(path, allowed)));
    sockets.into_iter().collect()
}

fn is_allowed(path: &Path, allowed: &[String]) -> bool {
    allowed.iter().any(|socket| canonical(Path::new(socket)) == path)
}

/// The sockets that exist and that no configuration allows.
fn listed(allowed: &[String]) -> BTreeSet<PathBuf> {
    let listed = fs::read_to_string(SOCKETS).unwrap_or_default();
    let existing = paths(&listed).into_iter().filter(|path| is_socket(path)).map(|path| canonical(&path));
    existing.filter(|path| !is_allowed(path, allowed)).collect()
}

/// The sockets outside of a repository. A folder that has the home or the repository in it is not hidden.
pub(super) fn find(home: &Path, root: &Path, allowed: &[String]) -> UserSockets {
    let mut found = UserSockets::default();
    let mut seen = BTreeSet::new();
    for path in listed(allowed).into_iter().filter(|path| !path.starts_with(root)).take(SOCKETS_MAX) {
        let Some(folder) = path.parent() else { continue };
        let contains_others = home.starts_with(folder) || root.starts_with(folder);
        let is_services = || folder.starts_with(home) || has_only_sockets(folder);
        let has_allowed = || allowed.iter().any(|path| canonical(Path::new(path)).starts_with(folder));
        if contains_others || !is_services() || has_allowed() {
            found.files.push(path);
        } else if seen.insert(folder.to_owned()) {
            found.folders.push(folder.to_owned());
        }
    }
    found
}

/// Whether there is nothing else in a folder, as in those of tmux and screen. New sockets appear in such a folder.
fn has_only_sockets(folder: &Path) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    let is_other = |kind: std::io::Result<fs::FileType>| !kind.is_ok_and(|kind| kind.is_socket());
    !entries.take(SOCKETS_MAX).any(|entry| entry.is_ok_and(|entry| is_other(entry.file_type())))
}

/// The paths in the kernel's list, which has one in the eighth column of a line.
fn paths(listed: &str) -> Vec<PathBuf> {
    let path = |line: &str| {
        let at = line.find('/')?;
        line.get(at..).map(PathBuf::from)
    };
    listed.lines().filter_map(path).collect()
}

fn is_socket(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.file_type().is_socket())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    /// What is found below a folder: this machine has sockets of its own.
    fn find_below(folder: &Path, home: &Path, root: &Path, allowed: &[String]) -> UserSockets {
        let found = find(home, root, allowed);
        let below = |paths: Vec<PathBuf>| paths.into_iter().filter(|path| path.starts_with(folder)).collect();
        UserSockets { folders: below(found.folders), files: below(found.files) }
    }

    #[test]
    fn sockets_everywhere_but_in_the_repository_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let (home, root) = (folder.join("home"), folder.join("home/work/repo"));
        for path in ["home/run dir", "home/work/repo/.git", "tmux-0", "postgres"] {
            fs::create_dir_all(folder.join(path)).unwrap();
        }
        fs::write(folder.join("home/run dir/log"), "").unwrap();
        fs::write(folder.join("postgres/data"), "").unwrap();
        let bind = |path: &str| UnixListener::bind(folder.join(path)).unwrap();
        let _services = [
            bind("home/run dir/docker.sock"),
            bind("home/x.sock"),
            bind("home/work/repo/.git/fsmonitor"),
            bind("tmux-0/default"),
            bind("postgres/5432"),
        ];
        let paths = |names: &[&str]| names.iter().map(|name| folder.join(name)).collect::<Vec<_>>();
        let found = find_below(&folder, &home, &root, &[]);
        let files = paths(&["home/x.sock", "postgres/5432"]);
        assert_eq!(found, UserSockets { folders: paths(&["home/run dir", "tmux-0"]), files });
        let allowed = ["home/run dir/docker.sock", "tmux-0/default", "postgres/5432"];
        let allowed = allowed.map(|path| folder.join(path).to_str().unwrap().to_owned());
        let found = find_below(&folder, &home, &root, &allowed);
        assert_eq!(found, UserSockets { folders: Vec::new(), files: paths(&["home/x.sock"]) });
    }

    #[test]
    fn variables_name_sockets_by_path_and_by_address() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.sock");
        let _service = UnixListener::bind(&path).unwrap();
        let text = path.to_str().unwrap();
        for value in [text.to_owned(), format!("unix://{text}"), format!("unix:path={text},guid=1")] {
            let named = of_variables(|name| (name == "DOCKER_HOST").then(|| value.clone().into()));
            assert_eq!(named.as_slice(), std::slice::from_ref(&path), "{value}");
        }
        for value in ["tcp://127.0.0.1:1", "relative", "unix:abstract=/x", "/etc/hosts", ""] {
            assert_eq!(of_variables(|_| Some(value.into())), [""; 0].map(PathBuf::from), "{value}");
        }
    }
}
