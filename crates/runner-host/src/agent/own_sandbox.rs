//! What the runner adds to the built-in sandbox of an agent. With a network, the commands in such a sandbox can connect to every
//! socket that the user can: a terminal multiplexer would run a program outside for them.

use std::path::{Path, PathBuf};

use super::command::PreparedCommand;
use super::sandbox::{
    Bubblewrap, SandboxSpec, SocketScope, hidden_but_needed, hidden_folders_of_user, hidden_own_program,
};
use super::sandbox_argv::{TEMP_DIR, TEMP_DIR_VARIABLES};

/// The namespace around an agent with a sandbox of its own; or why there is none.
#[derive(Clone, Debug)]
pub(crate) struct OwnSandbox {
    pub(crate) scope: SocketScope,
    namespace: Result<Bubblewrap, String>,
}

impl OwnSandbox {
    pub(crate) fn find(root: &Path) -> Self {
        Self { scope: SocketScope::find(), namespace: Bubblewrap::find(root) }
    }

    /// What it does not cover. Without a network, the built-in sandbox refuses every connection.
    pub(crate) fn gap(&self, has_network: bool) -> Option<String> {
        let paths = self.namespace.as_ref().err().filter(|_| has_network);
        let paths = paths.map(|why| format!("sockets of your services are reachable: {why}"));
        let gaps: Vec<String> = self.scope.gap(has_network).into_iter().chain(paths).collect();
        (!gaps.is_empty()).then(|| gaps.join("; "))
    }

    pub(crate) fn namespace(&self) -> Option<&Bubblewrap> {
        self.namespace.as_ref().ok()
    }
}

impl Bubblewrap {
    /// Wraps a command so that it finds no sockets of services, and a private `/tmp`. Everything else but the folder of held-out
    /// checks is as it is outside: nothing may be mounted in `/proc`, or the sandbox inside could not mount its own.
    pub(crate) fn wrap_without_sockets(
        &self,
        mut command: PreparedCommand,
        spec: &SandboxSpec,
        folders: &[PathBuf],
    ) -> PreparedCommand {
        let mut argv = self.outside_argv();
        argv.hide_service_sockets(&[]);
        if let Some(temporary) = &spec.temporary {
            argv.mount("--bind", temporary, Path::new(TEMP_DIR));
        }
        let mut shown = hidden_folders_of_user(&spec.root);
        shown.extend(hidden_own_program(&spec.root));
        shown.extend(hidden_but_needed(&command.argv, &[], &spec.root));
        let own = [&spec.root].into_iter().chain(folders).chain(&spec.writable);
        shown.extend(own.filter(|path| path.starts_with(TEMP_DIR)).cloned());
        for path in &shown {
            argv.mount("--bind", path, path);
        }
        argv.hide_user_sockets(&spec.root, &[]);
        argv.hide_heldout(spec.heldout.as_deref());
        for (name, value) in &mut command.environment {
            let is_shown = shown.iter().any(|path| Path::new(value).starts_with(path));
            let is_gone = Path::new(value).starts_with(TEMP_DIR) && !is_shown;
            if is_gone && TEMP_DIR_VARIABLES.iter().any(|variable| name == variable) {
                *value = TEMP_DIR.into();
            }
        }
        argv.run_in(&mut command, &spec.root);
        command
    }
}
