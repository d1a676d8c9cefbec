//! Which sandbox a session gets, and the agent inside it.

use runner_core::config::{ExecutorKind, Sandbox};
use runner_core::step::Job;

use super::{Bench, Workshop};
use crate::error::{Error, Refusal};
use crate::executor::Program;
use crate::git::PathSet;
use crate::sandbox::{Bubblewrap, Level, Room};
use crate::store;

impl Workshop<'_> {
    /// What keeps the session of a job in. Refuses one that must not run without a sandbox where there is none.
    pub(super) fn sandbox_for(&mut self, job: &Job) -> Result<Level, Error> {
        if matches!(job.executor.kind, ExecutorKind::Codex | ExecutorKind::Claude) {
            return Ok(Level::None);
        }
        if job.executor.sandbox == Sandbox::Off {
            return Ok(Level::None);
        }
        let root = self.git.root();
        match self.sandbox.get_or_insert_with(|| Bubblewrap::find(root)) {
            Ok(_) => Ok(Level::Bubblewrap),
            Err(why) if job.executor.sandbox == Sandbox::Require => {
                Err(Refusal::NoSandbox { why: why.clone() }.into())
            }
            Err(_) => Ok(Level::None),
        }
    }

    /// The agent, inside what the bench says.
    pub(super) fn confined(&self, program: Program, job: &Job, bench: &Bench) -> Result<Program, Error> {
        let (Level::Bubblewrap, Some(Ok(bubblewrap))) = (bench.sandbox, &self.sandbox) else {
            return Ok(program);
        };
        let room = Room::of(&self.git, job, self.at_head.as_ref().unwrap_or(&PathSet::new()))?;
        store::clear(&room.temporary)?;
        store::ensure_folder(&room.temporary)?;
        Ok(bubblewrap.around(program, &room))
    }
}
