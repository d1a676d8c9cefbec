//! Agent programs: emulated by scripts, and the real ones against a scripted model.

pub(crate) mod acp;
pub(crate) mod emulated;
pub(crate) mod marked;
pub(crate) mod presets;
pub(crate) mod projects;
pub(crate) mod real;
pub(crate) mod real_limits;
pub(crate) mod real_reach;
pub(crate) mod real_review;
pub(crate) mod recorded;
pub(crate) mod recorded_tls;
pub(crate) mod registry;
pub(crate) mod supervisor_entry;
