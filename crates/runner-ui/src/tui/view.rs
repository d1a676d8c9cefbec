//! The state of the terminal UI and the keys that change it. Nothing here draws or reads files.

#![expect(clippy::wildcard_enum_match_arm, reason = "most keys have no meaning here")]

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::iteration_list::IterationList;
use super::reader::{LogKind, LogRequest, WatchData};
use super::text_search::{SearchDirection, TextSearch};
use super::theme::TuiTheme;
use super::tree_pane::TreePane;
use runner_term::TextRole;

/// How many rows are visible above a jump target.
const CONTEXT_ROWS: usize = 3;

/// The keys, as the help lists them.
pub(super) const KEYS: &[(&str, &str)] = &[
    ("j k  down up", "move"),
    ("h l  left right", "collapse or expand a node"),
    ("space b  PgDn PgUp", "page down, page up"),
    ("g G  Home End", "first, last"),
    ("tab", "other pane"),
    ("enter", "open: last iteration on the node"),
    ("i", "list of iterations, or the tree"),
    ("[ ]", "previous, next iteration"),
    ("1 2 3 4", "transcript, diff, guard log, prompt"),
    ("e s", "first error; why the run stopped"),
    ("/  n N", "filter the tree; search the log, next, previous"),
    ("f", "follow the run, or stop following"),
    ("mouse", "wheel scrolls, click selects; shift marks text"),
    ("^L ^Z", "redraw, suspend"),
    ("q ^C", "quit; the run continues"),
];

/// The pane that keys act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FocusedPane {
    Tree,
    Text,
}

/// How keys are interpreted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InputMode {
    Reading,
    Filtering,
    Searching,
    Helping,
}

/// What the left pane shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeftPane {
    Tree,
    Iterations,
}

/// The left pane's alternative to the tree, and where the panes are on the screen.
#[derive(Debug)]
pub(super) struct LeftView {
    pub(super) shows: LeftPane,
    pub(super) list: IterationList,
    pub(super) left_area: Rect,
    pub(super) text_area: Rect,
}

/// What the event loop does after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TuiAction {
    Draw,
    /// Request the log of the current [`LogRequest`].
    Show,
    Repaint,
    Suspend,
    Quit,
    Interrupt,
}

/// Where to scroll once the log is wrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScrollTo {
    End,
    FirstError,
}

/// A log, wrapped for the width of its pane.
#[derive(Debug, Default)]
pub(super) struct WrappedText {
    /// The revision of the data and the width that the lines are wrapped for.
    wrapped_for: (u64, usize),
    pub(super) lines: Vec<Line<'static>>,
    /// The row of the first line that reports an error.
    first_error: Option<usize>,
    /// The first visible row.
    pub(super) top: usize,
    /// How many rows are visible.
    height: usize,
    pub(super) search: TextSearch,
}

/// What is selected, focused and scrolled to.
#[derive(Debug)]
pub(super) struct WatchView {
    pub(super) tree: TreeView,
    pub(super) left: LeftView,
    pub(super) focus: FocusedPane,
    pub(super) mode: InputMode,
    pub(super) is_following: bool,
    pub(super) request: LogRequest,
    pub(super) rows: WrappedText,
    /// A message that the next key clears.
    pub(super) note: String,
    scroll_to: Option<ScrollTo>,
    /// The iteration and the log that are shown.
    shown: (Option<u32>, Option<LogKind>),
}

/// The tree pane and its scroll position.
#[derive(Debug)]
pub(super) struct TreeView {
    pub(super) pane: TreePane,
    /// The first visible row.
    pub(super) top: usize,
    /// How many rows are visible.
    height: usize,
}

impl WatchView {
    pub(super) fn new() -> Self {
        Self {
            tree: TreeView { pane: TreePane::default(), top: 0, height: 1 },
            left: LeftView {
                shows: LeftPane::Tree,
                list: IterationList::default(),
                left_area: Rect::ZERO,
                text_area: Rect::ZERO,
            },
            focus: FocusedPane::Tree,
            mode: InputMode::Reading,
            is_following: true,
            request: LogRequest::default(),
            rows: WrappedText::default(),
            note: String::new(),
            scroll_to: Some(ScrollTo::End),
            shown: (None, None),
        }
    }

