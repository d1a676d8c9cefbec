//! What the reader of the screen has chosen, and what each key does to that. Nothing here draws or reads.

#![expect(clippy::wildcard_enum_match_arm, reason = "of the many keys there are, few mean something")]

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::text::Line;

use super::reader::{LogKind, LogRequest, WatchData};
use super::theme::TuiTheme;
use super::tree_pane::TreePane;
use runner_term::TextRole;

/// How many rows stay in sight around what is jumped to.
const AROUND: usize = 3;

/// The keys, as the help lists them.
pub(super) const KEYS: &[(&str, &str)] = &[
    ("j k  down up", "move"),
    ("h l  left right", "close or open a node"),
    ("space b  PgDn PgUp", "a screen further or back"),
    ("g G  Home End", "first, last"),
    ("tab", "the other pane"),
    ("enter", "the last iteration on the node"),
    ("[ ]", "previous, next iteration"),
    ("1 3", "transcript, guard log"),
    ("e", "the first line here that tells of a fault"),
    ("s", "what stopped the run: the line that tells"),
    ("/", "filter the tree; esc ends that"),
    ("f", "follow the run, or stop following"),
    ("^L ^Z", "draw anew, suspend"),
    ("q ^C", "quit; the run goes on"),
];

/// Where keys go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FocusedPane {
    Tree,
    Text,
}

/// What is being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InputMode {
    Reading,
    Filtering,
    Helping,
}

/// What a key asks of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TuiAction {
    Draw,
    /// Another text is wanted.
    Show,
    Repaint,
    Suspend,
    Quit,
    Interrupt,
}

/// Where in a text to go, once its rows are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ScrollTo {
    End,
    Fault,
}

/// A text in the rows that it has on this screen.
#[derive(Debug, Default)]
pub(super) struct WrappedText {
    /// The look and the width that they are made for.
    made_for: (u64, usize),
    pub(super) lines: Vec<Line<'static>>,
    /// The row of the first line that tells of a fault.
    fault: Option<usize>,
    /// The first row in sight.
    pub(super) top: usize,
    /// How many are in sight.
    height: usize,
}

/// What the reader has chosen.
#[derive(Debug)]
pub(super) struct WatchView {
    pub(super) branches: TreePane,
    pub(super) focus: FocusedPane,
    pub(super) mode: InputMode,
    pub(super) is_following: bool,
    pub(super) wish: LogRequest,
    pub(super) rows: WrappedText,
    /// The first row of the tree in sight, and how many are.
    pub(super) tree_top: usize,
    tree_height: usize,
    /// Something to say once.
    pub(super) note: String,
    goto: Option<ScrollTo>,
    shows: (Option<u32>, Option<LogKind>),
}

impl WatchView {
    pub(super) fn new() -> Self {
        Self {
            branches: TreePane::default(),
            focus: FocusedPane::Tree,
            mode: InputMode::Reading,
            is_following: true,
            wish: LogRequest::default(),
            rows: WrappedText::default(),
            tree_top: 0,
            tree_height: 1,
            note: String::new(),
            goto: Some(ScrollTo::End),
            shows: (None, None),
        }
    }

    /// Takes in what was read. While it follows, the node at work is chosen; else nothing that is looked at moves.
    pub(super) fn take(&mut self, shown: &WatchData) -> TuiAction {
        self.branches.take(&shown.tree);
        let shows = (shown.text.iter, shown.text.log);
        let is_another = std::mem::replace(&mut self.shows, shows) != shows;
        if self.is_following {
            let node = shown.snapshot.current.as_ref().and_then(|current| current.node.as_ref());
            if let Some(node) = node.or(shown.tree.selected.as_ref()) {
                self.branches.choose(node);
            }
            self.goto = Some(ScrollTo::End);
            return TuiAction::Draw;
        }
        if is_another && self.goto.is_none() {
            self.goto =
                Some(if shown.text.log == Some(LogKind::Guard) { ScrollTo::Fault } else { ScrollTo::End });
        }
        if self.wish.from.is_none() && (self.wish.iter, self.wish.log) == shows {
            self.wish.from = Some(shown.text.from);
            return TuiAction::Show;
        }
        TuiAction::Draw
    }

