//! The screen on terminals of three sizes, and the effect of keys.

use std::sync::Arc;

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use runner_core::labels::NodeState;
use runner_core::model::id::NodeId;
use runner_core::run_status::{LifecycleState, NextCommand, RunPhase, RunStatus};
use runner_core::step::{RecordedEvent, StopReason};
use runner_term::Styler;
use serde_json::json;
use unicode_width::UnicodeWidthStr;

use super::draw::draw;
use super::reader::{LogExcerpt, LogKind, LogRequest, WatchData};
use super::session::session_lines;
use super::theme::{StyledLine, TuiTheme};
use super::view::{FocusedPane, TuiAction, WatchView};
use crate::api::{
    AttemptOrdinal, CurrentIteration, IterationRow, LogLine, PageSnapshot, RunHead, RunProgress,
    ServerSubject, ServerView, StopEvidence, TreeColumns, WatchMethod,
};
use crate::read::row_cache::IterationRows;
use crate::read::tree_view::{EXHAUSTED, LEAF, PASSES};

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (40, 15)];
const NOW_MS: u64 = 10_000_000;

fn tree() -> Arc<TreeColumns> {
    let texts = |list: [&'static str; 6]| list.into_iter().collect();
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
        state: vec![
            NodeState::Open,
            NodeState::Open,
            NodeState::Passed,
            NodeState::Next,
            NodeState::Open,
            NodeState::Stuck,
        ],
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
        tokens: Some(12_345),
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
        started_ms: Some(NOW_MS - 252_000),
        timeout_ms: Some(1_800_000),
    };
    PageSnapshot {
        server: ServerView {
            version: String::new(),
            build: String::new(),
            now_ms: NOW_MS,
            watching: WatchMethod::Events,
            event_id: String::new(),
            project: "app".to_owned(),
            shows: ServerSubject::Repository,
        },
        run: Some(head),
        status: RunStatus {
            state: LifecycleState::Running,
            phase: Some(RunPhase::Agent),
            stop: None,
            since_ms: Some(NOW_MS - 42_000),
            until_ms: None,
            headline: "iteration 3: the agent is working on root/auth/rate-limit".to_owned(),
            task: None,
            details: Vec::new(),
            next: Vec::new(),
        },
        evidence: None,
        trust: None,
        questions: Vec::new(),
        coverage: None,
        progress,
        current: Some(current),
        problems: Vec::new(),
    }
}

fn transcript() -> Vec<StyledLine> {
    let agent = |mut value: serde_json::Value| {
        value["event"] = json!("agent");
        value["iter"] = json!(3);
        value["seq"] = json!(1);
        value["t_ms"] = json!(1);
        value
    };
    let planned = r#"{"t_ms": 1, "event": "planned", "run_id": "nightly", "iter": 3, "mode": "leaf", "node": "rate-limit",
        "path": "root/auth/rate-limit", "title": "", "attempt": {"nth": 2, "of": 3}, "agent": "codex",
        "rung": {"nth": 1, "of": 1}, "budget": {}, "spent": {"tokens": 0, "microdollars": 0, "estimated_microdollars": 0,
        "sessions_without_tokens": 0, "sessions_without_cost": 0}, "prompt_bytes": 1,
        "prompt_sha256": "0000000000000000000000000000000000000000000000000000000000000000"}"#;
    let events = [
        serde_json::from_str(planned).unwrap(),
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
    let events: Vec<RecordedEvent> =
        events.iter().filter_map(|event| RecordedEvent::from_line(event.to_string().as_bytes())).collect();
    session_lines(&events, &[])
}

fn rows() -> IterationRows {
    let row = |iter: u32, node: &str, nth: u32| {
        Arc::new(IterationRow {
            iter,
            node: Some(node.to_owned()),
            attempt: Some(AttemptOrdinal { nth, of: 3 }),
            has_logs: true,
            ..IterationRow::default()
        })
    };
    vec![row(1, "login", 1), row(2, "rate-limit", 1), row(3, "rate-limit", 2)].into()
}

