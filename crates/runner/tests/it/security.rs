//! Agents, repositories and histories that try to break a rule.

pub(crate) mod false_passes;
pub(crate) mod forged_edits;
pub(crate) mod forged_runs;
pub(crate) mod guards_of_projects;
pub(crate) mod hostile_agents;
pub(crate) mod in_place;
pub(crate) mod kept_files;
pub(crate) mod key_places;
pub(crate) mod planted_config;
pub(crate) mod protection;
pub(crate) mod redaction;
pub(crate) mod room;
pub(crate) mod room_home;
pub(crate) mod sandbox;
pub(crate) mod sandbox_reach;
