//! `runner man`

use std::path::Path;

use clap::CommandFactory;
use clap_mangen::Man;
use runner_cli::{Exit, Report};

use super::completions::Script;
use crate::cli::{Cli, ManArgs};

pub(crate) fn run(args: &ManArgs) -> Result<Script, Report> {
    let Some(dir) = &args.dir else {
        let mut page = Vec::new();
        let failed = |error: std::io::Error| Report::new("man", Exit::FAILURE, error.to_string());
        Man::new(Cli::command()).render(&mut page).map_err(failed)?;
        return Ok(Script::new("man", &page));
    };
    clap_mangen::generate_to(Cli::command(), dir).map_err(|error| no_pages(dir, &error))?;
    Ok(Script::new("man", b""))
}

fn no_pages(dir: &Path, error: &std::io::Error) -> Report {
    Report::new("man", Exit::FAILURE, format!("could not write the manual pages to `{}`", dir.display()))
        .cause(error.to_string())
        .hint("name a folder that exists and that you may write to")
}
