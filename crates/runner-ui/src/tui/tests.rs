//! The screen, drawn as terminals of three sizes would show it, and what keys do.

use std::sync::Arc;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use runner_term::Styler;
use serde_json::json;
use unicode_width::UnicodeWidthStr;

use super::draw::draw;
use super::reader::{LogExcerpt, LogKind, LogRequest, WatchData};
use super::session::session;
use super::theme::{StyledLine, TuiTheme};
use super::view::{FocusedPane, TuiAction, WatchView};
use crate::api::{
    AttemptOrdinal, CurrentIteration, IterationRow, LogLine, NextCommand, PageSnapshot, RunHead, RunProgress,
    ServerSubject, ServerView, StateWord, StopView, TreeColumns, WatchMethod,
};
use crate::read::tree_view::{EXHAUSTED, LEAF, PASSES};

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (40, 15)];
const NOW_MS: u64 = 10_000_000;

fn tree() -> Arc<TreeColumns> {
    let texts = |list: [&str; 6]| list.map(str::to_owned).into();
    Arc::new(TreeColumns {
        id: texts(["root", "auth", "login", "rate-limit", "docs", "日本"]),
        title: texts([
            "Port the service",
            "Authentication",
            "Log in",
            "Limit the rate of requests",
            "Write the docs",
            "日本語の文書",
        ]),
        parent: vec![-1, 0, 1, 1, 0, 0],
        depth: vec![0, 1, 2, 2, 1, 1],
        flags: vec![0, 0, LEAF | PASSES, LEAF, LEAF, LEAF | EXHAUSTED],
        attempts: vec![0, 0, 1, 1, 0, 3],
        max_attempts: vec![3; 6],
        leaves: vec![4, 2, 1, 1, 1, 1],
        passed: vec![1, 1, 1, 0, 0, 0],
        selected: Some("rate-limit".to_owned()),
        ..TreeColumns::default()
    })
}

fn snapshot() -> PageSnapshot {
    let head = RunHead {
        id: "nightly".to_owned(),
        branch: "runner/nightly".to_owned(),
        commit: None,
        goal: "Port the service".to_owned(),
        is_here: true,
    };
    let progress = RunProgress {
        leaves_total: 4,
        leaves_passed: 1,
        iterations: 3,
        iterations_max: Some(200),
        started_ms: Some(NOW_MS - 6_727_000),
        input_tokens: Some(12_000),
        output_tokens: Some(345),
        cost_microdollars: Some(420_000),
        cost_microdollars_max: Some(20_000_000),
        ..RunProgress::default()
    };
    let current = CurrentIteration {
        iter: 3,
        node: Some("rate-limit".to_owned()),
        path: "root/auth/rate-limit".to_owned(),
        title: String::new(),
        attempt: Some(AttemptOrdinal { nth: 2, of: 3 }),
        phase: "planned".to_owned(),
        phase_since_ms: None,
        started_ms: Some(NOW_MS - 252_000),
        timeout_ms: Some(1_800_000),
    };
    PageSnapshot {
        server: ServerView {
            version: String::new(),
            build: String::new(),
            now_ms: NOW_MS,
            watching: WatchMethod::Events,
            project: "app".to_owned(),
            shows: ServerSubject::Repository,
        },
        run: Some(head),
        state: StateWord::Running,
        headline: "the agent is at work".to_owned(),
        since_ms: Some(NOW_MS - 42_000),
        stop: None,
        progress,
        current: Some(current),
        problems: Vec::new(),
    }
}

fn transcript() -> Vec<StyledLine> {
    let agent = |value: serde_json::Value| {
        let mut value = value;
        value["event"] = json!("agent");
        value
    };
    let events = [
        json!({ "event": "planned", "path": "root/auth/rate-limit", "attempt": { "nth": 2, "of": 3 } }),
        agent(
            json!({ "kind": "message", "text": "I begin with the test that failed.\nThen the limit itself." }),
        ),
        agent(json!({ "kind": "reasoning", "text": "The window slides, so a plain counter is wrong." })),
        agent(
            json!({ "kind": "command", "id": "1", "command": "cargo test limit", "state": "failed", "exit": 101,
            "output": "running 1 test\n\u{1b}[31mtest limit ... FAILED\u{1b}[0m\n" }),
        ),
        agent(
            json!({ "kind": "edit", "id": "2", "files": [{ "path": "src/limit.rs", "change": "update" }], "state": "done" }),
        ),
        agent(
            json!({ "kind": "command", "id": "3", "command": "cargo test limit", "state": "started", "exit": null, "output": "" }),
        ),
    ];
    session(&events, &[])
}

