//! What a new run would use, where no run is checked out: the configuration of an earlier run, or a detected one.

use runner_core::detect::ConfigRequest;
use runner_core::text::one_line;

use super::{DoctorCheck, guard_check, program_checks};
use crate::error::UserError;
use crate::git::Git;
use crate::ops::detect::{ConfigSource, propose_in};
use crate::ops::preflight::SetupStage;

pub(super) fn checks(git: &Git) -> Vec<DoctorCheck> {
    let stage = SetupStage::NewRun;
    let proposal = match propose_in(git, &ConfigRequest::default()) {
        Ok(proposal) => proposal,
        Err(error) => {
            let fix = "run 'git status' here to see what git reports, then fix that";
            return vec![DoctorCheck::problem("setup", one_line(&error.to_string()), fix)];
        }
    };
    let config = &proposal.proposed.config;
    let guard = if proposal.proposed.has_guard {
        guard_check(git, config, stage)
    } else {
        DoctorCheck::problem("guard", UserError::NoGuard.to_string(), stage.set_guard("COMMAND"))
    };
    let mut checks = vec![setup_check(&proposal.source)];
    checks.extend(program_checks(git, config, guard, stage));
    checks
}

fn setup_check(source: &ConfigSource) -> DoctorCheck {
    let (found, fix) = match source {
        ConfigSource::Run(run) => (
            format!("run `{run}` is not checked out; a new run would use its configuration"),
            "start a new run: runner run \"GOAL\", or list the runs: runner runs",
        ),
        ConfigSource::Detected | ConfigSource::WorkTree => (
            "there is no run yet; a new one would use what is detected here".to_owned(),
            "start one: runner run \"GOAL\"",
        ),
    };
    DoctorCheck::warning("setup", found, fix)
}
