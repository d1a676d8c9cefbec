//! `--run RUN`, for every command that can read another run than the current one.

use clap::Args;

#[derive(Args, Debug, Default)]
pub(crate) struct RunArg {
    /// Run to use [default: the one on the current branch]
    #[arg(id = "run", long = "run", value_name = "RUN")]
    pub(crate) name: Option<String>,
}

impl RunArg {
    pub(crate) fn as_deref(&self) -> Option<&str> {
        self.name.as_deref()
    }
}