fn rows() -> Vec<IterationRow> {
    let row = |iter: u32, node: &str, nth: u32| IterationRow {
        iter,
        node: Some(node.to_owned()),
        attempt: Some(AttemptOrdinal { nth, of: 3 }),
        has_logs: true,
        ..IterationRow::default()
    };
    vec![row(1, "login", 1), row(2, "rate-limit", 1), row(3, "rate-limit", 2)]
}

fn running() -> WatchData {
    let text = LogExcerpt { iter: Some(3), log: Some(LogKind::Session), from: 0, lines: transcript() };
    WatchData { nth: 1, snapshot: snapshot(), tree: tree(), rows: rows(), text }
}

fn stuck() -> WatchData {
    let advice =
        |what: &str, command: &str| NextCommand { what: what.to_owned(), command: Some(command.to_owned()) };
    let stop = StopView {
        why: vec![
            "root/auth/rate-limit has used its 3 attempts".to_owned(),
            "the last session said: the limit works now".to_owned(),
        ],
        iterations: vec![3, 2],
        evidence: Some(LogLine {
            iter: 3,
            log: "guard".to_owned(),
            line: 11,
            text: "error: limit::retry_after".to_owned(),
        }),
        next: vec![
            advice("allow it more attempts", "runner node allow rate-limit"),
            advice("or ask for something else", "runner node edit rate-limit --goal \"…\""),
            advice("go on", "runner loop"),
        ],
    };
    let snapshot = PageSnapshot {
        state: StateWord::Stuck,
        headline: "rate-limit has no attempts left".to_owned(),
        since_ms: None,
        stop: Some(stop),
        current: None,
        ..snapshot()
    };
    let lines = vec![
        StyledLine::under(None, "checking"),
        StyledLine::under(Some(runner_term::TextRole::Bad), "error: limit::retry_after"),
    ];
    let text = LogExcerpt { iter: Some(3), log: Some(LogKind::Guard), from: 0, lines };
    WatchData { nth: 1, snapshot, tree: tree(), rows: rows(), text }
}

/// The screen as text, without the blanks at the ends of its rows.
fn screen(
    view: &mut WatchView,
    shown: Option<&WatchData>,
    (width, height): (u16, u16),
    pen: Styler,
) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let paint = TuiTheme { pen };
    terminal.draw(|frame| draw(frame, view, shown, &paint, NOW_MS)).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |y: u16| {
        let (mut text, mut x) = (String::new(), 0);
        while x < width {
            let symbol = buffer[(x, y)].symbol();
            text.push_str(symbol);
            x += u16::try_from(symbol.width().max(1)).unwrap();
        }
        text.trim_end().to_owned() + "\n"
    };
    (0..height).map(row).collect()
}

fn drawn(view: &mut WatchView, shown: &WatchData, size: (u16, u16)) -> String {
    screen(view, Some(shown), size, Styler::plain(usize::from(size.0)))
}

fn press(view: &mut WatchView, shown: &WatchData, keys: &str) -> TuiAction {
    let mut act = TuiAction::Draw;
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            '\u{1b}' => KeyCode::Esc,
            '\u{8}' => KeyCode::Backspace,
            other => KeyCode::Char(other),
        };
        act = view.press(KeyEvent::from(code), Some(shown));
    }
    act
}

fn viewed(shown: &WatchData) -> WatchView {
    let mut view = WatchView::new();
    view.take(shown);
    view
}

#[test]
fn a_run_at_work_on_every_size() {
    for size in SIZES {
        let shown = running();
        let mut view = viewed(&shown);
        insta::assert_snapshot!(format!("running_{}x{}", size.0, size.1), drawn(&mut view, &shown, size));
    }
    let shown = running();
    let mut view = viewed(&shown);
    press(&mut view, &shown, "\t");
    insta::assert_snapshot!("running_40x15_transcript", drawn(&mut view, &shown, (40, 15)));
}

#[test]
fn a_run_that_is_stuck_says_what_to_type_on_every_size() {
    for size in SIZES {
        let shown = stuck();
        let mut view = viewed(&shown);
        let text = drawn(&mut view, &shown, size);
        assert!(text.contains("runner node allow rate-limit"), "{text}");
        insta::assert_snapshot!(format!("stuck_{}x{}", size.0, size.1), text);
    }
}

#[test]
fn the_help_lists_every_key() {
    let shown = running();
    let mut view = viewed(&shown);
    press(&mut view, &shown, "?");
    insta::assert_snapshot!("help_80x24", drawn(&mut view, &shown, (80, 24)));
    assert_eq!(press(&mut view, &shown, "q"), TuiAction::Draw, "any key only leaves the help");
    assert_eq!(press(&mut view, &shown, "q"), TuiAction::Quit);
}

#[test]
fn any_size_can_be_drawn() {
    for shown in [running(), stuck()] {
        let mut view = viewed(&shown);
        for size in [1, 2, 5, 17, 33, 71, 72]
            .into_iter()
            .flat_map(|width| [1, 2, 3, 4, 7, 12].map(|height| (width, height)))
        {
            drawn(&mut view, &shown, size);
        }
    }
    screen(&mut WatchView::new(), None, (80, 24), Styler::plain(80));
}

