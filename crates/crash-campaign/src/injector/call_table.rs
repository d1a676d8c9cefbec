//! The system calls that the injector stops at, and where each has its path.

use nix::libc;

/// A set of system calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallClass {
    /// Changes to files, and barriers.
    Mutating,
    /// Barriers and renames: what decides about the state after a power cut.
    Barriers,
    /// Everything that needs a new file descriptor.
    Opening,
    /// New processes and programs.
    Starting,
}

/// Which arguments hold the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathArguments {
    /// A file descriptor in this argument.
    Descriptor(usize),
    /// A path in this argument, relative to the working directory.
    Path(usize),
    /// A folder's descriptor and, in the next argument, a path.
    PathAt(usize),
    /// Like `PathAt`; changes a file only with a flag in the argument after the path.
    OpenAt(usize),
    /// A path and, in the next argument, such a flag.
    Open(usize),
    /// Two paths.
    TwoPaths,
    /// Two pairs of descriptor and path.
    TwoPathsAt,
    /// No file, so that the call counts wherever it happens.
    Nowhere,
}

pub(super) struct TracedCall {
    pub(super) number: i64,
    pub(super) name: &'static str,
    pub(super) arguments: PathArguments,
    is_mutating: bool,
    is_barrier: bool,
    is_opening: bool,
    is_starting: bool,
}

const fn mutating(number: i64, name: &'static str, arguments: PathArguments) -> TracedCall {
    TracedCall {
        number,
        name,
        arguments,
        is_mutating: true,
        is_barrier: false,
        is_opening: false,
        is_starting: false,
    }
}

const fn barrier(number: i64, name: &'static str, arguments: PathArguments) -> TracedCall {
    TracedCall { is_barrier: true, ..mutating(number, name, arguments) }
}

const fn opening(number: i64, name: &'static str, arguments: PathArguments) -> TracedCall {
    TracedCall { is_opening: true, ..mutating(number, name, arguments) }
}

const fn starting(number: i64, name: &'static str) -> TracedCall {
    TracedCall { is_mutating: false, is_starting: true, ..mutating(number, name, Nowhere) }
}

use PathArguments::{Descriptor, Nowhere, Open, OpenAt, Path, PathAt, TwoPaths, TwoPathsAt};

const CALLS: &[TracedCall] = &[
    mutating(libc::SYS_write, "write", Descriptor(0)),
    mutating(libc::SYS_pwrite64, "pwrite64", Descriptor(0)),
    mutating(libc::SYS_writev, "writev", Descriptor(0)),
    mutating(libc::SYS_ftruncate, "ftruncate", Descriptor(0)),
    mutating(libc::SYS_fchmod, "fchmod", Descriptor(0)),
    mutating(libc::SYS_fallocate, "fallocate", Descriptor(0)),
    mutating(libc::SYS_sendfile, "sendfile", Descriptor(0)),
    mutating(libc::SYS_copy_file_range, "copy_file_range", Descriptor(2)),
    barrier(libc::SYS_fsync, "fsync", Descriptor(0)),
    barrier(libc::SYS_fdatasync, "fdatasync", Descriptor(0)),
    barrier(libc::SYS_syncfs, "syncfs", Descriptor(0)),
    mutating(libc::SYS_unlink, "unlink", Path(0)),
    mutating(libc::SYS_mkdir, "mkdir", Path(0)),
    mutating(libc::SYS_rmdir, "rmdir", Path(0)),
    mutating(libc::SYS_truncate, "truncate", Path(0)),
    mutating(libc::SYS_chmod, "chmod", Path(0)),
    barrier(libc::SYS_rename, "rename", TwoPaths),
    mutating(libc::SYS_link, "link", TwoPaths),
    mutating(libc::SYS_symlink, "symlink", TwoPaths),
    barrier(libc::SYS_renameat, "renameat", TwoPathsAt),
    barrier(libc::SYS_renameat2, "renameat2", TwoPathsAt),
    mutating(libc::SYS_linkat, "linkat", TwoPathsAt),
    mutating(libc::SYS_unlinkat, "unlinkat", PathAt(0)),
    mutating(libc::SYS_mkdirat, "mkdirat", PathAt(0)),
    mutating(libc::SYS_symlinkat, "symlinkat", PathAt(1)),
    mutating(libc::SYS_fchmodat, "fchmodat", PathAt(0)),
    mutating(libc::SYS_mknodat, "mknodat", PathAt(0)),
    mutating(libc::SYS_utimensat, "utimensat", PathAt(0)),
    opening(libc::SYS_creat, "creat", Path(0)),
    opening(libc::SYS_open, "open", Open(0)),
    opening(libc::SYS_openat, "openat", OpenAt(0)),
    TracedCall { is_mutating: false, ..opening(libc::SYS_pipe2, "pipe2", Nowhere) },
    starting(libc::SYS_clone, "clone"),
    starting(libc::SYS_clone3, "clone3"),
    starting(libc::SYS_fork, "fork"),
    starting(libc::SYS_vfork, "vfork"),
    starting(libc::SYS_execve, "execve"),
];

impl CallClass {
    /// The calls of this class.
    pub(super) fn calls(self) -> impl Iterator<Item = &'static TracedCall> {
        CALLS.iter().filter(move |call| match self {
            Self::Mutating => call.is_mutating,
            Self::Barriers => call.is_barrier,
            Self::Opening => call.is_opening,
            Self::Starting => call.is_starting,
        })
    }

    /// Whether an `open` without `O_CREAT` and `O_TRUNC` counts.
    pub(super) fn counts_every_open(self) -> bool {
        self == Self::Opening
    }

    /// The name on the command line of a traced child.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Mutating => "mutating",
            Self::Barriers => "barriers",
            Self::Opening => "opening",
            Self::Starting => "starting",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        [Self::Mutating, Self::Barriers, Self::Opening, Self::Starting]
            .into_iter()
            .find(|class| class.name() == name)
    }
}
