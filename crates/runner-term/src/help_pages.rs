//! Help pages: commands in groups on the program's own page, and the global options on one line of every other page.
//!
//! Works on the `clap::Command` that the derive macros build, so that the argument types stay plain.

use std::ffi::OsString;

use clap::builder::Resettable;
use clap::{Arg, ArgAction, Args, Command};
use unicode_width::UnicodeWidthStr;

use crate::style::Styler;

/// Commands that a program's help page lists under one heading.
#[derive(Clone, Copy, Debug)]
pub struct CommandGroup {
    pub heading: &'static str,
    pub commands: &'static [CommandRow],
}

/// A command on its program's help page. The page shows the name and the description without defining the command, which
/// would take most of the time of a short command.
#[derive(Clone, Copy, Debug)]
pub struct CommandRow {
    pub name: &'static str,
    /// The first line of the arguments' doc comment, which is the description everywhere else.
    pub about: &'static str,
    define: fn(Command) -> Command,
}

impl CommandRow {
    pub const fn new<A: Args>(name: &'static str, about: &'static str) -> Self {
        Self { name, about, define: A::augment_args }
    }

    fn is_typed(&self, args: &[OsString]) -> bool {
        args.iter().any(|word| word == self.name)
    }

    /// The command with its arguments if it is typed, and otherwise only its name: a usage error needs no more of it.
    fn command(&self, args: &[OsString]) -> Command {
        let command = Command::default().name(self.name);
        if self.is_typed(args) { (self.define)(command) } else { command }
    }
}

/// The order of a page: what it does, how it is called, its arguments, and the examples at the end.
const HEAD: &str = "{about}\n\n{before-help}{usage-heading} {usage}";

/// The column of the descriptions on a program's page.
const ABOUT_COLUMN: usize = 15;

/// Gives a program and all its commands compact help pages, as wide as they are written. Without groups, the program's
/// page lists the commands in their order.
pub fn with_compact_help(command: Command, groups: &[CommandGroup]) -> Command {
    with_compact_help_for(command, groups, usize::MAX, |_| true)
}

/// The same with pages for the terminal that the process is connected to.
pub fn with_terminal_help(command: Command, groups: &[CommandGroup]) -> Command {
    with_compact_help_for(command, groups, terminal_width(), |_| true)
}

fn terminal_width() -> usize {
    crate::terminal::columns().unwrap_or(usize::MAX)
}

/// Gives a program without commands those of the groups, with help pages for the terminal. Only commands that are among the arguments
/// have their own arguments; no other can be called by them.
pub fn with_typed_commands(program: Command, groups: &[CommandGroup], args: &[OsString]) -> Command {
    let rows = || groups.iter().flat_map(|group| group.commands);
    let command = program
        .subcommands(rows().map(|row| row.command(args)))
        .subcommand_required(true)
        .arg_required_else_help(true);
    with_compact_help_for(command, groups, terminal_width(), |name| args.iter().any(|word| word == name))
}

/// The same for the commands that this accepts. Others keep the pages of clap.
fn with_compact_help_for(
    command: Command,
    groups: &[CommandGroup],
    width: usize,
    is_needed: impl Fn(&str) -> bool,
) -> Command {
    let mut command = with_description_above_usage(command);
    let global_args: Vec<Arg> = command.get_arguments().filter(|arg| arg.is_global_set()).cloned().collect();
    let program = command.get_bin_name().unwrap_or(command.get_name()).to_owned();
    let footer = format!("Global options: {}; see '{program} --help'", summary(&global_args));
    for subcommand in command.get_subcommands_mut().filter(|subcommand| is_needed(subcommand.get_name())) {
        *subcommand = compact_subcommand(std::mem::take(subcommand), &global_args, &footer, width);
    }
    let end = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let end = page_end(&end, width);
    if groups.is_empty() {
        return command.help_template(format!("{HEAD}\n\n{{all-args}}{end}"));
    }
    let style = command.get_styles().get_header();
    let mut template = format!("{HEAD}\n");
    for group in groups {
        let rows = group_rows(&command, group, width);
        template.push_str(&format!("\n{style}{}:{style:#}\n{rows}", group.heading));
    }
    template.push_str(&format!("\n{style}Global options:{style:#}\n{{options}}{end}"));
    command.help_template(template)
}

