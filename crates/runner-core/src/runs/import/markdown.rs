//! A markdown checklist: nesting is the tree, headings are groups, what is indented below an item is its goal.
//!
//! Read line by line and not as rendered text: goals are handed to agents as they were written, and every fault has
//! its line. Where a file has boxes, only points with a box are work; in one without any, every point is.

use super::markdown_lines::{MarkdownLine, acceptance_label, classify, ends_fence, indented};
use super::{EntryStatus, ImportWarning, ImportedPlan, PlanEntry, PlanError, PlanFormat};
use crate::model::tree::{DEPTH_MAX, NODES_MAX};

/// Blocks with one of these words hold a text exactly, as `export` writes those that would be read otherwise.
pub(super) const TITLE: &str = "title";
pub(super) const GOAL: &str = "goal";
pub(super) const ACCEPTANCE: &str = "acceptance";

pub(super) fn read(text: &str) -> Result<ImportedPlan, Vec<PlanError>> {
    let lines = lines_of(text);
    let mut reader = MarkdownParser::new(&lines);
    for (index, line) in lines.iter().enumerate() {
        reader.line(index + 1, line);
    }
    reader.finish()
}

/// The lines. Only where every line ends as on Windows is that no part of the text.
fn lines_of(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.strip_suffix('\n').unwrap_or(text).split('\n').collect();
    let is_windows = lines.iter().rev().skip(1).all(|line| line.ends_with('\r'));
    let plain = |line: &'_ &str| is_windows && line.ends_with('\r');
    lines
        .iter()
        .map(|line| if plain(line) { line.strip_suffix('\r').unwrap_or(line) } else { line })
        .collect()
}

/// Where something stands, which decides what belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinePosition {
    Plan,
    /// Below a heading of this level.
    Group(usize),
    /// An item indented by so many columns.
    Item(usize),
}

/// Something that is being read.
struct OpenEntry {
    place: LinePosition,
    item: PlanEntry,
    /// Its goal, line by line.
    text: Vec<String>,
    /// A goal that was given exactly.
    exact: Option<String>,
    /// Whether the title was, which may then be empty.
    has_title: bool,
}

/// A list of how one sees that something is done.
struct CriteriaList {
    owner: usize,
    /// How far the announcement is indented, or the first point must be.
    least: usize,
    /// How far the points are, and whether they have boxes.
    style: Option<(usize, bool)>,
}

/// A block of code.
struct CodeBlock<'t> {
    line: usize,
    indent: usize,
    mark: char,
    length: usize,
    info: &'t str,
    owner: usize,
    content: Vec<String>,
}

struct MarkdownParser<'t> {
    entries: Vec<OpenEntry>,
    parents: Vec<Option<usize>>,
    stack: Vec<usize>,
    points: Option<CriteriaList>,
    block: Option<CodeBlock<'t>>,
    /// Within a comment, or within the front matter that a file may begin with.
    until: Option<&'static str>,
    has_boxes: bool,
    has_one_title: bool,
    is_after_text: bool,
    /// There were more items than a tree has nodes, and it was said.
    is_full: bool,
    faults: Vec<PlanError>,
}