    /// Shows new data. While following, the running node is selected and the end of the log is shown; otherwise nothing
    /// moves.
    pub(super) fn update(&mut self, data: &WatchData) -> TuiAction {
        self.tree.pane.update(&data.tree);
        let shown = (data.log.iter, data.log.kind);
        let is_another = std::mem::replace(&mut self.shown, shown) != shown;
        if self.is_following {
            self.left.list.selected = data.rows.len().saturating_sub(1);
            let node = data.snapshot.current.as_ref().and_then(|current| current.node.as_ref());
            if let Some(node) = node.or(data.tree.selected.as_ref()) {
                self.tree.pane.select(node);
            }
            self.scroll_to = Some(ScrollTo::End);
            return TuiAction::Draw;
        }
        if is_another && self.scroll_to.is_none() {
            let is_guard = data.log.kind == Some(LogKind::Guard);
            self.scroll_to = Some(if is_guard { ScrollTo::FirstError } else { ScrollTo::End });
        }
        if self.request.from.is_none() && (self.request.iter, self.request.log) == shown {
            self.request.from = Some(data.log.from);
            return TuiAction::Show;
        }
        TuiAction::Draw
    }

    /// Wraps the log for a pane of this size, and scrolls it.
    pub(super) fn fit_text(&mut self, data: &WatchData, theme: &TuiTheme, width: usize, height: usize) {
        let rows = &mut self.rows;
        if rows.wrapped_for != (data.revision, width) {
            rows.lines.clear();
            rows.first_error = None;
            rows.search.found = None;
            for line in &data.log.lines {
                if line.role == Some(TextRole::Bad) && rows.first_error.is_none() {
                    rows.first_error = Some(rows.lines.len());
                }
                rows.lines.extend(theme.wrapped(line, width));
            }
            rows.wrapped_for = (data.revision, width);
        }
        rows.height = height;
        let end = rows.lines.len().saturating_sub(height);
        match (self.scroll_to.take(), rows.first_error) {
            (Some(ScrollTo::FirstError), Some(row)) => rows.top = row.saturating_sub(CONTEXT_ROWS),
            (Some(_), _) => rows.top = end,
            (None, _) => {}
        }
        if self.is_following {
            rows.top = end;
        }
        rows.top = rows.top.min(end);
    }

    /// Scrolls the tree so that the selected row is visible.
    pub(super) fn fit_tree(&mut self, height: usize) {
        let tree = &mut self.tree;
        tree.height = height.max(1);
        let row = tree.pane.row();
        let lowest = row.saturating_sub(tree.height - 1);
        tree.top = tree.top.clamp(lowest, row.max(lowest));
        tree.top = tree.top.min(tree.pane.row_count().saturating_sub(tree.height));
    }

