//! The task lists of spec-driven tools: Spec Kit, OpenSpec and Kiro. Each is a markdown checklist with conventions of its own
//! for the numbers of tasks, which become ids, and for marks in titles.

use super::{EntryStatus, ImportedPlan, PlanEntry, PlanError, PlanFormat, markdown};

/// Which of the three tools wrote a task list, by where it is or by how its tasks are numbered.
pub(super) fn detect(name: &str, text: &str) -> Option<PlanFormat> {
    let path = format!("/{}", name.replace('\\', "/"));
    let is_tasks = path.ends_with("/tasks.md");
    if is_tasks && path.contains("/.kiro/specs/") || text.lines().any(is_only_in_kiro) {
        return Some(PlanFormat::Kiro);
    }
    if is_tasks && path.contains("/openspec/changes/") {
        return Some(PlanFormat::OpenSpec);
    }
    let is_spec_kit = text.lines().any(|line| {
        let item = line.trim_start().strip_prefix("- [").and_then(|item| item.split_once("] "));
        item.is_some_and(|(mark, title)| mark.len() == 1 && spec_kit_number(title).is_some())
    });
    is_spec_kit.then_some(PlanFormat::SpecKit)
}

/// A line that the lists of no other tool have, so that a copied list is recognised too.
fn is_only_in_kiro(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("- [ ]* ") || line.trim_start_matches("- ").starts_with("_Requirements: ")
}

/// Parses the checklist, and takes numbers and marks out of its titles.
pub(super) fn parse(text: &str, format: PlanFormat) -> Result<ImportedPlan, Vec<PlanError>> {
    let (text, optional) =
        if format == PlanFormat::Kiro { common_boxes(text) } else { (text.to_owned(), Vec::new()) };
    let mut plan = markdown::parse(&text)?;
    plan.format = format;
    clean(&mut plan.entries, format, &optional);
    if format == PlanFormat::Kiro {
        plan.entries = nested_by_number(std::mem::take(&mut plan.entries));
    }
    Ok(plan)
}

/// Kiro marks optional tasks with a star behind the box, and tasks in progress with a minus, which is a dropped task elsewhere.
/// Returns the text with common boxes, and the lines that had a star.
fn common_boxes(text: &str) -> (String, Vec<usize>) {
    let mut lines = Vec::new();
    let mut optional = Vec::new();
    for (index, line) in text.split('\n').enumerate() {
        let (indent, item) = line.split_at(line.len() - line.trim_start().len());
        let boxed =
            ["- [ ]", "- [x]", "- [-]"].into_iter().find_map(|mark| Some((mark, item.strip_prefix(mark)?)));
        let Some((mark, rest)) = boxed else {
            lines.push(line.to_owned());
            continue;
        };
        let starred = rest.strip_prefix("* ");
        optional.extend(starred.map(|_| index + 1));
        let mark = if mark == "- [-]" { "- [ ]" } else { mark };
        lines.push(match starred {
            Some(rest) => format!("{indent}{mark} {rest}"),
            None => format!("{indent}{mark}{rest}"),
        });
    }
    (lines.join("\n"), optional)
}

fn clean(entries: &mut [PlanEntry], format: PlanFormat, optional: &[usize]) {
    for entry in entries {
        let is_spec_kit = format == PlanFormat::SpecKit;
        let numbered = if is_spec_kit { spec_kit_number(&entry.title) } else { outline_number(&entry.title) };
        if let Some((number, title)) = numbered {
            entry.name = Some(number.to_owned());
            entry.title = title.to_owned();
        }
        if entry.status == EntryStatus::Open && optional.contains(&entry.line) {
            entry.status = EntryStatus::Deferred;
        }
        clean(&mut entry.children, format, optional);
    }
}

/// Kiro may write all tasks at one level: 2.1 after 2 becomes a part of it.
fn nested_by_number(entries: Vec<PlanEntry>) -> Vec<PlanEntry> {
    let mut nested: Vec<PlanEntry> = Vec::new();
    for entry in entries {
        let parent = nested.last_mut().filter(|parent| is_part_of(&entry, parent));
        match parent {
            Some(parent) => parent.children.push(entry),
            None => nested.push(entry),
        }
    }
    for entry in &mut nested {
        entry.children = nested_by_number(std::mem::take(&mut entry.children));
    }
    nested
}

fn is_part_of(entry: &PlanEntry, parent: &PlanEntry) -> bool {
    let number = entry.name.as_deref().zip(parent.name.as_deref());
    let rest = number.and_then(|(number, outer)| number.strip_prefix(outer));
    rest.is_some_and(|rest| rest.starts_with('.'))
}

/// `T012 [P] [US2] Do it`: the number, and the title without the marks for parallel work and user stories.
fn spec_kit_number(title: &str) -> Option<(&str, &str)> {
    let (number, mut rest) = title.split_once(' ')?;
    let digits = number.strip_prefix('T')?;
    if digits.len() < 3 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    while let Some((mark, after)) = rest.trim_start().strip_prefix('[').and_then(|rest| rest.split_once(']'))
    {
        let is_story = mark.strip_prefix("US").is_some_and(|story| story.parse::<u32>().is_ok());
        if mark != "P" && !is_story {
            break;
        }
        rest = after;
    }
    Some((number, rest.trim())).filter(|(_, title)| !title.is_empty())
}

