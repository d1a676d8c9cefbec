//! The setup of a run on one screen: what was detected, and what the configuration says.

use runner_core::config::{Config, value_text};
use runner_core::detect::{LoginState, command_line, night_settings};
use runner_host::ops::detect::{ConfigSource, SetupProposal};
use runner_term::format::duration;
use runner_term::{Styler, TextRole};

use super::clean;

/// The column of the values.
const VALUE_COLUMN: usize = 15;

/// One line of the screen.
pub(crate) struct SetupRow {
    pub(crate) name: &'static str,
    pub(crate) value: String,
}

impl SetupRow {
    pub(crate) fn new(name: &'static str, value: impl Into<String>) -> Self {
        Self { name, value: value.into() }
    }
}

/// The rows of a proposed setup.
pub(crate) fn setup_rows(setup: &SetupProposal) -> Vec<SetupRow> {
    let proposed = &setup.proposed;
    let config = &proposed.config;
    let mut rows = Vec::new();
    match &setup.source {
        ConfigSource::Detected => {
            let stacks: Vec<&str> = proposed.stacks.iter().map(|stack| stack.name()).collect();
            if !stacks.is_empty() {
                let sources = proposed.guard_sources.join("; ");
                rows.push(SetupRow::new("stack", format!("{} ({sources})", stacks.join(", "))));
            }
        }
        ConfigSource::WorkTree => rows.push(SetupRow::new("config", "your config.toml")),
        ConfigSource::Run(run) => rows.push(SetupRow::new("config", format!("from run {run}"))),
    }
    rows.push(SetupRow::new("guard", command_line(config.guard.command.words())));
    rows.extend(config.guard.setup.as_ref().map(|setup| SetupRow::new("setup", command_line(setup.words()))));
    if !config.guard.keep.is_empty() {
        rows.push(SetupRow::new("keep", config.guard.keep.join(", ")));
    }
    let protected = match setup.protection.names().as_slice() {
        [] => "no files".to_owned(),
        names => names.join(", "),
    };
    rows.push(SetupRow::new("protected", protected));
    rows.push(SetupRow::new("agent", agent_text(setup)));
    rows.extend(setup.instructions.as_ref().map(|pinned| SetupRow::new("instructions", pinned.label())));
    rows.push(SetupRow::new("network", config.executor.network_note()));
    rows.push(SetupRow::new("limits", limits_text(config)));
    for row in &mut rows {
        row.value = clean(&row.value);
    }
    rows
}

fn agent_text(setup: &SetupProposal) -> String {
    let executor = &setup.proposed.config.executor;
    let label = executor.label();
    let login = setup.proposed.agent.map(|presence| presence.login);
    match login {
        Some(LoginState::Found) => format!("{label}, logged in"),
        Some(LoginState::Missing) => format!("{label}, not logged in"),
        None if executor.agent().is_some() && executor.program.is_none() => {
            format!("{label}, not on the PATH")
        }
        Some(LoginState::Unknown) | None => label,
    }
}

fn limits_text(config: &Config) -> String {
    let secs = u64::try_from(config.iteration_timeout_secs.get()).unwrap_or_default();
    let mut limits =
        vec![format!("{} iterations of at most {}", config.max_iterations.get(), duration(secs))];
    let document = serde_json::to_value(config).unwrap_or_default();
    for setting in night_settings() {
        let value = document.get(setting.key).map(value_text).unwrap_or_default();
        limits.push(format!("{} {}", setting.key, value.replace('"', "")));
    }
    limits.join("; ")
}

/// The rows as text, with values wrapped to the terminal.
pub(crate) fn draw_rows(rows: &[SetupRow], styler: &Styler) -> String {
    let mut text = String::new();
    for row in rows {
        let name = styler.paint(TextRole::Faint, &format!("{:12}", row.name));
        text.push_str(&format!("  {name} {}\n", styler.wrap(&row.value, VALUE_COLUMN)));
    }
    text
}

/// Notes of the detection, as lines with a warning sign.
pub(crate) fn draw_notes(notes: &[String], styler: &Styler) -> String {
    let mut text = String::new();
    for note in notes {
        let name = styler.paint(TextRole::Warn, &format!("{:12}", "note"));
        text.push_str(&format!("  {name} {}\n", styler.wrap(&clean(note), VALUE_COLUMN)));
    }
    text
}
