//! The sandbox of a trial and of its checks: a bubblewrap with its own processes, in which the folders of the evaluation
//! (cases, results, other workspaces) are hidden and only the trial's own folders are writable.
//!
//! `unshare` inside of bubblewrap creates the process namespace, because its /proc is complete: with bubblewrap's own /proc,
//! the sandbox that the runner puts around its agents could not start inside.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};

use supervise::executables;

use crate::args::IsolationMode;
use crate::execution::rootfs;
use crate::execution::trial_home::TrialHome;

/// The programs that a sandbox consists of; none if trials run without one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SandboxPrograms {
    bwrap: PathBuf,
    unshare: PathBuf,
    prlimit: PathBuf,
}

/// What a program in the sandbox can reach.
#[derive(Clone, Debug, Default)]
pub(crate) struct SandboxAccess {
    /// Hidden folders and files. They exist inside, empty.
    pub(crate) hidden: Vec<PathBuf>,
    /// Folders inside of hidden ones that stay readable.
    pub(crate) readable: Vec<PathBuf>,
    pub(crate) writable: Vec<PathBuf>,
    /// The folder that becomes `/tmp`.
    pub(crate) temporary: PathBuf,
    pub(crate) has_network: bool,
    /// The folder that is the root file system; none for that of this machine.
    pub(crate) rootfs: Option<PathBuf>,
    /// A home folder of the trial's own; none to leave the user's readable.
    pub(crate) home: Option<TrialHome>,
    pub(crate) quotas: ProcessQuotas,
}

/// Limits that the kernel enforces on each process.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ProcessQuotas {
    /// The largest file that a process may write; 0 for no limit.
    pub(crate) file_bytes_max: u64,
    /// How many processes the sandbox may have; 0 for no limit. The kernel does not apply it to root.
    pub(crate) processes_max: u64,
}

/// Folders that every program may write and that must not carry anything from one trial to the next.
const SHARED_FOLDERS: [&str; 2] = ["/dev/shm", "/var/tmp"];
/// Folders whose content is replaced, so that needed paths below them must be mounted again.
const REPLACED_FOLDERS: [&str; 3] = ["/tmp", "/dev/shm", "/var/tmp"];
/// Sockets of services that start programs outside of the sandbox on request.
const SERVICES: [&str; 6] = [
    "/run/user",
    "/run/docker.sock",
    "/run/containerd",
    "/run/podman",
    "/run/dbus/system_bus_socket",
    "/run/systemd/private",
];
/// Folders and files of the home folder that hold secrets no agent needs.
const HOME_SECRETS: [&str; 12] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".config/gcloud",
    ".config/gh",
    ".netrc",
    ".git-credentials",
    ".local/share/keyrings",
    ".password-store",
];

impl SandboxPrograms {
    /// Finds the programs and tests them together. `Err` has the reason why they cannot be used.
    pub(crate) fn find() -> Result<Self, String> {
        let program =
            |name: &str| executables::find(name, None).ok_or_else(|| format!("`{name}` is not on the PATH"));
        let programs =
            Self { bwrap: program("bwrap")?, unshare: program("unshare")?, prlimit: program("prlimit")? };
        let nothing = program("true")?;
        let spec = SandboxAccess { temporary: PathBuf::from("/tmp"), ..SandboxAccess::default() };
        let argv = programs.wrap(&[nothing.into_os_string()], Path::new("/"), &spec, &[]);
        let (bwrap, arguments) = argv.split_first().ok_or("empty command")?;
        executables::probe(Path::new(bwrap), arguments).map(|()| programs)
    }

    /// The programs for a mode; `Err` if the mode requires a sandbox and there is none.
    pub(crate) fn for_mode(mode: IsolationMode) -> Result<Option<Self>, String> {
        match (mode, Self::find()) {
            (IsolationMode::Off, _) | (IsolationMode::Auto, Err(_)) => Ok(None),
            (_, Ok(programs)) => Ok(Some(programs)),
            (IsolationMode::Required, Err(why)) => Err(why),
        }
    }

