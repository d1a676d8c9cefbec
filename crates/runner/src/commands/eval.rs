//! `runner eval`, which runs `runner-eval`

use std::ffi::OsString;

use runner_term::{CommandError, GlobalArgs};

use super::sibling_program::exec;
use crate::args::EvalArgs;

/// Returns only if `runner-eval` cannot be executed.
pub(crate) fn run(global: &GlobalArgs, args: &EvalArgs) -> CommandError {
    exec("runner-eval", &program_args(global, args))
}

fn program_args(global: &GlobalArgs, args: &EvalArgs) -> Vec<OsString> {
    let mut program_args: Vec<OsString> = vec!["-C".into(), global.project_dir.clone().into()];
    program_args.extend(global.to_args());
    program_args.extend(args.rest.iter().cloned());
    program_args
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{RunnerCommand, parse};

    fn arguments_for(typed: &str) -> String {
        let cli = parse(&typed.split(' ').map(Into::into).collect::<Vec<_>>()).unwrap();
        let RunnerCommand::Eval(args) = &cli.command else { panic!("{typed}") };
        program_args(&cli.global, args).join(" ".as_ref()).into_string().unwrap()
    }

    #[test]
    fn arguments_are_passed_on() {
        assert_eq!(arguments_for("runner --json -C x eval run --jobs 2"), "-C x --json run --jobs 2");
        assert_eq!(arguments_for("runner --color always -v eval list"), "-C . --verbose --color always list");
    }
}
