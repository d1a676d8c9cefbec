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
    /// Everything that reads files and folders, or asks about them.
    Reading,
    /// Every call of the table: the kernel needs memory for each.
    Any,
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
    /// Like `PathAt`; the argument after the path is the address of such a flag.
    OpenAt2(usize),
    /// Two paths.
    TwoPaths,
    /// Two pairs of descriptor and path.
    TwoPathsAt,
    /// No file, so that the call counts wherever it happens.
    Nowhere,
    /// Like `Nowhere`, if the second argument asks for a copy of a descriptor.
    Duplicate,
}

pub(super) struct TracedCall {
    pub(super) number: i64,
    pub(super) name: &'static str,
    pub(super) arguments: PathArguments,
    /// Besides [`CallClass::Any`].
    classes: &'static [CallClass],
}

const fn call(
    number: i64,
    name: &'static str,
    arguments: PathArguments,
    classes: &'static [CallClass],
) -> TracedCall {
    TracedCall { number, name, arguments, classes }
}

const fn mutating(number: i64, name: &'static str, arguments: PathArguments) -> TracedCall {
    call(number, name, arguments, &[CallClass::Mutating])
}

const fn barrier(number: i64, name: &'static str, arguments: PathArguments) -> TracedCall {
    call(number, name, arguments, &[CallClass::Mutating, CallClass::Barriers])
}

/// Opens a file, which may create it.
const fn opening(number: i64, name: &'static str, arguments: PathArguments) -> TracedCall {
    call(number, name, arguments, &[CallClass::Mutating, CallClass::Opening, CallClass::Reading])
}

/// A new file descriptor that is not of a file.
const fn descriptor(number: i64, name: &'static str) -> TracedCall {
    call(number, name, Nowhere, &[CallClass::Opening])
}

const fn starting(number: i64, name: &'static str) -> TracedCall {
    call(number, name, Nowhere, &[CallClass::Starting])
}

const fn reading(number: i64, name: &'static str, arguments: PathArguments) -> TracedCall {
    call(number, name, arguments, &[CallClass::Reading])
}

use PathArguments::{
    Descriptor, Duplicate, Nowhere, Open, OpenAt, OpenAt2, Path, PathAt, TwoPaths, TwoPathsAt,
};

const CALLS: &[TracedCall] = &[
    mutating(libc::SYS_write, "write", Descriptor(0)),
    mutating(libc::SYS_pwrite64, "pwrite64", Descriptor(0)),
    mutating(libc::SYS_writev, "writev", Descriptor(0)),
    mutating(libc::SYS_pwritev, "pwritev", Descriptor(0)),
    mutating(libc::SYS_pwritev2, "pwritev2", Descriptor(0)),
    mutating(libc::SYS_ftruncate, "ftruncate", Descriptor(0)),
    mutating(libc::SYS_fchmod, "fchmod", Descriptor(0)),
    mutating(libc::SYS_fchown, "fchown", Descriptor(0)),
    mutating(libc::SYS_fallocate, "fallocate", Descriptor(0)),
    mutating(libc::SYS_sendfile, "sendfile", Descriptor(0)),
    mutating(libc::SYS_splice, "splice", Descriptor(2)),
    mutating(libc::SYS_copy_file_range, "copy_file_range", Descriptor(2)),
    mutating(libc::SYS_fsetxattr, "fsetxattr", Descriptor(0)),
    mutating(libc::SYS_fremovexattr, "fremovexattr", Descriptor(0)),
    barrier(libc::SYS_fsync, "fsync", Descriptor(0)),
    barrier(libc::SYS_fdatasync, "fdatasync", Descriptor(0)),
    barrier(libc::SYS_syncfs, "syncfs", Descriptor(0)),
    barrier(libc::SYS_sync_file_range, "sync_file_range", Descriptor(0)),
    barrier(libc::SYS_sync, "sync", Nowhere),
    mutating(libc::SYS_unlink, "unlink", Path(0)),
    mutating(libc::SYS_mkdir, "mkdir", Path(0)),
    mutating(libc::SYS_rmdir, "rmdir", Path(0)),
    mutating(libc::SYS_mknod, "mknod", Path(0)),
    mutating(libc::SYS_truncate, "truncate", Path(0)),
    mutating(libc::SYS_chmod, "chmod", Path(0)),
    mutating(libc::SYS_chown, "chown", Path(0)),
    mutating(libc::SYS_lchown, "lchown", Path(0)),
    mutating(libc::SYS_utime, "utime", Path(0)),
    mutating(libc::SYS_utimes, "utimes", Path(0)),
    mutating(libc::SYS_setxattr, "setxattr", Path(0)),
    mutating(libc::SYS_lsetxattr, "lsetxattr", Path(0)),
    mutating(libc::SYS_removexattr, "removexattr", Path(0)),
    mutating(libc::SYS_lremovexattr, "lremovexattr", Path(0)),
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
    mutating(libc::SYS_fchmodat2, "fchmodat2", PathAt(0)),
    mutating(libc::SYS_fchownat, "fchownat", PathAt(0)),
    mutating(libc::SYS_mknodat, "mknodat", PathAt(0)),
    mutating(libc::SYS_utimensat, "utimensat", PathAt(0)),
    mutating(libc::SYS_futimesat, "futimesat", PathAt(0)),
    call(libc::SYS_creat, "creat", Path(0), &[CallClass::Mutating, CallClass::Opening]),
    opening(libc::SYS_open, "open", Open(0)),
    opening(libc::SYS_openat, "openat", OpenAt(0)),
    opening(libc::SYS_openat2, "openat2", OpenAt2(0)),
    descriptor(libc::SYS_pipe, "pipe"),
    descriptor(libc::SYS_pipe2, "pipe2"),
    descriptor(libc::SYS_socket, "socket"),
    descriptor(libc::SYS_socketpair, "socketpair"),
    descriptor(libc::SYS_accept, "accept"),
    descriptor(libc::SYS_accept4, "accept4"),
    descriptor(libc::SYS_dup, "dup"),
    descriptor(libc::SYS_dup2, "dup2"),
    descriptor(libc::SYS_dup3, "dup3"),
    descriptor(libc::SYS_epoll_create, "epoll_create"),
    descriptor(libc::SYS_epoll_create1, "epoll_create1"),
    descriptor(libc::SYS_eventfd, "eventfd"),
    descriptor(libc::SYS_eventfd2, "eventfd2"),
    descriptor(libc::SYS_inotify_init1, "inotify_init1"),
    descriptor(libc::SYS_memfd_create, "memfd_create"),
    descriptor(libc::SYS_pidfd_open, "pidfd_open"),
    descriptor(libc::SYS_signalfd4, "signalfd4"),
    descriptor(libc::SYS_timerfd_create, "timerfd_create"),
    call(libc::SYS_fcntl, "fcntl", Duplicate, &[CallClass::Opening]),
    starting(libc::SYS_clone, "clone"),
    starting(libc::SYS_clone3, "clone3"),
    starting(libc::SYS_fork, "fork"),
    starting(libc::SYS_vfork, "vfork"),
    starting(libc::SYS_execve, "execve"),
    starting(libc::SYS_execveat, "execveat"),
    reading(libc::SYS_read, "read", Descriptor(0)),
    reading(libc::SYS_pread64, "pread64", Descriptor(0)),
    reading(libc::SYS_readv, "readv", Descriptor(0)),
    reading(libc::SYS_preadv, "preadv", Descriptor(0)),
    reading(libc::SYS_preadv2, "preadv2", Descriptor(0)),
    reading(libc::SYS_getdents64, "getdents64", Descriptor(0)),
    reading(libc::SYS_fstat, "fstat", Descriptor(0)),
    reading(libc::SYS_stat, "stat", Path(0)),
    reading(libc::SYS_lstat, "lstat", Path(0)),
    reading(libc::SYS_access, "access", Path(0)),
    reading(libc::SYS_readlink, "readlink", Path(0)),
    reading(libc::SYS_newfstatat, "newfstatat", PathAt(0)),
    reading(libc::SYS_statx, "statx", PathAt(0)),
    reading(libc::SYS_faccessat, "faccessat", PathAt(0)),
    reading(libc::SYS_faccessat2, "faccessat2", PathAt(0)),
    reading(libc::SYS_readlinkat, "readlinkat", PathAt(0)),
];