    /// The command that runs `argv` in the sandbox. `env` is the environment that it gets.
    pub(crate) fn wrap(
        &self,
        argv: &[OsString],
        folder: &Path,
        spec: &SandboxAccess,
        env: &[(OsString, OsString)],
    ) -> Vec<OsString> {
        let mut command = MountList(vec![self.bwrap.clone().into_os_string()]);
        command.words(&["--die-with-parent", "--unshare-user", "--unshare-ipc"]);
        if !spec.has_network {
            command.words(&["--unshare-net"]);
        }
        if let Some(root) = &spec.rootfs {
            command.root_file_system(root, argv, spec);
            return self.finish(command, argv, folder, spec);
        }
        command.words(&["--ro-bind", "/", "/", "--dev-bind", "/dev", "/dev", "--bind", "/proc", "/proc"]);
        command.mount("--bind", &spec.temporary, Path::new("/tmp"));
        for folder in SHARED_FOLDERS.iter().map(Path::new).filter(|folder| folder.is_dir()) {
            // Not a file system in memory, which no quota would count.
            command.mount("--bind", &spec.temporary, folder);
        }
        for path in needed_paths(argv, env) {
            command.mount("--ro-bind", &path, &path);
        }
        if let Some(home) = &spec.home {
            command.mount("--bind", &home.private, &home.path);
            for entry in home.entries() {
                command.mount("--ro-bind", &entry, &entry);
            }
            for folder in home.state_folders() {
                command.mount("--bind", &home.private.join(folder), &home.path.join(folder));
            }
        }
        for path in hidden_folders(spec) {
            command.hide(path);
        }
        for path in &spec.readable {
            command.mount("--ro-bind", path, path);
        }
        for path in &spec.writable {
            command.mount("--bind", path, path);
        }
        // Codex finds out which folder `/tmp` really is, and needs it at that path, too.
        if spec.temporary.is_dir() {
            command.mount("--bind", &spec.temporary, &spec.temporary);
        }
        command.protect_hidden(spec);
        self.finish(command, argv, folder, spec)
    }

    /// Adds what comes after the mounts: the folder, the process namespace, limits, and the command itself.
    fn finish(
        &self,
        mut command: MountList,
        argv: &[OsString],
        folder: &Path,
        spec: &SandboxAccess,
    ) -> Vec<OsString> {
        let program = |path: &Path| match (&spec.rootfs, path.file_name().and_then(OsStr::to_str)) {
            (Some(root), Some(name)) => rootfs::find_program(root, name).unwrap_or_else(|| path.to_owned()),
            _ => path.to_owned(),
        };
        command.words(&["--chdir"]).0.push(folder.into());
        command.words(&["--"]).0.push(program(&self.unshare).into());
        command.words(&["--user", "--map-current-user", "--pid", "--fork", "--mount", "--mount-proc"]);
        command.words(&["--kill-child", "--"]).0.push(program(&self.prlimit).into());
        command.words(&["--core=0"]);
        let ProcessQuotas { file_bytes_max, processes_max } = spec.quotas;
        if file_bytes_max > 0 {
            command.0.push(format!("--fsize={file_bytes_max}").into());
        }
        if processes_max > 0 {
            command.0.push(format!("--nproc={processes_max}").into());
        }
        command.words(&["--"]).0.extend(argv.iter().cloned());
        command.0
    }

