//! Arguments of `runner eval submit`.

use clap::{Args, Subcommand};

use super::ScopeArgs;
use crate::plan::run_name::EvalRunName;

/// Submit a run to a cluster: Slurm or Kubernetes
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval submit slurm --run nightly --agent codex --trials 5 --dry-run
  runner eval submit k8s --run nightly --agent codex --image IMAGE --dry-run")]
pub(crate) struct SubmitArgs {
    #[command(subcommand)]
    pub(crate) engine: ClusterEngine,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ClusterEngine {
    Slurm(SlurmArgs),
    K8s(K8sArgs),
}

#[derive(Args, Debug)]
pub(crate) struct SubmitScope {
    #[command(flatten)]
    pub(crate) scope: ScopeArgs,
    /// Run name; of an existing run, only what is missing runs [default: the current time]
    #[arg(long, value_name = "NAME")]
    pub(crate) run: Option<EvalRunName>,
    /// Number of parts to split the trials into
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) partitions: u32,
    /// Trials to run at the same time in each partition
    #[arg(long, short, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(crate) jobs: u32,
    /// Write and print the jobs without submitting them
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Submit an array job, and a job that merges after it
///
/// Needs folders that all nodes see at the same path. After a loss, submit again: only what is missing runs.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval submit slurm --run nightly --agent codex --trials 5
  runner eval submit slurm --run nightly --agent codex --partitions 4 --dry-run")]
pub(crate) struct SlurmArgs {
    #[command(flatten)]
    pub(crate) common: SubmitScope,
    /// Partitions to run at the same time
    #[arg(long, value_name = "N")]
    pub(crate) throttle: Option<u32>,
    /// Time limit of a partition, as Slurm writes it
    #[arg(long, value_name = "TIME")]
    pub(crate) time: Option<String>,
    /// Slurm's partition (queue) to submit to
    #[arg(long, value_name = "NAME")]
    pub(crate) queue: Option<String>,
}

/// Submit an Indexed Job
///
/// The image must contain the same `runner-eval` and `runner`; the claim must contain the folder that holds eval/.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval submit k8s --run nightly --agent codex --image IMAGE --dry-run")]
pub(crate) struct K8sArgs {
    #[command(flatten)]
    pub(crate) common: SubmitScope,
    /// Container image to run the trials in
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: String,
    /// Claim of the volume that all pods share
    #[arg(long, value_name = "NAME", default_value = "eval")]
    pub(crate) claim: String,
    /// Mount path of the volume
    #[arg(long, value_name = "PATH", default_value = "/eval")]
    pub(crate) mount: String,
    /// Partitions to run at the same time
    #[arg(long, value_name = "N")]
    pub(crate) throttle: Option<u32>,
}
