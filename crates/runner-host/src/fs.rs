//! Files: atomic writes, symlink-safe reads, the lock.

pub(crate) mod atomic;
pub(crate) mod lock;
