//! The footer of the live display: what runs, and the keys. Each row is narrower than the terminal, so that none wraps.

use std::time::Instant;

use runner_term::format::clock;
use runner_term::progress::bar;
use runner_term::{Glyph, Styler, TextRole};
use unicode_width::UnicodeWidthStr;

use super::{LiveView, RunningIteration, WaitDisplay};
use crate::render::cost::spent_text;
use crate::render::wait::{countdown, left_ms, on_the_wall};

/// What the footer shows after `q`.
const STOPPING: &str = "stopping after this iteration";

/// The footer of a running iteration. Each row is narrower than the terminal, so that none wraps.
pub(super) fn running_footer(
    view: &LiveView,
    running: &RunningIteration,
    activity: &str,
    styler: &Styler,
) -> Vec<String> {
    let width = styler.width.saturating_sub(1);
    let phase = running.phase.word();
    let time = clock(running.phase_started.elapsed());
    let head = format!("{} #{} {phase} {time}  ", styler.glyph(Glyph::Next), running.iter.get());
    let attempt = if running.attempt.is_empty() { String::new() } else { format!("  {}", running.attempt) };
    let path = styler.fit(&running.path, width.saturating_sub(head.chars().count() + attempt.len()));
    let mut rows = vec![
        rule(styler),
        format!("{}{path}{attempt}", styler.paint(TextRole::Active, &head)),
        styler.paint(TextRole::Faint, &format!("  {}", styler.fit(activity, width.saturating_sub(2)))),
    ];
    rows.extend(spent_row(view, styler));
    let keys = if view.is_stopping { STOPPING } else { "q stop after this   ^C stop   t snapshot" };
    rows.push(keys_row(view, keys, styler));
    rows
}

pub(super) fn waiting_footer(view: &LiveView, wait: &WaitDisplay, styler: &Styler) -> Vec<String> {
    let width = styler.width.saturating_sub(1);
    let left = countdown(left_ms(wait.ends_unix_ms));
    let head = format!("{} waiting {left}", styler.glyph(Glyph::Retried));
    let until = format!(", until {} ({})", on_the_wall(wait.ends_unix_ms), wait.reason);
    let until = styler.fit(&until, width.saturating_sub(head.chars().count()));
    let mut rows = vec![rule(styler), format!("{}{until}", styler.paint(TextRole::Warn, &head))];
    rows.extend(spent_row(view, styler));
    rows.push(keys_row(view, "q or ^C stop; 'runner loop' continues", styler));
    rows
}

pub(super) fn paused_footer(view: &LiveView, since: Instant, styler: &Styler) -> Vec<String> {
    let width = styler.width.saturating_sub(1);
    let head = format!("{} paused {}", styler.glyph(Glyph::Retried), clock(since.elapsed()));
    let hint = "  'runner resume' continues; 'runner node' edits the plan";
    let hint = styler.fit(hint, width.saturating_sub(head.chars().count()));
    let mut rows = vec![rule(styler), format!("{}{hint}", styler.paint(TextRole::Warn, &head))];
    rows.extend(spent_row(view, styler));
    rows.push(keys_row(view, "q or ^C stop", styler));
    rows
}

fn rule(styler: &Styler) -> String {
    let width = styler.width.saturating_sub(1);
    styler.paint(TextRole::Faint, &styler.glyph(Glyph::Rule).repeat(width))
}

/// What the run has cost so far.
fn spent_row(view: &LiveView, styler: &Styler) -> Option<String> {
    let text = spent_text(&view.summary.spent, &view.summary.budget)?;
    let text = styler.fit(&format!("spent {text}"), styler.width.saturating_sub(3));
    Some(styler.paint(TextRole::Faint, &format!("  {text}")))
}

/// The progress bar, the duration, and the keys. On a narrow terminal, what acknowledges `q` takes the place of the bar.
fn keys_row(view: &LiveView, keys: &str, styler: &Styler) -> String {
    let width = styler.width.saturating_sub(1);
    let time = clock(view.started.elapsed());
    let row = format!("{time}   {keys}");
    let beside_bar = whole_parts(&row, width.saturating_sub(40));
    match view.summary.leaves {
        Some(_) if view.is_stopping && beside_bar.len() < row.len() => {
            let row = format!("{keys}   {time}");
            styler.paint(TextRole::Faint, whole_parts(&row, width))
        }
        Some(leaves) => {
            format!("{}   {}", bar(leaves, 36.min(width), styler), styler.paint(TextRole::Faint, beside_bar))
        }
        None => styler.paint(TextRole::Faint, whole_parts(&row, width)),
    }
}

/// As many parts of a row as fit, none of them cut. Three spaces separate them.
pub(super) fn whole_parts(row: &str, width: usize) -> &str {
    let ends = row.match_indices("   ").map(|(at, _)| at).chain([row.len()]);
    ends.filter_map(|end| row.get(..end)).filter(|part| part.width() <= width).last().unwrap_or_default()
}