/// `2.1 Do it` or `2. Do it`: the number, and the rest.
fn outline_number(title: &str) -> Option<(&str, &str)> {
    let (number, rest) = title.split_once(' ')?;
    let number = number.strip_suffix('.').unwrap_or(number);
    let is_number =
        number.split('.').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    Some((number, rest.trim())).filter(|(_, title)| is_number && !title.is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::{ImportOptions, parse_plan};
    use super::*;

    fn read(name: &str, text: &str) -> ImportedPlan {
        parse_plan(text.as_bytes(), ImportOptions { name, ..ImportOptions::default() }).unwrap()
    }

    /// Every entry as `number title status`, indented by level.
    fn outline(entries: &[PlanEntry], level: usize) -> String {
        let mut text = String::new();
        for entry in entries {
            let name = entry.name.as_deref().unwrap_or("-");
            text += &format!("{}{name} {} {}\n", " ".repeat(level), entry.title, entry.status.as_str());
            text += &outline(&entry.children, level + 1);
        }
        text
    }

    #[test]
    fn spec_kit_numbers_become_names_and_marks_are_left_out() {
        let text = "# Tasks: Search\n\n## Phase 1: Setup\n\n- [x] T001 Create the project\n- [ ] T002 [P] Add the linter\n\n\
                    ## Phase 2: User Story 1\n\n- [ ] T010 [P] [US1] Index files in src/index.rs\n- [ ] T011 [US1] [WIP] Query\n\
                    - [ ] Tidy up\n";
        let plan = read("specs/001-search/tasks.md", text);
        assert_eq!(plan.format, PlanFormat::SpecKit);
        assert_eq!(
            outline(&plan.entries, 0),
            "- Phase 1: Setup open\n T001 Create the project done\n T002 Add the linter open\n\
             - Phase 2: User Story 1 open\n T010 Index files in src/index.rs open\n T011 [WIP] Query open\n - Tidy up open\n"
        );
        assert_eq!(read("anywhere.md", "- [ ] T001 One\n").format, PlanFormat::SpecKit);
        assert_eq!(read("anywhere.md", "- [ ] T01 One\n- [ ] Tests\n").format, PlanFormat::Markdown);
    }

    #[test]
    fn kiro_tasks_at_one_level_nest_by_their_numbers() {
        let text = "- [ ] 1. Set up\n- [ ] 2. Core\n- [ ] 2.1 Parser\n- [x] 2.1.1 Tokens\n- [ ] 2.10 Printer\n- [ ] 20. Docs\n";
        assert_eq!(
            outline(&read(".kiro/specs/search/tasks.md", text).entries, 0),
            "1 Set up open\n2 Core open\n 2.1 Parser open\n  2.1.1 Tokens done\n 2.10 Printer open\n20 Docs open\n"
        );
    }

    #[test]
    fn openspec_sections_and_tasks_lose_their_numbers() {
        let text = "## 1. Implementation\n- [ ] 1.1 Create the schema\n- [x] 1.2 Write it\n\n## 2. Docs\n- [ ] 2.1 Explain 3.5 things\n";
        let plan = read("openspec/changes/add-search/tasks.md", text);
        assert_eq!(plan.format, PlanFormat::OpenSpec);
        assert_eq!(
            outline(&plan.entries, 0),
            "1 Implementation open\n 1.1 Create the schema open\n 1.2 Write it done\n\
             2 Docs open\n 2.1 Explain 3.5 things open\n"
        );
    }

    #[test]
    fn kiro_tasks_nest_and_optional_ones_are_deferred() {
        let text = "# Implementation Plan\n\n- [ ] 1. Set up the store\n  - Create the folder\n  - _Requirements: 1.1, 2.3_\n\
                    - [ ] 2. Read it\n  - [-] 2.1 Parse the file\n    - _Requirements: 1.2_\n  - [ ]* 2.2 Write property tests\n";
        let plan = read(".kiro/specs/store/tasks.md", text);
        assert_eq!(plan.format, PlanFormat::Kiro);
        assert_eq!(
            outline(&plan.entries, 0),
            "1 Set up the store open\n2 Read it open\n 2.1 Parse the file open\n 2.2 Write property tests deferred\n"
        );
        assert!(plan.entries[0].goal.contains("_Requirements: 1.1, 2.3_"), "{}", plan.entries[0].goal);
        assert_eq!(plan.warnings, [], "the list of skipped tasks names it");
        for line in ["  - _Requirements: 1.1_", "- [ ]* 2. Test"] {
            assert_eq!(read("copy.md", &format!("- [ ] 1. Do\n{line}\n")).format, PlanFormat::Kiro);
        }
        assert_eq!(read("copy.md", "- [ ] Requirements: none\n").format, PlanFormat::Markdown);
    }

    #[test]
    fn titles_that_are_only_a_number_or_a_mark_stay() {
        for title in ["1.", "1.1", "T001", "T001 [P]", "1.x Do", "1..2 Do", "v1.2 Do"] {
            assert_eq!(outline_number(title).or(spec_kit_number(title)), None, "{title}");
        }
    }
}
