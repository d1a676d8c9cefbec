//! Arguments of `runner eval submit`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{IsolationMode, ScopeArgs};
use crate::plan::run_name::EvalRunName;

/// Submit a run to a cluster: Slurm, Kubernetes, GitHub Actions
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
    Actions(ActionsArgs),
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
    /// Start no more trials once the whole run has cost this many dollars
    #[arg(long, value_name = "USD")]
    pub(crate) budget_usd: Option<f64>,
    /// Start no more trials once the whole run has used this many tokens
    #[arg(long, value_name = "N")]
    pub(crate) budget_tokens: Option<u64>,
    /// Whether trials and checks run in a sandbox; by default a machine without one fails
    #[arg(long, value_name = "MODE", default_value = "required")]
    pub(crate) isolation: IsolationMode,
    /// Shell command that fails while the agents' provider is down; confirms what agents report about it
    #[arg(long, value_name = "COMMAND")]
    pub(crate) provider_check: Option<String>,
    /// After its own partition, let each machine help with the others
    #[arg(long)]
    pub(crate) steal: bool,
    /// Print the jobs; write and submit nothing
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
    /// Account to charge
    #[arg(long, value_name = "NAME")]
    pub(crate) account: Option<String>,
    /// Memory per partition, as Slurm writes it
    #[arg(long, value_name = "SIZE")]
    pub(crate) memory: Option<String>,
    /// Processors per partition
    #[arg(long, value_name = "N")]
    pub(crate) cpus: Option<u32>,
    /// Required features of the nodes
    #[arg(long, value_name = "LIST")]
    pub(crate) constraint: Option<String>,
}

/// Submit an Indexed Job, and a job that merges
///
/// The image must contain the same `runner-eval` and `runner`; the claim must contain the folder that holds eval/.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval submit k8s --run nightly --agent codex --image IMAGE \\
    --secret api-keys --cpu 2 --memory 4Gi --dry-run")]
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
    /// Secret whose entries become variables of the pods, such as API keys; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) secret: Vec<String>,
    /// Processors per pod, as Kubernetes writes them
    #[arg(long, value_name = "AMOUNT")]
    pub(crate) cpu: Option<String>,
    /// Memory per pod, as Kubernetes writes it
    #[arg(long, value_name = "AMOUNT")]
    pub(crate) memory: Option<String>,
    /// Seconds after which the whole job is stopped
    #[arg(long, value_name = "SECS")]
    pub(crate) deadline_secs: Option<u32>,
    #[command(flatten)]
    pub(crate) security: PodSecurity,
}

/// What pods may do. The sandbox of a trial creates namespaces and mounts /proc, which many clusters refuse by default.
#[derive(Args, Debug)]
pub(crate) struct PodSecurity {
    /// User id to run as
    #[arg(long, value_name = "UID")]
    pub(crate) user: Option<u32>,
    /// Seccomp profile of the pods; RuntimeDefault usually refuses the sandbox of trials
    #[arg(long, value_name = "TYPE", default_value = "Unconfined", value_parser = ["Unconfined", "RuntimeDefault"])]
    pub(crate) seccomp: String,
    /// Give pods an unmasked /proc and a user namespace of their own, if the sandbox cannot mount /proc
    #[arg(long)]
    pub(crate) unmask_proc: bool,
    /// Run privileged pods, if the cluster allows the sandbox in no other way
    #[arg(long, conflicts_with = "unmask_proc")]
    pub(crate) privileged: bool,
}

/// Write a GitHub Actions workflow with a matrix of partitions
///
/// The machines need no shared folder: each uploads its results, and a last job merges them.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  runner eval submit actions --run nightly --agent codex --trials 5 \\
    --secret OPENAI_API_KEY --out .github/workflows/eval.yml")]
pub(crate) struct ActionsArgs {
    #[command(flatten)]
    pub(crate) common: SubmitScope,
    /// Secret of the repository that becomes a variable of the trials, such as OPENAI_API_KEY; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) secret: Vec<String>,
    /// Command that installs runner and runner-eval on a machine; repeatable [default: cargo install from the repository]
    #[arg(long, value_name = "COMMAND")]
    pub(crate) setup: Vec<String>,
    /// Workflow file to write
    #[arg(long, value_name = "FILE", default_value = ".github/workflows/eval.yml")]
    pub(crate) out: PathBuf,
}