#[test]
fn every_state_is_told_without_colour() {
    let shown = running();
    let text = drawn(&mut viewed(&shown), &shown, (120, 40));
    for word in ["RUNNING", "passed", "running", "stuck 3/3", "open", "1/4"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn while_it_follows_the_node_at_work_is_chosen_and_the_end_is_shown() {
    let mut shown = running();
    let mut view = viewed(&shown);
    assert_eq!(view.branches.chosen().as_deref(), Some("rate-limit"));
    shown.text.lines.extend((0..50).map(|nth| StyledLine::under(None, format!("line {nth}"))));
    shown.nth += 1;
    view.take(&shown);
    assert!(drawn(&mut view, &shown, (80, 24)).contains("line 49"));
}

#[test]
fn what_is_read_does_not_move_once_it_was_scrolled() {
    let mut shown = running();
    shown.text.lines.extend((0..50).map(|nth| StyledLine::under(None, format!("line {nth}"))));
    let mut view = viewed(&shown);
    drawn(&mut view, &shown, (80, 24));
    press(&mut view, &shown, "\tkkk");
    assert!(!view.is_following);
    assert_eq!(view.wish, LogRequest { iter: Some(3), log: Some(LogKind::Session), from: None });
    assert_eq!(view.take(&shown), TuiAction::Show, "the first line is held");
    assert_eq!(view.wish.from, Some(0));
    let before = view.rows.top;
    shown.text.lines.extend((50..90).map(|nth| StyledLine::under(None, format!("line {nth}"))));
    shown.nth += 1;
    shown.snapshot.current.as_mut().unwrap().node = Some("docs".to_owned());
    assert_eq!(view.take(&shown), TuiAction::Draw);
    assert!(drawn(&mut view, &shown, (80, 24)).contains("below"));
    assert_eq!((view.rows.top, view.branches.chosen().as_deref()), (before, Some("rate-limit")));
    assert_eq!(press(&mut view, &shown, "f"), TuiAction::Show);
    view.take(&shown);
    assert_eq!((&view.wish, view.branches.chosen().as_deref()), (&LogRequest::default(), Some("docs")));
}

#[test]
fn keys_choose_nodes_iterations_and_logs() {
    let shown = running();
    let mut view = viewed(&shown);
    drawn(&mut view, &shown, (80, 24));
    assert_eq!(press(&mut view, &shown, "gjj\n"), TuiAction::Show);
    assert_eq!((view.wish.iter, view.focus), (Some(1), FocusedPane::Text), "the last iteration on `login`");
    assert_eq!(press(&mut view, &shown, "]]["), TuiAction::Show);
    assert_eq!(view.wish.iter, Some(2), "two further and one back");
    press(&mut view, &shown, "3");
    assert_eq!((view.wish.log, view.wish.from), (Some(LogKind::Guard), None));
    press(&mut view, &shown, "\u{1b}g");
    assert_eq!(press(&mut view, &shown, "\n"), TuiAction::Draw);
    assert!(view.note.contains("no iteration"), "{}", view.note);
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(view.press(interrupt, Some(&shown)), TuiAction::Interrupt);
}

#[test]
fn what_stopped_the_run_is_one_key_away() {
    let mut shown = stuck();
    shown.text.iter = Some(1);
    let mut view = viewed(&shown);
    assert_eq!(press(&mut view, &shown, "s"), TuiAction::Show);
    assert_eq!((view.wish.iter, view.wish.log), (Some(3), Some(LogKind::Guard)));
    let filler = (0..40).map(|nth| StyledLine::under(None, format!("fine {nth}")));
    shown.text.lines = filler.clone().chain(shown.text.lines).chain(filler).collect();
    (shown.text.iter, shown.nth) = (Some(3), 2);
    assert_eq!(view.take(&shown), TuiAction::Show);
    assert!(drawn(&mut view, &shown, (80, 24)).contains("  error: limit::retry_after"));
    let shown = running();
    assert_eq!(press(&mut viewed(&shown), &shown, "s"), TuiAction::Draw);
}

#[test]
fn a_filter_is_typed_kept_and_ended() {
    let shown = running();
    let mut view = viewed(&shown);
    press(&mut view, &shown, "/docq\u{8}s");
    let text = drawn(&mut view, &shown, (80, 24));
    assert!(text.contains("/docs_") && !text.contains("Log in"), "{text}");
    press(&mut view, &shown, "\n");
    assert!(drawn(&mut view, &shown, (80, 24)).contains("/docs (esc ends it)"));
    press(&mut view, &shown, "\u{1b}");
    assert!(drawn(&mut view, &shown, (80, 24)).contains("Log in"));
}
