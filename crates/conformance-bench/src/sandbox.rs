//! The sandbox around everything that a row runs: no network except the loopback interface, no process that outlives it, a
//! file system that is read-only except for the row's folder, and an environment that has nothing of the user's.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::BenchError;

/// What hides the machine's temporary files.
const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// Gives the command processes of its own, which die with it. Bubblewrap would do so too, but it masks parts of `/proc`, and then no
/// sandbox inside works: tools that have one must be able to use it.
const OWN_PROCESSES: [&str; 8] =
    ["unshare", "--user", "--map-current-user", "--pid", "--fork", "--kill-child", "--mount-proc", "--"];

pub(crate) struct Sandbox {
    bubblewrap: PathBuf,
    own_program: PathBuf,
    /// The scripts of the adapter.
    adapter_folder: PathBuf,
}

impl Sandbox {
    pub(crate) fn find(adapter_folder: &Path) -> Result<Self, BenchError> {
        let bubblewrap = find_program("bwrap", "install bubblewrap: apt-get install bubblewrap")?;
        let own_program =
            std::env::current_exe().map_err(BenchError::io("find", Path::new("the bench's own program")))?;
        let sandbox = Self { bubblewrap, own_program, adapter_folder: adapter_folder.to_owned() };
        let folder =
            tempfile::tempdir().map_err(BenchError::io("create", Path::new("a temporary folder")))?;
        let output = sandbox
            .command(folder.path(), &[], &["true"])
            .output()
            .map_err(BenchError::io("start", &sandbox.bubblewrap))?;
        if !output.status.success() {
            return Err(BenchError::Sandbox(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
        }
        Ok(sandbox)
    }

    /// A command in the sandbox. It can write to `folder`, starts there, and has these variables besides the usual ones.
    pub(crate) fn command(&self, folder: &Path, env: &[(String, String)], argv: &[&str]) -> Command {
        let mut command = Command::new(&self.bubblewrap);
        command.args([
            "--unshare-user",
            "--unshare-net",
            "--unshare-ipc",
            "--die-with-parent",
            "--new-session",
        ]);
        command.args(["--uid", "1000", "--gid", "1000"]);
        command.args(["--ro-bind", "/", "/", "--dev", "/dev", "--dev-bind", "/proc", "/proc"]);
        for hidden in TEMPORARY {
            command.args(["--tmpfs", hidden]);
        }
        for visible in self.visible() {
            command.arg("--ro-bind-try").arg(&visible).arg(&visible);
        }
        command.arg("--bind").arg(folder).arg(folder).arg("--chdir").arg(folder);
        command.arg("--clearenv");
        for (name, value) in usual_variables(folder) {
            command.args([OsString::from("--setenv"), name.into(), value]);
        }
        for (name, value) in env {
            command.args(["--setenv", name, value]);
        }
        command.arg("--").args(OWN_PROCESSES).args(argv).stdin(Stdio::null());
        command
    }

    /// The bench itself in the sandbox, as one of its inner programs.
    pub(crate) fn own_command(&self, folder: &Path, env: &[(String, String)], args: &[&str]) -> Command {
        let own = self.own_program.to_string_lossy();
        let argv: Vec<&str> = std::iter::once(own.as_ref()).chain(args.iter().copied()).collect();
        self.command(folder, env, &argv)
    }

    /// What the rows need below hidden folders: the bench itself, the adapter, and the installations of everything on PATH.
    fn visible(&self) -> Vec<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path).filter_map(|folder| folder.parent().map(Path::to_owned));
        let is_hidden = |path: &PathBuf| {
            TEMPORARY.iter().any(|hidden| path.starts_with(hidden) && path != Path::new(hidden))
        };
        folders.chain([self.own_program.clone(), self.adapter_folder.clone()]).filter(is_hidden).collect()
    }
}

/// The variables of every program in the sandbox.
fn usual_variables(folder: &Path) -> Vec<(String, OsString)> {
    let own_bin = folder.join("bin").into_os_string();
    let mut path = own_bin;
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let text = |name: &str, value: &str| (name.to_owned(), OsString::from(value));
    vec![
        ("PATH".to_owned(), path),
        ("HOME".to_owned(), folder.join("home").into()),
        ("TMPDIR".to_owned(), "/tmp".into()),
        text("LANG", "C.UTF-8"),
        text("TERM", "dumb"),
        text("NO_COLOR", "1"),
        text("GIT_CONFIG_NOSYSTEM", "1"),
        text("DO_NOT_TRACK", "1"),
        text("DISABLE_TELEMETRY", "1"),
    ]
}

/// Finds a program on PATH.
pub(crate) fn find_program(program: &str, hint: &'static str) -> Result<PathBuf, BenchError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|folder| folder.join(program))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| BenchError::NotFound { program: program.to_owned(), hint })
}
