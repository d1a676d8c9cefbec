//! The sandbox of macOS: a profile for `sandbox-exec`. It compiles and is tested on every system, but no test has run a
//! session on macOS.
//!
//! The last rule that matches decides. A profile allows everything, denies every write, and then allows and denies in the
//! order of [`SandboxSpec`].

use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use runner_core::agents::RepositoryAccess;
use supervise::executables;

use super::hidden_paths::HiddenPath;
use super::sandbox::{SandboxSpec, canonical, expand_home};
use super::sandbox_argv::TEMP_DIR_VARIABLES;
use crate::agent::command::PreparedCommand;

/// Part of macOS. A program of this name elsewhere is not used.
const PROGRAM: &str = "/usr/bin/sandbox-exec";

pub(crate) const SEATBELT_FIX: &str =
    "sandbox-exec is part of macOS: start runner outside of another sandbox";

/// Devices that programs write to.
const DEVICES: [&str; 7] =
    ["/dev/null", "/dev/zero", "/dev/tty", "/dev/stdout", "/dev/stderr", "/dev/dtracehelper", "/dev/ptmx"];

/// The socket by which programs resolve names. All others belong to services that could start a program.
const RESOLVER: &str = "/private/var/run/mDNSResponder";

/// A `sandbox-exec` that works on this system.
#[derive(Clone, Debug)]
pub(crate) struct Seatbelt {
    program: PathBuf,
}

impl Seatbelt {
    /// Runs it once; `Err` has why it cannot be used. It cannot inside of another sandbox.
    pub(crate) fn find() -> Result<Self, String> {
        let program = PathBuf::from(PROGRAM);
        let args = ["-p", "(version 1)(allow default)", "/usr/bin/true"].map(OsString::from);
        executables::probe(&program, &args).map(|()| Self { program })
    }

    pub(super) fn wrap(&self, mut command: PreparedCommand, spec: &SandboxSpec) -> PreparedCommand {
        let mut argv = self.command_prefix(spec);
        argv.append(&mut command.argv);
        command.argv = argv;
        if let Some(temporary) = &spec.temporary {
            for (name, value) in &mut command.environment {
                if TEMP_DIR_VARIABLES.iter().any(|variable| name == variable) {
                    *value = temporary.into();
                }
            }
        }
        command
    }

    pub(super) fn command_prefix(&self, spec: &SandboxSpec) -> Vec<OsString> {
        vec![self.program.clone().into(), "-p".into(), profile(spec).into()]
    }
}

/// The profile for a sandbox. A path that is not UTF-8 is left out, so that it stays read-only.
fn profile(spec: &SandboxSpec) -> String {
    let mut rules = String::from("(version 1)\n(allow default)\n(deny file-write*)\n");
    for device in DEVICES {
        let _ = writeln!(rules, "(allow file-write* (literal \"{device}\"))");
    }
    rules.push_str("(allow file-write* (regex #\"^/dev/ttys[0-9]+$\"))\n");
    if spec.repository.access() == RepositoryAccess::Writable {
        add(&mut rules, "allow file-write*", &spec.root);
    }
    // Folders cannot be replaced here, so that state of the agent's program is the user's.
    let state = spec.state.iter().map(|state| &state.path);
    for path in state.chain(&spec.writable) {
        add(&mut rules, "allow file-write*", path);
    }
    for path in &spec.read_only {
        add(&mut rules, "deny file-write*", path);
    }
    // They are in the git folder, which is read-only.
    for path in spec.temporary.iter().chain(&spec.session_files) {
        add(&mut rules, "allow file-write*", path);
    }
    // Moving a folder away would take the read-only files inside of it along.
    for path in spec.read_only.iter().filter_map(|path| path.parent()).filter(|path| *path != spec.root) {
        if let Some(text) = quoted(path) {
            let _ = writeln!(rules, "(deny file-write-unlink (literal {text}))");
        }
    }
    for HiddenPath { path, .. } in &spec.hidden {
        add(&mut rules, "deny file-read* file-write*", path);
    }
    if let Some(heldout) = spec.heldout.as_deref().and_then(expand_home) {
        add(&mut rules, "deny file-read* file-write*", &canonical(&heldout));
    }
    rules.push_str("(deny signal (target others))\n(deny process-info* (target others))\n");
    if !spec.has_network {
        rules.push_str("(deny network*)\n");
    }
    rules.push_str("(deny network-outbound (remote unix-socket))\n");
    if spec.has_network {
        let _ =
            writeln!(rules, "(allow network-outbound (remote unix-socket (path-literal \"{RESOLVER}\")))");
    }
    rules
}

fn add(rules: &mut String, rule: &str, path: &Path) {
    if let Some(text) = quoted(path) {
        let _ = writeln!(rules, "({rule} (subpath {text}))");
    }
}

