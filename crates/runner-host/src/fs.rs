//! File access that is safe against crashes and against what an agent may put in the way: atomic writes, reads that follow
//! no links, and the lock.

pub(crate) mod atomic;
pub(crate) mod copy;
pub(crate) mod free_space;
pub(crate) mod lock;
pub(crate) mod log_folder;
pub(crate) mod lookup;
pub(crate) mod temp_dir;
pub(crate) mod tree_size;