    pub(super) fn press(&mut self, key: KeyEvent, data: Option<&WatchData>) -> TuiAction {
        self.note.clear();
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => TuiAction::Interrupt,
                KeyCode::Char('z') => TuiAction::Suspend,
                KeyCode::Char('l') => TuiAction::Repaint,
                _ => TuiAction::Draw,
            };
        }
        match self.mode {
            InputMode::Helping => {
                self.mode = InputMode::Reading;
                TuiAction::Draw
            }
            InputMode::Filtering => {
                self.type_filter(key.code);
                TuiAction::Draw
            }
            InputMode::Searching => {
                self.type_search(key.code);
                TuiAction::Draw
            }
            InputMode::Reading => self.command(key.code, data),
        }
    }

    fn type_filter(&mut self, code: KeyCode) {
        let mut text = self.tree.pane.filter().to_owned();
        match code {
            KeyCode::Char(c) => text.push(c),
            KeyCode::Backspace => drop(text.pop()),
            KeyCode::Esc => {
                text.clear();
                self.mode = InputMode::Reading;
            }
            KeyCode::Enter => self.mode = InputMode::Reading,
            _ => {}
        }
        self.tree.pane.set_filter(text);
    }

    fn type_search(&mut self, code: KeyCode) {
        let search = &mut self.rows.search;
        search.found = None;
        match code {
            KeyCode::Char(c) => search.query.push(c),
            KeyCode::Backspace => drop(search.query.pop()),
            KeyCode::Esc => {
                search.query.clear();
                self.mode = InputMode::Reading;
            }
            KeyCode::Enter => {
                self.mode = InputMode::Reading;
                self.find(SearchDirection::Forward);
            }
            _ => {}
        }
    }

    /// Scrolls to the next row that contains the searched text.
    fn find(&mut self, direction: SearchDirection) {
        let rows = &mut self.rows;
        match rows.search.step(&rows.lines, rows.top, direction) {
            Some(row) => rows.top = row.saturating_sub(CONTEXT_ROWS),
            None => self.note = "no match".to_owned(),
        }
    }

    /// Opens what is selected in the left pane.
    pub(super) fn open(&mut self, data: Option<&WatchData>) -> TuiAction {
        if self.left.shows == LeftPane::Tree {
            return self.show_last_iteration(data);
        }
        self.stop_following(data);
        let Some(row) = data.and_then(|data| data.rows.get(self.left.list.selected)) else {
            return TuiAction::Draw;
        };
        self.request = LogRequest { iter: Some(row.iter), log: self.request.log, from: None };
        self.focus = FocusedPane::Text;
        TuiAction::Show
    }

    fn command(&mut self, code: KeyCode, data: Option<&WatchData>) -> TuiAction {
        match code {
            KeyCode::Char('q') => return TuiAction::Quit,
            KeyCode::Char('?') => self.mode = InputMode::Helping,
            KeyCode::Tab | KeyCode::BackTab => {
                self.focus =
                    if self.focus == FocusedPane::Tree { FocusedPane::Text } else { FocusedPane::Tree };
            }
            KeyCode::Char('/') if self.focus == FocusedPane::Text => {
                self.stop_following(data);
                self.mode = InputMode::Searching;
            }
            KeyCode::Char('/') => {
                self.stop_following(data);
                self.mode = InputMode::Filtering;
                self.left.shows = LeftPane::Tree;
            }
            KeyCode::Char('n') => self.find(SearchDirection::Forward),
            KeyCode::Char('N') => self.find(SearchDirection::Back),
            KeyCode::Char('i') => {
                let shows_tree = self.left.shows == LeftPane::Tree;
                self.left.shows = if shows_tree { LeftPane::Iterations } else { LeftPane::Tree };
                self.focus = FocusedPane::Tree;
            }
            KeyCode::Char('f') => return self.toggle_follow(data),
            KeyCode::Char('1') => return self.show_log(data, Some(LogKind::Session)),
            KeyCode::Char('2') => return self.show_log(data, Some(LogKind::Diff)),
            KeyCode::Char('3') => return self.show_log(data, Some(LogKind::Guard)),
            KeyCode::Char('4') => return self.show_log(data, Some(LogKind::Prompt)),
            KeyCode::Char('[') => return self.show_neighbour(data, PageDirection::Back),
            KeyCode::Char(']') => return self.show_neighbour(data, PageDirection::Forward),
            KeyCode::Char('e') => {
                self.stop_following(data);
                self.focus = FocusedPane::Text;
                self.scroll_to = Some(ScrollTo::FirstError);
            }
            KeyCode::Char('s') => return self.show_evidence(data),
            KeyCode::Enter if self.focus == FocusedPane::Tree => return self.open(data),
            KeyCode::Esc if !self.tree.pane.filter().is_empty() => self.tree.pane.set_filter(String::new()),
            KeyCode::Esc => self.focus = FocusedPane::Tree,
            code => self.scroll(code, data),
        }
        TuiAction::Draw
    }

    /// Handles the keys that move within the focused pane.
    fn scroll(&mut self, code: KeyCode, data: Option<&WatchData>) {
        let is_tree = self.focus == FocusedPane::Tree && self.left.shows == LeftPane::Tree;
        let page = match self.focus {
            FocusedPane::Tree if is_tree => self.tree.height,
            FocusedPane::Tree => self.left.list.height,
            FocusedPane::Text => self.rows.height,
        };
        let page = isize::try_from(page.saturating_sub(1).max(1)).unwrap_or(1);
        let by = match code {
            KeyCode::Char('j') | KeyCode::Down => 1,
            KeyCode::Char('k') | KeyCode::Up => -1,
            KeyCode::Char(' ') | KeyCode::PageDown => page,
            KeyCode::Char('b') | KeyCode::PageUp => -page,
            KeyCode::Char('g') | KeyCode::Home => isize::MIN / 2,
            KeyCode::Char('G') | KeyCode::End => isize::MAX / 2,
            KeyCode::Char('h') | KeyCode::Left if is_tree => {
                self.stop_following(data);
                return self.tree.pane.collapse();
            }
            KeyCode::Char('l') | KeyCode::Right if is_tree => {
                self.stop_following(data);
                return self.tree.pane.expand();
            }
            _ => return,
        };
        self.move_by(by, data);
    }

    /// Moves within the focused pane.
    pub(super) fn move_by(&mut self, by: isize, data: Option<&WatchData>) {
        self.stop_following(data);
        match (self.focus, self.left.shows) {
            (FocusedPane::Tree, LeftPane::Tree) => self.tree.pane.move_selection(by),
            (FocusedPane::Tree, LeftPane::Iterations) => {
                self.left.list.move_selection(by, data.map_or(0, |data| data.rows.len()));
            }
            (FocusedPane::Text, _) => self.rows.top = self.rows.top.saturating_add_signed(by),
        }
    }

    /// Stops following: the screen stays at what it shows.
    pub(super) fn stop_following(&mut self, data: Option<&WatchData>) {
        if let (true, Some(data)) = (self.is_following, data) {
            self.request = LogRequest { iter: data.log.iter, log: data.log.kind, from: None };
            self.is_following = false;
        }
    }

    fn toggle_follow(&mut self, data: Option<&WatchData>) -> TuiAction {
        if self.is_following {
            self.stop_following(data);
        } else {
            self.is_following = true;
            self.request = LogRequest::default();
        }
        TuiAction::Show
    }

    /// Shows another log of the shown iteration.
    fn show_log(&mut self, data: Option<&WatchData>, log: Option<LogKind>) -> TuiAction {
        self.stop_following(data);
        self.request = LogRequest { log, from: None, ..self.request.clone() };
        self.focus = FocusedPane::Text;
        TuiAction::Show
    }

    /// Shows the log line that explains best why the run stopped.
    fn show_evidence(&mut self, data: Option<&WatchData>) -> TuiAction {
        let evidence = data.and_then(|data| data.snapshot.evidence.as_ref());
        let Some(line) = evidence.and_then(|evidence| evidence.line.as_ref()) else {
            self.note = "no log line explains it".to_owned();
            return TuiAction::Draw;
        };
        let log = if line.log == "guard" { LogKind::Guard } else { LogKind::Session };
        self.is_following = false;
        self.request = LogRequest { iter: Some(line.iter), log: Some(log), from: None };
        self.focus = FocusedPane::Text;
        self.scroll_to = Some(ScrollTo::FirstError);
        // If the log is already shown, no other one arrives to be scrolled.
        if self.shown == (self.request.iter, self.request.log) { TuiAction::Draw } else { TuiAction::Show }
    }

    /// Shows the iteration before or after the shown one.
    fn show_neighbour(&mut self, data: Option<&WatchData>, direction: PageDirection) -> TuiAction {
        self.stop_following(data);
        let Some(data) = data else { return TuiAction::Draw };
        let from = self.request.iter.or(data.log.iter);
        let index = data.rows.iter().position(|row| Some(row.iter) == from).unwrap_or_default();
        let other = match direction {
            PageDirection::Back => index.checked_sub(1),
            PageDirection::Forward => index.checked_add(1),
        };
        let Some(iter) = other.and_then(|index| data.rows.get(index)).map(|row| row.iter) else {
            self.note = "no more iterations".to_owned();
            return TuiAction::Draw;
        };
        self.request = LogRequest { iter: Some(iter), log: self.request.log, from: None };
        TuiAction::Show
    }

    /// Shows the last iteration on the selected node.
    fn show_last_iteration(&mut self, data: Option<&WatchData>) -> TuiAction {
        self.stop_following(data);
        let (Some(data), Some(node)) = (data, self.tree.pane.selected()) else { return TuiAction::Draw };
        let Some(row) = data.rows.iter().rev().find(|row| row.node.as_deref() == Some(&node)) else {
            self.note = "no iteration worked on this node".to_owned();
            return TuiAction::Draw;
        };
        self.request = LogRequest { iter: Some(row.iter), log: Some(LogKind::Session), from: None };
        self.focus = FocusedPane::Text;
        TuiAction::Show
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageDirection {
    Back,
    Forward,
}