fn running() -> WatchData {
    let log = LogExcerpt { iter: Some(3), kind: Some(LogKind::Session), from: 0, lines: transcript() };
    WatchData { revision: 1, snapshot: snapshot(), is_verifying: false, tree: tree(), rows: rows(), log }
}

pub(super) fn stuck() -> WatchData {
    let next = |what: &str, command: &str| NextCommand { what: what.to_owned(), command: command.to_owned() };
    let evidence = StopEvidence {
        iterations: vec![3, 2],
        line: Some(LogLine {
            iter: 3,
            log: "guard".to_owned(),
            line: 11,
            text: "error: limit::retry_after".to_owned(),
        }),
        failure: None,
        attempts: Vec::new(),
    };
    let status = RunStatus {
        state: LifecycleState::Stopped,
        phase: None,
        stop: Some(StopReason::Stuck { node: NodeId::new("rate-limit").unwrap() }),
        since_ms: None,
        until_ms: None,
        headline: "`rate-limit` failed 3 of 3 attempts".to_owned(),
        task: Some("root/auth/rate-limit".to_owned()),
        details: vec!["last attempt, #3, guard failed: the limit works now".to_owned()],
        next: vec![
            next("allow more attempts", "runner node allow rate-limit"),
            next("or change the task", "runner node edit rate-limit --goal \"…\""),
            next("continue", "runner loop"),
        ],
    };
    let snapshot = PageSnapshot { status, evidence: Some(evidence), current: None, ..snapshot() };
    let lines = vec![
        StyledLine::continued(None, "checking"),
        StyledLine::continued(Some(runner_term::TextRole::Bad), "error: limit::retry_after"),
    ];
    let log = LogExcerpt { iter: Some(3), kind: Some(LogKind::Guard), from: 0, lines };
    WatchData { revision: 1, snapshot, is_verifying: false, tree: tree(), rows: rows(), log }
}

/// A terminal's width and height.
type Size = (u16, u16);

/// The screen as text, without trailing blanks.
fn screen(view: &mut WatchView, data: Option<&WatchData>, size: Size, styler: Styler) -> String {
    let (width, height) = size;
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let theme = TuiTheme { styler };
    terminal.draw(|frame| draw(frame, view, data, &theme, NOW_MS)).unwrap();
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

pub(super) fn drawn(view: &mut WatchView, data: &WatchData, size: Size) -> String {
    screen(view, Some(data), size, Styler::plain(usize::from(size.0)))
}

fn press(view: &mut WatchView, data: &WatchData, keys: &str) -> TuiAction {
    let mut action = TuiAction::Draw;
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            '\u{1b}' => KeyCode::Esc,
            '\u{8}' => KeyCode::Backspace,
            other => KeyCode::Char(other),
        };
        action = view.press(KeyEvent::from(code), Some(data));
    }
    action
}

pub(super) fn view_of(data: &WatchData) -> WatchView {
    let mut view = WatchView::new();
    view.update(data);
    view
}

#[test]
fn running_run_is_drawn_on_every_size() {
    for size in SIZES {
        let data = running();
        let mut view = view_of(&data);
        insta::assert_snapshot!(format!("running_{}x{}", size.0, size.1), drawn(&mut view, &data, size));
    }
    let data = running();
    let mut view = view_of(&data);
    press(&mut view, &data, "\t");
    insta::assert_snapshot!("running_40x15_transcript", drawn(&mut view, &data, (40, 15)));
}

#[test]
fn stuck_run_shows_what_to_type_on_every_size() {
    for size in SIZES {
        let data = stuck();
        let mut view = view_of(&data);
        let text = drawn(&mut view, &data, size);
        assert!(text.contains("runner node allow rate-limit"), "{text}");
        insta::assert_snapshot!(format!("stuck_{}x{}", size.0, size.1), text);
    }
}

#[test]
fn help_lists_every_key() {
    let data = running();
    let mut view = view_of(&data);
    press(&mut view, &data, "?");
    insta::assert_snapshot!("help_80x24", drawn(&mut view, &data, (80, 24)));
    assert_eq!(press(&mut view, &data, "q"), TuiAction::Draw, "any key leaves the help");
    assert_eq!(press(&mut view, &data, "q"), TuiAction::Quit);
}

