//! A container around an agent: `sandbox = "podman"` with an image that has the agent's program in it.
//!
//! The command line is a pure function, tested without podman. The repository is mounted at its own path, so that every path
//! in the prompt is right inside; nothing else of the machine is there.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use runner_core::agents::RepositoryAccess;
use supervise::executables;

use super::sandbox::{SandboxSpec, StateMount};
use crate::agent::command::PreparedCommand;

const NAME: &str = "podman";

/// The flags of every container. With `keep-id`, files in the repository belong to the user; the labels of SELinux would
/// deny access to mounted folders.
const ALWAYS: [&str; 9] = [
    "run",
    "--rm",
    "--interactive",
    "--init",
    "--userns=keep-id",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
    "--security-opt=label=disable",
    "--pull=missing",
];

/// Variables that describe this machine and would be wrong inside; `*` at the end matches any suffix.
const OWN_VARIABLES: [&str; 19] = [
    "PATH",
    "SHELL",
    "USER",
    "LOGNAME",
    "PWD",
    "OLDPWD",
    "HOSTNAME",
    "TMPDIR",
    "TMP",
    "TEMP",
    "XDG_*",
    "LD_*",
    "VIRTUAL_ENV",
    "DOCKER_HOST",
    "CONTAINER_HOST",
    "SSH_AUTH_SOCK",
    "DBUS_*",
    "DISPLAY",
    "WAYLAND_DISPLAY",
];

/// An installed podman, and the image of the configuration.
#[derive(Clone, Debug)]
pub(crate) struct Podman {
    program: PathBuf,
    image: String,
}

impl Podman {
    /// Finds it outside of the repository, and asks it whether it can run containers; `Err` has why not.
    pub(crate) fn find(root: &Path, image: &str) -> Result<Self, String> {
        let program = executables::find(NAME, Some(root)).ok_or("`podman` is not on PATH")?;
        executables::probe(&program, &["info".into()])
            .map_err(|why| format!("`podman info` fails: {}", runner_core::text::one_line(&why)))?;
        Ok(Self { program, image: image.to_owned() })
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    pub(super) fn wrap(&self, mut command: PreparedCommand, spec: &SandboxSpec) -> PreparedCommand {
        command.argv = self.argv(&command, spec);
        // Podman itself finds its configuration and its services by these, which a session does not have.
        let has = |name: &OsStr| command.environment.iter().any(|(other, _)| other == name);
        let missing: Vec<_> =
            std::env::vars_os().filter(|(name, _)| is_own_variable(name) && !has(name)).collect();
        command.environment.extend(missing);
        command
    }

    fn argv(&self, command: &PreparedCommand, spec: &SandboxSpec) -> Vec<OsString> {
        let mut argv: Vec<OsString> = vec![self.program.clone().into()];
        argv.extend(ALWAYS.map(OsString::from));
        argv.push(if spec.has_network { "--network=private" } else { "--network=none" }.into());
        argv.push("--tmpfs=/tmp".into());
        // An empty home at the user's own path, in which the folders of the session are mounted.
        let home =
            command.environment.iter().find(|(name, _)| name == "HOME").map(|(_, home)| Path::new(home));
        if let Some(home) = home.filter(|home| home.is_absolute() && !home.starts_with(&spec.root)) {
            let mut option = OsString::from("--tmpfs=");
            option.push(home);
            argv.push(option);
        }
        let root_access = match spec.repository.access() {
            RepositoryAccess::Writable => Access::Writable,
            RepositoryAccess::ReadOnly => Access::ReadOnly,
        };
        argv.push(mount(&spec.root, &spec.root, root_access));
        argv.extend(
            spec.state.iter().map(|StateMount { source, path }| mount(source, path, Access::Writable)),
        );
        argv.extend(spec.writable.iter().map(|path| mount(path, path, Access::Writable)));
        argv.extend(spec.read_only.iter().map(|path| mount(path, path, Access::ReadOnly)));
        argv.extend(spec.session_files.iter().map(|path| mount(path, path, Access::Writable)));
        // The rest of the home is not there.
        let hidden = spec.hidden.iter().map(|hidden| &hidden.path);
        argv.extend(hidden.filter(|path| path.starts_with(&spec.root)).map(|path| empty(path)));
        // By name only: other users can read a command line.
        let names = command.environment.iter().map(|(name, _)| name).filter(|name| !is_own_variable(name));
        argv.extend(names.flat_map(|name| ["--env".into(), name.clone()]));
        argv.extend(["--workdir".into(), spec.root.clone().into(), self.image.clone().into()]);
        argv.extend(command.argv.first().map(|program| program_inside(program, &spec.root)));
        argv.extend(command.argv.iter().skip(1).cloned());
        argv
    }
}

/// How a folder is mounted.
#[derive(Clone, Copy)]
enum Access {
    Writable,
    ReadOnly,
}

/// A mount. The option is a line of comma-separated values, in which a quote protects commas.
fn mount(source: &Path, path: &Path, access: Access) -> OsString {
    let mut option = OsString::from("--mount=type=bind,");
    option.push(field("source=", source));
    option.push(",");
    option.push(field("destination=", path));
    if let Access::ReadOnly = access {
        option.push(",ro=true");
    }
    option
}

/// One value of the option.
fn field(key: &str, path: &Path) -> OsString {
    let mut text = OsString::from(key);
    text.push(path);
    let is_plain = !path.as_os_str().as_encoded_bytes().iter().any(|byte| b",\"\n".contains(byte));
    if is_plain {
        return text;
    }
    let text = text.to_string_lossy().replace('"', "\"\"");
    format!("\"{text}\"").into()
}

/// Something empty and read-only in the place of a file or folder.
fn empty(path: &Path) -> OsString {
    let (source, flags) =
        if path.is_file() { ("bind,source=/dev/null", ",ro=true") } else { ("tmpfs", ",ro=true") };
    let mut option = OsString::from(format!("--mount=type={source},"));
    option.push(field("destination=", path));
    option.push(flags);
    option
}

fn is_own_variable(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    OWN_VARIABLES.iter().any(|own| match own.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == *own,
    })
}

