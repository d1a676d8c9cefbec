//! The first process of a traced tree. It is this program again, because a filter must be installed between `fork` and `exec`,
//! and code there would be unsafe.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::sys::ptrace;
use nix::sys::signal::{Signal, raise};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch, apply_filter};

use super::call_table::CallClass;

/// The first argument of the process that becomes the traced program.
pub(crate) const TRACED_CHILD: &str = "traced-child";

/// A command that stops itself for its tracer and then executes the program of `command`, in its environment and folder.
pub(super) fn traced_command(command: &Command, class: CallClass) -> Command {
    let mut traced = Command::new("/proc/self/exe");
    traced.arg(TRACED_CHILD).arg(class.name()).arg(command.get_program()).args(command.get_args());
    traced.env_clear();
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            traced.env(name, value);
        }
    }
    traced.current_dir(command.get_current_dir().unwrap_or(Path::new("/")));
    traced
}

/// Runs in the child: waits for the tracer, installs the filter, and becomes the program. Returns only the error.
pub(crate) fn exec_traced(mut args: impl Iterator<Item = OsString>) -> String {
    let class = args.next().and_then(|name| CallClass::parse(&name.to_string_lossy()));
    let (Some(class), Some(program)) = (class, args.next()) else {
        return "a traced child needs a call class and a program".to_owned();
    };
    let prepared = ptrace::traceme().and_then(|()| raise(Signal::SIGSTOP));
    if let Err(error) = prepared {
        return format!("ptrace: {error}");
    }
    let installed = filter(class).and_then(|filter| apply_filter(&filter));
    if let Err(error) = installed {
        return format!("seccomp: {error}");
    }
    format!("exec: {}", Command::new(program).args(args).exec())
}

fn filter(class: CallClass) -> seccompiler::Result<BpfProgram> {
    let rules: BTreeMap<i64, Vec<_>> = class.calls().map(|call| (call.number, Vec::new())).collect();
    let filter =
        SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Trace(0), TargetArch::x86_64)?;
    Ok(filter.try_into()?)
}
