//! `runner ui`, `runner watch` and `runner export`, which run `runner-ui`

use std::ffi::OsString;

use runner_term::{CommandError, GlobalArgs};

use super::sibling_program::exec;
use crate::args::{ExportArgs, UiArgs, WatchArgs};

const PROGRAM: &str = "runner-ui";

/// Runs the server. Returns only if `runner-ui` cannot be executed, as do the other functions.
pub(crate) fn serve(global: &GlobalArgs, args: &UiArgs) -> CommandError {
    exec(PROGRAM, &serve_args(global, args))
}

pub(crate) fn watch(global: &GlobalArgs, args: &WatchArgs) -> CommandError {
    exec(PROGRAM, &watch_args(global, args))
}

pub(crate) fn export(global: &GlobalArgs, args: &ExportArgs) -> CommandError {
    exec(PROGRAM, &export_args(global, args))
}

fn serve_args(global: &GlobalArgs, args: &UiArgs) -> Vec<OsString> {
    let mut program_args = common_args(global);
    program_args.extend(args.rest.iter().cloned());
    program_args
}

fn watch_args(global: &GlobalArgs, args: &WatchArgs) -> Vec<OsString> {
    let mut program_args = common_args(global);
    program_args.push("watch".into());
    program_args.extend(global.color.to_args());
    program_args.extend(args.run.name.iter().map(Into::into));
    program_args.extend(args.rest.iter().cloned());
    program_args
}

fn export_args(global: &GlobalArgs, args: &ExportArgs) -> Vec<OsString> {
    let mut program_args = common_args(global);
    program_args.push("export".into());
    // The run comes behind the format.
    program_args.extend(args.rest.first().cloned());
    program_args.extend(args.run.name.iter().map(Into::into));
    program_args.extend(args.rest.iter().skip(1).cloned());
    program_args
}

fn common_args(global: &GlobalArgs) -> Vec<OsString> {
    let mut program_args: Vec<OsString> = vec!["--project-dir".into(), global.project_dir.clone().into()];
    program_args.extend(global.json.then(|| "--json".into()));
    program_args
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{RunnerCommand, parse};

    /// What `runner-ui` is started with if this is typed.
    fn arguments_for(typed: &str) -> String {
        let cli = parse(&typed.split(' ').map(Into::into).collect::<Vec<_>>()).unwrap();
        let arguments = if let RunnerCommand::Ui(args) = &cli.command {
            serve_args(&cli.global, args)
        } else if let RunnerCommand::Watch(args) = &cli.command {
            watch_args(&cli.global, args)
        } else if let RunnerCommand::Export(args) = &cli.command {
            export_args(&cli.global, args)
        } else {
            panic!("{typed}")
        };
        arguments.join(" ".as_ref()).into_string().unwrap()
    }

    #[test]
    fn arguments_are_passed_on() {
        let same = [
            ("runner -C x ui --port 0 --open", "--project-dir x --port 0 --open"),
            ("runner --json ui", "--project-dir . --json"),
            ("runner ui -- --help", "--project-dir . --help"),
            ("runner -C x watch nightly --poll", "--project-dir x watch nightly --poll"),
            ("runner --color never watch", "--project-dir . watch --color never"),
            ("runner watch --run nightly", "--project-dir . watch nightly"),
            ("runner export json --out y", "--project-dir . export json --out y"),
            ("runner export --run nightly html", "--project-dir . export html nightly"),
        ];
        for (typed, passed) in same {
            assert_eq!(arguments_for(typed), passed, "{typed}");
        }
    }
}
