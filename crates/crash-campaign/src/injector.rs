//! Runs a program under ptrace, counts the system calls of its whole process tree that change files under one root, and injects
//! a fault at one of them.
//!
//! A seccomp filter stops only the calls of [`call_table`], so that everything else runs at full speed. Calls of the agent and
//! the guard do not count: their faults are not the runner's.

mod call_table;
mod traced_child;
mod tracee;
mod tracer;

pub(crate) use call_table::CallClass;
pub(crate) use traced_child::{TRACED_CHILD, exec_traced};
pub(crate) use tracer::{Injection, TraceOutcome, trace};

use nix::errno::Errno;

/// What happens at the chosen call, before it takes effect.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// Every process of the tree is killed.
    KillAll,
    /// Only the runner is killed; its children continue.
    KillRunner,
    /// The call fails once.
    FailOnce(Errno),
    /// The call and all later ones fail.
    FailAlways(Errno),
    /// The runner is killed, and the calling process is stopped until this command has ended.
    HoldCaller(Vec<String>),
}
