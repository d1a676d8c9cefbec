//! Draws the whole screen from the data and the view. Where there is not enough room, the second pane is omitted first, then
//! the ends of lines.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use runner_core::labels::NodeState;
use runner_core::model::tree::LeafCount;
use runner_core::run_status::LifecycleState;
use runner_core::step::CostSource;
use runner_core::text::one_line;
use runner_term::format::{clock, dollars, tokens};
use runner_term::progress::full_cells;
use runner_term::{Glyph, TextRole};
use unicode_width::UnicodeWidthStr;

use super::iteration_list::iteration_line;
use super::reader::{LogKind, WatchData};
use super::theme::TuiTheme;
use super::tree_pane::TreeRow;
use super::trust;
use super::view::{FocusedPane, InputMode, KEYS, LeftPane, WatchView};
use crate::api::{PageSnapshot, RunProgress, WatchMethod};

/// A narrower terminal shows one pane at a time.
const TWO_PANES_WIDTH: u16 = 72;
/// The width of the progress bar.
const BAR_WIDTH: usize = 12;
/// The width of the labels in the banner.
const LABEL_WIDTH: usize = 6;
/// How many details the banner shows.
const DETAILS_MAX: usize = 3;

pub(super) fn draw(
    frame: &mut Frame<'_>,
    view: &mut WatchView,
    data: Option<&WatchData>,
    theme: &TuiTheme,
    now_ms: u64,
) {
    let area = frame.area();
    let Some(data) = data else {
        frame.render_widget(Paragraph::new("reading the run"), area);
        return;
    };
    let width = usize::from(area.width);
    let banner = banner(data, theme, area);
    let banner_height = u16::try_from(banner.len()).unwrap_or_default();
    let parts =
        [Constraint::Length(2), Constraint::Length(banner_height), Constraint::Min(1), Constraint::Length(1)];
    let [header_area, banner_area, body, keys_area] = Layout::vertical(parts).areas(area);
    frame.render_widget(Paragraph::new(header(data, theme, width, now_ms)), header_area);
    frame.render_widget(Paragraph::new(banner), banner_area);
    frame.render_widget(Paragraph::new(keys_line(view, theme, width)), keys_area);
    if view.mode == InputMode::Helping {
        frame.render_widget(Paragraph::new(help(theme, width)), body);
        return;
    }
    match (area.width >= TWO_PANES_WIDTH, view.focus) {
        (true, _) => {
            let tree_width = (area.width * 2 / 5).clamp(24, 90);
            let parts = [Constraint::Length(tree_width), Constraint::Length(1), Constraint::Min(1)];
            let [tree_area, border_area, log_area] = Layout::horizontal(parts).areas(body);
            draw_left(frame, view, data, theme, tree_area);
            let border = Line::from(theme.span(TextRole::Faint, theme.glyph(Glyph::Trunk).trim_end()));
            let border = vec![border; usize::from(border_area.height)];
            frame.render_widget(Paragraph::new(border), border_area);
            draw_log(frame, view, data, theme, log_area, now_ms);
        }
        (false, FocusedPane::Tree) => {
            view.left.text_area = Rect::ZERO;
            draw_left(frame, view, data, theme, body);
        }
        (false, FocusedPane::Text) => {
            view.left.left_area = Rect::ZERO;
            draw_log(frame, view, data, theme, body, now_ms);
        }
    }
}

fn elapsed(from_ms: u64, to_ms: u64) -> String {
    clock(Duration::from_millis(to_ms.saturating_sub(from_ms)))
}

/// The state of the run, and its progress.
fn header(data: &WatchData, theme: &TuiTheme, width: usize, now_ms: u64) -> Vec<Line<'static>> {
    let snapshot = &data.snapshot;
    let label = trust::state_label(snapshot);
    let state = format!("{} {}", theme.glyph(label.symbol.into()), label.text.to_uppercase());
    let run = snapshot.run.as_ref().map(|run| one_line(&run.id)).unwrap_or_default();
    let time = header_time(snapshot, now_ms);
    let rest = format!("  {run}  {}", one_line(trust::headline(snapshot)));
    let rest = theme.styler.fit(&rest, width.saturating_sub(state.width() + time.width() + 1));
    let gap = " ".repeat(width.saturating_sub(state.width() + rest.width() + time.width()));
    let first = vec![
        theme.span(label.tone.into(), state),
        Span::raw(rest),
        Span::raw(gap),
        theme.span(TextRole::Faint, time),
    ];
    vec![Line::from(first), progress(data, theme, width, now_ms)]
}