    /// Makes the rows of the text for a pane of this size.
    pub(super) fn fit_text(&mut self, shown: &WatchData, paint: &TuiTheme, (width, height): (usize, usize)) {
        let rows = &mut self.rows;
        if rows.made_for != (shown.nth, width) {
            rows.lines.clear();
            rows.fault = None;
            for told in &shown.text.lines {
                if told.ink == Some(TextRole::Bad) && rows.fault.is_none() {
                    rows.fault = Some(rows.lines.len());
                }
                rows.lines.extend(paint.wrapped(told, width));
            }
            rows.made_for = (shown.nth, width);
        }
        rows.height = height;
        let end = rows.lines.len().saturating_sub(height);
        match (self.goto.take(), rows.fault) {
            (Some(ScrollTo::Fault), Some(fault)) => rows.top = fault.saturating_sub(AROUND),
            (Some(_), _) => rows.top = end,
            (None, _) => {}
        }
        if self.is_following {
            rows.top = end;
        }
        rows.top = rows.top.min(end);
    }

    /// Keeps the chosen row of the tree in sight.
    pub(super) fn fit_tree(&mut self, height: usize) {
        self.tree_height = height.max(1);
        let (row, rows) = (self.branches.row(), self.branches.rows());
        let lowest = row.saturating_sub(self.tree_height - 1);
        self.tree_top = self.tree_top.clamp(lowest, row.max(lowest));
        self.tree_top = self.tree_top.min(rows.saturating_sub(self.tree_height));
    }