impl CallClass {
    const ALL: [Self; 6] =
        [Self::Mutating, Self::Barriers, Self::Opening, Self::Starting, Self::Reading, Self::Any];

    /// The calls of this class.
    pub(super) fn calls(self) -> impl Iterator<Item = &'static TracedCall> {
        CALLS.iter().filter(move |call| self == Self::Any || call.classes.contains(&self))
    }

    /// Whether an `open` with these flags counts: one that can change a file, that cannot, or both.
    pub(super) fn counts_open(self, flags: u64) -> bool {
        let mask = u64::from((libc::O_CREAT | libc::O_TRUNC).cast_unsigned());
        let is_change = flags & mask != 0;
        match self {
            Self::Mutating | Self::Barriers => is_change,
            Self::Reading => !is_change,
            Self::Opening | Self::Starting | Self::Any => true,
        }
    }

    /// The name on the command line of a traced child.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Mutating => "mutating",
            Self::Barriers => "barriers",
            Self::Opening => "opening",
            Self::Starting => "starting",
            Self::Reading => "reading",
            Self::Any => "any",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn names(class: CallClass) -> BTreeSet<&'static str> {
        class.calls().map(|call| call.name).collect()
    }

    #[test]
    fn every_class_has_the_calls_that_can_fail_in_its_way() {
        for (class, expected) in [
            (
                CallClass::Mutating,
                "write pwritev pwritev2 openat2 mknod fchown utimes unlink renameat2 setxattr",
            ),
            (
                CallClass::Opening,
                "open openat openat2 pipe pipe2 socket socketpair dup fcntl epoll_create1 eventfd2 pidfd_open memfd_create",
            ),
            (CallClass::Reading, "open openat openat2 read pread64 getdents64 newfstatat statx readlink"),
            (CallClass::Starting, "clone clone3 fork vfork execve"),
            (CallClass::Barriers, "fsync fdatasync syncfs rename renameat renameat2"),
            (CallClass::Any, "write read socket clone fsync"),
        ] {
            let names = names(class);
            let missing: Vec<&str> = expected.split(' ').filter(|name| !names.contains(name)).collect();
            assert!(missing.is_empty(), "{}: {missing:?}", class.name());
            assert_eq!(CallClass::parse(class.name()), Some(class));
        }
        assert!(!names(CallClass::Mutating).contains("read") && !names(CallClass::Opening).contains("read"));
        let numbers: BTreeSet<i64> = CALLS.iter().map(|call| call.number).collect();
        assert_eq!(numbers.len(), CALLS.len(), "a call is listed twice");
    }

    #[test]
    fn an_open_counts_where_it_can_do_damage() {
        let create = u64::from(libc::O_CREAT.cast_unsigned());
        let counted = |flags| CallClass::ALL.map(|class| class.counts_open(flags));
        assert_eq!(counted(create), [true, true, true, true, false, true]);
        assert_eq!(counted(0), [false, false, true, true, true, true]);
    }
}
