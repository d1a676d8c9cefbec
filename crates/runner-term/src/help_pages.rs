//! Help pages: commands in groups on the program's own page, and the global options on one line of every other page.
//!
//! Works on the `clap::Command` that the derive macros build, so that the argument types stay plain.

use clap::builder::Resettable;
use clap::{Arg, ArgAction, Command};

/// Commands that a program's help page lists under one heading.
#[derive(Clone, Copy, Debug)]
pub struct CommandGroup {
    pub heading: &'static str,
    pub commands: &'static [&'static str],
}

/// The order of a page: what it does, how it is called, its arguments, and the examples at the end.
const HEAD: &str = "{about}\n\n{before-help}{usage-heading} {usage}";

/// Gives a program and all its commands compact help pages. Without groups, the program's page lists the commands in
/// their order.
pub fn with_compact_help(command: Command, groups: &[CommandGroup]) -> Command {
    with_compact_help_for(command, groups, |_| true)
}

/// The same for the commands that this accepts. Others keep the pages of clap, which are not shown unless they are called: changing
/// sixty commands takes longer than everything else that a short command does.
pub fn with_compact_help_for(
    command: Command,
    groups: &[CommandGroup],
    is_needed: impl Fn(&str) -> bool,
) -> Command {
    let mut command = with_description_above_usage(command);
    let global_args: Vec<Arg> = command.get_arguments().filter(|arg| arg.is_global_set()).cloned().collect();
    let program = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
    let footer = format!("Global options: {}; see '{program} --help'", summary(&global_args));
    for subcommand in command.get_subcommands_mut().filter(|subcommand| is_needed(subcommand.get_name())) {
        *subcommand = compact_subcommand(std::mem::take(subcommand), &global_args, &footer);
    }
    if groups.is_empty() {
        return command.help_template(format!("{HEAD}\n\n{{all-args}}{{after-help}}"));
    }
    let style = command.get_styles().get_header();
    let mut template = format!("{HEAD}\n");
    for group in groups {
        template.push_str(&format!("\n{style}{}:{style:#}\n{}", group.heading, group_rows(&command, group)));
    }
    template.push_str(&format!("\n{style}Global options:{style:#}\n{{options}}{{after-help}}"));
    command.help_template(template)
}

/// One row per command of a group.
fn group_rows(command: &Command, group: &CommandGroup) -> String {
    let literal = command.get_styles().get_literal();
    let mut rows = String::new();
    for name in group.commands {
        let about = command.find_subcommand(name).and_then(Command::get_about);
        let about = about.map(ToString::to_string).unwrap_or_default();
        rows.push_str(&format!("  {literal}{name:<11}{literal:#}  {about}\n"));
    }
    rows
}

fn compact_subcommand(command: Command, global_args: &[Arg], footer: &str) -> Command {
    let mut command = with_description_above_usage(command).disable_help_subcommand(true);
    for subcommand in command.get_subcommands_mut() {
        *subcommand = compact_subcommand(std::mem::take(subcommand), global_args, footer);
    }
    let has_rows = command.has_subcommands() || command.get_arguments().any(|arg| !arg.is_hide_set());
    let arguments = if has_rows { "\n\n{all-args}" } else { "" };
    let examples = command.get_after_help().map(|text| format!("{text}\n\n")).unwrap_or_default();
    // clap does not propagate a global option to a command that already defines it, so the hidden copies win.
    let help = Arg::new("help").short('h').long("help").action(ArgAction::Help).hide(true);
    command
        .disable_help_flag(true)
        .arg(help)
        .args(global_args.iter().map(|arg| arg.clone().hide(true)))
        .help_template(format!("{HEAD}{arguments}{{after-help}}"))
        .after_help(format!("{examples}{footer}"))
}

/// Moves everything behind the first paragraph of the description above the usage line. A command without a long
/// description gets one page for `-h` and `--help`, with each option on one line.
fn with_description_above_usage(command: Command) -> Command {
    let description = command.get_long_about().map(ToString::to_string).unwrap_or_default();
    let command = command.long_about(Resettable::Reset);
    match description.split_once("\n\n") {
        Some((_, more)) => command.before_help(more.to_owned()),
        None => command,
    }
}

/// `-C, --json, -q`: each option in its shortest form.
fn summary(args: &[Arg]) -> String {
    let mut options = Vec::new();
    for arg in args {
        let short = arg.get_short().map(|short| format!("-{short}"));
        options.extend(short.or_else(|| arg.get_long().map(|long| format!("--{long}"))));
    }
    options.join(", ")
}
