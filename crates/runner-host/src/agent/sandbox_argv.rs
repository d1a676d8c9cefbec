//! The command line of a bubblewrap sandbox: its mounts, in their order.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use runner_core::text::one_line;
use supervise::executables;

use super::hidden_paths::HiddenPath;
use super::sandbox::canonical;
use crate::agent::command::PreparedCommand;
use crate::agent::user_sockets;
use crate::repo::heldout_folder;

/// Where the session's temporary folder is mounted.
pub(super) const TEMP_DIR: &str = "/tmp";
/// Folders whose content is hidden inside.
pub(crate) const HIDDEN_FOLDERS: [&str; 2] = [TEMP_DIR, "/dev/shm"];
/// The variables with the path of the temporary folder.
pub(crate) const TEMP_DIR_VARIABLES: [&str; 3] = ["TMPDIR", "TMP", "TEMP"];

/// Sockets of services that start programs outside of the sandbox on request.
pub(crate) const SERVICE_SOCKETS: [&str; 12] = [
    "/run/docker.sock",
    "/run/containerd/containerd.sock",
    "/run/podman/podman.sock",
    "/run/crio/crio.sock",
    "/run/buildkit/buildkitd.sock",
    "/run/libvirt/libvirt-sock",
    "/run/snapd.socket",
    "/var/lib/lxd/unix.socket",
    "/var/snap/lxd/common/lxd/unix.socket",
    "/var/lib/incus/unix.socket",
    "/run/dbus/system_bus_socket",
    "/run/systemd/private",
];
const SERVICE_FOLDER: &str = "/run/user";

/// The command line of a sandbox.
pub(crate) struct ArgvBuilder(pub(super) Vec<OsString>);

impl ArgvBuilder {
    pub(super) fn words(&mut self, words: &[&str]) -> &mut Self {
        self.0.extend(words.iter().map(OsString::from));
        self
    }

    pub(crate) fn mount(&mut self, flag: &str, from: &Path, to: &Path) {
        self.0.extend([flag.into(), from.into(), to.into()]);
    }

    /// Makes what is mounted at a path read-only. Mounts below stay as they are.
    pub(crate) fn remount_read_only(&mut self, path: &Path) {
        self.0.extend(["--remount-ro".into(), path.into()]);
    }

    /// An empty folder in the place of another.
    pub(crate) fn empty_folder(&mut self, path: &Path) {
        self.0.extend(["--tmpfs".into(), path.into()]);
    }

    /// An empty file in the place of another.
    pub(crate) fn empty_file(&mut self, path: &Path) {
        self.mount("--ro-bind", Path::new("/dev/null"), path);
    }

    /// Hides files and folders of a program's own, of the user and of the repository. Nothing can be written there: it would
    /// be lost.
    pub(super) fn hide(&mut self, paths: &[HiddenPath]) {
        for HiddenPath { path, replacement } in paths {
            match replacement {
                Some(file) => self.mount("--ro-bind", file, path),
                None if path.is_dir() => {
                    self.empty_folder(path);
                    self.remount_read_only(path);
                }
                None => self.empty_file(path),
            }
        }
    }

    /// Hides the folder of held-out checks. It comes last: no other mount may show it again.
    pub(crate) fn hide_heldout(&mut self, configured: Option<&str>) {
        if let Some(path) = configured.and_then(heldout_folder::configured) {
            self.empty_folder(&path);
        }
    }

    pub(super) fn hide_services(&mut self, allowed: &[String]) {
        self.hide_service_sockets(allowed);
        let trigger = Path::new("/proc/sysrq-trigger");
        if trigger.exists() {
            self.empty_file(trigger);
        }
    }