/// A path as a string of the profile.
fn quoted(path: &Path) -> Option<String> {
    Some(format!("\"{}\"", path.to_str()?.replace('\\', "\\\\").replace('"', "\\\"")))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    use super::*;
    use crate::agent::sandbox::RepositoryMount;
    use crate::agent::sandbox::StateMount;

    fn spec() -> SandboxSpec {
        SandboxSpec {
            root: "/Users/me/work".into(),
            repository: RepositoryMount::WorkTree(RepositoryAccess::Writable),
            temporary: Some("/Users/me/work/.git/runner/tmp".into()),
            writable: vec!["/Users/me/.npm".into()],
            read_only: vec!["/Users/me/work/.git".into(), "/Users/me/work/.runner/state/config.toml".into()],
            session_files: vec!["/Users/me/work/.git/runner/session".into()],
            state: vec![StateMount {
                source: "/Users/me/work/.git/runner/session/state/0".into(),
                path: "/Users/me/.cache/kilo".into(),
            }],
            hidden: vec![HiddenPath { path: "/Users/me/.claude".into(), replacement: None }],
            has_network: true,
            heldout: None,
        }
    }

    /// Whether the profile lets a program write to a path: the last rule that matches decides.
    fn allows_write(profile: &str, path: &str) -> bool {
        let mut is_allowed = true;
        for line in profile.lines().filter(|line| line.contains("file-write*")) {
            let place = line.split('"').nth(1).unwrap_or_default();
            let matches = if line.contains("(subpath ") {
                Path::new(path).starts_with(place)
            } else if line.contains("(literal ") {
                path == place
            } else {
                !line.contains("(regex ")
            };
            if matches {
                is_allowed = line.starts_with("(allow");
            }
        }
        is_allowed
    }

    #[test]
    fn a_profile_allows_writes_where_the_spec_does_and_nowhere_else() {
        let profile = profile(&spec());
        for path in [
            "/Users/me/work/src/lib.rs",
            "/Users/me/.npm/x",
            "/Users/me/.cache/kilo/x",
            "/Users/me/work/.git/runner/session/x",
            "/Users/me/work/.git/runner/tmp/x",
            "/dev/null",
        ] {
            assert!(allows_write(&profile, path), "{path}\n{profile}");
        }
        for path in [
            "/Users/me/x",
            "/Users/me/worker/x",
            "/Users/me/work/.git/config",
            "/Users/me/work/.runner/state/config.toml",
            "/etc/hosts",
            "/private/tmp/x",
        ] {
            assert!(!allows_write(&profile, path), "{path}\n{profile}");
        }
        assert!(profile.contains("(deny file-write-unlink (literal \"/Users/me/work/.runner/state\"))"));
    }

    #[test]
    fn held_out_checks_are_hidden_wherever_the_configuration_says_they_are() {
        let home = PathBuf::from(std::env::var_os("HOME").unwrap());
        let folder = canonical(&home.join("no-such-checks"));
        for heldout in ["~/no-such-checks".to_owned(), folder.display().to_string()] {
            let profile = profile(&SandboxSpec { heldout: Some(heldout), ..spec() });
            let rule = format!("(deny file-read* file-write* (subpath \"{}\"))", folder.display());
            let (_, after) = profile.split_once(&rule).unwrap_or_else(|| panic!("{profile}"));
            assert!(!after.contains("(allow file-"), "{profile}");
        }
    }

    #[test]
    fn a_read_only_session_may_not_write_to_the_repository() {
        let profile = profile(&SandboxSpec {
            repository: RepositoryMount::WorkTree(RepositoryAccess::ReadOnly),
            ..spec()
        });
        assert!(!allows_write(&profile, "/Users/me/work/src/lib.rs"), "{profile}");
    }

    #[test]
    fn services_are_unreachable_and_the_network_follows_the_spec() {
        let open = profile(&spec());
        assert!(!open.contains("(deny network*)"));
        let deny = open.find("(deny network-outbound (remote unix-socket))").unwrap();
        assert!(open.find(RESOLVER).unwrap() > deny);
        let closed = profile(&SandboxSpec { has_network: false, ..spec() });
        assert!(closed.contains("(deny network*)") && !closed.contains(RESOLVER), "{closed}");
    }

    #[test]
    fn paths_cannot_end_their_string() {
        let root = PathBuf::from("/a\") (allow file-write*) (\"\\");
        let profile = profile(&SandboxSpec { root, ..spec() });
        let expected = r#"(allow file-write* (subpath "/a\") (allow file-write*) (\"\\"))"#;
        assert!(profile.lines().any(|line| line == expected), "{profile}");
        let bytes = PathBuf::from(OsStr::from_bytes(b"/a\xff"));
        assert_eq!(quoted(&bytes), None);
    }

    #[test]
    fn a_command_runs_under_its_profile_with_temporary_files_of_the_session() {
        let command = PreparedCommand {
            usage_logs: None,
            argv: vec!["/bin/agent".into(), "-x".into()],
            environment: vec![("TMPDIR".into(), "/var/folders/x".into())],
            files: Vec::new(),
            folders: Vec::new(),
            links: Vec::new(),
            state_folders: Vec::new(),
            login_files: Vec::new(),
            agent: None,
        };
        let seatbelt = Seatbelt { program: PROGRAM.into() };
        let wrapped = seatbelt.wrap(command, &spec());
        let profile = OsString::from(profile(&spec()));
        assert_eq!(
            wrapped.argv,
            [PROGRAM.into(), "-p".into(), profile, "/bin/agent".into(), OsString::from("-x")]
        );
        assert_eq!(
            wrapped.environment,
            [("TMPDIR".into(), OsString::from("/Users/me/work/.git/runner/tmp"))]
        );
    }
}