    /// The command line that runs a program of the work under test beside a judge: its own processes, no network, and none of
    /// the judge's files. It is for use inside of [`Self::wrap`].
    pub(crate) fn candidate_prefix(
        &self,
        copy: &Path,
        judge_files: &[&Path],
        root: Option<&Path>,
    ) -> Vec<OsString> {
        let mut command = MountList(vec![self.bwrap.clone().into_os_string()]);
        command.words(&["--die-with-parent", "--unshare-user", "--unshare-pid", "--unshare-ipc"]);
        command.words(&["--unshare-net"]);
        match root {
            None => {
                command.words(&["--ro-bind", "/", "/"]);
            }
            Some(root) => command.0.extend(rootfs::mounts(root, &[copy.to_owned()])),
        }
        command.words(&["--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]);
        for path in judge_files.iter().filter(|_| root.is_none()) {
            command.words(&["--tmpfs"]).0.push(path.as_os_str().to_owned());
        }
        command.mount("--bind", copy, copy);
        command.words(&["--chdir"]).0.push(copy.into());
        command.words(&["--"]);
        command.0
    }
}

/// Everything that a sandbox on the file system of this machine hides.
fn hidden_folders(spec: &SandboxAccess) -> impl Iterator<Item = &Path> {
    SERVICES.iter().map(Path::new).chain(spec.hidden.iter().map(PathBuf::as_path))
}

struct MountList(Vec<OsString>);

impl MountList {
    fn words(&mut self, words: &[&str]) -> &mut Self {
        self.0.extend(words.iter().map(OsString::from));
        self
    }

    /// Mounts a root file system of the case's own, and into it what the trial needs. Nothing else of this machine is visible.
    fn root_file_system(&mut self, root: &Path, argv: &[OsString], spec: &SandboxAccess) {
        let home = spec.home.as_ref().map(|home| home.path.as_path());
        let inside = |path: &Path| rootfs::path_inside(path, home);
        let mut readable = spec.readable.clone();
        // The runner is not part of the image.
        let program = argv.first().map(PathBuf::from);
        readable.extend(program.filter(|program| program.is_file() && !rootfs::contains(root, program)));
        let mut mounted: Vec<PathBuf> =
            readable.iter().chain(&spec.writable).map(|path| inside(path)).collect();
        mounted.push(PathBuf::from("/tmp"));
        self.0.extend(rootfs::mounts(root, &mounted));
        self.words(&["--dev-bind", "/dev", "/dev", "--bind", "/proc", "/proc"]);
        for folder in ["/dev/shm", "/tmp"] {
            self.mount("--bind", &spec.temporary, Path::new(folder));
        }
        if let Some(home) = &spec.home {
            self.mount("--bind", &home.private, Path::new(rootfs::HOME));
            // Commits need the user's identity.
            let identity = home.path.join(".gitconfig");
            if identity.is_file() {
                self.mount("--ro-bind", &identity, &inside(&identity));
            }
        }
        for path in &readable {
            self.mount("--ro-bind", path, &inside(path));
        }
        for path in &spec.writable {
            self.mount("--bind", path, &inside(path));
        }
        self.words(&["--setenv", "PATH", rootfs::SEARCH_PATH, "--setenv", "HOME", rootfs::HOME]);
        self.words(&["--remount-ro", "/"]);
    }

    fn mount(&mut self, flag: &str, from: &Path, to: &Path) {
        self.0.extend([flag.into(), from.into(), to.into()]);
    }

    /// Makes hidden folders read-only, once everything inside of them is mounted: what is written to them would be in memory,
    /// where no quota counts it.
    fn protect_hidden(&mut self, spec: &SandboxAccess) {
        let folders: Vec<PathBuf> =
            hidden_folders(spec).filter_map(|path| path.canonicalize().ok()).collect();
        for path in folders.into_iter().filter(|path| path.is_dir()) {
            self.words(&["--remount-ro"]).0.push(path.into());
        }
    }

    /// Hides a folder or a file, if it exists.
    fn hide(&mut self, path: &Path) {
        // Links cannot be mounted over; what they lead to can.
        let Ok(path) = path.canonicalize() else { return };
        if path.is_dir() {
            self.words(&["--tmpfs"]).0.push(path.into());
        } else {
            self.mount("--ro-bind", Path::new("/dev/null"), &path);
        }
    }
}

/// Paths in replaced folders that a command needs: programs and files on its command line, its home folder, and the folders
/// of its search path.
fn needed_paths(argv: &[OsString], env: &[(OsString, OsString)]) -> Vec<PathBuf> {
    let variable = |name: &str| env.iter().find(|(known, _)| known == name).map(|(_, value)| value);
    let mut paths: Vec<PathBuf> = argv.iter().map(PathBuf::from).collect();
    paths.extend(variable("HOME").map(PathBuf::from));
    paths.extend(variable("PATH").into_iter().flat_map(std::env::split_paths));
    paths.retain(|path| {
        let is_replaced = |folder: &&str| path.starts_with(folder) && path != Path::new(folder);
        path.is_absolute() && REPLACED_FOLDERS.iter().any(is_replaced) && path.exists()
    });
    paths.sort();
    paths.dedup();
    paths
}

/// What no trial may read, whether it exists yet or not: these folders of the evaluation, the git repositories that they are in, and secrets of the user.
pub(crate) fn hidden_paths(folders: &[PathBuf], home: Option<&OsStr>) -> Vec<PathBuf> {
    let mut hidden: Vec<PathBuf> = folders.to_vec();
    for folder in folders {
        for ancestor in folder.ancestors() {
            hidden.extend(git_folders(&ancestor.join(".git")));
        }
    }
    if let Some(home) = home {
        hidden.extend(HOME_SECRETS.map(|name| Path::new(home).join(name)));
    }
    hidden.sort();
    hidden.dedup();
    hidden
}

/// The git folder itself, and the repository that a linked work tree's `.git` file leads to.
fn git_folders(git: &Path) -> Vec<PathBuf> {
    if git.is_dir() {
        return vec![git.to_owned()];
    }
    let Ok(text) = fs::read_to_string(git) else { return Vec::new() };
    let Some(target) = text.strip_prefix("gitdir:").map(str::trim) else { return Vec::new() };
    let target = git.with_file_name("").join(target);
    // `<repository>/worktrees/<name>`: the objects are in the repository.
    let common = target.ancestors().nth(2).filter(|common| common.join("objects").is_dir());
    vec![common.unwrap_or(&target).to_owned()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repository_around_the_cases_is_hidden() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("project/eval/cases")).unwrap();
        fs::create_dir_all(root.join("project/.git/objects")).unwrap();
        fs::create_dir_all(root.join("home/.ssh")).unwrap();
        let folders = [root.join("project/eval/cases"), root.join("project/eval/workspaces")];
        let hidden = hidden_paths(&folders, Some(root.join("home").as_os_str()));
        // The first trial of a project creates the folder of workspaces.
        for expected in ["project/eval/cases", "project/eval/workspaces", "project/.git", "home/.ssh"] {
            assert!(hidden.contains(&root.join(expected)), "{expected}: {hidden:?}");
        }
    }

    #[test]
    fn repository_of_a_linked_work_tree_is_hidden() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join("main/.git/objects")).unwrap();
        fs::create_dir_all(root.join("main/.git/worktrees/w")).unwrap();
        fs::create_dir_all(root.join("w/eval")).unwrap();
        fs::write(root.join("w/.git"), format!("gitdir: {}/main/.git/worktrees/w\n", root.display()))
            .unwrap();
        assert!(hidden_paths(&[root.join("w/eval")], None).contains(&root.join("main/.git")));
    }
}