/// How long the state lasts, or will last. A live run has a running clock; the others show a time of day, because they are
/// not redrawn.
fn header_time(snapshot: &PageSnapshot, now_ms: u64) -> String {
    let status = &snapshot.status;
    let time = match (status.state, status.until_ms, status.since_ms) {
        (LifecycleState::Waiting, Some(until_ms), _) => Some(format!("{} left", elapsed(now_ms, until_ms))),
        (_, _, Some(since_ms)) if status.is_live() => Some(elapsed(since_ms, now_ms)),
        (_, _, Some(since_ms)) => runner_host::clock::local(since_ms),
        (_, _, None) => None,
    };
    time.unwrap_or_default()
}

fn progress(data: &WatchData, theme: &TuiTheme, width: usize, now_ms: u64) -> Line<'static> {
    let snapshot = &data.snapshot;
    let progress = &snapshot.progress;
    let leaves = LeafCount { total: progress.leaves_total, passed: progress.leaves_passed };
    let full = full_cells(leaves, BAR_WIDTH);
    let mut spans = vec![
        theme.span(TextRole::Good, theme.glyph(Glyph::Full).repeat(full)),
        theme.span(TextRole::Faint, theme.glyph(Glyph::Empty).repeat(BAR_WIDTH - full)),
    ];
    let mut used = BAR_WIDTH;
    let shown = |part: &String| Span::raw(theme.styler.displayable(part).into_owned());
    let mut parts: Vec<_> = progress_parts(progress, snapshot, now_ms).iter().map(shown).collect();
    let has_room = width >= usize::from(TWO_PANES_WIDTH);
    let badge = trust::badge(snapshot, data.is_verifying, has_room);
    parts.splice(1..1, badge.map(|(role, text)| theme.span(role, text)));
    for part in parts {
        used += part.width() + 2;
        if used > width {
            break;
        }
        spans.extend([Span::raw("  "), part]);
    }
    Line::from(spans)
}

/// Tasks, iterations, time and cost, with their limits; the most important first.
fn progress_parts(progress: &RunProgress, snapshot: &PageSnapshot, now_ms: u64) -> Vec<String> {
    let with_max = |amount: String, max: Option<String>| match max {
        Some(max) => format!("{amount} of {max}"),
        None => amount,
    };
    let mut parts = vec![format!("{}/{} tasks", progress.leaves_passed, progress.leaves_total)];
    let max = progress.iterations_max.map(|max| max.to_string());
    parts.push(with_max(format!("#{}", progress.iterations), max));
    let ended = if snapshot.status.is_live() { None } else { progress.ended_ms };
    parts.extend(progress.started_ms.map(|started| elapsed(started, ended.unwrap_or(now_ms))));
    let known_or_limited = |amount: Option<u64>, max: Option<u64>, text: fn(u64) -> String| {
        let amount = amount.filter(|amount| *amount > 0 || max.is_some());
        let amount = amount.map(text).or(max.map(|_| "–".to_owned()))?;
        Some(with_max(amount, max.map(text)))
    };
    let cost = known_or_limited(progress.cost_microdollars, progress.cost_microdollars_max, dollars);
    let estimated = if progress.cost_source == CostSource::Estimated { " (estimated)" } else { "" };
    parts.extend(cost.map(|cost| cost + estimated));
    let used = known_or_limited(progress.tokens, progress.tokens_max, tokens);
    parts.extend(used.map(|used| format!("{used} tokens")));
    let coverage = snapshot.coverage.filter(|coverage| coverage.proven > 0);
    parts.extend(coverage.map(|coverage| format!("{}/{} proven", coverage.proven, coverage.points)));
    if snapshot.server.watching == WatchMethod::Polling {
        parts.push("polling every 2 s".to_owned());
    }
    parts
}

/// Why the run stopped or is untrusted, which log line shows it, and what to type. Empty while it runs.
fn banner(data: &WatchData, theme: &TuiTheme, area: Rect) -> Vec<Line<'static>> {
    let snapshot = &data.snapshot;
    let width = usize::from(area.width);
    let line = |label: &str, role: TextRole, text: &str| {
        let text = theme.styler.fit(&one_line(text), width.saturating_sub(LABEL_WIDTH));
        let label = format!("{label:<LABEL_WIDTH$}");
        Line::from(vec![theme.span(TextRole::Faint, label), theme.span(role, text)])
    };
    let mut reasons = Vec::new();
    reasons.extend(snapshot.problems.iter().map(|problem| line("error", TextRole::Bad, problem)));
    let mut commands = Vec::new();
    if let Some(findings) = trust::findings(snapshot) {
        reasons.extend(findings.iter().map(|finding| line("rule", TextRole::Bad, finding)));
    } else if !snapshot.status.is_live() {
        let details = snapshot.status.details.iter().take(DETAILS_MAX);
        reasons.extend(details.map(|detail| line("", TextRole::Strong, detail)));
        let evidence = snapshot.evidence.as_ref().and_then(|evidence| evidence.line.as_ref());
        reasons.extend(evidence.map(|shown| {
            let text = format!("#{} {}:{}  {}", shown.iter, shown.log, shown.line + 1, shown.text);
            line("log", TextRole::Warn, &text)
        }));
    }
    if !snapshot.status.is_live() && trust::has_advice(snapshot, data.is_verifying) {
        for next in &snapshot.status.next {
            let label = if commands.is_empty() { "next" } else { "" };
            let mut command = line(label, TextRole::Active, &next.command);
            let room = width.saturating_sub(command.width() + 4);
            let what = format!("  # {}", theme.styler.fit(&next.what, room));
            command.push_span(theme.span(TextRole::Faint, what));
            commands.push(command);
        }
    }
    // The first command is always shown; the rest as long as the panes keep most of the screen.
    let room = usize::from(area.height.saturating_sub(4) / 3).max(1);
    commands.truncate(room.saturating_sub(reasons.len().min(room / 2)).max(1));
    reasons.truncate(room.saturating_sub(commands.len()));
    reasons.into_iter().chain(commands).collect()
}