/// One row per command of a group.
fn group_rows(command: &Command, group: &CommandGroup, width: usize) -> String {
    let literal = command.get_styles().get_literal();
    let mut rows = String::new();
    for CommandRow { name, about, .. } in group.commands {
        let about = Styler::plain(width).wrap(about, ABOUT_COLUMN);
        rows.push_str(&format!("  {literal}{name:<11}{literal:#}  {about}\n"));
    }
    rows
}

/// What stands at the end of a page: the examples and notes. clap breaks long lines between any two words; a command would not
/// be copyable then, and the rest of its comment would look like one. So long lines are laid out here.
fn page_end(text: &str, width: usize) -> String {
    if text.lines().all(|line| line.width() <= width) {
        return "{after-help}".to_owned();
    }
    let lines: Vec<String> = text.lines().map(|line| laid_out(line, width)).collect();
    format!("\n\n{}", lines.join("\n"))
}

/// A line of at most `width` cells, or several. The comment of an example goes above its command, which is never broken.
fn laid_out(line: &str, width: usize) -> String {
    if line.width() <= width {
        return line.to_owned();
    }
    let styler = Styler::plain(width);
    let Some(row) = line.strip_prefix("  ") else { return styler.wrap_commands(line, 0) };
    if let Some((command, comment)) = row.rsplit_once(" # ") {
        let comment = styler.wrap(comment, 4).replace("\n    ", "\n  # ");
        return format!("  # {comment}\n  {}", command.trim_end());
    }
    match row.split_once("   ") {
        Some((code, what)) => format!("  {code}   {}", styler.wrap(what, code.width() + 5)),
        None => line.to_owned(),
    }
}

fn compact_subcommand(command: Command, global_args: &[Arg], footer: &str, width: usize) -> Command {
    let mut command = with_description_above_usage(command).disable_help_subcommand(true);
    for subcommand in command.get_subcommands_mut() {
        *subcommand = compact_subcommand(std::mem::take(subcommand), global_args, footer, width);
    }
    let has_rows = command.has_subcommands() || command.get_arguments().any(|arg| !arg.is_hide_set());
    let arguments = if has_rows { "\n\n{all-args}" } else { "" };
    let examples = command.get_after_help().map(|text| format!("{text}\n\n")).unwrap_or_default();
    let after_help = format!("{examples}{footer}");
    let end = page_end(&after_help, width);
    // clap does not propagate a global option to a command that already defines it, so the hidden copies win.
    let help = Arg::new("help").short('h').long("help").action(ArgAction::Help).hide(true);
    command
        .disable_help_flag(true)
        .arg(help)
        .args(global_args.iter().map(|arg| arg.clone().hide(true)))
        .help_template(format!("{HEAD}{arguments}{end}"))
        .after_help(after_help)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_of_examples_stay_comments_on_a_narrow_terminal() {
        let text = "Examples:\n  runner log                # all iterations\n  \
                    runner log 57             # output of the agent and of the guard\n  \
                    gh issue list --json number,title | runner plan import -\n\n\
                    Exit codes:\n  0   success\n  3   needs you: a task is stuck, or another reason";
        assert_eq!(page_end(text, 80), "{after-help}");
        assert_eq!(
            page_end(text, 44),
            "\n\nExamples:\n  runner log                # all iterations\n  \
             # output of the agent and of the guard\n  runner log 57\n  \
             gh issue list --json number,title | runner plan import -\n\n\
             Exit codes:\n  0   success\n  3   needs you: a task is stuck, or another\n      reason"
        );
        assert!(
            page_end(text, 30).contains("\n  # output of the agent and of\n  # the guard\n  runner log 57\n")
        );
    }

    #[test]
    fn end_of_a_page_wraps_without_breaking_commands() {
        assert_eq!(
            page_end("Global options: -C, --json; see 'runner --help'", 34),
            "\n\nGlobal options: -C, --json; see\n'runner --help'"
        );
    }
}
