//! Draws the whole screen from what was read and what was chosen. What has no room is left out in a fixed order: first
//! the second pane, then the ends of lines.

use std::time::Duration;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use runner_core::model::tree::LeafCount;
use runner_core::text::one_line;
use runner_term::format::{clock, dollars, tokens};
use runner_term::node_state::NodeState;
use runner_term::progress::full_cells;
use runner_term::{Glyph, TextRole};
use unicode_width::UnicodeWidthStr;

use super::reader::{LogKind, WatchData};
use super::theme::{TuiTheme, look};
use super::tree_pane::TreeRow;
use super::view::{FocusedPane, InputMode, KEYS, WatchView};
use crate::api::{PageSnapshot, RunProgress, WatchMethod};

/// A terminal narrower than this shows one pane at a time.
const BOTH_PANES: u16 = 72;
/// How wide the bar is.
const BAR: usize = 12;
/// How many lines tell why a run does not go on.
const WHY_MAX: usize = 3;

/// Draws the screen.
pub(super) fn draw(
    frame: &mut Frame<'_>,
    view: &mut WatchView,
    shown: Option<&WatchData>,
    paint: &TuiTheme,
    now_ms: u64,
) {
    let area = frame.area();
    let Some(shown) = shown else {
        frame.render_widget(Paragraph::new("reading the run"), area);
        return;
    };
    let banner = banner(&shown.snapshot, paint, area);
    let rows = u16::try_from(banner.len()).unwrap_or_default();
    let parts = [Constraint::Length(2), Constraint::Length(rows), Constraint::Min(1), Constraint::Length(1)];
    let [head, stop, body, keys] = Layout::vertical(parts).areas(area);
    frame
        .render_widget(Paragraph::new(header(&shown.snapshot, paint, usize::from(area.width), now_ms)), head);
    frame.render_widget(Paragraph::new(banner), stop);
    frame.render_widget(Paragraph::new(keys_line(view, paint, usize::from(area.width))), keys);
    if view.mode == InputMode::Helping {
        frame.render_widget(Paragraph::new(help(paint, usize::from(area.width))), body);
        return;
    }
    match (area.width >= BOTH_PANES, view.focus) {
        (true, _) => {
            let left = (area.width * 2 / 5).clamp(24, 60);
            let parts = [Constraint::Length(left), Constraint::Length(1), Constraint::Min(1)];
            let [tree, between, text] = Layout::horizontal(parts).areas(body);
            draw_tree(frame, view, shown, paint, tree);
            let trunk = paint.glyph(Glyph::Trunk).trim_end();
            let trunks = vec![Line::from(paint.span(TextRole::Faint, trunk)); usize::from(between.height)];
            frame.render_widget(Paragraph::new(trunks), between);
            draw_text(frame, view, shown, (paint, now_ms), text);
        }
        (false, FocusedPane::Tree) => draw_tree(frame, view, shown, paint, body),
        (false, FocusedPane::Text) => draw_text(frame, view, shown, (paint, now_ms), body),
    }
}

fn since(from_ms: u64, to_ms: u64) -> String {
    clock(Duration::from_millis(to_ms.saturating_sub(from_ms)))
}

/// How the run stands, and how far it is.
fn header(snapshot: &PageSnapshot, paint: &TuiTheme, width: usize, now_ms: u64) -> Vec<Line<'static>> {
    let (glyph, word, ink) = look(snapshot.state);
    let state = format!("{} {}", paint.glyph(glyph), word.to_uppercase());
    let run = snapshot.run.as_ref().map(|run| one_line(&run.id)).unwrap_or_default();
    // A run at work has a clock that moves; nothing is drawn while nothing moves, so the rest have a moment.
    let time = snapshot.since_ms.and_then(|since_ms| match &snapshot.stop {
        None => Some(since(since_ms, now_ms)),
        Some(_) => runner_host::clock::local(since_ms),
    });
    let time = time.unwrap_or_default();
    let rest = format!("  {run}  {}", one_line(&snapshot.headline));
    let room = width.saturating_sub(state.width() + time.width() + 1);
    let rest = paint.pen.fit(&rest, room);
    let gap = " ".repeat(width.saturating_sub(state.width() + rest.width() + time.width()));
    let first =
        vec![paint.span(ink, state), Span::raw(rest), Span::raw(gap), paint.span(TextRole::Faint, time)];
    vec![Line::from(first), progress(snapshot, paint, width, now_ms)]
}

fn progress(snapshot: &PageSnapshot, paint: &TuiTheme, width: usize, now_ms: u64) -> Line<'static> {
    let progress = &snapshot.progress;
    let leaves = LeafCount { total: progress.leaves_total, passed: progress.leaves_passed };
    let full = full_cells(leaves, BAR);
    let mut spans = vec![
        paint.span(TextRole::Good, paint.glyph(Glyph::Full).repeat(full)),
        paint.span(TextRole::Faint, paint.glyph(Glyph::Empty).repeat(BAR - full)),
    ];
    let mut used = BAR;
    for part in facts(progress, snapshot, now_ms) {
        used += part.width() + 2;
        if used > width {
            break;
        }
        spans.push(Span::raw(format!("  {part}")));
    }
    Line::from(spans)
}