/// The keys that work now, or a message.
fn keys_line(view: &WatchView, theme: &TuiTheme, width: usize) -> Line<'static> {
    let text = match view.mode {
        InputMode::Filtering => {
            format!("/{}_   enter keeps the filter, esc clears it", one_line(view.tree.pane.filter()))
        }
        InputMode::Searching => {
            format!("/{}_   enter finds it, n N the next and the previous", one_line(&view.rows.search.query))
        }
        InputMode::Helping => "any key: back".to_owned(),
        InputMode::Reading if !view.note.is_empty() => one_line(&view.note),
        InputMode::Reading => {
            let follow = if view.is_following { "following" } else { "f follow" };
            let filter = match view.tree.pane.filter() {
                "" => "/ filter".to_owned(),
                text => format!("/{} (esc clears it)", one_line(text)),
            };
            let keys = [
                follow,
                "? help",
                "q quit",
                "tab pane",
                "enter open",
                &filter,
                "i list",
                "[ ] iteration",
                "1-4 log",
            ];
            whole_words(&keys, width)
        }
    };
    Line::from(theme.span(TextRole::Faint, theme.styler.fit(&text, width)))
}

/// As many of these as fit into the width.
fn whole_words(words: &[&str], width: usize) -> String {
    let mut line = String::new();
    for word in words {
        let gap = if line.is_empty() { "" } else { "  " };
        if !line.is_empty() && line.width() + gap.len() + word.width() > width {
            break;
        }
        line.push_str(gap);
        line.push_str(word);
    }
    line
}

fn help(theme: &TuiTheme, width: usize) -> Vec<Line<'static>> {
    let mut lines = vec![theme.heading("keys", "", width, TextRole::Strong)];
    for (keys, what) in KEYS {
        let keys = theme.span(TextRole::Strong, format!("  {keys:<20}"));
        lines.push(Line::from(vec![keys, Span::raw(*what)]));
    }
    lines
}

fn heading_role(view: &WatchView, pane: FocusedPane) -> TextRole {
    if view.focus == pane { TextRole::Strong } else { TextRole::Faint }
}

/// The heading of a pane; the focused one is marked without colour, too.
fn heading_text(view: &WatchView, pane: FocusedPane, text: &str) -> String {
    if view.focus == pane { format!("[{text}]") } else { text.to_owned() }
}

fn draw_left(frame: &mut Frame<'_>, view: &mut WatchView, data: &WatchData, theme: &TuiTheme, area: Rect) {
    view.left.left_area = area;
    match view.left.shows {
        LeftPane::Tree => draw_tree(frame, view, data, theme, area),
        LeftPane::Iterations => draw_iterations(frame, view, data, theme, area),
    }
}