impl<'t> MarkdownParser<'t> {
    fn new(lines: &[&'t str]) -> Self {
        let (mut boxes, mut titles) = (false, 0);
        let mut fence: Option<(char, usize)> = None;
        for line in lines {
            let rest = indented(line).1;
            match (fence, classify(rest)) {
                (Some((mark, length)), _) if ends_fence(rest, mark, length) => fence = None,
                (Some(_), _) => {}
                (None, MarkdownLine::Fence { mark, length, .. }) => fence = Some((mark, length)),
                (None, MarkdownLine::Bullet { boxed, .. }) => boxes |= boxed.is_some(),
                (None, MarkdownLine::Heading { level: 1, .. }) => titles += 1,
                (None, _) => {}
            }
        }
        let plan = OpenEntry {
            place: LinePosition::Plan,
            item: PlanEntry::default(),
            text: Vec::new(),
            exact: None,
            has_title: false,
        };
        Self {
            entries: vec![plan],
            parents: vec![None],
            stack: vec![0],
            points: None,
            block: None,
            until: (lines.first() == Some(&"---")).then_some("---"),
            has_boxes: boxes,
            has_one_title: titles == 1,
            is_after_text: false,
            is_full: false,
            faults: Vec::new(),
        }
    }

    fn line(&mut self, number: usize, line: &'t str) {
        let (indent, rest) = indented(line);
        if let Some(block) = &mut self.block {
            if ends_fence(rest, block.mark, block.length) {
                self.end_block();
            } else {
                let spaces = line.bytes().take(block.indent).take_while(|byte| *byte == b' ').count();
                block.content.push(line.get(spaces..).unwrap_or_default().to_owned());
            }
            return;
        }
        if let Some(end) = self.until {
            let is_over =
                if end == "---" { number > 1 && rest.trim_end() == end } else { rest.contains(end) };
            self.until = if is_over { None } else { self.until };
            return;
        }
        if rest.starts_with("<!--") {
            self.until = (!rest.contains("-->")).then_some("-->");
            return;
        }
        let what = classify(rest);
        let is_text = matches!(what, MarkdownLine::Text(_) | MarkdownLine::Bullet { .. });
        match what {
            MarkdownLine::Blank => self.blank(),
            MarkdownLine::Rule => self.points = None,
            MarkdownLine::Heading { level, title } => self.heading(number, level, title),
            MarkdownLine::Fence { mark, length, info } => {
                let owner = self.owner(indent, false);
                let content = Vec::new();
                self.block = Some(CodeBlock { line: number, indent, mark, length, info, owner, content });
            }
            MarkdownLine::Bullet { boxed, text } => self.bullet((number, indent), boxed, text, rest),
            MarkdownLine::Text(text) => self.text(indent, text),
        }
        self.is_after_text = is_text;
    }

    fn top(&self) -> usize {
        self.stack.last().copied().unwrap_or_default()
    }

    fn place(&self, entry: usize) -> LinePosition {
        self.entries.get(entry).map_or(LinePosition::Plan, |entry| entry.place)
    }

    /// What text at this column belongs to. A line that goes on with the one above belongs where that does.
    fn owner(&mut self, indent: usize, goes_on: bool) -> usize {
        while let LinePosition::Item(column) = self.place(self.top()) {
            if indent > column || goes_on {
                break;
            }
            self.stack.pop();
        }
        self.top()
    }

    fn add_text(&mut self, owner: usize, text: &str) {
        if let Some(entry) = self.entries.get_mut(owner) {
            entry.text.push(text.to_owned());
        }
    }

    fn blank(&mut self) {
        let top = self.top();
        self.add_text(top, "");
    }

    fn open(&mut self, place: LinePosition, item: PlanEntry) {
        let (line, depth) = (item.line, self.stack.len());
        if depth >= DEPTH_MAX {
            self.faults.push(PlanError::new(line, format!("more than {DEPTH_MAX} levels deep")));
            return;
        }
        if self.entries.len() >= NODES_MAX {
            if !std::mem::replace(&mut self.is_full, true) {
                self.faults.push(PlanError::new(line, format!("more than {NODES_MAX} items")));
            }
            return;
        }
        self.parents.push(Some(self.top()));
        self.stack.push(self.entries.len());
        self.entries.push(OpenEntry { place, item, text: Vec::new(), exact: None, has_title: false });
    }

    fn heading(&mut self, line: usize, level: usize, title: &str) {
        self.points = None;
        while match self.place(self.top()) {
            LinePosition::Plan => false,
            LinePosition::Group(outer) => outer >= level,
            LinePosition::Item(_) => true,
        } {
            self.stack.pop();
        }
        if acceptance_label(title).is_some() {
            self.points = Some(CriteriaList { owner: self.top(), least: 0, style: None });
            return;
        }
        if level == 1 && self.has_one_title && self.entries.len() == 1 {
            if let Some(plan) = self.entries.first_mut() {
                title.clone_into(&mut plan.item.title);
            }
            return;
        }
        self.open(
            LinePosition::Group(level),
            PlanEntry { line, title: title.to_owned(), ..PlanEntry::default() },
        );
    }

    fn bullet(&mut self, at: (usize, usize), boxed: Option<EntryStatus>, text: &'t str, rest: &'t str) {
        let (line, indent) = at;
        if self.takes_point(indent, boxed.is_some(), text) {
            return;
        }
        let is_item = boxed.is_some() || !self.has_boxes;
        if let Some(first) = acceptance_label(text).filter(|_| boxed.is_none()) {
            let owner = self.owner(indent, false);
            self.begin_points(owner, indent + 1, first);
        } else if is_item {
            self.owner(indent, false);
            let standing = boxed.unwrap_or_default();
            let item = PlanEntry { line, title: text.to_owned(), status: standing, ..PlanEntry::default() };
            self.open(LinePosition::Item(indent), item);
        } else {
            let owner = self.owner(indent, false);
            self.add_text(owner, &at_column(indent, rest.trim_end()));
        }
    }

    /// Whether a point goes on with a list of acceptance, which it then joins.
    fn takes_point(&mut self, indent: usize, is_boxed: bool, text: &str) -> bool {
        let Some(points) = &mut self.points else { return false };
        let is_next = match points.style {
            None => indent >= points.least,
            Some((column, boxed)) => indent > column || (indent == column && boxed == is_boxed),
        };
        let owner = points.owner;
        let column = points.style.map(|(column, _)| column);
        if !is_next {
            self.points = None;
            return false;
        }
        points.style.get_or_insert((indent, is_boxed));
        let Some(entry) = self.entries.get_mut(owner) else { return false };
        let acceptance = &mut entry.item.acceptance;
        match (column, acceptance.last_mut()) {
            (Some(column), Some(last)) if indent > column => last.push_str(&format!("\n- {text}")),
            _ => acceptance.push(text.to_owned()),
        }
        true
    }

    fn begin_points(&mut self, owner: usize, least: usize, first: &str) {
        if let Some(entry) = self.entries.get_mut(owner).filter(|_| !first.is_empty()) {
            entry.item.acceptance.push(first.to_owned());
        }
        self.points = Some(CriteriaList { owner, least, style: None });
    }

    fn text(&mut self, indent: usize, text: &str) {
        if let Some(points) = &self.points {
            let is_more = points.style.is_some_and(|(column, _)| indent > column);
            let entry = self.entries.get_mut(points.owner).filter(|_| is_more);
            if let Some(last) = entry.and_then(|entry| entry.item.acceptance.last_mut()) {
                last.push('\n');
                last.push_str(text);
                return;
            }
            self.points = None;
        }
        let label = acceptance_label(text);
        let goes_on = self.is_after_text && label.is_none();
        let owner = self.owner(indent, goes_on);
        match label {
            Some(first) => self.begin_points(owner, indent, first),
            None => self.add_text(owner, &at_column(indent, text)),
        }
    }

    fn end_block(&mut self) {
        let Some(block) = self.block.take() else { return };
        let Some(entry) = self.entries.get_mut(block.owner) else { return };
        let exact = block.content.join("\n");
        match block.info {
            TITLE => {
                entry.item.title = exact;
                entry.has_title = true;
            }
            GOAL => entry.exact = Some(exact),
            ACCEPTANCE => entry.item.acceptance.push(exact),
            info => {
                let fence: String = std::iter::repeat_n(block.mark, block.length).collect();
                let content = block
                    .content
                    .iter()
                    .map(|line| if line.is_empty() { line.clone() } else { at_column(block.indent, line) });
                entry.text.push(at_column(block.indent, &format!("{fence}{info}")));
                entry.text.extend(content);
                entry.text.push(at_column(block.indent, &fence));
            }
        }
    }

    fn finish(mut self) -> Result<ImportedPlan, Vec<PlanError>> {
        if let Some(block) = &self.block {
            self.faults.push(PlanError::new(block.line, "the block of code that begins here has no end"));
        }
        for entry in &mut self.entries {
            let text = goal_text(&entry.text);
            entry.item.goal = match entry.exact.take() {
                Some(exact) if text.is_empty() => exact,
                Some(exact) => format!("{exact}\n\n{text}"),
                None => text,
            };
        }
        let untitled = self
            .entries
            .iter()
            .filter(|entry| matches!(entry.place, LinePosition::Item(_)) && !entry.has_title);
        let untitled: Vec<usize> = untitled
            .filter(|entry| entry.item.title.is_empty() && entry.item.goal.is_empty())
            .filter(|entry| entry.item.acceptance.is_empty())
            .map(|entry| entry.item.line)
            .collect();
        self.faults.extend(untitled.into_iter().map(|line| PlanError::new(line, "the item has no text")));
        if !self.entries.iter().any(|entry| matches!(entry.place, LinePosition::Item(_))) {
            self.faults.push(PlanError::new(1, "the file holds no item: write work as `- [ ] what to do`"));
        }
        if !self.faults.is_empty() {
            self.faults.sort_by_key(|fault| fault.line);
            return Err(self.faults);
        }
        Ok(self.assembled())
    }

    /// Children go to their parents, the last ones first; a group without an item is none.
    fn assembled(mut self) -> ImportedPlan {
        let mut remarks = Vec::new();
        while self.entries.len() > 1 {
            let (Some(entry), Some(parent)) = (self.entries.pop(), self.parents.pop().flatten()) else {
                break;
            };
            let OpenEntry { place, mut item, .. } = entry;
            item.children.reverse();
            if matches!(place, LinePosition::Group(_)) && item.children.is_empty() {
                let text = format!("`{}` holds no item and is left out", item.title);
                remarks.push(ImportWarning { line: item.line, text });
                continue;
            }
            // A group is no work of its own: it is done when everything in it is.
            if matches!(place, LinePosition::Group(_)) && item.children.iter().all(is_closed) {
                item.status = EntryStatus::Done;
            }
            if let Some(parent) = self.entries.get_mut(parent) {
                parent.item.children.push(item);
            }
        }
        remarks.reverse();
        let mut plan = self.entries.pop().map(|entry| entry.item).unwrap_or_default();
        plan.children.reverse();
        ImportedPlan {
            format: PlanFormat::Markdown,
            title: plan.title,
            goal: plan.goal,
            acceptance: plan.acceptance,
            entries: plan.children,
            warnings: remarks,
        }
    }
}

/// Whether there is nothing to do in an item.
fn is_closed(item: &PlanEntry) -> bool {
    item.status != EntryStatus::Open && item.children.iter().all(is_closed)
}

fn at_column(indent: usize, text: &str) -> String {
    format!("{}{text}", " ".repeat(indent))
}

/// The lines of a goal without the indent that all of them have, and without empty lines around.
fn goal_text(lines: &[String]) -> String {
    let is_blank = |line: &&String| line.trim().is_empty();
    let common = lines.iter().filter(|line| !is_blank(line)).map(|line| indented(line).0).min();
    let dedented: Vec<&str> =
        lines.iter().map(|line| line.get(common.unwrap_or_default()..).unwrap_or_default()).collect();
    dedented.join("\n").trim_matches('\n').to_owned()
}