    /// Hides the sockets of services of the system, and those that variables name.
    pub(super) fn hide_service_sockets(&mut self, allowed: &[String]) {
        let is_hidden = |socket: &Path| {
            socket.exists() && !allowed.iter().any(|path| canonical(Path::new(path)) == socket)
        };
        let named = user_sockets::of_variables(|name| std::env::var_os(name));
        let sockets = SERVICE_SOCKETS.iter().map(PathBuf::from).chain(named);
        for socket in sockets.map(|socket| canonical(&socket)).collect::<BTreeSet<_>>() {
            if is_hidden(&socket) && !is_covered(&socket) {
                self.empty_file(&socket);
            }
        }
        if Path::new(SERVICE_FOLDER).exists() {
            self.words(&["--tmpfs", SERVICE_FOLDER]);
            // Rootless container services have their sockets there.
            for socket in existing_below(&canonical(Path::new(SERVICE_FOLDER)), allowed) {
                self.mount("--bind", &socket, &socket);
            }
        }
    }

    /// Hides the sockets of all running services: container services, agents of ssh and gpg, terminal multiplexers. Where it can
    /// be, their folder is hidden, because a socket can vanish before the sandbox starts, and others can appear.
    pub(crate) fn hide_user_sockets(&mut self, root: &Path, allowed: &[String]) {
        let home = std::env::var_os("HOME").map(|home| canonical(Path::new(&home))).unwrap_or_default();
        let sockets = user_sockets::find(&home, root, allowed);
        let is_shown = |path: &&PathBuf| path.starts_with(&home) || !is_covered(path);
        for folder in sockets.folders.iter().filter(is_shown) {
            self.empty_folder(folder);
        }
        for socket in sockets.files.iter().filter(is_shown) {
            self.empty_file(socket);
        }
    }
}

impl ArgvBuilder {
    /// Makes a command run in the sandbox, in this folder, with temporary files in the sandbox.
    pub(crate) fn finish(self, command: &mut PreparedCommand, folder: &Path) {
        for (name, value) in &mut command.environment {
            if TEMP_DIR_VARIABLES.iter().any(|variable| name == variable) {
                *value = TEMP_DIR.into();
            }
        }
        self.run_in(command, folder);
    }

    /// Makes a command run in the sandbox, in this folder.
    pub(super) fn run_in(mut self, command: &mut PreparedCommand, folder: &Path) {
        self.words(&["--chdir"]).0.push(folder.into());
        self.words(&["--"]).0.append(&mut command.argv);
        command.argv = self.0;
    }
}

/// Why bubblewrap could not set up a sandbox, if that is how a command line ended whose last `inner` words are the program's. The
/// output alone does not decide: a program in the sandbox can print the same.
pub(crate) fn bubblewrap_problem(
    exit: i32,
    output: &[u8],
    argv: &[OsString],
    inner: usize,
    repository: &Path,
) -> Option<String> {
    if exit != 1 || !output.starts_with(b"bwrap: ") {
        return None;
    }
    let (program, words) = argv.get(..argv.len().saturating_sub(inner))?.split_first()?;
    let true_program = executables::find("true", Some(repository))?;
    let args: Vec<OsString> = words.iter().cloned().chain([true_program.into()]).collect();
    executables::probe(Path::new(program), &args).err().map(|why| one_line(&why))
}

/// Whether a path is in a folder that is empty in every sandbox.
fn is_covered(path: &Path) -> bool {
    HIDDEN_FOLDERS.iter().chain(&[SERVICE_FOLDER]).any(|folder| path.starts_with(folder))
}

/// The paths that exist below a folder.
fn existing_below(folder: &Path, paths: &[String]) -> Vec<PathBuf> {
    let paths = paths.iter().map(|path| canonical(Path::new(path)));
    paths.filter(|path| path.starts_with(folder) && path.exists()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_allowed_sockets_that_exist_are_shown_in_a_hidden_folder() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let folder = root.join("user");
        std::fs::create_dir_all(folder.join("1000")).unwrap();
        for path in ["user/1000/docker.sock", "docker.sock"] {
            std::fs::write(root.join(path), "").unwrap();
        }
        let allowed = ["user/1000/docker.sock", "user/1000/gone.sock", "docker.sock"]
            .map(|path| root.join(path).display().to_string());
        assert_eq!(existing_below(&folder, &allowed), [folder.join("1000/docker.sock")]);
    }
}