/// Leaves, iterations, time and cost, each against its limit where there is one; the most important first.
fn facts(progress: &RunProgress, snapshot: &PageSnapshot, now_ms: u64) -> Vec<String> {
    let against = |amount: String, max: Option<String>| match max {
        Some(max) => format!("{amount} of {max}"),
        None => amount,
    };
    let mut facts = vec![format!("{}/{} leaves", progress.leaves_passed, progress.leaves_total)];
    let max = progress.iterations_max.map(|max| max.to_string());
    facts.push(against(format!("#{}", progress.iterations), max));
    let ended = if snapshot.stop.is_none() { None } else { progress.ended_ms };
    facts.extend(progress.started_ms.map(|started| since(started, ended.unwrap_or(now_ms))));
    let cost = progress.cost_microdollars.or(progress.cost_microdollars_max.map(|_| 0));
    facts.extend(cost.map(|cost| against(dollars(cost), progress.cost_microdollars_max.map(dollars))));
    let used = progress.input_tokens.zip(progress.output_tokens).map(|(input, output)| input + output);
    let used = used.or(progress.tokens_max.map(|_| 0));
    facts.extend(
        used.map(|used| format!("{} tokens", against(tokens(used), progress.tokens_max.map(tokens)))),
    );
    if snapshot.server.watching == WatchMethod::Polling {
        facts.push("looks every 2 s".to_owned());
    }
    facts
}

/// Why the run does not go on, what shows it, and what to type. Nothing while it does.
fn banner(snapshot: &PageSnapshot, paint: &TuiTheme, area: Rect) -> Vec<Line<'static>> {
    let width = usize::from(area.width);
    let line = |label: &str, ink: TextRole, text: &str| {
        let text = paint.pen.fit(&one_line(text), width.saturating_sub(6));
        Line::from(vec![paint.span(TextRole::Faint, format!("{label:<6}")), paint.span(ink, text)])
    };
    let to_type = |label: &str, command: &str, what: &str| {
        let mut line = line(label, TextRole::Active, command);
        let room = width.saturating_sub(line.width() + 3);
        line.push_span(paint.span(TextRole::Faint, format!("   {}", paint.pen.fit(what, room))));
        line
    };
    let (mut why, mut next) = (Vec::new(), Vec::new());
    why.extend(snapshot.problems.iter().map(|problem| line("fault", TextRole::Bad, problem)));
    if let Some(stop) = &snapshot.stop {
        why.extend(stop.why.iter().take(WHY_MAX).map(|text| line("why", TextRole::Strong, text)));
        why.extend(stop.evidence.as_ref().map(|found| {
            line(
                "line",
                TextRole::Warn,
                &format!("#{} {}:{}  {}", found.iter, found.log, found.line + 1, found.text),
            )
        }));
        let label = |nth: usize| if nth == 0 { "type" } else { "" };
        next.extend(stop.next.iter().enumerate().map(|(nth, advice)| {
            let command = advice.command.as_deref().unwrap_or_default();
            to_type(label(nth), command, &advice.what)
        }));
    }
    // The first thing to type is always there; the rest as long as it leaves the panes most of the screen.
    let room = usize::from(area.height.saturating_sub(4) / 3).max(1);
    next.truncate(room.saturating_sub(why.len().min(room / 2)).max(1));
    why.truncate(room.saturating_sub(next.len()));
    why.into_iter().chain(next).collect()
}

/// What can be pressed now.
fn keys_line(view: &WatchView, paint: &TuiTheme, width: usize) -> Line<'static> {
    let text = match view.mode {
        InputMode::Filtering => {
            format!("/{}_   enter keeps it, esc ends it", one_line(view.branches.filter()))
        }
        InputMode::Helping => "any key: back".to_owned(),
        InputMode::Reading if !view.note.is_empty() => one_line(&view.note),
        InputMode::Reading => {
            let follow = if view.is_following { "following" } else { "f follow" };
            let filter = match view.branches.filter() {
                "" => "/ filter".to_owned(),
                text => format!("/{} (esc ends it)", one_line(text)),
            };
            format!("{follow}  ? help  q quit  tab pane  enter open  {filter}  [ ] iteration  1 3 log")
        }
    };
    Line::from(paint.span(TextRole::Faint, paint.pen.fit(&text, width)))
}

fn help(paint: &TuiTheme, width: usize) -> Vec<Line<'static>> {
    let key = |(keys, says): &(&str, &str)| {
        Line::from(vec![paint.span(TextRole::Strong, format!("  {keys:<20}")), Span::raw((*says).to_owned())])
    };
    let heading = paint.heading(("keys", ""), width, TextRole::Strong);
    std::iter::once(heading).chain(KEYS.iter().map(key)).collect()
}