    /// What a key does.
    pub(super) fn press(&mut self, key: KeyEvent, shown: Option<&WatchData>) -> TuiAction {
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
            InputMode::Reading => self.read(key.code, shown),
        }
    }

    fn type_filter(&mut self, code: KeyCode) {
        let mut text = self.branches.filter().to_owned();
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
        self.branches.set_filter(text);
    }

    fn read(&mut self, code: KeyCode, shown: Option<&WatchData>) -> TuiAction {
        match code {
            KeyCode::Char('q') => return TuiAction::Quit,
            KeyCode::Char('?') => self.mode = InputMode::Helping,
            KeyCode::Tab | KeyCode::BackTab => {
                self.focus =
                    if self.focus == FocusedPane::Tree { FocusedPane::Text } else { FocusedPane::Tree };
            }
            KeyCode::Char('/') => {
                self.stay(shown);
                (self.mode, self.focus) = (InputMode::Filtering, FocusedPane::Tree);
            }
            KeyCode::Char('f') => return self.toggle_follow(shown),
            KeyCode::Char('1') => return self.show(shown, Some(LogKind::Session)),
            KeyCode::Char('3') => return self.show(shown, Some(LogKind::Guard)),
            KeyCode::Char('[') => return self.turn(shown, PageDirection::Back),
            KeyCode::Char(']') => return self.turn(shown, PageDirection::On),
            KeyCode::Char('e') => {
                self.stay(shown);
                (self.focus, self.goto) = (FocusedPane::Text, Some(ScrollTo::Fault));
            }
            KeyCode::Char('s') => return self.show_stop(shown),
            KeyCode::Enter if self.focus == FocusedPane::Tree => return self.enter(shown),
            KeyCode::Esc if !self.branches.filter().is_empty() => self.branches.set_filter(String::new()),
            KeyCode::Esc => self.focus = FocusedPane::Tree,
            code => self.go(code, shown),
        }
        TuiAction::Draw
    }

    /// Keys that move, in the pane that has them.
    fn go(&mut self, code: KeyCode, shown: Option<&WatchData>) {
        let page = match self.focus {
            FocusedPane::Tree => self.tree_height,
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
            KeyCode::Char('h') | KeyCode::Left if self.focus == FocusedPane::Tree => {
                self.stay(shown);
                return self.branches.close();
            }
            KeyCode::Char('l') | KeyCode::Right if self.focus == FocusedPane::Tree => {
                self.stay(shown);
                return self.branches.open();
            }
            _ => return,
        };
        self.stay(shown);
        match self.focus {
            FocusedPane::Tree => self.branches.step(by),
            FocusedPane::Text => self.rows.top = self.rows.top.saturating_add_signed(by),
        }
    }

    /// Stops following: what is on the screen stays there.
    fn stay(&mut self, shown: Option<&WatchData>) {
        if let (true, Some(shown)) = (self.is_following, shown) {
            let text = &shown.text;
            self.wish = LogRequest { iter: text.iter, log: text.log, from: None };
            self.is_following = false;
        }
    }

    fn toggle_follow(&mut self, shown: Option<&WatchData>) -> TuiAction {
        if self.is_following {
            self.stay(shown);
        } else {
            (self.is_following, self.wish) = (true, LogRequest::default());
        }
        TuiAction::Show
    }

    /// Shows another log of the iteration that is shown.
    fn show(&mut self, shown: Option<&WatchData>, log: Option<LogKind>) -> TuiAction {
        self.stay(shown);
        self.wish = LogRequest { log, from: None, ..self.wish.clone() };
        self.focus = FocusedPane::Text;
        TuiAction::Show
    }

    /// Shows the line that tells best why the run does not go on.
    fn show_stop(&mut self, shown: Option<&WatchData>) -> TuiAction {
        let stop = shown.and_then(|shown| shown.snapshot.stop.as_ref());
        let Some(found) = stop.and_then(|stop| stop.evidence.as_ref()) else {
            self.note = "no line of a log tells why".to_owned();
            return TuiAction::Draw;
        };
        let log = if found.log == "guard" { LogKind::Guard } else { LogKind::Session };
        self.is_following = false;
        self.wish = LogRequest { iter: Some(found.iter), log: Some(log), from: None };
        (self.focus, self.goto) = (FocusedPane::Text, Some(ScrollTo::Fault));
        // It is shown already, and no other text will come to be gone to.
        if self.shows == (self.wish.iter, self.wish.log) { TuiAction::Draw } else { TuiAction::Show }
    }

    fn turn(&mut self, shown: Option<&WatchData>, turn: PageDirection) -> TuiAction {
        self.stay(shown);
        let Some(shown) = shown else { return TuiAction::Draw };
        let iters: Vec<u32> = shown.rows.iter().map(|row| row.iter).collect();
        let from = self.wish.iter.or(shown.text.iter);
        let place = iters.iter().position(|iter| Some(*iter) == from).unwrap_or_default();
        let other = match turn {
            PageDirection::Back => place.checked_sub(1),
            PageDirection::On => place.checked_add(1),
        };
        let Some(iter) = other.and_then(|place| iters.get(place)).copied() else {
            self.note = "there is no iteration beyond this one".to_owned();
            return TuiAction::Draw;
        };
        self.wish = LogRequest { iter: Some(iter), log: self.wish.log, from: None };
        TuiAction::Show
    }

    /// Shows the last iteration on the chosen node.
    fn enter(&mut self, shown: Option<&WatchData>) -> TuiAction {
        self.stay(shown);
        let (Some(shown), Some(node)) = (shown, self.branches.chosen()) else { return TuiAction::Draw };
        let Some(row) = shown.rows.iter().rev().find(|row| row.node.as_deref() == Some(&node)) else {
            self.note = "no iteration has worked on this node itself".to_owned();
            return TuiAction::Draw;
        };
        self.wish = LogRequest { iter: Some(row.iter), log: Some(LogKind::Session), from: None };
        self.focus = FocusedPane::Text;
        TuiAction::Show
    }
}

/// Which way to turn the pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageDirection {
    Back,
    On,
}
