//! The parser of markdown checklists: nesting becomes the tree, headings become groups, and indented text below an item becomes
//! its goal.
//!
//! It works line by line and not on rendered text, because agents get goals as they were written, and every error has a line.
//! If a file has checkboxes, only list items with one are tasks; otherwise every list item is.

use super::markdown_lines::{MarkdownLine, acceptance_label, classify, ends_fence, split_indent};
use super::{EntryStatus, ImportWarning, ImportedPlan, PlanEntry, PlanError, PlanFormat};
use crate::model::tree::{DEPTH_MAX, NODES_MAX};

/// The info strings of blocks whose content is imported exactly. `export` writes texts in them that would be parsed as
/// something else.
pub(super) const TITLE: &str = "title";
pub(super) const GOAL: &str = "goal";
pub(super) const ACCEPTANCE: &str = "acceptance";

pub(super) fn parse(text: &str) -> Result<ImportedPlan, Vec<PlanError>> {
    parse_as(text, ItemRule::Required)
}

/// Parses a plan that may be its title alone.
pub(crate) fn parse_outline(text: &str) -> Result<ImportedPlan, Vec<PlanError>> {
    parse_as(text, ItemRule::Optional)
}

/// Whether a plan must have items.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ItemRule {
    Required,
    Optional,
}

fn parse_as(text: &str, items: ItemRule) -> Result<ImportedPlan, Vec<PlanError>> {
    let lines = split_lines(text);
    let mut parser = MarkdownParser::new(&lines);
    for (index, line) in lines.iter().enumerate() {
        parser.line(index + 1, line);
    }
    parser.finish(items)
}

/// The lines. A `\r` at the end is removed only if every line has one.
fn split_lines(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.strip_suffix('\n').unwrap_or(text).split('\n').collect();
    if lines.iter().rev().skip(1).all(|line| line.ends_with('\r')) {
        for line in &mut lines {
            *line = line.strip_suffix('\r').unwrap_or(line);
        }
    }
    lines
}

/// The nesting of an entry, which decides what belongs to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinePosition {
    Plan,
    /// Below a heading of this level.
    Group(usize),
    /// A list item at this column.
    Item(usize),
}

/// An entry that is not complete yet.
struct OpenEntry {
    position: LinePosition,
    entry: PlanEntry,
    /// Its goal, line by line.
    text: Vec<String>,
    /// The goal from a `goal` block.
    exact_goal: Option<String>,
    /// Whether the title comes from a `title` block; then it may be empty.
    has_exact_title: bool,
}

/// A list of acceptance criteria.
struct CriteriaList {
    owner: usize,
    /// The least indentation of its first item.
    indent_min: usize,
    /// The form of its items, known from the first one on.
    style: Option<ItemStyle>,
}

#[derive(Clone, Copy)]
struct ItemStyle {
    column: usize,
    has_checkbox: bool,
}

struct CodeBlock<'t> {
    line: usize,
    indent: usize,
    mark: char,
    length: usize,
    info: &'t str,
    owner: usize,
    content: Vec<String>,
}

/// The part of the file that the next line belongs to.
enum FileRegion<'t> {
    Body,
    FrontMatter,
    Comment,
    Code(CodeBlock<'t>),
}

struct MarkdownParser<'t> {
    entries: Vec<OpenEntry>,
    parents: Vec<Option<usize>>,
    stack: Vec<usize>,
    criteria: Option<CriteriaList>,
    region: FileRegion<'t>,
    has_checkboxes: bool,
    has_one_title: bool,
    is_after_text: bool,
    /// Whether it was reported that there are more items than a tree can have nodes.
    is_full: bool,
    errors: Vec<PlanError>,
}

