//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Hold a loop runner to the table of misbehaving agents
#[derive(Debug, Parser)]
#[command(name = "conformance-bench", version)]
struct BenchCli {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Run all rows, or some, with one tool; exit 1 if one fails
    Run(ToolRunArgs),
    /// List the rows
    Rows,
    /// Print the page of the documents from reports
    Page {
        /// Reports that `run --json` wrote
        #[arg(required = true)]
        reports: Vec<PathBuf>,
    },
}

#[derive(Args, Debug)]
pub struct ToolRunArgs {
    /// The tool's adapter
    pub adapter: PathBuf,
    /// Run only this row; repeatable
    #[arg(long, value_name = "NAME")]
    pub row: Vec<String>,
    /// Write the report to this file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Run N rows at a time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub jobs: u32,
    /// Seconds that a tool may take to end a session after its time limit
    #[arg(long, value_name = "N", default_value_t = 60)]
    pub grace_secs: u32,
    /// Folder for the repositories. Tools' own sandboxes often hide /tmp
    #[arg(long, value_name = "DIR", default_value = "/var/tmp")]
    pub folder: PathBuf,
    /// Keep the repositories, logs and scripts of all rows
    #[arg(long)]
    pub keep: bool,
}

pub(crate) fn parse() -> BenchCommand {
    BenchCli::parse().command
}
