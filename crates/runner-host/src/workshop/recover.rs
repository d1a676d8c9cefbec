//! What the next command does with something that a crash left unfinished.

use runner_core::step::{Exit, Interruption, Plan, StepEnd, World, plan, resume};

use super::Workshop;
use super::session::{Ended, reported};
use crate::error::Error;
use crate::git::Git;
use crate::journal::{self, Iteration, Pending, Phase};
use crate::moving::{self, Recovered};
use crate::pins::SessionName;

/// What was taken up.
#[derive(Debug)]
pub enum Taken {
    /// A move to a commit was finished.
    Move(Recovered),
    /// An iteration was finished.
    Iteration(Box<StepEnd>),
}

/// Finishes whatever a crash left: nothing is lost, and no person has to do anything.
pub fn take_up(workshop: &mut Workshop<'_>) -> Result<Option<Taken>, Error> {
    match journal::pending(&workshop.git.paths().journal())? {
        None => Ok(None),
        Some(Pending::Move(moving)) => Ok(moving::recover(&workshop.git, moving)?.map(Taken::Move)),
        Some(Pending::Iteration(iteration)) => take_up_iteration(workshop, &iteration),
    }
}

fn take_up_iteration(workshop: &mut Workshop<'_>, iteration: &Iteration) -> Result<Option<Taken>, Error> {
    let run = iteration.branch.strip_prefix(runner_core::id::BRANCH_PREFIX).unwrap_or_default().to_owned();
    let name =
        SessionName { run: &run, branch: &iteration.branch, iter: &iteration.iter, base: &iteration.base };
    let mended = iteration.pins.put_back(&workshop.git, name)?;
    let base = iteration.base.clone();
    workshop.resuming = Some(base.clone());
    let snapshot = workshop.load()?;
    // The same commit gives the same job. A commit that gives none never began an iteration.
    let Plan::Work(job) = plan(&snapshot)? else {
        workshop.resuming = None;
        journal::end(&workshop.git.paths().journal())?;
        return Ok(None);
    };
    let ended = match iteration.phase.clone() {
        Phase::Session => {
            let exit = Exit::Interrupted { by: Interruption::Crash };
            Ended { exit, usage: reported(&workshop.git, &job).usage, processes_left: 0 }
        }
        Phase::Ended { exit, usage, processes_left } => Ended { exit, usage, processes_left },
    };
    let index = old_index(&workshop.git, &base)?;
    workshop.set_bench(&job, base, index, &snapshot.tree.to_bytes())?;
    workshop.bench()?.mended = mended;
    let attempt = workshop.pick_up(&job, ended)?;
    let end = resume(workshop, attempt)?;
    workshop.resuming = None;
    Ok(Some(Taken::Iteration(Box::new(end))))
}

/// The index that was pinned before the session, or one made anew from the commit.
fn old_index(git: &Git, base: &str) -> Result<std::path::PathBuf, Error> {
    let index = git.paths().private_index("work");
    if !index.exists() {
        git.read_into_index(&index, base)?;
    }
    Ok(index)
}
