//! Sockets of services of the user: what connects to one could start a program outside of a sandbox.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use crate::agent::sandbox::canonical;

/// The kernel's list of sockets.
const SOCKETS: &str = "/proc/net/unix";
/// More folders than any user has services.
const FOLDERS_MAX: usize = 100;

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

/// The sockets of services below the home folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct UserSockets {
    /// Their folders; without what is inside of the repository, and without folders that contain it or the home.
    pub(super) folders: Vec<PathBuf>,
    /// Those in the home folder itself.
    pub(super) in_home: Vec<PathBuf>,
}

/// The sockets of the user's services that a sandbox hides: those that variables name, and those below the home folder.
pub(crate) fn hidden(allowed: &[String]) -> Vec<PathBuf> {
    let home = std::env::var_os("HOME").map(|home| canonical(Path::new(&home)));
    let named = of_variables(|name| std::env::var_os(name)).into_iter().map(|path| canonical(&path));
    let mut sockets = home.map(|home| below(&home, allowed)).unwrap_or_default();
    sockets.extend(named.filter(|path| !is_allowed(path, allowed)));
    sockets.into_iter().collect()
}

fn is_allowed(path: &Path, allowed: &[String]) -> bool {
    allowed.iter().any(|socket| canonical(Path::new(socket)) == path)
}

/// The sockets below a folder that no configuration allows.
fn below(home: &Path, allowed: &[String]) -> BTreeSet<PathBuf> {
    let listed = fs::read_to_string(SOCKETS).unwrap_or_default();
    let existing = paths(&listed).into_iter().filter(|path| is_socket(path));
    let sockets = existing.map(|path| canonical(&path)).filter(|path| path.starts_with(home));
    sockets.filter(|path| !is_allowed(path, allowed)).collect()
}

pub(super) fn find(home: &Path, root: &Path, allowed: &[String]) -> UserSockets {
    let sockets = below(home, allowed);
    let folders: BTreeSet<&Path> = sockets.iter().filter_map(|path| path.parent()).collect();
    let is_hidden =
        |folder: &&Path| !home.starts_with(folder) && !root.starts_with(folder) && !folder.starts_with(root);
    UserSockets {
        folders: folders.into_iter().filter(is_hidden).take(FOLDERS_MAX).map(Path::to_owned).collect(),
        in_home: sockets.iter().filter(|path| path.parent() == Some(home)).cloned().collect(),
    }
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

    #[test]
    fn the_folder_of_a_service_in_the_home_is_found_and_the_repository_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        let root = home.join("work/repo");
        for path in ["run dir", "work/repo/.git"] {
            fs::create_dir_all(home.join(path)).unwrap();
        }
        let _service = UnixListener::bind(home.join("run dir/docker.sock")).unwrap();
        let in_home = vec![home.join("x.sock")];
        let _in_home_itself = UnixListener::bind(home.join("x.sock")).unwrap();
        let _in_repository = UnixListener::bind(root.join(".git/fsmonitor")).unwrap();
        let found = find(&home, &root, &[]);
        assert_eq!(found, UserSockets { folders: vec![home.join("run dir")], in_home: in_home.clone() });
        let allowed = home.join("run dir/docker.sock").to_str().unwrap().to_owned();
        assert_eq!(find(&home, &root, &[allowed]), UserSockets { folders: Vec::new(), in_home });
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