impl<'t> MarkdownParser<'t> {
    fn new(lines: &[&'t str]) -> Self {
        let mut has_checkboxes = false;
        let mut titles = 0;
        let mut fence: Option<(char, usize)> = None;
        for line in lines {
            let (_, rest) = split_indent(line);
            match (fence, classify(rest)) {
                (Some((mark, length)), _) if ends_fence(rest, mark, length) => fence = None,
                (Some(_), _) => {}
                (None, MarkdownLine::Fence { mark, length, .. }) => fence = Some((mark, length)),
                (None, MarkdownLine::Bullet { checkbox, .. }) => has_checkboxes |= checkbox.is_some(),
                (None, MarkdownLine::Heading { level: 1, .. }) => titles += 1,
                (None, _) => {}
            }
        }
        let plan = OpenEntry {
            position: LinePosition::Plan,
            entry: PlanEntry::default(),
            text: Vec::new(),
            exact_goal: None,
            has_exact_title: false,
        };
        let has_front_matter = lines.first() == Some(&"---");
        Self {
            entries: vec![plan],
            parents: vec![None],
            stack: vec![0],
            criteria: None,
            region: if has_front_matter { FileRegion::FrontMatter } else { FileRegion::Body },
            has_checkboxes,
            has_one_title: titles == 1,
            is_after_text: false,
            is_full: false,
            errors: Vec::new(),
        }
    }

    fn line(&mut self, number: usize, line: &'t str) {
        let (indent, rest) = split_indent(line);
        match &mut self.region {
            FileRegion::Code(block) if ends_fence(rest, block.mark, block.length) => self.end_block(),
            FileRegion::Code(block) => {
                let spaces = line.bytes().take(block.indent).take_while(|byte| *byte == b' ').count();
                block.content.push(line.get(spaces..).unwrap_or_default().to_owned());
            }
            FileRegion::FrontMatter => {
                if number > 1 && rest.trim_end() == "---" {
                    self.region = FileRegion::Body;
                }
            }
            FileRegion::Comment => {
                if rest.contains("-->") {
                    self.region = FileRegion::Body;
                }
            }
            FileRegion::Body if rest.starts_with("<!--") => {
                if !rest.contains("-->") {
                    self.region = FileRegion::Comment;
                }
            }
            FileRegion::Body => self.body_line(number, indent, rest),
        }
    }

    fn body_line(&mut self, number: usize, indent: usize, rest: &'t str) {
        let line = classify(rest);
        let is_text = matches!(line, MarkdownLine::Text(_) | MarkdownLine::Bullet { .. });
        match line {
            MarkdownLine::Blank => self.blank(),
            MarkdownLine::Rule => self.criteria = None,
            MarkdownLine::Heading { level, title } => self.heading(number, level, title),
            MarkdownLine::Fence { mark, length, info } => {
                let owner = self.owner(indent);
                let block =
                    CodeBlock { line: number, indent, mark, length, info, owner, content: Vec::new() };
                self.region = FileRegion::Code(block);
            }
            MarkdownLine::Bullet { checkbox, text } => self.bullet(number, indent, checkbox, text, rest),
            MarkdownLine::Text(text) => self.text(indent, text),
        }
        self.is_after_text = is_text;
    }

    fn top(&self) -> usize {
        self.stack.last().copied().unwrap_or_default()
    }

    fn position(&self, index: usize) -> LinePosition {
        self.entries.get(index).map_or(LinePosition::Plan, |open| open.position)
    }

    /// The entry that text at this column belongs to. Closes the items that it is outside of.
    fn owner(&mut self, indent: usize) -> usize {
        while let LinePosition::Item(column) = self.position(self.top()) {
            if indent > column {
                break;
            }
            self.stack.pop();
        }
        self.top()
    }

    fn add_text(&mut self, owner: usize, text: &str) {
        if let Some(open) = self.entries.get_mut(owner) {
            open.text.push(text.to_owned());
        }
    }

    fn blank(&mut self) {
        let top = self.top();
        self.add_text(top, "");
    }

    fn open(&mut self, position: LinePosition, entry: PlanEntry) {
        if self.stack.len() >= DEPTH_MAX {
            let reason = format!("the items have more than {DEPTH_MAX} levels");
            self.errors.push(PlanError::new(entry.line, reason));
            return;
        }
        if self.entries.len() >= NODES_MAX {
            if !std::mem::replace(&mut self.is_full, true) {
                let reason = format!("the file has more than {NODES_MAX} items");
                self.errors.push(PlanError::new(entry.line, reason));
            }
            return;
        }
        self.parents.push(Some(self.top()));
        self.stack.push(self.entries.len());
        self.entries.push(OpenEntry {
            position,
            entry,
            text: Vec::new(),
            exact_goal: None,
            has_exact_title: false,
        });
    }

    fn heading(&mut self, line: usize, level: usize, title: &str) {
        self.criteria = None;
        while match self.position(self.top()) {
            LinePosition::Plan => false,
            LinePosition::Group(outer) => outer >= level,
            LinePosition::Item(_) => true,
        } {
            self.stack.pop();
        }
        if acceptance_label(title).is_some() {
            self.criteria = Some(CriteriaList { owner: self.top(), indent_min: 0, style: None });
            return;
        }
        if level == 1 && self.has_one_title && self.entries.len() == 1 {
            if let Some(plan) = self.entries.first_mut() {
                title.clone_into(&mut plan.entry.title);
            }
            return;
        }
        self.open(
            LinePosition::Group(level),
            PlanEntry { line, title: title.to_owned(), ..PlanEntry::default() },
        );
    }

    fn bullet(
        &mut self,
        line: usize,
        indent: usize,
        checkbox: Option<EntryStatus>,
        text: &'t str,
        rest: &'t str,
    ) {
        if self.add_criterion(ItemStyle { column: indent, has_checkbox: checkbox.is_some() }, text) {
            return;
        }
        let owner = self.owner(indent);
        if let Some(first) = acceptance_label(text).filter(|_| checkbox.is_none()) {
            self.begin_criteria(owner, indent + 1, first);
        } else if checkbox.is_some() || !self.has_checkboxes {
            let status = checkbox.unwrap_or_default();
            let entry = PlanEntry { line, title: text.to_owned(), status, ..PlanEntry::default() };
            self.open(LinePosition::Item(indent), entry);
        } else {
            self.add_text(owner, &at_column(indent, rest.trim_end()));
        }
    }

    /// Adds a list item to the current criteria. Returns false, and ends them, if it does not belong to them.
    fn add_criterion(&mut self, item: ItemStyle, text: &str) -> bool {
        let Some(criteria) = &mut self.criteria else { return false };
        let belongs = match criteria.style {
            None => item.column >= criteria.indent_min,
            Some(style) => {
                item.column > style.column
                    || (item.column == style.column && item.has_checkbox == style.has_checkbox)
            }
        };
        if !belongs {
            self.criteria = None;
            return false;
        }
        let is_nested = criteria.style.is_some_and(|style| item.column > style.column);
        criteria.style.get_or_insert(item);
        let owner = criteria.owner;
        let Some(open) = self.entries.get_mut(owner) else { return false };
        let acceptance = &mut open.entry.acceptance;
        match acceptance.last_mut() {
            Some(last) if is_nested => last.push_str(&format!("\n- {text}")),
            Some(_) | None => acceptance.push(text.to_owned()),
        }
        true
    }

    fn begin_criteria(&mut self, owner: usize, indent_min: usize, first: &str) {
        if let Some(open) = self.entries.get_mut(owner).filter(|_| !first.is_empty()) {
            open.entry.acceptance.push(first.to_owned());
        }
        self.criteria = Some(CriteriaList { owner, indent_min, style: None });
    }

    fn text(&mut self, indent: usize, text: &str) {
        if let Some(criteria) = &self.criteria {
            let continues = criteria.style.is_some_and(|style| indent > style.column);
            let open = self.entries.get_mut(criteria.owner).filter(|_| continues);
            if let Some(last) = open.and_then(|open| open.entry.acceptance.last_mut()) {
                last.push('\n');
                last.push_str(text);
                return;
            }
            self.criteria = None;
        }
        match acceptance_label(text) {
            Some(first) => {
                let owner = self.owner(indent);
                self.begin_criteria(owner, indent, first);
            }
            None => {
                // A line that continues the text above belongs to the same entry.
                let owner = if self.is_after_text { self.top() } else { self.owner(indent) };
                self.add_text(owner, &at_column(indent, text));
            }
        }
    }

    fn end_block(&mut self) {
        let FileRegion::Code(block) = std::mem::replace(&mut self.region, FileRegion::Body) else { return };
        let Some(open) = self.entries.get_mut(block.owner) else { return };
        let exact = block.content.join("\n");
        match block.info {
            TITLE => {
                open.entry.title = exact;
                open.has_exact_title = true;
            }
            GOAL => open.exact_goal = Some(exact),
            ACCEPTANCE => open.entry.acceptance.push(exact),
            info => {
                let fence: String = std::iter::repeat_n(block.mark, block.length).collect();
                open.text.push(at_column(block.indent, &format!("{fence}{info}")));
                for line in &block.content {
                    open.text.push(if line.is_empty() {
                        String::new()
                    } else {
                        at_column(block.indent, line)
                    });
                }
                open.text.push(at_column(block.indent, &fence));
            }
        }
    }

    fn finish(mut self, rule: ItemRule) -> Result<ImportedPlan, Vec<PlanError>> {
        if let FileRegion::Code(block) = &self.region {
            self.errors.push(PlanError::new(block.line, "the code block that starts here has no end"));
        }
        for open in &mut self.entries {
            let text = goal_text(&open.text);
            open.entry.goal = match open.exact_goal.take() {
                Some(exact) if text.is_empty() => exact,
                Some(exact) => format!("{exact}\n\n{text}"),
                None => text,
            };
        }
        let items = self.entries.iter().filter(|open| matches!(open.position, LinePosition::Item(_)));
        let empty = items.clone().filter(|open| open.is_empty());
        self.errors.extend(empty.map(|open| PlanError::new(open.entry.line, "the item has no text")));
        if rule == ItemRule::Required && items.count() == 0 {
            self.errors.push(PlanError::new(1, "the file has no items: write tasks as `- [ ] what to do`"));
        }
        if !self.errors.is_empty() {
            self.errors.sort_by_key(|error| error.line);
            return Err(self.errors);
        }
        Ok(self.assemble())
    }

    /// Moves children to their parents, the last ones first, and drops groups without items.
    fn assemble(mut self) -> ImportedPlan {
        let mut warnings = Vec::new();
        while self.entries.len() > 1 {
            let (Some(open), Some(parent)) = (self.entries.pop(), self.parents.pop().flatten()) else {
                break;
            };
            let OpenEntry { position, mut entry, .. } = open;
            entry.children.reverse();
            if matches!(position, LinePosition::Group(_)) {
                if entry.children.is_empty() {
                    let text = format!("skipped \"{}\": no checklist items", entry.title);
                    warnings.push(ImportWarning { line: entry.line, text });
                    continue;
                }
                // A group has no work of its own: it is done when all its children are.
                if entry.children.iter().all(is_closed) {
                    entry.status = EntryStatus::Done;
                }
            }
            if let Some(parent) = self.entries.get_mut(parent) {
                parent.entry.children.push(entry);
            }
        }
        warnings.reverse();
        let mut plan = self.entries.pop().map(|open| open.entry).unwrap_or_default();
        plan.children.reverse();
        ImportedPlan {
            format: PlanFormat::Markdown,
            title: plan.title,
            goal: plan.goal,
            acceptance: plan.acceptance,
            entries: plan.children,
            warnings,
        }
    }
}

impl OpenEntry {
    /// Whether an item has nothing at all.
    fn is_empty(&self) -> bool {
        let PlanEntry { title, goal, acceptance, .. } = &self.entry;
        !self.has_exact_title && title.is_empty() && goal.is_empty() && acceptance.is_empty()
    }
}

/// Whether an entry has no open work.
fn is_closed(entry: &PlanEntry) -> bool {
    entry.status != EntryStatus::Open && entry.children.iter().all(is_closed)
}

fn at_column(indent: usize, text: &str) -> String {
    format!("{}{text}", " ".repeat(indent))
}

/// The lines of a goal, without their common indentation and without empty lines at both ends.
fn goal_text(lines: &[String]) -> String {
    let text_lines = lines.iter().filter(|line| !line.trim().is_empty());
    let common = text_lines.map(|line| split_indent(line).0).min();
    let dedented: Vec<&str> =
        lines.iter().map(|line| line.get(common.unwrap_or_default()..).unwrap_or_default()).collect();
    dedented.join("\n").trim_matches('\n').to_owned()
}