fn heading_ink(view: &WatchView, pane: FocusedPane) -> TextRole {
    if view.focus == pane { TextRole::Strong } else { TextRole::Faint }
}

/// The focus is marked without colour, too.
fn heading_text(view: &WatchView, pane: FocusedPane, text: &str) -> String {
    if view.focus == pane { format!("[{text}]") } else { text.to_owned() }
}

fn draw_tree(frame: &mut Frame<'_>, view: &mut WatchView, shown: &WatchData, paint: &TuiTheme, area: Rect) {
    let (width, height) = (usize::from(area.width), usize::from(area.height).saturating_sub(1));
    view.fit_tree(height);
    let running = shown.snapshot.current.as_ref().and_then(|current| current.node.as_deref());
    let text = heading_text(view, FocusedPane::Tree, "tree");
    let mut lines = vec![paint.heading((&text, ""), width, heading_ink(view, FocusedPane::Tree))];
    for nth in (view.tree_top..).take(height) {
        let Some(row) = view.branches.at(nth, running) else { break };
        let line = tree_line(&row, paint, width);
        let is_chosen = nth == view.branches.row();
        lines.push(if is_chosen { line.patch_style(TuiTheme::chosen()) } else { line });
    }
    if view.branches.rows() == 0 {
        lines.push(Line::from(paint.span(TextRole::Faint, "nothing to show")));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

/// A node: where it is, its glyph, its title, and its state in a word or its leaves in numbers.
fn tree_line(row: &TreeRow, paint: &TuiTheme, width: usize) -> Line<'static> {
    let says = match (row.is_leaf, row.attempts) {
        (false, _) => format!("{}/{}", row.leaves.0, row.leaves.1),
        (true, (0, _)) => row.state.word().to_owned(),
        (true, _) if row.state == NodeState::Passed => row.state.word().to_owned(),
        (true, (made, max)) => format!("{} {made}/{max}", row.state.word()),
    };
    let (style, glyph) = (paint.style(row.state.role()), paint.glyph(row.state.glyph()));
    let indent = " ".repeat((row.depth * 2).min(width / 3));
    let title = if row.title.is_empty() { &row.id } else { &row.title };
    let title = if row.is_closed { format!("+ {title}") } else { title.clone() };
    let room = width.saturating_sub(indent.width() + glyph.width() + says.width() + 3);
    let title = paint.pen.fit(&title, room);
    let gap = " ".repeat(room.saturating_sub(title.width()) + 1);
    Line::from(vec![
        Span::styled(format!("{indent}{glyph} "), style),
        Span::raw(title),
        Span::raw(gap),
        Span::styled(says, style),
        Span::raw(" "),
    ])
}

fn draw_text(
    frame: &mut Frame<'_>,
    view: &mut WatchView,
    shown: &WatchData,
    (paint, now_ms): (&TuiTheme, u64),
    area: Rect,
) {
    let (width, height) = (usize::from(area.width), usize::from(area.height).saturating_sub(1));
    view.fit_text(shown, paint, (width, height));
    let text = heading_text(view, FocusedPane::Text, &text_heading(shown, now_ms));
    let below = view.rows.lines.len().saturating_sub(view.rows.top + height);
    let below = if below > 0 { format!("{below} below") } else { String::new() };
    let mut lines = vec![paint.heading((&text, &below), width, heading_ink(view, FocusedPane::Text))];
    lines.extend(view.rows.lines.iter().skip(view.rows.top).take(height).cloned());
    frame.render_widget(Paragraph::new(lines), area);
}

/// Which iteration it is, on what, which try, and how long it takes of what it may.
fn text_heading(shown: &WatchData, now_ms: u64) -> String {
    let Some(iter) = shown.text.iter else { return "transcript".to_owned() };
    let row = shown.rows.iter().find(|row| row.iter == iter);
    let log = if shown.text.log == Some(LogKind::Guard) { "guard" } else { "transcript" };
    let mut text = format!("{log} #{iter}");
    if let Some(node) = row.and_then(|row| row.node.as_ref()) {
        text.push_str(&format!(" {}", one_line(node)));
    }
    if let Some(attempt) = row.and_then(|row| row.attempt) {
        text.push_str(&format!(" {}/{}", attempt.nth, attempt.of));
    }
    let current = shown.snapshot.current.as_ref().filter(|current| current.iter == iter);
    if let Some(started) = current.and_then(|current| current.started_ms) {
        text.push_str(&format!(" {}", since(started, now_ms)));
        let timeout = current.and_then(|current| current.timeout_ms).filter(|timeout| *timeout > 0);
        text.extend(timeout.map(|timeout| format!(" of {}", since(0, timeout))));
    }
    text
}