fn draw_iterations(
    frame: &mut Frame<'_>,
    view: &mut WatchView,
    data: &WatchData,
    theme: &TuiTheme,
    area: Rect,
) {
    let width = usize::from(area.width);
    let height = usize::from(area.height).saturating_sub(1);
    view.left.list.fit(height, data.rows.len());
    let text = heading_text(view, FocusedPane::Tree, &format!("{} iterations", data.rows.len()));
    let mut lines = vec![theme.heading(&text, "", width, heading_role(view, FocusedPane::Tree))];
    let list = &view.left.list;
    for (nth, row) in data.rows.iter().enumerate().skip(list.top).take(height) {
        let line = iteration_line(row, theme, width);
        lines.push(if nth == list.selected { line.patch_style(TuiTheme::selected()) } else { line });
    }
    if data.rows.is_empty() {
        lines.push(Line::from(theme.span(TextRole::Faint, "no iteration yet")));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

fn draw_tree(frame: &mut Frame<'_>, view: &mut WatchView, data: &WatchData, theme: &TuiTheme, area: Rect) {
    let width = usize::from(area.width);
    let height = usize::from(area.height).saturating_sub(1);
    view.fit_tree(height);
    let running = data.snapshot.current.as_ref().and_then(|current| current.node.as_deref());
    let text = heading_text(view, FocusedPane::Tree, "tree");
    let mut lines = vec![theme.heading(&text, "", width, heading_role(view, FocusedPane::Tree))];
    for row in (view.tree.top..).take(height) {
        let Some(tree_row) = view.tree.pane.at(row, running) else { break };
        let line = tree_line(&tree_row, theme, width);
        let is_selected = row == view.tree.pane.row();
        lines.push(if is_selected { line.patch_style(TuiTheme::selected()) } else { line });
    }
    if view.tree.pane.row_count() == 0 {
        lines.push(Line::from(theme.span(TextRole::Faint, "nothing to show")));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

/// A node: indentation, glyph, title, and its state or the counts of its leaves.
fn tree_line(row: &TreeRow, theme: &TuiTheme, width: usize) -> Line<'static> {
    let label = row.state.label();
    let state = match (row.is_leaf, row.attempts) {
        (false, _) => format!("{}/{}", row.leaves_passed, row.leaves),
        (true, 0) => label.text.to_owned(),
        (true, _) if row.state == NodeState::Passed => label.text.to_owned(),
        (true, attempts) => format!("{} {attempts}/{}", label.text, row.max_attempts),
    };
    let style = theme.style(label.tone.into());
    let glyph = theme.glyph(label.symbol.into());
    let indent = " ".repeat((row.depth * 2).min(width / 3));
    let title = if row.title.is_empty() { &row.id } else { &row.title };
    let title = if row.is_collapsed { format!("+ {title}") } else { title.clone() };
    let room = width.saturating_sub(indent.width() + glyph.width() + state.width() + 3);
    let title = theme.styler.fit(&title, room);
    let gap = " ".repeat(room.saturating_sub(title.width()) + 1);
    Line::from(vec![
        Span::styled(format!("{indent}{glyph} "), style),
        Span::raw(title),
        Span::raw(gap),
        Span::styled(state, style),
        Span::raw(" "),
    ])
}

fn draw_log(
    frame: &mut Frame<'_>,
    view: &mut WatchView,
    data: &WatchData,
    theme: &TuiTheme,
    area: Rect,
    now_ms: u64,
) {
    let width = usize::from(area.width);
    let height = usize::from(area.height).saturating_sub(1);
    view.left.text_area = area;
    view.fit_text(data, theme, width, height);
    let text = heading_text(view, FocusedPane::Text, &log_heading(data, now_ms));
    let below = view.rows.lines.len().saturating_sub(view.rows.top + height);
    let below = if below > 0 { format!("{below} below") } else { String::new() };
    let mut lines = vec![theme.heading(&text, &below, width, heading_role(view, FocusedPane::Text))];
    let search = &view.rows.search;
    let shown = view.rows.lines.iter().enumerate().skip(view.rows.top).take(height);
    lines.extend(shown.map(|(row, line)| {
        let line = line.clone();
        if search.found == Some(row) { line.patch_style(TuiTheme::selected()) } else { line }
    }));
    frame.render_widget(Paragraph::new(lines), area);
}

/// The log, iteration, task, attempt, and the time it took so far with its limit.
fn log_heading(data: &WatchData, now_ms: u64) -> String {
    let Some(iter) = data.log.iter else { return "transcript".to_owned() };
    let row = data.rows.iter().find(|row| row.iter == iter);
    let log = match data.log.kind {
        Some(LogKind::Session) | None => "transcript",
        Some(LogKind::Diff) => "diff",
        Some(LogKind::Guard) => "guard",
        Some(LogKind::Prompt) => "prompt",
    };
    let mut text = format!("{log} #{iter}");
    if let Some(node) = row.and_then(|row| row.node.as_ref()) {
        text.push_str(&format!(" {}", one_line(node)));
    }
    if let Some(attempt) = row.and_then(|row| row.attempt) {
        text.push_str(&format!(" {}/{}", attempt.nth, attempt.of));
    }
    let current = data.snapshot.current.as_ref().filter(|current| current.iter == iter);
    if let Some(started) = current.and_then(|current| current.started_ms) {
        text.push_str(&format!(" {}", elapsed(started, now_ms)));
        let timeout = current.and_then(|current| current.timeout_ms).filter(|timeout| *timeout > 0);
        text.extend(timeout.map(|timeout| format!(" of {}", elapsed(0, timeout))));
    }
    text
}