#[test]
fn every_size_can_be_drawn() {
    for data in [running(), stuck()] {
        let mut view = view_of(&data);
        for size in [1, 2, 5, 17, 33, 71, 72]
            .into_iter()
            .flat_map(|width| [1, 2, 3, 4, 7, 12].map(|height| (width, height)))
        {
            drawn(&mut view, &data, size);
        }
    }
    screen(&mut WatchView::new(), None, (80, 24), Styler::plain(80));
}

#[test]
fn states_are_shown_without_colour() {
    let data = running();
    let text = drawn(&mut view_of(&data), &data, (120, 40));
    for word in ["RUNNING", "passed", "running", "stuck 3/3", "open", "1/4"] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn following_selects_the_running_node_and_shows_the_end() {
    let mut data = running();
    let mut view = view_of(&data);
    assert_eq!(view.tree.pane.selected().as_deref(), Some("rate-limit"));
    data.log.lines.extend((0..50).map(|nth| StyledLine::continued(None, format!("line {nth}"))));
    data.revision += 1;
    view.update(&data);
    assert!(drawn(&mut view, &data, (80, 24)).contains("line 49"));
}

#[test]
fn scrolled_text_does_not_move() {
    let mut data = running();
    data.log.lines.extend((0..50).map(|nth| StyledLine::continued(None, format!("line {nth}"))));
    let mut view = view_of(&data);
    drawn(&mut view, &data, (80, 24));
    press(&mut view, &data, "\tkkk");
    assert!(!view.is_following);
    assert_eq!(view.request, LogRequest { iter: Some(3), log: Some(LogKind::Session), from: None });
    assert_eq!(view.update(&data), TuiAction::Show, "the first line is kept");
    assert_eq!(view.request.from, Some(0));
    let before = view.rows.top;
    data.log.lines.extend((50..90).map(|nth| StyledLine::continued(None, format!("line {nth}"))));
    data.revision += 1;
    data.snapshot.current.as_mut().unwrap().node = Some("docs".to_owned());
    assert_eq!(view.update(&data), TuiAction::Draw);
    assert!(drawn(&mut view, &data, (80, 24)).contains("below"));
    assert_eq!((view.rows.top, view.tree.pane.selected().as_deref()), (before, Some("rate-limit")));
    assert_eq!(press(&mut view, &data, "f"), TuiAction::Show);
    view.update(&data);
    assert_eq!((&view.request, view.tree.pane.selected().as_deref()), (&LogRequest::default(), Some("docs")));
}

#[test]
fn keys_select_nodes_iterations_and_logs() {
    let data = running();
    let mut view = view_of(&data);
    drawn(&mut view, &data, (80, 24));
    assert_eq!(press(&mut view, &data, "gjj\n"), TuiAction::Show);
    assert_eq!(
        (view.request.iter, view.focus),
        (Some(1), FocusedPane::Text),
        "the last iteration on `login`"
    );
    assert_eq!(press(&mut view, &data, "]]["), TuiAction::Show);
    assert_eq!(view.request.iter, Some(2), "two forward and one back");
    press(&mut view, &data, "3");
    assert_eq!((view.request.log, view.request.from), (Some(LogKind::Guard), None));
    press(&mut view, &data, "\u{1b}g");
    assert_eq!(press(&mut view, &data, "\n"), TuiAction::Draw);
    assert!(view.note.contains("no iteration"), "{}", view.note);
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert_eq!(view.press(interrupt, Some(&data)), TuiAction::Interrupt);
}

#[test]
fn one_key_shows_why_the_run_stopped() {
    let mut data = stuck();
    data.log.iter = Some(1);
    let mut view = view_of(&data);
    assert_eq!(press(&mut view, &data, "s"), TuiAction::Show);
    assert_eq!((view.request.iter, view.request.log), (Some(3), Some(LogKind::Guard)));
    let filler = (0..40).map(|nth| StyledLine::continued(None, format!("fine {nth}")));
    data.log.lines = filler.clone().chain(data.log.lines).chain(filler).collect();
    data.log.iter = Some(3);
    data.revision = 2;
    assert_eq!(view.update(&data), TuiAction::Show);
    assert!(drawn(&mut view, &data, (80, 24)).contains("  error: limit::retry_after"));
    let data = running();
    assert_eq!(press(&mut view_of(&data), &data, "s"), TuiAction::Draw);
}

#[test]
fn filter_is_typed_kept_and_cleared() {
    let data = running();
    let mut view = view_of(&data);
    press(&mut view, &data, "/docq\u{8}s");
    let text = drawn(&mut view, &data, (80, 24));
    assert!(text.contains("/docs_") && !text.contains("Log in"), "{text}");
    press(&mut view, &data, "\n");
    assert!(drawn(&mut view, &data, (80, 24)).contains("/docs (esc clears it)"));
    press(&mut view, &data, "\u{1b}");
    assert!(drawn(&mut view, &data, (80, 24)).contains("Log in"));
}

#[test]
fn list_of_iterations_opens_one() {
    let mut data = running();
    let mut rows = data.rows.to_vec();
    let first = Arc::make_mut(&mut rows[0]);
    (first.outcome, first.cost_microdollars) = (Some("passed".to_owned()), Some(140_000));
    data.rows = rows.into();
    let mut view = view_of(&data);
    press(&mut view, &data, "i");
    let text = drawn(&mut view, &data, (80, 24));
    assert!(text.contains("[3 iterations]") && text.contains("#1    login"), "{text}");
    assert!(text.contains("passed  $0.14") && text.contains("running"), "{text}");
    assert_eq!(press(&mut view, &data, "g\n"), TuiAction::Show);
    assert_eq!((view.request.iter, view.focus), (Some(1), FocusedPane::Text));
    press(&mut view, &data, "2");
    assert_eq!(view.request.log, Some(LogKind::Diff));
    press(&mut view, &data, "4");
    assert_eq!(view.request.log, Some(LogKind::Prompt));
}

#[test]
fn shown_log_is_searched() {
    let mut data = running();
    data.log.lines.extend((0..50).map(|nth| StyledLine::continued(None, format!("line {nth}"))));
    let mut view = view_of(&data);
    drawn(&mut view, &data, (80, 24));
    press(&mut view, &data, "\t/LINE 1q\u{8}");
    assert!(drawn(&mut view, &data, (80, 24)).contains("/LINE 1_"));
    press(&mut view, &data, "g\u{1b}g/line 3\n");
    assert!(drawn(&mut view, &data, (80, 24)).contains("line 3"));
    let first = view.rows.search.found.unwrap();
    press(&mut view, &data, "n");
    assert!(view.rows.search.found > Some(first));
    press(&mut view, &data, "N");
    assert_eq!(view.rows.search.found, Some(first));
    press(&mut view, &data, "/nowhere\n");
    assert_eq!(view.note, "no match");
}

#[test]
fn mouse_scrolls_selects_and_opens() {
    let mut data = running();
    data.log.lines.extend((0..50).map(|nth| StyledLine::continued(None, format!("line {nth}"))));
    let mut view = view_of(&data);
    drawn(&mut view, &data, (120, 40));
    let mut at = |kind: MouseEventKind, column: u16, row: u16| {
        let event = MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE };
        let action = view.mouse(event, Some(&data));
        (action, view.focus, view.tree.pane.selected(), view.rows.top)
    };
    let top = at(MouseEventKind::Moved, 100, 10).3;
    let scrolled = at(MouseEventKind::ScrollUp, 100, 10);
    assert_eq!((scrolled.1, scrolled.3), (FocusedPane::Text, top.saturating_sub(3)));
    let click = MouseEventKind::Down(MouseButton::Left);
    // Two rows of the header and the heading of the pane come first.
    let clicked = at(click, 5, 5);
    assert_eq!((clicked.0, clicked.2.as_deref()), (TuiAction::Draw, Some("login")));
    assert_eq!(at(click, 5, 5).0, TuiAction::Show, "a click on the selected task opens it");
    assert_eq!(at(click, 5, 39).0, TuiAction::Draw);
}