/// The program of the image with this name, unless it is one of the repository.
fn program_inside(program: &OsStr, root: &Path) -> OsString {
    let path = Path::new(program);
    match path.file_name() {
        Some(name) if path.is_absolute() && !path.starts_with(root) => name.to_owned(),
        Some(_) | None => program.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::hidden_paths::HiddenPath;
    use crate::agent::sandbox::RepositoryMount;

    fn podman() -> Podman {
        Podman { program: "/usr/bin/podman".into(), image: "localhost/dev:1".to_owned() }
    }

    fn spec() -> SandboxSpec {
        SandboxSpec {
            root: "/srv/work".into(),
            repository: RepositoryMount::WorkTree(RepositoryAccess::Writable),
            temporary: Some("/srv/work/.git/runner/tmp".into()),
            writable: vec!["/home/me/.npm".into()],
            read_only: vec!["/srv/work/.git".into()],
            session_files: vec!["/srv/work/.git/runner/session".into()],
            state: vec![StateMount {
                source: "/srv/work/.git/runner/session/state/0".into(),
                path: "/home/me/.cache/kilo".into(),
            }],
            hidden: ["/home/me/.claude", "/srv/work/.kilo"]
                .map(|path| HiddenPath { path: path.into(), replacement: None })
                .into(),
            has_network: true,
            heldout: None,
        }
    }

    fn argv(program: &str, spec: &SandboxSpec) -> Vec<String> {
        let command = PreparedCommand {
            usage_logs: None,
            argv: vec![program.into(), "--quiet".into()],
            environment: vec![
                ("PATH".into(), "/usr/bin".into()),
                ("HOME".into(), "/home/me".into()),
                ("XDG_RUNTIME_DIR".into(), "/run/user/1".into()),
                ("API_KEY".into(), "sk-secret".into()),
                ("RUNNER_OUTPUT".into(), "/srv/work/out.json".into()),
            ],
            files: Vec::new(),
            folders: Vec::new(),
            links: Vec::new(),
            state_folders: Vec::new(),
            login_files: Vec::new(),
            agent: None,
        };
        let wrapped = podman().wrap(command, spec);
        wrapped.argv.into_iter().map(|word| word.into_string().unwrap()).collect()
    }

    #[test]
    fn the_container_has_the_repository_and_the_folders_of_the_session() {
        let expected = "/usr/bin/podman run --rm --interactive --init --userns=keep-id --cap-drop=ALL \
            --security-opt=no-new-privileges --security-opt=label=disable --pull=missing --network=private \
            --tmpfs=/tmp --tmpfs=/home/me --mount=type=bind,source=/srv/work,destination=/srv/work \
            --mount=type=bind,source=/srv/work/.git/runner/session/state/0,destination=/home/me/.cache/kilo \
            --mount=type=bind,source=/home/me/.npm,destination=/home/me/.npm \
            --mount=type=bind,source=/srv/work/.git,destination=/srv/work/.git,ro=true \
            --mount=type=bind,source=/srv/work/.git/runner/session,destination=/srv/work/.git/runner/session \
            --mount=type=tmpfs,destination=/srv/work/.kilo,ro=true \
            --env HOME --env API_KEY --env RUNNER_OUTPUT --workdir /srv/work localhost/dev:1 my-agent --quiet";
        assert_eq!(argv("/opt/bin/my-agent", &spec()).join(" "), expected);
    }

    #[test]
    fn no_value_of_a_variable_is_on_the_command_line() {
        assert!(!argv("my-agent", &spec()).iter().any(|word| word.contains("sk-secret")));
    }

    #[test]
    fn network_and_repository_follow_the_spec() {
        let closed = SandboxSpec {
            has_network: false,
            repository: RepositoryMount::WorkTree(RepositoryAccess::ReadOnly),
            ..spec()
        };
        let words = argv("/srv/work/bin/agent", &closed);
        let has = |word: &str| words.iter().any(|other| other == word);
        assert!(has("--network=none") && !has("--network=private"));
        assert!(has("--mount=type=bind,source=/srv/work,destination=/srv/work,ro=true"));
        assert!(has("/srv/work/bin/agent"), "a program of the repository keeps its path");
    }

    #[test]
    fn commas_and_quotes_in_a_path_are_part_of_it() {
        let expected = "--mount=type=bind,\"source=/a,b\"\"c\",\"destination=/a,b\"\"c\",ro=true";
        let path = Path::new("/a,b\"c");
        assert_eq!(mount(path, path, Access::ReadOnly), expected);
    }
}
